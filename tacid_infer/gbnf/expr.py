"""Expressions of the grammar language, as values.

They are compared and hashed by content; each keeps its hash, once it is asked for.
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
        try:
            return self._hash
        except AttributeError:
            self._hash = hash(self._fields())
            return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(self) is not type(other):
            return NotImplemented
        assert isinstance(other, _Value)
        return self._fields() == other._fields()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self._fields()))})"


class Lit(_Value):
    """Exactly this text."""

    __slots__ = ("text",)
    __match_args__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __hash__(self) -> int:
        return hash(self.text)

    def __eq__(self, other: object) -> bool:
        return type(other) is Lit and self.text == other.text

    def _fields(self) -> tuple[Any, ...]:
        return (self.text,)


class Chars(_Value):
    """One character out of the code point ranges (inclusive), or out of all others if ``negated``."""

    __slots__ = ("negated", "ranges")
    __match_args__ = ("ranges", "negated")

    def __init__(self, ranges: tuple[tuple[int, int], ...], negated: bool = False) -> None:
        self.ranges = ranges
        self.negated = negated

    def _fields(self) -> tuple[Any, ...]:
        return (self.ranges, self.negated)


class Ref(_Value):
    """The rule of this name. One that begins with ``LOCAL`` is local to its part of the grammar (see ``write``)."""

    __slots__ = ("name",)
    __match_args__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return type(other) is Ref and self.name == other.name

    def _fields(self) -> tuple[Any, ...]:
        return (self.name,)


class Seq(_Value):
    """The items, one after the other. Empty: the empty text."""

    __slots__ = ("items",)
    __match_args__ = ("items",)

    def __init__(self, items: tuple[Expr, ...]) -> None:
        self.items = items

    def _fields(self) -> tuple[Any, ...]:
        return self.items


class Alt(_Value):
    """Any one of the alternatives. Empty: no text at all."""

    __slots__ = ("options",)
    __match_args__ = ("options",)

    def __init__(self, options: tuple[Expr, ...]) -> None:
        self.options = options

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
        kind = type(item)
        if kind is Ref:
            flat.append(item)
        elif kind is Lit:
            if flat and type(flat[-1]) is Lit:
                flat[-1] = Lit(flat[-1].text + item.text)  # type: ignore[union-attr]
            elif item.text:  # type: ignore[union-attr]
                flat.append(item)
        elif kind is Seq:
            parts = item.items  # type: ignore[union-attr]
            if flat and parts and type(flat[-1]) is Lit and type(parts[0]) is Lit:
                flat[-1] = Lit(flat[-1].text + parts[0].text)
                parts = parts[1:]
            flat.extend(parts)
        elif kind is Alt and not item.options:  # type: ignore[union-attr]
            return NEVER
        else:
            flat.append(item)
    return flat[0] if len(flat) == 1 else Seq(tuple(flat))


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
