-- interval
CREATE TABLE t (id INT PRIMARY KEY, n INT, twice INT AS (n * 2) STORED, upper_name VARCHAR(20) AS (CONCAT('<', n, '>')) VIRTUAL);
INSERT INTO t (id, n) VALUES (1, 1);
INSERT INTO t (id, n) VALUES (2, 2);
UPDATE t SET n = 10 WHERE id = 1;
