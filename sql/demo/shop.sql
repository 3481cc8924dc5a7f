-- The demo's shop: keys, types and texts that loaders get wrong.
CREATE DATABASE shop CHARACTER SET utf8mb4;
CREATE DATABASE shop_fill;
CREATE TABLE shop_fill.numbers (n INT PRIMARY KEY);
CREATE TABLE shop.customers (
  id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY,
  email VARCHAR(120) NOT NULL,
  name VARCHAR(80) CHARACTER SET latin1 NULL,
  tier ENUM('free', 'plus', 'it''s "pro", yes') NULL,
  balance DECIMAL(12, 2) NOT NULL DEFAULT 0,
  note TEXT NULL,
  created_at DATETIME(6) NOT NULL,
  seen_at TIMESTAMP(3) NULL
);
CREATE TABLE shop.products (
  sku CHAR(12) PRIMARY KEY,
  title VARCHAR(200) NOT NULL,
  price DECIMAL(20, 8) NULL,
  weight DOUBLE NULL,
  ratio FLOAT NULL,
  tags SET('new', 'sale', 'gift') NULL,
  photo BLOB NULL,
  attributes JSON NULL
);
CREATE TABLE shop.orders (
  id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY,
  customer_id BIGINT UNSIGNED NOT NULL,
  status ENUM('new', 'paid', 'sent', 'back') NOT NULL,
  total DECIMAL(14, 2) NULL,
  placed_at DATETIME(6) NOT NULL,
  updated_at TIMESTAMP(3) NULL,
  remark TEXT NULL
);
CREATE TABLE shop.order_items (
  order_id BIGINT UNSIGNED NOT NULL,
  line SMALLINT UNSIGNED NOT NULL,
  sku CHAR(12) NOT NULL,
  quantity INT NULL,
  price DECIMAL(10, 4) NOT NULL,
  PRIMARY KEY (order_id, line)
);
CREATE TABLE shop.inventory (
  warehouse VARCHAR(8) NOT NULL,
  sku CHAR(12) NOT NULL,
  on_hand MEDIUMINT NULL,
  counted_on DATE NULL,
  shift TIME NULL,
  bin BINARY(4) NULL,
  since YEAR NULL,
  flags BIT(8) NULL,
  PRIMARY KEY (warehouse, sku)
);
CREATE TABLE shop.reviews (
  customer_id BIGINT UNSIGNED NOT NULL,
  sku CHAR(12) NOT NULL,
  stars TINYINT NULL,
  body TEXT NULL,
  extra JSON NULL,
  PRIMARY KEY (customer_id, sku)
);
