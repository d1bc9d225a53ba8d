"""Makes variants of a tokenizer, which are cheap because they share all that does not change.

Most time goes into looking up merges and encoding words. Neither depends on how a text is split, so all variants with
the same merges share the ranks, and those with the same flags also share the ids of words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice
from typing import NamedTuple
from weakref import WeakKeyDictionary, ref

from ..._util.spelling import BYTE_TOKENS
from ...models.bpe.bpe_text import BytePairText
from ...models.bpe.merge import NO_MERGE, PairRanks, WordEncoder
from ...models.pretokenizers.families import Evidence, evidence
from ...models.pretokenizers.pretokenizer_evidence import telltales
from ...models.pretokenizers.registry import PreTokenizer
from ...models.pretokenizers.splitter import splitter
from ...models.tokenizer_model import NO_TOKEN, TextModel, unknown_id
from ...models.vocabulary import BYTE, Vocabulary
from ...models.word_cache import WordCache
from ...native.lazy_strings import as_dict
from ...tokenizer import Tokenizer
from ...tokenizer.engine import Text
from ...tokenizer.reference_engine import ReferenceEngine
from ...tokenizer.special_tokens import SpecialTokens, TextFragment
from ..doctor.texts_with_ids import with_exchange

_REMEMBERED, _REMEMBERED_LENGTH = 512, 1 << 16  # texts, and characters of each; at most about 300 MB
_REMEMBERED_WORDS = 1 << 18  # characters of long words; at most about 3 MB
_REMEMBERED_FRAGMENTS = 64  # texts; at most about 300 MB, if each character is a special token


class RanksById(PairRanks):
    """The rank of a pair is the id of its result, as in tiktoken, whatever the merges say."""

    def __init__(self, token_to_id: Mapping[str, int]) -> None:
        super().__init__([])
        self._token_to_id = as_dict(token_to_id)

    def __missing__(self, pair: tuple[str, str]) -> int:
        rank = self[pair] = self._token_to_id.get(pair[0] + pair[1], NO_MERGE)
        return rank


# Ways to encode words that are not the model's own.
BY_ID = "merged in the order of token ids"
UNKNOWN_FOR_BYTES = "the unknown token for what has no token, one for all in a row"
EACH_UNKNOWN = "the unknown token for each character that has no token"
BYTES_FOR_UNKNOWN = "the tokens of the bytes of what has no token"
SPACE_ONCE = "with a space before the text only, wherever special tokens are"
READ_AS_REFERENCE = "by the engine in Python, which supports more flags"


class Variant(NamedTuple):
    """All that ids depend on: vocabulary, text, flags, and what is done to the ids of the text afterwards."""

    vocabulary: Vocabulary
    text: bytes
    parse_special: bool
    way: str = ""  # one of those above, instead of the model's own
    head: tuple[int, ...] = ()  # BOS
    tail: tuple[int, ...] = ()  # EOS
    kept: tuple[int | None, int | None] = (None, None)  # the slice of the ids that is left
    shift: tuple[int, int] = (0, 0)  # (start, by): ids from `start` on are higher by `by`
    exchanged: tuple[tuple[int, int], ...] = ()  # pairs of tokens that have each other's ids

    def ids(self, variants: Variants | None = None) -> list[int]:
        """The ids, by a tokenizer of `variants` or by a new one."""
        return self.of(
            (variants or Variants(Tokenizer(self.vocabulary))).tokenizer(self.vocabulary, self.way)
        )

    def of(self, tokenizer: Tokenizer, continues: bool = False) -> list[int]:
        """The ids, by a tokenizer of this vocabulary and this way; `continues` as in `Tokenizer.encode`."""
        flags = {"add_special": False, "parse_special": self.parse_special}
        return self._around(tokenizer.encode(self.text, **flags, continues=continues))

    def start(self, variants: Variants, count: int) -> list[int]:
        """The first `count` of the ids; the text is not encoded much further."""
        tokenizer = variants.tokenizer(self.vocabulary, self.way)
        return self._around(encoded(tokenizer, self.text, self.parse_special).first(count))[:count]

    def _around(self, core: list[int]) -> list[int]:
        start, by = self.shift
        ids = [*self.head, *with_exchange(core, self.exchanged)[slice(*self.kept)], *self.tail]
        return [token + by if token >= start else token for token in ids] if by else ids


class _Splits:
    """A splitter that caches the words of short texts, for all variants that split the same way."""

    def __init__(self, entry: PreTokenizer, known: dict[tuple[str, str], list[str]]) -> None:
        self._entry = entry
        self._known = known

    def iterate(self, text: str) -> Iterable[str]:
        """The words of `text`, as `Splitter.iterate` gives them."""
        if len(text) > _REMEMBERED_LENGTH:
            return splitter(self._entry).iterate(text)
        key = self._entry.family, text
        if key not in self._known:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[key] = list(splitter(self._entry).iterate(text))
        return self._known[key]


class _Special(SpecialTokens):
    """Special tokens that cache the fragments of short texts; of all variants, those of few texts are kept."""

    def __init__(
        self, vocabulary: Vocabulary, known: dict[tuple[int, str | bytes, bool], list[TextFragment]]
    ) -> None:
        super().__init__(vocabulary)
        self._known = known

    def partition(self, source: str | bytes, parse_special: bool) -> list[TextFragment]:
        """The fragments of `source`, as `SpecialTokens.partition` gives them; the list must not be changed."""
        if len(source) > _REMEMBERED_LENGTH:
            return super().partition(source, parse_special)
        key = id(self), source, parse_special
        if key not in self._known:
            if len(self._known) >= _REMEMBERED_FRAGMENTS:
                self._known.clear()
            self._known[key] = super().partition(source, parse_special)
        return self._known[key]


class _Words(WordCache[WordEncoder]):
    """Ids of words that caches long words as well: a search encodes the same text again for most changes."""

    def __init__(self, encoder: WordEncoder) -> None:
        super().__init__(encoder)
        self._long: dict[str, tuple[int, ...]] = {}
        self._left = _REMEMBERED_WORDS

    def __missing__(self, word: str) -> tuple[int, ...]:
        if (known := self._long.get(word)) is not None:
            return known
        ids = super().__missing__(word)
        if word not in self:
            if self._left < len(word):
                self.forget_long()
            if self._left >= len(word):
                self._long[word] = ids
                self._left -= len(word)
        return ids

    def forget_long(self) -> None:
        """Empty the cache of long words."""
        self._long.clear()
        self._left = _REMEMBERED_WORDS


class Variants:
    """The variants of one tokenizer, and what they share."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        vocabulary = tokenizer.vocabulary
        self._splits: dict[tuple[str, str], list[str]] = {}
        self._fragments: dict[tuple[int, str | bytes, bool], list[TextFragment]] = {}
        self._vocabulary = vocabulary
        self._special: dict[int, tuple[Sequence[int], _Special]] = {}
        # Only a weak reference to the tokenizer itself: `_VARIANTS` keeps variants as long as the tokenizer exists.
        self._own_key, self._own = _heeded(vocabulary, ""), ref(tokenizer)
        self._tokenizers: dict[tuple[object, ...], Tokenizer] = {}
        plain_text = tokenizer.pipeline.plain_text
        self._shares_words = isinstance(plain_text, BytePairText)
        if not isinstance(plain_text, BytePairText):
            return
        words = plain_text.word_ids
        self._encoder = words.encoder
        # Keys contain the `id` of an object; the object is kept with the value so that it stays alive.
        self._ranks: dict[tuple[int, bool], tuple[Sequence[str], PairRanks]] = {}
        self._ranks[id(vocabulary.merges), False] = vocabulary.merges, words.encoder.ranks
        self._words = {
            (*flags_of_words(vocabulary.pre_tokenizer), id(vocabulary.merges), False): _Words(words.encoder)
        }

    def tokenizer(self, vocabulary: Vocabulary, way: str = "") -> Tokenizer:
        """The tokenizer of `vocabulary`, which has the same tokens, in one of the ways above."""
        if not self._shares_words:
            key = _heeded(vocabulary, way)
            own = self._own() if key == self._own_key else None
            if own is not None:
                return own
            if key not in self._tokenizers:
                self._tokenizers[key] = _made(vocabulary, way)
            return self._tokenizers[key]
        found = self._special.get(id(vocabulary.attributes))
        if found is None:
            found = vocabulary.attributes, _Special(vocabulary, self._fragments)
            self._special[id(vocabulary.attributes)] = found
        splits = _Splits(vocabulary.pre_tokenizer, self._splits)
        plain_text = vocabulary.tokenizer_model.text_model(vocabulary)
        if not isinstance(plain_text, BytePairText):
            raise TypeError(f"the tokenizer is {vocabulary.model}, not byte pair encoding")
        plain_text = plain_text.sharing(splits, self._words_of(vocabulary, way == BY_ID))
        return Tokenizer(vocabulary, ReferenceEngine(vocabulary, special=found[1], plain_text=plain_text))

    def forget_texts(self) -> None:
        """Empty the caches of words and fragments."""
        self._splits.clear()
        self._fragments.clear()
        for words in list(self._words.values()) if self._shares_words else ():  # other threads may add some
            words.forget_long()

    @property
    def has_doubtful_pre(self) -> bool:
        """Whether the pre-tokenizer may be wrong: it is the default one, or would never let some tokens form."""
        own = self._vocabulary
        return own.pre == "default" or bool(telltales(own.pre_tokenizer, own.token_to_id))

    @cached_property
    def evidence(self) -> Evidence:
        """Which pre-tokenizer the tokens point to; can take seconds the first time."""
        vocabulary = self._vocabulary
        pre = "" if vocabulary.tokenizer_model.ignores_pre else vocabulary.pre
        return evidence(vocabulary.tokens, vocabulary.merges, pre, vocabulary.architecture, vocabulary.name)

    def _words_of(self, vocabulary: Vocabulary, by_id: bool) -> _Words:
        key = (*flags_of_words(vocabulary.pre_tokenizer), id(vocabulary.merges), by_id)
        if key not in self._words:
            ranks = self._ranks_of(vocabulary, by_id)
            self._words[key] = _Words(self._encoder.with_ranks(vocabulary.pre_tokenizer, ranks))
        return self._words[key]

    def _ranks_of(self, vocabulary: Vocabulary, by_id: bool) -> PairRanks:
        merges = vocabulary.merges
        key = id(merges), by_id
        if key not in self._ranks:
            ranks = RanksById(vocabulary.token_to_id) if by_id else PairRanks(merges)
            self._ranks[key] = merges, ranks
        return self._ranks[key][1]


