"""A small model file with tensors, and its metadata as gguf-py reads it, for tests of `fix`."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGMLQuantizationType, GGUFEndian, GGUFWriter

from ggufbpe.gguf.constants import TokenizerKey
from ggufbpe.gguf.reader import GGUFFile

PRE, EOS, ADD_BOS, TYPES = (
    "tokenizer.ggml.pre",
    TokenizerKey.EOS_ID,
    TokenizerKey.ADD_BOS,
    TokenizerKey.TOKEN_TYPE,
)


def tensors() -> dict[str, tuple[np.ndarray[Any, Any], GGMLQuantizationType | None]]:
    """Tensors of several types and of sizes that leave padding of all lengths between them."""
    numbers = np.random.default_rng(1)
    return {
        "a.weight": (numbers.standard_normal((3, 5)).astype(np.float32), None),
        "b.weight": (numbers.standard_normal(7).astype(np.float16), None),
        "c.weight": (numbers.integers(0, 256, (2, 34), dtype=np.uint8), GGMLQuantizationType.Q8_0),
        "d.weight": (numbers.integers(-99, 99, 1, dtype=np.int8), None),
        "e.weight": (numbers.standard_normal((1, 2, 3, 2)).astype(np.float32), None),
    }


def write_model(
    path: Path,
    *,
    alignment: int | None = None,
    byteorder: str = "little",
    version: int = 3,
    pre: str = "gpt-2",
) -> Path:
    """A small model with a tokenizer and `tensors`."""
    endian = GGUFEndian.LITTLE if byteorder == "little" else GGUFEndian.BIG
    writer = GGUFWriter(path, "gpt2", endianess=endian)
    tokens = ["<|endoftext|>", *"abcdefgh", "Ċ", "Ġ", "ab", "Ġa"]
    writer.add_name("sm\u00f6l")
    if alignment is not None:
        writer.add_custom_alignment(alignment)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types([3] + [1] * (len(tokens) - 1))
    writer.add_token_merges(["a b", "Ġ a"])
    writer.add_eos_token_id(0)
    writer.add_bos_token_id(0)
    for name, (data, kind) in tensors().items():
        writer.add_tensor(name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    data = bytearray(path.read_bytes())
    data[4:8] = struct.pack("<I" if byteorder == "little" else ">I", version)
    path.write_bytes(data)
    return path


def metadata(path: Path) -> dict[str, Any]:
    with GGUFFile(path) as file:
        return {key: file[key] for key in file}
