"""Multiples, spelled in all the ways that writers of JSON have, held against decimal arithmetic."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tacid_infer.errors import UnsatisfiableSchema
from tacid_infer.grammar import explain_schema

from ..gbnf_reader import read

STEPS = [3, 12, 7, 16, 33, 10, 100, 1000, 3600, 0.01, 0.1, 0.001, 0.25, 0.5, 0.05, 2.5, 0.0025, 0.3, 1.5, 1e-08]
BOUNDS = {
    "minimum": lambda number, bound: number >= bound, "exclusiveMinimum": lambda number, bound: number > bound,
    "maximum": lambda number, bound: number <= bound, "exclusiveMaximum": lambda number, bound: number < bound,
}  # fmt: skip


def as_json(number: Decimal) -> float | int:
    return int(number) if number == int(number) else float(number)


@st.composite
def cases(draw: st.DrawFn) -> tuple[dict[str, Any], list[Decimal]]:
    """A schema, and numbers in and around what it admits."""
    step = draw(st.sampled_from(STEPS))
    exact = Decimal(repr(step))
    schema: dict[str, Any] = {"type": draw(st.sampled_from(["integer", "number"])), "multipleOf": step}
    units = st.sampled_from([Decimal(1), exact, Decimal("0.1")])
    for keyword in draw(st.lists(st.sampled_from(list(BOUNDS)), max_size=2, unique=True)):
        schema[keyword] = as_json(draw(st.integers(-500, 5000)) * draw(units))
    scale = st.sampled_from([Decimal(1), Decimal(10), Decimal("0.1"), Decimal("0.5"), Decimal(37)])
    numbers = [exact * draw(st.integers(-50, 900)) * draw(scale) for _ in range(8)]
    return schema, numbers + [Decimal(repr(schema[keyword])) for keyword in BOUNDS if keyword in schema]


def plain(number: Decimal) -> list[str]:
    text = f"{number:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return [text, text + ("0" if "." in text else ".0")]


def scientific(number: Decimal) -> list[str]:
    """As Python, Java and C write it; nothing for 0."""
    sign, digits, exponent = number.normalize().as_tuple()
    if not any(digits):
        return []
    first, rest = str(digits[0]), "".join(map(str, digits[1:]))
    exponent = int(exponent) + len(rest)
    mantissa = ("-" if sign else "") + first + (f".{rest}" if rest else "")
    return [f"{mantissa}e{exponent:+03d}", f"{mantissa if rest else mantissa + '.0'}E{exponent}"]


@settings(max_examples=150, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(cases())
def test_all_multiples_and_nothing_else(case: tuple[dict[str, Any], list[Decimal]]) -> None:
    schema, numbers = case
    try:
        compiled = explain_schema(schema)
    except UnsatisfiableSchema:
        assume(False)
    assert compiled.widened == ()
    grammar = read(compiled.text)
    for number in numbers:
        step = Decimal(repr(schema["multipleOf"]))
        legal = number % step == 0 and (schema["type"] == "number" or number == int(number))
        legal = legal and all(
            holds(number, Decimal(repr(schema[key]))) for key, holds in BOUNDS.items() if key in schema
        )
        for text in plain(number):
            assert grammar.admits(text) == legal, text
        for text in scientific(number):
            # A writer spells an integer so only if it is larger than any bound here.
            if legal and schema["type"] == "number":
                assert grammar.admits(text), text
            elif not legal:
                assert not grammar.admits(text), text


@pytest.mark.parametrize("step", [1e-08, 1e-05, 0.0025, 0.25])
def test_many_decimals_cost_little(step: float) -> None:
    """The grammar grows with the decimals, not with the fractions that they make."""
    assert len(explain_schema({"type": "number", "multipleOf": step}).text) < 30_000


def test_too_many_remainders_are_reported() -> None:
    compiled = explain_schema({"type": "integer", "multipleOf": 9973})
    assert [(place.keyword, place.reason) for place in compiled.widened] == [
        ("multipleOf", "more than 100 remainders to count")
    ]
    assert read(compiled.text).admits("1")
