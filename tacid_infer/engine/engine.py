"""What answers a turn: our own supervised llama-server, or an endpoint of somebody else's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Literal, Protocol

from ..errors import EngineError, EngineStarting
from .client import Dialect, EngineClient, EngineDelta, EngineReply, EngineRequest
from .supervisor import State, Supervisor

Source = Literal["supervised", "local", "remote"]
_MOMENT = 0.05
_COUNT_TIMEOUT = 5.0


class Engine(Protocol):
    """What the daemon needs."""

    @property
    def source(self) -> Source:
        """Whose it is, and so how far its replies are trusted."""

    @property
    def ready(self) -> bool:
        """Whether a turn would be served now."""

    def stream(
        self, request: EngineRequest, *, timeout: float, silence: float
    ) -> AsyncGenerator[EngineDelta | EngineReply, None]:
        """One turn; see ``EngineClient.stream``."""

    def suspect(self) -> None:
        """A reply that the grammar does not admit came: prove the engine again, if that is ours to do."""

    async def count_tokens(self, text: str) -> int | None:
        """How many tokens a text takes; None where the engine cannot tell."""

    def status(self) -> dict[str, Any]:
        """Its state, for a person and for a program."""


class SupervisedEngine:
    """The engine that a supervisor minds."""

    source: Source = "supervised"

    def __init__(self, supervisor: Supervisor) -> None:
        self.supervisor = supervisor

    @property
    def ready(self) -> bool:
        """Whether it is loaded and proven."""
        return self.supervisor.state is State.READY

    async def stream(
        self, request: EngineRequest, *, timeout: float, silence: float
    ) -> AsyncGenerator[EngineDelta | EngineReply, None]:
        """One turn, once the engine is ready."""
        deadline = asyncio.get_running_loop().time() + timeout
        while True:
            left = deadline - asyncio.get_running_loop().time()
            client = await self.supervisor.wait_ready(left)
            try:
                async with (
                    self.supervisor.turn(),
                    aclosing(client.stream(request, timeout=left, silence=silence)) as pieces,
                ):
                    async for piece in pieces:
                        yield piece
                return
            except EngineStarting:
                # It ended a moment ago, and nobody has noticed yet; nothing was sent.
                if left < _MOMENT:
                    raise
                await asyncio.sleep(_MOMENT)

    def suspect(self) -> None:
        """Have the supervisor prove it again, before another turn is sent."""
        self.supervisor.suspect()

    async def count_tokens(self, text: str) -> int | None:
        """As llama-server's ``POST /tokenize`` counts."""
        try:
            answer = await self.supervisor.client.post("/tokenize", {"content": text}, _COUNT_TIMEOUT)
        except EngineError:
            return None
        return len(answer["tokens"])

    def status(self) -> dict[str, Any]:
        """The supervisor's."""
        return {"kind": "supervised", **self.supervisor.status()}


class Endpoint:
    """An engine that is not ours, by url.

    Args:
        client: speaks to it; its dialect says whether it is local.
        url: as configured, for the status.
    """

    def __init__(self, client: EngineClient, url: str) -> None:
        self.client = client
        self.url = url

    @property
    def source(self) -> Source:
        """A local one is heard when it ignores the grammar; a remote one's JSON is text."""
        return "remote" if self.client.dialect is Dialect.REMOTE else "local"

    @property
    def ready(self) -> bool:
        """Nobody here minds it, so nothing is known against it."""
        return True

    def stream(
        self, request: EngineRequest, *, timeout: float, silence: float
    ) -> AsyncGenerator[EngineDelta | EngineReply, None]:
        """One turn."""
        return self.client.stream(request, timeout=timeout, silence=silence)

    def suspect(self) -> None:
        """Nobody here minds it: the turn's own error is all there is."""

    async def count_tokens(self, text: str) -> int | None:
        """Not asked: there is no route that all endpoints share."""
        return None

    def status(self) -> dict[str, Any]:
        """What is configured; no key."""
        return {"kind": self.source, "state": "ready", "url": self.url, "dialect": self.client.dialect.value}
