"""Turns a goal into its alternatives, each a ``Form``, one of which the value must meet.

The values of properties and items stay goals, so a recursive schema stays finite. What a form cannot express is left
out of it, never guessed, and reported as widened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from .annotations import ANNOTATIONS
from .disjoint import is_contradictory, make_exclusive
from .document import Derived, Document, Site, Token
from .forms import Form, Goal, ItemMap, KeyMap, KeyRule, open_map
from .keywords import ADDERS, read_names, read_pattern
from .negation import negate
from .values import TYPE_NAMES, identity, short, type_of

Report: TypeAlias = Callable[[Site, str, str], None]
"""Takes the site, the keyword and the reason of a widening."""

_MOST_BRANCHES = 256
_MOST_COMBINATIONS = 64
"""A value is compiled once for each combination that demands something else of it, and so on below that: so what
multiplies is bounded much sooner than what one schema lists."""
_MOST_DOUBLED = 16
"""Conditions side by side double the alternatives: beyond these, those that contradict themselves are looked for."""
_MOST_STEPS = 40_000
"""Schemas read for one goal, once for each form: what refers to others twice, which do too, would be read for ever."""
_DEEPEST = 120


class Normaliser:
    """Normalises the goals of one document.

    Args:
        document: where the goals' sites stand.
        report: called for each keyword that a form cannot express.
    """

    def __init__(self, document: Document, report: Report) -> None:
        self.document = document
        self.report = report
        self._memo: dict[tuple[int, ...], tuple[Goal, list[Form]]] = {}
        self._steps = 0

    def alternatives(self, goal: Goal) -> list[Form]:
        """The forms of a goal; none if it is plainly without instances. Not to be changed by the caller.

        Raises:
            InvalidSchema: a keyword's value is malformed, or a reference leads only to itself.
        """
        key = tuple(map(id, goal))
        known = self._memo.get(key)
        if known is not None:
            return known[1]
        forms = [Form()]
        self._steps = 0
        for site in goal:
            forms = self.apply(site, forms, ())
        # The goal is kept with its forms, so that no other site can come by its identity.
        self._memo[key] = goal, forms
        return forms

    def apply(self, site: Site, forms: list[Form], path: tuple[Site, ...]) -> list[Form]:
        """Each form, with all that the site demands added to it. The forms are used up."""
        schema = site.schema
        if schema is True or not forms:
            return forms
        if schema is False:
            return []
        if type(schema) is not dict and not isinstance(schema, Mapping):
            raise site.invalid(None, "a schema must be an object or a boolean")
        if len(path) > _DEEPEST:
            raise site.invalid(None, f"schemas that apply to one place are nested more than {_DEEPEST} deep")
        if site in path:
            raise site.invalid("$ref" if "$ref" in schema else None, "the schema refers only to itself")
        self._steps += len(forms)
        if self._steps > _MOST_STEPS:
            keyword = next(iter(schema), "")
            return self._given_up(site, keyword, "too many schemas to read: nothing of this one is enforced", forms)
        reference = schema.get("$ref")
        if reference is not None and self.document.siblings_ignored:
            return self._reference(site, reference, forms, path)
        combined: list[str] = []
        for keyword, value in schema.items():
            adder = ADDERS.get(keyword)
            if adder is not None:
                for form in forms:
                    adder(self, site, value, form)
            elif keyword in _COMBINERS:
                combined.append(keyword)
        if "properties" in schema or "additionalProperties" in schema or "patternProperties" in schema:
            self._add_keys(site, forms)
        if "items" in schema or "prefixItems" in schema:
            self._add_items(site, forms)
        forms = [form for form in forms if not form.is_empty()]
        if combined:
            deeper = (*path, site)
            for keyword in sorted(combined, key=_ORDER.__getitem__):
                forms = _COMBINERS[keyword](self, site, schema[keyword], forms, deeper)
        return forms

    def _add_keys(self, site: Site, forms: list[Form]) -> None:
        schema, child = site.schema, self._held
        named: dict[str, Site] = {}
        if "properties" in schema:
            if not isinstance(schema["properties"], Mapping):
                raise site.invalid("properties", "properties must be an object")
            named = {name: child(site, "properties", name) for name in schema["properties"]}
        patterns: list[KeyRule] = []
        if "patternProperties" in schema:
            if not isinstance(schema["patternProperties"], Mapping):
                raise site.invalid("patternProperties", "patternProperties must be an object")
            for source in schema["patternProperties"]:
                pattern = read_pattern(self, site, "patternProperties", source)
                patterns.append(KeyRule(pattern, child(site, "patternProperties", source)))
        others = child(site, "additionalProperties") if "additionalProperties" in schema else None
        closes = bool(named) and not isinstance(schema, Derived)
        if named or patterns or others is not None:
            for form in forms:
                form.keys += (KeyMap(site, named, tuple(patterns), others, closes),)

    def _add_items(self, site: Site, forms: list[Form]) -> None:
        schema, child = site.schema, self._held
        listed = "prefixItems" if "prefixItems" in schema else "items"
        prefix: tuple[Site, ...] = ()
        rest: Site | None = None
        if isinstance(schema.get(listed), list):
            prefix = tuple(child(site, listed, index) for index in range(len(schema[listed])))
            follow = "items" if listed == "prefixItems" else "additionalItems"
            if follow in schema:
                rest = child(site, follow)
        elif listed == "prefixItems":
            raise site.invalid("prefixItems", "prefixItems must be a list of schemas")
        else:
            rest = child(site, "items")
        for form in forms:
            form.items += (ItemMap(site, prefix, rest),)

    def _held(self, site: Site, *tokens: Token) -> Site:
        return self.document.end(self.document.child(site, *tokens))

    # In-place applicators

    def _reference(self, site: Site, value: Any, forms: list[Form], path: tuple[Site, ...]) -> list[Form]:
        if not isinstance(value, str):
            raise site.invalid("$ref", "a reference must be text")
        target = self.document.resolve(site, value)
        if target is None:
            return self._given_up(site, "$ref", f"{short(value)} leads nowhere in this schema", forms)
        if not isinstance(target.schema, (Mapping, bool)):
            raise site.invalid("$ref", f"{short(value)} does not lead to a schema")
        if target in path or target is site:
            raise site.invalid("$ref", f"the reference {short(value)} leads only to itself")
        return self.apply(target, forms, (*path, site))

    def _dynamic(self, site: Site, value: Any, forms: list[Form], path: tuple[Site, ...]) -> list[Form]:
        return self._given_up(site, "$dynamicRef", "dynamic references are not followed", forms)

    def _recursive(self, site: Site, value: Any, forms: list[Form], path: tuple[Site, ...]) -> list[Form]:
        return self._given_up(site, "$recursiveRef", "dynamic references are not followed", forms)

    def _all_of(self, site: Site, value: Any, forms: list[Form], path: tuple[Site, ...]) -> list[Form]:
        for branch in self._branches(site, "allOf", value):
            forms = self.apply(branch, forms, path)
        return forms

    def _any_of(self, site: Site, value: Any, forms: list[Form], path: tuple[Site, ...]) -> list[Form]:
        return self._either(site, "anyOf", self._branches(site, "anyOf", value), forms, path)

    def _one_of(self, site: Site, value: Any, forms: list[Form], path: tuple[Site, ...]) -> list[Form]:
        branches = self._branches(site, "oneOf", value)
        listed = [literals for branch in branches if (literals := _listed(branch)) is not None]
        keys = [identity(item) for literals in listed for item in literals]
        if len(listed) < len(branches) or len(set(keys)) < len(keys):
            branches = make_exclusive(self, site, branches, forms, path)
        return self._either(site, "oneOf", branches, forms, path)

    def _branches(self, site: Site, keyword: str, value: Any) -> list[Site]:
        if not isinstance(value, list):
            raise site.invalid(keyword, f"{keyword} must be a list of schemas")
        return [self.document.child(site, keyword, index) for index in range(len(value))]

    def _either(
        self, site: Site, keyword: str, branches: Sequence[Site], forms: list[Form], path: tuple[Site, ...]
    ) -> list[Form]:
        branches = self._gathered(site, keyword, branches)
        most = _MOST_BRANCHES if len(forms) == 1 or len(branches) == 1 else max(_MOST_COMBINATIONS, len(forms))
        found: list[Form] = []
        for branch in branches:
            found.extend(self.apply(branch, [form.copy() for form in forms], path))
            if len(found) > most and len(found := self._possible(found)) > most:
                return self._given_up(site, keyword, "too many alternatives to tell apart", forms)
        return found

    def _possible(self, forms: list[Form]) -> list[Form]:
        return [form for form in forms if not is_contradictory(self.document, form)]

    def _two_ways(
        self, site: Site, keyword: str, one: list[Form], other: list[Form], instead: list[Form]
    ) -> list[Form]:
        """Both, or, where that would be too many and go on doubling, what was there before them."""
        found = [*one, *other]
        if len(found) > _MOST_DOUBLED and len(found := self._possible(found)) > _MOST_COMBINATIONS:
            return self._given_up(site, keyword, "too many alternatives to tell apart", instead)
        return found

    def _gathered(self, site: Site, keyword: str, branches: Sequence[Site]) -> list[Site]:
        """Branches that only list values, as one: a union of thousands of constants is an enum."""
        kept = [branch for branch in branches if _listed(branch) is None]
        if len(kept) >= len(branches) - 1:
            return list(branches)
        values = [item for branch in branches for item in _listed(branch) or ()]
        return [*kept, self.document.derived(Derived(enum=values), site, keyword)]

    def _not(self, site: Site, value: Any, forms: list[Form], path: tuple[Site, ...]) -> list[Form]:
        denied = negate(self.document, self.document.child(site, "not"), site, "not")
        if denied is None:
            self.report(site, "not", "this negation cannot be written as a grammar")
            return forms
        return self.apply(denied, forms, path)

    def _if(self, site: Site, value: Any, forms: list[Form], path: tuple[Site, ...]) -> list[Form]:
        if self.document.conditions_ignored:
            return self._given_up(site, "if", "the draft that the schema declares has no such keyword", forms)
        child = self.document.child
        condition = child(site, "if")
        then = child(site, "then") if "then" in site.schema else Site(True, site, ())
        otherwise = child(site, "else") if "else" in site.schema else Site(True, site, ())
        denied = negate(self.document, condition, site, "if")
        if denied is None:
            self.report(site, "if", "the condition cannot be negated: either outcome is admitted")
            denied = Site(True, site, ())
        held = self.apply(then, self.apply(condition, [form.copy() for form in forms], path), path)
        missed = self.apply(otherwise, self.apply(denied, [form.copy() for form in forms], path), path)
        return self._two_ways(site, "if", held, missed, forms)

    def _dependent_schemas(self, site: Site, value: Any, forms: list[Form], path: tuple[Site, ...]) -> list[Form]:
        return self._dependencies(site, value, forms, path, "dependentSchemas")

    def _dependencies(
        self, site: Site, value: Any, forms: list[Form], path: tuple[Site, ...], keyword: str = "dependencies"
    ) -> list[Form]:
        if not isinstance(value, Mapping):
            raise site.invalid(keyword, f"{keyword} must be an object")
        for key, demand in value.items():
            if isinstance(demand, str):
                demand = [demand]  # Draft 3.
            elif isinstance(demand, Mapping) and demand.keys() - ANNOTATIONS == {"required"}:
                demand = demand["required"]  # No alternatives, then.
            if isinstance(demand, list):
                for form in forms:
                    form.dependents += ((key, read_names(site, keyword, demand), site),)
                continue
            absent = self.document.derived(Derived(properties={key: False}), site, keyword)
            present = self.document.derived(Derived(type="object", required=[key]), site, keyword)
            held = self.apply(present, [form.copy() for form in forms], path)
            held = self.apply(self.document.child(site, keyword, key), held, path)
            missed = self.apply(absent, [form.copy() for form in forms], path)
            forms = self._two_ways(site, keyword, held, missed, forms)
        return forms

    def _given_up(self, site: Site, keyword: str, reason: str, forms: list[Form]) -> list[Form]:
        """The forms without what is not enforced, and open to whatever keys that would have named."""
        self.report(site, keyword, reason)
        for form in forms:
            form.keys += (open_map(site),)
        return forms

    def _unevaluated(self, site: Site, value: Any, forms: list[Form], path: tuple[Site, ...]) -> list[Form]:
        """``unevaluatedProperties`` as ``additionalProperties`` over all names that the schema evaluates anywhere."""
        child = self.document.child
        site_rest = child(site, "unevaluatedProperties")
        if site_rest.schema is True:
            # Every key is evaluated, then: no such keyword around this one refuses any.
            for form in forms:
                form.keys += (KeyMap(site, {}, (), site_rest),)
            return forms
        named: dict[str, Site] = {}
        patterns: list[KeyRule] = []
        anything = Site(True, site, ())
        for form in self.apply(self.document.derived(_without_unevaluated(site.schema), site), [Form()], path[:-1]):
            for keys in form.keys:
                if keys.others is not None:
                    return forms
                named.update((name, anything) for name in keys.named)
                patterns.extend(KeyRule(rule.pattern, anything) for rule in keys.patterns)
        if any(keyword in site.schema for keyword in ("anyOf", "if", "dependentSchemas", "not")):
            self.report(site, "unevaluatedProperties", "a key that any branch names is admitted in every branch")
        for form in forms:
            form.keys += (KeyMap(site, named, tuple(patterns), site_rest, closes=True),)
        return forms


def _without_unevaluated(schema: Mapping[str, Any]) -> Derived:
    return Derived({keyword: value for keyword, value in schema.items() if keyword != "unevaluatedProperties"})


def _listed(site: Site) -> list[Any] | None:
    """The values of a schema that only lists values, else None."""
    schema = site.schema
    if not isinstance(schema, Mapping) or ("const" in schema) == ("enum" in schema):
        return None
    if schema.keys() - ANNOTATIONS - {"const", "enum", "type"}:
        return None
    listed = schema["enum"] if "enum" in schema else [schema["const"]]
    if not isinstance(listed, list):
        return None
    if "type" not in schema:
        return listed
    kind = schema["type"]
    wanted = TYPE_NAMES.get(kind) if isinstance(kind, str) else None
    return None if wanted is None else [item for item in listed if type_of(item) & wanted]


_COMBINERS: dict[str, Callable[[Normaliser, Site, Any, list[Form], tuple[Site, ...]], list[Form]]] = {
    "$ref": Normaliser._reference,
    "$dynamicRef": Normaliser._dynamic,
    "$recursiveRef": Normaliser._recursive,
    "allOf": Normaliser._all_of,
    "anyOf": Normaliser._any_of,
    "oneOf": Normaliser._one_of,
    "not": Normaliser._not,
    "if": Normaliser._if,
    "dependencies": Normaliser._dependencies,
    "dependentSchemas": Normaliser._dependent_schemas,
    "unevaluatedProperties": Normaliser._unevaluated,
}
_ORDER = {keyword: number for number, keyword in enumerate(_COMBINERS)}
