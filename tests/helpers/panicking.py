"""Files on which the package tokenizers, which is written in Rust, panics."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any, NoReturn

import tokenizers

from ggufbpe.models.bpe.merge import BYTE_CHARS

# Oniguruma gives up on a text after so many steps, which the package does not expect.
ENDLESS_PATTERN = {
    "type": "Split",
    "pattern": {"Regex": r"(?:a|a|aa)*(?:.|..|\s)*\z\A"},
    "behavior": "Isolated",
    "invert": False,
}
_BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
_ARRAY, _NOT_UTF8 = bytes(8), b"\xff\0"

UNREADABLE_BY_THE_LIBRARY: dict[str, Any] = {
    "version": "1.0",
    **dict.fromkeys(("truncation", "padding", "post_processor", "decoder")),
    "added_tokens": [],
    "normalizer": {
        "type": "Precompiled",
        "precompiled_charsmap": b64encode(len(_ARRAY).to_bytes(4, "little") + _ARRAY + _NOT_UTF8).decode(),
    },
    "pre_tokenizer": _BYTES,
    "model": {"type": "BPE", "vocab": {char: index for index, char in enumerate(BYTE_CHARS)}, "merges": []},
}


def panic() -> NoReturn:
    """Let the package panic."""
    tokenizers.Tokenizer.from_str(json.dumps(UNREADABLE_BY_THE_LIBRARY))
    raise AssertionError("the package does not panic")
