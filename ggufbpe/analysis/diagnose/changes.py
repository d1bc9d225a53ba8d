"""Lists what the search tries: ways to split off BOS and EOS, changes of the text, and changes of the model.

This module encodes nothing; cause_search.py does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import takewhile
from typing import NamedTuple

from ..._util import utf8
from ..._util.spelling import SPACE
from ...models.bpe.merge import CHAR_BYTES
from ...models.pretokenizers.registry import PRE_TOKENIZERS
from ...models.special_ids import STRIPS_MASK
from ...models.vocabulary import BYTE, NORMAL, SPECIAL_TYPES, Vocabulary
from ...tokenizer import Tokenizer
from ..doctor.marker_tokens import find_marker_tokens
from ..doctor.texts_with_ids import TextWithIds
from . import causes
from .cause import Cause
from .encoding_changes import (
    Encoding,
    EncodingChange,
    acts,
    tokens_to_retype,
    types_of_parsed,
    with_ignore_merges,
    with_merges,
    with_merges_by_id,
    with_parse_special,
    with_pre,
    with_types,
)
from .framing import name_of_added
from .id_evidence import Target, is_lossless, shifts
from .model_changes import RARE, model_changes
from .text_changes import CHARSMAP_MISSING, OF_FLAGS, TEXT_CHANGES, TextChange, space_prefix
from .variants import Variants, variants_of

_HAS_PIECE = SPECIAL_TYPES | NORMAL | BYTE
MOST_CHANGES = 2  # of text and encoding; BOS, EOS and limits come on top


class ChangedText(NamedTuple):
    """A text, and the changes that led to it."""

    data: bytes
    key: bytes  # as decoding gives it back
    causes: tuple[Cause, ...] = ()


class Changes:
    """What may differ with one model."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        text: bytes,
        ids: list[int],
        add_special: bool,
        parse_special: bool,
        cause: Cause | None = None,
        merges_of: Sequence[Tokenizer] = (),
    ) -> None:
        self.vocabulary = tokenizer.vocabulary
        self.variants: Variants = variants_of(tokenizer)
        self.ids = ids
        self.add_special = add_special
        self.base = Encoding(self.vocabulary, parse_special)
        # why this model is tried, if it is not the one that was given
        self.always = (cause,) if cause else ()
        self.merges_of = merges_of
        self.text = ChangedText(text, self.key(text))
        self.tokenizer = tokenizer
        self.markers = find_marker_tokens(tokenizer)
        self._pipeline = tokenizer.pipeline
        self.ours = tokenizer.encode(text, add_special=add_special, parse_special=parse_special)
        self.lossless = is_lossless(self.vocabulary)
        self.targets = [
            target for shift in ((0, 0), *shifts(self.ours, ids)) for target in self._targets(ids, shift)
        ]

    # ---- targets ----------------------------------------------------------------------------------------

    def _targets(self, ids: list[int], shift: tuple[int, int]) -> Iterator[Target]:
        """Each way to split BOS and EOS off `ids`, shifted back, that leaves ids of this vocabulary."""
        vocabulary, (start, by) = self.vocabulary, shift
        found = (causes.shifted(start, by),) if by else ()
        ids = [token - by if token - by >= start else token for token in ids]
        known = [0 <= token < len(vocabulary.tokens) for token in ids]
        pieces = [self.tokenizer.token_to_piece(token) if good else b"" for token, good in zip(ids, known)]
        certain = all(self._is_sure(token) for token in {*ids} if 0 <= token < len(vocabulary.tokens))
        data = b"".join(pieces)
        for head in self._ends(ids, "bos"):
            for tail in self._ends(ids[len(head) :][::-1], "eos"):
                first, last = len(head), len(ids) - len(tail)
                if not all(known[first:last]):
                    continue
                before, behind = sum(map(len, pieces[:first])), sum(map(len, pieces[last:]))
                core = data[before : len(data) - behind]
                text = self._unescaped(core) if self.lossless and certain else None
                yield Target(head, ids[first:last], tail[::-1], text, shift, found)

    def _is_sure(self, token: int) -> bool:
        """Whether a token would decode to the same text whatever its type."""
        attribute, written = self.vocabulary.attributes[token], self.vocabulary.tokens[token]
        if self.vocabulary.pre_tokenizer.byte_encode and attribute & NORMAL:
            return CHAR_BYTES.keys() >= set(written)
        return attribute & _HAS_PIECE != 0

    def _ends(self, ids: list[int], name: str) -> Iterator[tuple[int, ...]]:
        """What may be BOS at the beginning of `ids` (or EOS, if `ids` are reversed)."""
        yield ()
        special = self.vocabulary.special_ids[name_of_added(self.vocabulary, name)]
        if not ids or (ids[0] != special and self._is_text(ids[0])):
            return
        is_known = 0 <= ids[0] < len(self.vocabulary.tokens)
        if is_known or self.base.around(self.add_special)[name != "bos"]:
            yield (ids[0],)
        if ids[0] == special and ids[1:2] == [special]:
            yield (ids[0], ids[0])
        padding = tuple(takewhile(ids[0].__eq__, ids))
        if is_known and (len(padding) > 1 or ids[0] == self.vocabulary.special_ids.get("pad")):
            if len(padding) > 1 + (ids[0] == special):
                yield padding
            if ids[0] != special and ids[len(padding) : len(padding) + 1] == [special]:
                yield (*padding, ids[len(padding)])

    def _is_text(self, token: int) -> bool:
        """Whether a token is ordinary text by its type, and by what it says."""
        kinds = self.vocabulary.attributes
        return 0 <= token < len(kinds) and not kinds[token] & SPECIAL_TYPES and token not in self.markers

    def key(self, data: bytes) -> bytes:
        """A text as the model's ids decode to it."""
        return self._unescaped(utf8.decode(data).encode("utf-8", "surrogatepass"))

    def _unescaped(self, data: bytes) -> bytes:
        escapes = self.vocabulary.pre_tokenizer.escape_whitespaces
        return data.replace(SPACE.encode(), b" ") if escapes else data

    # ---- changes of the text ----------------------------------------------------------------------------

    @cached_property
    def _text_changes(self) -> list[TextChange]:
        spaces = space_changes_of(self.tokenizer, [self.text.data], self.base.parse_special)
        return text_changes_of(self.vocabulary) + spaces

    @cached_property
    def texts(self) -> list[ChangedText]:
        """The text with one change."""
        return list(self._changed(self.text))

    def _texts_of_two(self) -> Iterator[ChangedText]:
        """The text with two changes, those that can be the text of the ids."""
        for text in self.texts:
            yield from filter(self._fits, self._changed(text))

    def _changed(self, text: ChangedText) -> Iterator[ChangedText]:
        """`text` with each further change that has an effect; changes of one cause with equal effects are one."""
        found: dict[tuple[str, bytes], list[TextChange]] = {}
        before = [cause.id for cause in text.causes]
        for change in self._text_changes:
            if change.cause.id not in before:
                data = change.apply(text.data)
                if data != text.data and data != self.text.data:
                    found.setdefault((change.cause.id, data), []).append(change)
        for (_, data), changes in found.items():
            first = changes[0].cause
            also = [change.cause.detail["change"] for change in changes[1:]]
            cause = first._replace(detail={**first.detail, "also": also}) if also else first
            yield ChangedText(data, self.key(data), (*text.causes, cause))

    def _fits(self, text: ChangedText) -> bool:
        return any(target.fits(text.key) for target in self.targets)

    # ---- changes of the encoding ------------------------------------------------------------------------

    @cached_property
    def _small_changes(self) -> list[tuple[str, EncodingChange]]:
        """All changes except those of the pre-tokenizer, with their causes."""
        changes: list[tuple[str, EncodingChange]] = []
        parse, source = self.base.parse_special, self._pipeline.source(self.text.data)
        partition = self._pipeline.special.partition
        if partition(source, parse) != partition(source, not parse):
            changes.append(("parse_special", with_parse_special))
        changes += [("special_token_types", change) for change in self._type_changes(source)]
        if not self.vocabulary.tokenizer_model.has_pre_tokenizer:
            return changes + list(model_changes(self.vocabulary, self.merges_of, self.ids))
        changes.append(("ignore_merges", with_ignore_merges))
        changes.append(("merges", with_merges_by_id))
        changes += [("merges", with_merges(other)) for other in self.merges_of]
        return changes

    def _type_changes(self, source: bytes) -> Iterator[EncodingChange]:
        """Changes to the types that special tokens of the text must have to give the ids."""
        fragments = self._pipeline.special.partition(source, self.base.parse_special)
        ours = {token for token, _, _ in fragments if token is not None}
        done = set()
        for target in self.targets:
            theirs = set(target.core)
            words = filter(self.markers.is_word, ours & theirs)
            parsed = filter(self._only_parsed, (token for token in theirs - ours if token in self.markers))
            for key in tokens_to_retype(parsed, ours - theirs, words):
                if key not in done:
                    done.add(key)
                    compared = [TextWithIds(self.text.data, target.core)]
                    types = types_of_parsed(self.markers, key[0], self.base, compared)
                    yield with_types(self.vocabulary, types | dict.fromkeys(key[1], NORMAL))

    def _only_parsed(self, token: int) -> bool:
        """Whether the text of a token occurs in the text, but encoding it as plain text does not produce it."""
        written = self.vocabulary.tokens[token].encode()
        if written not in self.text.data:
            return False
        if self._is_sure(token) and self.tokenizer.token_to_piece(token) != written:
            return False  # byte-level: it decodes to another text
        if self.vocabulary.tokenizer_model.has_pre_tokenizer:
            return list(self._pipeline.encode_plain(self.vocabulary.tokens[token])) != [token]
        try:
            found = self.tokenizer.encode(written, add_special=False, parse_special=False)
        except ValueError:  # a byte without a token
            return True
        return len([each for each in found if each >= 0 and self.vocabulary.tokens[each] != SPACE]) > 1

    @cached_property
    def _pre_changes(self) -> list[EncodingChange]:
        """A change to each other pre-tokenizer; those that give the same ids are one change."""
        has_masks = b"<mask>" in self.text.data
        return [with_pre(names, has_masks) for names in groups_of_pre(self.vocabulary, has_masks)]

    @cached_property
    def encodings(self) -> list[Encoding]:
        """The model with one change."""
        return [*self._with_small_changes(self.base), *(change(self.base) for change in self._pre_changes)]

    def _with_small_changes(self, base: Encoding) -> list[Encoding]:
        return [change(base) for _, change in self._small_changes]

    def _encodings_of_two(self, base: Encoding) -> Iterator[Encoding]:
        small, pre_changes = self._small_changes, [] if base.causes else self._pre_changes
        for at, (cause, change) in enumerate(small):
            for pre in pre_changes:
                yield change(pre(base))
            for other, second in small[at + 1 :]:
                if other != cause and not {other, cause} <= RARE:
                    yield second(change(base))


