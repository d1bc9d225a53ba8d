"""Turns ids into text: the piece of each token, and llama.cpp's clean-up of the whole text.

Source: src/llama-vocab.cpp, token_to_piece (one token) and detokenize (all).
"""

from __future__ import annotations

import codecs
import operator
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..models.vocabulary import BYTE, CONTROL, NORMAL, UNKNOWN, USER_DEFINED, Vocabulary

if TYPE_CHECKING:
    from ..models.pretokenizers.registry import PreTokenizer
    from ..models.tokenizer_model import TokenizerModel

_SHOWN_AS_THEY_ARE = CONTROL | USER_DEFINED | UNKNOWN
_HIDDEN = CONTROL | UNKNOWN
_NOT_IN_ALPHABET = b"[UNK_BYTE_0x"  # llama.cpp's replacement for characters outside GPT-2's alphabet

# The three passes over the text of vocabularies with clean_spaces.
_SPACE_BEFORE_MARK = re.compile(rb" (?=[?!.,])")
_LONE_APOSTROPHE = re.compile(rb" ' ")
_SPACE_BEFORE_SUFFIX = re.compile(rb" (?='(?:[sm]|[rv]e))")
# A tail that later text could still change. For a run of spaces, the last two, since "  ' s" becomes "'s".
_UNDECIDED_TAIL = re.compile(rb" {1,2}(?:'[ ']*[rv]?)?\Z")


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
    """Return the bytes of each token by id, equal to those of `Pieces` with `special`, and all made at once."""
    model, tokens, attributes = vocabulary.tokenizer_model, vocabulary.tokens, vocabulary.attributes
    if model.has_own_pieces:
        return [_piece(vocabulary, token) for token in range(len(tokens))]
    texts = list(tokens)
    others = [token for token, attribute in enumerate(attributes) if attribute != NORMAL]
    for token in others:
        texts[token] = ""  # it may have characters that no plain token has
    pieces = model.plain_pieces(texts, vocabulary.pre_tokenizer)
    for token in others:
        pieces[token] = _piece(vocabulary, token)
    return pieces


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


def clean_spaces(text: bytes) -> bytes:
    """llama.cpp's clean-up of tokenization spaces: before marks, around apostrophes, before suffixes.

    >>> clean_spaces(b"It 's fine , they 're here !")
    b"It's fine, they're here!"
    """
    text = _SPACE_BEFORE_MARK.sub(b"", text)
    text = _LONE_APOSTROPHE.sub(b"'", text)
    return _SPACE_BEFORE_SUFFIX.sub(b"", text)


def token_ids(ids: Iterable[int]) -> list[int]:
    """`ids` as Python integers; `TypeError` for anything but integers, also in a numpy array."""
    values = ids.tolist() if hasattr(ids, "tolist") and not isinstance(ids, memoryview) else ids  # numpy
    if isinstance(values, (str, bytes, bytearray, memoryview)) or not isinstance(values, Iterable):
        raise TypeError(f"ids must be a sequence of integers, not {type(ids).__name__}")
    return list(map(operator.index, values))


def detokenize(
    vocabulary: Vocabulary, pieces: Pieces, ids: list[int], remove_special: bool, *, clean: bool
) -> bytes:
    """Return the bytes of `ids`, as llama_detokenize gives them.

    `remove_special` leaves out BOS and EOS, and `clean` says whether spaces are cleaned up.
    """
    remove_space = vocabulary.add_space_prefix
    start, end = 0, len(ids)
    special = vocabulary.special_ids
    if remove_special and vocabulary.add_bos and ids and ids[0] == special["bos"]:
        remove_space = False
        start = 1
    if remove_special and vocabulary.add_eos and end > start and ids[-1] == special["eos"]:
        end -= 1
    found = list(map(pieces.__getitem__, ids[start:end] if end - start < len(ids) else ids))
    if remove_space and found:
        found[0] = found[0].removeprefix(b" ")
    text = b"".join(found)
    return clean_spaces(text) if clean else text


class DecodeStream:
    """Ids in, one by one; text out, as soon as it is whole UTF-8 and nothing to come can change it.

    The joined results of `push` and `finish` are what `Tokenizer.decode` gives for all ids. Bytes that are not
    UTF-8 become U+FFFD.

    >>> from ggufbpe import Tokenizer                                       # doctest: +SKIP
    >>> stream = tok.decode_stream()                                        # doctest: +SKIP
    >>> "".join(map(stream.push, tok.encode("naïve"))) + stream.finish()    # doctest: +SKIP
    'naïve'
    """

    def __init__(self, vocabulary: Vocabulary, pieces: Pieces, remove_special: bool, *, clean: bool) -> None:
        self._vocabulary = vocabulary
        self._pieces = pieces
        self._remove_special = remove_special
        self._clean = clean
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._undecided = b""  # bytes that the clean-up may still change
        self._held: int | None = None  # an EOS that is dropped if nothing follows
        self._remove_space = vocabulary.add_space_prefix
        self._begun = False

    def push(self, token: int) -> str:
        """The text that `token` settles; often empty. `ValueError` for an id out of range."""
        token = operator.index(token)
        self._pieces[token]  # an id out of range must not change the stream
        special = self._vocabulary.special_ids
        if not self._begun:
            self._begun = True
            if self._remove_special and self._vocabulary.add_bos and token == special["bos"]:
                self._remove_space = False
                return ""
        held, self._held = self._held, None
        text = self._add(held) if held is not None else ""
        if self._remove_special and self._vocabulary.add_eos and token == special["eos"]:
            self._held = token
            return text
        return text + self._add(token)

    def finish(self) -> str:
        """The rest. The stream can then be used for another text."""
        rest = clean_spaces(self._undecided) if self._clean else self._undecided
        text = self._utf8.decode(rest, final=True)
        self.__init__(self._vocabulary, self._pieces, self._remove_special, clean=self._clean)  # type: ignore[misc]
        return text

    def _add(self, token: int) -> str:
        piece = self._pieces[token]
        if self._remove_space:
            piece = piece.removeprefix(b" ")
            self._remove_space = False
        if not self._clean:
            return self._utf8.decode(piece)
        data = self._undecided + piece
        tail = _UNDECIDED_TAIL.search(data)
        cut = tail.start() if tail else len(data)
        self._undecided = data[cut:]
        return self._utf8.decode(clean_spaces(data[:cut]))
