"""Compiles kernels to native code once, with numba, and keeps the code as object files.

A kernel and its parts are Python functions with the decorators `kernel` and `part`. If the object file does not exist
yet, numba compiles them into one function. `loader.binlog.native.object_code` loads the file in this and in every later
process. Later processes do not import numba: the import takes longer than decoding 100 MB. The folder's name is
a hash of everything that shapes the files: a change of a module that the kernel uses, of numba or of the processor
compiles it again.

In a process with LOADER_CHECK_KERNELS=1 every index of a kernel is checked, also in `loader.binlog.native.memory`. A
kernel that would read or write beyond an array then ends with a RuntimeError. Tests and `make fuzz` run this way.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, cast

import llvmlite.binding as llvm

from loader.binlog.native.kernel_sources import sources_of
from loader.binlog.native.object_code import Image, NativeKernel, load, read_image
from loader.resources import cache_folder, packed_kernels

_Function = TypeVar("_Function", bound=Callable[..., Any])

_KERNELS_IN = ("loader.binlog", "loader.native_collapse", "loader.reader", "loader.initial_load", "loader.visible_text")
_PART = "__kernel_part__"
_compiled: dict[Callable[..., Any], Any] = {}
_files: dict[str, Path] = {}

# `_nrt` off: numba does not count references to arrays on every call, which takes a third of the time. So a kernel
# cannot create arrays: the caller passes its scratch space.
_CHECKED = os.environ.get("LOADER_CHECK_KERNELS") == "1"
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False, "boundscheck": _CHECKED}


def kernel(signature: str) -> Callable[[_Function], _Function]:
    """Make a function a kernel: compiled or loaded for one signature when its module is imported."""

    def made(function: _Function) -> _Function:
        digest = _digest(signature.encode() + function.__code__.co_code)
        name = f"{_folder(function.__code__.co_filename)}/{function.__module__}.{function.__name__}.{digest}.o"
        file, packed = cache_folder() / "kernels" / name, packed_kernels() / name
        image = read_image(packed) or read_image(file)
        if image is None:
            image = _compile(function, signature)
            image.write(file)
        _files[name] = packed if packed.exists() else file
        return cast("_Function", NativeKernel(load(image), signature, function.__name__))

    return made


def kernel_files() -> dict[str, Path]:
    """Return the object files of the kernels of this process, by their paths below a folder of kernels."""
    return dict(_files)


def part(function: _Function) -> _Function:
    """Make a function a part of kernels: compiled into the kernels that call it, never called from Python.

    Parts are always inlined. numba passes an array as seven words, so a call costs more than most parts themselves.
    """
    setattr(
        function,
        _PART,
        lambda numba: numba.njit(**_OPTIONS, forceinline=not _CHECKED)(_with_compiled_parts(function, numba)),
    )
    return function


def builtin(make: Callable[[Any], Any]) -> Any:
    """Return a part of kernels that cannot be written in Python: `make` builds it from the module numba."""

    def never() -> None:
        raise NotImplementedError("only kernels can call this")

    setattr(never, _PART, make)
    return never


@cache
def _folder(source: str) -> str:
    """Return the folder's name for the object files of a module's kernels, for these sources and this machine."""
    parts = [path.read_bytes() for path in sources_of(Path(source), _KERNELS_IN)]
    parts += [importlib.metadata.version(name).encode() for name in ("numba", "llvmlite", "numpy")]
    parts += [llvm.get_host_cpu_name().encode(), llvm.get_host_cpu_features().flatten().encode()]
    parts += [b"checked"] if _CHECKED else []
    return _digest(b"\n".join(parts))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _compile(function: Callable[..., Any], signature: str) -> Image:
    if _CHECKED:
        os.environ.setdefault("NUMBA_OPT", "0")  # tests wait for the compiler, not for the kernels
    numba: Any = import_module("numba")
    arguments, result = import_module("numba.core.sigutils").normalize_signature(signature)
    bare = numba.njit(**_OPTIONS, no_cpython_wrapper=True, no_cfunc_wrapper=True)(_with_compiled_parts(function, numba))
    with _indexed_as_written():
        found = bare._compiler.compile(arguments, result)
    symbol = found.fndesc.llvm_func_name
    found.library.get_pointer_to_function(symbol)  # this call generates the native code
    return Image(symbol, found.library._get_compiled_object())


def _with_compiled_parts(function: Callable[..., Any], numba: Any) -> FunctionType:
    """Return the function with its parts replaced by compiled ones."""
    known = function.__globals__
    names = known | {name: _compiled_part(known[name], numba) for name in function.__code__.co_names if name in known}
    ready = FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
    ready.__module__, ready.__qualname__ = function.__module__, function.__qualname__
    return ready


def _compiled_part(value: Any, numba: Any) -> Any:
    make = getattr(value, _PART, None)
    if make is None:
        return value
    if value not in _compiled:
        _compiled[value] = make(numba)
    return _compiled[value]


@contextmanager
def _indexed_as_written() -> Iterator[None]:
    """Compile without the check for negative indexes, which count from the end of an array in Python.

    No kernel uses negative indexes, and the checks take a third of a kernel's time. numba has no option for this.
    """
    from numba.np import arrayobj

    kept = arrayobj.fix_integer_index
    arrayobj.fix_integer_index = _fix_integer_index
    try:
        yield
    finally:
        arrayobj.fix_integer_index = kept


def _fix_integer_index(context: Any, builder: Any, kind: Any, index: Any, _size: Any) -> Any:
    from numba import types

    return context.cast(builder, index, kind, types.intp if kind.signed else types.uintp)
