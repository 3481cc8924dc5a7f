"""A second table of types, of those that few tables have and of each server's own, with rows that a reader can get wrong."""

from __future__ import annotations

_COLUMNS = {
    "both": """g GEOMETRY, gp POINT, gc GEOMETRYCOLLECTION,
 cgbk CHAR(10) CHARACTER SET gbk, vsj VARCHAR(300) CHARACTER SET sjis, tuj TEXT CHARACTER SET ujis,
 cbig CHAR(200) CHARACTER SET big5, vkr VARCHAR(20) CHARACTER SET euckr, c9 VARCHAR(20) CHARACTER SET cp932,
 vl2 VARCHAR(30) CHARACTER SET latin2, c1251 CHAR(30) CHARACTER SET cp1251, tk8 TINYTEXT CHARACTER SET koi8r,
 sw VARCHAR(30) CHARACTER SET swe7, th VARCHAR(30) CHARACTER SET tis620, heb LONGTEXT CHARACTER SET hebrew,
 cu2 CHAR(200) CHARACTER SET ucs2, vu16 VARCHAR(200) CHARACTER SET utf16, vle VARCHAR(20) CHARACTER SET utf16le,
 cu32 CHAR(255) CHARACTER SET utf32, tu16 MEDIUMTEXT CHARACTER SET utf16,
 egbk ENUM('你', 'b', '丂') CHARACTER SET gbk, sk8 SET('привет', 'b') CHARACTER SET koi8r,
 eu2 ENUM('あ', 'a"b\\\\') CHARACTER SET ucs2, su32 SET('х', 'y') CHARACTER SET utf32,
 vgbk VARCHAR(9) CHARACTER SET gbk COLLATE gbk_bin, t0 TIME(0), t2 TIME(2), t5 TIME(5),
 bm BIT(63), b9 BIT(9), dmax DECIMAL(65,30), d65 DECIMAL(65,0), c255 CHAR(255) CHARACTER SET utf8mb4, bi16 BINARY(16),
 s64 SET({labels})""".replace("{labels}", ", ".join(f"'s{n}'" for n in range(64))),
    "mysql": "vec VECTOR(3), vmore VECTOR, g4326 GEOMETRY SRID 4326, vgb VARCHAR(50) CHARACTER SET gb18030",
    "mariadb": """u UUID, i4 INET4, i6 INET6, vc VARCHAR(300) COMPRESSED CHARACTER SET latin1,
 vcs VARCHAR(30) COMPRESSED, tc TEXT COMPRESSED CHARACTER SET gbk, mc MEDIUMTEXT COMPRESSED,
 bc BLOB COMPRESSED, vbc VARBINARY(100) COMPRESSED, tcu LONGTEXT COMPRESSED CHARACTER SET utf16""",
}

