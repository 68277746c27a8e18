"""What an operator sees: the status, the metrics and the log; and what must not be seen there."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import httpx
import pytest

from .running import SHORT, USER, Daemon, metrics, shown, until

SECRET = "correct-horse-battery"


def test_status_and_metrics_tell_the_same(folder: Path, tiny_model: Path, engine_command: tuple[str, ...]) -> None:
    with Daemon(folder, tiny_model, engine_command) as daemon:
        for _ in range(3):
            assert daemon.turn().status_code == 200
        daemon.post("/v1/complete", {"tool_choice": "zzz"})
        daemon.post("/v1/complete", {"messages": USER, "tool_choice": "proposal.submit", "max_tokens": 3})
        status, found = daemon.status(), metrics(daemon)
        outcomes = {"call": 3, "invalid_tool_choice": 1, "truncated": 1}
        assert status["turns"]["outcomes"] == outcomes
        assert {key: found[f"tacid_turns_total[{key}]"] for key in outcomes} == outcomes
        assert found["tacid_turn_seconds_count"] == status["turns"]["served"] == 5
        assert found["tacid_compile_seconds_count"] == status["grammars"]["built"] == 4
        assert found["tacid_turn_cache_hits_total"] == status["grammars"]["cache_hits"] == 2
        assert found["tacid_grammar_bytes_sum"] / 4 == pytest.approx(status["grammars"]["mean_bytes"], abs=1)
        assert found["tacid_engine_up"] == 1 and status["engine"]["up"] is True
        assert found["tacid_queue_depth"] == status["turns"]["waiting"] == 0
        assert found["tacid_allow_list_services"] == status["allow_list"]["services"] == 2
        assert found["tacid_allow_list_narrows"] == 1
        assert found["tacid_allow_list_age_seconds"] == pytest.approx(status["allow_list"]["age_seconds"], abs=5)
        os.kill(daemon.engine_pid(), 9)
        until(lambda: metrics(daemon).get("tacid_engine_restarts_total[exit]") == 1)
        until(lambda: daemon.status()["engine"]["restarts"] == {"exit": 1})
        daemon.wait_ready()
        lines = shown(daemon).splitlines()
        assert all(re.match(r"[a-z-]+ +\S", line) and len(line) < 160 for line in lines)
        assert len({len(re.match(r"\S+ +", line).group()) for line in lines}) == 1  # type: ignore[union-attr]
        text = "\n".join(lines)
        for words in (
            "up: ready (pid ",
            "1 exit",
            "2 services in force",
            "5 served",
            "3 call",
            "0 waiting",
            "built in",
        ):
            assert words in text
        assert '"state": "ready"' in shown(daemon, "--json")


def test_the_proof_leaves_no_error_in_the_log(folder: Path, tiny_model: Path, engine_command: tuple[str, ...]) -> None:
    """The engine calls the broken grammar of each start's proof an error; nobody is to be alarmed by it."""

    def alarms(daemon: Daemon) -> list[str]:
        return re.findall(r" (?:ERROR|CRITICAL) .*", daemon.log())

    # At debug, the lines can be waited for.
    with Daemon(folder, tiny_model, engine_command, settings={"log.level": "debug"}) as daemon:
        assert daemon.turn().status_code == 200
        until(lambda: "DEBUG tacid_infer.engine.lines: failed to parse grammar" in daemon.log())
        assert alarms(daemon) == []
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(folder / "engine.sock"))) as engine:
            body = {"messages": USER, "grammar": "root ::= ( broken", "stream": True}
            assert engine.post("http://engine/v1/chat/completions", json=body).status_code == 400
        until(lambda: any("failed to parse grammar" in line for line in alarms(daemon)))
        time.sleep(0.3)
        # Each of one refusal's lines once: none of the proof's came late.
        kinds = [re.sub(r"\d+", "", line) for line in alarms(daemon)]
        assert len(kinds) == len(set(kinds)) > 1


