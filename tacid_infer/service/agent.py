"""Serves turns: builds them, queues them, has the engine answer, and reads the reply. Knows nothing of HTTP."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar, TypeVarTuple, Unpack

from ..engine import Engine, EngineDelta, EngineReply, EngineRequest
from ..errors import (
    ContextOverflow,
    EngineBusy,
    EngineTimeout,
    EngineUnavailable,
    NotEnforced,
    TacidError,
    TruncatedReply,
)
from ..tools import Tool
from ..turn import PROTOCOL_TOOLS, Call, Say, Turn, read_reply
from .allow_list import AllowListFile
from .building import TurnBuilder
from .config import Config
from .connection import Peer
from .logs import fields
from .metrics import Metrics
from .requests import TurnRequest

_LARGE_REPLY = 8192
_T = TypeVar("_T")
_Arguments = TypeVarTuple("_Arguments")

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
        self.outcomes: Counter[str] = Counter()
        self.tools_served = len(PROTOCOL_TOOLS)
        self.running = 0
        self.waiting = 0
        self.building = 0
        self.stopping = False
        self._slots = asyncio.Semaphore(config.engine.parallel)
        self._builder = TurnBuilder(allow_list, metrics)
        # Threads of their own, so that heavy turns never keep /status and the allow-list's watch from theirs.
        self._threads = ThreadPoolExecutor(max(2, os.cpu_count() or 2), thread_name_prefix="turn")

    async def build(self, request: TurnRequest) -> Turn:
        """Build a turn, off the event loop, against the allow-list as it is on disk now.

        Raises:
            InvalidRequest
            EngineBusy: as many turns are being built already as may wait.
        """
        if self.building > self.config.limits.queue:
            raise EngineBusy(f"{self.building} turns are being built already", retry_after=5)
        self.building += 1
        try:
            turn = await self._off_the_loop(self._builder.build, request)
        finally:
            self.building -= 1
        self.tools_served = len(turn.tools)
        return turn

    async def _off_the_loop(self, work: Callable[[Unpack[_Arguments]], _T], *arguments: *_Arguments) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)

    async def complete(self, request: TurnRequest, peer: Peer | None = None) -> Completion:
        """A turn from end to end.

        Raises:
            TacidError: in all its kinds; nothing else.
        """
        async with aclosing(self.stream(request, peer)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Completion):
                    return piece
        raise AssertionError("a stream ends with its completion")

    async def stream(
        self, request: TurnRequest, peer: Peer | None = None
    ) -> AsyncGenerator[SayPiece | Completion, None]:
        """The same, with an answer's pieces as they come. A call comes whole, as the completion.

        Args:
            request: the turn.
            peer: who asks, for the log.
        """
        started = time.perf_counter()
        outcome = "cancelled"
        if peer is not None:
            told = fields(event="turn_begins", peer_pid=peer.pid, peer_uid=peer.uid, peer_gid=peer.gid)
            log.debug("turn of pid %d, uid %d, gid %d", peer.pid, peer.uid, peer.gid, extra=told)
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
        except Exception:
            outcome = "internal_error"
            raise
        finally:
            seconds = time.perf_counter() - started
            self.outcomes[outcome] += 1
            self.metrics.turns.labels(outcome).inc()
            self.metrics.turn_seconds.observe(seconds)
            log.info(
                "turn: %s in %.2f s",
                outcome,
                seconds,
                extra=fields(event="turn", outcome=outcome, seconds=f"{seconds:.3f}", peer_uid=peer and peer.uid),
            )

    async def _stream(self, request: TurnRequest) -> AsyncGenerator[SayPiece | Completion, None]:
        limits = self.config.limits
        seconds = min(limits.turn_seconds, request.timeout or limits.turn_seconds)
        deadline = asyncio.get_running_loop().time() + seconds
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
            try:
                async with aclosing(self.engine.stream(asked, timeout=left, silence=limits.silence_seconds)) as pieces:
                    async for piece in pieces:
                        if isinstance(piece, EngineDelta):
                            if text := said.feed(piece.text):
                                yield SayPiece(text)
                            continue
                        reply = piece
            except ContextOverflow as error:
                raise await self._with_catalogue(error, turn) from None
        yield await self._read(turn, reply)

    async def _read(self, turn: Turn, reply: EngineReply) -> Completion:
        try:
            if len(reply.content) > _LARGE_REPLY:
                read = await self._off_the_loop(self._typed, turn, reply)
            else:
                read = self._typed(turn, reply)
        except NotEnforced:
            self.engine.suspect()
            raise
        except TruncatedReply as error:
            context = self.config.engine.context_tokens
            used = reply.usage.get("total_tokens", 0)
            if self.engine.source != "supervised" or used < context:
                raise
            overflow = ContextOverflow(
                f"the engine's context of {context} tokens was full before the reply was whole",
                prompt_tokens=reply.usage.get("prompt_tokens"),
                context_tokens=context,
                text=error.details.get("text"),
            )
            raise await self._with_catalogue(overflow, turn) from None
        return Completion(read, turn, reply.finish_reason, dict(reply.usage), dict(reply.timings))

    def _typed(self, turn: Turn, reply: EngineReply) -> Call | Say:
        return read_reply(
            turn,
            content=reply.content,
            tool_calls=reply.tool_calls,
            finish_reason=reply.finish_reason,
            source=self.engine.source,
        )

    async def _with_catalogue(self, error: ContextOverflow, turn: Turn) -> ContextOverflow:
        """The same error, telling how much of the prompt is the catalogue's."""
        tokens = await self.engine.count_tokens(turn.catalogue)
        size = f"{tokens} tokens" if tokens is not None else f"{len(turn.catalogue.encode())} bytes"
        return ContextOverflow(
            f"{error.message}; of the prompt, the catalogue of {len(turn.tools)} tools takes {size}",
            **{**error.details, "catalogue_tokens": tokens, "catalogue_bytes": len(turn.catalogue.encode())},
        )

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
            raise EngineTimeout("the turn's time ran out while it waited for the engine", retry_after=5) from None
        finally:
            self.waiting -= 1
        self.running += 1
        try:
            yield
        finally:
            self.running -= 1
            self._slots.release()

    def degraded(self) -> list[str]:
        """What an operator should mend, in words. Touches no disk."""
        allow_list = self.allow_list.latest
        found = [allow_list.reason] if allow_list.state == "degraded" else []
        if not self.engine.ready:
            engine = self.engine.status()
            found.append(f"engine: {engine.get('reason', engine['state'])}")
        return found

    def status(self) -> dict[str, Any]:
        """What ``GET /status`` answers: the same numbers as the metrics."""
        allow_list = self.allow_list.current()
        degraded = self.degraded()
        state = "stopping" if self.stopping else ("degraded" if degraded else "ready")
        turn_count, turn_total = self.metrics.count_and_sum(self.metrics.turn_seconds)
        compile_count, compile_total = self.metrics.count_and_sum(self.metrics.compile_seconds)
        grammar_count, grammar_total = self.metrics.count_and_sum(self.metrics.grammar_bytes)
        return {
            "state": state,
            "reasons": degraded,
            "engine": {**self.engine.status(), "up": self.engine.ready},
            "allow_list": {
                "state": allow_list.state,
                "narrows": allow_list.narrows,
                "services": len(allow_list.services),
                "age_seconds": round(time.time() - self.allow_list.changed_at, 1),
                "reason": allow_list.reason,
            },
            "turns": {
                "served": turn_count,
                "running": self.running,
                "waiting": self.waiting,
                "outcomes": dict(self.outcomes),
                "mean_seconds": round(turn_total / turn_count, 4) if turn_count else 0,
            },
            "grammars": {
                "built": compile_count,
                "cache_hits": self.metrics.value(self.metrics.cache_hits),
                "mean_compile_seconds": round(compile_total / compile_count, 6) if compile_count else 0,
                "mean_bytes": round(grammar_total / grammar_count) if grammar_count else 0,
            },
        }

    def gauge(self) -> None:
        """Bring the gauges up to date."""
        allow_list = self.allow_list.current()
        self.metrics.engine_up.set(self.engine.ready)
        gpu = self.engine.status().get("gpu", {})
        for gauge, key in ((self.metrics.gpu_layers, "layers"), (self.metrics.model_layers, "model_layers")):
            gauge.set(math.nan if gpu.get(key) is None else gpu[key])
        self.metrics.gpu_missing.set(gpu.get("missing", False))
        self.metrics.queue_depth.set(self.waiting)
        self.metrics.turns_running.set(self.running)
        self.metrics.allow_list_size.set(len(allow_list.services))
        self.metrics.allow_list_narrows.set(allow_list.narrows)
        self.metrics.allow_list_degraded.set(allow_list.state == "degraded")
        self.metrics.allow_list_age.set(time.time() - self.allow_list.changed_at)

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)


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
