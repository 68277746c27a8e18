"""Reads a reply as a typed call or answer.

What is read is what a grammar can emit: one JSON object, no duplicate keys, no NaN or infinity, nothing behind it but
white space and the known end marker. Nothing is guessed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ..errors import InvalidArguments, NotEnforced, TruncatedReply, UnknownTool
from .protocol import parse_arguments

if TYPE_CHECKING:
    from pydantic import BaseModel

    from .turn import Turn

_END = re.compile(r"\s*(?:<\|im_end\|>)?\s*\Z")


@dataclass(frozen=True, slots=True)
class Call:
    """A call of one of the turn's tools.

    Attributes:
        tool: its name.
        arguments: as JSON; they fit the tool's schema.
        value: the protocol's own type, for the protocol's own tools.
        enforced: whether the reply has the form that the turn's grammar admits.
    """

    tool: str
    arguments: dict[str, Any]
    value: BaseModel | None = None
    enforced: bool = True


@dataclass(frozen=True, slots=True)
class Say:
    """An answer in words. Not enforced: plain text from an engine that did not hold to the grammar."""

    text: str
    enforced: bool = True


class _NotAReply(ValueError):
    """The text is no object of the wire format; says why."""


class _RepeatedKey(ValueError):
    """A key stands twice in one object: the one thing that a grammar of open keys cannot keep out."""


def read_reply(
    turn: Turn,
    *,
    content: str | None,
    tool_calls: Sequence[tuple[str, str]] = (),
    finish_reason: str = "stop",
    source: Literal["supervised", "local", "remote"] = "local",
) -> Call | Say:
    """Read what came (ADR-0056, "The reply is read out of the content").

    Args:
        turn: what was asked.
        content: the text that came.
        tool_calls: name and arguments text of each call that the endpoint itself read out.
        finish_reason: as the engine gave it; "length" means that the token limit cut it off.
        source: "supervised" for our own engine, proven to enforce: from it only what the grammar admits is taken.
            "local" for another local endpoint: text is heard, and marked as not enforced. "remote": JSON is text.

    Raises:
        TruncatedReply: it was cut off in the middle of an object; carries the text.
        UnknownTool: the tool was not offered.
        InvalidArguments: the arguments do not fit.
        NotEnforced: the supervised engine did not hold to the grammar; carries the text.
    """
    text = content or ""
    if tool_calls:
        name, arguments = tool_calls[0]
        return _call(turn, name, _parse_arguments(name, arguments, finish_reason), source)
    if source == "remote":
        if finish_reason == "length":
            raise TruncatedReply("the answer was cut off at the token limit", text=text)
        return Say(text)
    try:
        reply = _envelope(text)
    except _RepeatedKey as error:
        if finish_reason == "length":
            raise TruncatedReply("the reply was cut off at the token limit, and repeats a key", text=text) from None
        raise InvalidArguments(f"the reply cannot be read: {error}", text=text) from None
    except _NotAReply as error:
        if finish_reason == "length":
            raise TruncatedReply("the reply was cut off at the token limit, in the middle of it", text=text) from None
        if source == "supervised":
            raise NotEnforced(f"the engine did not enforce the turn's grammar: {error}", text=text) from None
        return Say(text, enforced=False)
    if "say" in reply:
        must_call = turn.tool_choice.mode in ("required", "named")
        if must_call and source == "supervised":
            raise NotEnforced("the engine did not enforce the turn's grammar: an answer where a call is due", text=text)
        return Say(reply["say"], enforced=not must_call)
    return _call(turn, reply["tool"], reply["arguments"], source)


def _envelope(text: str) -> dict[str, Any]:
    """The reply's object: ``{"tool", "arguments"}`` or ``{"say"}``."""
    match parse_strictly(text):
        case {"say": str(said), **rest} if not rest:
            return {"say": said}
        case {"tool": str(name), "arguments": dict(arguments), **rest} if not rest:
            return {"tool": name, "arguments": arguments}
    raise _NotAReply("it is neither a call nor an answer")


def parse_strictly(text: str) -> Any:
    """Parse one JSON value and nothing else.

    Raises:
        ValueError: says what is wrong.
    """
    decoder = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)
    start = len(text) - len(text.lstrip())
    try:
        value, end = decoder.raw_decode(text, start)
    except (_NotAReply, _RepeatedKey):
        raise
    except RecursionError:
        raise _NotAReply("it is nested too deeply") from None
    except ValueError as error:
        raise _NotAReply(f"it is not JSON ({error})") from None
    if not _END.match(text, end):
        raise _NotAReply("something follows the object")
    try:
        text.encode()
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise _NotAReply("it holds half of a surrogate pair") from None
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise _RepeatedKey("a key stands twice in one object")
    return made


def _constant(name: str) -> Any:
    raise _NotAReply(f"{name} is no JSON number")


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _NotAReply(f"{text} is too large for a number")
    return value


def _parse_arguments(name: str, text: str, finish_reason: str) -> dict[str, Any]:
    try:
        arguments = parse_strictly(text or "{}")
    except ValueError as error:
        if finish_reason == "length":
            raise TruncatedReply("the call was cut off at the token limit", tool=name, text=text) from None
        raise InvalidArguments(f"the arguments of {name!r} cannot be read: {error}", tool=name, text=text) from None
    if not isinstance(arguments, dict):
        raise InvalidArguments(f"the arguments of {name!r} are no object", tool=name, text=text)
    return arguments


def _call(turn: Turn, name: str, arguments: dict[str, Any], source: str) -> Call:
    tool = next((tool for tool in turn.tools if tool.name == name), None)
    if tool is None:
        message = f"the reply calls {name[:80]!r}, which was not offered"
        if source == "supervised":
            raise NotEnforced(f"the engine did not enforce the turn's grammar: {message}", tool=name)
        raise UnknownTool(message, tool=name)
    if found := turn.first_fault(name, arguments):
        pointer, fault = found
        message = f"the arguments of {name!r} do not fit its schema, at {pointer or 'the top'}: {fault}"
        # Bytes that were not UTF-8 come as U+FFFD, more of them than the grammar counted characters.
        garbled = "\ufffd" in json.dumps(arguments, ensure_ascii=False)
        if source == "supervised" and not garbled and not any(place.tool == name for place in turn.widened):
            message = f"the engine did not enforce the turn's grammar: {message}"
            raise NotEnforced(message, tool=name, pointer=pointer, arguments=arguments)
        raise InvalidArguments(message, tool=name, pointer=pointer, arguments=arguments)
    try:
        value = parse_arguments(name, arguments)
    except ValueError as error:
        raise InvalidArguments(
            f"the arguments of {name!r} do not fit: {error}", tool=name, arguments=arguments
        ) from None
    return Call(name, arguments, value)
