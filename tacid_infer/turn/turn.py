"""One turn, built: one list of tools feeds the catalogue and the grammar alike."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import DuplicateTool, InvalidToolChoice, NotExact, SchemaError
from ..grammar import Widened, check_tool, explain_turn
from ..tools import Tool, ToolChoice, parse_tool_choice
from .catalogue import write_catalogue
from .messages import render_messages
from .narrowing import AllowList, narrow
from .protocol import PROTOCOL_NAMES, PROTOCOL_TOOLS
from .validation import make_validator


@dataclass(frozen=True, slots=True)
class Omitted:
    """A tool that was left out of the turn, and why."""

    tool: str
    code: str
    reason: str
    pointer: str


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn, ready to be sent.

    Attributes:
        grammar: GBNF.
        catalogue: the text that opens the system turn.
        messages: the turns to send, the system turn first.
        tools: those offered: in the catalogue and in the grammar.
        tool_choice: what the turn must do.
        digest: SHA-256 over what decides the grammar and the catalogue.
        widened: what the grammar could not enforce.
        omitted: tools left out.
        allow_list: the list in force.
    """

    grammar: str
    catalogue: str
    messages: list[dict[str, str]]
    tools: tuple[Tool, ...]
    tool_choice: ToolChoice
    digest: str
    widened: tuple[Widened, ...]
    omitted: tuple[Omitted, ...]
    allow_list: AllowList
    _validators: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def to_json(self) -> dict[str, Any]:
        """As ``POST /v1/turns`` answers."""
        return {
            "grammar": self.grammar,
            "catalogue": self.catalogue,
            "messages": self.messages,
            "tools": [tool.to_json() for tool in self.tools],
            "digest": self.digest,
            "widened": [
                {"tool": place.tool, "pointer": place.pointer, "keyword": place.keyword, "reason": place.reason}
                for place in self.widened
            ],
            "omitted": [
                {"tool": left.tool, "code": left.code, "reason": left.reason, "pointer": left.pointer}
                for left in self.omitted
            ],
            "allow_list": {"narrows": self.allow_list.narrows, "reason": self.allow_list.reason},
        }

    def first_fault(self, name: str, arguments: dict[str, Any]) -> tuple[str, str] | None:
        """The JSON pointer and the reason of the first place where arguments do not fit their tool's schema."""
        from jsonschema.exceptions import best_match
        from referencing.exceptions import Unresolvable

        validator = self._validators.get(name)
        if validator is None:
            schema = next(tool.parameters for tool in self.tools if tool.name == name)
            validator = self._validators[name] = make_validator(schema)
        try:
            error = best_match(validator.iter_errors(arguments))
        except (Unresolvable, re.error, RecursionError):
            # A reference out of the document, or a pattern of another dialect: the grammar's business was done, and
            # what is left is the typed protocol's.
            return None
        if error is None:
            return None
        pointer = "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in error.absolute_path)
        return pointer, error.message[:300]


def build_turn(
    tools: Sequence[Tool],
    *,
    denied: Collection[str] = (),
    tool_choice: Any = "auto",
    strict: bool = False,
    messages: Sequence[Any] = (),
    allow_list: AllowList | None = None,
) -> Turn:
    """Build a turn.

    Args:
        tools: every tool that the session may see, in the caller's order.
        denied: names of those that the keeper denies. The protocol's two are always offered.
        tool_choice: what the turn must do, in any spelling of ``parse_tool_choice``.
        strict: refuse a turn that would leave a tool out, or that is not enforced everywhere.
        messages: the conversation.
        allow_list: the services that this machine has.

    Raises:
        InvalidRequest: in its many kinds; names what and where.
    """
    allow_list = allow_list or AllowList()
    for tool in tools:
        if tool.name in PROTOCOL_NAMES:
            raise DuplicateTool(f"{tool.name!r} is one of the protocol's own tools", tool=tool.name)
    offered: list[Tool] = []
    omitted: list[Omitted] = []
    for tool in (*PROTOCOL_TOOLS, *(tool for tool in tools if tool.name not in set(denied))):
        narrowed = narrow(tool, allow_list)
        try:
            check_tool(narrowed)
        except SchemaError as error:
            if strict:
                raise
            reason = error.message
            if narrowed is not tool and _is_callable(tool):
                reason = f"no service on this machine's allow-list fits: {reason}"
            omitted.append(Omitted(tool.name, error.code, reason, error.pointer))
            continue
        offered.append(narrowed)
    choice = _choice(tool_choice, offered, omitted, denied)
    if choice.mode == "none":
        offered = []
    elif choice.mode == "named":
        offered = [tool for tool in offered if tool.name == choice.name]
    compiled = explain_turn(offered, tool_choice=choice)
    if strict and compiled.widened:
        place = compiled.widened[0]
        raise NotExact(
            f"tool {place.tool!r}: {place.keyword} at {place.pointer or 'the top'} is not enforced: {place.reason}",
            tool=place.tool,
            pointer=place.pointer,
            keyword=place.keyword,
        )
    catalogue = write_catalogue(offered, choice, allow_list)
    rendered = render_messages(messages, catalogue)
    key = [choice.mode, choice.name, [tool.to_json() for tool in offered], list(allow_list.services), allow_list.exact]
    digest = hashlib.sha256(json.dumps(key, sort_keys=False).encode()).hexdigest()
    return Turn(
        compiled.text,
        catalogue,
        rendered,
        tuple(offered),
        choice,
        digest,
        compiled.widened,
        tuple(omitted),
        allow_list,
    )


def _is_callable(tool: Tool) -> bool:
    try:
        check_tool(tool)
    except SchemaError:
        return False
    return True


def _choice(raw: Any, offered: list[Tool], omitted: list[Omitted], denied: Collection[str]) -> ToolChoice:
    try:
        return parse_tool_choice(raw, offered)
    except InvalidToolChoice as error:
        name = error.details.get("tool")
        for left in omitted:
            if left.tool == name:
                raise InvalidToolChoice(
                    f"tool_choice names {name!r}, which was left out: {left.reason}", tool=name
                ) from None
        if name in denied:
            raise InvalidToolChoice(f"tool_choice names {name!r}, which is denied", tool=name) from None
        raise
