"""For each keyword, what the grammar admits and what it does not, at its edges (Group A of the field reports included)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tacid_infer.grammar import explain_schema

from ..conftest import admits


def one(schema: Any) -> dict[str, Any]:
    """An object with one required key of this schema."""
    return {"type": "object", "properties": {"x": schema}, "required": ["x"]}


class raw(str):
    """A value as it is spelt, where JSON's writer would spell it otherwise."""


def text(value: Any) -> str:
    return str(value) if isinstance(value, raw) else json.dumps(value, ensure_ascii=False)


TABLE: list[tuple[str, Any, list[Any], list[Any]]] = [
    ("pattern found anywhere: what is free may be escaped", {"type": "string", "pattern": "^a"},
     ["a", "abc", 'a"\\\n', raw("\"a\\u00e9\\/\""), raw("\"a\\ud834\\udd1e\"")], ["", "ba", raw("\"a\\ud834\""), raw("\"a\n\"")]),
    ("pattern of other characters, some of which must be escaped", {"type": "string", "pattern": "^[^b]$"},
     ["a", '"', "\\", "\n", "\x01", "\x1f", raw("\"\\u001F\""), "\x7f", "\u00e9"], ["b", "", raw("\"\\u0062\""), raw("\"\x01\"")]),
    ("string", {"type": "string"}, ["", "a", 'q"\\/\n\t', "é", "𝄞", raw("\"\\u00e9\""), raw("\"\\ud834\\udd1e\"")],
     [1, None, raw("\"\n\""), raw("\"\\ud800\""), raw("\"\\x\""), raw("'a'")]),
    ("integer", {"type": "integer"}, [0, -1, 9223372036854775807, raw("1.0"), raw("-0"), raw("1e22")],
     [1.5, "1", raw("01"), raw("+1"), raw("1e-1"), raw("" + "9" * 41)]),
    ("number", {"type": "number"},
     [0, -1.5, 1e-06, raw("1E+5"), 1.7976931348623157e308, 5e-324, -1e22], [raw("1e400"), raw("1."), raw(".5"), raw("NaN"), raw("1.8e308")]),
    ("boolean", {"type": "boolean"}, [True, False], [1, "true", raw("True")]),
    ("null", {"type": "null"}, [None], ["null", 0]),
    ("type list", {"type": ["string", "null"]}, ["a", None], [1]),
    ("array or null", {"type": ["array", "null"], "items": {"type": "string"}}, [None, [], ["x"]], [[1], "x"]),
    ("object or string", {"type": ["object", "string"], "properties": {"a": {"type": "integer"}}, "maxLength": 2},
     [{}, {"a": 1}, "ab"], ["abc", {"a": "b"}, 1]),
    ("nothing said", {}, [1, "a", None, [1, {"a": []}], {"k": 1.5}], [raw("tru")]),
    ("true", True, [1, {}], []),
    ("enum", {"enum": ["nginx", "ngrok", 5, None, True, {"a": [1, "z"]}]},
     ["nginx", "ngrok", 5, None, True, {"a": [1, "z"]}], ["ng", "nginxx", 6, False, {"a": [1]}]),
    ("enum with the empty string", {"enum": ["", "on"]}, ["", "on"], ["o"]),
    ("enum of equal numbers", {"enum": [1, 1.0, 1e0]}, [1, raw("1.0")], [2]),
    ("const number", {"const": 42}, [42], ["42", 4, 420]),
    ("const -0.0", {"const": -0.0}, [0, raw("-0.0")], [1]),
    ("const object", {"const": {"k": [1, "z"]}}, [{"k": [1, "z"]}], [{"k": []}]),
    ("nullable enum", {"anyOf": [{"type": "string", "enum": ["lux", "nit"]}, {"type": "null"}]},
     ["lux", "nit", None], ["null", "x"]),
    ("union of consts", {"anyOf": [{"const": "keep"}, {"const": "drop"}]}, ["keep", "drop"], [raw("\"\\\"drop\\\"\"")]),
    ("minLength", {"type": "string", "minLength": 2}, ["ab", "éé", "𝄞𝄞", raw("\"\\n\\u0041\"")], ["", "a", "𝄞", raw("\"\\n\"")]),
    ("maxLength", {"type": "string", "maxLength": 2}, ["", "ab", raw("\"\\ud834\\udd1e\\n\"")], ["abc"]),
    ("maxLength 0", {"type": "string", "maxLength": 0}, [""], ["a"]),
    ("maxLength 100000", {"type": "string", "maxLength": 100000}, ["", "a" * 5000], []),
    ("minLength 1500, maxLength 2500", {"type": "string", "minLength": 1500, "maxLength": 2500},
     ["a" * 1500, "a" * 2000, "a" * 2500], ["a" * 1499, "a" * 2501]),
    ("pattern, unanchored", {"type": "string", "pattern": "[0-9]"}, ["a7b", "7"], ["ab", ""]),
    ("pattern, \\d", {"type": "string", "pattern": r"^\d{4}-\d\d$"}, ["2031-07"], ["203-07", "2031-07 "]),
    ("pattern, \\S", {"type": "string", "pattern": r"^\S+$"}, ["a:b", 'a"b\\'], ["a b", "", raw("\"a\n\"")]),
    ("pattern, escapes", {"type": "string", "pattern": r"^(ssh:\/\/)?[a-z0-9\-]+\.lan$"},
     ["ssh://box-1.lan", "box.lan"], ["boxxlan"]),
    ("pattern, dot", {"type": "string", "pattern": "^.$"}, ["a", "é"], ["", "ab", "\n"]),
    ("pattern, class", {"type": "string", "pattern": "^[^a]$"}, ["b", "\n", '"'], ["a"]),
    ("pattern, alternation", {"type": "string", "pattern": "^(foo|far|b{2,3})$"}, ["foo", "far", "bbb"], ["fo", "b"]),
    ("pattern, property", {"type": "string", "pattern": r"^\p{Lu}\p{Ll}+$"}, ["Äß", "Ab"], ["ab", "A1"]),
    ("pattern and lengths", {"type": "string", "pattern": "^[a-z]+(-[a-z]+)*$", "minLength": 3, "maxLength": 5},
     ["abc", "a-b", "ab-cd"], ["ab", "abcdef", "a--b"]),
    ("minimum", {"type": "integer", "minimum": 0, "maximum": 9007199254740991},
     [0, 2147483648, 9007199254740991], [9007199254740992, -1]),
    ("64 bits", {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1},
     [-(2**63), 2**63 - 1, 0, -1], [2**63, -(2**63) - 1]),
    ("maximum as a double", {"type": "integer", "minimum": 1, "maximum": 2e10}, [1, 20000000000], [0, 20000000001]),
    ("exclusive", {"type": "integer", "exclusiveMinimum": 2, "exclusiveMaximum": 5}, [3, 4], [2, 5]),
    ("exclusive, draft 4", {"type": "integer", "minimum": 2, "exclusiveMinimum": True}, [3], [2]),
    ("number range", {"type": "number", "minimum": -1.5, "maximum": 2.25},
     [-1.5, 0, 2.25, 1e-06, -1e-06, raw("2.250")], [-1.51, 2.26, 3, -2, 1e1]),
    ("number over", {"type": "number", "exclusiveMinimum": 0}, [1e-06, 0.1, 5e300], [0, -1, raw("0.0")]),
    ("number under", {"type": "number", "exclusiveMaximum": 1}, [0.9999999999999999, 0, -3.5],
     [1, raw("0.99999999999999999999"), raw("1.0")]),
    ("number over a fraction", {"type": "number", "exclusiveMinimum": 0.1}, [0.10000000000000002, 0.11, 7, 1e22],
     [0.1, raw("0.10000000000000000000001"), 0.09]),
    ("number over nothing", {"type": "number", "exclusiveMinimum": 0}, [5e-324, 1e-323, 0.5],
     [0, raw("5e-324000"), raw("1e-400"), raw("2.4e-324"), raw("2e-324"), raw("0e0"), -1]),
    ("multipleOf", {"type": "integer", "multipleOf": 15}, [0, 15, 1500, -30], [5, 16]),
    ("multipleOf 0.01", {"type": "number", "multipleOf": 0.01},
     [0.25, 3, 1.1, 0, -0.07, raw("1e3"), raw("1.25e0"), raw("2.5E-1"), raw("7.0e-2"), raw("0.10")],
     [0.255, raw("1e-3"), raw("1.255e0"), raw("2.55e-1")]),
    ("multipleOf 1e-8", {"type": "number", "multipleOf": 1e-08, "minimum": 0, "maximum": 21000000},
     [1e-08, 5e-05, 1.5e-07, 0.00001, 21000000, 0.123, 20999999.9769, raw("1.0E-8"), raw("2.1e7")],
     [1.5e-08, 1e-09, 21000000.00000001, -1e-08, raw("2.100001e7")]),
    ("multipleOf 0.25", {"type": "number", "multipleOf": 0.25},
     [0.25, 0.5, 12345678901234, 10**20 + 3, -7.75, raw("2.5e-1"), raw("1e+16"), raw("1.25e1")],
     [0.3, raw("1e-1"), raw("1.2e0"), raw("1.1e0")]),
    ("multipleOf 12", {"type": "integer", "multipleOf": 12}, [0, 12, 24, 144, 1200, 12.0, -36, 12 * 10**30, raw("1.2e1"), raw("3e2")],
     [1, 2, 6, 10, 18, 100, 12 * 10**30 + 4, raw("1e2"), raw("1.2e0")]),
    ("multipleOf of many units", {"type": "integer", "multipleOf": 3600}, [0, 3600, 86400, -7200, raw("3.6e3")],
     [1, 60, 1800, 3601, 360, raw("3.6e2")]),
    ("multipleOf twice", {"type": "integer", "allOf": [{"multipleOf": 4}, {"multipleOf": 6}]}, [0, 12, 24], [4, 6, 8, 18]),
    ("multipleOf within", {"type": "number", "multipleOf": 0.5, "exclusiveMinimum": 1, "maximum": 3},
     [1.5, 2, 2.5, 3, raw("3e0"), raw("1.5e0")], [1, 0.5, 3.5, 1.75, raw("1e0"), raw("3.5e0"), raw("1.0")]),
    ("minItems", {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3}, [[1], [1, 2, 3]],
     [[], [1, 2, 3, 4], ["a"]]),
    ("maxItems 0", {"type": "array", "items": {"type": "string"}, "maxItems": 0}, [[]], [["a"]]),
    ("prefixItems", {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False},
     [[], [1], [1, "a"]], [["a"], [1, "a", 2]]),
    ("tuple, draft 7", {"type": "array", "items": [{"type": "integer"}], "additionalItems": {"type": "null"}},
     [[], [1], [1, None]], [["a"], [1, 1]]),
    ("items false", {"type": "array", "items": False}, [[]], [[1]]),
    ("items true", {"type": "array", "items": True}, [[], [1, "a"]], [{}]),
    ("properties", {"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}, "required": ["b"]},
     [{"b": 1}, {"a": 1, "b": []}], [{}, {"a": 1}, {"a": "x", "b": 1}, {"b": 1, "c": 1}]),
    ("never", {"type": "object", "properties": {"extra": True, "never": False}, "required": ["extra"]},
     [{"extra": 1}], [{"extra": 1, "never": 1}]),
    ("empty enum, optional", {"type": "object", "properties": {"a": {"enum": []}, "b": {"const": 1}}},
     [{}, {"b": 1}], [{"a": 1}]),
    ("additionalProperties", {"type": "object", "properties": {"port": {"type": "integer"}},
     "additionalProperties": {"type": "string"}},
     [{"port": 80}, {"port": 80, "portal": "x"}, {"pot": "x"}, {"por": "x"}],
     [{"port": "80"}, {"portal": 1}, raw("{\"port\": 80, \"port\": 81}"), raw("{\"p\\u006frt\": \"x\"}")]),
    ("map", {"type": "object", "additionalProperties": {"type": "integer"}}, [{}, {"a": 1, "b": 2}], [{"a": "x"}]),
    ("required alone", {"type": "object", "required": ["a"]}, [{"a": 1}, {"a": 1, "z": 2}], [{}, {"z": 1}]),
    ("patternProperties", {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"],
     "patternProperties": {"^q[0-9]$": {"type": "integer"}}, "additionalProperties": False},
     [{"name": "n"}, {"name": "n", "q1": 4}], [{"q1": 4}, {"name": "n", "q1": "x"}, {"name": "n", "q": 1}]),
    ("patternProperties of every key", {"type": "object", "properties": {"name": {"minLength": 2}, "nose": {}},
     "patternProperties": {"": {"type": "string"}, "^x": {"maxLength": 1}}, "additionalProperties": {"type": "null"}},
     [{"name": "nn"}, {"nose": "n", "nam": "q", "names": "", "x": "y"}],
     [{"name": 1}, {"name": "n"}, {"nose": 1}, {"nam": None}, {"names": 1}, {"x": "yy"}]),
    ("patternProperties of every key alone", {"type": "object", "properties": {"name": {}, "nose": {}},
     "patternProperties": {".*": {"type": "string"}}}, [{"name": "n"}, {"nose": "n", "nam": "q", "z": ""}],
     [{"name": 1}, {"nam": None}, {"z": 1}]),
    ("patternProperties of every key, false", {"type": "object", "properties": {"name": {}},
     "patternProperties": {"": False}}, [{}], [{"name": 1}, {"nam": None}]),
    ("propertyNames", {"type": "object", "propertyNames": {"pattern": "^[a-z]+$"}}, [{}, {"ab": 1}], [{"A": 1}]),
    ("minProperties", {"type": "object", "minProperties": 1, "maxProperties": 2}, [{"a": 1}, {"a": 1, "b": 2}],
     [{}, {"a": 1, "b": 2, "c": 3}]),
    ("maxProperties of named", {"type": "object", "properties": {"a": {}, "b": {}, "c": {}}, "maxProperties": 1},
     [{}, {"a": 1}, {"c": 1}], [{"a": 1, "c": 1}]),
    ("maxProperties 0", {"type": "object", "maxProperties": 0}, [{}], [{"a": 1}]),
    ("dependentRequired", {"type": "object", "properties": {"a": {}, "b": {}}, "dependentRequired": {"a": ["b"]}},
     [{}, {"b": 1}, {"a": 1, "b": 1}], [{"a": 1}]),
    ("dependentRequired of a key that nobody names", {"type": "object", "properties": {"a": {}}, "required": ["a"],
     "dependentRequired": {"a": ["b"]}}, [{"a": 1, "b": 2}], [{"a": 1}]),
    ("minProperties beyond the named", {"type": "object", "properties": {"a": {}}, "minProperties": 2},
     [{"a": 1, "b": 2}], [{"a": 1}]),
    ("minProperties beyond the possible", {"type": "object", "properties": {"a": False}, "minProperties": 1},
     [{"b": 2}], [{"a": 1}, {}]),
    ("not null", {"type": ["null", "string"], "not": {"enum": [None, "a"]}}, ["b"], [None, "a"]),
    ("allOf", {"allOf": [{"type": "object", "properties": {"x": {"type": "integer", "minimum": 10}}, "required": ["x"]},
     {"properties": {"y": {"type": "string"}}, "required": ["y"]}]}, [{"x": 10, "y": "k"}], [{"x": 9, "y": "k"}, {"x": 10}]),
    ("anyOf beside properties", {"type": "object", "properties": {"id": {"type": "integer"}, "tag": {"type": "string"}},
     "additionalProperties": False, "anyOf": [{"required": ["id"]}, {"required": ["tag"]}]},
     [{"id": 1}, {"tag": "t"}, {"id": 1, "tag": "t"}], [{}, {"zz": 1}, 5]),
    ("oneOf", {"type": "object", "properties": {"a": {}, "b": {}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
     [{"a": 1}, {"b": 1}], [{}, {"a": 1, "b": 1}]),
    ("not const", {"type": "string", "not": {"const": "no"}}, ["", "n", "non"], ["no"]),
    ("not type", {"not": {"type": ["string", "object"]}}, [1, None, []], ["a", {}]),
    ("oneOf, told apart by what stands beside it", {"type": "object", "required": ["k"], "oneOf": [
        {"properties": {"k": {"const": "a"}, "n": {"type": "integer"}}},
        {"properties": {"k": {"const": "b"}, "n": {"type": "boolean"}}}]},
     [{"k": "a", "n": 1}, {"k": "b", "n": True}], [{"k": "a", "n": True}, {"n": 1}]),
    ("dependencies, many", {"type": "object", "properties": {name: {"const": 1} for name in "abcdefgh"},
     "dependencies": {name: {"required": ["h"]} for name in "abcdefg"}},
     [{}, {"h": 1}, {"a": 1, "h": 1}, {"a": 1, "g": 1, "h": 1}], [{"a": 1}, {"f": 1, "g": 1}]),
    ("propertyNames, of other types too", {"type": "object",
     "propertyNames": {"oneOf": [{"type": "number"}, {"type": "string", "pattern": "^[a-z]+$"}]}},
     [{}, {"ab": 1}], [{"A": 1}, {"1": 1}]),
    ("if then else", {"type": "object", "properties": {"k": {"enum": ["a", "b"]}, "n": {"type": "integer"}},
     "required": ["k"], "if": {"properties": {"k": {"const": "a"}}}, "then": {"required": ["n"]}},
     [{"k": "b"}, {"k": "a", "n": 1}, {"k": "b", "n": 1}], [{"k": "a"}]),
    ("if of every tag", {"type": "object", "properties": {"k": {"enum": list("abcdefghijklmnopqrst")}}, "required": ["k"],
     "allOf": [{"if": {"properties": {"k": {"const": tag}}, "required": ["k"]}, "then": {"required": [f"n{tag}"]}}
               for tag in "abcdefghijklmnopqrs"]},
     [{"k": "a", "na": 1}, {"k": "s", "ns": 1}, {"k": "t"}], [{"k": "a"}, {"k": "s"}]),
    ("not a key of a value", {"type": "object", "properties": {"k": {"type": "string"}},
     "not": {"properties": {"k": {"const": "a"}}, "required": ["k"]}}, [{}, {"k": "b"}], [{"k": "a"}]),
    ("oneOf with patterns for tags", {"oneOf": [
        {"type": "object", "properties": {"kind": {"type": "string", "pattern": "^A$"}, "n": {"type": "integer"}}, "required": ["kind"]},
        {"type": "object", "properties": {"kind": {"type": "string", "pattern": "^(B|C{1,2})$"}, "n": {"type": "string"}}, "required": ["kind", "n"]}]},
     [{"kind": "A"}, {"kind": "A", "n": 1}, {"kind": "B", "n": "x"}, {"kind": "CC", "n": "1"}],
     [{"kind": "A", "n": "x"}, {"kind": "B", "n": 1}, {"kind": "C"}, {"kind": "CCC", "n": "x"}, {"kind": "D"}]),
    ("unevaluatedProperties", {"type": "object", "allOf": [{"properties": {"a": {"type": "integer"}}}],
     "properties": {"b": {"type": "integer"}}, "unevaluatedProperties": False}, [{}, {"b": 1, "a": 2}], [{"c": 1}]),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "valid", "invalid"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_exact(schema: Any, valid: list[Any], invalid: list[Any]) -> None:
    """Every valid value is admitted, no invalid one, and nothing is reported as widened."""
    hold_exactly(one(schema), valid, invalid)


def hold_exactly(schema: Any, valid: list[Any], invalid: list[Any]) -> None:
    compiled = explain_schema(schema)
    for value in valid:
        assert admits(compiled.text, f'{{"x": {text(value)}}}'), f"{value!r} must be admitted"
    for value in invalid:
        assert not admits(compiled.text, f'{{"x": {text(value)}}}'), f"{value!r} must not be admitted"
    assert compiled.widened == ()


DRAFT_4 = [
    ({"type": "integer"}, [0, -1, 10**30, raw("-0")], [1.0, 1.5, raw("1e2"), raw("01")]),
    ({"type": "integer", "minimum": -3, "maximum": 120}, [-3, 0, 9, 120], [-4, 121, 1.0, raw("-0.0"), raw("1e1")]),
    ({"type": "integer", "minimum": 0.5}, [1, 10**20], [0, 1.0, raw("1e20")]),
    ({"type": "integer", "multipleOf": 5, "minimum": 1}, [5, 100], [4, 5.0, 0]),
    ({"type": ["integer", "number"]}, [1, 1.0, 1.5], ["1"]),
    ({"type": "integer", "enum": [1, 2.0, 30]}, [1, 2, 30], [1.0, 2.0, 3]),
    ({"enum": [1, "a"]}, [1, 1.0, "a"], [2]),
    ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, [1, "1"], [1.0]),
]


@pytest.mark.parametrize(("schema", "valid", "invalid"), DRAFT_4)
def test_an_integer_of_a_declared_draft_4_has_no_point(schema: Any, valid: list[Any], invalid: list[Any]) -> None:
    hold_exactly({"$schema": "http://json-schema.org/draft-04/schema#", **one(schema)}, valid, invalid)


def test_an_integer_of_any_later_draft_may_have_one() -> None:
    schema = {"$schema": "http://json-schema.org/draft-06/schema#", **one({"type": "integer"})}
    hold_exactly(schema, [1, 1.0, raw("1e2")], [1.5])


WIDENED = [
    ("look-around", {"type": "string", "pattern": "^(?=a)"}, "pattern", ["abc"]),
    ("back-reference", {"type": "string", "pattern": r"(a)\1"}, "pattern", ["aa"]),
    ("unknown format", {"type": "string", "format": "phone-number"}, "format", ["1"]),
    ("uniqueItems", {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}, "uniqueItems", [[1, 2]]),
    ("contains", {"type": "array", "contains": {"const": 1}}, "contains", [[1]]),
    ("not of an object", {"type": "object", "not": {"const": {}}}, "not", [{"a": 1}]),
    ("a reference to nowhere", {"$ref": "#/$defs/Gone"}, "$ref", [1, "a"]),
    ("a path for a reference", {"$ref": "/$defs/Mode"}, "$ref", ["slow"]),
    ("oneOf that overlaps", {"oneOf": [{"type": "string", "format": "phone-number"}, {"type": "string"}]}, "oneOf", []),
    ("maxLength beyond all counting", {"type": "string", "maxLength": 10**12}, "maxLength", ["", "a"]),
]


@pytest.mark.parametrize(("schema", "keyword", "valid"), [row[1:] for row in WIDENED], ids=[row[0] for row in WIDENED])
def test_widened_and_said_so(schema: Any, keyword: str, valid: list[Any]) -> None:
    """What is not enforced is reported with its pointer and keyword, and every valid value is still admitted."""
    compiled = explain_schema(one(schema))
    assert [(place.pointer, place.keyword) for place in compiled.widened if place.keyword == keyword] == [
        ("/properties/x", keyword)
    ]
    for value in valid:
        assert admits(compiled.text, f'{{"x": {text(value)}}}')
