"""The formats that a grammar can enforce, as patterns. A format that is not here demands nothing and is reported.

So is what a pattern admits beyond its format, where the schema leaves room for it (``excess_of``): a leap second under
an offset at any time of day, where only one that is 23:59:60 in UTC is one (of 1,440 pairs of time and offset, which
would make the grammar of a time ten times as large), and of host names too many characters and ill-formed xn-- labels.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

from ..gbnf import Ref
from ..regular import Pattern, parse_pattern
from .shared import SharedRules

# RFC 3339 section 5.6; appendix C for leap years.
_YEAR_MONTH_DAY = (
    r"(\d{4}-((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)|02-(0[1-9]|1\d|2[0-8]))"
    r"|(\d\d(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)"
)
_FRACTION = r"(\.\d+)?"
_OFFSET = r"([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)"
_SHIFTED = r"[+-](([01]\d|2[0-3]):(0[1-9]|[1-5]\d)|(0[1-9]|1\d|2[0-3]):00)"
_SHIFTED_LEAP = rf"([01]\d|2[0-3]):[0-5]\d:60{_FRACTION}{_SHIFTED}"
_TIME = (
    rf"(([01]\d|2[0-3]):[0-5]\d:[0-5]\d{_FRACTION}{_OFFSET}"
    rf"|{_SHIFTED_LEAP}"
    rf"|23:59:60{_FRACTION}([Zz]|[+-]00:00))"
)
# RFC 3339 appendix A.
_CLOCK = r"T(\d+H(\d+M(\d+S)?)?|\d+M(\d+S)?|\d+S)"
_DURATION = rf"P(\d+W|(\d+Y(\d+M(\d+D)?)?|\d+M(\d+D)?|\d+D)({_CLOCK})?|{_CLOCK})"

# RFC 3986 section 3.2.2.
_BYTE = r"(\d|[1-9]\d|1\d\d|2[0-4]\d|25[0-5])"
_IPV4 = rf"{_BYTE}(\.{_BYTE}){{3}}"
_H16 = r"[0-9A-Fa-f]{1,4}"
_LS32 = rf"({_H16}:{_H16}|{_IPV4})"
_BEFORE_LS32 = "|".join(
    [rf"({_H16}:){{6}}", rf"::({_H16}:){{5}}"]
    + [rf"({_H16}(:{_H16}){{0,{before}}})?::({_H16}:){{{4 - before}}}" for before in range(5)]
)
_IPV6 = rf"(({_BEFORE_LS32}){_LS32}|({_H16}(:{_H16}){{0,5}})?::{_H16}|({_H16}(:{_H16}){{0,6}})?::)"

# RFC 1123 section 2.1; RFC 5321 section 4.1.2.
_HOSTNAME = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*"
_DOMAIN = r"[A-Za-z0-9]+(-+[A-Za-z0-9]+)*(\.[A-Za-z0-9]+(-+[A-Za-z0-9]+)*)*"
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_EMAIL = (
    rf"({_ATOM}(\.{_ATOM})*|\"([ !#-\[\]-~]|\\[ -~])*\")"
    rf"@({_DOMAIN}|\[({_IPV4}|IPv6:{_IPV6})\])"
)


def _uri(extra: str, private: str) -> tuple[str, str]:
    """RFC 3986 appendix A: a URI and a URI reference, with ``extra`` among the unreserved characters and ``private``
    among those of a query."""
    plain = rf"A-Za-z0-9._~{extra}\-"
    pct = r"%[0-9A-Fa-f]{2}"
    pchar = rf"([{plain}!$&'()*+,;=:@]|{pct})"
    host = rf"(\[({_IPV6}|[vV][0-9A-Fa-f]+\.[A-Za-z0-9._~!$&'()*+,;=:-]+)\]|([{plain}!$&'()*+,;=]|{pct})*)"
    authority = rf"(([{plain}!$&'()*+,;=:]|{pct})*@)?{host}(:\d*)?"
    rooted = rf"(//{authority}(/{pchar}*)*|/({pchar}+(/{pchar}*)*)?)"
    rootless = rf"{pchar}+(/{pchar}*)*"
    without_colon = rf"([{plain}!$&'()*+,;=@]|{pct})+(/{pchar}*)*"
    scheme = r"[A-Za-z][A-Za-z0-9+.-]*:"
    tail = rf"(\?([{plain}!$&'()*+,;=:@/?{private}]|{pct})*)?(#([{plain}!$&'()*+,;=:@/?]|{pct})*)?"
    absolute = rf"{scheme}({rooted}|{rootless})?{tail}"
    reference = rf"(({scheme})?{rooted}?|{scheme}{rootless}|{without_colon}){tail}"
    return absolute, reference


_URI, _URI_REFERENCE = _uri("", "")
_IRI, _IRI_REFERENCE = _uri(
    r"\u00A0-\uD7FF\uF900-\uFDCF\uFDF0-\uFFEF\u{10000}-\u{EFFFD}", r"\uE000-\uF8FF\u{F0000}-\u{10FFFD}"
)

# RFC 6570 section 2.
_VARNAME = r"([A-Za-z0-9_]|%[0-9A-Fa-f]{2})(\.?([A-Za-z0-9_]|%[0-9A-Fa-f]{2}))*"
_VARSPEC = rf"{_VARNAME}(\*|:[1-9]\d{{0,3}})?"
_TEMPLATE = (
    r"([!#$&-;=?-\[\]_a-z~\u00A0-\uD7FF\uE000-\u{10FFFD}]|%[0-9A-Fa-f]{2}"
    rf"|\{{[+#./;?&=,!@|]?{_VARSPEC}(,{_VARSPEC})*\}})*"
)

_SOURCES = {
    "date": _YEAR_MONTH_DAY,
    "time": _TIME,
    "date-time": rf"{_YEAR_MONTH_DAY}[Tt]{_TIME}",
    "duration": _DURATION,
    "uuid": r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}",
    "ipv4": _IPV4,
    "ipv6": _IPV6,
    "hostname": _HOSTNAME,
    "email": _EMAIL,
    "uri": _URI,
    "uri-reference": _URI_REFERENCE,
    "iri": _IRI,
    "iri-reference": _IRI_REFERENCE,
    "uri-template": _TEMPLATE,
    "json-pointer": r"(/([^~/]|~[01])*)*",
    "relative-json-pointer": r"(0|[1-9]\d*)(#|(/([^~/]|~[01])*)*)",
}

_PATTERNS = {name: f"^(?:{source})$" for name, source in _SOURCES.items()}
_NAMES = {pattern: name for name, pattern in _PATTERNS.items()}

FORMATS: dict[str, Callable[[], Pattern]] = {
    name: partial(parse_pattern, pattern) for name, pattern in _PATTERNS.items()
}


def made_ahead(pattern: Pattern) -> SharedRules | None:
    """The rules of the strings of a format alone, if the pattern is that of one."""
    name = _NAMES.get(pattern.source)
    return None if name is None else _made_ahead()[name]


@lru_cache(maxsize=1)
def _made_ahead() -> dict[str, SharedRules]:
    """All of them, as ``scripts/formats`` wrote them: made when first used, a uri would cost 15 ms."""
    found: dict[str, SharedRules] = {}
    for block in Path(__file__).with_name("formats.gbnf").read_text("utf-8").split("\n\n")[1:]:
        head, _, rules = block.partition("\n")
        name, *mentions = head.removeprefix("# ").split()
        found[name] = SharedRules(Ref(f"format-{name}"), f"{rules.rstrip()}\n", frozenset(mentions))
    return found


class Excess(NamedTuple):
    """What a format's pattern admits beyond the format.

    Attributes:
        pattern: found in all such texts.
        longest: longer ones are such texts too; None if there is no bound.
        reason: what is not enforced.
    """

    pattern: Pattern
    longest: int | None
    reason: str


_LEAP = "under an offset other than zero, a leap second is admitted at any time of day"
_EXCESSES = {
    "time": (rf"^{_SHIFTED_LEAP}$", None, _LEAP),
    "date-time": (rf"[Tt]{_SHIFTED_LEAP}$", None, _LEAP),
    "hostname": (
        r"(^|\.)[Xx][Nn]--",
        253,
        "more than 253 characters in all are admitted, and xn-- labels that encode nothing",
    ),
}


def excess_of(pattern: Pattern) -> Excess | None:
    """What the pattern admits beyond the format that it stands for, if it does."""
    name = _NAMES.get(pattern.source)
    if name not in _EXCESSES:
        return None
    source, longest, reason = _EXCESSES[name]
    return Excess(parse_pattern(source), longest, reason)
