"""The agents' socket: one that systemd passes, or one of our own."""

from __future__ import annotations

import contextlib
import grp
import os
import socket
from pathlib import Path

from ..engine.process import clear_socket
from ..errors import InvalidConfiguration
from .config import SocketSection

_FIRST_PASSED = 3


def passed_socket() -> socket.socket | None:
    """The socket of socket activation (sd_listen_fds(3)), if there is one."""
    if os.environ.get("LISTEN_PID") != str(os.getpid()) or os.environ.get("LISTEN_FDS", "0") == "0":
        return None
    passed = socket.socket(fileno=_FIRST_PASSED)
    passed.setblocking(False)
    return passed


async def own_socket(section: SocketSection) -> socket.socket:
    """A listening socket at the configured path, with its group and mode. A live one is never taken over.

    Raises:
        InvalidConfiguration: something else stands there, or the group is unknown.
    """
    path = section.path
    await clear_socket(path, "socket.path")
    own = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # Nobody may connect between bind and chown: no permission at all until all of it is set.
        before = os.umask(0o777)
        try:
            own.bind(str(path))
        finally:
            os.umask(before)
        if section.group:
            _give_to_group(path, section.group)
        path.chmod(int(section.mode, 8))
        own.listen(128)
        own.setblocking(False)
    except OSError as error:
        own.close()
        raise InvalidConfiguration(f"socket.path: {path}: {error.strerror}") from None
    except InvalidConfiguration:
        own.close()
        remove_socket(path)
        raise
    return own


def _give_to_group(path: Path, group: str) -> None:
    try:
        number = grp.getgrnam(group).gr_gid
    except KeyError:
        raise InvalidConfiguration(
            f"socket.group: there is no group {group!r}: create it, or set socket.group to another or to nothing"
        ) from None
    try:
        os.chown(path, -1, number)
    except PermissionError:
        raise InvalidConfiguration(f"socket.group: no permission to give {path} to the group {group!r}") from None


def remove_socket(path: Path) -> None:
    """Remove our own socket's file."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
