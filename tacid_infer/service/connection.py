"""One caller's connection: who it is, and how long it may keep us waiting.

uvicorn has no limit on the time in which a request's head must come, nor on the time that a caller takes to read its
reply, nor a refusal in JSON where there are too many connections; and it does not say who is at the other end.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from dataclasses import dataclass
from functools import partial
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from .config import LimitsSection

_UCRED = struct.Struct("3i")


@dataclass(frozen=True, slots=True)
class Peer:
    """Who is at the other end of a Unix socket (unix(7), SO_PEERCRED)."""

    pid: int
    uid: int
    gid: int


class Connection(H11Protocol):
    """uvicorn's protocol with the bounds of ``LimitsSection``. Its ``peer`` is in each request's state."""

    def __init__(self, limits: LimitsSection, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._limits = limits
        self._reading: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.app_state = {**self.app_state, "peer": _peer(transport.get_extra_info("socket"))}
        if len(self.connections) > self._limits.connections:
            self._refuse(503, "engine_busy", f"{self._limits.connections} connections are open already")
            return
        self._await_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_answering():
            self._forget_head()
        elif self._reading is None:
            self._await_head()

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP is refused as everything else is: in JSON."""
        self._refuse(400, "invalid_request", "the request is no valid HTTP/1.1")

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY:
            # Answered before the request was whole: what is long in coming is not waited for.
            self.loop.call_later(1, self._close_unread)

    def _close_unread(self) -> None:
        if self.conn.their_state is h11.SEND_BODY and not self._is_answering():
            self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._writing = self.loop.call_later(self._limits.write_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_head()
        if self._writing is not None:
            self._writing.cancel()
        super().connection_lost(exc)

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _await_head(self) -> None:
        self._reading = self.loop.call_later(self._limits.read_seconds, self._too_slow)

    def _forget_head(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _too_slow(self) -> None:
        self._reading = None
        if not self._is_answering() and not self.transport.is_closing():
            self._refuse(408, "limit_exceeded", f"no request came within {self._limits.read_seconds:g} s")

    def _refuse(self, status: int, code: str, message: str) -> None:
        """Answer without the application, and close."""
        body = json.dumps({"error": {"code": code, "message": message}}).encode() + b"\n"
        headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body))), ("Connection", "close")]
        if status == 503:
            headers.append(("Retry-After", "5"))
        try:
            events = (h11.Response(status_code=status, headers=headers), h11.Data(data=body), h11.EndOfMessage())
            self.transport.write(b"".join(self.conn.send(event) or b"" for event in events))
        except h11.LocalProtocolError:
            pass  # A reply has begun already; all that can be done is to close.
        self.transport.close()


def connection_class(limits: LimitsSection) -> Any:
    """The protocol class for uvicorn's configuration."""
    return partial(Connection, limits)


def _peer(connection: socket.socket) -> Peer:
    return Peer(*_UCRED.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)))
