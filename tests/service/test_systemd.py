"""What systemd is told, on the real protocol: a datagram socket of the test's own stands where systemd's would.

tests/system and nixos-tests hold the same daemon under the real systemd.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tacid_infer.service.notify import Notifier, watchdog_seconds

from .running import LONG, SHORT, USER, Asking, Daemon, call_of, until


class Manager:
    """The manager's end of sd_notify(3).

    Args:
        address: of its socket; a leading ``@`` makes it abstract.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.told: list[tuple[float, str]] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind("\0" + address[1:] if address.startswith("@") else address)
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while message := self._socket.recv(65536):
            self.told.append((time.monotonic(), message.decode()))

    def lines(self) -> list[str]:
        """What was told, without the signs of life."""
        return [line for _, line in self.told if line != "WATCHDOG=1"]

    def beats(self) -> list[float]:
        """When the signs of life came."""
        return [at for at, line in self.told if line == "WATCHDOG=1"]

    def heard(self, start: str) -> bool:
        """Whether something was told that begins so."""
        return any(line.startswith(start) for line in self.lines())


@pytest.fixture
def manager(folder: Path) -> Manager:
    return Manager(str(folder / "notify"))


def told(manager: Manager, watchdog: float = 0) -> dict[str, str]:
    """The environment that systemd would give."""
    return {"NOTIFY_SOCKET": manager.address, **({"WATCHDOG_USEC": str(int(watchdog * 1e6))} if watchdog else {})}


def test_ready_once_the_model_is_loaded_and_enforcement_proven(
    folder: Path, tiny_model: Path, manager: Manager
) -> None:
    with Daemon.on_standin(folder, tiny_model, "loads-for:2", environment=told(manager), wait=False) as daemon:
        daemon.wait_listening()
        assert daemon.http.get("/healthz").status_code == 503
        assert not manager.heard("READY=1")
        until(lambda: manager.heard("READY=1"))
        lines = manager.lines()
        before = lines[: lines.index("READY=1")]
        assert any(line.startswith("STATUS=loading model: ") and line.endswith(" s") for line in before)
        assert any(line.startswith("EXTEND_TIMEOUT_USEC=") for line in before)
        until(lambda: manager.heard("STATUS=ready: 2 tools served"))
        daemon.post("/v1/turns", {"tools": [SHORT]})
        until(lambda: manager.heard("STATUS=ready: 3 tools served"))
        daemon.services.write_text('{"services": [\n"nginx",\n]}')
        until(lambda: manager.heard(f"STATUS=degraded: {daemon.services}: line 3"))
        daemon.services.write_text("[]")
        until(lambda: any("no narrowing in force" in line for line in manager.lines()))
    assert "STOPPING=1" in manager.lines()
    assert manager.lines().count("READY=1") == 1


@pytest.mark.parametrize("mode", ["ignores-grammars", "takes-broken", "exit-1", "never-healthy"])
def test_never_ready_with_an_engine_that_cannot_be_used(
    folder: Path, tiny_model: Path, manager: Manager, mode: str
) -> None:
    settings = {"engine.start_timeout": 1}
    with Daemon.on_standin(
        folder, tiny_model, mode, settings=settings, environment=told(manager), wait=False
    ) as daemon:
        until(lambda: manager.heard("STATUS=degraded: engine: "))
        status = daemon.status()
        assert status["state"] == "degraded" and status["reasons"][0].startswith("engine: ")
    assert not manager.heard("READY=1")


def test_a_reload(folder: Path, tiny_model: Path, manager: Manager) -> None:
    with Daemon.on_standin(folder, tiny_model, "takes:0", environment=told(manager)) as daemon:
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: manager.heard("RELOADING=1") and manager.lines().count("READY=1") == 2)
        (reloading,) = [line for line in manager.lines() if line.startswith("RELOADING=1")]
        assert before < int(reloading.partition("MONOTONIC_USEC=")[2]) < before + 20_000_000
        assert daemon.post("/v1/complete", {"messages": USER}).status_code == 200


