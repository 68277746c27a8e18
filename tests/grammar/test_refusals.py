"""Schemas that are refused: each error names the pointer and the keyword, and comes in bounded time."""

from __future__ import annotations

from typing import Any

import pytest

from tacid_infer.errors import InvalidSchema, InvalidTool, InvalidToolChoice, SchemaError, UnsatisfiableSchema
from tacid_infer.grammar import compile_schema, compile_turn, explain_schema

from ..conftest import admits

INVALID: list[tuple[Any, str, str | None]] = [
    (5, "", None),
    ([], "", None),
    ({"properties": []}, "/properties", "properties"),
    ({"type": "object", "properties": {"x": {"type": "sting"}}, "required": ["x"]}, "/properties/x/type", "type"),
    ({"type": "object", "properties": {"x": 7}, "required": ["x"]}, "/properties/x", None),
    ({"enum": "a"}, "/enum", "enum"),
    ({"type": "integer", "minimum": float("inf")}, "/minimum", "minimum"),
    ({"type": "string", "minLength": -1}, "/minLength", "minLength"),
    ({"type": "string", "pattern": 5}, "/pattern", "pattern"),
    ({"anyOf": {}}, "/anyOf", "anyOf"),
    ({"required": "a"}, "/required", "required"),
    ({"type": "integer", "multipleOf": 0}, "/multipleOf", "multipleOf"),
    ({"const": "\ud800"}, "/const", "const"),
    ({"$ref": 5}, "/$ref", "$ref"),
]


@pytest.mark.parametrize(("schema", "pointer", "keyword"), INVALID)
def test_invalid(schema: Any, pointer: str, keyword: str | None) -> None:
    with pytest.raises(InvalidSchema) as caught:
        compile_schema(schema)
    assert (caught.value.pointer, caught.value.keyword) == (pointer, keyword)


UNSATISFIABLE: list[tuple[Any, str, str | None]] = [
    (False, "", None),
    ({"enum": []}, "", "enum"),
    ({"anyOf": []}, "", "anyOf"),
    ({"type": "object", "properties": {"x": {"enum": []}}, "required": ["x"]}, "/properties/x", "enum"),
    ({"type": "object", "properties": {"x": False}, "required": ["x"]}, "/properties/x", None),
    ({"type": "object", "properties": {"r": {"type": "array", "minItems": 5, "maxItems": 3}}, "required": ["r"]},
     "/properties/r", "maxItems"),
    ({"type": "integer", "minimum": 5, "maximum": 4}, "", "maximum"),
    ({"type": "string", "const": 5}, "", "const"),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "pointer", "keyword"), UNSATISFIABLE)
def test_without_an_instance(schema: Any, pointer: str, keyword: str | None) -> None:
    with pytest.raises(UnsatisfiableSchema) as caught:
        compile_schema(schema)
    assert (caught.value.pointer, caught.value.keyword) == (pointer, keyword)


def test_the_tool_is_named() -> None:
    with pytest.raises(UnsatisfiableSchema) as caught:
        compile_turn([{"name": "good"}, {"name": "bad", "parameters": {"type": "array"}}])
    assert caught.value.tool == "bad"
    assert "bad" in caught.value.message


def test_deep_nesting_compiles() -> None:
    schema: Any = {"type": "integer"}
    for _ in range(500):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    grammar = compile_schema(schema)
    assert admits(grammar, '{"a": ' * 500 + "1" + "}" * 500)


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf", "not"])
def test_deep_combinators_answer(keyword: str) -> None:
    schema: Any = {"type": "integer"}
    for _ in range(500):
        schema = {keyword: schema if keyword == "not" else [schema]}
    try:
        compile_schema(schema)
    except SchemaError as error:
        assert "nested" in error.message


@pytest.mark.parametrize("name", ["key{}", "{}", "{0:b}", "\\u4e2d{}"])
def test_large_schema_compiles_to_a_grammar_of_linear_size(name: str) -> None:
    def grammar(count: int) -> str:
        names = [name.format(number) for number in range(count)]
        properties = {name: {"type": "string", "description": "x" * 400} for name in names}
        return compile_schema({"type": "object", "properties": properties})

    assert len(grammar(4_000)) < 12 * len(grammar(500))


def test_combinations_are_bounded() -> None:
    """Unions side by side multiply, and so do those in what they name: what is not told apart is reported."""

    def either(depth: int) -> dict[str, Any]:
        below: dict[str, Any] = either(depth - 1) if depth else {}
        pairs = [{"anyOf": [{"required": [name]}, {"properties": {name: below}}]} for name in "abcdefgh"]
        return {"type": "object", "allOf": pairs}

    compiled = explain_schema(either(3))
    assert len(compiled.text) < 1_000_000
    assert "anyOf" in {place.keyword for place in compiled.widened}
    assert admits(compiled.text, '{"a": {"b": 1}}')


def test_schemas_that_meet_in_circles_are_bounded() -> None:
    count = 12
    definitions = {
        f"d{number}": {
            "type": "object",
            "properties": {
                "l": {"$ref": f"#/$defs/d{(number + 1) % count}"},
                "r": {"allOf": [{"$ref": f"#/$defs/d{number}"}, {"$ref": f"#/$defs/d{(number * 2 + 1) % count}"}]},
            },
        }
        for number in range(count)
    }
    compiled = explain_schema({"$defs": definitions, "$ref": "#/$defs/d0"})
    assert len(compiled.text) < 1_000_000
    assert admits(compiled.text, '{"l": {"r": {"l": {}}}}')
    assert not admits(compiled.text, '{"l": 1}')
    assert {place.keyword for place in compiled.widened} == {"allOf"}


