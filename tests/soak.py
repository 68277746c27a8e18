"""A soak of the running daemon: callers at work, and faults injected at random, for as long as one wants.

``scripts/soak [MINUTES] [CALM_CALLERS]``. It fails, and says why, unless every turn ended in a valid typed reply or a
named error, the daemon's pid is the same, no process is left over, no file descriptor leaked, and memory is flat. With
CALM_CALLERS, so many callers are at work and no fault is injected.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import jsonschema

from tacid_infer.engine.tiny_model import write_tiny_model
from tacid_infer.errors import ReplyError, TacidError
from tacid_infer.service.config import find_engine

from .service.running import USER, Daemon, open_files, resident

CALLERS = 16
WARM_UP = 60.0
TOOLS = [
    {"name": "pick", "parameters": {"type": "object", "required": ["n"], "properties": {"n": {"enum": [1, "two", 3.5]}}}},
    {"name": "move", "parameters": {"type": "object", "required": ["to"], "additionalProperties": False, "properties": {
        "to": {"type": "array", "items": {"type": "integer", "minimum": -9, "maximum": 9}, "maxItems": 4},
        "fast": {"type": "boolean"}}}},
    {"name": "note", "parameters": {"type": "object", "required": ["id"], "properties": {
        "id": {"type": "string", "pattern": "^[a-f0-9]{8}$"}, "day": {"type": "string", "format": "date"}}}},
]  # fmt: skip
SCHEMAS: dict[str, Any] = {str(tool["name"]): tool["parameters"] for tool in TOOLS}
LISTS = [
    '["nginx"]',
    '{"services": ["sshd", "caddy"]}',
    "[]",
    '{"services": [',
    "\xff",
    '{"services": [], "exact": true}',
]


def named_errors() -> set[str]:
    """The code of every error that the daemon may name."""
    found, left = set[str](), list[type[TacidError]]([TacidError])
    while left:
        kind = left.pop()
        found.add(kind.code)
        left.extend(kind.__subclasses__())
    return found - {TacidError.code, ReplyError.code}


class Soak:
    """Callers and faults, and what became of them."""

    def __init__(self, daemon: Daemon, seconds: float) -> None:
        self.daemon = daemon
        self.end = time.monotonic() + seconds
        self.outcomes: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._codes = named_errors()

    def running(self) -> bool:
        """Whether there is time left."""
        return time.monotonic() < self.end

    def call(self, seed: int) -> None:
        """One caller's turns."""
        dice = random.Random(seed)
        while self.running():
            hasty = dice.random() < 0.05
            with self.daemon.client(timeout=0.02 if hasty else 120) as http:
                for _ in range(dice.randrange(1, 30)):
                    if not self.running():
                        return
                    try:
                        self._turn(http, dice)
                    except httpx.TimeoutException:
                        self.outcomes["left by its caller" if hasty else "no answer"] += 1
                        if not hasty:
                            self.wrong.append("a turn had no answer within 120 s")
                        break
                    except httpx.HTTPError as error:
                        self.outcomes["broken connection"] += 1
                        self.wrong.append(f"a connection broke: {error!r}")
                        break

    def _turn(self, http: httpx.Client, dice: random.Random) -> None:
        choice = dice.choice(["auto", "required", "pick", "move", "note", "proposal.submit"])
        body = {
            "tools": TOOLS,
            "messages": USER,
            "tool_choice": choice,
            "seed": dice.randrange(2**31),
            "max_tokens": 200,
        }
        if dice.random() < 0.05:
            body["tool_choice"] = dice.choice(["zzz", 5])
        if dice.random() < 0.05:
            body["timeout"] = dice.choice([0.01, 0.5])
        answer = http.post("/v1/complete", json=body).json()
        if "error" in answer:
            code = answer["error"]["code"]
            self.outcomes[code] += 1
            if answer["error"].get("retry_after"):
                time.sleep(dice.uniform(0, 0.5))
            if code not in self._codes or not answer["error"]["message"]:
                self.wrong.append(f"no named error: {json.dumps(answer)[:500]}")
        elif answer["type"] == "call":
            self.outcomes["call"] += 1
            if answer["tool"] in SCHEMAS:
                validator = jsonschema.Draft202012Validator(
                    SCHEMAS[answer["tool"]], format_checker=jsonschema.FormatChecker(["date"])
                )
                if not validator.is_valid(answer["arguments"]):
                    self.wrong.append(f"not valid: {json.dumps(answer)[:500]}")
        else:
            self.outcomes["say"] += 1
            if choice not in ("auto",):
                self.wrong.append(f"an answer where a call was due: {json.dumps(answer)[:500]}")

    def disturb_engine(self) -> None:
        """Ends of the engine, now and then in bursts, mostly so far apart that it stands again in between."""
        self._disturb(random.Random(7), [self._kill, self._kill, self._stop], [1, 5, 70, 70])

    def disturb_daemon(self) -> None:
        """What an operator and bad callers do, all the time."""
        self._disturb(
            random.Random(8), [self._reload, self._change, self._change, self._half, self._noise], [0.1, 1, 3]
        )

    def _disturb(self, dice: random.Random, faults: list[Callable[[random.Random], None]], pauses: list[float]) -> None:
        while True:
            wait = time.monotonic() + dice.choice(pauses)
            while time.monotonic() < wait:
                if not self.running():
                    return
                time.sleep(0.05)
            fault = dice.choice(faults)
            with contextlib.suppress(OSError, httpx.HTTPError, TypeError, ValueError):
                fault(dice)
                self.faults[fault.__name__.strip("_")] += 1

    def _kill(self, dice: random.Random) -> None:
        os.kill(self.daemon.engine_pid(), dice.choice([signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM]))

    def _stop(self, dice: random.Random) -> None:
        os.kill(self.daemon.engine_pid(), signal.SIGSTOP)

    def _reload(self, dice: random.Random) -> None:
        self.daemon.process.send_signal(signal.SIGHUP)

    def _change(self, dice: random.Random) -> None:
        if dice.random() < 0.2:
            self.daemon.services.unlink(missing_ok=True)
        else:
            self.daemon.services.write_text(dice.choice(LISTS), encoding="latin-1")

    def _half(self, dice: random.Random) -> None:
        with self.daemon.connect() as connection:
            connection.sendall(
                b"POST /v1/complete HTTP/1.1\r\nHost: d\r\nContent-Length: 500\r\n\r\n{"[: dice.randrange(60)]
            )

    def _noise(self, dice: random.Random) -> None:
        with self.daemon.client() as http:
            http.post("/v1/complete", content=dice.randbytes(dice.randrange(100_000)))


