-- load
CREATE TABLE t (id INT PRIMARY KEY, a INT, b TEXT, c INT);
INSERT INTO t VALUES (1, 1, 'text', NULL), (2, 2, NULL, 2);
-- interval
SET SESSION binlog_row_image = MINIMAL;
UPDATE t SET a = 10 WHERE id = 1;
UPDATE t SET c = 20, b = '' WHERE id = 2;
UPDATE t SET a = NULL WHERE id = 2;
SET SESSION binlog_row_image = NOBLOB;
UPDATE t SET a = 11 WHERE id = 1;
INSERT INTO t VALUES (3, 3, 'whole', 3);
SET SESSION binlog_row_image = MINIMAL;
DELETE FROM t WHERE id = 3;
