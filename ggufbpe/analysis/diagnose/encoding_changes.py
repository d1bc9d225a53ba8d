"""Defines `Encoding`, all that turns a text into ids, and changes of it that both searches of diagnose try.

A change is a function that takes an encoding and returns a changed one, with the cause added. Those here are of the
pre-tokenizer, merges, flags, types of tokens and numbers of tokens; model_changes.py and text_changes.py have others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from ...models.pretokenizers.registry import PRE_TOKENIZERS, PreTokenizer
from ...models.special_ids import STRIPS_MASK, takes_space_behind
from ...models.vocabulary import LSTRIP, NORMAL, RSTRIP, USER_DEFINED, Vocabulary
from ...tokenizer import Tokenizer
from ..doctor.marker_tokens import MarkerTokens
from ..doctor.texts_with_ids import TextWithIds
from . import causes
from .cause import Cause
from .text_changes import TextChange
from .variants import BY_ID, Variant, flags_of_words


class Encoding(NamedTuple):
    """All that turns a text into ids, with the causes of each difference from the model's own encoding."""

    vocabulary: Vocabulary
    parse_special: bool
    way: str = ""  # how words become ids, if not in the model's own way (variants.py)
    causes: tuple[Cause, ...] = ()
    texts: tuple[TextChange, ...] = ()  # made to the text before it is encoded
    head: tuple[int, ...] | None = None  # ids before those of the text; None for what the vocabulary adds
    tail: tuple[int, ...] | None = None  # ids after those of the text, likewise
    shift: tuple[int, int] = (0, 0)  # `shift` and `exchanged` are as in `Variant`
    exchanged: tuple[tuple[int, int], ...] = ()

    def with_cause(self, cause: Cause, **fields: object) -> Encoding:
        """Return a copy of this encoding with `fields` changed and `cause` added."""
        return self._replace(causes=(*self.causes, cause), **fields)  # type: ignore[arg-type]

    def around(self, add_special: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the ids that are put before and after those of a text, such as BOS and EOS."""
        before, behind = self.vocabulary.added if add_special else ([], [])
        return (
            tuple(before) if self.head is None else self.head,
            tuple(behind) if self.tail is None else self.tail,
        )

    def variant(self, text: bytes, add_special: bool) -> Variant:
        """Return the `Variant` that encodes `text` in this way."""
        for change in self.texts:
            text = change.apply(text)
        head, tail = self.around(add_special)
        variant = Variant(self.vocabulary, text, self.parse_special, self.way, head, tail)
        return variant._replace(shift=self.shift, exchanged=self.exchanged)


EncodingChange = Callable[[Encoding], Encoding]


def with_parse_special(encoding: Encoding) -> Encoding:
    """With parsing of special tokens switched on or off."""
    parsed = not encoding.parse_special
    return encoding.with_cause(causes.parse_special(parsed), parse_special=parsed)


def with_ignore_merges(encoding: Encoding) -> Encoding:
    """With ignore_merges switched on or off."""
    entry = encoding.vocabulary.pre_tokenizer
    vocabulary = encoding.vocabulary._replace(
        pre_tokenizer=entry._replace(ignore_merges=not entry.ignore_merges)
    )
    return encoding.with_cause(causes.ignore_merges(encoding.vocabulary), vocabulary=vocabulary)


def with_merges_by_id(encoding: Encoding) -> Encoding:
    """With words merged in the order of token ids."""
    return encoding.with_cause(causes.merges_by_id(), way=BY_ID)


def with_text_change(change: TextChange) -> EncodingChange:
    """A change of the text before it is encoded."""
    return lambda encoding: encoding.with_cause(change.cause, texts=(*encoding.texts, change))


def with_merges(other: Tokenizer) -> EncodingChange:
    """A change to the merges of another model with the same tokens."""

    def change(encoding: Encoding) -> Encoding:
        vocabulary = encoding.vocabulary._replace(merges=other.vocabulary.merges)
        return encoding.with_cause(causes.merges_of(other.name), vocabulary=vocabulary)

    return change


def tokens_to_retype(
    parsed: Iterable[int], plain: Iterable[int], words: Iterable[int]
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return which tokens to take for special ones and which for plain text, the likeliest pair first.

    `parsed` and `plain` may be either kind. The given ids have the tokens of `words`, which may be plain text as well.
    """
    some, others = tuple(sorted(parsed)), tuple(sorted(plain))
    with_words = tuple(sorted({*others, *words}))
    pairs = [(some, others), (some, ()), ((), others), (some, with_words), ((), with_words)]
    return [pair for pair in dict.fromkeys(pairs) if any(pair)]


def types_of_parsed(
    markers: MarkerTokens, parsed: Collection[int], base: Encoding, compared: Collection[TextWithIds]
) -> dict[int, int]:
    """Return the attributes of markers that are `parsed`, and of those near them that no text has as plain text.

    `base` tells whether special tokens are parsed; without that, only user-defined tokens are.
    """
    tokens, found = base.vocabulary.tokens, {}
    for token, kind in markers.types_of(parsed).items():
        written = tokens[token].encode()
        if token in parsed or not any(written in each.text and token not in each.ids for each in compared):
            found[token] = kind if base.parse_special else USER_DEFINED
    return found


def with_shift(shift: tuple[int, int]) -> EncodingChange:
    """A change that renumbers tokens: `shift` is (start, by), and ids from `start` on become higher by `by`."""
    return lambda encoding: encoding.with_cause(causes.shifted(*shift), shift=shift)


def with_exchanged(vocabulary: Vocabulary, pairs: tuple[tuple[int, int], ...]) -> EncodingChange:
    """A change after which the tokens of each pair, which `vocabulary` has, have each other's ids."""
    return lambda encoding: encoding.with_cause(causes.exchanged(vocabulary, pairs), exchanged=pairs)


def with_types(vocabulary: Vocabulary, types: dict[int, int]) -> EncodingChange:
    """A change that gives tokens other attributes."""
    attributes = list(vocabulary.attributes)
    for token, attribute in types.items():
        attributes[token] = attribute
        if attribute != NORMAL and takes_space_behind(vocabulary.name, vocabulary.tokens[token]):
            attributes[token] |= RSTRIP
    special = tuple(
        sorted(token for token in {*vocabulary.special_token_ids, *types} if attributes[token] != NORMAL)
    )
    cause = causes.special_token_types(vocabulary, types)

    def change(encoding: Encoding) -> Encoding:
        changed = encoding.vocabulary._replace(attributes=attributes, special_token_ids=special)
        if changed.first_attributes:  # by which user-defined tokens are found in plain text
            changed = changed._replace(first_attributes=attributes)
        return encoding.with_cause(cause, vocabulary=changed)

    return change


def with_pre(names: list[str], has_masks: bool) -> EncodingChange:
    """A change to pre-tokenizers that give the same ids. The cause is worded once it is known which ones fit.

    `has_masks` tells whether texts may contain "<mask>".
    """
    entry = PRE_TOKENIZERS[names[0]]
    cause = Cause("pre_type", {"names": names}, "")

    def change(encoding: Encoding) -> Encoding:
        vocabulary = encoding.vocabulary._replace(pre=entry.name, pre_tokenizer=entry)
        if has_masks and "<mask>" in vocabulary.token_to_id:
            mask = vocabulary.token_to_id["<mask>"]
            attributes = list(vocabulary.attributes)
            attributes[mask] &= ~LSTRIP
            attributes[mask] |= LSTRIP * (entry.name in STRIPS_MASK)
            vocabulary = vocabulary._replace(attributes=attributes)
        return encoding.with_cause(cause, vocabulary=vocabulary)

    return change


def acts(entry: PreTokenizer) -> tuple[object, ...]:
    """Everything in an entry that ids depend on."""
    adds_bos = entry.add_bos or entry.always_add_bos
    return (entry.family, *flags_of_words(entry), entry.escape_whitespaces, adds_bos)
