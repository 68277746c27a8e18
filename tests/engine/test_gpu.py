"""Whether the model is on a GPU: what was asked for, what a real engine without one reports, and what follows (C1, C2).

No machine of these tests has a GPU: an engine that has one is the stand-in, with the lines that llama-server writes.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tacid_infer.engine import EngineSettings, State
from tacid_infer.engine.gpu import PlacementReader, Wish, listed_gpus, verbose_variable, wanted
from tacid_infer.errors import EngineStarting, EngineUnavailable, InvalidConfiguration

from .test_supervisor import Minded, complete, request, standin, until

Run = Callable[[Any], Any]

ON_GPU = """\
load_backend: loaded CUDA backend from /usr/lib/libggml-cuda.so
0.00.011.686 I load_tensors: loading model tensors, this can take a while... (load_mode = mmap)
0.00.011.700 I load_tensors: offloading output layer to GPU
0.00.011.700 I load_tensors: offloading 2 repeating layers to GPU
0.00.011.700 I load_tensors: offloaded 3/3 layers to GPU
0.00.011.851 I load_tensors:   CPU_Mapped model buffer size =     0.11 MiB
0.00.011.851 I load_tensors:        CUDA0 model buffer size =     1.50 MiB
"""
WITHOUT = "warning: no usable GPU found, --gpu-layers option will be ignored\n"


@pytest.fixture
def real(tiny_model: Path, engine_command: tuple[str, ...], folder: Path) -> EngineSettings:
    return EngineSettings(engine_command, tiny_model, folder / "e.sock", threads=1)


@pytest.mark.parametrize(
    ("lines", "layers", "total"),
    [
        (ON_GPU, 3, 3),
        ("load_tensors: offloaded 0/31 layers to GPU\nload_tensors:   CPU_Mapped model buffer size = 1.00 MiB", 0, 31),
        ("llm_load_tensors: offloaded 20/33 layers to GPU\nllm_load_tensors:      ROCm0 buffer size = 7.00 MiB", 20, 33),
        (WITHOUT, 0, None),
        ("warning: not compiled with GPU offload support, --gpu-layers option will be ignored", 0, None),
        ("load_tensors:   CPU_Mapped model buffer size =     0.11 MiB", 0, None),
        # An engine that can offload over the network says so, whatever becomes of the weights.
        ("load_tensors: offloaded 31/31 layers to GPU\nload_tensors:  CUDA_Host model buffer size = 9.00 MiB", 0, 31),
        # A draft model, before and after.
        ("load_tensors: offloaded 0/5 layers to GPU\nload_tensors:  CPU model buffer size = 1.00 MiB\n"
         + "load_tensors: offloaded 31/31 layers to GPU\nload_tensors:  Vulkan0 model buffer size = 9.00 MiB", 31, 31),
        ("load_tensors: offloaded 31/31 layers to GPU\nload_tensors:  Vulkan0 model buffer size = 9.00 MiB\n"
         "load_tensors: offloaded 0/5 layers to GPU\nload_tensors:  CPU model buffer size = 1.00 MiB", 31, 31),
        ("srv    load_model: loading model '/m.gguf'\nsrv  llama_server: model loaded", None, None),
        ("", None, None),
    ],
)  # fmt: skip
def test_what_the_engine_reports(lines: str, layers: int | None, total: int | None) -> None:
    reader = PlacementReader()
    for line in lines.splitlines():
        reader.read(line)
    placement = reader.placement(loaded=True)
    assert (placement.layers, placement.total) == (layers, total)


def test_the_buffers_are_judged_when_all_are_named() -> None:
    reader = PlacementReader()
    for line in ON_GPU.splitlines()[:-1]:
        reader.read(line)
    assert reader.placement(loaded=False).layers == 3


@pytest.mark.parametrize(
    ("wish", "arguments", "variable", "because"),
    [
        ("optional", "", None, ""),
        ("optional", "-ngl auto", None, ""),
        ("optional", "-ngl -1", None, ""),
        ("optional", "-ngl 0", "99", ""),
        ("optional", "-ngl 99", None, "99 GPU layers were asked for"),
        ("optional", "--gpu-layers all", None, "all GPU layers were asked for"),
        ("optional", "--n-gpu-layers 0 --n-gpu-layers=1", None, "one GPU layer was asked for"),
        ("optional", "", "12", "12 GPU layers were asked for"),
        ("optional", "-ngl", None, ""),
        ("expected", "", None, "a GPU is expected (engine.gpu)"),
        ("expected", "-ngl 0", None, ""),
        ("required", "-ngl 99", None, "a GPU is required (engine.gpu)"),
    ],
)
def test_what_was_asked_for(wish: Wish, arguments: str, variable: str | None, because: str) -> None:
    environment = {} if variable is None else {"LLAMA_ARG_N_GPU_LAYERS": variable}
    found = wanted(wish, ["llama-server", *arguments.split()], environment)
    assert found.because == because and found.required == (wish == "required")


def test_no_layer_on_a_required_gpu_is_refused(real: EngineSettings) -> None:
    with pytest.raises(InvalidConfiguration, match="0 GPU layers"):
        dataclasses.replace(real, gpu="required", gpu_layers=0)


def test_the_list_of_devices() -> None:
    assert listed_gpus("Available devices:\n  (none)\n") == []
    assert listed_gpus("Available devices:\n  BLAS: OpenBLAS (0 MiB, 0 MiB free)\n") == []
    listed = "load_backend: loaded\nAvailable devices:\n  Vulkan0: AMD (8176 MiB, 8176 MiB free)\nbye\n"
    assert listed_gpus(listed) == ["Vulkan0: AMD (8176 MiB, 8176 MiB free)"]
    assert listed_gpus("error: invalid argument: --list-devices") is None


@pytest.mark.parametrize(
    ("said", "variable"),
    [
        ("version: 0.7.0 (build 11669, commit Debian)", "LLAMA_ARG_LOG_VERBOSITY"),
        ("version: 9842 (abc)", "LLAMA_ARG_LOG_VERBOSITY"),
        ("version: 9284 (afcda09d1)", "LLAMA_LOG_VERBOSITY"),
        ("version: 9150 (abc)", "LLAMA_ARG_LOG_VERBOSITY"),
        ("", "LLAMA_ARG_LOG_VERBOSITY"),
    ],
)
def test_how_builds_are_made_to_tell(said: str, variable: str) -> None:
    assert verbose_variable([sys.executable, "-c", f"import sys; print({said!r}, file=sys.stderr)"]) == variable
    assert verbose_variable(["/no/such/engine"]) == "LLAMA_ARG_LOG_VERBOSITY"


def warnings(minded: Minded) -> list[str]:
    return [event.message for event in minded.events if event.severity < 6]


def test_a_real_engine_without_a_gpu_is_used_and_said_to_be_without(real: EngineSettings, run: Run) -> None:
    async def work() -> None:
        async with Minded(dataclasses.replace(real, gpu_layers=99)) as minded:
            assert (await complete(minded.engine, request('root ::= "x"'))).content == "x"
            (warning,) = warnings(minded)
            assert warning.startswith("99 GPU layers were asked for, and the engine ")
            assert warning.endswith("it runs on the CPU")
            gpu = minded.supervisor.status()["gpu"]
            assert gpu == {"wanted": True, "required": False, "missing": True, "layers": 0, "model_layers": None,
                           "reason": warning}  # fmt: skip
            minded.supervisor.suspect()
            await minded.supervisor.wait_ready(20)
            assert minded.supervisor.gpu_missing == warning
            # What it was made to say beyond the loading does not fill the journal.
            assert not [line for line in minded.lines if line.level == logging.INFO and "print_timing" in line.text]

    run(work())


def test_a_real_engine_that_may_do_as_it_likes_is_not_missed(real: EngineSettings, run: Run) -> None:
    async def work() -> None:
        async with Minded(real) as minded:
            await minded.supervisor.wait_ready(20)
            assert not warnings(minded) and not minded.supervisor.status()["gpu"]["missing"]

    run(work())


@pytest.mark.parametrize("asked", ["expected", "variable"])
def test_other_ways_to_want_one(asked: str, real: EngineSettings, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    if asked == "variable":
        monkeypatch.setenv("LLAMA_ARG_N_GPU_LAYERS", "7")
    settings = dataclasses.replace(real, gpu="expected" if asked == "expected" else "optional")

    async def work() -> None:
        async with Minded(settings) as minded:
            await minded.supervisor.wait_ready(20)
            (warning,) = warnings(minded)
            assert ("a GPU is expected" if asked == "expected" else "7 GPU layers") in warning
            assert minded.supervisor.status()["gpu"]["layers"] == 0
            environment = Path(f"/proc/{minded.supervisor.status()['pid']}/environ").read_bytes()
            assert (b"LLAMA_ARG_N_GPU_LAYERS=7" in environment) == (asked == "variable")

    run(work())


def test_a_real_engine_without_the_required_gpu_is_never_used(real: EngineSettings, run: Run) -> None:
    async def work() -> None:
        async with Minded(dataclasses.replace(real, gpu="required")) as minded:
            await until(lambda: minded.supervisor.state is State.WAITING)
            with pytest.raises(EngineStarting, match="engine not used: a GPU is required"):
                await minded.supervisor.wait_ready(0)
            await until(lambda: minded.supervisor.state is State.FAILING, 30)
            with pytest.raises(EngineUnavailable, match="a GPU is required"):
                await minded.supervisor.wait_ready(2)
            assert set(minded.supervisor.restarts) == {"no_gpu"} and minded.supervisor.restarts["no_gpu"] >= 5
            assert State.READY not in {event.state for event in minded.events}
            assert {event.cause for event in minded.events} == {None, "no_gpu"}

    run(work())


def test_the_required_gpu_that_comes_later(folder: Path, run: Run) -> None:
    said = folder / "said"
    said.write_text(WITHOUT)

    async def work() -> None:
        async with Minded(standin(folder, f"prints:{said}", gpu="required")) as minded:
            await until(lambda: minded.supervisor.restarts["no_gpu"] >= 2)
            assert minded.supervisor.status()["gpu"]["missing"]
            said.write_text(ON_GPU)
            await minded.supervisor.wait_ready(20)
            assert minded.supervisor.reason == "the engine reports 3 of 3 layers on a GPU"
            gpu = minded.supervisor.status()["gpu"]
            assert (gpu["layers"], gpu["model_layers"], gpu["missing"]) == (3, 3, False)

    run(work())


def test_it_is_seen_before_the_weights_are_read(folder: Path, run: Run) -> None:
    said = folder / "said"
    said.write_text(WITHOUT)

    async def work() -> None:
        settings = standin(folder, "never-healthy", start_timeout=60)
        settings = dataclasses.replace(
            settings, gpu="required", command=("sh", "-c", f'cat {said}; exec "$@"', "sh", *settings.command)
        )
        async with Minded(settings) as minded:
            await until(lambda: minded.supervisor.restarts["no_gpu"] >= 1)

    run(work())


@pytest.mark.parametrize("wish", ["expected", "required"])
def test_silence_is_no_gpu(folder: Path, run: Run, wish: Wish) -> None:
    async def work() -> None:
        async with Minded(standin(folder, "says:x", gpu=wish)) as minded:
            await until(lambda: bool(warnings(minded)))
            assert "does not say that any layer is on a GPU" in warnings(minded)[0]
            assert (minded.supervisor.state is State.READY) == (wish == "expected")

    run(work())


def test_a_gpu_that_is_there_is_no_matter_for_a_warning(folder: Path, run: Run) -> None:
    said = folder / "said"
    said.write_text(ON_GPU)

    async def work() -> None:
        async with Minded(standin(folder, f"prints:{said}", gpu_layers=99)) as minded:
            await asyncio.wait_for(minded.supervisor.wait_ready(20), 20)
            assert not warnings(minded)

    run(work())
