"""The allow-list's file: read when it changed, never half, and never lost.

Correctness does not hang on an event: on NixOS the file is a link through /etc/static, which a switch re-points, and no
watch on its target fires. So its identity is compared at each turn; the watch only makes the log prompt.
"""

from __future__ import annotations

import json
import logging
import os
import stat
import time
from pathlib import Path
from threading import Lock
from typing import TypeAlias

from ..turn import AllowList
from .logs import fields

_LARGEST_FILE = 64 * 2**20
_LONGEST_NAME = 256
_SMALL_FILE = 2**20
_TRIES, _PAUSE = 50, 0.002
_STEP = 100_000_000
_HALF_WRITTEN_TRIES, _HALF_WRITTEN_PAUSE = 4, 0.01
_CTIME = 2
_Identity: TypeAlias = tuple[int, ...]

log = logging.getLogger("tacid_infer.allow_list")


class _Malformed(ValueError):
    """The file is no allow-list; says why."""


class AllowListFile:
    """The list in force.

    Args:
        path: of services.json.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.changed_at = time.time()
        self._lock = Lock()
        self._identity: _Identity | None = None
        self._settled = False
        self._content: bytes | None = None
        self._told = False
        self._current = AllowList()
        self._good: AllowList | None = None

    @property
    def latest(self) -> AllowList:
        """The list as it was last read. Touches no disk, so that the event loop may ask."""
        return self._current

    def current(self) -> AllowList:
        """The list as the file has it now. Blocks for as long as reading it takes.

        A malformed file leaves the last good list in force, as degraded. Where there never was one, no service
        operation is admitted until the file is mended: an operator who believes to have locked the list must not find
        it open.
        """
        with self._lock:
            if self._settled and _identity(self.path) == self._identity:
                return self._current
            found = self._read()
            if found != self._current or not self._told:
                self._tell(found)
                self._told = True
                self.changed_at = time.time()
            self._current = found
            return found

    def _read(self) -> AllowList:
        try:
            left = _HALF_WRITTEN_TRIES
            while True:
                try:
                    return self._read_once()
                except _Malformed:
                    left -= 1
                    if self._settled or not left:
                        raise
                    time.sleep(_HALF_WRITTEN_PAUSE)  # Changed a moment ago: whoever writes it may be half-way.
        except FileNotFoundError:
            return AllowList(state="missing", reason=f"{self.path} is missing: no narrowing in force")
        except (_Malformed, OSError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            if self._good is None:
                return AllowList(
                    exact=True,
                    state="degraded",
                    reason=f"{self.path}: {why}; there is no earlier list, so no service operation is admitted",
                )
            good = self._good
            return AllowList(
                good.services,
                good.exact,
                "degraded",
                f"{self.path}: {why}; the last good list stays in force ({len(good.services)} names)",
            )

    def _read_once(self) -> AllowList:
        self._settled = False
        before, self._content = self._content, None
        content, self._identity = _content(self.path)
        # The kernel's clock for files moves in steps: a file may change twice within one, and look the same.
        self._settled = abs(time.time_ns() - self._identity[_CTIME]) > _STEP
        found = self._current if content == before else _parse(content)
        self._content = content if len(content) < _SMALL_FILE else None
        if found.state != "degraded":
            self._good = found
        return found

    def _tell(self, found: AllowList) -> None:
        told = fields(event="allow_list", allow_list_state=found.state, services=len(found.services))
        if found.state == "degraded":
            log.error("allow-list degraded: %s", found.reason, extra=told)
        elif not found.narrows:
            log.warning("allow-list: %s", found.reason, extra=told)
        else:
            was = f" ({len(self._current.services)} before)" if self._current.services else ""
            log.info("allow-list: %s%s", found.reason, was, extra=told)


def _identity(path: Path) -> _Identity | None:
    """What changes whenever the content may have: of the resolved target, not of the link. None: it is not there."""
    try:
        return _stamp(path.stat())
    except OSError:
        return None


def _stamp(found: os.stat_result) -> _Identity:
    return (found.st_dev, found.st_ino, found.st_ctime_ns, found.st_mtime_ns, found.st_size, found.st_mode)


def _content(path: Path) -> tuple[bytes, _Identity]:
    """The file's content, whole, and the identity that it has with it."""
    # Non-blocking, so that a pipe in the file's place cannot hold up a turn.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        for _ in range(_TRIES):
            before = os.fstat(descriptor)
            if not stat.S_ISREG(before.st_mode):
                raise _Malformed("it is not a regular file")
            if before.st_size > _LARGEST_FILE:
                raise _Malformed(f"it is larger than {_LARGEST_FILE} bytes")
            file.seek(0)
            content = file.read(_LARGEST_FILE)
            # Rewritten in place meanwhile, what was read may be a mixture.
            if _stamp(os.fstat(descriptor)) == _stamp(before) and len(content) == before.st_size:
                return content, _stamp(before)
            time.sleep(_PAUSE)
    raise _Malformed("it changes faster than it can be read")


def _parse(content: bytes) -> AllowList:
    try:
        parsed = json.loads(content.decode(), object_pairs_hook=_no_duplicates)
    except UnicodeDecodeError as error:
        raise _Malformed(f"not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise _Malformed(f"line {error.lineno} column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise _Malformed("nested too deeply") from None
    exact = False
    names = parsed
    if isinstance(parsed, dict):
        if unknown := parsed.keys() - {"services", "exact"}:
            raise _Malformed(f"the key {min(unknown)!r} is not known")
        exact = parsed.get("exact", False)
        if not isinstance(exact, bool):
            raise _Malformed("exact must be true or false")
        if "services" not in parsed:
            raise _Malformed("there is no list of services")
        names = parsed["services"]
    if not isinstance(names, list):
        raise _Malformed("services must be a list of names")
    for index, name in enumerate(names):
        if not isinstance(name, str) or not name or len(name) > _LONGEST_NAME:
            raise _Malformed(f"services/{index} must be a name of 1 to {_LONGEST_NAME} characters")
        try:
            name.encode()
        except UnicodeEncodeError:
            raise _Malformed(f"services/{index} holds half of a surrogate pair") from None
    services = tuple(dict.fromkeys(names))
    if services:
        return AllowList(services, exact, "ok", f"{len(services)} services in force")
    if exact:
        return AllowList((), True, "ok", "the list is exactly empty: no service operation is admitted")
    return AllowList((), False, "empty", "the allow-list is empty: no narrowing in force")


def _no_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise _Malformed("a key stands twice")
    return made


async def watch(file: AllowListFile) -> None:
    """Look at the file whenever something beside it changes, and now and then, so that the log is prompt."""
    import asyncio

    from watchfiles import awatch

    while True:
        await asyncio.to_thread(file.current)
        folder = file.path.parent
        if not folder.is_dir():
            await asyncio.sleep(1)
            continue
        try:
            async for _ in awatch(folder, recursive=False, rust_timeout=5000, yield_on_timeout=True, debounce=200):
                await asyncio.to_thread(file.current)
                if not folder.is_dir():
                    break
        except OSError as error:
            log.debug("watching %s failed: %s", folder, error)
            await asyncio.sleep(1)
