"""Makes a set of rules sound, and proves that it is.

``prune`` removes what can never be completed; ``check`` refuses a grammar that an engine would refuse or that would
leave it stuck: an undefined reference, a rule that the root does not reach, left recursion, a rule with no finite text.
``prune_and_check`` does both and walks each rule once.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from .expr import EMPTY, NEVER, Alt, Chars, Expr, Lit, Ref, Rep, Rules, Seq, alt, seq


class GrammarError(Exception):
    """A grammar that is not sound: a fault of the compiler, never of its input."""


class Facts:
    """What one walk over a rule's body learns.

    Attributes:
        mentions: the rules that it refers to, in order.
        leftmost: those that can stand at the very beginning.
        nullable: whether it admits the empty text.
        hollow: whether some alternative in it is NEVER.
        empty: the rules that are taken to admit the empty text; no other is.
    """

    __slots__ = ("empty", "hollow", "leftmost", "mentions", "nullable")

    def __init__(self, empty: Container[str]) -> None:
        self.empty = empty
        self.mentions: dict[str, None] = {}
        self.leftmost: list[str] = []
        self.nullable = False
        self.hollow = False


def study(body: Expr, empty: Container[str] = ()) -> Facts:
    """One walk over a rule's body, where the rules of ``empty`` admit the empty text."""
    facts = Facts(empty)
    facts.nullable = _walk(body, facts, True)
    return facts


def _walk(expr: Expr, facts: Facts, first: bool) -> bool:
    """Whether the expression admits the empty text. ``first``: nothing needs to stand before it."""
    kind = type(expr)
    if kind is Lit:
        return not expr.text  # type: ignore[union-attr]
    if kind is Ref:
        name = expr.name  # type: ignore[union-attr]
        facts.mentions[name] = None
        if first:
            facts.leftmost.append(name)
        return name in facts.empty
    if kind is Chars:
        return False
    if kind is Seq:
        every = True
        for item in expr.items:  # type: ignore[union-attr]
            if type(item) is Ref:
                facts.mentions[item.name] = None
                if first and every:
                    facts.leftmost.append(item.name)
                every = every and item.name in facts.empty
            elif (type(item) is Lit and item.text) or not _walk(item, facts, first and every):
                every = False
        return every
    if kind is Alt:
        some = False
        if not expr.options:  # type: ignore[union-attr]
            facts.hollow = True
        for option in expr.options:  # type: ignore[union-attr]
            if not (type(option) is Lit and option.text) and _walk(option, facts, first):
                some = True
        return some
    return _walk(expr.item, facts, first) or expr.low == 0  # type: ignore[union-attr]


def _survey(rules: Mapping[str, Expr], roots: Iterable[str]) -> tuple[dict[str, Facts], set[str], set[str]]:
    """What the roots lead to: the facts of rules, each behind all that it refers to but for cycles; those of them that
    have no finite text; and the names that no rule here has."""
    facts: dict[str, Facts] = {}
    seen: set[str] = set()
    outside: set[str] = set()
    for start in roots:
        # The root stands for a rule that refers to nothing else.
        path: list[tuple[str, Facts | None, Iterator[str]]] = [("", None, iter((start,)))]
        while path:
            name, fact, mentions = path[-1]
            for other in mentions:
                if other in seen:
                    continue
                seen.add(other)
                body = rules.get(other)
                if body is not None:
                    deeper = study(body)
                    path.append((other, deeper, iter(deeper.mentions)))
                    break
                outside.add(other)
            else:
                if fact is not None:
                    facts[name] = fact
                path.pop()
    unproven = set(facts)
    waiting: list[str] = []
    for name, fact in facts.items():
        needs_nothing_else = not fact.hollow and unproven.isdisjoint(fact.mentions)
        if needs_nothing_else or _blockers(rules[name], unproven) is None:
            unproven.discard(name)
        else:
            waiting.append(name)
    return facts, _unproductive(rules, waiting, unproven) if waiting else set(), outside


def prune(rules: Mapping[str, Expr], roots: Iterable[str]) -> Rules:
    """The rules that the roots reach, without the alternatives that can never be completed.

    A rule that has no alternative left is dropped, the roots' own included. The rules may refer to rules defined
    elsewhere, each of which has a finite text.
    """
    roots = list(roots)
    facts, doomed, _ = _survey(rules, roots)
    return _pruned(rules, roots, facts, doomed)


def _pruned(rules: Mapping[str, Expr], roots: Iterable[str], facts: Mapping[str, Facts], doomed: set[str]) -> Rules:
    kept: Rules = {}
    todo = [name for name in roots if name in rules and name not in doomed]
    while todo:
        name = todo.pop()
        if name in kept:
            continue
        body, fact = rules[name], facts[name]
        if fact.hollow or not doomed.isdisjoint(fact.mentions):
            body = _without(body, doomed)
            fact = study(body)
        kept[name] = body
        todo.extend(other for other in fact.mentions if other not in kept and other in rules)
    return kept


