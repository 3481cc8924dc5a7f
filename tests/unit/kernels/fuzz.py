"""The number of random inputs: few in a normal run, many in `make fuzz`."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

SECONDS = float(os.environ.get("LOADER_FUZZ_SECONDS", "0"))
EXAMPLES = int(SECONDS * 100) or 60
CHECKED = os.environ.get("LOADER_CHECK_KERNELS") == "1"

much = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize=not SECONDS,
    suppress_health_check=list(HealthCheck),
)
"""For tests of kernels, whose examples take no time."""

INTERESTING = st.sampled_from([0, 1, 2, 0x1B, 0x0F, 0x7F, 0x80, 0xFA, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF])


@st.composite
def mutated(draw: st.DrawFn, whole: bytes, first: int = 0) -> bytes:
    """The bytes with some from `first` on changed, and maybe cut."""
    data = bytearray(whole)
    for _ in range(draw(st.integers(0, 5))):
        if len(data) > first:
            data[draw(st.integers(first, len(data) - 1))] = draw(INTERESTING | st.integers(0, 255))
    return bytes(data[: draw(st.integers(first, len(data)) | st.just(len(data)))])
