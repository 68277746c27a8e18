"""Counting beyond what one GBNF repetition may count.

llama.cpp (``src/llama-grammar.cpp``) refuses a group whose rules times its bound reach 2000, and takes a larger bound
as none. So a repetition is written over a single rule or character class, with bounds below that limit, and larger ones
are put together from blocks.
"""

from __future__ import annotations

from math import isqrt

from .expr import EMPTY, Alt, Define, Expr, Lit, Rep, Seq, seq

LIMIT = 1999
"""The largest bound of one repetition."""

LONGEST = LIMIT * LIMIT
"""The largest count that two levels of blocks reach: more characters than any context holds."""


def repeat(item: Expr, low: int, high: int | None, define: Define) -> Expr:
    """``item``, ``low`` to ``high`` times, exactly. Both bounds at most ``LONGEST``.

    Beyond ``LIMIT`` the text so far may be read as a whole block or as the last, partial one, so that two readings
    (live stacks), at times three, are alive instead of one.
    """
    unit = item if type(item) is not Seq and type(item) is not Alt and not _is_long(item) else define(item)
    return seq(_exactly(unit, low, define), _at_most(unit, None if high is None else high - low, define))


def _is_long(item: Expr) -> bool:
    return type(item) is Rep or (type(item) is Lit and len(item.text) != 1)


def _exactly(unit: Expr, count: int, define: Define) -> Expr:
    if count == 0:
        return EMPTY
    if count == 1:
        return unit
    if count <= LIMIT:
        return Rep(unit, count, count)
    size = isqrt(count)
    block = define(Rep(unit, size, size))
    return seq(Rep(block, count // size, count // size), _exactly(unit, count % size, define))


def _at_most(unit: Expr, count: int | None, define: Define) -> Expr:
    if count == 0:
        return EMPTY
    if count is None or count <= LIMIT:
        return Rep(unit, 0, count)
    # Up to blocks-1 whole blocks, then a rest of up to size+spare: the smaller the spare, the fewer the readings.
    sizes = range(max(2, isqrt(count) // 2), min(LIMIT // 2, isqrt(count) * 2) + 1)
    size = min((size for size in sizes if count // size <= LIMIT), key=lambda size: (count % size, size))
    block = define(Rep(unit, size, size))
    return seq(Rep(block, 0, count // size - 1), Rep(unit, 0, size + count % size))
