"""Turns ids into text: the pieces of the tokens, and llama.cpp's clean-up of the whole text.

Source: src/llama-vocab.cpp, detokenize.
"""

from __future__ import annotations

import codecs
import operator
import re
from collections.abc import Iterable
from typing import Any, SupportsIndex

from .._util.arguments import integer
from ..models.pieces import Pieces
from ..models.vocabulary import Vocabulary

# The three passes over the text of vocabularies with clean_spaces. `re` compiles them when the first text needs them.
_SPACE_BEFORE_MARK = rb" (?=[?!.,])"
_LONE_APOSTROPHE = rb" ' "
_SPACE_BEFORE_SUFFIX = rb" (?='(?:[sm]|[rv]e))"
# A tail that later text could still change. For a run of spaces, the last two, since "  ' s" becomes "'s".
_UNDECIDED_TAIL = rb" {1,2}(?:'[ ']*[rv]?)?\Z"


def clean_spaces(text: bytes) -> bytes:
    """llama.cpp's clean-up of tokenization spaces: before marks, around apostrophes, before suffixes.

    >>> clean_spaces(b"It 's fine , they 're here !")
    b"It's fine, they're here!"
    """
    text = re.sub(_SPACE_BEFORE_MARK, b"", text)
    text = re.sub(_LONE_APOSTROPHE, b"'", text)
    return re.sub(_SPACE_BEFORE_SUFFIX, b"", text)


def token_ids(ids: Iterable[int]) -> list[int]:
    """`ids` as Python integers; `TypeError` for anything but integers, also in a numpy array."""
    values = ids.tolist() if hasattr(ids, "tolist") and not isinstance(ids, memoryview) else ids  # numpy
    if isinstance(values, (str, bytes, bytearray, memoryview)) or not isinstance(values, Iterable):
        raise TypeError(f"ids must be a sequence of integers, not {type(ids).__name__}")
    try:
        return list(map(operator.index, values))
    except TypeError:
        if not isinstance(values, (list, tuple)):  # an iterator has lost the one that is wrong
            raise TypeError("ids must be integers") from None
        wrong = (type(each).__name__ for each in values if not hasattr(type(each), "__index__"))
        raise TypeError(f"ids must be integers, not {next(wrong, 'anything else')}") from None


def detokenize(
    vocabulary: Vocabulary,
    pieces: Pieces,
    ids: list[int],
    remove_special: bool,
    *,
    clean: bool,
    continues: bool = False,
) -> bytes:
    """Return the bytes of `ids`, as llama_detokenize gives them.

    `remove_special` leaves out BOS and EOS, `clean` says whether spaces are cleaned up, and `continues` keeps the space
    before the text, which llama_detokenize does not.
    """
    remove_space = vocabulary.add_space_prefix and not continues
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

    >>> stream = tok.decode_stream()
    >>> "".join(map(stream.push, tok.encode("naïve"))) + stream.finish()
    'naïve'
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        pieces: Pieces,
        remove_special: bool,
        *,
        clean: bool,
        continues: bool = False,
    ) -> None:
        self._arguments = (vocabulary, pieces, remove_special), {"clean": clean, "continues": continues}
        self._vocabulary = vocabulary
        self._pieces = pieces
        self._remove_special = remove_special
        self._clean = clean
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._undecided = b""  # bytes that the clean-up may still change
        self._held: int | None = None  # an EOS that is dropped if nothing follows
        self._remove_space = vocabulary.add_space_prefix and not continues
        self._begun = False

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields with a copy of the UTF-8 decoder, whose state a copy of the stream must not share."""
        from copy import copy

        return {**vars(self), "_utf8": copy(self._utf8)}

    def __repr__(self) -> str:
        return f"<DecodeStream: {'begun' if self._begun else 'empty'}>"

    def push(self, token: SupportsIndex) -> str:
        """The text that `token` settles; often empty.

        `ValueError` for an id out of range, `TypeError` for anything but an integer.
        """
        token = integer("a token id", token)
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
        """The rest, which is lost without this call. The stream can then be used for another text."""
        rest = clean_spaces(self._undecided) if self._clean else self._undecided
        text = self._utf8.decode(rest, final=True)
        given, flags = self._arguments
        self.__init__(*given, **flags)  # type: ignore[misc]
        return text

    def _add(self, token: int) -> str:
        piece = self._pieces[token]
        if self._remove_space:
            piece = piece.removeprefix(b" ")
            self._remove_space = False
        if not self._clean:
            return self._utf8.decode(piece)
        data = self._undecided + piece
        tail = re.search(_UNDECIDED_TAIL, data)
        cut = tail.start() if tail else len(data)
        self._undecided = data[cut:]
        return self._utf8.decode(clean_spaces(data[:cut]))
