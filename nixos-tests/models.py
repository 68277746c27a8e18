UNIT = "tacid-infer.service"
MODEL = "/mnt/big/m.gguf"


# Where the journal stood when the unit was started last.
cursor = ""


def says(sentence: str, unit: str = UNIT) -> None:
    """What a start that never becomes ready says."""
    since = f"--after-cursor={cursor!r}" if cursor else ""
    machine.wait_until_succeeds(
        f"journalctl --unit {unit} {since} --output cat --no-pager | grep -- {sentence!r}", timeout=30
    )
    machine.fail(f"systemctl is-active {unit}")
    entered = machine.succeed(f"systemctl show --property ActiveEnterTimestampMonotonic --value {unit}")
    assert entered.strip() == "0", f"{unit} has been ready"


def again(unit: str = UNIT) -> None:
    global cursor
    machine.succeed(f"systemctl stop {unit}; journalctl --sync")
    cursor = machine.succeed("journalctl --lines 0 --show-cursor --quiet").removeprefix("-- cursor: ").strip()
    machine.succeed(f"systemctl start --no-block {unit}")


machine.wait_for_unit("tacid-infer.socket")

with subtest("a model that cannot be loaded stops the start, with its path, the user and the reason"):
    says(f"{MODEL}: No such file or directory (as user ")
    machine.succeed(f"mkdir -p {MODEL}")
    again()
    says(f"{MODEL} is a directory (as user ")
    machine.succeed(f"rmdir {MODEL}; touch {MODEL}")
    again()
    says(f"{MODEL} is empty (as user ")
    machine.succeed(f"echo 'version https://git-lfs.github.com/spec/v1' > {MODEL}")
    again()
    says(f"{MODEL} is a Git LFS pointer, not the model (as user ")
    machine.succeed(f"head -c 1000 /etc/machine-id > {MODEL}")
    again()
    says(f"{MODEL} is no GGUF file (as user ")
    machine.succeed(f"cp /etc/tiny.gguf {MODEL}; chmod 600 {MODEL}")
    again()
    says(f"{MODEL}: Permission denied (as user ")
    machine.succeed(f"chmod 644 {MODEL}; chmod 700 /mnt/big")
    again()
    says(f"{MODEL}: Permission denied (as user ")
    machine.succeed("chmod 755 /mnt/big")

with subtest("a split model whose second part is missing is not loaded"):
    machine.succeed("cp /etc/tiny.gguf /mnt/big/x-00001-of-00002.gguf")
    again("tacid-infer-split.service")
    says("x-00002-of-00002.gguf is missing (as user ", "tacid-infer-split.service")

with subtest("a home is out of sight, for a file of every mode, and said to be"):
    machine.succeed("install --owner alice --mode 600 /etc/tiny.gguf /home/alice/m.gguf")
    again("tacid-infer-home.service")
    says("/home/alice/m.gguf: Permission denied (as user ", "tacid-infer-home.service")
    machine.succeed("chmod 644 /home/alice/m.gguf; chmod 755 /home/alice")
    again("tacid-infer-home.service")
    says("/home/alice/m.gguf: Permission denied (as user ", "tacid-infer-home.service")

with subtest("a readable file on another disk needs nothing else"):
    machine.succeed(f"chmod 644 {MODEL}")
    again()
    machine.wait_until_succeeds(f"systemctl is-active {UNIT}", timeout=90)

with subtest("the engine writes to its cache, which survives a restart, and nowhere else"):
    machine.succeed(f"systemctl restart {UNIT}")
    for file in ("home", "cache"):
        written = machine.succeed(f"cat /var/cache/tacid-infer/{file}").split()
        assert len(written) >= 2 and set(written) == {"here"}, written
    machine.fail("ls /etc/engine-was-here /usr/engine-was-here /var/lib/engine-was-here /run/engine-was-here | grep .")
    machine.fail("test -e /.cache || test -e /tmp/temporary")
    assert machine.succeed("ls -A /home/alice | grep -v '^[.]'").split() == ["m.gguf"]
    assert machine.succeed("ls -A /mnt/big").split() == ["m.gguf", "x-00001-of-00002.gguf"]
