-- load
CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(10));
INSERT INTO t VALUES (1, 'one');
-- interval
UPDATE t SET name = 'uno' WHERE id = 1;
UPDATE t SET id = 2 WHERE id = 1;
BEGIN;
DELETE FROM t WHERE id = 2;
INSERT INTO t VALUES (2, 'again');
COMMIT;
-- interval
DELETE FROM t;
INSERT INTO t VALUES (3, 'three');
