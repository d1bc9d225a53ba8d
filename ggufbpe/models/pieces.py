"""The piece of a token: the bytes that it stands for in a text.

Source: src/llama-vocab.cpp, token_to_piece.
"""

from __future__ import annotations

import re
from array import array
from typing import TYPE_CHECKING, cast

from ..native.lazy_strings import LazyStrings
from .vocabulary import BYTE, CONTROL, NORMAL, UNKNOWN, USER_DEFINED, Vocabulary

if TYPE_CHECKING:
    from ..native._native import Strings
    from .pretokenizers.registry import PreTokenizer
    from .tokenizer_model import TokenizerModel

_SHOWN_AS_THEY_ARE = CONTROL | USER_DEFINED | UNKNOWN
_HIDDEN = CONTROL | UNKNOWN
_NOT_IN_ALPHABET = b"[UNK_BYTE_0x"  # llama.cpp's replacement for characters outside GPT-2's alphabet


class Pieces(dict[int, bytes]):
    """The bytes of each token, made on first use; `ValueError` for ids out of range.

    With `special`, control and unknown tokens show as their text; otherwise they are empty.
    """

    def __init__(self, vocabulary: Vocabulary, special: bool) -> None:
        super().__init__()
        self._vocabulary = vocabulary
        self._special = special

    def __missing__(self, token: int) -> bytes:
        size = len(self._vocabulary.tokens)
        if not 0 <= token < size:
            raise ValueError(f"token id {token} is out of range: the vocabulary has ids 0 to {size - 1}")
        hidden = not self._special and self._vocabulary.attributes[token] & _HIDDEN
        piece = b"" if hidden else _piece(self._vocabulary, token)
        self[token] = piece
        return piece


def _piece(vocabulary: Vocabulary, token: int) -> bytes:
    text, attribute = vocabulary.tokens[token], vocabulary.attributes[token]
    return piece_of(vocabulary.tokenizer_model, vocabulary.pre_tokenizer, text, attribute)


def piece_of(model: TokenizerModel, entry: PreTokenizer, text: str, attribute: int) -> bytes:
    """The bytes of a token with this text; none if it is unused or of no type."""
    own = model.piece(text, attribute)
    if own is not None:
        return own
    if attribute & _SHOWN_AS_THEY_ARE:
        return text.encode()
    if attribute & NORMAL:
        return model.plain_piece(text, entry)
    if attribute & BYTE:
        return bytes([_byte_of(text)])
    return b""


def all_pieces(vocabulary: Vocabulary) -> list[bytes]:
    """Return the bytes of each token by id, equal to those of `Pieces` with `special`.

    The compiled module makes those of normal tokens, without a string for each.
    """
    strings = _strings_of_plain_pieces(vocabulary)
    if strings is None:
        return [_piece(vocabulary, token) for token in range(len(vocabulary.tokens))]
    plain, others = strings.plain_pieces(*_plain(vocabulary))
    pieces = cast("list[bytes]", plain)  # those that are None are filled in here
    for token in others:
        pieces[token] = _piece(vocabulary, token)
    return pieces


def piece_lengths(vocabulary: Vocabulary) -> array[int]:
    """Return how many bytes each of `all_pieces` has, by id, as int32, without making them."""
    strings = _strings_of_plain_pieces(vocabulary)
    if strings is None:
        return array("i", map(len, all_pieces(vocabulary)))
    lengths, others = strings.plain_lengths(*_plain(vocabulary))
    found = array("i", lengths)
    for token in others:
        found[token] = len(_piece(vocabulary, token))
    return found


def _strings_of_plain_pieces(vocabulary: Vocabulary) -> Strings | None:
    """The tokens for the compiled module; None if it does not hold them or does not know their pieces."""
    tokens = vocabulary.tokens
    if vocabulary.tokenizer_model.has_own_pieces or not isinstance(tokens, LazyStrings):
        return None
    strings: Strings = tokens.strings
    return strings


def _plain(vocabulary: Vocabulary) -> tuple[array[int], int, bool]:
    """The arguments of `plain_pieces` and `plain_lengths`."""
    is_byte_level = vocabulary.tokenizer_model.is_byte_level(vocabulary.pre_tokenizer)
    return array("H", vocabulary.attributes), NORMAL, is_byte_level


def quoted_text(model: TokenizerModel, entry: PreTokenizer, text: str, attribute: int = NORMAL) -> str:
    """The text that a token, or a part of a merge, stands for, quoted for a reader.

    So 'Ġthe' in a byte-level vocabulary is ' the'. A text that stands for nothing is shown as it is.
    """
    from .._util.wording import quoted_piece  # not needed to give only ids

    written = text.encode("utf-8", "surrogatepass")
    piece = piece_of(model, entry, text, attribute)
    return quoted_piece(written if not piece or _NOT_IN_ALPHABET in piece else piece)


def quoted_token(vocabulary: Vocabulary, token: int) -> str:
    """A token of a vocabulary in the same way."""
    text, attribute = vocabulary.tokens[token], vocabulary.attributes[token]
    return quoted_text(vocabulary.tokenizer_model, vocabulary.pre_tokenizer, text, attribute)


def _byte_of(text: str) -> int:
    """The number in `<0xXX>`, by the rules of C's strtol: anything but a number counts as 0.

    >>> _byte_of("<0x0A>"), _byte_of("<0xZZ>")
    (10, 0)
    """
    digits = text.encode()[3:5].decode("latin-1")
    number = re.match(r"[ \t-\r]*([+-]?)((?:0[xX](?=[0-9a-fA-F]))?[0-9a-fA-F]+)", digits)
    if number is None:
        return 0
    return (-1 if number[1] == "-" else 1) * int(number[2], 16) & 0xFF
