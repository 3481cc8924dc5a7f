"""Kernels are compiled without checks for negative indexes; other numba functions keep the checks."""

from __future__ import annotations

import os
import platform
import stat
import subprocess
import sys
import zlib
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.np import arrayobj

from loader.binlog.native.compiler import kernel
from loader.binlog.native.crc import crc32
from loader.binlog.native.kernel_sources import sources_of
from loader.binlog.native.object_code import Image, read_image
from loader.errors import UsageError


@pytest.mark.skipif(os.environ.get("LOADER_CHECK_KERNELS") == "1", reason="every index is checked in this process")
def test_only_kernels_lose_the_test_of_indexes() -> None:
    before = arrayobj.fix_integer_index

    @kernel("uint8(uint8[::1], int64)")
    def last(block: np.ndarray, at: int) -> np.uint8:
        return block[at]

    @numba.njit
    def theirs(block: np.ndarray, at: int) -> np.uint8:
        return block[at]

    block = np.arange(8, dtype=np.uint8)
    assert arrayobj.fix_integer_index is before
    assert theirs(block, -1) == 7
    view = block[4:]  # element -1 of it is element 3 of the block
    assert last(view, -1) == 3


def test_the_checksum_reads_words_as_zlib_does() -> None:
    @kernel("uint32(uint8[::1], int64, int64)")
    def sums(block: np.ndarray, start: int, end: int) -> np.uint32:
        return crc32(block, start, end)

    data = bytes(range(256)) * 3
    block = np.frombuffer(data, np.uint8).copy()
    for start in range(9):
        for end in range(start, start + 40):
            assert sums(block, start, end) == zlib.crc32(data[start:end])


def test_a_compiled_kernel_is_loaded_by_the_next_process_without_numba(tmp_path: Path) -> None:
    program = (
        "import sys, numpy as np;"
        "from loader.binlog.events.packets import unpack;"
        "block = np.frombuffer(bytearray(b'\\6\\0\\0\\0\\0event'), np.uint8); out = np.zeros(16, np.uint8);"
        "state = np.zeros(7, np.int64); unpack(block, 10, out, state);"
        "print(bytes(out[:5]).decode(), 'numba' in sys.modules)"
    )
    said = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", program], env=os.environ | {"LOADER_CACHE": str(tmp_path)}, capture_output=True, text=True,
            check=True,
        )  # fmt: skip
        said.append(done.stdout.split())
    assert said == [["event", "True"], ["event", "False"]]
    assert [path.suffix for path in (tmp_path / "kernels").rglob("*") if path.is_file()] == [".o"]


def test_arguments_are_checked_against_the_signature() -> None:
    @kernel("int64(uint8[::1], int64[:,::1])")
    def total(block: np.ndarray, table: np.ndarray) -> np.int64:
        return block[0] + table[1, 0]

    block, table = np.full(4, 7, np.uint8), np.array([[1, 2], [3, 4]], np.int64)
    assert total(block, table) == 10
    for wrong in (
        (block,), (block.astype(np.int8), table), (block, table[0]), (block[::2], table), (block, table.T),
        (bytes(4), table), (np.frombuffer(b"read", np.uint8), table),
    ):  # fmt: skip
        with pytest.raises(TypeError, match="total takes"):
            total(*wrong)


def image_in(folder: Path, name: str = "module.function.o") -> tuple[Image, Path]:
    image, file = Image("symbol", b"code\nwith lines"), folder / "kernels" / "source" / name
    image.write(file)
    return image, file


def test_compiled_code_is_for_its_user_alone(tmp_path: Path) -> None:
    image, file = image_in(tmp_path)
    assert read_image(file) == image
    assert [stat.S_IMODE(path.stat().st_mode) for path in (file, file.parent, file.parent.parent)] == [
        0o600,
        0o700,
        0o700,
    ]
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_compiled_code_that_was_changed_moved_or_is_of_others_is_compiled_again(tmp_path: Path) -> None:
    _, file = image_in(tmp_path)
    whole = file.read_bytes()
    for damaged in (whole[:-1], whole.replace(b"lines", b"other"), b"symbol\ncode", b"", whole + b"x"):
        file.write_bytes(damaged)
        assert read_image(file) is None
    file.write_bytes(whole)
    for mode in (0o620, 0o602):
        file.chmod(mode)
        assert read_image(file) is None
    file.chmod(0o600)
    assert read_image(file) is not None
    assert read_image(file.rename(file.with_name("module.another.o"))) is None
    assert read_image(tmp_path / "none") is None


def test_a_folder_that_others_may_write_to_is_closed(tmp_path: Path) -> None:
    _, file = image_in(tmp_path)
    file.parent.chmod(0o777)
    image_in(tmp_path)
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_folder_that_cannot_be_created(tmp_path: Path) -> None:
    image, _ = image_in(tmp_path)
    with pytest.raises(UsageError, match="a folder for compiled code cannot be created") as refused:
        image.write(Path("/proc/nowhere/folder/module.kernel.o"))
    assert refused.value.why == f"[Errno 2] No such file or directory: '/proc/nowhere', on {platform.node()}"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_another_user_owns_is_neither_read_nor_written(tmp_path: Path) -> None:
    image, file = image_in(tmp_path)
    os.chown(file, 12345, 12345)
    assert read_image(file) is None
    os.chown(file.parent, 12345, 12345)
    with pytest.raises(UsageError, match="belongs to another user"):
        image.write(file)


def test_a_kernel_is_shaped_by_every_module_that_it_takes_parts_or_constants_from() -> None:
    root = Path(sys.modules[kernel.__module__].__file__ or "").parents[3]
    found = {
        path.relative_to(root).as_posix()
        for path in sources_of(root / "loader/binlog/rows.py", ("loader.binlog", "loader.reader"))
    }
    for name in ("rows", "walk", "constants", "values/field", "values/operations", "native/crc", "native/compiler"):
        assert f"loader/binlog/{name}.py" in found
    assert not found & {"loader/binlog/stager.py", "loader/reader/kernel.py", "loader/errors.py"}


def test_modules_behind_every_form_of_import_are_found(tmp_path: Path) -> None:
    source = tmp_path / "source.py"
    source.write_text(
        "from loader.binlog import rows as k\nfrom loader.binlog import (\n    walk as w,  # why\n    format,\n)\n"
        "from loader.schema.lexer import tokens\n"
    )
    names = {path.name for path in sources_of(source, ("loader.binlog",))}
    assert {"source.py", "rows.py", "walk.py", "format.py", "digits.py"} <= names
    assert "lexer.py" not in names