def test_signs_of_life_while_turns_run_and_catalogues_compile(
    folder: Path, tiny_model: Path, engine_command: tuple[str, ...], manager: Manager
) -> None:
    huge = [{"name": f"t{number}", "parameters": {"type": "object", "properties": {
        f"k{number}_{key}": {"type": "string", "pattern": f"^[a-z]{{{key + 1}}}(x|yy)+$"} for key in range(60)}}}
        for number in range(60)]  # fmt: skip
    environment = told(manager, watchdog=2)
    with Daemon(folder, tiny_model, engine_command, environment=environment) as daemon:
        asking = [Asking(daemon, "/v1/turns", {"tools": [*huge, {"name": f"x{number}"}]}) for number in range(4)]
        asking += [Asking(daemon, "/v1/complete", call_of(LONG, max_tokens=8000)) for _ in range(50)]
        for asked in asking:
            # Held to no language, the tiny model's bytes are not always UTF-8.
            assert asked.wait(200).json().get("error", {}).get("code") in (None, "engine_busy", "invalid_arguments")
        beats = manager.beats()
    assert len(beats) > 2
    assert max(after - before for before, after in itertools.pairwise(beats)) < 2


def test_signs_of_life_go_on_where_no_line_can_be_logged(
    folder: Path, tiny_model: Path, engine_command: tuple[str, ...], manager: Manager
) -> None:
    """C11: a full disk, which is all the same to the daemon but for its log: it writes no other file."""
    launcher = ("sh", "-c", 'exec "$@" 2>/dev/full', "sh")
    settings = {"log.level": "debug"}
    environment = told(manager, watchdog=1)
    with Daemon(folder, tiny_model, engine_command, settings=settings, environment=environment, launcher=launcher) as d:
        for number in range(5):
            d.services.write_text(json.dumps({"services": [f"s{number}"]}))
            assert d.turn().status_code == 200
            time.sleep(0.3)
        beats = manager.beats()
        assert len(beats) > 4
        assert max(after - before for before, after in itertools.pairwise(beats)) < 1
        assert d.log() == ""


def test_no_sign_of_life_from_a_stuck_loop(folder: Path, tiny_model: Path, manager: Manager) -> None:
    with Daemon.on_standin(folder, tiny_model, "takes:0", environment=told(manager, watchdog=0.5)) as daemon:
        until(lambda: len(manager.beats()) > 5)
        assert max(b - a for a, b in zip(manager.beats(), manager.beats()[1:], strict=False)) < 0.5
        daemon.process.send_signal(signal.SIGSTOP)
        time.sleep(0.2)
        before = len(manager.beats())
        time.sleep(1.5)
        assert len(manager.beats()) == before
        daemon.process.send_signal(signal.SIGCONT)
        until(lambda: len(manager.beats()) > before)


def test_signs_of_life_go_on_while_a_hung_engine_is_replaced(
    folder: Path, tiny_model: Path, engine_command: tuple[str, ...], manager: Manager
) -> None:
    settings = {"engine.health_interval": 0.3, "engine.health_timeout": 0.5, "engine.stop_timeout": 0.5}
    environment = told(manager, watchdog=1)
    with Daemon(folder, tiny_model, engine_command, settings=settings, environment=environment) as daemon:
        pid = daemon.engine_pid()
        os.kill(pid, signal.SIGSTOP)
        until(lambda: daemon.status()["engine"]["pid"] not in (pid, None))
        daemon.wait_ready()
        assert daemon.status()["engine"]["restarts"] == {"hung": 1}
        beats = manager.beats()
        assert max(after - before for before, after in itertools.pairwise(beats)) < 1


def test_an_engine_that_needs_long_to_load_gets_more_time(folder: Path, tiny_model: Path, manager: Manager) -> None:
    """Each extension reaches beyond the next one, and they end with the time that the engine has to load."""
    with Daemon.on_standin(folder, tiny_model, "loads-for:14", environment=told(manager), wait=False):
        until(lambda: manager.heard("READY=1"), 40)
        extensions = [(at, line) for at, line in manager.told if line.startswith("EXTEND_TIMEOUT_USEC=")]
        assert len(extensions) >= 2
        for (before, line), (after, _) in itertools.pairwise(extensions):
            assert after - before < int(line.partition("=")[2]) / 1e6 / 2


