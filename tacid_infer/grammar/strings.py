"""Strings: lengths, patterns, formats and excluded values, each alone or together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ..gbnf import LONGEST, NEVER, Expr, Ref, repeat, seq
from ..regular import Automaton, Pattern, TooLarge, from_pattern, from_words
from ..regular.structure import is_deterministic, whole
from .document import Site
from .forms import Form
from .maker import Maker
from .primitives import QUOTE
from .shared import RuleMaker, SharedRules, make_shared
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


def string(form: Form, site: Site, maker: Maker) -> Expr:
    """The strings that a form admits, quotes included."""
    if form.max_length is not None and form.min_length > form.max_length:
        return NEVER
    excluded = tuple(value for value, _ in form.excluded if isinstance(value, str))
    texts = tuple((rule.pattern, rule.negated) for rule in form.texts)
    if not texts and not excluded and not form.min_length and form.max_length is None:
        return Ref("string")
    rules, reports = _made(_Demand(texts, excluded, form.min_length, form.max_length))
    for about, reason in reports:
        if about >= 0:
            maker.report(form.texts[about].site, form.texts[about].keyword, reason)
        elif about == _EXCLUDED:
            maker.report(site, "not", reason)
        else:
            maker.report(site, "maxLength" if form.max_length is not None else "minLength", reason)
    return maker.share(rules)


@lru_cache(maxsize=1024)
def _made(demand: _Demand) -> tuple[SharedRules, list[tuple[int, str]]]:
    reports: list[tuple[int, str]] = []
    rules = make_shared("string", demand, lambda maker: _build(demand, maker, reports))
    return rules, reports


def _build(demand: _Demand, maker: RuleMaker, reports: list[tuple[int, str]]) -> Expr:
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
    reports += [(about, "its automaton is too large beside the other constraints") for about in left_out]
    try:
        return seq(QUOTE, automaton_body(automaton, demand.low, demand.high, maker))
    except TooLarge:
        reports.append((_LENGTH, "the length cannot be counted along the pattern"))
    try:
        return seq(QUOTE, automaton_body(automaton, 0, None, maker))
    except TooLarge:
        return _by_structure(demand, maker, reports)


def _counted(demand: _Demand, maker: RuleMaker, reports: list[tuple[int, str]]) -> Expr:
    low, high = demand.low, demand.high
    if low > LONGEST or (high is not None and high - low > LONGEST):
        reports.append((_LENGTH, f"no more than {LONGEST} characters are counted"))
        low, high = min(low, LONGEST), None
    return seq(QUOTE, repeat(Ref("char"), low, high, maker.define), QUOTE)


def _together(demand: _Demand) -> tuple[Automaton | None, list[int]]:
    """The automaton of as many of the constraints as fit, and those that do not."""
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
