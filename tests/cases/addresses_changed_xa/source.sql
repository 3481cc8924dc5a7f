-- load
CREATE TABLE loaded (id INT PRIMARY KEY, u UUID);
INSERT INTO loaded VALUES (1, '123e4567-e89b-12d3-a456-426655440001');
-- interval
CREATE TABLE born (id INT PRIMARY KEY, u UUID);
XA START 'addresses_born';
INSERT INTO born VALUES (1, '123e4567-e89b-12d3-a456-426655440001');
XA END 'addresses_born';
XA PREPARE 'addresses_born';
XA COMMIT 'addresses_born';
XA START 'addresses_loaded';
INSERT INTO loaded VALUES (2, '123e4567-e89b-12d3-a456-426655440002');
XA END 'addresses_loaded';
XA PREPARE 'addresses_loaded';
XA COMMIT 'addresses_loaded';
RENAME TABLE born TO old_born, loaded TO old_loaded;
CREATE TABLE born (id INT PRIMARY KEY, u INET6);
INSERT INTO born VALUES (2, '::1');
CREATE TABLE loaded (id INT PRIMARY KEY, u INET6);
INSERT INTO loaded VALUES (2, '::1');
-- interval
INSERT INTO old_born VALUES (3, '123e4567-e89b-12d3-a456-426655440003');
INSERT INTO old_loaded VALUES (3, '123e4567-e89b-12d3-a456-426655440003');
