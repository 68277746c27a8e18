"""A daemon that the tests of this folder share."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from .running import Daemon


@pytest.fixture(scope="module")
def daemon(tiny_model: Path, engine_command: tuple[str, ...]) -> Iterator[Daemon]:
    """A daemon with a real engine, one a module."""
    with tempfile.TemporaryDirectory(prefix="ti-") as made, Daemon(Path(made), tiny_model, engine_command) as running:
        yield running
