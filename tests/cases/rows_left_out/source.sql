-- load
CREATE TABLE keyless (a INT, body TEXT);
CREATE TABLE other (id INT PRIMARY KEY, body TEXT);
CREATE TABLE words (id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET hebrew);
INSERT INTO keyless VALUES (1, 'one');
INSERT INTO words VALUES (1, 'one');
-- interval
INSERT INTO keyless VALUES (2, 'two');
INSERT INTO words VALUES (2, 'two');
SET SESSION binlog_row_image = NOBLOB;
INSERT INTO keyless (a) VALUES (3);
INSERT INTO other VALUES (1, 'one');
INSERT INTO words VALUES (3, _hebrew X'A1');
SET SESSION binlog_row_image = FULL;
INSERT INTO keyless VALUES (4, 'four');
INSERT INTO words VALUES (4, 'four');
-- interval
INSERT INTO keyless VALUES (5, 'five');
INSERT INTO other VALUES (2, 'two');
