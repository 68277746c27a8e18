"""Serves turns: builds them, queues them, has the engine answer, and reads the reply. Knows nothing of HTTP."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from ..engine import Engine, EngineDelta, EngineReply, EngineRequest
from ..errors import EngineBusy, EngineTimeout, EngineUnavailable, TacidError
from ..tools import Tool
from ..turn import Call, Say, Turn, build_turn, read_reply
from .allow_list import AllowListFile
from .config import Config
from .metrics import Metrics
from .requests import TurnRequest

log = logging.getLogger("tacid_infer.turn")


@dataclass(frozen=True, slots=True)
class SayPiece:
    """A piece of an answer, decoded, as it streams."""

    text: str


@dataclass(frozen=True, slots=True)
class Completion:
    """A finished turn: the typed reply, and how it came about."""

    reply: Call | Say
    turn: Turn
    finish_reason: str
    usage: dict[str, Any]
    timings: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """As ``POST /v1/complete`` answers."""
        reply = self.reply
        if isinstance(reply, Call):
            head: dict[str, Any] = {"type": "call", "tool": reply.tool, "arguments": reply.arguments}
        else:
            head = {"type": "say", "text": reply.text}
        return {
            **head,
            "enforced": reply.enforced,
            "finish_reason": self.finish_reason,
            "usage": self.usage,
            "timings": self.timings,
            "digest": self.turn.digest,
            "omitted": self.turn.to_json()["omitted"],
        }


class Agent:
    """Serves turns, one engine slot each.

    Args:
        engine: what answers.
        allow_list: the file whose list narrows each turn.
        config: limits and sampling defaults.
        metrics: where turns are counted.
    """

    def __init__(self, engine: Engine, allow_list: AllowListFile, config: Config, metrics: Metrics) -> None:
        self.engine = engine
        self.allow_list = allow_list
        self.config = config
        self.metrics = metrics
        self.served = 0
        self.running = 0
        self.waiting = 0
        self.stopping = False
        self._slots = asyncio.Semaphore(config.engine.parallel)

    async def build(self, request: TurnRequest) -> Turn:
        """Build a turn, off the event loop, against the allow-list as it is on disk now.

        Raises:
            InvalidRequest
        """
        started = time.perf_counter()
        turn = await asyncio.to_thread(self._build, request)
        self.metrics.compile_seconds.observe(time.perf_counter() - started)
        self.metrics.grammar_bytes.observe(len(turn.grammar))
        return turn

    def _build(self, request: TurnRequest) -> Turn:
        return build_turn(
            request.tools,
            denied=request.denied,
            tool_choice=request.tool_choice,
            strict=request.strict,
            messages=request.messages,
            allow_list=self.allow_list.current(),
        )

    async def complete(self, request: TurnRequest) -> Completion:
        """A turn from end to end.

        Raises:
            TacidError: in all its kinds; nothing else.
        """
        async with aclosing(self.stream(request)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Completion):
                    return piece
        raise AssertionError("a stream ends with its completion")

    async def stream(self, request: TurnRequest) -> AsyncGenerator[SayPiece | Completion, None]:
        """The same, with an answer's pieces as they come. A call comes whole, as the completion."""
        started = time.perf_counter()
        outcome = "cancelled"
        try:
            if self.stopping:
                raise EngineUnavailable("the daemon is stopping", retry_after=5)
            async with aclosing(self._stream(request)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, Completion):
                        outcome = "call" if isinstance(piece.reply, Call) else "say"
                    yield piece
        except TacidError as error:
            outcome = error.code
            raise
        finally:
            self.served += 1
            self.metrics.turns.labels(outcome).inc()
            self.metrics.turn_seconds.observe(time.perf_counter() - started)
            log.info("turn: %s in %.2f s", outcome, time.perf_counter() - started)

    async def _stream(self, request: TurnRequest) -> AsyncGenerator[SayPiece | Completion, None]:
        limits = self.config.limits
        deadline = asyncio.get_running_loop().time() + limits.turn_seconds
        turn = await self.build(request)
        asked = EngineRequest(
            messages=list(turn.messages),
            grammar=turn.grammar,
            tools=[_for_openai(tool) for tool in turn.tools],
            tool_choice=_choice_for_openai(turn),
            sampling={**self.config.sampling.model_dump(), **request.sampling},
        )
        async with self._slot(deadline):
            left = deadline - asyncio.get_running_loop().time()
            said = SayStream()
            async with aclosing(self.engine.stream(asked, timeout=left, silence=limits.silence_seconds)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, EngineDelta):
                        if text := said.feed(piece.text):
                            yield SayPiece(text)
                        continue
                    yield self._read(turn, piece)

    def _read(self, turn: Turn, reply: EngineReply) -> Completion:
        read = read_reply(
            turn,
            content=reply.content,
            tool_calls=reply.tool_calls,
            finish_reason=reply.finish_reason,
            source=self.engine.source,
        )
        return Completion(read, turn, reply.finish_reason, dict(reply.usage), dict(reply.timings))

    @asynccontextmanager
    async def _slot(self, deadline: float) -> AsyncIterator[None]:
        """One of the engine's slots. Waiting happens here, so that a turn that is given up was never sent."""
        if self._slots.locked() and self.waiting >= self.config.limits.queue:
            raise EngineBusy(f"{self.waiting} turns wait for the engine already", retry_after=5)
        self.waiting += 1
        try:
            async with asyncio.timeout_at(deadline):
                await self._slots.acquire()
        except TimeoutError:
            raise EngineTimeout("the turn's time ran out while it waited for the engine") from None
        finally:
            self.waiting -= 1
        self.running += 1
        try:
            yield
        finally:
            self.running -= 1
            self._slots.release()

    def status(self) -> dict[str, Any]:
        """What ``GET /status`` answers."""
        allow_list = self.allow_list.current()
        engine = self.engine.status()
        degraded = [allow_list.reason] if allow_list.state == "degraded" else []
        if not self.engine.ready:
            degraded.append(f"engine: {engine.get('reason', engine['state'])}")
        state = "stopping" if self.stopping else ("degraded" if degraded else "ready")
        return {
            "state": state,
            "reasons": degraded,
            "engine": engine,
            "allow_list": {
                "state": allow_list.state,
                "narrows": allow_list.narrows,
                "services": len(allow_list.services),
                "reason": allow_list.reason,
            },
            "turns": {"served": self.served, "running": self.running, "waiting": self.waiting},
        }

    def gauge(self) -> None:
        """Bring the gauges up to date."""
        allow_list = self.allow_list.current()
        self.metrics.engine_up.set(self.engine.ready)
        self.metrics.queue_depth.set(self.waiting)
        self.metrics.allow_list_size.set(len(allow_list.services))
        self.metrics.allow_list_narrows.set(allow_list.narrows)
        self.metrics.allow_list_age.set(time.time() - self.allow_list.changed_at)


