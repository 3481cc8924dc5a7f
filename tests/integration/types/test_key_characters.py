"""Characters that a character set has several times: in a key, the byte sequence counts to which the servers convert."""

from __future__ import annotations

from collections import Counter

import pymysql
import pytest

from infra.servers import Server
from loader.binlog.values.codepages import codepage_of, page_name, sequences
from loader.model.charsets import AMBIGUOUS_CHARSETS

pytestmark = [
    pytest.mark.integration,
    pytest.mark.sweep,
]

NO_CHARACTER = 0xFFFD  # what big5 and tis620 make of several sequences


@pytest.mark.parametrize("charset", sorted(AMBIGUOUS_CHARSETS))
@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_the_sequence_of_a_conversion(request: pytest.FixtureRequest, kind: str, charset: str) -> None:
    server: Server = request.getfixturevalue(f"{kind}_server")
    page = codepage_of(page_name(charset, in_key=True)).tolist()
    kept = {code: raw.hex() for raw, code in zip(sequences(charset), page, strict=True) if code}
    several = {code for code, count in Counter(codepage_of(charset).tolist()).items() if count > 1}
    connection = pymysql.connect(host=server.host, port=server.port, user=server.user)
    with connection, connection.cursor() as cursor:
        for code in sorted(several - {0, NO_CHARACTER}):
            text = chr(code).encode().hex()
            cursor.execute(f"SELECT LOWER(HEX(CONVERT(_utf8mb4 X'{text}' USING {charset})))")
            (converted,) = cursor.fetchone() or ("",)
            is_backslash = (charset, chr(code)) == ("sjis", "\\")
            assert kept[code] == ("5c" if is_backslash else converted), chr(code)
