import json

FIRST, SECOND = "tacid-infer.service", "tacid-infer-second.service"


def status(unit: str) -> str:
    folder = unit.removesuffix(".service")
    return f"curl -sf --max-time 60 --unix-socket /run/{folder}/agent.sock http://d/status"


def main_pid(unit: str) -> str:
    return machine.succeed(f"systemctl show --property MainPID --value {unit}").strip()


machine.wait_for_unit(FIRST)
machine.wait_for_unit("tacid-infer-second.socket")

with subtest("an instance that starts when it is needed does not start at boot"):
    code, state = machine.execute(f"systemctl is-active {SECOND}")
    assert state.strip() == "inactive", state
    machine.wait_until_succeeds(status(SECOND), timeout=60)
    machine.wait_for_unit(SECOND)

with subtest("each has processes, users and lists of its own"):
    both = [json.loads(machine.succeed(status(unit))) for unit in (FIRST, SECOND)]
    assert both[0]["engine"]["pid"] != both[1]["engine"]["pid"], both
    assert main_pid(FIRST) != main_pid(SECOND)
    for folder, service in (("tacid-infer", "nginx"), ("tacid-infer-second", "caddy")):
        listed = machine.succeed(f"curl -sf --unix-socket /run/{folder}/agent.sock http://d/v1/allow-list")
        assert json.loads(listed)["services"] == [service], listed
    owners = {int(machine.succeed(f"stat -c %u /proc/{main_pid(unit)}")) for unit in (FIRST, SECOND)}
    assert len(owners) == 2 and all(61184 <= owner <= 65519 for owner in owners), (
        owners
    )  # systemd.exec(5), DynamicUser.

with subtest("the groups are apart"):
    machine.succeed(f"su -s /bin/sh alice -c '{status(FIRST)}'")
    machine.fail(f"su -s /bin/sh alice -c '{status(SECOND)}'")

with subtest("stopping one leaves the other alone"):
    before = main_pid(FIRST)
    machine.succeed(f"systemctl stop tacid-infer-second.socket {SECOND}")
    assert main_pid(FIRST) == before
    machine.succeed(status(FIRST))