def _heeded(vocabulary: Vocabulary, way: str) -> tuple[object, ...]:
    """All that ids depend on except the tokens. The tokenizers keep the objects alive."""
    own = vocabulary
    objects = id(own.attributes), id(own.scores), id(own.charsmap)
    flags = own.add_space_prefix, own.remove_extra_whitespaces, own.lowercase, own.strip_accents
    return (*objects, *flags, own.special_ids["unk"], own.pre_tokenizer, way)


def _made(vocabulary: Vocabulary, way: str) -> Tokenizer:
    if way in ("", SPACE_ONCE):
        return SpacedTokenizer(vocabulary) if way else Tokenizer(vocabulary)
    pipeline = ReferenceEngine(vocabulary)
    if way != READ_AS_REFERENCE:
        pipeline = ReferenceEngine(vocabulary, plain_text=Fallback(pipeline.plain_text, vocabulary, way))
    return Tokenizer(vocabulary, pipeline)


class SpacedTokenizer(Tokenizer):
    """Puts a space before each text, unless it continues one."""

    def encode(self, text: Text, *, continues: bool = False, **flags: bool) -> list[int]:
        """The ids of the text, given as bytes, with the space."""
        return super().encode(b" " * (not continues) + bytes(text), continues=continues, **flags)  # type: ignore[arg-type]


