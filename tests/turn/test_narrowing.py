"""Service names are held to the list wherever a generator put them; nothing else is."""

from __future__ import annotations

import copy
import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacid_infer.grammar import compile_schema
from tacid_infer.turn import narrow_schema

from ..conftest import admits
from ..gbnf_reader import read

OPERATION = {
    "type": "object",
    "properties": {"kind": {"const": "service_enable", "type": "string"}, "name": {"type": "string"}},
    "required": ["kind", "name"],
    "additionalProperties": False,
}
PACKAGE = {
    "type": "object",
    "properties": {"kind": {"const": "package_add"}, "name": {"type": "string"}},
    "required": ["kind", "name"],
    "additionalProperties": False,
}


def wrapped(schema: Any, definitions: Any = None) -> dict[str, Any]:
    made = {"type": "object", "properties": {"op": schema}, "required": ["op"]}
    return {**made, **(definitions or {})}


SHAPES: dict[str, Any] = {
    "inlined": wrapped(OPERATION),
    "moved": wrapped({"$ref": "#/$defs/Enable"}, {"$defs": {"Enable": OPERATION}}),
    "renamed": wrapped({"$ref": "#/definitions/x~1y"}, {"definitions": {"x/y": OPERATION}}),
    "in a union": wrapped({"oneOf": [OPERATION, PACKAGE]}),
    "in a union behind references": wrapped(
        {"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]}, {"$defs": {"A": OPERATION, "B": PACKAGE}}
    ),
    "in allOf": wrapped({"allOf": [OPERATION]}),
    "kind behind a reference": wrapped(
        {**OPERATION, "properties": {**OPERATION["properties"], "kind": {"$ref": "#/$defs/K"}}},  # type: ignore[dict-item]
        {"$defs": {"K": {"enum": ["service_enable", "service_disable"]}}},
    ),
    "name behind a reference": wrapped(
        {**OPERATION, "properties": {**OPERATION["properties"], "name": {"$ref": "#/$defs/N"}}},  # type: ignore[dict-item]
        {"$defs": {"N": {"type": "string", "minLength": 2}}},
    ),
    "mixed kinds": wrapped(
        {**OPERATION, "properties": {"kind": {"enum": ["service_enable", "package_add"]}, "name": {"type": "string"}}}
    ),
    "kind apart from name": wrapped(
        {"allOf": [{"properties": {"kind": {"const": "service_enable"}}, "required": ["kind"]},
                   {"properties": {"name": {"type": "string"}}, "required": ["name"]}]}
    ),
}  # fmt: skip


@pytest.mark.parametrize("many", [False, True], ids=["few names", "many names"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_only_listed_names_can_be_emitted(shape: Any, many: bool) -> None:
    services = ("nginx", "getty@tty1", "systemd-fsck@dev-disk-by\\x2duuid-1")
    services += tuple(f"unit-{number}" for number in range(4000)) if many else ()
    before = copy.deepcopy(shape)
    narrowed = narrow_schema(shape, services)
    assert shape == before
    grammar = compile_schema(narrowed)

    def emits(kind: str, name: str) -> bool:
        text = json.dumps({"op": {"kind": kind, "name": name}})
        return read(grammar).admits(text)

    for name in services[:3]:
        assert emits("service_enable", name)
    for name in ("nginx.service", "Nginx", "nginx ", "nginx\n", "nginx@evil", "../nginx", "nginx*", "getty@tty2", ""):
        assert not emits("service_enable", name)
        jsonschema.Draft202012Validator.check_schema(narrowed)
        assert not jsonschema.Draft202012Validator(narrowed).is_valid({"op": {"kind": "service_enable", "name": name}})
    if "union" in str(shape) or "package_add" in json.dumps(shape):
        assert emits("package_add", "anything")


def test_what_a_name_was_held_to_still_holds() -> None:
    own = {**OPERATION, "properties": {**OPERATION["properties"], "name": {"enum": ["nginx", "caddy"]}}}  # type: ignore[dict-item]
    grammar = compile_schema(narrow_schema(own, ("nginx", "sshd")))
    assert admits(grammar, '{"kind": "service_enable", "name": "nginx"}')
    assert not admits(grammar, '{"kind": "service_enable", "name": "sshd"}')
    assert not admits(grammar, '{"kind": "service_enable", "name": "caddy"}')


def test_untouched_schemas_are_the_same_object() -> None:
    schema = wrapped(PACKAGE)
    assert narrow_schema(schema, ("nginx",)) is schema


@settings(max_examples=150, deadline=None)
@given(
    shape=st.sampled_from(list(SHAPES.values())),
    services=st.lists(st.sampled_from(["a", "b", "nginx", "é", 'q"']), min_size=1, unique=True),
    kind=st.sampled_from(["service_enable", "service_disable", "package_add", "other"]),
    name=st.sampled_from(["a", "b", "nginx", "é", 'q"', "zz", ""]),
)
def test_valid_as_before_and_listed(shape: Any, services: list[str], kind: str, name: str) -> None:
    """An instance is valid under the narrowed schema just if it was before, and a service operation's name is listed."""
    instance = {"op": {"kind": kind, "name": name}}
    before = jsonschema.Draft202012Validator(shape).is_valid(instance)
    after = jsonschema.Draft202012Validator(narrow_schema(shape, tuple(services))).is_valid(instance)
    listed = not kind.startswith("service_") or name in services
    assert after == (before and listed)
