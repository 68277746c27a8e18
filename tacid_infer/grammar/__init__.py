"""The compiler: JSON Schema, and a turn's tools, to GBNF. A library that needs no daemon.

``compile_turn`` and ``compile_schema`` give the text alone; ``explain_turn`` and ``explain_schema`` also tell what the
grammar does not enforce. Source: ADR-0056; JSON Schema drafts 4 to 2020-12.
"""

from .compiler import Widened
from .envelope import Compiled, check_tool, compile_schema, compile_turn, explain_schema, explain_turn

__all__ = [
    "Compiled",
    "Widened",
    "check_tool",
    "compile_schema",
    "compile_turn",
    "explain_schema",
    "explain_turn",
]
