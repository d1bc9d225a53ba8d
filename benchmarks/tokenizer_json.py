r"""A vocabulary as a tokenizer.json: what HF tokenizers and gigatoken read.

    vocab.py -> [this file] -> peers.py

`ORIGINALS` of scripts/hf_splitting.py has the patterns as the models' own tokenizer.json files write them; more are
here. gigatoken knows a pattern by its very text, so that each must stand as it does there.

But: only for measuring. Neither BOS nor control tokens are in it, and of pre-tokenizers only those that are measured.
"""

from __future__ import annotations

import json
from typing import Any

from hf_splitting import ORIGINALS

from ggufbpe.vocab import USER_DEFINED, Vocabulary

KANA_HAN = "一-龥぀-ゟ゠-ヿ"
_PUNCTUATED = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"""

PATTERNS: dict[str, tuple[str, ...]] = {
    **ORIGINALS,
    "gpt-2": (r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",),
    "deepseek-v3": (
        r"\p{N}{1,3}",
        f"[{KANA_HAN}]+",
        # line breaks as they are, not as escapes
        (
            _PUNCTUATED + r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"
            r"|\s*[\r\n]+|\s+(?!\S)|\s+"
        ).replace(r"\r\n", "\r\n"),
    ),
}

# tiktoken takes one pattern. Of a list, that is the same with what the earlier ones took shut out of the later one.
SINGLE_PATTERNS: dict[str, str] = {
    "deepseek-v3": (
        rf"\p{{N}}{{1,3}}|[{KANA_HAN}]+|" + _PUNCTUATED + rf"|[^\r\n\p{{L}}\p{{P}}\p{{S}}\p{{N}}{KANA_HAN}]?"
        rf"[[\p{{L}}\p{{M}}]&&[^{KANA_HAN}]]+| ?[[\p{{P}}\p{{S}}]&&[^{KANA_HAN}]]+[\r\n]*|\s*[\r\n]+"
        rf"|\s+(?![^\s\p{{N}}{KANA_HAN}])|\s+"
    ),
    **{family: patterns[0] for family, patterns in PATTERNS.items() if len(patterns) == 1},
}


def tokenizer_json(vocabulary: Vocabulary) -> str:
    """The whole file. Raises `NotImplementedError` for a pre-tokenizer that has no patterns here."""
    raw = not vocabulary.pre_tokenizer.byte_encode
    steps = _raw_steps() if raw else _byte_level_steps(vocabulary.pre_tokenizer.family)
    model = {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": raw,
        "ignore_merges": vocabulary.pre_tokenizer.ignore_merges,
        "vocab": {token: index for index, token in enumerate(vocabulary.tokens)},
        "merges": [_pair(merge) for merge in vocabulary.merges],
    }
    added = [
        _added_token(index, token)
        for index, (token, attribute) in enumerate(zip(vocabulary.tokens, vocabulary.attributes))
        if attribute & USER_DEFINED
    ]
    head = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added}
    return json.dumps({**head, **steps, "post_processor": None, "model": model})


def _pair(merge: str) -> list[str]:
    space = merge.index(" ", 1)
    return [merge[:space], merge[space + 1 :]]


def _added_token(index: int, content: str) -> dict[str, Any]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    return {"id": index, "content": content, **flags}


def _byte_level_steps(family: str) -> dict[str, Any]:
    if family not in PATTERNS:
        raise NotImplementedError(f"no patterns for a tokenizer.json of the family {family}")
    splits = [
        {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
        for pattern in PATTERNS[family]
    ]
    bytes_ = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    sequence = {"type": "Sequence", "pretokenizers": [*splits, bytes_]}
    return {"normalizer": None, "pre_tokenizer": sequence, "decoder": bytes_}


def _raw_steps() -> dict[str, Any]:
    """As in Gemma's file: spaces are escaped, and what has no token falls back to bytes."""
    return {
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        "pre_tokenizer": {
            "type": "Split",
            "pattern": {"String": " "},
            "behavior": "MergedWithPrevious",
            "invert": False,
        },
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
            ],
        },
    }