class SayStream:
    """Decodes ``{"say": "..."}`` while it comes, without ever cutting an escape or a surrogate pair."""

    _OPENING = '{"say": "'

    def __init__(self) -> None:
        self._text = ""
        self._at = 0
        self._over = False

    def feed(self, text: str) -> str:
        """Take a piece of the content; returns the piece of the answer that it completes."""
        self._text += text
        if self._over or len(self._text) < len(self._OPENING):
            return ""
        if not self._text.startswith(self._OPENING):
            self._over = True
            return ""
        start = at = max(self._at, len(self._OPENING))
        while at < len(self._text):
            if self._text[at] == '"':
                self._over = True
                break
            width = self._width(at)
            if at + width > len(self._text):
                break
            at += width
        self._at = at
        try:
            return str(json.loads(f'"{self._text[start:at]}"')) if at > start else ""
        except ValueError:
            self._over = True  # Not held to the grammar; the reader will say so.
            return ""

    def _width(self, at: int) -> int:
        if self._text[at] != "\\":
            return 1
        if self._text[at + 1 : at + 2] != "u":
            return 2
        high = self._text[at + 2 : at + 4].lower()
        return 12 if len(high) == 2 and "d8" <= high <= "db" else 6


def _for_openai(tool: Tool) -> dict[str, Any]:
    return {"type": "function", "function": tool.to_json()}


def _choice_for_openai(turn: Turn) -> Any:
    if turn.tool_choice.mode == "named":
        return {"type": "function", "function": {"name": turn.tool_choice.name}}
    return turn.tool_choice.mode
