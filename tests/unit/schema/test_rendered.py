"""Actions rendered as SQL, in any sql_mode and with comments between the words, are parsed back to the same actions."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from loader.model.table import TableName
from loader.schema.changes import (
    FIRST,
    Action,
    AddColumn,
    Altered,
    ChangeIndexes,
    ColumnDefinition,
    ConvertCharset,
    Default,
    DropColumn,
    DropKey,
    ModifyColumn,
    Reload,
    RenameColumn,
    SetKey,
)
from loader.schema.lexer import ANSI_QUOTES, NO_BACKSLASH_ESCAPES
from loader.schema.statement_reader import table_changes

# U+FFFD stands for bytes that are no text.
CHARACTERS = st.sampled_from("\\\\\\'\"`%_,();-#/*! \n\0anx0é") | st.characters(
    codec="utf-8", exclude_characters="\ufffd"
)
NAMES = st.text(CHARACTERS.filter(lambda one: one != "\0"), min_size=1, max_size=8)
TEXTS = st.builds(str.__add__, st.text(CHARACTERS, max_size=9), st.sampled_from(["", "\\", "'", "\\\\'", "%"]))
LABELS = st.lists(TEXTS.map(lambda text: text.rstrip(" ")), min_size=1, max_size=4, unique=True).map(tuple)
MODES = st.sampled_from([0, ANSI_QUOTES, NO_BACKSLASH_ESCAPES, ANSI_QUOTES | NO_BACKSLASH_ESCAPES])
DEFAULTS = st.one_of(
    st.none(), st.just(Default("null")), *[st.builds(Default, st.just("string"), TEXTS)] * 3,
    st.builds(Default, st.just("number"), st.integers(-(10**9), 10**9).map(str)),
)  # fmt: skip
Write = Callable[[str], str]


@st.composite
def definitions(draw: st.DrawFn) -> ColumnDefinition:
    kind = draw(
        st.sampled_from(["int", "bigint", "decimal", "varchar", "binary", "datetime", "enum", "set", "blob", "bit"])
    )
    more: dict[str, object] = {}
    if kind.endswith("int"):
        more["unsigned"] = draw(st.booleans())
    if kind == "decimal":
        more |= {"size": draw(st.integers(1, 65)), "scale": draw(st.integers(0, 30))}
    if kind in {"varchar", "binary"}:
        more["length"] = draw(st.integers(1, 255))
    if kind == "binary":
        more["size"] = more["length"]
    if kind in {"datetime", "bit"}:
        more["size"] = draw(st.integers(1, 6))
    if kind in {"enum", "set"}:
        more["labels"] = draw(LABELS)
    if kind in {"varchar", "enum", "set"}:
        more["charset"] = draw(st.sampled_from(["", "latin1", "utf8mb4"]))
    nullable, default = draw(st.sampled_from([None, True, False])), draw(DEFAULTS)
    return ColumnDefinition(draw(NAMES), kind, nullable=nullable, default=default, **more)  # type: ignore[arg-type]


PLACES = st.none() | st.just(FIRST) | NAMES
KEYS = st.lists(NAMES, min_size=1, max_size=3).map(tuple)
ACTIONS = st.one_of(
    st.builds(AddColumn, definitions(), PLACES, st.booleans()), st.builds(DropColumn, NAMES, st.booleans()),
    st.builds(ModifyColumn, NAMES, definitions(), PLACES, st.booleans()), st.builds(SetKey, KEYS), st.just(DropKey()),
    st.builds(RenameColumn, NAMES, NAMES, st.booleans()), st.builds(ConvertCharset, st.sampled_from(["", "sjis"])),
    st.just(ChangeIndexes()),
)  # fmt: skip


class Writer:
    """Writes SQL in a sql_mode, with something that does not count between the words."""

    def __init__(self, sql_mode: int, noise: str) -> None:
        self.quote = '"' if sql_mode & ANSI_QUOTES else "`"
        self.plain = bool(sql_mode & NO_BACKSLASH_ESCAPES)
        self.noise = noise

    def name(self, name: str) -> str:
        return self.quote + name.replace(self.quote, self.quote * 2) + self.quote

    def text(self, text: str) -> str:
        return "'" + (text if self.plain else text.replace("\\", "\\\\")).replace("'", "''") + "'"

    def words(self, *words: str) -> str:
        return self.noise.join(word for word in words if word)

    def action(self, action: Action) -> str:
        words, name = self.words, self.name
        match action:
            case AddColumn(definition, place, missing):
                condition = "IF NOT EXISTS" if missing else ""
                return words("ADD", "COLUMN", *condition.split(), self.column(definition), self.place(place))
            case DropColumn(old, exists):
                return words("DROP", "COLUMN", "IF" * exists, "EXISTS" * exists, name(old))
            case RenameColumn(old, new, exists):
                return words("RENAME", "COLUMN", "IF" * exists, "EXISTS" * exists, name(old), "TO", name(new))
            case ModifyColumn(old, definition, place, exists):
                return words(
                    "CHANGE", "IF" * exists, "EXISTS" * exists, name(old), self.column(definition), self.place(place)
                )
            case SetKey(columns):
                return words("ADD", "PRIMARY", "KEY", "(" + ",".join(map(name, columns)) + ")")
            case DropKey():
                return words("DROP", "PRIMARY", "KEY")
            case ChangeIndexes():
                return words("DROP", "INDEX", name("i"))
            case ConvertCharset(charset):
                return words("CONVERT", "TO", "CHARACTER", "SET", charset or "DEFAULT")
            case Reload():
                return words("DROP", "PARTITION", "p")

    def place(self, place: str | None) -> str:
        return "" if place is None else "FIRST" if place == FIRST else self.words("AFTER", self.name(place))

    def column(self, column: ColumnDefinition) -> str:
        sizes = f"({column.size},{column.scale})" if column.type == "decimal" else f"({column.length or column.size})"
        sizes = "" if sizes == "(0)" else sizes
        if column.labels:
            sizes = "(" + ",".join(map(self.text, column.labels)) + ")"
        null = {None: "", True: "NULL", False: "NOT NULL"}[column.nullable]
        return self.words(
            self.name(column.name), column.type + sizes, "UNSIGNED" * column.unsigned,
            f"CHARACTER SET {column.charset}" if column.charset else "", self.default(column.default), null,
            "COMMENT", self.text("DROP x, ADD (y INT) /* ' */"),
        )  # fmt: skip

    def default(self, default: Default | None) -> str:
        if default is None:
            return ""
        text = self.text(default.text) if default.kind == "string" else default.text or "NULL"
        return self.words("DEFAULT", text)


NOISE = st.sampled_from([" ", "\n\t", " /* x, (y) ' */ ", " -- ,'\n", " # ,`\n", " /*!50000 */ "])


@settings(deadline=None, max_examples=200)
@given(st.lists(ACTIONS, min_size=1, max_size=4), MODES, NOISE)
def test_actions_are_read_back_as_they_were(actions: list[Action], sql_mode: int, noise: str) -> None:
    writer = Writer(sql_mode, noise)
    text = writer.words("ALTER", "TABLE", writer.name("t"), f"{noise},".join(map(writer.action, actions)))
    assert table_changes(text, "db", sql_mode, False) == (Altered(TableName("db", "t"), tuple(actions)),)
