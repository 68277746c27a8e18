"""OpenAI's shape over the socket, whole and streamed."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import httpx
import pytest

from .running import SHORT, USER, Daemon


def test_openai_whole(daemon: Daemon) -> None:
    body = {"model": "x", "messages": USER, "tools": [{"type": "function", "function": SHORT}],
            "tool_choice": {"type": "function", "function": {"name": "t"}}}  # fmt: skip
    answer = daemon.post("/v1/chat/completions", body).json()
    choice = answer["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["tool_calls"][0]["function"]["name"] == "t"
    assert json.loads(choice["message"]["tool_calls"][0]["function"]["arguments"])["n"] in (1, 2)
    assert daemon.http.get("/v1/models").json()["data"][0]["id"] == "tiny"


def events(response: httpx.Response) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in response.text.split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def test_openai_streamed(daemon: Daemon) -> None:
    streams = 0
    for seed in range(30):
        body = {"messages": USER, "tool_choice": "none", "stream": True, "seed": seed, "temperature": 3.0}
        parts = events(daemon.post("/v1/chat/completions", body))
        if "error" in parts[-1]:
            assert parts[-1]["error"]["code"] == "truncated"
            continue
        assert parts[-1]["choices"][0]["finish_reason"] == "stop"
        text = "".join(part["choices"][0]["delta"].get("content") or "" for part in parts)
        text.encode()
        streams += len(parts) > 4
    assert streams > 5
    body = {"messages": USER, "tools": [SHORT], "tool_choice": "t", "stream": True}
    parts = events(daemon.post("/v1/chat/completions", body))
    assert parts[1]["choices"][0]["delta"]["tool_calls"][0]["function"]["name"] == "t"
    assert parts[-1]["choices"][0]["finish_reason"] == "tool_calls"
    refused = daemon.post("/v1/chat/completions", {"messages": USER, "tool_choice": "zzz", "stream": True})
    assert refused.status_code == 400 and refused.json()["error"]["code"] == "invalid_tool_choice"


def test_a_caller_that_stops_reading_holds_up_nobody(daemon: Daemon) -> None:
    import socket

    body = json.dumps(
        {"messages": USER, "tool_choice": "proposal.submit", "tools": [], "stream": True, "max_tokens": 6000}
    )
    say = json.dumps(
        {"messages": USER, "tool_choice": "none", "stream": True, "max_tokens": 6000, "seed": 1, "min_p": 0}
    )
    lazy = []
    for text in (body, say, say):
        connection = socket.socket(socket.AF_UNIX)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        connection.connect(str(daemon.socket))
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: d\r\nContent-Length: {len(text)}\r\n\r\n"
        connection.sendall(head.encode() + text.encode())
        lazy.append(connection)
    answer = daemon.post("/v1/complete", {"tools": [SHORT], "messages": USER, "tool_choice": "t"})
    assert answer.status_code == 200
    for connection in lazy:
        connection.close()
