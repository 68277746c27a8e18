"""Keeps untrusted text from becoming control tokens.

llama-server reads special tokens out of every part of a prompt, so a name, a description or a message that spells one
(``<|im_start|>``) would open a turn of its own; and a literal of a grammar that spells one is met by the control token
itself, which the reply then does not show. In JSON the first character is written as an escape, which changes nothing
for a reader of the JSON; in plain text a zero-width space is put behind it.
"""

from __future__ import annotations

import re

_CONTROL = re.compile(
    r"<(?=[|\uFF5C]|/?s>|/?(?:bos|eos|pad|unk|mask|eot|sep|cls)>|(?:start|end)_of_(?:turn|image)|/?think>|/?tool_)"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|IMG)\])",
    re.IGNORECASE,
)


def in_json(text: str) -> str:
    """JSON text, with the beginning of every control token written as an escape. It means the same."""
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def in_prose(text: str) -> str:
    """Plain text, with a zero-width space inside every control token."""
    return _CONTROL.sub(lambda match: match[0] + "\u200b", text)
