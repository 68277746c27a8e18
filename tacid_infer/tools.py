"""A tool as the model may call it, read from the three spellings that callers use.

- ours: ``{"name", "description", "parameters"}``
- OpenAI's: ``{"type": "function", "function": {"name", "description", "parameters"}}``
- MCP's: ``{"name", "description", "inputSchema"}``

Members that the spellings do not name (annotations, strict, ...) are ignored. What is optional may be absent or null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from .errors import DuplicateTool, InvalidTool, InvalidToolChoice

Schema = Mapping[str, Any] | bool

NO_PARAMETERS: Schema = {"type": "object", "properties": {}, "additionalProperties": False}
"""The parameters of a tool that takes none."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool of a turn.

    Attributes:
        name: any Unicode text but the empty one; untrusted.
        description: the tool's sentence, or None.
        parameters: JSON Schema of the arguments object.
    """

    name: str
    description: str | None = None
    parameters: Schema = field(default_factory=lambda: NO_PARAMETERS)

    def to_json(self) -> dict[str, Any]:
        """Our own spelling of the tool; a missing description is left out."""
        described = {} if self.description is None else {"description": self.description}
        return {"name": self.name, **described, "parameters": self.parameters}


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """What the turn must do: ``auto`` (call or say), ``required`` (call), ``none`` (say), ``named`` (call ``name``)."""

    mode: Literal["auto", "required", "none", "named"] = "auto"
    name: str | None = None


def parse_tools(raw: object) -> list[Tool]:
    """Read an ordered list of tools.

    Raises:
        InvalidTool: names the index and the member at fault.
        DuplicateTool: two tools share a name.
    """
    if isinstance(raw, (str, bytes, Mapping)) or not isinstance(raw, Sequence):
        raise InvalidTool(f"tools must be a list, not {_kind(raw)}", member="tools")
    tools = [item if isinstance(item, Tool) else _parse_tool(item, index) for index, item in enumerate(raw)]
    seen: dict[str, int] = {}
    for index, tool in enumerate(tools):
        if tool.name in seen:
            raise DuplicateTool(
                f"tools {seen[tool.name]} and {index} are both named {_short(tool.name)}", index=index, tool=tool.name
            )
        seen[tool.name] = index
    return tools


def _parse_tool(raw: object, index: int) -> Tool:
    if not isinstance(raw, Mapping):
        raise InvalidTool(f"tool {index} must be an object, not {_kind(raw)}", index=index)
    body: Mapping[str, Any] = raw
    prefix = ""
    if "function" in raw:
        if raw.get("type", "function") != "function":
            raise InvalidTool(f'tool {index}: type must be "function"', index=index, member="type")
        if not isinstance(raw["function"], Mapping):
            raise InvalidTool(
                f"tool {index}: function must be an object, not {_kind(raw['function'])}",
                index=index,
                member="function",
            )
        body, prefix = raw["function"], "function."
    name = body.get("name")
    if not isinstance(name, str) or not name:
        what = "is missing" if "name" not in body else "must be text that is not empty"
        raise InvalidTool(f"tool {index}: {prefix}name {what}", index=index, member=f"{prefix}name")
    description = body.get("description")
    if description is not None and not isinstance(description, str):
        raise InvalidTool(
            f"tool {index}: {prefix}description must be text, not {_kind(description)}",
            index=index,
            member=f"{prefix}description",
        )
    for label, text in (("name", name), ("description", description or "")):
        if not _is_unicode(text):
            raise InvalidTool(
                f"tool {index}: {prefix}{label} holds half of a surrogate pair", index=index, member=f"{prefix}{label}"
            )
    member = "inputSchema" if "inputSchema" in body and "parameters" not in body else "parameters"
    parameters = body.get(member)
    if parameters is None:
        return Tool(name, description)
    if not isinstance(parameters, (Mapping, bool)):
        raise InvalidTool(
            f"tool {index}: {prefix}{member} must be a JSON Schema, not {_kind(parameters)}",
            index=index,
            member=f"{prefix}{member}",
        )
    return Tool(name, description, _closed_if_empty(parameters))


def _closed_if_empty(parameters: Schema) -> Schema:
    """Parameters that list no property, and say nothing else of keys, declare a tool that takes no arguments."""
    if isinstance(parameters, bool) or parameters.get("properties", True) != {} or parameters.get("required"):
        return parameters
    if not parameters.keys() <= {"type", "properties", "required", "title", "description", "$schema", "$defs"}:
        return parameters
    return {**parameters, "additionalProperties": False}


def parse_tool_choice(raw: object, tools: Sequence[Tool]) -> ToolChoice:
    """Read a ``tool_choice``: a keyword, a tool's name, or OpenAI's ``{"type": "function", "function": {"name"}}``.

    A tool named like a keyword is reached by the object form.

    Raises:
        InvalidToolChoice: the form is unknown, the tool was not offered, or there is nothing to call.
    """
    names = {tool.name for tool in tools}
    match raw:
        case ToolChoice():
            choice = raw
        case None | "auto":
            choice = ToolChoice("auto")
        case "required":
            choice = ToolChoice("required")
        case "none":
            choice = ToolChoice("none")
        case str():
            choice = ToolChoice("named", raw)
        case {"type": "function", "function": {"name": str(name)}} | {"type": "function", "name": str(name)}:
            choice = ToolChoice("named", name)
        case _:
            raise InvalidToolChoice(
                'tool_choice must be "auto", "required", "none", a tool\'s name, or '
                '{"type": "function", "function": {"name": ...}}'
            )
    if choice.mode == "named" and choice.name not in names:
        raise InvalidToolChoice(
            f"tool_choice names {_short(choice.name or '')}, which is not offered", tool=choice.name
        )
    if choice.mode == "required" and not tools:
        raise InvalidToolChoice('tool_choice is "required", and there is no tool to call')
    return choice


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case Mapping():
            return "an object"
        case Sequence():
            return "a list"
    return type(value).__name__


def _short(name: str) -> str:
    return repr(name if len(name) <= 60 else name[:57] + "...")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
