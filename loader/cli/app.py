"""Load MySQL and MariaDB tables into Apache Iceberg and keep them up to date from the binary log.

Exit codes: 0 done, 1 error, 2 wrong usage, 3 a retry can help, 4 a person must look at the data.
"""

from __future__ import annotations

import gc
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from loader import __version__
from loader.cli.command_group import CommandGroup
from loader.cli.commands.adopt import adopt
from loader.cli.commands.delta import extract, materialise, plan, position, run
from loader.cli.commands.initial_load import initial_load
from loader.cli.commands.inspect import inspect
from loader.cli.commands.intervals import intervals
from loader.cli.commands.maintain import maintain
from loader.cli.commands.purge import purge
from loader.cli.commands.repair.log_start import begin, follow
from loader.cli.commands.repair.pause import pause, resume
from loader.cli.commands.repair.release import release
from loader.cli.commands.repair.schema import schema
from loader.cli.commands.repair.skip import skip
from loader.cli.commands.repair.staged_files import staged
from loader.cli.commands.replay import replay
from loader.cli.commands.setup.airflow import airflow
from loader.cli.commands.setup.config import config
from loader.cli.commands.setup.doctor import doctor
from loader.cli.commands.setup.errors import errors
from loader.cli.commands.setup.init import init
from loader.cli.commands.setup.jars import jars
from loader.cli.commands.setup.package import package
from loader.cli.commands.setup.warm import warm
from loader.cli.commands.status import status
from loader.cli.commands.tables import tables
from loader.cli.commands.ui import ui
from loader.cli.commands.verify import verify
from loader.cli.lazy import lazily
from loader.cli.output import Lines, Output
from loader.cli.session import Session
from loader.error_page import ErrorLinks
from loader.errors import LoaderError

if TYPE_CHECKING:
    from loader import pipeline
else:
    pipeline = lazily("loader.pipeline")

_GARBAGE_THRESHOLD = 50_000
"""New objects after which Python looks for garbage, instead of 700."""

app = CommandGroup(
    help=__doc__,
    pretty_exceptions_enable=False,
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
        typer.Option(
            "--config", metavar="FILE", help="Configuration file; $LOADER_CONFIG or ./loader.toml by default."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show seqnos, and what Spark jobs print.")] = False,
    _version_shown: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Read the options before the command."""
    given: Session | None = context.obj
    output = given.output if given else Output(as_json)
    output.as_json, output.verbose = as_json, verbose
    lines = Lines(output)
    # The handler needs the level too: jobs log the lines that progress is read from at debug, which a terminal must not
    # show.
    lines.setLevel(logging.DEBUG if verbose else logging.WARNING)
    logging.basicConfig(level=lines.level, handlers=[lines])
    for noisy in ("numba", "py4j", "urllib3"):  # the last one logs addresses with tokens of HDFS
        logging.getLogger(noisy).setLevel(logging.WARNING)
    context.obj = Session(file, output, given.links if given else ErrorLinks())


app.command()(plan)
app.command(hidden=True)(position)
app.command("initial-load")(initial_load)
app.command()(extract)
app.command()(materialise)
app.command()(run)
app.command()(begin)
app.command()(adopt)
app.command()(follow)


_COMMANDS: tuple[Callable[..., None], ...] = (
    doctor, errors, init, inspect, intervals, jars, maintain, package, pause, purge, release, replay, resume, skip,
    status, tables, ui, verify, warm,
)  # fmt: skip
for command in _COMMANDS:
    app.command()(command)
app.add_typer(airflow, name="airflow")
app.add_typer(config, name="config")
app.add_typer(schema, name="schema")
app.add_typer(staged, name="staged")


@app.command()
def demo(
    context: typer.Context,
    server: Annotated[
        str, typer.Option(metavar="KIND", help="mysql or mariadb; by default the first that is available.")
    ] = "",
    rows: Annotated[int, typer.Option(metavar="COUNT", help="Rows to fill the shop with.")] = 200_000,
    deltas: Annotated[int, typer.Option(metavar="COUNT", help="Delta runs while rows are written.")] = 3,
    folder: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Folder of the demo; an earlier demo in it is deleted. Default: the cache."
        ),
    ] = None,
) -> None:
    """Show the loader on a real server: load a shop, follow its changes with Airflow, compare every row."""
    from loader.cli.demo.run import run_demo
    from loader.cli.demo.stage import demo_folder

    session: Session = context.obj
    run_demo(session.output, (folder or demo_folder()).absolute(), server or None, rows, deltas)


def _start_fast() -> None:
    """Avoid work at the start of the process that the loader does not need."""
    # numpy's BLAS starts a thread per core, which takes longer than a short listing. The loader does no linear algebra.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # pydantic reads the metadata of all installed packages to find plug-ins.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")
    # Imports create many objects and no garbage.
    gc.set_threshold(_GARBAGE_THRESHOLD)


def main() -> NoReturn:
    """Run the command. A LoaderError ends it with the error's text and exit code, without a traceback."""
    _start_fast()
    # Errors are printed as the command learned from its options and the configuration.
    session = Session(None, Output("--json" in sys.argv))
    try:
        app(standalone_mode=True, obj=session)
    except LoaderError as error:
        session.output.error(error, session.links.of(error))
        sys.exit(error.exit_code)
    sys.exit(0)
