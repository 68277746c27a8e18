"""The turn's envelope: exactly one call of an offered tool, or an answer (ADR-0056, "Decision").

Each tool is compiled by itself, with rules of local names, so that a fault in one tool changes no other's rules; the
names are made positional (``call-0-facts-get``) when the grammar is written.
"""

from __future__ import annotations

import gc
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from ..errors import SchemaError
from ..gbnf import Expr, Lit, Ref, Rules, check, factor, scoped, seq, write_rules
from ..gbnf.check import reachable, study
from ..kept import Kept, content_key
from ..tools import Tool, ToolChoice, parse_tool_choice, parse_tools
from .compiler import CompiledSchema, Widened, compile_document
from .primitives import PRIMITIVES
from .shared import SharedRules
from .values import OBJECT, quote

_SLUG = re.compile(r"[^A-Za-z0-9]+")


@dataclass(frozen=True, slots=True)
class Compiled:
    """A grammar.

    Attributes:
        text: GBNF, with the rule ``root``.
        widened: every place that the grammar does not enforce.
    """

    text: str
    widened: tuple[Widened, ...]


class _NoCollections:
    """Puts off Python's search for cycles until a grammar is written.

    A large schema makes a million objects, nearly all of which live until it is compiled: looking through them again
    and again took most of the time. Where another thread compiles too, the first to end lets the search go on.
    """

    def __enter__(self) -> None:
        self._were_on = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._were_on:
            gc.enable()


_schemas: Kept[CompiledSchema] = Kept(2048)
_turns: Kept[Compiled] = Kept(128)


def compile_schema(schema: Any, *, open_objects: bool = False) -> str:
    """The GBNF of one schema's instances.

    Args:
        schema: a parsed JSON Schema.
        open_objects: let an object take unnamed keys wherever the schema does not forbid them (JSON Schema's own
            reading). False, what a turn uses, closes an object that names properties unless ``additionalProperties``
            opens it.

    Raises:
        InvalidSchema: it is not JSON Schema.
        UnsatisfiableSchema: no value is an instance of it.
    """
    return explain_schema(schema, open_objects=open_objects).text


def explain_schema(schema: Any, *, open_objects: bool = False) -> Compiled:
    """The same as ``compile_schema``, with what the grammar does not enforce."""
    with _NoCollections():
        compiled = compile_document(schema, open_objects=open_objects)
        scope = "rule-"
        root: Rules = {"root": _scoped(compiled.root, scope)}
        return Compiled(_write(root, [(scope, compiled)]), compiled.widened)


def compile_turn(tools: Any, *, tool_choice: Any = "auto") -> str:
    """The GBNF of one turn: ``{"tool": "<name>", "arguments": {...}}`` for each tool, or ``{"say": "..."}``.

    Args:
        tools: the ordered list of tools that the turn may see, in any of the spellings of ``tacid_infer.tools``.
        tool_choice: "auto", "required", "none", a tool's name, or OpenAI's object form.

    Raises:
        InvalidTool, DuplicateTool, InvalidToolChoice: the turn is malformed.
        InvalidSchema, UnsatisfiableSchema: a tool's parameters cannot be compiled.
    """
    return explain_turn(tools, tool_choice=tool_choice).text


def explain_turn(tools: Any, *, tool_choice: Any = "auto") -> Compiled:
    """The same as ``compile_turn``, with what the grammar does not enforce. The last turns are kept, by content."""
    key = content_key((tools, tool_choice)) if isinstance(tools, list) else None
    if key is None:
        parsed = parse_tools(tools)
        key = content_key(([(tool.name, tool.parameters) for tool in parsed], _plain(tool_choice)))
    else:
        parsed = None
    known = _turns.get(key)
    if known is None:
        parsed = parse_tools(tools) if parsed is None else parsed
        with _NoCollections():
            known = _compile(parsed, parse_tool_choice(tool_choice, parsed))
        _turns.put(key, known)
    return known


def _plain(choice: Any) -> Any:
    return ("choice", choice.mode, choice.name) if isinstance(choice, ToolChoice) else choice


def check_tool(tool: Tool) -> None:
    """Compile one tool's parameters, to learn whether it can be called at all.

    Raises:
        InvalidSchema, UnsatisfiableSchema: it cannot; names the tool and the pointer.
    """
    with _NoCollections():
        _arguments(tool)


def _arguments(tool: Tool) -> CompiledSchema:
    """The rules of a tool's arguments, kept by content."""
    key = content_key(tool.parameters)
    found = _schemas.get(key)
    if found is None:
        try:
            found = compile_document(tool.parameters, open_objects=False, types=OBJECT)
        except SchemaError as error:
            raise error.for_tool(tool.name) from None
        _schemas.put(key, found)
    return found


def _compile(tools: list[Tool], choice: ToolChoice) -> Compiled:
    parts: list[tuple[str, CompiledSchema]] = []
    calls: Rules = {}
    branches: list[tuple[str, Expr]] = []
    widened: list[Widened] = []
    for index, tool in enumerate(tools):
        if choice.mode == "none" or (choice.mode == "named" and choice.name != tool.name):
            continue
        arguments = _arguments(tool)
        scope = f"args-{index}-"
        slug = _SLUG.sub("-", tool.name)[:40].strip("-")
        call = Ref(f"call-{index}-{slug}" if slug else f"call-{index}")
        calls[call.name] = seq(Lit('", "arguments": '), _scoped(arguments.root, scope), Lit("}"))
        branches.append(('{"tool": ' + _name(tool)[:-1], call))
        parts.append((scope, arguments))
        widened += [replace(place, tool=tool.name) for place in arguments.widened]
    if choice.mode in ("auto", "none"):
        branches.append(('{"say": ', seq(Ref("string"), Lit("}"))))
    names: Rules = {}

    def define(expr: Expr) -> Ref:
        ref = Ref(f"names-{len(names)}")
        names[ref.name] = expr
        return ref

    rules: Rules = {"root": factor(branches, define), **names, **calls}
    check(rules, ["root"], PRIMITIVES.keys() | {_scoped(part.root, scope).name for scope, part in parts})
    return Compiled(_write(rules, parts), tuple(widened))


def _name(tool: Tool) -> str:
    """The name as JSON text; the writer escapes it a second time, for GBNF (ADR-0056, "A tool name is untrusted")."""
    return quote(tool.name)


def _scoped(root: Ref, scope: str) -> Ref:
    return Ref(scoped(root.name, scope))


_MENTIONS = {name: study(body).mentions for name, body in PRIMITIVES.items()}
_TEXTS = {name: write_rules({name: body}) for name, body in PRIMITIVES.items()}


def _write(rules: Rules, parts: list[tuple[str, CompiledSchema]]) -> str:
    """The grammar's text: these rules, those of the parts, what the parts share, and the primitives reached."""
    texts = [write_rules(rules)]
    used = {name for body in rules.values() for name in study(body).mentions}
    shared: dict[str, SharedRules] = {}
    for scope, part in parts:
        texts.append(scoped(part.text, scope))
        used |= part.mentions
        shared.update((one.root.name, one) for one in part.shared)
    for one in shared.values():
        texts.append(one.text)
        used |= one.mentions
    texts.append(_primitives(frozenset(used & PRIMITIVES.keys())))
    return "".join(texts)


@lru_cache(maxsize=1024)
def _primitives(used: frozenset[str]) -> str:
    reached = reachable(_MENTIONS, used)
    return "".join([text for name, text in _TEXTS.items() if name in reached])
