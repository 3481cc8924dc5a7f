"""A case: what happens on the source, and what is to be staged and in the tables then."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from loader.materialise.rules import TableRule

FOLDER = Path(__file__).resolve().parent
_MARKS = ("-- load", "-- interval")


@dataclass(frozen=True)
class Case:
    """One folder, whose name is that of the case's database too.

    Attributes:
        why: what it is about, in a line.
        seen: public issues of other loaders that went wrong there.
        long: it runs in the long tests only; what it shows is held by shorter tests too.
        files: its records lie in as many files at least, or it would not show what it is about.
        parts: the statements before the initial load, then those of each interval.
    """

    name: str
    why: str
    seen: tuple[str, ...]
    servers: tuple[str, ...]
    long: bool
    files: int
    rules: tuple[TableRule, ...]
    parts: tuple[tuple[str, ...], ...]

    @classmethod
    def read(cls, name: str) -> Case:
        folder = FOLDER / name
        told = tomllib.loads((folder / "case.toml").read_text(encoding="utf-8"))
        case = cls(
            name=name,
            why=told.pop("why"),
            seen=tuple(told.pop("seen", ())),
            servers=tuple(told.pop("servers", ("mysql", "mariadb"))),
            long=told.pop("long", False),
            files=told.pop("files", 0),
            rules=tuple(TableRule(**rule) for rule in told.pop("rules", ())),
            parts=_parts((folder / "source.sql").read_text(encoding="utf-8")),
        )
        assert not told, f"{name}/case.toml: nobody reads {sorted(told)}"
        return case

    def expected(self, kind: str) -> Path:
        """The file with what this kind of server is to give; MariaDB has one of its own where it gives something else."""
        own = FOLDER / self.name / f"expected.{kind}.txt"
        return own if own.exists() else FOLDER / self.name / "expected.txt"

    def update(self, kind: str, text: str) -> None:
        """Make this what is expected; of another kind than MySQL, only where it differs from what that gives."""
        usual = FOLDER / self.name / "expected.txt"
        own = FOLDER / self.name / f"expected.{kind}.txt"
        if kind == self.servers[0]:
            usual.write_text(text, encoding="utf-8")
        elif text == usual.read_text(encoding="utf-8"):
            own.unlink(missing_ok=True)
        else:
            own.write_text(text, encoding="utf-8")


def names() -> list[str]:
    """The cases there are."""
    return sorted(path.parent.name for path in FOLDER.glob("*/case.toml"))


def _parts(text: str) -> tuple[tuple[str, ...], ...]:
    """The statements of each part; other lines of comment are for people."""
    parts: list[list[str]] = [[]]
    lines: list[str] = []
    for line in text.splitlines():
        if line in _MARKS:
            assert not lines, f"a statement without its end before {line}"
            if line == "-- interval":
                parts.append([])
        elif not line.startswith("--") and line.strip():
            lines.append(line)
            if line.endswith(";"):
                parts[-1].append("\n".join(lines).removesuffix(";"))
                lines = []
    assert not lines, f"a statement without its end: {lines}"
    return tuple(map(tuple, parts))
