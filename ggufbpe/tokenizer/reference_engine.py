"""The reference engine: the steps from text to ids in plain Python, one by one, which `explain` traces.

    text -> special_tokens.py -> fragments -> plain ones: the text model (models/) -> ids

Source of the order of steps: src/llama-vocab.cpp, llama_vocab::impl::tokenize.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Literal

from .._util import utf8
from .._util.arguments import checked_flag
from .._util.lazy import cached_property
from .engine import Text, numpy
from .special_tokens import SpecialTokens

if TYPE_CHECKING:
    from ..models.tokenizer_model import TextModel
    from ..models.vocabulary import Vocabulary
    from .boundaries import SplitRequest
    from .engine import Ids, Offsets

BYTES_OF_A_WORD = 256  # in the cache, with its ids and dictionary entry; most take less


class ReferenceEngine:
    """The engine in plain Python (ggufbpe/tokenizer/engine.py describes the interface).

    One thread encodes each text.
    """

    name: Literal["reference"] = "reference"

    def __init__(
        self,
        vocabulary: Vocabulary,
        cache_bytes: int | None = None,
        *,
        special: SpecialTokens | None = None,
        plain_text: TextModel | None = None,
    ) -> None:
        """The cache of words takes about `cache_bytes`; None means no bound.

        `special` and `plain_text` replace the steps that the vocabulary itself asks for.
        """
        self.vocabulary = vocabulary
        self._most_words = None if cache_bytes is None else cache_bytes // BYTES_OF_A_WORD
        self._prefix_ids, self._suffix_ids = vocabulary.added
        self._given_special, self._given_plain_text = special, plain_text

    @cached_property
    def special(self) -> SpecialTokens:
        """The step from text to fragments."""
        return self._given_special or SpecialTokens(self.vocabulary)

    @cached_property
    def plain_text(self) -> TextModel:
        """The step from plain fragments to ids."""
        return self._given_plain_text or self.vocabulary.tokenizer_model.text_model(
            self.vocabulary, self._most_words
        )

    @cached_property
    def _continued_text(self) -> TextModel:
        """The text model for a text that continues another one, without a space in front."""
        vocabulary = self.vocabulary._replace(add_space_prefix=False)
        return self.vocabulary.tokenizer_model.text_model(vocabulary, self._most_words)

    def _text_model_at(self, start: int, continues: bool) -> TextModel:
        """The text model of the fragment that begins at `start`."""
        has_prefix = self.vocabulary.add_space_prefix
        return self._continued_text if continues and has_prefix and start == 0 else self.plain_text

    def release_memory(self) -> None:
        """Empty the cache of words."""
        if "plain_text" in vars(self):
            self.plain_text.forget_words()
        vars(self).pop("_continued_text", None)

    def source(self, text: Text) -> bytes:
        """The bytes of `text`, which places in fragments count."""
        return utf8.to_bytes(text)

    # ---- the methods of an engine ---------------------------------------------------------------

    def encode(self, text: Text, add_special: bool, parse_special: bool, continues: bool, /) -> list[int]:
        return list(chain.from_iterable(self.encoded(text, add_special, parse_special, continues)))

    def encode_to_numpy(
        self, text: Text, add_special: bool, parse_special: bool, continues: bool, threads: int
    ) -> Ids:
        ids: Ids = numpy().array(self.encode(text, add_special, parse_special, continues), numpy().int32)
        return ids

    def encode_with_offsets_to_numpy(
        self, text: Text, add_special: bool, parse_special: bool, continues: bool
    ) -> tuple[Ids, Offsets]:
        ids, spans = self.encode_with_offsets(text, add_special, parse_special, continues)
        return numpy().array(ids, numpy().int32), numpy().array(spans, numpy().int64).reshape(-1, 2)

    def encode_batch(
        self, texts: Iterable[Text], add_special: bool, parse_special: bool, threads: int
    ) -> list[list[int]]:
        return [self.encode(text, add_special, parse_special, False) for text in texts]

    def encode_batch_to_numpy(
        self, texts: Iterable[Text], add_special: bool, parse_special: bool, threads: int
    ) -> list[Ids]:
        return [self.encode_to_numpy(text, add_special, parse_special, False, threads) for text in texts]

    def count(
        self, text: Text, add_special: bool, parse_special: bool, threads: int, continues: bool, /
    ) -> int:
        return sum(map(len, self.encoded(text, add_special, parse_special, continues)))

    def encode_plain(self, text: str) -> Iterator[int]:
        return chain.from_iterable(chain.from_iterable(self.plain_text.runs(text.encode())))

    def pre_tokenize(self, text: Text) -> list[str]:
        return self.plain_text.words(self.source(text))

    def count_pre_tokens(self, text: Text) -> int:
        return len(self.pre_tokenize(text))

    def find_split_point(self, data: bytes, start: int, continues: bool) -> int:
        """Return `len(data)`: this engine knows no places where a text can be split."""
        return len(data)

    def split(self, text: str | bytes, request: SplitRequest) -> list[tuple[int, int]]:
        from .splitting import TextSplitter, character_spans

        data = utf8.to_bytes(text)
        spans = TextSplitter(self, data, request).spans()
        return character_spans(data, spans) if isinstance(text, str) else spans

    def special_token_spans(self, data: bytes, parse_special: bool) -> list[tuple[int, int]]:
        return self.special.places(data, parse_special)

    # ---- the steps ------------------------------------------------------------------------------

    def encoded(
        self, text: Text, add_special: bool, parse_special: bool, continues: bool = False
    ) -> Iterator[tuple[int, ...]]:
        """The ids, in tuples: one per word or special token."""
        _check_flags(add_special, parse_special, continues)
        return chain.from_iterable(self._runs(text, add_special, parse_special, continues))

    def _runs(
        self, text: Text, add_special: bool, parse_special: bool, continues: bool
    ) -> Iterator[Iterable[tuple[int, ...]]]:
        """Yield ids in runs of words: a generator of single words would take longer than their lookup."""
        source = self.source(text)
        if add_special:
            yield (tuple(self._prefix_ids),)
        for token, start, end in self.special.partition(source, parse_special):
            if token is not None:
                yield ((token,),)
            else:
                yield from self._text_model_at(start, continues).runs(source[start:end])
        if add_special:
            yield (tuple(self._suffix_ids),)

    def encode_with_offsets(
        self, text: Text, add_special: bool, parse_special: bool, continues: bool
    ) -> tuple[list[int], list[tuple[int, int]]]:
        _check_flags(add_special, parse_special, continues)
        source = self.source(text)
        ids = [*self._prefix_ids] if add_special else []
        spans = [(0, 0)] * len(ids)
        for token, start, end in self.special.partition(source, parse_special):
            if token is not None:
                ids.append(token)
                spans.append((start, end))
                continue
            for part, first, last in self._text_model_at(start, continues).spans(source[start:end]):
                ids.append(part)
                spans.append((start + first, start + last))
        if add_special:
            ids += self._suffix_ids
            spans += [(len(source), len(source))] * len(self._suffix_ids)
        return ids, spans


def _check_flags(add_special: object, parse_special: object, continues: object) -> None:
    """Raise `TypeError` for what the compiled engine does not take for a bool either."""
    checked_flag("add_special", add_special)
    checked_flag("parse_special", parse_special)
    checked_flag("continues", continues)
