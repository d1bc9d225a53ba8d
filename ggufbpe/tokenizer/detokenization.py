"""Turns ids into text: the pieces of the tokens, and llama.cpp's clean-up of the whole text.

Source: src/llama-vocab.cpp, detokenize.
"""

from __future__ import annotations

import codecs
import operator
import re
from collections.abc import Iterable

from ..models.pieces import Pieces
from ..models.vocabulary import Vocabulary

# The three passes over the text of vocabularies with clean_spaces.
_SPACE_BEFORE_MARK = re.compile(rb" (?=[?!.,])")
_LONE_APOSTROPHE = re.compile(rb" ' ")
_SPACE_BEFORE_SUFFIX = re.compile(rb" (?='(?:[sm]|[rv]e))")
# A tail that later text could still change. For a run of spaces, the last two, since "  ' s" becomes "'s".
_UNDECIDED_TAIL = re.compile(rb" {1,2}(?:'[ ']*[rv]?)?\Z")


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
