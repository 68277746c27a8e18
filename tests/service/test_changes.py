"""The allow-list while it changes: no turn sees a mixture, nor a list older than the one on disk when it began."""

from __future__ import annotations

import json
import re
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tacid_infer.service.allow_list import AllowListFile

from .running import SHORT, Daemon, call_of


class Writer:
    """Writes numbered lists: ``count`` names, each of which carries the list's number."""

    def __init__(self, path: Path, *, in_place: bool, count: int = 40) -> None:
        self.path = path
        self.number = 0
        self._in_place = in_place
        self._count = count
        self._fresh = path.with_name("fresh")

    def write(self) -> None:
        """The next list. ``number`` is on disk, whole, once this returns."""
        number = self.number + 1
        text = json.dumps({"services": [f"s{number}x{index}" for index in range(self._count)]})
        if self._in_place:
            self.path.write_text(text)
        else:
            self._fresh.write_text(text)
            self._fresh.replace(self.path)
        self.number = number


def number_of(services: Any, count: int = 40) -> int:
    """The number of a list, which must be whole and of one piece."""
    numbers = {int(name[1:].partition("x")[0]) for name in services}
    assert len(numbers) == 1 and len(services) == count, services
    return int(numbers.pop())


@pytest.mark.parametrize("in_place", [False, True], ids=["rename", "in place"])
def test_a_thousand_changes_a_second(folder: Path, in_place: bool) -> None:
    """Ten seconds of them, read all the while by two threads."""
    writer = Writer(folder / "services.json", in_place=in_place)
    writer.write()
    file = AllowListFile(writer.path)
    stop = threading.Event()
    faults: list[Exception] = []
    seen: set[int] = set()

    def read() -> None:
        try:
            while not stop.is_set():
                before = writer.number
                current = file.current()
                if current.state == "degraded":
                    # In place, a file is half-written for a moment: the last good list, and it says so.
                    assert in_place
                    continue
                found = number_of(current.services)
                assert before <= found <= writer.number + 1
                seen.add(found)
        except Exception as error:
            faults.append(error)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    begun = time.monotonic()
    while time.monotonic() - begun < 10:
        writer.write()
        time.sleep(max(0.0, begun + writer.number / 1000 - time.monotonic()))
    stop.set()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[0]
    assert writer.number > 1500 and len(seen) > 100
    assert number_of(file.current().services) == writer.number


def test_turns_during_changes(daemon: Daemon) -> None:
    """The same with turns of the running daemon, built and completed."""
    before = daemon.services.read_text()
    writer = Writer(daemon.services, in_place=False)
    writer.write()
    stop = threading.Event()

    def change() -> None:
        begun, first = time.monotonic(), writer.number
        while not stop.is_set():
            writer.write()
            time.sleep(max(0.0, begun + (writer.number - first) / 1000 - time.monotonic()))

    changing = threading.Thread(target=change)
    changing.start()
    try:
        turns = 0
        end = time.monotonic() + 10
        while time.monotonic() < end:
            number = writer.number
            grammar = daemon.post("/v1/turns", {"tool_choice": "proposal.submit"}).json()["grammar"]
            listed = daemon.http.get("/v1/allow-list").json()["services"]
            assert number <= number_of(listed)
            (found,) = set(re.findall(r"s(\d+)x", grammar))
            assert number <= int(found) <= writer.number + 1
            assert daemon.post("/v1/complete", call_of(SHORT)).status_code == 200
            turns += 1
        assert turns > 20
    finally:
        stop.set()
        changing.join()
        daemon.services.write_text(before)
