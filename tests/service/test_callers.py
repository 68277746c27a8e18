"""Many callers, slow callers, and callers that go away."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from .running import LONG, SHORT, USER, Asking, Daemon, call_of, until


def test_many_callers_at_once_get_their_own_replies(daemon: Daemon) -> None:
    wrong: list[Any] = []

    def ask(number: int) -> None:
        tool = {
            "name": f"tool{number}",
            "parameters": {"type": "object", "required": ["n"], "properties": {"n": {"const": number}}},
        }
        with httpx.Client(
            transport=httpx.HTTPTransport(uds=str(daemon.socket)), base_url="http://d", timeout=60
        ) as http:
            for _ in range(5):
                body = {"tools": [tool], "messages": USER, "tool_choice": tool["name"]}
                answer = http.post("/v1/complete", json=body).json()
                if (answer.get("tool"), answer.get("arguments")) != (tool["name"], {"n": number}):
                    wrong.append(answer)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
