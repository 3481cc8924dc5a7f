-- load
CREATE TABLE hollow (id INT PRIMARY KEY, n INT);
CREATE TABLE kept (id INT PRIMARY KEY, n INT);
INSERT INTO kept VALUES (1, 10);
-- interval
CREATE TABLE _hollow_gho LIKE hollow;
ALTER TABLE _hollow_gho ADD m INT;
RENAME TABLE hollow TO _hollow_del, _hollow_gho TO hollow;
CREATE TABLE one (id INT PRIMARY KEY);
RENAME TABLE one TO two;
RENAME TABLE two TO three, kept TO two;
INSERT INTO two VALUES (2, 20);
CREATE TABLE four (id INT PRIMARY KEY);
DROP TABLE four;
RENAME TABLE three TO four;
-- interval
INSERT INTO hollow VALUES (2, 20, 200);
INSERT INTO four VALUES (4);
