"""Minds the engine: starts it, proves it, watches it, restarts it, and says in words what is the matter."""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ..errors import EngineDied, EngineError, EngineStarting, EngineTimeout, EngineUnavailable, NotEnforced, TacidError
from .client import Dialect, EngineClient
from .gpu import Placement
from .lines import Line
from .process import Process, in_words
from .proof import prove_enforcement
from .settings import EngineSettings

_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 60.0
_STABLE = 60.0
_MANY_DEATHS = 5
_PROOF_TIMEOUT = 60.0
_POLL = 0.05
# What the engine writes comes by a pipe of its own, and so perhaps after its answers.
_LINES_LATE = 2.0
# llama-server's own words, and argparse's (the embedded engine's).
_REFUSED_FLAG = re.compile(
    r"error:.*(invalid|unknown|unrecognized) argument|error while handling argument", re.IGNORECASE
)


REFUSED = "refused"
"""The cause of an end: the engine does not know a flag that it was given."""
NOT_ENFORCED = "not_enforced"
"""The cause of an end: the engine does not hold to a grammar."""
NO_GPU = "no_gpu"
"""The cause of an end: a GPU is required, and the engine does not report a layer on one."""


class _GpuMissing(TacidError):
    """A GPU is required, and the engine does not report a layer on one."""


class State(Enum):
    """Where the engine stands."""

    STOPPED = "stopped"
    STARTING = "starting"
    PROVING = "proving"
    READY = "ready"
    WAITING = "waiting"
    FAILING = "failing"
    STOPPING = "stopping"


_ALIVE = (State.STARTING, State.PROVING, State.READY)


@dataclass(frozen=True, slots=True)
class Event:
    """Something that an operator should see.

    Attributes:
        state: where the engine stands now.
        message: one sentence.
        severity: a syslog priority (4 warning, 6 informational, ...).
        cause: why the engine ended, as a label of few values; None if it did not.
    """

    state: State
    message: str
    severity: int = 6
    cause: str | None = None


