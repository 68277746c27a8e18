"""A persistent prefix tree of branches: adding one shares all that it does not touch.

``factor`` writes one set of branches. Where every set is the one before and one branch more, as with an object's
optional keys, writing each anew would be quadratic. Here only the forks on the new branch's way are made again, and
every fork below the first is a rule that all later sets refer to.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol, TypeAlias

from .expr import Alt, Expr, Lit, Ref, seq
from .factor import Branch, agreement


class _Maker(Protocol):
    def reserve(self, hint: str = "") -> Ref: ...

    def put(self, ref: Ref, expr: Expr) -> None: ...


class _Leaf:
    """One branch. A character is three digits, so that forks are few ways wide in any alphabet."""

    __slots__ = ("digits", "known", "tail", "text")

    def __init__(self, text: str, tail: Expr) -> None:
        self.text = text
        self.tail = tail
        self.known: tuple[int, Expr] | None = None
        self.digits = _digits(text)

    def expr(self, depth: int, maker: _Maker) -> Expr:
        """What is left of the branch from the digit at ``depth`` on."""
        if self.known is None or self.known[0] != depth:
            self.known = depth, seq(Lit(self.text[depth // 3 :]), self.tail)
        return self.known[1]


@lru_cache(maxsize=4096)
def _digits(text: str) -> tuple[int, ...]:
    digits: list[int] = []
    for char in text:
        point = ord(char)
        digits += (point >> 10, point >> 5 & 31, point & 31)
    return tuple(digits)


class _Fork:
    """Branches that agree with ``sample`` up to the digit at ``depth``, and part there."""

    __slots__ = ("depth", "known", "rule", "sample", "ways")

    def __init__(self, depth: int, sample: _Leaf, ways: dict[int, _Node]) -> None:
        self.depth = depth
        self.sample = sample
        self.ways = ways
        self.known: tuple[int, Expr] | None = None
        self.rule: Ref | None = None

    def options(self, maker: _Maker) -> list[Expr]:
        return [node.expr(self.depth, maker) for node in self.ways.values()]

    def expr(self, depth: int, maker: _Maker) -> Expr:
        if self.known is None or self.known[0] != depth:
            if self.rule is None:
                self.rule = maker.reserve()
                maker.put(self.rule, Alt(tuple(self.options(maker))))
            self.known = depth, seq(Lit(self.sample.text[depth // 3 : self.depth // 3]), self.rule)
        return self.known[1]


_Node: TypeAlias = _Leaf | _Fork


class Trie:
    """A set of branches, none of whose texts begins another's. Immutable.

    Args:
        maker: takes the rules of the shared parts.
    """

    __slots__ = ("_maker", "_node")

    def __init__(self, maker: _Maker, _node: _Node | None = None) -> None:
        self._maker = maker
        self._node = _node

    def with_branch(self, text: str, tail: Expr) -> Trie:
        """This set and one branch more."""
        leaf = _Leaf(text, tail)
        return Trie(self._maker, leaf if self._node is None else _added(self._node, leaf))

    def options(self) -> list[Expr]:
        """The alternatives, none of which begins like another."""
        node = self._node
        if node is None:
            return []
        if type(node) is _Fork and node.depth < 3:
            return node.options(self._maker)
        if type(node) is _Fork:
            return [seq(Lit(node.sample.text[: node.depth // 3]), Alt(tuple(node.options(self._maker))))]
        return [node.expr(0, self._maker)]


def _added(node: _Node, leaf: _Leaf) -> _Node:
    new = leaf.digits
    if isinstance(node, _Leaf):
        old, limit = node.digits, min(len(node.digits), len(new))
    else:
        old, limit = node.sample.digits, node.depth
    depth = 0
    while depth < limit and old[depth] == new[depth]:
        depth += 1
    if isinstance(node, _Leaf) or depth < limit:
        return _Fork(depth, leaf, {old[depth]: node, new[depth]: leaf})
    way = node.ways.get(new[depth])
    return _Fork(depth, node.sample, {**node.ways, new[depth]: leaf if way is None else _added(way, leaf)})


def parted(branches: Sequence[Branch], maker: _Maker, depth: int = 0) -> list[Expr]:
    """The alternatives of one set of branches, none of which begins like another; they agree up to ``depth``."""
    groups: dict[str, list[Branch]] = {}
    for branch in branches:
        groups.setdefault(branch[0][depth], []).append(branch)
    options: list[Expr] = []
    for group in groups.values():
        text, tail = group[0]
        if len(group) > 1:
            texts = [text for text, _ in group]
            shared = agreement(min(texts), max(texts), depth + 1)
            tail = maker.reserve()
            maker.put(tail, Alt(tuple(parted(group, maker, shared))))
            text = text[:shared]
        options.append(seq(Lit(text[depth:]), tail))
    return options
