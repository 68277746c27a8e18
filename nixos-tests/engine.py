import json
import shlex
from typing import Any

SOCKET = "/run/tacid-infer/agent.sock"
ENGINE = "/run/tacid-infer/engine/engine.sock"
UNIT = "tacid-infer.service"
USER = [{"role": "user", "content": "hello"}]


def ask(path: str, body: Any = None, user: str = "alice") -> Any:
    data = f"-d {shlex.quote(json.dumps(body))} " if body is not None else ""
    command = f"curl -sS --fail-with-body --max-time 60 --unix-socket {SOCKET} {data}http://d{path}"
    return json.loads(machine.succeed(f"su -s /bin/sh {user} -c {shlex.quote(command)}"))


def shown(name: str) -> str:
    return machine.succeed(f"systemctl show --property {name} --value {UNIT}").strip()


def engine_pid() -> int:
    return int(ask("/status")["engine"]["pid"])


def wait_until_ready() -> None:
    machine.wait_until_succeeds(f"curl -sf --max-time 5 --unix-socket {SOCKET} http://d/healthz", timeout=60)


start_all()
machine.wait_for_unit("tacid-infer.socket")
machine.wait_for_unit(UNIT)

with subtest("active means ready: the engine is loaded and proven"):
    status = ask("/status")
    assert status["state"] == "ready", status
    assert status["engine"]["up"] is True, status
    assert "ready" in shown("StatusText"), shown("StatusText")

with subtest("the journal shows the phases"):
    journal = machine.succeed(f"journalctl --sync; journalctl --unit {UNIT} --output cat --no-pager")
    phases = ["loading the model", "proving that it enforces grammars", "ready: ready", f"serving on {SOCKET}"]
    places = [journal.find(phase) for phase in phases]
    assert -1 not in places and places == sorted(places), f"{places} in {journal}"
    assert "3 services in force" in journal, journal

with subtest("a member of the group completes a turn"):
    tool = {
        "name": "timer_set",
        "parameters": {"type": "object", "properties": {"minutes": {"enum": [1, 5]}}, "required": ["minutes"]},
    }
    turn = ask("/v1/complete", {"tools": [tool], "tool_choice": "timer_set", "messages": USER})
    assert turn["type"] == "call" and turn["tool"] == "timer_set" and turn["enforced"] is True, turn
    assert turn["arguments"]["minutes"] in (1, 5), turn
    assert machine.succeed(f"stat -c '%U %G %a' {SOCKET}").split() == ["root", "tacid-agent", "660"]

with subtest("any other user gets permission denied"):
    code, said = machine.execute(f"su -s /bin/sh bob -c 'tacid-infer status --socket {SOCKET} 2>&1'")
    assert code == 1 and "Permission denied" in said, (code, said)
    machine.fail(f"su -s /bin/sh bob -c 'curl -sf --unix-socket {SOCKET} http://d/healthz'")
    machine.fail(f"su -s /bin/sh alice -c 'curl -sf --unix-socket {ENGINE} http://d/health'")

with subtest("a proposed service operation names a service of the allow-list, in every sample"):
    kinds = ["service_enable", "service_disable", "service_restart"]
    operation = {
        "type": "object",
        "properties": {"kind": {"enum": kinds}, "name": {"type": "string", "minLength": 1}},
        "required": ["kind", "name"],
    }
    one_of = [
        {**operation, "properties": {**operation["properties"], "kind": {"const": kind}}}  # type: ignore[dict-item]
        for kind in kinds
    ]
    proposing = {
        "name": "propose",
        "parameters": {"type": "object", "properties": {"item": {"oneOf": one_of}}, "required": ["item"]},
    }
    body = {"tools": [proposing], "tool_choice": "propose", "messages": USER, "temperature": 5.0, "seed": 424242}
    machine.succeed(f"echo {shlex.quote(json.dumps(body))} > /tmp/propose.json")
    replies = machine.succeed(
        "for seed in $(seq 100); do sed s/424242/$seed/ /tmp/propose.json |"
        f" curl -sS --fail-with-body --unix-socket {SOCKET} -d @- http://d/v1/complete; done"
    ).splitlines()
    named = [json.loads(reply)["arguments"]["item"]["name"] for reply in replies]
    assert len(named) == 100 and len(set(named)) > 1, named
    assert set(named) <= {"nginx", "sshd", "postgresql"}, named

    # The protocol's own tool: what it says may run on until max_tokens; a name outside the list it cannot say.
    body = {"tool_choice": "proposal.submit", "messages": USER, "seed": 424242}
    machine.succeed(f"echo {shlex.quote(json.dumps(body))} > /tmp/proposal.json")
    replies = machine.succeed(
        "for seed in $(seq 40); do sed s/424242/$seed/ /tmp/proposal.json |"
        f" curl -sS --unix-socket {SOCKET} -d @- http://d/v1/complete; done"
    ).splitlines()
    calls = [reply for reply in map(json.loads, replies) if reply.get("type") == "call"]
    items = [item for call in calls for item in call["arguments"]["items"]]
    operations = [item["name"] for item in items if item["kind"].startswith("service_")]
    assert len(replies) == 40 and operations, replies
    assert set(operations) <= {"nginx", "sshd", "postgresql"}, operations

