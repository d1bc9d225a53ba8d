"""The public face: `Tokenizer`, which opens a GGUF and turns text into ids and back.

file.gguf -> vocab/ -> [this file] -> ids

text -> pipeline.py, or in one go kernel/ -> ids
ids -> detokenize.py -> text

It is a little longer than files should be: one class, whose methods are what users know, with what they must know.
"""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

from . import utf8
from .by_name import ModelName, locate
from .chat.methods import ChatMethods
from .gguf.metadata import Metadata, Overrides
from .kernel import native, why_not_native
from .once import made_once, making
from .pipeline.detokenize import DecodeStream, Pieces, detokenize, token_ids
from .vocab import Vocabulary, load, load_from, packed, warn_of
from .vocabulary_facts import VocabularyFacts

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .kernel._native import Encoder
    from .pipeline.pipeline import Pipeline
    from .trace.trace import Trace

CACHE_BYTES = 32 << 20  # as of src/bpe/bpe_model.h
_LEAST_CACHE_BYTES = 1 << 20

Engine = Literal["auto", "native", "reference"]
Unit = Literal["bytes", "characters"]  # of offsets
Text = str | bytes | bytearray | memoryview


class Tokenizer(VocabularyFacts, ChatMethods):
    """The tokenizer of one GGUF model, with the ids that llama.cpp gives.

    >>> tok = Tokenizer.from_gguf("model.gguf")                     # doctest: +SKIP
    >>> tok.encode("Hello world")                                   # doctest: +SKIP
    [15496, 995]
    >>> tok.decode([15496, 995])                                    # doctest: +SKIP
    'Hello world'

    Nothing in it changes but caches, so one object serves many threads; it can be copied, and be pickled. A
    pickle has what makes the tokenizer and not where it comes from: tokenizers that are the same have the same
    pickle, whatever else their files hold, and out of it `vocabulary.path` and the names of the model are empty.
    """

    def __init__(
        self, vocabulary: Vocabulary, engine: Engine = "auto", *, cache_bytes: int = CACHE_BYTES
    ) -> None:
        """`engine` and `cache_bytes`: see `from_gguf`."""
        if engine not in ("auto", "native", "reference"):
            raise ValueError(f"engine must be 'auto', 'native' or 'reference', not {engine!r}")
        if engine == "native" and native is None:
            raise RuntimeError(
                f"the native engine cannot be had: {why_not_native}; install ggufbpe again with a C++ compiler at "
                "hand (pip install --force-reinstall --no-deps ggufbpe), or use engine='reference'"
            )
        self._engine: Engine = engine
        self._cache_bytes = _checked_cache_bytes(cache_bytes)
        self._made_encoder: Encoder | None = None
        self._vocabulary = vocabulary
        self._metadata: Metadata | None = None  # what the vocabulary was made of, if it is known
        self._name = ""

    @classmethod
    def from_gguf(
        cls,
        path: ModelName,
        engine: Engine = "auto",
        *,
        overrides: Overrides | None = None,
        cache_bytes: int = CACHE_BYTES,
    ) -> Tokenizer:
        """The tokenizer in a GGUF file; nothing but its metadata is read, and the file is closed again.

        `path` is that of the file, or a model's name: "ollama:gemma3", "hf:OWNER/REPO:Q4_K_M" and what else
        docs/names.md has. A path that exists always wins. `ggufbpe.locate` says which file a name means.

        `engine` says what makes the ids: "native" the compiled engine, "reference" the one in plain Python, "auto"
        the compiled one where it is installed. Both give the same ids; `tok.engine` says which one it is.

        `overrides` are values for keys of the file, in place of those that it has, if any; None takes a key away.
        They are Python's values, and what may not stand in a file may not be overridden:
        `{"tokenizer.ggml.pre": "llama-bpe", "tokenizer.ggml.bos_token_id": None}`.

        `cache_bytes` is the most that the words encoded before may take, a megabyte or more; what was not used
        lately is forgotten first. The reference engine counts words in place of bytes, 256 bytes for one.

        Raises a `GGUFError` that says what is wrong, where, and what to do; `UnsupportedTokenizerError` for
        tokenizers that ggufbpe does not read; `OSError` where the file cannot be opened, `ModelNameError` where a
        name means no model, or several. Warns
        (`GGUFWarning`) where llama.cpp does, and of a pre-tokenizer that is "default" or cuts the model's tokens.
        `RuntimeError` for engine="native" where it is not installed.
        """
        cache_bytes = _checked_cache_bytes(cache_bytes)
        model = locate(path)
        vocabulary, metadata = load(model.opened(), overrides)
        warn_of(vocabulary)
        return _made(cls, vocabulary, metadata, engine, cache_bytes, model.name)

    def with_overrides(self, overrides: Overrides) -> Tokenizer:
        """A tokenizer of the same file with other values for some keys: see `from_gguf`. The rest is shared.

        >>> tok.with_overrides({"tokenizer.ggml.add_bos_token": False})      # doctest: +SKIP

        `ValueError` where the tokenizer was not opened from a file but made of a `Vocabulary`.
        """
        if self._metadata is None:
            raise ValueError(
                "this tokenizer was made of a Vocabulary, which has no keys to override; change it by its _replace"
            )
        vocabulary, metadata = load_from(Metadata(self._metadata, overrides))
        warn_of(vocabulary)
        return _made(type(self), vocabulary, metadata, self._engine, self._cache_bytes, self._name)

    @contextmanager
    def gguf_file(self) -> Iterator[str]:
        """The path of a GGUF with this tokenizer, for other programs to open; a context manager.

        Its own file; where keys are overridden, or it is far away, one of its metadata alone, which is there until the
        end of the block.
        "" where it was made of a `Vocabulary` that comes from no file.

        >>> with tok.gguf_file() as path:                                    # doctest: +SKIP
        ...     subprocess.run(["llama-tokenize", "-m", path, "-p", "Hello"])
        """
        path, metadata = self.vocabulary.path, self._metadata
        if metadata is None or (os.path.isfile(path) and not metadata.overridden):
            yield path
            return
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            copy = os.path.join(folder, os.path.basename(path) if os.path.isfile(path) else "model.gguf")
            with open(copy, "wb") as file:
                file.write(metadata.to_bytes())
            yield copy

    def release_memory(self) -> None:
        """Forget the words that were encoded before, and give the memory that they took back to the system.

        Nothing else changes: the next text is encoded as the first one was. What the process keeps for other
        tokenizers to come is given back, too.
        """
        if self._made_encoder is not None:
            self._made_encoder.release_memory()
        if native is not None:
            native.release_memory()
        if "pipeline" in vars(self):
            self.pipeline.forget_words()

    @property
    def name(self) -> str:
        """What it was opened by, in full: a path, or a name such as "ollama:gemma3:latest"; "" if by none."""
        return self._name or self.vocabulary.path

    @property
    def engine(self) -> Literal["native", "reference"]:
        """What makes the ids: "native" or "reference"."""
        return "reference" if self._engine == "reference" or native is None else "native"

    # ---- encoding -------------------------------------------------------------------------------

    def encode(
        self, text: Text, *, add_special: bool = True, parse_special: bool = True, continues: bool = False
    ) -> list[int]:
        """The ids of `text`, as the function llama_tokenize gives them.

        `add_special` adds BOS and EOS where the model wants them. The command llama-tokenize, and `ggufbpe
        tokenize`, pass `tok.add_bos` for it: of a model that adds EOS and no BOS they leave out EOS.
        `parse_special` takes the text of control tokens for these tokens. Bytes need not be UTF-8: each that
        cannot be decoded counts as U+FFFD. A `str` with lone surrogates is a `ValueError`, for no UTF-8 writes it.
        `continues` says that the text goes on where another one ended (`cut`), so that no space is put before it.

        Source: src/llama-vocab.cpp, llama_vocab::impl::tokenize (llama_tokenize).
        """
        encoder = self._made_encoder or self._encoder  # the attribute takes less time than the property
        if encoder is None:
            return list(
                chain.from_iterable(self.pipeline.encoded(text, add_special, parse_special, continues))
            )
        try:
            return encoder.encode(text, add_special, parse_special, continues)
        except UnicodeEncodeError:
            raise self._surrogate_error([text]) from None

    def encode_to_numpy(
        self,
        text: Text,
        *,
        add_special: bool = True,
        parse_special: bool = True,
        threads: int = 1,
        continues: bool = False,
    ) -> npt.NDArray[np.int32]:
        """The same as an array of int32, shape (number of tokens,), which the native engine gives without a copy.

        A long text is shared out among `threads` threads (native engine), with the same ids.
        """
        numpy = _numpy()
        _check_threads(threads)
        encoder = self._made_encoder or self._encoder
        array: npt.NDArray[np.int32]
        if encoder is None:
            ids = self.encode(text, add_special=add_special, parse_special=parse_special, continues=continues)
            array = numpy.array(ids, numpy.int32)
        else:
            try:
                buffer = encoder.encode_to_buffer(text, add_special, parse_special, threads, continues)
            except UnicodeEncodeError:
                raise self._surrogate_error([text]) from None
            array = numpy.frombuffer(buffer, numpy.int32)
        return array

    def encode_with_offsets(
        self,
        text: Text,
        *,
        add_special: bool = True,
        parse_special: bool = True,
        continues: bool = False,
        unit: Unit = "bytes",
    ) -> tuple[list[int], list[tuple[int, int]]]:
        """The ids, and for each the (start, end) of what it stands for, in bytes of the UTF-8 of `text`.

        `text_bytes[start:end]` is the token's own text unless the text was changed on the way. BOS and EOS
        have empty spans at the ends. Tokens that share one byte sequence that is not UTF-8, or one escaped
        space, have the span of all of it. With `unit="characters"`, offsets count characters, as those of a `str`;
        a token that is a part of one has all of it, and each byte that is not UTF-8 is one.
        """
        _check_unit(unit)
        found = self._with_offsets(text, add_special, parse_special, continues, as_buffers=False)
        ids, offsets = found or self.pipeline.ids_with_offsets(text, add_special, parse_special, continues)
        return ids, offsets if unit == "bytes" else utf8.in_characters(self.pipeline.source(text), offsets)

    def encode_with_offsets_to_numpy(
        self, text: Text, *, add_special: bool = True, parse_special: bool = True, unit: Unit = "bytes"
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """The same as arrays: ids, shape (number of tokens,), and offsets, shape (number of tokens, 2).

        The native engine takes a fraction of the time and of the memory for them that lists take.
        """
        _check_unit(unit)
        numpy = _numpy()
        found = self._with_offsets(text, add_special, parse_special, as_buffers=True)
        if found is None:
            given = self.pipeline.ids_with_offsets(text, add_special, parse_special)
            ids, flat = numpy.array(given[0], numpy.int32), numpy.array(given[1], numpy.int64)
        else:
            ids, flat = numpy.frombuffer(found[0], numpy.int32), numpy.frombuffer(found[1], numpy.int64)
        offsets = flat.reshape(-1, 2)
        source = self.pipeline.source(text) if unit == "characters" else ""
        if not source.isascii():
            at, (starts, ends) = numpy.array(utf8.characters_at(source)), offsets.T
            last = numpy.where(starts < ends, at[ends - 1] + 1, at[starts])
            offsets = numpy.stack([at[starts], last], axis=1)
        return ids, offsets

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
        self,
        text: Text,
        *,
        add_special: bool = True,
        parse_special: bool = True,
        threads: int = 1,
        continues: bool = False,
    ) -> int:
        """The number of ids that `encode` would give, without making them; `threads` as in `encode_to_numpy`."""
        _check_threads(threads)
        encoder = self._encoder
        if encoder is None:
            return sum(map(len, self.pipeline.encoded(text, add_special, parse_special, continues)))
        try:
            return encoder.count(text, add_special, parse_special, threads, continues)
        except UnicodeEncodeError:
            raise self._surrogate_error([text]) from None

    def words(self, text: Text) -> list[str]:
        """The pieces into which the pre-tokenizer cuts `text`, all of it taken as plain text.

        As merging sees them but for the byte-level alphabet: where the model escapes spaces, they are U+2581.
        """
        encoder = self._encoder
        try:
            found = None if encoder is None else encoder.words(text)
        except UnicodeEncodeError:
            raise self._surrogate_error([text]) from None
        return self.pipeline.words(text) if found is None else found

    def count_words(self, text: Text) -> int:
        """How many `words` there are, without making them."""
        encoder = self._encoder
        try:
            found = None if encoder is None else encoder.count_words(text)
        except UnicodeEncodeError:
            raise self._surrogate_error([text]) from None
        return len(self.words(text)) if found is None else found

    def cut(self, data: bytes, start: int) -> int:
        """The first place at or behind `start`, but not the beginning, where a text may be cut without a change of ids.

        What is behind is encoded with `continues`. Characters must end there, and special tokens are not looked at. The
        length of `data` where there is no place: as for UGM, for byte pair encoding, whose texts are cut where its
        pre-tokenizer lets them be (`pipeline/blocks.py`), and in the reference engine.
        """
        encoder = self._encoder
        return len(data) if encoder is None else encoder.cut(data, start)

    def trace(self, text: Text, *, add_special: bool = True, parse_special: bool = True) -> Trace:
        """The way of `text` through the steps: fragments, words, merges and tokens, as plain data classes.

        `tok.trace(text).ids` are those of `encode`. What the parts are is in ggufbpe/trace/trace.py.
        """
        with making:
            from .trace.trace import trace
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

    @made_once
    def nl_id(self) -> int | None:
        """The first id of a line break; None where the vocabulary has none."""
        encoder = self._encoder  # llama.cpp asks before it knows special tokens
        made = self.pipeline.plain_ids if encoder is None else encoder.encode_plain
        ids = (token for text in ("\n",) for token in made(text))  # when they are asked for
        return self.vocabulary.tokenizer_model.line_break(self.vocabulary, ids)

    def __repr__(self) -> str:
        return f"<Tokenizer {self.model} {self.pre} of {self.vocab_size} tokens>"

    def __reduce__(self) -> tuple[Any, ...]:  # caches are made anew
        made_of = self._vocabulary if self._metadata is None else packed(self._metadata)
        return _unpickled, (type(self), made_of, self._engine, self._cache_bytes)

    @made_once
    def fingerprint(self) -> str:
        """The SHA-256 of what makes the tokenizer, in hex: one for all files that have the same tokenizer."""
        import hashlib
        import pickle

        made_of = pickle.dumps(self._vocabulary) if self._metadata is None else packed(self._metadata)
        return hashlib.sha256(made_of).hexdigest()

    def __copy__(self) -> Tokenizer:
        return self._with(self._vocabulary)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tokenizer:
        return self._with(deepcopy(self._vocabulary, memo))

    def _with(self, vocabulary: Vocabulary) -> Tokenizer:
        return _made(type(self), vocabulary, self._metadata, self._engine, self._cache_bytes, self._name)

    # ---- the steps ------------------------------------------------------------------------------

    @property
    def _encoder(self) -> Encoder | None:
        """The compiled encoder, made on first use; None in the reference engine."""
        if self._made_encoder is None and self.engine == "native":
            with making:
                from .pipeline.compiled import encoder

                if self._made_encoder is None:
                    self._made_encoder = encoder(self.vocabulary, self._cache_bytes)
        return self._made_encoder

    def _with_offsets(
        self, text: Text, add_special: bool, parse_special: bool, continues: bool = False, *, as_buffers: bool
    ) -> tuple[Any, Any] | None:
        """What the compiled encoder gives; None where there is none."""
        encoder = self._encoder
        if encoder is None:
            return None
        try:
            return encoder.encode_with_offsets(text, add_special, parse_special, continues, as_buffers)
        except UnicodeEncodeError:
            raise self._surrogate_error([text]) from None

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
            threads = processors()
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
                self.pipeline.source(text)
        except ValueError as error:
            return error
        return AssertionError("a text could not be written as UTF-8")

    @made_once
    def pipeline(self) -> Pipeline:
        """The steps from text to ids, one by one, in plain Python: what the reference engine runs."""
        from .pipeline.pipeline import Pipeline

        return Pipeline(self.vocabulary, self._cache_bytes)

    @classmethod
    def from_pipeline(cls, pipeline: Pipeline) -> Tokenizer:
        """A tokenizer of the reference engine that runs these steps."""
        tokenizer = cls(pipeline.vocabulary, "reference")
        vars(tokenizer)["pipeline"] = pipeline
        return tokenizer

    @made_once
    def _pieces(self) -> tuple[Pieces, Pieces]:
        return Pieces(self.vocabulary, special=False), Pieces(self.vocabulary, special=True)


