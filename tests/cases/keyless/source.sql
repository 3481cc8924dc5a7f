-- load
CREATE TABLE hits (page VARCHAR(10), ms FLOAT, at DATE);
INSERT INTO hits VALUES ('a', 1.5, NULL), ('a', 1.5, NULL), ('b', NULL, '2026-01-01');
-- interval
INSERT INTO hits VALUES ('a', 1.5, NULL), ('b', NULL, '2026-01-01');
DELETE FROM hits WHERE page = 'a' LIMIT 2;
UPDATE hits SET ms = 2 WHERE page = 'b' LIMIT 1;
INSERT INTO hits VALUES (NULL, NULL, NULL), (NULL, NULL, NULL);