class Fallback:
    """A `TextModel` around another one that encodes characters without a token in its own way."""

    def __init__(self, plain_text: TextModel, vocabulary: Vocabulary, way: str) -> None:
        self._plain_text = plain_text
        self._way = way
        self._attributes = vocabulary.attributes
        self._tokens = vocabulary.tokens
        self._unknown = unknown_id(vocabulary)
        self._bytes = [vocabulary.token_to_id.get(token, self._unknown) for token in BYTE_TOKENS]

    def words(self, fragment: bytes) -> list[str]:
        """The words of the other."""
        return self._plain_text.words(fragment)

    def runs(self, fragment: bytes) -> Iterator[Iterable[tuple[int, ...]]]:
        """The ids: all of them are one tuple."""
        yield (tuple(token for token, _, _ in self.spans(fragment)),)

    def spans(self, fragment: bytes) -> Iterator[tuple[int, int, int]]:
        """(id, start, end) of each token, in bytes of the fragment."""
        is_unknown = False
        for token, start, end in self._plain_text.spans(fragment):
            if self._way == BYTES_FOR_UNKNOWN and token == self._unknown:
                yield from ((self._bytes[fragment[at]], at, at + 1) for at in range(start, end))
            elif self._way == BYTES_FOR_UNKNOWN or not self._attributes[token] & BYTE:
                is_unknown = False
                yield token, start, end
            else:
                begins = not 0x80 <= int(self._tokens[token][3:5], 16) < 0xC0
                if not is_unknown or (begins and self._way == EACH_UNKNOWN):
                    yield self._unknown, start, end
                is_unknown = True

    def forget_words(self) -> None:
        """Empty the cache of words."""
        self._plain_text.forget_words()


