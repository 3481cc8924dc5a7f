"""Folders for the time of a piece of work on the driver."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def scratch_folder(session: SparkSession) -> Iterator[Path]:
    """A new folder where Spark keeps its own rows: in `spark.local.dir`, or in the folder for temporary files."""
    places = session.conf.get("spark.local.dir", "") or tempfile.gettempdir()
    with tempfile.TemporaryDirectory(prefix="loader-rows-", dir=places.split(",")[0]) as folder:
        yield Path(folder)
