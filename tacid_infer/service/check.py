"""Looks at everything that a start needs, and says what to do about each finding."""

from __future__ import annotations

import grp
import os
import pwd
import re
import stat
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ..engine.asking import ask_engine
from ..engine.gpu import listed_gpus
from ..engine.process import in_words
from ..errors import InvalidConfiguration
from .allow_list import AllowListFile
from .config import Config, find_engine, load_config

_VERSION_TIMEOUT = 30.0
_LFS = b"version https://git-lfs"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        what: the thing.
        ok: whether a start may rely on it.
        message: how it stands.
        advice: what to do; empty if nothing.
    """

    what: str
    ok: bool
    message: str
    advice: str = ""

    def to_json(self) -> dict[str, Any]:
        """For a program."""
        return asdict(self)


def check_installation(path: Path | None = None) -> list[Finding]:
    """Look at the configuration and all that it names."""
    try:
        config = load_config(path)
    except InvalidConfiguration as error:
        advice = "correct what is named; tacid-infer serve --help lists every key"
        return [Finding("configuration", False, error.message, advice)]
    return [Finding("configuration", True, "valid"), *_findings(config)]


def _findings(config: Config) -> Iterator[Finding]:
    if config.endpoint.url:
        yield _endpoint(config)
    else:
        yield _engine(config)
        yield from _gpu(config)
        yield check_model(config.engine.model)
        yield _folder("engine.socket", config.engine.socket)
    yield _folder("socket.path", config.socket.path)
    yield _group(config.socket.group)
    current = AllowListFile(config.allow_list.path).current()
    advice = (
        "" if current.narrows and current.state == "ok" else 'write {"services": [...]} to it to hold service names'
    )
    yield Finding("allow-list", current.state != "degraded", current.reason, advice)


def _endpoint(config: Config) -> Finding:
    endpoint = config.endpoint
    if endpoint.api_key_file is not None and not os.access(endpoint.api_key_file, os.R_OK):
        return Finding(
            "endpoint",
            False,
            f"cannot read endpoint.api_key_file: {endpoint.api_key_file}",
            "check path and permissions",
        )
    return Finding("endpoint", True, f"{endpoint.url} ({endpoint.kind})")


def _engine(config: Config) -> Finding:
    what, install = "engine", "install llama.cpp, or set engine.command"
    try:
        command = find_engine(config.engine.command)
    except InvalidConfiguration as error:
        return Finding(what, False, error.message, install)
    try:
        config.engine_settings() if config.engine.model else None
    except InvalidConfiguration as error:
        return Finding(what, False, error.message, "take the flag out of engine.extra_args")
    shown = " ".join(command)
    try:
        done = ask_engine(command, "--version", timeout=_VERSION_TIMEOUT)
    except subprocess.TimeoutExpired:
        return Finding(what, False, f"{shown} --version does not come to an end", install)
    except OSError as error:
        return Finding(what, False, f"{shown}: {error.strerror}", install)
    lines = (done.stdout + done.stderr).decode("utf-8", "replace").split("\n")
    if done.returncode:
        last = next((line for line in reversed(lines) if line.strip()), "")
        said = f"; it says: {last}" if last else ""
        return Finding(what, False, f"{shown} --version ends with {in_words(done.returncode)}{said}", install)
    version = next((line for line in lines if "version" in line), lines[0]).strip()
    return Finding(what, True, f"{shown}: {version}")


def _gpu(config: Config) -> Iterator[Finding]:
    """Whether the engine sees a GPU; nothing if none is wanted, or if the engine cannot be launched at all."""
    what = "gpu"
    try:
        settings = config.engine_settings()
    except InvalidConfiguration:
        return
    wanted = settings.wanted_gpu()
    if not wanted:
        return
    try:
        done = ask_engine(settings.command, "--list-devices", timeout=_VERSION_TIMEOUT)
    except (OSError, subprocess.TimeoutExpired):
        return
    gpus = listed_gpus(done.stdout.decode("utf-8", "replace"))
    if gpus is None:
        yield Finding(what, True, f"{wanted.because}; the engine does not list its devices")
    elif gpus:
        yield Finding(what, True, f"{wanted.because}; the engine lists {'; '.join(gpus)}")
    else:
        advice = "take an engine built for the GPU, install the driver, and let the daemon's user open the device"
        yield Finding(what, not wanted.required, f"{wanted.because}, and the engine lists none", advice)


def _group(group: str) -> Finding:
    what = "socket.group"
    if not group:
        return Finding(what, True, "left as it is")
    try:
        grp.getgrnam(group)
    except KeyError:
        return Finding(
            what,
            False,
            f"there is no group {group!r}",
            f"groupadd --system {group}, or set socket.group to another or to nothing",
        )
    return Finding(what, True, f"{group} may connect")


def check_model(path: Path | None) -> Finding:
    """Whether a model file can be loaded: readable, and GGUF by its header."""
    if path is None:
        advice = "set it to the path of a GGUF file, or set endpoint.url"
        return Finding("model", False, "engine.model is not set", advice)
    finding = _model(path)
    # What one user sees, another may not: a home that the sandbox hides, a file of another mode.
    return finding if finding.ok else replace(finding, message=f"{finding.message} (as user {_user()})")


def _user() -> str:
    """Who looks, by name and number."""
    number = os.getuid()
    try:
        return f"{pwd.getpwuid(number).pw_name}, {number}"
    except KeyError:
        return str(number)


def _model(path: Path) -> Finding:
    what = "model"
    try:
        with path.open("rb") as file:
            head = file.read(64)
    except IsADirectoryError:
        return Finding(what, False, f"{path} is a directory", "name the GGUF file itself")
    except OSError as error:
        denied = isinstance(error, PermissionError)
        advice = "let the daemon's user read it: chmod o+r, and o+x on the folders above it" if denied else ""
        return Finding(what, False, f"{path}: {error.strerror}", advice or "check the path")
    if not head:
        return Finding(what, False, f"{path} is empty", "download it again")
    if head.startswith(_LFS):
        return Finding(what, False, f"{path} is a Git LFS pointer, not the model", "git lfs pull")
    if len(head) < 24 or head[:4] != b"GGUF":
        return Finding(what, False, f"{path} is no GGUF file", "convert the model to GGUF")
    version, tensors = struct.unpack("<IQ", head[4:16])
    if version >> 16:
        return Finding(what, False, f"{path} is a GGUF file of the other byte order", "convert it for this machine")
    if gone := _missing_part(path):
        return Finding(what, False, f"{path} is one part of a model, and {gone} is missing", "bring every part")
    if version not in (2, 3) or tensors == 0:
        return Finding(what, False, f"{path}: GGUF version {version} with {tensors} tensors", "convert it anew")
    return Finding(what, True, f"{path}: GGUF version {version}, {tensors} tensors, {path.stat().st_size} bytes")


def _missing_part(path: Path) -> Path | None:
    """The first part that is not there, of a model that is split as llama.cpp splits it."""
    split = re.fullmatch(r"(.*-)\d{5}-of-(\d{5})\.gguf", path.name)
    if split is None:
        return None
    parts = (path.with_name(f"{split[1]}{number:05}-of-{split[2]}.gguf") for number in range(1, int(split[2]) + 1))
    return next((part for part in parts if not part.exists()), None)


def _folder(what: str, path: Path) -> Finding:
    folder = path.parent
    if not folder.is_dir():
        return Finding(
            what, False, f"the folder {folder} does not exist", "create it, or let systemd's RuntimeDirectory"
        )
    if not os.access(folder, os.W_OK):
        return Finding(what, False, f"no permission to write in {folder}", "run as the service's user")
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return Finding(what, True, f"{path} is free")
    if not stat.S_ISSOCK(mode):
        return Finding(what, False, f"{path} exists, and is no socket", "move it, or set another path")
    return Finding(what, True, f"{path} is a socket; a running daemon keeps it, a stale one is replaced")
