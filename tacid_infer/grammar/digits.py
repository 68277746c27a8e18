"""Numbers within bounds, written as plain digits with at most one point.

They are compared with the bounds as they are read, so that each character leaves one reading alive.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from ..gbnf import EMPTY, NEVER, Alt, Chars, Expr, Lit, Ref, Rep, alt, one_of, seq
from .multiples import Remainders, Step
from .primitives import DIGIT, MOST_DIGITS, ZERO_FRACTION, optional
from .shared import RuleMaker

_TEN = "0123456789"
_NONE = [0] * 10
EXACT_DIGITS = 15
"""Up to so many digits a double keeps them all."""


@dataclass(frozen=True, slots=True)
class Span:
    """The numbers from ``low`` (0 or more) to ``high`` (no bound if None); an open end is not among them."""

    low: Decimal = Decimal(0)
    low_open: bool = False
    high: Decimal | None = None
    high_open: bool = False

    def is_empty(self) -> bool:
        if self.high is None:
            return False
        return self.low > self.high or (self.low == self.high and (self.low_open or self.high_open))


def digits_of(value: Decimal) -> tuple[str, str]:
    """Its digits before and behind the point, without needless zeros."""
    before, _, behind = f"{value:f}".partition(".")
    return before.lstrip("0") or "0", behind.rstrip("0")


# The state of a number while its digits are read: how many there are, how they compare so far with the digits of the
# bounds (-1, 0, 1), and the remainder so far.
_State = tuple[int, int, int, int]


class Digits:
    """The spellings of numbers without an exponent.

    Args:
        span: their bounds.
        whole: whether they are integers.
        plain: whether those are written without a point.
        step: what they must be multiples of.
    """

    def __init__(self, span: Span, whole: bool, plain: bool, step: Step | None, maker: RuleMaker) -> None:
        self.span = span
        self.whole = whole
        self.plain = plain
        self.step = step
        self.maker = maker
        self.low, self.low_fraction = digits_of(span.low)
        self.high, self.high_fraction = digits_of(span.high) if span.high is not None else ("9" * MOST_DIGITS, "")
        self.unbounded = span.high is None
        self.places = step.places if step is not None else 0
        self.is_decimal = step is None or step.units == 1
        """Whether the step is 1, 0.1, 0.01 and so on: then what readers make of a number has no more decimals, and is a
        multiple too. Of any other step, a double of more than ``EXACT_DIGITS`` no longer tells what is one."""
        self.remainders = Remainders(step, step.places) if step is not None else None
        self.memo: dict[_State, Expr] = {}
        self.fractions: dict[tuple[int, int, bool, bool, int], Expr] = {}
        self.shapes: dict[Expr, Expr] = {}

    def write(self) -> Expr:
        options: list[Expr] = []
        zero = self.ending((1, compare("0", self.low, 0), compare("0", self.high, 0), 0))
        if zero != NEVER:
            options.append(seq(Lit("0"), zero))
        options.extend(self.digits((0, 0, 0, 0), first=True))
        return alt(options)

    def digits(self, state: _State, *, first: bool = False) -> list[Expr]:
        """One more digit, and all that may follow."""
        count, low, high, remainder = state
        remainders = _NONE if self.remainders is None else self.remainders.after(remainder)
        states: dict[_State, list[int]] = {}
        for digit in range(1 if first else 0, 10):
            after = (
                count + 1,
                1 if count >= len(self.low) else low or compare(_TEN[digit], self.low, count),
                0 if self.unbounded else high or compare(_TEN[digit], self.high, count),
                remainders[digit],
            )
            states.setdefault(after, []).append(0x30 + digit)
        grouped: dict[Expr, list[int]] = {}
        for after, points in states.items():
            rest = self.rest(after)
            if rest != NEVER:
                grouped.setdefault(rest, []).extend(points)
        return [seq(one_of(points), rest) for rest, points in grouped.items()]

    def rest(self, state: _State) -> Expr:
        count, low, high, _ = state
        if not self.unbounded and (count > len(self.high) or (count == len(self.high) and high > 0)):
            return NEVER
        if count > MOST_DIGITS:
            return NEVER
        if self.step is None and self.is_past_low(count, low) and (self.unbounded or high != 0):
            left = len(self.high) - count - (high > 0)
            more = Rep(DIGIT, 0, left) if left else EMPTY
            if not self.whole:
                return seq(more, optional(Ref("fraction")))
            if self.plain:
                return more
            if left + count <= EXACT_DIGITS:
                return seq(more, optional(ZERO_FRACTION))
            few = Rep(DIGIT, 0, EXACT_DIGITS - count) if count < EXACT_DIGITS else EMPTY
            return alt([more, seq(few, ZERO_FRACTION)]) if count <= EXACT_DIGITS else more
        if state in self.memo:
            return self.memo[state]
        options = self.digits(state)
        end = self.ending(state)
        if end != NEVER:
            options.insert(0, end)
        self.memo[state] = made = self.shared(alt(options))
        return made

    def is_past_low(self, count: int, low: int) -> bool:
        """Whether the lower bound is met, whatever follows."""
        if count == len(self.low) and low == 0:
            return not self.low_fraction and not self.span.low_open
        return count > len(self.low) or (count == len(self.low) and low > 0)

    def shared(self, expr: Expr) -> Expr:
        """A rule, so that equal rests are written once."""
        if type(expr) is not Alt or not expr.options:
            return expr
        if expr not in self.shapes:
            self.shapes[expr] = self.maker.define(expr)
        return self.shapes[expr]

    def ending(self, state: _State) -> Expr:
        """The number ends, or a point and its fraction follow."""
        count, low, high, remainder = state
        against_low = (count > len(self.low)) - (count < len(self.low)) or low
        against_high = -1 if self.unbounded else (count > len(self.high)) - (count < len(self.high)) or high
        if against_low < 0 or against_high > 0:
            return NEVER
        remainder = self.step.scaled(remainder) if self.step is not None else 0
        if self.plain or (count > EXACT_DIGITS and (self.whole or not self.is_decimal)):
            exact = remainder == 0 and not (against_low == 0 and (self.low_fraction or self.span.low_open))
            return EMPTY if exact and not (against_high == 0 and self.span.high_open) else NEVER
        places = self.places if self.is_decimal else min(self.places, EXACT_DIGITS - count)
        return self.fraction(0, places, against_low == 0, against_high == 0, remainder)

    def fraction(self, at: int, places: int, low: bool, high: bool, remainder: int) -> Expr:
        """What may follow after ``at`` digits of the fraction; ``low`` and ``high``: still equal to that bound.

        Behind a step's decimal ``places``, only zeros may stand.
        """
        if self.step is not None and -remainder % self.step.units >= 10 ** max(0, self.places - at):
            return NEVER  # All the digits to come cannot make up what a multiple lacks.
        state = (at, places, low, high, remainder)
        known = self.fractions.get(state)
        if known is None:
            known = self.fractions[state] = self.fraction_from(at, places, low, high, remainder)
        return known

    def fraction_from(self, at: int, places: int, low: bool, high: bool, remainder: int) -> Expr:
        options: list[Expr] = []
        ends = remainder == 0
        if low and (self.span.low_open if at >= len(self.low_fraction) else True):
            ends = False
        if high and self.span.high_open and at >= len(self.high_fraction):
            ends = False
        if ends:
            options.append(EMPTY)
        more = self.more(at, places, low, high, remainder)
        if more != NEVER:
            options.append(more if at else seq(Lit("."), more))
        return alt(options)

    def more(self, at: int, places: int, low: bool, high: bool, remainder: int) -> Expr:
        past_low = at >= len(self.low_fraction)
        past_high = at >= len(self.high_fraction)
        if high and past_high:
            # Equal to the upper bound: only zeros may follow.
            if (low and not (past_low and not self.span.low_open)) or self.span.high_open or remainder:
                return NEVER
            return Rep(Lit("0"), 1, 16)
        if self.whole or (self.step is not None and at >= places):
            if remainder or (low and not (past_low and not self.span.low_open)):
                return NEVER
            return Rep(Lit("0"), 1, 16)
        if at >= MOST_DIGITS:
            return NEVER
        if self.step is None and not high:
            if not low or (past_low and not self.span.low_open):
                return Rep(DIGIT, 1, MOST_DIGITS)
            if past_low:
                return seq(Rep(Lit("0"), 0, MOST_DIGITS), Chars(((0x31, 0x39),)), Rep(DIGIT, 0, MOST_DIGITS))
        grouped: dict[Expr, list[int]] = {}
        for number, digit in enumerate(_TEN):
            low_sign = compare(digit, self.low_fraction.ljust(at + 1, "0"), at) if low else 1
            high_sign = compare(digit, self.high_fraction.ljust(at + 1, "0"), at) if high else -1
            if low_sign < 0 or high_sign > 0:
                continue
            left = remainder
            if self.step is not None:
                left = (remainder + number * 10 ** (self.places - at - 1)) % self.step.units
            rest = self.fraction(at + 1, places, low_sign == 0, high_sign == 0, left)
            if rest != NEVER:
                grouped.setdefault(rest, []).append(0x30 + number)
        return self.shared(alt(seq(one_of(points), rest) for rest, points in grouped.items()))


def compare(digit: str, bound: str, at: int) -> int:
    """How a digit compares with the one in its place in the bound, if there is one: -1, 0 or 1."""
    other = bound[at] if at < len(bound) else ""
    return 0 if digit == other else (1 if digit > other else -1)
