"""Reading a reply, by whose engine it came from."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tacid_infer.errors import InvalidArguments, NotEnforced, TruncatedReply, UnknownTool
from tacid_infer.tools import parse_tools
from tacid_infer.turn import AllowList, Call, Say, Turn, build_turn, read_reply

LIST = AllowList(("nginx",), state="ok")
TURN: Turn = build_turn(
    parse_tools([{"name": "t", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}}]),
    allow_list=LIST,
)
CALL = '{"tool": "t", "arguments": {"n": 1}}'


def test_a_constrained_reply_is_the_same_completion_as_a_remote_one_from_another_field() -> None:
    local = read_reply(TURN, content=CALL, source="supervised")
    remote = read_reply(TURN, content=None, tool_calls=[("t", '{"n": 1}')], source="remote", finish_reason="tool_calls")
    assert local == remote == Call("t", {"n": 1})


def test_a_local_engine_that_ignored_the_grammar_is_still_heard() -> None:
    assert read_reply(TURN, content="Hello there.", source="local") == Say("Hello there.", enforced=False)


def test_a_remote_reply_that_is_json_is_not_read_as_a_call() -> None:
    assert read_reply(TURN, content=CALL, source="remote") == Say(CALL)


def test_tool_calls_come_first() -> None:
    reply = read_reply(TURN, content=CALL, tool_calls=[("t", '{"n": 2}')], source="local")
    assert reply == Call("t", {"n": 2})


def test_an_answer_reads_back_exactly() -> None:
    for said in ("", 'quotes " and \\', "line\nbreak", "x" * 3000, CALL, "emoji 🔧", "\ufffd"):
        content = json.dumps({"say": said}, ensure_ascii=False)
        assert read_reply(TURN, content=content, source="supervised") == Say(said)


def test_the_protocols_call_is_its_own_type() -> None:
    item = {"kind": "service_option_set", "name": "nginx", "option": "enable", "value": {"a": [1, 1.5, None, True]}}
    arguments = {"summary": "s", "items": [item]}
    reply = read_reply(TURN, content=json.dumps({"tool": "proposal.submit", "arguments": arguments}))
    assert isinstance(reply, Call) and reply.value is not None
    assert reply.value.model_dump(mode="json") == arguments


@pytest.mark.parametrize("ending", ["<|im_end|>", "\n", " <|im_end|>\n"])
def test_the_end_marker_is_tolerated(ending: str) -> None:
    assert read_reply(TURN, content=CALL + ending, source="supervised") == Call("t", {"n": 1})


NOT_A_REPLY = [
    "prose",
    CALL + " and more",
    CALL + CALL,
    '{"tool": "t", "arguments": {"n": NaN}}',
    '{"tool": "t", "arguments": {"n": 1e400}}',
    '{"tool": "t"}',
    '{"tool": "t", "arguments": []}',
    '{"say": 5}',
    '{"say": "x", "tool": "t"}',
    '{"say": "\\ud800"}',
    "[]",
    "",
    "[" * 100000,
    "\ufeff" + CALL,
]


@pytest.mark.parametrize("content", NOT_A_REPLY, ids=lambda content: ascii(content[:30]))
def test_what_is_no_reply(content: str) -> None:
    assert read_reply(TURN, content=content, source="local") == Say(content, enforced=False)
    with pytest.raises(NotEnforced) as caught:
        read_reply(TURN, content=content, source="supervised")
    assert caught.value.details["text"] == content


def test_half_an_object_is_a_named_error_that_carries_what_came() -> None:
    with pytest.raises(TruncatedReply) as caught:
        read_reply(TURN, content=CALL[:20], finish_reason="length", source="supervised")
    assert caught.value.details["text"] == CALL[:20]


@pytest.mark.parametrize("source", ["supervised", "local"])
def test_a_repeated_key_is_a_named_error(source: Any) -> None:
    """A grammar of open keys admits it; a reader that took the last one would guess."""
    with pytest.raises(InvalidArguments, match="a key stands twice"):
        read_reply(TURN, content='{"tool": "t", "arguments": {"n": 1, "n": 2}}', source=source)


@pytest.mark.parametrize("name", ["facts", "T", "t ", ""])
def test_a_tool_that_was_not_offered(name: str) -> None:
    content = json.dumps({"tool": name, "arguments": {}})
    with pytest.raises(UnknownTool):
        read_reply(TURN, content=content, source="local")
    with pytest.raises(NotEnforced):
        read_reply(TURN, content=content, source="supervised")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("t", {"n": "1"}),
        ("t", {"n": 1.5}),
        ("proposal.submit", {"summary": "s", "items": []}),
        ("proposal.submit", {"summary": "s", "items": [{"kind": "service_enable", "name": "evil"}]}),
        ("facts.get", {}),
    ],
)
def test_arguments_that_do_not_fit(tool: str, arguments: Any) -> None:
    content = json.dumps({"tool": tool, "arguments": arguments})
    with pytest.raises(InvalidArguments) as caught:
        read_reply(TURN, content=content, source="local")
    assert caught.value.details["tool"] == tool
    with pytest.raises(NotEnforced):
        read_reply(TURN, content=content, source="supervised")
