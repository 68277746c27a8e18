"""Nix reads flake.nix, and the lock that was written by hand."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

from .nix import REPOSITORY, Nix, find_nix

# A revision of nixos-26.05 whose hash is known.
PIN = {
    "type": "github",
    "owner": "NixOS",
    "repo": "nixpkgs",
    "rev": "21a67dc470149f337cecafbe965d8d252a390518",
    "lastModified": 1789114715,
    "narHash": "sha256-ugpsyk3NM2s87vXfUiIIiibbJ4Pp0JPS5p/3mfs+q+c=",
}


def test_nix_takes_the_lock_as_it_stands(nix: Nix, tmp_path: Path) -> None:
    command = find_nix("nix")
    assert command is not None
    flake = tmp_path / "flake"
    flake.mkdir()
    for name in ("flake.nix", "flake.lock"):
        shutil.copy(REPOSITORY / name, flake)
    done = subprocess.run(
        [*command, "flake", "metadata", "--json", "--offline", "--no-update-lock-file", "--store", str(tmp_path),
         f"path:{flake}"],
        env={**os.environ, "HOME": str(tmp_path), "NIX_CONF_DIR": str(tmp_path),
             "NIX_CONFIG": "experimental-features = nix-command flakes\nbuild-users-group =\nflake-registry ="},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    nixpkgs = json.loads(done.stdout)["locks"]["nodes"]["nixpkgs"]
    assert nixpkgs["locked"] == PIN
    # A lock whose input differs from flake.nix would be made anew, which fails here.
    assert nixpkgs["original"] == {"type": "github", "owner": "NixOS", "repo": "nixpkgs", "ref": "nixos-26.05"}
