"""The command that lists intervals, shows one in detail, or verifies its files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loader.cli.lazy import lazily
from loader.cli.output import Output
from loader.cli.session import Session, SourceOption
from loader.errors import StagedDataError, UsageError

if TYPE_CHECKING:
    from loader import pipeline
    from loader.cli.listing import text
else:
    pipeline, text = lazily("loader.pipeline"), lazily("loader.cli.listing.text")

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_COLUMNS = ("start", "stop", "state", "tables", "inserts", "updates", "deletes", "bytes")
_FILE = ("inserts", "updates", "deletes", "bytes", "sha256")
_SEQNOS = ("min_seqno", "max_seqno")


def intervals(
    context: typer.Context,
    start: Annotated[
        str,
        typer.Argument(
            metavar="START",
            help="Start of the interval to show in detail, such as binlog.000054:123.",
            show_default=False,
        ),
    ] = "",
    source: SourceOption = "",
    limit: Annotated[
        int, typer.Option(min=0, metavar="COUNT", help="How many of the newest intervals to list; 0 lists all.")
    ] = 20,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read the files of that interval; name lost, changed and foreign files.")
    ] = False,
) -> None:
    """List the newest intervals with their state, or show one in detail: files, barriers, balance."""
    session: Session = context.obj
    settings = session.settings(source)
    if verify and not start:
        raise UsageError("--verify needs an interval", hint="list them with: loader intervals")
    if verify:
        _verify(session.output, pipeline.verify_interval(settings, pipeline.find_interval(settings, start)))
    elif start:
        _show(session.output, pipeline.interval(settings, pipeline.find_interval(settings, start)))
    elif session.output.as_json:
        session.output.document(pipeline.intervals(settings, limit))
    else:
        _list(session.output, pipeline.intervals(settings, limit))


def _list(output: Output, states: Sequence[pipeline.IntervalState]) -> None:
    rows = []
    for state in states:
        values = [getattr(state, name) for name in _COLUMNS]
        values[_COLUMNS.index("state")] = ", ".join(_state(state))
        seqnos = [str(state.start_seqno)] if output.verbose else []
        rows.append([*seqnos, *values, _age(state.age), len(state.behind)])
    output.rows((*(["start_seqno"] if output.verbose else []), *_COLUMNS, "age", "behind"), rows)


def _state(state: pipeline.IntervalState) -> list[str]:
    incomplete = [f"{len(state.left_out)} incomplete"] if state.left_out else []
    return [state.state, *(["purged"] if state.purged else []), *incomplete]


def _show(output: Output, detail: pipeline.IntervalDetail) -> None:
    if output.as_json:
        output.document(detail)
        return
    state, manifest = detail.state, detail.manifest
    seqno = output.seqno(state.start_seqno)
    output.line(f"interval {state.start} to {state.stop} of generation {state.generation}{seqno}")
    output.line(f"{', '.join(_state(state))}; planned {_age(state.age)} ago")
    output.line(f"tables behind: {', '.join(state.behind) or 'none'}")
    if manifest is None:
        return
    columns = (*_FILE, *(_SEQNOS if output.verbose else ()))
    rows = [
        (file.name, file.key.split("/", 3)[-1], *(_number(getattr(file, name)) for name in columns))
        for file in manifest.files
    ]
    output.rows(("table", "file", *columns), rows)
    for barrier in manifest.barriers:
        tables = ", ".join(barrier.tables) or "unknown tables"
        output.line(f"barrier at {barrier.position} for {tables}: {text.visible(barrier.statement)}")
    for table in manifest.left_out:
        output.line(f"{table.table} is incomplete from {table.position} on: {table.what}: {text.visible(table.why)}")
    for group in manifest.held:
        output.line(f"XA transaction {group.xid}, prepared at {group.file}:{group.start}, has no outcome yet")
    if manifest.balance:
        _balance(output, manifest.balance.model_dump())


def _balance(output: Output, balance: dict[str, Any]) -> None:
    types, skipped = balance.pop("event_types"), balance.pop("skipped")
    rows = [*balance.items(), *((f"skipped: {why}", count) for why, count in skipped.items())]
    rows += [(f"events of type {name}", count) for name, count in types.items()]
    output.rows(("balance", "rows"), rows)


def _verify(output: Output, faults: Sequence[pipeline.FileFault]) -> None:
    if output.as_json:
        output.document(faults)
    elif faults:
        output.rows(("file", "fault", "why"), [(fault.file, fault.fault, fault.why) for fault in faults])
    else:
        output.line("every file matches the manifest, and there is no other file")
    if faults:
        raise typer.Exit(StagedDataError.exit_code)


def _age(seconds: int) -> str:
    size, unit = next((unit for unit in _UNITS if seconds >= 2 * unit[0]), _UNITS[-1])
    return f"{seconds // size} {unit}"


def _number(value: object) -> object:
    """Return a seqno as text, so that it is printed without separators."""
    return str(value) if isinstance(value, int) and value > 10**11 else value
