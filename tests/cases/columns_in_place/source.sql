-- load
CREATE TABLE added_again (id INT PRIMARY KEY, c INT);
CREATE TABLE added_again_beside (id INT PRIMARY KEY, c INT);
CREATE TABLE swapped (id INT PRIMARY KEY, a INT, b INT);
CREATE TABLE swapped_beside (id INT PRIMARY KEY, a INT, b INT);
INSERT INTO added_again VALUES (1, 5);
INSERT INTO added_again_beside VALUES (1, 5);
INSERT INTO swapped VALUES (1, 10, 20);
INSERT INTO swapped_beside VALUES (1, 10, 20);
-- interval
ALTER TABLE added_again DROP COLUMN c, ADD COLUMN c INT;
ALTER TABLE swapped CHANGE a b INT, CHANGE b a INT AFTER id;
INSERT INTO added_again_beside VALUES (2, 6);
DELETE FROM added_again_beside WHERE id = 2;
ALTER TABLE added_again_beside DROP COLUMN c, ADD COLUMN c INT;
INSERT INTO swapped_beside VALUES (2, 3, 4);
DELETE FROM swapped_beside WHERE id = 2;
ALTER TABLE swapped_beside CHANGE a b INT, CHANGE b a INT AFTER id;
-- interval
INSERT INTO added_again VALUES (2, 7);
INSERT INTO swapped VALUES (2, 30, 40);
