"""The daemon's configuration: one TOML file, each key also as an environment variable.

``TACID_INFER_ENGINE__MODEL`` is ``model`` in ``[engine]``; the environment wins. An unknown key is an error.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from ..engine import EngineSettings, Wish, check_socket_path
from ..errors import InvalidConfiguration

DEFAULT_FILE = Path("/etc/tacid-infer/config.toml")


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SocketSection(_Section):
    """Where agents reach the daemon. A socket passed by systemd (LISTEN_FDS) takes its place."""

    path: Path = Field(default=Path("/run/tacid-infer/agent.sock"), description="path of the agents' Unix socket")
    group: str = Field(default="tacid-agent", description="group that may connect; empty leaves it as it is")
    mode: str = Field(default="0660", pattern="^0?[0-7]{3}$", description="permissions of the socket, octal")


class EngineSection(_Section):
    """The engine that is launched and minded."""

    command: str | list[str] = Field(
        default="", description="llama-server and leading arguments; empty finds one (or the embedded)"
    )
    model: Path | None = Field(default=None, description="path of the GGUF file")
    socket: Path = Field(
        default=Path("/run/tacid-infer/engine.sock"), description="path of the engine's private Unix socket"
    )
    context_tokens: int = Field(default=4096, ge=256, description="context of one turn, in tokens")
    parallel: int = Field(default=1, ge=1, le=64, description="turns that the engine serves at once")
    threads: int = Field(default=0, ge=0, description="CPU threads; 0 leaves it to the engine")
    gpu_layers: int | None = Field(default=None, ge=0, description="layers to offload; unset leaves it to the engine")
    gpu: Wish = Field(
        default="optional",
        description="optional, expected (warns if no layer is on a GPU) or required (is not ready then)",
    )
    extra_args: list[str] = Field(default=[], description="further flags for llama-server")
    start_timeout: float = Field(default=600, gt=0, description="seconds in which the model must load")
    stop_timeout: float = Field(default=10, gt=0, description="seconds between SIGTERM and SIGKILL")
    health_interval: float = Field(default=10, gt=0, description="seconds between two looks at an idle engine")
    health_timeout: float = Field(default=10, gt=0, description="seconds that an idle engine has to answer")


class EndpointSection(_Section):
    """An engine of somebody else's, used in place of a launched one."""

    url: str = Field(default="", description="base url (http://, https://, or unix:/path); empty launches an engine")
    kind: Literal["local", "remote"] = Field(
        default="local", description="a local one is sent the grammar, a remote one is not"
    )
    honours_tools: bool = Field(default=False, description="a local one that reads tools (vLLM) is sent both")
    model: str = Field(default="", description="the model's name to ask for")
    api_key_file: Path | None = Field(default=None, description="file that holds the API key")


class AllowListSection(_Section):
    """The services that this machine has."""

    path: Path = Field(default=Path("/etc/tacid-system/services.json"), description="path of the allow-list")


class SamplingSection(BaseModel):
    """Defaults of a turn's sampling, under llama-server's own names; any other of its parameters may be added."""

    model_config = ConfigDict(extra="allow", frozen=True)

    temperature: float = Field(default=0.2, ge=0, description="sampling temperature")
    max_tokens: int = Field(default=1024, ge=1, description="tokens of one reply at most")


class LimitsSection(_Section):
    """Bounds on what a caller may ask."""

    body_bytes: int = Field(default=8 * 2**20, ge=1024, description="bytes of a request")
    tools: int = Field(default=512, ge=1, description="tools of a turn")
    schema_bytes: int = Field(default=2 * 2**20, ge=1024, description="bytes of one tool's schema")
    nesting: int = Field(default=200, ge=8, description="levels of JSON in a request")
    queue: int = Field(default=64, ge=0, description="turns that may wait for the engine")
    turn_seconds: float = Field(default=300, gt=0, description="seconds of a turn, waiting included")
    silence_seconds: float = Field(default=60, gt=0, description="seconds between two tokens")
    read_seconds: float = Field(default=30, gt=0, description="seconds in which a request must have come")
    write_seconds: float = Field(default=60, gt=0, description="seconds in which a caller must take some of its reply")
    connections: int = Field(default=256, ge=1, description="connections that may be open at once")
    drain_seconds: float = Field(default=20, ge=0, description="seconds that running turns have when the daemon stops")


