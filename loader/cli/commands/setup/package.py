"""The command that packs Python and the loader for the executors of a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loader.cli.commands.setup.warm import compile_kernels
from loader.cli.session import Session
from loader.errors import UsageError

_SUFFIXES = (".tar.gz", ".tgz")
_MEGABYTE = 1_000_000


def package(
    context: typer.Context,
    target: Annotated[
        Path, typer.Argument(metavar="FILE", help="The archive, such as loader.tar.gz. An existing file is replaced.")
    ],
) -> None:
    """Pack this Python, the loader, its libraries and the compiled kernels for the executors of a Spark cluster.

    Set spark.package to the archive, or to the place where you copy it. Pack again after each upgrade of the loader.
    """
    from loader.spark.package.archive import write_package

    session: Session = context.obj
    if not target.name.endswith(_SUFFIXES):
        raise UsageError("Spark unpacks an archive by its name", hint="name it loader.tar.gz", file=target)
    if not target.absolute().parent.is_dir():
        raise UsageError("the folder of the archive does not exist", hint=f"mkdir -p {target.parent}", file=target)
    compile_kernels()
    size = write_package(target)
    if session.output.as_json:
        session.output.document({"file": str(target.absolute()), "bytes": size})
    else:
        session.output.line(f"{target.absolute()}: {size // _MEGABYTE} MB")
