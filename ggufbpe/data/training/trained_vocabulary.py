"""The result of training: a vocabulary that encodes, decodes and can be saved.

If llama.cpp can hold the vocabulary, words are encoded by the encoder that reads its files (merge.py). The classic
forms, with an end-of-word symbol, an unknown token or a splitting that llama.cpp does not have, are encoded in this
module, by the same merging.

For a whole tokenizer, with BOS, offsets and traces, save the GGUF and open it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from types import MappingProxyType
from typing import NamedTuple

from ..._util.errors import printable
from ..._util.lazy import IMPORT_LOCK, cached_property
from ..._util.spelling import BYTE_OF, unescape_spaces
from ...gguf.metadata import Overrides
from ...hub.model_location import ModelLocation
from ...models.bpe.merge import CHAR_BYTES, NO_MERGE, PairRanks, WordEncoder, merge_steps
from ...models.pretokenizers.registry import PRE_TOKENIZERS
from ...models.special_ids import SPECIAL_IDS
from ...models.token_table import tokens_with
from ...models.vocabulary import BYTE, NORMAL, SPECIAL_TYPES, Vocabulary
from ...tokenizer.special_tokens import SpecialTokens
from .training_steps import TrainingStep
from .word_counts import Splitting


class LearnedStep(NamedTuple):
    """A merge as it was learned: `left` and `right`, a pair that then occurred `frequency` times, became `token`."""

    left: str
    right: str
    frequency: int
    token: str


class Form(NamedTuple):
    """How words are written for merging: everything except tokens and merges."""

    splitting: Splitting
    end_of_word: str | None = None
    unk: str | None = None
    bos: str | None = None
    eos: str | None = None
    adds_bos: bool = False
    model: str = "gpt2"  # tokenizer.ggml.model

    def why_not_llama_cpp(self) -> str | None:
        """Why llama.cpp cannot hold a vocabulary of this form; None if it can."""
        entry = self.splitting.entry
        if entry is None:
            return (
                f"llama.cpp has no pre-tokenizer that splits as {self.splitting.pre!r} does; give another pre"
            )
        if self.end_of_word is not None:
            return "llama.cpp's byte pair encoding has no end-of-word symbol"
        if self.unk is not None:
            return (
                "llama.cpp's byte pair encoding has no unknown token: it writes unknown characters as bytes"
            )
        if entry.byte_encode and self.splitting.units == "chars":
            return (
                f"{entry.name} writes text as bytes in llama.cpp; leave out units='chars', or give pre='gemma4', whose "
                "units are characters"
            )
        return None


class Seed(NamedTuple):
    """The model file that a vocabulary continues, and overrides of its keys."""

    model: ModelLocation
    overrides: Overrides = MappingProxyType({})


class TrainedVocabulary:
    """Tokens and merges learned from texts.

    >>> from ggufbpe import train
    >>> vocabulary = train(["aaabdaaabac"], vocab_size=259, pre="none")
    >>> vocabulary.merges
    [('a', 'a'), ('a', 'b'), ('aa', 'ab')]
    >>> [vocabulary.tokens[token] for token in vocabulary.encode("aaabdaaabac")]
    ['aaab', 'd', 'aaab', 'a', 'c']

    `tokens` and `attributes` are indexed by token id; tokens are written as in a GGUF, bytes in GPT-2's alphabet.
    `merges` are pairs of tokens by rank, `trace` has a `LearnedStep` for each one learned, and `steps` a `TrainingStep`
    for each one whose circumstances were recorded. `word_count` is the number of distinct words that they were learned
    from. `form` says how words are written for merging, and `seed` the model file that is continued; None if none is.
    """

    def __init__(
        self,
        tokens: list[str],
        attributes: list[int],
        merges: list[tuple[str, str]],
        trace: list[LearnedStep],
        form: Form,
        word_count: int = 0,
        seed: Seed | None = None,
        steps: Sequence[TrainingStep] = (),
    ) -> None:
        self.tokens = tokens
        self.attributes = attributes
        self.merges = merges
        self.trace = trace
        self.form = form
        self.word_count = word_count
        self.seed = seed
        self.steps = list(steps)

    def encode(self, text: str) -> list[int]:
        """The ids of `text`. Special tokens in it are recognized, and none is added.

        `ValueError` for a character that is not a token if there is no unknown token.
        """
        ids: list[int] = []
        for token, words in self._fragments(text):
            if token is not None:
                ids.append(token)
            ids += chain.from_iterable(map(self.encode_word, words))
        return ids

    def tokenize(self, text: str) -> list[str]:
        """The tokens of `text`. Without an unknown token, a character that is not a token stands for itself.

        >>> from ggufbpe import train
        >>> train(["low lower"], vocab_size=7, pre="words", units="chars").tokenize("slow")
        ['s', 'low']
        """
        tokens: list[str] = []
        for token, words in self._fragments(text):
            if token is not None:
                tokens.append(self.tokens[token])
            if self.form.why_not_llama_cpp() is None:
                tokens += (self.tokens[token_id] for word in words for token_id in self.encode_word(word))
            else:
                tokens += chain.from_iterable(map(self._symbols, words))
        return tokens

    def _fragments(self, text: str) -> Iterator[tuple[int | None, Iterable[str]]]:
        """Special tokens, and the words between them."""
        split = self.form.splitting
        for token, start, end in self.special.partition(text, parse_special=True):
            if token is not None:
                yield token, ()
            else:
                yield None, (word for word in split.words(text[start:end]) if not split.drops(word))

    def encode_word(self, word: str) -> tuple[int, ...]:
        """The ids of one word, which is not split further. The end-of-word symbol is added."""
        ids = self._cache.get(word)
        if ids is None:
            ids = self._cache[word] = (
                self._encoder.ids(word)
                if self.form.why_not_llama_cpp() is None
                else tuple(map(self.id_of, self._merged(word)))
            )
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """The text of `ids`; bytes that are not UTF-8 become U+FFFD, the end of a word a space.

        White space that the splitting dropped does not come back. `ValueError` for ids out of range.
        """
        return self.decode_bytes(ids).decode("utf-8", "replace")

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """The bytes that `ids` stand for."""
        data = b"".join(map(self.token_bytes, ids))
        return data.removesuffix(b" ") if self.form.end_of_word is not None else data

    def token_bytes(self, token: int) -> bytes:
        """The bytes that a token stands for."""
        if not 0 <= token < len(self.tokens):
            raise ValueError(
                f"token id {token} is out of range: the vocabulary has ids 0 to {len(self.tokens) - 1}"
            )
        return token_bytes(self.tokens[token], self.attributes[token], self.form)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `path`: a GGUF (.gguf), all of it as JSON (.json), or the merges (.txt).

        `ValueError` if llama.cpp cannot hold the vocabulary; `OSError` if the file cannot be written. An existing
        file is replaced in one step. Warns (`GGUFWarning`) if a GGUF has to name BOS and EOS without a special token
        for them.
        """
        with IMPORT_LOCK:
            from .save_vocabulary import save

        save(self, path)

    def as_vocabulary(self) -> Vocabulary:
        """The parts of a GGUF's vocabulary that special tokens and words need."""
        return Vocabulary(
            model=self.form.model,
            pre=self.form.splitting.pre,
            pre_tokenizer=PRE_TOKENIZERS.get(self.form.splitting.pre, PRE_TOKENIZERS["gpt-2"]),
            tokens=self.tokens,
            token_to_id=self.token_to_id,
            attributes=self.attributes,
            merges=[f"{left} {right}" for left, right in self.merges],
            special_ids=dict.fromkeys(name for name, _, _ in SPECIAL_IDS),
            eog_ids=frozenset(),
            special_token_ids=tuple(tokens_with(self.attributes, SPECIAL_TYPES)),
        )

    @cached_property
    def token_to_id(self) -> dict[str, int]:
        """The id of each token."""
        return {token: index for index, token in enumerate(self.tokens)}

    def __repr__(self) -> str:
        return f"<TrainedVocabulary {self.form.splitting.pre} of {len(self.tokens)} tokens>"

    @cached_property
    def special(self) -> SpecialTokens:
        """Finds special tokens in texts."""
        return SpecialTokens(self.as_vocabulary())

    @cached_property
    def ranks(self) -> PairRanks:
        """The rank of each pair that is merged."""
        return _Ranks(self.merges)

    @cached_property
    def _encoder(self) -> WordEncoder:
        vocabulary = self.as_vocabulary()
        return WordEncoder(vocabulary.pre_tokenizer, vocabulary.token_to_id, vocabulary.merges)

    @cached_property
    def _cache(self) -> dict[str, tuple[int, ...]]:
        return {}

    def first_symbols(self, word: str) -> list[str]:
        """The symbols of a word of a classic form before merging, its end among them."""
        end = self.form.end_of_word
        return self.form.splitting.symbols(word) + ([] if end is None else [end])

    def id_of(self, symbol: str) -> int:
        """The id of a symbol, or that of the unknown token; `ValueError` if there is neither."""
        token = self.token_to_id.get(symbol)
        if token is None and self.form.unk is not None:
            token = self.token_to_id.get(self.form.unk)
        if token is None:
            raise ValueError(
                f"{printable(symbol)} is not in the learned alphabet; train with it (alphabet=…), or "
                "with an unknown token (unk='<unk>')"
            )
        return token

    def _symbols(self, word: str) -> list[str]:
        """A word of a classic form after all merges, with the unknown token for symbols that are not tokens."""
        symbols = self._merged(word)
        unk = self.form.unk
        return symbols if unk is None else [each if each in self.token_to_id else unk for each in symbols]

    def _merged(self, word: str) -> list[str]:
        symbols = self.first_symbols(word)
        for _ in merge_steps(symbols, self.ranks):
            pass
        return list(filter(None, symbols))


class _Ranks(PairRanks):
    """Ranks of pairs that may have spaces in them."""

    def __init__(self, merges: list[tuple[str, str]]) -> None:
        super().__init__([])
        self.update(zip(reversed(merges), range(len(merges) - 1, -1, -1)))

    def __missing__(self, pair: tuple[str, str]) -> int:
        return NO_MERGE


def token_bytes(token: str, attribute: int, form: Form) -> bytes:
    """The bytes that a token stands for."""
    byte = BYTE_OF.get(token[:3] + token[3:].upper())
    if attribute & BYTE and byte is not None:
        return bytes([byte])
    if not attribute & NORMAL:
        return token.encode()
    ending = b""
    if form.end_of_word is not None and token.endswith(form.end_of_word):
        token, ending = token.removesuffix(form.end_of_word), b" "
    entry = form.splitting.entry
    if entry is not None and entry.escape_whitespaces:
        token = unescape_spaces(token)
    if form.splitting.units == "chars":
        return token.encode() + ending
    return b"".join(bytes([CHAR_BYTES[c]]) if c in CHAR_BYTES else c.encode() for c in token) + ending
