"""The field reports of group A: what goes wrong elsewhere between JSON Schema and grammar, one case a test.

Each schema is read alone and as the parameters of a tool.
"""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tacid_infer.errors import InvalidSchema, InvalidTool, SchemaError, UnsatisfiableSchema
from tacid_infer.grammar import compile_schema, compile_turn, explain_schema, explain_turn
from tacid_infer.tools import parse_tools
from tacid_infer.turn import build_turn

from ..conftest import RunningEngine, admits


class raw(str):
    """A value as it is spelt, where JSON's writer would spell it otherwise."""


def text(value: Any) -> str:
    return str(value) if isinstance(value, raw) else json.dumps(value, ensure_ascii=False)


def obj(properties: dict[str, Any], *required: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), **more}


def holds(schema: Any, valid: list[Any], invalid: list[Any]) -> None:
    """The schema's grammar, alone and in a turn, admits the ones and not the others."""
    alone = compile_schema(schema)
    turn = compile_turn([{"name": "t", "description": "d", "parameters": schema}], tool_choice="required")
    for value, expected in [*((value, True) for value in valid), *((value, False) for value in invalid)]:
        assert admits(alone, text(value)) == expected, value
        call = f'{{"tool": "t", "arguments": {text(value)}}}'
        assert admits(turn, call) == expected, value