def test_a_socket_that_systemd_passes(
    folder: Path, tiny_model: Path, engine_command: tuple[str, ...], manager: Manager
) -> None:
    path = folder / "passed.sock"
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    listening.listen()
    # systemd.exec(5): $LISTEN_PID is the program's own pid, which is known only between fork and exec.
    script = (
        f"import os, sys; os.dup2({listening.fileno()}, 3); os.environ['LISTEN_PID'] = str(os.getpid()); "
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    daemon = Daemon(
        folder,
        tiny_model,
        engine_command,
        environment={"LISTEN_FDS": "1", **told(manager)},
        launcher=(sys.executable, "-c", script),
        pass_fds=(listening.fileno(),),
        wait=False,
    )
    daemon.socket = path
    daemon.http = daemon.client()
    daemon.wait_ready()
    assert daemon.turn().status_code == 200
    assert daemon.end() == 0
    # It is systemd's, for the next start.
    assert path.exists()
    listening.close()


def probe(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("WATCHDOG_USEC", "WATCHDOG_PID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return watchdog_seconds()


@pytest.mark.parametrize(
    ("environment", "seconds"),
    [
        ({"WATCHDOG_USEC": "500000"}, 0.5),
        ({"WATCHDOG_USEC": "30000000"}, 30),
        ({"WATCHDOG_USEC": "500000", "WATCHDOG_PID": str(os.getpid())}, 0.5),
        ({"WATCHDOG_USEC": "500000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "500000", "WATCHDOG_PID": "x"}, None),
        ({"WATCHDOG_USEC": "abc"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "-5"}, None),
        ({}, None),
    ],
)
def test_the_watchdogs_interval(
    environment: dict[str, str], seconds: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert probe(environment, monkeypatch) == seconds


def test_an_abstract_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    manager = Manager(f"@tacid-infer-test-{os.getpid()}")
    monkeypatch.setenv("NOTIFY_SOCKET", manager.address)
    notifier = Notifier()
    notifier.status("größer \n als")
    notifier.ready()
    until(lambda: manager.lines() == ["STATUS=größer als", "READY=1"])


def test_a_manager_that_is_not_there_is_told_of_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", str(folder / "nobody"))
    notifier = Notifier()
    for _ in range(3):
        notifier.ready()
        notifier.alive()
    assert [record.levelname for record in caplog.records] == ["WARNING"]


@pytest.fixture
def journal(folder: Path) -> Iterator[tuple[Path, list[dict[str, str]]]]:
    """A socket that takes entries in the journal's native protocol."""
    path, entries = folder / "journal", list[dict[str, str]]()
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    listening.bind(str(path))

    def listen() -> None:
        while entry := listening.recv(65536):
            entries.append(dict(line.split("=", 1) for line in entry.decode().splitlines()))

    threading.Thread(target=listen, daemon=True).start()
    yield path, entries


def test_entries_of_the_journal(journal: tuple[Path, list[dict[str, str]]]) -> None:
    import logging

    from tacid_infer.engine.lines import EngineLog
    from tacid_infer.service.logs import EngineLines, JournalHandler, fields

    path, entries = journal
    logger = logging.getLogger("tacid_infer")
    handler, level = JournalHandler(str(path)), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        logging.getLogger("tacid_infer.turn").info("turn: %s", "a\nb", extra=fields(event="turn", outcome="call"))
        lines, read = EngineLines(), EngineLog(verbose=False).read
        lines(read("0.00.012.743 W srv  llama_server: security"))
        lines(read("0.00.150.939 E failed to parse grammar"))
        lines(read('root ::= "what a caller wrote"'))
        until(lambda: len(entries) == 3)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        handler.close()
    assert entries[0] == {"MESSAGE": "turn: a | b", "PRIORITY": "6", "SYSLOG_IDENTIFIER": "tacid-infer",
                          "LOGGER": "tacid_infer.turn", "EVENT": "turn", "OUTCOME": "call"}  # fmt: skip
    assert [(entry["SYSLOG_IDENTIFIER"], entry["PRIORITY"]) for entry in entries[1:]] == [
        ("llama-server", "4"),
        ("llama-server", "3"),
    ]
