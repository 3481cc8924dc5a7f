-- load
CREATE TABLE t (k VARCHAR(4) PRIMARY KEY, n INT, note TEXT);
INSERT INTO t VALUES ('a', 1, 'kept all the way');
-- interval
SET SESSION binlog_row_image = MINIMAL;
UPDATE t SET k = 'b';
UPDATE t SET n = 2;
UPDATE t SET k = 'c';
-- interval
SET SESSION binlog_row_image = MINIMAL;
UPDATE t SET k = 'd';
