"""The long forms of the tests, which `make sweep` runs."""

from __future__ import annotations

import os

IN_SWEEP = "LOADER_SWEEP" in os.environ
