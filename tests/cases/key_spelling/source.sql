-- load
CREATE TABLE exact (k VARCHAR(10) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, n INT, PRIMARY KEY (k));
CREATE TABLE loose (k VARCHAR(10) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci, n INT, PRIMARY KEY (k));
INSERT INTO exact VALUES ('e', 1), ('E', 2), ('é', 3), ('1', 4), ('1.0', 5), ('01', 6);
INSERT INTO loose VALUES ('straße', 1), ('other', 2);
-- interval
UPDATE exact SET n = n + 10 WHERE k IN ('E', '1.0');
DELETE FROM exact WHERE k = 'e';
UPDATE loose SET k = 'STRASSE ' WHERE n = 1;
UPDATE loose SET k = 'OTHER' WHERE k = 'other';
