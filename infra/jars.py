"""Print the folder of the jars that the tests and the examples use: Iceberg and S3A, or those of another lock file.

python infra/jars.py [LOCK]
"""

from __future__ import annotations

import sys
from pathlib import Path

from loader.errors import LoaderError
from loader.jars.resolve import jars_folder, spark_jars

if __name__ == "__main__":
    try:
        print(jars_folder(Path(sys.argv[1])) if sys.argv[1:] else spark_jars())
    except LoaderError as error:
        sys.exit(f"error: {error}")
