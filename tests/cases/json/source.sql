-- interval
CREATE TABLE docs (id INT PRIMARY KEY, doc JSON);
INSERT INTO docs VALUES (1, '{"b": 1, "a": [1.50, 18446744073709551615, -0.0, 1e100]}'), (2, NULL), (3, 'null');
INSERT INTO docs VALUES (4, '"line\\nbreak \\"quoted\\" \\\\ é 😀"'), (5, '[]'), (6, '{"": {"": [true, false, null]}}');
UPDATE docs SET doc = JSON_SET(doc, '$.a[0]', 'new') WHERE id = 1;
