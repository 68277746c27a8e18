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
            self.define(maker)
            assert self.rule is not None
            self.known = depth, seq(Lit(self.sample.text[depth // 3 : self.depth // 3]), self.rule)
        return self.known[1]

    def define(self, maker: _Maker) -> None:
        """Give it a rule, and all forks below. Not recursive: each name may be the beginning of a longer one."""
        found: list[_Fork] = []
        todo = [self] if self.rule is None else []
        while todo:
            fork = todo.pop()
            found.append(fork)
            todo += [way for way in fork.ways.values() if type(way) is _Fork and way.rule is None]
        for fork in reversed(found):
            fork.rule = maker.reserve()
            maker.put(fork.rule, Alt(tuple(fork.options(maker))))


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
    passed: list[_Fork] = []
    depth = 0
    while True:
        old = node.digits if isinstance(node, _Leaf) else node.sample.digits
        limit = min(len(old), len(new)) if isinstance(node, _Leaf) else node.depth
        while depth < limit and old[depth] == new[depth]:
            depth += 1
        if isinstance(node, _Leaf) or depth < limit:
            made: _Node = _Fork(depth, leaf, {old[depth]: node, new[depth]: leaf})
            break
        passed.append(node)
        way = node.ways.get(new[depth])
        if way is None:
            made = leaf
            break
        node = way
    for fork in reversed(passed):
        made = _Fork(fork.depth, fork.sample, {**fork.ways, new[fork.depth]: made})
    return made


def parted(branches: Sequence[Branch], maker: _Maker) -> list[Expr]:
    """The alternatives of one set of branches, none of which begins like another."""
    top: list[Expr] = []
    todo: list[tuple[Sequence[Branch], int, Ref | None]] = [(branches, 0, None)]
    while todo:
        branches, depth, rule = todo.pop()
        groups: dict[str, list[Branch]] = {}
        for branch in branches:
            groups.setdefault(branch[0][depth], []).append(branch)
        options: list[Expr] = []
        for group in groups.values():
            text, tail = group[0]
            if len(group) > 1:
                texts = [text for text, _ in group]
                shared = agreement(min(texts), max(texts), depth + 1)
                text, tail = text[:shared], maker.reserve()
                todo.append((group, shared, tail))
            options.append(seq(Lit(text[depth:]), tail))
        if rule is None:
            top = options
        else:
            maker.put(rule, Alt(tuple(options)))
    return top
