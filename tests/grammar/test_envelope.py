"""The turn's envelope: what the ADR's paragraph "What is proven" says of the compiler, and hostile names."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacid_infer.gbnf import check
from tacid_infer.gbnf.check import GrammarError
from tacid_infer.gbnf.expr import Alt, Lit, Ref, Seq
from tacid_infer.grammar import compile_turn

from ..conftest import RunningEngine, admits
from ..gbnf_reader import read

HOSTILE = [
    'a"b\\c',
    "line\nbreak",
    '"\n root ::= "x',
    'x" | root ::= "y',
    "\x00\x01\x1f\x7f",
    "🔧fix",
    "\u202eright-to-left\u200f",
    "größe_setzen",
    "a" * 10000,
    "root",
    "string",
    "]}{[",
    "<|im_start|>system",
    "%llguidance",
    "{{ jinja }}",
    "\u2028\ufeff",
]

OPTIONAL = {
    "type": "object",
    "properties": {f"p{number}": {"type": "integer"} for number in range(1, 7)},
    "required": ["p3"],
}


def call(name: str, arguments: Any) -> str:
    return json.dumps({"tool": name, "arguments": arguments}, ensure_ascii=False)


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: ascii(name[:20]))
def test_a_hostile_name_cannot_introduce_a_rule_and_round_trips(name: str) -> None:
    grammar = compile_turn([{"name": name}, {"name": "plain"}])
    harmless = compile_turn([{"name": "harmless"}, {"name": "plain"}])
    assert len(read(grammar).rules) == len(read(harmless).rules)
    written = call(name, {})
    # A control token's text is written with an escape: it would else be met by the token, which no reply shows.
    spelt = written.replace("<|", "\\u003c|")
    assert admits(grammar, spelt)
    assert json.loads(spelt)["tool"] == name
    assert not admits(grammar, call(name + "x", {}))


@settings(max_examples=200, deadline=None)
@given(st.text(min_size=1).filter(lambda name: name.isprintable() or True))
def test_any_unicode_name_round_trips(name: str) -> None:
    try:
        name.encode()
    except UnicodeEncodeError:
        return
    grammar = compile_turn([{"name": name}], tool_choice="required")
    spellings = (
        call(name, {}),
        call(name, {}).replace("<", "\\u003c"),
    )  # A control token's first character is escaped.
    assert any(read(grammar).admits(text) for text in spellings)


def test_hostile_names_are_sampled_back_by_a_real_engine(engine: RunningEngine) -> None:
    for name in HOSTILE:
        if len(name) > 1000:
            continue
        reply = engine.say(compile_turn([{"name": name}], tool_choice="required"), logit_bias=[])
        assert json.loads(reply.content) == {"tool": name, "arguments": {}}


@pytest.mark.parametrize("kept", list(itertools.product([False, True], repeat=6)))
def test_required_fields_are_required_and_optional_ones_optional_in_any_combination(kept: tuple[bool, ...]) -> None:
    grammar = compile_turn([{"name": "t", "parameters": OPTIONAL}])
    arguments = {f"p{number}": number for number, here in enumerate(kept, 1) if here}
    assert read(grammar).admits(call("t", arguments)) == kept[2]


@settings(max_examples=150, deadline=None)
@given(data=st.data(), count=st.integers(0, 9))
def test_required_and_optional_in_any_combination_of_any_object(data: st.DataObject, count: int) -> None:
    keys = data.draw(
        st.lists(st.text(min_size=0, max_size=5).filter(_is_text), min_size=count, max_size=count, unique=True)
    )
    required = data.draw(st.lists(st.sampled_from(keys), unique=True)) if keys else []
    chosen = data.draw(st.lists(st.sampled_from(keys), unique=True)) if keys else []
    schema = {
        "type": "object",
        "properties": {key: {"type": "boolean"} for key in keys},
        "required": required,
        "additionalProperties": False,
    }
    grammar = compile_turn([{"name": "t", "parameters": schema}], tool_choice="t")
    arguments = {key: True for key in keys if key in chosen}
    assert read(grammar).admits(call("t", arguments)) == (set(required) <= set(chosen))


def _is_text(text: str) -> bool:
    return "<" not in text and "[" not in text and text.isprintable()


def test_every_reference_is_defined_and_every_rule_reachable() -> None:
    grammar = read(compile_turn([{"name": "t", "parameters": OPTIONAL}, {"name": "u"}]))
    seen, todo = {"root"}, ["root"]

    def references(node: Any) -> set[str]:
        if node[0] == "ref":
            return {node[1]}
        parts = node[1] if node[0] in ("alt", "seq") else (node[1],) if node[0] == "rep" else ()
        return set().union(*(references(part) for part in parts))

    while todo:
        for name in references(grammar.rules[todo.pop()]):
            assert name in grammar.rules
            if name not in seen:
                seen.add(name)
                todo.append(name)
    assert seen == set(grammar.rules)


@pytest.mark.parametrize(
    ("rules", "fault"),
    [
        ({"root": Ref("gone")}, "not defined"),
        ({"root": Lit("a"), "lost": Lit("b")}, "not reachable"),
        ({"root": Alt((Seq((Ref("root"), Lit("a"))), Lit("b")))}, "left-recursive"),
        ({"root": Seq((Lit("a"), Ref("root")))}, "no finite text"),
        ({"root": Alt((Lit("x"), Seq((Ref("e"), Ref("root"))))), "e": Alt((Lit("a"), Seq(())))}, "left-recursive"),
    ],
)
def test_the_check_finds_each_fault(rules: Any, fault: str) -> None:
    with pytest.raises(GrammarError, match=fault):
        check(rules, ["root"])


def test_rule_names_are_positional_first() -> None:
    names = [f"{name}" for name in ("x.y", "x_y", "x-y", "x/y")]
    grammar = compile_turn([{"name": name, "parameters": OPTIONAL} for name in names])
    assert re.findall(r"^(call-\d+-\S+) ::=", grammar, re.MULTILINE) == [f"call-{n}-x-y" for n in range(4)]
    assert compile_turn([{"name": "facts.get"}]).count("call-0-facts-get ::=") == 1
    for name in names:
        assert admits(grammar, call(name, {"p3": 1}))


def test_keys_that_look_alike_stay_apart() -> None:
    kinds = {"a-b": 1, "a_b": "s", "a b": True, "温度": 2, "压力": "高", "": None, "root": 3, "string": 4}
    types = {int: "integer", str: "string", bool: "boolean", type(None): "null"}
    schema = {
        "type": "object",
        "properties": {key: {"type": types[type(value)]} for key, value in kinds.items()},
        "required": list(kinds),
    }
    grammar = compile_turn([{"name": "t", "parameters": schema}])
    assert admits(grammar, call("t", kinds))
    for key in kinds:
        assert not admits(grammar, call("t", {**kinds, key: ["wrong"]}))


def test_keys_come_in_the_schemas_order() -> None:
    schema = {
        "type": "object",
        "properties": {"z_why": {"type": "string"}, "a_pick": {"enum": [1, 2]}, "m_note": {"type": "string"}},
        "required": ["a_pick", "z_why"],
    }
    grammar = compile_turn([{"name": "t", "parameters": schema}])
    assert admits(grammar, call("t", {"z_why": "x", "a_pick": 1, "m_note": "n"}))
    assert admits(grammar, call("t", {"z_why": "x", "a_pick": 1}))
    assert not admits(grammar, call("t", {"a_pick": 1, "z_why": "x"}))


def test_tool_choice() -> None:
    tools = [{"name": "a"}, {"name": "b"}, {"name": "auto"}]
    say, a, b = '{"say": "hi \\"there\\""}', call("a", {}), call("b", {})
    for choice, admitted in {
        "auto": (say, a, b),
        "required": (a, b),
        "none": (say,),
        "a": (a,),
    }.items():
        grammar = compile_turn(tools, tool_choice=choice)
        for reply in (say, a, b):
            assert admits(grammar, reply) == (reply in admitted)
    by_object = compile_turn(tools, tool_choice={"type": "function", "function": {"name": "auto"}})
    assert admits(by_object, call("auto", {}))
    assert not admits(by_object, a)


def test_three_spellings_and_what_may_be_left_out() -> None:
    tools = [
        {"name": "a"},
        {"name": "b", "description": None, "parameters": None},
        {
            "type": "function",
            "function": {"name": "c", "parameters": {"type": "object", "properties": {}, "required": []}},
        },
        {"name": "d", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}, "strict": True},
        {"name": "e", "parameters": True},
    ]
    grammar = compile_turn(tools)
    for name in "abcde":
        assert admits(grammar, call(name, {}))
        assert admits(grammar, call(name, {"k": 1})) == (name in "de")
    assert not admits(grammar, call("e", []))


def test_other_tools_are_untouched_by_one_more() -> None:
    tools = [{"name": "a", "parameters": OPTIONAL}, {"name": "b", "parameters": OPTIONAL}]
    fewer = compile_turn(tools).splitlines()
    more = compile_turn([*tools, {"name": "c", "parameters": OPTIONAL}]).splitlines()
    own = [line for line in fewer if line.startswith(("args-", "call-"))]
    assert [line for line in more if line.startswith(("args-0", "args-1", "call-0", "call-1"))] == own


def test_many_optional_keys_stay_linear() -> None:
    def grammar(count: int) -> str:
        properties = {f"p{number}": {"type": "integer"} for number in range(1, count + 1)}
        return compile_turn([{"name": "t", "parameters": {"type": "object", "properties": properties}}])

    assert len(grammar(240)) < 2.6 * len(grammar(120))
    sixty = grammar(60)
    for keys in ([], [2, 59], [60], list(range(1, 61)), [31, 32, 33, 34]):
        assert admits(sixty, call("t", {f"p{number}": 1 for number in keys}))
    assert not admits(sixty, call("t", {"p2": 1, "p1": 1}))
    assert not admits(sixty, '{"tool": "t", "arguments": {"p1": 1, "p1": 1}}')


def test_a_turn_is_kept() -> None:
    tools = [{"name": "t", "parameters": OPTIONAL}]
    assert compile_turn(tools) is compile_turn(json.loads(json.dumps(tools)))
