"""Backfill: staging what intervals had left out of a table, once its definition was given or its bad rows are skipped.

Only that table is extracted again from the interval, into a separate manifest. That manifest replaces what the
interval's manifest has of the table. The definition of the table at the interval's stop is stored for the next
interval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from glob import escape

from loader.errors import UnsupportedError
from loader.model.table import TableName
from loader.staging.chain import PlanChain
from loader.staging.documents import IncompleteTable, Manifest, Plan, TableFilter
from loader.staging.notes.skips import Skips, find_skips, named_skips
from loader.staging.schemas import GivenSchema, SchemaStore

Attempt = Callable[[Plan, tuple[str, ...]], Manifest]
"""Extracts a plan with the given definitions, named by their keys."""


def backfill(chain: PlanChain, generation: str, start_seqno: int, attempt: Attempt) -> bool:
    """Backfill the staged intervals from a start seqno on, in order; return whether anything was backfilled.

    Raises:
        UnsupportedError: what was given and skipped does not cover all rows of a table; the error names the first
            missing row.
    """
    schemas, skips, some = SchemaStore(chain.store, chain.source), Skips(chain.store, chain.source), False
    for manifest in chain.manifests_from(generation, start_seqno):
        for left_out in manifest.left_out:
            plan = with_skips(chain, chain.require_plan(generation, manifest.start_seqno))
            given = schemas.given_keys(generation, plan.start_seqno, plan.stop_seqno)
            # Not the skips of backfills: a skip of a whole transaction may be used for one of its tables only.
            used = (chain.extracted_manifest(generation, manifest.start_seqno) or manifest).skips
            if _is_given(schemas, {*given} - {*manifest.given}, left_out.name) or _is_skipped(
                skips, {one.key for one in plan.skips} - {*used}, left_out.name
            ):
                alone = plan_for_table(plan, left_out.name)
                _fill(chain, schemas, left_out.name, attempt_with_all_given(chain, alone, attempt))
                some = True
    return some


def attempt_with_all_given(chain: PlanChain, plan: Plan, attempt: Attempt) -> Manifest:
    """Return an attempt with all definitions that operators gave for the interval, also while it was read."""
    schemas = SchemaStore(chain.store, chain.source)
    given = schemas.given_keys(plan.generation, plan.start_seqno, plan.stop_seqno)
    while True:
        mine = attempt(plan, given)
        now = schemas.given_keys(plan.generation, plan.start_seqno, plan.stop_seqno)
        if now == given:
            return mine
        given = now


def _is_given(schemas: SchemaStore, keys: Iterable[str], name: TableName) -> bool:
    return any(schemas.given(key).table.name == name for key in keys)


def _is_skipped(skips: Skips, keys: Iterable[str], name: TableName) -> bool:
    return any(skips.get(key).concerns(name) for key in keys)


def with_skips(chain: PlanChain, plan: Plan) -> Plan:
    """Return the plan with everything that operators skip in its interval now."""
    return plan.model_copy(update={"skips": find_skips(chain, plan)})


def plans_and_manifests(chain: PlanChain, plan: Plan, extracted: Manifest) -> list[tuple[Plan, Manifest]]:
    """Return the manifests of an interval with the plans that shaped them: its own manifest, and its backfills."""
    filled = chain.backfilled_manifests(extracted)
    plans = [(plan, extracted), *((plan_for_table(plan, name), one) for name, one in filled.items())]
    return [(own.model_copy(update={"skips": named_skips(chain, own, one.skips)}), one) for own, one in plans]


def plan_for_table(plan: Plan, name: TableName) -> Plan:
    """Return the plan restricted to one table."""
    return plan.model_copy(update={"tables": TableFilter(include=(escape(str(name)),))})


def _fill(chain: PlanChain, schemas: SchemaStore, name: TableName, manifest: Manifest) -> None:
    if manifest.left_out:
        raise _still_missing(manifest, manifest.left_out[0])
    for table in schemas.get(manifest.schemas_after).tables:
        if table.name == name and not table.known().unreadable_why:
            schemas.keep(
                GivenSchema(
                    source=manifest.source,
                    generation=manifest.generation,
                    at=manifest.stop,
                    seqno=manifest.stop_seqno,
                    table=table,
                )
            )
    chain.publish_backfill(name, manifest)


def _still_missing(manifest: Manifest, left_out: IncompleteTable) -> UnsupportedError:
    return UnsupportedError(
        f"the given definitions and skips do not cover all rows of the table: {left_out.what}",
        why=left_out.why,
        hint=f"{left_out.hint}; then: {left_out.name.load_again}{_skip(left_out)}"
        if left_out.hint
        else f"give the definition at that position: loader schema set {left_out.name.argument} --at {left_out.at}"
        " --file FILE",
        table=left_out.table,
        position=left_out.position,
        interval=manifest.start_seqno,
    )


def _skip(left_out: IncompleteTable) -> str:
    return f"; or skip this row too: {left_out.skip_command}" if left_out.skippable else ""
