"""The normal form: one conjunction of plain constraints, closed under intersection (every keyword only adds to it)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple, TypeAlias

from ..regular import Pattern, from_pattern
from .document import Site
from .values import ALL_TYPES

Goal: TypeAlias = tuple[Site, ...]
"""Sites that one value must satisfy together."""


class TextRule(NamedTuple):
    """A pattern that a string must, or must not, match; ``site`` and ``keyword`` say where it was demanded."""

    pattern: Pattern
    site: Site
    keyword: str
    negated: bool = False


class KeyRule(NamedTuple):
    """A ``patternProperties`` entry; ``pattern`` is None where the pattern has no automaton."""

    pattern: Pattern | None
    site: Site


class KeyMap(NamedTuple):
    """One schema's say on an object's keys: ``properties``, ``patternProperties`` and ``additionalProperties``.

    Attributes:
        closes: whether a turn may close the object because of it: it names properties, and a caller wrote it.
    """

    site: Site
    named: Mapping[str, Site]
    patterns: tuple[KeyRule, ...]
    others: Site | None
    closes: bool = False


def open_map(site: Site) -> KeyMap:
    """Says that every key is admitted: no turn closes the object, and no ``unevaluatedProperties`` refuses any."""
    return KeyMap(site, {}, (), Site(True, site, ()), closes=True)


class ItemMap(NamedTuple):
    """One schema's say on an array's items: those of fixed position, and the rest."""

    site: Site
    prefix: tuple[Site, ...]
    rest: Site | None


class Form:
    """One alternative: every constraint of it holds at once. Unset bounds are None."""

    __slots__ = (
        "dependents", "excluded", "high", "high_open", "items", "keys", "literals", "low", "low_open", "max_items",
        "max_keys", "max_length", "min_items", "min_keys", "min_length", "multiples", "names", "required", "texts",
        "types",
    )  # fmt: skip

    types: int
    literals: dict[Any, tuple[Any, Site]] | None
    excluded: tuple[tuple[Any, Site], ...]
    low: Decimal | None
    low_open: bool
    high: Decimal | None
    high_open: bool
    multiples: tuple[tuple[Decimal, Site], ...]
    min_length: int
    max_length: int | None
    texts: tuple[TextRule, ...]
    items: tuple[ItemMap, ...]
    min_items: int
    max_items: int | None
    keys: tuple[KeyMap, ...]
    required: dict[str, Site]
    names: tuple[Site, ...]
    min_keys: int
    max_keys: int | None
    dependents: tuple[tuple[str, tuple[str, ...], Site], ...]

    def __init__(self) -> None:
        self.types = ALL_TYPES
        self.literals = None
        self.excluded = ()
        self.low = self.high = None
        self.low_open = self.high_open = False
        self.multiples = ()
        self.min_length = self.min_items = self.min_keys = 0
        self.max_length = self.max_items = self.max_keys = None
        self.texts = ()
        self.items = ()
        self.keys = ()
        self.required = {}
        self.names = ()
        self.dependents = ()

    def copy(self) -> Form:
        """The same constraints, to be added to."""
        twin = Form.__new__(Form)
        for name in Form.__slots__:
            setattr(twin, name, getattr(self, name))
        return twin

    def is_empty(self) -> bool:
        """Whether the form is plainly without instances (a False proves nothing)."""
        return self.types == 0 or self.literals == {}

    def raise_low(self, bound: Decimal, is_open: bool) -> None:
        """Numbers must be at least, or more than, the bound."""
        if self.low is None or bound > self.low or (bound == self.low and is_open):
            self.low, self.low_open = bound, is_open

    def drop_high(self, bound: Decimal, is_open: bool) -> None:
        """Numbers must be at most, or less than, the bound."""
        if self.high is None or bound < self.high or (bound == self.high and is_open):
            self.high, self.high_open = bound, is_open


def key_goal(maps: tuple[KeyMap, ...], name: str) -> Goal:
    """What the key maps together demand of the value under this key."""
    goal: dict[Site, None] = {}
    for keys in maps:
        matched = name in keys.named
        if matched:
            goal[keys.named[name]] = None
        for rule in keys.patterns:
            if rule.pattern is None:
                matched = True  # Nobody can tell: demand nothing.
            elif from_pattern(rule.pattern).accepts(name):
                matched = True
                goal[rule.site] = None
        if not matched and keys.others is not None:
            goal[keys.others] = None
    return demanding(goal)


def demanding(sites: Iterable[Site]) -> Goal:
    """The sites as a goal, without those that demand nothing: equal demands must be equal goals, or a recursive schema
    would never come to its end."""
    return tuple([site for site in dict.fromkeys(sites) if site.schema is not True])
