"""The Spark job that takes over tables: `spark-submit adopt_job.py --spec FILE --result FILE`."""

from __future__ import annotations

from loader.materialise.load.adoption import adopt
from loader.materialise.spec import AdoptSpec
from loader.spark.job import job_main

if __name__ == "__main__":
    job_main(adopt, AdoptSpec)
