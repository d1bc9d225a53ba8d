"""Word pieces as BERT's own files write them: what begins a word stands plain, what goes on with one after ##.

    vocabulary (WPM) -> [this file] -> hf_wordpiece.py, vocab_txt.py; their files -> [this file] -> import_wordpiece.py

llama.cpp has them the other way around: U+2581 before what begins a word, and nothing before what goes on with one.

Source: convert_hf_to_gguf.py, BertModel.set_vocab.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..spelling import SPACE
from ..vocab import Vocabulary
from .limits import Limit, counted_tokens

GOES_ON = "##"


def as_written(text: str) -> str:
    """A token of plain text in BERT's way.

    >>> as_written("\u2581play"), as_written("ing")
    ('play', '##ing')
    """
    return text[1:] if text.startswith(SPACE) and text != SPACE else GOES_ON + text


def as_token(text: str) -> str:
    """A line of vocab.txt in llama.cpp's way; the other direction.

    >>> as_token("play"), as_token("##ing")
    ('\u2581play', 'ing')
    """
    return text[len(GOES_ON) :] if text.startswith(GOES_ON) else SPACE + text


class WordPieces(NamedTuple):
    """The tokens as they are written, by id, and those that another token is written like."""

    texts: list[str]
    alike: list[str]
    limits: list[Limit]


def word_pieces(vocabulary: Vocabulary) -> WordPieces:
    """The tokens of a WPM vocabulary; of those that are written alike, special ones count, else the first."""
    special = set(vocabulary.special_token_ids)
    texts = [text if token in special else as_written(text) for token, text in enumerate(vocabulary.tokens)]
    taken: dict[str, int] = {texts[token]: token for token in sorted(special, reverse=True)}
    for token, text in enumerate(texts):
        taken.setdefault(text, token)
    alike = [text for token, text in enumerate(texts) if taken[text] != token]
    return WordPieces(texts, alike, list(_limits(vocabulary, alike)))


def _limits(vocabulary: Vocabulary, alike: list[str]) -> Iterator[Limit]:
    if alike:
        yield Limit(
            "tokens_written_alike",
            f"{counted_tokens(alike, 'is', 'are')} left out, for another is written like that",
            len(alike),
        )
    if SPACE in vocabulary.token_to_id:
        yield Limit(
            "beginning_alone",
            f"the token {SPACE!r} begins any word in llama.cpp, with the rest to go on, and no word elsewhere",
            1,
        )
    special = [vocabulary.tokens[token] for token in vocabulary.special_token_ids]
    inside = [text for text in special if text.isalnum() or text.startswith(SPACE)]
    if inside:
        yield Limit(
            "special_tokens_in_words",
            f"{counted_tokens(inside, 'is', 'are')} found in words by llama.cpp, as a piece, and not elsewhere",
            len(inside),
        )
    if vocabulary.special_ids["unk"] is None:
        yield Limit("unknown_missing", "there is no unknown token for words that no pieces make up", 1)
