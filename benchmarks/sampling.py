"""What a token costs under a grammar: ours, and llama.cpp's own converter's, on one engine, side by side in one run.

python benchmarks/sampling.py [TOKENS] [--vocabulary MODEL.gguf | --model MODEL.gguf]. The engine is
TACID_INFER_ENGINE_COMMAND, else llama-server on PATH. It converts the same schema itself (``json_schema`` in the request),
so it must be one without LLGuidance, as nixpkgs' and Debian's are and PyPI's xllamacpp is not. The model has random weights
and the demo's vocabulary of 49,152 tokens, or that of the model named (``probe_model.py``): the engine then holds all of it
against the grammar at nearly every token. The larger it is, the more of a token's time is the grammar's. ``--model`` takes
a model as it is.
The grammars take turns on the same prompt and seed, each for as many tokens; the cost is the engine's own figure
(``timings.predicted_per_token_ms``), its median over the rounds, held against that of a grammar of one long literal.
No grammar is given tokens of white space only: llama.cpp's converter admits them between any two tokens of JSON, and
a model of random weights would write little else, where what is to be timed are keys and values.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shutil
import statistics
import tempfile
from pathlib import Path
from typing import Any

import gguf
import httpx
from probe_model import write_probe_model

from tacid_infer.demo import fetch_model
from tacid_infer.engine import EngineSettings, Supervisor
from tacid_infer.grammar import compile_schema
from tacid_infer.service.config import find_engine

ROUNDS = 5
THREADS = 1
"""A second one would wait for the first at every layer, longer on a busy machine than the token takes."""
_SPACES = (" ", "\u0120", "\u2581")
"""A single space, as the tokenizers of byte-level pieces and of SentencePiece spell it too."""
_BLANKS = {*_SPACES, *"\t\n\r\u0109\u010a\u010d"}


def names(count: int) -> list[str]:
    """Service names as a machine has them: words joined by dashes, with many shared beginnings."""
    draw = random.Random(7)
    parts = ["net", "sys", "log", "mail", "web", "db", "cache", "auth", "user", "disk", "time", "dns", "vpn", "backup"]
    found: dict[str, None] = {}
    while len(found) < count:
        found["-".join(draw.choices(parts, k=draw.randint(2, 4))) + str(draw.randint(1, 99))] = None
    return list(found)


def listed(item: Any) -> dict[str, Any]:
    """A long list of such items: long enough to time."""
    return {"type": "array", "items": item, "minItems": 400}


def optional(count: int) -> dict[str, Any]:
    return {"type": "object", "properties": {f"{word}_{n}": {"type": "integer", "minimum": 0, "maximum": 9}
            for n, word in enumerate(names(count))}, "additionalProperties": False}  # fmt: skip


def alike(count: int) -> dict[str, Any]:
    return {"type": "object", "properties": {f"option_{n}": {"type": "integer", "minimum": 0, "maximum": 9}
            for n in range(count)}, "additionalProperties": False}  # fmt: skip


def union(count: int) -> dict[str, Any]:
    variants = [
        {"type": "object", "properties": {"kind": {"const": name}, "value": {"type": "integer", "minimum": 0, "maximum": 99}},
         "required": ["kind", "value"], "additionalProperties": False}
        for name in names(count)
    ]  # fmt: skip
    return {"$defs": {"Any": {"oneOf": variants}}, **listed({"$ref": "#/$defs/Any"})}


def many_places(count: int) -> dict[str, Any]:
    enum = {"enum": names(200)}
    return listed({"type": "object", "properties": {f"p{n}": enum for n in range(count)},
                   "required": [f"p{n}" for n in range(count)], "additionalProperties": False})  # fmt: skip


def calls(count: int) -> dict[str, Any]:
    """A turn of many tools, as one schema that a converter reads which knows no turns."""
    options = [
        {"type": "object", "properties": {"tool": {"const": name}, "arguments": optional(3)}, "required": ["tool", "arguments"],
         "additionalProperties": False}
        for name in names(count)
    ]  # fmt: skip
    return listed({"anyOf": options})


CASES: dict[str, dict[str, Any]] = {
    "enum of 4,000 names": listed({"enum": names(4000)}),
    "enum of 100 names": listed({"enum": names(100)}),
    "30 optional properties": listed(optional(30)),
    "30 optional properties, alike": listed(alike(30)),
    "60 optional properties": listed(optional(60)),
    "60 tools": calls(60),
    "union of 20 tagged variants, $ref": union(20),
    "200-value enum in 20 places": many_places(20),
}
LITERAL = 'root ::= "' + " ".join(names(1500)) + '"\n'


def blank_tokens(model: Path) -> list[int]:
    """The tokens that are white space and no more, but for the single space."""
    tokens = gguf.GGUFReader(model).fields["tokenizer.ggml.tokens"].contents()
    return [
        number for number, token in enumerate(tokens) if token not in _SPACES and token and not set(token) - _BLANKS
    ]


async def per_token(
    client: httpx.AsyncClient, constraint: dict[str, Any], banned: list[list[Any]], tokens: int, seed: int
) -> float:
    """Milliseconds of a token, by the engine's own clock."""
    body = {
        "prompt": "List what this machine runs, as JSON.\n", "n_predict": tokens, "seed": seed, "temperature": 1.0,
        "cache_prompt": False, "top_k": 40, "logit_bias": banned, **constraint,
    }  # fmt: skip
    response = await client.post("/completion", json=body)
    response.raise_for_status()
    timings = response.json()["timings"]
    assert timings["predicted_n"] >= tokens // 2, f"the reply ended after {timings['predicted_n']} tokens"
    return float(timings["predicted_per_token_ms"])


