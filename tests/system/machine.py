"""A machine in place of the NixOS test's VM: systemd of the system root, booted by systemd-nspawn.

It has the method names of the NixOS test driver, so that the script of a NixOS test runs unchanged. The units are those
that module.nix renders, character by character; what they name under /nix/store is there, too.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .nix import HERE, REPOSITORY

_STAND_IN = "00000000000000000000000000000000"
_PATH = "/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin"
_POWER_OFF = signal.SIGRTMIN + 4
_BOOT_TIMEOUT = 120.0
_COMMAND_TIMEOUT = 900.0


class MachineError(AssertionError):
    """A command or a unit did not do what the script asks of it."""


def fill_store(store: Path, model: Path) -> None:
    """Put programs and model where the stand-in packages say that they are."""
    daemon = 'PYTHONPATH=/opt/tacid-infer exec /usr/bin/python3 -P -m tacid_infer "$@"'
    for name, program, line in (
        ("tacid-infer", "tacid-infer", daemon),
        ("tacid-infer-other", "tacid-infer", daemon),
        ("llama-cpp", "llama-server", 'exec /usr/bin/llama-server "$@"'),
        ("bash", "bash", 'exec /bin/bash "$@"'),
    ):
        path = store / f"{_STAND_IN}-{name}" / "bin" / program
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{line}\n")
        path.chmod(0o755)
    for name in ("tacid-infer-tiny-model", "other-model"):
        shutil.copy(model, store / f"{_STAND_IN}-{name}")


class Machine:
    """One machine.

    Args:
        name: as the script calls it.
        node: what nodes.nix says of it.
        root: of the Debian system.
        store: the folder that is /nix/store in it.
        folder: for its writable layer, and for its log.
    """

    def __init__(self, name: str, node: dict[str, Any], root: Path, store: Path, folder: Path) -> None:
        self.name = name
        self.booted = False
        self.host = f"ti{os.getpid() % 100_000}-{name[:6]}"  # Unique beside other runs; 15 characters at most.
        self._address: str | None = None
        self._folder = folder
        self._store = store
        self._log = folder / "console.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._leader = 0
        folder.mkdir(parents=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", str(folder)], check=True)
        self.root = folder / "root"
        for part in ("root", "upper", "work"):
            (folder / part).mkdir(mode=0o755)
        layers = f"lowerdir={root},upperdir={folder / 'upper'},workdir={folder / 'work'}"
        subprocess.run(["mount", "-t", "overlay", "-o", layers, "overlay", str(self.root)], check=True)
        try:
            self._install(node)
        except BaseException:
            self.close()
            raise

    # What NixOS would have built

    def _install(self, node: dict[str, Any]) -> None:
        base = self.root / "nix/system"
        self._generation(base, node)
        for name, special in node["specialisations"].items():
            self._generation(base / "specialisation" / name, special)
        (self.root / "nix/store").mkdir()
        (self.root / "opt/tacid-infer/tacid_infer").mkdir(parents=True)
        (self.root / "usr/local/bin/tacid-infer").symlink_to(f"/nix/store/{_STAND_IN}-tacid-infer/bin/tacid-infer")
        etc = self.root / "etc"
        (etc / "hostname").write_text(self.name)
        (etc / "machine-id").write_text("")
        tmpfiles = ["L /run/current-system - - - - /nix/system", *node["tmpfiles"]]
        (etc / "tmpfiles.d/nixos.conf").write_text("".join(f"{line}\n" for line in tmpfiles))
        groups = {group for groups in node["users"].values() for group in groups}
        for group in sorted({*node["groups"], *groups, "render", "video"}):  # As on every NixOS.
            self._chroot("groupadd", "--system", "--force", group)
        for user, groups in node["users"].items():
            self._chroot("useradd", "--create-home", "--groups", ",".join(groups), user)
        self._chroot("/nix/system/bin/switch-to-configuration", "boot")
        for unit, wanting in node["wanted"].items():
            for target in wanting:
                link = etc / "systemd/system" / f"{target}.wants" / unit
                link.parent.mkdir(exist_ok=True)
                link.symlink_to(f"../{unit}")

    def _generation(self, folder: Path, node: dict[str, Any]) -> None:
        assert not node["failed"], node["failed"]
        (folder / "bin").mkdir(parents=True)
        (folder / "units").mkdir()
        shutil.copy(HERE / "switch.py", folder / "bin/switch-to-configuration")
        (folder / "bin/switch-to-configuration").chmod(0o755)
        for name, text in node["units"].items():
            (folder / "units" / name).write_text(text)
        (folder / "etc").mkdir()
        for name, source in node["etc"].items():
            link = folder / "etc" / name
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(source)

    def _chroot(self, *command: str) -> None:
        subprocess.run(["chroot", str(self.root), *command], check=True, stdout=subprocess.DEVNULL, env={"PATH": _PATH})

    # Its life

    def start(self) -> None:
        """Boot it, and wait until systemd takes orders."""
        if self.booted:
            return
        self.booted = True
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    "systemd-nspawn", "--quiet", "--boot", f"--directory={self.root}", f"--machine=ti-{self.name}",
                    "--register=no", "--keep-unit", "--console=pipe", "--link-journal=no", "--private-network",
                    f"--bind-ro={self._store}:/nix/store",
                    f"--bind-ro={REPOSITORY / 'tacid_infer'}:/opt/tacid-infer/tacid_infer",
                ],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"},
            )  # fmt: skip
        deadline = time.monotonic() + _BOOT_TIMEOUT
        while time.monotonic() < deadline and self._process.poll() is None:
            children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
            if children:
                self._leader = int(children[0])
                state = self.execute("systemctl is-system-running 2>/dev/null", check_boot=False)[1].strip()
                if state in ("running", "degraded", "starting"):
                    break
            time.sleep(0.1)
        else:
            raise MachineError(f"{self.name} did not boot: {self._log.read_text()[-2000:]}")
        if self._address:
            subprocess.run(["ip", "link", "set", self.host, "netns", str(self._leader)], check=True)
            self.succeed(
                f"ip link set lo up; ip link set {self.host} up; ip address add {self._address}/24 dev {self.host}"
            )

    def join(self, address: str, hosts: dict[str, str]) -> None:
        """Give it an address in the machines' network; before it boots."""
        self._address = address
        (self.root / "etc/hosts").write_text(
            "127.0.0.1 localhost\n" + "".join(f"{number} {name}\n" for name, number in hosts.items())
        )

    def close(self) -> None:
        """Power it off, and take its file systems away."""
        if self._process is not None:
            if self._leader:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._leader, _POWER_OFF)
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        for path in (self.root, self._folder):
            subprocess.run(["umount", "--lazy", str(path)], check=False)

    # The NixOS test driver's methods

    def execute(
        self,
        command: str,
        check_return: bool = True,
        timeout: float | None = _COMMAND_TIMEOUT,
        *,
        check_boot: bool = True,
    ) -> tuple[int, str]:
        """Run a command as root; its exit code, and what it printed on standard output."""
        if check_boot:
            self.start()
        done = subprocess.run(
            [
                "nsenter", "--target", str(self._leader), "--all", "--root", "--wd", "--", "/usr/bin/env", "-i",
                f"PATH={_PATH}", "HOME=/root", "USER=root", "/bin/bash", "-c", f"set -euo pipefail; {command}",
            ],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=timeout, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout.decode("utf-8", "replace")

    def succeed(self, *commands: str, timeout: float | None = _COMMAND_TIMEOUT) -> str:
        """Run commands, each of which must succeed; what they printed."""
        said = ""
        for command in commands:
            code, out = self.execute(command, timeout=timeout)
            if code:
                raise MachineError(f"{self.name}: `{command}` failed (exit code {code}): {out}\n{self._journal()}")
            said += out
        return said

    def fail(self, *commands: str, timeout: float | None = _COMMAND_TIMEOUT) -> str:
        """Run commands, each of which must fail; what they printed."""
        said = ""
        for command in commands:
            code, out = self.execute(command, timeout=timeout)
            if not code:
                raise MachineError(f"{self.name}: `{command}` succeeded unexpectedly: {out}")
            said += out
        return said

    def wait_until_succeeds(self, command: str, timeout: float = _COMMAND_TIMEOUT) -> str:
        """Run a command again and again until it succeeds; what it printed then."""
        return self._wait(lambda: self.execute(command), lambda code: code == 0, command, timeout)

    def wait_until_fails(self, command: str, timeout: float = _COMMAND_TIMEOUT) -> str:
        """Run a command again and again until it fails."""
        return self._wait(lambda: self.execute(command), lambda code: code != 0, command, timeout)

    def wait_for_unit(self, unit: str, user: str | None = None, timeout: float = _COMMAND_TIMEOUT) -> None:
        """Wait until a unit is active; one that failed, or that nobody starts, is an error."""
        assert user is None
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            state = self.get_unit_property(unit, "ActiveState")
            if state == "active":
                return
            if state == "failed":
                raise MachineError(f"{self.name}: {unit} failed\n{self._journal()}")
            idle = "No jobs" in self.execute("systemctl list-jobs --full --no-pager 2>&1")[1]
            if state == "inactive" and idle and self.get_unit_property(unit, "ActiveState") == state:
                raise MachineError(f"{self.name}: {unit} is inactive, and no job is pending\n{self._journal()}")
            time.sleep(0.1)
        raise MachineError(f"{self.name}: {unit} is not active after {timeout:g} s\n{self._journal()}")

    def wait_for_file(self, path: str, timeout: float = _COMMAND_TIMEOUT) -> None:
        """Wait until a file is there."""
        self.wait_until_succeeds(f"test -e {shlex.quote(path)}", timeout)

    def wait_for_open_port(self, port: int, addr: str = "localhost", timeout: float = _COMMAND_TIMEOUT) -> None:
        """Wait until somebody listens on a TCP port."""
        self.wait_until_succeeds(f"(exec 3<>/dev/tcp/{addr}/{port}) 2>/dev/null", timeout)

    def systemctl(self, query: str, user: str | None = None) -> tuple[int, str]:
        """Run systemctl."""
        assert user is None
        return self.execute(f"systemctl {query}")

    def get_unit_property(self, unit: str, name: str) -> str:
        """A property of a unit."""
        return self.succeed(f"systemctl show --property {name} --value {unit}").strip()

    def _wait(
        self, attempt: Callable[[], tuple[int, str]], good: Callable[[int], bool], what: str, timeout: float
    ) -> str:
        deadline = time.monotonic() + timeout
        while True:
            code, said = attempt()
            if good(code):
                return said
            if time.monotonic() > deadline:
                raise MachineError(f"{self.name}: waited {timeout:g} s for `{what}`: {said}\n{self._journal()}")
            time.sleep(0.2)

    def _journal(self) -> str:
        return self.execute("journalctl --no-pager --lines 60 --output short-precise")[1]


@contextlib.contextmanager
def network(machines: list[Machine]) -> Iterator[None]:
    """Join machines: none if there is one alone, two by a cable."""
    if len(machines) < 2:
        yield
        return
    first, second = machines
    hosts = {machine.name: f"192.168.1.{number}" for number, machine in enumerate(machines, 1)}
    subprocess.run(["ip", "link", "add", first.host, "type", "veth", "peer", "name", second.host], check=True)
    try:
        for machine in machines:
            machine.join(hosts[machine.name], hosts)
        yield
    finally:
        # Gone with the machine that had it, unless that never booted.
        subprocess.run(["ip", "link", "delete", first.host], check=False, stderr=subprocess.DEVNULL)


@contextlib.contextmanager
def subtest(name: str) -> Iterator[None]:
    """A part of a script, told in the output."""
    print(f"subtest: {name}", flush=True)
    yield


def run_script(script: str, where: Path, machines: list[Machine]) -> None:
    """Run a NixOS test's script."""

    def start_all() -> None:
        for machine in machines:
            machine.start()

    names = {machine.name: machine for machine in machines}
    exec(compile(script, str(where), "exec"), {"start_all": start_all, "subtest": subtest, **names})
