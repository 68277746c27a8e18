"""The daemon: the one place that wires configuration, engine, allow-list, socket API and systemd together."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import uvicorn

from ..engine import REFUSED, Dialect, Endpoint, Engine, EngineClient, Event, State, SupervisedEngine, Supervisor
from ..errors import InvalidConfiguration
from .agent import Agent
from .allow_list import AllowListFile, watch
from .app import make_app
from .check import check_model
from .config import Config
from .connection import connection_class
from .listener import own_socket, passed_socket, remove_socket
from .logs import EngineLines, fields
from .metrics import Metrics
from .notify import Notifier, watchdog_seconds

log = logging.getLogger("tacid_infer.daemon")
engine_log = logging.getLogger("tacid_infer.engine")

_SEVERITY = {3: logging.ERROR, 4: logging.WARNING, 6: logging.INFO}
_EXTENSION = 60.0
_BEAT = 1.0


class _Server(uvicorn.Server):
    """uvicorn, with the signals left to the daemon."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Daemon:
    """The running daemon.

    Args:
        config: the whole configuration.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.notifier = Notifier()
        self.metrics = Metrics()
        self.allow_list = AllowListFile(config.allow_list.path)
        self.supervisor: Supervisor | None = None
        self.agent = Agent(self._engine(), self.allow_list, config, self.metrics)
        self._ready = False
        self._began = time.monotonic()
        self._fault: InvalidConfiguration | None = None
        self._end = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    def _engine(self) -> Engine:
        endpoint = self.config.endpoint
        if not endpoint.url:
            settings = self.config.engine_settings()
            finding = check_model(settings.model)
            if not finding.ok:
                raise InvalidConfiguration(f"engine.model: {finding.message}: {finding.advice}")
            self.supervisor = Supervisor(settings, self._engine_event, EngineLines())
            return SupervisedEngine(self.supervisor)
        local = Dialect.TOOLS if endpoint.honours_tools else Dialect.LLAMA
        path = endpoint.url.removeprefix("unix:") if endpoint.url.startswith("unix:") else None
        client = EngineClient(
            Dialect.REMOTE if endpoint.kind == "remote" else local,
            socket=path,
            url="http://engine" if path else endpoint.url.rstrip("/").removesuffix("/v1"),
            model=endpoint.model or None,
            api_key=_read_key(endpoint.api_key_file),
        )
        return Endpoint(client, endpoint.url)

    async def run(self) -> None:
        """Serve until SIGTERM or SIGINT.

        Raises:
            InvalidConfiguration: it cannot serve as configured.
        """
        passed = passed_socket()
        listening = passed or await own_socket(self.config.socket)
        try:
            await self._serve(listening)
        finally:
            listening.close()
            self.agent.close()
            if passed is None:
                remove_socket(self.config.socket.path)
        if self._fault is not None:
            raise self._fault

    async def _serve(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end.set)
        loop.add_signal_handler(signal.SIGHUP, self._reload)
        model = self.config.endpoint.model or (self.config.engine.model.stem if self.config.engine.model else "engine")
        server = _Server(
            uvicorn.Config(
                make_app(self.agent, model),
                http=connection_class(self.config.limits),
                log_config=None,
                access_log=False,
                lifespan="off",
                timeout_keep_alive=30,
                timeout_graceful_shutdown=2,
            )
        )
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        watching = asyncio.create_task(watch(self.allow_list))
        beating = asyncio.create_task(self._heartbeat())
        ending = asyncio.create_task(self._end.wait())
        if self.supervisor is not None:
            await self.supervisor.start()
        else:
            self._announce()
        try:
            await asyncio.wait([serving, ending], return_when=asyncio.FIRST_COMPLETED)
            await self._drain()
        finally:
            server.should_exit = True
            for task in (watching, beating, ending):
                task.cancel()
            if self.supervisor is not None:
                await self.supervisor.stop()
            await asyncio.gather(serving, watching, beating, ending, return_exceptions=True)

    async def _drain(self) -> None:
        """No new turns; those that run may finish, up to the limit."""
        self.notifier.stopping()
        self.agent.stopping = True
        self._say()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.config.limits.drain_seconds):
                while self.agent.running or self.agent.waiting:
                    await asyncio.sleep(0.05)

    def _reload(self) -> None:
        """SIGHUP: the allow-list is read anew; nothing else changes without a restart."""
        task = asyncio.get_running_loop().create_task(self._read_anew())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _read_anew(self) -> None:
        self.notifier.reloading()
        current = await asyncio.to_thread(self.allow_list.current)
        log.info("reloaded: %s", current.reason, extra=fields(event="reload"))
        if self._ready:
            self.notifier.ready()

    async def _heartbeat(self) -> None:
        """Tells systemd how things stand, from the event loop itself, so that the signs of life stop when it does.

        An engine that hangs is the supervisor's to restart, so signs of life go on meanwhile; without a supervisor at
        work they do not. Neither disk nor network is touched here.
        """
        interval = watchdog_seconds()
        beat = min(interval / 3 if interval else _BEAT, _BEAT)
        extended = 0.0
        while True:
            if interval is not None and (self.supervisor is None or self.supervisor.minding):
                self.notifier.alive()
            now = time.monotonic()
            if self._is_loading() and now - extended > _EXTENSION / 6:
                extended = now
                self.notifier.extend(_EXTENSION)
            self._say()
            await asyncio.sleep(beat)

    def _is_loading(self) -> bool:
        """Whether the start may go on: there is progress, and the time to load is not over."""
        if self._ready or self.supervisor is None or self.supervisor.state is State.FAILING:
            return False
        return time.monotonic() - self._began < self.config.engine.start_timeout + _EXTENSION

    def _engine_event(self, event: Event) -> None:
        told = fields(event="engine", engine_state=event.state.value, cause=event.cause)
        engine_log.log(
            _SEVERITY.get(event.severity, logging.INFO), "%s: %s", event.state.value, event.message, extra=told
        )
        if event.cause is not None:
            self.metrics.engine_restarts.labels(event.cause).inc()
        if event.cause == REFUSED and not self._ready:
            # Nothing that restarts could mend: the operator is told by the start itself.
            self._fault = InvalidConfiguration(f"{event.message.partition(';')[0]}: see engine.extra_args")
            self._end.set()
        if event.state is State.READY:
            self._announce()
        else:
            self._say()

    def _announce(self) -> None:
        if not self._ready:
            self._ready = True
            self.notifier.ready()
            log.info("serving on %s", self.config.socket.path, extra=fields(event="ready"))
        self._say()

    def _say(self) -> None:
        self.notifier.status(self.words())

    def words(self) -> str:
        """How the daemon stands, in one line: what ``systemctl status`` shows."""
        agent, supervisor = self.agent, self.supervisor
        if agent.stopping:
            return f"stopping: {agent.running + agent.waiting} turns to finish"
        if supervisor is not None and supervisor.state in (State.STARTING, State.PROVING) and not self._ready:
            doing = (
                "loading model" if supervisor.state is State.STARTING else "proving that the engine enforces grammars"
            )
            return f"{doing}: {time.time() - supervisor.since:.0f} s"
        if found := agent.degraded():
            return f"degraded: {'; '.join(found)}"
        open_list = "" if self.allow_list.latest.narrows else f"; {self.allow_list.latest.reason}"
        no_gpu = f"; {supervisor.gpu_missing}" if supervisor is not None and supervisor.gpu_missing else ""
        return f"ready: {agent.tools_served} tools served{no_gpu}{open_list}"


def _read_key(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        return path.read_text().strip()
    except OSError as error:
        raise InvalidConfiguration(f"endpoint.api_key_file: {path}: {error.strerror}") from None


async def serve(config: Config) -> None:
    """Run the daemon until it is told to stop."""
    await Daemon(config).run()
