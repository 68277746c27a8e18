"""From a pattern to its automaton: Glushkov's construction, then the subset construction.

Each place in the pattern that reads a character is a position; sets of positions are kept as the bits of integers. A
state is what may be read next, so that texts which leave the same ahead of them share one from the start.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache, reduce
from operator import or_
from typing import Any, NamedTuple

from .automaton import MOST_STATES, Automaton, TooLarge, explore, tidied, usual_way
from .charset import ANY, CharSet, bits, partition
from .pattern import Cat, Edge, Node, Or, Pattern, Repeat, Set

_ENDS, _FOUND = 1, 2
"""The first two bits of what follows: that the text may end here, and that the pattern is found, whatever follows."""


@lru_cache(maxsize=512)
def from_pattern(pattern: Pattern) -> Automaton:
    """The texts in which the pattern is found.

    Raises:
        TooLarge: the pattern counts too far, or its automaton explodes.
    """
    return _Positions(pattern.node).determinised()


class _Part(NamedTuple):
    """How a part of the pattern can be met."""

    empty: int
    """Where no character will do, as bits of ``_BETWEEN``, ``_AT_START``, ``_AT_END`` and ``_AT_BOTH``."""
    first: int
    """The positions that it can begin with."""
    first_at_start: int
    """The same, where the text begins with it."""
    last: int
    """The positions that it can end with."""
    last_at_end: int
    """The same, where the text ends with it."""


_BETWEEN, _AT_START, _AT_END, _AT_BOTH = 1, 2, 4, 8
_EMPTY = _Part(_BETWEEN | _AT_START | _AT_END | _AT_BOTH, 0, 0, 0, 0)
_EDGES = {"start": _Part(_AT_START | _AT_BOTH, 0, 0, 0, 0), "end": _Part(_AT_END | _AT_BOTH, 0, 0, 0, 0)}


class _Positions:
    def __init__(self, node: Node) -> None:
        self.follow = [0, 0]
        self.places: dict[CharSet, int] = {}
        """The positions that read such a character."""
        whole = self.build(node)
        before = 0
        if whole.first or whole.empty & _AT_END:
            before = self.place(ANY)  # It may be found behind any text.
            self.lead(before, before | whole.first | (_ENDS if whole.empty & _AT_END else 0))
        self.lead(whole.last, _FOUND)
        self.lead(whole.last_at_end, _ENDS)
        self.start = before | whole.first_at_start
        if whole.empty & (_BETWEEN | _AT_START):
            self.start = _FOUND
        elif whole.empty & _AT_BOTH:
            self.start |= _ENDS

    def place(self, chars: CharSet) -> int:
        if len(self.follow) > 4 * MOST_STATES:
            raise TooLarge("the pattern counts too far")
        bit = 1 << len(self.follow)
        self.follow.append(0)
        self.places[chars] = self.places.get(chars, 0) | bit
        return bit

    def build(self, node: Node) -> _Part:
        match node:
            case Set(chars):
                bit = self.place(chars)
                return _Part(0, bit, bit, bit, bit)
            case Edge(side):
                return _EDGES[side]
            case Cat(items):
                parts = [self.build(item) for item in items]
                return reduce(lambda behind, part: self.then(part, behind), reversed(parts), _EMPTY)
            case Or(options):
                return reduce(_either, [self.build(option) for option in options])
            case Repeat(item, low, high):
                if high is None:
                    found = self.build(item)
                    self.lead(found.last, found.first)
                    found = found if low else _either(_EMPTY, found)
                else:
                    found = _EMPTY
                    for _ in range(high - low):
                        found = _either(_EMPTY, self.then(self.build(item), found))
                for _ in range(low if high is not None else low - 1):
                    found = self.then(self.build(item), found)
                return found

    def lead(self, positions: int, ahead: int) -> None:
        """What may follow each of the positions."""
        for position in bits(positions):
            self.follow[position] |= ahead

    def then(self, part: _Part, behind: _Part) -> _Part:
        """One part behind the other."""
        self.lead(part.last, behind.first)
        return _Part(
            part.empty & behind.empty,
            part.first | behind.first if part.empty & _BETWEEN else part.first,
            part.first_at_start | behind.first_at_start if part.empty & _AT_START else part.first_at_start,
            part.last | behind.last if behind.empty & _BETWEEN else behind.last,
            part.last_at_end | behind.last_at_end if behind.empty & _AT_END else behind.last_at_end,
        )

    def determinised(self) -> Automaton:
        distinct = [chars for chars in self.places if chars]
        alphabet, members = partition(distinct)
        every = (1 << len(alphabet)) - 1
        anywhere = 0
        symbols: list[tuple[int, int]] = []
        for chars, classes in zip(distinct, members, strict=True):
            if classes == every:
                anywhere |= self.places[chars]
            else:
                symbols.append((self.places[chars], classes))
        reached: dict[int, int] = {0: 0}

        def read(places: int) -> int:
            known = reached.get(places)
            if known is None:
                known = 0
                for position in bits(places):
                    known |= self.follow[position]
                reached[places] = known
            return known

        def step(state: int) -> tuple[Hashable, dict[Any, int]]:
            if state & _FOUND:
                return _FOUND, {}
            always = read(state & anywhere)
            ways = [(every, always)]
            for places, classes in symbols:
                if here := state & places:
                    ahead = read(here)
                    after: list[tuple[int, int]] = []
                    for some, before in ways:
                        both = some & classes
                        if both:
                            after.append((both, before | ahead))
                        if both != some:
                            after.append((some ^ both, before))
                    ways = after
            others: dict[Any, int] = {}
            for classes, ahead in ways:
                target = _target(ahead)
                others[target] = others.get(target, 0) | classes
            return usual_way(_target(always), others)

        states, rows = explore(_target(self.start) or 0, step)
        return tidied(alphabet, rows, {number for number, state in enumerate(states) if state & (_ENDS | _FOUND)})


def _either(one: _Part, other: _Part) -> _Part:
    return _Part(*map(or_, one, other))


def _target(ahead: int) -> int | None:
    """Once the pattern is found, anything may follow."""
    return _FOUND if ahead & _FOUND else ahead or None
