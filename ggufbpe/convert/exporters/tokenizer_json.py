"""Exports a vocabulary to tokenizer.json, the file of Hugging Face's `tokenizers` and of everything that reads it.

    vocabulary -> hf_bpe.py, hf_scores.py, hf_unigram.py or hf_wordpiece.py -> tokenizer.json
               -> hf_config.py -> tokenizer_config.json

All tokens are in the model's vocabulary, so every id stays as it was; special ones are added tokens as well. How text
is split and words become ids is in each algorithm's own file. What the format cannot express is in `Export.limits`.

Only encoding is held to llama.cpp's results. Decoding is the library's own: it has no clean-up of spaces, and shows
an added token with letters beyond ASCII differently in a byte-level vocabulary.

Source of the format: tokenizers/src/tokenizer/serialization.rs of huggingface/tokenizers.
"""

from __future__ import annotations

from typing import Any

from ..._util.errors import printable
from ...models.vocabulary import CONTROL, LSTRIP, RSTRIP, UNKNOWN, Vocabulary
from .. import incompatibilities
from ..export_formats import Export, json_file, require_expressible
from ..portable_patterns import NotExpressibleError
from .hf_bpe import byte_pair_parts
from .hf_config import ChatTemplates, tokenizer_config, types_told
from .hf_scores import score_parts
from .hf_unigram import unigram_parts
from .hf_wordpiece import word_piece_parts

TOKENIZER_JSON, TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"
_PARTS = {  # by the algorithm
    "merges": byte_pair_parts,
    "scores": score_parts,
    "unigram": unigram_parts,
    "word pieces": word_piece_parts,
}


def to_tokenizer_json(
    vocabulary: Vocabulary, chat_template: ChatTemplates = None, *, code_points: bool = False
) -> Export:
    """tokenizer.json, and the tokenizer_config.json that the `transformers` package reads beside it.

    With `code_points`, patterns list code points in place of classes: ids are then the same for characters of any
    Unicode version, but tokenizers 1.0 does not read the file.
    Raises `NotExpressibleError` where the format has no place for what the vocabulary does.

    >>> export = to_tokenizer_json(tok.vocabulary)
    >>> tokenizers.Tokenizer.from_buffer(export.files["tokenizer.json"])     # doctest: +SKIP
    """
    require_expressible(vocabulary, TOKENIZER_JSON)
    vocabulary = incompatibilities.listed_out(vocabulary)
    if "" in vocabulary.token_to_id:
        raise NotExpressibleError(f"token {printable('')} is empty, which no library takes")
    parts = _PARTS[vocabulary.tokenizer_model.algorithm](vocabulary, code_points)
    document = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": _added_tokens(vocabulary),
        "normalizer": parts.normalizer,
        "pre_tokenizer": parts.pre_tokenizer,
        "post_processor": _post_processor(vocabulary, parts.second_type),
        "decoder": parts.decoder,
        "model": parts.model,
    }
    limits = [
        *parts.limits,
        *incompatibilities.overlapping_tokens(vocabulary),
        *incompatibilities.hidden_tokens(vocabulary),
        *incompatibilities.stripped_spaces(vocabulary),
    ]
    told = types_told(vocabulary, tells_bytes=parts.model.get("byte_fallback") is True)
    config = tokenizer_config(vocabulary, chat_template, told, parts.scores)
    files = {TOKENIZER_JSON: json_file(document), TOKENIZER_CONFIG: json_file(config)}
    return Export(files, tuple(limits))


def _added_tokens(vocabulary: Vocabulary) -> list[dict[str, Any]]:
    """The tokens that are found in texts before splitting; `special` are those that can be switched off."""
    entries = []
    for token in vocabulary.special_token_ids:
        attribute = vocabulary.attributes[token]
        entries.append(
            {
                "id": token,
                "content": vocabulary.tokens[token],
                "single_word": False,
                "lstrip": bool(attribute & LSTRIP),
                "rstrip": bool(attribute & RSTRIP),
                "normalized": False,
                "special": bool(attribute & (CONTROL | UNKNOWN)),
            }
        )
    return entries


def _post_processor(vocabulary: Vocabulary, second_type: int) -> dict[str, Any] | None:
    """The template that adds BOS and EOS, or CLS and SEP, around every text; None if the model adds none."""
    before, after = vocabulary.added
    if not before and not after:
        return None

    def special(ids: list[int], number: int) -> list[dict[str, Any]]:
        return [{"SpecialToken": {"id": vocabulary.tokens[token], "type_id": number}} for token in ids]

    def around(sequence: str, number: int, before: list[int]) -> list[dict[str, Any]]:
        return [
            *special(before, number),
            {"Sequence": {"id": sequence, "type_id": number}},
            *special(after, number),
        ]

    return {
        "type": "TemplateProcessing",
        "single": around("A", 0, before),
        "pair": [*around("A", 0, before), *around("B", 1, [] if second_type else before)],
        "special_tokens": {
            text: {"id": text, "ids": [token], "tokens": [text]}
            for token in (*before, *after)
            for text in [vocabulary.tokens[token]]
        },
    }
