"""Nix, from PATH or out of the system root, evaluating into a store of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
EVALUATION = HERE / "nix"


class NixError(Exception):
    """An evaluation failed; what nix said."""


def system_root() -> Path | None:
    """The folder that scripts/system-root has made, if it has."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    root = cache / "tacid-infer" / "system" / "root"
    return root if (root / "etc" / "tacid-infer-packages").exists() else None


def find_nix(program: str = "nix-instantiate") -> list[str] | None:
    """The command of a program of Nix; None where there is none."""
    if found := shutil.which(program):
        return [found]
    root = system_root()
    if root is None:
        return None
    # Run on this machine by the root's own loader, which needs no privilege.
    loader = next((root / "usr/lib64").glob("ld-linux-*"))
    libraries = next((root / "usr/lib").glob("*-linux-gnu"))
    return [
        str(loader), "--argv0", program, "--library-path", str(libraries), str(root / "usr/bin/nix"),
    ]  # fmt: skip


class Nix:
    """An evaluator.

    Args:
        command: nix-instantiate.
        folder: for its store: what is evaluated stands under ``nix/store`` in it.
    """

    def __init__(self, command: list[str], folder: Path) -> None:
        self.command = command
        self.folder = folder
        self.store = folder / "nix" / "store"

    def evaluate(self, expression: str, *, dummy_store: bool = False) -> Any:
        """The value of an expression.

        Args:
            expression: in Nix.
            dummy_store: write nothing at all, for evaluations of other stand-in packages.

        Raises:
            NixError: what nix said.
        """
        folder = self.folder
        store = ["--store", "dummy://"] if dummy_store else ["--store", str(folder), "--read-write-mode"]
        environment = {**os.environ, "NIX_CONF_DIR": str(folder / "conf"), "NIX_CONFIG": "build-users-group ="}
        if dummy_store:
            environment |= {
                f"NIX_{name}_DIR": str(folder / "dummy" / name.lower()) for name in ("STORE", "STATE", "LOG")
            }
        done = subprocess.run(
            [*self.command, "--eval", "--strict", "--json", *store, "--expr", expression],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if done.returncode:
            raise NixError(done.stderr)
        return json.loads(done.stdout)

    def machine(self, settings: str, attribute: str) -> Any:
        """One attribute of the machine that has the settings: units, failed, warnings, options, ..."""
        return self.evaluate(f"(import {EVALUATION}/eval.nix {{ settings = {settings}; }}).{attribute}")

    def test(self, name: str) -> Any:
        """One of nixos-tests/: its nodes and its script."""
        return self.evaluate(f"import {EVALUATION}/nodes.nix {{ test = {REPOSITORY}/nixos-tests/{name}.nix; }}")
