"""Thousands of real constrained replies: each parses, and validates against its schema by an independent validator.

This is the sentence that the ADR leaves unproven, proven: a real llama.cpp accepts what the compiler emits.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal, localcontext
from typing import Any

import jsonschema
import pytest

from tacid_infer.errors import EngineRefused, InvalidArguments, TruncatedReply
from tacid_infer.grammar import compile_turn
from tacid_infer.tools import parse_tools
from tacid_infer.turn import AllowList, Call, Say, build_turn, read_reply

from ..conftest import RunningEngine
from ..grammar.test_keywords import TABLE

REPLIES = 2200


def tools() -> list[dict[str, Any]]:
    """A varied set: every keyword's schema, kept short enough for random text to come to its end."""
    made = []
    for name, schema, _, _ in TABLE:
        if any(word in name for word in ("100000", "1500", "nothing said", "not type")) or schema is True:
            continue
        made.append({"name": name, "parameters": {"type": "object", "properties": {"x": schema}, "required": ["x"]}})
    return made


def multiple_of(validator: Any, step: Any, instance: Any, schema: Any) -> Iterator[jsonschema.ValidationError]:
    """In decimals: jsonschema divides doubles, and to it 0.07 is no multiple of 0.01."""
    with localcontext(prec=1000):
        if isinstance(instance, int | float) and Decimal(repr(instance)) % Decimal(repr(step)):
            yield jsonschema.ValidationError(f"{instance} is not a multiple of {step}")


def test_thousands_of_constrained_replies(engine: RunningEngine) -> None:
    offered = parse_tools(tools())
    read = calls = 0
    seed = 0
    while read < REPLIES:
        tool = offered[seed % len(offered)]
        seed += 1
        assert seed < 3 * REPLIES, "too many replies ran into the token limit"
        turn = build_turn(offered, tool_choice={"type": "function", "function": {"name": tool.name}})
        reply = engine.say(turn.grammar, seed=seed, max_tokens=400)
        try:
            result = read_reply(turn, content=reply.content, finish_reason=reply.finish_reason, source="supervised")
        except TruncatedReply:
            continue  # Random text may go on for ever; that is a matter of sampling, not of the grammar.
        except InvalidArguments as error:
            # The one thing that a grammar of open keys admits and the reader does not.
            assert "a key stands twice" in error.message
            continue
        read += 1
        assert isinstance(result, Call)
        if tool.name != "pattern, property":  # Python's re knows no \p: the reader above has judged it.
            draft = jsonschema.Draft7Validator if "draft 7" in tool.name else jsonschema.Draft202012Validator
            jsonschema.validators.extend(draft, {"multipleOf": multiple_of})(tool.parameters).validate(result.arguments)
        calls += 1
    assert calls == read == REPLIES


def test_the_whole_turn_with_all_tools(engine: RunningEngine) -> None:
    turn = build_turn(parse_tools(tools()), allow_list=AllowList(("nginx",), state="ok"))
    kinds = set()
    for seed in range(150):
        reply = engine.say(turn.grammar, seed=seed, max_tokens=300, temperature=4.0)
        try:
            result = read_reply(turn, content=reply.content, finish_reason=reply.finish_reason, source="supervised")
        except (TruncatedReply, InvalidArguments):
            continue
        kinds.add(type(result))
    assert kinds == {Call, Say}


def test_a_broken_grammar_is_refused_by_this_engine(engine: RunningEngine) -> None:
    for broken in ("root ::= (", "root ::= missing", 'start ::= "a"', 'root ::= root "a"'):
        with pytest.raises(EngineRefused):
            engine.say(broken)


def test_an_engine_takes_every_bound_of_length(engine: RunningEngine) -> None:
    for limit in (1, 1999, 2000, 2001, 4096, 65536, 524288, 10**12):
        schema = {
            "type": "object",
            "properties": {
                "o": {"type": "object", "properties": {"s": {"type": "string", "maxLength": limit}}, "required": ["s"]},
                "l": {"type": "array", "maxItems": 50, "items": {"type": "string", "maxLength": limit}},
            },
        }
        engine.say(compile_turn([{"name": "t", "parameters": schema}], tool_choice="t"), max_tokens=20)
    rows = {"type": "array", "minItems": 10, "maxItems": 1000, "items": {"type": "array", "maxItems": 5000}}
    schema = {"type": "object", "properties": {"rows": rows}, "required": ["rows"]}
    engine.say(compile_turn([{"name": "t", "parameters": schema}], tool_choice="t"), max_tokens=20)


def test_the_value_ends_by_itself(engine: RunningEngine) -> None:
    """An engine that always prefers the digit 0 still comes to the end of a number."""
    digit = engine.run(engine.client.post("/tokenize", {"content": "0"}, 30))["tokens"][0]
    for kind in ("integer", "number"):
        schema = {"type": "object", "properties": {"x": {"type": kind}}, "required": ["x"]}
        grammar = compile_turn([{"name": "t", "parameters": schema}], tool_choice="t")
        reply = engine.say(grammar, logit_bias=[[digit, 100.0]], temperature=0, max_tokens=400)
        assert reply.finish_reason == "stop"
        json.loads(reply.content)
