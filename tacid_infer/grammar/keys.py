"""The keys of an object: which ones its schemas admit, and the text of those that no schema names."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from ..gbnf import Alt, Chars, Expr, Lit, Ref, Seq, nested, seq, write
from ..gbnf.check import study
from ..regular import ANYTHING, Automaton, Product, TooLarge, from_pattern, from_words
from .document import Site
from .forms import Form, Goal, KeyMap, KeyRule, demanding
from .maker import Maker
from .primitives import PRIMITIVES, key_not
from .shared import SharedRules, make_shared, shared_name
from .texts import automaton_body, one_key_char
from .values import STRING, quote

_NESTED = 16
"""Groups nested deeper than this become rules: an engine's parser recurses into each group."""


def closed(form: Form, site: Site, maker: Maker) -> tuple[KeyMap, ...]:
    """The form's key maps; closed, where a turn closes what names properties and does not say otherwise."""
    if maker.open_objects or not any(keys.closes for keys in form.keys):
        return form.keys
    if any(keys.others is not None and keys.closes for keys in form.keys):
        return form.keys
    anything = Site(True, site, ())
    named = {name: anything for keys in form.keys for name in keys.named}
    # Forbidding what it requires, always or beside another key, would leave it without instances.
    named.update((name, anything) for name in form.required)
    named.update((name, anything) for key, needs, _ in form.dependents for name in (key, *needs))
    patterns = tuple(KeyRule(rule.pattern, anything) for keys in form.keys for rule in keys.patterns)
    return (*form.keys, KeyMap(site, named, patterns, Site(False, site, ()), closes=False))


def name_filter(form: Form, maker: Maker) -> Automaton | None:
    """The keys that ``propertyNames`` admits, or None for all."""
    allowed: Automaton | None = None
    for site in form.names:
        one = _names(site, maker)
        if one is None:
            continue
        try:
            allowed = one if allowed is None else allowed.intersect(one)
        except TooLarge:
            maker.report(site, "propertyNames", "the names' automaton is too large")
    return allowed


def _names(site: Site, maker: Maker) -> Automaton | None:
    found: Automaton | None = None
    for form in maker.alternatives((site,)):
        if not form.types & STRING:
            continue
        one: Automaton | None = None
        try:
            if form.literals is not None:
                one = from_words(value for value, _ in form.literals.values() if isinstance(value, str))
            for rule in form.texts:
                other = from_pattern(rule.pattern)
                other = other.complement() if rule.negated else other
                one = other if one is None else one.intersect(other)
            if form.min_length or form.max_length is not None:
                one = (from_words([]).complement() if one is None else one).limit(form.min_length, form.max_length)
            if words := [value for value, _ in form.excluded if isinstance(value, str)]:
                other = from_words(words).complement()
                one = other if one is None else one.intersect(other)
            if one is None:
                return None
            found = one if found is None else found.union(one)
        except TooLarge:
            maker.report(site, "propertyNames", "the names' automaton is too large")
            return None
    return from_words([]) if found is None else found


def extras(
    maps: tuple[KeyMap, ...], names: list[str], allowed: Automaton | None, site: Site, maker: Maker
) -> list[tuple[Expr, Goal]]:
    """The keys that no schema names, by class: a key's text behind the opening quote, and its value's goal."""
    others = dict.fromkeys(keys.others for keys in maps if keys.others is not None and not keys.patterns)
    if any(other.schema is False for other in others):
        return []
    rules = [rule for keys in maps for rule in keys.patterns]
    found: list[tuple[Expr, Goal]] = []
    patterns = [pattern for pattern in dict.fromkeys(rule.pattern for rule in rules) if pattern is not None]
    try:
        if allowed is None and all(from_pattern(pattern).is_universal() for pattern in patterns):
            goal = _class_goal(maps, frozenset(rule for rule in rules if rule.pattern is not None))
            return [] if any(one.schema is False for one in goal) else [(_unnamed(names, maker), goal)]
        named = from_words(names)
        product = Product([named, ANYTHING if allowed is None else allowed, *map(from_pattern, patterns)])
        for verdict in sorted(set(product.found), reverse=True):
            if verdict[:2] != (False, True):
                continue
            hits = {pattern for pattern, hit in zip(patterns, verdict[2:], strict=True) if hit}
            goal = _class_goal(maps, frozenset(rule for rule in rules if rule.pattern in hits))
            if not any(one.schema is False for one in goal):
                part = product.where(verdict.__eq__)
                found.append((automaton_body(part, 0, None, maker, chars=one_key_char), goal))
    except TooLarge:
        maker.report(site, "patternProperties", "the keys' automaton is too large")
        return [(_unnamed(names, maker), ())]
    return found


