"""The Berkeley Function Calling Leaderboard's simple and multiple cases, as turns of this product.

python benchmarks/bfcl.py FOLDER [--cases 30] [--model FILE.gguf]. FOLDER holds BFCL_v4_simple_python.json,
BFCL_v4_multiple.json and possible_answer/ (public data of the Gorilla project; PyPI's bfcl-eval carries it). Each case
is one turn at temperature 0, with the protocol's two tools beside the case's own. Counted: turns that end in a call,
calls whose arguments validate against the tool's schema (by jsonschema), calls that are the expected one in every
argument, answers in words, replies cut off at the token limit, and errors of ours, of which there must be none.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema

from tacid_infer.demo import fetch_model
from tacid_infer.engine import EngineRequest, EngineSettings, Supervisor
from tacid_infer.errors import TruncatedReply
from tacid_infer.service.config import find_engine
from tacid_infer.tools import parse_tools
from tacid_infer.turn import Call, build_turn, read_reply

TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": None}
FILES = ("BFCL_v4_simple_python.json", "BFCL_v4_multiple.json")
SAMPLING = {"temperature": 0, "max_tokens": 256}


def as_json_schema(node: Any) -> Any:
    """The data's own type names as JSON Schema's."""
    if isinstance(node, list):
        return [as_json_schema(item) for item in node]
    if not isinstance(node, dict):
        return node
    made = {key: as_json_schema(value) for key, value in node.items()}
    kind = made.get("type")
    if isinstance(kind, str) and kind in TYPES:
        if TYPES[kind] is None:
            del made["type"]
        else:
            made["type"] = TYPES[kind]
    return made


def is_right(call: Call, expected: dict[str, Any]) -> bool:
    """Whether the call is the expected one: each argument one of the values listed for it; "" allows leaving it out."""
    if call.tool not in expected:
        return False
    wanted = expected[call.tool]
    if not call.arguments.keys() <= wanted.keys():
        return False
    return all(
        _same(call.arguments[name], values) if name in call.arguments else "" in values
        for name, values in wanted.items()
    )


def _same(value: Any, values: list[Any]) -> bool:
    def plain(item: Any) -> Any:
        if isinstance(item, str):
            return "".join(char for char in item.lower() if char.isalnum())
        if isinstance(item, dict):
            return {key: plain(part[0] if isinstance(part, list) and part else part) for key, part in item.items()}
        return item

    return any(plain(value) == plain(other) for other in values)


async def run(folder: Path, cases: int, model: Path) -> Counter[str]:
    """Run the cases; what was counted."""
    counted: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        settings = EngineSettings(tuple(find_engine("")), model, Path(scratch) / "e.sock", context_tokens=8192)
        supervisor = Supervisor(settings)
        await supervisor.start()
        client = await supervisor.wait_ready(120)
        for name in FILES:
            questions = (folder / name).read_text().splitlines()[:cases]
            answers = (folder / "possible_answer" / name).read_text().splitlines()[:cases]
            for question, answer in zip(map(json.loads, questions), map(json.loads, answers), strict=True):
                counted["turns"] += 1
                tools = parse_tools([as_json_schema(tool) for tool in question["function"]])
                turn = build_turn(tools, messages=question["question"][0])
                request = EngineRequest(turn.messages, turn.grammar, sampling=SAMPLING)
                reply = await client.complete(request, timeout=300)
                try:
                    read = read_reply(
                        turn, content=reply.content, finish_reason=reply.finish_reason, source="supervised"
                    )
                except TruncatedReply:
                    counted["cut off"] += 1
                    continue
                if not isinstance(read, Call):
                    counted["answers in words"] += 1
                    continue
                counted["calls"] += 1
                schema = next(tool.parameters for tool in turn.tools if tool.name == read.tool)
                counted["valid"] += jsonschema.Draft202012Validator(schema).is_valid(read.arguments)
                counted["right"] += is_right(read, answer["ground_truth"][0])
        await supervisor.stop()
    return counted


def main() -> None:
    """Print what was counted."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cases", type=int, default=30, help="of each file")
    parser.add_argument("--model", type=Path)
    arguments = parser.parse_args()
    counted = asyncio.run(run(arguments.folder, arguments.cases, arguments.model or fetch_model()))
    for name in ("turns", "calls", "valid", "right", "answers in words", "cut off"):
        print(f"{name:<18} {counted[name]:4}")


if __name__ == "__main__":
    main()
