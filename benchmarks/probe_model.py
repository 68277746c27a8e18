"""A model with a real vocabulary and random weights.

It costs next to nothing to run and hardly ever draws a token that the grammar admits, so that the engine holds its whole
vocabulary against the grammar at nearly every token: what is timed is the grammar, at its worst.
"""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

_WIDTH, _HIDDEN, _HEADS = 32, 64, 2


def write_probe_model(source: Path, path: Path) -> None:
    """Write the model.

    Args:
        source: a GGUF whose tokenizer is taken.
        path: where to.
    """
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(path, "llama")
    for field in reader.fields.values():
        if not field.name.startswith("tokenizer.") or field.name == "tokenizer.chat_template":
            continue
        kind = field.types[0]
        value = field.contents()
        if kind == gguf.GGUFValueType.ARRAY:
            writer.add_array(field.name, value)
        else:
            writer.add_key_value(field.name, value, kind)
    tokens = len(reader.fields["tokenizer.ggml.tokens"].data)
    writer.add_context_length(32768)
    writer.add_embedding_length(_WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(_HIDDEN)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_HEADS)
    writer.add_rope_dimension_count(_WIDTH // _HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(tokens)
    random = np.random.default_rng(0)
    shapes = {
        "token_embd": (tokens, _WIDTH), "output": (tokens, _WIDTH),
        **{f"blk.0.attn_{part}": (_WIDTH, _WIDTH) for part in ("q", "k", "v", "output")},
        "blk.0.ffn_gate": (_HIDDEN, _WIDTH), "blk.0.ffn_up": (_HIDDEN, _WIDTH), "blk.0.ffn_down": (_WIDTH, _HIDDEN),
    }  # fmt: skip
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", random.normal(0.0, 0.6, shape).astype(np.float32))
    for norm in ("blk.0.attn_norm", "blk.0.ffn_norm", "output_norm"):
        writer.add_tensor(f"{norm}.weight", np.ones(_WIDTH, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
