"""JSON Schema's own reading of objects: keys in any order, and unnamed ones wherever they are not forbidden."""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any

import pytest

from tacid_infer.grammar import compile_schema

from ..conftest import admits

INTEGER, TEXT = {"type": "integer"}, {"type": "string"}

CASES = [
    ("unnamed keys come anywhere", {"properties": {"a": INTEGER}, "required": ["a"], "type": "object"},
     [{"a": 1}, {"x": None, "a": 1}, {"a": 1, "x": [], "y": {}}, {"": 0, "a": 1}], [{}, {"x": 1}, {"a": "1"}, {"x": 1, "a": "1"}]),
    ("a key that begins like a named one is another", {"properties": {"name": INTEGER}, "type": "object"},
     [{"nam": "x"}, {"names": "x"}, {"n": "x", "name": 1}, {"\u00e9": "x"}, {"name ": "x"}], [{"name": "x"}]),
    ("a named key is no unnamed one, however it is spelled", {"properties": {"a": INTEGER}, "type": "object"},
     ['{"a": 1}'], ['{"\\u0061": "x"}', '{"a": "x"}']),
    ("names with quotes, escapes and other scripts", {"properties": {'q"': INTEGER, "\\": INTEGER, "\n": INTEGER, "日本": INTEGER}},
     [{'q"': 1}, {"q": "x"}, {"\\": 1}, {"\\\\": "x"}, {"\n": 2}, {"日": "x"}, {"日本": 1}],
     [{'q"': "x"}, {"\\": "x"}, {"\n": "x"}, {"日本": "x"}]),
    ("a long name", {"properties": {"a" * 40: INTEGER}}, [{"a" * 40: 1}, {"a" * 39: "x"}, {"a" * 41: "x"}, {"a" * 20 + "b": "x"}],
     [{"a" * 40: "x"}]),
    ("closed", {"properties": {"a": INTEGER, "b": TEXT}, "additionalProperties": False, "type": "object"},
     [{}, {"a": 1}, {"b": "", "a": 1}], [{"c": 1}, {"a": 1, "c": 1}]),
    ("others of a schema", {"properties": {"a": INTEGER}, "additionalProperties": TEXT, "type": "object"},
     [{"z": "", "a": 1, "y": ""}], [{"z": 1}, {"a": 1, "y": 1}]),
    ("optional keys in any order", {"properties": dict.fromkeys("abcdef", INTEGER), "type": "object"},
     [{"f": 1, "a": 1}, {"c": 1, "x": "", "b": 1}], [{"f": "1"}, {"x": 0, "b": ""}]),
    ("counted", {"type": "object", "minProperties": 2, "maxProperties": 3, "properties": {"a": INTEGER}},
     [{"x": 1, "a": 1}, {"x": 1, "y": 1, "z": 1}], [{"a": 1}, {"w": 1, "x": 1, "y": 1, "z": 1}, {"a": "", "x": 1}]),
    ("dependents", {"type": "object", "dependentRequired": {"a": ["b"]}}, [{"b": 1}, {"b": 1, "a": 1}, {"a": 1, "b": 1}, {"x": 1}],
     [{"a": 1}, {"a": 1, "x": 1}]),
    ("a union told apart by its tag", {"type": "object", "required": ["k"], "oneOf": [
        {"properties": {"k": {"const": "n"}, "v": INTEGER}, "required": ["v"]},
        {"properties": {"k": {"const": "t"}, "v": TEXT}, "required": ["v"]}]},
     [{"k": "n", "v": 1}, {"v": 1, "k": "n"}, {"v": "", "k": "t"}, {"x": 1, "k": "t", "v": ""}], [{"k": "n", "v": ""}, {"v": 1, "k": "t"}]),
    ("a const object", {"const": {"a": 1, "b": {"c": "", "d": [{"e": 1, "f": 2}]}}},
     [{"a": 1, "b": {"c": "", "d": [{"e": 1, "f": 2}]}}, {"b": {"d": [{"f": 2, "e": 1}], "c": ""}, "a": 1}],
     [{"a": 1}, {"a": 1, "b": {"c": "", "d": [{"e": 2, "f": 1}]}}, {"b": {"c": "", "d": [{"e": 1, "f": 2}]}, "a": 1, "x": 1}]),
    ("an enum of objects", {"enum": [{"a": 1, "b": 2}, {"b": 1, "a": 2}, []]},
     [{"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 2, "b": 1}, {"b": 1, "a": 2}, []], [{"a": 1, "b": 1}, {"a": 2, "b": 2}, {}]),
]  # fmt: skip


def written(case: Any) -> str:
    return case if isinstance(case, str) else json.dumps(case, ensure_ascii=False)


@pytest.mark.parametrize(
    ("schema", "admitted", "refused"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_open_objects(schema: Any, admitted: list[Any], refused: list[Any]) -> None:
    grammar = compile_schema(schema, open_objects=True)
    assert [text for text in map(written, admitted) if not admits(grammar, text)] == []
    assert [text for text in map(written, refused) if admits(grammar, text)] == []


@pytest.mark.parametrize("count", [2, 3, 4])
def test_up_to_four_required_keys_in_every_order(count: int) -> None:
    names = [f"key{number}" for number in range(count)]
    schema = {"type": "object", "properties": dict.fromkeys(names, INTEGER), "required": names}
    grammar = compile_schema(schema, open_objects=True)
    for order in permutations(names):
        assert admits(grammar, json.dumps(dict.fromkeys(order, 1)))
        assert admits(grammar, json.dumps({"x": "", **dict.fromkeys(order, 1), "y": ""}))
        assert not admits(grammar, json.dumps(dict.fromkeys(order[1:], 1)))
        assert not admits(grammar, json.dumps({**dict.fromkeys(order[1:], 1), order[0]: ""}))


def test_more_required_keys_in_their_order_with_others_between() -> None:
    names = [f"key{number}" for number in range(6)]
    schema = {"type": "object", "properties": dict.fromkeys(names, INTEGER), "required": names}
    grammar = compile_schema(schema, open_objects=True)
    between = {key: value for name in names for key, value in ((name, 1), (f"x{name}", ""))}
    assert admits(grammar, json.dumps(between))
    assert not admits(grammar, json.dumps(dict.fromkeys(names[:-1], 1)))


@pytest.mark.parametrize("open_objects", [True, False])
def test_many_names_each_the_beginning_of_the_next(open_objects: bool) -> None:
    names = ["n" * length for length in range(1, 1101 if open_objects else 501)]
    grammar = compile_schema({"type": "object", "properties": dict.fromkeys(names, INTEGER)}, open_objects=open_objects)
    some = {"n": 1, "nnn": 2, names[-1]: 3}
    assert admits(grammar, json.dumps(some))
    assert not admits(grammar, json.dumps({**some, names[-1]: ""}))
    assert admits(grammar, json.dumps({"m": "", **some, names[-1] + "n": ""})) == open_objects


def test_a_large_const_object_keeps_its_order() -> None:
    value = {f"key{number}": number for number in range(2000)}
    assert len(compile_schema({"const": value}, open_objects=True)) < 100_000
    few = {"const": dict.fromkeys("abcde", 1)}
    assert admits(compile_schema(few, open_objects=True), json.dumps(few["const"]))
