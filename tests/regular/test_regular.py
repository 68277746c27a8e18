"""Patterns and automata, held against Python's own re on random texts."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacid_infer.regular import (
    Automaton,
    Cat,
    Edge,
    Pattern,
    UnsupportedPattern,
    from_pattern,
    from_words,
    parse_pattern,
)
from tacid_infer.regular.structure import is_deterministic, lengths, whole

PATTERNS = [
    "", "a", "^a", "a$", "^a$", "^$", "a|b", "^a|b$", "(^a|b)c", "^(a|b)*abb$", "[0-9]", "[^ab]", r"^\d{2,3}$",
    r"\w+@\w+", r"^(ab?){1,3}c?$", "^a{0}b$", "^(a|ab)(c|bcd)$", r"^[\w.-]+$", "^a.c$", "a+?b", "^(?:x|y)z", "[]a]|b",
]  # fmt: skip


@pytest.mark.parametrize("pattern", [p for p in PATTERNS if p != "[]a]|b"])
@settings(max_examples=60, deadline=None)
@given(text=st.text("abcdxyz019@.- \n_", max_size=8))
def test_an_automaton_finds_what_re_finds(pattern: str, text: str) -> None:
    # Python's $ also matches before a last line end; ECMA-262's does not.
    expected = re.search(pattern.replace("$", r"\Z"), text, re.ASCII) is not None
    assert from_pattern(parse_pattern(pattern)).accepts(text) == expected


@settings(max_examples=200, deadline=None)
@given(
    words=st.lists(st.text("abc", max_size=4), max_size=8),
    others=st.lists(st.text("abc", max_size=4), max_size=8),
    text=st.text("abc", max_size=5),
    low=st.integers(0, 4),
    high=st.integers(0, 4),
)
def test_the_algebra_of_automata(words: list[str], others: list[str], text: str, low: int, high: int) -> None:
    one, two = from_words(words), from_words(others)
    assert one.accepts(text) == (text in words)
    assert one.complement().accepts(text) == (text not in words)
    assert one.intersect(two).accepts(text) == (text in words and text in others)
    assert one.union(two).accepts(text) == (text in words or text in others)
    assert one.complement().limit(low, high).accepts(text) == (text not in words and low <= len(text) <= high)


@pytest.mark.parametrize(
    ("pattern", "all_texts"),
    [("", True), (".*", True), ("^", True), ("[a-z]*", True), (r"^[\s\S]*$", True), ("^.*$", False), ("a", False),
     (r"^[\s\S]+$", False), (r"^[\s\S]{0,3}$", False)],
)  # fmt: skip
def test_what_finds_itself_in_every_text_is_universal(pattern: str, all_texts: bool) -> None:
    automaton = from_pattern(parse_pattern(pattern))
    assert automaton.is_universal() is all_texts
    assert automaton.complement().is_universal() is False


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("^GET$", ["GET"]),
        ("^(GET|POST|)$", ["", "GET", "POST"]),
        ("^[ab]c?$", ["a", "ac", "b", "bc"]),
        ("^x{2,4}$", ["xx", "xxx", "xxxx"]),
        ("^[a-z]$", None),
        ("^a+$", None),
        ("^(a|b)*c$", None),
        ("GET", None),
        ("^(a|b|c){2}$", None),
        ("^$", [""]),
        ("^a^", []),
    ],
)
def test_the_texts_of_a_pattern_that_few_texts_meet(pattern: str, words: list[str] | None) -> None:
    found = from_pattern(parse_pattern(pattern)).words(8)
    assert (sorted(found) if found is not None else None) == words


LISTS = [
    r"^(?:\S+\s+){0,199}\S+$", r"^$|(^(?:\S+\s+){0,9}\S+$)", "^([a-c]+,)*[a-c]+$", "^(ab){0,3}a$", "^(abc)*ab$",
    "^(a,|b)*c$", "^x(ax){2,5}a?$", "^(ab)*(ab)*$", "^a{2}(ba{2})*$", "^(aab)*aab$", "^(a|^b$)$", "^a|b$", "^(a(bc)*b)*a$",
]  # fmt: skip


def _as_one(pattern: str) -> tuple[Automaton, Automaton]:
    """A pattern's automaton, and that of what ``whole`` makes of it."""
    parsed = parse_pattern(pattern)
    node = whole(parsed.node)
    assert node is not None
    return from_pattern(parsed), from_pattern(Pattern(f"whole {pattern}", Cat((Edge("start"), node, Edge("end")))))


@pytest.mark.parametrize("pattern", [p for p in (*PATTERNS, *LISTS) if p not in ("[]a]|b", "(^a|b)c", "^(a|^b$)$")])
def test_a_pattern_written_as_it_stands_is_the_same_language(pattern: str) -> None:
    found, written = _as_one(pattern)
    assert not found.intersect(written.complement()).rows
    assert not written.intersect(found.complement()).rows


@pytest.mark.parametrize("pattern", ["(^a|b)c", "^(a|^b$)$"])
def test_an_edge_inside_is_not_written_as_it_stands(pattern: str) -> None:
    assert whole(parse_pattern(pattern).node) is None


@pytest.mark.parametrize("pattern", LISTS[:6])
def test_a_list_is_read_without_looking_ahead(pattern: str) -> None:
    node = whole(parse_pattern(pattern).node)
    assert node is not None and is_deterministic(node)


@pytest.mark.parametrize(
    ("pattern", "bounds"),
    [("^a$", (1, 1)), ("^a*b{2,3}$", (2, None)), ("^(ab|c)?$", (0, 2)), ("^[ab]{2,5}(c{3}){0,4}$", (2, 17)),
     ("a", (1, None)), ("^$", (0, 0)), ("^(a*){0}$", (0, 0)), ("^()*$", (0, 0)), ("^(ab?){3,}$", (3, None))],
)  # fmt: skip
def test_the_lengths_that_a_pattern_keeps_to(pattern: str, bounds: tuple[int, int | None]) -> None:
    node = whole(parse_pattern(pattern).node)
    assert node is not None and lengths(node) == bounds


def test_no_text_and_every_text() -> None:
    nothing = from_words([])
    assert nothing.is_universal() is False
    assert nothing.complement().is_universal() is True


@pytest.mark.parametrize(
    "pattern", ["(?=a)", "(?<!a)b", r"(a)\1", r"\bword", "(", ")", "a**", "[b-a]", "[a", r"\p{Nope}", "(?i)a"]
)
def test_what_is_not_regular_is_named(pattern: str) -> None:
    with pytest.raises(UnsupportedPattern, match=" at character "):
        parse_pattern(pattern)
