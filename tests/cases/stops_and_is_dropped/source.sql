-- load
CREATE TABLE dropped (id INT PRIMARY KEY, n INT);
INSERT INTO dropped VALUES (1, 10);
CREATE TABLE made (id INT PRIMARY KEY, n INT);
INSERT INTO made VALUES (1, 10);
CREATE TABLE renamed (id INT PRIMARY KEY, n INT);
INSERT INTO renamed VALUES (1, 10);
CREATE TABLE later (id INT PRIMARY KEY, n INT);
INSERT INTO later VALUES (1, 10);
CREATE TABLE later_made (id INT PRIMARY KEY, n INT);
INSERT INTO later_made VALUES (1, 10);
-- interval
UPDATE dropped SET n = 11;
ALTER TABLE dropped ADD more INT DEFAULT (1 + 1);
UPDATE dropped SET n = 12;
DROP TABLE dropped;
ALTER TABLE made ADD more INT DEFAULT (1 + 1);
DROP TABLE made;
CREATE TABLE made (id INT PRIMARY KEY, m INT);
INSERT INTO made VALUES (2, 20);
ALTER TABLE renamed ADD more INT DEFAULT (1 + 1);
RENAME TABLE renamed TO other;
INSERT INTO other (id, n) VALUES (2, 20);
UPDATE later SET n = 11;
ALTER TABLE later ADD more INT DEFAULT (1 + 1);
UPDATE later SET n = 12;
ALTER TABLE later_made ADD more INT DEFAULT (1 + 1);
-- interval
UPDATE later SET n = 13;
DROP TABLE later;
DROP TABLE later_made;
CREATE TABLE later_made (id INT PRIMARY KEY, m INT);
INSERT INTO later_made VALUES (2, 20);
