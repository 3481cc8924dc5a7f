"""The Spark job that verifies tables: `spark-submit verify_job.py --spec FILE --result FILE`."""

from __future__ import annotations

from loader.spark.job import job_main
from loader.verify.spec import VerifySpec
from loader.verify.verify import verify

if __name__ == "__main__":
    job_main(verify, VerifySpec)
