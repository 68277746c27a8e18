"""The command line: exit codes, one clear line on stderr, never a traceback."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


def cli(*arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "tacid_infer", *arguments]
    return subprocess.run(command, input=given, capture_output=True, timeout=60, check=False)


def test_compile_and_turn(folder: Path) -> None:
    tools = folder / "tools.json"
    tools.write_text(
        '[{"name": "t", "parameters": {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": true}}}}]'
    )
    done = cli("compile", str(tools))
    assert done.returncode == 0 and done.stdout.startswith(b"root ::= ")
    assert cli("compile", "-", given=tools.read_bytes()).stdout == done.stdout
    assert b"uniqueItems is not enforced" in cli("compile", str(tools), "--explain").stdout
    assert json.loads(cli("compile", str(tools), "--json").stdout)["widened"][0]["pointer"] == "/properties/a"
    schema = folder / "schema.json"
    schema.write_text('{"enum": ["a"]}')
    assert b'"\\"a\\""' in cli("compile", "--schema", str(schema)).stdout
    request = folder / "request.json"
    request.write_text('{"messages": [{"role": "user", "content": "hi"}]}')
    turn = json.loads(cli("turn", str(request), "--json").stdout)
    assert [tool["name"] for tool in turn["tools"]] == ["facts.get", "proposal.submit"]


@pytest.mark.parametrize(
    ("arguments", "given", "code", "words"),
    [
        (("compile", "/nowhere.json"), b"", 1, b"/nowhere.json: No such file"),
        (("compile", "-"), b"{", 1, b"not JSON: line 1 column 2"),
        (("compile", "-"), b"\xff", 1, b"not UTF-8 at byte 0"),
        (("compile", "-"), b"5", 1, b"tools must be a list"),
        (("compile", "-"), b"[" * 100000, 1, b"nested too deeply"),
        (("compile", "--schema", "-"), b"5", 1, b"must be an object or a boolean"),
        (("compile",), b"", 2, b"give either"),
        (("nonsense",), b"", 2, b"invalid choice"),
        ((), b"", 2, b"COMMAND"),
        (("status", "--socket", "/nowhere.sock"), b"", 1, b"no daemon answers"),
        (("serve", "--config", "/nowhere.toml"), b"", 1, b"no configuration file"),
        (("demo", "--model", "/nowhere.gguf", "hi"), b"", 1, b"/nowhere.gguf"),
        (("demo", "--model", "/etc/passwd", "hi"), b"", 1, b"no GGUF file"),
    ],
)
def test_refusals(arguments: tuple[str, ...], given: bytes, code: int, words: bytes) -> None:
    done = cli(*arguments, given=given)
    assert done.returncode == code
    assert words in done.stderr
    assert b"Traceback" not in done.stderr
    if code == 1:
        assert done.stderr.count(b"\n") == 1


def test_compile_imports_nothing_heavy() -> None:
    script = (
        "import sys; from tacid_infer import cli; cli.main(['compile', '-']); "
        "print([name for name in ('pydantic', 'httpx', 'jsonschema', 'starlette') if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], input=b"[]", capture_output=True, timeout=60, check=True)
    assert done.stderr.strip() == b"[]"


def test_check_says_what_to_do(folder: Path, tiny_model: Path) -> None:
    config = folder / "c.toml"
    for model, ok, words in (
        (tiny_model, True, b"GGUF version 3"),
        (folder, False, b"is a directory"),
        (folder / "gone", False, b"No such file"),
        (config, False, b"no GGUF file"),
    ):
        config.write_text(
            f'[engine]\nmodel = "{model}"\ncommand = "{sys.executable}"\nsocket = "{folder}/e.sock"\n'
            f'[socket]\npath = "{folder}/a.sock"\ngroup = ""\n[allow_list]\npath = "{folder}/services.json"\n'
        )
        done = cli("check", "--config", str(config))
        assert done.returncode == (0 if ok else 1), done.stdout
        assert words in done.stdout
