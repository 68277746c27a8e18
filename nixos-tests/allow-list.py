import json
import shlex
from typing import Any

SOCKET = "/run/tacid-infer/agent.sock"
UNIT = "tacid-infer.service"
TOOL = {
    "name": "restart",
    "parameters": {
        "type": "object",
        "properties": {"kind": {"const": "service_restart"}, "name": {"type": "string"}},
        "required": ["kind", "name"],
    },
}


def ask(path: str, body: Any = None) -> Any:
    data = f"-d {shlex.quote(json.dumps(body))} " if body is not None else ""
    return json.loads(
        machine.succeed(f"curl -sS --fail-with-body --max-time 60 --unix-socket {SOCKET} {data}http://d{path}")
    )


def names(samples: int = 20) -> set[str]:
    found = set()
    for seed in range(samples):
        turn = ask("/v1/complete", {"tools": [TOOL], "tool_choice": "restart", "seed": seed, "temperature": 5.0,
                                    "messages": [{"role": "user", "content": "x"}]})  # fmt: skip
        found.add(turn["arguments"]["name"])
    return found


def processes() -> tuple[str, int]:
    daemon = machine.succeed(f"systemctl show --property MainPID --value {UNIT}").strip()
    return daemon, ask("/status")["engine"]["pid"]


def switch(name: str) -> None:
    where = f"/specialisation/{name}" if name else ""
    machine.succeed(f"{base}{where}/bin/switch-to-configuration test >&2")


base = machine.succeed("readlink -f /run/current-system").strip()
machine.wait_for_unit(UNIT)
before = processes()

with subtest("the machine's own list is in force"):
    assert names() == {"nginx", "sshd"}

with subtest("after a switch the next turn uses the new list, and nothing was restarted"):
    switch("other")
    assert names() == {"caddy"}
    assert processes() == before
    machine.wait_until_succeeds(
        f"journalctl --unit {UNIT} --output cat --no-pager | grep '1 services in force (2 before)'"
    )

with subtest("a list that is exactly empty admits no service operation"):
    switch("none")
    turn = ask("/v1/turns", {"tools": [TOOL]})
    assert [left["tool"] for left in turn["omitted"]] == ["restart"], turn["omitted"]
    assert processes() == before

with subtest("and back again"):
    switch("")
    assert names() == {"nginx", "sshd"}
    assert processes() == before

with subtest("a switch that changes nothing touches nothing"):
    reloads = f"journalctl --sync; journalctl --unit {UNIT} --output cat --no-pager | grep -c '^reloaded: '"
    before_it = machine.succeed(reloads)
    switch("")
    assert processes() == before
    assert machine.succeed(reloads) == before_it

socket = machine.succeed("systemctl show --property InvocationID --value tacid-infer.socket")
for change in ("package", "model", "setting"):
    with subtest(f"a switch that changes the {change} restarts daemon and engine, and not the socket"):
        before = processes()
        switch(change)
        machine.wait_for_unit(UNIT)
        daemon, engine = processes()
        assert daemon != before[0] and engine != before[1], (daemon, engine, before)
        assert names() == {"nginx", "sshd"}
        assert machine.succeed("systemctl show --property InvocationID --value tacid-infer.socket") == socket
        running = machine.succeed(f"tr '\\0' ' ' < /proc/{engine}/cmdline; systemctl show --property ExecStart {UNIT}")
        assert ("other-model" in running, "tacid-infer-other" in running) == (change == "model", change == "package")