def test_no_label_is_a_callers_to_choose(daemon: Daemon) -> None:
    before = len(metrics(daemon))
    for number in range(30):
        daemon.http.post(f"/v1/{number}", json={})
        daemon.post("/v1/complete", {"tools": [{**SHORT, "name": f"n{number}"}], "tool_choice": f"unknown{number}"})
    assert len(metrics(daemon)) <= before + 2


@pytest.mark.parametrize(
    ("content", "narrows", "words"),
    [
        (None, False, "no narrowing in force"),
        ('{"services": []}', False, "no narrowing in force"),
        ("[]", False, "no narrowing in force"),
        ('{"services": [], "exact": true}', True, "no service operation is admitted"),
        ("{}", True, "degraded"),
        ('{"services": null}', True, "degraded"),
        ('{"service": ["a"]}', True, "degraded"),
        ('{"services": [""]}', True, "degraded"),
        ("", True, "degraded"),
    ],
)
def test_an_open_list_is_seen_everywhere(daemon: Daemon, content: str | None, narrows: bool, words: str) -> None:
    """D4: in the status, the metrics, the log and the turn's own answer."""
    before = daemon.services.read_text()
    try:
        daemon.services.unlink()
        if content is not None:
            daemon.services.write_text(content)
        turn = daemon.post("/v1/turns", {}).json()
        assert turn["allow_list"]["narrows"] is narrows
        assert metrics(daemon)["tacid_allow_list_narrows"] == narrows
        assert words in shown(daemon)
        assert words in daemon.log().splitlines()[-1]
        assert words in str(daemon.status())
        if not narrows:
            assert words in turn["allow_list"]["reason"]
    finally:
        daemon.services.write_text(before)
        daemon.post("/v1/turns", {})


@pytest.mark.parametrize("level", ["info", "debug"])
def test_what_callers_and_models_say_is_private(
    folder: Path, tiny_model: Path, engine_command: tuple[str, ...], level: str
) -> None:
    """Never in the log above debug, however a turn ends; and who asked only at debug."""
    tool = {**SHORT, "name": "t", "description": SECRET + "-description"}
    spoken = {"name": "spoken", "parameters": {"type": "object", "required": ["w"], "properties": {
        "w": {"const": SECRET + "-reply"}}}}  # fmt: skip
    user = [{"role": "user", "content": SECRET + "-prompt"}]
    with Daemon(folder, tiny_model, engine_command, settings={"log.level": level}) as daemon:
        for body in (
            {"tools": [tool], "messages": user, "tool_choice": "t"},
            {"tools": [spoken], "messages": user, "tool_choice": "spoken"},
            {"tools": [spoken], "messages": user, "tool_choice": "spoken", "max_tokens": 20},
            {"tools": [{"name": SECRET, "parameters": {"type": "array"}}], "messages": user, "strict": True},
            {"tools": [tool], "messages": [{"role": "user", "content": SECRET * 2000}]},
            {"tools": [tool], "messages": [{"role": SECRET}]},
        ):
            assert daemon.post("/v1/complete", body).status_code in (200, 400, 502)
        peer = f"pid {os.getpid()}, uid {os.getuid()}, gid {os.getgid()}"
        assert (peer in daemon.log()) == (level == "debug")
        if level == "info":
            assert SECRET not in daemon.log()
            assert "turn: call in " in daemon.log() and "turn: truncated in " in daemon.log()
        assert all(len(line) < 20_000 for line in daemon.log().splitlines())


def test_the_key_of_a_remote_endpoint_is_nowhere(folder: Path, tiny_model: Path) -> None:
    """C16: not in the process list, the log at debug, the status or an error."""
    key = folder / "key"
    key.write_text(SECRET + "\n")
    settings = {
        "endpoint.url": "http://127.0.0.1:9",
        "endpoint.kind": "remote",
        "endpoint.api_key_file": str(key),
        "log.level": "debug",
    }
    with Daemon(folder, tiny_model, (), settings=settings) as daemon:
        response = daemon.turn()
        assert response.status_code == 503
        seen = [response.text, str(daemon.status()), daemon.log(), shown(daemon), daemon.http.get("/metrics").text]
        seen.append(Path(f"/proc/{daemon.process.pid}/cmdline").read_text())
        assert not any(SECRET in text for text in seen)
