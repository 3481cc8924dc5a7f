-- interval
CREATE TABLE texts (id INT PRIMARY KEY, a VARCHAR(10), b VARCHAR(10), c VARBINARY(10));
INSERT INTO texts VALUES (1, NULL, NULL, NULL), (2, '', '', '');
INSERT INTO texts VALUES (3, 'null', 'NULL', NULL), (4, '\\N', 'N', 'null'), (5, ' ', '  ', ' ');
UPDATE texts SET a = '', b = NULL, c = '' WHERE id = 1;
UPDATE texts SET a = NULL, b = '', c = NULL WHERE id = 2;
