"""Characters of a string, and automata over them, as they are written inside JSON's quotes."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache

from ..gbnf import EMPTY, NEVER, Alt, Chars, Expr, Lit, Ref, alt, factor, repeat, seq
from ..regular import ANY, Automaton, Cat, CharSet, Node, Or, Repeat, Set, TooLarge, difference, intersection
from .primitives import MUST_ESCAPE, QUOTE, RAW_CHAR
from .shared import RuleMaker

_NESTED = 20
_MOST_WRITTEN = 1500


@lru_cache(maxsize=2048)
def one_char(chars: CharSet) -> Expr:
    """One character of the set. Any character at all: every escape of it too; else raw, or as JSON must escape it."""
    if chars == ANY:
        return Ref("char")
    raw = difference(chars, MUST_ESCAPE)
    options: list[Expr] = []
    if len(raw) == 1 and raw[0][0] == raw[0][1]:
        options.append(Lit(chr(raw[0][0])))
    elif raw:
        options.append(_class(chars, raw))
    if escaped := intersection(chars, MUST_ESCAPE):
        options.append(Ref("escaped") if escaped == MUST_ESCAPE else _escapes(escaped))
    return options[0] if len(options) == 1 else alt(options)


@lru_cache(maxsize=256)
def _escapes(chars: CharSet) -> Expr:
    """One of these characters, as JSON must escape it."""
    written: list[str] = []
    for low, high in chars:
        for point in range(low, high + 1):
            text = json.dumps(chr(point))[1:-1]
            written.append(text)
            if text.startswith("\\u"):
                written.append(text[:4] + text[4:].upper())
    return factor([(text, EMPTY) for text in written], _no_rule)


def _class(chars: CharSet, raw: CharSet) -> Expr:
    """The raw characters; a set of nearly all of them is written by what it lacks."""
    lacking = difference(ANY, raw)
    return Chars(lacking, negated=True) if len(lacking) < len(raw) else Chars(raw)


def _no_rule(expr: Expr) -> Ref:
    raise AssertionError("an escape is too short to need a rule")


def pattern_body(node: Node, maker: RuleMaker) -> Expr:
    """A pattern that matches the whole of the text, written as it stands; without the quotes."""
    match node:
        case Set(chars):
            return one_char(chars) if chars else Alt(())
        case Cat(items):
            return seq(*(pattern_body(item, maker) for item in items))
        case Or(options):
            return alt(pattern_body(option, maker) for option in options)
        case Repeat(item, low, high):
            return repeat(pattern_body(item, maker), low, high, maker.define)
    raise AssertionError("a whole pattern holds no edges")


@lru_cache(maxsize=1024)
def one_key_char(chars: CharSet) -> Expr:
    """One character of a key: each has one spelling only."""
    if chars == ANY:
        return Alt((RAW_CHAR, seq(Lit("\\"), Ref("key-escape"))))
    return one_char(chars)


def automaton_body(
    automaton: Automaton, low: int, high: int | None, maker: RuleMaker, chars: Callable[[CharSet], Expr] = one_char
) -> Expr:
    """The automaton's texts of ``low`` to ``high`` characters, and the closing quote.

    A state that only leads to itself is written as a repetition, so that a long bound costs nothing there.

    Raises:
        TooLarge: counting would take too many rules.
    """
    return _Writer(automaton, low, high, maker, chars).write()


class _Writer:
    def __init__(
        self, automaton: Automaton, low: int, high: int | None, maker: RuleMaker, chars: Callable[[CharSet], Expr]
    ) -> None:
        self.automaton = automaton
        self.low = low
        self.high = high
        self.maker = maker
        self.chars = chars
        self.counts = low > 0 or high is not None
        self.refs: dict[tuple[int, int], Ref] = {}
        self.todo: list[tuple[int, int]] = []
        self.entered = [0] * len(automaton.edges)
        for edges in automaton.edges:
            for _, target in edges:
                self.entered[target] += 1
        self.loops = [
            state in automaton.accepting and (not edges or (len(edges) == 1 and edges[0][1] == state))
            for state, edges in enumerate(automaton.edges)
        ]
        self.known: dict[int, Expr] = {}
        self.written = 0

    def write(self) -> Expr:
        if not self.automaton.edges:
            return Alt(())
        self.entered[0] += 1
        self.foresee()
        body = self.body(0, 0, 0)
        while self.todo:
            at = self.todo.pop()
            self.maker.put(self.refs[at], self.body(*at, 0))
        return body

    def foresee(self) -> None:
        """Give up early what would come to be too large: count the states that each length reaches."""
        reached, needed = {0}, 0
        for _ in range(self.low if self.high is None else self.high):
            reached = {
                target for state in reached if not self.loops[state] for _, target in self.automaton.edges[state]
            }
            needed += len(reached) - sum(self.loops[state] for state in reached)
            if needed > _MOST_WRITTEN:
                raise TooLarge("counting takes too many rules")
            if not reached:
                return

    def step(self, state: int, count: int, depth: int) -> Expr:
        """What follows once the state is reached."""
        if self.entered[state] == 1 and depth < _NESTED and not self.counts:
            return self.body(state, count, depth + 1)
        if self.loops[state]:
            return self.body(state, count, depth)
        at = (state, count)
        if at not in self.refs:
            self.refs[at] = self.maker.reserve()
            self.todo.append(at)
        return self.refs[at]

    def body(self, state: int, count: int, depth: int) -> Expr:
        self.written += 1
        if self.written > _MOST_WRITTEN:
            raise TooLarge("counting takes too many rules")
        edges = self.automaton.edges[state]
        if self.loops[state]:
            if not edges:
                return QUOTE if count >= self.low else Alt(())
            more = None if self.high is None else self.high - count
            times = repeat(self.one_of(edges[0][0]), max(0, self.low - count), more, self.maker.define)
            return seq(times, QUOTE)
        options: list[Expr] = []
        after = count + 1 if self.counts and (self.high is not None or count < self.low) else count
        if self.high is None or count < self.high:
            options = [seq(self.one_of(chars), self.step(target, after, depth)) for chars, target in edges]
            if self.counts:
                options = [option for option in options if option != NEVER]
        if state in self.automaton.accepting and count >= self.low:
            options.append(QUOTE)
        return options[0] if len(options) == 1 else Alt(tuple(options))

    def one_of(self, chars: CharSet) -> Expr:
        """One character of a set that an edge of the automaton holds."""
        known = self.known.get(id(chars))
        if known is None:
            known = self.known[id(chars)] = self.chars(chars)
        return known
