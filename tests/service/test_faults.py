"""The engine's faults as a caller of the daemon meets them: a named error in time, and the next turn served.

tests/engine/test_supervisor.py injects the same faults one layer below. Field reports B1 to B20.
"""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from .running import LONG, SHORT, USER, Asking, Daemon, call_of, until


def code(response: Any) -> str:
    """The code of a named error."""
    return str(response.json()["error"]["code"])


def test_sigkill_of_the_engine_in_the_middle_of_a_turn(daemon: Daemon) -> None:
    pid = daemon.engine_pid()
    asking = Asking(daemon, "/v1/complete", call_of(LONG, max_tokens=8000))
    until(lambda: daemon.status()["engine"]["turns_in_flight"])
    os.kill(pid, signal.SIGKILL)
    died = asking.wait()
    assert died.status_code == 502 and code(died) == "engine_died"
    assert "SIGKILL" in died.json()["error"]["message"]
    started = time.monotonic()
    assert daemon.turn().status_code == 200
    assert time.monotonic() - started < 5
    assert daemon.process.poll() is None and daemon.engine_pid() != pid


@pytest.mark.parametrize(
    ("mode", "status", "name"),
    [
        ("closes", 502, "engine_died"),
        ("dies:SIGABRT", 502, "engine_died"),
        ("dies:SIGSEGV", 502, "engine_died"),
        ("dies:0", 502, "engine_died"),
        ("errors", 502, "engine_refused"),
        ("not-utf8", 502, "engine_refused"),
        ("error-inside", 400, "context_overflow"),
        ("silent", 504, "engine_timeout"),
        ("stalls", 504, "engine_timeout"),
        ("repeats", 502, "truncated"),
    ],
)
def test_a_fault_in_a_turn(folder: Path, tiny_model: Path, mode: str, status: int, name: str) -> None:
    settings = {
        "limits.silence_seconds": 0.6,
        "limits.turn_seconds": 2,
        "engine.health_timeout": 0.3,
        "engine.stop_timeout": 0.3,
    }
    with Daemon.on_standin(folder, tiny_model, mode, settings=settings) as daemon:
        asking = Asking(daemon, "/v1/complete", call_of(SHORT))
        # The status is answered meanwhile.
        assert daemon.status()["state"] in ("ready", "degraded")
        response = asking.wait(10)
        assert (response.status_code, code(response)) == (status, name)
        assert daemon.process.poll() is None
        # It was sent once, whatever became of it.
        assert len((folder / "turns").read_text().splitlines()) == 1
        until(lambda: daemon.http.get("/healthz").status_code == 200)


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ("Sure, here is some prose.", "engine_did_not_enforce"),
        ('{"tool": "facts", "arguments": {}}', "engine_did_not_enforce"),
        ('{"tool": "T", "arguments": {"n": 1}}', "engine_did_not_enforce"),
        ('{"tool": "t ", "arguments": {"n": 1}}', "engine_did_not_enforce"),
        ('{"tool": "t", "arguments": {"n": 3}}', "engine_did_not_enforce"),
        ('{"tool": "proposal.submit", "arguments": {"summary": "s", "items": '
         '[{"kind": "service_enable", "name": "nginx.service"}]}}', "engine_did_not_enforce"),
        ('{"say": "ok"} and more', "engine_did_not_enforce"),
        ('\ufeff{"say": "ok"}', "engine_did_not_enforce"),
        ('{"say": "ok"}{"say": "ok"}', "engine_did_not_enforce"),
        ('{"say": "ok"}<|im_end|>', None),
        ('{"say": "ok"}\n', None),
        ('{"say": "o\ufffdk"}', None),
        ('{"say": "{\\"tool\\": \\"t\\", \\"arguments\\": {\\"n\\": 1}}"}', None),
    ],
    ids=ascii,
)  # fmt: skip
def test_what_an_engine_says_that_does_not_enforce(
    folder: Path, tiny_model: Path, content: str, name: str | None
) -> None:
    """B1, B19, D1, D8: never passed on as a call, and nothing is guessed."""
    with Daemon.on_standin(folder, tiny_model, f"says:{content}") as daemon:
        response = daemon.post("/v1/complete", {"tools": [SHORT], "messages": USER})
        if name is None:
            assert response.status_code == 200
            assert response.json()["text"] == json.loads(content.removesuffix("<|im_end|>"))["say"]
            return
        assert (response.status_code, code(response)) == (502, name)
        if "facts" in content:
            assert "facts" in response.json()["error"]["message"]
        # Suspect from now on: it is proven again before another turn is sent.
        until(lambda: "suspect" in daemon.log())
        until(lambda: daemon.http.get("/healthz").status_code == 200)


def test_an_engine_that_stops_enforcing_is_replaced(folder: Path, tiny_model: Path) -> None:
    """B1: as if a package update had put another engine in its place."""
    with Daemon.on_standin(folder, tiny_model, "ignores-from:12") as daemon:
        pid = daemon.engine_pid()
        codes = []
        while not codes or codes[-1] is None:
            codes.append(daemon.post("/v1/complete", {"messages": USER}).json().get("error", {}).get("code"))
        assert codes[-1] == "engine_did_not_enforce"
        until(lambda: daemon.status()["engine"]["pid"] not in (pid, None))
        assert daemon.status()["engine"]["restarts"] == {"not_enforced": 1}
        assert daemon.post("/v1/complete", {"messages": USER}).json()["text"] == "ok"


