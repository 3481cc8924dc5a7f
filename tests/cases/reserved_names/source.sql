-- load
CREATE TABLE plain (_file VARCHAR(9), id INT PRIMARY KEY, __file INT, _DELETED DATE);
INSERT INTO plain VALUES ('one', 1, 11, '2024-01-01'), ('two', 2, 22, NULL), ('three', 3, 33, NULL);
CREATE TABLE soft (_is_deleted INT PRIMARY KEY, _pos DATE, _seqno INT);
INSERT INTO soft VALUES (1, '2024-01-01', 1), (2, NULL, 2);
CREATE TABLE changes (_op INT PRIMARY KEY, __OP INT, _row_offset VARCHAR(5));
INSERT INTO changes VALUES (1, 10, 'a'), (2, 20, 'b');
CREATE TABLE bag (_spec_id INT, _partition VARCHAR(9));
INSERT INTO bag VALUES (1, 'a'), (1, 'a'), (2, 'b');
CREATE TABLE kept (id INT PRIMARY KEY, _loader_1_int__x INT, _v INT);
INSERT INTO kept VALUES (1, 1, 1), (2, 2, 2);
-- interval
UPDATE plain SET _file = 'uno', __file = 12 WHERE id = 1;
DELETE FROM plain WHERE id = 2;
INSERT INTO plain VALUES ('four', 4, 44, '2024-04-04');
DELETE FROM soft WHERE _is_deleted = 2;
UPDATE soft SET _seqno = 5, _is_deleted = 3 WHERE _is_deleted = 1;
UPDATE changes SET __OP = 11 WHERE _op = 1;
DELETE FROM changes WHERE _op = 2;
DELETE FROM bag WHERE _spec_id = 1 LIMIT 1;
UPDATE bag SET _partition = 'c' WHERE _spec_id = 2;
UPDATE kept SET _v = 3 WHERE id = 2;
-- interval
UPDATE plain SET _file = 'eins' WHERE id = 1;
ALTER TABLE plain RENAME COLUMN _file TO a, RENAME COLUMN __file TO _file;
ALTER TABLE plain ADD _pos INT DEFAULT 7 FIRST, ADD __file VARCHAR(5) NOT NULL DEFAULT 'x';
UPDATE plain SET _file = 13, _pos = 8, __file = 'y' WHERE id = 1;
ALTER TABLE soft ADD __seqno INT DEFAULT 6;
INSERT INTO soft VALUES (2, '2024-02-02', 2, 2);
ALTER TABLE changes DROP __OP, ADD _seqno INT DEFAULT 9;
INSERT INTO changes VALUES (4, 'd', 4);
ALTER TABLE bag RENAME COLUMN _spec_id TO _file;
INSERT INTO bag VALUES (3, NULL);
ALTER TABLE kept DROP _loader_1_int__x;
ALTER TABLE kept ADD _loader_1_int__x INT DEFAULT 5;
UPDATE kept SET _loader_1_int__x = 6 WHERE id = 1;
