"""The GPU: what was asked for, and what llama-server says that it got.

llama-server runs on the CPU, and says so in its log alone, wherever it cannot have the GPU that it was asked for.
Source: llama.cpp, ``common/arg.cpp`` (--n-gpu-layers), ``src/llama-model.cpp`` (load_tensors), ``common/log.cpp``.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from .asking import ask_engine

LAYERS_VARIABLE = "LLAMA_ARG_N_GPU_LAYERS"
"""llama-server's own variable for the layers to offload."""

Wish = Literal["optional", "expected", "required"]
"""What the operator says of the GPU: it may be missing, is missed if it is, or the engine is not used without it."""

_FLAGS = ("-ngl", "--gpu-layers", "--n-gpu-layers")
_VERSION_TIMEOUT = 10.0

_OFFLOADED = re.compile(r"offloaded (\d+)/(\d+) layers to GPU")
_NO_GPU = re.compile(r"no usable GPU found|not compiled with GPU offload support")
_BUFFER = re.compile(r"load_tensors: +(\S+) (?:model )?buffer size")
_OF_THE_HOST = re.compile(r"CPU|AMX|BLAS|.*_Host$")
_DEVICES = re.compile(r"Available devices:\n((?:[ \t]+\S.*(?:\n|$))*)")
_NOT_A_GPU = re.compile(r"\(none\)|CPU|BLAS")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Whether a GPU is wanted.

    Attributes:
        because: the operator's words for it, as half a sentence; empty if nothing was said.
        required: whether an engine without it is not to be used.
    """

    because: str
    required: bool = False

    def __bool__(self) -> bool:
        return bool(self.because)


def wanted(wish: Wish, command: Sequence[str], environment: Mapping[str, str]) -> Wanted:
    """What the configuration, the engine's command line and its environment say together.

    ``auto`` layers are the engine's own default, and no wish; 0 layers are the wish to do without.
    """
    layers = _asked_layers(command, environment)
    if layers == "0":
        return Wanted("")
    if wish != "optional":
        return Wanted(f"a GPU is {wish} (engine.gpu)", required=wish == "required")
    if layers == "all" or layers.isdecimal():
        return Wanted("one GPU layer was asked for" if layers == "1" else f"{layers} GPU layers were asked for")
    return Wanted("")


def _asked_layers(command: Sequence[str], environment: Mapping[str, str]) -> str:
    """The value that llama-server takes: the last flag's, else the variable's; empty if there is none."""
    found = environment.get(LAYERS_VARIABLE, "")
    for at, word in enumerate(command):
        flag, equals, value = word.partition("=")
        if flag in _FLAGS:
            found = value if equals else "".join(command[at + 1 : at + 2])
    return found


@dataclass(frozen=True, slots=True)
class Placement:
    """Where an engine says that its model is.

    Attributes:
        layers: layers on a GPU; None if it does not say.
        total: layers of the model; None if it does not say.
        said: the engine's own finding, as half a sentence.
    """

    layers: int | None = None
    total: int | None = None
    said: str = "the engine does not say that any layer is on a GPU"

    def lacks(self, wanted: Wanted) -> str:
        """In one sentence, that a GPU is wanted and not reported; empty if all is well."""
        if not wanted or self.layers:
            return ""
        return f"{wanted.because}, and {self.said}"


class PlacementReader:
    """Reads it out of the lines that the engine writes while it loads."""

    def __init__(self) -> None:
        self._no_gpu = False
        self._layers: int | None = None
        self._total = 0
        self._of_the_model = True
        self._buffers: set[str] = set()

    def read(self, line: str) -> None:
        """Take one line."""
        if _NO_GPU.search(line):
            self._no_gpu = True
        elif found := _OFFLOADED.search(line):
            layers, total = map(int, found.groups())
            # A draft model, loaded beside it, has fewer.
            self._of_the_model = total >= self._total
            if self._of_the_model:
                self._layers, self._total = layers, total
                self._buffers.clear()
        elif self._of_the_model and (found := _BUFFER.search(line)):
            self._buffers.add(found[1])

    def placement(self, *, loaded: bool) -> Placement:
        """What is known by now.

        Args:
            loaded: whether the model is loaded, so that every buffer has been named.
        """
        total = self._total or None
        # With remote devices or none, "offloaded 31/31" is said though no weight leaves the host's memory.
        on_the_host = bool(self._buffers) and all(_OF_THE_HOST.match(name) for name in self._buffers)
        if self._no_gpu:
            return Placement(0, total, "the engine finds no usable GPU: it runs on the CPU")
        if self._layers == 0 or (on_the_host and (loaded or self._layers is None)):
            return Placement(0, total, "the engine reports no layer on a GPU: it runs on the CPU")
        if self._layers is None:
            return Placement()
        return Placement(self._layers, total, f"the engine reports {self._layers} of {total} layers on a GPU")


def verbose_variable(command: Sequence[str]) -> str:
    """The variable that makes this engine tell where the model is, if set to 4. Blocks while it says its version.

    Since build 9151 that is told at verbosity 4 only, which 9360 and later take from another variable than those
    between. Builds before 9151 tell it unasked, and would take 4 from the earlier variable as a wish for every token.
    """
    try:
        done = ask_engine(command, "--version", timeout=_VERSION_TIMEOUT)
    except (OSError, subprocess.TimeoutExpired):
        return "LLAMA_ARG_LOG_VERBOSITY"
    found = re.search(rb"version: (\d+) \(", done.stdout + done.stderr)
    return "LLAMA_LOG_VERBOSITY" if found and 9151 <= int(found[1]) < 9360 else "LLAMA_ARG_LOG_VERBOSITY"


def listed_gpus(text: str) -> list[str] | None:
    """The GPUs in what ``--list-devices`` prints; None if it is no such list."""
    found = _DEVICES.search(text)
    if found is None:
        return None
    devices = [line.strip() for line in found[1].splitlines()]
    return [device for device in devices if not _NOT_A_GPU.match(device)]
