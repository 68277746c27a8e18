"""Many callers, slow callers, silent callers, and callers that go away."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from .running import LONG, SHORT, USER, Asking, Daemon, call_of, open_files, resident, until


def test_64_callers_for_a_minute(folder: Path, tiny_model: Path, engine_command: tuple[str, ...]) -> None:
    """No error, no reply crossed with another's, and nothing that grows."""
    settings = {"engine.parallel": 4, "engine.context_tokens": 2048, "limits.queue": 128}
    wrong: list[Any] = []
    served = [0] * 64
    end = time.monotonic() + 60

    def ask(number: int) -> None:
        tool = {
            "name": f"tool{number}",
            "parameters": {"type": "object", "required": ["n"], "properties": {"n": {"const": number}}},
        }
        with daemon.client() as http:
            while time.monotonic() < end:
                answer = http.post("/v1/complete", json=call_of(tool)).json()
                served[number] += 1
                if (answer.get("tool"), answer.get("arguments")) != (tool["name"], {"n": number}):
                    wrong.append(answer)

    with Daemon(folder, tiny_model, engine_command, settings=settings) as daemon:
        pid = daemon.process.pid
        threads = [threading.Thread(target=ask, args=(number,)) for number in range(64)]
        for thread in threads:
            thread.start()
        time.sleep(20)
        before = resident(pid)
        for thread in threads:
            thread.join()
        assert wrong == [] and min(served) > 0
        assert resident(pid) < before * 1.05
        until(lambda: open_files(pid) < 40)
        assert daemon.status()["turns"]["outcomes"] == {"call": sum(served)}
        assert daemon.status()["engine"]["restarts"] == {}


def test_a_full_queue_is_refused_at_once(folder: Path, tiny_model: Path) -> None:
    with Daemon.on_standin(folder, tiny_model, "takes:1", settings={"limits.queue": 2}) as daemon:
        asking = [Asking(daemon, "/v1/complete", {"messages": USER}) for _ in range(8)]
        answers = [asked.wait() for asked in asking]
        refused = [answer for answer in answers if answer.status_code == 503]
        assert {answer.status_code for answer in answers} == {200, 503} and len(refused) == 5
        for answer in refused:
            assert answer.json()["error"]["code"] == "engine_busy" and int(answer.headers["Retry-After"]) > 0


def test_a_turns_time_counts_its_wait(folder: Path, tiny_model: Path) -> None:
    with Daemon.on_standin(folder, tiny_model, "takes:2") as daemon:
        first = Asking(daemon, "/v1/complete", {"messages": USER})
        until(lambda: daemon.status()["turns"]["running"])
        started = time.monotonic()
        second = daemon.post("/v1/complete", {"messages": USER, "timeout": 0.5})
        assert time.monotonic() - started < 1.5
        assert (second.status_code, second.json()["error"]["code"]) == (504, "engine_timeout")
        assert first.wait().status_code == 200


def test_a_deadline_frees_the_slot(daemon: Daemon) -> None:
    late = daemon.post("/v1/complete", call_of(LONG, max_tokens=8000, timeout=0.05))
    assert (late.status_code, late.json()["error"]["code"]) == (504, "engine_timeout")
    started = time.monotonic()
    assert daemon.turn().status_code == 200
    assert time.monotonic() - started < 3
    assert daemon.status()["turns"]["running"] == 0


def test_a_caller_that_leaves_frees_the_slot(daemon: Daemon) -> None:
    """B5."""
    with daemon.client(timeout=0.05) as http, pytest.raises(httpx.TimeoutException):
        http.post("/v1/complete", json=call_of(LONG, max_tokens=8000))
    until(lambda: not daemon.status()["turns"]["running"], 3)
    assert daemon.turn().status_code == 200
    assert daemon.status()["turns"]["outcomes"]["cancelled"] >= 1


def test_a_waiting_caller_that_leaves_is_nothing_to_the_running_one(folder: Path, tiny_model: Path) -> None:
    """B7: it waits in the daemon, so the engine never hears of it."""
    with Daemon.on_standin(folder, tiny_model, "takes:1") as daemon:
        running = Asking(daemon, "/v1/complete", {"messages": [{"role": "user", "content": "first"}]})
        until(lambda: daemon.status()["turns"]["running"])
        with daemon.client(timeout=0.2) as http, pytest.raises(httpx.TimeoutException):
            http.post("/v1/complete", json={"messages": [{"role": "user", "content": "second"}]})
        until(lambda: not daemon.status()["turns"]["waiting"])
        assert running.wait().json()["text"] == "ok"
        assert daemon.post("/v1/complete", {"messages": USER}).status_code == 200
        sent = (folder / "turns").read_text().splitlines()
        assert "first" in sent[0] and not any("second" in line for line in sent)


