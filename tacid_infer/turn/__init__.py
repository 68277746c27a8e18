"""One turn: denial, the protocol's two tools, narrowing, the catalogue, the grammar, and reading the reply."""

from .narrowing import AllowList, narrow_schema
from .protocol import PROTOCOL_TOOLS
from .reply import Call, Say, parse_strictly, read_reply
from .turn import Omitted, Turn, build_turn

__all__ = [
    "PROTOCOL_TOOLS",
    "AllowList",
    "Call",
    "Omitted",
    "Say",
    "Turn",
    "build_turn",
    "narrow_schema",
    "parse_strictly",
    "read_reply",
]
