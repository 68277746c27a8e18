"""The allow-list's file: every way in which it changes or is wrong (field reports C7, C8, D4)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tacid_infer.service.allow_list import AllowListFile, watch


def test_a_link_re_pointed_two_levels_up(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """C7: also several times within 10 ms, with files of one size and one time; each change is logged once, with the counts."""
    caplog.set_level("INFO", "tacid_infer.allow_list")
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
        for _ in range(3):
            assert found.current().services == (name,)
    told = [record.getMessage() for record in caplog.records]
    assert told == ["allow-list: 1 services in force", *["allow-list: 1 services in force (1 before)"] * 3]
    # Faster than any clock of a file system: there and back, and there.
    caplog.clear()
    for target in ("gen1", "gen2", "gen1"):
        (folder / "fresh").symlink_to(target)
        (folder / "fresh").replace(static)
    assert found.current().services == found.current().services == ("aaaa",)
    assert [record.getMessage() for record in caplog.records] == ["allow-list: 1 services in force (1 before)"]


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


def test_permission_denied(folder: Path) -> None:
    path = folder / "services.json"
    path.write_text('["nginx"]')
    found = AllowListFile(path)
    assert found.current().services == ("nginx",)
    path.chmod(0)
    folder.chmod(0o755)
    path.write_text('["sshd"]') if os.getuid() == 0 else None
    with as_nobody():
        current = found.current()
    assert (current.state, current.services) == ("degraded", ("nginx",))
    assert "Permission denied" in current.reason
    path.chmod(0o644)
    assert found.current().state == "ok"


@contextlib.contextmanager
def as_nobody() -> Iterator[None]:
    """Without root's leave to read everything."""
    if os.getuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_the_folder_removed_and_made_anew(folder: Path) -> None:
    path = folder / "etc" / "services.json"
    found = AllowListFile(path)
    for number in range(3):
        assert found.current().state == "missing"
        path.parent.mkdir()
        assert found.current().state == "missing"
        path.write_text(f'["s{number}"]')
        assert found.current().services == (f"s{number}",)
        path.unlink()
        path.parent.rmdir()


@pytest.mark.parametrize("pause", [0.0, 0.3])
def test_the_watch_tells_the_log_of_every_kind_of_change(
    folder: Path, run: Callable[[Any], Any], caplog: pytest.LogCaptureFixture, pause: float
) -> None:
    """C7, C8: also after a replacement, a removal and a directory in its place, with no turn that would look."""
    path = folder / "etc" / "services.json"

    async def told(words: str) -> None:
        async with asyncio.timeout(20):
            while not any(words in record.getMessage() for record in caplog.records):
                await asyncio.sleep(0.05)
        caplog.clear()
        await asyncio.sleep(pause)

    async def work() -> None:
        caplog.set_level("INFO", "tacid_infer.allow_list")
        watching = asyncio.create_task(watch(AllowListFile(path)))
        await told("is missing")
        path.parent.mkdir()
        for count in range(1, 6):
            fresh = path.with_name("fresh")
            fresh.write_text(json.dumps([f"n{number}" for number in range(count)]))
            fresh.replace(path)
            await told(f"{count} services in force")
        path.unlink()
        await told("is missing")
        path.write_text('["again"]')
        await told("1 services in force")
        path.unlink()
        path.mkdir()
        await told("Is a directory")
        path.rmdir()
        path.parent.rmdir()
        await told("is missing")
        path.parent.mkdir()
        path.write_text('["a", "b"]')
        await told("2 services in force")
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)

    run(work())
