"""Logging: one event, one line, with fields.

To the journal in its native protocol where the journal reads our stderr, so that each event has its priority, its
fields and its SYSLOG_IDENTIFIER (the engine's lines have the engine's); as plain lines on stderr otherwise.

The protocol is spoken here, in one function: of the libraries, systemd-python builds from source against libsystemd
when pip installs it, cysystemd is not packaged everywhere that we are, and logging-journald blocks the event loop
when the journal does, and adds the arguments of every message to it.
Source: systemd.io, "Native Journal Protocol"; systemd.exec(5), ``$JOURNAL_STREAM``.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import sys
import time
from collections.abc import Mapping
from typing import Any

from ..engine import Line

_PRIORITIES = {logging.DEBUG: 7, logging.INFO: 6, logging.WARNING: 4, logging.ERROR: 3, logging.CRITICAL: 2}
_JOURNAL = "/run/systemd/journal/socket"
_IDENTIFIER = "tacid-infer"
_ENGINE_IDENTIFIER = "llama-server"
_LONGEST_MESSAGE = 16384

_LINES_A_SECOND, _BURST = 20, 500

engine_lines = logging.getLogger("tacid_infer.engine.lines")


def fields(**values: Any) -> dict[str, Any]:
    """``extra`` of a log call: fields of the journal's entry, beside the message.

    Args:
        values: by name in lower case; None leaves a field out.
    """
    return {"fields": {name.upper(): value for name, value in values.items() if value is not None}}


class EngineLines:
    """Carries the engine's lines through, each with its own level, and so many a second at most.

    The supervisor keeps the last ones, whatever becomes of them here.
    """

    def __init__(self) -> None:
        self._room = float(_BURST)
        self._at = time.monotonic()
        self._dropped = 0

    def __call__(self, line: Line) -> None:
        now = time.monotonic()
        self._room = min(_BURST, self._room + (now - self._at) * _LINES_A_SECOND)
        self._at = now
        if not engine_lines.isEnabledFor(line.level):
            return
        if self._room < 1:
            self._dropped += 1
            return
        self._room -= 1
        if self._dropped:
            engine_lines.warning("%d lines of the engine were left out", self._dropped)
            self._dropped = 0
        engine_lines.log(line.level, "%s", line.text)


class _Lines(logging.Formatter):
    """One line an event, whatever the message holds."""

    def __init__(self, *, journal: bool) -> None:
        super().__init__("%(name)s: %(message)s" if journal else "%(asctime)s %(levelname)s %(name)s: %(message)s")
        self._journal = journal

    def format(self, record: logging.LogRecord) -> str:
        text = _one_line(super().format(record))
        # sd-daemon(3): a line that begins with <N> has that priority.
        return f"<{_PRIORITIES.get(record.levelno, 6)}>{text}" if self._journal else text


class JournalHandler(logging.Handler):
    """Sends each event to the journal. Never blocks: what the journal does not take is lost, as by syslog(3).

    Args:
        path: of the journal's socket.

    Raises:
        OSError: nobody listens there.
    """

    def __init__(self, path: str = _JOURNAL) -> None:
        super().__init__()
        self._path = path
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
            probe.connect(path)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)

    def emit(self, record: logging.LogRecord) -> None:
        """Send one event."""
        try:
            text = _one_line(record.getMessage())[:_LONGEST_MESSAGE]
            entry: dict[str, Any] = {
                "MESSAGE": text,
                "PRIORITY": _PRIORITIES.get(record.levelno, 6),
                "SYSLOG_IDENTIFIER": _ENGINE_IDENTIFIER if record.name == engine_lines.name else _IDENTIFIER,
                "LOGGER": record.name,
                **getattr(record, "fields", {}),
            }
            if record.exc_info:
                entry["EXCEPTION"] = logging.Formatter().formatException(record.exc_info)[:_LONGEST_MESSAGE]
            # By its path at each event, since the journal makes its socket anew when it restarts.
            self._socket.sendto(encode_entry(entry), self._path)
        except OSError:
            pass
        except Exception:
            self.handleError(record)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
        super().close()


def encode_entry(entry: Mapping[str, Any]) -> bytes:
    """A journal entry in the native protocol."""
    parts = []
    for name, value in entry.items():
        data = str(value).encode("utf-8", "replace")
        if b"\n" in data:
            parts.append(b"%s\n%s%s\n" % (name.encode(), len(data).to_bytes(8, "little"), data))
        else:
            parts.append(b"%s=%s\n" % (name.encode(), data))
    return b"".join(parts)


def _one_line(text: str) -> str:
    return "".join(char if char.isprintable() else " | " if char == "\n" else " " for char in text)


def _journal_reads_stderr() -> bool:
    try:
        device, inode = map(int, os.environ.get("JOURNAL_STREAM", "").split(":", 1))
        ours = os.fstat(sys.stderr.fileno())
    except (ValueError, OSError):
        return False
    return (ours.st_dev, ours.st_ino) == (device, inode)


def set_up_logging(level: str) -> None:
    """Send the package's log to the journal, or to stderr.

    Args:
        level: the least severe level that is logged: "debug", "info", "warning" or "error".
    """
    journal = _journal_reads_stderr()
    handler: logging.Handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines(journal=journal))
    if journal:
        with contextlib.suppress(OSError):  # Not in this file system: lines with priorities, without fields.
            handler = JournalHandler()
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("tacid_infer").setLevel(level.upper())
