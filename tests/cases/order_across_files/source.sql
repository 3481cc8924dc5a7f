-- interval
CREATE TABLE counters (id INT PRIMARY KEY, n INT, note VARCHAR(20));
INSERT INTO counters VALUES (1, 0, 'a'), (2, 0, 'a');
BEGIN;
UPDATE counters SET n = 1, note = REPEAT('x', 20);
UPDATE counters SET n = 2;
UPDATE counters SET n = 3;
UPDATE counters SET n = 4;
UPDATE counters SET n = 5, note = 'last';
COMMIT;
UPDATE counters SET n = 6 WHERE id = 1;
