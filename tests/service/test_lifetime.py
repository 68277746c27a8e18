"""How the daemon starts and ends, and what it leaves behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from .running import LONG, SHORT, Asking, Daemon, call_of, until


def test_a_second_daemon_does_not_take_the_socket(daemon: Daemon) -> None:
    command = [sys.executable, "-m", "tacid_infer", "serve", "--config", str(daemon.config)]
    second = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert second.returncode == 1 and "in use" in second.stderr and "Traceback" not in second.stderr
    assert daemon.http.get("/healthz").status_code == 200


def test_sigkill_of_the_daemon_leaves_no_engine_and_a_new_one_starts(
    folder: Path, tiny_model: Path, engine_command: tuple[str, ...]
) -> None:
    first = Daemon(folder, tiny_model, engine_command)
    pid = first.engine_pid()
    first.process.kill()
    first.process.wait()
    for _ in range(100):
        if not Path(f"/proc/{pid}").exists():
            break
        time.sleep(0.05)
    else:
        raise AssertionError("the engine outlived the daemon")
    Daemon(folder, tiny_model, engine_command).close()
