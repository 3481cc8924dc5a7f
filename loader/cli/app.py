"""The `loader` command. Exit codes: 0 done, 1 error, 2 usage, 3 a retry can help, 4 data must be looked at."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from loader import __version__
from loader.cli.commands.airflow import airflow
from loader.cli.commands.config import config
from loader.cli.commands.doctor import doctor
from loader.cli.commands.init import init
from loader.cli.commands.inspect import inspect
from loader.cli.commands.intervals import intervals, staged
from loader.cli.commands.jars import jars
from loader.cli.commands.maintain import maintain
from loader.cli.commands.purge import purge
from loader.cli.commands.release import release
from loader.cli.commands.replay import replay
from loader.cli.commands.schema import schema
from loader.cli.commands.status import status
from loader.cli.commands.tables import tables
from loader.cli.lazy import lazily
from loader.cli.output import Lines, Output, warn_renamed
from loader.cli.session import IntervalOption, Session, SourceOption, TablesOption
from loader.errors import LoaderError, UsageError
from loader.model.position import Position

if TYPE_CHECKING:
    from loader import pipeline
    from loader.cli import jobs
    from loader.materialise import spec
    from loader.settings import SourceSettings
    from loader.spark import submit
else:
    pipeline, submit = lazily("loader.pipeline"), lazily("loader.spark.submit")
    jobs, spec = lazily("loader.cli.jobs"), lazily("loader.materialise.spec")

app = typer.Typer(
    help=__doc__,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"loader {__version__}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    file: Annotated[
        str | None,
        typer.Option("--config", help="Configuration file; $LOADER_CONFIG or ./loader.toml by default."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show what the Spark jobs print.")] = False,
    _version_shown: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options that stand before the command."""
    output = Output(as_json)
    lines = Lines(output)
    # Its own level too: what the progress of jobs is read from is logged at debug, and is not for the terminal.
    lines.setLevel(logging.DEBUG if verbose else logging.WARNING)
    logging.basicConfig(level=lines.level, handlers=[lines])
    for noisy in ("numba", "py4j"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    context.obj = Session(file, output)


_RunOption = Annotated[str, typer.Option(help="Name of an orchestrator's run; it gets the same interval again.")]


@app.command()
def plan(context: typer.Context, source: SourceOption = "", run: _RunOption = "") -> None:
    """Plan the log from the stop of the last interval to its end, unless planned intervals are not staged yet."""
    session: Session = context.obj
    settings = session.settings(source)
    chosen = pipeline.plan_interval(settings, run)
    if chosen is None:
        _report_nothing(session.output)
    elif session.output.as_json:
        session.output.document(chosen)
    else:
        word = "planned" if chosen.new else "unfinished or newest"
        session.output.line(f"{word} interval {chosen.start_seqno}: [{chosen.start}, {chosen.stop})")
        session.output.line(f"{len(pipeline.unfinished(settings)):,} intervals are planned and not staged yet")


@app.command(hidden=True)
def position(context: typer.Context, source: SourceOption = "", run: _RunOption = "") -> None:
    """Plan an interval: the old name of `loader plan`."""
    warn_renamed("loader position", "loader plan")
    plan(context, source, run)


@app.command()
def follow(
    context: typer.Context,
    at: Annotated[
        str, typer.Option(help="Position on the new server up to which all was read, like binlog.000003:4.")
    ] = "",
    accept: Annotated[str, typer.Option(help="GTIDs that only the new server has, which are passed over.")] = "",
    source: SourceOption = "",
) -> None:
    """Go on from another server at a position that you know; with GTIDs this happens by itself, at the right one."""
    session: Session = context.obj
    if bool(at) == bool(accept):
        raise UsageError("give either --at or --accept", hint="loader follow --help")
    settings = session.settings(source)
    found = pipeline.follow_to(settings, Position.parse(at)) if at else pipeline.follow_accepting(settings, accept)
    if session.output.as_json:
        session.output.document(found)
    else:
        session.output.line(f"generation {found.name} of the log begins at {found.start} of server {found.identity}")


@app.command("initial-load")
def initial_load(
    context: typer.Context,
    source: SourceOption = "",
    table: TablesOption = [],  # noqa: B006 - typer's way
    again: Annotated[bool, typer.Option("--again", help="Read from the server anew what is loaded already.")] = False,
) -> None:
    """Load the captured tables, or some of them; what is loaded already is left alone."""
    session: Session = context.obj
    settings = session.settings(source)
    read = jobs.submit(pipeline.read_tables_job(settings, tuple(table), again=again), settings, session.output.console)
    loaded = jobs.submit(pipeline.load_tables_job(settings, tuple(read["manifests"])), settings, session.output.console)
    failed = [table for table in read["tables"] if table["error"]]
    loaded["tables"] = sorted(loaded["tables"] + [_unread(table) for table in failed], key=lambda t: str(t["table"]))
    _report_tables(session.output, loaded)


def _unread(table: dict[str, Any]) -> dict[str, Any]:
    """A table whose reading failed, in the form of the load's result."""
    return spec.TableResult(table=table["table"], status="failed", error=table["error"]).model_dump(mode="json")


@app.command()
def extract(
    context: typer.Context,
    source: SourceOption = "",
    interval: IntervalOption = 0,
    again: Annotated[
        int,
        typer.Option(
            metavar="SEQNO",
            show_default=False,
            help="Start seqno of a staged interval to extract once more and compare.",
        ),
    ] = 0,
    restore: Annotated[
        int,
        typer.Option(
            metavar="SEQNO",
            show_default=False,
            help="Start seqno of a staged interval whose lost or changed files are to be put back.",
        ),
    ] = 0,
) -> None:
    """Stage a planned interval; one that is staged already is left alone."""
    if sum(map(bool, (interval, again, restore))) > 1:
        raise UsageError(
            "--interval, --again and --restore do three different things",
            hint=f"give one of them: loader extract --interval {interval or again or restore}",
        )
    session: Session = context.obj
    settings = session.settings(source)
    if again:
        result = jobs.submit(pipeline.reextract_job(settings, again), settings, session.output.console)
        _report_again(session.output, result)
        return
    if restore:
        result = jobs.submit(pipeline.restore_job(settings, restore), settings, session.output.console)
        _report_restored(session.output, result)
        return
    result = jobs.submit(pipeline.extract_job(settings, interval or _next(settings)), settings, session.output.console)
    _report_extract(session.output, result)


@app.command()
def materialise(
    context: typer.Context,
    source: SourceOption = "",
    through: Annotated[
        int,
        typer.Option(metavar="SEQNO", show_default=False, help="Stop seqno to reach; all that is staged by default."),
    ] = 0,
) -> None:
    """Apply what is staged to the warehouse's tables."""
    session: Session = context.obj
    settings = session.settings(source)
    result = jobs.submit(pipeline.materialise_job(settings, through or None), settings, session.output.console)
    _report_tables(session.output, result)


@app.command()
def run(context: typer.Context, source: SourceOption = "") -> None:
    """Run one delta: plan, extract the planned intervals for up to run_minutes, materialise."""
    session: Session = context.obj
    settings = session.settings(source)
    chosen = pipeline.plan_interval(settings)
    if chosen is None:
        _report_nothing(session.output)
        return
    todo = pipeline.unfinished(settings) or [chosen]
    job = pipeline.delta_job(settings, chosen.start_seqno, chosen.through_seqno)
    result = jobs.submit(job, settings, session.output.console)
    failed = jobs.error_of(result["failed"])
    if not session.output.as_json:
        for extracted in result["extracts"]:
            _report_extract(session.output, extracted)
        if (left := len(todo) - len(result["extracts"])) > 0 and not failed:
            session.output.line(f"{left:,} planned intervals are left for the next run: run_minutes is over")
        _report_tables(session.output, result["materialise"])
    elif not failed:
        found = [interval.model_dump() for interval in todo]
        document = {"intervals": found, "extracts": result["extracts"], "materialise": result["materialise"]}
        session.output.document(document)
        jobs.fail_on_tables(result["materialise"])
    if failed:
        raise failed


@app.command()
def warm(
    context: typer.Context,
    jars: Annotated[
        Path | None,
        typer.Option(help="The jars of Spark jobs: also archive the classes that jobs on this machine load."),
    ] = None,
) -> None:
    """Compile the kernels of the codec into the cache, so that no later run has to."""
    import loader.binlog.crypto.cipher_blocks
    import loader.extract.range_task
    import loader.initial_load.result_set.reader
    import loader.native_collapse.key_index
    import loader.native_collapse.staged_text
    import loader.reader.stats
    import loader.transport.network  # noqa: F401 - importing compiles

    session: Session = context.obj
    session.output.line("the kernels are compiled")
    if jars:
        submit.warm(submit.SparkSettings(jars=str(jars), master="local[2]"))
        session.output.line("the classes are archived")


app.command()(doctor)
app.command()(init)
app.command()(inspect)
app.command()(intervals)
app.command()(jars)
app.command()(maintain)
app.command()(purge)
app.command()(release)
app.command()(replay)
app.command()(status)
app.command()(tables)
app.add_typer(airflow, name="airflow")
app.add_typer(config, name="config")
app.add_typer(schema, name="schema")
app.add_typer(staged, name="staged")


@app.command()
def demo(
    context: typer.Context,
    server: Annotated[str, typer.Option(help="mysql or mariadb; the first that can be had by default.")] = "",
    rows: Annotated[int, typer.Option(help="Rows to fill the shop with.")] = 200_000,
    deltas: Annotated[int, typer.Option(help="Delta runs while the writer writes.")] = 3,
    folder: Annotated[
        Path | None, typer.Option(help="Where to keep it, in place of an earlier demo; in the cache by default.")
    ] = None,
) -> None:
    """Show the whole loader on a real server: load a shop, follow its changes with Airflow, compare every row."""
    from loader.cli.demo.run import run_demo
    from loader.cli.demo.stage import demo_folder

    session: Session = context.obj
    run_demo(session.output, (folder or demo_folder()).absolute(), server or None, rows, deltas)


def _report_nothing(output: Output) -> None:
    if output.as_json:
        output.document({"interval": None})
    output.line("nothing is in the log after the initial load")


def _next(settings: SourceSettings) -> int:
    """The interval to extract when none is named."""
    unfinished = pipeline.unfinished(settings)
    if unfinished:
        return unfinished[0].start_seqno
    found = pipeline.intervals(settings, limit=1)
    if not found:
        raise UsageError("nothing is planned yet", hint="loader plan", source=settings.name)
    return found[-1].start_seqno


def _report_extract(output: Output, result: dict[str, Any]) -> None:
    if output.as_json:
        output.document(result)
        return
    output.line(f"{result['status']} interval {result['start_seqno']}: [{result['start']}, {result['stop']})")
    output.rows(
        ("table", "inserts", "updates", "deletes"),
        [(t["table"], t["inserts"], t["updates"], t["deletes"]) for t in result["tables"]],
    )
    for one in result["left_out"]:
        output.line(f"{one['table']} is left out from {one['position']} on: {one['what']}: {one['why']}")


def _report_again(output: Output, result: dict[str, Any]) -> None:
    if output.as_json:
        output.document(result)
    elif not result["differences"]:
        output.line(f"equal: {result['files']:,} files of {result['bytes']:,} bytes came out as they are staged")
    else:
        output.rows(("name", "what", "why"), [list(found.values()) for found in result["differences"]])
    if result["exit_code"]:
        raise typer.Exit(result["exit_code"])


def _report_restored(output: Output, result: dict[str, Any]) -> None:
    if output.as_json:
        output.document(result)
    else:
        output.line(f"interval {result['start_seqno']}: {result['files']} files put back")


def _report_tables(output: Output, result: dict[str, Any]) -> None:
    """Print what happened to each table, then raise the worst error among them."""
    if output.as_json:
        output.document(result)
    else:
        columns = ("table", "status", "inserts", "updates", "deletes", "position")
        output.rows(columns, [[table[name] for name in columns] for table in result["tables"]])
        for table in result["tables"]:
            for column, count in table["misfits"].items():
                output.line(f"{table['table']}.{column}: values that are no date or time, and NULL now: {count:,}")
    jobs.fail_on_tables(result, output)


def main() -> NoReturn:
    """Run the command; a LoaderError becomes its text and exit code, never a traceback."""
    try:
        app(standalone_mode=True)
    except LoaderError as error:
        Output("--json" in sys.argv).error(error)
        sys.exit(error.exit_code)
    sys.exit(0)
