-- load
CREATE TABLE loose (code INT, n INT, UNIQUE (code));
CREATE TABLE strict (n INT, code INT NOT NULL, UNIQUE (code));
INSERT INTO loose VALUES (NULL, 1), (NULL, 1), (1, 1);
INSERT INTO strict VALUES (1, 1), (2, 2);
-- interval
UPDATE loose SET n = 2 WHERE code IS NULL LIMIT 1;
UPDATE loose SET code = NULL, n = 1 WHERE code = 1;
UPDATE strict SET code = 3 WHERE code = 1;
