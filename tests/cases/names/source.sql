-- load
CREATE TABLE `orders.bak` (id INT PRIMARY KEY, n INT);
INSERT INTO `orders.bak` VALUES (1, 1);
CREATE TABLE orders (id INT PRIMARY KEY, n INT);
INSERT INTO orders VALUES (1, 1);
-- interval
CREATE TABLE `Select From` (`order` INT PRIMARY KEY, `a ``b` INT, `"c"` INT, `größe` INT, `d,e.f` INT);
INSERT INTO `Select From` VALUES (1, 1, 1, 1, 1);
UPDATE `Select From` SET `größe` = 2, `d,e.f` = 3;
ALTER TABLE `Select From` RENAME COLUMN `a ``b` TO `group`;
INSERT INTO `Select From` VALUES (2, 2, 2, 2, 2);
CREATE TABLE `.../\: 50%#?*"<>|[]{}!2e` (id INT PRIMARY KEY, n INT);
INSERT INTO `.../\: 50%#?*"<>|[]{}!2e` VALUES (1, 1);
UPDATE `orders.bak` SET n = 2;
-- interval
RENAME TABLE orders TO `orders:old`, `orders.bak` TO orders;
UPDATE `orders:old` SET n = 3;
UPDATE orders SET n = 4;
UPDATE `.../\: 50%#?*"<>|[]{}!2e` SET n = 5;
