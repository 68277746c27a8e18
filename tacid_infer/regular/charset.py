"""Sets of Unicode scalar values, as sorted, disjoint, inclusive ranges that do not touch."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import groupby
from typing import TypeAlias

CharSet: TypeAlias = tuple[tuple[int, int], ...]

ANY: CharSet = ((0, 0xD7FF), (0xE000, 0x10FFFF))
"""Every Unicode scalar value: all code points but the surrogates, which no UTF-8 text holds."""


def union(*sets: Iterable[tuple[int, int]]) -> CharSet:
    """The characters of any of the sets. Takes ranges in any order."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(span for ranges in sets for span in ranges):
        if merged and low <= merged[-1][1] + 1:
            if high > merged[-1][1]:
                merged[-1] = (merged[-1][0], high)
        else:
            merged.append((low, high))
    return tuple(merged)


def intersection(left: CharSet, right: CharSet) -> CharSet:
    """The characters of both sets."""
    if left is ANY or left == right:
        return right
    if right is ANY:
        return left
    found: list[tuple[int, int]] = []
    i = j = 0
    while i < len(left) and j < len(right):
        low, high = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if low <= high:
            found.append((low, high))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return tuple(found)


def complement(chars: CharSet) -> CharSet:
    """Every scalar value that is not in the set."""
    gaps: list[tuple[int, int]] = []
    start = 0
    for low, high in chars:
        if low > start:
            gaps.append((start, low - 1))
        start = high + 1
    if start <= 0x10FFFF:
        gaps.append((start, 0x10FFFF))
    return intersection(tuple(gaps), ANY)


def difference(left: CharSet, right: CharSet) -> CharSet:
    """The characters of ``left`` that are not in ``right``."""
    return intersection(left, complement(right))


def partition(sets: Sequence[CharSet]) -> tuple[list[CharSet], list[int]]:
    """The coarsest classes of characters of which each set is made: no set tells two characters of a class apart.

    Returns:
        The classes, which together are all characters; and for each set, its classes, as the bits of their numbers.
    """
    bounds: dict[int, int] = {}
    for number, chars in enumerate((ANY, *sets)):
        for low, high in chars:
            bounds[low] = bounds.get(low, 0) ^ 1 << number
            bounds[high + 1] = bounds.get(high + 1, 0) ^ 1 << number
    spans: dict[int, list[tuple[int, int]]] = {}
    inside = start = 0
    for bound in sorted(bounds):
        if inside & 1:
            spans.setdefault(inside >> 1, []).append((start, bound - 1))
        inside ^= bounds[bound]
        start = bound
    members = [0] * len(sets)
    for number, owners in enumerate(spans):
        for owner in bits(owners):
            members[owner] |= 1 << number
    return [tuple(span) for span in spans.values()], members


def bits(number: int) -> list[int]:
    """The places of the bits of a number, from the lowest."""
    found: list[int] = []
    while number:
        lowest = number & -number
        found.append(lowest.bit_length() - 1)
        number ^= lowest
    return found


@lru_cache(maxsize=64)
def category(name: str) -> CharSet:
    """A Unicode general category by its short name ("L", "Lu", ...); empty if there is none of that name."""
    return intersection(union(*(spans for kind, spans in _categories().items() if kind.startswith(name))), ANY)


@lru_cache(maxsize=1)
def _categories() -> dict[str, list[tuple[int, int]]]:
    found: dict[str, list[tuple[int, int]]] = {}
    for kind, points in groupby(range(0x110000), lambda point: unicodedata.category(chr(point))):
        span = list(points)
        found.setdefault(kind, []).append((span[0], span[-1]))
    return found
