"""Expressions of the grammar language, as plain values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Lit:
    """Exactly this text."""

    text: str


@dataclass(frozen=True, slots=True)
class Chars:
    """One character out of the code point ranges (inclusive), or out of all others if ``negated``."""

    ranges: tuple[tuple[int, int], ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Ref:
    """The rule of this name. A name that begins with "." is local to its part of the grammar (see ``write``)."""

    name: str


@dataclass(frozen=True, slots=True)
class Seq:
    """The items, one after the other. Empty: the empty text."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Alt:
    """Any one of the alternatives. Empty: no text at all."""

    options: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Rep:
    """The item, ``low`` to ``high`` times; without a bound above if ``high`` is None."""

    item: Expr
    low: int
    high: int | None


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
        if kind is Seq:
            for part in item.items:  # type: ignore[union-attr]
                _append(flat, part)
        elif item is NEVER:
            return NEVER
        else:
            _append(flat, item)
    return flat[0] if len(flat) == 1 else Seq(tuple(flat))


def _append(flat: list[Expr], item: Expr) -> None:
    if type(item) is Lit:
        if not item.text:
            return
        if flat and type(flat[-1]) is Lit:
            flat[-1] = Lit(flat[-1].text + item.text)
            return
    flat.append(item)


def alt(options: Iterable[Expr]) -> Expr:
    """Any of the options: flattened, repeated ones dropped."""
    flat: dict[Expr, None] = {}
    for option in options:
        if type(option) is Alt:
            flat.update(dict.fromkeys(option.options))
        else:
            flat[option] = None
    return next(iter(flat)) if len(flat) == 1 else Alt(tuple(flat))
