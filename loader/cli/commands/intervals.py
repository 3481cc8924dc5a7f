"""The commands that show intervals: their list, one in detail, and the records that are staged in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loader.cli.lazy import lazily
from loader.cli.output import Output
from loader.cli.session import Session, SourceOption
from loader.errors import StagedDataError

if TYPE_CHECKING:
    from loader import pipeline
    from loader.cli.listing import records, text
else:
    pipeline, records = lazily("loader.pipeline"), lazily("loader.cli.listing.records")
    text = lazily("loader.cli.listing.text")

staged = typer.Typer(help="What is staged.", no_args_is_help=True, rich_markup_mode=None)

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_COLUMNS = ("start_seqno", "state", "start", "stop", "tables", "inserts", "updates", "deletes", "bytes")
_FILE = ("inserts", "updates", "deletes", "bytes", "min_seqno", "max_seqno", "sha256")

StartArgument = Annotated[int, typer.Argument(help="Start seqno of an interval.", show_default=False)]


def intervals(
    context: typer.Context,
    interval: Annotated[int, typer.Argument(help="Start seqno of the one to show in detail.", show_default=False)] = 0,
    source: SourceOption = "",
    limit: Annotated[int, typer.Option(min=0, help="How many of the newest to list; 0 for all.")] = 20,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read the files of that one and name those lost, changed or foreign.")
    ] = False,
) -> None:
    """List the newest intervals with their state, or show one in detail: files, records, barriers, balance."""
    session: Session = context.obj
    settings = session.settings(source)
    if verify:
        _verify(session.output, pipeline.verify_interval(settings, interval))
    elif interval:
        _show(session.output, pipeline.interval(settings, interval))
    elif session.output.as_json:
        session.output.document(pipeline.intervals(settings, limit))
    else:
        _list(session.output, pipeline.intervals(settings, limit))


@staged.command()
def cat(
    context: typer.Context,
    interval: StartArgument,
    table: Annotated[str, typer.Argument(help="The table, as schema.table.", show_default=False)],
    source: SourceOption = "",
) -> None:
    """Print the records of a table that are staged in an interval, one per line, once their files are verified."""
    session: Session = context.obj
    settings = session.settings(source)
    for line in records.lines(settings, interval, table, as_json=session.output.as_json):
        typer.echo(line)


@staged.command()
def sign(context: typer.Context, source: SourceOption = "") -> None:
    """Sign what was staged before staging.signing_key was set; do it once, while nobody else can write to the store."""
    session: Session = context.obj
    signed = pipeline.sign_staged(session.settings(source))
    if session.output.as_json:
        session.output.document({"signed": signed})
    else:
        session.output.line(f"{signed:,} documents are signed now")


def _list(output: Output, found: Sequence[pipeline.IntervalState]) -> None:
    rows = []
    for one in found:
        values = [getattr(one, name) for name in _COLUMNS]
        left_out = [f"{len(one.left_out)} left out"] if one.left_out else []
        values[1] = ", ".join([one.state, *(["purged"] if one.purged else []), *left_out])
        rows.append([str(one.start_seqno), *values[1:], _age(one.age), len(one.behind)])
    output.rows((*_COLUMNS, "age", "behind"), rows)


def _show(output: Output, found: pipeline.IntervalDetail) -> None:
    if output.as_json:
        output.document(found)
        return
    state, manifest = found.state, found.manifest
    output.line(f"interval {state.start_seqno}: [{state.start}, {state.stop}) of generation {state.generation}")
    output.line(f"{state.state}{', purged' if state.purged else ''}, planned {_age(state.age)} ago")
    output.line(f"tables behind: {', '.join(state.behind) or 'none'}")
    if manifest is None:
        return
    output.rows(
        ("table", "file", *_FILE),
        [
            (file.name, file.key.split("/", 3)[-1], *(_number(getattr(file, name)) for name in _FILE))
            for file in manifest.files
        ],
    )
    for barrier in manifest.barriers:
        tables = ", ".join(barrier.tables) or "unknown tables"
        output.line(f"barrier at {barrier.position} for {tables}: {text.visible(barrier.statement)}")
    for one in manifest.left_out:
        output.line(f"{one.table} is left out from {one.position} on: {one.what}: {text.visible(one.why)}")
    for group in manifest.held:
        output.line(f"XA transaction {group.xid} has no outcome yet, prepared at {group.file}:{group.start}")
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
        output.rows(("file", "fault", "why"), [(one.file, one.fault, one.why) for one in faults])
    else:
        output.line("every file is what the manifest says, and there is no other")
    if faults:
        raise typer.Exit(StagedDataError.exit_code)


def _age(seconds: int) -> str:
    size, unit = next((found for found in _UNITS if seconds >= 2 * found[0]), _UNITS[-1])
    return f"{seconds // size} {unit}"


def _number(value: object) -> object:
    """Seqnos without separators, as every other command has them."""
    return str(value) if isinstance(value, int) and value > 10**11 else value
