"""The public face: `Tokenizer`, which opens a GGUF and turns text into ids and back.

file.gguf -> vocab.py -> [this file] -> ids

text -> steps.py, or in one go kernel/ -> ids
ids -> detokenize.py -> text
"""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Iterable
from functools import cache, cached_property
from itertools import chain
from threading import RLock
from typing import TYPE_CHECKING, Any, Literal

from .detokenize import DecodeStream, Pieces, detokenize, token_ids
from .kernel import native
from .vocab import TokenAttribute, Vocabulary, load_vocabulary, warn_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .inspect.trace import Trace
    from .kernel._native import Encoder
    from .steps import Steps

_making = RLock()  # one thread makes an encoder; the others wait for it

Engine = Literal["auto", "native", "reference"]
Text = str | bytes | bytearray | memoryview


class Tokenizer:
    """The tokenizer of one GGUF model, with the ids that llama.cpp gives.

    >>> tok = Tokenizer.from_gguf("model.gguf")                     # doctest: +SKIP
    >>> tok.encode("Hello world")                                   # doctest: +SKIP
    [15496, 995]
    >>> tok.decode([15496, 995])                                    # doctest: +SKIP
    'Hello world'

    Nothing in it changes but caches, so one object serves many threads; it can be pickled and copied.
    """

    def __init__(self, vocabulary: Vocabulary, engine: Engine = "auto") -> None:
        """`engine`: see `from_gguf`."""
        if engine not in ("auto", "native", "reference"):
            raise ValueError(f"engine must be 'auto', 'native' or 'reference', not {engine!r}")
        if engine == "native" and native is None:
            if os.environ.get("GGUFBPE_ENGINE") == "reference":
                raise RuntimeError(
                    "the native engine is turned off: GGUFBPE_ENGINE=reference is in the environment"
                )
            raise RuntimeError(
                "the native engine is not installed: install ggufbpe again with a C++ compiler at hand "
                "(pip install --force-reinstall --no-deps ggufbpe), or use engine='reference'"
            )
        self._engine: Engine = engine
        self._made_encoder: Encoder | None = None
        self.vocabulary = vocabulary
        self.model = vocabulary.model
        self.pre = vocabulary.pre
        self.vocab_size = len(vocabulary.tokens)
        self.add_bos = vocabulary.add_bos
        self.add_eos = vocabulary.add_eos
        self.eog_ids = vocabulary.eog_ids
        ids = vocabulary.special_ids
        self.bos_id, self.eos_id, self.eot_id, self.eom_id = ids["bos"], ids["eos"], ids["eot"], ids["eom"]
        self.unk_id, self.sep_id, self.pad_id, self.mask_id = ids["unk"], ids["sep"], ids["pad"], ids["mask"]
        self.fim_pre_id, self.fim_suf_id, self.fim_mid_id = ids["fim_pre"], ids["fim_suf"], ids["fim_mid"]
        self.fim_pad_id, self.fim_rep_id, self.fim_sep_id = ids["fim_pad"], ids["fim_rep"], ids["fim_sep"]

    @classmethod
    def from_gguf(cls, path: str | os.PathLike[str], engine: Engine = "auto") -> Tokenizer:
        """The tokenizer in a GGUF file; nothing but its metadata is read, and the file is closed again.

        `engine` says what makes the ids: "native" the compiled engine, "reference" the one in plain Python, "auto"
        the compiled one where it is installed. Both give the same ids; `tok.engine` says which one it is.

        Raises a `GGUFError` that says what is wrong, where, and what to do; `UnsupportedTokenizerError` for
        tokenizers that are not byte pair encoding; `OSError` where the file cannot be opened. Warns
        (`GGUFWarning`) where llama.cpp does. `RuntimeError` for engine="native" where it is not installed.
        """
        vocabulary = load_vocabulary(path)
        warn_of(vocabulary)
        return cls(vocabulary, engine)

    @property
    def engine(self) -> Literal["native", "reference"]:
        """What makes the ids: "native" or "reference"."""
        return "reference" if self._engine == "reference" or native is None else "native"

    # ---- encoding -------------------------------------------------------------------------------

    def encode(self, text: Text, *, add_special: bool = True, parse_special: bool = True) -> list[int]:
        """The ids of `text`; the defaults are those of llama-tokenize.

        `add_special` adds BOS and EOS where the model wants them; `parse_special` takes the text of control
        tokens for these tokens. Bytes need not be UTF-8: each that cannot be decoded counts as U+FFFD. A
        `str` with lone surrogates is a `ValueError`, for no UTF-8 writes it.

        Source: src/llama-vocab.cpp, llama_vocab::impl::tokenize (llama_tokenize).
        """
        encoder = self._made_encoder or self._encoder  # the attribute takes less time than the property
        if encoder is None:
            return list(chain.from_iterable(self._steps.encoded(text, add_special, parse_special)))
        try:
            return encoder.encode(text, add_special, parse_special)
        except UnicodeEncodeError:
            raise self._surrogate_error([text]) from None

    def encode_to_numpy(
        self, text: Text, *, add_special: bool = True, parse_special: bool = True, threads: int = 1
    ) -> npt.NDArray[np.int32]:
        """The same as an array of int32, shape (number of tokens,), which the native engine gives without a copy.

        A long text is shared out among `threads` threads (native engine), with the same ids.
        """
        numpy = _numpy()
        _check_threads(threads)
        encoder = self._made_encoder or self._encoder
        array: npt.NDArray[np.int32]
        if encoder is None:
            ids = self.encode(text, add_special=add_special, parse_special=parse_special)
            array = numpy.array(ids, numpy.int32)
        else:
            try:
                buffer = encoder.encode_to_buffer(text, add_special, parse_special, threads)
            except UnicodeEncodeError:
                raise self._surrogate_error([text]) from None
            array = numpy.frombuffer(buffer, numpy.int32)
        return array

    def encode_with_offsets(
        self, text: Text, *, add_special: bool = True, parse_special: bool = True
    ) -> tuple[list[int], list[tuple[int, int]]]:
        """The ids, and for each the (start, end) of what it stands for, in bytes of the UTF-8 of `text`.

        `text_bytes[start:end]` is the token's own text unless the text was changed on the way. BOS and EOS
        have empty spans at the ends. Tokens that share one byte sequence that is not UTF-8, or one escaped
        space, have the span of all of it.
        """
        return self._steps.ids_with_offsets(text, add_special, parse_special)

    def encode_batch(
        self,
        texts: Iterable[Text],
        *,
        add_special: bool = True,
        parse_special: bool = True,
        threads: int | None = None,
    ) -> list[list[int]]:
        """The ids of each text, on `threads` threads (native engine); None is one for each processor."""
        lists: list[list[int]] = self._batch(texts, add_special, parse_special, threads, as_arrays=False)
        return lists

    def encode_batch_to_numpy(
        self,
        texts: Iterable[Text],
        *,
        add_special: bool = True,
        parse_special: bool = True,
        threads: int | None = None,
    ) -> list[npt.NDArray[np.int32]]:
        """The same as arrays, as `encode_to_numpy` gives them: half of the memory of lists (native engine).

        From some thousand characters a text they are faster, too, up to one and a half times.
        """
        _numpy()  # where it is missing, that is better said here than in the middle
        arrays: list[npt.NDArray[np.int32]] = self._batch(
            texts, add_special, parse_special, threads, as_arrays=True
        )
        return arrays

    def count(
        self, text: Text, *, add_special: bool = True, parse_special: bool = True, threads: int = 1
    ) -> int:
        """The number of ids that `encode` would give, without making them; `threads` as in `encode_to_numpy`."""
        _check_threads(threads)
        encoder = self._encoder
        if encoder is None:
            return sum(map(len, self._steps.encoded(text, add_special, parse_special)))
        try:
            return encoder.count(text, add_special, parse_special, threads)
        except UnicodeEncodeError:
            raise self._surrogate_error([text]) from None

    def words(self, text: Text) -> list[str]:
        """The pieces into which the pre-tokenizer cuts `text`, all of it taken as plain text.

        As merging sees them but for the byte-level alphabet: where the model escapes spaces, they are U+2581.
        """
        return self._steps.words(text)

    def trace(self, text: Text, *, add_special: bool = True, parse_special: bool = True) -> Trace:
        """The way of `text` through the steps: fragments, words, merges and tokens, as plain data classes.

        `tok.trace(text).ids` are those of `encode`. What the parts are is in ggufbpe/inspect/trace.py.
        """
        from .inspect.trace import trace

        return trace(self, text, add_special=add_special, parse_special=parse_special)

    # ---- decoding -------------------------------------------------------------------------------

    def decode(
        self, ids: Iterable[int], *, remove_special: bool = False, unparse_special: bool = False
    ) -> str:
        """The text of `ids`; bytes that are not UTF-8, such as a part of a character, become U+FFFD.

        `remove_special` leaves out the BOS and EOS that `encode` adds; `unparse_special` shows control tokens
        as their text. `ValueError` for ids out of range, `TypeError` for what is no integer.
        """
        data = self.decode_bytes(ids, remove_special=remove_special, unparse_special=unparse_special)
        return data.decode("utf-8", "replace")

    def decode_bytes(
        self, ids: Iterable[int], *, remove_special: bool = False, unparse_special: bool = False
    ) -> bytes:
        """The same as bytes: exactly llama_detokenize (src/llama-vocab.cpp, llama_vocab::impl::detokenize)."""
        return detokenize(self.vocabulary, self._pieces[unparse_special], token_ids(ids), remove_special)

    def decode_stream(self, *, remove_special: bool = False, unparse_special: bool = False) -> DecodeStream:
        """A stream that takes ids one by one and gives text as soon as it is certain."""
        return DecodeStream(self.vocabulary, self._pieces[unparse_special], remove_special)

    def token_to_piece(self, token: int, *, special: bool = True) -> bytes:
        """The bytes of one token: exactly llama_token_to_piece. Without `special`, control tokens are empty."""
        return self._pieces[special][operator.index(token)]

    # ---- the vocabulary -------------------------------------------------------------------------

    def token_to_id(self, token: str) -> int | None:
        """The id of a token by its text as it stands in the file (byte-level: "Ġworld"), None if there is none."""
        if not isinstance(token, str):
            raise TypeError(f"a token is a str, not {type(token).__name__}")
        return self.vocabulary.token_to_id.get(token)

    def id_to_token(self, token: int) -> str:
        """The text of a token as it stands in the file; `token_to_piece` gives what it decodes to."""
        return self.vocabulary.tokens[self._checked(token)]

    def token_attributes(self, token: int) -> TokenAttribute:
        """What llama.cpp takes the token for: llama_token_get_attr."""
        return TokenAttribute(self.vocabulary.attributes[self._checked(token)])

    @cached_property
    def nl_id(self) -> int | None:
        """The first id of a line break; None where the vocabulary has none."""
        encoder = self._encoder  # llama.cpp asks before it knows special tokens
        ids = self._steps.plain_ids("\n") if encoder is None else encoder.encode_plain(b"\n")
        return next(iter(ids), None)

    def __repr__(self) -> str:
        return f"<Tokenizer {self.model} {self.pre} of {self.vocab_size} tokens>"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.vocabulary, self._engine)  # caches are made anew

    def _checked(self, token: int) -> int:
        if not 0 <= operator.index(token) < self.vocab_size:
            raise ValueError(
                f"token id {token} is out of range: the vocabulary has ids 0 to {self.vocab_size - 1}"
            )
        return operator.index(token)

    # ---- the steps ------------------------------------------------------------------------------

    @property
    def _encoder(self) -> Encoder | None:
        """The compiled encoder, made on first use; None in the reference engine."""
        if self._made_encoder is None and self.engine == "native":
            from .kernel.engine import encoder

            with _making:
                if self._made_encoder is None:
                    self._made_encoder = encoder(self.vocabulary)
        return self._made_encoder

    def _batch(
        self,
        texts: Iterable[Text],
        add_special: bool,
        parse_special: bool,
        threads: int | None,
        *,
        as_arrays: bool,
    ) -> list[Any]:
        if isinstance(texts, (str, bytes, bytearray, memoryview)):
            raise TypeError("a batch is several texts; for one, use encode")
        if threads is None:
            threads = _processors()
        _check_threads(threads)
        encoder = self._encoder
        if encoder is None:
            one = self.encode_to_numpy if as_arrays else self.encode
            return [one(text, add_special=add_special, parse_special=parse_special) for text in texts]
        texts = texts if isinstance(texts, (list, tuple)) else list(texts)
        try:
            found = encoder.encode_batch(texts, add_special, parse_special, threads, as_arrays)
        except UnicodeEncodeError:
            raise self._surrogate_error(texts) from None
        if not as_arrays:
            return found
        numpy = _numpy()
        return [numpy.frombuffer(ids, numpy.int32) for ids in found]

    def _surrogate_error(self, texts: Iterable[Text]) -> Exception:
        """What the steps say of the first text that has a lone surrogate."""
        try:
            for text in texts:
                self._steps.source(text)
        except ValueError as error:
            return error
        return AssertionError("a text could not be written as UTF-8")

    @cached_property
    def _steps(self) -> Steps:
        from .steps import Steps

        return Steps(self.vocabulary)

    @cached_property
    def _pieces(self) -> tuple[Pieces, Pieces]:
        return Pieces(self.vocabulary, special=False), Pieces(self.vocabulary, special=True)


@cache  # an import in the middle takes as long as a short text
def _numpy() -> Any:
    """numpy, which takes longer to import than all else, and is not needed for lists."""
    import numpy

    return numpy


def _check_threads(threads: int) -> None:
    if operator.index(threads) < 1:
        raise ValueError(f"threads must be 1 or more, not {threads}")


def _processors() -> int:
    """How many processors this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def steps_of(tokenizer: Tokenizer) -> Steps:
    """The steps that a tokenizer runs, for what looks at them one by one (inspect/)."""
    return tokenizer._steps


def tokenizer_of(steps: Steps) -> Tokenizer:
    """A tokenizer that runs these steps."""
    tokenizer = Tokenizer(steps.vocabulary, "reference")
    tokenizer.__dict__["_steps"] = steps
    return tokenizer
