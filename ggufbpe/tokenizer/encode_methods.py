"""All forms of encoding a text: the part of `Tokenizer` that turns text into ids, offsets, counts and words."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from .._util import utf8
from .._util.arguments import checked_flag, integer, iterable
from .._util.lazy import cached_property
from .._util.processors import processors
from ..models.vocabulary import Vocabulary
from .engine import Engine, Text, numpy

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Unit = Literal["bytes", "characters"]  # of offsets


class EncodeMethods:
    """The base class of `Tokenizer` with everything that encodes a text.

    Every form that encodes one text takes `continues`, since that says something about the text. `threads` is taken by
    the forms whose work the compiled engine divides: those that return arrays or a number, and batches. Lists of Python
    integers are made by one thread at a time, because of the interpreter's lock, and spans by one thread.
    """

    _vocabulary: Vocabulary
    _engine: cached_property[Engine]
    _count_up_to: Callable[[Text, int, bool, bool, bool], int]

    def encode(
        self, text: Text, *, add_special: bool = True, parse_special: bool = True, continues: bool = False
    ) -> list[int]:
        """Return the ids of `text`, as the function llama_tokenize gives them.

        `add_special` adds BOS and EOS where the model wants them. (The command llama-tokenize, and so `ggufbpe
        tokenize`, passes `tok.add_bos` here: a model that adds EOS but no BOS gets no EOS from it.)
        `parse_special` recognizes control tokens in the text. Bytes need not be UTF-8: each undecodable byte counts
        as U+FFFD. A `str` with a lone surrogate raises `ValueError`, because UTF-8 cannot encode it. `continues`
        means that the text follows one that was split off (see `find_split_point`), so no space is put before it.

        Source: src/llama-vocab.cpp, llama_vocab::impl::tokenize (llama_tokenize).
        """
        try:
            return self._engine.encode(text, add_special, parse_special, continues)
        except TypeError as error:
            return self._engine.encode(text, *_flags(error, add_special, parse_special, continues))

    def encode_ordinary(self, text: Text, *, continues: bool = False) -> list[int]:
        """Return the ids of `text` as plain text: no BOS or EOS is added, and no control token is recognized.

        For text that must never become a control token, such as a user's message in a prompt that is put together by
        hand. Tokens that a model defines as text to be kept whole (user-defined ones) are still recognized, as in
        llama.cpp: this is `encode(text, add_special=False, parse_special=False)`. `continues` as in `encode`.

        >>> tok.encode("<|endoftext|>"), tok.encode_ordinary("<|endoftext|>")
        ([50256], [27, 91, 437, 1659, 5239, 91, 29])
        """
        try:
            return self._engine.encode(text, False, False, continues)
        except TypeError as error:
            return self._engine.encode(text, *_flags(error, False, False, continues))

    def encode_to_numpy(
        self,
        text: Text,
        *,
        add_special: bool = True,
        parse_special: bool = True,
        continues: bool = False,
        threads: int = 1,
    ) -> npt.NDArray[np.int32]:
        """Encode `text` into an int32 array of shape (number of tokens,), without a copy in the compiled engine.

        The compiled engine divides a long text among `threads` threads; the ids are the same.
        """
        threads = _most_threads(threads)
        try:
            return self._engine.encode_to_numpy(text, add_special, parse_special, continues, threads)
        except TypeError as error:
            flags = _flags(error, add_special, parse_special, continues)
            return self._engine.encode_to_numpy(text, *flags, threads)

    def encode_with_offsets(
        self,
        text: Text,
        *,
        add_special: bool = True,
        parse_special: bool = True,
        continues: bool = False,
        unit: Unit = "bytes",
    ) -> tuple[list[int], Sequence[tuple[int, int]]]:
        """Return the ids of `text`, and for each token its span (start, end) in the UTF-8 bytes of `text`.

        `text_bytes[start:end]` is what the token stands for, before any normalization. BOS and EOS have empty spans
        at the ends. Tokens that share one invalid byte sequence, or one escaped space, all have its whole span.
        With `unit="characters"`, offsets count the characters of a `str`: a token that is part of a character has
        the whole character, and each undecodable byte counts as one. The spans compare equal to a list of tuples;
        with the compiled engine, each tuple is made when it is read.
        """
        _check_unit(unit)
        try:
            ids, offsets = self._engine.encode_with_offsets(text, add_special, parse_special, continues)
        except TypeError as error:
            flags = _flags(error, add_special, parse_special, continues)
            ids, offsets = self._engine.encode_with_offsets(text, *flags)
        return ids, offsets if unit == "bytes" else utf8.in_characters(
            _source(text), offsets, self._vocabulary.strict_utf8
        )

    def encode_with_offsets_to_numpy(
        self,
        text: Text,
        *,
        add_special: bool = True,
        parse_special: bool = True,
        continues: bool = False,
        unit: Unit = "bytes",
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """Return ids of shape (number of tokens,), int32, and their spans of shape (number of tokens, 2), int64.

        The arguments are those of `encode_with_offsets`. With the compiled engine, arrays take a fraction of the time
        and memory of lists.
        """
        _check_unit(unit)
        try:
            ids, offsets = self._engine.encode_with_offsets_to_numpy(
                text, add_special, parse_special, continues
            )
        except TypeError as error:
            flags = _flags(error, add_special, parse_special, continues)
            ids, offsets = self._engine.encode_with_offsets_to_numpy(text, *flags)
        source = _source(text) if unit == "characters" else ""
        if not source.isascii():
            at, (starts, ends) = (
                numpy().array(utf8.characters_at(source, self._vocabulary.strict_utf8)),
                offsets.T,
            )
            last = numpy().where(starts < ends, at[ends - 1] + 1, at[starts])
            offsets = numpy().stack([at[starts], last], axis=1)
        return ids, offsets

    def encode_batch(
        self,
        texts: Iterable[Text],
        *,
        add_special: bool = True,
        parse_special: bool = True,
        threads: int | None = None,
    ) -> list[list[int]]:
        """Return the ids of each text, computed on `threads` threads (compiled engine); None means one per processor.

        The other arguments and errors are those of `encode`. `TypeError` for a single text.
        """
        arguments = _batch_arguments(texts, add_special, parse_special, threads)
        return self._engine.encode_batch(*arguments)

    def encode_batch_to_numpy(
        self,
        texts: Iterable[Text],
        *,
        add_special: bool = True,
        parse_special: bool = True,
        threads: int | None = None,
    ) -> list[npt.NDArray[np.int32]]:
        """Return the ids of each text as an int32 array, which takes half the memory of a list (compiled engine).

        For texts of a few thousand characters and more, arrays are also up to 1.5 times as fast.
        """
        numpy()  # if it is missing, fail before any work is done
        arguments = _batch_arguments(texts, add_special, parse_special, threads)
        return self._engine.encode_batch_to_numpy(*arguments)

    def count(
        self,
        text: Text,
        *,
        add_special: bool = True,
        parse_special: bool = True,
        continues: bool = False,
        threads: int = 1,
        limit: int | None = None,
    ) -> int:
        """Return the number of ids that `encode` returns, without storing them; `threads` as in `encode_to_numpy`.

        With `limit`, counting ends as soon as there are more than `limit` ids, and `limit + 1` is returned: see `fits`,
        which adds no BOS by default. `ValueError` for a negative `limit`.
        """
        threads = _most_threads(threads)
        if limit is not None:
            return self._count_up_to(text, limit, add_special, parse_special, continues)
        try:
            return self._engine.count(text, add_special, parse_special, threads, continues)
        except TypeError as error:
            add_special, parse_special, continues = _flags(error, add_special, parse_special, continues)
            return self._engine.count(text, add_special, parse_special, threads, continues)

    def count_batch(
        self,
        texts: Iterable[Text],
        *,
        add_special: bool = True,
        parse_special: bool = True,
        threads: int | None = None,
    ) -> list[int]:
        """Return the number of ids of each text; the arguments and errors are those of `encode_batch`."""
        arguments = _batch_arguments(texts, add_special, parse_special, threads)
        return list(map(len, self._engine.encode_batch_to_numpy(*arguments)))

    def tokens(
        self, text: Text, *, add_special: bool = True, parse_special: bool = True, continues: bool = False
    ) -> list[str]:
        """Return the tokens of `text` as written in the file: `id_to_token` of each id that `encode` returns.

        >>> tok.tokens("Hello world")
        ['Hello', 'Ġworld']
        """
        ids = self.encode(text, add_special=add_special, parse_special=parse_special, continues=continues)
        return [self._vocabulary.tokens[token] for token in ids]

    def pre_tokenize(self, text: Text) -> list[str]:
        """Return the words into which the pre-tokenizer splits `text`; special tokens are not recognized.

        A word is the text that merging starts from. Spaces that the model escapes are U+2581, but a word of a
        byte-level model is written in plain text, not in the byte-level alphabet.
        """
        return self._engine.pre_tokenize(text)

    def words(self, text: Text) -> list[str]:
        """Call `pre_tokenize`; both names stay."""
        return self._engine.pre_tokenize(text)

    def count_words(self, text: Text) -> int:
        """Return the number of words that `pre_tokenize` returns, without storing them."""
        return self._engine.count_pre_tokens(text)

    def find_split_point(self, data: bytes, start: int) -> int:
        """Return the first position from `start` on, other than 0, where `data` can be split without changing any id.

        The position is a number of bytes, between two characters. Encode `data[position:]` with `continues=True`.
        Special tokens are not considered. Returns `len(data)` if no such position is known: always for Unigram (t5)
        models, and with the reference engine.
        """
        if not isinstance(data, bytes):
            raise TypeError(f"data must be bytes, not {type(data).__name__}")
        start = max(integer("start", start, least=0), 1)
        return self._engine.find_split_point(data, min(start, len(data)), continues=True)

    def cut(self, data: bytes, start: int) -> int:
        """Call `find_split_point`. The name `cut` is deprecated and will be removed in the next version."""
        import warnings

        warnings.warn("Tokenizer.cut is now Tokenizer.find_split_point", DeprecationWarning, stacklevel=2)
        return self.find_split_point(data, start)


def _source(text: Text) -> str | bytes:
    """A text that an engine has accepted, as `str` if it is UTF-8."""
    if isinstance(text, str):
        return text
    data = bytes(text)
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _check_unit(unit: str) -> None:
    if unit not in ("bytes", "characters"):
        raise ValueError(f"unit is 'bytes' or 'characters', not {unit!r}")


def _flags(
    error: TypeError, add_special: object, parse_special: object, continues: object
) -> tuple[bool, bool, bool]:
    """Return as Python's bools the flags of a call that an engine has refused with `error`.

    Raises a `TypeError` that names the flag if one is not a bool, and `error` if all flags are Python's bools already.
    Flags are checked only after a refusal, since a check takes a tenth of the time of encoding a short text.
    """
    flags = (
        checked_flag("add_special", add_special),
        checked_flag("parse_special", parse_special),
        checked_flag("continues", continues),
    )
    if flags[0] is add_special and flags[1] is parse_special and flags[2] is continues:
        raise error
    return flags


def _batch_arguments(
    texts: Iterable[Text], add_special: object, parse_special: object, threads: int | None
) -> tuple[Iterable[Text], bool, bool, int]:
    """Return the arguments of a batch, with the number of threads that None stands for.

    `TypeError` for arguments of a wrong type, `ValueError` for fewer than one thread.
    """
    return (
        iterable("texts", texts, "texts"),
        checked_flag("add_special", add_special),
        checked_flag("parse_special", parse_special),
        processors() if threads is None else _most_threads(threads),
    )


def _most_threads(threads: int) -> int:
    return min(integer("threads", threads, least=1), sys.maxsize)
