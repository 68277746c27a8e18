"""Compiling a 60-tool turn: ours, and llama.cpp's own converter on the same tools, side by side in one run.

python benchmarks/compile.py [ROUNDS]. Each round has tools of its own, so that nothing is taken from a cache. llama.cpp's
converter runs inside llama-server (TACID_INFER_ENGINE_COMMAND, else the one on PATH; without LLGuidance, as nixpkgs' and
Debian's are): its time is that of a request with ``json_schema``, less that of the same request with the grammar that
came of it, on the tiny model. The two whole requests are held against each other as well, ours with its compilation.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from tacid_infer.engine import EngineSettings, Supervisor
from tacid_infer.engine.tiny_model import write_tiny_model
from tacid_infer.grammar import compile_turn
from tacid_infer.service.config import find_engine

KINDS: list[Callable[[int], dict[str, Any]]] = [
    lambda n: {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1, "maximum": 7 + n % 5}},
    lambda n: {"path": {"type": "string", "maxLength": 200 + n}, "recursive": {"type": "boolean"}},
    lambda n: {"unit": {"enum": [f"unit-{n}-{i}" for i in range(20)]}, "action": {"enum": ["start", "stop", "restart"]}},
    lambda n: {"to": {"type": "array", "items": {"type": "string"}, "minItems": 1}, "subject": {"type": "string"},
               "body": {"type": "string"}, "urgent": {"type": "boolean"}},
    lambda n: {"when": {"type": "string", "format": "date-time"}, "tags": {"type": "array", "items": {"type": "string"}},
               "filter": {"type": "object", "properties": {"min": {"type": "number"}, "max": {"type": "number"}}}},
    lambda n: {"query": {"type": "string"}, "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
]  # fmt: skip


def tools(round_: int) -> list[dict[str, Any]]:
    """60 tools of the kinds that agents offer; different in each round."""
    made = []
    for number in range(60):
        properties = KINDS[number % len(KINDS)](number + 60 * round_)
        parameters = {
            "type": "object",
            "title": f"round {round_}",
            "properties": properties,
            "required": list(properties)[:1],
        }
        made.append({"name": f"tool_{number}", "description": f"Tool {number}.", "parameters": parameters})
    return made


def as_schema(listed: list[dict[str, Any]]) -> dict[str, Any]:
    """The same turn as one schema, for a converter that knows no turns."""
    calls = [
        {
            "type": "object",
            "properties": {"tool": {"const": tool["name"]}, "arguments": tool["parameters"]},
            "required": ["tool", "arguments"],
        }
        for tool in listed
    ]
    say = {"type": "object", "properties": {"say": {"type": "string"}}, "required": ["say"]}
    return {"anyOf": [*calls, say]}


class Timed:
    """Milliseconds by what was timed; a median each."""

    def __init__(self) -> None:
        self._taken: dict[str, list[float]] = {}

    def add(self, what: str, started: float) -> None:
        """From a ``time.perf_counter()`` on until now."""
        self._taken.setdefault(what, []).append((time.perf_counter() - started) * 1e3)

    def median(self, what: str) -> float:
        """The median so far."""
        return statistics.median(self._taken[what])


async def ask(client: httpx.AsyncClient, constraint: dict[str, Any]) -> str:
    """One token under a constraint; the grammar that the engine made of it."""
    response = await client.post(
        "/completion", json={"prompt": "x", "n_predict": 1, "cache_prompt": True, **constraint}
    )
    response.raise_for_status()
    return str(response.json()["generation_settings"]["grammar"])


async def measure(client: httpx.AsyncClient, rounds: int) -> None:
    """Print the table."""
    timed = Timed()
    sizes = (0, 0)
    for number in range(rounds):
        listed = tools(number)
        started = time.perf_counter()
        grammar = compile_turn(listed)
        timed.add("ours", started)
        await ask(client, {"grammar": grammar})
        timed.add("our request", started)
        again = json.loads(json.dumps(listed))
        started = time.perf_counter()
        compile_turn(again)
        timed.add("kept", started)
        schema = as_schema(listed)
        started = time.perf_counter()
        theirs = await ask(client, {"json_schema": schema})
        timed.add("their request", started)
        assert "root ::=" in theirs, "the engine has LLGuidance in place of llama.cpp's own converter"
        started = time.perf_counter()
        await ask(client, {"grammar": theirs})
        timed.add("their grammar", started)
        sizes = (len(grammar), len(theirs))
    converter = timed.median("their request") - timed.median("their grammar")
    print(f"60 tools, median of {rounds} rounds                    ms    bytes")
    print(f"tacid_infer.grammar.compile_turn (Python)    {timed.median('ours'):7.2f} {sizes[0]:8}")
    print(f"  the same tools in the next turn            {timed.median('kept'):7.3f}")
    print(f"llama.cpp's own converter (C++)              {converter:7.2f} {sizes[1]:8}")
    print(f"ratio ours / llama.cpp's                     {timed.median('ours') / converter:7.2f}")
    print(f"ours compiled, and a request of one token    {timed.median('our request'):7.2f}")
    print(f"a request of one token with json_schema      {timed.median('their request'):7.2f}")
    print(
        f"ratio ours / llama.cpp's                     {timed.median('our request') / timed.median('their request'):7.2f}"
    )


async def main() -> None:
    """Start an engine, and measure."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    with tempfile.TemporaryDirectory(prefix="ti-") as made:
        folder = Path(made)
        model, socket = folder / "tiny.gguf", folder / "e.sock"
        write_tiny_model(model)
        command = tuple(find_engine(os.environ.get("TACID_INFER_ENGINE_COMMAND", "")))
        supervisor = Supervisor(EngineSettings(command, model, socket, threads=1))
        await supervisor.start()
        try:
            await supervisor.wait_ready(60)
            transport = httpx.AsyncHTTPTransport(uds=str(socket))
            async with httpx.AsyncClient(transport=transport, base_url="http://engine", timeout=60) as client:
                await measure(client, rounds)
        finally:
            await supervisor.stop()
        path = folder / "tools.json"
        path.write_text(json.dumps(tools(0)))
        taken = []
        for _ in range(5):
            started = time.perf_counter()
            subprocess.run([sys.executable, "-m", "tacid_infer", "compile", str(path)], capture_output=True, check=True)
            taken.append(time.perf_counter() - started)
        print(f"tacid-infer compile, as a command            {min(taken) * 1e3:7.0f}")


if __name__ == "__main__":
    asyncio.run(main())
