"""Random statements about tables as a whole, in groups that belong together."""

from __future__ import annotations

from collections.abc import Callable

from tests.chaos.statements import alters, lifetimes, log_settings, partitions, relations, renames
from tests.chaos.statements.catalogue import Catalogue


def run(catalogue: Catalogue, without: frozenset[str]) -> None:
    """Run one random group of statements, with changes of rows right before and after them."""
    groups = [*_GROUPS, _LAST[catalogue.kind]]
    allowed = [(weight, make) for weight, name, make in groups if name not in without]
    make = catalogue.rng.choices([one for _, one in allowed], [weight for weight, _ in allowed])[0]
    make(catalogue)


_Group = tuple[int, str, Callable[[Catalogue], None]]
_GROUPS: list[_Group] = [
    (6, "renames", renames.swap),
    (2, "renames", renames.rename),
    (1, "renames", renames.rename_kept),
    (3, "rebuilds", renames.gh_ost),
    (3, "rebuilds", renames.pt_osc),
    (8, "alters", alters.change_columns),
    (2, "keys", alters.change_key),
    (1, "keys", alters.extend_key),
    (2, "truncates", lifetimes.truncate),
    (2, "drops", lifetimes.drop_and_create),
    (3, "creates", lifetimes.create),
    (1, "drops", lifetimes.drop),
    (2, "creates", lifetimes.create_like),
    (1, "selects", lifetimes.create_select),
    (1, "drops", lifetimes.drop_several),
    (2, "creates", lifetimes.create_over),
    (2, "shadows", lifetimes.shadow),
    (2, "sessions", alters.alter_otherwise),
    (1, "moves", renames.move),
    (2, "relations", relations.foreign_key),
    (3, "relations", relations.trigger),
    (1, "relations", relations.trigger_outside),
    (2, "partitions", partitions.change),
    (1, "partitions", partitions.exchange),
    (1, "engines", lifetimes.other_engine),
    (1, "statements", alters.by_statement),
    (1, "names", log_settings.switch_names),
]
"""Weight, name for `--without`, and what is run."""

_LAST: dict[str, _Group] = {
    "mysql": (1, "documents", log_settings.partial_documents),
    "mariadb": (1, "renames", renames.rename_absent),
}
"""What only one kind of server can do."""
