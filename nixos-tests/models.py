UNIT = "tacid-infer.service"
MODEL = "/mnt/big/m.gguf"


def says(sentence: str, unit: str = UNIT) -> None:
    machine.wait_until_succeeds(
        f"journalctl --unit {unit} --output cat --no-pager | grep -q -- {sentence!r}", timeout=30
    )
    machine.fail(f"systemctl is-active {unit}")


def again() -> None:
    machine.succeed(f"systemctl stop {UNIT}; systemctl start --no-block {UNIT}")


machine.wait_for_unit("tacid-infer.socket")

with subtest("a model that cannot be loaded stops the start, with its path and the reason"):
    says(f"{MODEL}: No such file or directory")
    machine.succeed(f"mkdir -p {MODEL}")
    again()
    says(f"{MODEL} is a directory")
    machine.succeed(f"rmdir {MODEL}; touch {MODEL}")
    again()
    says(f"{MODEL} is empty")
    machine.succeed(f"echo 'version https://git-lfs.github.com/spec/v1' > {MODEL}")
    again()
    says(f"{MODEL} is a Git LFS pointer")
    machine.succeed(f"cp /etc/tiny.gguf {MODEL}; chmod 600 {MODEL}")
    again()
    says(f"{MODEL}: Permission denied (as user ")
    machine.succeed("cp /etc/tiny.gguf /mnt/big/x-00001-of-00002.gguf")
    machine.succeed("systemctl restart --no-block tacid-infer-split.service")
    says("x-00002-of-00002.gguf is missing", "tacid-infer-split.service")

with subtest("a home is out of sight, and said to be"):
    machine.succeed("cp /etc/tiny.gguf /home/alice/m.gguf; chmod 644 /home/alice/m.gguf; chmod 755 /home/alice")
    machine.succeed("systemctl restart --no-block tacid-infer-home.service")
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
    assert machine.succeed("ls /mnt/big").split() == ["m.gguf", "x-00001-of-00002.gguf"]
