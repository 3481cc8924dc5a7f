"""Stores native code of kernels in files, and calls it without numba.

LLVM compiles a numba function to an object file, and llvmlite links the file into the process. The calling convention
is numba's (`CPUCallConv`, `ArrayModel`): pointers for the result and for an exception, then the arguments. An array is
passed as owner, parent, length, item size, data, shape and strides. The function returns 0 on success.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from loader.private_files import private_folder, read_private

_SCALARS = {
    "int64": ctypes.c_int64,
    "uint64": ctypes.c_uint64,
    "uint32": ctypes.c_uint32,
    "uint8": ctypes.c_uint8,
}
_ARGUMENT = re.compile(r"\s*(?P<type>[a-z]+\d+)(\[(?P<axes>[^]]*)\])?\s*(,|$)")


@dataclass(frozen=True)
class Image:
    """A compiled function: its symbol, and the bytes of the object file that defines it."""

    symbol: str
    code: bytes

    def write(self, file: Path) -> None:
        """Write it to a file atomically. Several processes may write the same file.

        Raises:
            UsageError: another user owns the folder.
        """
        folder = private_folder(file.parent)
        content = self.symbol.encode() + b"\n" + self.code
        with NamedTemporaryFile(dir=folder, prefix=".", delete=False) as unfinished:  # mode 0600
            unfinished.write(_digest(file, content) + b"\n" + content)
        Path(unfinished.name).replace(file)


def read_image(file: Path) -> Image | None:
    """Return the image in a file; None if the file is missing, or differs from what `write` wrote to this path."""
    digest, _, content = (read_private(file) or b"").partition(b"\n")
    if digest != _digest(file, content):
        return None
    symbol, _, code = content.partition(b"\n")
    return Image(symbol.decode(), code)


def _digest(file: Path, content: bytes) -> bytes:
    """Return the digest of the code and of its file and folder names, which are digests of its sources."""
    place = f"{file.parent.name}/{file.name}\n".encode()
    return hashlib.sha256(place + content).hexdigest().encode()


@cache
def _engine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True, codemodel="jitdefault")
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)


def load(image: Image) -> int:
    """Link an image into the process; return the address of its function."""
    engine = _engine()
    engine.add_object_file(llvm.ObjectFileRef.from_data(image.code))
    engine.finalize_object()
    return int(engine.get_function_address(image.symbol))


class NativeKernel:
    """A callable kernel. It checks its arguments against the signature, as numba does, and releases the GIL."""

    def __init__(self, address: int, signature: str, name: str) -> None:
        result, _, arguments = signature.rstrip(")").partition("(")
        self.__name__ = name
        self._result = _SCALARS[result]
        self._kinds = _parsed(arguments)
        flat: list[Any] = [ctypes.c_void_p, ctypes.c_void_p]
        for kind, axes in self._kinds:
            if axes:
                flat += [ctypes.c_void_p] * 2 + [ctypes.c_int64] * 2 + [ctypes.c_void_p] + [ctypes.c_int64] * 2 * axes
            else:
                flat.append(_SCALARS[kind])
        self._call = ctypes.CFUNCTYPE(ctypes.c_int32, *flat)(address)

    def __call__(self, *arguments: Any) -> int:
        """Run the kernel; return its result.

        Raises:
            TypeError: an argument does not match the signature.
            RuntimeError: the kernel raised, such as for an index out of bounds in a kernel with checks.
        """
        if len(arguments) != len(self._kinds):
            raise TypeError(f"{self.__name__} takes {len(self._kinds)} arguments, not {len(arguments)}")
        flat: list[Any] = []
        for argument, (kind, axes) in zip(arguments, self._kinds, strict=True):
            flat += self._array(argument, kind, axes) if axes else [int(argument)]
        result, exception = self._result(), ctypes.c_void_p()
        status = self._call(ctypes.addressof(result), ctypes.addressof(exception), *flat)
        if status:
            raise RuntimeError(f"the kernel {self.__name__} ended with status {status}")
        return int(result.value)

    def _array(self, array: Any, kind: str, axes: int) -> Sequence[int | None]:
        right = isinstance(array, np.ndarray) and array.ndim == axes and array.dtype == kind
        if not right or not array.flags.c_contiguous or not array.flags.writeable:
            raise TypeError(f"{self.__name__} takes a contiguous {axes}-dimensional array of {kind}")
        data = array.__array_interface__["data"][0]
        return (None, None, array.size, array.itemsize, data, *array.shape, *array.strides)


def _parsed(arguments: str) -> list[tuple[str, int]]:
    """Return type and number of axes (0: a scalar) of each argument."""
    found, at = [], 0
    while at < len(arguments):
        match = _ARGUMENT.match(arguments, at)
        if match is None:
            raise ValueError(f"not a signature: {arguments}")
        axes = match["axes"]
        found.append((match["type"], 0 if axes is None else axes.count(",") + 1))
        at = match.end()
    return found
