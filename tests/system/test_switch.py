"""The tests' switch-to-configuration keeps to the rules of NixOS's own."""

from __future__ import annotations

import pytest

from .switch import compare

UNIT = """[Unit]
Description=a
X-Reload-Triggers=/nix/store/1

[Service]
Environment="A=1"
ExecStart=/bin/a

[Install]
WantedBy=multi-user.target
"""


@pytest.mark.parametrize(
    ("old", "new", "asked"),
    [
        ("", "", ""),
        ("Description=a", "Description=b", ""),
        ("WantedBy=multi-user.target", "WantedBy=sockets.target", ""),
        ("X-Reload-Triggers=/nix/store/1", "X-Reload-Triggers=/nix/store/2", "reload"),
        ("X-Reload-Triggers=/nix/store/1", "", ""),
        ("ExecStart=/bin/a", "ExecStart=/bin/a\nExecReload=/bin/b", "reload"),
        ("ExecStart=/bin/a", "ExecStart=/bin/b", "change"),
        ('Environment="A=1"', 'Environment="A=1"\nEnvironment="B=1"', "change"),
        ("ExecStart=/bin/a", "ExecStart=/bin/b\nExecStart=\nExecStart=/bin/a", ""),
        ("Description=a", "After=x.target", "change"),
        (UNIT, "", "change"),
    ],
)
def test_what_a_changed_unit_asks_for(old: str, new: str, asked: str) -> None:
    assert compare(UNIT, UNIT.replace(old, new)) == asked
