"""Regular expressions as JSON Schema uses them: ECMA-262, with the u flag's meaning, found anywhere in the text.

Source: ECMA-262 section 22.2 (RegExp). What is not regular (look-around, back-references, word boundaries), or depends
on data that Python does not carry (scripts), raises ``UnsupportedPattern``. The spellings ``(?P<name>...)``, ``\\A``,
``\\z`` and ``\\Z``, which users of other languages write, are read as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, TypeAlias

from .charset import ANY, CharSet, category, complement, union


class UnsupportedPattern(Exception):
    """A pattern that has no automaton here; the message says why."""


@dataclass(frozen=True, slots=True)
class Set:
    """One character out of a set."""

    chars: CharSet


@dataclass(frozen=True, slots=True)
class Cat:
    """The items in sequence."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Any one of the alternatives."""

    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """The item, ``low`` to ``high`` times (no bound if None)."""

    item: Node
    low: int
    high: int | None


@dataclass(frozen=True, slots=True)
class Edge:
    """The very start or the very end of the text."""

    side: Literal["start", "end"]


Node: TypeAlias = Set | Cat | Or | Repeat | Edge

EMPTY = Cat(())
DIGIT: CharSet = ((0x30, 0x39),)
WORD: CharSet = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
SPACE: CharSet = union(
    ((0x09, 0x0D), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A)),
    ((0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF)),
)
LINE_END: CharSet = ((0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029))
_CLASSES = {"d": DIGIT, "w": WORD, "s": SPACE}
_CONTROLS = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13}
_LONG_CATEGORIES = {
    "Letter": "L",
    "Uppercase_Letter": "Lu",
    "Lowercase_Letter": "Ll",
    "Mark": "M",
    "Number": "N",
    "Decimal_Number": "Nd",
    "Punctuation": "P",
    "Symbol": "S",
    "Separator": "Z",
    "Space_Separator": "Zs",
    "Other": "C",
    "Control": "Cc",
}
_DEEPEST = 100
_LARGEST_COUNT = 1_000_000


@dataclass(frozen=True, slots=True)
class Pattern:
    """A parsed pattern; a text matches if ``node`` is found somewhere in it. Equal if their sources are."""

    source: str
    node: Node = field(compare=False, repr=False)


@lru_cache(maxsize=1024)
def parse_pattern(source: str) -> Pattern:
    """Parse an ECMA-262 pattern.

    Raises:
        UnsupportedPattern: says what was met, and where.
    """
    return Pattern(source, _Parser(source).parse())


