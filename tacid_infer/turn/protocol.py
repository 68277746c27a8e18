"""The two tools that the protocol always offers, as typed models (ADR-0056; issue "A turn from end to end").

Their schemas are generated from the models, and a call's arguments are parsed back into them, so that the two cannot
drift apart.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias, Union

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from typing_extensions import TypeAliasType

from ..tools import Tool

NixValue = TypeAliasType(  # type: ignore[misc]
    "NixValue",
    Union[bool, int, float, str, list["NixValue"], dict[str, "NixValue"], None],  # type: ignore[misc]  # noqa: UP007
)
"""A value of the Nix language as JSON spells it: null, a boolean, a number, text, a list or an attribute set."""


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class FactsGet(_Closed):
    """Reads one named fact about the machine."""

    name: str = Field(min_length=1, description="the fact's name, such as kernel.version")


class ServiceEnable(_Closed):
    """Have a service run from the next switch on."""

    kind: Literal["service_enable"]
    name: str = Field(min_length=1, description="the service's name")


class ServiceDisable(_Closed):
    """Have a service not run from the next switch on."""

    kind: Literal["service_disable"]
    name: str = Field(min_length=1, description="the service's name")


class ServiceRestart(_Closed):
    """Restart a service."""

    kind: Literal["service_restart"]
    name: str = Field(min_length=1, description="the service's name")


class ServiceOptionSet(_Closed):
    """Set one option of a service."""

    kind: Literal["service_option_set"]
    name: str = Field(min_length=1, description="the service's name")
    option: str = Field(min_length=1, description="the option's path below the service")
    value: NixValue


class PackageAdd(_Closed):
    """Install a package system-wide."""

    kind: Literal["package_add"]
    name: str = Field(min_length=1, description="the package's attribute name")


class PackageRemove(_Closed):
    """Remove a package that was installed system-wide."""

    kind: Literal["package_remove"]
    name: str = Field(min_length=1, description="the package's attribute name")


class OptionSet(_Closed):
    """Set a NixOS option."""

    kind: Literal["option_set"]
    path: str = Field(min_length=1, description="the option's path, such as networking.hostName")
    value: NixValue


ChangeItem: TypeAlias = Annotated[
    ServiceEnable | ServiceDisable | ServiceRestart | ServiceOptionSet | PackageAdd | PackageRemove | OptionSet,
    Field(discriminator="kind"),
]
"""The closed set of things that the agent may propose."""

SERVICE_KINDS = frozenset(("service_enable", "service_disable", "service_restart", "service_option_set"))
"""The kinds whose ``name`` is a service's."""


class ProposalSubmit(_Closed):
    """Proposes changes to this machine's configuration, for a person to approve."""

    summary: str = Field(min_length=1, description="one sentence: what changes, and why")
    items: list[ChangeItem] = Field(min_length=1, description="the changes")


_MODELS: dict[str, type[_Closed]] = {"facts.get": FactsGet, "proposal.submit": ProposalSubmit}

PROTOCOL_NAMES = frozenset(_MODELS)


def _schema(model: type[BaseModel]) -> dict[str, Any]:
    """The model's schema without what says nothing to a model: titles, and the sentences of the classes."""

    def plain(node: Any, *, names: bool = False) -> Any:
        if isinstance(node, dict):
            kept = {
                key: plain(value, names=key in ("properties", "$defs"))
                for key, value in node.items()
                if names or (key != "title" and key != "discriminator")
            }
            if not names and kept.get("type") == "object":
                kept.pop("description", None)
            return kept
        return [plain(item) for item in node] if isinstance(node, list) else node

    made = plain(model.model_json_schema())
    assert isinstance(made, dict)
    return made


PROTOCOL_TOOLS: tuple[Tool, ...] = tuple(
    Tool(name, (model.__doc__ or "").strip(), _schema(model)) for name, model in _MODELS.items()
)
"""``facts.get`` and ``proposal.submit``, in the order in which every turn offers them."""


def parse_arguments(tool: str, arguments: dict[str, Any]) -> BaseModel | None:
    """A call's arguments as the protocol's own type; None for a tool that is not the protocol's.

    Raises:
        ValueError: they do not fit; the message says where and why, in one line.
    """
    model = _MODELS.get(tool)
    if model is None:
        return None
    try:
        return model.model_validate(arguments)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = "/".join(str(step) for step in first["loc"])
        raise ValueError(f"/{where}: {first['msg']}") from None
