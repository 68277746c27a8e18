"""Proves that an engine enforces grammars, before it is used.

Builds of spring 2026 answered 200 to a grammar they could not parse, and generated unconstrained text (llama.cpp issue
24144). So an engine must yield the one word that a grammar admits, and must refuse a broken grammar; or it is not used.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

from ..errors import EngineDied, EngineError, EngineRefused, EngineStarting, EngineTimeout, NotEnforced
from .client import EngineClient, EngineRequest

_BROKEN = "root ::= ( broken"


async def prove_enforcement(client: EngineClient, *, timeout: float, before_refusal: Callable[[], None]) -> None:
    """Prove it, or raise.

    Args:
        client: speaks to the engine.
        timeout: seconds for each of its two requests.
        before_refusal: called before the broken grammar is sent.

    Raises:
        NotEnforced: the engine said something else than the one word admitted, or took a broken grammar.
        EngineError: it did not answer at all.
    """
    # A word that no model would say by itself, and another at every proof.
    word = f"canary-{secrets.token_hex(4)}"
    messages = [{"role": "user", "content": "Say hello."}]
    sampling = {"max_tokens": 64, "temperature": 0}
    reply = await client.complete(EngineRequest(messages, f'root ::= "{word}"', sampling=sampling), timeout=timeout)
    if reply.content != word:
        raise NotEnforced(
            f"the engine does not enforce grammars: held to {word!r}, it said {reply.content[:80]!r}",
            text=reply.content,
        )
    before_refusal()
    try:
        reply = await client.complete(EngineRequest(messages, _BROKEN, sampling=sampling), timeout=timeout)
    except (EngineStarting, EngineDied, EngineTimeout):
        raise
    except EngineRefused:
        return
    except EngineError:
        raise
    raise NotEnforced(
        "the engine takes a broken grammar without a word, so no grammar of a turn could be trusted", text=reply.content
    )
