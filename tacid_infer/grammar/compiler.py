"""Compiles one schema document to rules: goals to forms, forms to expressions, one rule a goal.

A goal's rule is named before its body is compiled, and bodies wait in a queue: a type that contains itself becomes a
rule that refers to itself, and nesting of any depth costs no recursion.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..errors import InvalidSchema, UnsatisfiableSchema
from ..gbnf import EMPTY, LOCAL, NEVER, Branch, Expr, Lit, Ref, Rules, alt, factor, prune_and_check, write_rules
from ..gbnf.check import study, unproductive
from .annotations import ANNOTATIONS
from .arrays import array
from .document import Derived, Document, Site
from .forms import Form, Goal
from .matching import listed_words, meets
from .normal import Normaliser
from .numbers import number
from .objects import objects
from .primitives import PRIMITIVES
from .shared import SharedRules, make_shared
from .strings import strings
from .values import ARRAY, BOOLEAN, FRACTION, NULL, NUMBER, OBJECT, STRING, TYPE_NAMES, reordered, spell, type_of

_MOST_TOGETHER = 1000
"""Schemas that meet in one place are compiled once for each set of them that does: schemas that refer to each other in
circles can meet in exponentially many."""
_MOST_ORDERS = 64
"""Listed objects are spelled with their keys in any order, where any order is wanted, up to so many spellings."""
_SLUG = re.compile(r"[^a-z0-9]+")
_KEPT = {"minContains", "maxContains", "then", "else"}


@dataclass(frozen=True, slots=True)
class Widened:
    """A place that the grammar does not enforce, and leaves to the typed protocol.

    Attributes:
        tool: the tool's name; None for a schema compiled alone.
        pointer: JSON Pointer (RFC 6901) of the subschema, from the root of the schema.
        keyword: what is not enforced there.
        reason: why not.
    """

    tool: str | None
    pointer: str
    keyword: str
    reason: str


@dataclass(frozen=True, slots=True)
class CompiledSchema:
    """A schema's grammar.

    Attributes:
        root: the rule to start from.
        text: its rules as GBNF, named locally (see ``gbnf.scoped``).
        shared: the sets of rules that it shares with others.
        mentions: the rules that it needs and does not define.
        widened: what it does not enforce.
    """

    root: Ref
    text: str
    shared: tuple[SharedRules, ...]
    mentions: frozenset[str]
    widened: tuple[Widened, ...]


def compile_document(schema: Any, *, open_objects: bool, types: int | None = None) -> CompiledSchema:
    """Compile a schema.

    Args:
        schema: a parsed JSON Schema, drafts 4 to 2020-12.
        open_objects: whether an object that names properties takes others wherever the schema does not forbid them.
        types: the only types that instances may have (bits of ``values``); None for all.

    Raises:
        InvalidSchema: it is not JSON Schema.
        UnsatisfiableSchema: no value is an instance of it.
    """
    try:
        return _Compiler(schema, open_objects=open_objects).compile(types)
    except RecursionError:
        raise InvalidSchema("the schema is nested too deeply") from None


class _Reports:
    """The places that are not enforced, each once."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, str], tuple[Site, str, str]] = {}

    def add(self, site: Site, keyword: str, reason: str) -> None:
        self._found.setdefault((id(site), keyword), (site, keyword, reason))

    def widened(self) -> tuple[Widened, ...]:
        places: dict[tuple[str, str], Widened] = {}
        for site, named, reason in self._found.values():
            pointer, keyword = site.pointer, site.keyword or named
            places.setdefault((pointer, keyword), Widened(None, pointer, keyword, reason))
        return tuple(places.values())


