"""Writes a whole model with random weights: small enough for a test, sound enough for llama.cpp to run.

    python tests/makers/make_tiny_model.py --out tiny.gguf [--vocabulary model.gguf]

What needs weights cannot be tested with a vocabulary alone: `llama-server` loads no file without them, and a
corrected copy of a model must keep every tensor byte for byte and aligned. This model has one layer of the
llama architecture and the tokenizer of the given file, GPT-2's by default. The same vocabulary always gives
the same file.

But: what it generates is noise.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGUFValueType, GGUFWriter

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from reference import ROOT

from ggufbpe.gguf.reader import GGUFFile

GPT2 = ROOT / "ggufbpe" / "models" / "gpt2.gguf"
WIDTH, HIDDEN, HEADS, CONTEXT = 32, 64, 2, 512


def make_tiny_model(
    out: str | os.PathLike[str],
    vocabulary: str | os.PathLike[str] = GPT2,
    changes: dict[str, str | int | bool | None] | None = None,
) -> Path:
    """Write the model with the tokenizer of `vocabulary` to `out`.

    `changes` has keys to replace or add, such as `tokenizer.ggml.pre`; a value None leaves the key out.
    """
    out = Path(out)
    writer = GGUFWriter(out, "llama")
    writer.add_block_count(1)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    tokens = copy_tokenizer(writer, vocabulary, changes or {})
    for name, tensor in _tensors(tokens):
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return out


def copy_tokenizer(writer: GGUFWriter, vocabulary: str | os.PathLike[str], changes: dict[str, Any]) -> int:
    """Copy the keys of the tokenizer, with changes; returns the number of tokens."""
    with GGUFFile(vocabulary) as file:
        for key in file:
            if not key.startswith("tokenizer.") or key in changes:
                continue
            value: Any = file[key]
            element = file.element_type(key)
            if element is None:
                writer.add_key_value(key, value, GGUFValueType(int(file.value_type(key))))
            else:
                writer.add_key_value(key, list(value), GGUFValueType.ARRAY, GGUFValueType(int(element)))
        tokens = file.array_length("tokenizer.ggml.tokens")
    kinds = {bool: GGUFValueType.BOOL, int: GGUFValueType.UINT32, str: GGUFValueType.STRING}
    for key, value in changes.items():
        if value is not None:
            writer.add_key_value(key, value, kinds[type(value)])
    return tokens


def _tensors(tokens: int) -> list[tuple[str, np.ndarray[Any, np.dtype[Any]]]]:
    """The tensors by their names; the output shares the embedding's weights, as in many small models."""
    dice = np.random.default_rng(0)

    def random(*shape: int) -> np.ndarray[Any, np.dtype[Any]]:
        return (dice.standard_normal(shape, dtype=np.float32) * 0.1).astype(np.float16)

    ones = np.ones(WIDTH, dtype=np.float32)
    layer = {
        "attn_norm": ones,
        **{f"attn_{name}": random(WIDTH, WIDTH) for name in ("q", "k", "v", "output")},
        "ffn_norm": ones,
        "ffn_gate": random(HIDDEN, WIDTH),
        "ffn_up": random(HIDDEN, WIDTH),
        "ffn_down": random(WIDTH, HIDDEN),
    }
    return [
        ("token_embd.weight", random(tokens, WIDTH)),
        *((f"blk.0.{name}.weight", tensor) for name, tensor in layer.items()),
        ("output_norm.weight", ones),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--vocabulary", type=Path, default=GPT2, help="the file whose tokenizer it gets")
    arguments = parser.parse_args()
    print(make_tiny_model(arguments.out, arguments.vocabulary))


if __name__ == "__main__":
    main()
