"""A place in the tokens of a statement, from which its parts are read."""

from __future__ import annotations

from loader.model.table import TableName
from loader.schema.lexer import UNKNOWN, Token, UnreadableError

_END = Token("end", "")


class TokenCursor:
    """Reads tokens in their order; `at` is the next one. Whatever is not there is an UnreadableError.

    `folds`: names of tables and schemas are read in lower case, as a server stores them that does not tell them apart.
    """

    def __init__(self, tokens: list[Token], *, folds: bool = False) -> None:
        self.tokens = tokens
        self.folds = folds
        self.at = 0

    @property
    def next(self) -> Token:
        """The next token; of kind `end` behind the last."""
        return self.ahead(0)

    def ahead(self, count: int) -> Token:
        """The token so many behind the next."""
        return self.tokens[self.at + count] if self.at + count < len(self.tokens) else _END

    def sees(self, *words: str) -> bool:
        """Whether these words or symbols come next."""
        return all(self.ahead(i).word == word for i, word in enumerate(words))

    def take(self, *words: str) -> bool:
        """Pass over these words or symbols if they come next."""
        found = self.sees(*words)
        self.at += len(words) if found else 0
        return found

    def take_any(self, *words: str) -> str:
        """Pass over one of these words, if it comes next, and say which; else empty."""
        found = self.next.word if self.next.word in words else ""
        self.at += bool(found)
        return found

    def need(self, *words: str) -> None:
        """Pass over these words, which must come next."""
        if not self.take(*words):
            raise self.unexpected(" ".join(words))

    def pop(self, *kinds: str) -> str:
        """The text of the next token, which must be of one of these kinds."""
        token = self.next
        if token.kind not in kinds:
            raise self.unexpected(" or ".join(kinds))
        self.at += 1
        return token.text

    def name(self) -> str:
        """A name, bare or quoted."""
        found = self.pop("word", "name")
        if UNKNOWN in found:
            raise UnreadableError("the character set of a name is not known")
        return found

    def table(self, database: str) -> TableName:
        """A table's name, with its schema or without; MariaDB also takes `.table`."""
        self.take(".")
        first = self.schema()
        return TableName(first, self.schema()) if self.take(".") else TableName(self._folded(database), first)

    def schema(self) -> str:
        """A name of a schema, or of a table without its schema."""
        return self._folded(self.name())

    def _folded(self, name: str) -> str:
        return name.lower() if self.folds else name

    def names(self) -> tuple[str, ...]:
        """The names in a parenthesised list of key parts such as `(a, b(10) DESC)`."""
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
        """The tokens inside the parentheses that come next, which are passed over."""
        self.need("(")
        start, depth = self.at, 1
        while depth:
            if self.next is _END:
                raise self.unexpected(")")
            depth += {"(": 1, ")": -1}.get(self.next.word, 0)
            self.at += 1
        return self.tokens[start : self.at - 1]

    def skip_item(self) -> list[Token]:
        """The tokens up to the next comma outside parentheses or the end, which are passed over."""
        start = self.at
        while self.next is not _END and not self.sees(",") and not self.sees(";"):
            if self.sees("("):
                self.group()
            else:
                self.at += 1
        return self.tokens[start : self.at]

    def rest(self) -> list[Token]:
        """All tokens from the next one on."""
        return self.tokens[self.at :]

    def done(self) -> bool:
        """Whether the statement ends here."""
        return self.next is _END or (self.sees(";") and self.ahead(1) is _END)

    def unexpected(self, wanted: str) -> UnreadableError:
        """The error that something else than `wanted` comes next."""
        found = repr(self.next.text) if self.next is not _END else "the end"
        return UnreadableError(f"{wanted} was expected where {found} stands")
