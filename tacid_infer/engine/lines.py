"""What one run of the engine writes: each line with its level, and what follows from it."""

from __future__ import annotations

import logging
import re
import time
from dataclasses import dataclass

from .gpu import Placement, PlacementReader

# "0.01.519.485 E srv  send_error: ...", as llama.cpp writes with --log-prefix.
_PREFIX = re.compile(r"^(?:\d+(?:\.\d+)+ )?([DIWE]) (.*)", re.DOTALL)
_LEVELS = {"D": logging.DEBUG, "I": logging.INFO, "W": logging.WARNING, "E": logging.ERROR}

# What llama-server says, once each, when it refuses a grammar: the parser, the answer, the slot, the task's end.
_OF_A_REFUSAL = (
    r"^failed to parse grammar",
    r"send_error: .*grammar",
    r"got exception: .*grammar",
    r"failed to launch slot",
    r"cancel task",
)
_REFUSAL_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the engine's.

    Attributes:
        level: of ``logging``. One that the engine gave none is a continuation (of a grammar, say) or an outcry: what
            callers wrote may stand in it, so it is for debugging alone.
        text: without the engine's prefix.
    """

    level: int
    text: str


class EngineLog:
    """Reads the lines of one run.

    Args:
        verbose: whether the engine was made to say more than it does by itself. What it says beyond the loading is then
            for debugging.
    """

    def __init__(self, *, verbose: bool) -> None:
        self.loaded = False
        self._verbose = verbose
        self._placement = PlacementReader()
        self._refusal: list[re.Pattern[str]] = []
        self._refusal_until = 0.0

    @property
    def placement(self) -> Placement:
        """Where the model is, as far as it has been said."""
        return self._placement.placement(loaded=self.loaded)

    def expect_refusal(self) -> None:
        """A broken grammar is about to be sent: the lines about its refusal are no errors.

        They come by a pipe of their own, some time after the answer, but in their order: so the next of each kind is
        meant, and one that follows is an error again.
        """
        self._refusal = [re.compile(pattern, re.IGNORECASE) for pattern in _OF_A_REFUSAL]
        self._refusal_until = time.monotonic() + _REFUSAL_SECONDS

    def read(self, raw: str) -> Line:
        """Take one line."""
        self._placement.read(raw)
        found = _PREFIX.match(raw)
        if found is None:
            return Line(logging.DEBUG, raw)
        level, text = _LEVELS[found[1]], found[2]
        if self._is_expected(text) or (self._verbose and self.loaded and level == logging.INFO):
            level = logging.DEBUG
        return Line(level, text)

    def _is_expected(self, text: str) -> bool:
        if not self._refusal or time.monotonic() > self._refusal_until:
            return False
        found = next((pattern for pattern in self._refusal if pattern.search(text)), None)
        if found is None:
            return False
        self._refusal.remove(found)
        return True
