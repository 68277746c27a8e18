"""The supervisor with a real engine, and with a stand-in (standin.py) for the faults that a real one will not show."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tacid_infer.engine import (
    REFUSED,
    EngineReply,
    EngineRequest,
    EngineSettings,
    Event,
    Line,
    State,
    SupervisedEngine,
    Supervisor,
)
from tacid_infer.engine import supervisor as supervising
from tacid_infer.engine.process import in_words
from tacid_infer.engine.tiny_model import write_tiny_model
from tacid_infer.errors import (
    ContextOverflow,
    EngineDied,
    EngineRefused,
    EngineStarting,
    EngineTimeout,
    EngineUnavailable,
    InvalidConfiguration,
)

Run = Callable[[Any], Any]
STANDIN = Path(__file__).parent / "standin.py"
LONG = 'root ::= "a" [a-z]{1900}'


def request(grammar: str = LONG, **sampling: Any) -> EngineRequest:
    return EngineRequest([{"role": "user", "content": "x"}], grammar, sampling={"max_tokens": 3000, **sampling})


async def complete(
    engine: SupervisedEngine, asked: EngineRequest, timeout: float = 20, silence: float = 10
) -> EngineReply:
    async for piece in engine.stream(asked, timeout=timeout, silence=silence):
        if isinstance(piece, EngineReply):
            return piece
    raise AssertionError


async def until(met: Callable[[], bool], seconds: float = 15) -> None:
    async with asyncio.timeout(seconds):
        while not met():
            await asyncio.sleep(0.02)


class Minded:
    """A supervisor in a ``with`` block, and the events it told."""

    def __init__(self, settings: EngineSettings) -> None:
        self.events: list[Event] = []
        self.lines: list[Line] = []
        self.supervisor = Supervisor(settings, self.events.append, self.lines.append)
        self.engine = SupervisedEngine(self.supervisor)

    async def __aenter__(self) -> Minded:
        await self.supervisor.start()
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.supervisor.stop()
        assert self.supervisor.state is State.STOPPED
        assert not self.supervisor.settings.socket.exists()


@pytest.fixture
def real(tiny_model: Path, engine_command: tuple[str, ...], folder: Path) -> EngineSettings:
    return EngineSettings(engine_command, tiny_model, folder / "e.sock", threads=1)


def standin(folder: Path, mode: str, *more: str, **settings: Any) -> EngineSettings:
    settings = {"stop_timeout": 0.5, "health_interval": 0.2, "health_timeout": 1, "start_timeout": 5, **settings}
    return EngineSettings((sys.executable, str(STANDIN), mode, *more), folder / "m", folder / "e.sock", **settings)


def test_a_turn_on_a_real_engine(real: EngineSettings, run: Run) -> None:
    async def work() -> None:
        async with Minded(real) as minded:
            reply = await complete(minded.engine, request('root ::= "one" | "two"'))
            assert reply.content in ("one", "two") and reply.finish_reason == "stop"
            assert [event.state.value for event in minded.events][-1] == "ready"

    run(work())


def test_sigkill_in_the_middle_of_a_turn(real: EngineSettings, run: Run) -> None:
    async def work() -> None:
        async with Minded(real) as minded:
            await minded.supervisor.wait_ready(20)
            pid = minded.supervisor.status()["pid"]
            pieces = minded.engine.stream(request(), timeout=20, silence=10)
            await anext(pieces)
            os.kill(pid, signal.SIGKILL)
            with pytest.raises(EngineDied, match="SIGKILL"):
                async for _ in pieces:
                    pass
            started = time.monotonic()
            reply = await complete(minded.engine, request('root ::= "again"'))
            assert reply.content == "again"
            assert time.monotonic() - started < 5
            assert minded.supervisor.status()["pid"] != pid
            assert minded.supervisor.restarts == {"exit": 1}

    run(work())


def test_a_stopped_engine_is_noticed_and_replaced(real: EngineSettings, run: Run) -> None:
    async def work() -> None:
        settings = EngineSettings(
            real.command, real.model, real.socket, threads=1, stop_timeout=0.5, health_interval=0.3, health_timeout=0.5
        )
        async with Minded(settings) as minded:
            await minded.supervisor.wait_ready(20)
            pid = minded.supervisor.status()["pid"]
            os.kill(pid, signal.SIGSTOP)
            await until(lambda: minded.supervisor.state is State.READY and minded.supervisor.status()["pid"] != pid)
            assert minded.supervisor.restarts == {"hung": 1}
            assert (await complete(minded.engine, request('root ::= "x"'))).content == "x"

    run(work())


def test_an_engine_that_is_stopped_in_the_middle_of_a_turn(real: EngineSettings, run: Run) -> None:
    """Busy engines are left alone, stopped ones are not: the turn ends long before its deadline."""

    async def work() -> None:
        settings = dataclasses.replace(
            real, context_tokens=2**18, stop_timeout=0.5, health_interval=0.3, health_timeout=0.5
        )
        endless = f"root ::= {'x ' * 200}\nx ::= [a-z]{{1900}}\n"
        async with Minded(settings) as minded:
            await minded.supervisor.wait_ready(20)
            pieces = minded.engine.stream(request(endless, max_tokens=2**18), timeout=80, silence=80)
            await anext(pieces)
            os.kill(minded.supervisor.status()["pid"], signal.SIGSTOP)
            with pytest.raises(EngineDied, match="stopped by a signal"):
                async for _ in pieces:
                    pass
            assert (await complete(minded.engine, request('root ::= "x"'))).content == "x"
            assert minded.supervisor.restarts == {"hung": 1}

    run(work())


def test_leaving_a_turn_frees_the_slot(real: EngineSettings, run: Run) -> None:
    async def work() -> None:
        async with Minded(real) as minded:
            pieces = minded.engine.stream(request('root ::= "a"+', max_tokens=100000), timeout=60, silence=10)
            await anext(pieces)
            await pieces.aclose()
            reply = await complete(minded.engine, request('root ::= "free"'), timeout=10)
            assert reply.content == "free"

    run(work())


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("exit-1", "exit code 1 while it loaded the model; last words: ggml: it will not do"),
        ("exit-132", "exit code 132: SIGILL"),
        ("killed", "killed by SIGILL (the binary was built for another CPU)"),
        ("never-healthy", "not loaded within 1 s"),
        ("ignores-grammars", "does not enforce grammars"),
        ("takes-broken", "takes a broken grammar"),
    ],
)
def test_an_engine_that_cannot_be_used_never_is(folder: Path, run: Run, mode: str, words: str) -> None:
    async def work() -> None:
        async with Minded(standin(folder, mode, start_timeout=1)) as minded:
            await until(lambda: any(words in event.message for event in minded.events))
            assert all(event.state is not State.READY for event in minded.events)
            with pytest.raises((EngineStarting, EngineUnavailable)):
                await complete(minded.engine, request(), timeout=0.2)

    run(work())


def test_a_crash_loop_ends_in_a_clear_state(folder: Path, run: Run) -> None:
    async def work() -> None:
        async with Minded(standin(folder, "exit-1")) as minded:
            await until(lambda: minded.supervisor.state is State.FAILING, 20)
            assert "keeps dying" in minded.supervisor.reason and "it will not do" in minded.supervisor.reason
            with pytest.raises(EngineUnavailable, match="keeps dying"):
                await complete(minded.engine, request(), timeout=5)

    run(work())


@pytest.mark.parametrize(
    ("mode", "error"),
    [
        ("closes", EngineDied),
        ("dies:SIGABRT", EngineDied),
        ("dies:SIGSEGV", EngineDied),
        ("dies:0", EngineDied),
        ("errors", EngineRefused),
        ("error-inside", ContextOverflow),
        ("not-utf8", EngineRefused),
        ("silent", EngineTimeout),
        ("stalls", EngineTimeout),
    ],
)
def test_a_turns_fault_is_a_named_error(folder: Path, run: Run, mode: str, error: type[Exception]) -> None:
    async def work() -> None:
        async with Minded(standin(folder, mode)) as minded:
            await minded.supervisor.wait_ready(20)
            with pytest.raises(error) as caught:
                await complete(minded.engine, request(), timeout=2, silence=0.5)
            if mode.startswith("dies"):
                assert mode.partition(":")[2] in str(caught.value)

    run(work())


def test_an_engine_that_wedges_is_killed(folder: Path, run: Run) -> None:
    async def work() -> None:
        async with Minded(standin(folder, "ignores-sigterm")) as minded:
            await minded.supervisor.wait_ready(20)

    run(work())


def test_a_flood_of_lines_is_carried_and_bounded(folder: Path, run: Run) -> None:
    async def work() -> None:
        async with Minded(standin(folder, "floods")) as minded:
            await minded.supervisor.wait_ready(20)
            await until(lambda: len(minded.lines) >= 20000)

    run(work())


def test_a_stale_socket_is_replaced_and_a_live_one_is_not(real: EngineSettings, folder: Path, run: Run) -> None:
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(real.socket))
    stale.close()

    async def work() -> None:
        async with Minded(real) as minded:
            await minded.supervisor.wait_ready(20)
            second = Supervisor(real)
            await second.start()
            await until(lambda: "in use by a running process" in second.reason)
            await second.stop()
            assert (await complete(minded.engine, request('root ::= "x"'))).content == "x"

    run(work())


@pytest.mark.parametrize("kind", ["file", "directory", "dangling link"])
def test_what_is_no_socket_is_left_alone(real: EngineSettings, run: Run, kind: str) -> None:
    path = real.socket
    {
        "file": lambda: path.write_text("x"),
        "directory": path.mkdir,
        "dangling link": lambda: path.symlink_to("nowhere"),
    }[kind]()

    async def work() -> None:
        supervisor = Supervisor(real)
        await supervisor.start()
        await until(lambda: "left alone" in supervisor.reason)
        await supervisor.stop()

    run(work())
    assert os.path.lexists(path)


def test_the_engine_dies_with_a_killed_parent(real: EngineSettings) -> None:
    script = (
        "import asyncio, sys\nfrom pathlib import Path\nfrom tacid_infer.engine import *\n"
        "async def main():\n"
        f"    s = Supervisor(EngineSettings({real.command!r}, Path({str(real.model)!r}), Path({str(real.socket)!r})))\n"
        "    await s.start(); await s.wait_ready(20); print(s.status()['pid'], flush=True); await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    os.kill(pid, 0)
    parent.kill()
    parent.wait()
    for _ in range(100):
        if not Path(f"/proc/{pid}").exists() or "zombie" in Path(f"/proc/{pid}/status").read_text():
            return
        time.sleep(0.05)
    raise AssertionError("the engine outlived its parent")


@pytest.mark.parametrize("flag", ["--host", "--grammar-file=x", "--jinja", "-m", "--json-schema", "--chat-template"])
def test_flags_that_contradict_ours_are_refused(folder: Path, flag: str) -> None:
    with pytest.raises(InvalidConfiguration, match="refused"):
        EngineSettings(("x",), folder / "m", folder / "e.sock", extra_args=(flag, "x"))


def test_the_length_of_a_socket_path(folder: Path) -> None:
    room = 107 - len(str(folder)) - 1
    EngineSettings(("x",), folder / "m", folder / ("s" * room))
    with pytest.raises(InvalidConfiguration, match="108 bytes long; the limit is 107"):
        EngineSettings(("x",), folder / "m", folder / ("s" * (room + 1)))


def test_exit_states_in_words() -> None:
    assert in_words(0) == "exit code 0"
    assert in_words(1) == "exit code 1"
    assert in_words(-9).startswith("killed by SIGKILL")
    assert in_words(132).startswith("exit code 132: SIGILL")


def wrapped(real: EngineSettings, limit: str) -> EngineSettings:
    """The real engine under a limit of the shell's."""
    script = f'{limit}; exec "$@"'
    return EngineSettings(("/bin/sh", "-c", script, "sh", *real.command), real.model, real.socket, threads=1)


