"""Arrays: items of fixed position, the rest, and how many there may be."""

from __future__ import annotations

from ..gbnf import LONGEST, NEVER, Alt, Expr, Lit, repeat, seq
from .document import Site
from .forms import Form, Goal, demanding
from .maker import Maker
from .shared import new_rule


def array(form: Form, site: Site, maker: Maker) -> Expr:
    """The arrays that a form admits."""
    low, high = form.min_items, form.max_items
    fixed = max((len(items.prefix) for items in form.items), default=0)
    rest = [items.rest for items in form.items if items.rest is not None]
    if any(part.schema is False for part in rest):
        high = fixed if high is None else min(high, fixed)
    if high is not None and low > high:
        return NEVER
    if high is not None:
        fixed = min(fixed, high)
    expr = _tail(form, fixed, low, high, site, maker)
    for index in range(fixed - 1, -1, -1):
        item = maker.value(_goal(form, index), "item")
        expr = seq(Lit(", ") if index else Lit(""), item, expr)
        if index >= low:
            expr = Alt((Lit("]"), expr))
        if index % 16 == 15:
            expr = new_rule(expr, maker)
    return seq(Lit("["), expr)


def _goal(form: Form, index: int) -> Goal:
    sites: dict[Site, None] = {}
    for items in form.items:
        if index < len(items.prefix):
            sites[items.prefix[index]] = None
        elif items.rest is not None:
            sites[items.rest] = None
    return demanding(sites)


def _tail(form: Form, fixed: int, low: int, high: int | None, site: Site, maker: Maker) -> Expr:
    """The items behind those of fixed position, and the closing bracket."""
    if high is not None and high <= fixed:
        return Lit("]")
    item = maker.value(_goal(form, fixed), "item")
    least = max(0, low - fixed)
    most = None if high is None else high - fixed
    if least > LONGEST:
        maker.report(site, "minItems", f"no more than {LONGEST} items are counted")
        least = LONGEST
    if most is not None and most - least > LONGEST:
        maker.report(site, "maxItems", f"no more than {LONGEST} items are counted")
        most = None
    following: Expr = maker.define(seq(Lit(", "), item))
    if fixed:
        return seq(repeat(following, least, most, maker.define), Lit("]"))
    some = seq(item, repeat(following, max(0, least - 1), None if most is None else most - 1, maker.define), Lit("]"))
    return some if least else Alt((Lit("]"), some))
