-- load
CREATE TABLE ordered (id VARCHAR(3) PRIMARY KEY, a INT);
INSERT INTO ordered VALUES ('x', 1);
CREATE TABLE typed (id INT PRIMARY KEY, a INT);
INSERT INTO typed VALUES (1, 1);
-- interval
SET SESSION binlog_row_image = MINIMAL;
DROP TABLE ordered;
CREATE TABLE ordered (id INT PRIMARY KEY, a INT, b INT);
INSERT INTO ordered (id, a) VALUES (1, 1);
RENAME TABLE ordered TO ordered_before;
CREATE TABLE ordered (id VARCHAR(3) PRIMARY KEY, c INT);
INSERT INTO ordered VALUES ('y', 2);
DROP TABLE typed;
CREATE TABLE typed (id INT PRIMARY KEY, a TEXT, b INT);
INSERT INTO typed (id, a) VALUES (1, 'text');
RENAME TABLE typed TO typed_before;
CREATE TABLE typed (id INT PRIMARY KEY, a DATE);
INSERT INTO typed VALUES (2, '2024-01-02');
