"""The daemon over an engine that is not its own: by url, local and remote."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tacid_infer.engine import Dialect, EngineClient
from tacid_infer.engine.engine import Endpoint
from tacid_infer.service.agent import Agent, Completion, SayStream
from tacid_infer.service.allow_list import AllowListFile
from tacid_infer.service.config import Config
from tacid_infer.service.metrics import Metrics
from tacid_infer.service.requests import TurnRequest
from tacid_infer.tools import parse_tools
from tacid_infer.turn import Call, Say

from ..conftest import RunningEngine
from ..engine.test_client import Endpoint as StandIn

TOOL = {"name": "t", "parameters": {"type": "object", "properties": {"n": {"const": 3}}, "required": ["n"]}}


def complete(engine: Endpoint, folder: Path, **request: Any) -> Completion:
    async def work() -> Completion:
        agent = Agent(engine, AllowListFile(folder / "services.json"), Config(), Metrics())
        try:
            return await agent.complete(TurnRequest(parse_tools([TOOL]), **request))
        finally:
            await engine.client.close()

    return asyncio.run(work())


def test_a_real_llama_server_by_its_socket(engine: RunningEngine, folder: Path) -> None:
    socket = str(engine.supervisor.settings.socket)
    endpoint = Endpoint(EngineClient(Dialect.LLAMA, socket=socket), f"unix:{socket}")
    assert endpoint.source == "local"
    assert complete(endpoint, folder, tool_choice="t").reply == Call("t", {"n": 3})


@pytest.mark.parametrize(
    ("dialect", "content", "expected"),
    [
        (Dialect.TOOLS, '{"tool": "t", "arguments": {"n": 3}}', Call("t", {"n": 3})),
        (Dialect.TOOLS, "prose", Say("prose", enforced=False)),
        (Dialect.REMOTE, '{"tool": "t", "arguments": {"n": 3}}', Say('{"tool": "t", "arguments": {"n": 3}}')),
    ],
)
def test_local_and_remote_are_read_differently(folder: Path, dialect: Dialect, content: str, expected: Any) -> None:
    server = StandIn()
    event = {"choices": [{"delta": {"content": content}, "finish_reason": "stop"}]}
    server.answer = b"data: " + json.dumps(event).encode() + b"\n\n"
    try:
        completion = complete(Endpoint(EngineClient(dialect, url=server.url), server.url), folder)
    finally:
        server.server.shutdown()
        server.server.server_close()
    assert completion.reply == expected


@pytest.mark.parametrize("step", [1, 2, 3, 7, 100])
def test_an_answer_streams_decoded_and_whole(step: int) -> None:
    said = 'quotes " and \\ and \n, é, 🔧, "tool": {"x"}'
    for ascii_only in (False, True):
        content = json.dumps({"say": said}, ensure_ascii=ascii_only)
        stream = SayStream()
        pieces = [stream.feed(content[at : at + step]) for at in range(0, len(content), step)]
        assert "".join(pieces) == said
        for piece in pieces:
            piece.encode()
    call = SayStream()
    assert call.feed('{"tool": "t", "arguments": {"say": "x"}}') == ""
