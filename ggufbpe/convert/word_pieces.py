"""Word pieces as in BERT's own files: a piece that begins a word is plain, one that continues a word begins with ##.

llama.cpp does the reverse: U+2581 before a piece that begins a word, nothing before one that continues it.

Source: convert_hf_to_gguf.py, BertModel.set_vocab.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .._util.spelling import SPACE
from ..models.vocabulary import Vocabulary
from .incompatibilities import Incompatibility, about_tokens

GOES_ON = "##"


def as_written(text: str) -> str:
    """A token of plain text as BERT writes it.

    >>> as_written("\u2581play"), as_written("ing")
    ('play', '##ing')
    """
    return text[1:] if text.startswith(SPACE) and text != SPACE else GOES_ON + text


def as_token(text: str) -> str:
    """A line of vocab.txt as llama.cpp writes it; the inverse.

    >>> as_token("play"), as_token("##ing")
    ('\u2581play', 'ing')
    """
    return text[len(GOES_ON) :] if text.startswith(GOES_ON) else SPACE + text


class WordPieces(NamedTuple):
    """The tokens as they are written, by id, and those that are written like another token."""

    texts: list[str]
    alike: list[str]
    limits: list[Incompatibility]


def word_pieces(vocabulary: Vocabulary) -> WordPieces:
    """The tokens of a WPM vocabulary; of those that are written alike, a special one counts, else the first."""
    special = set(vocabulary.special_token_ids)
    texts = [text if token in special else as_written(text) for token, text in enumerate(vocabulary.tokens)]
    taken: dict[str, int] = {texts[token]: token for token in sorted(special, reverse=True)}
    for token, text in enumerate(texts):
        taken.setdefault(text, token)
    alike = [text for token, text in enumerate(texts) if taken[text] != token]
    return WordPieces(texts, alike, list(_limits(vocabulary, alike)))


def _limits(vocabulary: Vocabulary, alike: list[str]) -> Iterator[Incompatibility]:
    yield from about_tokens("tokens_written_alike", alike, "left out, since another is written the same")
    if SPACE in vocabulary.token_to_id:
        yield Incompatibility(
            "beginning_alone",
            f"the token {SPACE!r} begins any word in llama.cpp, which the rest continues, and no word elsewhere",
        )
    special = [vocabulary.tokens[token] for token in vocabulary.special_token_ids]
    inside = [text for text in special if text.isalnum() or text.startswith(SPACE)]
    yield from about_tokens("special_tokens_in_words", inside, "found as pieces of words by llama.cpp only")
    if vocabulary.special_ids["unk"] is None:
        yield Incompatibility(
            "unknown_missing", "there is no unknown token for words that cannot be split into pieces"
        )
