"""The option reference, docs/options.md: ``python -m tests.system.reference`` writes it anew from module.nix."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from .nix import REPOSITORY, Nix, find_nix

FILE = REPOSITORY / "docs" / "options.md"
_HEAD = """# Options of services.tacid-infer

Written by `scripts/options` from module.nix; do not edit. `instances.<name>` takes every option that stands above it.
"""
_INSTANCE = "services.tacid-infer.instances.<name>."


def reference(options: list[dict[str, Any]]) -> str:
    """The reference as Markdown."""
    parts = [_HEAD]
    for option in options:
        name = option["name"]
        if name == "services.tacid-infer" or (name.startswith(_INSTANCE) and name != f"{_INSTANCE}enable"):
            continue
        parts.append(f"## {name}\n\n{option['description'].strip()}\n")
        facts = [f"- Type: {option['type']}" + (" (read-only)" if option["readOnly"] else "")]
        for fact in ("default", "example"):
            if option[fact] is not None:
                facts.append(f"- {fact.capitalize()}: `{option[fact]}`")
        parts.append("\n".join(facts) + "\n")
    return "\n".join(parts)


def main() -> None:
    """Write the file."""
    command = find_nix()
    if command is None:
        raise SystemExit("nix-instantiate is needed, on PATH or by scripts/system-root")
    with tempfile.TemporaryDirectory() as folder:
        FILE.parent.mkdir(exist_ok=True)
        FILE.write_text(reference(Nix(command, Path(folder)).machine("{ }", "options")), encoding="utf-8")


if __name__ == "__main__":
    main()
