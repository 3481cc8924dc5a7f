-- load
CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(10));
CREATE TABLE kept (id INT PRIMARY KEY, name VARCHAR(10));
INSERT INTO t VALUES (1, 'old'), (2, 'old');
INSERT INTO kept VALUES (1, 'old'), (2, 'old');
-- interval
INSERT INTO t VALUES (3, 'gone too');
TRUNCATE TABLE t;
TRUNCATE TABLE kept;
INSERT INTO t VALUES (1, 'new');
INSERT INTO kept VALUES (1, 'new');