def text_changes_of(vocabulary: Vocabulary) -> list[TextChange]:
    """Return the changes of a text that a vocabulary's own flags do not make, without those of spaces before it."""
    changes, model = list(TEXT_CHANGES), vocabulary.tokenizer_model
    if "lowercase" in model.flags:
        changes = [change for change in changes if change.cause.detail["change"] not in OF_FLAGS]
    if model.has_charsmap and not vocabulary.charsmap:
        changes.append(CHARSMAP_MISSING)
    return changes


def _with_space(data: bytes) -> bytes:
    """A text with a space before it, unless it begins with one: add_prefix_space puts no second one there."""
    return data if data.startswith(b" ") else b" " + data


def space_changes_of(tokenizer: Tokenizer, texts: Iterable[bytes], parse_special: bool) -> list[TextChange]:
    """Return the changes that put a space before texts, or before each plain part of them if that is another change.

    There are none for a model with a flag for it, which is changed instead.
    """
    if "add_space_prefix" in tokenizer.vocabulary.tokenizer_model.flags:
        return []
    pipeline = tokenizer.pipeline

    def spaced(data: bytes) -> bytes:
        fragments = pipeline.special.partition(data, parse_special)
        parts = ((token, data[start:end]) for token, start, end in fragments)
        return b"".join(_with_space(part) if token is None else part for token, part in parts)

    first = space_prefix("at the beginning", _with_space)
    every = space_prefix("before every plain part of the text", spaced)
    return [first, every] if any(every.apply(text) != first.apply(text) for text in texts) else [first]


def groups_of_pre(vocabulary: Vocabulary, has_masks: bool) -> list[list[str]]:
    """Return the names of the other pre-tokenizers, in groups that give the same ids for every text.

    `has_masks` tells whether texts contain "<mask>", which some of them treat in their own way.
    """
    if not vocabulary.tokenizer_model.has_pre_tokenizer:
        return []
    masks = has_masks and "<mask>" in vocabulary.token_to_id
    groups: dict[tuple[object, ...], list[str]] = {}
    for name, entry in PRE_TOKENIZERS.items():
        groups.setdefault((*acts(entry), masks and name in STRIPS_MASK), []).append(name)
    own = vocabulary.pre_tokenizer
    if PRE_TOKENIZERS.get(own.name) == own:
        groups.pop((*acts(own), masks and own.name in STRIPS_MASK))
    return list(groups.values())
