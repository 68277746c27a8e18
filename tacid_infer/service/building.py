"""Builds turns, and keeps the last ones: an agent sends the same tools again and again, and only messages change."""

from __future__ import annotations

import dataclasses
import time

from ..kept import Kept, content_key
from ..turn import AllowList, Turn, build_turn
from ..turn.messages import render_messages
from .allow_list import AllowListFile
from .metrics import Metrics
from .requests import TurnRequest

_KEPT = 32
_LARGEST_KEPT = 2**20


class TurnBuilder:
    """Builds turns against the allow-list as it is on disk.

    Args:
        allow_list: the file.
        metrics: where builds and cache hits are counted.
    """

    def __init__(self, allow_list: AllowListFile, metrics: Metrics) -> None:
        self._allow_list = allow_list
        self._metrics = metrics
        self._kept: Kept[Turn] = Kept(_KEPT)

    def build(self, request: TurnRequest) -> Turn:
        """Build a turn. Blocks.

        Raises:
            InvalidRequest
        """
        started = time.perf_counter()
        allow_list = self._allow_list.current()
        key = _content(request, allow_list)
        turn = self._kept.get(key)
        if turn is None:
            turn = self._build(request, allow_list)
            if len(turn.grammar) + len(turn.catalogue) <= _LARGEST_KEPT:
                self._kept.put(key, turn)
        else:
            self._metrics.cache_hits.inc()
        made = dataclasses.replace(
            turn, messages=render_messages(request.messages, turn.catalogue), allow_list=allow_list
        )
        self._metrics.compile_seconds.observe(time.perf_counter() - started)
        self._metrics.grammar_bytes.observe(len(made.grammar.encode()))
        return made

    def _build(self, request: TurnRequest, allow_list: AllowList) -> Turn:
        return build_turn(
            request.tools,
            denied=request.denied,
            tool_choice=request.tool_choice,
            strict=request.strict,
            allow_list=allow_list,
        )


def _content(request: TurnRequest, allow_list: AllowList) -> bytes | None:
    """All that decides grammar and catalogue."""
    tools = [tool.to_json() for tool in request.tools]
    listed = (allow_list.services, allow_list.exact, allow_list.state)
    return content_key((tools, sorted(request.denied), request.tool_choice, request.strict, listed))
