"""The Spark job of a whole initial load: `spark-submit job.py --spec FILE --result FILE`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loader.spark.job import Starting, starting_main

if TYPE_CHECKING:
    from loader.full_load.spec import FullLoadSpec


def _full_load() -> tuple[Starting[FullLoadSpec], type[FullLoadSpec]]:
    from loader.full_load.run import full_load
    from loader.full_load.spec import FullLoadSpec

    return full_load, FullLoadSpec


if __name__ == "__main__":
    starting_main(_full_load)
