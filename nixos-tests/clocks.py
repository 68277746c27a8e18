import re

UNIT, NEVER = "tacid-infer.service", "tacid-infer-never.service"


def shown(unit: str, name: str) -> str:
    return machine.succeed(f"systemctl show --property {name} --value {unit}").strip()


def journal(unit: str) -> str:
    return machine.succeed(f"journalctl --sync; journalctl --unit {unit} --output cat --no-pager")


with subtest("an engine that loads for longer than the time to start is let finish"):
    machine.wait_for_unit(UNIT)
    assert shown(UNIT, "TimeoutStartUSec") == "6s"
    took = int(shown(UNIT, "ActiveEnterTimestampMonotonic")) - int(shown(UNIT, "InactiveExitTimestampMonotonic"))
    assert took > 15_000_000, took
    assert shown(UNIT, "NRestarts") == "0"

with subtest("a daemon whose loop is stuck is started again by the watchdog, though its engine lives"):
    daemon = shown(UNIT, "MainPID")
    machine.succeed(f"systemctl kill --kill-whom=main --signal=SIGSTOP {UNIT}")
    machine.wait_until_succeeds(f"test $(systemctl show --property MainPID --value {UNIT}) != {daemon}", timeout=90)
    machine.wait_for_unit(UNIT)
    machine.wait_until_succeeds(
        "curl -sf --max-time 5 --unix-socket /run/tacid-infer/agent.sock http://d/healthz", timeout=60
    )
    assert int(shown(UNIT, "NRestarts")) >= 1
    assert "Failed with result 'watchdog'" in journal(UNIT), journal(UNIT)

with subtest("an engine that never becomes ready ends the start as failed, with the reason, in bounded time"):
    ended = f"journalctl --unit {NEVER} --output cat --no-pager | grep \"Failed with result 'timeout'\""
    # settings.engine.start_timeout, and two minutes more.
    machine.wait_until_succeeds(ended, timeout=3 + 120)
    assert re.search("failing: engine keeps dying .* the model was not loaded within 3 s", journal(NEVER)), journal(
        NEVER
    )
    assert shown(NEVER, "ActiveEnterTimestampMonotonic") == "0"

with subtest("and is tried again"):
    machine.wait_until_succeeds(f"test $(systemctl show --property NRestarts --value {NEVER}) -ge 1", timeout=30)
