"""An independent reading of GBNF text: parses it, and says whether a text is in its language.

Written from llama.cpp's grammars/README.md, and apart from the package's own code, so that a fault in the writer is not
read back by its twin. Where test-gbnf-validator is at hand (TACID_INFER_GBNF_VALIDATOR), the tests ask that too.
"""

from __future__ import annotations

import re
from functools import lru_cache

_TOKEN = re.compile(
    r"""\s*(?:(?P<name>[a-zA-Z0-9-]+)(?P<define>\s*::=)?|"(?P<literal>(?:\\.|[^"\\])*)"|\[(?P<chars>(?:\\.|[^\]\\])*)\]"""
    r"""|\{(?P<low>\d+)(?P<comma>,)?(?P<high>\d*)\}|(?P<mark>[()|*+?]))""",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))|(.)", re.DOTALL)
_SHORT = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"', "[": "[", "]": "]", "-": "-"}


def _points(text: str) -> list[tuple[int, bool]]:
    """Code points, each with whether it was escaped."""
    points = []
    for two, four, eight, short, raw in _ESCAPE.findall(text):
        if two or four or eight:
            points.append((int(two or four or eight, 16), True))
        elif short:
            points.append((ord(_SHORT[short]), True))
        else:
            points.append((ord(raw), False))
    return points


class _Cell:
    """A place in a sequence."""

    __slots__ = ("item", "next")

    def __init__(self, item: tuple, following: _Cell | None) -> None:
        self.item = item
        self.next = following


class Grammar:
    """A parsed grammar."""

    def __init__(self, text: str) -> None:
        self.rules: dict[str, tuple] = {}
        self.lists: dict[int, tuple] = {}
        self.repetitions: dict[tuple, tuple] = {}
        self.singles: dict[int, tuple] = {}
        for line in text.splitlines():
            if not line.strip():
                continue
            tokens = []
            at = 0
            while at < len(line):
                match = _TOKEN.match(line, at)
                assert match, f"not GBNF: {line[at : at + 40]!r}"
                tokens.append(match)
                at = match.end()
                if not line[at:].strip():
                    break
            assert tokens[0]["define"], line
            self.tokens, self.at = tokens, 1
            name = tokens[0]["name"]
            assert name not in self.rules, f"{name} is defined twice"
            self.rules[name] = self._alternatives()
            assert self.at == len(tokens), line

    def _alternatives(self) -> tuple:
        options = [self._sequence()]
        while self.at < len(self.tokens) and self.tokens[self.at]["mark"] == "|":
            self.at += 1
            options.append(self._sequence())
        return ("alt", tuple(options))

    def _sequence(self) -> tuple:
        items: list[tuple] = []
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            mark = token["mark"]
            if mark in ("|", ")"):
                break
            self.at += 1
            if mark == "(":
                items.append(self._alternatives())
                assert self.tokens[self.at]["mark"] == ")"
                self.at += 1
            elif token["name"] is not None:
                items.append(("ref", token["name"]))
            elif token["literal"] is not None:
                items.append(("seq", tuple(("set", False, ((p, p),)) for p, _ in _points(token["literal"]))))
            elif token["chars"] is not None:
                items.append(self._set(token["chars"]))
            elif mark in ("*", "+", "?"):
                low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}[mark]
                items[-1] = ("rep", items[-1], low, high)
            else:
                low = int(token["low"])
                high = int(token["high"]) if token["high"] else (None if token["comma"] else low)
                assert low < 2000 and (high or 0) < 2000, "a bound that llama.cpp refuses"
                items[-1] = ("rep", items[-1], low, high)
        return ("seq", tuple(items))

    @staticmethod
    def _set(text: str) -> tuple:
        negated = text.startswith("^")
        points = _points(text[1:] if negated else text)
        ranges = []
        at = 0
        while at < len(points):
            if at + 2 < len(points) and points[at + 1] == (0x2D, False):
                ranges.append((points[at][0], points[at + 2][0]))
                at += 3
            else:
                ranges.append((points[at][0], points[at][0]))
                at += 1
        return ("set", negated, tuple(ranges))

    def admits(self, text: str) -> bool:
        """Whether the text is in the language of ``root``."""
        stacks = self._expand({(self._list((("ref", "root"),)), None)})
        for char in text:
            point = ord(char)
            reached = set()
            for stack in stacks:
                if stack is None:
                    continue
                cell, rest = stack
                _, negated, ranges = cell.item
                if any(low <= point <= high for low, high in ranges) != negated:
                    reached.add((cell.next, rest) if cell.next else rest)
            if not reached:
                return False
            stacks = self._expand(reached)
        return None in stacks

    def _list(self, items: tuple) -> _Cell | None:
        """The items as a list whose every tail is one object, so that equal places are the same object."""
        known = self.lists.get(id(items))
        if known is None:
            cell = None
            for item in reversed(items):
                cell = _Cell(item, cell)
            known = self.lists[id(items)] = (items, cell)
        return known[1]

    def _less(self, item: tuple, low: int, high: int | None) -> tuple:
        """One repetition less; the same object each time."""
        key = (id(item), low, high)
        if key not in self.repetitions:
            self.repetitions[key] = (("rep", item, max(low - 1, 0), None if high is None else high - 1),)
        return self.repetitions[key]

    def _single(self, item: tuple) -> tuple:
        return self.singles.setdefault(id(item), (item,))

    def _expand(self, stacks: set) -> set:
        """Every stack, rewritten until its top is a character set."""
        done: set = set()
        seen = set()
        todo = list(stacks)
        while todo:
            stack = todo.pop()
            if stack in seen:
                continue
            seen.add(stack)
            if stack is None:
                done.add(None)
                continue
            cell, rest = stack
            kind = cell.item[0]
            if kind == "set":
                done.add(stack)
                continue
            after = (cell.next, rest) if cell.next else rest
            if kind == "ref":
                self._push(todo, self._single(self.rules[cell.item[1]]), after)
            elif kind == "alt":
                for option in cell.item[1]:
                    self._push(todo, self._single(option), after)
            elif kind == "seq":
                self._push(todo, cell.item[1], after)
            else:
                _, item, low, high = cell.item
                if low == 0:
                    todo.append(after)
                if high is None or high > 0:
                    more = self._list(self._less(item, low, high))
                    self._push(todo, self._single(item), (more, after))
        return done

    def _push(self, todo: list, items: tuple, after: tuple | None) -> None:
        cell = self._list(items)
        todo.append((cell, after) if cell else after)


@lru_cache(maxsize=64)
def read(text: str) -> Grammar:
    """The parsed grammar of a text."""
    return Grammar(text)
