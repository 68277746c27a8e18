import json
import shlex
from typing import Any

SOCKET = "/run/tacid-infer/agent.sock"
UNIT = "tacid-infer.service"


def ask(path: str, body: Any = None) -> Any:
    data = f"-d {shlex.quote(json.dumps(body))} " if body is not None else ""
    return json.loads(
        machine.succeed(f"curl -sS --fail-with-body --max-time 60 --unix-socket {SOCKET} {data}http://d{path}")
    )


start_all()
server.wait_for_unit("llama-server.service")
server.wait_for_open_port(8080)
server.wait_until_succeeds("curl -sf http://localhost:8080/health", timeout=60)
machine.wait_for_unit(UNIT)

with subtest("a turn is held to its grammar by the engine on the other machine"):
    tool = {
        "name": "dice",
        "parameters": {"type": "object", "properties": {"eyes": {"enum": [1, 2, 3, 4, 5, 6]}}, "required": ["eyes"]},
    }
    turn = ask("/v1/complete", {"tools": [tool], "tool_choice": "dice", "messages": [{"role": "user", "content": "x"}]})
    assert turn["type"] == "call" and turn["arguments"]["eyes"] in range(1, 7), turn

with subtest("no engine runs here, and the key is nowhere to be seen"):
    machine.fail("pgrep llama-server")
    machine.fail("grep -l sword[f]ish /proc/[0-9]*/cmdline")
    machine.fail(f"grep -l sword[f]ish /proc/$(systemctl show --property MainPID --value {UNIT})/environ")
    machine.fail(f"systemctl cat {UNIT} | grep sword[f]ish")
    machine.fail(f"journalctl --unit {UNIT} --no-pager | grep sword[f]ish")
    assert "swordfish" not in json.dumps(ask("/status"))
    machine.fail(f"curl -sf --unix-socket {SOCKET} http://d/metrics | grep sword[f]ish")
    config = machine.succeed(f"systemctl show --property ExecStart {UNIT} | grep -o '/nix/store/[^ ]*[.]toml'").split()[
        0
    ]
    assert "api_key_file" in machine.succeed(f"cat {config}")
    machine.fail(f"grep sword[f]ish {config}")
    machine.fail("su -s /bin/sh alice -c 'cat /run/credentials/tacid-infer.service/api-key'")

with subtest("with the network open to a host that has a name, the exposure is at most 1.1"):
    # A name may come to stand for any address: the open network is 1.0 of it. For an address as url it is 1.0 in all.
    print(machine.succeed(f"systemd-analyze security --no-pager --threshold=11 {UNIT} | tail -n 1"))
    machine.fail("ss -Hltnp | grep tacid")

with subtest("an engine that is gone is a named error, and is used again once it is back"):
    server.succeed("systemctl stop llama-server.service")
    body = json.dumps({"messages": [{"role": "user", "content": "x"}]})
    code, said = machine.execute(f"curl -sS --unix-socket {SOCKET} -d {shlex.quote(body)} http://d/v1/complete")
    assert code == 0 and json.loads(said)["error"]["code"] in ("engine_starting", "engine_unavailable"), said
    server.succeed("systemctl start llama-server.service")
    server.wait_until_succeeds("curl -sf http://localhost:8080/health", timeout=60)
    assert ask("/v1/complete", {"tools": [tool], "tool_choice": "dice",
                                "messages": [{"role": "user", "content": "x"}]})["tool"] == "dice"  # fmt: skip
