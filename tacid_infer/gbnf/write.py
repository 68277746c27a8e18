"""Writes rules as GBNF text: the only module that knows the notation.

Source: llama.cpp, ``grammars/README.md`` and ``parse_char`` and ``parse_sequence`` of ``src/llama-grammar.cpp``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from .expr import Alt, Chars, Expr, Lit, Ref, Rep, Seq

_SPECIAL = re.compile(r"[^ !#-\[\]-~]")
_LITERAL_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_CLASS_ESCAPES = {"]": "\\]", "[": "\\[", "\\": "\\\\", "-": "\\-", "^": "\\x5E", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


LOCAL = "\0"
"""Begins the name of a rule that is local to its part of the grammar, until ``scoped`` names the part."""


def write_rules(rules: Mapping[str, Expr]) -> str:
    """The rules (name to expression) as GBNF, one a line."""
    return "".join([f"{name} ::= {write(body)}\n" for name, body in rules.items()])


def nested(outer: Sequence[str], inner: str) -> str:
    """GBNF in which each of the outer texts (of ``write``) ends in a group that holds all behind it."""
    return " (".join([*outer, inner]) + ")" * len(outer)


def scoped(text: str, scope: str) -> str:
    """The text, its local names under this prefix (letters, digits and dashes). No other text holds ``LOCAL``."""
    return text.replace(LOCAL, scope)


def write(expr: Expr) -> str:
    """One expression as GBNF, as the body of a rule."""
    if type(expr) is Alt:
        return " | ".join([_sequence(option) for option in expr.options])
    return _sequence(expr)


def _sequence(expr: Expr) -> str:
    items = expr.items if type(expr) is Seq else (expr,)
    # Most are of these two kinds, and most of the time is here.
    return (
        " ".join(
            [
                item.name if type(item) is Ref else literal(item.text) if type(item) is Lit else _term(item)
                for item in items
            ]
        )
        or '""'
    )


def _term(expr: Expr) -> str:
    kind = type(expr)
    if kind is Ref:
        return expr.name  # type: ignore[union-attr]
    if kind is Lit:
        return literal(expr.text)  # type: ignore[union-attr]
    if kind is Chars:
        return _class(expr.ranges, expr.negated)  # type: ignore[union-attr]
    if kind is Rep:
        return _term(expr.item) + _times(expr.low, expr.high)  # type: ignore[union-attr]
    return f"({write(expr)})"


def _times(low: int, high: int | None) -> str:
    match low, high:
        case 0, None:
            return "*"
        case 1, None:
            return "+"
        case 0, 1:
            return "?"
        case _ if low == high:
            return f"{{{low}}}"
        case _:
            return f"{{{low},{'' if high is None else high}}}"


@lru_cache(maxsize=4096)
def literal(text: str) -> str:
    """The text as a GBNF literal. Everything but printable ASCII, letters and the like is written as an escape."""
    return f'"{_SPECIAL.sub(_written, text)}"'


def _written(found: re.Match[str]) -> str:
    char = found[0]
    return _LITERAL_ESCAPES.get(char) or (char if char.isprintable() else _escape(ord(char)))


def _escape(point: int) -> str:
    if point < 0x100:
        return f"\\x{point:02X}"
    return f"\\u{point:04X}" if point < 0x10000 else f"\\U{point:08X}"


@lru_cache(maxsize=1024)
def _class(ranges: tuple[tuple[int, int], ...], negated: bool) -> str:
    parts = [_bound(low) if low == high else f"{_bound(low)}-{_bound(high)}" for low, high in ranges]
    return f"[{'^' if negated else ''}{''.join(parts)}]"


def _bound(point: int) -> str:
    char = chr(point)
    if char in _CLASS_ESCAPES:
        return _CLASS_ESCAPES[char]
    return char if 0x20 <= point < 0x7F else _escape(point)
