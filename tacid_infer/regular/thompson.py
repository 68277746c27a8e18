"""From a pattern to its automaton: Thompson's construction, then the subset construction, on sets of states kept as
the bits of integers."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from functools import lru_cache

from .automaton import MOST_STATES, Automaton, TooLarge, explore, tidied
from .charset import ANY, CharSet, partition
from .pattern import Cat, Edge, Node, Or, Pattern, Repeat, Set


@lru_cache(maxsize=512)
def from_pattern(pattern: Pattern) -> Automaton:
    """The texts in which the pattern is found.

    Raises:
        TooLarge: the pattern counts too far, or its automaton explodes.
    """
    return _Nfa(pattern.node).determinised()


class _Nfa:
    """The edges of the text are arcs that only the first and the last step may take."""

    def __init__(self, node: Node) -> None:
        self.arcs: list[tuple[CharSet, int] | None] = []
        self.free: list[list[int]] = []
        self.at_start: list[list[int]] = []
        self.at_end: list[list[int]] = []
        self.start = self.state()
        self.final = self.state()
        self.arcs[self.start] = ANY, self.start
        entry = self.state()
        self.free[self.start].append(entry)
        self.free[self.build(node, entry)].append(self.final)

    def state(self) -> int:
        if len(self.arcs) > 4 * MOST_STATES:
            raise TooLarge("the pattern counts too far")
        self.arcs.append(None)
        for table in (self.free, self.at_start, self.at_end):
            table.append([])
        return len(self.arcs) - 1

    def build(self, node: Node, entry: int) -> int:
        """Add the node behind ``entry``, which has no arc; returns its exit, which has none either."""
        match node:
            case Set(chars):
                end = self.state()
                if chars:
                    self.arcs[entry] = chars, end
                return end
            case Edge(side):
                end = self.state()
                (self.at_start if side == "start" else self.at_end)[entry].append(end)
                return end
            case Cat(items):
                for item in items:
                    entry = self.build(item, entry)
                return entry
            case Or(options):
                end = self.state()
                for option in options:
                    begin = self.state()
                    self.free[entry].append(begin)
                    self.free[self.build(option, begin)].append(end)
                return end
            case Repeat(item, low, high):
                for _ in range(low):
                    entry = self.build(item, entry)
                end = self.state()
                if high is None:
                    loop = self.state()
                    self.free[entry].append(loop)
                    begin = self.state()
                    self.free[loop] += (begin, end)
                    self.free[self.build(item, begin)].append(loop)
                    return end
                for _ in range(high - low):
                    begin = self.state()
                    self.free[entry] += (begin, end)
                    entry = self.build(item, begin)
                self.free[entry].append(end)
                return end

    def closure(self, states: Iterable[int], *tables: list[list[int]]) -> int:
        """The states that these lead to for free, as bits."""
        seen = set(states)
        todo = list(seen)
        while todo:
            state = todo.pop()
            for table in tables:
                for target in table[state]:
                    if target not in seen:
                        seen.add(target)
                        todo.append(target)
        return sum(1 << state for state in seen)

    def determinised(self) -> Automaton:
        sets = [arc[0] for arc in self.arcs if arc is not None]
        distinct = list(dict.fromkeys(sets))
        alphabet, members = partition(distinct)
        classes = dict(zip(distinct, members, strict=True))
        every = len(alphabet)
        final = 1 << self.final
        ways: dict[int, tuple[tuple[int, ...] | None, int]] = {}
        for state, arc in enumerate(self.arcs):
            if arc is not None:
                chars, target = arc
                numbers = classes[chars]
                ways[state] = (None if len(numbers) == every else numbers), self.closure([target], self.free)
        arcs = sum(1 << state for state in ways)
        ends = [self._before(self.free, self.at_end), self._before(self.free, self.at_start, self.at_end)]

        def step(state: tuple[bool, int]) -> tuple[Hashable, dict[int, Hashable]]:
            if state[1] & final:
                return (False, final), {}
            always = 0
            found: dict[int, int] = {}
            for number in _bits(state[1] & arcs):
                numbers, reached = ways[number]
                if numbers is None:
                    always |= reached
                else:
                    for one in numbers:
                        found[one] = found.get(one, 0) | reached
            targets: dict[int, Hashable] = {one: _target(reached | always, final) for one, reached in found.items()}
            usual: Hashable = _target(always, final)
            if len(targets) == every:
                kept = list(targets.values())
                usual = max(kept, key=kept.count)
            return usual, {one: target for one, target in targets.items() if target != usual}

        # The very start may pass both edges at once (the empty text), so it is a state of its own.
        start = (True, self.closure([self.start], self.free, self.at_start))
        states, rows = explore(start, step)
        accepting = {number for number, (first, at) in enumerate(states) if at & ends[first]}
        return tidied(alphabet, rows, accepting)

    def _before(self, *tables: list[list[int]]) -> int:
        """The states from which the final one is reached for free, as bits."""
        back: list[list[int]] = [[] for _ in self.arcs]
        for table in tables:
            for state, targets in enumerate(table):
                for target in targets:
                    back[target].append(state)
        return self.closure([self.final], back)


def _target(states: int, final: int) -> Hashable:
    """Once the pattern is found, anything may follow."""
    return (False, final if states & final else states) if states else None


def _bits(number: int) -> Iterator[int]:
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest
