"""Talks to an engine: one request a turn, over its Unix socket or a url, always streamed.

Source: llama.cpp, ``tools/server/README.md`` (POST /v1/chat/completions, with ``grammar``); OpenAI's chat completions;
vLLM's ``structured_outputs``.
"""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import aiohttp

from ..errors import ContextOverflow, EngineDied, EngineError, EngineRefused, EngineStarting, EngineTimeout


class Dialect(Enum):
    """What an endpoint is sent.

    LLAMA: the grammar alone (llama-server under --no-jinja). TOOLS: tools and grammar both (a local server that honours
    tools, such as vLLM). REMOTE: tools alone, for a provider that guarantees the shape of a call by itself.
    """

    LLAMA = "llama"
    TOOLS = "tools"
    REMOTE = "remote"


@dataclass(frozen=True, slots=True)
class EngineRequest:
    """One turn as the engine is asked it.

    Attributes:
        messages: ``{role, content}`` each, the catalogue's system turn first.
        grammar: GBNF, never empty.
        tools: the same tools in OpenAI's spelling, for an endpoint that honours them.
        tool_choice: in OpenAI's spelling.
        sampling: further members of the request body (temperature, max_tokens, ...).
    """

    messages: list[dict[str, Any]]
    grammar: str
    tools: list[dict[str, Any]] = field(default_factory=list)
    tool_choice: Any = "auto"
    sampling: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EngineDelta:
    """A piece of the content, as it streams."""

    text: str


@dataclass(frozen=True, slots=True)
class EngineReply:
    """What came: the content, tool calls (name and arguments text) if the endpoint reads them out, and how it ended."""

    content: str
    tool_calls: tuple[tuple[str, str], ...]
    finish_reason: str
    usage: Mapping[str, Any]
    timings: Mapping[str, Any]


