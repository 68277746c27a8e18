"""A schema document: where each subschema stands, and what its references lead to.

Source: JSON Schema 2020-12 core, sections 8.2 (identifiers) and 8.2.3 (references); draft 4's ``id``; RFC 6901 (JSON
Pointer). Only references inside the document are followed: nothing is ever fetched.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeAlias
from urllib.parse import unquote, urldefrag, urljoin

from ..errors import InvalidSchema
from .annotations import ANNOTATIONS

Token: TypeAlias = str | int

_HOLDS_NO_SCHEMA = frozenset(("const", "enum", "default", "examples", "example"))
_REFERENCE = ANNOTATIONS | {"$ref"}
_INDEX = re.compile("0|[1-9][0-9]{0,17}")
_PLAIN_INTEGERS = ("draft-03", "draft-04")
_NO_CONDITIONS = (*_PLAIN_INTEGERS, "draft-06")
_SIBLINGS_IGNORED = (*_NO_CONDITIONS, "draft-07")


class Derived(dict[str, Any]):
    """A schema that the compiler made (a negation, a merged enum). It does not close the object that it constrains."""


class Site:
    """One subschema, and where it stands.

    Attributes:
        schema: the subschema: a mapping or a boolean, not checked yet.
        parent: the site whose schema holds it, or None at the root.
        tokens: the steps from the parent.
        keyword: of a schema that the compiler made in place of a keyword of its parent (a negation for ``not``), that
            keyword: whatever stands in such a schema is reported as the keyword's.
    """

    __slots__ = ("keyword", "parent", "schema", "tokens")

    def __init__(self, schema: Any, parent: Site | None, tokens: tuple[Token, ...], keyword: str | None = None) -> None:
        self.schema = schema
        self.parent = parent
        self.tokens = tokens
        self.keyword = keyword

    @property
    def pointer(self) -> str:
        """JSON Pointer from the document's root."""
        steps: list[str] = []
        site: Site | None = self
        while site is not None:
            if site.keyword is not None:
                steps.clear()
            steps.extend(str(token).replace("~", "~0").replace("/", "~1") for token in reversed(site.tokens))
            site = site.parent
        return "".join(f"/{step}" for step in reversed(steps))

    def invalid(self, keyword: str | None, what: str) -> InvalidSchema:
        """An error that names this place."""
        keyword = self.keyword or keyword
        pointer = self.pointer + (f"/{keyword}" if keyword is not None else "")
        return InvalidSchema(f"schema at {pointer or 'its root'}: {what}", pointer=pointer, keyword=keyword)