def test_an_engine_that_runs_out_of_memory(real: EngineSettings, run: Run) -> None:
    async def work() -> None:
        async with Minded(wrapped(real, "ulimit -v 90000")) as minded:
            await until(lambda: minded.supervisor.restarts.total() > 1)
            assert minded.supervisor.restarts.keys() == {"exit"}
            assert all(event.state is not State.READY for event in minded.events)
            assert minded.supervisor.reason

    run(work())


def test_an_engine_that_runs_out_of_disk(real: EngineSettings, folder: Path, run: Run) -> None:
    """Its log file may not grow beyond 1024 bytes: it goes on without."""
    if "tacid_infer.engine.embedded" in real.command:
        pytest.skip("needs an engine that writes a log file: scripts/engines (root, Debian)")

    async def work() -> None:
        limited = wrapped(real, "ulimit -f 2")
        log = folder / "log"
        flags = ("--log-file", str(log), "-lv", "5")
        settings = EngineSettings(limited.command, real.model, real.socket, threads=1, extra_args=flags)
        async with Minded(settings) as minded:
            for _ in range(5):
                assert (await complete(minded.engine, request('root ::= "x"'))).content == "x"
            assert log.stat().st_size == 1024 and not minded.supervisor.restarts

    run(work())


@pytest.mark.parametrize("flag", ["--no-jinja", "--chat-template", "--ctx-size", "--parallel", "--threads", "--host"])
def test_a_refused_flag_fails_fast_with_the_engines_own_line(folder: Path, run: Run, flag: str) -> None:
    async def work() -> None:
        async with Minded(standin(folder, f"refuses:{flag}", threads=1)) as minded:
            await until(lambda: minded.supervisor.state is State.FAILING)
            assert minded.supervisor.restarts == {REFUSED: 1}
            assert f"error: invalid argument: {flag}" in minded.supervisor.reason
            with pytest.raises(EngineUnavailable, match=flag) as caught:
                await complete(minded.engine, request(), timeout=5)
            assert caught.value.details["retry_after"] > 0

    run(work())


