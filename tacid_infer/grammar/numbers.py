"""Numbers within bounds, written digit by digit.

A number of zero or more is either plain digits, with at most one point, or one digit, an optional fraction and an
exponent, as every JSON writer spells it. Both are compared with the bounds as they are read, so that each character
leaves one reading alive. Below zero the bounds are mirrored.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import lcm

from ..gbnf import EMPTY, NEVER, Alt, Chars, Expr, Lit, Ref, Rep, alt, seq
from .document import Site
from .forms import Form
from .maker import Maker
from .primitives import DIGIT, E_SIGN, MOST_DIGITS, ZERO_FRACTION, optional
from .shared import RuleMaker, SharedRules, make_shared
from .values import FRACTION, INTEGER

_MOST_REMAINDERS = 400
_EXPONENTS = (-999, 307)
_EXACT_DIGITS = 15
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


@dataclass(frozen=True, slots=True)
class _Demand:
    """All that a form says of numbers, by content."""

    low: Decimal | None
    low_open: bool
    high: Decimal | None
    high_open: bool
    whole: bool
    plain: bool
    """Whole numbers are written without a point and an exponent."""
    step: Decimal | None


def number(form: Form, site: Site, maker: Maker) -> Expr:
    """The numbers that a form admits: whole ones only, if fractions are not among its types."""
    whole = not form.types & FRACTION
    plain = whole and maker.document.plain_integers
    steps = [(step, where) for step, where in form.multiples if not (whole and step == 1)]
    if any(isinstance(value, (int, float)) and not isinstance(value, bool) for value, _ in form.excluded):
        maker.report(site, "not", "an excluded number is not kept out")
    if not form.types & INTEGER:
        maker.report(site, "not", "a whole number is not kept out")
    if form.low is None and form.high is None and not steps:
        return Ref("plain-integer" if plain else "integer" if whole else "number")
    step = _common_step(steps, whole, maker)
    low, high = form.low, form.high
    if low is not None and form.low_open and not whole:
        low = _beyond(low, math.inf)
    if high is not None and form.high_open and not whole:
        high = _beyond(high, -math.inf)
    return maker.share(_made(_Demand(low, form.low_open, high, form.high_open, whole, plain, step)))


def _beyond(bound: Decimal, towards: float) -> Decimal:
    """The bound that decimals must pass for the double that a reader makes of them to pass an open bound.

    What lies nearer to the bound than to the next double is read as the bound itself: 0.99999999999999999999 is 1.
    """
    here = float(bound)
    following = math.nextafter(here, towards)
    if not math.isfinite(following):
        return bound
    with localcontext(prec=1200):
        return (Decimal(here) + Decimal(following)) / 2


@lru_cache(maxsize=1024)
def _made(demand: _Demand) -> SharedRules:
    kind = "integer" if demand.whole else "number"
    return make_shared(kind, demand, lambda maker: _build(demand, maker))


def _build(demand: _Demand, maker: RuleMaker) -> Expr:
    low, high = demand.low, demand.high
    options: list[Expr] = []
    if high is None or high >= 0:
        span = Span() if low is None or low < 0 else Span(low, demand.low_open)
        span = replace(span, high=high, high_open=demand.high_open)
        options.append(_unsigned(span, demand, maker))
    if low is None or low <= 0:
        span = Span() if high is None or high > 0 else Span(-high, demand.high_open)
        if low is not None:
            span = replace(span, high=-low, high_open=demand.low_open)
        options.append(seq(Lit("-"), _unsigned(span, demand, maker)))
    return alt(option for option in options if option != NEVER)


def _common_step(steps: list[tuple[Decimal, Site]], whole: bool, maker: Maker) -> Decimal | None:
    """The one number that all must be multiples of, if the automaton can count its remainders."""
    if not steps:
        return None
    common = Fraction(1) if whole else Fraction(steps[0][0])
    for step, _ in steps:
        fraction = Fraction(step)
        common = Fraction(
            lcm(common.numerator * fraction.denominator, fraction.numerator * common.denominator),
            common.denominator * fraction.denominator,
        )
    digits = 0
    while common.denominator != 1 and digits < 20 and (common * 10**digits).denominator != 1:
        digits += 1
    if (common * 10**digits) > _MOST_REMAINDERS:
        for _, site in steps:
            maker.report(site, "multipleOf", f"more than {_MOST_REMAINDERS} remainders to count")
        return None
    return Decimal(common.numerator) / Decimal(common.denominator)


def _unsigned(span: Span, demand: _Demand, maker: RuleMaker) -> Expr:
    if span.is_empty():
        return NEVER
    plainly = "plain-" if demand.plain else ""
    if demand.step is None and span.high is None and span.low == 0:
        if not span.low_open:
            return Ref(f"{plainly}unsigned-integer" if demand.whole else "unsigned-number")
        if demand.whole:
            return Ref(f"{plainly}positive-integer")
    options = [_Digits(span, demand.whole, demand.plain, demand.step, maker).write()]
    if demand.step is None and not demand.plain:
        options.append(_whole_scientific(span) if demand.whole else _scientific(span, maker))
    return alt(option for option in options if option != NEVER)


def _digits(value: Decimal) -> tuple[str, str]:
    """The digits before and behind the point, without needless zeros."""
    before, _, behind = f"{value:f}".partition(".")
    return before.lstrip("0") or "0", behind.rstrip("0")


# The state of a plain number while its digits are read: how many there are, how they compare so far with the digits of
# the bounds (-1, 0, 1), and the remainder so far.
_State = tuple[int, int, int, int]


class _Digits:
    """The spellings without an exponent: digits, and a fraction."""

    def __init__(self, span: Span, whole: bool, plain: bool, step: Decimal | None, maker: RuleMaker) -> None:
        self.span = span
        self.whole = whole
        self.plain = plain
        self.maker = maker
        self.low, self.low_fraction = _digits(span.low)
        self.high, self.high_fraction = _digits(span.high) if span.high is not None else ("9" * MOST_DIGITS, "")
        self.unbounded = span.high is None
        self.places = max(0, -int(step.normalize().as_tuple().exponent)) if step is not None else 0
        self.modulus = int(step.scaleb(self.places)) if step is not None else 1
        self.stepped = step is not None
        self.memo: dict[_State, Expr] = {}
        self.shapes: dict[Expr, Expr] = {}

    def write(self) -> Expr:
        options: list[Expr] = []
        zero = self.ending((1, self.compare("0", self.low, 0), self.compare("0", self.high, 0), 0))
        if zero != NEVER:
            options.append(seq(Lit("0"), zero))
        options.extend(self.digits((0, 0, 0, 0), first=True))
        return alt(options)

    @staticmethod
    def compare(digit: str, bound: str, at: int) -> int:
        other = bound[at] if at < len(bound) else ""
        return 0 if digit == other else (1 if digit > other else -1)

    def digits(self, state: _State, *, first: bool = False) -> list[Expr]:
        """One more digit, and all that may follow."""
        count, low, high, remainder = state
        grouped: dict[Expr, list[int]] = {}
        for digit in "123456789" if first else "0123456789":
            after = (
                count + 1,
                low or self.compare(digit, self.low, count),
                0 if self.unbounded else high or self.compare(digit, self.high, count),
                (remainder * 10 + int(digit)) % self.modulus if self.stepped else 0,
            )
            rest = self.rest(after)
            if rest != NEVER:
                grouped.setdefault(rest, []).append(ord(digit))
        return [seq(_one_of(points), rest) for rest, points in grouped.items()]

    def rest(self, state: _State) -> Expr:
        count, low, high, _ = state
        if not self.unbounded and (count > len(self.high) or (count == len(self.high) and high > 0)):
            return NEVER
        if count > MOST_DIGITS:
            return NEVER
        if not self.stepped and self.is_past_low(count, low) and (self.unbounded or high != 0):
            left = len(self.high) - count - (high > 0)
            more = Rep(DIGIT, 0, left) if left else EMPTY
            if not self.whole:
                return seq(more, optional(Ref("fraction")))
            if self.plain:
                return more
            if left + count <= _EXACT_DIGITS:
                return seq(more, optional(ZERO_FRACTION))
            few = Rep(DIGIT, 0, _EXACT_DIGITS - count) if count < _EXACT_DIGITS else EMPTY
            return alt([more, seq(few, ZERO_FRACTION)]) if count <= _EXACT_DIGITS else more
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
        if self.plain or ((self.whole or self.stepped) and count > _EXACT_DIGITS - self.places):
            # With a fraction, readers take it for a double, which no longer tells neighbours apart.
            exact = remainder == 0 and not (against_low == 0 and (self.low_fraction or self.span.low_open))
            return EMPTY if exact and not (against_high == 0 and self.span.high_open) else NEVER
        remainder = remainder * 10**self.places % self.modulus if self.stepped else 0
        return self.fraction(0, against_low == 0, against_high == 0, remainder)

    def fraction(self, at: int, low: bool, high: bool, remainder: int) -> Expr:
        """What may follow after ``at`` digits of the fraction; ``low`` and ``high``: still equal to that bound."""
        options: list[Expr] = []
        ends = remainder == 0
        if low and (self.span.low_open if at >= len(self.low_fraction) else True):
            ends = False
        if high and self.span.high_open and at >= len(self.high_fraction):
            ends = False
        if ends:
            options.append(EMPTY)
        more = self.more(at, low, high, remainder)
        if more != NEVER:
            options.append(more if at else seq(Lit("."), more))
        return alt(options)

    def more(self, at: int, low: bool, high: bool, remainder: int) -> Expr:
        past_low = at >= len(self.low_fraction)
        past_high = at >= len(self.high_fraction)
        if high and past_high:
            # Equal to the upper bound: only zeros may follow.
            if (low and not (past_low and not self.span.low_open)) or self.span.high_open or remainder:
                return NEVER
            return Rep(Lit("0"), 1, 16)
        if self.whole or (self.stepped and at >= self.places):
            if remainder or (low and not (past_low and not self.span.low_open)):
                return NEVER
            return Rep(Lit("0"), 1, 16)
        if at >= MOST_DIGITS:
            return NEVER
        if not self.stepped and not high:
            if not low or (past_low and not self.span.low_open):
                return Rep(DIGIT, 1, MOST_DIGITS)
            if past_low:
                return seq(Rep(Lit("0"), 0, MOST_DIGITS), Chars(((0x31, 0x39),)), Rep(DIGIT, 0, MOST_DIGITS))
        grouped: dict[Expr, list[int]] = {}
        for digit in "0123456789":
            low_sign = self.compare(digit, self.low_fraction.ljust(at + 1, "0"), at) if low else 1
            high_sign = self.compare(digit, self.high_fraction.ljust(at + 1, "0"), at) if high else -1
            if low_sign < 0 or high_sign > 0:
                continue
            left = remainder
            if self.stepped:
                left = (remainder + int(digit) * 10 ** (self.places - at - 1)) % self.modulus
            rest = self.fraction(at + 1, low_sign == 0, high_sign == 0, left)
            if rest != NEVER:
                grouped.setdefault(rest, []).append(ord(digit))
        return self.shared(alt(seq(_one_of(points), rest) for rest, points in grouped.items()))


def _one_of(points: list[int]) -> Expr:
    if len(points) == 1:
        return Lit(chr(points[0]))
    ranges: list[tuple[int, int]] = []
    for point in points:
        if ranges and ranges[-1][1] == point - 1:
            ranges[-1] = (ranges[-1][0], point)
        else:
            ranges.append((point, point))
    return Chars(tuple(ranges))


def _scientific(span: Span, maker: RuleMaker) -> Expr:
    """The spellings with an exponent: a mantissa from 1 up to, not including, 10."""
    options: list[Expr] = []
    one, ten = Decimal(1), Decimal(10)
    low_exponent, low_mantissa = _normalised(span.low) if span.low > 0 else (None, one)
    if span.high is None:
        high_exponent, high_mantissa = None, ten
    elif span.high == 0:
        return NEVER
    else:
        high_exponent, high_mantissa = _normalised(span.high)
    first = _EXPONENTS[0] if low_exponent is None else low_exponent + 1
    last = _EXPONENTS[1] if high_exponent is None else high_exponent - 1

    def term(mantissa: Span, low: int, high: int) -> None:
        exponent = _exponents(low, high)
        if exponent != NEVER and not mantissa.is_empty():
            options.append(seq(_Digits(mantissa, False, False, None, maker).write(), E_SIGN, exponent))

    free = Span(one, False, ten, True)
    if low_exponent is not None and low_exponent == high_exponent:
        term(Span(low_mantissa, span.low_open, high_mantissa, span.high_open), low_exponent, low_exponent)
    else:
        if low_exponent is not None:
            term(Span(low_mantissa, span.low_open, ten, True), low_exponent, low_exponent)
        term(free, first, last)
        if high_exponent is not None:
            term(Span(one, False, high_mantissa, span.high_open), high_exponent, high_exponent)
    if span.high is None:
        options.append(Ref("largest-number"))
    return alt(options)


def _normalised(value: Decimal) -> tuple[int, Decimal]:
    exponent = value.adjusted()
    return exponent, value.scaleb(-exponent)


def _whole_scientific(span: Span) -> Expr:
    """Whole numbers with an exponent, where the bounds leave room for those that writers spell so."""
    if span.high is not None or span.low >= Decimal(10) ** 16:
        return NEVER
    return seq(Chars(((0x31, 0x39),)), optional(seq(Lit("."), Rep(DIGIT, 1, 16))), Ref("large-exponent"))


def _exponents(low: int, high: int) -> Expr:
    """The exponents from ``low`` to ``high``, with a sign and leading zeros as writers put them."""
    low, high = max(low, _EXPONENTS[0]), min(high, _EXPONENTS[1])
    options: list[Expr] = []
    if low <= high and high >= 0:
        options.append(seq(optional(Lit("+")), _padded(max(low, 0), high)))
    if low <= high and low <= 0:
        options.append(seq(Lit("-"), _padded(max(-high, 0), -low)))
    return alt(options)


@lru_cache(maxsize=256)
def _padded(low: int, high: int) -> Expr:
    """The numbers from ``low`` to ``high`` (at most 999) in one to three digits."""

    def after(prefix: int, count: int) -> Expr:
        left = 3 - count
        if count and all(low <= prefix * 10**more and (prefix + 1) * 10**more - 1 <= high for more in range(left + 1)):
            return Rep(DIGIT, 0, left) if left else EMPTY
        if count and all(prefix * 10**more > high or (prefix + 1) * 10**more - 1 < low for more in range(left + 1)):
            return NEVER
        grouped: dict[Expr, list[int]] = {}
        for digit in range(10 if left else 0):
            rest = after(prefix * 10 + digit, count + 1)
            if rest != NEVER:
                grouped.setdefault(rest, []).append(0x30 + digit)
        options = [seq(_one_of(points), rest) for rest, points in grouped.items()]
        return alt([EMPTY, *options] if count and low <= prefix <= high else options)

    return after(0, 0)
