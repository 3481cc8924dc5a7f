"""CRC-32 by carry-less multiplication (PCLMULQDQ), 64 bytes per step, on processors that have the instruction.

Method: V. Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction" (Intel, 2009), with
reflected bits. The constants are powers of x modulo the polynomial, as derived in the paper.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numpy.typing import NDArray

from loader.binlog.native.compiler import builtin
from loader.binlog.native.memory import check_bytes

MIN_BYTES = 64
"""`fold` needs at least this many bytes."""

_FOLD_64 = (0x0154442BD4, 0x01C6E41596)
_FOLD_16 = (0x01751997D0, 0x00CCAA009E)
_FOLD_8 = (0x0163CD6124, 0)
_POLYNOMIAL = (0x01DB710641, 0x01F7011641)
_LOW_HALVES = (0xFFFFFFFF, 0xFFFFFFFF)


def has_instruction() -> bool:
    """Return whether this machine's processor has PCLMULQDQ."""
    return bool(llvm.get_host_cpu_features().get("pclmul"))


class _Emitter:
    """Emits the steps of the method as LLVM instructions."""

    def __init__(self, builder: Any, data: Any) -> None:
        from llvmlite import ir

        self._ir = ir
        self.word = ir.IntType(64)
        self.vector = ir.VectorType(self.word, 2)
        kind = ir.FunctionType(self.vector, [self.vector, self.vector, ir.IntType(8)])
        self._multiply = builder.module.globals.get("llvm.x86.pclmulqdq") or ir.Function(
            builder.module, kind, "llvm.x86.pclmulqdq"
        )
        self._builder = builder
        self._data = data

    def constant(self, words: tuple[int, int]) -> Any:
        """Return a constant vector of two words."""
        return self._ir.Constant(self.vector, list(words))

    def number(self, value: int) -> Any:
        """Return a constant word."""
        return self._ir.Constant(self.word, value)

    def load(self, at: Any, ahead: int = 0) -> Any:
        """Emit a load of the 16 bytes at `at` + `ahead`."""
        place = self._builder.gep(self._data, [self._builder.add(at, self.number(ahead))])
        return self._builder.load(self._builder.bitcast(place, self.vector.as_pointer()), align=1)

    def multiply(self, a: Any, b: Any, halves: int) -> Any:
        """Emit the product of one half of each vector. Bits 0 and 4 of `halves` select the upper halves."""
        return self._builder.call(self._multiply, [a, b, self._ir.Constant(self._ir.IntType(8), halves)])

    def folded(self, value: Any, by: Any, onto: Any) -> Any:
        """Emit `value` folded forward by the constants `by`, XORed with `onto`."""
        moved = self._builder.xor(self.multiply(value, by, 0x00), self.multiply(value, by, 0x11))
        return self._builder.xor(moved, onto)

    def shifted(self, value: Any, bits: int) -> Any:
        """Emit a right shift of all 128 bits."""
        wide = self._ir.IntType(128)
        moved = self._builder.lshr(self._builder.bitcast(value, wide), self._ir.Constant(wide, bits))
        return self._builder.bitcast(moved, self.vector)

    def looped(self, step: int, at: Any, end: Any, accumulators: list[Any], by: Any) -> None:
        """Emit a loop that folds while `step` more bytes remain. `at` and the accumulators are memory addresses."""
        b = self._builder
        test, body, after = (b.append_basic_block(name) for name in ("test", "body", "after"))
        b.branch(test)
        b.position_at_end(test)
        place = b.load(at)
        b.cbranch(b.icmp_signed("<=", b.add(place, self.number(step)), end), body, after)
        b.position_at_end(body)
        for n, accumulator in enumerate(accumulators):
            b.store(self.folded(b.load(accumulator), by, self.load(place, 16 * n)), accumulator)
        b.store(b.add(place, self.number(step)), at)
        b.branch(test)
        b.position_at_end(after)

    def reduced(self, value: Any) -> Any:
        """Emit the reduction of 128 bits to the 32 bits of the CRC."""
        b, low = self._builder, self.constant(_LOW_HALVES)
        value = b.xor(self.shifted(value, 64), self.multiply(value, self.constant(_FOLD_16), 0x10))
        value = b.xor(self.multiply(b.and_(value, low), self.constant(_FOLD_8), 0x00), self.shifted(value, 32))
        quotient = b.and_(self.multiply(b.and_(value, low), self.constant(_POLYNOMIAL), 0x10), low)
        value = b.xor(value, self.multiply(quotient, self.constant(_POLYNOMIAL), 0x00))
        first = b.extract_element(value, self._ir.Constant(self._ir.IntType(32), 0))
        return b.trunc(b.lshr(first, self.number(32)), self._ir.IntType(32))


def _make(numba: Any) -> Any:
    if not has_instruction():
        return numba.njit(_unchanged)

    @numba.extending.intrinsic
    def fold(_context: Any, array: Any, _start: Any, _end: Any, _crc: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            made = context.make_array(signature.args[0])(context, builder, args[0])
            emit = _Emitter(builder, made.data)
            start, end = args[1], args[2]
            check_bytes(context, builder, made, start, emit.number(MIN_BYTES))
            check_bytes(context, builder, made, start, builder.sub(end, start))
            at = numba.core.cgutils.alloca_once_value(builder, builder.add(start, emit.number(64)))
            first = builder.insert_element(emit.constant((0, 0)), builder.zext(args[3], emit.word), emit.number(0))
            values = [emit.load(start, 16 * n) for n in range(4)]
            values[0] = builder.xor(values[0], first)
            places = [numba.core.cgutils.alloca_once_value(builder, value) for value in values]
            emit.looped(64, at, end, places, emit.constant(_FOLD_64))
            by = emit.constant(_FOLD_16)
            value = builder.load(places[0])
            for place in places[1:]:
                value = emit.folded(value, by, builder.load(place))
            builder.store(value, places[0])
            emit.looped(16, at, end, places[:1], by)
            return emit.reduced(builder.load(places[0]))

        intp = numba.types.intp
        return numba.types.uint32(array, intp, intp, numba.types.uint32), generate

    return fold


def _unchanged(_array: Any, _start: int, _end: int, crc: Any) -> Any:
    return crc


fold: Callable[[NDArray[np.uint8], int, int, np.uint32], np.uint32] = builtin(_make)
"""Return the CRC state after buf[start:end], without its last bytes beyond a multiple of 16 (at most 15)."""
