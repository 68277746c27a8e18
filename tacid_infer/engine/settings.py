"""How the engine is launched."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ..errors import InvalidConfiguration
from .gpu import Wanted, Wish, wanted

LONGEST_SOCKET_PATH = 107
"""Bytes of a Unix socket's path (unix(7): ``sun_path``, with room for the final NUL)."""

_OURS = {
    "--host": "the engine listens on its private socket only",
    "--port": "the engine listens on no TCP port",
    "--path": "the engine serves no files",
    "--model": "set engine.model instead",
    "-m": "set engine.model instead",
    "--model-url": "the model is a local file",
    "--hf-repo": "the model is a local file",
    "-hf": "the model is a local file",
    "--jinja": "prompts are assembled under the forced ChatML template",
    "--no-jinja": "it is always set",
    "--chat-template": "the template is always ChatML",
    "--chat-template-file": "the template is always ChatML",
    "--grammar": "the grammar is sent with each turn, never server-wide",
    "--grammar-file": "the grammar is sent with each turn, never server-wide",
    "--json-schema": "the grammar is sent with each turn, never server-wide",
    "-j": "the grammar is sent with each turn, never server-wide",
    "--json-schema-file": "the grammar is sent with each turn, never server-wide",
    "-jf": "the grammar is sent with each turn, never server-wide",
    "--api-key": "the engine's socket is private",
    "--api-key-file": "the engine's socket is private",
    "--ctx-size": "set engine.context_tokens instead",
    "-c": "set engine.context_tokens instead",
    "--parallel": "set engine.parallel instead",
    "-np": "set engine.parallel instead",
}


def check_socket_path(path: Path, what: str) -> None:
    """Refuse a socket path that the kernel would refuse, while the reason can still be said.

    Raises:
        InvalidConfiguration: names the length and the limit.
    """
    length = len(str(path).encode())
    if length > LONGEST_SOCKET_PATH:
        raise InvalidConfiguration(
            f"{what}: the socket path {path} is {length} bytes long; the limit is {LONGEST_SOCKET_PATH}"
        )


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """How llama-server is launched.

    Attributes:
        command: the program and its leading arguments; llama-server, or what takes its flags.
        model: path of the GGUF file.
        socket: path of the engine's private Unix socket.
        context_tokens: context size of one slot, in tokens.
        parallel: slots, that is, turns at once.
        threads: CPU threads; 0 leaves the choice to the engine.
        gpu_layers: layers to offload; None leaves the choice to the engine.
        gpu: whether the engine is missed, or not used, without a GPU.
        extra_args: further flags; those that contradict the launcher's are refused.
        start_timeout: seconds until the model must be loaded.
        stop_timeout: seconds between SIGTERM and SIGKILL.
        health_interval: seconds between two looks at an idle engine.
        health_timeout: seconds that an idle engine has to answer.
    """

    command: tuple[str, ...]
    model: Path
    socket: Path
    context_tokens: int = 4096
    parallel: int = 1
    threads: int = 0
    gpu_layers: int | None = None
    gpu: Wish = "optional"
    extra_args: tuple[str, ...] = ()
    start_timeout: float = 600.0
    stop_timeout: float = 10.0
    health_interval: float = 10.0
    health_timeout: float = 10.0

    def __post_init__(self) -> None:
        check_socket_path(self.socket, "engine.socket")
        for argument in self.extra_args:
            flag = argument.partition("=")[0]
            if flag in _OURS:
                raise InvalidConfiguration(f"engine.extra_args: {argument} is refused: {_OURS[flag]}", flag=flag)
        if self.gpu == "required" and not self.wanted_gpu():
            raise InvalidConfiguration('engine.gpu is "required", and 0 GPU layers are asked for: take one of them out')

    def wanted_gpu(self) -> Wanted:
        """Whether a GPU is wanted, by ``gpu``, by the number of layers, or by llama-server's own variable for it."""
        return wanted(self.gpu, self.command_line(), os.environ)

    def command_line(self) -> list[str]:
        """The full command line: only flags that old and new builds of llama-server share."""
        line = [*self.command, "--model", str(self.model), "--host", str(self.socket)]
        line += ["--no-jinja", "--chat-template", "chatml"]
        line += ["--ctx-size", str(self.context_tokens * self.parallel), "--parallel", str(self.parallel)]
        if self.threads:
            line += ["--threads", str(self.threads)]
        if self.gpu_layers is not None:
            line += ["--n-gpu-layers", str(self.gpu_layers)]
        return [*line, *self.extra_args]
