-- load
CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(10));
INSERT INTO t VALUES (1, 'one'), (2, 'two');
-- interval
CREATE TABLE _t_gho LIKE t;
ALTER TABLE _t_gho ADD n INT NOT NULL DEFAULT 7;
INSERT IGNORE INTO _t_gho (id, name) SELECT id, name FROM t WHERE id = 1;
UPDATE t SET name = 'changed' WHERE id = 1;
REPLACE INTO _t_gho (id, name) VALUES (1, 'changed');
INSERT IGNORE INTO _t_gho (id, name) SELECT id, name FROM t WHERE id = 2;
RENAME TABLE t TO _t_del, _t_gho TO t;
INSERT INTO t VALUES (3, 'three', 3);
DROP TABLE _t_del;
