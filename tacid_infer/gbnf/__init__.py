"""The grammar language: GBNF as data.

Expressions (``expr``), prefix factoring (``factor``, and ``trie`` for sets that grow), counting (``repeat``), pruning
and checking (``check``), and the one module that writes them as text (``write``). Nothing here knows of JSON or of JSON
Schema.
Source for the language itself: llama.cpp, ``grammars/README.md`` and ``src/llama-grammar.cpp``.
"""

from .check import GrammarError, check, prune, prune_and_check
from .expr import EMPTY, NEVER, Alt, Chars, Expr, Lit, Ref, Rep, Rules, Seq, alt, seq
from .factor import Branch, agreement, factor, one_of
from .repeat import LONGEST, repeat
from .trie import Trie, parted
from .write import LOCAL, nested, scoped, write, write_rules

__all__ = [
    "EMPTY",
    "LOCAL",
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
    "Trie",
    "agreement",
    "alt",
    "check",
    "factor",
    "nested",
    "one_of",
    "parted",
    "prune",
    "prune_and_check",
    "repeat",
    "scoped",
    "seq",
    "write",
    "write_rules",
]