DEFS_B = {"B": {"type": "object", "properties": {"x": {"type": "integer", "minimum": 10}}, "required": ["x"]}}
NODE = {
    "type": "object",
    "properties": {"v": {"type": "integer"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/N"}}},
    "required": ["v"],
}
NAMES = {
    "a-b": {"type": "integer"},
    "a_b": {"type": "string"},
    "a b": {"type": "boolean"},
    "温度": {"type": "integer"},
    "压力": {"enum": ["高"]},
    "": {"type": "null"},
    "root": {"type": "integer"},
    "string": {"type": "integer"},
}
NAMED = {"a-b": 1, "a_b": "s", "a b": True, "温度": 2, "压力": "高", "": None, "root": 3, "string": 4}
ESCAPED = {"a/b": {"type": "integer"}, "50%": {"type": "boolean"}, "t~u": {"const": "v"}}

EXACT: dict[str, tuple[Any, list[Any], list[Any]]] = {
    "A1": (obj({"q": {"type": "string", "pattern": "[0-9]"}}, "q"), [{"q": "a7b"}, {"q": "7"}], [{"q": "ab"}, {"q": ""}]),
    "A2": (obj({"m": {"type": "string", "pattern": r"^\d{4}-\d\d$"}, "w": {"type": "string", "pattern": r"^\S+$"}}, "m", "w"),
           [{"m": "2031-07", "w": "a:b"}, {"m": "2031-07", "w": 'a"\\b'}],
           [{"m": "203-07", "w": "a:b"}, {"m": "2031-07", "w": "a b"}, raw('{"m": "2031-07", "w": "a\tb"}')]),
    "A4": (obj({"h": {"type": "string", "pattern": r"^(ssh:\/\/)?[a-z0-9\-]+\.lan$"}}, "h"),
           [{"h": "ssh://box-1.lan"}, {"h": "box.lan"}], [{"h": "boxxlan"}]),
    "A5, minLength 1500": (obj({"s": {"type": "string", "minLength": 1500, "maxLength": 2500}}, "s"),
                           [{"s": "é" * 1500}, raw('{"s": "' + r"\n" * 2500 + '"}')], [{"s": "é" * 1499}, {"s": "x" * 2501}]),
    "A10": (obj({"u": {"anyOf": [{"type": "string", "enum": ["lux", "nit"]}, {"type": "null"}]}}, "u"),
            [{"u": "nit"}, {"u": None}], [{"u": "null"}]),
    "A11": (obj({"l": {"type": ["array", "null"], "items": {"type": "string"}}}, "l"),
            [{"l": None}, {"l": []}, {"l": ["x"]}], [{"l": [1]}, {"l": "x"}]),
    "A11, object": (obj({"l": {"type": ["object", "string"], "properties": {"a": {"type": "integer"}}, "maxLength": 2}}, "l"),
                    [{"l": {"a": 1}}, {"l": "ab"}], [{"l": {"a": "x"}}, {"l": "abc"}, {"l": 1}]),
    "A13": ({"type": "object", "$defs": DEFS_B, "allOf": [{"$ref": "#/$defs/B"}, {"properties": {"y": {"type": "string"}}, "required": ["y"]}]},
            [{"x": 10, "y": "k"}], [{"x": 10}, {"y": "k"}, {"x": 9, "y": "k"}]),
    "A13, one branch": ({"$defs": DEFS_B, "allOf": [{"$ref": "#/$defs/B"}], "description": "d"}, [{"x": 10}], [{"x": 9}, {}]),
    "A14": (obj({"id": {"type": "integer"}, "tag": {"type": "string"}}, additionalProperties=False, anyOf=[{"required": ["id"]}, {"required": ["tag"]}]),
            [{"id": 1}, {"tag": "t"}, {"id": 1, "tag": "t"}], [{}, {"zz": 1}, 5]),
    "A16": (obj({"extra": True, "never": False}, "extra"), [{"extra": 1}, {"extra": {"a": [None]}}], [{"extra": 1, "never": 1}, {}]),
    "A16, items": (obj({"a": {"type": "array", "items": True}, "b": {"type": "array", "items": False}}, "a", "b"),
                   [{"a": [1, "x"], "b": []}], [{"a": [], "b": [1]}]),
    "A17": (obj({"x": {"enum": []}, "y": {"enum": ["", "on"]}}, "y"), [{"y": ""}, {"y": "on"}], [{"y": "o"}, {"x": 1, "y": ""}]),
    "A17, anyOf": (obj({"x": {"anyOf": []}, "y": {"const": 1}}, "y"), [{"y": 1}], [{"x": 1, "y": 1}]),
    "A19": (obj({"l": {"type": "array", "items": {"type": "string"}, "maxItems": 0}, "s": {"type": "string", "maxLength": 0},
                 "o": {"type": "object", "maxProperties": 0}}, "l", "s", "o"),
            [{"l": [], "s": "", "o": {}}], [{"l": ["a"], "s": "", "o": {}}, {"l": [], "s": "a", "o": {}}, {"l": [], "s": "", "o": {"a": 1}}]),
    "A20": (obj({"n": {"type": "integer", "minimum": 0, "maximum": 9007199254740991}}, "n"),
            [{"n": 0}, {"n": 2147483648}, {"n": 9007199254740991}], [{"n": 9007199254740992}, {"n": -1}]),
    "A20, 64 bits": (obj({"n": {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}}, "n"),
                     [{"n": -(2**63)}, {"n": 2**63 - 1}], [{"n": 2**63}, {"n": -(2**63) - 1}]),
    "A20, doubles": (obj({"n": {"type": "integer", "minimum": 0, "maximum": 1.8446744073709552e19}}, "n"),
                     [{"n": 20_000_000_000}, {"n": 18446744073709551615}], [{"n": 18446744073709552001}]),
    "A23, sound": ({"$defs": {"N": NODE}, "type": "object", "properties": {"t": {"$ref": "#/$defs/N"}}, "required": ["t"]},
                   [{"t": {"v": 1, "kids": [{"v": 2, "kids": [{"v": 3}]}, {"v": 4}]}}], [{"t": {"v": 1, "kids": [{}]}}]),
    "A26": (obj({"x": {"$ref": "#/$defs/a~1b"}, "y": {"$ref": "#/$defs/50%25"}, "z": {"$ref": "#/$defs/t~0u"},
                 "w": {"anyOf": [{"type": "null"}, {"enum": ["k"]}]}, "v": {"$ref": "#/properties/w/anyOf/1"}}, "x", "y", "z", "w", "v", **{"$defs": ESCAPED}),
            [{"x": 1, "y": True, "z": "v", "w": None, "v": "k"}], [{"x": 1, "y": True, "z": "v", "w": None, "v": None}]),
    "A29": (obj(NAMES, "a-b", "a_b", "a b", "温度", "压力", "", "root", "string"), [NAMED], [{**NAMED, "a-b": "s"}, {**NAMED, "root": None}]),
    "A31": (obj({"a": {"const": 42}, "b": {"const": None}, "c": {"enum": [True, "on"]}, "d": {"anyOf": [{"const": "keep"}, {"const": "drop"}]}}, "a", "b", "c", "d"),
            [{"a": 42, "b": None, "c": True, "d": "drop"}, {"a": 42, "b": None, "c": "on", "d": "keep"}],
            [{"a": "42", "b": None, "c": True, "d": "drop"}, raw('{"a": 42, "b": None, "c": true, "d": "drop"}'), {"a": 42, "b": None, "c": True, "d": '"drop"'}]),
    "A31, compound": (obj({"a": {"const": {"k": [1, "z"]}}, "b": {"enum": [1, 1.0, 1e0]}, "c": {"const": -0.0}}, "a", "b", "c"),
                      [{"a": {"k": [1, "z"]}, "b": 1, "c": 0}], [{"a": {"k": [1]}, "b": 1, "c": 0}, {"a": {"k": [1, "z"]}, "b": 2, "c": 0}]),
    "A32": (obj({"s": {"type": "string"}, "k": {"type": "object", "additionalProperties": {"type": "integer"}}}, "s"),
            [{"s": "\n\t"}, raw(r'{"s": "\u00e9\ud834\udd1e"}'), {"s": "", "k": {"\n": 1}}], [raw('{"s": "a\nb"}'), raw('{"s": "", "k": {"\t": 1}}'), raw(r'{"s": "\ud800"}')]),
    "A34": (obj({"z_why": {"type": "string"}, "a_pick": {"enum": [1, 2]}, "m_note": {"type": "string"}}, "a_pick", "z_why"),
            [{"z_why": "w", "a_pick": 1}, {"z_why": "w", "a_pick": 2, "m_note": "n"}], [{"a_pick": 1, "z_why": "w"}, {"z_why": "w"}]),
    "A35": ({"type": "object", "properties": {"port": {"type": "integer"}}, "additionalProperties": {"type": "string"}},
            [{"port": 80}, {"port": 80, "portal": "x"}, {"pot": "x"}, {"por": "x"}],
            [{"port": "80"}, {"portal": 1}, raw('{"port": 80, "port": 80}'), raw('{"port": 80, "port": "80"}'), raw(r'{"p\u006frt": "80"}')]),
    "A37": (obj({"name": {"type": "string"}}, "name", patternProperties={"^q[0-9]$": {"type": "integer"}}, additionalProperties=False),
            [{"name": "n"}, {"name": "n", "q1": 4}], [{"q1": 4}, {"name": "n", "q1": "x"}, {"name": "n", "q": 1}]),
    "A37, required": ({"type": "object", "required": ["a"]}, [{"a": 1}, {"a": {}}], [{}]),
    "A37, tuples": (obj({"p": {"type": "array", "prefixItems": [{"type": "integer"}], "items": False}, "t": {"type": "array", "items": [{"type": "string"}], "additionalItems": False}}, "p", "t"),
                    [{"p": [1], "t": ["a"]}, {"p": [], "t": []}], [{"p": [1, 2], "t": []}, {"p": ["a"], "t": []}, {"p": [], "t": [1]}]),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_exact(name: str) -> None:
    schema, valid, invalid = EXACT[name]
    assert explain_schema(schema).widened == ()
    holds(schema, valid, invalid)


@pytest.mark.parametrize("bound", [1, 1999, 2000, 2001, 4096, 65536, 524288, 10**12])
def test_a5_long_strings(bound: int) -> None:
    limited = {"type": "string", "maxLength": bound}
    schema = obj({"o": obj({"s": limited}, "s"), "l": {"type": "array", "maxItems": 50, "items": limited}})
    holds(schema, [{"o": {"s": ""}}, {"o": {"s": "x"}, "l": ["", "é"]}], [{"o": {}}])
    if bound <= 4096:
        holds(schema, [{"o": {"s": "é" * bound}}], [{"o": {"s": "é" * (bound + 1)}}])
    assert bool(explain_schema(schema).widened) == (bound == 10**12)


def test_a7_bounds_multiply(engine: RunningEngine) -> None:
    item = obj({"t": {"type": "string", "maxLength": 10000}}, "t")
    rows = {
        "type": "array",
        "minItems": 10,
        "maxItems": 1000,
        "items": {"type": "array", "maxItems": 100, "items": item},
    }
    schema = obj({"rows": rows}, "rows")
    holds(
        schema,
        [{"rows": [[{"t": "x"}]] * 10}],
        [{"rows": [[]] * 9}, {"rows": [[]] * 1001}, {"rows": [[{"t": ""}] * 101] * 10}],
    )
    assert len(compile_schema(schema)) < 10_000
    numbers = {"type": "array", "items": {"type": "number"}, "minItems": 10, "maxItems": 1000}
    assert isinstance(json.loads(engine.say(compile_schema({"const": [1.5] * 10})).content), list)
    holds(obj({"n": numbers}, "n"), [{"n": [1] * 10}], [{"n": [1] * 9}])
    with pytest.raises(UnsatisfiableSchema) as caught:
        compile_schema(obj({"n": {"type": "array", "minItems": 5, "maxItems": 3}}, "n"))
    assert caught.value.pointer == "/properties/n"


@pytest.mark.parametrize("required", [(), ("p30",)])
def test_a8_many_optional_keys(required: tuple[str, ...]) -> None:
    kinds = [
        ({"type": "string"}, "s"),
        ({"type": "integer"}, 1),
        ({"enum": ["a", "b"]}, "a"),
        (obj({"z": {}}), {"z": 1}),
    ]
    properties = {f"p{number}": kinds[number % 4][0] for number in range(1, 61)}
    value = {f"p{number}": kinds[number % 4][1] for number in range(1, 61)}

    def some(*numbers: int) -> dict[str, Any]:
        return {f"p{number}": value[f"p{number}"] for number in numbers}

    if required:
        holds(obj(properties, *required), [some(30), some(2, 30, 59), value], [{}, some(2, 59), some(60)])
    else:
        holds(obj(properties), [{}, value, some(2, 59), some(60)],
              [raw('{"p1": 1, "p1": 1}'), raw('{"p1": 1, }'), some(59, 2), {"p2": 1}])  # fmt: skip
    assert len(compile_schema(obj(properties))) < 3 * len(compile_schema(obj(dict(list(properties.items())[:30]))))


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        (obj({"never": False}, "never"), "/properties/never"),
        (obj({"x": {"enum": []}, "y": {"enum": ["", "on"]}}, "x", "y"), "/properties/x"),
        (obj({"x": {"anyOf": []}}, "x"), "/properties/x"),
        (False, ""),
        ({"$defs": {"A": {"$ref": "#/$defs/A"}}, **obj({"x": {"$ref": "#/$defs/A"}}, "x")}, "/$defs/A/$ref"),
        (
            {
                "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}},
                **obj({"x": {"$ref": "#/$defs/A"}}, "x"),
            },
            None,
        ),
        ({"$ref": "#"}, "/$ref"),
        ({"$defs": {"A": obj({"a": {"$ref": "#/$defs/A"}}, "a")}, "$ref": "#/$defs/A"}, None),
    ],
)
def test_a16_a17_a23_refused_by_name(schema: Any, pointer: str | None) -> None:
    started = time.monotonic()
    with pytest.raises(SchemaError) as caught:
        compile_turn([{"name": "t", "description": "d", "parameters": schema}])
    assert time.monotonic() - started < 5  # A circle must not send the compiler round for ever.
    assert caught.value.tool == "t"
    assert pointer is None or caught.value.pointer == pointer


def test_a20_a_bound_that_no_double_holds() -> None:
    schema = json.loads(
        '{"type": "object", "properties": {"n": {"type": "integer", "minimum": 1e400}}, "required": ["n"]}'
    )
    with pytest.raises(InvalidSchema) as caught:
        compile_schema(schema)
    assert caught.value.pointer == "/properties/n/minimum"


@pytest.mark.parametrize("kind", [{"type": "integer"}, {"type": "number"}, {}])
def test_a22_numbers_end_by_themselves(engine: RunningEngine, kind: Any) -> None:
    """An engine that always prefers the digit 0 (token 3 + 0x30 of the tiny model) still closes the object."""
    grammar = compile_schema(obj({"n": kind, "m": {"type": "integer"}}, "n", "m"))
    digits = [[3 + ord(digit), 60.0] for digit in "123456789"]
    reply = engine.say(
        grammar, logit_bias=[[3 + 0x30, 100.0], *digits, [3 + ord("-"), -50.0], [3 + ord('"'), 20.0]], max_tokens=600
    )
    assert reply.finish_reason == "stop", reply.content[-80:]
    assert json.loads(reply.content).keys() == {"n", "m"}
    holds(obj({"n": kind}, "n"), [{"n": 2**63 - 1}, {"n": 0}], [raw('{"n": 1e400}'), raw('{"n": Infinity}')])


def test_a25_a_reference_to_nowhere_is_not_silent() -> None:
    schema = {"type": "object", "$defs": {"Mode": {"enum": ["slow", "fast"]}, "S": {"$anchor": "size", "type": "integer"}},
              "properties": {"m": {"$ref": "/$defs/Mode"}, "s": {"$ref": "#size"}, "k": {"$ref": "#/$defs/Gone"}}, "required": ["m", "s", "k"]}  # fmt: skip
    holds(schema, [{"m": "slow", "s": 5, "k": 1}], [{"m": "slow", "s": "x", "k": 1}])
    widened = explain_turn([{"name": "t", "parameters": schema}]).widened
    assert {(place.tool, place.pointer, place.keyword) for place in widened} == {
        ("t", "/properties/m", "$ref"), ("t", "/properties/k", "$ref"),
    }  # fmt: skip


def test_a28_definitions_belong_to_their_tool() -> None:
    def tool(name: str, key: str, value: str) -> dict[str, Any]:
        parameters = {**obj({"m": {"$ref": f"#/{key}/M"}}, "m"), key: {"M": {"enum": [value]}}}
        return {"name": name, "description": "d", "parameters": parameters}

    tools = [tool("a", "$defs", "x1"), tool("b", "definitions", "y2"), tool("c", "$defs", "z3")]
    for order in (tools, tools[::-1], [tools[1], tools[2], tools[0]]):
        grammar = compile_turn(order)
        for name, own in (("a", "x1"), ("b", "y2"), ("c", "z3")):
            for value in ("x1", "y2", "z3"):
                call = f'{{"tool": "{name}", "arguments": {{"m": "{value}"}}}}'
                assert admits(grammar, call) == (value == own)


def test_a29_tool_names_that_clean_up_alike() -> None:
    names = ["x.y", "x_y", "x-y", "x/y"]
    grammar = compile_turn([{"name": name, "parameters": obj({"v": {"const": name}}, "v")} for name in names])
    for name in names:
        for value in names:
            assert admits(grammar, f'{{"tool": "{name}", "arguments": {{"v": "{value}"}}}}') == (name == value)


@pytest.mark.parametrize(
    "schema",
    [
        EXACT["A32"][0],
        obj({"a": {"type": "string", "pattern": "."}, "b": {"type": "string", "pattern": "^[^a]*$"}}, "a", "b"),
    ],
)
def test_a32_no_raw_control_character_is_ever_sampled(engine: RunningEngine, schema: Any) -> None:
    grammar = compile_schema(schema)
    for seed in range(200):
        reply = engine.say(grammar, seed=seed, max_tokens=300, temperature=2.0)
        assert not any(char < " " for char in reply.content)
        if reply.finish_reason == "stop":
            json.loads(reply.content, strict=True)


def test_a34_keys_come_in_the_schemas_order_in_the_catalogue_too() -> None:
    schema = EXACT["A34"][0]
    for tool in (
        {"name": "t", "description": "d", "parameters": schema},
        {"type": "function", "function": {"name": "t", "description": "d", "parameters": schema}},
        {"name": "t", "description": "d", "inputSchema": schema},
    ):
        catalogue = build_turn(parse_tools([tool])).catalogue
        assert catalogue.index("z_why") < catalogue.index("a_pick") < catalogue.index("m_note")


@pytest.mark.parametrize(
    ("keyword", "more", "valid"),
    [
        ("uniqueItems", {"type": "array", "uniqueItems": True}, [1, 2]),
        ("contains", {"type": "array", "contains": {"const": 1}}, [1]),
        ("not", {"not": {"const": {"a": 1}}}, 5),
        ("propertyNames", {"type": "object", "propertyNames": {"pattern": "^a"}}, {"ab": 1}),
        ("minProperties", {"type": "object", "minProperties": 1}, {"a": 1}),
        (
            "dependentRequired",
            {"type": "object", "properties": {"a": {}, "b": {}}, "dependentRequired": {"a": ["b"]}},
            {"a": 1, "b": 1},
        ),
        ("if", {"if": {"type": "string"}, "then": {"const": "x"}, "else": {"const": 1}}, 1),
        (
            "unevaluatedProperties",
            {"type": "object", "properties": {"a": {}}, "unevaluatedProperties": False},
            {"a": 1},
        ),
    ],
)
def test_a37_enforced_or_widened_once(keyword: str, more: Any, valid: Any) -> None:
    schema = obj({"v": more}, "v")
    holds(schema, [{"v": valid}], [])
    said = [place for place in explain_schema(schema).widened if place.keyword == keyword]
    assert len(said) <= 1
    assert bool(said) == (keyword in ("uniqueItems", "contains", "not"))


def test_a38_tools_that_leave_out_what_is_optional() -> None:
    sound: list[Any] = [
        {"name": "a"},
        {"name": "b", "description": None, "parameters": None},
        {
            "type": "function",
            "function": {"name": "c", "parameters": {"type": "object", "properties": {}, "required": []}},
        },
        {"name": "d", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}, "strict": True},
    ]
    turn = build_turn(parse_tools(sound))
    own = [line for line in turn.catalogue.splitlines() if any(f'"{name}"' in line for name in "abcd")]
    assert own
    assert not any("null" in line for line in own if '"name": "' in line)
    for name in "abcd":
        assert admits(turn.grammar, f'{{"tool": "{name}", "arguments": {{}}}}')
    faults: list[tuple[Any, str]] = [
        ({"parameters": {}}, "name"), ({"name": 7}, "name"), ({"name": "e", "parameters": "x"}, "parameters"), ("f", "object"),
    ]  # fmt: skip
    for index, (faulty, member) in enumerate(faults):
        with pytest.raises(InvalidTool, match=member) as caught:
            parse_tools([*sound[:index], faulty])
        assert str(index) in caught.value.message
