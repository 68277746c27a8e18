"""The rules of JSON itself (RFC 8259), in the wire format's spacing.

Every grammar starts out with all of them; those that its root does not reach are pruned.

Numbers are bounded in digits, so that no reply runs away, and never overflow a double: at most 40 digits before the
point and 40 behind it; with an exponent, one digit before the point and at most 1.7976931348623157e308. Strings hold
no raw control character and no half of a surrogate pair, so that every reply is UTF-8 again once parsed.
"""

from __future__ import annotations

from ..gbnf import Alt, Chars, Expr, Lit, Ref, Rep, Rules, seq

DIGIT = Chars(((0x30, 0x39),))
DIGIT_1_9 = Chars(((0x31, 0x39),))
MOST_DIGITS = 40
FRACTION_DIGITS = Rep(DIGIT, 1, MOST_DIGITS)
ZERO_FRACTION = Ref("zero-fraction")
E_SIGN = Chars(((0x45, 0x45), (0x65, 0x65)))
_HEX = Chars(((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)))
_LARGEST = "7976931348623157"
MUST_ESCAPE = ((0x00, 0x1F), (0x22, 0x22), (0x5C, 0x5C))
"""The characters that JSON writes as escapes only."""
RAW_CHAR = Chars(MUST_ESCAPE, negated=True)
QUOTE = Lit('"')


def optional(item: Expr) -> Expr:
    """The item, or nothing."""
    return Rep(item, 0, 1)


def _up_to_307() -> Expr:
    """An exponent of at most three digits, 0 to 307."""
    digit = DIGIT
    return Alt(
        (
            seq(Chars(((0x30, 0x32),)), Rep(digit, 0, 2)),
            seq(
                Lit("3"),
                optional(Alt((seq(Lit("0"), optional(Chars(((0x30, 0x37),)))), DIGIT_1_9))),
            ),
            seq(Chars(((0x34, 0x39),)), optional(digit)),
        )
    )


def _largest_fraction() -> Expr:
    """The digits behind the point of a mantissa of at most 1.7976931348623157."""
    expr: Expr = Rep(Lit("0"), 0, 16)
    for digit in reversed(_LARGEST):
        here = ord(digit)
        options: list[Expr] = [seq(Lit(digit), expr if digit == _LARGEST[-1] else optional(expr))]
        if here > 0x30:
            options.append(seq(Chars(((0x30, here - 1),)), Rep(DIGIT, 0, MOST_DIGITS)))
        expr = Alt(tuple(options))
    return expr


