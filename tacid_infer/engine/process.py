"""One run of the engine's process, from its start to its end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import stat
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path

from ..errors import InvalidConfiguration
from . import tether
from .gpu import LAYERS_VARIABLE, verbose_variable
from .lines import EngineLog, Line
from .settings import EngineSettings

_LAST_LINES = 20
_LONGEST_LINE = 2000
_NOT_FOR_THE_ENGINE = ("NOTIFY_SOCKET", "WATCHDOG_", "LISTEN_", "TACID_INFER_", "LLAMA_ARG_", "LLAMA_API_KEY")
_HINTS = {
    signal.SIGILL: "the binary was built for another CPU",
    signal.SIGKILL: "killed from outside, or out of memory",
}


def in_words(code: int) -> str:
    """An exit status in words; a shell's 128+n counts as a death by signal."""
    number = -code if code < 0 else code - 128
    if code == 0:
        return "exit code 0"
    try:
        name = signal.Signals(number) if code < 0 or code > 128 else None
    except ValueError:
        name = None
    if name is None:
        return f"exit code {code}"
    hint = f" ({_HINTS[name]})" if name in _HINTS else ""
    return f"killed by {name.name}{hint}" if code < 0 else f"exit code {code}: {name.name}{hint}"


class Process:
    """A running engine.

    Args:
        settings: how it is launched.
        on_line: called with each line that it writes.
    """

    def __init__(self, settings: EngineSettings, on_line: Callable[[Line], None]) -> None:
        self.settings = settings
        self._wants_gpu = bool(settings.wanted_gpu())
        self.log = EngineLog(verbose=self._wants_gpu)
        self.last_lines: deque[str] = deque(maxlen=_LAST_LINES)
        self._on_line = on_line
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """The engine's process id."""
        return self._process.pid if self._process else None

    async def start(self) -> None:
        """Launch it. Returns at once; the model loads meanwhile.

        Raises:
            InvalidConfiguration: something that is no stale socket stands at the socket's path.
        """
        await clear_socket(self.settings.socket, "engine.socket")
        environment = _environment()
        if self._wants_gpu:
            environment[await asyncio.to_thread(verbose_variable, self.settings.command)] = "4"
        shim = [sys.executable, "-I", str(Path(tether.__file__)), str(os.getpid())]
        launch = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                *shim,
                *self.settings.command_line(),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
                env=environment,
            )
        )
        try:
            # Cancelled half-way, asyncio would wait for the child's end, and nobody would bring it about.
            self._process = await asyncio.shield(launch)
        except asyncio.CancelledError:
            self._process = await launch
            raise
        self._reader = asyncio.create_task(self._read_lines())

    async def wait(self) -> int:
        """Wait for its end; the exit code, negative for a signal."""
        assert self._process is not None
        code = await self._process.wait()
        if self._reader is not None:
            # Lines that were written before the end; a grandchild may hold the pipe open for ever.
            await asyncio.wait([self._reader], timeout=0.5)
            self._reader.cancel()
        return code

    async def stop(self) -> None:
        """SIGTERM, SIGKILL after the stop timeout, and the socket's file removed."""
        if self._process is None:
            return
        if self._process.returncode is None:
            self._signal(signal.SIGTERM)
            try:
                async with asyncio.timeout(self.settings.stop_timeout):
                    await self._process.wait()
            except TimeoutError:
                self.kill()
                await self._process.wait()
        self._signal(signal.SIGKILL)  # What it left behind in its process group.
        if self._reader is not None:
            self._reader.cancel()
        with contextlib.suppress(FileNotFoundError):
            self.settings.socket.unlink()

    def kill(self) -> None:
        """SIGKILL, for an engine that does not answer."""
        self._signal(signal.SIGKILL)

    def is_stopped(self) -> bool:
        """Whether a signal has stopped it (proc(5), state T)."""
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
        except OSError:
            return False

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    async def _read_lines(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        rest = b""
        while chunk := await self._process.stdout.read(65536):
            *lines, rest = (rest + chunk).split(b"\n")
            rest = rest[-_LONGEST_LINE:]
            for line in lines:
                text = line[:_LONGEST_LINE].decode("utf-8", "replace").rstrip()
                if text:
                    self.last_lines.append(text)
                    self._on_line(self.log.read(text))


def _environment() -> dict[str, str]:
    """Ours, without what systemd tells us alone, and without variables that would be flags of llama-server."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name == LAYERS_VARIABLE or not name.startswith(_NOT_FOR_THE_ENGINE)
    }
    return {**kept, "LLAMA_LOG_PREFIX": "1", "LLAMA_LOG_COLORS": "off"}


async def clear_socket(path: Path, what: str) -> None:
    """Remove a stale socket file. A live socket, and anything that is no socket, is left alone.

    Raises:
        InvalidConfiguration: names the path and what stands there.
    """
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        kinds = {stat.S_IFDIR: "a directory", stat.S_IFREG: "a file", stat.S_IFLNK: "a symbolic link"}
        kind = kinds.get(stat.S_IFMT(mode), "something that is no socket")
        raise InvalidConfiguration(f"{what}: {kind} stands at {path}; it is left alone: move it, or set another path")
    if await asyncio.to_thread(_is_live, path):
        raise InvalidConfiguration(f"{what}: {path} is in use by a running process")
    with contextlib.suppress(FileNotFoundError):
        path.unlink()


def _is_live(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(2)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:
            return True
        return True