class EngineClient:
    """A connection pool to one endpoint.

    Args:
        dialect: what the endpoint is sent.
        socket: path of its Unix socket, or None.
        url: its base url, if it has no socket.
        model: the model's name to ask for, if the endpoint wants one.
        api_key: sent as a bearer token; never logged.
    """

    def __init__(
        self,
        dialect: Dialect = Dialect.LLAMA,
        *,
        socket: str | None = None,
        url: str = "http://engine",
        model: str | None = None,
        api_key: str | None = None,
    ) -> None:
        self.dialect = dialect
        self.model = model
        self._socket = socket
        self._url = url
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._session: aiohttp.ClientSession | None = None

    def _http(self) -> aiohttp.ClientSession:
        """Made at the first request, as it belongs to the event loop that runs then."""
        if self._session is None:
            # No connection serves twice: an engine that closes an idle one just then would look like one that died.
            kept: dict[str, Any] = {"limit": 0, "force_close": True}
            self._session = aiohttp.ClientSession(
                connector=aiohttp.UnixConnector(self._socket, **kept) if self._socket else aiohttp.TCPConnector(**kept),
                headers=self._headers,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
            )
        return self._session

    async def _post(self, path: str, body: Mapping[str, Any]) -> aiohttp.ClientResponse:
        """Send a body; the answer's head, with its content still to be read."""
        data = io.BytesIO(json.dumps(body, ensure_ascii=False).encode())
        headers = {"Content-Type": "application/json"}
        return await self._http().post(self._url + path, data=data, headers=headers, allow_redirects=False)

    async def close(self) -> None:
        """Close every connection."""
        if self._session is not None:
            await self._session.close()

    async def health(self, timeout: float) -> bool:
        """Whether the engine says that it is ready, within ``timeout`` seconds."""
        try:
            async with (
                asyncio.timeout(timeout),
                self._http().get(f"{self._url}/health", allow_redirects=False) as response,
            ):
                return response.status == 200
        except (aiohttp.ClientError, TimeoutError):
            return False

    async def post(self, path: str, body: Mapping[str, Any], timeout: float) -> Any:
        """POST a body to one of the engine's other routes (/tokenize, /apply-template); its JSON answer."""
        try:
            async with asyncio.timeout(timeout), await self._post(path, body) as response:
                content = await response.read()
        except TimeoutError:
            raise EngineTimeout(f"the engine did not answer {path} within {timeout:g} s") from None
        except aiohttp.ClientError as error:
            raise EngineDied(f"the connection to the engine broke: {_words(error)}") from None
        _raise_for_status(response.status, content)
        return json.loads(content)

    async def complete(self, request: EngineRequest, *, timeout: float, silence: float | None = None) -> EngineReply:
        """One turn, whole. The same as ``stream``, without the pieces."""
        async with aclosing(self.stream(request, timeout=timeout, silence=silence)) as pieces:
            async for piece in pieces:
                if isinstance(piece, EngineReply):
                    return piece
        raise EngineDied("the engine closed the connection in the middle of a reply")

    async def stream(
        self, request: EngineRequest, *, timeout: float, silence: float | None = None
    ) -> AsyncGenerator[EngineDelta | EngineReply, None]:
        """One turn: the content's pieces, then the whole reply. Leaving early closes the connection and frees the slot.

        Args:
            request: the turn.
            timeout: seconds for all of it.
            silence: seconds that may pass between two pieces, once the first has come.

        Raises:
            EngineStarting, EngineDied, EngineTimeout, EngineRefused, ContextOverflow
        """
        if not request.grammar:
            raise EngineRefused("an empty grammar constrains nothing, and is never sent")
        deadline = asyncio.get_running_loop().time() + timeout
        collected = _Collected()
        try:
            async with asyncio.timeout_at(deadline):
                response = await self._post("/v1/chat/completions", self._body(request))
            try:
                if response.status != 200:
                    async with asyncio.timeout_at(deadline):
                        _raise_for_status(response.status, await response.read())
                while not collected.whole:
                    limit = deadline
                    if collected.content and silence is not None:
                        limit = min(deadline, asyncio.get_running_loop().time() + silence)
                    async with asyncio.timeout_at(limit):
                        # All that has come by now: a busy daemon handles several tokens at once.
                        chunk = await response.content.readany()
                    if text := collected.add(chunk):
                        yield EngineDelta(text)
            finally:
                response.close()
        except TimeoutError:
            raise EngineTimeout(
                f"no end of the reply within {timeout:g} s"
                if asyncio.get_running_loop().time() >= deadline
                else f"no token for {silence:g} s",
                text=collected.content or None,
                silent=not collected.content or asyncio.get_running_loop().time() < deadline,
            ) from None
        except aiohttp.ClientConnectorError as error:
            raise EngineStarting(f"the engine does not listen: {_words(error)}", retry_after=1) from None
        except aiohttp.ClientError as error:
            raise EngineDied(
                f"the engine closed the connection in the middle of a reply: {_words(error)}",
                text=collected.content or None,
            ) from None
        yield collected.reply()

    def _body(self, request: EngineRequest) -> dict[str, Any]:
        body: dict[str, Any] = {
            **request.sampling,
            "messages": request.messages,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if self.model:
            body["model"] = self.model
        if self.dialect is not Dialect.REMOTE:
            body["grammar"] = request.grammar
        if self.dialect is Dialect.TOOLS:
            body["structured_outputs"] = {"grammar": request.grammar}
        if self.dialect is not Dialect.LLAMA and request.tools:
            body["tools"] = request.tools
            body["tool_choice"] = request.tool_choice
        return body


class _Collected:
    """The reply as it comes together.

    Attributes:
        whole: whether the stream has come to its end.
    """

    def __init__(self) -> None:
        self.whole = False
        self.content = ""
        self.calls: dict[int, list[str]] = {}
        self.finish_reason = ""
        self.usage: dict[str, Any] = {}
        self.timings: dict[str, Any] = {}
        self._rest = b""

    def add(self, chunk: bytes) -> str:
        """Take a piece of the event stream, empty at its end; returns the content that it adds.

        Only whole lines are decoded, so that no character is cut.
        """
        *lines, self._rest = (self._rest + (chunk or b"\n")).split(b"\n")
        added = ""
        for line in map(bytes.strip, lines):
            if line == b"data: [DONE]":
                self.whole = True
                break
            added += self._event(line)
        self.content += added
        self.whole = self.whole or not chunk
        return added

    def _event(self, line: bytes) -> str:
        if not line.startswith((b"data:", b"error:", b"{")):
            return ""
        try:
            payload = line if line.startswith(b"{") else line.partition(b":")[2]
            event = json.loads(payload.decode())
        except UnicodeDecodeError:
            raise EngineRefused("the engine sent bytes that are not UTF-8") from None
        except ValueError:
            raise EngineRefused("the engine sent an event that is not JSON") from None
        if not isinstance(event, dict):
            raise EngineRefused("the engine sent an event that is no object")
        if "error" in event or line.startswith(b"error:"):
            raise _refusal(500, event)
        self.usage = event.get("usage") or self.usage
        self.timings = event.get("timings") or self.timings
        added = ""
        for choice in (event.get("choices") or [])[:1]:
            delta = choice.get("delta") or choice.get("message") or {}
            added += delta.get("content") or ""
            for call in delta.get("tool_calls") or ():
                function = call.get("function") or {}
                known = self.calls.setdefault(call.get("index", len(self.calls)), ["", ""])
                known[0] += function.get("name") or ""
                known[1] += function.get("arguments") or ""
            self.finish_reason = choice.get("finish_reason") or self.finish_reason
        return added

    def reply(self) -> EngineReply:
        if not self.finish_reason:
            raise EngineDied("the engine closed the connection in the middle of a reply", text=self.content or None)
        calls = tuple((name, arguments) for _, (name, arguments) in sorted(self.calls.items()))
        return EngineReply(self.content, calls, self.finish_reason, self.usage, self.timings)


def _raise_for_status(status: int, content: bytes) -> None:
    if status == 200:
        return
    try:
        body = json.loads(content.decode())
    except ValueError:
        body = {}
    raise _refusal(status, body if isinstance(body, dict) else {})


def _refusal(status: int, body: Mapping[str, Any]) -> EngineError:
    """The engine's own error, in our words."""
    error = body.get("error", body)
    if not isinstance(error, Mapping):
        error = {"message": str(error)}
    message = str(error.get("message") or f"HTTP status {status}")
    if (
        error.get("type") == "exceed_context_size_error"
        or "context size" in message
        or "exceeds the available" in message
    ):
        return ContextOverflow(
            f"the prompt does not fit the engine's context: {message}",
            prompt_tokens=error.get("n_prompt_tokens"),
            context_tokens=error.get("n_ctx"),
        )
    if status == 503:
        return EngineStarting(f"the engine is not ready: {message}", retry_after=1)
    return EngineRefused(f"the engine refused the turn: {message}", engine_status=status)


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