class Document:
    """One schema document.

    Args:
        schema: the root schema.
    """

    def __init__(self, schema: Any) -> None:
        self.root = Site(schema, None, ())
        self._sites: dict[int, Site] = {id(schema): self.root}
        self._derived: list[Any] = []
        self._targets: dict[str, Site] | None = None
        self._ends: dict[Site, Site] = {}
        self.negations: dict[tuple[Site, Site, str], tuple[Site | None, int]] = {}
        """Negations made so far; None, with the depth at which it was tried, where none could be written."""
        dialect = str(schema.get("$schema")) if isinstance(schema, Mapping) else ""
        self.siblings_ignored = any(draft in dialect for draft in _SIBLINGS_IGNORED)
        """Whether a ``$ref`` hides the keywords beside it, as drafts up to 7 say."""
        self.conditions_ignored = any(draft in dialect for draft in _NO_CONDITIONS)
        """Whether the draft that the schema declares came before ``if``, which its validators then do not read."""
        self.plain_integers = any(draft in dialect for draft in _PLAIN_INTEGERS)
        """Whether the draft that the schema declares takes 1.0 for no integer."""

    def child(self, site: Site, *tokens: Token) -> Site:
        """The subschema at these steps below a site."""
        schema = site.schema
        for token in tokens:
            schema = schema[token]
        if schema is True or schema is False:
            return Site(schema, site, tokens, site.keyword)
        known = self._sites.get(id(schema))
        if known is None:
            keyword = site.keyword if type(schema) is Derived else None
            known = self._sites[id(schema)] = Site(schema, site, tokens, keyword)
        return known

    def derived(self, schema: Any, site: Site, keyword: str | None = None) -> Site:
        """A schema made by the compiler, reported as standing where ``site`` does, or for this keyword of it."""
        self._derived.append(schema)
        made = self._sites[id(schema)] = Site(schema, site, (), keyword)
        return made

    def end(self, site: Site) -> Site:
        """Where a schema that is a ``$ref`` and no more leads; the site itself if it demands anything else.

        Places that refer to one schema are one place: it is compiled once, however often it is referred to.
        """
        if type(site.schema) is dict and "$ref" not in site.schema:
            return site
        known = self._ends.get(site)
        if known is None:
            here, passed = site, {site}
            while (target := self._only(here)) is not None and target not in passed:
                passed.add(target)
                here = target
            # What leads in a circle stays, to be told as the error that it is.
            known = self._ends[site] = site if self._only(here) is not None else here
        return known

    def _only(self, site: Site) -> Site | None:
        schema = site.schema
        reference = schema.get("$ref") if isinstance(schema, Mapping) else None
        if not isinstance(reference, str) or not (self.siblings_ignored or schema.keys() <= _REFERENCE):
            return None
        target = self.resolve(site, reference)
        return target if target is not None and isinstance(target.schema, (Mapping, bool)) else None

    def resolve(self, site: Site, reference: str) -> Site | None:
        """The site that a ``$ref`` at ``site`` leads to, or None if it leads nowhere in this document."""
        resource = self._resource(site)
        if reference == "#":
            return resource
        if reference.startswith("#/"):
            # Where `id` names something else than the schema, as it does in the wild, the pointer is the root's.
            return self._follow(resource, reference[1:]) or self._follow(self.root, reference[1:])
        uri, fragment = _absolute(self._base(site), reference)
        if fragment and not fragment.startswith("/"):
            return self._index().get(f"{uri}#{unquote(fragment)}")
        target = self._index().get(uri)
        return target if target is None or not fragment else self._follow(target, fragment)

    def _follow(self, site: Site, pointer: str) -> Site | None:
        node = site.schema
        tokens: list[Token] = []
        for raw in unquote(pointer).split("/")[1:]:
            step = raw.replace("~1", "/").replace("~0", "~")
            token: Token = step
            if isinstance(node, list):
                if not _INDEX.fullmatch(step) or int(step) >= len(node):
                    return None
                token = int(step)
            elif not isinstance(node, Mapping) or step not in node:
                return None
            node = node[token]
            tokens.append(token)
        # Step by step, so that an identifier on the way becomes the base of what is below it.
        for token in tokens:
            site = self._step(site, token)
        return site

    def _step(self, site: Site, token: Token) -> Site:
        schema = site.schema[token]
        known = self._sites.get(id(schema)) if isinstance(schema, (Mapping, list)) else None
        if known is None:
            known = Site(schema, site, (token,))
            if isinstance(schema, (Mapping, list)):
                self._sites[id(schema)] = known
        return known

    def _resource(self, site: Site) -> Site:
        """The nearest enclosing schema that has an identifier of its own."""
        here: Site | None = site
        while here is not None and here.parent is not None:
            if self._identifier(here.schema):
                return here
            here = here.parent
        return self.root

    def _base(self, site: Site) -> str:
        identifiers: list[str] = []
        here: Site | None = site
        while here is not None:
            if identifier := self._identifier(here.schema):
                identifiers.append(identifier)
            here = here.parent
        base = ""
        for identifier in reversed(identifiers):
            base, _ = _absolute(base, identifier)
        return base

    def _index(self) -> dict[str, Site]:
        """Every identifier and anchor of the document, as absolute as the document makes them."""
        if self._targets is not None:
            return self._targets
        self._targets = {}
        todo: list[tuple[Site, str]] = [(self.root, "")]
        while todo:
            site, base = todo.pop()
            schema = site.schema
            if isinstance(schema, Mapping):
                if identifier := self._identifier(schema):
                    base, _ = _absolute(base, identifier)
                    self._targets.setdefault(base, site)
                elif site.parent is None:
                    self._targets.setdefault(base, site)
                for anchor in _anchors(schema):
                    self._targets.setdefault(f"{base}#{anchor}", site)
                steps: list[Token] = [key for key in schema if key not in _HOLDS_NO_SCHEMA]
            elif isinstance(schema, list):
                steps = list(range(len(schema)))
            else:
                continue
            todo.extend((self._step(site, step), base) for step in reversed(steps))
        return self._targets

    def _identifier(self, schema: Any) -> str | None:
        """A schema's own base URI; an ``id`` that is only a fragment is an anchor (draft 4)."""
        if not isinstance(schema, Mapping) or (self.siblings_ignored and "$ref" in schema):
            return None
        for keyword in ("$id", "id"):
            value = schema.get(keyword)
            if isinstance(value, str) and value and not value.startswith("#"):
                return value
        return None


def _absolute(base: str, reference: str) -> tuple[str, str]:
    """A reference as an absolute URI and its fragment; one that is no URI stays as it is written."""
    try:
        uri, fragment = urldefrag(urljoin(base, reference))
    except ValueError:
        uri, _, fragment = reference.partition("#")
    return uri, fragment


def _anchors(schema: Mapping[str, Any]) -> list[str]:
    found = [schema[keyword] for keyword in ("$anchor", "$dynamicAnchor") if isinstance(schema.get(keyword), str)]
    for keyword in ("$id", "id"):
        value = schema.get(keyword)
        if isinstance(value, str) and len(value) > 1 and value.startswith("#"):
            found.append(value[1:])
    return found
