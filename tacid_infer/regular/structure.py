"""The structure of a pattern: where it is anchored, and whether it can be read off without looking ahead."""

from __future__ import annotations

from .charset import ANY, CharSet, intersection, union
from .pattern import EMPTY, Cat, Edge, Node, Or, Repeat, Set

ANYTHING = Repeat(Set(ANY), 0, None)


def whole(node: Node) -> Node | None:
    """A pattern that is found somewhere in a text, as one that matches all of it; None if an edge stands inside."""
    if isinstance(node, Or) and _has_edge(node):
        options = [whole(option) for option in node.options]
        return None if None in options else Or(tuple([option for option in options if option is not None]))
    items = list(node.items) if isinstance(node, Cat) else [node]
    starts = bool(items) and items[0] == Edge("start")
    ends = bool(items) and items[-1] == Edge("end")
    core = items[1 if starts else 0 : len(items) - 1 if ends else None]
    if any(_has_edge(item) for item in core):
        return None
    return _turned(Cat((*(() if starts else (ANYTHING,)), *core, *(() if ends else (ANYTHING,)))))


def _turned(node: Node) -> Node:
    """The same texts, without looking ahead for a list's last item: ``(ab)*a`` is ``a(ba)*``."""
    match node:
        case Cat(items):
            left: list[Node] = []
            todo = [_turned(item) for item in reversed(items)]
            while todo:
                item = todo.pop()
                if isinstance(item, Repeat) and isinstance(item.item, Cat):
                    parts = item.item.items
                    shared = 0
                    while shared < min(len(todo), len(parts) - 1) and parts[shared] == todo[-1 - shared]:
                        shared += 1
                    if shared:
                        del todo[-shared:]
                        left += parts[:shared]
                        item = Repeat(Cat((*parts[shared:], *parts[:shared])), item.low, item.high)
                left.append(item)
            return Cat(tuple(left))
        case Or(options):
            return Or(tuple([_turned(option) for option in options]))
        case Repeat(item, low, high):
            return Repeat(_turned(item), low, high)
    return node


def _has_edge(node: Node) -> bool:
    match node:
        case Edge():
            return True
        case Cat(parts) | Or(parts):
            return any(_has_edge(part) for part in parts)
        case Repeat(item, _, _):
            return _has_edge(item)
    return False


def lengths(node: Node) -> tuple[int, int | None]:
    """The least and the most characters of what matches; None if there is no bound."""
    match node:
        case Set():
            return 1, 1
        case Cat(items):
            parts = [lengths(item) for item in items]
            most = [high for _, high in parts if high is not None]
            return sum(low for low, _ in parts), sum(most) if len(most) == len(parts) else None
        case Or(options):
            parts = [lengths(option) for option in options]
            most = [high for _, high in parts if high is not None]
            return min(low for low, _ in parts), max(most) if len(most) == len(parts) else None
        case Repeat(item, low, high):
            least, longest = lengths(item)
            if 0 in (longest, high):
                return 0, 0
            return least * low, None if longest is None or high is None else longest * high
    return 0, 0


def is_deterministic(node: Node) -> bool:
    """Whether each character decides, without looking ahead, which part of the pattern it belongs to.

    Such a pattern is as good as its automaton, and much smaller where it counts.
    """
    return _reads(node, ())


def _reads(node: Node, follow: CharSet) -> bool:
    """The same, where a character of ``follow`` may come next."""
    match node:
        case Cat(items):
            for item in reversed(items):
                if not _reads(item, follow):
                    return False
                follow = union(_first(item), follow) if _nullable(item) else _first(item)
            return True
        case Or(options):
            seen: CharSet = follow if any(map(_nullable, options)) else ()
            if sum(map(_nullable, options)) > 1:
                return False
            for option in options:
                first = _first(option)
                if intersection(first, seen) or not _reads(option, follow):
                    return False
                seen = union(seen, first)
            return True
        case Repeat(item, low, high):
            if high == 0:
                return True
            first = _first(item)
            if _nullable(item) or (high != low and intersection(first, follow)):
                return False
            return _reads(item, union(first, follow) if high != 1 else follow)
    return True


def _first(node: Node) -> CharSet:
    """The characters that a match may begin with."""
    match node:
        case Set(chars):
            return chars
        case Cat(items):
            found: CharSet = ()
            for item in items:
                found = union(found, _first(item))
                if not _nullable(item):
                    break
            return found
        case Or(options):
            return union(*map(_first, options))
        case Repeat(item, _, high):
            return () if high == 0 else _first(item)
    return ()


def _nullable(node: Node) -> bool:
    match node:
        case Set():
            return False
        case Cat(items):
            return all(map(_nullable, items))
        case Or(options):
            return any(map(_nullable, options))
        case Repeat(item, low, _):
            return low == 0 or _nullable(item)
    return True


__all__ = ["ANYTHING", "EMPTY", "is_deterministic", "lengths", "whole"]
