"""JSON values: their types, equality as JSON Schema defines it, and how a literal is spelled in a reply."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Iterator, Mapping
from decimal import Decimal
from functools import lru_cache
from itertools import permutations, product
from typing import Any

from ..gbnf import EMPTY, Alt, Branch, Expr, Lit, seq
from ..untrusted import in_json

NULL, BOOLEAN, INTEGER, FRACTION, STRING, ARRAY, OBJECT = (1 << bit for bit in range(7))
"""One bit a type. A number is an integer (1.0 is one, as of draft 6) or has a fraction."""
NUMBER = INTEGER | FRACTION
ALL_TYPES = (1 << 7) - 1
TYPE_NAMES = {
    "null": NULL,
    "boolean": BOOLEAN,
    "integer": INTEGER,
    "number": NUMBER,
    "string": STRING,
    "array": ARRAY,
    "object": OBJECT,
}


def type_of(value: Any) -> int:
    """The type bit of a parsed JSON value."""
    match value:
        case None:
            return NULL
        case bool():
            return BOOLEAN
        case int():
            return INTEGER
        case float():
            return INTEGER if value.is_integer() else FRACTION
        case str():
            return STRING
        case Mapping():
            return OBJECT
    return ARRAY


def identity(value: Any) -> Hashable:
    """Equal for values that JSON Schema calls equal, different for all others (core, section 4.2.2)."""
    match value:
        case bool() | None:
            return (type(value), value)
        case int() | float():
            return ("number", decimal(value))
        case str():
            return value
        case Mapping():
            return ("object", frozenset((key, identity(item)) for key, item in value.items()))
    return ("array", tuple(identity(item) for item in value))


def decimal(value: float) -> Decimal:
    """The number as written: a float's shortest spelling, not its binary expansion."""
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)


def is_writable(value: Any) -> bool:
    """Whether a reply in UTF-8 can hold the value: no infinity, no half of a surrogate pair."""
    if type(value) is str and value.isascii():
        return True
    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except ValueError:
        return False
    return True


_as_json = json.JSONEncoder(ensure_ascii=False).encode


@lru_cache(maxsize=8192)
def quote(text: str) -> str:
    """The text as JSON, in its one spelling in a reply: no escape but the needed ones."""
    return in_json(_as_json(text))


def spell(value: Any) -> Branch:
    """The value's spellings in a reply: its opening text, and what follows.

    Spacing is that of the wire format. A whole number may carry ``.0``; everything else has one spelling.
    """
    if type(value) is str:
        return quote(value), EMPTY
    items = _pieces(value)
    text = ""
    while items and isinstance(items[0], str):
        text += items.pop(0)  # type: ignore[operator]
    return text, seq(*(Lit(item) if isinstance(item, str) else item for item in items)) if items else EMPTY


def reordered(values: list[Any], most: int) -> list[Any]:
    """The values with the keys of their objects in every order; as they are where that would be more than ``most``."""
    if all(type(value) is str for value in values) or sum(map(_orders, values)) > most:
        return values
    return [twin for value in values for twin in _each_order(value)]


def _orders(value: Any) -> int:
    match value:
        case Mapping():
            # Beyond a few keys there are too many orders anyway: no need for their exact number.
            return math.factorial(min(len(value), 10)) * math.prod(map(_orders, value.values()))
        case list():
            return math.prod(map(_orders, value))
    return 1


def _each_order(value: Any) -> Iterator[Any]:
    match value:
        case Mapping():
            for keys in permutations(value):
                for items in product(*[list(_each_order(value[key])) for key in keys]):
                    yield dict(zip(keys, items, strict=True))
        case list():
            yield from map(list, product(*[list(_each_order(item)) for item in value]))
        case _:
            yield value


def _pieces(value: Any) -> list[str | Expr]:
    match value:
        case str():
            return [quote(value)]
        case None:
            return ["null"]
        case bool():
            return ["true" if value else "false"]
        case int() | float():
            return _number(value)
        case Mapping():
            parts: list[str | Expr] = ["{"]
            for number, (key, item) in enumerate(value.items()):
                parts.append(f"{', ' if number else ''}{quote(key)}: ")
                parts.extend(_pieces(item))
            return [*parts, "}"]
    parts = ["["]
    for number, item in enumerate(value):
        if number:
            parts.append(", ")
        parts.extend(_pieces(item))
    return [*parts, "]"]


def _number(value: float) -> list[str | Expr]:
    if isinstance(value, float) and not value.is_integer():
        return [json.dumps(value)]
    if value == 0:
        return [Alt((Lit("0"), Lit("-0"), Lit("0.0"), Lit("-0.0")))]
    if isinstance(value, float) and abs(value) >= 1e16:
        return [Alt((Lit(str(int(value))), Lit(f"{int(value)}.0"), Lit(repr(value))))]
    return [str(int(value)), Alt((EMPTY, Lit(".0")))]


def short(text: str) -> str:
    """The text, quoted, and cut to what a message can carry."""
    return repr(text if len(text) <= 60 else text[:57] + "...")
