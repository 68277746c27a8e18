"""Logging: one line an event, to stderr; with the journal's priorities where the journal reads it."""

from __future__ import annotations

import logging
import os
import sys

_PRIORITIES = {logging.DEBUG: 7, logging.INFO: 6, logging.WARNING: 4, logging.ERROR: 3, logging.CRITICAL: 2}


class _Lines(logging.Formatter):
    """One line an event, whatever the message holds."""

    def __init__(self, *, journal: bool) -> None:
        super().__init__("%(name)s: %(message)s" if journal else "%(asctime)s %(levelname)s %(name)s: %(message)s")
        self._journal = journal

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        text = "".join(char if char.isprintable() else " | " if char == "\n" else " " for char in text)
        # sd-daemon(3): a line that begins with <N> has that priority.
        return f"<{_PRIORITIES.get(record.levelno, 6)}>{text}" if self._journal else text


def set_up_logging(level: str) -> None:
    """Send the package's log to stderr.

    Args:
        level: the least severe level that is logged: "debug", "info", "warning" or "error".
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines(journal="JOURNAL_STREAM" in os.environ))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("tacid_infer").setLevel(level.upper())
