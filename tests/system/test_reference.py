"""docs/options.md says what module.nix offers."""

from __future__ import annotations

from .nix import Nix
from .reference import FILE, reference


def test_the_option_reference_is_current(nix: Nix) -> None:
    assert FILE.read_text(encoding="utf-8") == reference(nix.machine("{ }", "options")), "run scripts/options"
