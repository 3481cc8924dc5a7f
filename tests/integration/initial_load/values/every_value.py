"""Rows of the table in every_type.sql that a reader can get wrong."""

from __future__ import annotations

from pathlib import Path

TABLE = (Path(__file__).parent / "every_type.sql").read_text()

LOWEST = """INSERT INTO every_type SET k1 = 'lowest', k2 = -2147483648, ti = -128, tu = 0, si = -32768, su = 0,
 mi = -8388608, mu = 0, i = -2147483648, iu = 0, bi = -9223372036854775808, bu = 0, bo = 0,
 f = -3.4028234e38, f2 = -9999.999, d = -1.7976931348623157e308, d2 = 0,
 dc = -99999999999999999999999999999999999.999999999999999999999999999999, dz = 0, d0 = -99999, du = 0,
 y = 0, da = '0000-00-00', dt = '0000-00-00', dt3 = '0000-00-00', dt6 = '0000-00-00',
 ts = '0000-00-00', ts2 = '0000-00-00', ts6 = '0000-00-00', t = '-838:59:59', t1 = '-838:59:59', t6 = '-838:59:59',
 b1 = 0, b13 = 0, b64 = 0, e = '', s = '', el = 'ä', es = '', eb = 'a', c = '', cl = '', cu = '', ca = '', cm = '',
 c0 = '', cb = '', v = '', vl = '', bn = '', bn0 = '', bn255 = '', vb = '', vb2 = '', t2 = '', tx = '', mt = '',
 lt = '', tlat = '', tb = '', bl = '', mb = '', lb = '', j = '{}'"""

HIGHEST = r"""INSERT INTO every_type SET k1 = 'highest', k2 = 2147483647, ti = 127, tu = 255, si = 32767, su = 65535,
 mi = 8388607, mu = 16777215, i = 2147483647, iu = 4294967295, bi = 9223372036854775807, bu = 18446744073709551615,
 bo = 1, f = 1.17549435e-38, f2 = 0.001, d = 2.2250738585072014e-308, d2 = 12345.6789,
 dc = 99999999999999999999999999999999999.999999999999999999999999999999, dz = 12345678.90, d0 = 7, du = 0.999999999,
 y = 2155, da = '9999-12-31', dt = '9999-12-31 23:59:59', dt3 = '9999-12-31 23:59:59.999',
 dt6 = '9999-12-31 23:59:59.999999', ts = '2038-01-19 03:14:07', ts2 = '2038-01-19 03:14:07.99',
 ts6 = '1970-01-01 00:00:01.000001', t = '838:59:59', t1 = '100:00:00.1', t6 = '-00:00:00.000001',
 b1 = 1, b13 = 8191, b64 = 18446744073709551615, e = 11, s = 31, el = '€', es = 'ß,ÿ', eb = 'b',
 c = 'x ', cl = 'äöü€', cu = '😀 ', ca = 'ab', cm = '日本', cb = 'ab',
 v = 'a"b\\c\n\r\0\t,\'\Z;|', vl = '€é', vb1 = 'A ', bn = 'ab\0', bn255 = X'FF00', vb = X'00FF10', vb2 = X'0A',
 t2 = 't', tx = REPEAT('ab\n', 1000), mt = REPEAT('ü', 70000), lt = '\\N', tlat = 'ÿ', tb = X'00', bl = X'01020304',
 mb = REPEAT(X'FE', 66000), lb = '', inv = NULL, `we``ird, "name" %s {x}` = 1,
 j = '{"a": [1, 2.5, "x\\ny", null, true, {"k": 1e100}], "b": "ü😀", "c": -9223372036854775808,
 "d": 18446744073709551615, "e": 1.0, "f": 0.1, "": []}'"""

OTHERS = (
    "k1 = 'null', k2 = 0",
    """k1 = 'partial dates', k2 = 5, d = -0.0, f = -0.0, da = '2024-00-15', dt = '2024-02-00 01:02:03',
 dt3 = '2024-00-00 00:00:00.5', dt6 = '2024-01-01', ts6 = '2024-01-01', ts2 = '2024-01-01 00:00:00.5',
 t = '-00:00:01', t1 = '24:00:00', t6 = '23:59:59.999999', e = 0, s = 5, f2 = 1, d2 = 0.5, dz = 0.5,
 dc = 0.000000000000000000000000000001, y = 1901, d0 = 0, b13 = 256, j = '[]'""",
    """k1 = 'floats', k2 = 6, f = 16777217, d = 0.1, f2 = 3.14159, d2 = 1e14, dc = -0.5, dz = 1000, y = 2000, du = 1e-9,
 j = '"text"', t = '00:00:00', t6 = '-100:00:00.5', da = '1000-01-01', v = ' lead and trail '""",
    r"""k1 = 'json', k2 = 7, f = 1e10, d = 1e22,
 j = '[1e15, 1e16, 123456789012345678, 0.00001, 1e-7, -0.0, "\\u0001\\u001f\\u007f/\\""]'""",
    "k1 = 'more floats', k2 = 8, f = 123456.7, d = 123456789012345.6, j = 'null', v = '\ufeff\u2028\u0085', e = 12",
    "k1 = 'denormal', k2 = 9, f = 1e-45, d = 5e-324, j = 'true', v = '\\\\N', tx = 'NULL', t2 = '\"', e = 13",
    "k1 = 'lengths', k2 = 10, tx = REPEAT('x', 250), mt = REPEAT('x', 251), lt = REPEAT('x', 65535)",
    "k1 = 'long', k2 = 11, mt = REPEAT('\"', 65536), lt = REPEAT('\\\\', 16777215 DIV 8), lb = REPEAT('x', 300000)",
)

MYSQL_JSON = """INSERT INTO every_type SET k1 = 'opaque', k2 = 12, j = JSON_OBJECT(
 't', CAST('10:11:12.5' AS TIME(6)), 'd', CAST('2024-01-02' AS DATE),
 'dt', CAST('2024-01-02 03:04:05.123' AS DATETIME(3)),
 'dec', CAST(1.50 AS DECIMAL(10, 4)), 'b', CAST(X'ff00' AS BINARY), 'y', CAST(2024 AS YEAR), 'bit', b'101',
 'neg', CAST('-10:00:00' AS TIME))"""


def statements(kind: str) -> list[str]:
    """The inserts for a MySQL or MariaDB server, one row each."""
    rows = [LOWEST, HIGHEST, *(f"INSERT INTO every_type SET {values}" for values in OTHERS)]
    return [*rows, MYSQL_JSON] if kind == "mysql" else rows