class _Compiler:
    def __init__(self, schema: Any, *, open_objects: bool) -> None:
        self.document = Document(schema)
        self.open_objects = open_objects
        self.rules: Rules = {}
        self.sites: dict[str, Site] = {}
        self._reports = _Reports()
        self._normaliser = Normaliser(self.document, self._reports.add)
        self._goals: dict[frozenset[int], tuple[Goal, Ref]] = {}
        self._together = 0
        self._open = self.document.derived(Derived({"\0open": True}), self.document.root)
        self.unnamed: dict[tuple[str, ...], Ref] = {}
        self._shapes: dict[Expr, Ref] = {}
        self._shared: dict[str, SharedRules] = {}
        self._queue: list[tuple[Ref, Goal]] = []
        self._count = 0

    def compile(self, types: int | None) -> CompiledSchema:
        root = self.document.root
        goal: Goal = (root,)
        if types is not None:
            names = [name for name, bit in (("object", OBJECT),) if types & bit]
            goal = (root, self.document.derived({"type": names}, root))
        start = self.value(goal)
        while self._queue:
            ref, goal = self._queue.pop()
            self.rules[ref.name] = self._body(goal)
        rules, outside = prune_and_check(self.rules, [start.name], PRIMITIVES.keys() | self._shared.keys())
        if start.name in self.rules and start.name not in rules:
            raise self._blame(start.name)
        shared = tuple(rules for name, rules in self._shared.items() if name in outside)
        return CompiledSchema(start, write_rules(rules), shared, frozenset(outside), self._reports.widened())

    # What the modules of the types need

    def report(self, site: Site, keyword: str, reason: str) -> None:
        """Record that a keyword is not enforced."""
        self._reports.add(site, keyword, reason)

    def alternatives(self, goal: Goal) -> list[Form]:
        """The forms of a goal."""
        return self._normaliser.alternatives(goal)

    def reserve(self, hint: str = "") -> Ref:
        """A rule's name, to be given its body later."""
        self._count += 1
        return Ref(f"{LOCAL}{self._count}{_slug(hint)}")

    def put(self, ref: Ref, expr: Expr) -> None:
        """Give a reserved rule its body."""
        self.rules[ref.name] = expr

    def define(self, expr: Expr) -> Ref:
        """A rule for the expression; equal expressions share one."""
        if type(expr) is Ref:
            return expr
        known = self._shapes.get(expr)
        if known is None:
            known = self._shapes[expr] = self.reserve()
            self.rules[known.name] = expr
        return known

    def share(self, rules: SharedRules) -> Expr:
        """A reference to rules that are made once for all grammars."""
        if not rules.text:
            return NEVER
        self._shared[rules.root.name] = rules
        return rules.root

    def literals(self, goal: Goal) -> list[Branch] | None:
        """The values that the goal admits, as they are spelled, if it only admits listed ones."""
        found: dict[Branch, None] = {}
        for form in self.alternatives(goal):
            if form.literals is not None:
                found.update(self._spelled(form, form.literals))
                continue
            words = listed_words(form)
            if words is None:
                return None
            found.update((spell(word), None) for word in words if meets(form, word, self))
        return list(found)

    def _spelled(self, form: Form, listed: dict[Any, tuple[Any, Site]]) -> dict[Branch, None]:
        values = [value for value, _ in listed.values() if meets(form, value, self)]
        if self.open_objects:
            values = reordered(values, _MOST_ORDERS)
        if self.document.plain_integers and not form.types & FRACTION:
            values = [int(value) if type(value) is float else value for value in values]
            return {(str(value), EMPTY) if type(value) is int else spell(value): None for value in values}
        return {spell(value): None for value in values}

    def value(self, goal: Goal, hint: str = "") -> Ref:
        """What the goal admits: a primitive, or a rule of its own."""
        if not goal:
            return Ref("value")
        # Whatever their order, the same demands are the same goal.
        key = frozenset(map(id, goal))
        known = self._goals.get(key)
        if known is None:
            if len(goal) > 1 and goal[-1] is not self._open:
                self._together += 1
                if self._together > _MOST_TOGETHER:
                    self.report(goal[1], "allOf", "too many combinations of schemas: not enforced in all of them")
                    # Closed, it would refuse the keys that only the others name.
                    return self.value((goal[0], self._open), hint)
            known = self._goals[key] = goal, self._new(goal, hint)
        return known[1]

    def _new(self, goal: Goal, hint: str) -> Ref:
        if len(goal) == 1:
            schema = goal[0].schema
            if schema is True:
                return Ref("value")
            if isinstance(schema, dict):
                demands = schema.keys() - ANNOTATIONS
                if not demands and schema.keys().isdisjoint(_KEPT):
                    return Ref("value")
                kind = schema.get("type")
                if len(demands) == 1 and isinstance(kind, str) and kind in TYPE_NAMES:
                    plainly = kind == "integer" and self.document.plain_integers
                    return Ref("plain-integer" if plainly else kind)
        ref = self.reserve(hint)
        self.sites[ref.name] = goal[0]
        self.rules[ref.name] = NEVER
        self._queue.append((ref, goal))
        return ref

    def _body(self, goal: Goal) -> Expr:
        site = goal[0]
        forms = self.alternatives(goal)
        listed: dict[Branch, None] = {}
        options: list[Expr] = []
        texts: list[Form] = []
        shapes: list[Form] = []
        for form in forms:
            if form.literals is not None:
                listed.update(self._spelled(form, form.literals))
                continue
            self._report_excluded(form)
            if form.types & NULL and meets(form, None, self):
                listed[("null", _NOTHING)] = None
            if form.types & BOOLEAN:
                listed.update((spell(flag), None) for flag in (True, False) if meets(form, flag, self))
            if form.types & NUMBER:
                options.append(number(form, self))
            if form.types & STRING:
                texts.append(form)
            if form.types & ARRAY:
                options.append(array(form, site, self))
            if form.types & OBJECT:
                shapes.append(form)
        if texts:
            options += strings(texts, site, self)
        if shapes:
            options.append(objects(shapes, site, self))
        if len(options) > 1 and Ref("number") in options:
            options = [option for option in options if option not in (Ref("integer"), Ref("plain-integer"))]
        if listed and Ref("string") in options:
            listed = {branch: None for branch in listed if not branch[0].startswith('"')}
        if len(listed) > _SHARED:
            options.append(self.share(_enum(tuple(listed))))
        elif listed:
            options.append(factor(listed, self.define))
        return options[0] if len(options) == 1 else alt(option for option in options if option != NEVER)

    def _report_excluded(self, form: Form) -> None:
        for value, site in form.excluded:
            if type_of(value) & form.types & (NUMBER | ARRAY | OBJECT):
                self.report(site, "not", "an excluded number, array or object is not kept out")

    def _blame(self, start: str) -> UnsatisfiableSchema:
        """Follow what the root cannot do without to where nothing fits."""
        name = start
        doomed = unproductive(self.rules)
        seen: set[str] = set()
        site = self.sites[start]
        while True:
            seen.add(name)
            site = self.sites.get(name, site)
            blockers = [other for other in study(self.rules[name]).mentions if other in doomed and other not in seen]
            if not blockers:
                break
            name = blockers[-1]
        keyword, reason = _contradiction(site)
        pointer = site.pointer
        place = f"the schema at {pointer}" if pointer else "the schema"
        return UnsatisfiableSchema(f"{place} has no instance: {reason}", pointer=pointer, keyword=keyword)


