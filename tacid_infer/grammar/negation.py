"""The negation of a schema, as another schema, where one can be written exactly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .annotations import ANNOTATIONS
from .document import Derived, Document, Site
from .forms import Form
from .keywords import ADDERS
from .values import ARRAY, BOOLEAN, INTEGER, NULL, NUMBER, OBJECT, STRING, TYPE_NAMES

_DEEPEST = 12
_TYPES = {"null": NULL, "boolean": BOOLEAN, "number": NUMBER, "string": STRING, "array": ARRAY, "object": OBJECT}


def negate(document: Document, site: Site, at: Site, keyword: str, depth: int = 0) -> Site | None:
    """A site whose instances are exactly the values that are not instances of ``site``; None if none can be written.

    What is made stands, for reports, in place of this keyword of ``at``.

    Raises:
        InvalidSchema: a keyword's value is malformed.
    """
    known = document.negations.get((site, at, keyword))
    if known is not None and (known[0] is not None or depth >= known[1]):
        return known[0]
    made = _Negation(document, at, keyword).of(site, depth)
    document.negations[site, at, keyword] = made, depth
    return made


class _Negation:
    """Writes negations in place of one keyword; a context to check what is negated in, where nobody hears of widening:
    what is negated is not enforced by itself."""

    def __init__(self, document: Document, at: Site, keyword: str) -> None:
        self.document = document
        self.at = at
        self.keyword = keyword

    def report(self, site: Site, keyword: str, reason: str) -> None:
        pass

    def of(self, site: Site, depth: int) -> Site | None:
        schema = site.schema
        if schema is True or schema is False:
            return Site(not schema, self.at, ())
        if not isinstance(schema, Mapping):
            raise site.invalid(None, "a schema must be an object or a boolean")
        if depth > _DEEPEST:
            return None
        if "$ref" in schema and self.document.siblings_ignored:
            schema = {"$ref": schema["$ref"]}
        for keyword, value in schema.items():
            if keyword in ADDERS:
                ADDERS[keyword](self, site, value, Form())
        options: list[Any] = []
        for keyword, value in schema.items():
            if keyword in ANNOTATIONS or (keyword == "exclusiveMinimum" and value is False):
                continue
            denied = self.denials(site, keyword, value, depth)
            if denied is None:
                return None
            options.extend(denied)
        if not options:
            return Site(False, self.at, ())
        made = options[0] if len(options) == 1 else Derived(anyOf=options)
        return self.document.derived(made, self.at, self.keyword)

    def denials(self, site: Site, keyword: str, value: Any, depth: int) -> list[Any] | None:
        """Schemas whose union is everything that the keyword alone refuses."""

        def below(*tokens: str | int) -> Any:
            denied = negate(self.document, self.document.child(site, *tokens), self.at, self.keyword, depth + 1)
            return None if denied is None else denied.schema

        match keyword:
            case "type":
                names = [value] if isinstance(value, str) else value
                if site.schema.get("nullable") is True:
                    return None
                held = 0
                for name in names:
                    held |= TYPE_NAMES[name]
                rest = [Derived({"type": "number", "\0fraction": True})] if held & NUMBER == INTEGER else []
                others = [name for name, bit in _TYPES.items() if not held & bit]
                return [Derived(type=others), *rest] if others else rest
            case "const":
                return [Derived({"\0excluded": [value]})]
            case "enum" if isinstance(value, list):
                return [Derived({"\0excluded": value})]
            case "required" if isinstance(value, list):
                named = site.schema.get("properties")
                known = named if isinstance(named, Mapping) else {}
                return [Derived(type="object", properties={name: False}) for name in value if name not in known]
            case "properties" if isinstance(value, Mapping):
                options: list[Any] = []
                required = site.schema.get("required")
                for name in value:
                    denied = below("properties", name)
                    if denied is None:
                        return None
                    if isinstance(required, list) and name in required:
                        # Not there, or not such: one alternative, where many negations side by side would multiply two.
                        options.append(Derived(type="object", properties={name: denied}))
                    elif denied is not False:
                        options.append(Derived(type="object", required=[name], properties={name: denied}))
                return options
            case "minimum" | "maximum":
                other = "exclusiveMaximum" if keyword == "minimum" else "exclusiveMinimum"
                if site.schema.get("exclusive" + keyword.title()) is True:
                    return [Derived({"type": "number", ("maximum" if keyword == "minimum" else "minimum"): value})]
                return [Derived({"type": "number", other: value})]
            case "exclusiveMinimum" if not isinstance(value, bool):
                return [Derived(type="number", maximum=value)]
            case "exclusiveMaximum" if not isinstance(value, bool):
                return [Derived(type="number", minimum=value)]
            case "exclusiveMinimum" | "exclusiveMaximum":
                return []
            case "minLength" | "minItems" | "minProperties" if isinstance(value, int):
                kind, high = _KIND[keyword[3:]], "max" + keyword[3:]
                return [Derived({"type": kind, high: value - 1})] if value > 0 else []
            case "maxLength" | "maxItems" | "maxProperties" if isinstance(value, int):
                return [Derived({"type": _KIND[keyword[3:]], "min" + keyword[3:]: value + 1})]
            case "pattern" if isinstance(value, str):
                return [Derived({"type": "string", "\0noPattern": value})]
            case "not":
                return [self.document.child(site, "not").schema]
            case "$ref" if isinstance(value, str):
                target = self.document.resolve(site, value)
                denied_site = target and negate(self.document, target, self.at, self.keyword, depth + 1)
                return None if denied_site is None else [denied_site.schema]
            case "allOf" if isinstance(value, list):
                return None if None in (parts := [below(keyword, index) for index in range(len(value))]) else parts
            case "anyOf" if isinstance(value, list):
                parts = [below(keyword, index) for index in range(len(value))]
                return None if None in parts else [Derived(allOf=parts)]
        return None


_KIND = {"Length": "string", "Items": "array", "Properties": "object"}
