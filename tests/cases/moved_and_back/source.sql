-- load
CREATE TABLE changed_outside (id INT PRIMARY KEY, v VARCHAR(10));
CREATE TABLE back (id INT PRIMARY KEY, v VARCHAR(10));
INSERT INTO changed_outside VALUES (1, 'a'), (2, 'b');
INSERT INTO back VALUES (1, 'a'), (2, 'b');
-- interval
UPDATE back SET v = 'before' WHERE id = 1;
RENAME TABLE back TO back_x;
RENAME TABLE back_x TO back;
UPDATE back SET v = 'after' WHERE id = 2;
CREATE DATABASE IF NOT EXISTS outside;
RENAME TABLE changed_outside TO outside.changed_outside;
DELETE FROM outside.changed_outside WHERE id = 1;
RENAME TABLE outside.changed_outside TO changed_outside;
INSERT INTO changed_outside VALUES (3, 'c');
DROP DATABASE outside;
