-- load
CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(10));
CREATE TABLE b (id INT PRIMARY KEY, n INT);
INSERT INTO a VALUES (1, 'of a');
INSERT INTO b VALUES (1, 100), (2, 200);
-- interval
UPDATE a SET v = 'before' WHERE id = 1;
RENAME TABLE a TO spare, b TO a, spare TO b;
UPDATE a SET n = 201 WHERE id = 2;
INSERT INTO b VALUES (2, 'of b now');
