"""What the daemon adds to the engine's own time: the same turns through the daemon, and straight to its engine.

python benchmarks/overhead.py [TURNS] [CALLERS] [PAUSE] [MODEL.gguf]. The engine is TACID_INFER_ENGINE_COMMAND, else
llama-server on PATH, else the embedded one; the model is the tests' tiny one, whose own time is so short that the
daemon's shows. Rounds alternate: all callers through the daemon's socket, then all of them straight to the engine's, with
the grammar and the messages that the daemon would have sent, and streamed, as the daemon has it. Each turn has its seed,
so that both ways give the same reply. A caller pauses before each turn (PAUSE seconds on average, 2), and the engine has one
thread and as many slots as callers: where it has all cores, or no pause, everything waits for them, this benchmark too,
and what is measured is how many turns they can serve. A PAUSE of 0 shows that.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import httpx

from tacid_infer.engine.tiny_model import write_tiny_model
from tacid_infer.service.config import find_engine

ROUNDS = 5
TOOLS = [
    {
        "name": f"{verb}_{noun}",
        "description": f"{verb} the {noun}.",
        "parameters": {
            "type": "object",
            "properties": {
                "unit": {"enum": ["nginx", "sshd", "caddy"]},
                "count": {"type": "integer", "minimum": 0, "maximum": 99},
            },
            "required": ["unit"],
            "additionalProperties": False,
        },
    }
    for verb in ("start", "stop", "show")
    for noun in ("service", "timer")
]
MESSAGES = [{"role": "user", "content": "Show the service nginx."}]
SAMPLING = {"temperature": 0.8, "max_tokens": 120}


async def until_ready(client: httpx.AsyncClient) -> None:
    """Wait for the daemon."""
    while True:
        try:
            if (await client.get("/healthz")).status_code == 200:
                return
        except httpx.HTTPError:
            pass
        await asyncio.sleep(0.1)


async def callers(
    count: int, turns: int, ask: Callable[[int], Awaitable[None]], first: int, pause: float
) -> list[float]:
    """So many callers, each with a turn after the other; milliseconds of each turn."""
    taken: list[float] = []
    left = iter(range(first, first + turns))

    async def call() -> None:
        for seed in left:
            await asyncio.sleep(random.Random(seed).uniform(0, 2 * pause))
            started = time.perf_counter()
            await ask(seed)
            taken.append((time.perf_counter() - started) * 1e3)

    await asyncio.gather(*(call() for _ in range(count)))
    return taken


async def measure(
    daemon: httpx.AsyncClient, engine: aiohttp.ClientSession, turns: int, count: int, pause: float
) -> None:
    """Print the table."""
    body = {"tools": TOOLS, "messages": MESSAGES, "tool_choice": "show_service"}
    built = (await daemon.post("/v1/turns", json=body)).json()

    async def through(seed: int) -> None:
        answer = (await daemon.post("/v1/complete", json={**body, **SAMPLING, "seed": seed})).json()
        assert answer.get("type") == "call", answer

    async def straight(seed: int) -> None:
        asked = {
            "messages": built["messages"], "grammar": built["grammar"], **SAMPLING, "seed": seed, "stream": True,
        }  # fmt: skip
        async with engine.post("http://engine/v1/chat/completions", json=asked) as response:
            assert (await response.read()).endswith(b"data: [DONE]\n\n")

    ours: list[float] = []
    theirs: list[float] = []
    for number in range(ROUNDS + 1):
        first = number * turns
        found = await callers(count, turns, through, first, pause)
        other = await callers(count, turns, straight, first, pause)
        if number:  # The first round warms both up.
            ours += found
            theirs += other
    print(f"{count} callers, {len(ours)} turns each way        median      p90      p99   (ms)")
    rows = {"through the daemon": ours, "straight to the engine": theirs}
    at: dict[str, list[float]] = {}
    for name, taken in rows.items():
        cuts = statistics.quantiles(taken, n=100)
        at[name] = [statistics.median(taken), cuts[89], cuts[98]]
        print(f"{name:34}" + "".join(f"{value:9.1f}" for value in at[name]))
    pairs = list(zip(*at.values(), strict=True))
    print(f"{'overhead':34}" + "".join(f"{mine - plain:9.1f}" for mine, plain in pairs))
    print(f"{'ratio':34}" + "".join(f"{mine / plain:9.3f}" for mine, plain in pairs))


async def main() -> None:
    """Start a daemon, and measure."""
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 16
    pause = float(sys.argv[3]) if len(sys.argv) > 3 else 2.0
    with tempfile.TemporaryDirectory(prefix="ti-") as made:
        folder = Path(made)
        model = Path(sys.argv[4]) if len(sys.argv) > 4 else folder / "tiny.gguf"
        if len(sys.argv) < 5:
            write_tiny_model(model)
        settings = {
            "SOCKET__PATH": str(folder / "agent.sock"),
            "SOCKET__GROUP": "",
            "ENGINE__COMMAND": json.dumps(find_engine(os.environ.get("TACID_INFER_ENGINE_COMMAND", ""))),
            "ENGINE__MODEL": str(model),
            "ENGINE__SOCKET": str(folder / "engine.sock"),
            "ENGINE__THREADS": "1",
            "ENGINE__PARALLEL": str(count),
            "ENGINE__CONTEXT_TOKENS": "8192",
            "LOG__LEVEL": "error",
        }
        environment = {**os.environ, **{f"TACID_INFER_{key}": value for key, value in settings.items()}}
        environment.pop("TACID_INFER_ENGINE_COMMAND", None)
        serving = await asyncio.create_subprocess_exec(sys.executable, "-m", "tacid_infer", "serve", env=environment)
        transport = httpx.AsyncHTTPTransport(uds=str(folder / "agent.sock"))
        connector = aiohttp.UnixConnector(str(folder / "engine.sock"), force_close=True, limit=0)
        try:
            async with (
                httpx.AsyncClient(transport=transport, base_url="http://local", timeout=600) as daemon,
                aiohttp.ClientSession(connector=connector) as engine,
            ):
                await until_ready(daemon)
                await measure(daemon, engine, turns, count, pause)
        finally:
            serving.terminate()
            await serving.wait()


if __name__ == "__main__":
    asyncio.run(main())
