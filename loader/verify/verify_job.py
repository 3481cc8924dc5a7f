"""The Spark job that verifies tables: `spark-submit verify_job.py --spec FILE --result FILE`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loader.spark.job import Starting, starting_main

if TYPE_CHECKING:
    from loader.verify.spec import VerifySpec


def _verify() -> tuple[Starting[VerifySpec], type[VerifySpec]]:
    from loader.verify.spec import VerifySpec
    from loader.verify.verify import verify

    return verify, VerifySpec


if __name__ == "__main__":
    starting_main(_verify)
