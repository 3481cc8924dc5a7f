-- load
CREATE TABLE s (id INT PRIMARY KEY, email VARCHAR(20) NOT NULL, v INT);
INSERT INTO s VALUES (1,'x',1),(2,'y',2),(3,'z',3),(5,'x',5);
CREATE TABLE r (id INT PRIMARY KEY, email VARCHAR(20) NOT NULL, v INT);
INSERT INTO r VALUES (1,'x',1),(2,'y',2),(3,'z',3),(5,'x',5),(6,'z',6);
-- interval
DELETE FROM s WHERE email='x';
DELETE FROM r WHERE email='x' OR id = 6;
-- interval
ALTER TABLE s DROP PRIMARY KEY, ADD PRIMARY KEY (email);
INSERT INTO s VALUES (4,'x',4);
INSERT INTO r VALUES (4,'x',4);
UPDATE r SET v = 7 WHERE id = 3;
ALTER TABLE r DROP PRIMARY KEY, ADD PRIMARY KEY (email);
-- interval
UPDATE s SET v=6 WHERE email='x';
UPDATE r SET v=6 WHERE email='x';
UPDATE r SET v=8 WHERE email='z';
