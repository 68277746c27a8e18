"""Compiling many real schemas, one by one: ours and LLGuidance, side by side in one run.

python benchmarks/schemas.py FILE. The file holds a JSON object a line, gzipped or not, each with a ``schema``, as the
public JSONSchemaBench has them. Each schema is compiled once by each, in turns, with open objects, so that what ours
keeps from one schema to the next is what a daemon would keep. LLGuidance (``pip install llguidance``; Rust) takes its own
form of a grammar, so only the times can be compared; it refuses some schemas, which count as long as it took to say so.
"""

from __future__ import annotations

import gzip
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tacid_infer.errors import SchemaError
from tacid_infer.grammar import compile_schema


def schemas(file: Path) -> Iterator[Any]:
    """The schemas of the file, in its order."""
    with gzip.open(file, "rt") if file.suffix == ".gz" else file.open() as lines:
        for line in lines:
            yield json.loads(line)["schema"]


def ours(schema: Any) -> bool:
    """Whether it compiles."""
    try:
        compile_schema(schema, open_objects=True)
    except SchemaError:
        return False
    return True


def theirs() -> Callable[[Any], bool] | None:
    """LLGuidance's compiler, if it is installed."""
    try:
        import llguidance
    except ImportError:
        return None
    tokenizer = llguidance.LLTokenizer("byte")

    def compiles(schema: Any) -> bool:
        grammar = llguidance.grammar_from("json_schema", json.dumps(schema))
        return not llguidance.LLMatcher(tokenizer, grammar).is_error()

    return compiles


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    compilers: dict[str, Callable[[Any], bool]] = {"tacid-infer": ours}
    if (other := theirs()) is not None:
        compilers["LLGuidance"] = other
    taken: dict[str, list[float]] = {name: [] for name in compilers}
    refused = dict.fromkeys(compilers, 0)
    for schema in schemas(Path(sys.argv[1])):
        for name, compiles in compilers.items():
            began = time.perf_counter()
            refused[name] += not compiles(schema)
            taken[name].append((time.perf_counter() - began) * 1e3)
    print(f"{'ms':<12} {'median':>8} {'p90':>8} {'p99':>8} {'most':>8} {'refused':>8}")
    for name, times in taken.items():
        times.sort()
        at = [times[min(len(times) - 1, int(len(times) * part))] for part in (0.5, 0.9, 0.99, 1)]
        print(f"{name:<12} " + " ".join(f"{one:8.2f}" for one in at) + f" {refused[name]:8}")
    if other is None:
        print("LLGuidance is not installed: `pip install llguidance` puts it beside")


if __name__ == "__main__":
    main()
