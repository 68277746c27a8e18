"""Reads what a caller sends: a bounded, strict JSON body, and a turn's request out of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import InvalidRequest, LimitExceeded
from ..tools import Tool, parse_tools
from .config import LimitsSection

SAMPLING = frozenset(
    (
        "cache_prompt",
        "dry_allowed_length",
        "dry_base",
        "dry_multiplier",
        "dry_penalty_last_n",
        "dry_sequence_breakers",
        "dynatemp_exponent",
        "dynatemp_range",
        "frequency_penalty",
        "max_tokens",
        "min_p",
        "mirostat",
        "mirostat_eta",
        "mirostat_tau",
        "presence_penalty",
        "repeat_last_n",
        "repeat_penalty",
        "samplers",
        "seed",
        "temperature",
        "top_k",
        "top_n_sigma",
        "top_p",
        "typical_p",
        "xtc_probability",
        "xtc_threshold",
    )
)
"""Sampling parameters that a turn may set (llama.cpp, tools/server/README.md)."""

_TURN = frozenset(("tools", "denied", "tool_choice", "strict", "messages"))


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """A turn as a caller asks for it. ``timeout``: seconds that it may take, if fewer than the configured ones."""

    tools: list[Tool] = field(default_factory=list)
    denied: frozenset[str] = frozenset()
    tool_choice: Any = "auto"
    strict: bool = False
    messages: list[Any] = field(default_factory=list)
    sampling: dict[str, Any] = field(default_factory=dict)
    timeout: float | None = None


async def read_body(chunks: AsyncIterator[bytes], announced: int, limits: LimitsSection) -> Any:
    """Read and parse a request's body.

    Args:
        chunks: of the body, as they come.
        announced: its length in bytes as its head has it; 0 where it tells none.
        limits: of the configuration.

    Raises:
        LimitExceeded: it is too large, or too slow.
        InvalidRequest: it is not the JSON that RFC 8259 means, with every key once.
    """
    body = bytearray()
    too_large = LimitExceeded(f"the request is larger than {limits.body_bytes} bytes", limit=limits.body_bytes)
    if announced > limits.body_bytes:
        raise too_large
    try:
        async with asyncio.timeout(limits.read_seconds):
            async for chunk in chunks:
                body += chunk
                if len(body) > limits.body_bytes:
                    raise too_large
    except TimeoutError:
        raise LimitExceeded(f"the request did not come whole within {limits.read_seconds:g} s") from None
    if len(body) > 65536:
        return await asyncio.to_thread(parse_body, bytes(body), limits.nesting)
    return parse_body(bytes(body), limits.nesting)


def parse_body(body: bytes, nesting: int) -> Any:
    """Parse a request's body, strictly."""
    try:
        value = json.loads(body.decode(), object_pairs_hook=_object, parse_constant=_constant)
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"the request is not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise InvalidRequest(
            f"the request is not JSON: line {error.lineno} column {error.colno}: {error.msg}"
        ) from None
    except RecursionError:
        raise LimitExceeded(f"the request is nested more than {nesting} levels deep", limit=nesting) from None
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > nesting:
            raise LimitExceeded(f"the request is nested more than {nesting} levels deep", limit=nesting)
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below.extend(part for part in item.values() if isinstance(part, (dict, list)))
            elif isinstance(item, list):
                below.extend(part for part in item if isinstance(part, (dict, list)))
        level = below
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise InvalidRequest(f"the key {key!r} stands twice in one object of the request")
            seen.add(key)
    return made


def _constant(name: str) -> Any:
    raise InvalidRequest(f"the request holds {name}, which is no JSON number")


def parse_turn(body: Any, limits: LimitsSection, *, sampling: bool) -> TurnRequest:
    """A turn's request out of a parsed body. ``sampling``: whether sampling parameters may stand beside it.

    Raises:
        InvalidRequest: names the member at fault, by JSON pointer.
    """
    if not isinstance(body, Mapping):
        raise InvalidRequest("the request must be an object", pointer="")
    known = _TURN | SAMPLING | {"timeout"} if sampling else _TURN
    for member in body:
        if member not in known:
            raise InvalidRequest(f"{member!r} is not a member of this request", pointer=f"/{member}")
    denied = _member(body, "denied", list, [])
    if not all(isinstance(name, str) for name in denied):
        raise InvalidRequest("denied must be a list of tools' names", pointer="/denied")
    return TurnRequest(
        parse_limited_tools(_member(body, "tools", list, []), limits),
        frozenset(denied),
        body.get("tool_choice", "auto"),
        _member(body, "strict", bool, False),
        _member(body, "messages", list, []),
        checked_sampling({name: value for name, value in body.items() if name in SAMPLING}),
        _timeout(body.get("timeout")),
    )


def _member(body: Mapping[str, Any], name: str, kind: type, default: Any) -> Any:
    value = body.get(name)
    if value is None:
        return default
    if not isinstance(value, kind):
        kinds = {list: "a list", bool: "true or false"}
        raise InvalidRequest(f"{name} must be {kinds[kind]}", pointer=f"/{name}")
    return value


def _timeout(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
        raise InvalidRequest("timeout must be a number of seconds above 0", pointer="/timeout")
    return float(value)


def parse_limited_tools(raw: list[Any], limits: LimitsSection) -> list[Tool]:
    """The tools, within the limits."""
    if len(raw) > limits.tools:
        raise LimitExceeded(f"{len(raw)} tools in one turn; the limit is {limits.tools}", limit=limits.tools)
    tools = parse_tools(raw)
    for index, tool in enumerate(tools):
        size = len(json.dumps(tool.parameters))
        if size > limits.schema_bytes:
            raise LimitExceeded(
                f"the schema of tool {index} has {size} bytes; the limit is {limits.schema_bytes}",
                limit=limits.schema_bytes,
                index=index,
            )
    return tools


def checked_sampling(sampling: dict[str, Any]) -> dict[str, Any]:
    """The sampling parameters, where they are of the right kind.

    Raises:
        InvalidRequest: names the parameter.
    """
    for name, value in sampling.items():
        if name in ("samplers", "dry_sequence_breakers"):
            if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
                raise InvalidRequest(f"{name} must be a list of texts", pointer=f"/{name}")
        elif name == "cache_prompt":
            if not isinstance(value, bool):
                raise InvalidRequest(f"{name} must be true or false", pointer=f"/{name}")
        elif isinstance(value, bool) or not isinstance(value, (int, float)):
            raise InvalidRequest(f"{name} must be a number", pointer=f"/{name}")
    if sampling.get("max_tokens", 1) < 1:
        raise InvalidRequest("max_tokens must be 1 or more", pointer="/max_tokens")
    return sampling
