"""Whether a JSON value meets a form: decides which of an enum's values the other keywords leave."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from ..regular import Pattern, TooLarge, from_pattern
from .forms import Form, Goal, key_goal
from .maker import Maker, Normal
from .values import ARRAY, NUMBER, OBJECT, STRING, decimal, identity, type_of

_MOST_WORDS = 64


def meets_goal(goal: Goal, value: Any, normaliser: Maker | Normal) -> bool:
    """Whether the value meets one of the goal's forms."""
    return any(meets(form, value, normaliser) for form in normaliser.alternatives(goal))


def meets(form: Form, value: Any, normaliser: Maker | Normal) -> bool:
    """Whether the value meets the form. What the form leaves to widening is not tested."""
    kind = type_of(value)
    if not kind & form.types:
        return False
    if kind == STRING and not form.excluded and not form.texts and form.max_length is None and not form.min_length:
        return form.literals is None or value in form.literals
    key = identity(value)
    if form.literals is not None and key not in form.literals:
        return False
    if any(identity(other) == key for other, _ in form.excluded):
        return False
    if kind & NUMBER:
        return _number(form, value)
    if kind == STRING:
        return _string(form, value)
    if kind == ARRAY:
        return _array(form, value, normaliser)
    return kind != OBJECT or _object(form, value, normaliser)


def listed_words(form: Form) -> list[str] | None:
    """The strings out of which a form takes its own, where it admits strings only and a pattern of it lists them."""
    if form.types != STRING:
        return None
    try:
        for rule in form.texts:
            from_pattern(rule.pattern)
    except TooLarge:
        return None  # Which of the strings meet it, nobody can tell.
    lists = (words_of(rule.pattern) for rule in form.texts if not rule.negated)
    return next((words for words in lists if words is not None), None)


@lru_cache(maxsize=512)
def words_of(pattern: Pattern) -> list[str] | None:
    """The texts that meet the pattern, where they are few: then it is as good as an enum."""
    try:
        return from_pattern(pattern).words(_MOST_WORDS)
    except TooLarge:
        return None


def _number(form: Form, value: float) -> bool:
    number = decimal(value)
    if form.low is not None and (number < form.low or (form.low_open and number == form.low)):
        return False
    if form.high is not None and (number > form.high or (form.high_open and number == form.high)):
        return False
    return all((Fraction(number) / Fraction(step)).denominator == 1 for step, _ in form.multiples)


def _string(form: Form, value: str) -> bool:
    if not _counts(len(value), form.min_length, form.max_length):
        return False
    for rule in form.texts:
        try:
            if from_pattern(rule.pattern).accepts(value) == rule.negated:
                return False
        except TooLarge:
            continue
    return True


def _array(form: Form, value: list[Any], normaliser: Maker | Normal) -> bool:
    if not _counts(len(value), form.min_items, form.max_items):
        return False
    for items in form.items:
        for index, item in enumerate(value):
            site = items.prefix[index] if index < len(items.prefix) else items.rest
            if site is not None and not meets_goal((site,), item, normaliser):
                return False
    return True


def _object(form: Form, value: Mapping[str, Any], normaliser: Maker | Normal) -> bool:
    if not _counts(len(value), form.min_keys, form.max_keys) or not form.required.keys() <= value.keys():
        return False
    if any(key in value and not value.keys() >= set(needs) for key, needs, _ in form.dependents):
        return False
    if not all(meets_goal((site,), name, normaliser) for site in form.names for name in value):
        return False
    return all(meets_goal(key_goal(form.keys, name), item, normaliser) for name, item in value.items())


def _counts(count: int, low: int, high: int | None) -> bool:
    return count >= low and (high is None or count <= high)
