"""An extraction in a process of its own: `python -m tests.unit.pipeline.attempt FOLDER START_SEQNO ATTEMPT`."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.unit.pipeline.site import Site, shop

if __name__ == "__main__":
    folder, start, attempt = sys.argv[1:]
    site = Site(Path(folder), shop(12)[0])
    site.extract(site.chain.require_plan("0001", int(start)), attempt)
