-- load
CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(10));
INSERT INTO t VALUES (1, 'one');
-- interval
XA START 'held';
UPDATE t SET name = 'prepared';
XA END 'held';
XA PREPARE 'held';
-- interval
XA COMMIT 'held';
XA START 'undone';
DELETE FROM t;
XA END 'undone';
XA PREPARE 'undone';
XA ROLLBACK 'undone';
