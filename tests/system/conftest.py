"""What the tests of the module and of the units need: nix, and a machine that systemd boots in.

scripts/system-root brings both. Where something is missing, the tests skip and say what; with TACID_INFER_SYSTEM=require
(as in CI) that is a failure.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from .machine import fill_store
from .nix import Nix, find_nix, system_root


def _missing(what: str) -> None:
    if os.environ.get("TACID_INFER_SYSTEM") == "require":
        pytest.fail(what)
    pytest.skip(what)


@pytest.fixture(scope="session")
def nix() -> Iterator[Nix]:
    """An evaluator with a store of its own."""
    command = find_nix()
    if command is None:
        _missing("needs nix-instantiate on PATH, or scripts/system-root (root, Debian)")
    assert command is not None
    # Not pytest's own folder: what is in the store, every user of a machine must reach.
    with tempfile.TemporaryDirectory(prefix="ti-nix-") as folder:
        yield Nix(command, Path(folder))


@pytest.fixture(scope="session")
def booting(nix: Nix, tiny_model: Path) -> Path:
    """The system root, in which machines can boot; their store is filled."""
    root = system_root()
    if root is None:
        _missing("needs scripts/system-root (root, Debian)")
    if os.geteuid() != 0:
        _missing("needs root, to boot machines")
    for program in ("systemd-nspawn", "nsenter", "ip"):
        if shutil.which(program) is None:
            _missing(f"needs {program}, to boot machines")
    assert root is not None
    fill_store(nix.store, tiny_model)
    return root
