"""Writes a tiny llama model with random weights: a real model for a real engine, without a download.

It knows nothing, but under a grammar its output is a random walk through that grammar, thousands of tokens a second.
The VM test makes its model with this at build time. Needs the ``gguf`` package (extra ``tiny-model``).

Format: the GGUF specification of ggml (docs/gguf.md). The vocabulary is one token a byte, a few pieces of JSON, and
ChatML's two control tokens, of which ``<|im_end|>`` ends a turn.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

_WIDTH, _HEADS, _HIDDEN, _CONTEXT = 32, 2, 64, 32768
_PIECES = (
    '{"',
    '": ',
    '", "',
    '"}',
    "true",
    "false",
    "null",
    "tool",
    "arguments",
    "say",
    " the",
    "ing",
    "service",
    "é",
)
_CONTROL = ("<|im_start|>", "<|im_end|>")
_NORMAL, _UNKNOWN, _CONTROL_TYPE, _BYTE = 1, 2, 3, 6


def write_tiny_model(path: Path, *, seed: int = 0, chat_template: str | None = None) -> None:
    """Write the model; the same seed gives the same file.

    Args:
        path: where to; an existing file is replaced.
        seed: of the random weights.
        chat_template: Jinja that the model carries; None for none.
    """
    import gguf
    import numpy as np

    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *_PIECES, *_CONTROL]
    types = [_UNKNOWN, _CONTROL_TYPE, _CONTROL_TYPE, *[_BYTE] * 256, *[_NORMAL] * len(_PIECES), *[_CONTROL_TYPE] * 2]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tacid-infer tiny random model")
    writer.add_context_length(_CONTEXT)
    writer.add_embedding_length(_WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(_HIDDEN)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_HEADS)
    writer.add_rope_dimension_count(_WIDTH // _HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * 259 + [-float(rank) for rank in range(len(tokens) - 259)])
    writer.add_token_types(types)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(len(tokens) - 1)
    writer.add_unk_token_id(0)
    writer.add_add_bos_token(False)
    writer.add_add_space_prefix(False)

    if chat_template is not None:
        writer.add_chat_template(chat_template)

    random = np.random.default_rng(seed)

    def weight(name: str, *shape: int) -> None:
        writer.add_tensor(name, random.normal(0.0, 0.6, shape).astype(np.float32))

    weight("token_embd.weight", len(tokens), _WIDTH)
    for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
        weight(f"blk.0.{part}.weight", _WIDTH, _WIDTH)
    weight("blk.0.ffn_gate.weight", _HIDDEN, _WIDTH)
    weight("blk.0.ffn_up.weight", _HIDDEN, _WIDTH)
    weight("blk.0.ffn_down.weight", _WIDTH, _HIDDEN)
    weight("output.weight", len(tokens), _WIDTH)
    for norm in ("blk.0.attn_norm", "blk.0.ffn_norm", "output_norm"):
        writer.add_tensor(f"{norm}.weight", np.ones(_WIDTH, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> int:
    """``python -m tacid_infer.engine.tiny_model OUT.gguf``."""
    parser = argparse.ArgumentParser(prog="tiny_model", description="Write a tiny random-weight model.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    write_tiny_model(arguments.out, seed=arguments.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
