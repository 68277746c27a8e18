"""``oneOf`` as a union of branches that exclude each other."""

from __future__ import annotations

from itertools import combinations

from .document import Derived, Site
from .forms import Form, key_goal
from .maker import Normal
from .negation import negate
from .values import NUMBER, OBJECT, identity, type_of

_MOST_BRANCHES = 48
_DEEPEST = 3


def make_exclusive(normaliser: Normal, site: Site, branches: list[Site], path: tuple[Site, ...]) -> list[Site]:
    """The branches, each without the instances that it shares with another.

    Branches that are provably disjoint stay as they are. A shared instance is excluded through the other branch's
    negation where one can be written; else both branches are admitted, and that is reported.
    """
    if len(branches) > _MOST_BRANCHES:
        normaliser.report(site, "oneOf", "too many branches to hold against each other")
        return branches
    forms = [normaliser.apply(branch, [Form()], path) for branch in branches]
    denials: list[list[Site]] = [[] for _ in branches]
    for one, other in combinations(range(len(branches)), 2):
        if _disjoint(normaliser, forms[one], forms[other], 0):
            continue
        for kept, shared in ((one, other), (other, one)):
            denied = negate(normaliser.document, branches[shared])
            if denied is not None:
                denials[kept].append(denied)
            else:
                normaliser.report(site, "oneOf", f"branches {one} and {other} may both hold")
    return [
        normaliser.document.derived(Derived(allOf=[branch.schema, *(denial.schema for denial in denied)]), branch)
        if denied
        else branch
        for branch, denied in zip(branches, denials, strict=True)
    ]


def _disjoint(normaliser: Normal, left: list[Form], right: list[Form], depth: int) -> bool:
    """Whether no value meets a form of each; False proves nothing."""
    return all(_exclude(normaliser, one, other, depth) for one in left for other in right)


def _exclude(normaliser: Normal, one: Form, other: Form, depth: int) -> bool:
    types = one.types & other.types
    if types == 0:
        return True
    if one.literals is not None and other.literals is not None:
        return one.literals.keys().isdisjoint(other.literals)
    for form, against in ((one, other), (other, one)):
        if form.literals is not None:
            excluded = {identity(value) for value, _ in against.excluded}
            if all(key in excluded or not type_of(value) & against.types for key, (value, _) in form.literals.items()):
                return True
    if types & ~NUMBER == 0:
        return _below(one, other) or _below(other, one)
    if types != OBJECT or depth > _DEEPEST:
        return False
    return any(
        _disjoint(
            normaliser,
            normaliser.alternatives(key_goal(form, name)),
            normaliser.alternatives(key_goal(against, name)),
            depth + 1,
        )
        for form, against in ((one, other), (other, one))
        for name in form.required
    )


def _below(low: Form, high: Form) -> bool:
    """Whether every number of ``low`` is below every number of ``high``."""
    if low.high is None or high.low is None:
        return False
    return low.high < high.low or (low.high == high.low and (low.high_open or high.low_open))