class Supervisor:
    """Keeps one engine running.

    Args:
        settings: how it is launched.
        on_event: called at each change of state.
        on_line: called with each line that the engine writes.
    """

    def __init__(
        self,
        settings: EngineSettings,
        on_event: Callable[[Event], None] = lambda event: None,
        on_line: Callable[[Line], None] = lambda line: None,
    ) -> None:
        self.settings = settings
        self.state = State.STOPPED
        self.reason = "not started"
        self.since = time.time()
        self.restarts: Counter[str] = Counter()
        self.wanted_gpu = settings.wanted_gpu()
        self.placement: Placement | None = None
        self.client = EngineClient(Dialect.LLAMA, socket=str(settings.socket))
        self._on_event = on_event
        self._on_line = on_line
        self._process: Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._deaths = 0
        self._in_flight = 0
        self._busy_since: float | None = None
        self._suspect = asyncio.Event()

    @property
    def minding(self) -> bool:
        """Whether somebody minds the engine, however the engine stands."""
        return self._task is not None and not self._task.done()

    @property
    def gpu_missing(self) -> str:
        """In one sentence, that a GPU is wanted and the engine reports none; empty if all is well, or not told yet."""
        return self.placement.lacks(self.wanted_gpu) if self.placement else ""

    # The life of the engine

    async def start(self) -> None:
        """Begin. Returns at once; ``wait_ready`` waits."""
        self._enter(State.STARTING, "starting")
        self._task = asyncio.create_task(self._run(), name="engine supervisor")

    async def stop(self) -> None:
        """End the engine that this supervisor launched, if any, and remove its socket."""
        self._enter(State.STOPPING, "stopping")
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await self.client.close()
        self._enter(State.STOPPED, "stopped")

    async def _run(self) -> None:
        while True:
            began = time.monotonic()
            cause, words = await self._one_life()
            lived = time.monotonic() - began
            self._deaths = 1 if lived > _STABLE else self._deaths + 1
            self.restarts[cause] += 1
            pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(self._deaths - 1, 10)) * random.uniform(0.8, 1.2)
            last = self._process.last_lines[-1] if self._process and self._process.last_lines else ""
            said = f"; last words: {last}" if last else ""
            if cause == REFUSED:
                # The same command line would be refused again; only another binary in its place could take it.
                pause = _LONGEST_PAUSE
                self._enter(State.FAILING, f"{words}; next try in {pause:.0f} s", 3, cause)
            elif cause == NO_GPU:
                many = self._deaths >= _MANY_DEATHS
                told = f"engine not used: {words}; next try in {pause:.1f} s"
                self._enter(State.FAILING if many else State.WAITING, told, 3 if many else 4, cause)
            elif self._deaths >= _MANY_DEATHS:
                told = f"engine keeps dying ({self._deaths} times): {words}{said}; next try in {pause:.0f} s"
                self._enter(State.FAILING, told, 3, cause)
            else:
                told = f"engine ended: {words}{said}; restarting in {pause:.1f} s"
                self._enter(State.WAITING, told, 4, cause)
            await asyncio.sleep(pause)

    async def _one_life(self) -> tuple[str, str]:
        """One run of the engine; the cause of its end, as a label and in words."""
        process = self._process = Process(self.settings, self._on_line)
        self._suspect.clear()
        self._enter(State.STARTING, "loading the model")
        try:
            await process.start()
        except (OSError, TacidError) as error:
            return "start", str(error)
        except asyncio.CancelledError:
            await process.stop()
            raise
        ended = asyncio.create_task(process.wait())
        try:
            return await self._mind(process, ended)
        except _GpuMissing as error:
            return NO_GPU, str(error)
        finally:
            ended.cancel()
            await process.stop()

    async def _mind(self, process: Process, ended: asyncio.Task[int]) -> tuple[str, str]:
        healthy = asyncio.create_task(self._becomes_healthy(process))
        try:
            await asyncio.wait([ended, healthy], return_when=asyncio.FIRST_COMPLETED)
            if ended.done():
                return self._ended_early(process, ended.result())
            if not healthy.result():
                return "start", f"the model was not loaded within {self.settings.start_timeout:g} s"
        finally:
            healthy.cancel()
        self._enter(State.PROVING, "proving that it enforces grammars")
        try:
            await self._prove(process, _PROOF_TIMEOUT)
            await self._placement_told(process)
        except NotEnforced as error:
            return NOT_ENFORCED, str(error)
        except EngineError as error:
            with contextlib.suppress(TimeoutError):
                return "exit", in_words(await asyncio.wait_for(asyncio.shield(ended), 1.0))
            return "proof", str(error)
        self._enter_ready()
        watch = asyncio.create_task(self._watch(process))
        try:
            await asyncio.wait([ended, watch], return_when=asyncio.FIRST_COMPLETED)
            if ended.done():
                return "exit", in_words(ended.result())
            process.kill()
            return watch.result()
        finally:
            watch.cancel()

    def _ended_early(self, process: Process, code: int) -> tuple[str, str]:
        refusal = next((line for line in process.last_lines if _REFUSED_FLAG.search(line)), None)
        if refusal is not None and code > 0:
            return REFUSED, f"the engine refuses its command line: {refusal}"
        return "exit", f"{in_words(code)} while it loaded the model"

    async def _becomes_healthy(self, process: Process) -> bool:
        deadline = time.monotonic() + self.settings.start_timeout
        while time.monotonic() < deadline:
            if self.settings.socket.exists() and await self.client.health(self.settings.health_timeout):
                process.log.loaded = True
                return True
            if self.wanted_gpu.required and process.log.placement.layers == 0:
                # Said before the weights are read, which may take minutes.
                self._see_placement(process)
            await asyncio.sleep(_POLL)
        return False

    async def _placement_told(self, process: Process) -> None:
        """Until the engine has said where the model is, or says nothing of it.

        Raises:
            _GpuMissing: that is not where it must be.
        """
        deadline = time.monotonic() + _LINES_LATE
        while self.wanted_gpu and process.log.placement.layers is None and time.monotonic() < deadline:
            await asyncio.sleep(_POLL)
        self._see_placement(process)

    def _see_placement(self, process: Process) -> None:
        self.placement = process.log.placement
        if self.wanted_gpu.required and self.gpu_missing:
            raise _GpuMissing(self.gpu_missing)

    async def _prove(self, process: Process, timeout: float) -> None:
        await prove_enforcement(self.client, timeout=timeout, before_refusal=process.log.expect_refusal)

    async def _watch(self, process: Process) -> tuple[str, str]:
        """Look at the engine while it is idle, and when a turn made it suspect; why it must end, when it must.

        A long prompt may keep a busy engine from answering, so it is left to its turn's deadline; unless it is stopped.
        """
        timeout = self.settings.health_timeout
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._suspect.wait(), self.settings.health_interval)
            if self._suspect.is_set():
                if found := await self._prove_again(process):
                    return found
            elif self._in_flight:
                if process.is_stopped():
                    await asyncio.sleep(timeout)
                    if process.is_stopped():
                        return "hung", f"stopped by a signal, and not continued within {timeout:g} s"
            elif not await self.client.health(timeout) and not self._in_flight:
                return "hung", f"no answer to a health check within {timeout:g} s"

    async def _prove_again(self, process: Process) -> tuple[str, str] | None:
        """Prove a suspect engine anew. No turn is sent meanwhile; one that runs may keep the engine from answering."""
        while True:
            self._suspect.clear()
            busy = self._in_flight > 0
            try:
                await self._prove(process, self.settings.health_timeout)
            except NotEnforced as error:
                return NOT_ENFORCED, str(error)
            except EngineError as error:
                if not busy:
                    return "hung", f"it no longer serves turns: {error}"
                await asyncio.sleep(_POLL)
                continue
            self._enter_ready()
            return None

    def _enter_ready(self) -> None:
        placement = self.placement
        if self.gpu_missing:
            self._enter(State.READY, self.gpu_missing, 4)
        else:
            self._enter(State.READY, placement.said if placement and placement.layers else "ready")

    def _enter(self, state: State, reason: str, severity: int = 6, cause: str | None = None) -> None:
        self.state, self.reason, self.since = state, reason, time.time()
        self._changed.set()
        self._changed = asyncio.Event()
        self._on_event(Event(state, reason, severity, cause))

    # What the daemon asks

    async def wait_ready(self, timeout: float) -> EngineClient:
        """The client, once the engine is ready.

        Raises:
            EngineStarting: it is not, within ``timeout`` seconds; ``retry_after`` tells when to ask again.
            EngineUnavailable: it keeps dying, or is stopped.
        """
        deadline = asyncio.get_running_loop().time() + timeout
        while self.state is not State.READY:
            if self.state in (State.FAILING, State.STOPPING, State.STOPPED):
                raise EngineUnavailable(f"the engine is not available: {self.reason}", retry_after=60)
            changed = self._changed
            try:
                async with asyncio.timeout_at(deadline):
                    await changed.wait()
            except TimeoutError:
                raise EngineStarting(f"the engine is not ready yet: {self.reason}", retry_after=2) from None
        return self.client

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Held while a turn is with the engine, which then need not answer health checks.

        A turn that gets no answer makes the engine suspect; one that loses it learns how it ended.
        """
        self._in_flight += 1
        self._busy_since = self._busy_since or time.time()
        began = time.monotonic()
        try:
            yield
        except EngineTimeout as error:
            # Tokens that came too slowly, or a caller in a hurry, are nothing against the engine.
            if error.details.get("silent") and time.monotonic() - began >= self.settings.health_timeout:
                self.suspect()
            raise
        except EngineDied as error:
            if words := await self._last_words():
                raise EngineDied(f"the engine ended in the middle of the turn: {words}", **error.details) from None
            raise
        finally:
            self._in_flight -= 1
            if not self._in_flight:
                self._busy_since = None

    def suspect(self) -> None:
        """Something is the matter with a reply: no further turn until the engine has been proven again."""
        if self.state is State.READY:
            self._suspect.set()
            self._enter(State.PROVING, "suspect: a turn went wrong")

    async def _last_words(self) -> str:
        for _ in range(20):
            if self.state in (State.WAITING, State.FAILING):
                return self.reason
            await asyncio.sleep(_POLL)
        return ""

    def status(self) -> dict[str, Any]:
        """What ``/status`` says of the engine."""
        return {
            "state": self.state.value,
            "reason": self.reason,
            "since": self.since,
            "pid": self._process.pid if self._process and self.state in _ALIVE else None,
            "turns_in_flight": self._in_flight,
            "busy_since": self._busy_since,
            "restarts": dict(self.restarts),
            "gpu": {
                "wanted": bool(self.wanted_gpu),
                "required": self.wanted_gpu.required,
                "missing": bool(self.gpu_missing),
                "layers": self.placement.layers if self.placement else None,
                "model_layers": self.placement.total if self.placement else None,
                "reason": self.gpu_missing or (self.placement.said if self.placement else "not told yet"),
            },
        }
