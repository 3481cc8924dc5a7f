"""The Spark job of a whole delta: `spark-submit job.py --spec FILE --result FILE`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loader.spark.job import Starting, starting_main

if TYPE_CHECKING:
    from loader.delta.spec import DeltaSpec


def _delta() -> tuple[Starting[DeltaSpec], type[DeltaSpec]]:
    from loader.delta.run import delta
    from loader.delta.spec import DeltaSpec

    return delta, DeltaSpec


if __name__ == "__main__":
    starting_main(_delta)