def _class_goal(maps: tuple[KeyMap, ...], matched: frozenset[KeyRule]) -> Goal:
    goal: dict[Site, None] = {}
    for keys in maps:
        hits = [rule for rule in keys.patterns if rule in matched]
        goal.update((rule.site, None) for rule in hits)
        if not hits and keys.others is not None and all(rule.pattern is not None for rule in keys.patterns):
            goal[keys.others] = None
    return demanding(goal)


def _unnamed(names: list[str], maker: Maker) -> Expr:
    """Any key but these, behind its opening quote: wherever it leaves the names' common path, it is free."""
    if not names:
        return Ref("key-rest")
    if len(names) == 1:
        return maker.share(_other_than(names[0]))
    if any(not _is_plain(name) for name in names):
        return automaton_body(from_words(names).complement(), 0, None, maker, chars=one_key_char)
    ordered = tuple(sorted(set(names)))
    if ordered not in maker.unnamed:
        maker.unnamed[ordered] = _leaving(ordered, maker)
    return maker.unnamed[ordered]


def _is_plain(name: str) -> bool:
    return quote(name) == f'"{name}"'


@lru_cache(maxsize=4096)
def _other_than(ending: str) -> SharedRules:
    """The endings of keys that are not this one."""
    if not _is_plain(ending):
        words = from_words([ending]).complement()
        return make_shared("key", ending, lambda maker: automaton_body(words, 0, None, maker, chars=one_key_char))

    # A set for each name of each schema: put together from text, it costs a tenth of one made of expressions.
    name = shared_name("key", ending)
    steps = [_step(char) for char in ending]
    rest = _LONGER
    rules: list[str] = []
    for first in reversed(range(0, len(steps) or 1, _NESTED)):
        body = nested([text for text, _ in steps[first : first + _NESTED]], rest)
        rest = f"{name}-{first}" if first else name
        rules.append(f"{rest} ::= {body}\n")
    return SharedRules(Ref(name), "".join(reversed(rules)), _LONGER_MENTIONS.union(*[needs for _, needs in steps]))


@lru_cache(maxsize=1024)
def _away(chars: tuple[str, ...], *, ends: bool) -> tuple[Expr, ...]:
    """A key goes on with none of these characters, or, if it may, ends."""
    if ends and len(chars) == 1 and (name := key_not(chars[0])) in PRIMITIVES:
        return (Ref(name),)
    points = sorted({0x22, 0x5C, *map(ord, chars)})
    other = Chars(((0x00, 0x1F), *((point, point) for point in points)), negated=True)
    stop = Ref("key-stop") if ends else seq(Lit("\\"), Ref("key-escape"), Ref("key-rest"))
    return seq(other, Ref("key-rest")), stop


_LEFT = Alt(_away((), ends=False))
_LONGER, _LONGER_MENTIONS = write(_LEFT), frozenset(study(_LEFT).mentions)
"""A key goes on where the name ends."""


@lru_cache(maxsize=1024)
def _step(char: str) -> tuple[str, frozenset[str]]:
    """A key goes on with another character or ends, or else with this one; and the rules that this needs."""
    expr = Alt((*_away((char,), ends=True), Lit(char)))
    return write(expr), frozenset(study(expr).mentions)


def _leaving(names: Sequence[str], maker: Maker) -> Ref:
    """A rule for the keys that are none of the names (sorted, and two or more)."""
    root = maker.reserve()
    todo: list[tuple[Sequence[str], int, Ref]] = [(names, 0, root)]

    def leaving(names: Sequence[str], depth: int, nested: int) -> Expr:
        """Endings of keys that agree with the names up to ``depth``."""
        branches: dict[str, list[str]] = {}
        for name in names:
            branches.setdefault(name[depth : depth + 1], []).append(name)
        ends = "" not in branches
        branches.pop("", None)
        options = [*_away(tuple(branches), ends=ends)]
        for char, group in branches.items():
            rest: Expr
            if len(group) == 1:
                rest = maker.share(_other_than(group[0][depth + 1 :]))
            elif nested == _NESTED:
                rest = maker.reserve()
                todo.append((group, depth + 1, rest))
            else:
                rest = leaving(group, depth + 1, nested + 1)
            options.append(Seq((Lit(char), rest)))
        return Alt(tuple(options))

    while todo:
        group, depth, ref = todo.pop()
        maker.put(ref, leaving(group, depth, 1))
    return root