def unproductive(rules: Mapping[str, Expr]) -> set[str]:
    """The rules that have no finite text."""
    return _survey(rules, rules)[1]


def _unproductive(rules: Mapping[str, Expr], todo: list[str], unproven: set[str]) -> set[str]:
    """Those of ``unproven`` that are not productive; ``todo`` holds them, mostly in the order of ``_survey``.

    Least fixpoint from below: a rule is productive once some alternative needs only productive rules. A rule waits for
    another at most once, so that it is looked at again at most as often as it refers to others.
    """
    waiting: dict[str, set[str]] = {}
    todo.reverse()
    while todo:
        name = todo.pop()
        if name not in unproven:
            continue
        blockers = _blockers(rules[name], unproven)
        if blockers is None:
            unproven.discard(name)
            todo.extend(waiting.pop(name, ()))
        else:
            for other in blockers:
                waiting.setdefault(other, set()).add(name)
    return unproven


def _blockers(expr: Expr, unproven: set[str]) -> list[str] | None:
    """None if the expression has a finite text by what is known; else the rules that it waits for (maybe none)."""
    kind = type(expr)
    if kind is Ref:
        return [expr.name] if expr.name in unproven else None  # type: ignore[union-attr]
    if kind is Seq:
        for item in expr.items:  # type: ignore[union-attr]
            if type(item) is not Lit and (blockers := _blockers(item, unproven)) is not None:
                return blockers
        return None
    if kind is Alt:
        waits: list[str] = []
        for option in expr.options:  # type: ignore[union-attr]
            blockers = _blockers(option, unproven)
            if blockers is None:
                return None
            waits.extend(blockers)
        return waits
    if kind is Rep and expr.low > 0:  # type: ignore[union-attr]
        return _blockers(expr.item, unproven)  # type: ignore[union-attr]
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


def check(rules: Mapping[str, Expr], roots: Iterable[str], known: Container[str] = ()) -> set[str]:
    """Prove the rules sound; returns the names that they leave to be defined elsewhere.

    Args:
        rules: the rules to prove.
        roots: the rules that the grammar starts from, or that others refer to.
        known: rules proven elsewhere; none of them admits the empty text.

    Raises:
        GrammarError: names the rule at fault.
    """
    facts, doomed, outside = _survey(rules, roots)
    if len(facts) < len(rules):
        raise GrammarError(f"rule {min(rules.keys() - facts)} is not reachable")
    if doomed:
        raise GrammarError(f"rule {min(doomed)} has no finite text")
    _prove(rules, facts, outside, known)
    return outside


def prune_and_check(
    rules: Mapping[str, Expr], roots: Iterable[str], known: Container[str] = ()
) -> tuple[Rules, set[str]]:
    """What ``prune`` leaves of the rules, and what ``check`` says of it."""
    roots = list(roots)
    facts, doomed, outside = _survey(rules, roots)
    if doomed or any(fact.hollow for fact in facts.values()):
        kept = _pruned(rules, roots, facts, doomed)
        return kept, check(kept, [name for name in roots if name in kept or name not in rules], known)
    kept = {name: rules[name] for name in reversed(facts)}
    _prove(kept, facts, outside, known)
    return kept, outside


def _prove(
    rules: Mapping[str, Expr], facts: Mapping[str, Facts], outside: Iterable[str], known: Container[str]
) -> None:
    """The rest of the proof, for rules that are all reachable and productive."""
    for name in outside:
        if name not in known:
            raise GrammarError(f"rule {name} is not defined")
    if nullable := [name for name, fact in facts.items() if fact.nullable]:
        facts = _with_nullable(rules, nullable)
    _refuse_left_recursion({name: fact.leftmost for name, fact in facts.items()})


def _with_nullable(rules: Mapping[str, Expr], nullable: list[str]) -> dict[str, Facts]:
    """The facts, where a rule admits the empty text that is made of such alone."""
    empty = set(nullable)
    while True:
        again = {name: study(body, empty) for name, body in rules.items()}
        found = {name for name, fact in again.items() if fact.nullable}
        if found <= empty:
            return again
        empty |= found


def _refuse_left_recursion(leftmost: Mapping[str, Sequence[str]]) -> None:
    done: set[str] = set()
    for start, others in leftmost.items():
        # Most come behind all that they begin with.
        if start in done or not others or all(other in done or other not in leftmost for other in others):
            done.add(start)
            continue
        path = {start}
        stack = [(start, iter(others))]
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
