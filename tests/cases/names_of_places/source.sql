-- load
CREATE TABLE t (c1 INT, c0 INT, id INT PRIMARY KEY, v0 INT, b0 INT, k_c2 INT, life INT, origin INT, there INT);
INSERT INTO t VALUES (1, 2, 3, 4, 5, 6, 7, 8, 9), (11, 12, 13, 14, 15, 16, 17, 18, 19);
CREATE TABLE kept (c1 INT, c0 INT PRIMARY KEY, nth INT, value INT, `last` INT);
INSERT INTO kept VALUES (1, 2, 3, 4, 5);
-- interval
SET SESSION binlog_row_image = MINIMAL;
UPDATE t SET c1 = 21 WHERE id = 3;
UPDATE t SET id = 4 WHERE id = 3;
UPDATE t SET there = 22 WHERE id = 4;
UPDATE t SET id = 14, life = 23 WHERE id = 13;
UPDATE kept SET c1 = 24;
UPDATE kept SET nth = 25;
