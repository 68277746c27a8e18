"""A GPU that was asked for and is not there, as an operator meets it: status, journal, metrics, systemd, check (C1, C2)."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest

from ..engine.test_gpu import ON_GPU, WITHOUT
from .running import Daemon, metrics, shown, until
from .test_systemd import Manager, told

ASKED = {
    "layers": {"engine.gpu_layers": 99},
    "flag": {"engine.extra_args": ["-ngl", "99"]},
    "key": {"engine.gpu": "expected"},
}


@pytest.mark.parametrize("asked", ASKED)
def test_on_the_cpu_though_a_gpu_was_asked_for(
    folder: Path, tiny_model: Path, engine_command: tuple[str, ...], asked: str
) -> None:
    """A real engine: ready, with one warning, and a state that monitoring sees."""
    manager = Manager(str(folder / "notify"))
    with Daemon(folder, tiny_model, engine_command, settings=ASKED[asked], environment=told(manager)) as daemon:
        words = "a GPU is expected (engine.gpu)" if asked == "key" else "99 GPU layers were asked for"
        gpu = daemon.status()["engine"]["gpu"]
        assert gpu["missing"] and gpu["layers"] == 0 and not gpu["required"]
        assert gpu["reason"].startswith(f"{words}, and the engine ") and "it runs on the CPU" in gpu["reason"]
        assert daemon.status()["state"] == "ready" and daemon.turn().status_code == 200
        assert f"missing: {gpu['reason']}" in shown(daemon)
        warnings = [line for line in daemon.log().splitlines() if " WARNING tacid_infer.engine: " in line]
        assert len(warnings) == 1 and gpu["reason"] in warnings[0]
        until(lambda: any(line.startswith("STATUS=ready: ") and gpu["reason"] in line for line in manager.lines()))
        found = metrics(daemon)
        assert found["tacid_engine_gpu_layers"] == 0 and found["tacid_engine_gpu_missing"] == 1


def test_nothing_is_said_where_nothing_was_asked_for(daemon: Daemon) -> None:
    gpu = daemon.status()["engine"]["gpu"]
    assert not gpu["wanted"] and not gpu["missing"] and gpu["layers"] in (None, 0)
    assert metrics(daemon)["tacid_engine_gpu_missing"] == 0
    assert "missing" not in shown(daemon)
    assert " WARNING tacid_infer.engine: " not in daemon.log()


def test_the_required_gpu_that_comes_after_the_start(folder: Path, tiny_model: Path) -> None:
    manager, said = Manager(str(folder / "notify")), folder / "said"
    said.write_text(WITHOUT)
    settings = {"engine.gpu": "required"}
    with Daemon.on_standin(
        folder, tiny_model, f"prints:{said}", settings=settings, environment=told(manager), wait=False
    ) as daemon:
        until(lambda: manager.heard("STATUS=degraded: engine: engine not used: a GPU is required (engine.gpu), and"))
        until(lambda: metrics(daemon).get("tacid_engine_restarts_total[no_gpu]", 0) >= 2)
        assert not manager.heard("READY=1") and daemon.http.get("/healthz").status_code == 503
        assert metrics(daemon)["tacid_engine_gpu_missing"] == 1
        assert "missing: a GPU is required" in shown(daemon)
        assert "WARNING tacid_infer.engine: waiting: engine not used: a GPU is required" in daemon.log()
        said.write_text(ON_GPU)
        daemon.wait_ready()
        until(lambda: manager.heard("READY=1"))
        found = metrics(daemon)
        assert (found["tacid_engine_gpu_layers"], found["tacid_engine_model_layers"]) == (3, 3)
        assert found["tacid_engine_gpu_missing"] == 0
        assert "the engine reports 3 of 3 layers on a GPU" in shown(daemon)
        assert "INFO tacid_infer.engine: ready: the engine reports 3 of 3 layers on a GPU" in daemon.log()


def test_a_silent_engine_is_unknown(folder: Path, tiny_model: Path) -> None:
    with Daemon.on_standin(folder, tiny_model, "takes:0", settings={"engine.gpu_layers": 99}) as daemon:
        assert math.isnan(metrics(daemon)["tacid_engine_gpu_layers"])
        assert metrics(daemon)["tacid_engine_gpu_missing"] == 1
        assert daemon.status()["engine"]["gpu"]["layers"] is None
        assert "the engine does not say that any layer is on a GPU" in shown(daemon)


@pytest.mark.parametrize(("gpu", "code"), [("optional", 0), ("expected", 0), ("required", 1)])
def test_check_looks_for_the_gpu(
    folder: Path, tiny_model: Path, engine_command: tuple[str, ...], gpu: str, code: int
) -> None:
    config = folder / "c.toml"
    command = ", ".join(f'"{word}"' for word in engine_command)
    config.write_text(
        f'[engine]\nmodel = "{tiny_model}"\ncommand = [{command}]\nsocket = "{folder}/e.sock"\ngpu = "{gpu}"\n'
        f'[socket]\npath = "{folder}/a.sock"\ngroup = ""\n[allow_list]\npath = "{folder}/services.json"\n'
    )
    done = subprocess.run(
        [sys.executable, "-m", "tacid_infer", "check", "--config", str(config)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code, done.stdout
    assert (f"a GPU is {gpu} (engine.gpu), and the engine lists none" in done.stdout) == (gpu != "optional")
