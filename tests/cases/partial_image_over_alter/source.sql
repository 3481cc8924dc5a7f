-- load
CREATE TABLE t (id INT PRIMARY KEY, a INT, b TEXT);
INSERT INTO t VALUES (1, 1, 'text'), (2, 2, 'more');
-- interval
SET SESSION binlog_row_image = MINIMAL;
UPDATE t SET a = 10 WHERE id = 1;
ALTER TABLE t ADD c INT NOT NULL DEFAULT 5 FIRST, RENAME COLUMN b TO note;
UPDATE t SET a = 20 WHERE id = 2;
UPDATE t SET id = 3, c = 6 WHERE id = 1;