@pytest.mark.parametrize("mode", ["ignores-grammars", "takes-broken", "exit-1", "exit-132", "never-healthy"])
def test_an_engine_that_cannot_be_used(folder: Path, tiny_model: Path, mode: str) -> None:
    settings = {"engine.start_timeout": 0.5}
    with Daemon.on_standin(folder, tiny_model, mode, settings=settings, wait=False) as daemon:
        daemon.wait_listening()
        response = daemon.turn(timeout=1)
        assert response.status_code == 503 and code(response) in ("engine_starting", "engine_unavailable")
        assert int(response.headers["Retry-After"]) > 0
        assert daemon.http.get("/healthz").status_code == 503
        assert "tacid_engine_up 0.0" in daemon.http.get("/metrics").text
        # Nothing that needs no engine waits for it.
        assert daemon.post("/v1/turns", {"tools": [SHORT]}).status_code == 200


def test_a_crash_loop_ends_in_a_state_that_says_so(folder: Path, tiny_model: Path) -> None:
    with Daemon.on_standin(folder, tiny_model, "dies-at-first", wait=False) as daemon:
        daemon.wait_listening()
        until(lambda: "keeps dying" in str(daemon.status()["reasons"]), 40)
        status = daemon.status()
        assert status["state"] == "degraded"
        assert "last words: ggml_backend_alloc: out of memory" in status["reasons"][0]
        response = daemon.turn()
        assert (response.status_code, code(response)) == (503, "engine_unavailable")
        assert "out of memory" in response.json()["error"]["message"] and int(response.headers["Retry-After"]) > 0
        assert len(daemon.log().splitlines()) < 60


def test_a_turn_that_arrives_while_the_engine_starts_waits(folder: Path, tiny_model: Path) -> None:
    with Daemon.on_standin(folder, tiny_model, "loads-for:3", wait=False) as daemon:
        daemon.wait_listening()
        patient = Asking(daemon, "/v1/complete", {"messages": USER, "timeout": 20})
        hasty = daemon.post("/v1/complete", {"messages": USER, "timeout": 0.5})
        assert (hasty.status_code, code(hasty)) == (503, "engine_starting")
        assert int(hasty.headers["Retry-After"]) > 0
        # It came through, and met the stand-in's prose.
        assert code(patient.wait()) == "engine_did_not_enforce"


def test_a_refused_flag_ends_the_start(folder: Path, tiny_model: Path) -> None:
    """B16: fails fast, with the engine's own line."""
    daemon = Daemon.on_standin(folder, tiny_model, "refuses:--no-jinja", wait=False)
    assert daemon.process.wait(20) == 1
    assert "error: invalid argument: --no-jinja" in daemon.log()
    assert "Traceback" not in daemon.log()
    daemon.close()


@pytest.mark.parametrize("flag", ["--host", "--grammar-file", "--jinja", "--port", "--chat-template-file"])
def test_a_flag_that_contradicts_ours_ends_the_start(folder: Path, tiny_model: Path, flag: str) -> None:
    settings = {"engine.extra_args": [flag, "x"]}
    daemon = Daemon.on_standin(folder, tiny_model, "takes:0", settings=settings, wait=False)
    assert daemon.process.wait(20) == 1
    assert flag in daemon.log() and "Traceback" not in daemon.log()
    daemon.close()


def test_a_prompt_that_does_not_fit(folder: Path, tiny_model: Path, engine_command: tuple[str, ...]) -> None:
    """B13: one stable code, the sizes, and the catalogue's share; the engine goes on."""
    settings = {"engine.context_tokens": 512}
    large = {"name": "large", "description": "x" * 4000, "parameters": {"type": "object"}}
    with Daemon(folder, tiny_model, engine_command, settings=settings) as daemon:
        pid = daemon.engine_pid()
        error = daemon.post("/v1/complete", {"tools": [large], "messages": USER}).json()["error"]
        assert error["code"] == "context_overflow"
        assert error["prompt_tokens"] > 4000 and error["context_tokens"] == 512
        assert 4000 < error["catalogue_tokens"] <= error["prompt_tokens"]
        assert "catalogue" in error["message"]
        assert daemon.engine_pid() == pid


def test_a_reply_that_overflows_the_context(folder: Path, tiny_model: Path, engine_command: tuple[str, ...]) -> None:
    settings = {"engine.context_tokens": 2048}
    longer = {"name": "longer", "parameters": {"type": "object", "required": ["s"], "properties": {
        "s": {"type": "string", "minLength": 6000}}}}  # fmt: skip
    with Daemon(folder, tiny_model, engine_command, settings=settings) as daemon:
        error = daemon.post("/v1/complete", call_of(longer, max_tokens=100000)).json()["error"]
        assert error["code"] == "context_overflow" and error["text"].startswith('{"tool": "longer"')
        assert error["context_tokens"] == 2048
        assert daemon.status()["engine"]["restarts"] == {}


def test_an_endless_string_ends(folder: Path, tiny_model: Path) -> None:
    """D10: a limit on tokens always applies, and the next caller is served."""
    with Daemon.on_standin(folder, tiny_model, "repeats") as daemon:
        for _ in range(2):
            response = daemon.post("/v1/complete", {"messages": USER})
            assert code(response) == "truncated"
            assert response.json()["error"]["text"].startswith('{"say": "XXX')


def test_stop_with_an_engine_that_ignores_sigterm(folder: Path, tiny_model: Path) -> None:
    """B5: the stop ends in time, with the engine gone, and its socket too."""
    settings = {"engine.stop_timeout": 0.5}
    with Daemon.on_standin(folder, tiny_model, "ignores-sigterm", settings=settings) as daemon:
        pid = daemon.engine_pid()
        started = time.monotonic()
        assert daemon.end() == 0
        assert time.monotonic() - started < 5
        assert not Path(f"/proc/{pid}").exists() and not (folder / "engine.sock").exists()
