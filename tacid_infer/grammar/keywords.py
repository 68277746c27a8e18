"""The keywords that only add to a form: what each one demands, and what its value may be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from ..regular import Pattern, UnsupportedPattern, parse_pattern
from .document import Site
from .formats import FORMATS
from .forms import Form, TextRule, open_map
from .maker import Context
from .values import FRACTION, INTEGER, NULL, TYPE_NAMES, decimal, identity, is_writable, short, type_of


def _type(context: Context, site: Site, value: Any, form: Form) -> None:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names:
        raise site.invalid("type", "type must be a type's name or a list of them")
    types = 0
    for name in names:
        if not isinstance(name, str) or name not in TYPE_NAMES:
            raise site.invalid("type", f"{short(str(name))} is not a type")
        types |= TYPE_NAMES[name]
    if site.schema.get("nullable") is True:
        types |= NULL
    form.types &= types
    if form.literals is not None:
        form.literals = {key: entry for key, entry in form.literals.items() if type_of(entry[0]) & types}


def _enum(context: Context, site: Site, value: Any, form: Form) -> None:
    if not isinstance(value, list):
        raise site.invalid("enum", "enum must be a list")
    _restrict(site, value, form, "enum")


def _const(context: Context, site: Site, value: Any, form: Form) -> None:
    _restrict(site, [value], form, "const")


def _restrict(site: Site, values: list[Any], form: Form, keyword: str) -> None:
    listed: dict[Any, tuple[Any, Site]] = {}
    for value in values:
        if not is_writable(value):
            raise site.invalid(keyword, "a value that no JSON text in UTF-8 can hold")
        if type_of(value) & form.types:
            key = identity(value)
            if form.literals is None or key in form.literals:
                listed.setdefault(key, (value, site))
    form.literals = listed


def _exclude(context: Context, site: Site, value: Any, form: Form) -> None:
    form.excluded += tuple((item, site) for item in value)


def _open(context: Context, site: Site, value: Any, form: Form) -> None:
    form.keys += (open_map(site),)


def _fraction(context: Context, site: Site, value: Any, form: Form) -> None:
    form.types &= ~INTEGER
    if form.types & FRACTION:
        context.report(site, "not", "a whole number is not kept out")


def _bound(side: str, is_open: bool) -> Callable[[Context, Site, Any, Form], None]:
    keyword = ("exclusive" + side.title()) if is_open else side

    def add(context: Context, site: Site, value: Any, form: Form) -> None:
        if is_open and isinstance(value, bool):
            return  # Draft 4: a flag beside minimum and maximum.
        bound = _finite(site, keyword, value)
        strict = is_open or site.schema.get("exclusive" + side.title()) is True
        (form.raise_low if side == "minimum" else form.drop_high)(bound, strict)

    return add


def _finite(site: Site, keyword: str, value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise site.invalid(keyword, f"{keyword} must be a number")
    number = decimal(value)
    if not number.is_finite():
        raise site.invalid(keyword, f"{keyword} is too large for a number")
    return number


def _multiple(context: Context, site: Site, value: Any, form: Form) -> None:
    number = _finite(site, "multipleOf", value)
    if number <= 0:
        raise site.invalid("multipleOf", "multipleOf must be greater than 0")
    form.multiples += ((number, site),)


def _count(keyword: str, attribute: str, *, largest: bool) -> Callable[[Context, Site, Any, Form], None]:
    def add(context: Context, site: Site, value: Any, form: Form) -> None:
        number = _whole(site, keyword, value)
        known = getattr(form, attribute)
        if known is None or (number < known if largest else number > known):
            setattr(form, attribute, number)

    return add


def _whole(site: Site, keyword: str, value: Any) -> int:
    number = _finite(site, keyword, value)
    if number < 0 or number != number.to_integral_value():
        raise site.invalid(keyword, f"{keyword} must be a whole number, 0 or more")
    return int(number)


def _pattern(context: Context, site: Site, value: Any, form: Form) -> None:
    if not isinstance(value, str):
        raise site.invalid("pattern", "pattern must be text")
    if (parsed := read_pattern(context, site, "pattern", value)) is not None:
        form.texts += (TextRule(parsed, site, "pattern"),)


def read_pattern(context: Context, site: Site, keyword: str, source: str) -> Pattern | None:
    """The pattern, or None, with a report, if it has no automaton."""
    try:
        return parse_pattern(source)
    except UnsupportedPattern as error:
        context.report(site, keyword, f"the pattern {short(source)} holds {error}")
        return None


def _no_pattern(context: Context, site: Site, value: Any, form: Form) -> None:
    if (parsed := read_pattern(context, site, "not", value)) is not None:
        form.texts += (TextRule(parsed, site, "not", negated=True),)


def _format(context: Context, site: Site, value: Any, form: Form) -> None:
    if not isinstance(value, str):
        raise site.invalid("format", "format must be text")
    if value in FORMATS:
        form.texts += (TextRule(FORMATS[value](), site, "format"),)
    else:
        context.report(site, "format", f"the format {short(value)} is not enforced")


def _required(context: Context, site: Site, value: Any, form: Form) -> None:
    if isinstance(value, bool):
        return  # Draft 3 puts a flag on the property itself.
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise site.invalid("required", "required must be a list of names")
    form.required = {**form.required, **{name: site for name in value if name not in form.required}}


def _dependent_required(context: Context, site: Site, value: Any, form: Form) -> None:
    if not isinstance(value, Mapping):
        raise site.invalid("dependentRequired", "dependentRequired must be an object")
    form.dependents += tuple((key, read_names(site, "dependentRequired", names), site) for key, names in value.items())


def read_names(site: Site, keyword: str, value: Any) -> tuple[str, ...]:
    """The names that a key makes required."""
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise site.invalid(keyword, f"{keyword} must map names to lists of names")
    return tuple(value)


_NOT_ENFORCED = "not enforced by the grammar"
"""What no grammar of a sensible size says: how items compare, or that one among them is of some kind."""


def _unique_items(context: Context, site: Site, value: Any, form: Form) -> None:
    if not isinstance(value, bool):
        raise site.invalid("uniqueItems", "uniqueItems must be true or false")
    if value:
        context.report(site, "uniqueItems", _NOT_ENFORCED)


def _contains(context: Context, site: Site, value: Any, form: Form) -> None:
    """Which item it is, a grammar does not say; that there is one, it does."""
    _schema(site, "contains", value)
    least = _whole(site, "minContains", site.schema["minContains"]) if "minContains" in site.schema else 1
    if "maxContains" in site.schema:
        _whole(site, "maxContains", site.schema["maxContains"])
    if least > 0:
        form.min_items = max(form.min_items, least)
    if least > 0 or "maxContains" in site.schema:
        context.report(site, "contains", _NOT_ENFORCED)


def _unevaluated_items(context: Context, site: Site, value: Any, form: Form) -> None:
    _schema(site, "unevaluatedItems", value)
    if value is not True:
        context.report(site, "unevaluatedItems", _NOT_ENFORCED)


def _schema(site: Site, keyword: str, value: Any) -> None:
    if not isinstance(value, (bool, Mapping)):
        raise site.invalid(keyword, "a schema must be an object or a boolean")


def _property_names(context: Context, site: Site, value: Any, form: Form) -> None:
    form.names += (context.document.child(site, "propertyNames"),)


ADDERS: dict[str, Callable[[Context, Site, Any, Form], None]] = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    "minimum": _bound("minimum", is_open=False),
    "maximum": _bound("maximum", is_open=False),
    "exclusiveMinimum": _bound("minimum", is_open=True),
    "exclusiveMaximum": _bound("maximum", is_open=True),
    "multipleOf": _multiple,
    "minLength": _count("minLength", "min_length", largest=False),
    "maxLength": _count("maxLength", "max_length", largest=True),
    "minItems": _count("minItems", "min_items", largest=False),
    "maxItems": _count("maxItems", "max_items", largest=True),
    "minProperties": _count("minProperties", "min_keys", largest=False),
    "maxProperties": _count("maxProperties", "max_keys", largest=True),
    "pattern": _pattern,
    "format": _format,
    "required": _required,
    "dependentRequired": _dependent_required,
    "propertyNames": _property_names,
    "uniqueItems": _unique_items,
    "contains": _contains,
    "unevaluatedItems": _unevaluated_items,
    # Made by the compiler only: values and patterns that are excluded, and an object that no turn closes.
    "\0excluded": _exclude,
    "\0noPattern": _no_pattern,
    "\0fraction": _fraction,
    "\0open": _open,
}
