#!/bin/sh
# Create the loader's user on the source: the grants of sql/source/grants.sql, by the image's own start on an empty folder.
set -eu
mysql -uroot -p"$MYSQL_ROOT_PASSWORD" <<SQL
CREATE USER 'loader'@'%' IDENTIFIED BY '$SHOP_PASSWORD';
GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'loader'@'%';
GRANT SELECT ON \`shop\`.* TO 'loader'@'%';
SQL
