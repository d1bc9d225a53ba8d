"""The compiled engine of a vocabulary: an `Engine` whose methods are those of `_native.Encoder`.

vocabulary, splitter, tables of merges (native/table_cache.py) -> _native.Encoder -> ids
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from .._util.lazy import cached_property
from ..models.vocabulary import Vocabulary
from ..native.lazy_strings import compiled, kept_strings, kept_tokens, strings_of
from ..native.table_cache import keep_unknown, model_with_tables
from .engine import numpy
from .token_offsets import TokenOffsets

if TYPE_CHECKING:
    from ..native._native import Encoder
    from .boundaries import SplitRequest
    from .engine import Ids, Offsets, Text
    from .reference_engine import ReferenceEngine

_NO_LIMIT = sys.maxsize // 2  # tokens: more than a text can have


class NativeEngine:
    """The engine in C++ (ggufbpe/tokenizer/engine.py describes the methods).

    `encode` and `count` are the methods of the compiled encoder themselves: a call through another function would take
    a tenth of the time of encoding a short text.
    """

    name: Literal["native"] = "native"

    def __init__(self, vocabulary: Vocabulary, cache_bytes: int) -> None:
        """Build the encoder, whose cache of words takes at most `cache_bytes`.

        `RuntimeError` if the compiled engine is not installed.
        """
        self._vocabulary = vocabulary
        self.encoder = _encoder(vocabulary, min(cache_bytes, sys.maxsize))
        self.encode = self.encoder.encode
        self.encode_plain = self.encoder.encode_plain
        self.count = self.encoder.count
        self.special_token_spans = self.encoder.special_token_spans
        self.release_memory = self.encoder.release_memory

    def encode_to_numpy(
        self, text: Text, add_special: bool, parse_special: bool, continues: bool, threads: int
    ) -> Ids:
        np = numpy()
        buffer = self.encoder.encode_to_buffer(text, add_special, parse_special, threads, continues)
        ids: Ids = np.frombuffer(buffer, np.int32)
        return ids

    def encode_with_offsets(
        self, text: Text, add_special: bool, parse_special: bool, continues: bool
    ) -> tuple[list[int], Sequence[tuple[int, int]]]:
        ids, spans = self._with_offsets(text, add_special, parse_special, continues, as_buffer=False)
        return ids, TokenOffsets(spans)

    def encode_with_offsets_to_numpy(
        self, text: Text, add_special: bool, parse_special: bool, continues: bool
    ) -> tuple[Ids, Offsets]:
        ids, spans = self._with_offsets(text, add_special, parse_special, continues, as_buffer=True)
        return numpy().frombuffer(ids, numpy().int32), numpy().frombuffer(spans, numpy().int64).reshape(-1, 2)

    def _with_offsets(
        self, text: Text, add_special: bool, parse_special: bool, continues: bool, *, as_buffer: bool
    ) -> tuple[Any, Any]:
        return self.encoder.encode_with_offsets(text, add_special, parse_special, continues, as_buffer)

    def encode_batch(
        self, texts: Iterable[Text], add_special: bool, parse_special: bool, threads: int
    ) -> list[list[int]]:
        return self._batch(texts, add_special, parse_special, threads, as_buffers=False)

    def encode_batch_to_numpy(
        self, texts: Iterable[Text], add_special: bool, parse_special: bool, threads: int
    ) -> list[Ids]:
        buffers = self._batch(texts, add_special, parse_special, threads, as_buffers=True)
        return [numpy().frombuffer(ids, numpy().int32) for ids in buffers]

    def _batch(
        self, texts: Iterable[Text], add_special: bool, parse_special: bool, threads: int, *, as_buffers: bool
    ) -> list[Any]:
        several = texts if isinstance(texts, (list, tuple)) else list(texts)
        return self.encoder.encode_batch(several, add_special, parse_special, threads, as_buffers)

    def pre_tokenize(self, text: Text) -> list[str]:
        words = self.encoder.words(text)
        return self._reference.pre_tokenize(text) if words is None else words

    def count_pre_tokens(self, text: Text) -> int:
        count = self.encoder.count_words(text)
        return self._reference.count_pre_tokens(text) if count is None else count

    def find_split_point(self, data: bytes, start: int, continues: bool) -> int:
        if not continues and not self._vocabulary.tokenizer_model.has_pre_tokenizer:
            return len(data)
        return self.encoder.cut(data, start)

    def split(self, text: str | bytes, request: SplitRequest) -> list[tuple[int, int]]:
        from .boundaries import compiled_levels

        return self.encoder.parts(
            text,
            min(request.size, _NO_LIMIT),
            min(request.overlap, _NO_LIMIT),
            compiled_levels(text, request.levels, request.keep),
            request.keep == "start",
            request.keep is False,
            request.parse_special,
            request.token_lengths,
            request.begins_words,
            request.ignores_first_space,
        )

    @cached_property
    def _reference(self) -> ReferenceEngine:
        """The reference engine, for the words of models that the compiled engine does not split into words."""
        from .reference_engine import ReferenceEngine

        return ReferenceEngine(self._vocabulary)


def _encoder(vocabulary: Vocabulary, cache_bytes: int) -> Encoder:
    from ..models.pretokenizers.compiled_splitter import compiled_splitter

    entry, model = vocabulary.pre_tokenizer, vocabulary.tokenizer_model
    names, merges = kept_tokens(vocabulary.token_to_id), kept_strings(vocabulary.merges)
    strings = names.strings, strings_of(vocabulary.tokens)
    splitter = compiled_splitter(entry) if model.has_pre_tokenizer else None

    def make(made: Any) -> Any:
        read = None if made else merges.strings
        return compiled().Encoder(vocabulary, *strings, read, splitter, *vocabulary.added, cache_bytes, made)

    options = (
        entry.byte_encode,
        entry.ignore_merges,
        entry.newline_runs,
        entry.prepend_space,
        entry.escape_whitespaces,
    )
    encoder: Encoder = model_with_tables(names, merges, options, make)
    for texts in (vocabulary.tokens, vocabulary.merges):
        keep_unknown(texts)
    return encoder
