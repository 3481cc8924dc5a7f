-- Fills the shop; $customers, $products, ... are row counts, at most 100,000 each.
USE shop;
INSERT INTO shop_fill.numbers
SELECT a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 10000 * f.d + 1
FROM (SELECT 0 d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9) a
CROSS JOIN (SELECT 0 d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9) b
CROSS JOIN (SELECT 0 d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9) c
CROSS JOIN (SELECT 0 d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9) e
CROSS JOIN (SELECT 0 d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9) f;
INSERT INTO shop.customers (email, name, tier, balance, note, created_at, seen_at)
SELECT CONCAT('c', n, '@example.org'), IF(n % 7 = 0, NULL, CONCAT('J', CHAR(252 USING latin1), 'rgen ', n)),
  IF(n % 11 = 0, NULL, 1 + n % 3), n * 17 % 100000 / 100,
  IF(n % 5 = 0, NULL, CONCAT('line one\nline "two" of ', n, '\\end\t😀', IF(n % 3, '', '\r\n'))),
  TIMESTAMPADD(MICROSECOND, n * 1000003 % 86400000000, '2026-01-01'), IF(n % 4 = 0, NULL, '2026-03-01 12:00:00.125')
FROM shop_fill.numbers WHERE n <= $customers;
INSERT INTO shop.products
SELECT CONCAT('SKU', n), CONCAT('Ding №', n, IF(n % 2, '', ' "groß"')), IF(n % 9 = 0, NULL, n * 1.00000001),
  IF(n % 6 = 0, NULL, n / 7), IF(n % 8 = 0, NULL, n / 3), IF(n % 10 = 0, NULL, n % 8), IF(n % 3, UNHEX(SHA2(n, 256)), NULL),
  IF(n % 4 = 0, NULL, JSON_OBJECT('size', n, 'names', JSON_ARRAY('a"b', 'c\\d', NULL, TRUE), 'deep', JSON_OBJECT('x', -n)))
FROM shop_fill.numbers WHERE n <= $products;
INSERT INTO shop.orders (customer_id, status, total, placed_at, updated_at, remark)
SELECT 1 + n % $customers, 1 + n % 4, IF(n % 13 = 0, NULL, n * 1.25),
  TIMESTAMPADD(MICROSECOND, n * 999983 % 86400000000, '2026-02-01'), '2026-03-02 08:00:00.001', IF(n % 3 = 0, '', NULL)
FROM shop_fill.numbers WHERE n <= $orders;
INSERT INTO shop.order_items
SELECT 1 + n % $orders, 1 + n DIV $orders, CONCAT('SKU', 1 + n % $products), IF(n % 17 = 0, NULL, n % 100), n % 9999 / 10000
FROM shop_fill.numbers WHERE n <= $order_items;
INSERT INTO shop.inventory
SELECT CONCAT('W', n % 3), CONCAT('SKU', n), n % 1000 - 100, IF(n % 5 = 0, NULL, '2026-01-31'),
  IF(n % 7 = 0, NULL, SEC_TO_TIME(n * 37 - 100000)), IF(n % 4 = 0, NULL, UNHEX(LPAD(HEX(n * 256), 8, '0'))), 1990 + n % 40, n % 256
FROM shop_fill.numbers WHERE n <= $inventory;
INSERT INTO shop.reviews
SELECT n, CONCAT('SKU', 1 + n % $products), n % 6, IF(n % 4 = 0, NULL, REPEAT('gut 👍, "sehr"\n', n % 5)),
  IF(n % 2, NULL, JSON_ARRAY(n, n / 4, 'ü'))
FROM shop_fill.numbers WHERE n <= $reviews;
DROP DATABASE shop_fill;
