"""Deterministic automata over Unicode text, closed under every operation on the sets of their texts.

An automaton knows characters only by class, with sets of classes as the bits of integers, and a state lists only what
leads elsewhere than the rest: that keeps the products of many automata small, whatever the alphabet.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property, reduce
from operator import or_
from typing import Any, TypeAlias

from .charset import ANY, CharSet, bits, complement, partition, union

Row: TypeAlias = tuple[int, dict[int, int]]
"""Where a state leads by default, and where else, with the classes that lead there. ``NOWHERE`` ends the text there."""

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
        known: dict[int, CharSet] = {}

        def any_of(classes: int) -> CharSet:
            if classes not in known:
                known[classes] = union(*[self.alphabet[number] for number in bits(classes)])
            return known[classes]

        others: dict[int, CharSet] = {0: ANY}
        found: list[list[tuple[CharSet, int]]] = []
        for default, row in self.rows:
            edges = [(any_of(classes), target) for target, classes in row.items() if target != NOWHERE]
            if default != NOWHERE:
                classes = reduce(or_, row.values(), 0)
                if classes not in others:
                    others[classes] = complement(any_of(classes))
                edges.append((others[classes], default))
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
            number = classes[bisect_right(starts, ord(char)) - 1]
            state = next((target for target, some in row.items() if some >> number & 1), default)
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
            default != NOWHERE and NOWHERE not in row for default, row in self.rows
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

        def step(at: tuple[int, int]) -> tuple[Hashable, dict[Any, int]]:
            state, count = at
            if high is not None and count >= high:
                return None, {}
            default, row = self.rows[state]
            after = min(count + 1, top)

            def go(target: int) -> Hashable:
                return None if target == NOWHERE else (target, after)

            return go(default), {go(target): classes for target, classes in row.items()}

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
        self.alphabet, members = partition([chars for automaton in automata for chars in automaton.alphabet])
        every = (1 << len(self.alphabet)) - 1
        tables: list[list[Row]] = []
        for automaton in automata:
            table = _joint(automaton, members)
            del members[: len(automaton.alphabet)]
            table.append((NOWHERE, {}))  # Row -1: once nowhere, always nowhere.
            tables.append(table)

        def step(state: tuple[int, ...]) -> tuple[Hashable, dict[Any, int]]:
            parts = [table[at] for table, at in zip(tables, state, strict=True)]
            ways: dict[tuple[int, ...], int] = {(): every}
            for default, row in parts:
                after: dict[tuple[int, ...], int] = {}
                for targets, left in ways.items():
                    for target, classes in row.items():
                        if some := left & classes:
                            after[*targets, target] = some
                            left ^= some
                    if left:
                        after[*targets, default] = left
                ways = after
            return usual_way(tuple([default for default, _ in parts]), ways)

        start = tuple(0 if automaton.rows else NOWHERE for automaton in automata)
        states, self.rows = explore(start, step)
        ends = [automaton.accepting for automaton in automata]
        self.found = [tuple([at in end for at, end in zip(state, ends, strict=True)]) for state in states]
        """For each state, which of the automata accept the text that ends there."""

    def where(self, accepts: Callable[[tuple[bool, ...]], bool]) -> Automaton:
        """The texts for which ``accepts`` holds, given which of the automata accept them."""
        verdicts = {found: accepts(found) for found in set(self.found)}
        return tidied(self.alphabet, self.rows, {state for state, found in enumerate(self.found) if verdicts[found]})


def _joint(automaton: Automaton, members: Sequence[int]) -> list[Row]:
    """The rows of an automaton by the classes of an alphabet that tells more characters apart."""
    known: dict[int, int] = {}

    def joint(classes: int) -> int:
        if classes not in known:
            known[classes] = reduce(or_, [members[number] for number in bits(classes)])
        return known[classes]

    return [(default, {target: joint(some) for target, some in row.items()}) for default, row in automaton.rows]


def usual_way(usual: Hashable, ways: dict[Any, int]) -> tuple[Hashable, dict[Any, int]]:
    """Of all the ways that lead on from a state, the usual one (another, if no class takes it), and the others."""
    if usual not in ways:
        usual = max(ways, key=lambda way: ways[way].bit_count())
    del ways[usual]
    return usual, ways


def explore(start: Any, step: Callable[[Any], tuple[Hashable, dict[Any, int]]]) -> tuple[list[Any], list[Row]]:
    """All states that ``step`` leads to, the start first, and their rows. A target of None is nowhere.

    Raises:
        TooLarge: there are too many states.
    """
    numbers: dict[Any, int] = {start: 0, None: NOWHERE}
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
        rows.append((number(usual), {number(target): classes for target, classes in others.items()}))
    return order, rows


def tidied(alphabet: Sequence[CharSet], rows: Sequence[Row], accepting: set[int]) -> Automaton:
    """The automaton of these rows without dead states and classes that make no difference, alike states merged."""
    back: list[list[int]] = [[] for _ in rows]
    for state, (default, row) in enumerate(rows):
        for target in (default, *row):
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
        usual, others = merged[state] = _renamed(rows[state], same)
        shape = (
            state in accepting,
            itself if usual == state else usual,
            frozenset([(itself if target == state else target, classes) for target, classes in others.items()]),
        )
        same[state] = known.setdefault(shape, state)
    numbers = {NOWHERE: NOWHERE, same[0]: 0}
    order = [same[0]]
    for state in order:
        merged[state] = usual, others = _renamed(merged[state], same)
        for target in (usual, *others):
            if target not in numbers:
                numbers[target] = len(order)
                order.append(target)
    final = [_renamed(merged[state], numbers) for state in order]
    ends = frozenset(number for number, state in enumerate(order) if state in accepting)
    return Automaton(*_used(alphabet, final), ends)


def _renamed(row: Row, names: Mapping[int, int]) -> Row:
    """The row, with its targets under other numbers."""
    default, others = row
    usual = names[default]
    found: dict[int, int] = {}
    for target, classes in others.items():
        name = names[target]
        if name != usual:
            found[name] = found.get(name, 0) | classes
    return usual, found


def _targets_first(rows: Sequence[Row], alive: set[int]) -> list[int]:
    """The live states that the start leads to, each behind all that it leads to, but for cycles."""
    order: list[int] = []
    seen = {0}
    path = [(0, iter([rows[0][0], *rows[0][1]]))]
    while path:
        state, targets = path[-1]
        for target in targets:
            if target in alive and target not in seen:
                seen.add(target)
                path.append((target, iter([rows[target][0], *rows[target][1]])))
                break
        else:
            order.append(state)
            path.pop()
    return order


def _used(alphabet: Sequence[CharSet], rows: list[Row]) -> tuple[Sequence[CharSet], list[Row]]:
    """The classes that make a difference, and the rows by them."""
    groups = [(1 << len(alphabet)) - 1]
    sets = {classes for _, row in rows for classes in row.values()}
    for classes in sets:
        groups = [part for group in groups for part in (group & classes, group & ~classes) if part]
    if len(groups) == len(alphabet):
        return alphabet, rows
    groups.sort()
    renamed = {classes: sum(1 << number for number, group in enumerate(groups) if group & classes) for classes in sets}
    merged = [union(*[alphabet[number] for number in bits(group)]) for group in groups]
    return merged, [(default, {target: renamed[classes] for target, classes in row.items()}) for default, row in rows]


def from_words(words: Iterable[str]) -> Automaton:
    """The automaton of a finite set of texts."""
    tries: list[dict[str, int]] = [{}]
    accepting: set[int] = set()
    for word in words:
        state = 0
        for char in word:
            target = tries[state].get(char)
            if target is None:
                target = tries[state][char] = len(tries)
                tries.append({})
            state = target
        accepting.add(state)
    classes = {char: number for number, char in enumerate(dict.fromkeys(char for ways in tries for char in ways))}
    alphabet: list[CharSet] = [((ord(char), ord(char)),) for char in classes]
    rows: list[Row] = [(NOWHERE, {target: 1 << classes[char] for char, target in ways.items()}) for ways in tries]
    return tidied([*alphabet, complement(union(*alphabet))], rows, accepting)
