-- interval
SET time_zone = '+05:45';
CREATE TABLE moments (id INT PRIMARY KEY, ts TIMESTAMP NULL, at DATETIME);
INSERT INTO moments VALUES (1, '2026-01-01 00:00:00', '2026-01-01 00:00:00');
SET time_zone = '-11:00';
INSERT INTO moments VALUES (2, '2026-01-01 00:00:00', '2026-01-01 00:00:00');
UPDATE moments SET at = ts WHERE id = 1;
