"""The catalogue: the turn's tools as the model reads them, in the system turn (ADR-0056, "Decision").

What varies least comes first, so that the engine's prompt cache keeps the longest beginning: how to reply, then the
tools in their order, the protocol's own before all others, then the services of this machine.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from ..tools import Tool, ToolChoice
from ..untrusted import in_json
from .narrowing import AllowList

_CALL = '{"tool": "<name>", "arguments": {...}}'
_SAY = '{"say": "<text>"}'
_REPLY = {
    "auto": f"Reply with one JSON object and nothing else.\nTo call a tool: {_CALL}\nTo answer in words: {_SAY}",
    "required": f"Reply with one JSON object and nothing else.\nCall a tool: {_CALL}",
    "named": f"Reply with one JSON object and nothing else.\nCall the tool: {_CALL}",
    "none": f"Reply with one JSON object and nothing else.\nAnswer in words: {_SAY}",
}
_MOST_NAMES = 200


def write_catalogue(tools: Sequence[Tool], choice: ToolChoice, allow_list: AllowList) -> str:
    """The catalogue's text.

    Args:
        tools: those that the grammar admits, already narrowed.
        choice: what the turn must do.
        allow_list: told as a fact.
    """
    lines = [_REPLY[choice.mode]]
    if tools:
        lines.append("Tools, one a line, with the JSON Schema of their arguments:")
        lines += [write_tool(tool) for tool in tools]
    lines.append(_fact(allow_list))
    return "\n".join(lines)


def write_tool(tool: Tool) -> str:
    """One tool as a line of JSON. Keys stay in the schema's order, which is the grammar's."""
    return in_json(json.dumps(tool.to_json(), ensure_ascii=False))


def _fact(allow_list: AllowList) -> str:
    if not allow_list.narrows:
        return "This machine has not said which services it has."
    if not allow_list.services:
        return "This machine has no services that may be changed."
    if len(allow_list.services) > _MOST_NAMES:
        return f"This machine has {len(allow_list.services)} services; the tools' schemas list them."
    names = json.dumps(list(allow_list.services), ensure_ascii=False)
    return f"The services of this machine, and there are no others: {in_json(names)}"
