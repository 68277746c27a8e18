"""What the parts of the compiler need of the whole: small interfaces, so that imports run one way."""

from __future__ import annotations

from typing import Protocol

from ..gbnf import Branch, Expr, Ref
from .document import Document, Site
from .forms import Form, Goal
from .shared import RuleMaker, SharedRules


class Context(Protocol):
    """Where a schema stands, and where a keyword that is not enforced is reported."""

    document: Document

    def report(self, site: Site, keyword: str, reason: str) -> None: ...


class Normal(Context, Protocol):
    """Gives goals their forms."""

    def alternatives(self, goal: Goal) -> list[Form]: ...

    def apply(self, site: Site, forms: list[Form], path: tuple[Site, ...]) -> list[Form]: ...


class Maker(RuleMaker, Context, Protocol):
    """The compiler, as the modules of the types see it."""

    open_objects: bool
    unnamed: dict[tuple[str, ...], Ref]

    def alternatives(self, goal: Goal) -> list[Form]: ...

    def literals(self, goal: Goal) -> list[Branch] | None: ...

    def share(self, rules: SharedRules) -> Expr: ...

    def value(self, goal: Goal, hint: str = "") -> Ref: ...
