-- load
CREATE TABLE twice (a INT, body TEXT);
INSERT INTO twice VALUES (1, 'one');
CREATE TABLE once (a INT, body TEXT);
INSERT INTO once VALUES (1, 'one');
CREATE TABLE swapped (a INT, body TEXT);
CREATE TABLE shadow (a INT, body TEXT);
-- interval
SET SESSION binlog_row_image = NOBLOB;
INSERT INTO twice (a) VALUES (2);
DROP TABLE twice;
CREATE TABLE twice (a INT, body TEXT);
INSERT INTO twice VALUES (3, 'three');
INSERT INTO twice (a) VALUES (4);
INSERT INTO once (a) VALUES (2);
INSERT INTO once (a) VALUES (3);
DROP TABLE once;
CREATE TABLE once (a INT, body TEXT);
INSERT INTO once VALUES (4, 'four');
INSERT INTO swapped (a) VALUES (1);
RENAME TABLE swapped TO swapped_before, shadow TO swapped;
INSERT INTO swapped VALUES (2, 'two');
INSERT INTO swapped (a) VALUES (3);
-- interval
INSERT INTO twice VALUES (5, 'five');
INSERT INTO once VALUES (5, 'five');
INSERT INTO swapped VALUES (5, 'five');
