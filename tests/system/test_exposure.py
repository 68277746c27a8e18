"""What `systemd-analyze security` says of the unit, for each way in which the module can open it."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import pytest

from .nix import Nix
from .test_module import MINIMAL, settings

CASES = {
    "the CPU": (MINIMAL, 3),
    "cuda": (f'{MINIMAL} acceleration = "cuda"; requireGpu = true;', 10),
    "rocm": (f'{MINIMAL} acceleration = "rocm"; requireGpu = true;', 10),
    "vulkan": (f'{MINIMAL} acceleration = "vulkan"; requireGpu = true;', 10),
    "a further device": (f'{MINIMAL} acceleration = "vulkan"; extraDevices = [ "/dev/dxg" ];', 10),
    "another engine's socket": ('enable = true; engine.url = "unix:/run/other.sock";', 3),
    "this machine": ('enable = true; engine.url = "http://localhost:8080";', 10),
    "an address": ('enable = true; engine = { url = "https://192.0.2.7"; apiKeyFile = "/run/k"; };', 10),
    # The network is open to any address that the name may have, which alone is 1.0 of it.
    "a host": ('enable = true; engine = { url = "https://gpu.lan"; apiKeyFile = "/run/k"; };', 11),
}


@pytest.mark.parametrize("name", CASES)
def test_the_exposure_is_bounded(name: str, nix: Nix, booting: Path) -> None:
    inner, tenths = CASES[name]
    unit = nix.machine(settings(inner), "units")["tacid-infer.service"]
    with tempfile.TemporaryDirectory(dir=booting / "tmp") as folder:
        file = Path(folder) / "tacid-infer.service"
        file.write_text(unit)
        done = subprocess.run(
            ["chroot", str(booting), "systemd-analyze", "security", "--offline=true", "--no-pager",
             f"--threshold={tenths}", f"/{file.relative_to(booting)}"],
            env={"PATH": "/usr/bin:/usr/sbin"}, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert "Overall exposure level" in done.stdout, done.stderr
    assert done.returncode == 0, done.stdout
