"""Numbers within bounds, written digit by digit.

A number of zero or more is either plain digits, with at most one point (``digits``), or one digit, an optional fraction
and an exponent (``exponents``). Below zero the bounds are mirrored.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from functools import lru_cache

from ..gbnf import NEVER, Expr, Lit, Ref, alt, seq
from .digits import Digits, Span
from .document import Site
from .exponents import scientific, whole_scientific
from .forms import Form
from .maker import Maker
from .multiples import Step, Uncountable, common_step
from .primitives import optional
from .shared import RuleMaker, SharedRules, make_shared
from .values import FRACTION


@dataclass(frozen=True, slots=True)
class _Demand:
    """All that a form says of numbers, by content."""

    low: Decimal | None
    low_open: bool
    high: Decimal | None
    high_open: bool
    whole: bool
    plain: bool
    """Whole numbers are written without a point and an exponent."""
    step: Step | None


def number(form: Form, maker: Maker) -> Expr:
    """The numbers that a form admits: whole ones only, if fractions are not among its types."""
    whole = not form.types & FRACTION
    plain = whole and maker.document.plain_integers
    steps = [(step, where) for step, where in form.multiples if not (whole and step == 1)]
    if form.low is None and form.high is None and not steps:
        return Ref("plain-integer" if plain else "integer" if whole else "number")
    step = _step(steps, whole, maker)
    low, high = form.low, form.high
    if low is not None and form.low_open and not whole:
        low = _beyond(low, math.inf)
    if high is not None and form.high_open and not whole:
        high = _beyond(high, -math.inf)
    return maker.share(_made(_Demand(low, form.low_open, high, form.high_open, whole, plain, step)))


def _beyond(bound: Decimal, towards: float) -> Decimal:
    """The bound that decimals must pass for the double that a reader makes of them to pass an open bound.

    What lies nearer to the bound than to the next double is read as the bound itself: 0.99999999999999999999 is 1.
    """
    here = float(bound)
    following = math.nextafter(here, towards)
    if not math.isfinite(following):
        return bound
    with localcontext(prec=1200):
        return (Decimal(here) + Decimal(following)) / 2


@lru_cache(maxsize=1024)
def _made(demand: _Demand) -> SharedRules:
    kind = "integer" if demand.whole else "number"
    return make_shared(kind, demand, lambda maker: _build(demand, maker))


def _build(demand: _Demand, maker: RuleMaker) -> Expr:
    low, high = demand.low, demand.high
    over = under = None
    if high is None or high >= 0:
        over = Span() if low is None or low < 0 else Span(low, demand.low_open)
        over = replace(over, high=high, high_open=demand.high_open)
    if low is None or low <= 0:
        under = Span() if high is None or high > 0 else Span(-high, demand.high_open)
        if low is not None:
            under = replace(under, high=-low, high_open=demand.low_open)
    if over == under and over is not None:
        return seq(optional(Lit("-")), _unsigned(over, demand, maker))
    options = [
        seq(Lit(sign), _unsigned(span, demand, maker)) for sign, span in (("", over), ("-", under)) if span is not None
    ]
    return alt(option for option in options if option != NEVER)


def _step(steps: list[tuple[Decimal, Site]], whole: bool, maker: Maker) -> Step | None:
    """The step that all numbers must be multiples of, if there is one that can be counted."""
    if not steps:
        return None
    try:
        return common_step([step for step, _ in steps], whole)
    except Uncountable as why:
        for _, site in steps:
            maker.report(site, "multipleOf", str(why))
        return None


def _unsigned(span: Span, demand: _Demand, maker: RuleMaker) -> Expr:
    if span.is_empty():
        return NEVER
    plainly = "plain-" if demand.plain else ""
    if demand.step is None and span.high is None and span.low == 0:
        if not span.low_open:
            return Ref(f"{plainly}unsigned-integer" if demand.whole else "unsigned-number")
        if demand.whole:
            return Ref(f"{plainly}positive-integer")
    options = [Digits(span, demand.whole, demand.plain, demand.step, maker).write()]
    if not demand.plain:
        options.append(
            whole_scientific(span, demand.step, maker) if demand.whole else scientific(span, demand.step, maker)
        )
    return alt(option for option in options if option != NEVER)
