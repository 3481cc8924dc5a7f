-- load
CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(10));
INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, 'three');
-- interval
DELETE FROM t WHERE id IN (1, 2);
UPDATE t SET id = 4 WHERE id = 3;
-- interval
INSERT INTO t VALUES (1, 'back');
