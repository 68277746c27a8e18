"""What the tests share: a real engine on a real socket, the tiny model, and whether a grammar admits a text.

The engine is TACID_INFER_TEST_ENGINE (a command line), else llama-server on PATH, else the embedded one of PyPI's
xllamacpp. TACID_INFER_GBNF_VALIDATOR is the path of llama.cpp's test-gbnf-validator; with it, every judgement of the
tests' own reader is held against llama.cpp's.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from tacid_infer.engine import EngineClient, EngineReply, EngineRequest, EngineSettings, Supervisor
from tacid_infer.engine.tiny_model import write_tiny_model
from tacid_infer.service.config import find_engine

from .gbnf_reader import read

_VALIDATOR = os.environ.get("TACID_INFER_GBNF_VALIDATOR")


def admits(grammar: str, text: str) -> bool:
    """Whether the grammar admits the text."""
    ours = read(grammar).admits(text)
    if _VALIDATOR:
        with tempfile.TemporaryDirectory() as folder:
            rules, written = Path(folder) / "g.gbnf", Path(folder) / "i.txt"
            rules.write_text(grammar, encoding="utf-8")
            written.write_text(text, encoding="utf-8")
            done = subprocess.run([_VALIDATOR, rules, written], capture_output=True, timeout=60, check=False)
        said = done.stdout.decode("utf-8", "replace")
        assert "is valid according" in said or "is invalid according" in said, said + done.stderr.decode()[-400:]
        assert ours == ("is valid according" in said), f"two readers of GBNF disagree about {text!r}"
    return ours


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The random-weight model."""
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    write_tiny_model(path)
    return path


@pytest.fixture(scope="session")
def engine_command() -> tuple[str, ...]:
    """The command line of a real llama-server."""
    return tuple(find_engine(os.environ.get("TACID_INFER_TEST_ENGINE", "")))


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder whose path leaves room for a socket's name."""
    with tempfile.TemporaryDirectory(prefix="ti-") as made:
        yield Path(made)


class RunningEngine:
    """A supervised engine on a thread of its own, for tests that are not asynchronous."""

    def __init__(self, settings: EngineSettings) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.supervisor = self.run(self._begin(settings))
        self.client: EngineClient = self.run(self.supervisor.wait_ready(60))

    async def _begin(self, settings: EngineSettings) -> Supervisor:
        supervisor = Supervisor(settings)
        await supervisor.start()
        return supervisor

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run on the engine's loop, and wait."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(120)

    def say(self, grammar: str, **sampling: Any) -> EngineReply:
        """One reply under a grammar."""
        # The tiny model is random to the byte: held to ASCII, its text is always UTF-8.
        ascii_only = [[token, False] for token in range(3 + 0x80, 3 + 0x100)]
        sampling = {"temperature": 1.0, "max_tokens": 2000, "logit_bias": ascii_only, **sampling}
        request = EngineRequest([{"role": "user", "content": "x"}], grammar, sampling=sampling)
        reply = self.run(self.client.complete(request, timeout=60))
        assert isinstance(reply, EngineReply)
        return reply

    def close(self) -> None:
        """End it."""
        self.run(self.supervisor.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


@pytest.fixture(scope="session")
def engine(tiny_model: Path, engine_command: tuple[str, ...]) -> Iterator[RunningEngine]:
    """A real engine with the tiny model, shared by the whole run."""
    with tempfile.TemporaryDirectory(prefix="ti-") as made:
        running = RunningEngine(
            EngineSettings(engine_command, tiny_model, Path(made) / "e.sock", context_tokens=8192, threads=1)
        )
        yield running
        running.close()


@pytest.fixture
def run() -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Runs a coroutine to its end, with a limit on its time."""

    def runner(work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run(asyncio.wait_for(work, 90))

    return runner
