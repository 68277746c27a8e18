"""How the daemon starts and ends, and what it leaves behind."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from .running import LONG, USER, Asking, Daemon, call_of, open_files, until


def start(daemon: Daemon, **environment: str) -> subprocess.CompletedProcess[str]:
    """A second daemon with the same configuration, which is to end by itself."""
    command = [sys.executable, "-m", "tacid_infer", "serve", "--config", str(daemon.config)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=30, check=False, env={**os.environ, **environment}
    )


def test_a_second_daemon_does_not_take_the_socket(daemon: Daemon) -> None:
    """B10."""
    second = start(daemon)
    assert second.returncode == 1 and "in use" in second.stderr and "Traceback" not in second.stderr
    assert daemon.http.get("/healthz").status_code == 200


@pytest.mark.parametrize("key", ["SOCKET__PATH", "ENGINE__SOCKET"])
def test_the_length_of_a_sockets_path(daemon: Daemon, folder: Path, key: str) -> None:
    """B11: refused at the start, with the length and the limit."""
    path = str(folder / "x")
    path += "x" * (108 - len(path))
    second = start(daemon, **{f"TACID_INFER_{key}": path})
    assert second.returncode == 1 and "108 bytes long; the limit is 107" in second.stderr


@pytest.mark.parametrize("kind", ["file", "directory", "dangling link"])
def test_what_is_no_socket_is_left_alone(daemon: Daemon, folder: Path, kind: str) -> None:
    """B10: the error names the path and what stands there."""
    path = folder / "other.sock"
    if kind == "file":
        path.write_text("x")
    elif kind == "directory":
        path.mkdir()
    else:
        path.symlink_to("nowhere")
    second = start(daemon, TACID_INFER_SOCKET__PATH=str(path))
    assert second.returncode == 1 and str(path) in second.stderr and "left alone" in second.stderr
    assert os.path.lexists(path)


def test_the_sockets_permissions(folder: Path, tiny_model: Path) -> None:
    with Daemon.on_standin(folder, tiny_model, "takes:0") as daemon:
        assert stat.S_IMODE(daemon.socket.stat().st_mode) == 0o660


def test_a_group_that_is_not_there_ends_the_start(daemon: Daemon, folder: Path) -> None:
    second = start(daemon, TACID_INFER_SOCKET__PATH=str(folder / "g.sock"), TACID_INFER_SOCKET__GROUP="no-such-group")
    assert second.returncode == 1 and "no-such-group" in second.stderr
    assert not (folder / "g.sock").exists()


def test_sigkill_of_the_daemon_leaves_no_engine_and_a_new_one_starts(
    folder: Path, tiny_model: Path, engine_command: tuple[str, ...]
) -> None:
    first = Daemon(folder, tiny_model, engine_command)
    pid = first.engine_pid()
    first.process.kill()
    first.process.wait()
    until(lambda: not Path(f"/proc/{pid}").exists())
    assert first.socket.exists()
    with Daemon(folder, tiny_model, engine_command) as second:
        assert second.turn().status_code == 200
    assert not (folder / "engine.sock").exists()


def test_sigterm_lets_running_turns_finish(folder: Path, tiny_model: Path) -> None:
    with Daemon.on_standin(folder, tiny_model, "takes:2") as daemon:
        pid = daemon.engine_pid()
        running = Asking(daemon, "/v1/complete", {"messages": USER})
        waiting = Asking(daemon, "/v1/complete", {"messages": USER})
        until(lambda: daemon.status()["turns"]["waiting"])
        daemon.process.send_signal(signal.SIGTERM)
        until(lambda: daemon.status()["state"] == "stopping")
        late = daemon.post("/v1/complete", {"messages": USER})
        assert (late.status_code, late.json()["error"]["code"]) == (503, "engine_unavailable")
        assert daemon.http.get("/healthz").status_code == 503
        assert running.wait().json()["text"] == "ok" and waiting.wait().json()["text"] == "ok"
        assert daemon.process.wait(10) == 0
        assert not Path(f"/proc/{pid}").exists() and not (folder / "engine.sock").exists()


def test_sigterm_waits_no_longer_than_the_limit(folder: Path, tiny_model: Path) -> None:
    settings = {"limits.drain_seconds": 1}
    with Daemon.on_standin(folder, tiny_model, "takes:60", settings=settings) as daemon:
        running = Asking(daemon, "/v1/complete", {"messages": USER})
        until(lambda: daemon.status()["turns"]["running"])
        started = time.monotonic()
        assert daemon.end() == 0
        assert 1 <= time.monotonic() - started < 10
        # Its caller is told, and not left with a dead line.
        try:
            assert running.wait().json()["error"]["code"] in ("engine_died", "engine_unavailable")
        except AssertionError:
            assert isinstance(running.error, httpx.RemoteProtocolError), running.error


def test_sigterm_while_the_engine_starts(folder: Path, tiny_model: Path) -> None:
    with Daemon.on_standin(folder, tiny_model, "never-healthy", wait=False) as daemon:
        daemon.wait_listening()
        waiting = Asking(daemon, "/v1/complete", {"messages": USER, "timeout": 60})
        until(lambda: daemon.status()["turns"]["running"])
        settled = time.monotonic()
        assert daemon.end() == 0
        assert time.monotonic() - settled < 30
        assert waiting.error is not None or waiting.wait().status_code == 503


def test_nothing_grows_over_many_starts_of_the_engine(folder: Path, tiny_model: Path) -> None:
    with Daemon.on_standin(folder, tiny_model, "dies:SIGSEGV") as daemon:
        counts = []
        for _ in range(4):
            daemon.wait_ready()
            assert daemon.post("/v1/complete", {"messages": USER}).json()["error"]["code"] == "engine_died"
            daemon.wait_ready()
            counts.append(open_files(daemon.process.pid))
        assert counts[-1] <= counts[0] + 1
        children = Path(f"/proc/{daemon.process.pid}/task/{daemon.process.pid}/children").read_text().split()
        assert len(children) == 1


def test_a_model_that_is_none_ends_the_start(folder: Path, tiny_model: Path) -> None:
    """And the stale socket that stood there is no matter."""
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(folder / "agent.sock"))
    stale.close()
    (folder / "text.gguf").write_text("version https://git-lfs.github.com/spec/v1\n")
    refused = Daemon.on_standin(folder, folder / "text.gguf", "takes:0", wait=False)
    assert refused.process.wait(20) == 1
    assert "Git LFS pointer" in refused.log() and "Traceback" not in refused.log()
    (folder / "agent.sock").unlink(missing_ok=True)
    with Daemon.on_standin(folder, tiny_model, "takes:0") as daemon:
        assert daemon.post("/v1/complete", {"messages": USER}).status_code == 200


def test_a_turn_is_not_cut_by_a_reload(folder: Path, tiny_model: Path, engine_command: tuple[str, ...]) -> None:
    with Daemon(folder, tiny_model, engine_command) as daemon:
        pid = daemon.engine_pid()
        asking = [Asking(daemon, "/v1/complete", call_of(LONG, max_tokens=8000)) for _ in range(3)]
        for _ in range(5):
            daemon.process.send_signal(signal.SIGHUP)
            time.sleep(0.1)
        for asked in asking:
            assert asked.wait().json().get("error", {}).get("code") in (None, "invalid_arguments")
        assert daemon.engine_pid() == pid
