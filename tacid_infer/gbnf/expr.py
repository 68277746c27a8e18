"""Expressions of the grammar language, as values.

They are compared and hashed by content, all the time; so each keeps its hash, and equality looks at that first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias


class _Value:
    """An immutable value of one or more fields."""

    __slots__ = ("_hash",)

    _hash: int

    def _fields(self) -> tuple[Any, ...]:
        raise NotImplementedError

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(self) is not type(other):
            return NotImplemented
        assert isinstance(other, _Value)
        return self._hash == other._hash and self._fields() == other._fields()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self._fields()))})"


class Lit(_Value):
    """Exactly this text."""

    __slots__ = ("text",)
    __match_args__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text
        self._hash = hash(text)

    def _fields(self) -> tuple[Any, ...]:
        return (self.text,)


class Chars(_Value):
    """One character out of the code point ranges (inclusive), or out of all others if ``negated``."""

    __slots__ = ("negated", "ranges")
    __match_args__ = ("ranges", "negated")

    def __init__(self, ranges: tuple[tuple[int, int], ...], negated: bool = False) -> None:
        self.ranges = ranges
        self.negated = negated
        self._hash = hash((ranges, negated))

    def _fields(self) -> tuple[Any, ...]:
        return (self.ranges, self.negated)


class Ref(_Value):
    """The rule of this name. A name that begins with "." is local to its part of the grammar (see ``write``)."""

    __slots__ = ("name",)
    __match_args__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name
        self._hash = hash((name,))

    def _fields(self) -> tuple[Any, ...]:
        return (self.name,)


class Seq(_Value):
    """The items, one after the other. Empty: the empty text."""

    __slots__ = ("items",)
    __match_args__ = ("items",)

    def __init__(self, items: tuple[Expr, ...]) -> None:
        self.items = items
        self._hash = hash((1, items))

    def _fields(self) -> tuple[Any, ...]:
        return self.items


class Alt(_Value):
    """Any one of the alternatives. Empty: no text at all."""

    __slots__ = ("options",)
    __match_args__ = ("options",)

    def __init__(self, options: tuple[Expr, ...]) -> None:
        self.options = options
        self._hash = hash((2, options))

    def _fields(self) -> tuple[Any, ...]:
        return self.options


class Rep(_Value):
    """The item, ``low`` to ``high`` times; without a bound above if ``high`` is None."""

    __slots__ = ("high", "item", "low")
    __match_args__ = ("item", "low", "high")

    def __init__(self, item: Expr, low: int, high: int | None) -> None:
        self.item = item
        self.low = low
        self.high = high
        self._hash = hash((item, low, high))

    def _fields(self) -> tuple[Any, ...]:
        return (self.item, self.low, self.high)


Expr: TypeAlias = Lit | Chars | Ref | Seq | Alt | Rep
Rules: TypeAlias = dict[str, Expr]
Define: TypeAlias = Callable[[Expr], Ref]
"""Gives an expression a rule of its own."""

EMPTY = Seq(())
NEVER = Alt(())


def seq(*items: Expr) -> Expr:
    """The items in sequence: flattened, neighbouring literals joined, NEVER if one of them is."""
    flat: list[Expr] = []
    for item in items:
        if type(item) is Seq:
            for part in item.items:
                _append(flat, part)
        elif type(item) is Alt and not item.options:
            return NEVER
        else:
            _append(flat, item)
    return flat[0] if len(flat) == 1 else Seq(tuple(flat))


def _append(flat: list[Expr], item: Expr) -> None:
    if type(item) is Lit:
        if not item.text:
            return
        if flat:
            last = flat[-1]
            if type(last) is Lit:
                flat[-1] = Lit(last.text + item.text)
                return
    flat.append(item)


def alt(options: Iterable[Expr]) -> Expr:
    """Any of the options: flattened, repeated ones dropped."""
    flat: dict[Expr, None] = {}
    for option in options:
        if type(option) is Alt:
            for part in option.options:
                flat[part] = None
        else:
            flat[option] = None
    return next(iter(flat)) if len(flat) == 1 else Alt(tuple(flat))