def test_a_real_engine_refuses_a_flag_in_words_that_are_recognised(real: EngineSettings, run: Run) -> None:
    async def work() -> None:
        settings = EngineSettings(real.command, real.model, real.socket, extra_args=("--no-such-flag",))
        async with Minded(settings) as minded:
            await until(lambda: minded.supervisor.state is State.FAILING)
            assert minded.supervisor.restarts == {REFUSED: 1} and "--no-such-flag" in minded.supervisor.reason

    run(work())


def test_a_turn_that_killed_the_engine_is_never_sent_again(folder: Path, run: Run) -> None:
    log = folder / "turns"

    async def work() -> None:
        async with Minded(standin(folder, "dies:SIGSEGV", str(log))) as minded:
            with pytest.raises(EngineDied, match="SIGSEGV"):
                await complete(minded.engine, request())
            await minded.supervisor.wait_ready(20)
            assert minded.supervisor.restarts == {"exit": 1}

    run(work())
    assert len(log.read_text().splitlines()) == 1


def test_out_of_memory_at_the_first_request_is_found_by_the_proof(folder: Path, run: Run) -> None:
    async def work() -> None:
        async with Minded(standin(folder, "dies-at-first")) as minded:
            await until(lambda: minded.supervisor.state is State.FAILING, 40)
            assert all(event.state is not State.READY for event in minded.events)
            assert "keeps dying (5 times)" in minded.supervisor.reason
            assert "last words: ggml_backend_alloc: out of memory" in minded.supervisor.reason
            assert len(minded.events) < 30

    run(work())


