"""The commands of a delta: plan intervals, extract one, materialise what is staged, or all three at once."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from loader.cli.commands.repair.staged_files import compare
from loader.cli.commands.repair.staged_files import restore as restore_files
from loader.cli.lazy import lazily
from loader.cli.output import Output, warn_renamed
from loader.cli.reports import report_tables
from loader.cli.session import IntervalOption, Session, SourceOption
from loader.errors import UsageError

if TYPE_CHECKING:
    from loader import pipeline
    from loader.cli import jobs, new_tables
    from loader.model.position import Position
    from loader.settings import SourceSettings
else:
    pipeline, jobs = lazily("loader.pipeline"), lazily("loader.cli.jobs")
    new_tables = lazily("loader.cli.new_tables")

RunOption = Annotated[
    str,
    typer.Option(
        metavar="NAME", show_default=False, help="Name of an orchestrator's run; the same run gets the same intervals."
    ),
]


UntilOption = Annotated[
    str,
    typer.Option(
        metavar="PLACE",
        show_default=False,
        help="Stop there: binlog.000054:123, a GTID set, or before a time such as 2026-01-31T12:00:00Z. By default the"
        " end of the log.",
    ),
]


NowOption = Annotated[
    bool, typer.Option("--now", help="Also merge tables that are not due, see every in the rules of tables.")
]


def plan(context: typer.Context, source: SourceOption = "", run: RunOption = "", until: UntilOption = "") -> None:
    """Plan the log from the stop of the last interval to its end, unless planned intervals are not staged yet."""
    session: Session = context.obj
    output, settings = session.output, session.settings(source)
    chosen = pipeline.plan_interval(settings, run, _position(settings, until))
    if chosen is None:
        _report_nothing(output)
    elif output.as_json:
        output.document(chosen)
    else:
        word = "planned" if chosen.new else "unfinished or newest"
        output.line(f"{word} interval {chosen.start} to {chosen.stop}{output.seqno(chosen.start_seqno)}")
        output.line(f"{len(pipeline.unfinished(settings)):,} intervals are planned and not staged yet")


def position(context: typer.Context, source: SourceOption = "", run: RunOption = "") -> None:
    """Plan an interval: the old name of `loader plan`."""
    warn_renamed("loader position", "loader plan")
    plan(context, source, run)


_OldOption = Annotated[str, typer.Option(metavar="START", hidden=True)]


def extract(
    context: typer.Context,
    source: SourceOption = "",
    interval: IntervalOption = "",
    again: _OldOption = "",
    restore: _OldOption = "",
) -> None:
    """Stage a planned interval. If it is staged already, stage only the rows that it left out."""
    if sum(map(bool, (interval, again, restore))) > 1:
        raise UsageError(
            "--interval, --again and --restore exclude each other",
            hint=f"give one of them: loader extract --interval {interval or again or restore}",
        )
    if again:
        warn_renamed("loader extract --again", "loader staged compare")
        compare(context, again, source)
        return
    if restore:
        warn_renamed("loader extract --restore", "loader staged restore")
        restore_files(context, restore, source)
        return
    session: Session = context.obj
    settings = session.settings(source)
    start = pipeline.find_interval(settings, interval) if interval else _next_interval(settings)
    result = jobs.submit(pipeline.extract_job(settings, start), settings, session.output)
    _report_extract(session.output, result)


def materialise(
    context: typer.Context,
    source: SourceOption = "",
    through: Annotated[
        str,
        typer.Option(
            metavar="STOP",
            show_default=False,
            help="Apply intervals up to this stop, such as binlog.000054:123; everything that is staged by default.",
        ),
    ] = "",
    now: NowOption = False,
) -> None:
    """Apply the staged intervals to the warehouse tables."""
    session: Session = context.obj
    settings = session.settings(source)
    stop = pipeline.find_stop(settings, through) if through else None
    result = jobs.submit(pipeline.materialise_job(settings, stop, now=now), settings, session.output)
    report_tables(session.output, result)


def run(context: typer.Context, source: SourceOption = "", until: UntilOption = "", now: NowOption = False) -> None:
    """Run one delta: plan, extract the planned intervals for up to run_minutes, materialise."""
    session: Session = context.obj
    output, settings = session.output, session.settings(source)
    listed = pipeline.list_tables(settings)
    chosen = pipeline.plan_interval(settings, until=_position(settings, until))
    if chosen is None:
        _report_nothing(output)
        return
    unfinished = [plan for plan in pipeline.unfinished(settings) if plan.stop_seqno <= chosen.through_seqno]
    todo = [plan.model_copy(update={"new": chosen.new}) for plan in unfinished] or [chosen]
    job = pipeline.delta_job(settings, chosen.start_seqno, chosen.through_seqno, now=now)
    result = jobs.submit(job, settings, output)
    failed = jobs.error_of(result["failed"])
    found: tuple[pipeline.UnloadedTable, ...] = ()
    if not failed:
        merged, found = new_tables.load_new_tables(settings, listed, result["materialise"], output)
        result["materialise"] = merged
    if not output.as_json:
        for extracted in result["extracts"]:
            _report_extract(output, extracted)
        if (left := len(todo) - len(result["extracts"])) > 0 and not failed:
            output.line(f"{left:,} planned intervals are left for the next run: run_minutes is over")
        new_tables.report_new_tables(output, found)
        with suppress(typer.Exit) if failed else nullcontext():  # the error of the log comes last
            report_tables(output, result["materialise"])
    elif not failed:
        intervals = [interval.model_dump() for interval in todo]
        unloaded = [one.model_dump(mode="json") for one in found]
        document = {"intervals": intervals, **{name: result[name] for name in ("extracts", "materialise")}}
        output.document({**document, "unloaded": unloaded})
        jobs.fail_on_tables(result["materialise"])
    if failed:
        raise failed


def _position(settings: SourceSettings, until: str) -> Position | None:
    return pipeline.find_log_position(settings, until) if until else None


def _report_nothing(output: Output) -> None:
    if output.as_json:
        output.document({"interval": None})
    output.line("the log has nothing after the initial load")


def _next_interval(settings: SourceSettings) -> int:
    """Return the start of the interval to extract when the user names none.

    Raises:
        UsageError: nothing is planned yet.
    """
    unfinished = pipeline.unfinished(settings)
    if unfinished:
        return unfinished[0].start_seqno
    newest = pipeline.intervals(settings, limit=1)
    if not newest:
        raise UsageError("nothing is planned yet", hint="loader plan", source=settings.name)
    return newest[-1].start_seqno


def _report_extract(output: Output, result: dict[str, Any]) -> None:
    if output.as_json:
        output.document(result)
        return
    seqno = output.seqno(result["start_seqno"])
    output.line(f"{result['status']} interval {result['start']} to {result['stop']}{seqno}")
    output.rows(
        ("table", "inserts", "updates", "deletes"),
        [(table["table"], table["inserts"], table["updates"], table["deletes"]) for table in result["tables"]],
    )
    for incomplete in result["left_out"]:
        output.line(
            f"{incomplete['table']} is incomplete from {incomplete['position']} on:"
            f" {incomplete['what']}: {incomplete['why']}"
        )
