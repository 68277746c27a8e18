"""Random schemas against independent judges: jsonschema for instances, a real engine for replies and for grammars.

The examples are the same in every run, so that a red run is about the change at hand; ``scripts/fuzz SECONDS`` looks for
new ones. A failure shrinks to a small schema, which then becomes a named test.
"""

from __future__ import annotations

import json
import os
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tacid_infer.errors import InvalidArguments, InvalidRequest, SchemaError, TruncatedReply
from tacid_infer.grammar import explain_schema
from tacid_infer.tools import Tool
from tacid_infer.turn import build_turn, read_reply

from .conftest import RunningEngine, admits
from .gbnf_reader import read

RANDOM = os.environ.get("TACID_INFER_FUZZ") == "random"
MORE = int(os.environ.get("TACID_INFER_FUZZ_EXAMPLES", "0"))


def bounded(examples: int) -> settings:
    return settings(
        max_examples=MORE or examples, deadline=None, derandomize=not RANDOM, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip


VALUES: list[Any] = [
    None, True, False, 0, 1, -3, 2.5, 7, 100, "", "a", "ab", "abcd", 'q"', "2024-02-29", [], [1], [1, "a"], ["a"], {},
    {"a": 1}, {"b": "x"}, {"a": 1, "b": "x"}, {"ab": "x"}, {"a": {}}, {"a": "a", "b": "b", "c": "c"}, {"x-y": 1},
]  # fmt: skip
KEYS = st.sampled_from(["a", "b", "c", "ab", "x-y", 'q"'])
value = st.sampled_from(VALUES)


def some(required: dict[str, Any], optional: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({key: st.just(one) for key, one in required.items()}, optional=optional)


def numbers(kind: str) -> st.SearchStrategy[Any]:
    return some({"type": kind}, {
        "minimum": st.sampled_from([0, -5, 2.5, 10, 100]), "maximum": st.sampled_from([0, 7, 12.25, 1000]),
        "exclusiveMinimum": st.sampled_from([0, -1.5]), "multipleOf": st.sampled_from([2, 3, 5]),
    })  # fmt: skip


strings = some({"type": "string"}, {
    "minLength": st.integers(0, 3), "maxLength": st.integers(2, 6),
    "pattern": st.sampled_from(["^a", "b$", "^[ab]+$", "a|b", "^(ab|cd)*$", "[0-9]", "^.{1,3}$", r"^\w+$"]),
    "format": st.sampled_from(["date", "ipv4", "uuid"]),
})  # fmt: skip
leaves = st.one_of(
    st.sampled_from([True, {}, {"$ref": "#/$defs/d"}]),
    strings, numbers("integer"), numbers("number"),
    st.builds(lambda one: {"const": one}, value),
    st.builds(lambda many: {"enum": many}, st.lists(value, min_size=1, max_size=4)),
    st.builds(lambda kinds: {"type": kinds}, st.lists(st.sampled_from(["string", "null", "integer", "boolean", "array"]),
                                                      min_size=2, max_size=2, unique=True)),
)  # fmt: skip


def inner(schema: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    arrays = some({"type": "array"}, {
        "items": schema, "prefixItems": st.lists(schema, min_size=1, max_size=2), "minItems": st.integers(0, 2),
        "maxItems": st.integers(1, 4),
    })  # fmt: skip
    keywords = {
        "properties": st.dictionaries(KEYS, schema, max_size=4), "required": st.lists(KEYS, max_size=2, unique=True),
        "additionalProperties": st.sampled_from([False, True, {"type": "string"}]),
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "b$", "^x"]), schema, max_size=1),
        "minProperties": st.integers(0, 2), "maxProperties": st.integers(1, 3),
        "propertyNames": st.sampled_from([{"pattern": "^[a-c]"}, {"pattern": "b"}]),
        "dependentRequired": st.just({"a": ["b"]}),
    }  # fmt: skip
    branches = st.lists(schema, min_size=1, max_size=3)
    conditions = st.sampled_from([{"type": "string"}, {"properties": {"a": {"const": 1}}, "required": ["a"]}])
    return st.one_of(
        arrays,
        some({"type": "object"}, keywords),
        some({}, keywords),
        st.builds(lambda keyword, many, more: {keyword: many, **more}, st.sampled_from(["anyOf", "oneOf", "allOf"]), branches,
                  st.sampled_from([{}, {"type": "object"}, {"type": ["object", "null"]}, {"properties": {"a": {"type": "string"}}}])),
        st.builds(lambda one: {"not": one}, st.sampled_from([{"type": "string"}, {"required": ["a"]}, {"minimum": 3}, {"enum": ["a", 1]}])),
        st.builds(lambda when, then, otherwise: {"if": when, "then": then, "else": otherwise}, conditions, schema, schema),
    )  # fmt: skip