_NOTHING = alt([Lit("")])
_SHARED = 8
"""A longer enum is a set of rules of its own, however many places use it."""


@lru_cache(maxsize=4096)
def _slug(hint: str) -> str:
    """The hint as the end of a rule's name."""
    slug = _SLUG.sub("-", hint.lower())[:24].strip("-")
    return f"-{slug}" if slug else ""


@lru_cache(maxsize=512)
def _enum(listed: tuple[Branch, ...]) -> SharedRules:
    return make_shared("enum", listed, lambda maker: factor(listed, maker.define))


def _contradiction(site: Site) -> tuple[str | None, str]:
    """The keyword of a schema without instances that most plainly explains it."""
    schema = site.schema
    if site.keyword is not None:
        return site.keyword, f"what {site.keyword} demands cannot be met beside the rest"
    if schema is False:
        return None, "it is false"
    for keyword in ("enum", "anyOf", "oneOf"):
        if schema.get(keyword) == []:
            return keyword, f"{keyword} is empty"
    for low, high in (
        ("minLength", "maxLength"), ("minItems", "maxItems"), ("minProperties", "maxProperties"),
        ("minimum", "maximum"), ("exclusiveMinimum", "exclusiveMaximum"),
        ("minimum", "exclusiveMaximum"), ("exclusiveMinimum", "maximum"),
    ):  # fmt: skip
        least, most = schema.get(low), schema.get(high)
        if isinstance(least, (int, float)) and isinstance(most, (int, float)) and least >= most:
            return high, f"{low} {least} leaves nothing under {high} {most}"
    for keyword in ("enum", "const", "type", "$ref", "allOf", "anyOf", "oneOf", "not", "required", "items"):
        if keyword in schema:
            return keyword, f"what {keyword} demands cannot be met beside the rest"
    return None, "no value meets all that it demands"
