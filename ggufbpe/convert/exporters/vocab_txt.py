"""Exports a WPM vocabulary to vocab.txt, the file of BERT's word pieces, one a line; line numbers are ids.

Lower case, accents and special tokens, for which vocab.txt has no place, are in tokenizer_config.json. A program that
reads the file normalizes characters in its own way; tokenizer.json has llama.cpp's.
"""

from __future__ import annotations

from ..._util.errors import printable
from ...models.vocabulary import CONTROL, LSTRIP, RSTRIP, UNKNOWN, Vocabulary
from .. import incompatibilities
from ..export_formats import Export, json_file, require_expressible
from ..incompatibilities import Incompatibility
from ..portable_patterns import NotExpressibleError
from ..word_pieces import word_pieces
from .hf_config import ChatTemplates, tokenizer_config, types_told

VOCAB_TXT, TOKENIZER_CONFIG = "vocab.txt", "tokenizer_config.json"
LINE_ENDS = "\n\r"


def to_vocab_txt(vocabulary: Vocabulary, chat_template: ChatTemplates = None) -> Export:
    """vocab.txt, and the tokenizer_config.json that `transformers` reads beside it.

    Raises `NotExpressibleError` for tokens that no line can hold.
    """
    require_expressible(vocabulary, VOCAB_TXT)
    vocabulary = incompatibilities.listed_out(vocabulary)
    pieces = word_pieces(vocabulary)
    odd = next((text for text in pieces.texts if not text.strip() or set(text) & set(LINE_ENDS)), None)
    if odd is not None:
        raise NotExpressibleError(f"the token {printable(odd)} is not a line of text, which vocab.txt needs")
    config = {
        **tokenizer_config(vocabulary, chat_template, types_told(vocabulary, tells_bytes=False)),
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": vocabulary.lowercase,
        "strip_accents": vocabulary.strip_accents,
        "tokenize_chinese_chars": True,
        "added_tokens_decoder": {
            str(token): {
                "content": vocabulary.tokens[token],
                "lstrip": bool(vocabulary.attributes[token] & LSTRIP),
                "normalized": False,
                "rstrip": bool(vocabulary.attributes[token] & RSTRIP),
                "single_word": False,
                "special": bool(vocabulary.attributes[token] & (CONTROL | UNKNOWN)),
            }
            for token in vocabulary.special_token_ids
        },
    }
    normalization = Incompatibility(
        "normalization",
        "characters are normalized in the reader's own way: BERT keeps all letters of a Hangul "
        "syllable and spacing marks, which llama.cpp drops with accents (the format tokenizer.json does as llama.cpp)",
    )
    told = (
        *pieces.limits,
        normalization,
        *incompatibilities.overlapping_tokens(vocabulary),
        *incompatibilities.hidden_tokens(vocabulary),
        *incompatibilities.stripped_spaces(vocabulary),
    )
    files = {
        VOCAB_TXT: "".join(f"{text}\n" for text in pieces.texts).encode(),
        TOKENIZER_CONFIG: json_file(config),
    }
    return Export(files, told)