ROWS = (
    """k1 = 'lowest', k2 = -5, g = ST_GeomFromText('POINT(0 0)'), gp = ST_GeomFromText('POINT(-1.5 7.25)', 4326),
 gc = ST_GeomFromText('GEOMETRYCOLLECTION EMPTY'), cgbk = '', vsj = '', tuj = '', cbig = '', vkr = '', c9 = '',
 vl2 = '', c1251 = '', tk8 = '', sw = '', th = '', heb = '', cu2 = '', vu16 = '', vle = '', cu32 = '', tu16 = '',
 egbk = 1, sk8 = 0, eu2 = 1, su32 = 0, vgbk = '', t0 = '-838:59:59', t2 = '-00:00:00.01', t5 = '-00:00:00.99999',
 bm = 0, b9 = 0, dmax = -99999999999999999999999999999999999.999999999999999999999999999999, d65 = -1,
 c255 = '', bi16 = '', s64 = ''""",
    r"""k1 = 'highest', k2 = 5, g = ST_GeomFromText('POLYGON((0 0,1 0,1 1,0 0),(0.1 0.1,0.2 0.1,0.2 0.2,0.1 0.1))', 3857),
 gp = ST_GeomFromText('POINT(1 2)'), gc = ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 1),LINESTRING(0 0,1 1))'),
 cgbk = '你好丂"\\', vsj = 'ソ表十ｱ\\n', tuj = '日本ｱ丂~\\', cbig = '功許蓋', vkr = '한국어뷁', c9 = '①髙纊Ⅰ',
 vl2 = 'Łódź\0', c1251 = 'Привет №', tk8 = 'Привет\r\n', sw = 'ÅÄÖåäöÉé', th = 'สวัสดี', heb = 'שלום',
 cu2 = 'あ￿"\\', vu16 = '😀a"\n𐍈', vle = '😀\0x', cu32 = '😀é􏿿', tu16 = REPEAT('x😀', 40000),
 egbk = 3, sk8 = 3, eu2 = 2, su32 = 'х,y', vgbk = '誠', t0 = '838:59:59', t2 = '-838:59:58.99', t5 = '10:00:00.5',
 bm = 9223372036854775807, b9 = 511,
 dmax = 99999999999999999999999999999999999.999999999999999999999999999999, d65 = REPEAT('9', 65),
 c255 = REPEAT('😀', 255), bi16 = X'000102030000', s64 = 18446744073709551615""",
    "k1 = 'null', k2 = 0",
    """k1 = 'long', k2 = 7, cgbk = REPEAT('你', 10), vsj = REPEAT('ｱ', 300), tuj = REPEAT('丂', 20000),
 cbig = REPEAT('功', 200), cu2 = REPEAT('あ', 200), cu32 = REPEAT('😀', 255), heb = REPEAT('ש', 100000),
 tu16 = REPEAT('\\"', 70000), s64 = 's0,s63', sk8 = 'b', t2 = '-100:00:00.5', b9 = 256, bi16 = X'FF', d65 = 12""",
)
_OWN = {
    "mysql": (
        "vec = X'000000000000008001000000', vmore = STRING_TO_VECTOR('[0.1]'), vgb = ''",
        "vec = STRING_TO_VECTOR('[3.4028235e38,-1.17549435e-38,16777217]'),"
        " vmore = STRING_TO_VECTOR(CONCAT('[', REPEAT('-1.1754944e-38,', 2047), '2.5]')),"
        " g4326 = ST_GeomFromText('POINT(10 20)', 4326), vgb = '你😀ḿ\u00ad€\U0010ffff'",
        "vec = NULL",
        "vmore = STRING_TO_VECTOR('[1,2.5,1e10,0.333333333]'), vgb = REPEAT('😀', 50)",
    ),
    "mariadb": (
        "u = '00000000-0000-0000-0000-000000000000', i4 = '0.0.0.0', i6 = '::', vc = '', vcs = '', tc = '', mc = '',"
        " bc = '', vbc = '', tcu = ''",
        "u = 'ffffffff-ffff-1fff-bfff-ffffffffff00', i4 = '255.255.255.0', i6 = '2001:db8::ff00:42:8300',"
        " vc = REPEAT('é€', 150), vcs = 'short', tc = REPEAT('你\"', 5000), mc = REPEAT('mehr 😀 ', 20000),"
        " bc = REPEAT(X'00FF0A', 9000), vbc = REPEAT('a', 100), tcu = CONCAT(REPEAT('a', 1000), '😀')",
        "u = NULL",
        "u = '123e4567-e89b-12d3-a456-426614174000', i4 = '1.2.3.4', i6 = '::ffff:1.2.3.4', vc = 'x', tc = 'y',"
        " bc = 'z', mc = REPEAT(SHA2('a', 512), 400), vbc = X'00', tcu = 'q'",
    ),
}


def table(kind: str) -> str:
    """The table for a MySQL or MariaDB server."""
    columns = f"k1 VARCHAR(20) NOT NULL, k2 INT NOT NULL, {_COLUMNS['both']}, {_COLUMNS[kind]}"
    return f"CREATE TABLE more_types ({columns}, PRIMARY KEY (k2, k1))"


def statements(kind: str) -> list[str]:
    """The inserts, one row each."""
    return [f"INSERT INTO more_types SET {common}, {own}" for common, own in zip(ROWS, _OWN[kind], strict=True)]
