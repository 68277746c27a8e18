"""Tells systemd how the daemon stands (sd_notify(3)), through the sdnotify package. Without systemd it says nothing."""

from __future__ import annotations

import logging
import os
import time

import sdnotify

log = logging.getLogger("tacid_infer.systemd")


class Notifier:
    """The daemon's side of sd_notify."""

    def __init__(self) -> None:
        self._last = ""
        self._told = False
        self._notifier: sdnotify.SystemdNotifier | None = None
        if os.environ.get("NOTIFY_SOCKET"):
            try:
                self._notifier = sdnotify.SystemdNotifier(debug=True)
                self._notifier.socket.setblocking(False)
            except OSError as error:
                self._failed(error)

    def _send(self, state: str) -> None:
        if self._notifier is None:
            return
        try:
            self._notifier.notify(state)
        except (OSError, UnicodeEncodeError) as error:
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        if not self._told:
            self._told = True
            log.warning("systemd cannot be told how we stand: NOTIFY_SOCKET: %s", error)

    def ready(self) -> None:
        """The socket listens, the model is loaded, and enforcement is proven."""
        self._send("READY=1")

    def status(self, words: str) -> None:
        """What ``systemctl status`` shows, in one line."""
        if words != self._last:
            self._last = words
            # sdnotify writes Latin-1, and systemd reads UTF-8.
            line = " ".join(words.split()).encode("utf-8", "replace").decode("latin-1")
            self._send(f"STATUS={line}")

    def extend(self, seconds: float) -> None:
        """More time to start, while there is progress."""
        self._send(f"EXTEND_TIMEOUT_USEC={int(seconds * 1_000_000)}")

    def reloading(self) -> None:
        """A reload begins; ``ready`` ends it."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")

    def stopping(self) -> None:
        """No more turns are taken."""
        self._send("STOPPING=1")

    def alive(self) -> None:
        """The watchdog's sign of life."""
        self._send("WATCHDOG=1")


def watchdog_seconds() -> float | None:
    """How often systemd wants a sign of life, in seconds; None if it wants none of this process."""
    try:
        interval = int(os.environ.get("WATCHDOG_USEC", ""))
    except ValueError:
        return None
    if os.environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()) or interval <= 0:
        return None
    return interval / 1_000_000
