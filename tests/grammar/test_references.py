"""References: every form of pointer, recursion, scopes, and circles (field reports A23 to A28)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tacid_infer.errors import InvalidSchema, UnsatisfiableSchema
from tacid_infer.grammar import compile_schema, compile_turn, explain_schema

from ..conftest import admits

POINTERS = {
    "type": "object",
    "$defs": {"a/b": {"type": "integer"}, "50%": {"type": "boolean"}, "t~u": {"const": "v"}},
    "properties": {
        "x": {"$ref": "#/$defs/a~1b"},
        "y": {"$ref": "#/$defs/50%25"},
        "z": {"$ref": "#/$defs/t~0u"},
        "w": {"anyOf": [{"type": "null"}, {"enum": ["k"]}]},
        "v": {"$ref": "#/properties/w/anyOf/1"},
    },
    "required": ["x", "y", "z", "w", "v"],
}

TREE = {
    "$defs": {
        "N": {
            "type": "object",
            "properties": {"v": {"type": "integer"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/N"}}},
            "required": ["v"],
        }
    },
    "type": "object",
    "properties": {"t": {"$ref": "#/$defs/N"}},
    "required": ["t"],
}


def test_pointer_forms() -> None:
    grammar = compile_schema(POINTERS)
    valid = {"x": 1, "y": True, "z": "v", "w": None, "v": "k"}
    assert admits(grammar, json.dumps(valid))
    assert not admits(grammar, json.dumps({**valid, "v": None}))


def test_recursion_is_exact_and_finite() -> None:
    grammar = compile_schema(TREE)
    assert admits(grammar, '{"t": {"v": 1, "kids": [{"v": 2, "kids": [{"v": 3}]}]}}')
    assert not admits(grammar, '{"t": {"v": 1, "kids": [{"v": "2"}]}}')


def test_mutual_recursion() -> None:
    schema = {
        "definitions": {
            "a": {"type": "object", "properties": {"b": {"$ref": "#/definitions/b"}}},
            "b": {"type": "array", "items": {"$ref": "#/definitions/a"}},
        },
        "$ref": "#/definitions/a",
    }
    grammar = compile_schema(schema)
    assert admits(grammar, '{"b": [{}, {"b": []}]}')
    assert not admits(grammar, '{"b": [1]}')


@pytest.mark.parametrize(
    "schema",
    [
        {"$defs": {"A": {"$ref": "#/$defs/A"}}, "type": "object", "properties": {"x": {"$ref": "#/$defs/A"}},
         "required": ["x"]},
        {"$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}, "$ref": "#/$defs/A"},
        {"$ref": "#"},
    ],
)  # fmt: skip
def test_circles_are_refused_by_name(schema: Any) -> None:
    with pytest.raises(InvalidSchema) as caught:
        compile_schema(schema)
    assert caught.value.keyword == "$ref"


def test_a_type_that_needs_itself_has_no_instance() -> None:
    schema = {
        "$defs": {"N": {"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}}, "required": ["n"]}},
        "$ref": "#/$defs/N",
    }
    with pytest.raises(UnsatisfiableSchema):
        compile_schema(schema)


def test_anchors_and_identifiers() -> None:
    schema = {
        "$id": "https://example.test/root",
        "$defs": {"S": {"$anchor": "size", "type": "integer"}, "O": {"$id": "other", "type": "boolean"}},
        "type": "object",
        "properties": {"s": {"$ref": "#size"}, "o": {"$ref": "other"}, "p": {"$ref": "https://example.test/other"}},
        "required": ["s", "o", "p"],
    }
    compiled = explain_schema(schema)
    assert compiled.widened == ()
    assert admits(compiled.text, '{"s": 1, "o": true, "p": false}')
    assert not admits(compiled.text, '{"s": 1, "o": 1, "p": false}')


def test_siblings_of_a_reference() -> None:
    schema: dict[str, Any] = {"$defs": {"a": {"type": "integer"}}, "$ref": "#/$defs/a", "minimum": 3}
    assert not admits(compile_schema(schema), "2")
    # Draft 7 hides what stands beside a reference, and that is also an identifier, which would change what it means.
    schema["$schema"] = "http://json-schema.org/draft-07/schema#"
    assert admits(compile_schema(schema), "2")
    base = {
        "$id": "https://example.test/",
        "$schema": schema["$schema"],
        "definitions": {"n": {"$id": "n", "type": "null"}},
    }
    below = {**base, "allOf": [{"$id": "below/", "$ref": "n"}]}
    assert admits(compile_schema(below), "null")
    assert not admits(compile_schema(below), "1")


@pytest.mark.parametrize("keyword", ["id", "$id"])
def test_a_pointer_past_an_identifier(keyword: str) -> None:
    """Schemas in the wild give definitions an identifier, and point from within them at the document's root."""
    schema = {
        "definitions": {
            "name": {keyword: "/name", "type": "string"},
            "user": {keyword: "/user", "properties": {"n": {"$ref": "#/definitions/name"}}, "required": ["n"]},
        },
        "type": "object",
        "properties": {"u": {"type": "object", "$ref": "#/definitions/user"}},
        "required": ["u"],
    }
    compiled = explain_schema(schema)
    assert compiled.widened == ()
    assert admits(compiled.text, '{"u": {"n": "a"}}')
    assert not admits(compiled.text, '{"u": {"n": 1}}')


@pytest.mark.parametrize(("draft", "enforced"), [("draft-04", False), ("draft-06", False), ("draft-07", True)])
def test_conditions_before_they_were_there(draft: str, enforced: bool) -> None:
    """What `if` refuses is legal where the declared draft has no such keyword."""
    schema = {
        "$schema": f"http://json-schema.org/{draft}/schema#",
        "type": "object",
        "properties": {"k": {"type": "string"}, "n": {"type": "integer"}},
        "required": ["k"],
        "if": {"properties": {"k": {"const": "a"}}},
        "then": {"required": ["n"]},
    }
    compiled = explain_schema(schema)
    assert admits(compiled.text, '{"k": "a"}') != enforced
    assert admits(compiled.text, '{"k": "a", "n": 1}')
    assert [place.keyword for place in compiled.widened] == ([] if enforced else ["if"])


def test_what_is_referred_to_often_is_written_once() -> None:
    large = {"type": "object", "properties": {f"name{number}": {"type": "integer"} for number in range(100)}}

    def size(references: int) -> int:
        properties = {f"r{number}": {"$ref": "#/$defs/large", "title": str(number)} for number in range(references)}
        return len(compile_schema({"$defs": {"large": large}, "type": "object", "properties": properties}))

    assert size(20) < 1.5 * size(1)


def test_definitions_belong_to_their_tool() -> None:
    def tool(name: str, keyword: str, value: str) -> dict[str, Any]:
        parameters = {
            "type": "object",
            keyword: {"M": {"enum": [value]}},
            "properties": {"m": {"$ref": f"#/{keyword}/M"}},
            "required": ["m"],
        }
        return {"name": name, "parameters": parameters}

    grammar = compile_turn([tool("a", "$defs", "x1"), tool("b", "definitions", "y2"), tool("c", "$defs", "z3")])
    for name, own in (("a", "x1"), ("b", "y2"), ("c", "z3")):
        for value in ("x1", "y2", "z3"):
            call = json.dumps({"tool": name, "arguments": {"m": value}})
            assert admits(grammar, call) == (value == own)
