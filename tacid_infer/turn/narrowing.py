"""The allow-list, narrowed into schemas: a service operation can name only a service that this machine has.

Every object whose discriminant ``kind`` is a service operation's is found wherever a generator put it (ADR-0056, "The
catalogue is narrowed into the schema"), and its ``name`` is held to the list, beside whatever it was held to before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import unquote

from ..tools import Schema, Tool
from .protocol import SERVICE_KINDS

_DEFINITION = "tacid-services"
_INLINE = 12
"""Up to so many names are written out at each place; more are written once, and referred to."""

_HOLDS_NO_SCHEMA = frozenset(("const", "enum", "default", "examples", "example", "required", "dependentRequired"))
_NAMED = frozenset(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"))


@dataclass(frozen=True, slots=True)
class AllowList:
    """The services that this machine implements.

    Attributes:
        services: their names, as unit names without a suffix.
        exact: whether an empty list means none; else it narrows nothing.
        state: where it came from.
        reason: why it is degraded, or that it narrows nothing.
    """

    services: tuple[str, ...] = ()
    exact: bool = False
    state: Literal["ok", "missing", "empty", "degraded"] = "missing"
    reason: str = "no allow-list: no narrowing in force"

    @property
    def narrows(self) -> bool:
        """Whether service names are held to the list at all."""
        return bool(self.services) or self.exact

    def to_json(self) -> dict[str, Any]:
        """As ``GET /v1/allow-list`` says it."""
        return {
            "services": list(self.services),
            "exact": self.exact,
            "narrows": self.narrows,
            "state": self.state,
            "reason": self.reason,
        }


def narrow(tool: Tool, allow_list: AllowList) -> Tool:
    """The tool with every service name in its parameters held to the list. The tool itself is not changed."""
    if not allow_list.narrows or not isinstance(tool.parameters, Mapping):
        return tool
    narrowed = narrow_schema(tool.parameters, allow_list.services)
    return tool if narrowed is tool.parameters else Tool(tool.name, tool.description, narrowed)


def narrow_schema(schema: Schema, services: tuple[str, ...]) -> Schema:
    """The schema with the ``name`` of every service operation held to the services. Untouched parts are shared."""
    return _Narrowing(schema, services).run()


class _Narrowing:
    def __init__(self, schema: Schema, services: tuple[str, ...]) -> None:
        self.root = schema
        self.names: Any = {"enum": list(services)} if services else False
        self.referred = len(services) > _INLINE and not _has_identifiers(schema)
        self.held: Any = {"$ref": f"#/$defs/{_DEFINITION}"} if self.referred else self.names
        self.touched = False

    def run(self) -> Schema:
        schema = self.walk(self.root)
        if self.touched and self.referred:
            schema = {**schema, "$defs": {**schema.get("$defs", {}), _DEFINITION: self.names}}
        assert isinstance(schema, (Mapping, bool))
        return schema

    def walk(self, root: Any) -> Any:
        """Rebuild bottom-up, without recursion: a schema may be nested to any depth."""
        done: dict[int, Any] = {}
        stack: list[tuple[Any, bool, bool]] = [(root, True, False)]
        while stack:
            node, is_schema, ready = stack.pop()
            if id(node) in done or not isinstance(node, (dict, list)):
                continue
            items = list(node.items()) if isinstance(node, dict) else list(enumerate(node))
            below = [
                (value, not (is_schema and isinstance(node, dict) and key in _NAMED))
                for key, value in items
                if not (is_schema and key in _HOLDS_NO_SCHEMA)
            ]
            if not ready:
                stack.append((node, is_schema, True))
                stack.extend((value, flag, False) for value, flag in below)
                continue
            changed = {
                key: done[id(value)] for key, value in items if id(value) in done and done[id(value)] is not value
            }
            made: Any = node
            if changed:
                made = (
                    {**node, **changed} if isinstance(node, dict) else [changed.get(key, value) for key, value in items]
                )
            if is_schema and isinstance(node, dict):
                made = self.held_to_list(node, made)
            done[id(node)] = made
        return done.get(id(root), root)

    def held_to_list(self, before: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
        """The schema itself, with its ``name`` narrowed if it is a service operation's."""
        properties = schema.get("properties")
        if not isinstance(properties, dict) or "kind" not in properties:
            return schema
        kinds = self.kinds(before["properties"]["kind"])
        if not kinds or kinds.isdisjoint(SERVICE_KINDS):
            return schema
        self.touched = True
        if kinds <= SERVICE_KINDS and "name" in properties:
            return {**schema, "properties": {**properties, "name": self.both(properties["name"])}}
        named = {"properties": {"name": self.held}}
        if kinds <= SERVICE_KINDS:
            rule: dict[str, Any] = {"dependentSchemas": {"name": named}}
        else:
            condition = {"properties": {"kind": {"enum": sorted(kinds & SERVICE_KINDS)}}, "required": ["kind"]}
            rule = {"if": condition, "then": named}
        return {**schema, "allOf": [*schema.get("allOf", []), rule]}

    def both(self, name: Any) -> Any:
        """What the name was held to, and the list."""
        if name is True or self.held is False:
            return self.held
        plain = isinstance(name, dict) and name.keys() <= {"type", "title", "description", "minLength"}
        if plain and name.get("type") == "string" and name.get("minLength", 0) <= 1:
            told = {"description": name["description"]} if "description" in name and not self.referred else {}
            return {**told, **self.held}
        return {"allOf": [name, self.held]}

    def kinds(self, schema: Any, depth: int = 0) -> frozenset[str]:
        """The values that a discriminant may have, if it only has listed ones."""
        if not isinstance(schema, dict) or depth > 16:
            return frozenset()
        if isinstance(schema.get("const"), str):
            return frozenset([schema["const"]])
        if isinstance(schema.get("enum"), list):
            return frozenset(value for value in schema["enum"] if isinstance(value, str))
        if isinstance(schema.get("$ref"), str):
            return self.kinds(_follow(self.root, schema["$ref"]), depth + 1)
        for keyword in ("anyOf", "oneOf", "allOf"):
            if isinstance(schema.get(keyword), list):
                parts = [self.kinds(branch, depth + 1) for branch in schema[keyword]]
                listed = [part for part in parts if part]
                if keyword == "allOf":
                    return frozenset.intersection(*listed) if listed else frozenset()
                if len(listed) == len(parts):
                    return frozenset().union(*listed)
        return frozenset()


def _follow(root: Any, reference: str) -> Any:
    """The target of a local pointer; None if there is none."""
    if not reference.startswith("#"):
        return None
    node = root
    for raw in reference[1:].split("/")[1:]:
        step = unquote(raw).replace("~1", "/").replace("~0", "~")
        if isinstance(node, list) and step.isdigit() and int(step) < len(node):
            node = node[int(step)]
        elif isinstance(node, dict) and step in node:
            node = node[step]
        else:
            return None
    return node


def _has_identifiers(schema: Any) -> bool:
    """Whether some part has a base of its own, so that a reference to the root would be read against that."""
    todo = [schema]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            if isinstance(node.get("$id", node.get("id")), str):
                return True
            todo.extend(node.values())
        elif isinstance(node, list):
            todo.extend(node)
    return False
