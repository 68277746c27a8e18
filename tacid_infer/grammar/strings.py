"""Strings: lengths, patterns, formats and excluded values, each alone or together."""

from __future__ import annotations

from ..gbnf import LONGEST, Alt, Expr, Ref, repeat, seq
from ..regular import Automaton, TooLarge, from_pattern, from_words
from ..regular.structure import is_deterministic, whole
from .document import Site
from .forms import Form, TextRule
from .maker import Maker
from .primitives import QUOTE
from .texts import automaton_body, pattern_body


def string(form: Form, site: Site, maker: Maker) -> Expr:
    """The strings that a form admits, quotes included."""
    low, high = form.min_length, form.max_length
    if high is not None and low > high:
        return Alt(())
    excluded = [value for value, _ in form.excluded if isinstance(value, str)]
    if not form.texts and not excluded:
        return _counted(low, high, site, maker)
    if not excluded and low == 0 and high is None and len(form.texts) == 1 and not form.texts[0].negated:
        node = whole(form.texts[0].pattern.node)
        if node is not None and is_deterministic(node):
            return seq(QUOTE, pattern_body(node, maker), QUOTE)
    automaton, left_out = _together(form.texts)
    for rule in left_out:
        maker.report(rule.site, rule.keyword, "its automaton is too large beside the other constraints")
    if excluded:
        words = from_words(excluded).complement()
        try:
            automaton = words if automaton is None else automaton.intersect(words)
        except TooLarge:
            maker.report(site, "not", "the excluded values do not fit the pattern's automaton")
    if automaton is None:
        return _by_structure(form, site, maker)
    try:
        return seq(QUOTE, automaton_body(automaton, low, high, maker))
    except TooLarge:
        keyword = "maxLength" if high is not None else "minLength"
        maker.report(site, keyword, "the length cannot be counted along the pattern")
    try:
        return seq(QUOTE, automaton_body(automaton, 0, None, maker))
    except TooLarge:
        return _by_structure(form, site, maker)


def _counted(low: int, high: int | None, site: Site, maker: Maker) -> Expr:
    if low == 0 and high is None:
        return Ref("string")
    if low > LONGEST:
        maker.report(site, "minLength", f"no more than {LONGEST} characters are counted")
        low = LONGEST
    if high is not None and high - low > LONGEST:
        maker.report(site, "maxLength", f"no more than {LONGEST} characters are counted")
        high = None
    return maker.define(seq(QUOTE, repeat(Ref("char"), low, high, maker.define), QUOTE))


def _together(texts: tuple[TextRule, ...]) -> tuple[Automaton | None, list[TextRule]]:
    """The automaton of as many of the rules as fit, and the rules that do not."""
    automaton: Automaton | None = None
    left_out: list[TextRule] = []
    for rule in texts:
        try:
            one = from_pattern(rule.pattern)
            if rule.negated:
                one = one.complement()
            automaton = one if automaton is None else automaton.intersect(one)
        except TooLarge:
            left_out.append(rule)
    return automaton, left_out if automaton is not None else []


def _by_structure(form: Form, site: Site, maker: Maker) -> Expr:
    """One pattern written as it stands: exact, if slower to sample; what else the form demands is left out."""
    for number, rule in enumerate(form.texts):
        node = None if rule.negated else whole(rule.pattern.node)
        if node is not None:
            for other in (*form.texts[:number], *form.texts[number + 1 :]):
                maker.report(other.site, other.keyword, "its automaton is too large")
            if form.min_length or form.max_length is not None:
                maker.report(
                    site, "maxLength" if form.max_length is not None else "minLength", "not beside the pattern"
                )
            return seq(QUOTE, pattern_body(node, maker), QUOTE)
    for rule in form.texts:
        maker.report(rule.site, rule.keyword, "its automaton is too large")
    return _counted(form.min_length, form.max_length, site, maker)
