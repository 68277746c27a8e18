"""Asks an engine's program about itself: its version, its devices."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence


def ask_engine(command: Sequence[str], flag: str, *, timeout: float) -> subprocess.CompletedProcess[bytes]:
    """Run the program with this flag alone, and wait for its end.

    Args:
        command: the program and its leading arguments.
        flag: one that makes it print something and end.
        timeout: seconds that it has.

    Raises:
        OSError: it cannot be started.
        subprocess.TimeoutExpired: it does not come to an end.
    """
    return subprocess.run([*command, flag], stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, check=False)
