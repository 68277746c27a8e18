"""Rules that depend on nothing but their content: a pattern's strings, a range's numbers.

Each such set is made, proven and written once in a process, and named by its content, so that every tool and every
turn that needs it uses the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2s
from typing import Any, Protocol

from ..gbnf import Expr, Ref, Rules, prune_and_check, write_rules
from .primitives import PRIMITIVES


class RuleMaker(Protocol):
    """Makes rules."""

    def define(self, expr: Expr) -> Ref: ...

    def reserve(self, hint: str = "") -> Ref: ...

    def put(self, ref: Ref, expr: Expr) -> None: ...


def new_rule(expr: Expr, maker: RuleMaker) -> Ref:
    """A rule for an expression that no other place has: ``define`` without the search for an equal one."""
    if type(expr) is Ref:
        return expr
    ref = maker.reserve()
    maker.put(ref, expr)
    return ref


@dataclass(frozen=True, slots=True)
class SharedRules:
    """A set of rules.

    Attributes:
        root: the rule to refer to.
        text: the set as GBNF; empty if it has no text at all.
        mentions: the primitives that it needs.
    """

    root: Ref
    text: str
    mentions: frozenset[str]


class _Collector:
    """Makes rules under one prefix."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rules: Rules = {}
        self.count = 0
        self.known: dict[Expr, Ref] = {}

    def reserve(self, hint: str = "") -> Ref:
        self.count += 1
        return Ref(f"{self.name}-{self.count}")

    def put(self, ref: Ref, expr: Expr) -> None:
        self.rules[ref.name] = expr

    def define(self, expr: Expr) -> Ref:
        if type(expr) is Ref:
            return expr
        if expr not in self.known:
            self.known[expr] = self.reserve()
            self.rules[self.known[expr].name] = expr
        return self.known[expr]


def shared_name(kind: str, key: Any) -> str:
    """The name of a set's root rule; ``repr`` of the key tells it from all others of the kind."""
    return f"{kind}-{blake2s(repr(key).encode('utf-8', 'surrogatepass'), digest_size=6).hexdigest()}"


def make_shared(kind: str, key: Any, build: Callable[[RuleMaker], Expr]) -> SharedRules:
    """Build a set of rules.

    Args:
        kind: what the rules are, as the beginning of their names.
        key: what they depend on (see ``shared_name``).
        build: makes the root's expression, and the other rules.
    """
    return make_named(shared_name(kind, key), build)


def make_named(name: str, build: Callable[[RuleMaker], Expr]) -> SharedRules:
    """Build a set of rules, the root of which has this name, and all others begin with it."""
    collector = _Collector(name)
    collector.rules[name] = build(collector)
    rules, mentions = prune_and_check(collector.rules, [name], PRIMITIVES)
    return SharedRules(Ref(name), write_rules(rules), frozenset(mentions))
