"""The Spark job that applies initial loads: `spark-submit load_job.py --spec FILE --result FILE`."""

from __future__ import annotations

from loader.materialise.load.load_run import load
from loader.materialise.spec import LoadSpec
from loader.spark.job import job_main

if __name__ == "__main__":
    job_main(load, LoadSpec)
