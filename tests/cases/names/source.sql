-- interval
CREATE TABLE `Select From` (`order` INT PRIMARY KEY, `a ``b` INT, `"c"` INT, `größe` INT, `d,e.f` INT);
INSERT INTO `Select From` VALUES (1, 1, 1, 1, 1);
UPDATE `Select From` SET `größe` = 2, `d,e.f` = 3;
ALTER TABLE `Select From` RENAME COLUMN `a ``b` TO `group`;
INSERT INTO `Select From` VALUES (2, 2, 2, 2, 2);