PRIMITIVES: Rules = {
    "value": Alt((Ref("object"), Ref("array"), Ref("string"), Ref("number"), Ref("boolean"), Ref("null"))),
    "object": seq(Lit("{"), Alt((Lit("}"), seq(Ref("pair"), Rep(Ref("next-pair"), 0, None), Lit("}"))))),
    "pair": seq(Ref("string"), Lit(": "), Ref("value")),
    "next-pair": seq(Lit(", "), Ref("pair")),
    "array": seq(Lit("["), Alt((Lit("]"), seq(Ref("value"), Rep(Ref("next-value"), 0, None), Lit("]"))))),
    "next-value": seq(Lit(", "), Ref("value")),
    "string": seq(QUOTE, Rep(Ref("char"), 0, None), QUOTE),
    "char": Alt((RAW_CHAR, seq(Lit("\\"), Ref("escape")))),
    "escape": Alt(
        (
            Chars(tuple((ord(char), ord(char)) for char in '"/\\bfnrt')),
            seq(Lit("u"), Ref("code-point")),
        )
    ),
    "code-point": Alt(
        (
            seq(Chars(((0x30, 0x39), (0x41, 0x43), (0x45, 0x46), (0x61, 0x63), (0x65, 0x66))), Rep(_HEX, 3, 3)),
            seq(
                Chars(((0x44, 0x44), (0x64, 0x64))),
                Alt(
                    (
                        seq(Chars(((0x30, 0x37),)), Rep(_HEX, 2, 2)),
                        seq(
                            Chars(((0x38, 0x39), (0x41, 0x42), (0x61, 0x62))),
                            Rep(_HEX, 2, 2),
                            Lit("\\u"),
                            Chars(((0x44, 0x44), (0x64, 0x64))),
                            Chars(((0x43, 0x46), (0x63, 0x66))),
                            Rep(_HEX, 2, 2),
                        ),
                    )
                ),
            ),
        )
    ),
    # One of the characters that must be escaped, in a string of which not all characters are free.
    "escaped": seq(
        Lit("\\"),
        Alt(
            (
                Chars(tuple((ord(char), ord(char)) for char in '"\\bfnrt')),
                seq(
                    Lit("u00"),
                    Alt(
                        (
                            seq(
                                Lit("0"),
                                Chars(((0x30, 0x37), (0x42, 0x42), (0x45, 0x46), (0x62, 0x62), (0x65, 0x66))),
                            ),
                            seq(Lit("1"), _HEX),
                        )
                    ),
                ),
            )
        ),
    ),
    # A key beside named ones: written in one way only, so that no escape can smuggle a named key in.
    "key-rest": Alt((seq(RAW_CHAR, Ref("key-rest")), Ref("key-stop"))),
    "key-stop": Alt((QUOTE, seq(Lit("\\"), Ref("key-escape"), Ref("key-rest")))),
    "key-escape": Alt(
        (
            Chars(tuple((ord(char), ord(char)) for char in '"\\bfnrt')),
            seq(
                Lit("u00"),
                Alt((seq(Lit("0"), Chars(((0x30, 0x37), (0x62, 0x62), (0x65, 0x66)))), seq(Lit("1"), _HEX))),
            ),
        )
    ),
    "number": seq(optional(Lit("-")), Ref("unsigned-number")),
    "unsigned-number": Alt(
        (
            seq(Lit("0"), optional(Ref("fraction"))),
            seq(
                DIGIT_1_9,
                Alt(
                    (
                        seq(Rep(DIGIT, 1, MOST_DIGITS - 1), optional(Ref("fraction"))),
                        seq(optional(Ref("fraction")), optional(Ref("exponent"))),
                    )
                ),
            ),
            Ref("largest-number"),
        )
    ),
    "fraction": seq(Lit("."), FRACTION_DIGITS),
    "zero-fraction": seq(Lit("."), Rep(Lit("0"), 1, 16)),
    "exponent": seq(E_SIGN, Alt((seq(Lit("-"), Rep(DIGIT, 1, 3)), seq(optional(Lit("+")), Ref("small-exponent"))))),
    "small-exponent": _up_to_307(),
    "largest-number": seq(
        Lit("1"), optional(seq(Lit("."), _largest_fraction())), E_SIGN, optional(Lit("+")), Lit("308")
    ),
    "integer": seq(optional(Lit("-")), Ref("unsigned-integer")),
    "unsigned-integer": Alt((seq(Lit("0"), optional(ZERO_FRACTION)), Ref("positive-integer"))),
    "plain-integer": seq(optional(Lit("-")), Ref("plain-unsigned-integer")),
    "plain-unsigned-integer": Alt((Lit("0"), Ref("plain-positive-integer"))),
    "plain-positive-integer": seq(DIGIT_1_9, Rep(DIGIT, 0, MOST_DIGITS - 1)),
    "positive-integer": seq(
        DIGIT_1_9,
        Alt(
            (
                seq(Rep(DIGIT, 1, MOST_DIGITS - 1), optional(ZERO_FRACTION)),
                optional(seq(optional(ZERO_FRACTION), Ref("whole-exponent"))),
                ZERO_FRACTION,
                seq(Lit("."), Rep(DIGIT, 1, 16), Ref("large-exponent")),
            )
        ),
    ),
    # A mantissa of one digit stays whole under any exponent; one of up to 16 decimals under an exponent from 16 on,
    # where the writers of doubles begin to use one.
    "whole-exponent": seq(E_SIGN, optional(Lit("+")), Ref("small-exponent")),
    "large-exponent": seq(
        E_SIGN,
        optional(Lit("+")),
        Alt(
            (
                seq(Lit("1"), Alt((Chars(((0x36, 0x39),)), seq(DIGIT, DIGIT)))),
                seq(Lit("2"), DIGIT, optional(DIGIT)),
                seq(Lit("3"), Alt((seq(Lit("0"), Chars(((0x30, 0x37),))), DIGIT))),
                seq(Chars(((0x34, 0x39),)), DIGIT),
            )
        ),
    ),
    "boolean": Alt((Lit("true"), Lit("false"))),
    "null": Lit("null"),
}


def key_not(char: str) -> str:
    """The name of the rule for the rest of a key that does not go on with this character, or ends; printable ASCII has
    such rules."""
    return f"key-not-{ord(char):02x}"


def _key_not(point: int) -> Expr:
    apart = Chars(tuple(sorted(((0x00, 0x1F), (0x22, 0x22), (0x5C, 0x5C), (point, point)))), negated=True)
    return Alt((seq(apart, Ref("key-rest")), Ref("key-stop")))


PRIMITIVES.update((key_not(char), _key_not(ord(char))) for char in map(chr, range(0x20, 0x7F)) if char not in '"\\')
