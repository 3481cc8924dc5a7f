-- load
CREATE TABLE t (id INT PRIMARY KEY, size ENUM('small', 'large'), flags SET('a', 'b', 'c') CHARACTER SET latin1) CHARACTER SET utf8mb4;
INSERT INTO t VALUES (1, 'small', 'a'), (2, 'large', ''), (3, NULL, NULL);
-- interval
INSERT INTO t VALUES (4, 'large', 'a,c');
ALTER TABLE t MODIFY size ENUM('tiny', 'small', 'large');
INSERT INTO t VALUES (5, 'tiny', 'c');
UPDATE t SET size = 'small' WHERE id = 2;
