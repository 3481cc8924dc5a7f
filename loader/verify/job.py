"""The Spark job that compares tables: `spark-submit job.py --spec FILE --result FILE`."""

from __future__ import annotations

from loader.spark.job import job_main
from loader.verify.compare import compare
from loader.verify.spec import CompareSpec

if __name__ == "__main__":
    job_main(compare, CompareSpec)