async def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("tokens", nargs="?", type=int, default=100, help="tokens of each reply")
    models = parser.add_mutually_exclusive_group()
    models.add_argument("--vocabulary", type=Path, help="a GGUF whose vocabulary the random weights take")
    models.add_argument("--model", type=Path, help="a GGUF to run as it is")
    options = parser.parse_args()
    tokens = options.tokens
    named = os.environ.get("TACID_INFER_ENGINE_COMMAND", "")
    if not named and shutil.which("llama-server") is None:
        parser.error("TACID_INFER_ENGINE_COMMAND must name a llama-server: the embedded engine converts by LLGuidance")
    with tempfile.TemporaryDirectory(prefix="ti-") as folder:
        model = options.model or Path(folder) / "probe.gguf"
        if options.model is None:
            write_probe_model(options.vocabulary or fetch_model(), model)
        banned = [[token, False] for token in blank_tokens(model)]
        command = tuple(find_engine(named))
        socket = Path(folder) / "e.sock"
        supervisor = Supervisor(EngineSettings(command, model, socket, context_tokens=4096, threads=THREADS))
        await supervisor.start()
        await supervisor.wait_ready(300)
        transport = httpx.AsyncHTTPTransport(uds=str(socket))
        async with httpx.AsyncClient(transport=transport, base_url="http://engine", timeout=900) as client:
            print(
                f"ms a token, median of {ROUNDS} rounds of {tokens} tokens; x: times the single literal's", flush=True
            )
            print(f"{'':34}{'literal':>9}{'ours':>9}{'x':>7}{'llama.cpp':>11}{'x':>7}{'theirs/ours':>13}  our bytes")
            for name, schema in CASES.items():
                grammar = compile_schema(schema)
                constraints: list[dict[str, Any]] = [
                    {"grammar": LITERAL},
                    {"grammar": grammar},
                    {"json_schema": schema},
                ]
                costs: list[list[float]] = [[], [], []]
                for number in range(ROUNDS):
                    for cost, constraint in zip(costs, constraints, strict=True):
                        if cost is costs[2] and number and cost[0] > 300:
                            continue  # A grammar this slow needs no second look.
                        cost.append(
                            await per_token(client, constraint, banned, tokens if number else tokens // 5 + 5, number)
                        )
                literal, ours, theirs = (statistics.median(cost[1:] or cost) for cost in costs)
                print(f"{name:34}{literal:9.2f}{ours:9.2f}{ours / literal:7.2f}{theirs:11.2f}{theirs / literal:7.2f}"
                      f"{theirs / ours:13.2f}  {len(grammar)}", flush=True)  # fmt: skip
        await supervisor.stop()


if __name__ == "__main__":
    asyncio.run(main())
