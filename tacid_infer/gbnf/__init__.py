"""The grammar language: GBNF as data.

Expressions (``expr``), prefix factoring (``factor``), counting (``repeat``), pruning and checking (``check``), and the
one module that writes them as text (``write``). Nothing here knows of JSON or JSON Schema.
Source for the language itself: llama.cpp, ``grammars/README.md`` and ``src/llama-grammar.cpp``.
"""

from .check import GrammarError, check, prune
from .expr import EMPTY, NEVER, Alt, Chars, Expr, Lit, Ref, Rep, Rules, Seq, alt, seq
from .factor import Branch, factor
from .repeat import LONGEST, repeat
from .write import write_rules

__all__ = [
    "EMPTY",
    "LONGEST",
    "NEVER",
    "Alt",
    "Branch",
    "Chars",
    "Expr",
    "GrammarError",
    "Lit",
    "Ref",
    "Rep",
    "Rules",
    "Seq",
    "alt",
    "check",
    "factor",
    "prune",
    "repeat",
    "seq",
    "write_rules",
]
