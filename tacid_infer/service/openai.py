"""OpenAI's chat completions over turns: tools in, ``tool_calls`` out, whole or streamed.

Source: OpenAI's API reference, "Chat completions" and "Streaming".
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from ..errors import InvalidRequest, TacidError
from ..turn import Call
from .agent import Completion, SayPiece
from .config import LimitsSection
from .requests import SAMPLING, TurnRequest, checked_sampling, parse_limited_tools


def parse_chat(body: Any, limits: LimitsSection) -> tuple[TurnRequest, bool]:
    """A turn's request, and whether the answer is to be streamed.

    Members that change nothing here (user, metadata, ...) are ignored, as OpenAI's servers do; those that would change
    the answer, and cannot, are refused.

    Raises:
        InvalidRequest
    """
    if not isinstance(body, Mapping):
        raise InvalidRequest("the request must be an object", pointer="")
    if not isinstance(body.get("messages"), list):
        raise InvalidRequest("messages must be a list", pointer="/messages")
    if body.get("n", 1) != 1:
        raise InvalidRequest("n must be 1: a turn has one reply", pointer="/n")
    wanted = body.get("response_format")
    if wanted is not None and (not isinstance(wanted, Mapping) or wanted.get("type") != "text"):
        raise InvalidRequest("response_format: the turn's grammar decides the form", pointer="/response_format")
    if body.get("stop"):
        raise InvalidRequest("stop: a stop text would cut the reply's JSON", pointer="/stop")
    tools = body.get("tools") or []
    if not isinstance(tools, list):
        raise InvalidRequest("tools must be a list", pointer="/tools")
    sampling = {name: value for name, value in body.items() if name in SAMPLING and value is not None}
    if body.get("max_completion_tokens") is not None:
        sampling["max_tokens"] = body["max_completion_tokens"]
    choice = body.get("tool_choice")
    request = TurnRequest(
        tools=parse_limited_tools(tools, limits),
        tool_choice="auto" if choice is None else choice,
        messages=body["messages"],
        sampling=checked_sampling(sampling),
    )
    return request, body.get("stream") is True


def to_chat(completion: Completion, model: str) -> dict[str, Any]:
    """The whole answer."""
    reply = completion.reply
    if isinstance(reply, Call):
        message: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [_tool_call(reply)]}
    else:
        message = {"role": "assistant", "content": reply.text}
    choice = {"index": 0, "message": message, "finish_reason": _finish(completion), "logprobs": None}
    return {**_head("chat.completion", model), "choices": [choice], "usage": completion.usage}


async def to_events(pieces: AsyncGenerator[SayPiece | Completion, None], model: str) -> AsyncGenerator[bytes, None]:
    """The answer as server-sent events. An error after the first is an event of its own, and ends them."""
    head = _head("chat.completion.chunk", model)

    def event(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return _event({**head, "choices": [choice], **more})

    said = False
    yield event({"role": "assistant", "content": None})
    try:
        async with aclosing(pieces):
            async for piece in pieces:
                if isinstance(piece, SayPiece):
                    said = True
                    yield event({"content": piece.text})
                    continue
                if isinstance(piece.reply, Call):
                    yield event({"tool_calls": [{"index": 0, **_tool_call(piece.reply)}]})
                elif not said and piece.reply.text:
                    yield event({"content": piece.reply.text})
                yield event({}, _finish(piece), usage=piece.usage)
    except TacidError as error:
        yield _event(error.to_json())
    yield b"data: [DONE]\n\n"


def _tool_call(call: Call) -> dict[str, Any]:
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    function = {"name": call.tool, "arguments": arguments}
    return {"id": f"call_{secrets.token_hex(8)}", "type": "function", "function": function}


def _finish(completion: Completion) -> str:
    return "tool_calls" if isinstance(completion.reply, Call) else completion.finish_reason


def _head(kind: str, model: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{secrets.token_hex(12)}", "object": kind, "created": int(time.time()), "model": model}


def _event(body: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(body, ensure_ascii=False).encode() + b"\n\n"
