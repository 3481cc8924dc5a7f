-- interval
CREATE TABLE texts (id INT PRIMARY KEY, a VARCHAR(40), b TEXT);
INSERT INTO texts VALUES (1, 'two\nlines', 'carriage\r\nreturn'), (2, 'tab\tcomma,', '"quoted"');
INSERT INTO texts VALUES (3, '\\', '\\n'), (4, 'ends in \\', '"'), (5, ',', '\n'), (6, 'nul\0 bell', 0x0102031f7f);
UPDATE texts SET b = CONCAT(b, '\n') WHERE id < 3;
