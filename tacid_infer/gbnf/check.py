"""Makes a set of rules sound, and proves that it is.

``prune`` removes what can never be completed; ``check`` refuses a grammar that an engine would refuse or that would
leave it stuck: an undefined reference, a rule that the root does not reach, left recursion, a rule with no finite text.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field

from .expr import EMPTY, NEVER, Alt, Chars, Expr, Lit, Ref, Rep, Rules, Seq, alt, seq


class GrammarError(Exception):
    """A grammar that is not sound: a fault of the compiler, never of its input."""


@dataclass(slots=True)
class Facts:
    """What one walk over a rule's body learns.

    Attributes:
        mentions: the rules that it refers to, in order.
        leftmost: those that can stand at the very beginning, taking every reference for one that is not empty.
        nullable: whether it admits the empty text by itself.
        hollow: whether some alternative in it is NEVER.
    """

    mentions: dict[str, None] = field(default_factory=dict)
    leftmost: list[str] = field(default_factory=list)
    nullable: bool = False
    hollow: bool = False


def study(body: Expr) -> Facts:
    """One walk over a rule's body."""
    facts = Facts()
    facts.nullable = _walk(body, facts, True)
    return facts


def _walk(expr: Expr, facts: Facts, first: bool) -> bool:
    """Whether the expression may be empty; ``first``: nothing needs to stand before it."""
    kind = type(expr)
    if kind is Lit:
        return not expr.text  # type: ignore[union-attr]
    if kind is Ref:
        facts.mentions[expr.name] = None  # type: ignore[union-attr]
        if first:
            facts.leftmost.append(expr.name)  # type: ignore[union-attr]
        return False
    if kind is Chars:
        return False
    if kind is Seq:
        empty = True
        for item in expr.items:  # type: ignore[union-attr]
            if not _walk(item, facts, first and empty):
                empty = False
        return empty
    if kind is Alt:
        empty = False
        if not expr.options:  # type: ignore[union-attr]
            facts.hollow = True
        for option in expr.options:  # type: ignore[union-attr]
            if _walk(option, facts, first):
                empty = True
        return empty
    return _walk(expr.item, facts, first) or expr.low == 0  # type: ignore[union-attr]


def prune(rules: Mapping[str, Expr], roots: Iterable[str]) -> Rules:
    """The rules that the roots reach, without the alternatives that can never be completed.

    A rule that has no alternative left is dropped, the roots' own included. The rules may refer to rules defined
    elsewhere, each of which has a finite text.
    """
    return prune_and_study(rules, roots)[0]


def prune_and_study(rules: Mapping[str, Expr], roots: Iterable[str]) -> tuple[Rules, dict[str, Facts]]:
    """``prune``, with what ``study`` says of each rule that is left."""
    known = {name: study(body) for name, body in rules.items()}
    doomed = unproductive(rules)
    kept: Rules = {}
    facts: dict[str, Facts] = {}
    todo = [name for name in roots if name in rules and name not in doomed]
    while todo:
        name = todo.pop()
        if name in kept:
            continue
        body, fact = rules[name], known[name]
        if fact.hollow or (doomed and not doomed.isdisjoint(fact.mentions)):
            body = _without(body, doomed)
            fact = study(body)
        kept[name], facts[name] = body, fact
        todo.extend(other for other in fact.mentions if other not in kept and other in rules)
    return kept, facts


def unproductive(rules: Mapping[str, Expr]) -> set[str]:
    """The rules that have no finite text.

    Least fixpoint from below: a rule is productive once some alternative needs only productive rules.
    """
    waiting: dict[str, list[str]] = {}
    productive: set[str] = set()
    todo = list(rules)
    while todo:
        name = todo.pop()
        if name in productive:
            continue
        blockers = _blockers(rules[name], productive, rules)
        if blockers is None:
            productive.add(name)
            todo.extend(waiting.pop(name, ()))
        else:
            for other in blockers:
                waiting.setdefault(other, []).append(name)
    return {name for name in rules if name not in productive}


