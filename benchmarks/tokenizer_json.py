r"""A vocabulary as a tokenizer.json, for HF tokenizers and gigatoken.

    models/ -> [this file] -> peers.py

As `ggufbpe export` writes it, with other patterns. The export has llama.cpp's words for every text, for which it spells
out classes of characters; that would slow the peers down, and gigatoken knows a pattern by its exact text. So these are
the models' own, as in their tokenizer.json files: `ORIGINALS`, and more here.

But: only for measuring. BOS and control tokens are missing, and only the measured pre-tokenizers are supported.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

from ggufbpe._util.spelling import SPACE
from ggufbpe.convert.exporters.tokenizer_json import TOKENIZER_JSON, to_tokenizer_json
from ggufbpe.convert.upstream_patterns import ORIGINALS
from ggufbpe.models.vocabulary import Vocabulary

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

# tiktoken takes one pattern. For a list, the later pattern excludes what the earlier ones take.
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
    if vocabulary.model in _DOCUMENTS:
        return json.dumps({**_EMPTY, **_DOCUMENTS[vocabulary.model](vocabulary)})
    entry = vocabulary.pre_tokenizer
    pre_tokenizer = _patterns_of(entry.family) if entry.byte_encode else _GEMMA
    document = json.loads(to_tokenizer_json(vocabulary).files[TOKENIZER_JSON])
    added = [token for token in document["added_tokens"] if not token["special"]]
    changed = {"added_tokens": added, "pre_tokenizer": pre_tokenizer, "post_processor": None}
    if entry.byte_encode:  # drop the word borders of an export whose patterns HF tokenizers 1.0 does not know
        changed["normalizer"] = None
    return json.dumps({**document, **changed})


_GEMMA = {  # as in Gemma's file
    "type": "Split",
    "pattern": {"String": " "},
    "behavior": "MergedWithPrevious",
    "invert": False,
}


def _patterns_of(family: str) -> dict[str, Any]:
    if family not in PATTERNS:
        raise NotImplementedError(f"no patterns for a tokenizer.json of the family {family}")
    splits = [
        {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
        for pattern in PATTERNS[family]
    ]
    bytes_ = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    return {"type": "Sequence", "pretokenizers": [*splits, bytes_]}


# ---- other models, as their own files write them --------------------------------------------------------

_EMPTY: dict[str, Any] = {
    "version": "1.0",
    "truncation": None,
    "padding": None,
    "added_tokens": [],
    "normalizer": None,
    "pre_tokenizer": None,
    "post_processor": None,
    "decoder": None,
}


def _spm(vocabulary: Vocabulary) -> dict[str, Any]:
    """As transformers converts Llama 2's: merges are all pairs of tokens that make a token, by its score."""
    ids = dict(vocabulary.token_to_id)
    merges = [
        (-vocabulary.scores[token], token, ids[text[:at]], ids[text[at:]], [text[:at], text[at:]])
        for text, token in ids.items()
        for at in range(1, len(text))
        if text[:at] in ids and text[at:] in ids
    ]
    steps = [
        {"type": "Prepend", "prepend": SPACE},
        {"type": "Replace", "pattern": {"String": " "}, "content": SPACE},
    ]
    model = {
        "type": "BPE",
        "dropout": None,
        "unk_token": "<unk>",
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": True,
        "byte_fallback": True,
        "vocab": ids,
        "merges": [merge[-1] for merge in sorted(merges)],
    }
    return {"normalizer": {"type": "Sequence", "normalizers": steps}, "model": model}


def _word_piece(vocabulary: Vocabulary) -> dict[str, Any]:
    """As BERT's: a piece that begins a word is plain, and all others have "##" before them."""
    flags = {"lowercase": vocabulary.lowercase, "strip_accents": vocabulary.strip_accents}
    model = {
        "type": "WordPiece",
        "unk_token": vocabulary.tokens[vocabulary.special_ids["unk"] or 0],
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100,
        "vocab": {text: token for token, text in enumerate(word_pieces(vocabulary))},
    }
    return {
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, **flags},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": model,
    }


def word_pieces(vocabulary: Vocabulary) -> list[str]:
    """The tokens as in a `vocab.txt`."""
    special = set(vocabulary.special_token_ids)
    return [
        text if token in special else text[1:] if text.startswith(SPACE) else f"##{text}"
        for token, text in enumerate(vocabulary.tokens)
    ]


def _unigram(vocabulary: Vocabulary) -> dict[str, Any]:
    """As XLM-RoBERTa's."""
    steps = [
        {"type": "WhitespaceSplit"},
        {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "always", "split": True},
    ]
    charsmap = base64.b64encode(vocabulary.charsmap).decode()
    pieces = [[text, score] for text, score in zip(vocabulary.tokens, vocabulary.scores)]
    return {
        "normalizer": {"type": "Precompiled", "precompiled_charsmap": charsmap},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps},
        "model": {
            "type": "Unigram",
            "unk_id": vocabulary.special_ids["unk"],
            "vocab": pieces,
            "byte_fallback": False,
        },
    }


_DOCUMENTS: dict[str, Callable[[Vocabulary], dict[str, Any]]] = {
    "llama": _spm,
    "bert": _word_piece,
    "t5": _unigram,
}
