"""A cursor over the tokens of a statement."""

from __future__ import annotations

from loader.model.name_folding import folded_name
from loader.model.table import TableName
from loader.schema.lexer import UNKNOWN, Token, UnreadableError

_END = Token("end", "")


class TokenCursor:
    """Reads tokens in order. Methods raise UnreadableError if other tokens come next than they need.

    Attributes:
        tokens: all tokens of the statement.
        folds: table and database names are read in lower case (lower_case_table_names of the server).
        at: index of the next token.
    """

    def __init__(self, tokens: list[Token], *, folds: bool = False) -> None:
        self.tokens = tokens
        self.folds = folds
        self.at = 0

    @property
    def next(self) -> Token:
        """Return the next token; a token of kind `end` behind the last one."""
        return self.ahead(0)

    def ahead(self, count: int) -> Token:
        """Return the token `count` places behind the next one."""
        return self.tokens[self.at + count] if self.at + count < len(self.tokens) else _END

    def sees(self, *words: str) -> bool:
        """Return whether these words or symbols come next."""
        return all(self.ahead(i).word == word for i, word in enumerate(words))

    def take(self, *words: str) -> bool:
        """Skip these words or symbols if they come next; return whether they did."""
        found = self.sees(*words)
        self.at += len(words) if found else 0
        return found

    def take_any(self, *words: str) -> str:
        """Skip one of these words if it comes next; return the word, or an empty text."""
        found = self.next.word if self.next.word in words else ""
        self.at += bool(found)
        return found

    def need(self, *words: str) -> None:
        """Skip these words, which must come next."""
        if not self.take(*words):
            raise self.unexpected(" ".join(words))

    def pop(self, *kinds: str) -> str:
        """Read the next token, which must be of one of these kinds; return its text."""
        token = self.next
        if token.kind not in kinds:
            raise self.unexpected(" or ".join(kinds))
        self.at += 1
        return token.text

    def name(self) -> str:
        """Read a name, bare or quoted."""
        found = self.pop("word", "name")
        if UNKNOWN in found:
            raise UnreadableError(
                "a name is not valid in the client's character set, or has U+00A0, which can be a space"
            )
        return found

    def table(self, database: str) -> TableName:
        """Read a table name, with or without its database. MariaDB also accepts `.table`."""
        self.take(".")
        first = self.schema()
        return TableName(first, self.schema()) if self.take(".") else TableName(self._folded(database), first)

    def schema(self) -> str:
        """Read the name of a database, or of a table without its database."""
        return self._folded(self.name())

    def _folded(self, name: str) -> str:
        return folded_name(name) if self.folds else name

    def names(self) -> tuple[str, ...]:
        """Read the column names in a list of key parts such as `(a, b(10) DESC)`."""
        self.need("(")
        found = []
        while True:
            found.append(self.name())
            if self.sees("("):
                self.group()
            self.take_any("ASC", "DESC")
            if not self.take(","):
                break
        self.need(")")
        return tuple(found)

    def group(self) -> list[Token]:
        """Skip the parentheses that come next; return the tokens inside them."""
        self.need("(")
        start, depth = self.at, 1
        while depth:
            if self.next is _END:
                raise self.unexpected(")")
            depth += {"(": 1, ")": -1}.get(self.next.word, 0)
            self.at += 1
        return self.tokens[start : self.at - 1]

    def skip_item(self) -> list[Token]:
        """Skip to the next comma outside parentheses, or to the end; return the skipped tokens."""
        start = self.at
        while self.next is not _END and not self.sees(",") and not self.sees(";"):
            if self.sees("("):
                self.group()
            else:
                self.at += 1
        return self.tokens[start : self.at]

    def rest(self) -> list[Token]:
        """Return all tokens from the next one on."""
        return self.tokens[self.at :]

    def done(self) -> bool:
        """Return whether the statement ends here."""
        return self.next is _END or (self.sees(";") and self.ahead(1) is _END)

    def unexpected(self, wanted: str) -> UnreadableError:
        """Return the error that something other than `wanted` comes next."""
        found = repr(self.next.text) if self.next is not _END else "the end"
        return UnreadableError(f"expected {wanted}, found {found}")
