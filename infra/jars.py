"""Print the folder of the jars that the tests and the examples use: Iceberg and S3A.

python infra/jars.py
"""

from __future__ import annotations

import sys

from loader.errors import LoaderError
from loader.jars.resolve import spark_jars

if __name__ == "__main__":
    try:
        print(spark_jars())
    except LoaderError as error:
        sys.exit(f"error: {error}")