def test_pauses_grow_and_begin_anew_after_a_stable_minute(
    folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervising, "_STABLE", 0.5)
    monkeypatch.setattr(supervising, "_FIRST_PAUSE", 0.05)

    async def work() -> None:
        async with Minded(standin(folder, "exit-1")) as minded:
            await until(lambda: minded.supervisor.restarts.total() >= 4)
            pauses = [float(event.message.split()[-2]) for event in minded.events if event.cause == "exit"]
            assert pauses[-1] > pauses[0]
        async with Minded(standin(folder, "takes:0")) as minded:
            for _ in range(7):
                await minded.supervisor.wait_ready(20)
                await asyncio.sleep(0.6)
                os.kill(minded.supervisor.status()["pid"], signal.SIGKILL)
                await until(lambda: minded.supervisor.state is not State.READY)
            assert minded.supervisor.state is not State.FAILING

    run(work())


def test_an_engine_whose_health_is_silent_while_it_is_busy_is_left_alone(folder: Path, run: Run) -> None:
    async def work() -> None:
        async with Minded(standin(folder, "slow-health:1.5", health_timeout=0.3)) as minded:
            await minded.supervisor.wait_ready(20)
            pid = minded.supervisor.status()["pid"]
            asking = asyncio.create_task(complete(minded.engine, request()))
            await until(lambda: bool(minded.supervisor.status()["busy_since"]))
            assert minded.supervisor.status()["state"] == "ready"
            assert (await asking).content == '{"say": "ok"}'
            await until(lambda: minded.supervisor.status()["busy_since"] is None)
            assert minded.supervisor.status()["pid"] == pid and not minded.supervisor.restarts

    run(work())


