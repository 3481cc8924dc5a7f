-- load
CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(10));
INSERT INTO t VALUES (1, 'one'), (2, 'two');
-- interval
BEGIN;
DELETE FROM t WHERE id = 1;
INSERT INTO t VALUES (1, 'again');
COMMIT;
REPLACE INTO t VALUES (2, 'replaced');
BEGIN;
INSERT INTO t VALUES (3, 'short');
DELETE FROM t WHERE id = 3;
COMMIT;
DELETE FROM t WHERE id = 1;
-- interval
INSERT INTO t VALUES (1, 'back');
