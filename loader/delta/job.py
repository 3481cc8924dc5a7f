"""The Spark job of a whole delta: `spark-submit job.py --spec FILE --result FILE`."""

from __future__ import annotations

from loader.delta.run import delta
from loader.delta.spec import DeltaSpec
from loader.job import starting_main

if __name__ == "__main__":
    starting_main(delta, DeltaSpec)
