"""Words of memory: what an array's elements one by one would be too slow for. Nothing here checks its bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

_Bytes = NDArray[np.uint8]


def _place(context: Any, builder: Any, array_type: Any, array: Any, index: Any, bits: int) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), ir.IntType(bits).as_pointer())


def _load(kind: Any) -> Callable[[_Bytes, int], Any]:
    @intrinsic
    def load(_context: Any, array: Any, _index: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            place = _place(context, builder, signature.args[0], args[0], args[1], kind.bitwidth)
            return builder.load(place, align=1)

        return kind(array, types.intp), generate

    return cast("Callable[[_Bytes, int], Any]", load)


def _store(kind: Any) -> Callable[[_Bytes, int, Any], None]:
    @intrinsic
    def store(_context: Any, array: Any, _index: Any, _value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            place = _place(context, builder, signature.args[0], args[0], args[1], kind.bitwidth)
            builder.store(args[2], place, align=1)
            return context.get_dummy_value()

        return types.void(array, types.intp, kind), generate

    return cast("Callable[[_Bytes, int, Any], None]", store)


load16 = _load(types.uint16)
load32 = _load(types.uint32)
load64 = _load(types.uint64)
"""The little-endian number in 2, 4 or 8 bytes from an index on, which need not be aligned."""

store16 = _store(types.uint16)
store64 = _store(types.uint64)
"""Write it there."""


@intrinsic
def _high_product(_context: Any, _a: Any, _b: Any) -> Any:
    def generate(_target: Any, builder: Any, _signature: Any, args: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), generate


high_product = cast("Callable[[np.uint64, np.uint64], np.uint64]", _high_product)
"""The high 64 bits of the product of two uint64."""
