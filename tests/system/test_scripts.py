"""The scripts of nixos-tests/, on machines of systemd-nspawn in place of VMs."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from .machine import Machine, network, run_script
from .nix import REPOSITORY, Nix

SCRIPTS = sorted(path.stem for path in (REPOSITORY / "nixos-tests").glob("*.py"))


@pytest.mark.parametrize("name", SCRIPTS)
def test_script(name: str, nix: Nix, booting: Path) -> None:
    test = nix.test(name)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ti-machines-")))
        machines = []
        for node_name, node in test["nodes"].items():
            machine = Machine(node_name, node, booting, nix.store, folder / node_name)
            stack.callback(machine.close)
            machines.append(machine)
        stack.enter_context(network(machines))
        run_script(test["script"], REPOSITORY / "nixos-tests" / f"{name}.py", machines)
