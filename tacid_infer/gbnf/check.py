"""Makes a set of rules sound, and proves that it is.

``prune`` removes what can never be completed; ``check`` refuses a grammar that an engine would refuse or that would
leave it stuck: an undefined reference, a rule that the root does not reach, left recursion, a rule with no finite text.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from .expr import EMPTY, NEVER, Alt, Chars, Expr, Lit, Ref, Rep, Rules, Seq, alt, seq


class GrammarError(Exception):
    """A grammar that is not sound: a fault of the compiler, never of its input."""


def prune(rules: Mapping[str, Expr], known: Container[str] = ()) -> Rules:
    """The rules without the alternatives that can never be completed, and without the rules that have none left.

    Args:
        rules: may refer to each other and to ``known`` names.
        known: names defined elsewhere, each of which has a finite text.
    """
    doomed = _unproductive(rules, known)
    if not doomed:
        return dict(rules)
    return {name: _without(body, doomed) for name, body in rules.items() if name not in doomed}


def _unproductive(rules: Mapping[str, Expr], known: Container[str]) -> set[str]:
    """Least fixpoint from below: a rule is productive once some alternative needs only productive rules."""
    waiting: dict[str, list[str]] = {}
    productive: set[str] = set()
    todo = list(rules)
    while todo:
        name = todo.pop()
        if name in productive:
            continue
        blocker = _blocker(rules[name], productive, rules)
        if blocker is None:
            productive.add(name)
            todo.extend(waiting.pop(name, ()))
        elif blocker:
            for other in blocker:
                waiting.setdefault(other, []).append(name)
    return {name for name in rules if name not in productive}


def _blocker(expr: Expr, productive: set[str], rules: Mapping[str, Expr]) -> list[str] | None:
    """None if the expression has a finite text by what is known; else the rules that it waits for (maybe none)."""
    kind = type(expr)
    if kind is Ref:
        name = expr.name  # type: ignore[union-attr]
        return None if name in productive or name not in rules else [name]
    if kind is Seq:
        waits: list[str] = []
        stuck = False
        for item in expr.items:  # type: ignore[union-attr]
            blocker = _blocker(item, productive, rules)
            if blocker is not None:
                stuck = True
                waits.extend(blocker)
        return waits if stuck else None
    if kind is Alt:
        waits = []
        for option in expr.options:  # type: ignore[union-attr]
            blocker = _blocker(option, productive, rules)
            if blocker is None:
                return None
            waits.extend(blocker)
        return waits
    if kind is Rep and expr.low > 0:  # type: ignore[union-attr]
        return _blocker(expr.item, productive, rules)  # type: ignore[union-attr]
    return None


def _without(expr: Expr, doomed: set[str]) -> Expr:
    kind = type(expr)
    if kind is Ref:
        return NEVER if expr.name in doomed else expr  # type: ignore[union-attr]
    if kind is Seq:
        items = [_without(item, doomed) for item in expr.items]  # type: ignore[union-attr]
        return NEVER if NEVER in items else seq(*items)
    if kind is Alt:
        options = (_without(option, doomed) for option in expr.options)  # type: ignore[union-attr]
        return alt(option for option in options if option != NEVER)
    if kind is Rep:
        item = _without(expr.item, doomed)  # type: ignore[union-attr]
        if item == NEVER:
            return EMPTY if expr.low == 0 else NEVER  # type: ignore[union-attr]
        return Rep(item, expr.low, expr.high)  # type: ignore[union-attr]
    return expr


def reachable(rules: Mapping[str, Expr], roots: list[str]) -> set[str]:
    """Every name that the roots lead to, defined here or not."""
    seen: set[str] = set(roots)
    todo = list(roots)
    while todo:
        body = rules.get(todo.pop())
        if body is not None:
            for name in references(body):
                if name not in seen:
                    seen.add(name)
                    todo.append(name)
    return seen


def references(expr: Expr) -> set[str]:
    """The names that an expression mentions."""
    found: set[str] = set()
    todo = [expr]
    while todo:
        item = todo.pop()
        kind = type(item)
        if kind is Ref:
            found.add(item.name)  # type: ignore[union-attr]
        elif kind is Seq:
            todo.extend(item.items)  # type: ignore[union-attr]
        elif kind is Alt:
            todo.extend(item.options)  # type: ignore[union-attr]
        elif kind is Rep:
            todo.append(item.item)  # type: ignore[union-attr]
    return found


def check(rules: Mapping[str, Expr], roots: list[str], known: Mapping[str, bool] | None = None) -> None:
    """Prove the rules sound.

    Args:
        rules: the rules to prove.
        roots: the rules that the grammar starts from, or that others refer to.
        known: rules proven elsewhere, each with whether it admits the empty text.

    Raises:
        GrammarError: names the rule at fault.
    """
    known = known or {}
    reached = reachable(rules, roots)
    for name in reached:
        if name not in rules and name not in known:
            raise GrammarError(f"rule {name} is not defined")
    for name in rules:
        if name not in reached:
            raise GrammarError(f"rule {name} is not reachable from {', '.join(roots)}")
    if doomed := _unproductive(rules, known):
        raise GrammarError(f"rule {min(doomed)} has no finite text")
    _refuse_left_recursion(rules, known)


def _refuse_left_recursion(rules: Mapping[str, Expr], known: Mapping[str, bool]) -> None:
    nullable = _nullable(rules, known)
    first = {name: _leftmost(body, nullable) for name, body in rules.items()}
    done: set[str] = set()
    for start in rules:
        if start in done:
            continue
        path = {start}
        stack = [(start, iter(first[start]))]
        while stack:
            name, todo = stack[-1]
            for other in todo:
                if other in path:
                    raise GrammarError(f"rule {other} is left-recursive")
                if other in first and other not in done:
                    path.add(other)
                    stack.append((other, iter(first[other])))
                    break
            else:
                path.discard(name)
                done.add(name)
                stack.pop()


def _nullable(rules: Mapping[str, Expr], known: Mapping[str, bool]) -> set[str]:
    nullable = {name for name, empty in known.items() if empty}
    changed = True
    while changed:
        changed = False
        for name, body in rules.items():
            if name not in nullable and _is_nullable(body, nullable):
                nullable.add(name)
                changed = True
    return nullable


def _is_nullable(expr: Expr, nullable: set[str]) -> bool:
    match expr:
        case Lit(text):
            return not text
        case Chars():
            return False
        case Ref(name):
            return name in nullable
        case Seq(items):
            return all(_is_nullable(item, nullable) for item in items)
        case Alt(options):
            return any(_is_nullable(option, nullable) for option in options)
        case Rep(item, low, _):
            return low == 0 or _is_nullable(item, nullable)


def _leftmost(expr: Expr, nullable: set[str]) -> set[str]:
    """The rules that can stand at the very beginning of the expression's text."""
    match expr:
        case Ref(name):
            return {name}
        case Seq(items):
            found: set[str] = set()
            for item in items:
                found |= _leftmost(item, nullable)
                if not _is_nullable(item, nullable):
                    break
            return found
        case Alt(options):
            return set().union(*(_leftmost(option, nullable) for option in options))
        case Rep(item, _, _):
            return _leftmost(item, nullable)
    return set()
