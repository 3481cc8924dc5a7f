-- interval
CREATE TABLE words (
  id INT PRIMARY KEY,
  west VARCHAR(10) CHARACTER SET latin1,
  east VARCHAR(10) CHARACTER SET cp1251,
  japan VARCHAR(10) CHARACTER SET sjis,
  wide VARCHAR(10) CHARACTER SET utf16,
  all_of_them VARCHAR(20) CHARACTER SET utf8mb4
);
INSERT INTO words VALUES (1, 'Köln €', 'мир', '日本', '😀', 'Köln мир 日本 😀');
UPDATE words SET west = 'Zoë', east = 'Я', japan = 'カ', wide = 'é', all_of_them = '👩‍🚀 é';
