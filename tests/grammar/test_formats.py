"""Formats: what each admits and refuses, and that what it admits beyond its source is reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tacid_infer.grammar import explain_schema, formats
from tacid_infer.grammar.strings import make_formats

from ..conftest import admits

EXACT = {
    "date": (["2024-02-29", "2023-12-31", "2000-02-29"], ["2023-02-29", "2023-13-01", "1900-02-29", "2024-2-9", "2024-06-31"]),
    "duration": (["P1Y2M3D", "PT5M", "P2W", "P1DT12H"], ["P", "1D", "PT", "P1W2D", "P1Y3D"]),
    "uuid": (["123e4567-e89b-12d3-a456-426614174000", "123E4567-E89B-12D3-A456-426614174000"],
             ["123", "123e4567e89b12d3a456426614174000", "123e4567-e89b-12d3-a456-42661417400g"]),
    "ipv4": (["0.0.0.0", "255.1.20.3"], ["256.1.1.1", "1.2.3", "01.2.3.4", "1.2.3.4/8"]),
    "ipv6": (["::", "::1", "1:2:3:4:5:6:7:8", "fe80::1:2", "::ffff:1.2.3.4", "1::8", "1:2:3:4:5:6:7::"],
             ["1::2::3", "12345::", ":1", "1:2:3:4:5:6:7:8:9", "::1%eth0", "1:2:3:4:5:6:7"]),
    "email": (["a.b+c@d-e.org", '"a b"@c.d', "a@[1.2.3.4]"], ["a", "a@", "a..b@c.d", ".a@b.c", "a@-b.c"]),
    "uri": (["https://u@h:80/p/q?a=b#f", "urn:x:y", "http://[::1]/"], ["/p", "http://a b", "1:x", "http://[::1", "x:%zz"]),
    "uri-reference": (["/p", "a/b?c#d", "", "//h/p", "https://h"], ["a b", "\\\\h", "1:x"]),
    "iri": (["https://\u00e9.example/\u00fc?\u00f6"], ["/\u00e9", "http://a b"]),
    "uri-template": (["/a/{b}", "{+x,y*}", "{?q:3}"], ["/a/{b", "{}", "{a b}"]),
    "json-pointer": (["", "/a/~0~1/", "/0"], ["a", "/~", "/~2"]),
    "relative-json-pointer": (["0", "1/a", "2#"], ["/a", "01", "-1", "1a"]),
}  # fmt: skip

# Beside what is admitted and what is not: what is admitted although the format forbids it, and constraints beside which
# none of that is left.
REPORTED = {
    "date-time": (["2024-02-29T23:59:60Z", "1999-01-01t00:00:00.5+01:30", "1998-12-31T15:59:60.123-08:00"],
                  ["2024-02-29", "2024-02-29T24:00:00Z", "2024-02-29T22:59:60Z", "2024-02-29T10:00:00", "2024-02-30T00:00:00Z"],
                  ["1998-12-31T23:59:60+01:00"], [{"pattern": "[Zz]$"}, {"maxLength": 20}, {"pattern": ":[0-5]\\d[Z+-]"}]),
    "time": (["23:59:60Z", "08:30:06.283185z", "01:29:60+01:30", "23:29:60+23:30", "15:59:60-08:00", "10:00:00-00:00"],
             ["24:00:00Z", "22:59:60Z", "23:58:60z", "23:59:60", "12:00", "23:59:60-24:00"],
             ["23:59:60+00:30", "23:59:60-01:00"], [{"pattern": "Z$"}, {"maxLength": 13}]),
    "hostname": (["a-1.example", "a" * 63, "A.b.C", "1"], ["-a", "a" * 64, "a..b", "a-", "a.", "", "a_b"],
                 [".".join(["a" * 63] * 4), "xn--X"], [{"maxLength": 20, "pattern": "^[a-z.]*$"}]),
}  # fmt: skip


def admitted(grammar: str, text: str) -> bool:
    return admits(grammar, json.dumps(text, ensure_ascii=False))


def test_the_rules_made_ahead_are_what_would_be_made() -> None:
    """After a change to them, scripts/formats writes them anew."""
    assert (Path(formats.__file__).parent / "formats.gbnf").read_text("utf-8") == make_formats()


@pytest.mark.parametrize("name", EXACT)
def test_exact(name: str) -> None:
    valid, invalid = EXACT[name]
    compiled = explain_schema({"type": "string", "format": name})
    assert compiled.widened == ()
    assert [text for text in valid if not admitted(compiled.text, text)] == []
    assert [text for text in invalid if admitted(compiled.text, text)] == []


@pytest.mark.parametrize("name", REPORTED)
def test_what_is_admitted_beyond_a_format_is_reported(name: str) -> None:
    valid, invalid, beyond, _ = REPORTED[name]
    compiled = explain_schema(
        {"type": "object", "properties": {"x": {"type": "string", "format": name}}, "required": ["x"]}
    )
    assert [(place.pointer, place.keyword) for place in compiled.widened] == [("/properties/x", "format")]
    grammar = explain_schema({"type": "string", "format": name}).text
    assert [text for text in valid + beyond if not admitted(grammar, text)] == []
    assert [text for text in invalid if admitted(grammar, text)] == []


@pytest.mark.parametrize("name", REPORTED)
def test_nothing_is_reported_where_nothing_more_is_admitted(name: str) -> None:
    _, _, beyond, constraints = REPORTED[name]
    for more in constraints:
        compiled = explain_schema({"type": "string", "format": name, **more})
        assert compiled.widened == (), more
        assert not any(admitted(compiled.text, text) for text in beyond)


def test_formats_read_together_are_reported_too() -> None:
    compiled = explain_schema(
        {"anyOf": [{"type": "string", "format": "ipv4"}, {"type": "string", "format": "hostname"}]}
    )
    assert [(place.pointer, place.keyword) for place in compiled.widened] == [("/anyOf/1", "format")]
