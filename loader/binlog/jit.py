"""How kernels are compiled: once, to native code that is kept in a cache and runs without the interpreter's lock.

numba keeps a cached kernel as long as the file that defines it is unchanged, whatever its callees do. So the cache
folder carries a hash of all kernel sources: a change anywhere, or another loader version, compiles afresh.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.np import arrayobj

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _cache_folder() -> str:
    sources = sorted(Path(__file__).parent.glob("*.py"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    cache = os.environ.get("LOADER_CACHE")
    base = Path(cache) if cache else Path.home() / ".cache" / "binlog-loader"
    return os.environ.get("NUMBA_CACHE_DIR") or str(base / "kernels" / digest)


numba.config.CACHE_DIR = _cache_folder()  # type: ignore[attr-defined]

# Without `_nrt` no array is counted in and out of every call, which would take a third of the time; in turn a kernel
# makes no arrays, and is given its scratch space.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}


@contextmanager
def _indexed_as_written() -> Iterator[None]:
    """Compile without the test of every index for being negative, which would count from the end.

    No index of a kernel is meant so, and the tests take a third of a kernel's time. numba has no option for it.
    """
    kept = arrayobj.fix_integer_index
    arrayobj.fix_integer_index = _fix_integer_index
    try:
        yield
    finally:
        arrayobj.fix_integer_index = kept


def _fix_integer_index(context: Any, builder: Any, kind: Any, index: Any, _size: Any) -> Any:
    return context.cast(builder, index, kind, numba.types.intp if kind.signed else numba.types.uintp)


def kernel(signature: str) -> Callable[[_Function], _Function]:
    """An entry point that Python calls: one fixed signature, compiled or loaded when its module is imported."""

    def compiled(function: _Function) -> _Function:
        with _indexed_as_written():
            return cast("_Function", numba.njit(signature, cache=True, **_OPTIONS)(function))

    return compiled


def part(function: _Function) -> _Function:
    """A piece of a kernel: compiled into the kernels that call it, never called from Python."""
    return cast("_Function", numba.njit(**_OPTIONS)(function))