@cache  # an import in the middle takes as long as a short text
def _numpy() -> Any:
    """numpy, which takes longer to import than all else, and is not needed for lists."""
    with making:
        import numpy
    return numpy


def _made(
    cls: type[Tokenizer],
    vocabulary: Vocabulary,
    metadata: Metadata | None,
    engine: Engine,
    cache_bytes: int,
    name: str = "",
) -> Tokenizer:
    """A tokenizer that knows what it was made of."""
    tokenizer = cls(vocabulary, engine)
    tokenizer._metadata = metadata
    tokenizer._cache_bytes = cache_bytes
    tokenizer._name = name
    return tokenizer


def _unpickled(
    cls: type[Tokenizer], made_of: bytes | Vocabulary, engine: Engine, cache_bytes: int
) -> Tokenizer:
    """A tokenizer out of its pickle. What there was to warn of was said when its file was opened."""
    if not isinstance(made_of, bytes):
        return _made(cls, made_of, None, engine, cache_bytes)
    vocabulary, metadata = load("", data=made_of)
    return _made(cls, vocabulary, metadata, engine, cache_bytes)


def _checked_cache_bytes(cache_bytes: int) -> int:
    if isinstance(cache_bytes, bool) or operator.index(cache_bytes) < _LEAST_CACHE_BYTES:
        raise ValueError(f"cache_bytes must be {_LEAST_CACHE_BYTES} or more, not {cache_bytes}")
    return operator.index(cache_bytes)


def _check_unit(unit: str) -> None:
    if unit not in ("bytes", "characters"):
        raise ValueError(f"unit is 'bytes' or 'characters', not {unit!r}")


def _check_threads(threads: int) -> None:
    if operator.index(threads) < 1:
        raise ValueError(f"threads must be 1 or more, not {threads}")


def processors() -> int:
    """How many processors this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
