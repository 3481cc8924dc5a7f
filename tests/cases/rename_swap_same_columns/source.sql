-- load
CREATE TABLE a (id INT PRIMARY KEY, n INT);
CREATE TABLE b (id INT PRIMARY KEY, n INT);
INSERT INTO a VALUES (1, 1), (2, 2);
INSERT INTO b VALUES (101, 1), (102, 2);
-- interval
UPDATE a SET n = 5 WHERE id = 1;
UPDATE b SET n = 6 WHERE id = 101;
RENAME TABLE a TO spare, b TO a, spare TO b;
INSERT INTO a VALUES (103, 3);
UPDATE b SET n = 7 WHERE id = 2;
-- interval
UPDATE a SET n = 8 WHERE id = 101;
DELETE FROM b WHERE id = 1;
