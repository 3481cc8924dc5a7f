"""The test shares no code with the loader: neither the writers nor the comparison can repeat one of its mistakes."""

from __future__ import annotations

import ast
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]


def imported(module: Path) -> set[str]:
    """Names of all modules that a file imports, at its top or anywhere else in it."""
    package = ".".join(module.relative_to(_ROOT).parent.parts)
    found = set[str]()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join([package] * bool(node.level) + ([node.module] if node.module else []))
            found |= {base} | {f"{base}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            found.add(ast.literal_eval(node.args[0]))  # a computed name fails here, and so is not used
    return found


def file_of(name: str) -> Path | None:
    """The file of a module of this project."""
    place = _ROOT.joinpath(*name.split("."))
    candidates = (place.with_suffix(".py"), place / "__init__.py")
    return next((one for one in candidates if one.is_file()), None)


def reached(start: Path) -> dict[str, set[str]]:
    """Every file of the project that is imported from a folder, directly or not, and what each imports."""
    found = dict[str, set[str]]()
    todo = sorted(start.rglob("*.py"))
    while todo:
        file = todo.pop()
        if str(file.relative_to(_ROOT)) not in found:
            names = imported(file)
            found[str(file.relative_to(_ROOT))] = names
            todo += filter(None, map(file_of, names))
    return found


def test_nothing_of_the_loader_is_imported() -> None:
    found = reached(Path(__file__).parent)
    assert {"tests/chaos/run.py", "tests/chaos/comparison/rows.py", "infra/servers/server.py"} <= found.keys()
    shared = {file: [one for one in names if one.split(".")[0] == "loader"] for file, names in found.items()}
    assert {file: names for file, names in shared.items() if names} == {}
    outside = {str(Path(file).parent) for file in found if not file.startswith("tests/chaos/")}
    assert outside <= {"infra", "infra/servers"}
