"""Writes rules as GBNF text: the only module that knows the notation.

Source: llama.cpp, ``grammars/README.md`` and ``parse_char`` and ``parse_sequence`` of ``src/llama-grammar.cpp``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from .expr import Alt, Chars, Expr, Lit, Ref, Rep, Seq

_PLAIN = re.compile(r"[ !#-\[\]-~]*")
_LITERAL_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_CLASS_ESCAPES = {"]": "\\]", "[": "\\[", "\\": "\\\\", "-": "\\-", "^": "\\x5E", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def write_rules(rules: Mapping[str, Expr], scope: str = "") -> str:
    """The rules as GBNF, one a line.

    Args:
        rules: name to expression. A name that begins with "." is local: it is written with ``scope`` for the dot.
        scope: prefix of the local names, made of letters, digits and dashes.
    """
    return "".join(f"{_name(name, scope)} ::= {_top(body, scope)}\n" for name, body in rules.items())


def _name(name: str, scope: str) -> str:
    return scope + name[1:] if name[0] == "." else name


def _top(expr: Expr, scope: str) -> str:
    if type(expr) is Alt:
        return " | ".join([_sequence(option, scope) for option in expr.options])
    return _sequence(expr, scope)


def _sequence(expr: Expr, scope: str) -> str:
    if type(expr) is Seq:
        return " ".join([_term(item, scope) for item in expr.items]) or '""'
    return _term(expr, scope)


def _term(expr: Expr, scope: str) -> str:
    kind = type(expr)
    if kind is Lit:
        return literal(expr.text)  # type: ignore[union-attr]
    if kind is Ref:
        name = expr.name  # type: ignore[union-attr]
        return scope + name[1:] if name[0] == "." else name
    if kind is Chars:
        return _class(expr.ranges, expr.negated)  # type: ignore[union-attr]
    if kind is Rep:
        return _term(expr.item, scope) + _times(expr.low, expr.high)  # type: ignore[union-attr]
    return f"({_top(expr, scope)})"


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
    if _PLAIN.fullmatch(text):
        return f'"{text}"'
    return '"' + "".join([_LITERAL_ESCAPES.get(char) or _readable(char) for char in text]) + '"'


def _readable(char: str) -> str:
    if char.isprintable():
        return char
    return _escape(ord(char))


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
