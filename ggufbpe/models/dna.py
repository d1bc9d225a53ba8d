"""Byte pair encoding, and k-mers of six bytes between `<dna>` and `</dna>`: the model `hybriddna`.

Source: src/llama-vocab.cpp, llm_tokenizer_hybriddna_session.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from .._util.spelling import SPACE
from ..gguf.metadata import Metadata
from .bpe.bpe_model import BytePairModel
from .bpe.bpe_text import BytePairText, PlainPart
from .token_table import named_tokens
from .tokenizer_model import Tokens, Warn

if TYPE_CHECKING:
    from .vocabulary import Vocabulary

_LENGTH = 6  # bytes of a k-mer
K_MER_MARKER = "\ue000"  # ends the text of a k-mer, to tell it from a word of the same letters
_BEGIN, _CLOSE, _UNKNOWN = "<dna>", "</dna>", "<oov>"


class DnaModel(BytePairModel):
    """`hybriddna`."""

    name = "hybriddna"
    has_sequences = True
    hidden_suffix = K_MER_MARKER

    def own_tokens(self, file: Metadata, warn: Warn) -> Tokens:
        """The k-mers come after `<oov>`; their marker is for lookup, not for text."""
        tokens, token_to_id = named_tokens(file, warn)
        for index in range(token_to_id.get(_UNKNOWN, len(tokens)) + 1, len(tokens)):
            if tokens[index].endswith(K_MER_MARKER) and tokens[index] != K_MER_MARKER:
                tokens[index] = tokens[index][: -len(K_MER_MARKER)]
        return tokens, token_to_id

    def text_model(self, vocabulary: Vocabulary, most_words: int | None = None) -> BytePairText:
        """Sequences as k-mers, everything else as words."""
        return DnaText(vocabulary, most_words)


class DnaText(BytePairText):
    """Takes the sequences out of plain text before the rest is split."""

    def parts(self, fragment: bytes) -> Iterator[PlainPart]:
        """Plain text, tags, and the k-mers between them."""
        known = self.vocabulary.token_to_id.get
        begin, close, unknown = known(_BEGIN), known(_CLOSE), known(_UNKNOWN)
        if begin is None or close is None or unknown is None:
            yield from super().parts(fragment)
            return
        position = 0
        while position < len(fragment):
            start = fragment.find(_BEGIN.encode(), position)
            if start != position:
                stop = len(fragment) if start < 0 else start
                yield PlainPart(None, self.plain(fragment[position:stop]), position, stop)
            if start < 0:
                return
            first = start + len(_BEGIN)
            yield PlainPart(begin, "", start, first)
            end = fragment.find(_CLOSE.encode(), first)
            last = len(fragment) if end < 0 else end
            for k_mer, at, after in self._k_mers(fragment[first:last], first):
                written = k_mer.upper().ljust(_LENGTH, b"A").decode("utf-8", "surrogateescape")
                token = known(written + K_MER_MARKER)
                yield PlainPart(unknown if token is None else token, "", at, after)
            if end < 0:
                return
            position = end + len(_CLOSE)
            yield PlainPart(close, "", end, position)

    def _k_mers(self, sequence: bytes, position: int) -> Iterator[tuple[bytes, int, int]]:
        """Each k-mer of a sequence that begins at `position`, and where it begins and ends.

        A k-mer is six bytes of the text after spaces are escaped.
        """
        places: Sequence[int] = range(position, position + len(sequence))
        if self.vocabulary.pre_tokenizer.escape_whitespaces and b" " in sequence:
            lengths = (3 if byte == 0x20 else 1 for byte in sequence)
            places = [place for place, length in zip(places, lengths) for _ in range(length)]
            sequence = sequence.replace(b" ", SPACE.encode())
        for at in range(0, len(sequence), _LENGTH):
            k_mer = sequence[at : at + _LENGTH]
            yield k_mer, places[at], places[at + len(k_mer) - 1] + 1
