"""Tells systemd how the daemon stands (sd_notify(3)), through the sdnotify package. Without systemd it says nothing."""

from __future__ import annotations

import os
import time

import sdnotify


class Notifier:
    """The daemon's side of sd_notify."""

    def __init__(self) -> None:
        self._notifier = sdnotify.SystemdNotifier()
        self._last = ""

    def ready(self) -> None:
        """The socket listens, the model is loaded, and enforcement is proven."""
        self._notifier.notify("READY=1")

    def status(self, words: str) -> None:
        """What ``systemctl status`` shows, in one line."""
        if words != self._last:
            self._last = words
            self._notifier.notify(f"STATUS={' '.join(words.split())}")

    def extend(self, seconds: float) -> None:
        """More time to start, while there is progress."""
        self._notifier.notify(f"EXTEND_TIMEOUT_USEC={int(seconds * 1_000_000)}")

    def reloading(self) -> None:
        """A reload begins; ``ready`` ends it."""
        self._notifier.notify(f"RELOADING=1\nMONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")

    def stopping(self) -> None:
        """No more turns are taken."""
        self._notifier.notify("STOPPING=1")

    def alive(self) -> None:
        """The watchdog's sign of life."""
        self._notifier.notify("WATCHDOG=1")


def watchdog_seconds() -> float | None:
    """How often systemd wants a sign of life, in seconds; None if it wants none of this process."""
    try:
        interval = int(os.environ.get("WATCHDOG_USEC", ""))
    except ValueError:
        return None
    if os.environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()) or interval <= 0:
        return None
    return interval / 1_000_000
