"""``oneOf`` as a union of branches that exclude each other."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import reduce
from itertools import combinations
from typing import TypeAlias

from ..regular import UnsupportedPattern, parse_pattern
from .document import Derived, Document, Site
from .forms import Form, Goal, key_goal
from .maker import Normal
from .matching import words_of
from .negation import negate
from .values import ALL_TYPES, NULL, NUMBER, OBJECT, STRING, TYPE_NAMES, identity, type_of

_MOST_BRANCHES = 48
_DEEPEST = 8


def make_exclusive(
    normaliser: Normal, site: Site, branches: list[Site], beside: list[Form], path: tuple[Site, ...]
) -> list[Site]:
    """The branches, each without the instances that it shares with another.

    What stands beside them (a required tag, say) helps to tell them apart.

    Branches that are provably disjoint stay as they are. A shared instance is excluded through the other branch's
    negation where one can be written; else both branches are admitted, and that is reported.
    """
    if len(branches) > _MOST_BRANCHES:
        normaliser.report(site, "oneOf", "too many branches to hold against each other")
        return branches
    whole = beside[0] if len(beside) == 1 else Form()
    forms = [normaliser.apply(branch, [whole.copy()], path) for branch in branches]
    if _are_tagged(normaliser.document, forms):
        return branches
    denials: list[list[Site]] = [[] for _ in branches]
    negations: dict[int, Site | None] = {}
    for one, other in combinations(range(len(branches)), 2):
        if _disjoint(normaliser, forms[one], forms[other]):
            continue
        for kept, shared in ((one, other), (other, one)):
            if shared not in negations:
                negations[shared] = negate(normaliser.document, branches[shared], site, "oneOf")
            denied = negations[shared]
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


def _are_tagged(document: Document, forms: list[list[Form]]) -> bool:
    """Whether all are objects of a key whose values are listed, and others in each branch; False proves nothing."""
    every = [form for branch in forms for form in branch]
    if not every or any(form.types != OBJECT for form in every):
        return False
    for name in every[0].required:
        seen: set[Hashable] = set()
        for branch in forms:
            sketches = [_sketch(document, key_goal(form.keys, name)) for form in branch if name in form.required]
            values = [listed for _, listed in sketches if listed is not None]
            if len(values) < len(branch) or not all(map(seen.isdisjoint, values)):
                break
            seen.update(*values)
        else:
            return True
    return False


def _disjoint(normaliser: Normal, left: list[Form], right: list[Form]) -> bool:
    """Whether no value meets a form of each; False proves nothing."""
    return all(_exclude(normaliser, one, other) for one in left for other in right)


def is_contradictory(document: Document, form: Form) -> bool:
    """Whether it admits objects alone, and a key that it requires plainly has no value; False proves nothing."""
    return form.types == OBJECT and any(
        _apart(_sketch(document, key_goal(form.keys, name)), _ANYTHING) for name in form.required
    )


def _exclude(normaliser: Normal, one: Form, other: Form) -> bool:
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
    if types != OBJECT:
        return False
    # An instance of both would have every key that one of them requires, with a value that suits both.
    return any(
        _apart(
            _sketch(normaliser.document, key_goal(one.keys, name)),
            _sketch(normaliser.document, key_goal(other.keys, name)),
        )
        for name in one.required | other.required
    )


def _below(low: Form, high: Form) -> bool:
    """Whether every number of ``low`` is below every number of ``high``."""
    if low.high is None or high.low is None:
        return False
    return low.high < high.low or (low.high == high.low and (low.high_open or high.low_open))


_Sketch: TypeAlias = tuple[int, dict[Hashable, int] | None]
"""What a glance at a value's schema tells: its types, and its values with their types, if they are listed."""

_ANYTHING: _Sketch = (ALL_TYPES, None)
_NOTHING: _Sketch = (0, {})


def _apart(one: _Sketch, other: _Sketch) -> bool:
    """Whether no value suits both sketches."""
    if not one[0] & other[0]:
        return True
    if one[1] is not None and other[1] is not None:
        return one[1].keys().isdisjoint(other[1])
    listed, types = (one[1], other[0]) if one[1] is not None else (other[1], one[0])
    return listed is not None and not any(kind & types for kind in listed.values())


def _both(one: _Sketch, other: _Sketch) -> _Sketch:
    types = one[0] & other[0]
    listed = one[1] if one[1] is not None else other[1]
    if one[1] is not None and other[1] is not None:
        listed = {key: kind for key, kind in one[1].items() if key in other[1]}
    return types, None if listed is None else {key: kind for key, kind in listed.items() if kind & types}


def _sketch(document: Document, goal: Goal) -> _Sketch:
    found = _ANYTHING
    for site in goal:
        found = _both(found, _sketch_of(document, site, 0))
    return found


def _sketch_of(document: Document, site: Site, depth: int) -> _Sketch:
    """A glance that follows references and combinators, and never a property: so it always ends."""
    schema = site.schema
    if schema is False:
        return 0, None
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return _ANYTHING
    if document.siblings_ignored and "$ref" in schema:
        schema = {"$ref": schema["$ref"]}
    found = _ANYTHING
    names = schema.get("type")
    names = [names] if isinstance(names, str) else names
    if isinstance(names, list) and all(isinstance(name, str) and name in TYPE_NAMES for name in names):
        types = NULL if schema.get("nullable") is True else 0
        for name in names:
            types |= TYPE_NAMES[name]
        found = (types, None)
    for listed in ([schema["const"]] if "const" in schema else None, schema.get("enum")):
        if isinstance(listed, list):
            found = _both(found, (ALL_TYPES, {identity(value): type_of(value) for value in listed}))
    if found[0] == STRING and isinstance(pattern := schema.get("pattern"), str):
        found = _both(found, (STRING, _words(pattern)))
    reference = schema.get("$ref")
    if isinstance(reference, str) and (target := document.resolve(site, reference)) is not None:
        found = _both(found, _sketch_of(document, target, depth + 1))
    for keyword in ("allOf", "anyOf", "oneOf"):
        if isinstance(branches := schema.get(keyword), list):
            parts = [
                _sketch_of(document, document.child(site, keyword, index), depth + 1) for index in range(len(branches))
            ]
            found = _both(
                found, reduce(_both, parts, _ANYTHING) if keyword == "allOf" else reduce(_either, parts, _NOTHING)
            )
    return found


def _words(pattern: str) -> dict[Hashable, int] | None:
    try:
        words = words_of(parse_pattern(pattern))
    except UnsupportedPattern:
        return None
    return None if words is None else {identity(word): STRING for word in words}


def _either(one: _Sketch, other: _Sketch) -> _Sketch:
    listed = None if one[1] is None or other[1] is None else {**one[1], **other[1]}
    return one[0] | other[0], listed
