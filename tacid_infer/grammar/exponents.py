"""Numbers within bounds, written as one digit, a fraction and an exponent, as every JSON writer spells it."""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache

from ..gbnf import EMPTY, NEVER, Chars, Expr, Lit, Ref, Rep, alt, one_of, seq
from .digits import EXACT_DIGITS, Digits, Span, compare, digits_of
from .multiples import Remainders, Step
from .primitives import DIGIT, E_SIGN, ZERO_FRACTION, optional
from .shared import RuleMaker

_EXPONENTS = (-999, 307)


def scientific(span: Span, step: Step | None, maker: RuleMaker) -> Expr:
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
        if mantissa.is_empty() or low > high:
            return
        if step is not None:
            options.append(_Mantissa(mantissa, step, low, high, maker).write())
        elif (exponent := _exponents(low, high)) != NEVER:
            options.append(seq(Digits(mantissa, False, False, None, maker).write(), E_SIGN, exponent))

    free = Span(one, False, ten, True)
    if low_exponent is not None and low_exponent == high_exponent:
        term(Span(low_mantissa, span.low_open, high_mantissa, span.high_open), low_exponent, low_exponent)
    else:
        if low_exponent is not None:
            term(Span(low_mantissa, span.low_open, ten, True), low_exponent, low_exponent)
        term(free, first, last)
        if high_exponent is not None:
            term(Span(one, False, high_mantissa, span.high_open), high_exponent, high_exponent)
    if span.high is None and step is None:
        options.append(Ref("largest-number"))
    return alt(options)


def whole_scientific(span: Span, step: Step | None, maker: RuleMaker) -> Expr:
    """Whole numbers with an exponent, where the bounds leave room for those that writers spell so."""
    if span.high is not None or span.low >= Decimal(10) ** 16:
        return NEVER
    if step is not None:
        return scientific(span, step, maker)
    return seq(Chars(((0x31, 0x39),)), optional(seq(Lit("."), Rep(DIGIT, 1, 16))), Ref("large-exponent"))


class _Mantissa:
    """The multiples of a step with an exponent, as far as doubles tell them apart.

    They are read as the whole number that the mantissa is without its point: so many zeros behind it, and it is a
    multiple. That bounds the exponent from below.
    """

    def __init__(self, span: Span, step: Step, low: int, high: int, maker: RuleMaker) -> None:
        self.span = span
        self.step = step
        self.low_digits = "".join(digits_of(span.low)).rstrip("0")
        self.high_digits = "" if span.high is None or span.high == 10 else "".join(digits_of(span.high)).rstrip("0")
        self.least = max(low, -step.places)
        self.most = min(high, _most_exact(1))
        self.maker = maker
        self.remainders = Remainders(step, 0)
        self.zeros: dict[int, int | None] = {}
        self.memo: dict[tuple[int, bool, bool, int], Expr] = {}

    def write(self) -> Expr:
        return alt(self.digits(0, True, bool(self.high_digits), 0)) if self.least <= self.most else NEVER

    def digits(self, count: int, low: bool, high: bool, remainder: int) -> list[Expr]:
        """One more digit; ``low`` and ``high``: so far equal to that bound."""
        after = self.remainders.after(remainder)
        grouped: dict[Expr, list[int]] = {}
        for number in range(0 if count else 1, 10):
            low_sign = compare(str(number), self.low_digits.ljust(count + 1, "0"), count) if low else 1
            high_sign = compare(str(number), self.high_digits.ljust(count + 1, "0"), count) if high else -1
            if low_sign >= 0 and high_sign <= 0:
                rest = self.rest(count + 1, low_sign == 0, high_sign == 0, after[number])
                if rest != NEVER:
                    grouped.setdefault(rest, []).append(0x30 + number)
        return [seq(one_of(points), rest) for rest, points in grouped.items()]

    def rest(self, count: int, low: bool, high: bool, remainder: int) -> Expr:
        state = (count, low, high, remainder)
        known = self.memo.get(state)
        if known is None:
            options = [self.ending(count, low, high, remainder)]
            if count < min(EXACT_DIGITS, 1 + self.most + self.step.places):
                more = alt(self.digits(count, low, high, remainder))
                options.append(more if count > 1 else seq(Lit("."), more))
            found = alt(option for option in options if option != NEVER)
            known = self.memo[state] = found if found == NEVER else self.maker.define(found)
        return known

    def ending(self, count: int, low: bool, high: bool, remainder: int) -> Expr:
        """The exponent."""
        if low and (count < len(self.low_digits) or self.span.low_open):
            return NEVER
        if high and count >= len(self.high_digits) and self.span.high_open:
            return NEVER
        zeros = self.missing(remainder)
        if zeros is None:
            return NEVER
        least = max(self.least, zeros - self.step.places + count - 1)
        exponent = _exponents(least, min(self.most, _most_exact(count)))
        return seq(optional(ZERO_FRACTION) if count == 1 else EMPTY, E_SIGN, exponent)

    def missing(self, remainder: int) -> int | None:
        """How many zeros make a multiple of it; None if none do."""
        if remainder not in self.zeros:
            left, zeros = remainder, 0
            while left and zeros <= self.step.units.bit_length():
                left, zeros = left * 10 % self.step.units, zeros + 1
            self.zeros[remainder] = None if left else zeros
        return self.zeros[remainder]


@lru_cache(maxsize=32)
def _most_exact(digits: int) -> int:
    """The largest exponent with which a double holds every mantissa of so many digits."""
    fives = 0
    while 10**digits * 5 ** (fives + 1) <= 2**53:
        fives += 1
    return digits - 1 + fives


def _normalised(value: Decimal) -> tuple[int, Decimal]:
    exponent = value.adjusted()
    return exponent, value.scaleb(-exponent)


@lru_cache(maxsize=512)
def _exponents(low: int, high: int) -> Expr:
    """The exponents from ``low`` to ``high``, with a sign and leading zeros as writers put them."""
    low, high = max(low, _EXPONENTS[0]), min(high, _EXPONENTS[1])
    options: list[Expr] = []
    if low <= high and high >= 0:
        options.append(seq(optional(Lit("+")), _padded(max(low, 0), high)))
    if low <= high and low <= 0:
        options.append(seq(Lit("-"), _padded(max(-high, 0), -low)))
    return alt(options)


def _digits(least: int, most: int) -> Expr:
    return Rep(DIGIT, least, most) if most else EMPTY


@lru_cache(maxsize=256)
def _padded(low: int, high: int) -> Expr:
    """The numbers from ``low`` to ``high`` (at most 999) in one to three digits."""

    def after(prefix: int, count: int) -> Expr:
        """What may follow these digits, of which there are ``count``."""
        left = 3 - count
        if count:
            ranges = [(prefix * 10**more, (prefix + 1) * 10**more - 1) for more in range(left + 1)]
            admitted = [more for more, (least, most) in enumerate(ranges) if low <= least and most <= high]
            if len(admitted) == sum([least <= high and low <= most for least, most in ranges]):
                return _digits(admitted[0], admitted[-1]) if admitted else NEVER
        grouped: dict[Expr, list[int]] = {}
        for digit in range(10 if left else 0):
            rest = after(prefix * 10 + digit, count + 1)
            if rest != NEVER:
                grouped.setdefault(rest, []).append(0x30 + digit)
        options = [seq(one_of(points), rest) for rest, points in grouped.items()]
        return alt([EMPTY, *options] if count and low <= prefix <= high else options)

    return after(0, 0)
