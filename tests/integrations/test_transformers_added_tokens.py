"""transformers: import gives a tokenizer.json the tokens that transformers takes from the files beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from integration_cases import library

from ggufbpe.convert.importers.import_files import import_file
from ggufbpe.gguf.constants import TokenizerKey, TokenType

transformers = library("transformers")

FLAGS = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
START = {"3": {"content": "<s>", "special": True}}

BESIDE: dict[str, tuple[dict[str, Any], dict[str, int]]] = {  # tokenizer_config.json and added_tokens.json
    "none": ({}, {}),
    "the same": ({"added_tokens_decoder": START}, {"<s>": 3}),
    "further": (
        {
            "added_tokens_decoder": {
                **START,
                "4": {"content": "<tool>"},
                "5": {"content": "<|im_end|>", "special": True},
            }
        },
        {},
    ),
    "looks special": ({"added_tokens_decoder": {"4": {"content": "<|tool|>", "special": False}}}, {}),
    "spaces": ({"added_tokens_decoder": {"4": {"content": "▁▁"}}}, {}),
    "ids apart": ({"added_tokens_decoder": {"900000": {"content": "<end>"}, "7": {"content": "<tool>"}}}, {}),
    "id of another": ({"added_tokens_decoder": {"3": {"content": "<tool>"}, "4": {"content": "<end>"}}}, {}),
    "in the vocabulary": ({"added_tokens_decoder": {"9": {"content": "b", "special": True}}}, {}),
    "the older file alone": ({}, {"<tool>": 4, "<end>": 5}),
    "the older file named": ({"pad_token": "<tool>"}, {"<tool>": 4}),
    "the older file with an id of another": ({}, {"<tool>": 3, "<end>": 2}),
    "named": (
        {"pad_token": "<tool>", "added_tokens_decoder": {"4": {"content": "<tool>", "special": False}}},
        {},
    ),
    "both": ({"added_tokens_decoder": {"4": {"content": "<tool>"}}}, {"<end>": 5}),
    "both with one text": ({"added_tokens_decoder": {"4": {"content": "<tool>"}}}, {"<tool>": 5}),
}


@pytest.mark.parametrize("name", BESIDE)
def test_tokens_of_the_files_beside(name: str, tmp_path: Path) -> None:
    config, added = BESIDE[name]
    decoder = {index: FLAGS | token for index, token in config.get("added_tokens_decoder", {}).items()}
    files = {
        "tokenizer.json": {
            **dict.fromkeys(("truncation", "padding", "normalizer", "post_processor")),
            "version": "1.0",
            "added_tokens": [{"id": 3, "content": "<s>", "special": True} | FLAGS],
            "pre_tokenizer": BYTE_LEVEL,
            "decoder": BYTE_LEVEL,
            "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]},
        },
        "tokenizer_config.json": config | ({"added_tokens_decoder": decoder} if decoder else {}),
    }
    for path, content in (files | ({"added_tokens.json": added} if added else {})).items():
        (tmp_path / path).write_text(json.dumps(content))
    theirs = transformers.PreTrainedTokenizerFast.from_pretrained(str(tmp_path))
    kinds = {token: entry.special for token, entry in theirs.added_tokens_decoder.items()}
    type_of = {None: TokenType.NORMAL, True: TokenType.CONTROL, False: TokenType.USER_DEFINED}
    expected = [
        (text, type_of[kinds.get(token)])
        for text, token in sorted(theirs.get_vocab().items(), key=lambda item: item[1])
    ]
    metadata = import_file(str(tmp_path)).metadata
    assert list(zip(metadata[TokenizerKey.LIST], metadata[TokenizerKey.TOKEN_TYPE])) == expected
