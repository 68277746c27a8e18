"""A conversation in the forms that callers use, as the plain turns that ChatML knows.

Known forms: OpenAI's system (or developer), user, assistant (with or without ``tool_calls``) and tool messages, its
older function messages, and the ``function_call`` and ``function_call_output`` items of its Responses API. Content is
text, null, or a list of text parts. Anything else is refused, never dropped.

A past call is shown as our own wire format, a past answer likewise, so that the model sees its replies as it wrote
them; a tool's result comes as a user turn that names the call.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import InvalidRequest
from ..untrusted import in_json, in_prose


def render_messages(raw: Sequence[Any], catalogue: str) -> list[dict[str, str]]:
    """The turns to send: one system turn, which the catalogue opens, and the rest of the conversation.

    Raises:
        InvalidRequest: names the message and the member at fault.
    """
    system = [catalogue]
    turns: list[dict[str, str]] = []
    calls: dict[str, str] = {}
    for index, message in enumerate(raw):
        if not isinstance(message, Mapping):
            raise _refused(index, None, "must be an object")
        kind = message.get("role", message.get("type"))
        match kind:
            case "system" | "developer":
                system.append(in_prose(_content(message, index)))
            case "user":
                turns.append({"role": "user", "content": in_prose(_content(message, index))})
            case "assistant":
                text = _content(message, index)
                asked = [_call(call, index, calls) for call in message.get("tool_calls") or ()]
                if message.get("function_call"):
                    asked.append(_call({"function": message["function_call"]}, index, calls))
                said = [in_json(json.dumps({"say": text}, ensure_ascii=False))] if text or not asked else []
                turns.extend({"role": "assistant", "content": part} for part in (*said, *asked))
            case "function_call":
                call = {"id": message.get("call_id"), "function": message}
                turns.append({"role": "assistant", "content": _call(call, index, calls)})
            case "tool" | "function" | "function_call_output":
                turns.append({"role": "user", "content": _result(message, index, calls)})
            case _:
                raise _refused(index, "role", f"is {kind!r}, which is not known")
    return [{"role": "system", "content": "\n\n".join(system)}, *turns]


def _content(message: Mapping[str, Any], index: int, member: str = "content") -> str:
    content = message.get(member)
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise _refused(index, member, "must be text, null or a list of text parts")
    parts: list[str] = []
    for part in content:
        text = part.get("text") if isinstance(part, Mapping) else part
        if not isinstance(text, str):
            raise _refused(index, member, "holds a part that is no text")
        parts.append(text)
    return "".join(parts)


def _call(call: Any, index: int, calls: dict[str, str]) -> str:
    function = call.get("function") if isinstance(call, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(name, str) or not isinstance(function, Mapping):
        raise _refused(index, "tool_calls", "holds a call without a function's name")
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except ValueError:
            raise _refused(index, "tool_calls", f"holds arguments of {name!r} that are not JSON") from None
    if isinstance(call.get("id"), str):
        calls[call["id"]] = name
    return in_json(json.dumps({"tool": name, "arguments": arguments or {}}, ensure_ascii=False))


def _result(message: Mapping[str, Any], index: int, calls: dict[str, str]) -> str:
    identifier = message.get("tool_call_id", message.get("call_id"))
    name = message.get("name") or calls.get(identifier if isinstance(identifier, str) else "")
    if not isinstance(name, str):
        raise _refused(index, "tool_call_id", f"is {identifier!r}, which names no call before it")
    member = "output" if message.get("type") == "function_call_output" else "content"
    result = _content(message, index, member)
    return f"Result of {in_json(json.dumps(name, ensure_ascii=False))}: {in_prose(result)}"


def _refused(index: int, member: str | None, what: str) -> InvalidRequest:
    where = f"messages/{index}" + (f"/{member}" if member else "")
    return InvalidRequest(f"message {index}: {member + ' ' if member else ''}{what}", pointer=f"/{where}")
