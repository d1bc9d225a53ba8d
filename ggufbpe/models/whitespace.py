"""Words between white space, each by byte pair encoding on its own: the model `whitespace`.

Source: src/llama-vocab.cpp, llm_tokenizer_whitespace_session.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING

from .._util.unicode_classes import CLASSES, STARTS, lower
from .bpe.bpe_model import BytePairModel
from .bpe.bpe_text import BytePairText
from .pretokenizers.registry import PreTokenizer

if TYPE_CHECKING:
    from .vocabulary import Vocabulary


class WhitespaceModel(BytePairModel):
    """`whitespace`."""

    name = "whitespace"
    own_pre = "whitespace"
    drops_white_space = True
    makes_lower_case = True

    def has_line_break(self, entry: PreTokenizer, token_to_id: Mapping[str, int]) -> bool:
        """Never: a newline is white space."""
        return False

    def text_model(self, vocabulary: Vocabulary, most_words: int | None = None) -> BytePairText:
        """The words between white space."""
        return WhitespaceText(vocabulary, most_words)


class WhitespaceText(BytePairText):
    """Splits the text between white space, each run separately."""

    def pieces(self, text: str) -> Iterator[tuple[str, int]]:
        """The runs without white space."""
        for run in _not_space().finditer(text):
            word = run[0]
            yield (
                "".join(chr(lower(ord(char))) for char in word) if self.vocabulary.lowercase else word,
                run.start(),
            )


@cache
def _not_space() -> re.Pattern[str]:
    spaces = (f"{chr(a)}-{chr(b - 1)}" for a, b, c in zip(STARTS, STARTS[1:], CLASSES) if c == "W")
    return re.compile(f"[^{''.join(spaces)}]+")
