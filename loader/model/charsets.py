"""Facts about the servers' character sets."""

AMBIGUOUS_CHARSETS = frozenset({"armscii8", "big5", "cp932", "eucjpms", "sjis", "tis620", "ujis"})
"""Character sets with characters that several byte sequences stand for."""

ALWAYS_VALID_CHARSETS = frozenset({"latin1"})
"""Character sets in which all bytes are valid."""
