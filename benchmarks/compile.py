"""Compiling a 60-tool turn: ours, and llama.cpp's own converter on the same tools, side by side in one run.

python benchmarks/compile.py [ROUNDS]. Each round compiles the same tools anew (its own descriptions, so that nothing is
taken from a cache) with both, one after the other; the medians and their ratio are printed. Needs xllamacpp.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from xllamacpp import json_schema_to_grammar

from tacid_infer.grammar import compile_turn

KINDS: list[Callable[[int], dict[str, Any]]] = [
    lambda n: {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1, "maximum": 7 + n % 5}},
    lambda n: {"path": {"type": "string", "maxLength": 200 + n}, "recursive": {"type": "boolean"}},
    lambda n: {"unit": {"enum": [f"unit-{n}-{i}" for i in range(20)]}, "action": {"enum": ["start", "stop", "restart"]}},
    lambda n: {"to": {"type": "array", "items": {"type": "string"}, "minItems": 1}, "subject": {"type": "string"},
               "body": {"type": "string"}, "urgent": {"type": "boolean"}},
    lambda n: {"when": {"type": "string", "format": "date-time"}, "tags": {"type": "array", "items": {"type": "string"}},
               "filter": {"type": "object", "properties": {"min": {"type": "number"}, "max": {"type": "number"}}}},
    lambda n: {"query": {"type": "string"}, "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
]  # fmt: skip


def tools(round_: int) -> list[dict[str, Any]]:
    """60 tools of the kinds that agents offer; different in each round."""
    made = []
    for number in range(60):
        properties = KINDS[number % len(KINDS)](number + 60 * round_)
        parameters = {
            "type": "object",
            "title": f"round {round_}",
            "properties": properties,
            "required": list(properties)[:1],
        }
        made.append({"name": f"tool_{number}", "description": f"Tool {number}.", "parameters": parameters})
    return made


def as_schema(listed: list[dict[str, Any]]) -> dict[str, Any]:
    """The same turn as one schema, for a converter that knows no turns."""
    calls = [
        {
            "type": "object",
            "properties": {"tool": {"const": tool["name"]}, "arguments": tool["parameters"]},
            "required": ["tool", "arguments"],
        }
        for tool in listed
    ]
    say = {"type": "object", "properties": {"say": {"type": "string"}}, "required": ["say"]}
    return {"anyOf": [*calls, say]}


def main() -> None:
    """Print the table."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    ours: list[float] = []
    theirs: list[float] = []
    kept: list[float] = []
    sizes = (0, 0)
    for number in range(rounds):
        listed = tools(number)
        started = time.perf_counter()
        grammar = compile_turn(listed)
        ours.append(time.perf_counter() - started)
        again = json.loads(json.dumps(listed))
        started = time.perf_counter()
        compile_turn(again)
        kept.append(time.perf_counter() - started)
        schema = json.dumps(as_schema(listed))
        started = time.perf_counter()
        other = json_schema_to_grammar(schema)
        theirs.append(time.perf_counter() - started)
        sizes = (len(grammar), len(other))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tools.json"
        path.write_text(json.dumps(tools(0)))
        command = []
        for _ in range(5):
            started = time.perf_counter()
            subprocess.run([sys.executable, "-m", "tacid_infer", "compile", str(path)], capture_output=True, check=True)
            command.append(time.perf_counter() - started)
    print("60 tools, median of", rounds, "rounds          ms    bytes")
    print(f"tacid_infer.grammar.compile_turn (Python) {statistics.median(ours) * 1e3:8.2f} {sizes[0]:8}")
    print(f"  the same tools in the next turn         {statistics.median(kept) * 1e3:8.3f}")
    print(f"llama.cpp's own converter (C++)           {statistics.median(theirs) * 1e3:8.2f} {sizes[1]:8}")
    print(f"ratio ours / llama.cpp's                  {statistics.median(ours) / statistics.median(theirs):8.2f}")
    print(f"tacid-infer compile, as a command         {min(command) * 1e3:8.0f}")


if __name__ == "__main__":
    main()
