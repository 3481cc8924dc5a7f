"""String literals that the server converts to the character set of the connection."""

from __future__ import annotations

import pytest

from loader.binlog.events.statement import Query
from loader.binlog.values.codepages import SINGLE, WITH_PAIRS, is_encodable
from loader.extract.literals import converted_text

ANSI_QUOTES, NO_BACKSLASH_ESCAPES = 1 << 2, 1 << 20


@pytest.mark.parametrize(
    ("literals", "text", "sql_mode", "found"),
    [
        ("", "ADD `ż` INT DEFAULT 'ż'", 0, "ADD `ż` INT DEFAULT 'ż'"),
        ("latin1", "ADD `ż` INT DEFAULT 'żó' COMMENT \"ż\"", 0, "ADD `ż` INT DEFAULT '\ufffdó' COMMENT \"\ufffd\""),
        ("latin1", "ADD \"ż\" INT DEFAULT '\\'ż'", ANSI_QUOTES, "ADD \"ż\" INT DEFAULT '\\'\ufffd'"),
        ("latin1", "ADD ż INT DEFAULT '\\' /* 'ż' */", NO_BACKSLASH_ESCAPES, "ADD ż INT DEFAULT '\\' /* 'ż' */"),
        ("latin1", "ADD x INT DEFAULT _utf8mb4'ż' /*! COMMENT 'ż'*/", 0,
         "ADD x INT DEFAULT _utf8mb4'\ufffd' /*! COMMENT '\ufffd'*/"),
        ("swe7", "ADD `a[` INT DEFAULT 'a[b~' /* [ */", 0, "ADD `a\ufffd` INT DEFAULT 'a\ufffdb\ufffd' /* [ */"),
        ("swe7", "ADD a] INT", 0, "ADD a\ufffd INT"),
        ("swe7", r"ADD a INT DEFAULT 'a\\b\n\'c\%'", 0, "ADD a INT DEFAULT 'a\\\ufffdb\\n\\'c\\\ufffd'"),
        ("swe7", r"ADD a INT DEFAULT 'a\b'", NO_BACKSLASH_ESCAPES, "ADD a INT DEFAULT 'a\ufffdb'"),
        ("ucs2", "ADD `a` INT DEFAULT 'ab'", 0, "ADD `a` INT DEFAULT '\ufffd\ufffd'"),
        ("ascii", "ADD ż INT DEFAULT N'aż'", 0, "ADD ż INT DEFAULT N'a\ufffd'"),
        ("utf8mb4", "DEFAULT 'ż😀'", 0, "DEFAULT 'ż😀'"), ("utf8mb3", "DEFAULT 'ż😀'", 0, "DEFAULT 'ż\ufffd'"),
        ("latin2", "DEFAULT 'żä日'", 0, "DEFAULT 'żä\ufffd'"), ("sjis", "DEFAULT '日ä'", 0, "DEFAULT '日\ufffd'"),
        ("collation 9999", "DEFAULT 'äa'", 0, "DEFAULT '\ufffda'"), ("latin1", "DEFAULT 'ż", 0, "DEFAULT 'ż"),
    ],
)  # fmt: skip
def test_characters_that_the_connection_lacks_are_unknown(literals: str, text: str, sql_mode: int, found: str) -> None:
    assert converted_text(Query("d", text, sql_mode, "", literals), mariadb=False) == found


def test_literals_with_an_introducer_are_bytes_of_the_client() -> None:
    text = "DEFAULT _utf8mb4'é', DEFAULT N'aé', DEFAULT 'é', DEFAULT _utf8mb4 /* */ 'é' COMMENT 'é'"
    marked = "DEFAULT _utf8mb4'\ufffd', DEFAULT N'a\ufffd', DEFAULT 'é', DEFAULT _utf8mb4 /* */ '\ufffd' COMMENT 'é'"
    assert converted_text(Query("d", text, 0, "", "", True), mariadb=False) == text
    assert converted_text(Query("d", text, 0, "", "", False), mariadb=False) == marked


@pytest.mark.parametrize("charset", ["latin1", "utf8mb3", "utf8mb4", "ucs2", "utf16", "utf32", *SINGLE, *WITH_PAIRS])
def test_every_character_set_has_ascii_and_most_do_not_have_all(charset: str) -> None:
    assert all(is_encodable(charset, chr(code)) for code in range(128))
    assert is_encodable(charset, "\U0001f600") == (charset in {"utf8mb4", "utf16", "utf32", "gb18030"})