definitions = st.sampled_from([
    {"type": "integer"}, {"enum": ["x", "y"]},
    {"type": "object", "properties": {"a": {"$ref": "#/$defs/d"}, "b": {"type": "string"}}},
])  # fmt: skip
schemas = st.builds(
    lambda schema, one: {**schema, "$defs": {"d": one}} if isinstance(schema, dict) else schema,
    st.recursive(leaves, inner, max_leaves=8), definitions,
)  # fmt: skip


def judge(schema: Any) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())


def compiled(schema: Any, *, open_objects: bool = True) -> Any:
    """The grammar; None if the schema is refused for having no instance."""
    try:
        return explain_schema(schema, open_objects=open_objects)
    except SchemaError:
        return None


@bounded(1000)
@given(schemas)
def test_instances_are_admitted_and_others_only_where_widened(schema: Any) -> None:
    grammar = compiled(schema)
    ours = None if grammar is None else read(grammar.text)
    validator = judge(schema)
    for one in VALUES:
        valid = validator.is_valid(one)
        admitted = ours is not None and ours.admits(json.dumps(one, ensure_ascii=False))
        assert admitted or not valid, f"rejects {one!r}"
        assert valid or not admitted or grammar.widened, f"admits {one!r} and says nothing of it"


instances = st.recursive(
    value, lambda inside: st.lists(inside, max_size=4) | st.dictionaries(KEYS, inside, max_size=4), max_leaves=6
)


@bounded(300)
@given(schemas, st.lists(instances, min_size=30, max_size=30))
def test_the_engines_own_grammar_admits_random_instances(schema: Any, drawn: list[Any]) -> None:
    """Instances of the schemas' own alphabet, many of which are valid; the engine's reader judges the grammar."""
    grammar = compiled(schema)
    valid = [one for one in drawn if judge(schema).is_valid(one)][:5]
    assume(valid)
    assert grammar is not None, f"refused, and {valid[0]!r} is an instance"
    for one in valid:
        assert admits(grammar.text, json.dumps(one, ensure_ascii=False)), one


@bounded(400)
@given(schemas, st.integers(0, 2**31))
def test_replies_of_a_real_engine_meet_the_schema(engine: RunningEngine, schema: Any, seed: int) -> None:
    tool = Tool("t", "d", {"type": "object", "properties": {"x": schema}, "required": ["x"], "$defs": schema.get("$defs", {})}
                if isinstance(schema, dict) else {"type": "object", "properties": {"x": schema}, "required": ["x"]})  # fmt: skip
    try:
        turn = build_turn([tool], tool_choice={"type": "function", "function": {"name": "t"}})
    except InvalidRequest:
        assume(False)  # Closed, or as it is, the tool has no arguments to give: the turn cannot offer it.
    reply = engine.say(turn.grammar, seed=seed, max_tokens=400, temperature=1.5)
    try:
        read_back = read_reply(turn, content=reply.content, finish_reason=reply.finish_reason, source="supervised")
    except TruncatedReply:
        return  # A random walk need not end.
    except InvalidArguments:
        assert turn.widened or _repeats(reply.content)
        return
    arguments = read_back.arguments  # type: ignore[union-attr]
    assert turn.widened or judge(tool.parameters).is_valid(arguments), arguments


def _repeats(content: str) -> bool:
    """Whether some object names a key twice: only keys that no schema names can."""
    found: list[bool] = []
    json.loads(content, object_pairs_hook=lambda pairs: found.append(len(dict(pairs)) < len(pairs)))
    return any(found)


def test_what_the_judges_are_worth() -> None:
    """The judges are independent: each of them refuses what is not so."""
    assert not judge({"type": "integer"}).is_valid("x")
    assert not read('root ::= "a"\n').admits("b")
    with pytest.raises(AssertionError):
        assert admits('root ::= "a"\n', "b")
