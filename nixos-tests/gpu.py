UNIT = "tacid-infer.service"


def journal() -> str:
    return machine.succeed(f"journalctl --sync; journalctl --unit {UNIT} --output cat --no-pager")


machine.wait_for_unit("tacid-infer.socket")

with subtest("without its device the daemon is not ready, says why, and tries again"):
    machine.wait_until_succeeds(
        f"journalctl --unit {UNIT} --output cat | grep 'rocm device is not there yet'", timeout=30
    )
    machine.wait_until_succeeds(f"test $(systemctl show --property NRestarts --value {UNIT}) -ge 2", timeout=30)
    machine.fail(f"systemctl is-active {UNIT}")
    assert "loading the model" not in journal(), journal()

with subtest("once the device is there it becomes ready by itself"):
    machine.succeed("mkdir -p /dev/dri; touch /dev/kfd /dev/dri/renderD128")
    machine.wait_until_succeeds(f"systemctl is-active {UNIT}", timeout=90)
    machine.succeed("curl -sf --unix-socket /run/tacid-infer/agent.sock http://d/healthz")

with subtest("a GPU that the engine does not report is missed in the journal, in the status and by monitoring"):
    assert "a GPU is expected (engine.gpu), and the engine " in journal(), journal()
    assert "missing: a GPU is expected" in machine.succeed("tacid-infer status")
    metrics = machine.succeed("curl -sf --unix-socket /run/tacid-infer/agent.sock http://d/metrics")
    assert "tacid_engine_gpu_missing 1.0" in metrics, metrics

with subtest("with a GPU opened, the exposure is at most 1.0"):
    print(machine.succeed(f"systemd-analyze security --no-pager --threshold=10 {UNIT} | tail -n 1"))
