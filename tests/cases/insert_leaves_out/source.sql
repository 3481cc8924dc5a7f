-- load
CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT DEFAULT 7);
INSERT INTO t VALUES (1, 1, 1);
CREATE TABLE updated (id INT PRIMARY KEY, a INT, b INT DEFAULT 7);
CREATE TABLE moved (id INT PRIMARY KEY, a INT, b INT DEFAULT 7);
INSERT INTO moved VALUES (1, 1, 1);
CREATE TABLE overwritten (id INT PRIMARY KEY, a INT, b INT DEFAULT 7);
CREATE TABLE deleted (id INT PRIMARY KEY, a INT, b INT DEFAULT 7);
INSERT INTO deleted VALUES (1, 1, 1);
-- interval
SET SESSION binlog_row_image = MINIMAL;
INSERT INTO t (id, a) VALUES (2, 2);
INSERT INTO updated (id, a) VALUES (2, 2);
UPDATE updated SET a = 3 WHERE id = 2;
INSERT INTO moved (id, a) VALUES (3, 3);
UPDATE moved SET id = id + 1 ORDER BY id DESC;
UPDATE moved SET id = id + 1 ORDER BY id DESC;
INSERT INTO overwritten (id, a) VALUES (2, 2);
UPDATE overwritten SET b = 3 WHERE id = 2;
INSERT INTO deleted (id, a) VALUES (2, 2);
UPDATE deleted SET id = 5 WHERE id = 2;
DELETE FROM deleted WHERE id = 5;
