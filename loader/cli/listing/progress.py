"""Shows how many bytes of the log are read, on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from loader.cli.output import Output


@contextmanager
def show_bytes(out: Output, total: int, *, lists: bool = False) -> Iterator[Callable[[int], object]]:
    """Show a progress bar of bytes on a terminal, and nothing in a pipe.

    Args:
        out: where the bar is shown.
        total: bytes of the whole.
        lists: lines are written to stdout meanwhile: a bar on the same terminal would tear them.
    """
    if not sys.stderr.isatty() or (
        lists and sys.stdout.isatty()
    ):  # asked first: a pipe need not wait for the import of what draws
        yield lambda _: None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    columns = (BarColumn(bar_width=24), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=out.errors, transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda size: bar.advance(task, size)