def test_silent_and_slow_callers(folder: Path, tiny_model: Path) -> None:
    """B20: they are sent away in time, and hold up nobody meanwhile."""
    settings = {"limits.read_seconds": 1, "limits.connections": 300}
    with Daemon.on_standin(folder, tiny_model, "takes:0", settings=settings) as daemon:
        silent = [daemon.connect() for _ in range(200)]
        head = daemon.connect()
        head.sendall(b"POST /v1/complete HTTP/1.1\r\nHost: d\r\nX-Long: ")
        body = daemon.connect()
        body.sendall(b"POST /v1/complete HTTP/1.1\r\nHost: d\r\nContent-Length: 100\r\n\r\n{")
        half = daemon.connect()
        text = json.dumps({"messages": USER}).encode()
        half.sendall(b"POST /v1/complete HTTP/1.1\r\nHost: d\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text[:9]))
        half.shutdown(1)
        trickle = daemon.connect()
        assert daemon.post("/v1/complete", {"messages": USER}).status_code == 200
        trickle.sendall(b"POST /v1/complete HTTP/1.1\r\nHost: d\r\nContent-Length: 1000\r\n\r\n")
        started = time.monotonic()
        with pytest.raises(OSError):
            while time.monotonic() - started < 8:
                trickle.sendall(b" ")
                time.sleep(0.1)
        assert time.monotonic() - started < 4
        assert daemon.status()["turns"]["running"] == 0
        for connection in (head, body, half, *silent):
            answer = connection.recv(65536)
            assert answer == b"" or b" 408 " in answer or b" 400 " in answer or b" 413 " in answer, answer
            connection.close()
        assert b" 408 " in answer
        until(lambda: open_files(daemon.process.pid) < 40)


def test_a_caller_that_has_shut_its_writing_side_still_gets_its_reply(daemon: Daemon) -> None:
    connection = daemon.connect()
    text = json.dumps(call_of(SHORT)).encode()
    connection.sendall(b"POST /v1/complete HTTP/1.1\r\nHost: d\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))
    connection.shutdown(1)
    connection.settimeout(5)
    connection.recv(65536)  # Its reply or the end of the connection, as the server sees it: no hang.
    connection.close()
    until(lambda: not daemon.status()["turns"]["running"])


def test_more_connections_than_may_be_open(folder: Path, tiny_model: Path) -> None:
    with Daemon.on_standin(folder, tiny_model, "takes:0", settings={"limits.connections": 8}) as daemon:
        daemon.http.close()
        kept = [daemon.connect() for _ in range(8)]
        time.sleep(0.3)
        one_more = daemon.connect()
        answer = one_more.recv(65536)
        assert b" 503 " in answer and b"engine_busy" in answer and b"Retry-After" in answer
        for connection in (*kept, one_more):
            connection.close()
        daemon.http = daemon.client()
        until(daemon.answers)


@pytest.mark.parametrize(("size", "status"), [(50_000, 200), (5_000_000, 200), (200_000_000, 413)])
def test_large_requests(daemon: Daemon, size: int, status: int) -> None:
    """B20: what the bound allows is answered, and what it does not is refused without being read."""
    body = b'{"tools": [], "messages": [{"role": "user", "content": "' + b"x" * size + b'"}]}'
    before = resident(daemon.process.pid)
    response = daemon.http.post("/v1/turns", content=body)
    assert response.status_code == status
    if status == 413:
        assert response.json()["error"]["code"] == "limit_exceeded"
        assert resident(daemon.process.pid) < before + 50_000_000


def test_a_body_that_never_ends(daemon: Daemon) -> None:
    def endless() -> Any:
        while True:
            yield b" " * 65536

    try:
        response = daemon.http.post("/v1/turns", content=endless())
        assert response.status_code == 413
    except httpx.WriteError:
        pass  # The daemon had answered and closed before the caller stopped writing.
    assert daemon.turn().status_code == 200
