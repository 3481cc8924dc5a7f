"""Kernels with checks stop at an access outside of their arrays: by index, by word, or by the folded checksum."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
import numpy as np
from loader.binlog.native.carryless_crc import fold
from loader.binlog.native.compiler import kernel
from loader.binlog.native.memory import load16, load32, load64, store16, store64

@kernel("int64(uint8[::1], int64, int64)")
def touch(block, at, how):
    if how == 0:
        return np.int64(block[at])
    if how == 1:
        block[at] = 1
    elif how == 2:
        return np.int64(load16(block, at))
    elif how == 3:
        return np.int64(load32(block, at))
    elif how == 4:
        return np.int64(load64(block, at))
    elif how == 5:
        store16(block, at, np.uint16(1))
    elif how == 6:
        store64(block, at, np.uint64(1))
    elif how == 7:
        return np.int64(fold(block, at, at + 80, np.uint32(0)))
    return 0

block = np.zeros(100, np.uint8)
for how, size in enumerate((1, 1, 2, 4, 8, 2, 8, 80)):
    for at in (0, 100 - size):
        touch(block, at, how)
    for at in (-1, -2**40, 101 - size, 100, 2**40):
        try:
            touch(block, at, how)
        except RuntimeError as error:
            assert "touch" in str(error)
        else:
            sys.exit(f"{how} at {at} was let through")
print("checked")
"""


def test_what_leaves_an_array_ends_a_checked_kernel(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, program], env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3]), "LOADER_CHECK_KERNELS": "1", "LOADER_CACHE": str(tmp_path)},
        cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.stdout, done.returncode) == ("checked\n", 0), done.stderr
