"""The independent judge of a call's arguments: jsonschema, under the dialect that the schema names."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from jsonschema import Draft201909Validator, Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend, validator_for

from ..tools import Schema


def make_validator(schema: Schema) -> Any:
    """A validator of the schema's instances. Multiples are taken of the numbers as written: 0.07 is one of 0.01."""
    judge = validator_for(schema, default=Draft201909Validator if _has_tuples(schema) else Draft202012Validator)
    return extend(judge, {"multipleOf": _multiple_of})(schema)  # type: ignore[no-untyped-call]


def _multiple_of(validator: Any, step: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    is_number = isinstance(instance, (int, float)) and not isinstance(instance, bool)
    if is_number and (Fraction(repr(instance)) / Fraction(repr(step))).denominator != 1:
        yield ValidationError(f"{instance!r} is not a multiple of {step!r}")


def _has_tuples(schema: Any) -> bool:
    """Whether some ``items`` is a list: the tuple of the drafts before 2020-12, which that draft does not know."""
    todo = [schema]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            if isinstance(node.get("items"), list):
                return True
            todo.extend(node.values())
        elif isinstance(node, list):
            todo.extend(node)
    return False
