"""The members of one form's object: which key may come next, and what its value must meet."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from .document import Site
from .forms import Form, Goal, key_goal
from .keys import closed, extras, name_filter
from .maker import Maker
from .shared import new_rule
from .values import quote

_ANY_ORDER = 4
"""Up to so many required keys are read in any order, where any order is wanted: each set of them is a state."""


class Key(NamedTuple):
    """A named key, and what its value must meet."""

    name: str
    goal: Goal
    required: bool


class State(NamedTuple):
    """Where one branch stands: the next key that it may name (in an open object: that it requires), which of the keys
    came that must be told apart, and how many."""

    at: int = 0
    seen: frozenset[str] = frozenset()
    number: int = 0


class Members:
    """What one form says of an object's members.

    Attributes:
        keys: the named ones, in their order.
        texts: of each, its JSON text behind the opening quote, up to the value.
        extras: the keys that nobody names, by class: the rule of their text, and their value's goal.
        required: the indices of those that must come.
        impossible: whether one of those is refused, so that no object is an instance.
        in_any_order: whether those that must come may do so in any order.
        watched: the names that a state remembers.
        counts: whether a state counts the keys.
    """

    def __init__(self, form: Form, site: Site, maker: Maker) -> None:
        self.site = site
        self.maker = maker
        allowed = name_filter(form, maker)
        maps = closed(form, site, maker)
        names = _named(form)
        kept = names if allowed is None else [name for name in names if allowed.accepts(name)]
        if form.min_keys and form.min_keys > sum(
            all(one.schema is not False for one in key_goal(form.keys, name)) for name in kept
        ):
            maps = form.keys  # Closed, it would have too few keys ever to be complete.
        self.keys = [Key(name, key_goal(maps, name), name in form.required) for name in kept]
        self.impossible = len(form.required) > len(form.required.keys() & kept)
        self.stops = _stops(self.keys)
        self.least = form.min_keys
        self.most = form.max_keys
        self.dependents = [(key, needs) for key, needs, _ in form.dependents]
        self.texts = [quote(key.name)[1:] + ": " for key in self.keys]
        unnamed = extras(maps, kept or names, allowed, site, maker)
        self.extras = [(new_rule(key, maker), goal) for key, goal in unnamed]
        self.open = maker.open_objects
        self.required = [index for index, key in enumerate(self.keys) if key.required]
        self.required_names = frozenset(form.required)
        self.in_any_order = self.open and len(self.required) <= _ANY_ORDER
        self.watched = self._watched()
        self.counts = self.least > len(self.required) or self.most is not None
        self.form = form

    def _watched(self) -> set[str]:
        """The keys that a state remembers."""
        watched = {name for key, needs in self.dependents for name in (key, *needs)}
        if self.in_any_order:
            watched |= self.required_names
        return watched

    def ignore_counts(self) -> None:
        """Widen: too many states to tell apart."""
        if self.counts:
            keyword = "maxProperties" if self.most is not None else "minProperties"
            self.maker.report(self.site, keyword, "too many combinations of keys to count")
        for _, _, site in self.form.dependents:
            self.maker.report(site, "dependentRequired", "too many combinations of keys to tell apart")
        self.counts, self.least, self.most = False, 0, None
        self.dependents = []
        self.watched = self._watched()

    def may_close(self, state: State) -> bool:
        if not self.is_complete(state) or (self.counts and state.number < self.least):
            return False
        return not self.dependents or all(
            key not in state.seen or state.seen.issuperset(needs) for key, needs in self.dependents
        )

    def is_complete(self, state: State) -> bool:
        """Whether every required key has come."""
        if self.in_any_order:
            return self.required_names <= state.seen
        return state.at == len(self.required) if self.open else self.stops[state.at] is None

    def takes_unnamed(self, state: State) -> bool:
        """Whether a key that no schema names may come next."""
        return (self.open or self.is_complete(state)) and self.has_room(state)

    def has_room(self, state: State) -> bool:
        return not self.counts or self.most is None or state.number < self.most

    def reach(self, state: State) -> Sequence[int]:
        """The named keys that may come next: in order, up to the first one that must come."""
        if not self.has_room(state):
            return ()
        if not self.open:
            stop = self.stops[state.at]
            return range(state.at, len(self.keys) if stop is None else stop + 1)
        wanted = self.required if self.in_any_order else self.required[state.at : state.at + 1]
        return [
            index
            for index, key in enumerate(self.keys)
            if not key.required or (index in wanted and key.name not in state.seen)
        ]

    def after(self, state: State, index: int | None) -> State:
        """The state behind the named key of this index; behind an unnamed one if there is none."""
        if index is None and self.open and not self.counts:
            return state
        at, seen, number = state
        key = None if index is None else self.keys[index]
        if key is not None and key.name in self.watched:
            seen = seen | {key.name}
        if self.counts:
            number = min(number + 1, max(self.least, self.most or 0))
        if not self.open:
            at = len(self.keys) if index is None else index + 1
        elif key is not None and key.required and not self.in_any_order:
            at += 1
        return State(at, seen, number)


def _named(form: Form) -> list[str]:
    """The keys that a form names: first its properties, then what it only requires, or makes others depend on."""
    dependents = [(key, *needs) for key, needs, _ in form.dependents]
    return list(dict.fromkeys(chain(*[keys.named for keys in form.keys], form.required, *dependents)))


def _stops(keys: list[Key]) -> list[int | None]:
    """For each index, that of the next required key at or behind it."""
    stops: list[int | None] = [None]
    for index in range(len(keys) - 1, -1, -1):
        stops.append(index if keys[index].required else stops[-1])
    return stops[::-1]
