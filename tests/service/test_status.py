"""What an operator sees: status, metrics and the log."""

from __future__ import annotations

import subprocess
import sys

from .running import SHORT, Daemon, call_of


def test_metrics_and_status(daemon: Daemon) -> None:
    text = daemon.http.get("/metrics").text
    for name in ("tacid_turns_total", "tacid_engine_up 1.0", "tacid_allow_list_services 2.0", "tacid_grammar_bytes"):
        assert name in text
    status = daemon.http.get("/status").json()
    assert status["state"] == "ready" and status["engine"]["state"] == "ready"
    shown = subprocess.run(
        [sys.executable, "-m", "tacid_infer", "status", "--socket", str(daemon.socket)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "engine       up: ready" in shown