def _blockers(expr: Expr, productive: set[str], rules: Container[str]) -> list[str] | None:
    """None if the expression has a finite text by what is known; else the rules that it waits for (maybe none)."""
    kind = type(expr)
    if kind is Ref:
        name = expr.name  # type: ignore[union-attr]
        return None if name in productive or name not in rules else [name]
    if kind is Seq:
        for item in expr.items:  # type: ignore[union-attr]
            blockers = _blockers(item, productive, rules)
            if blockers is not None:
                return blockers
        return None
    if kind is Alt:
        waits: list[str] = []
        for option in expr.options:  # type: ignore[union-attr]
            blockers = _blockers(option, productive, rules)
            if blockers is None:
                return None
            waits.extend(blockers)
        return waits
    if kind is Rep and expr.low > 0:  # type: ignore[union-attr]
        return _blockers(expr.item, productive, rules)  # type: ignore[union-attr]
    return None


def _without(expr: Expr, doomed: set[str]) -> Expr:
    match expr:
        case Ref(name):
            return NEVER if name in doomed else expr
        case Seq(items):
            return seq(*(_without(item, doomed) for item in items))
        case Alt(options):
            left = (_without(option, doomed) for option in options)
            return alt(option for option in left if option != NEVER)
        case Rep(item, low, high):
            item = _without(item, doomed)
            if item == NEVER:
                return EMPTY if low == 0 else NEVER
            return Rep(item, low, high)
    return expr


def reachable(mentions: Mapping[str, Iterable[str]], roots: Iterable[str]) -> set[str]:
    """Every name that the roots lead to, defined here or not."""
    todo = list(roots)
    seen = set(todo)
    while todo:
        for name in mentions.get(todo.pop(), ()):
            if name not in seen:
                seen.add(name)
                todo.append(name)
    return seen


def check(
    rules: Mapping[str, Expr],
    roots: Iterable[str],
    known: Container[str] = (),
    facts: Mapping[str, Facts] | None = None,
) -> set[str]:
    """Prove the rules sound; returns the names that they leave to be defined elsewhere.

    Args:
        rules: the rules to prove.
        roots: the rules that the grammar starts from, or that others refer to.
        known: rules proven elsewhere; none of them admits the empty text.
        facts: what ``study`` says of each rule, where it was studied before.

    Raises:
        GrammarError: names the rule at fault.
    """
    facts = {name: study(body) for name, body in rules.items()} if facts is None else facts
    reached = reachable({name: fact.mentions for name, fact in facts.items()}, roots)
    outside = {name for name in reached if name not in rules}
    for name in outside:
        if name not in known:
            raise GrammarError(f"rule {name} is not defined")
    if len(reached) - len(outside) < len(rules):
        raise GrammarError(f"rule {min(rules.keys() - reached)} is not reachable")
    if doomed := unproductive(rules):
        raise GrammarError(f"rule {min(doomed)} has no finite text")
    if nullable := [name for name, fact in facts.items() if fact.nullable]:
        facts = _with_nullable(rules, nullable)
    _refuse_left_recursion({name: fact.leftmost for name, fact in facts.items()})
    return outside


def _with_nullable(rules: Mapping[str, Expr], nullable: list[str]) -> dict[str, Facts]:
    """The facts, where a reference to a nullable rule counts as nothing, and what follows it as standing first."""
    empty = set(nullable)
    while True:
        again = {name: study(_opened(body, empty)) for name, body in rules.items()}
        found = {name for name, fact in again.items() if fact.nullable}
        if found <= empty:
            return again
        empty |= found


def _opened(expr: Expr, empty: set[str]) -> Expr:
    match expr:
        case Ref(name) if name in empty:
            return Rep(expr, 0, 1)
        case Seq(items):
            return Seq(tuple(_opened(item, empty) for item in items))
        case Alt(options):
            return Alt(tuple(_opened(option, empty) for option in options))
        case Rep(item, low, high):
            return Rep(_opened(item, empty), low, high)
    return expr


def _refuse_left_recursion(leftmost: Mapping[str, Iterable[str]]) -> None:
    done: set[str] = set()
    for start in leftmost:
        if start in done:
            continue
        path = {start}
        stack = [(start, iter(leftmost[start]))]
        while stack:
            name, todo = stack[-1]
            for other in todo:
                if other in path:
                    raise GrammarError(f"rule {other} is left-recursive")
                if other in leftmost and other not in done:
                    path.add(other)
                    stack.append((other, iter(leftmost[other])))
                    break
            else:
                path.discard(name)
                done.add(name)
                stack.pop()
