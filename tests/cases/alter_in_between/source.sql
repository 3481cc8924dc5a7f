-- load
CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(10));
INSERT INTO t VALUES (1, 'one'), (2, 'two');
-- interval
UPDATE t SET name = 'before' WHERE id = 1;
ALTER TABLE t ADD city VARCHAR(20) NOT NULL DEFAULT 'Bonn' AFTER id;
INSERT INTO t VALUES (3, 'Köln', 'three');
UPDATE t SET name = 'after' WHERE id = 2;