with subtest("a tool with a hostile name round-trips"):
    hostile = 'x"} | "y" \\ ::= root\n#é'
    tool = {"name": hostile, "parameters": {"type": "object", "properties": {}}}
    turn = ask("/v1/complete", {"tools": [tool], "tool_choice": hostile, "messages": USER})
    assert turn["type"] == "call" and turn["tool"] == hostile and turn["arguments"] == {}, turn

with subtest("this engine refuses a broken grammar"):
    broken = json.dumps({"prompt": "x", "n_predict": 4, "grammar": "root ::= ( broken"})
    code = machine.succeed(
        f"curl -s -o /dev/null -w '%{{http_code}}' --unix-socket {ENGINE}"
        f" -H 'Content-Type: application/json' -d {shlex.quote(broken)} http://d/completion"
    )
    assert code.strip() == "400", code

with subtest("SIGKILL of the engine recovers, in the same daemon"):
    daemon, before = shown("MainPID"), engine_pid()
    machine.succeed(f"kill -KILL {before}")
    machine.wait_until_succeeds(
        f"journalctl --unit {UNIT} --output cat --no-pager | grep 'killed by SIGKILL'", timeout=30
    )
    wait_until_ready()
    assert engine_pid() != before and shown("MainPID") == daemon
    assert ask("/v1/complete", {"tools": [tool], "tool_choice": hostile, "messages": USER})["tool"] == hostile

with subtest("a reload changes neither daemon nor engine"):
    daemon, before = shown("MainPID"), engine_pid()
    machine.succeed(f"systemctl reload {UNIT}")
    assert shown("ActiveState") == "active"
    assert shown("MainPID") == daemon and engine_pid() == before
    machine.succeed(f"journalctl --sync; journalctl --unit {UNIT} --output cat --no-pager | grep '^reloaded: '")

with subtest("over a restart the socket stays open: who connects meanwhile waits"):
    daemon, before = shown("MainPID"), engine_pid()
    machine.succeed(f"systemctl restart --no-block {UNIT}")
    machine.succeed(f"curl -sS --max-time 60 --retry 60 --retry-delay 1 --unix-socket {SOCKET} http://d/healthz")
    machine.wait_for_unit(UNIT)
    wait_until_ready()
    assert shown("MainPID") != daemon
    machine.fail(f"kill -0 {before}")

with subtest("a stopped daemon leaves no engine, and is started by who connects"):
    before = engine_pid()
    machine.succeed(f"systemctl stop {UNIT}")
    machine.fail(f"kill -0 {before}")
    machine.fail(f"test -e {ENGINE}")
    machine.succeed(f"test -S {SOCKET}")
    wait_until_ready()
    machine.wait_for_unit(UNIT)

with subtest("with its socket stopped too, nobody is let in"):
    machine.succeed(f"systemctl stop tacid-infer.socket {UNIT}")
    machine.fail(f"curl -sf --unix-socket {SOCKET} http://d/healthz")
    machine.fail(f"test -e {SOCKET}")
    machine.succeed(f"systemctl start tacid-infer.socket {UNIT}")
    wait_until_ready()

with subtest("no TCP port listens, and there is no network to listen on"):
    pid = shown("MainPID")
    assert machine.succeed("ss -Hltnp | grep -E 'tacid|llama' || true").strip() == ""
    assert machine.succeed(f"nsenter --target {pid} --net ss -Hltn").strip() == ""
    links = machine.succeed(f"nsenter --target {pid} --net ip -o link").strip().splitlines()
    assert len(links) == 1 and " lo:" in links[0], links

with subtest("caches go to the unit's own folder, and nothing else is writable"):
    variables = machine.succeed(f"tr '\\0' '\\n' < /proc/{shown('MainPID')}/environ").splitlines()
    assert "HOME=/var/cache/tacid-infer" in variables and "XDG_CACHE_HOME=/var/cache/tacid-infer" in variables
    assert machine.succeed("stat -L -c %a /var/cache/tacid-infer").strip() == "700"

with subtest("the exposure is at most 0.3"):
    score = machine.succeed(f"systemd-analyze security --no-pager --threshold=3 {UNIT} | tail -n 1")
    print(score)
