"""Turns over the socket, with a real engine, and with one that does not hold to its grammar."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ..conftest import admits
from .running import LONG, SHORT, USER, Asking, Daemon, call_of, until


def test_a_turn_is_built(daemon: Daemon) -> None:
    answer = daemon.post("/v1/turns", {"tools": [SHORT], "messages": USER}).json()
    assert set(answer) >= {"grammar", "catalogue", "messages", "tools", "digest", "widened", "omitted"}
    assert [tool["name"] for tool in answer["tools"]] == ["facts.get", "proposal.submit", "t"]
    assert admits(answer["grammar"], '{"tool": "t", "arguments": {"n": 1}}')


def test_a_turn_is_completed(daemon: Daemon) -> None:
    answer = daemon.post("/v1/complete", {"tools": [SHORT], "messages": USER, "tool_choice": "t"}).json()
    assert answer["type"] == "call" and answer["tool"] == "t" and answer["arguments"]["n"] in (1, 2)
    assert answer["enforced"] is True and answer["finish_reason"] == "stop" and answer["usage"]["completion_tokens"] > 0


def test_a_service_name_that_is_not_listed_cannot_be_emitted(daemon: Daemon) -> None:
    """The whole chain: from the file to 200 sampled replies that each propose a service operation."""
    tool = {"name": "op", "parameters": {"$defs": {"E": {"type": "object", "properties": {
        "kind": {"const": "service_restart"}, "name": {"type": "string"}}, "required": ["kind", "name"]}},
        "type": "object", "properties": {"op": {"$ref": "#/$defs/E"}}, "required": ["op"]}}  # fmt: skip
    names = set()
    for seed in range(200):
        body = {"tools": [tool], "messages": USER, "tool_choice": "op", "seed": seed, "temperature": 5.0}
        answer = daemon.post("/v1/complete", body).json()
        assert answer["type"] == "call", answer
        assert answer["arguments"]["op"]["kind"] == "service_restart"
        names.add(answer["arguments"]["op"]["name"])
    assert names == {"nginx", "sshd"}
    proposal = daemon.post("/v1/turns", {"tool_choice": "proposal.submit"}).json()["grammar"]
    for name in ("nginx", "sshd", "caddy"):
        call = {
            "tool": "proposal.submit",
            "arguments": {"summary": "s", "items": [{"kind": "service_enable", "name": name}]},
        }
        assert admits(proposal, json.dumps(call)) == (name != "caddy")


def test_odd_schemas_are_left_out_or_answered(daemon: Daemon) -> None:
    odd = [
        {"name": "number", "parameters": 5},
    ]
    assert daemon.post("/v1/turns", {"tools": odd}).json()["error"]["code"] == "invalid_tool"
    large = {
        "type": "object",
        "properties": {f"k{n}": {"type": "string", "description": "x" * 100} for n in range(9000)},
    }
    gone = {"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}}
    answer = daemon.post(
        "/v1/turns", {"tools": [{"name": "gone", "parameters": gone}, {"name": "large", "parameters": large}]}
    )
    assert answer.status_code == 200
    assert [place["keyword"] for place in answer.json()["widened"]] == ["$ref"]