class LogSection(_Section):
    """What is logged."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="least severe level that is logged"
    )


class Config(BaseSettings):
    """The whole configuration."""

    model_config = SettingsConfigDict(
        env_prefix="TACID_INFER_",
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
        nested_model_default_partial_update=True,
    )

    socket: SocketSection = SocketSection()
    engine: EngineSection = EngineSection()
    endpoint: EndpointSection = EndpointSection()
    allow_list: AllowListSection = AllowListSection()
    sampling: SamplingSection = SamplingSection()
    limits: LimitsSection = LimitsSection()
    log: LogSection = LogSection()

    @classmethod
    def settings_customise_sources(
        cls, settings_cls: type[BaseSettings], init_settings: PydanticBaseSettingsSource, *sources: Any, **named: Any
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment before the file."""
        file = TomlConfigSettingsSource(settings_cls, toml_file=_file.path)
        return (named["env_settings"], file)

    def engine_settings(self) -> EngineSettings:
        """How the engine is launched.

        Raises:
            InvalidConfiguration: there is no model, no engine, or a flag that contradicts ours.
        """
        section = self.engine
        if section.model is None:
            raise InvalidConfiguration("engine.model is not set: give the path of a GGUF file, or set endpoint.url")
        return EngineSettings(
            command=tuple(find_engine(section.command)),
            model=section.model,
            socket=section.socket,
            context_tokens=section.context_tokens,
            parallel=section.parallel,
            threads=section.threads,
            gpu_layers=section.gpu_layers,
            gpu=section.gpu,
            extra_args=tuple(section.extra_args),
            start_timeout=section.start_timeout,
            stop_timeout=section.stop_timeout,
            health_interval=section.health_interval,
            health_timeout=section.health_timeout,
        )


class _File:
    path: Path | None = None


_file = _File()


def load_config(path: Path | None = None) -> Config:
    """Read the configuration.

    Args:
        path: the file; None for the default one, if it is there.

    Raises:
        InvalidConfiguration: one line that names the file and the key.
    """
    if path is None:
        path = DEFAULT_FILE if DEFAULT_FILE.exists() else None
    elif not path.exists():
        raise InvalidConfiguration(f"there is no configuration file at {path}")
    _file.path = path
    where = str(path) if path else "the environment"
    try:
        config = Config()
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        key = ".".join(str(step) for step in first["loc"])
        what = "is not a key" if first["type"] == "extra_forbidden" else first["msg"]
        raise InvalidConfiguration(f"{where}: {key}: {what}", key=key) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidConfiguration(f"{where}: not TOML: {error}") from None
    except OSError as error:
        raise InvalidConfiguration(f"{where}: {error.strerror}") from None
    _refuse_unknown_environment()
    check_socket_path(config.socket.path, "socket.path")
    if config.endpoint.url and not config.endpoint.url.startswith(("http://", "https://", "unix:")):
        raise InvalidConfiguration(f"{where}: endpoint.url: must begin with http://, https:// or unix:")
    return config


def _refuse_unknown_environment() -> None:
    known = {"TACID_INFER_" + key.replace(".", "__").upper() for key, _, _ in describe_keys()}
    for name in os.environ:
        ours = name.startswith("TACID_INFER_") and "__" in name and not name.startswith("TACID_INFER_SAMPLING__")
        if ours and name.upper() not in known:
            raise InvalidConfiguration(f"the environment: {name} is not a key", key=name)


def describe_keys() -> Iterator[tuple[str, str, str]]:
    """Every key with its default and its meaning: what ``serve --help`` and the README list."""
    for section, field in Config.model_fields.items():
        model = field.annotation
        assert isinstance(model, type) and issubclass(model, BaseModel)
        for key, inner in model.model_fields.items():
            default = inner.default
            shown = "" if default is None or default == "" else str(default)
            yield f"{section}.{key}", shown, inner.description or ""


def find_engine(command: str | list[str]) -> list[str]:
    """The engine's command: the one given, else llama-server on PATH, else the embedded one.

    Raises:
        InvalidConfiguration: there is none.
    """
    if command:
        words = shlex.split(command) if isinstance(command, str) else command
        found = shutil.which(words[0])
        if found is None:
            raise InvalidConfiguration(f"engine.command: {words[0]} is not an executable file")
        return [found, *words[1:]]
    if found := shutil.which("llama-server"):
        return [found]
    from importlib.util import find_spec

    if find_spec("xllamacpp"):
        return [sys.executable, "-m", "tacid_infer.engine.embedded"]
    raise InvalidConfiguration(
        "engine.command: there is no llama-server on PATH, and no embedded engine (pip install 'tacid-infer[embedded]')"
    )
