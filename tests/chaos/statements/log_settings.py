"""What the server writes for a row changes: names of columns come and go, and documents are logged by their changes."""

from __future__ import annotations

import json
from random import Random

from tests.chaos.access.columns import Column
from tests.chaos.statements.catalogue import Catalogue
from tests.chaos.statements.values import text

_PATHS = [*(f"$.k{n}" for n in range(4)), "$[0]", "$[1]", "$[0].k0", "$.k1[1]", "$.k2.new", "$." + json.dumps("é.x")]
_LEAVES = ["1", "-2.5", "NULL", "'é'", f"'{'y' * 80}'", "CAST('[1, {}]' AS JSON)", "CAST('true' AS JSON)"]


def switch_names(catalogue: Catalogue) -> None:
    """Log with or without the names of columns from now on, or for some changes only."""
    rng, found = catalogue.rng, catalogue.some(2)
    names = [one.name for one in found]
    values = ["FULL", "MINIMAL", *["NO_LOG"] * (catalogue.kind == "mariadb")]
    catalogue.do(*catalogue.changes(*names))
    for value in rng.sample(values, k=rng.randint(1, 2)):
        catalogue.do(f"SET GLOBAL binlog_row_metadata = {value}", *catalogue.changes(*names))


def partial_documents(catalogue: Catalogue) -> None:
    """Change JSON in place while MySQL logs only what changed in a document."""
    rng = catalogue.rng
    documents = [(one, column) for one in catalogue.some(1) for column in one.columns if column.type == "json"]
    for table, column in documents:
        before, after = catalogue.changes(table.name), catalogue.changes(table.name)
        acts = [
            f"UPDATE {table.quoted} SET {column.quoted} = {_changed(rng, column)} {table.place(rng)}"
            for _ in range(rng.randint(1, 4))
        ]
        catalogue.do(
            *before,
            "SET SESSION binlog_row_image = FULL",
            "SET SESSION binlog_row_value_options = 'PARTIAL_JSON'",
            *rng.choice([acts, ["BEGIN", *acts, *catalogue.changes(table.name), *acts, "COMMIT"]]),
            "SET SESSION binlog_row_value_options = ''",
            f"SET SESSION binlog_row_image = {catalogue.session.image}",
            *after,
        )


def _changed(rng: Random, column: Column) -> str:
    """Return a document with changes in it, in the way that MySQL can log as changes."""
    found = column.quoted
    for _ in range(rng.randint(1, 3)):
        act, path = rng.choice(["SET", "SET", "REPLACE", "REMOVE"]), text(rng.choice(_PATHS))
        found = f"JSON_{act}({found}, {path}{'' if act == 'REMOVE' else f', {rng.choice(_LEAVES)}'})"
    return found
