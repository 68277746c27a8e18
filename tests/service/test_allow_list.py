"""The allow-list's file: every way in which it changes or is wrong (field reports C7, C8, D4)."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tacid_infer.service.allow_list import AllowListFile


def test_a_link_re_pointed_two_levels_up(folder: Path) -> None:
    for generation, name in (("gen1", "aaaa"), ("gen2", "bbbb")):
        (folder / generation).mkdir()
        file = folder / generation / "services.json"
        file.write_text(json.dumps({"services": [name]}))
        os.utime(file, (1, 1))
    static = folder / "static"
    static.symlink_to("gen1")
    link = folder / "services.json"
    link.symlink_to("static/services.json")
    found = AllowListFile(link)
    assert found.current().services == ("aaaa",)
    for target, name in (("gen2", "bbbb"), ("gen1", "aaaa"), ("gen2", "bbbb")):
        (folder / "fresh").symlink_to(target)
        (folder / "fresh").replace(static)
        assert found.current().services == (name,)


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"null", b'{"services": null}', b'{"service": ["a"]}', b'{"services": [""]}', b'{"services": [7]}',
     b'{"services": ["a"', b'{"services": ["\xff"]}', b'{"services": ["a"], "services": []}', b"[" * 100000,
     json.dumps({"services": ["x" * 300]}).encode(), b'{"services": [], "exact": 1}', b'{"services": ["\\ud800"]}'],
)  # fmt: skip
def test_malformed_leaves_the_last_good_list(folder: Path, content: bytes) -> None:
    path = folder / "services.json"
    path.write_text('["nginx"]')
    found = AllowListFile(path)
    assert found.current().services == ("nginx",)
    path.write_bytes(content)
    current = found.current()
    assert (current.state, current.services) == ("degraded", ("nginx",))
    assert str(path) in current.reason
    path.write_text('["sshd"]')
    assert found.current().services == ("sshd",)


def test_malformed_from_the_start_admits_no_service(folder: Path) -> None:
    path = folder / "services.json"
    path.write_text("{")
    current = AllowListFile(path).current()
    assert current.state == "degraded" and current.narrows and current.services == ()


@pytest.mark.parametrize(("content", "state"), [(None, "missing"), ("[]", "empty"), ('{"services": []}', "empty")])
def test_missing_or_empty_narrows_nothing_and_says_so(folder: Path, content: str | None, state: str) -> None:
    path = folder / "services.json"
    if content is not None:
        path.write_text(content)
    current = AllowListFile(path).current()
    assert (current.state, current.narrows) == (state, False)
    assert "no narrowing in force" in current.reason


def test_exactly_empty(folder: Path) -> None:
    path = folder / "services.json"
    path.write_text('{"services": [], "exact": true}')
    assert AllowListFile(path).current().narrows


@pytest.mark.parametrize("kind", ["fifo", "directory"])
def test_what_is_no_file_does_not_hang(folder: Path, kind: str) -> None:
    path = folder / "services.json"
    path.write_text('["nginx"]')
    found = AllowListFile(path)
    found.current()
    path.unlink()
    os.mkfifo(path) if kind == "fifo" else path.mkdir()
    current = found.current()
    assert (current.state, current.services) == ("degraded", ("nginx",))


def test_many_names_and_odd_ones(folder: Path) -> None:
    path = folder / "services.json"
    names = ['a"b', "ünïcode", *(f"s{number}" for number in range(100000)), "s1"]
    path.write_text(json.dumps(names))
    assert AllowListFile(path).current().services == tuple(dict.fromkeys(names))