class _Parser:
    def __init__(self, source: str) -> None:
        self.source = source
        self.at = 0
        self.depth = 0

    def parse(self) -> Node:
        node = self.alternatives()
        if self.at < len(self.source):
            raise self.error("a closing parenthesis that opens nowhere")
        return node

    def error(self, what: str) -> UnsupportedPattern:
        return UnsupportedPattern(f"{what} at character {self.at} of the pattern")

    def peek(self) -> str:
        return self.source[self.at] if self.at < len(self.source) else ""

    def take(self, text: str) -> bool:
        if self.source.startswith(text, self.at):
            self.at += len(text)
            return True
        return False

    def alternatives(self) -> Node:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.error("groups nested too deeply")
        options = [self.sequence()]
        while self.take("|"):
            options.append(self.sequence())
        self.depth -= 1
        return options[0] if len(options) == 1 else Or(tuple(options))

    def sequence(self) -> Node:
        items: list[Node] = []
        while (char := self.peek()) and char not in "|)":
            items.append(self.quantified(self.atom()))
        return items[0] if len(items) == 1 else Cat(tuple(items))

    def atom(self) -> Node:
        char = self.source[self.at]
        self.at += 1
        match char:
            case "^":
                return Edge("start")
            case "$":
                return Edge("end")
            case ".":
                return Set(complement(LINE_END))
            case "(":
                return self.group()
            case "[":
                return Set(self.bracket())
            case "\\":
                return self.escape()
            case "*" | "+" | "?":
                self.at -= 1
                raise self.error("a quantifier with nothing to repeat")
            case "{" if self.counts(self.at - 1):
                self.at -= 1
                raise self.error("a quantifier with nothing to repeat")
        return _one(ord(char))

    def group(self) -> Node:
        if self.take("?"):
            if self.take("P<") or (self.peek() == "<" and self.source[self.at + 1 : self.at + 2] not in ("=", "!")):
                end = self.source.find(">", self.at)
                if end < 0:
                    raise self.error("a group name without its end")
                self.at = end + 1
            elif not self.take(":"):
                what = "look-around" if self.peek() in ("=", "!", "<") else "an inline flag"
                raise self.error(what)
        node = self.alternatives()
        if not self.take(")"):
            raise self.error("a group without its end")
        return node

    def counts(self, at: int) -> tuple[int, int | None, int] | None:
        """The bounds of a counted quantifier at this place, and where it ends."""
        end = self.source.find("}", at)
        low, comma, high = self.source[at + 1 : end].partition(",")
        if end < 0 or not _is_number(low) or not (high == "" or _is_number(high)):
            return None
        return int(low), (int(high) if high else None) if comma else int(low), end + 1

    def quantified(self, item: Node) -> Node:
        match self.peek():
            case "*":
                low, high, self.at = 0, None, self.at + 1
            case "+":
                low, high, self.at = 1, None, self.at + 1
            case "?":
                low, high, self.at = 0, 1, self.at + 1
            case "{" if counts := self.counts(self.at):
                low, high, self.at = counts
            case _:
                return item
        if isinstance(item, Edge):
            raise self.error("a quantifier on the edge of the text")
        if high is not None and high < low:
            raise self.error("a quantifier whose bounds are out of order")
        if max(low, high or 0) > _LARGEST_COUNT:
            raise self.error("a quantifier too large to count")
        if self.peek() == "+":
            raise self.error("a possessive quantifier")
        self.take("?")  # Laziness changes what is captured, not what matches.
        return Repeat(item, low, high)

    def escape(self) -> Node:
        char = self.peek()
        if char in ("b", "B"):
            raise self.error("a word boundary")
        if char and char in "123456789k":
            raise self.error("a back-reference")
        if char == "A":
            self.at += 1
            return Edge("start")
        if char in ("z", "Z"):
            self.at += 1
            return Edge("end")
        return Set(_scalars(self.escaped_set()))

    def escaped_set(self) -> CharSet:
        """What stands after a backslash, inside brackets or outside."""
        if self.at >= len(self.source):
            raise self.error("a backslash with nothing behind it")
        char = self.source[self.at]
        self.at += 1
        if char.lower() in _CLASSES:
            chars = _CLASSES[char.lower()]
            return chars if char.islower() else complement(chars)
        if char in ("p", "P"):
            return self.property(negated=char == "P")
        if char in _CONTROLS:
            return _raw(_CONTROLS[char])
        if char == "0":
            return _raw(0)
        if char == "x":
            return _raw(self.hexadecimal(2))
        if char == "u":
            return _raw(self.code_point())
        if char == "c" and self.peek().isascii() and self.peek().isalpha():
            self.at += 1
            return _raw(ord(self.source[self.at - 1]) % 32)
        if char.isascii() and char.isalnum():
            raise self.error(f"the unknown escape \\{char}")
        return _raw(ord(char))

    def property(self, *, negated: bool) -> CharSet:
        end = self.source.find("}", self.at)
        if self.peek() != "{" or end < 0:
            raise self.error("a Unicode property without its name")
        name = self.source[self.at + 1 : end]
        for prefix in ("General_Category=", "gc="):
            name = name.removeprefix(prefix)
        name = _LONG_CATEGORIES.get(name, name)
        if name in ("Any", "ASCII"):
            chars = ANY if name == "Any" else ((0, 0x7F),)
        elif not (chars := category(name)):
            raise self.error(f"the Unicode property {name}")
        self.at = end + 1
        return complement(chars) if negated else chars

    def hexadecimal(self, digits: int) -> int:
        text = self.source[self.at : self.at + digits]
        if len(text) < digits or not all(char in "0123456789abcdefABCDEF" for char in text):
            raise self.error("a hexadecimal escape with too few digits")
        self.at += digits
        return int(text, 16)

    def code_point(self) -> int:
        if self.take("{"):
            end = self.source.find("}", self.at)
            if not 0 < end - self.at < 7:
                raise self.error("a code point escape without its end")
            digits = end - self.at
            point = self.hexadecimal(digits)
            self.at = end + 1
        else:
            point = self.hexadecimal(4)
            if 0xD800 <= point < 0xDC00 and self.source.startswith("\\u", self.at):
                self.at += 2
                low = self.hexadecimal(4)
                if not 0xDC00 <= low < 0xE000:
                    raise self.error("half of a surrogate pair")
                point = 0x10000 + (point - 0xD800) * 0x400 + low - 0xDC00
        if point > 0x10FFFF:
            raise self.error("a code point beyond Unicode")
        return point

    def bracket(self) -> CharSet:
        negated = self.take("^")
        spans: list[tuple[int, int]] = []
        while not self.take("]"):
            low = self.bracket_item()
            if self.peek() == "-" and self.source[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                high = self.bracket_item()
                if not _is_raw(low) or not _is_raw(high):
                    spans += [*low, (0x2D, 0x2D), *high]  # [\w-.]: without the u flag, the dash is itself.
                    continue
                if low[0][0] > high[0][0]:
                    raise self.error("a range whose bounds are out of order")
                spans.append((low[0][0], high[0][0]))
            else:
                spans.extend(low)
        chars = union(spans)
        return complement(chars) if negated else _scalars(chars)

    def bracket_item(self) -> CharSet:
        if self.at >= len(self.source):
            raise self.error("a bracket without its end")
        char = self.source[self.at]
        self.at += 1
        if char != "\\":
            return _raw(ord(char))
        if self.take("b"):
            return _raw(8)
        return self.escaped_set()


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


def _is_raw(chars: CharSet) -> bool:
    return len(chars) == 1 and chars[0][0] == chars[0][1]


def _raw(point: int) -> CharSet:
    return ((point, point),)


def _one(point: int) -> Node:
    return Set(_scalars(_raw(point)))


def _scalars(chars: CharSet) -> CharSet:
    return complement(complement(chars))
