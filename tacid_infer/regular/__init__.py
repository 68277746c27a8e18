"""Regular languages over Unicode text: character sets, ECMA-262 patterns, deterministic automata.

Knows nothing of JSON or of grammars.
"""

from .automaton import ANYTHING, NOTHING, Automaton, Product, TooLarge, from_words
from .charset import ANY, CharSet, complement, difference, intersection, union
from .glushkov import from_pattern
from .pattern import Cat, Edge, Node, Or, Pattern, Repeat, Set, UnsupportedPattern, parse_pattern

__all__ = [
    "ANY",
    "ANYTHING",
    "NOTHING",
    "Automaton",
    "Cat",
    "CharSet",
    "Edge",
    "Node",
    "Or",
    "Pattern",
    "Product",
    "Repeat",
    "Set",
    "TooLarge",
    "UnsupportedPattern",
    "complement",
    "difference",
    "from_pattern",
    "from_words",
    "intersection",
    "parse_pattern",
    "union",
]
