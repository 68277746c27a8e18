"""Prefix factoring: alternatives that begin alike share their beginning.

llama.cpp tests every token of the vocabulary against every live stack, and each alternative that is still possible is
one. Factored, a set of names costs one stack until they part, however many there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from .expr import Alt, Chars, Define, Expr, Lit, seq

Branch: TypeAlias = tuple[str, Expr]
"""An alternative: its opening text, and what follows."""

_NESTED = 24
"""Groups nested deeper than this become rules: an engine's parser recurses into each group."""


def factor(branches: Iterable[Branch], define: Define) -> Expr:
    """One expression that admits each branch's text followed by its expression, with no opening written twice.

    Characters that lead to the same rest become one class. Not recursive, and linear in the size of the input: names
    may be of any length and number.
    """
    ordered = sorted(dict.fromkeys(branches), key=_text)
    if len(ordered) == 1:
        return seq(Lit(ordered[0][0]), ordered[0][1])
    interned: dict[object, int] = {}
    nodes: list[_Node] = []
    # Post-order over the implied trie; a span of `ordered` agrees up to `depth`. `spans` is None on the way down.
    work: list[tuple[int, int, int, int, list[tuple[int, int]] | None]] = [(0, len(ordered), 0, 0, None)]
    while work:
        first, last, depth, common, spans = work.pop()
        if last - first == 1:
            text, tail = ordered[first]
            nodes.append((interned.setdefault((tail,), len(interned)), text[depth:], tail, 1))
            continue
        if spans is None:
            common = agreement(ordered[first][0], ordered[last - 1][0], depth)  # Sorted: these two decide.
            spans = _spans(ordered, first, last, common)
            work.append((first, last, depth, common, spans))
            work.extend((low, high, common, 0, None) for low, high in reversed(spans))
            continue
        parted = len(nodes) - len(spans)
        children = nodes[parted:]
        del nodes[parted:]
        tails = [tail for _, tail in ordered[first : spans[0][0] if spans else last]]
        nodes.append(_node(ordered[first][0][depth:common] if ordered else "", tails, children, interned, define))
    _, text, rest, _ = nodes[0]
    return seq(Lit(text), rest)


_Node: TypeAlias = tuple[int, str, Expr, int]
"""Identity of the rest, the text before it, the rest, and how deeply the rest is nested."""


def _node(text: str, tails: list[Expr], children: list[_Node], interned: dict[object, int], define: Define) -> _Node:
    groups: dict[tuple[int, str], tuple[Expr, list[int]]] = {}
    for identity, opening, rest, _ in children:
        groups.setdefault((identity, opening[1:]), (rest, []))[1].append(ord(opening[0]))
    options = list(tails)
    key: list[object] = list(tails)
    for (identity, opening), (rest, points) in groups.items():
        if len(points) == 1:
            options.append(seq(Lit(chr(points[0]) + opening), rest))
        else:
            options.append(seq(one_of(points), Lit(opening), rest))
        key.append((identity, opening, tuple(points)))
    rest = options[0] if len(options) == 1 else Alt(tuple(options))
    height = 1 + max((child[3] for child in children), default=0)
    if height > _NESTED:
        rest, height = define(rest), 0
    return interned.setdefault(tuple(key), len(interned)), text, rest, height


def _text(branch: Branch) -> str:
    return branch[0]


def agreement(one: str, other: str, depth: int) -> int:
    """How far two texts agree that agree up to ``depth``."""
    limit = min(len(one), len(other))
    while depth < limit and one[depth] == other[depth]:
        depth += 1
    return depth


def _spans(ordered: Sequence[Branch], first: int, last: int, depth: int) -> list[tuple[int, int]]:
    """The sub-spans by the character at ``depth``; texts that end there come first and are left out."""
    while first < last and len(ordered[first][0]) == depth:
        first += 1
    spans: list[tuple[int, int]] = []
    while first < last:
        char = ordered[first][0][depth]
        end = first + 1
        while end < last and ordered[end][0][depth] == char:
            end += 1
        spans.append((first, end))
        first = end
    return spans


def one_of(points: list[int]) -> Expr:
    """One character of these code points."""
    if len(points) == 1:
        return Lit(chr(points[0]))
    ranges: list[tuple[int, int]] = []
    for point in sorted(points):
        if ranges and ranges[-1][1] == point - 1:
            ranges[-1] = (ranges[-1][0], point)
        else:
            ranges.append((point, point))
    return Chars(tuple(ranges))
