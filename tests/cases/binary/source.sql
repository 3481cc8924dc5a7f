-- interval
CREATE TABLE blobs (id BINARY(4) PRIMARY KEY, v VARBINARY(8), b BLOB, bits BIT(12));
INSERT INTO blobs VALUES ('ab', 0x00ff00, '', b'101');
INSERT INTO blobs VALUES (0x00000001, 0x0a0d5c22, 0xdeadbeef00, b'111111111111');
UPDATE blobs SET v = 0x2000 WHERE id = 'ab\0\0';
