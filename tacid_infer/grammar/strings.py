"""Strings: lengths, patterns, formats and excluded values, each alone or together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from ..gbnf import LONGEST, Expr, Ref, repeat, seq
from ..regular import Automaton, Pattern, Product, TooLarge, from_pattern, from_words
from ..regular.structure import is_deterministic, lengths, whole
from .document import Site
from .formats import FORMATS, excess_of, made_ahead
from .forms import Form
from .maker import Maker
from .primitives import QUOTE
from .shared import RuleMaker, SharedRules, make_named, make_shared
from .texts import automaton_body, pattern_body


@dataclass(frozen=True, slots=True)
class _Demand:
    """All that a form says of strings, by content: each pattern with whether it is negated, what is excluded, and the
    lengths, in characters."""

    texts: tuple[tuple[Pattern, bool], ...]
    excluded: tuple[str, ...]
    low: int
    high: int | None


_LENGTH, _EXCLUDED = -1, -2
"""Beside the indices of ``_Demand.texts``: what a report is about."""


def strings(forms: list[Form], site: Site, maker: Maker) -> list[Expr]:
    """The strings that any of the forms admits, quotes included: where it can be, read as one."""
    by_lengths: dict[tuple[int, int | None], dict[_Demand, Form]] = {}
    for form in forms:
        demand = _demand(form)
        if demand == _ANY:
            return [Ref("string")]
        if demand.high is None or demand.low <= demand.high:
            by_lengths.setdefault((demand.low, demand.high), {}).setdefault(demand, form)
    options: list[Expr] = []
    for group in by_lengths.values():
        joint = _either(tuple(group)) if len(group) > 1 else None
        if joint is not None:
            options.append(maker.share(joint))
            for demand, form in group.items():
                _report(_beyond(demand), form, site, maker)
        else:
            options += [_string(demand, form, site, maker) for demand, form in group.items()]
    return options


def _demand(form: Form) -> _Demand:
    excluded = tuple(value for value, _ in form.excluded if isinstance(value, str))
    texts = tuple((rule.pattern, rule.negated) for rule in form.texts)
    return _Demand(texts, excluded, form.min_length, form.max_length)


_ANY = _Demand((), (), 0, None)


def _string(demand: _Demand, form: Form, site: Site, maker: Maker) -> Expr:
    rules, reports = _made(demand)
    _report((*reports, *_beyond(demand)), form, site, maker)
    return maker.share(rules)


def _report(reports: Iterable[tuple[int, str]], form: Form, site: Site, maker: Maker) -> None:
    for about, reason in reports:
        if about >= 0:
            maker.report(form.texts[about].site, form.texts[about].keyword, reason)
        elif about == _EXCLUDED:
            maker.report(site, "not", reason)
        else:
            maker.report(site, "maxLength" if form.max_length is not None else "minLength", reason)


@lru_cache(maxsize=1024)
def _beyond(demand: _Demand) -> tuple[tuple[int, str], ...]:
    """The formats beyond which the demand leaves room for some text, and what for."""
    found: list[tuple[int, str]] = []
    for number, (pattern, negated) in enumerate(demand.texts):
        excess = None if negated else excess_of(pattern)
        if excess is not None and (
            demand == _of(pattern)
            or (excess.longest is not None and (demand.high is None or demand.high > excess.longest))
            or _meets(demand, excess.pattern)
        ):
            found.append((number, excess.reason))
    return tuple(found)


def _meets(demand: _Demand, pattern: Pattern) -> bool:
    """Whether some text meets the demand and the pattern, as far as can be told."""
    try:
        both = _read_together((replace(demand, texts=(*demand.texts, (pattern, False))),))
        return bool(both.limit(demand.low, demand.high).rows)
    except TooLarge:
        return True


@lru_cache(maxsize=256)
def _either(demands: tuple[_Demand, ...]) -> SharedRules | None:
    """What meets any of the demands, all of the same lengths, as one automaton; None if that is too large."""
    try:
        automaton = _read_together(demands)
        low, high = demands[0].low, demands[0].high
        body = lambda maker: seq(QUOTE, automaton_body(automaton, low, high, maker))  # noqa: E731
        return make_shared("string", demands, body)
    except TooLarge:
        return None


def _read_together(demands: tuple[_Demand, ...]) -> Automaton:
    """The automaton of what meets any of the demands, but for their lengths."""
    parts: dict[Pattern | tuple[str, ...], int] = {}
    rules: list[list[tuple[int, bool]]] = []
    for demand in demands:
        rule = [(parts.setdefault(pattern, len(parts)), not negated) for pattern, negated in demand.texts]
        if demand.excluded:
            rule.append((parts.setdefault(demand.excluded, len(parts)), False))
        rules.append(rule)
    if rules == [[(0, True)]]:
        return from_pattern(demands[0].texts[0][0])
    product = Product([from_words(part) if isinstance(part, tuple) else from_pattern(part) for part in parts])
    return product.where(lambda found: any(all(found[part] is wanted for part, wanted in rule) for rule in rules))


@lru_cache(maxsize=1024)
def _made(demand: _Demand) -> tuple[SharedRules, list[tuple[int, str]]]:
    demand = _unbounded(demand)
    if demand.texts and demand == _of(demand.texts[0][0]) and (rules := made_ahead(demand.texts[0][0])):
        return rules, []
    reports: list[tuple[int, str]] = []
    try:
        return make_shared("string", demand, lambda maker: _build(demand, maker, reports)), reports
    except TooLarge:
        rules, reports = _made(replace(demand, low=0, high=None))
        return rules, [*reports, (_LENGTH, "the length cannot be counted along the pattern")]


def _of(pattern: Pattern) -> _Demand:
    """The pattern, and no more."""
    return _Demand(((pattern, False),), (), 0, None)


def make_formats() -> str:
    """The rules of each format alone, as ``formats.gbnf`` holds them: each set under its name and its mentions."""
    blocks = ["# Written by scripts/formats.\n"]
    for name, pattern in FORMATS.items():
        rules = _made_format(name, _of(pattern()))
        blocks.append(f"# {' '.join([name, *sorted(rules.mentions)])}\n{rules.text}")
    return "\n".join(blocks)


def _made_format(name: str, demand: _Demand) -> SharedRules:
    return make_named(f"format-{name}", lambda maker: _build(demand, maker, []))


def _build(demand: _Demand, maker: RuleMaker, reports: list[tuple[int, str]]) -> Expr:
    """The strings, quotes included. Raises TooLarge if they can only be written without counting."""
    if not demand.texts and not demand.excluded:
        return _counted(demand, maker, reports)
    if not demand.excluded and not demand.low and demand.high is None and len(demand.texts) == 1:
        pattern, negated = demand.texts[0]
        node = None if negated else whole(pattern.node)
        if node is not None and is_deterministic(node):
            return seq(QUOTE, pattern_body(node, maker), QUOTE)
    automaton, left_out = _together(demand)
    if automaton is None:
        return _by_structure(demand, maker, reports)
    try:
        body = automaton_body(automaton, demand.low, demand.high, maker)
    except TooLarge:
        if demand.low or demand.high is not None:
            raise
        return _by_structure(demand, maker, reports)
    reports += [(about, "its automaton is too large beside the other constraints") for about in left_out]
    return seq(QUOTE, body)


def _unbounded(demand: _Demand) -> _Demand:
    """The same without the lengths that a pattern keeps to by itself."""
    low, high = demand.low, demand.high
    for pattern, negated in demand.texts if low or high is not None else ():
        node = None if negated else whole(pattern.node)
        if node is not None:
            least, most = lengths(node)
            low = 0 if least >= low else low
            high = None if most is not None and high is not None and most <= high else high
    return replace(demand, low=low, high=high)


def _counted(demand: _Demand, maker: RuleMaker, reports: list[tuple[int, str]]) -> Expr:
    low, high = demand.low, demand.high
    if low > LONGEST or (high is not None and high - low > LONGEST):
        reports.append((_LENGTH, f"no more than {LONGEST} characters are counted"))
        low, high = min(low, LONGEST), None
    return seq(QUOTE, repeat(Ref("char"), low, high, maker.define), QUOTE)


def _together(demand: _Demand) -> tuple[Automaton | None, list[int]]:
    """The automaton of as many of the constraints as fit, and those that do not."""
    try:
        return _read_together((demand,)), []
    except TooLarge:
        pass
    automaton: Automaton | None = None
    left_out: list[int] = []
    for number, (pattern, negated) in enumerate(demand.texts):
        try:
            one = from_pattern(pattern)
            one = one.complement() if negated else one
            automaton = one if automaton is None else automaton.intersect(one)
        except TooLarge:
            left_out.append(number)
    if demand.excluded:
        words = from_words(demand.excluded).complement()
        try:
            automaton = words if automaton is None else automaton.intersect(words)
        except TooLarge:
            left_out.append(_EXCLUDED)
    return automaton, left_out


def _by_structure(demand: _Demand, maker: RuleMaker, reports: list[tuple[int, str]]) -> Expr:
    """One pattern written as it stands: exact, if slower to sample; what else is demanded is left out."""
    for number, (pattern, negated) in enumerate(demand.texts):
        node = None if negated else whole(pattern.node)
        if node is None:
            continue
        others = [other for other in range(len(demand.texts)) if other != number]
        reports += [(other, "its automaton is too large") for other in others]
        if demand.low or demand.high is not None:
            reports.append((_LENGTH, "the length cannot be counted along the pattern"))
        return seq(QUOTE, pattern_body(node, maker), QUOTE)
    reports += [(number, "its automaton is too large") for number in range(len(demand.texts))]
    return _counted(demand, maker, reports)
