"""The command that compiles the kernels ahead of the first run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loader.cli.lazy import lazily
from loader.cli.session import Session

if TYPE_CHECKING:
    from loader.spark import settings, submit
else:
    settings = lazily("loader.spark.settings")
    submit = lazily("loader.spark.submit")


def warm(
    context: typer.Context,
    jars: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="The jars of Spark jobs: also archive the classes that jobs on this machine load."
        ),
    ] = None,
) -> None:
    """Compile the kernels of the codec into the cache, so that later runs start faster."""
    session: Session = context.obj
    compile_kernels()
    session.output.line("the kernels are compiled")
    if jars:
        submit.warm(settings.SparkSettings(jars=str(jars), master="local[2]"))
        session.output.line("the classes are archived")


def compile_kernels() -> None:
    """Compile all kernels that are not in the cache, and load them."""
    import loader.binlog.crypto.cipher_blocks
    import loader.binlog.listing.events
    import loader.extract.range_task
    import loader.initial_load.result_set.reader
    import loader.native_collapse.key_index
    import loader.native_collapse.staged_text
    import loader.reader.stats
    import loader.transport.network  # noqa: F401 - importing compiles
