"""Lists the changes that a search over several texts (several.py) tries next."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from ...models.pretokenizers.registry import PRE_TOKENIZERS
from ...models.vocabulary import CONTROL, NORMAL, RSTRIP, SPECIAL_TYPES, UNUSED, USER_DEFINED, Vocabulary
from ...native.lazy_strings import as_dict
from ...tokenizer import Tokenizer
from ..doctor.marker_tokens import find_marker_tokens
from ..doctor.marker_types import shown_markers
from ..doctor.texts_with_ids import TextWithIds, ends_of
from ..doctor.token_checks import FILLER, is_written_as_marker
from .changes import groups_of_pre, space_changes_of, text_changes_of
from .encoding_changes import (
    Encoding,
    EncodingChange,
    tokens_to_retype,
    types_of_parsed,
    with_exchanged,
    with_ignore_merges,
    with_merges,
    with_merges_by_id,
    with_parse_special,
    with_pre,
    with_shift,
    with_text_change,
    with_types,
)
from .framing import name_of_added
from .id_evidence import is_lossless, shifts
from .model_changes import model_changes
from .texts_of_ids import fillers_in, texts_of_lost
from .variants import variants_of

_TYPES = SPECIAL_TYPES | NORMAL
_LEAST_GAIN = 0.2  # of a change of the text: most of them change a few ids by chance
_LEAST_OF_MERGES = 0.05  # of other merges, likewise
_LEAST_OF_SCORES = 0.5  # of other scores, after which nearly everything agrees if they are right
_LEAST_OF_OTHER_KIND = 0.8  # of a pre-tokenizer for tokens that are written in another alphabet
_MOST_EXCHANGED = 8  # pairs of tokens
FIELD = {"bos": "head", "eos": "tail"}


class SearchStep(NamedTuple):
    """A change to try, one of each `kind` at most; `names` are those of the pre-tokenizer that it changes to."""

    kind: str
    apply: EncodingChange
    names: tuple[str, ...] = ()
    least: float = 0.0  # the share of what disagrees that must agree afterwards


class Steps:
    """The changes that may be tried next, for an encoding of several texts.

    `same` are models with the same tokens, from which the ids may come. `like` is the vocabulary that the ids are known
    to come from: only what differs there is suspected.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        compared: Sequence[TextWithIds],
        *,
        add_special: bool = True,
        parse_special: bool = True,
        same: Sequence[Tokenizer] = (),
        like: Vocabulary | None = None,
    ) -> None:
        self._tokenizer, self._vocabulary = tokenizer, tokenizer.vocabulary
        self._variants, self._markers = variants_of(tokenizer), find_marker_tokens(tokenizer)
        self._compared = compared
        self._add_special = add_special
        self._same, self._like = same, like
        self._base = Encoding(self._vocabulary, parse_special)
        self._is_lossless = is_lossless(self._vocabulary)

    def tokenizer(self, encoding: Encoding) -> Tokenizer:
        """Return the tokenizer of an encoding."""
        return self._variants.tokenizer(encoding.vocabulary, encoding.way)

    def ids(self, encoding: Encoding, compared: TextWithIds) -> list[int]:
        """Return the ids of a text in an encoding."""
        return self._of(encoding, compared, self.tokenizer(encoding))

    def _of(self, encoding: Encoding, compared: TextWithIds, tokenizer: Tokenizer) -> list[int]:
        """The ids of a text in an encoding, of which `tokenizer` is the tokenizer."""
        variant = encoding.variant(compared.text, self._add_special)
        head, tail = variant.head * compared.has_begin, variant.tail * compared.has_end
        return variant._replace(head=head, tail=tail).of(tokenizer, continues=not compared.has_begin)

    # ---- changes ----------------------------------------------------------------------------------------

    def _steps(self, encoding: Encoding, tried: Sequence[TextWithIds]) -> Iterator[SearchStep]:
        differing = [each for each in tried if self.ids(encoding, each) != each.ids]
        for name in ("bos", "eos"):
            yield from self._end_steps(encoding, name, tried)
        yield from self._pre_steps()
        yield from self._type_steps(encoding, differing)
        yield from self._model_steps()
        yield from self._lost_steps(encoding, differing)
        if not (self._is_lossless and all(self._says_the_same(each) for each in differing)):
            yield from self._text_steps(differing)
            yield from self._vocabulary_steps(encoding, differing)

    def _says_the_same(self, each: TextWithIds) -> bool:
        """Whether ids decode to their text, but for what is around it, so that no change of the text leads to them."""
        head, tail = ends_of(self._tokenizer, TextWithIds(each.text, each.ids))
        core = each.ids[len(head.ids) : len(each.ids) - len(tail.ids)]
        known = [token for token in core if 0 <= token < len(self._vocabulary.tokens)]
        return each.text == b"".join(map(self._tokenizer.token_to_piece, known))

    def _pre_steps(self) -> Iterator[SearchStep]:
        own, has_masks = self._vocabulary.pre_tokenizer, True
        if self._like is not None:
            entry = self._like.pre_tokenizer
            differs = entry != own and self._vocabulary.tokenizer_model.has_pre_tokenizer
            groups = [[entry.name]] if differs and entry.name in PRE_TOKENIZERS else []
        else:
            has_masks = any(b"<mask>" in each.text for each in self._compared)
            groups = groups_of_pre(self._vocabulary, has_masks)
        for group in groups:
            is_of_own_kind = PRE_TOKENIZERS[group[0]].byte_encode == own.byte_encode
            least = 0.0 if is_of_own_kind else _LEAST_OF_OTHER_KIND
            yield SearchStep("pre", _with_bos_by_name(with_pre(group, has_masks)), tuple(group), least)

    def _type_steps(self, encoding: Encoding, differing: Sequence[TextWithIds]) -> Iterator[SearchStep]:
        """Types that markers must have, as the ids show; and the other side of `parse_special`, the likelier first.

        A file that makes words control tokens is likelier than a tool that parses no special tokens.
        """
        vocabulary, parse = encoding.vocabulary, encoding.parse_special
        tokenizer = self.tokenizer(encoding)
        special = tokenizer.pipeline.special
        parsed: set[int] = set()
        plain: set[int] = set()
        words: set[int] = set()
        for each in differing:
            source = tokenizer.pipeline.source(each.text)
            ours = {token for token, _, _ in special.partition(source, parse) if token is not None}
            theirs = set(each.ids)
            plain |= ours - theirs
            words |= {token for token in ours & theirs if self._markers.is_word(token)}
            parsed |= {token for token in theirs - ours if self._may_be_parsed(token, each.text, vocabulary)}
        parsed, plain = parsed - plain, plain - parsed
        parsing = SearchStep("parse_special", with_parse_special)
        is_likelier = self._like is None and not all(map(self._markers.is_word, plain))
        if is_likelier:
            yield parsing
        for some, others in tokens_to_retype(parsed, plain, words):
            types = self._types_of(some) | dict.fromkeys(others, NORMAL)
            if types:
                yield SearchStep("types", with_types(vocabulary, types))
        if not is_likelier:
            yield parsing

    def _types_of(self, parsed: Collection[int]) -> dict[int, int]:
        """The attributes of `parsed` markers and of those near them; those of the other model, if it is known."""
        found = types_of_parsed(self._markers, parsed, self._base, self._compared)
        if self._like is None:
            return found
        kinds, own = found | self._types_of_like(found), self._vocabulary.attributes
        return {token: kind for token, kind in kinds.items() if kind != own[token] & _TYPES}

    def _types_of_like(self, types: Iterable[int]) -> dict[int, int]:
        """The attributes that the other model has for tokens."""
        assert self._like is not None
        known = {token: self._like.token_to_id.get(self._vocabulary.tokens[token]) for token in types}
        kinds = {token: self._like.attributes[other] for token, other in known.items() if other is not None}
        return {token: kind & _TYPES for token, kind in kinds.items() if kind & _TYPES}

    def _may_be_parsed(self, token: int, text: bytes, vocabulary: Vocabulary) -> bool:
        return (
            token in self._markers
            and not vocabulary.attributes[token] & SPECIAL_TYPES
            and vocabulary.tokens[token].encode() in text
        )

    def _end_steps(self, encoding: Encoding, name: str, tried: Sequence[TextWithIds]) -> Iterator[SearchStep]:
        """What else may be before or behind each text, as their first or last ids show; parts may lack either."""
        tried = [each for each in tried if (each.has_begin if name == "bos" else each.has_end)]
        at, vocabulary = (0 if name == "bos" else -1), encoding.vocabulary
        special = vocabulary.special_ids[name_of_added(vocabulary, name)]
        ends = Counter(each.ids[at] for each in tried if each.ids)
        usual = [end for end, _ in ends.most_common(2) if self._may_be_end(end, special, ends, len(tried))]
        found: list[tuple[int, ...]] = [(), *((end,) for end in usual), *((end, end) for end in usual)]
        own = encoding.around(self._add_special)[name != "bos"]
        for end in found:
            if end != own:
                yield SearchStep(name, lambda given, end=end: given._replace(**{FIELD[name]: end}))  # type: ignore[misc]

    def _may_be_end(self, token: int, special: int | None, ends: Counter[int], count: int) -> bool:
        """Whether a token that texts begin or end with may have been added; white space and U+FEFF belong to texts."""
        if not 0 <= token < len(self._vocabulary.tokens):
            return False
        is_special = token == special or self._vocabulary.attributes[token] & SPECIAL_TYPES != 0
        if is_special or token in self._markers:
            return True
        is_text = self._tokenizer.token_to_piece(token).strip() in (b"", BOM_UTF8)
        return ends[token] == count > 2 and not is_text

    def _model_steps(self) -> Iterator[SearchStep]:
        if not self._vocabulary.tokenizer_model.has_pre_tokenizer:
            given = chain.from_iterable(each.ids for each in self._compared)
            for kind, change in model_changes(self._vocabulary, self._same, given):
                yield SearchStep(kind, change, least=_LEAST_OF_SCORES if kind == "scores" else 0.0)
            return
        yield SearchStep("ignore_merges", with_ignore_merges, least=_LEAST_OF_MERGES)
        for other in self._same:
            if list(other.vocabulary.merges) != list(self._vocabulary.merges):
                yield SearchStep("merges", with_merges(other), least=_LEAST_OF_MERGES)
        if self._like is None:
            yield SearchStep("merges", with_merges_by_id, least=_LEAST_OF_MERGES)

    def _text_steps(self, differing: Sequence[TextWithIds]) -> Iterator[SearchStep]:
        texts = [each.text for each in differing]
        changes = text_changes_of(self._vocabulary)
        changes += space_changes_of(self._tokenizer, texts, self._base.parse_special)
        for change in sorted(changes, key=lambda change: change.cause.place):
            if any(change.apply(text) != text for text in texts):
                yield SearchStep(change.cause.id, with_text_change(change), least=_LEAST_GAIN)

    def _lost_steps(self, encoding: Encoding, differing: Sequence[TextWithIds]) -> Iterator[SearchStep]:
        """Tokens that only the other side has."""
        if found := self._lost(encoding.vocabulary, differing):
            yield SearchStep("lost", _with_tokens(found), least=_LEAST_GAIN)

    def _filled_steps(self, compared: Sequence[TextWithIds]) -> Iterator[SearchStep]:
        """Tokens of the other side, if the file has fillers for some that occur in the ids."""
        fillers = fillers_in(self._tokenizer, compared)
        if fillers and not fillers.isdisjoint(found := self._lost(self._vocabulary, compared)):
            yield SearchStep("lost", _with_tokens(found))

    def _lost(self, own: Vocabulary, compared: Sequence[TextWithIds]) -> dict[int, tuple[str, int]]:
        """The texts and attributes of tokens that the file lacks or has fillers for, as far as they are known."""
        if self._like is not None:
            return _lost_of(own, self._like)
        end = own.token_to_id.get("</s>")  # where it takes the spaces behind it, all markers of Phi-3 do
        kind = CONTROL | (0 if end is None else own.attributes[end] & RSTRIP)
        texts = texts_of_lost(self._tokenizer, compared)
        shown = shown_markers(texts.values(), chain(own.tokens, texts.values()))
        shown.update(text for text in texts.values() if not is_written_as_marker(text))
        return {token: (text, USER_DEFINED if text in shown else kind) for token, text in texts.items()}

    def _vocabulary_steps(self, encoding: Encoding, differing: Sequence[TextWithIds]) -> Iterator[SearchStep]:
        """Ids that are shifted, and tokens that have each other's ids."""
        pairs: set[tuple[int, int]] = set()
        for each in differing:
            ours = self.ids(encoding, each)
            for shift in shifts(ours, each.ids):
                yield SearchStep("vocabulary", with_shift(shift))
            if len(ours) == len(each.ids):
                pairs.update(zip(ours, each.ids))
        others = Counter(token for token, _ in pairs)
        # both must have come in the other's place, and never in their own, or another text would do as well
        sure = tuple(
            sorted((a, b) for a, b in pairs if a < b and (b, a) in pairs and others[a] == others[b] == 1)
        )
        if 0 < len(sure) <= _MOST_EXCHANGED:
            yield SearchStep("vocabulary", with_exchanged(encoding.vocabulary, sure))


