"""The socket API, as a Starlette application: routes in, JSON out, every error with a code and a sentence."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Coroutine
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from ..errors import InvalidRequest, TacidError
from .agent import Agent, Completion, SayPiece
from .connection import Peer
from .metrics import CONTENT_TYPE
from .openai import parse_chat, to_chat, to_events
from .requests import parse_turn, read_body

log = logging.getLogger("tacid_infer.http")

_T = TypeVar("_T")
_FAULT = "a fault of tacid-infer itself; its log has the details"
_CODES = {404: "not_found", 405: "method_not_allowed"}


class _Fault(TacidError):
    code = "internal_error"


class _Json(JSONResponse):
    def render(self, content: Any) -> bytes:
        return json.dumps(content, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"


def make_app(agent: Agent, model: str) -> Starlette:
    """The application.

    Args:
        agent: serves the turns.
        model: the model's name, as ``GET /v1/models`` lists it.
    """
    limits = agent.config.limits

    async def body(request: Request) -> Any:
        try:
            return await read_body(request.stream(), int(request.headers.get("content-length", 0)), limits)
        except ClientDisconnect:
            raise InvalidRequest("the caller left before its request was whole") from None

    async def turns(request: Request) -> Response:
        turn = await agent.build(parse_turn(await body(request), limits, sampling=False))
        return _Json(turn.to_json())

    async def complete(request: Request) -> Response:
        asked = parse_turn(await body(request), limits, sampling=True)
        return _Json((await _unless_gone(request, agent.complete(asked, _peer(request)))).to_json())

    async def chat(request: Request) -> Response:
        asked, streamed = parse_chat(await body(request), limits)
        if not streamed:
            return _Json(to_chat(await _unless_gone(request, agent.complete(asked, _peer(request))), model))
        pieces = agent.stream(asked, _peer(request))
        # A refusal before the first piece still has its own HTTP status.
        first = await _unless_gone(request, anext(pieces))
        return _Events(to_events(_pumped(first, pieces), model), pieces)

    async def models(request: Request) -> Response:
        return _Json({"object": "list", "data": [{"id": model, "object": "model", "owned_by": "tacid-infer"}]})

    async def allow_list(request: Request) -> Response:
        return _Json((await asyncio.to_thread(agent.allow_list.current)).to_json())

    async def healthz(request: Request) -> Response:
        ready = agent.engine.ready and not agent.stopping
        return _Json({"status": "ok" if ready else "unavailable"}, status_code=200 if ready else 503)

    async def status(request: Request) -> Response:
        return _Json(await asyncio.to_thread(agent.status))

    async def metrics(request: Request) -> Response:
        await asyncio.to_thread(agent.gauge)
        return Response(agent.metrics.text(), media_type=CONTENT_TYPE)

    return Starlette(
        routes=[
            Route("/v1/turns", turns, methods=["POST"]),
            Route("/v1/complete", complete, methods=["POST"]),
            Route("/v1/chat/completions", chat, methods=["POST"]),
            Route("/v1/models", models),
            Route("/v1/allow-list", allow_list),
            Route("/healthz", healthz),
            Route("/status", status),
            Route("/metrics", metrics),
        ],
        exception_handlers={
            TacidError: _refused,  # type: ignore[dict-item]
            HTTPException: _http_error,  # type: ignore[dict-item]
            Exception: _fault,
        },
    )


class _Events(StreamingResponse):
    """Server-sent events. However they end, the turn behind them does too."""

    def __init__(self, events: AsyncGenerator[bytes, None], turn: AsyncGenerator[Any, None]) -> None:
        super().__init__(events, media_type="text/event-stream")
        self._events = events
        self._turn = turn

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send them."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._events.aclose()
            await self._turn.aclose()


async def _pumped(
    first: SayPiece | Completion, rest: AsyncGenerator[SayPiece | Completion, None]
) -> AsyncGenerator[SayPiece | Completion, None]:
    """The pieces, taken from the engine as they come: a caller that stops reading does not hold the engine's slot."""
    queue: asyncio.Queue[SayPiece | Completion | TacidError | None] = asyncio.Queue()

    async def pump() -> None:
        try:
            async for piece in rest:
                queue.put_nowait(piece)
        except TacidError as error:
            queue.put_nowait(error)
        except Exception as error:
            log.error("fault in a streamed turn", exc_info=error)
            queue.put_nowait(_Fault(_FAULT))
        finally:
            await rest.aclose()
            queue.put_nowait(None)

    task = asyncio.create_task(pump())
    try:
        yield first
        while (item := await queue.get()) is not None:
            if isinstance(item, TacidError):
                raise item
            yield item
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _unless_gone(request: Request, work: Coroutine[Any, Any, _T] | Awaitable[_T]) -> _T:
    """The work's result; given up as soon as the caller closes the connection."""

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    task = asyncio.ensure_future(work)
    watcher = asyncio.ensure_future(gone())
    try:
        await asyncio.wait([task, watcher], return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise InvalidRequest("the caller left before the turn was over")
        return task.result()
    finally:
        for future in (task, watcher):
            future.cancel()
        await asyncio.gather(task, watcher, return_exceptions=True)


def _peer(request: Request) -> Peer | None:
    return getattr(request.state, "peer", None)


def _retry(error: TacidError) -> dict[str, str]:
    after = error.details.get("retry_after")
    return {"Retry-After": str(after)} if after is not None else {}


async def _refused(request: Request, error: TacidError) -> Response:
    return _Json(error.to_json(), status_code=error.status, headers=_retry(error))


async def _http_error(request: Request, error: HTTPException) -> Response:
    code = _CODES.get(error.status_code, "http_error")
    message = f"{request.method} {request.url.path}: {error.detail}"
    return _Json({"error": {"code": code, "message": message}}, status_code=error.status_code, headers=error.headers)


async def _fault(request: Request, error: Exception) -> Response:
    log.error("fault in %s %s", request.method, request.url.path, exc_info=error)
    return _Json(_Fault(_FAULT).to_json(), status_code=500)