@pytest.mark.parametrize("mode", ["silent", "deaf", "stalls"])
def test_a_wedged_engine_is_probed_and_replaced(folder: Path, run: Run, mode: str) -> None:
    async def work() -> None:
        async with Minded(standin(folder, mode, health_timeout=0.4, health_interval=30)) as minded:
            await minded.supervisor.wait_ready(20)
            pid = minded.supervisor.status()["pid"]
            with pytest.raises(EngineTimeout):
                await complete(minded.engine, request(), timeout=1, silence=0.6)
            await until(lambda: minded.supervisor.state is State.READY)
            # One that only lost a turn answers the probe, and stays.
            assert (minded.supervisor.status()["pid"] == pid) == (mode == "stalls")
            assert minded.supervisor.restarts == ({} if mode == "stalls" else {"hung": 1})

    run(work())


def test_a_caller_in_a_hurry_is_nothing_against_the_engine(folder: Path, run: Run) -> None:
    async def work() -> None:
        async with Minded(standin(folder, "takes:0.6")) as minded:
            await minded.supervisor.wait_ready(20)
            with pytest.raises(EngineTimeout):
                await complete(minded.engine, request(), timeout=0.2)
            assert minded.supervisor.state is State.READY and not minded.supervisor.restarts

    run(work())


def test_an_engine_that_no_longer_enforces_is_replaced(folder: Path, run: Run) -> None:
    """As by a package update behind the daemon's back: the proof is repeated when a reply makes it suspect."""

    async def work() -> None:
        async with Minded(standin(folder, "ignores-from:6")) as minded:
            contents = [(await complete(minded.engine, request())).content for _ in range(5)]
            assert contents[:4] == ['{"say": "ok"}'] * 4 and contents[4].startswith("Sure")
            minded.engine.suspect()
            assert minded.supervisor.state is State.PROVING
            reply = await complete(minded.engine, request())
            assert reply.content == '{"say": "ok"}'
            assert minded.supervisor.restarts == {"not_enforced": 1}

    run(work())


@pytest.mark.parametrize("template", [None, "{% for x in 3 %}", "{{ raise_exception('no system messages') }}"])
def test_no_template_of_the_model_matters(
    folder: Path, engine_command: tuple[str, ...], run: Run, template: str | None
) -> None:
    model = folder / "m.gguf"
    write_tiny_model(model, chat_template=template)

    async def work() -> None:
        settings = EngineSettings(engine_command, model, folder / "e.sock", threads=1)
        async with Minded(settings) as minded:
            client = await minded.supervisor.wait_ready(20)
            messages = [{"role": "system", "content": "S"}, {"role": "user", "content": "U"}]
            rendered = await client.post("/apply-template", {"messages": messages}, 20)
            expected = "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\n"
            assert rendered["prompt"] == expected
            assert (await complete(minded.engine, request('root ::= "x"'))).content == "x"

    run(work())


def test_the_engine_sees_nothing_of_what_systemd_tells_us(
    real: EngineSettings, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "LISTEN_FDS", "LLAMA_ARG_JINJA", "LLAMA_API_KEY"):
        monkeypatch.setenv(name, "1")

    async def work() -> None:
        async with Minded(real) as minded:
            await minded.supervisor.wait_ready(20)
            environment = Path(f"/proc/{minded.supervisor.status()['pid']}/environ").read_bytes()
            for name in (b"NOTIFY_SOCKET", b"WATCHDOG_USEC", b"LISTEN_FDS", b"LLAMA_ARG_JINJA", b"LLAMA_API_KEY"):
                assert name not in environment

    run(work())


def test_the_health_of_an_idle_engine_that_falls_silent(folder: Path, run: Run) -> None:
    async def work() -> None:
        async with Minded(standin(folder, "deaf", health_timeout=0.4)) as minded:
            await minded.supervisor.wait_ready(20)
            # The turn is given up by its caller: nobody tells the supervisor, and the engine is idle and deaf.
            asking = asyncio.create_task(complete(minded.engine, request()))
            await until(lambda: bool(minded.supervisor.status()["turns_in_flight"]))
            await asyncio.sleep(0.3)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            await until(lambda: minded.supervisor.restarts == {"hung": 1})

    run(work())