def processes_with(text: str) -> list[int]:
    """The processes that have a text in their command line, other than this one."""
    found = []
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if folder.name.isdigit() and text in (folder / "cmdline").read_text() and int(folder.name) != os.getpid():
                found.append(int(folder.name))
    return found


def soak(seconds: float, calm: int) -> list[str]:
    """Run it, and print what came of it; what is wrong, in words."""
    callers = calm or CALLERS
    with tempfile.TemporaryDirectory(prefix="ti-") as made:
        folder = Path(made)
        model = folder / "tiny.gguf"
        write_tiny_model(model)
        engine = tuple(find_engine(os.environ.get("TACID_INFER_TEST_ENGINE", "")))
        settings = {"engine.parallel": 2, "engine.context_tokens": 8192, "engine.health_interval": 1,
                    "engine.health_timeout": 2, "engine.stop_timeout": 1, "limits.read_seconds": 3,
                    "limits.silence_seconds": 5, "limits.turn_seconds": 60}  # fmt: skip
        with Daemon(folder, model, engine, settings=settings) as daemon:
            pid = daemon.process.pid
            run = Soak(daemon, seconds)
            files = open_files(pid)
            threads = [threading.Thread(target=run.call, args=(seed,), daemon=True) for seed in range(callers)]
            if not calm:
                disturbing = (run.disturb_engine, run.disturb_daemon)
                threads += [threading.Thread(target=work, daemon=True) for work in disturbing]
            for thread in threads:
                thread.start()
            time.sleep(min(WARM_UP, seconds / 2))
            warm = resident(pid)
            for thread in threads:
                thread.join(seconds + 150)
                if thread.is_alive():
                    run.wrong.append("a caller hangs")
            cold = resident(pid)
            time.sleep(8)
            if daemon.process.poll() is not None or daemon.process.pid != pid:
                run.wrong.append("the daemon ended")
            daemon.services.write_text('["nginx"]')
            daemon.wait_ready()
            after = open_files(pid)
            children = processes_with(str(folder / "engine.sock"))
            restarts = daemon.status()["engine"]["restarts"]
            if after > files + 2:
                run.wrong.append(f"{files} open files at the start, {after} at the end")
            if len(children) != 1:
                run.wrong.append(f"{len(children)} engines run")
            if cold > warm * 1.05:
                run.wrong.append(f"resident memory grew from {warm} to {cold} bytes")
        if left := processes_with(str(folder)):
            run.wrong.append(f"processes are left over: {left}")
    print(f"{seconds / 60:g} minutes, {callers} callers, {sum(run.outcomes.values())} turns, pid {pid} all the while")
    print("turns:   ", ", ".join(f"{count} {name}" for name, count in run.outcomes.most_common()))
    print("faults:  ", ", ".join(f"{count} {name}" for name, count in run.faults.most_common()))
    print("restarts:", ", ".join(f"{count} {name}" for name, count in restarts.items()))
    print(f"memory:   {warm / 2**20:.1f} MiB warm, {cold / 2**20:.1f} MiB at the end ({cold / warm - 1:+.1%})")
    print(f"files:    {files} open at the start, {after} at the end; {len(children)} engine, none left over")
    return run.wrong


if __name__ == "__main__":
    found = soak(60 * float(sys.argv[1] if len(sys.argv) > 1 else 10), int(sys.argv[2] if len(sys.argv) > 2 else 0))
    for line in found[:20]:
        print("WRONG:", line)
    sys.exit(bool(found))
