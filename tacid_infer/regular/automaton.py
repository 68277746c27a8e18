"""Deterministic automata over Unicode text, closed under intersection, union and complement."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from .charset import ANY, CharSet, complement, difference, intersection, union
from .pattern import Cat, Edge, Node, Or, Pattern, Repeat, Set

Edges: TypeAlias = tuple[tuple[CharSet, int], ...]

_MOST_STATES = 3000


class TooLarge(Exception):
    """The automaton would have more states than are worth writing down."""


@dataclass(frozen=True, slots=True)
class Automaton:
    """A deterministic automaton without dead states. State 0 is the start; no state at all is the empty language.

    Attributes:
        edges: for each state, disjoint character sets and where they lead.
        accepting: the states at which a text may end.
    """

    edges: tuple[Edges, ...]
    accepting: frozenset[int]

    def accepts(self, text: str) -> bool:
        """Whether the text is in the language."""
        if not self.edges:
            return False
        state = 0
        for char in text:
            point = ord(char)
            for chars, target in self.edges[state]:
                if any(low <= point <= high for low, high in chars):
                    state = target
                    break
            else:
                return False
        return state in self.accepting

    def intersect(self, other: Automaton) -> Automaton:
        """The texts of both."""
        if not self.edges or not other.edges:
            return NOTHING

        def step(pair: tuple[int, int]) -> Iterable[tuple[CharSet, tuple[int, int]]]:
            for left, one in self.edges[pair[0]]:
                for right, two in other.edges[pair[1]]:
                    if both := intersection(left, right):
                        yield both, (one, two)

        return explore((0, 0), step, lambda pair: pair[0] in self.accepting and pair[1] in other.accepting)

    def complement(self) -> Automaton:
        """Every other text."""
        sink = len(self.edges)

        def step(state: int) -> Iterable[tuple[CharSet, int]]:
            edges = self.edges[state] if state < sink else ()
            yield from edges
            if rest := complement(union(*(chars for chars, _ in edges))):
                yield rest, sink

        return explore(0, step, lambda state: state not in self.accepting)

    def union(self, other: Automaton) -> Automaton:
        """The texts of either."""
        return self.complement().intersect(other.complement()).complement()

    def limit(self, low: int, high: int | None) -> Automaton:
        """The texts of ``low`` to ``high`` characters (no bound above if None)."""
        if not self.edges:
            return self
        top = low if high is None else high

        def step(at: tuple[int, int]) -> Iterable[tuple[CharSet, tuple[int, int]]]:
            state, count = at
            if high is None or count < high:
                for chars, target in self.edges[state]:
                    yield chars, (target, min(count + 1, top))

        return explore((0, 0), step, lambda at: at[0] in self.accepting and at[1] >= low)


NOTHING = Automaton((), frozenset())


def explore(
    start: Hashable, step: Callable[..., Iterable[tuple[CharSet, Hashable]]], accepts: Callable[..., bool]
) -> Automaton:
    """The automaton of all states that ``step`` leads to, without the dead ones.

    Args:
        start: the first state.
        step: a state's disjoint character sets and next states.
        accepts: whether a text may end at a state.

    Raises:
        TooLarge: there are too many states.
    """
    numbers: dict[Hashable, int] = {start: 0}
    order = [start]
    edges: list[dict[int, CharSet]] = []
    for state in order:
        merged: dict[int, list[CharSet]] = {}
        for chars, target in step(state):
            number = numbers.get(target)
            if number is None:
                number = numbers[target] = len(order)
                if number > _MOST_STATES:
                    raise TooLarge(f"more than {_MOST_STATES} states")
                order.append(target)
            merged.setdefault(number, []).append(chars)
        edges.append({target: sets[0] if len(sets) == 1 else union(*sets) for target, sets in merged.items()})
    return _tidy(edges, {number for state, number in numbers.items() if accepts(state)})


def _tidy(edges: list[dict[int, CharSet]], accepting: set[int]) -> Automaton:
    """Drop dead states, merge states that are plainly alike, number the rest from the start."""
    back: list[list[int]] = [[] for _ in edges]
    for state, targets in enumerate(edges):
        for target in targets:
            back[target].append(state)
    alive = set(accepting)
    todo = list(alive)
    while todo:
        for state in back[todo.pop()]:
            if state not in alive:
                alive.add(state)
                todo.append(state)
    if 0 not in alive:
        return NOTHING
    # Bottom-up: a state whose edges and acceptance equal another's is that other. Later states lead back less often,
    # so going from the last to the first finds nearly all in one pass.
    known: dict[tuple[bool, frozenset[tuple[int, CharSet]]], int] = {}
    same: dict[int, int] = {}
    for state in range(len(edges) - 1, -1, -1):
        if state not in alive:
            continue
        merged: dict[int, list[CharSet]] = {}
        for target, chars in edges[state].items():
            if target in alive:
                resolved = -1 if target == state else same.get(target, target)
                merged.setdefault(resolved, []).append(chars)
        row = {target: sets[0] if len(sets) == 1 else union(*sets) for target, sets in merged.items()}
        edges[state] = row
        key = (state in accepting, frozenset(row.items()))
        same[state] = known.setdefault(key, state)
    start = same[0]
    numbers = {start: 0}
    order = [start]
    rows: list[Edges] = []
    for state in order:
        row_edges: list[tuple[CharSet, int]] = []
        for target, chars in edges[state].items():
            final = state if target == -1 else same.get(target, target)
            if final not in numbers:
                numbers[final] = len(order)
                order.append(final)
            row_edges.append((chars, numbers[final]))
        rows.append(tuple(row_edges))
    return Automaton(tuple(rows), frozenset(numbers[state] for state in order if state in accepting))


def from_words(words: Iterable[str]) -> Automaton:
    """The automaton of a finite set of texts."""
    children: list[dict[str, int]] = [{}]
    accepting: set[int] = set()
    for word in words:
        state = 0
        for char in word:
            target = children[state].get(char)
            if target is None:
                target = children[state][char] = len(children)
                children.append({})
            state = target
        accepting.add(state)
    merged: list[dict[int, CharSet]] = [
        {target: ((ord(char), ord(char)),) for char, target in row.items()} for row in children
    ]
    return _tidy(merged, accepting)


@lru_cache(maxsize=512)
def from_pattern(pattern: Pattern) -> Automaton:
    """The texts in which the pattern is found.

    Raises:
        TooLarge: the pattern counts too far, or its automaton explodes.
    """
    return _Nfa(pattern.node).determinise()


class _Nfa:
    """Thompson's construction; the edges of the text are arcs that only the first and the last step may take."""

    def __init__(self, node: Node) -> None:
        self.arcs: list[list[tuple[CharSet, int]]] = []
        self.free: list[list[int]] = []
        self.at_start: list[list[int]] = []
        self.at_end: list[list[int]] = []
        self.start = self.state()
        self.final = self.state()
        self.arcs[self.start].append((ANY, self.start))
        self.arcs[self.final].append((ANY, self.final))
        self.free[self.build(node, self.start)].append(self.final)

    def state(self) -> int:
        if len(self.arcs) > 4 * _MOST_STATES:
            raise TooLarge("the pattern counts too far")
        for table in (self.arcs, self.free, self.at_start, self.at_end):
            table.append([])
        return len(self.arcs) - 1

    def build(self, node: Node, entry: int) -> int:
        """Add the node behind ``entry``; returns its exit."""
        match node:
            case Set(chars):
                end = self.state()
                if chars:
                    self.arcs[entry].append((chars, end))
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
                if high is None:
                    loop = self.state()
                    self.free[entry].append(loop)
                    self.free[self.build(item, loop)].append(loop)
                    return loop
                end = self.state()
                for _ in range(high - low):
                    self.free[entry].append(end)
                    entry = self.build(item, entry)
                self.free[entry].append(end)
                return end

    def closure(self, states: Iterable[int], *tables: list[list[int]]) -> frozenset[int]:
        seen = set(states)
        todo = list(seen)
        while todo:
            state = todo.pop()
            for table in tables:
                for target in table[state]:
                    if target not in seen:
                        seen.add(target)
                        todo.append(target)
        return frozenset(seen)

    def determinise(self) -> Automaton:
        begin = self.closure([self.start], self.free, self.at_start)
        # The very start may pass both edges at once (the empty text), so it is a state of its own.
        first = (True, begin)

        def step(state: tuple[bool, frozenset[int]]) -> Iterable[tuple[CharSet, tuple[bool, frozenset[int]]]]:
            if self.final in state[1]:
                yield ANY, (False, frozenset([self.final]))
                return
            arcs = [arc for number in state[1] for arc in self.arcs[number]]
            for chars, targets in split(arcs):
                reached = self.closure(targets, self.free)
                yield chars, (False, frozenset([self.final]) if self.final in reached else reached)

        def accepts(state: tuple[bool, frozenset[int]]) -> bool:
            tables = (self.free, self.at_start, self.at_end) if state[0] else (self.free, self.at_end)
            return self.final in state[1] or self.final in self.closure(state[1], *tables)

        return explore(first, step, accepts)


def split(arcs: list[tuple[CharSet, int]]) -> list[tuple[CharSet, frozenset[int]]]:
    """Overlapping character sets cut into disjoint ones, each with all the targets it leads to."""
    by_chars: dict[CharSet, set[int]] = {}
    for chars, target in arcs:
        by_chars.setdefault(chars, set()).add(target)
    if len(by_chars) == 1:
        chars, targets = next(iter(by_chars.items()))
        return [(chars, frozenset(targets))]
    parts: list[tuple[CharSet, frozenset[int]]] = []
    for chars, targets in by_chars.items():
        rest = chars
        cut: list[tuple[CharSet, frozenset[int]]] = []
        for known, owners in parts:
            both = intersection(known, rest) if rest else ()
            if not both:
                cut.append((known, owners))
                continue
            cut.append((both, owners | targets))
            if left := difference(known, both):
                cut.append((left, owners))
            rest = difference(rest, both)
        if rest:
            cut.append((rest, frozenset(targets)))
        parts = cut
    return parts
