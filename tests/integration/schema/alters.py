"""Random ALTER TABLE statements, with names and literals written as the sql_mode needs them."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.integration.schema.types import all_types

_NAMES = ("a", "b", "C", "d e", "é", "if", "k`k", 'q"q', "2x", "Name", "漢字", "first", "x.y")
_COMMON = (
    "NULL",
    "0",
    "1",
    "'1'",
    "5",
    "-3",
    "1.5",
    "'a'",
    "''",
    "'b'",
    "TRUE",
    "'2024-02-29'",
    "'12:34:56'",
    "'2024-02-29 12:34:56'",
)
_DEFAULTS = {
    "DECIMAL": ("12.25", "-0.5", "'7'", "0.125", "1e2"),
    "FLOAT": ("0.1", "123456.7", "'-1.5'", "16777217", "1e-3"),
    "DOUBLE": ("0.1", "123456.7", "'-1.5'", "16777217", "1e-3"),
    "BIT": ("b'1'", "b'101'", "0x3", "x'01'"),
    "INT": ("0x1F", "b'11'", "+7", "'007'", "65", "FALSE"),
    "YEAR": ("2024", "'1999'", "0", "70"),
    "DATETIME": ("'2024-02-29 12:34:56.4'", "'0000-00-00'", "CURRENT_TIMESTAMP", "'2024-02-29'", "TIMESTAMP'2024-02-29 12:34:56'"),
    "TIMESTAMP": ("'0000-00-00 00:00:00'", "CURRENT_TIMESTAMP", "'2024-02-29 12:34:56'", "0"),
    "TIME": ("'-12:34:56.5'", "'100:00:00'", "'1:2:3'", "TIME'12:34:56'"),
    "DATE": ("'0000-00-00'", "20240229", "DATE'2024-02-29'", "(CURRENT_DATE)"),
    "CHAR": ("'it''s'", "'a  '", "N'n'", "_utf8mb4'ü'", "'\\\\\\'\\n\\%'", "12", "0x4142", "'a' 'b'", "(UUID())", "('x')", "'漢字'"),
    "TEXT": ("('text')", "'text'", "(CONCAT('a', 'b'))"),
    "BINARY": ("'ab'", "0x6100", "X'ff'", "'a  '"),
    "BLOB": ("('ab')", "0x6100"),
    "ENUM": ("'c'", "'B'", "2", "'x y'"),
    "SET": ("'b,a'", "'c'", "'a,c'"),
    "JSON": ("('[1]')", "'{}'", "(JSON_ARRAY())"),
    "UUID": ("'123E4567-e89b-12d3-a456-426614174000'",),
    "INET4": ("'10.0.0.1'",),
}  # fmt: skip


@dataclass(frozen=True)
class Mode:
    """A sql_mode and how it wants names to be quoted, and strings to be escaped."""

    name: str
    quote: str = "`"
    escapes: bool = True

    def named(self, name: str) -> str:
        """A name in its quotes."""
        return self.quote + name.replace(self.quote, self.quote * 2) + self.quote

    def default(self, text: str) -> str:
        """A literal that was written for a mode with escapes."""
        return text if self.escapes or "\\" not in text else "'plain\\'"


MODES = (
    Mode("STRICT_TRANS_TABLES"), Mode("STRICT_ALL_TABLES,NO_ZERO_DATE"), Mode("TRADITIONAL,ANSI_QUOTES", '"'),
    Mode("STRICT_TRANS_TABLES,NO_BACKSLASH_ESCAPES", escapes=False), Mode(""),
)  # fmt: skip


class Alters:
    """A maker of statements for one table at a time, whose columns it is told."""

    def __init__(self, random: Random, kind: str) -> None:
        self.random = random
        self.types = [name.removesuffix(" NULL") for name in all_types(kind)]
        self.mariadb = kind == "mariadb"
        self.declared: dict[str, str] = {}

    def statement(self, mode: Mode, types: dict[str, str]) -> str:
        """ALTER TABLE t with one to four actions, whose columns have these types; the first, `id`, stays."""
        self.declared, columns = types, list(types)
        count = self.random.choice((1, 1, 1, 2, 3, 4))
        actions = [self._action(mode, columns) for _ in range(count)]
        comment = self.random.choice(("", "/* a, b */ ", "-- c\n", "/*!50000 ALGORITHM=DEFAULT,*/ "))
        return f"ALTER TABLE t {comment}{', '.join(actions)}"

    def definition(self, mode: Mode, *, old: str = "") -> str:
        """A type with attributes; `old`: as of a column that is there."""
        declared = self.random.choice(self._like(old) if old else self.types)
        null = self.random.choice(("", "", "", " NULL", " NOT NULL"))
        default = ""
        if self.random.random() < 0.6:
            family = [texts for word, texts in _DEFAULTS.items() if word in declared]
            default = f" DEFAULT {mode.default(self.random.choice((*sum(family, ()), *_COMMON)))}"
        rest = self.random.choice(("", "", "", " COMMENT 'it, (or) not'", " INVISIBLE"))
        first, second = self.random.sample((null, default), 2)
        return declared + (first + second + rest)

    def _like(self, old: str) -> list[str]:
        """Types of the family of another, in most cases."""
        families = ("INT", "DECIMAL", "FLOAT", "DATETIME", "TIMESTAMP", "BIT", "BINARY", "BLOB", "ENUM", "SET")
        family = next((word for word in families if word in old.upper()), "")
        texts = any(word in old.upper() for word in ("CHAR", "TEXT"))
        near = [t for t in self.types if (family and family in t) or (texts and ("CHAR" in t or "TEXT" in t))]
        return near if near and self.random.random() < 0.9 else self.types

    def _place(self, mode: Mode, columns: list[str]) -> str:
        return self.random.choice(("", "", " FIRST", f" AFTER {mode.named(self.random.choice(columns))}"))

    def _action(self, mode: Mode, columns: list[str]) -> str:
        random = self.random
        old, new = mode.named(random.choice(columns[1:] or columns)), mode.named(random.choice(_NAMES))
        choice = random.randrange(14)
        if choice < 5:
            return f"ADD {random.choice(('', 'COLUMN '))}{new} {self.definition(mode)}{self._place(mode, columns)}"
        if choice == 5:
            return f"ADD ({new} {self.definition(mode)}, KEY (id), {mode.named('n')} INT)"
        if choice == 6:
            return f"DROP {random.choice(('', 'COLUMN '))}{old}"
        if choice == 7:
            return f"RENAME COLUMN {old} TO {new}"
        if choice == 8:
            missing = random.choice(
                (
                    "ADD COLUMN IF NOT EXISTS {} INT DEFAULT 4",
                    "DROP COLUMN IF EXISTS {}",
                    "CHANGE COLUMN IF EXISTS {0} {0} BIGINT",
                )
            )
            return missing.format(new) if self.mariadb else f"ALTER {old} DROP DEFAULT"
        return random.choice(
            ("DROP PRIMARY KEY", "ADD PRIMARY KEY (id)", f"ADD PRIMARY KEY (id, {old})", f"ADD UNIQUE u (id, {old})",
             "DROP INDEX u", f"ADD INDEX ({old})", "MODIFY id BIGINT NOT NULL", "MODIFY id INT AUTO_INCREMENT PRIMARY KEY",
             "ADD CONSTRAINT CHECK (id >= 0)", "ENGINE=InnoDB ROW_FORMAT=DYNAMIC", "ORDER BY id DESC, id", "FORCE",
             "CONVERT TO CHARACTER SET utf8mb4", "CONVERT TO CHARACTER SET latin1", "DEFAULT CHARACTER SET = utf16",
             f"ADD FULLTEXT INDEX ({old})", f"ALTER COLUMN {old} SET DEFAULT NULL", "AUTO_INCREMENT = 1000")
        ) if choice < 11 else self._modified(mode, columns)  # fmt: skip

    def _modified(self, mode: Mode, columns: list[str]) -> str:
        random = self.random
        name = random.choice(columns[1:] or columns)
        definition = self.definition(mode, old=self.declared.get(name, "")) + self._place(mode, columns)
        if random.random() < 0.3:
            return f"CHANGE {mode.named(name)} {mode.named(random.choice(_NAMES))} {definition}"
        return (
            f"MODIFY {random.choice(('', 'COLUMN '))}{mode.named(name.upper() if name == 'a' else name)} {definition}"
        )
