-- load
CREATE TABLE seats (seat INT PRIMARY KEY, who VARCHAR(10));
INSERT INTO seats VALUES (1, 'Ada'), (2, 'Bob'), (3, 'Cleo');
-- interval
BEGIN;
UPDATE seats SET seat = -1 WHERE seat = 1;
UPDATE seats SET seat = 1 WHERE seat = 2;
UPDATE seats SET seat = 2 WHERE seat = -1;
COMMIT;
UPDATE seats SET seat = seat + 1 ORDER BY seat DESC;
