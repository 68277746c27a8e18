"""The real daemon as a process of its own, and what its tests ask of it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

STANDIN = Path(__file__).parent.parent / "engine" / "standin.py"
USER = [{"role": "user", "content": "hi"}]
SHORT = {"name": "t", "parameters": {"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"]}}
LONG = {"name": "long", "parameters": {"type": "object", "required": ["s"], "properties": {
    "s": {"type": "string", "minLength": 1900, "maxLength": 1999}}}}  # fmt: skip


def until(met: Callable[[], Any], seconds: float = 20) -> Any:
    """Wait until something holds; what it returned."""
    deadline = time.monotonic() + seconds
    while not (found := met()):
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.02)
    return found


def open_files(pid: int) -> int:
    """How many file descriptors a process has open."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def resident(pid: int) -> int:
    """Bytes of a process's resident memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def call_of(tool: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """The body of a turn that must call a tool."""
    return {"tools": [tool], "messages": USER, "tool_choice": tool["name"], **more}


class Daemon:
    """A running daemon; a context manager that ends it and looks at how it ended.

    Args:
        folder: for its sockets, its configuration and its log.
        model: a GGUF file.
        engine: the engine's command line.
        settings: configuration keys, with dots, as ``serve --help`` lists them.
        environment: further variables of its environment.
        launcher: a command line in front of its own.
        wait: whether to wait until it serves.
    """

    def __init__(
        self,
        folder: Path,
        model: Path,
        engine: tuple[str, ...],
        *,
        settings: Mapping[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
        launcher: tuple[str, ...] = (),
        pass_fds: tuple[int, ...] = (),
        wait: bool = True,
    ) -> None:
        self.folder = folder
        self.socket = folder / "agent.sock"
        self.services = folder / "services.json"
        if not self.services.exists():
            self.services.write_text('{"services": ["nginx", "sshd"]}')
        keys = {
            "socket.path": str(self.socket),
            "socket.group": "",
            "engine.command": list(engine),
            "engine.model": str(model),
            "engine.socket": str(folder / "engine.sock"),
            "engine.context_tokens": 8192,
            "engine.threads": 1,
            "engine.health_interval": 1,
            "allow_list.path": str(self.services),
            "sampling.temperature": 1.0,
            "sampling.max_tokens": 600,
            **(settings or {}),
        }
        self.config = folder / "config.toml"
        # A JSON scalar or list is TOML too.
        self.config.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items()))
        self._log = (folder / "log").open("a")
        self.process = subprocess.Popen(
            [*launcher, sys.executable, "-m", "tacid_infer", "serve", "--config", str(self.config)],
            stderr=self._log,
            env={**os.environ, **(environment or {})},
            pass_fds=pass_fds,
        )
        self.http = self.client()
        if wait:
            self.wait_ready()

    @classmethod
    def on_standin(cls, folder: Path, model: Path, mode: str, **more: Any) -> Daemon:
        """A daemon whose engine is the scripted stand-in; its turns leave their lines in ``folder / "turns"``."""
        return cls(folder, model, (sys.executable, str(STANDIN), mode, str(folder / "turns")), **more)

    def client(self, timeout: float = 60) -> httpx.Client:
        """A client of its socket."""
        transport = httpx.HTTPTransport(uds=str(self.socket))
        return httpx.Client(transport=transport, base_url="http://d", timeout=timeout)

    def connect(self) -> socket.socket:
        """A plain connection to its socket."""
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(30)
        connection.connect(str(self.socket))
        return connection

    def wait_ready(self) -> None:
        """Until its engine is ready."""

        def is_ready() -> bool:
            assert self.process.poll() is None, self.log()
            try:
                return self.http.get("/healthz").status_code == 200
            except httpx.HTTPError:
                return False

        until(is_ready, 30)

    def wait_listening(self) -> None:
        """Until its socket answers, whatever the engine does."""
        until(self.answers)

    def answers(self) -> bool:
        """Whether the socket answers."""
        try:
            return bool(self.status())
        except httpx.HTTPError:
            return False

    def log(self) -> str:
        """All that it logged."""
        return (self.folder / "log").read_text()

    def post(self, path: str, body: Any) -> httpx.Response:
        """One request."""
        return self.http.post(path, json=body)

    def turn(self, **more: Any) -> httpx.Response:
        """One short turn."""
        return self.post("/v1/complete", call_of(SHORT, **more))

    def status(self) -> Any:
        """Its status."""
        return self.http.get("/status").json()

    def engine_pid(self) -> int:
        """The engine's process id."""
        return int(self.status()["engine"]["pid"])

    def end(self, seconds: float = 40) -> int:
        """SIGTERM, and its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def close(self) -> None:
        """End it; it must end well, and leave no socket."""
        self.http.close()
        try:
            if self.process.poll() is None:
                assert self.end() == 0, self.log()
            assert not self.socket.exists()
        finally:
            self.process.kill()
            self._log.close()

    def __enter__(self) -> Daemon:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def metrics(daemon: Daemon) -> dict[str, float]:
    """Every sample, by its name and labels."""
    response = daemon.http.get("/metrics")
    assert response.headers["Content-Type"].startswith("text/plain; version=")
    return {
        sample.name + "".join(f"[{value}]" for value in sample.labels.values()): sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
    }


def shown(daemon: Daemon, *flags: str) -> str:
    """What ``tacid-infer status`` prints."""
    command = [sys.executable, "-m", "tacid_infer", "status", "--socket", str(daemon.socket), *flags]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout


class Asking:
    """A request on a thread of its own."""

    def __init__(self, daemon: Daemon, path: str, body: Any) -> None:
        self.response: httpx.Response | None = None
        self.error: Exception | None = None

        def ask() -> None:
            with daemon.client(timeout=180) as http:
                try:
                    self.response = http.post(path, json=body)
                except Exception as error:
                    self.error = error

        self._thread = threading.Thread(target=ask, daemon=True)
        self._thread.start()

    def wait(self, seconds: float = 30) -> httpx.Response:
        """Its response."""
        self._thread.join(seconds)
        assert self.response is not None, self.error or "no response in time"
        return self.response
