"""Which numbers are multiples of a step, told as their digits are read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import lcm

from .primitives import MOST_DIGITS

_MOST_REMAINDERS = 100
"""A number is read by its count of digits and its remainder, so that each remainder takes some forty rules."""


class Uncountable(Exception):
    """A step that takes too much to count; the message says what."""


@dataclass(frozen=True, slots=True)
class Step:
    """What numbers must be multiples of: so many ``units``, of which 10 to the power of ``places`` make a one."""

    units: int
    places: int

    def scaled(self, digits: int) -> int:
        """How far whole ones so many are beyond a multiple, in units."""
        return digits * int(10**self.places) % self.units


def common_step(steps: Iterable[Decimal], whole: bool) -> Step:
    """The step whose multiples are those of all the steps; whole ones only, if asked for.

    Raises:
        Uncountable: its decimals or its remainders are too many.
    """
    common: Fraction | None = Fraction(1) if whole else None
    for step in steps:
        one = Fraction(step)
        if common is None:
            common = one
            continue
        numerator = lcm(common.numerator * one.denominator, one.numerator * common.denominator)
        common = Fraction(numerator, common.denominator * one.denominator)
    assert common is not None
    places = 0
    while (common * 10**places).denominator != 1:
        places += 1
        if places > MOST_DIGITS:
            raise Uncountable(f"more than {MOST_DIGITS} decimals to count")
    found = Step(int(common * 10**places), places)
    if found.units >= 10**MOST_DIGITS or not Remainders(found, places).are_few() or not Remainders(found, 0).are_few():
        raise Uncountable(f"more than {_MOST_REMAINDERS} remainders to count")
    return found


class Remainders:
    """The remainders of what has been read of a number, in units of its step.

    Two from which the same digits lead on to a multiple are told apart by nothing, so one stands for both: of a
    thousand remainders of 1000, four are left.

    Args:
        behind: how many digits are still to come when the number's own end.
    """

    def __init__(self, step: Step, behind: int) -> None:
        self._units = step.units
        self._powers = [10**behind]
        while self._powers[-1] < step.units:
            self._powers.append(10 * self._powers[-1])
        self._known: dict[tuple[int, ...], int] = {}
        self._ways: dict[int, list[int]] = {}

    def like(self, remainder: int) -> int:
        """The one that stands for it: alike are those that lack the same, as far as so many digits can make it up."""
        lacking = [(power, -remainder * power % self._units) for power in self._powers]
        return self._known.setdefault(tuple([lack if lack < power else -1 for power, lack in lacking]), remainder)

    def after(self, remainder: int) -> list[int]:
        """What each digit makes of it, from 0 to 9."""
        ways = self._ways.get(remainder)
        if ways is None:
            ways = [self.like((remainder * 10 + digit) % self._units) for digit in range(10)]
            self._ways[remainder] = ways
        return ways

    def are_few(self) -> bool:
        """Whether no more than ``_MOST_REMAINDERS`` are told apart."""
        todo = [self.like(0)]
        seen = set(todo)
        while todo and len(seen) <= _MOST_REMAINDERS:
            for remainder in self.after(todo.pop()):
                if remainder not in seen:
                    seen.add(remainder)
                    todo.append(remainder)
        return len(seen) <= _MOST_REMAINDERS
