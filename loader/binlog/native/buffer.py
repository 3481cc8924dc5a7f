"""Blocks of bytes that kernels read and write."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

BAD = -1
"""Returned instead of a position: the bytes are not in the expected format."""
