"""What each kind of endpoint is sent, and what is read out of its answer.

The endpoints are stand-ins that keep what they were sent: neither vLLM nor a remote provider can be had here. That a
real llama-server takes what it is sent is shown everywhere else.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tacid_infer.engine import Dialect, EngineClient, EngineDelta, EngineRequest
from tacid_infer.errors import EngineDied, EngineRefused, EngineStarting

TOOLS = [{"type": "function", "function": {"name": "t", "parameters": {}}}]
REQUEST = EngineRequest([{"role": "user", "content": "x"}], 'root ::= "a"', TOOLS, "required", {"temperature": 0.5})


class Endpoint:
    """An OpenAI-like server that keeps what it was sent."""

    def __init__(self) -> None:
        self.bodies: list[Any] = []
        self.headers: list[Any] = []
        self.answer = b'data: {"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
        self.status = 200
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *parts: object) -> None:
                pass

            def do_POST(self) -> None:
                endpoint.headers.append(dict(self.headers))
                endpoint.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(endpoint.status)
                self.send_header("Content-Length", str(len(endpoint.answer)))
                self.end_headers()
                self.wfile.write(endpoint.answer)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    made = Endpoint()
    yield made
    made.server.shutdown()
    made.server.server_close()


def ask(endpoint: Endpoint, dialect: Dialect, request: EngineRequest = REQUEST, **more: Any) -> Any:
    async def work() -> Any:
        client = EngineClient(dialect, url=endpoint.url, **more)
        try:
            return await client.complete(request, timeout=10)
        finally:
            await client.close()

    return asyncio.run(work())


def test_a_llama_server_is_sent_the_grammar_alone(endpoint: Endpoint) -> None:
    assert ask(endpoint, Dialect.LLAMA).content == "a"
    (body,) = endpoint.bodies
    assert body["grammar"] == 'root ::= "a"' and "tools" not in body and body["temperature"] == 0.5


def test_a_local_server_that_honours_tools_is_sent_both(endpoint: Endpoint) -> None:
    ask(endpoint, Dialect.TOOLS)
    (body,) = endpoint.bodies
    assert body["grammar"] == 'root ::= "a"' == body["structured_outputs"]["grammar"]
    assert body["tools"] == TOOLS and body["tool_choice"] == "required"


def test_a_remote_one_is_sent_no_grammar(endpoint: Endpoint) -> None:
    ask(endpoint, Dialect.REMOTE, api_key="secret", model="m")
    (body,) = endpoint.bodies
    assert "grammar" not in body and "structured_outputs" not in body
    assert body["tools"] == TOOLS and body["model"] == "m"
    assert endpoint.headers[0]["Authorization"] == "Bearer secret"


def test_an_empty_grammar_is_never_sent(endpoint: Endpoint) -> None:
    with pytest.raises(EngineRefused, match="empty grammar"):
        ask(endpoint, Dialect.LLAMA, EngineRequest([], ""))
    assert endpoint.bodies == []


def test_tool_calls_in_pieces(endpoint: Endpoint) -> None:
    deltas = [
        {"tool_calls": [{"index": 0, "function": {"name": "t", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"a"'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": ": 1}"}}]},
    ]
    events = [{"choices": [{"delta": delta}]} for delta in deltas]
    events.append({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})  # type: ignore[dict-item]
    endpoint.answer = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    assert ask(endpoint, Dialect.REMOTE).tool_calls == (("t", '{"a": 1}'),)


@pytest.mark.parametrize(
    ("status", "answer", "error"),
    [
        (503, b'{"error": {"message": "Loading model", "code": 503}}', EngineStarting),
        (500, b"<html>", EngineRefused),
        (400, b'{"error": "plain text"}', EngineRefused),
        (200, b"", EngineDied),
        (200, b'data: {"choices": [{"delta": {"content": "half"}}]}\n\n', EngineDied),
        (200, b'{"error": {"message": "inside"}}', EngineRefused),
        (200, b"data: {broken\n\n", EngineRefused),
        (200, b"data: 5\n\n", EngineRefused),
        (200, b'error: {"code": 500, "message": "as an event"}\n\n', EngineRefused),
    ],
)
def test_faulty_answers_are_named(endpoint: Endpoint, status: int, answer: bytes, error: type[Exception]) -> None:
    endpoint.status, endpoint.answer = status, answer
    with pytest.raises(error):
        ask(endpoint, Dialect.LLAMA)


def test_nobody_listens() -> None:
    async def work() -> None:
        client = EngineClient(socket="/nowhere.sock")
        with pytest.raises(EngineStarting):
            await client.complete(REQUEST, timeout=5)
        await client.close()

    asyncio.run(work())


def test_a_character_cut_between_two_chunks(endpoint: Endpoint) -> None:
    endpoint.answer = 'data: {"choices": [{"delta": {"content": "é🔧"}, "finish_reason": "stop"}]}\n\n'.encode()

    async def work() -> list[str]:
        client = EngineClient(url=endpoint.url)
        pieces = [piece async for piece in client.stream(REQUEST, timeout=5)]
        await client.close()
        return [piece.text for piece in pieces if isinstance(piece, EngineDelta)]

    assert asyncio.run(work()) == ["é🔧"]
