-- load
CREATE TABLE replaced (id INT PRIMARY KEY, doc TEXT, note TEXT);
INSERT INTO replaced VALUES (1, 'doc', 'note'), (2, 'doc', 'note');
CREATE TABLE deleted (id INT PRIMARY KEY, doc TEXT);
INSERT INTO deleted VALUES (1, 'doc'), (2, 'doc');
-- interval
SET SESSION binlog_row_image = NOBLOB;
REPLACE INTO replaced (id, note) VALUES (1, 'new');
DELETE FROM deleted WHERE id = 1;