def test_what_is_given_up_narrows_nothing() -> None:
    """What only an unread branch names stays legal, in a closed object and beside ``unevaluatedProperties``."""
    names = [f"p{number}" for number in range(12)]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: {"type": "integer"} for name in names},
        "dependentSchemas": {name: {"properties": {f"q{name}": {"const": 1}}} for name in names},
    }
    for closing in ({}, {"unevaluatedProperties": False}):
        compiled = explain_schema({**schema, **closing})
        assert "dependentSchemas" in {place.keyword for place in compiled.widened}
        for name in names:
            assert admits(compiled.text, f'{{"{name}": 1, "q{name}": 1}}')
    # A contradiction in an object says nothing of what is none.
    conditions = [{"if": {"type": "object", "properties": {"k": {"const": n}}, "required": ["k"]},
                   "then": {"required": [f"n{n}"]}} for n in range(20)]  # fmt: skip
    compiled = explain_schema({"allOf": conditions})
    assert admits(compiled.text, '"text"') and admits(compiled.text, '{"k": 3, "n3": 1}')
    # Draft 7 reads nothing beside a reference.
    draft7 = {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"n": {"type": "integer"}}}
    held = {"type": "object", "required": ["k"], "properties": {"k": {"$ref": "#/definitions/n", "type": "string"}}}
    conditions = [{"if": {"properties": {f"a{n}": {"const": 1}}, "required": [f"a{n}"]}, "then": {}} for n in range(8)]
    assert admits(compile_schema({**draft7, **held, "allOf": conditions}), '{"k": 1}')


def _twice(keyword: str) -> Any:
    """Thirty schemas, each of which needs the next one twice."""
    last = {"type": "object", "properties": {"a": {"type": "integer"}}}
    if keyword == "unevaluatedProperties":
        for number in range(30):
            last = {"allOf": [last], "properties": {f"p{number}": {}}, keyword: False}
        return last

    def body(number: int) -> dict[str, Any]:
        following = {"$ref": f"#/$defs/d{number + 1}"}
        if keyword == "not":
            return {"not": {"anyOf": [following, following]}}
        return {
            keyword: [following, {"type": "object", "required": [f"k{number}"]} if keyword == "oneOf" else following]
        }

    return {"$defs": {**{f"d{number}": body(number) for number in range(30)}, "d30": last}, "$ref": "#/$defs/d0"}


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf", "not", "unevaluatedProperties"])
def test_schemas_that_need_others_twice_are_bounded(keyword: str) -> None:
    compiled = explain_schema(_twice(keyword))
    assert len(compiled.text) < 1_000_000 and compiled.widened
    assert admits(compiled.text, '{"a": 1}') or keyword in ("not", "oneOf")
    assert admits(compiled.text, '{"p0": 1}') or keyword != "unevaluatedProperties"


@pytest.mark.parametrize("keyword", ["if", "dependentSchemas", "dependencies"])
def test_conditions_side_by_side_are_bounded(keyword: str) -> None:
    """Each doubles the alternatives: forty must neither hang nor be let through in silence."""
    names = [f"p{number}" for number in range(40)]
    then = {name: {"properties": {f"q{name}": {"const": 1}}} for name in names}
    schema: dict[str, Any] = {"type": "object", "properties": {name: {"type": "integer"} for name in names}}
    if keyword == "if":
        schema["allOf"] = [{"if": {"required": [name]}, "then": then[name]} for name in names]
    else:
        schema[keyword] = then
    compiled = explain_schema(schema)
    assert len(compiled.text) < 1_000_000
    assert {place.keyword for place in compiled.widened} == {keyword}
    assert admits(compiled.text, '{"p1": 1, "p2": 1}')


def test_keys_of_a_large_alphabet_stay_linear() -> None:
    def grammar(count: int) -> str:
        return compile_schema({"type": "object", "properties": {chr(0x4E00 + number): {} for number in range(count)}})

    assert len(grammar(4_000)) < 12 * len(grammar(500))


@pytest.mark.parametrize(
    ("tools", "index", "member"),
    [
        ([{"parameters": {}}], 0, "name"),
        ([{"name": 7}], 0, "name"),
        ([{"name": ""}], 0, "name"),
        ([{"name": "a"}, {"name": "e", "parameters": "x"}], 1, "parameters"),
        (["f"], 0, None),
        ([{"type": "function", "function": {"name": "x", "description": 5}}], 0, "function.description"),
    ],
)
def test_malformed_tools(tools: Any, index: int, member: str | None) -> None:
    with pytest.raises(InvalidTool) as caught:
        compile_turn(tools)
    assert caught.value.details.get("index") == index
    assert caught.value.details.get("member") == member


@pytest.mark.parametrize("choice", ["zzz", {"type": "function"}, 5, {"type": "function", "function": {"name": "c"}}])
def test_malformed_choice(choice: Any) -> None:
    with pytest.raises(InvalidToolChoice):
        compile_turn([{"name": "a"}, {"name": "b"}], tool_choice=choice)


def test_required_with_nothing_to_call() -> None:
    with pytest.raises(InvalidToolChoice):
        compile_turn([], tool_choice="required")
