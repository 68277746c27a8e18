"""Deterministic automata over Unicode text, closed under every operation on the sets of their texts.

An automaton knows characters only by class, and a state lists only the classes that lead elsewhere than the rest: that
keeps the products of many automata small, whatever the alphabet.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property
from typing import Any, TypeAlias

from .charset import ANY, CharSet, complement, partition, union

Row: TypeAlias = tuple[int, dict[int, int]]
"""Where a state leads: by default, and for the classes that lead elsewhere. ``NOWHERE`` ends the text there."""

NOWHERE = -1
MOST_STATES = 3000


class TooLarge(Exception):
    """The automaton would have more states than are worth writing down."""


class Automaton:
    """A deterministic automaton without dead states. State 0 is the start; no state at all is the empty language.

    Attributes:
        alphabet: disjoint classes of characters that cover all of them.
        rows: where each state leads, by class.
        accepting: the states at which a text may end.
    """

    def __init__(self, alphabet: Sequence[CharSet], rows: Sequence[Row], accepting: frozenset[int]) -> None:
        self.alphabet = alphabet
        self.rows = rows
        self.accepting = accepting

    @cached_property
    def edges(self) -> list[list[tuple[CharSet, int]]]:
        """For each state, disjoint character sets and where they lead."""
        found: list[list[tuple[CharSet, int]]] = []
        unions: dict[tuple[int, ...], CharSet] = {(number,): chars for number, chars in enumerate(self.alphabet)}
        others: dict[tuple[int, ...], CharSet] = {}

        def any_of(numbers: tuple[int, ...]) -> CharSet:
            if numbers not in unions:
                unions[numbers] = union(*[self.alphabet[number] for number in numbers])
            return unions[numbers]

        for default, row in self.rows:
            by_target: dict[int, tuple[int, ...]] = {}
            for number, target in row.items():
                by_target[target] = (*by_target.get(target, ()), number)
            edges = [(any_of(numbers), target) for target, numbers in by_target.items() if target != NOWHERE]
            if default != NOWHERE:
                numbers = tuple(row)
                if numbers not in others:
                    others[numbers] = complement(any_of(numbers))
                edges.append((others[numbers], default))
            found.append(edges)
        return found

    @cached_property
    def _classes(self) -> tuple[list[int], list[int]]:
        """The first character of each run of one class, and that class."""
        spans = sorted((low, number) for number, chars in enumerate(self.alphabet) for low, _ in chars)
        return [low for low, _ in spans], [number for _, number in spans]

    def accepts(self, text: str) -> bool:
        """Whether the text is in the language."""
        if not self.rows:
            return False
        starts, classes = self._classes
        state = 0
        for char in text:
            default, row = self.rows[state]
            state = row.get(classes[bisect_right(starts, ord(char)) - 1], default)
            if state == NOWHERE:
                return False
        return state in self.accepting

    def words(self, most: int) -> list[str] | None:
        """The texts, if there are no more than ``most``."""
        found: list[str] = []
        todo = [(0, "")] if self.rows else []
        while todo:
            state, text = todo.pop()
            if state in self.accepting:
                found.append(text)
            if len(text) > len(self.rows):
                return None  # It went round, and can do so again.
            for chars, target in self.edges[state]:
                if sum(high - low + 1 for low, high in chars) > most:
                    return None
                todo += [(target, text + chr(point)) for low, high in chars for point in range(low, high + 1)]
            if len(found) + len(todo) > most:
                return None  # Every way leads to a text: there are no dead states.
        return found

    def is_universal(self) -> bool:
        """Whether every text is in the language: every state accepts, and leads on whatever comes."""
        return 0 < len(self.rows) == len(self.accepting) and all(
            default != NOWHERE and NOWHERE not in row.values() for default, row in self.rows
        )

    def intersect(self, other: Automaton) -> Automaton:
        """The texts of both."""
        return Product([self, other]).where(all)

    def union(self, other: Automaton) -> Automaton:
        """The texts of either."""
        return Product([self, other]).where(any)

    def complement(self) -> Automaton:
        """Every other text."""
        return Product([self]).where(lambda found: not found[0])

    def limit(self, low: int, high: int | None) -> Automaton:
        """The texts of ``low`` to ``high`` characters (no bound above if None)."""
        if not self.rows:
            return self
        top = low if high is None else high

        def step(at: tuple[int, int]) -> tuple[Hashable, dict[int, Hashable]]:
            state, count = at
            if high is not None and count >= high:
                return None, {}
            default, row = self.rows[state]
            after = min(count + 1, top)

            def go(target: int) -> Hashable:
                return None if target == NOWHERE else (target, after)

            return go(default), {number: go(target) for number, target in row.items()}

        states, rows = explore((0, 0), step)
        ends = {number for number, (state, count) in enumerate(states) if state in self.accepting and count >= low}
        return tidied(self.alphabet, rows, ends)


NOTHING = Automaton((ANY,), (), frozenset())
ANYTHING = Automaton((ANY,), ((0, {}),), frozenset((0,)))


class Product:
    """Several automata that read one text together.

    Raises:
        TooLarge: they have too many states together.
    """

    def __init__(self, automata: Sequence[Automaton]) -> None:
        classes = [chars for automaton in automata for chars in automaton.alphabet]
        self.alphabet, members = partition(classes)
        tables: list[list[Row]] = []
        for automaton in automata:
            joint, members = members[: len(automaton.alphabet)], members[len(automaton.alphabet) :]
            table: list[Row] = [
                (default, {one: target for number, target in row.items() for one in joint[number]})
                for default, row in automaton.rows
            ]
            table.append((NOWHERE, {}))  # Row -1: once nowhere, always nowhere.
            tables.append(table)
        every = len(self.alphabet)

        def step(state: tuple[int, ...]) -> tuple[Hashable, dict[int, Hashable]]:
            parts = [table[at] for table, at in zip(tables, state, strict=True)]
            usual: Hashable = tuple([default for default, _ in parts])
            numbers: set[int] = set().union(*[row for _, row in parts])
            others: dict[int, Hashable] = {
                number: tuple([row.get(number, default) for default, row in parts]) for number in numbers
            }
            if len(others) == every:  # No class leads the usual way: another way is the usual one.
                usual = next(iter(others.values()))
            return usual, {number: target for number, target in others.items() if target != usual}

        start = tuple(0 if automaton.rows else NOWHERE for automaton in automata)
        states, self.rows = explore(start, step)
        ends = [automaton.accepting for automaton in automata]
        self.found = [tuple([at in end for at, end in zip(state, ends, strict=True)]) for state in states]
        """For each state, which of the automata accept the text that ends there."""

    def where(self, accepts: Callable[[tuple[bool, ...]], bool]) -> Automaton:
        """The texts for which ``accepts`` holds, given which of the automata accept them."""
        verdicts = {found: accepts(found) for found in set(self.found)}
        return tidied(self.alphabet, self.rows, {state for state, found in enumerate(self.found) if verdicts[found]})


def explore(start: Any, step: Callable[[Any], tuple[Hashable, dict[int, Hashable]]]) -> tuple[list[Any], list[Row]]:
    """All states that ``step`` leads to, the start first, and their rows. A target of None is nowhere.

    Raises:
        TooLarge: there are too many states.
    """
    numbers: dict[Hashable, int] = {start: 0, None: NOWHERE}
    order: list[Any] = [start]
    rows: list[Row] = []

    def number(target: Hashable) -> int:
        known = numbers.get(target)
        if known is None:
            known = numbers[target] = len(order)
            if known > MOST_STATES:
                raise TooLarge(f"more than {MOST_STATES} states")
            order.append(target)
        return known

    for state in order:
        usual, others = step(state)
        rows.append((number(usual), {one: number(target) for one, target in others.items()}))
    return order, rows


def tidied(alphabet: Sequence[CharSet], rows: Sequence[Row], accepting: set[int]) -> Automaton:
    """The automaton of these rows without dead states and classes that make no difference, alike states merged."""
    back: list[list[int]] = [[] for _ in rows]
    for state, (default, row) in enumerate(rows):
        for target in {default, *row.values()}:
            if target != NOWHERE:
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
    # Bottom-up: a state whose row and acceptance equal another's is that other. Targets come first, so that without
    # cycles one pass finds all.
    itself = len(rows)
    same = {state: state if state in alive else NOWHERE for state in range(itself)}
    same[NOWHERE] = NOWHERE
    known: dict[tuple[bool, int, frozenset[tuple[int, int]]], int] = {}
    merged: dict[int, Row] = {}
    for state in _targets_first(rows, alive):
        default, row = rows[state]
        usual = same[default]
        others = {number: same[target] for number, target in row.items() if same[target] != usual}
        merged[state] = usual, others
        shape = (
            state in accepting,
            itself if usual == state else usual,
            frozenset([(number, itself if target == state else target) for number, target in others.items()]),
        )
        same[state] = known.setdefault(shape, state)
    numbers = {NOWHERE: NOWHERE, same[0]: 0}
    order = [same[0]]
    final: list[Row] = []
    for state in order:
        usual, others = merged[state]
        for target in (usual, *others.values()):
            target = same[target]
            if target not in numbers:
                numbers[target] = len(order)
                order.append(target)
        usual = numbers[same[usual]]
        ways = {number: numbers[same[target]] for number, target in others.items()}
        final.append((usual, {number: target for number, target in ways.items() if target != usual}))
    ends = frozenset(number for number, state in enumerate(order) if state in accepting)
    return Automaton(*_used(alphabet, final), ends)


def _targets_first(rows: Sequence[Row], alive: set[int]) -> list[int]:
    """The live states that the start leads to, each behind all that it leads to, but for cycles."""
    order: list[int] = []
    seen = {0}
    path = [(0, iter([rows[0][0], *rows[0][1].values()]))]
    while path:
        state, targets = path[-1]
        for target in targets:
            if target in alive and target not in seen:
                seen.add(target)
                path.append((target, iter([rows[target][0], *rows[target][1].values()])))
                break
        else:
            order.append(state)
            path.pop()
    return order


def _used(alphabet: Sequence[CharSet], rows: list[Row]) -> tuple[Sequence[CharSet], list[Row]]:
    """The classes that make a difference, and the rows by them."""
    ways: list[list[tuple[int, int]]] = [[] for _ in alphabet]
    for state, (_, row) in enumerate(rows):
        for number, target in row.items():
            ways[number].append((state, target))
    groups: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for number, way in enumerate(ways):
        groups.setdefault(tuple(way), []).append(number)
    if len(groups) == len(alphabet):
        return alphabet, rows
    renamed = {numbers[0]: new for new, numbers in enumerate(groups.values())}
    classes = [union(*(alphabet[number] for number in numbers)) for numbers in groups.values()]
    return classes, [
        (default, {renamed[number]: target for number, target in row.items() if number in renamed})
        for default, row in rows
    ]


def from_words(words: Iterable[str]) -> Automaton:
    """The automaton of a finite set of texts."""
    rows: list[Row] = [(NOWHERE, {})]
    classes: dict[str, int] = {}
    accepting: set[int] = set()
    for word in words:
        state = 0
        for char in word:
            number = classes.setdefault(char, len(classes))
            row = rows[state][1]
            target = row.get(number)
            if target is None:
                target = row[number] = len(rows)
                rows.append((NOWHERE, {}))
            state = target
        accepting.add(state)
    alphabet: list[CharSet] = [((ord(char), ord(char)),) for char in classes]
    return tidied([*alphabet, complement(union(*alphabet))], rows, accepting)