def _lost_of(own: Vocabulary, other: Vocabulary) -> dict[int, tuple[str, int]]:
    """The texts and attributes of tokens of another vocabulary for which there are fillers or none."""
    more = range(len(own.tokens), len(other.tokens))
    filled = [
        token for token, (a, b) in enumerate(zip(own.tokens, other.tokens)) if a != b and FILLER.fullmatch(a)
    ]
    filled = [token for token in filled if other.tokens[token] not in own.token_to_id]
    return {token: (other.tokens[token], other.attributes[token]) for token in (*filled, *more)}


def _with_tokens(found: Mapping[int, tuple[str, int]]) -> EncodingChange:
    """The change that gives tokens texts and attributes, behind the others as well; gaps get names."""

    def change(encoding: Encoding) -> Encoding:
        own = encoding.vocabulary
        more = range(len(own.tokens), max(found) + 1)
        tokens = [*own.tokens, *(f"[LOST_{token}]" for token in more)]
        kinds = [*own.attributes, *[UNUSED] * len(more)]
        ids = as_dict(own.token_to_id) | {tokens[token]: token for token in more}
        for token, (text, kind) in found.items():
            del ids[tokens[token]]
            tokens[token], kinds[token], ids[text] = text, kind, token
        special = {*own.special_token_ids, *found}
        vocabulary = own._replace(
            tokens=tokens,
            token_to_id=ids,
            attributes=kinds,
            special_token_ids=tuple(sorted(token for token in special if kinds[token] & SPECIAL_TYPES)),
            scores=[*own.scores, *[0.0] * len(more)] if own.scores else (),
        )
        if own.first_attributes:
            vocabulary = vocabulary._replace(first_attributes=vocabulary.attributes)
        return encoding._replace(vocabulary=vocabulary)

    return change


def _with_bos_by_name(change: EncodingChange) -> EncodingChange:
    """`change` of the pre-tokenizer, from which also follows whether BOS is added, if the file does not say."""

    def changed(encoding: Encoding) -> Encoding:
        encoding = change(encoding)
        vocabulary = encoding.vocabulary
        entry, said = vocabulary.pre_tokenizer, vocabulary.named_add_bos
        added = (entry.add_bos if said is None else said) or entry.always_add_bos
        return encoding._replace(vocabulary=vocabulary._replace(add_bos=added))

    return changed
