-- load
CREATE TABLE people (id INT PRIMARY KEY, name VARCHAR(10));
INSERT INTO people VALUES (1, 'Ada'), (2, 'Bob');
-- interval
UPDATE people SET id = 10 WHERE id = 1;
UPDATE people SET id = 20, name = 'Rob' WHERE id = 2;