def flags_of_words(entry: PreTokenizer) -> tuple[bool, ...]:
    """Return the flags of a pre-tokenizer that the ids of a word depend on (merge.py, WordEncoder)."""
    return entry.byte_encode, entry.ignore_merges, entry.newline_runs, entry.prepend_space


_VARIANTS: WeakKeyDictionary[Tokenizer, Variants] = WeakKeyDictionary()


def variants_of(tokenizer: Tokenizer) -> Variants:
    """The variants of a tokenizer, kept as long as the tokenizer is."""
    if tokenizer not in _VARIANTS:
        _VARIANTS[tokenizer] = Variants(tokenizer)
    return _VARIANTS[tokenizer]


class GrowingIds:
    """The ids of a text, encoded no further than needed."""

    def __init__(self, parts: Iterable[tuple[int, ...]]) -> None:
        self._rest: Iterator[int] = chain.from_iterable(parts)
        self._ids: list[int] = []
        self._step = 16

    def begin_with(self, ids: list[int]) -> bool:
        """Whether these begin with `ids`. Encodes little further than the first difference."""
        position = 0
        while position < len(ids):
            if position == len(self._ids) and not self._more():
                return False
            stop = min(len(self._ids), len(ids))
            if self._ids[position:stop] != ids[position:stop]:
                return False
            position = stop
        return True

    def are_more_than(self, count: int) -> bool:
        """Whether there are more than `count` ids."""
        while len(self._ids) <= count:
            if not self._more():
                return False
        return True

    def first(self, count: int) -> list[int]:
        """The first `count` ids."""
        self.are_more_than(count)
        return self._ids[:count]

    def all(self) -> list[int]:
        """All ids."""
        self._ids += self._rest
        return self._ids

    def _more(self) -> bool:
        before = len(self._ids)
        self._ids += islice(self._rest, self._step)
        self._step *= 2
        return len(self._ids) > before


def encoded(tokenizer: Tokenizer, text: bytes, parse_special: bool) -> GrowingIds:
    """The ids of `text` without BOS and EOS, encoded on demand; ids that fit nothing if the model cannot encode it."""
    if not tokenizer.vocabulary.tokenizer_model.has_pre_tokenizer:
        try:
            return GrowingIds([tuple(tokenizer.encode(text, add_special=False, parse_special=parse_special))])
        except ValueError:  # a byte without a token, a damaged charsmap
            return GrowingIds([(NO_TOKEN - 1,)])
    return GrowingIds(tokenizer.pipeline.encoded(text, False, parse_special))
