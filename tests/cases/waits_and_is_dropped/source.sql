-- load
CREATE TABLE t (id INT PRIMARY KEY, n INT);
INSERT INTO t VALUES (1, 10);
-- interval
UPDATE t SET n = 11;
ALTER TABLE t ADD more INT DEFAULT (1 + 1);
UPDATE t SET n = 12;
-- interval
CREATE TABLE t_new (id INT PRIMARY KEY, n INT, more INT);
INSERT INTO t_new VALUES (1, 12, 2);
RENAME TABLE t TO t_old, t_new TO t;
DROP TABLE t_old;
UPDATE t SET n = 13;
