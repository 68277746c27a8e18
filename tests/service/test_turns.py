"""Turns over the socket, with a real engine, and with one that does not hold to its grammar."""

from __future__ import annotations

import json
from typing import Any

from ..conftest import admits
from .running import SHORT, USER, Daemon


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


def test_the_list_on_disk_is_in_force_at_once(daemon: Daemon) -> None:
    def listed() -> list[str]:
        return list(daemon.http.get("/v1/allow-list").json()["services"])

    before = daemon.services.read_text()
    try:
        for number in range(50):
            fresh = daemon.folder / "fresh"
            fresh.write_text(json.dumps({"services": [f"s{number}"]}))
            fresh.replace(daemon.services)
            assert listed() == [f"s{number}"]
        daemon.services.write_text('{"services": ["half')
        assert listed() == ["s49"]
        status = daemon.status()
        assert status["state"] == "degraded" and "line 1 column" in status["reasons"][0]
        daemon.services.unlink()
        assert daemon.http.get("/v1/allow-list").json()["state"] == "missing"
    finally:
        daemon.services.write_text(before)
    assert listed() == ["nginx", "sshd"]


NAMES = ["nginx", "getty@tty1", "systemd-fsck@dev-disk-by\\x2duuid-1"]
OTHERS = ["nginx.service", "Nginx", "nginx ", "nginx\n", "nginx@evil", "../nginx", "nginx*", "getty@tty2", "ngin", ""]


def test_names_are_exact(daemon: Daemon) -> None:
    """D5: the listed names and nothing beside them, backslashes included."""
    before = daemon.services.read_text()
    daemon.services.write_text(json.dumps(NAMES))
    try:
        grammar = daemon.post("/v1/turns", {"tool_choice": "proposal.submit"}).json()["grammar"]
        for name in NAMES + OTHERS:
            items = [{"kind": "service_restart", "name": name}]
            call = {"tool": "proposal.submit", "arguments": {"summary": "s", "items": items}}
            assert admits(grammar, json.dumps(call)) == (name in NAMES), name
    finally:
        daemon.services.write_text(before)


def test_an_agents_own_enum_is_intersected(daemon: Daemon) -> None:
    """D5: and where nothing is left, the tool is left out, with the reason."""

    def tool(name: str, names: Any) -> dict[str, Any]:
        return {"name": name, "parameters": {"type": "object", "required": ["ops"], "properties": {"ops": {
            "type": "array", "items": {"$ref": "#/$defs/op"}, "minItems": 1}}, "$defs": {"op": {"anyOf": [
                {"type": "object", "required": ["kind", "name"], "properties": {
                    "kind": {"const": "service_enable"}, "name": names}}]}}}}  # fmt: skip

    tools = [tool("some", {"enum": ["nginx", "caddy"]}), tool("none", {"const": "caddy"})]
    turn = daemon.post("/v1/turns", {"tools": tools}).json()
    assert [left["tool"] for left in turn["omitted"]] == ["none"]
    assert "allow-list" in turn["omitted"][0]["reason"]
    for name, fits in (("nginx", True), ("caddy", False), ("sshd", False)):
        call = {"tool": "some", "arguments": {"ops": [{"kind": "service_enable", "name": name}]}}
        assert admits(turn["grammar"], json.dumps(call)) == fits
    assert daemon.post("/v1/turns", {"tools": tools, "strict": True}).status_code == 400
