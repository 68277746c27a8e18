"""The real daemon, as a process of its own, over a real socket, with a real engine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from ..conftest import admits


class Daemon:
    """A running daemon."""

    def __init__(self, folder: Path, model: Path, engine: tuple[str, ...], **more: str) -> None:
        self.folder = folder
        self.socket = folder / "agent.sock"
        self.services = folder / "services.json"
        self.services.write_text('{"services": ["nginx", "sshd"]}')
        self.config = folder / "config.toml"
        self.config.write_text(
            f'[socket]\npath = "{self.socket}"\ngroup = ""\n'
            f'[engine]\ncommand = {json.dumps(list(engine))}\nmodel = "{model}"\nsocket = "{folder / "engine.sock"}"\n'
            "context_tokens = 8192\nthreads = 1\nhealth_interval = 1\n"
            f'[allow_list]\npath = "{self.services}"\n'
            "[sampling]\ntemperature = 1.0\nmax_tokens = 600\n" + more.get("limits", "")
        )
        self.log = (folder / "log").open("w+")
        command = [sys.executable, "-m", "tacid_infer", "serve", "--config", str(self.config)]
        self.process = subprocess.Popen(command, stderr=self.log)
        self.http = httpx.Client(transport=httpx.HTTPTransport(uds=str(self.socket)), base_url="http://d", timeout=60)
        self.wait_ready()

    def wait_ready(self) -> None:
        for _ in range(400):
            try:
                if self.http.get("/healthz").status_code == 200:
                    return
            except httpx.HTTPError:
                pass
            assert self.process.poll() is None, (self.folder / "log").read_text()
            time.sleep(0.05)
        raise AssertionError((self.folder / "log").read_text())

    def post(self, path: str, body: Any) -> httpx.Response:
        return self.http.post(path, json=body)

    def engine_pid(self) -> int:
        return int(self.http.get("/status").json()["engine"]["pid"])

    def close(self) -> None:
        self.http.close()
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(40) == 0
        assert not self.socket.exists()
        self.log.close()


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: Any, tiny_model: Path, engine_command: tuple[str, ...]) -> Iterator[Daemon]:
    import tempfile

    with tempfile.TemporaryDirectory(prefix="ti-") as folder:
        running = Daemon(Path(folder), tiny_model, engine_command)
        yield running
        running.close()


USER = [{"role": "user", "content": "hi"}]
SHORT = {"name": "t", "parameters": {"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"]}}


def test_a_turn_is_built(daemon: Daemon) -> None:
    answer = daemon.post("/v1/turns", {"tools": [SHORT], "messages": USER}).json()
    assert set(answer) >= {"grammar", "catalogue", "messages", "tools", "digest", "widened", "omitted"}
    assert [tool["name"] for tool in answer["tools"]] == ["facts.get", "proposal.submit", "t"]
    assert admits(answer["grammar"], '{"tool": "t", "arguments": {"n": 1}}')


def test_a_turn_is_completed(daemon: Daemon) -> None:
    answer = daemon.post("/v1/complete", {"tools": [SHORT], "messages": USER, "tool_choice": "t"}).json()
    assert answer["type"] == "call" and answer["tool"] == "t" and answer["arguments"]["n"] in (1, 2)
    assert answer["enforced"] is True and answer["finish_reason"] == "stop" and answer["usage"]["completion_tokens"] > 0


def test_a_service_name_that_is_not_listed_cannot_be_emitted(daemon: Daemon) -> None:
    """The whole chain: from the file to 200 sampled replies that each propose a service operation."""
    tool = {"name": "op", "parameters": {"$defs": {"E": {"type": "object", "properties": {
        "kind": {"const": "service_restart"}, "name": {"type": "string"}}, "required": ["kind", "name"]}},
        "type": "object", "properties": {"op": {"$ref": "#/$defs/E"}}, "required": ["op"]}}  # fmt: skip
    names = set()
    for seed in range(200):
        body = {"tools": [tool], "messages": USER, "tool_choice": "op", "seed": seed, "temperature": 5.0}
        answer = daemon.post("/v1/complete", body).json()
        assert answer["type"] == "call", answer
        assert answer["arguments"]["op"]["kind"] == "service_restart"
        names.add(answer["arguments"]["op"]["name"])
    assert names == {"nginx", "sshd"}
    proposal = daemon.post("/v1/turns", {"tool_choice": "proposal.submit"}).json()["grammar"]
    for name in ("nginx", "sshd", "caddy"):
        call = {
            "tool": "proposal.submit",
            "arguments": {"summary": "s", "items": [{"kind": "service_enable", "name": name}]},
        }
        assert admits(proposal, json.dumps(call)) == (name != "caddy")


def test_the_list_on_disk_is_in_force_at_once(daemon: Daemon) -> None:
    def listed() -> list[str]:
        return list(daemon.http.get("/v1/allow-list").json()["services"])

    before = daemon.services.read_text()
    try:
        for number in range(50):
            fresh = daemon.folder / "fresh"
            fresh.write_text(json.dumps({"services": [f"s{number}"]}))
            fresh.replace(daemon.services)
            assert listed() == [f"s{number}"]
        daemon.services.write_text('{"services": ["half')
        assert listed() == ["s49"]
        status = daemon.http.get("/status").json()
        assert status["state"] == "degraded" and "line 1 column" in status["reasons"][0]
        daemon.services.unlink()
        assert daemon.http.get("/v1/allow-list").json()["state"] == "missing"
    finally:
        daemon.services.write_text(before)
    assert listed() == ["nginx", "sshd"]


def test_openai_whole(daemon: Daemon) -> None:
    body = {"model": "x", "messages": USER, "tools": [{"type": "function", "function": SHORT}],
            "tool_choice": {"type": "function", "function": {"name": "t"}}}  # fmt: skip
    answer = daemon.post("/v1/chat/completions", body).json()
    choice = answer["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["tool_calls"][0]["function"]["name"] == "t"
    assert json.loads(choice["message"]["tool_calls"][0]["function"]["arguments"])["n"] in (1, 2)
    assert daemon.http.get("/v1/models").json()["data"][0]["id"] == "tiny"


def events(response: httpx.Response) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in response.text.split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def test_openai_streamed(daemon: Daemon) -> None:
    streams = 0
    for seed in range(30):
        body = {"messages": USER, "tool_choice": "none", "stream": True, "seed": seed, "temperature": 3.0}
        parts = events(daemon.post("/v1/chat/completions", body))
        if "error" in parts[-1]:
            assert parts[-1]["error"]["code"] == "truncated"
            continue
        assert parts[-1]["choices"][0]["finish_reason"] == "stop"
        text = "".join(part["choices"][0]["delta"].get("content") or "" for part in parts)
        text.encode()
        streams += len(parts) > 4
    assert streams > 5
    body = {"messages": USER, "tools": [SHORT], "tool_choice": "t", "stream": True}
    parts = events(daemon.post("/v1/chat/completions", body))
    assert parts[1]["choices"][0]["delta"]["tool_calls"][0]["function"]["name"] == "t"
    assert parts[-1]["choices"][0]["finish_reason"] == "tool_calls"
    refused = daemon.post("/v1/chat/completions", {"messages": USER, "tool_choice": "zzz", "stream": True})
    assert refused.status_code == 400 and refused.json()["error"]["code"] == "invalid_tool_choice"


BAD = [
    ("/v1/turns", b"{", 400, "invalid_request"),
    ("/v1/turns", b"[]", 400, "invalid_request"),
    ("/v1/turns", b'{"tools": 5}', 400, "invalid_request"),
    ("/v1/turns", b'{"tols": []}', 400, "invalid_request"),
    ("/v1/turns", b'{"tools": [], "tools": []}', 400, "invalid_request"),
    ("/v1/turns", b'{"tools": [{"name": "a"}, {"name": "a"}]}', 400, "duplicate_tool"),
    ("/v1/turns", b'{"tools": [{"name": 5}]}', 400, "invalid_tool"),
    ("/v1/turns", b'{"tools": [{"name": "a", "parameters": {"const": NaN}}]}', 400, "invalid_request"),
    ("/v1/turns", b'{"tools": [{"name": "\xff"}]}', 400, "invalid_request"),
    ("/v1/turns", b"[" * 100000, 413, "limit_exceeded"),
    ("/v1/turns", b'{"tools": [' + b'{"a": ' * 300 + b"1" + b"}" * 300 + b"]}", 413, "limit_exceeded"),
    (
        "/v1/turns",
        b'{"tools": [' + b",".join(b'{"name": "t%d"}' % n for n in range(10000)) + b"]}",
        413,
        "limit_exceeded",
    ),
    ("/v1/turns", b" " * 9_000_000, 413, "limit_exceeded"),
    (
        "/v1/turns",
        b'{"strict": true, "tools": [{"name": "a", "parameters": {"type": "array"}}]}',
        400,
        "unsatisfiable_schema",
    ),
    ("/v1/complete", b'{"temperature": "hot"}', 400, "invalid_request"),
    ("/v1/complete", b'{"grammar": ""}', 400, "invalid_request"),
    ("/v1/complete", b'{"tool_choice": "zzz"}', 400, "invalid_tool_choice"),
    ("/v1/chat/completions", b'{"messages": 5}', 400, "invalid_request"),
    ("/v1/chat/completions", b'{"messages": [], "n": 2}', 400, "invalid_request"),
    ("/nowhere", b"{}", 404, "not_found"),
    ("/status", b"{}", 405, "method_not_allowed"),
]


@pytest.mark.parametrize(("path", "body", "status", "code"), BAD, ids=lambda value: ascii(value)[:40])
def test_bad_input_is_a_clear_error(daemon: Daemon, path: str, body: bytes, status: int, code: str) -> None:
    response = daemon.http.post(path, content=body)
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)
    assert "Traceback" not in response.text and response.json()["error"]["message"]


def test_odd_schemas_are_left_out_or_answered(daemon: Daemon) -> None:
    odd = [
        {"name": "number", "parameters": 5},
    ]
    assert daemon.post("/v1/turns", {"tools": odd}).json()["error"]["code"] == "invalid_tool"
    large = {
        "type": "object",
        "properties": {f"k{n}": {"type": "string", "description": "x" * 100} for n in range(9000)},
    }
    gone = {"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}}
    answer = daemon.post(
        "/v1/turns", {"tools": [{"name": "gone", "parameters": gone}, {"name": "large", "parameters": large}]}
    )
    assert answer.status_code == 200
    assert [place["keyword"] for place in answer.json()["widened"]] == ["$ref"]


def test_sigkill_of_the_engine_in_the_middle_of_a_turn(daemon: Daemon) -> None:
    endless = {"name": "long", "parameters": {"type": "object", "required": ["s"], "properties": {
        "s": {"type": "string", "minLength": 1900, "maxLength": 1999}}}}  # fmt: skip
    found: list[httpx.Response] = []

    def ask() -> None:
        with httpx.Client(
            transport=httpx.HTTPTransport(uds=str(daemon.socket)), base_url="http://d", timeout=60
        ) as http:
            body = {"tools": [endless], "messages": USER, "tool_choice": "long", "max_tokens": 8000}
            found.append(http.post("/v1/complete", json=body))

    asking = threading.Thread(target=ask)
    pid = daemon.engine_pid()
    asking.start()
    while not daemon.http.get("/status").json()["engine"]["turns_in_flight"]:
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    asking.join(20)
    assert found[0].status_code == 502 and found[0].json()["error"]["code"] == "engine_died"
    started = time.monotonic()
    assert daemon.post("/v1/complete", {"tools": [SHORT], "messages": USER, "tool_choice": "t"}).status_code == 200
    assert time.monotonic() - started < 5
    assert daemon.process.poll() is None and daemon.engine_pid() != pid


def test_many_callers_at_once_get_their_own_replies(daemon: Daemon) -> None:
    wrong: list[Any] = []

    def ask(number: int) -> None:
        tool = {
            "name": f"tool{number}",
            "parameters": {"type": "object", "required": ["n"], "properties": {"n": {"const": number}}},
        }
        with httpx.Client(
            transport=httpx.HTTPTransport(uds=str(daemon.socket)), base_url="http://d", timeout=60
        ) as http:
            for _ in range(5):
                body = {"tools": [tool], "messages": USER, "tool_choice": tool["name"]}
                answer = http.post("/v1/complete", json=body).json()
                if (answer.get("tool"), answer.get("arguments")) != (tool["name"], {"n": number}):
                    wrong.append(answer)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_caller_that_stops_reading_holds_up_nobody(daemon: Daemon) -> None:
    import socket

    body = json.dumps(
        {"messages": USER, "tool_choice": "proposal.submit", "tools": [], "stream": True, "max_tokens": 6000}
    )
    say = json.dumps(
        {"messages": USER, "tool_choice": "none", "stream": True, "max_tokens": 6000, "seed": 1, "min_p": 0}
    )
    lazy = []
    for text in (body, say, say):
        connection = socket.socket(socket.AF_UNIX)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        connection.connect(str(daemon.socket))
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: d\r\nContent-Length: {len(text)}\r\n\r\n"
        connection.sendall(head.encode() + text.encode())
        lazy.append(connection)
    answer = daemon.post("/v1/complete", {"tools": [SHORT], "messages": USER, "tool_choice": "t"})
    assert answer.status_code == 200
    for connection in lazy:
        connection.close()


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
