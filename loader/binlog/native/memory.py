"""Loads and stores of whole words of memory: access to single elements of an array is too slow.

Bounds are checked only in kernels that are compiled with checks; see `loader.binlog.native.compiler`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loader.binlog.native.compiler import builtin

_Bytes = NDArray[np.uint8]


def check_bytes(context: Any, builder: Any, array: Any, start: Any, size: Any) -> None:
    """Emit a check that `size` bytes from `start` on are inside the array; nothing in kernels without checks.

    Args:
        context: numba's context of the function.
        builder: llvmlite's builder of the function.
        array: structure of a one-dimensional array of bytes.
        start: 64-bit integer of LLVM.
        size: 64-bit integer of LLVM, at least 1.
    """
    if not context.enable_boundscheck:
        return
    cgutils: Any = import_module("numba.core.cgutils")
    length = builder.extract_value(array.shape, 0)
    last = builder.add(start, builder.sub(size, size.type(1)))
    for index in (start, last):
        cgutils.do_boundscheck(context, builder, index, length)


def _place(context: Any, builder: Any, array_type: Any, array: Any, index: Any, bits: int) -> Any:
    from llvmlite import ir

    made = context.make_array(array_type)(context, builder, array)
    check_bytes(context, builder, made, index, ir.Constant(index.type, bits // 8))
    return builder.bitcast(builder.gep(made.data, [index]), ir.IntType(bits).as_pointer())


def _load(kind_name: str) -> Callable[[Any], Any]:
    def make(numba: Any) -> Any:
        kind = getattr(numba.types, kind_name)

        @numba.extending.intrinsic
        def load(_context: Any, array: Any, _index: Any) -> Any:
            def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                place = _place(context, builder, signature.args[0], args[0], args[1], kind.bitwidth)
                return builder.load(place, align=1)

            return kind(array, numba.types.intp), generate

        return load

    return make


def _store(kind_name: str) -> Callable[[Any], Any]:
    def make(numba: Any) -> Any:
        kind = getattr(numba.types, kind_name)

        @numba.extending.intrinsic
        def store(_context: Any, array: Any, _index: Any, _value: Any) -> Any:
            def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                place = _place(context, builder, signature.args[0], args[0], args[1], kind.bitwidth)
                builder.store(args[2], place, align=1)
                return context.get_dummy_value()

            return numba.types.void(array, numba.types.intp, kind), generate

        return store

    return make


def _make_high_product(numba: Any) -> Any:
    from llvmlite import ir

    @numba.extending.intrinsic
    def high_product(_context: Any, _a: Any, _b: Any) -> Any:
        def generate(_target: Any, builder: Any, _signature: Any, args: Any) -> Any:
            wide = ir.IntType(128)
            product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
            return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

        return numba.types.uint64(numba.types.uint64, numba.types.uint64), generate

    return high_product


load16: Callable[[_Bytes, int], np.uint16] = builtin(_load("uint16"))
load32: Callable[[_Bytes, int], np.uint32] = builtin(_load("uint32"))
load64: Callable[[_Bytes, int], np.uint64] = builtin(_load("uint64"))
"""Return the little-endian integer in the 2, 4 or 8 bytes at an index, which need not be aligned."""

store16: Callable[[_Bytes, int, np.uint16], None] = builtin(_store("uint16"))
store64: Callable[[_Bytes, int, np.uint64], None] = builtin(_store("uint64"))
"""Write a little-endian integer to the 2 or 8 bytes at an index, which need not be aligned."""

high_product: Callable[[np.uint64, np.uint64], np.uint64] = builtin(_make_high_product)
"""Return the high 64 bits of the product of two integers."""
