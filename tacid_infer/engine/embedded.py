"""llama-server's flags over PyPI's xllamacpp, which carries llama.cpp's own server, for a machine without llama-server.

``python -m tacid_infer.engine.embedded --model M.gguf --host /path/engine.sock ...``. Only the flags that the launcher
passes, and the common ones; any other is refused, as llama-server refuses it. Ends on SIGTERM.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

from .gpu import LAYERS_VARIABLE


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        sys.exit(f"error: {message}")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="embedded", description="llama.cpp's server, in this process.", allow_abbrev=False)
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    parser.add_argument("--list-devices", action="store_true", help="print the devices but the CPU, and exit")
    parser.add_argument("-m", "--model", help="path of the GGUF file")
    parser.add_argument("--host", default="127.0.0.1", help="address, or path of a Unix socket that ends in .sock")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("-c", "--ctx-size", type=int, default=4096)
    parser.add_argument("-np", "--parallel", type=int, default=1)
    parser.add_argument("-t", "--threads", type=int, default=0)
    parser.add_argument(
        "-ngl", "--n-gpu-layers", "--gpu-layers", type=_layers, default=os.environ.get(LAYERS_VARIABLE, "auto")
    )
    parser.add_argument("-b", "--batch-size", type=int)
    parser.add_argument("-s", "--seed", type=int)
    parser.add_argument("-a", "--alias")
    parser.add_argument("--jinja", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--chat-template", default="")
    parser.add_argument("--no-warmup", action="store_true")
    parser.add_argument("--no-mmap", action="store_true")
    parser.add_argument("--metrics", action="store_true")
    return parser


def _layers(text: str) -> int:
    return {"auto": -1, "all": -2}.get(text) or int(text)


def _devices() -> list[str]:
    """The devices that layers can be offloaded to."""
    import xllamacpp

    cpu = xllamacpp.ggml_backend_dev_type.GGML_BACKEND_DEVICE_TYPE_CPU
    found = (device for device in xllamacpp.get_device_info() if device["type"] != cpu)
    return [f"{device['name']}: {device['description']}" for device in found]


def _params(arguments: argparse.Namespace) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.verbosity = int(os.environ.get("LLAMA_ARG_LOG_VERBOSITY", params.verbosity))
    params.model.path = arguments.model
    params.hostnames = [arguments.host]
    params.port = arguments.port
    params.n_ctx = arguments.ctx_size
    params.n_parallel = arguments.parallel
    params.n_gpu_layers = arguments.n_gpu_layers
    params.use_jinja = arguments.jinja
    params.chat_template = arguments.chat_template
    params.warmup = not arguments.no_warmup
    params.endpoint_metrics = arguments.metrics
    threads = arguments.threads or len(os.sched_getaffinity(0))
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    if arguments.batch_size:
        params.n_batch = arguments.batch_size
    if arguments.seed is not None:
        params.sampling.seed = arguments.seed
    if arguments.alias:
        params.model_alias = {arguments.alias}
    return params


def main() -> int:
    """Serve until SIGTERM or SIGINT."""
    arguments = _parser().parse_args()
    try:
        import xllamacpp
    except ImportError:
        sys.exit("error: the embedded engine needs the xllamacpp package (extra 'embedded')")
    if arguments.version:
        print(f"version: xllamacpp {xllamacpp.__version__}")
        return 0
    if arguments.list_devices:
        print("Available devices:", *(_devices() or ["(none)"]), sep="\n  ")
        return 0
    if not arguments.model or not os.access(arguments.model, os.R_OK):
        sys.exit(f"error: cannot read the model {arguments.model!r}")
    ends = {signal.SIGTERM, signal.SIGINT}
    # Blocked before the server's threads exist, so that they inherit it and sigwait below gets the signal.
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    try:
        server = xllamacpp.Server(_params(arguments))
    except RuntimeError as error:
        sys.exit(f"error: the engine did not start: {error}")
    signal.sigwait(ends)
    with contextlib.suppress(FileNotFoundError):
        if arguments.host.endswith(".sock"):
            Path(arguments.host).unlink()
    sys.stderr.flush()
    del server
    return 0


if __name__ == "__main__":
    sys.exit(main())
