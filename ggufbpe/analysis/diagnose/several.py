"""Several causes at once, over many texts: change by change, as long as more of the other side's ids come out.

    tokenizer, texts with ids -> [this file] -> Found: the changes, and how far they lead -> id_diagnosis.py,
        analysis/verify/

Defects of a file act on different ids: the pre-tokenizer on words, types on markers, flags on the ends of a text. So
the change after which most ids agree is right, whatever else is wrong, and the rest is compared again under the model
as changed so far. At the end, changes without which the ids are the same are left out.

A change that no file can express, such as the merges of another model, takes part like any other: what the others
explain only shows beside it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, reduce
from typing import NamedTuple

from ...models.pretokenizers.pretokenizer_evidence import telltales
from ...models.pretokenizers.registry import PRE_TOKENIZERS
from ...models.vocabulary import CONTROL, NORMAL, SPECIAL_TYPES, UNUSED, USER_DEFINED, Vocabulary
from ...tokenizer import Tokenizer
from ..doctor.marker_tokens import MarkerTokens
from ..doctor.texts_with_ids import Encode, TextWithIds, parts_of
from . import causes
from .agreement import common
from .cause_search import named_pre
from .causes import CAUSES, Cause
from .changes import groups_of_pre, text_changes_of
from .encoding_changes import (
    Encoding,
    EncodingChange,
    with_ignore_merges,
    with_merges,
    with_parse_special,
    with_pre,
    with_types,
)
from .framing import framing, name_of_added
from .id_evidence import is_lossless, shifts
from .model_changes import model_changes
from .text_changes import TextChange, space_prefix
from .texts_of_ids import swapped, texts_of_lost
from .variants import BY_ID, Variant, Variants, variants_of

_MOST_BYTES = 12_000  # of texts by which changes are chosen
_MOST_STEPS = 6
_LEAST_GAIN = 0.2  # of a change of the text: most of them change a few ids by chance
_LEAST_OF_MERGES = 0.05  # of other merges, likewise
_LEAST_OF_SCORES = 0.5  # of other scores, after which nearly everything agrees if they are right
_LEAST_OF_OTHER_KIND = 0.8  # of a pre-tokenizer for tokens that are written in another alphabet
_MOST_EXCHANGED = 8  # pairs of tokens
SECONDS = 2.0  # of processor time, for trying changes


class State(NamedTuple):
    """All that turns a text into ids; `head` and `tail` are around it instead of what the vocabulary adds."""

    encoding: Encoding
    texts: tuple[TextChange, ...] = ()
    head: tuple[int, ...] | None = None
    tail: tuple[int, ...] | None = None
    shift: tuple[int, int] = (0, 0)
    exchanged: tuple[tuple[int, int], ...] = ()


class Step(NamedTuple):
    """A change. Steps of one `kind` exclude each other; `names` are those of a pre-tokenizer."""

    kind: str
    apply: Callable[[State], State]
    names: tuple[str, ...] = ()
    least: float = 0.0  # the share of what disagrees that must agree afterwards


class Found(NamedTuple):
    """What was found: causes, the share of ids that agree, and which texts come out whole."""

    causes: tuple[Cause, ...]
    explains: float
    state: State
    explained: list[bool]
    expected: Encode  # the ids of a text by a changed model, where what no file can express differs as well


class Several:
    """A search over several texts. `same` are models with the same tokens, from which the ids may come.

    `like` is the vocabulary that the ids are known to come from: only what differs there is suspected.
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
        self._variants: Variants = variants_of(tokenizer)
        self._compared = compared
        self._add_special = add_special
        self._same, self._like = same, like
        self._base = State(Encoding(self._vocabulary, parse_special))
        self._is_lossless = is_lossless(self._vocabulary)
        self._end = 0.0  # when no more changes are tried

    # ---- the search -------------------------------------------------------------------------------------

    def found(self) -> Found:
        """Return the changes after which most ids agree."""
        tried: Sequence[TextWithIds] = self._telling(self._base)
        steps = evident = [*self._doubted(tried), *self._swapped(tried)]
        self._end = time.thread_time() + SECONDS
        for _ in range(_MOST_STEPS):
            state = self._after(steps)
            if self._all_agree(state, tried):
                more = self._telling(state)  # what the texts that were tried do not show, others may
                if not more:
                    break
                tried = more
            best = self._best(state, steps, tried)
            if best is None or time.thread_time() > self._end:
                break
            steps = [*steps, best]
        return self._told(self._needed(steps, evident, tried))

    def _doubted(self, tried: Sequence[TextWithIds]) -> list[Step]:
        """The pre-tokenizer that the tokens point to, if they do not fit the file's and the ids fit that one."""
        own = self._vocabulary
        if self._like is not None or own.tokenizer_model.ignores_pre:
            return []
        if own.pre != "default" and not telltales(own.pre_tokenizer, own.token_to_id):
            return []
        evidence = self._variants.evidence
        if not evidence.is_against:
            return []
        share = self._agreeing(self._base, tried)
        likely = [step for step in self._pre_steps() if evidence.name in step.names]
        return [step for step in likely if self._agreeing(step.apply(self._base), tried) >= share]

    def _swapped(self, tried: Sequence[TextWithIds]) -> list[Step]:
        """Tokens that have each other's ids, as the texts show; other scores or merges may hide it in the ids."""
        pairs = swapped(self._tokenizer, tried) if self._like is None else ()
        return [_exchange(pairs)] if pairs else []

    def _telling(self, state: State) -> list[TextWithIds]:
        """The shortest texts that still differ, and some that agree; empty if none differs."""
        differing = [each for each, is_same in zip(self._compared, self._explained(state)) if not is_same]
        if not differing:
            return []
        parts = [part for each in differing for part in self._parts(each)]
        differing = [each for each in parts if self.ids(state, each) != each.ids] or differing
        chosen = _some(differing, _MOST_BYTES)
        agreeing = [each for each in self._compared if each not in chosen and each not in differing]
        return chosen + _some(agreeing, _MOST_BYTES // 4)

    def _parts(self, each: TextWithIds) -> list[TextWithIds]:
        """A text, or if it is long, its lines."""
        return parts_of(self._tokenizer, each) if len(each.text) > _MOST_BYTES else [each]

    def _best(self, state: State, steps: Sequence[Step], tried: Sequence[TextWithIds]) -> Step | None:
        """The change after which most ids agree, if these are more than before."""
        taken = {step.kind for step in steps}
        best, most = None, self._agreeing(state, tried)
        before = most
        for step in self._steps(state, tried):
            if step.kind in taken:
                continue
            after = step.apply(state)
            share = self._agreeing(after, tried)
            if share > max(most, before + step.least * (1 - before)):
                best, most = step, share
                if share == 1.0 and self._all_agree(after, tried):
                    break
            if time.thread_time() > self._end:
                break
        return best

    def _needed(self, steps: list[Step], evident: Sequence[Step], tried: Sequence[TextWithIds]) -> list[Step]:
        """Those steps without which fewer ids would agree, and those that are `evident` without the ids."""
        share = self._agreeing(self._after(steps), tried)
        for step in [step for step in steps[:-1] if step not in evident]:
            others = [other for other in steps if other is not step]
            if self._agreeing(self._after(others), tried) >= share:
                steps = others
        return steps

    def _after(self, steps: Iterable[Step], base: State | None = None) -> State:
        return reduce(lambda state, step: step.apply(state), steps, base or self._base)

    # ---- ids --------------------------------------------------------------------------------------------

    def ids(self, state: State, compared: TextWithIds) -> list[int]:
        """Return the ids of a text in a state."""
        return self._of(state, compared, self.tokenizer(state))

    def _of(self, state: State, compared: TextWithIds, tokenizer: Tokenizer) -> list[int]:
        """The ids of a text in a state, of which `tokenizer` is the tokenizer."""
        variant = self.variant(state, compared.text)
        head, tail = variant.head * compared.has_begin, variant.tail * compared.has_end
        return variant._replace(head=head, tail=tail).of(tokenizer, continues=not compared.has_begin)

    def _explained(self, state: State) -> list[bool]:
        """Which texts have the other side's ids in a state; by the compiled engine if they are long."""
        tokenizer = self.tokenizer(state)
        if sum(len(each.text) for each in self._compared) > _MOST_BYTES and not state.encoding.way:
            tokenizer = Tokenizer(state.encoding.vocabulary)
        found = []
        for each in self._compared:
            try:
                found.append(self._of(state, each, tokenizer) == each.ids)
            except ValueError:  # a byte without a token, a damaged charsmap
                found.append(False)
        return found

    def tokenizer(self, state: State) -> Tokenizer:
        """Return the tokenizer of a state."""
        return self._variants.tokenizer(state.encoding.vocabulary, state.encoding.way)

    def variant(self, state: State, text: bytes) -> Variant:
        """Return all that the ids of a text in a state depend on."""
        return _variant(state, text, self._add_special)

    def _agreeing(self, state: State, compared: Sequence[TextWithIds]) -> float:
        """The share of the ids of all texts that agree, in order."""
        tokenizer = self.tokenizer(state)
        agree = total = 0
        for each in compared:
            try:
                ours = self._of(state, each, tokenizer)
            except ValueError:  # a byte without a token, a damaged charsmap
                return 0.0
            agree += common(ours, each.ids)
            total += max(len(ours), len(each.ids))
        return agree / total if total else 1.0

    def _all_agree(self, state: State, compared: Iterable[TextWithIds]) -> bool:
        return all(self.ids(state, each) == each.ids for each in compared)

    # ---- what is tried ----------------------------------------------------------------------------------

    def _steps(self, state: State, tried: Sequence[TextWithIds]) -> Iterator[Step]:
        differing = [each for each in tried if self.ids(state, each) != each.ids]
        for name in ("bos", "eos"):
            yield from self._end_steps(state, name, tried)
        yield from self._pre_steps()
        yield from self._type_steps(state, differing)
        yield from self._model_steps()
        yield from self._lost_steps(state, differing)
        if not (self._is_lossless and all(self._says_the_same(each) for each in differing)):
            yield from self._text_steps(differing)
            yield from self._vocabulary_steps(state, differing)

    def _says_the_same(self, each: TextWithIds) -> bool:
        """Whether ids decode to their text, so that no change of the text leads to them."""
        known = [token for token in each.ids if 0 <= token < len(self._vocabulary.tokens)]
        return each.text.strip() in b"".join(map(self._tokenizer.token_to_piece, known))

    def _pre_steps(self) -> Iterator[Step]:
        if self._like is not None:
            entry, own = self._like.pre_tokenizer, self._vocabulary.pre_tokenizer
            differs = entry != own and self._vocabulary.tokenizer_model.has_pre_tokenizer
            groups = [([entry.name], True)] if differs and entry.name in PRE_TOKENIZERS else []
        else:
            groups = groups_of_pre(self._vocabulary, any(b"<mask>" in each.text for each in self._compared))
        for group, masks in groups:
            masks = masks and "<mask>" in self._vocabulary.token_to_id
            entry, own = PRE_TOKENIZERS[group[0]], self._vocabulary.pre_tokenizer
            least = 0.0 if entry.byte_encode == own.byte_encode else _LEAST_OF_OTHER_KIND
            yield Step("pre", _encoding(with_pre(group, masks), _bos_by_name), tuple(group), least)

    def _type_steps(self, state: State, differing: Sequence[TextWithIds]) -> Iterator[Step]:
        """Types that markers must have, as the ids show: parsed, or encoded as plain text."""
        vocabulary, parse = state.encoding.vocabulary, state.encoding.parse_special
        tokenizer = self.tokenizer(state)
        special = tokenizer.pipeline.special
        parsed: set[int] = set()
        plain: set[int] = set()
        for each in differing:
            source = tokenizer.pipeline.source(each.text)
            ours = {token for token, _, _ in special.partition(source, parse) if token is not None}
            theirs = set(each.ids)
            plain |= ours - theirs
            parsed |= {token for token in theirs - ours if self._may_be_parsed(token, each.text, vocabulary)}
        parsed, plain = parsed - plain, plain - parsed
        for some, others in ((parsed, plain), (parsed, set()), (set(), plain)):
            if some or others:
                types = self._types_of(some) | dict.fromkeys(sorted(others), NORMAL)
                yield Step("types", _encoding(with_types(vocabulary, types)))

    def _types_of(self, parsed: set[int]) -> dict[int, int]:
        """The attributes of markers that are `parsed`, and of those near them that no text has as plain text."""
        tokens, found = self._vocabulary.tokens, {}
        for token, kind in self._markers.types_of(parsed).items():
            if token in parsed or not any(
                tokens[token].encode() in each.text and token not in each.ids for each in self._compared
            ):
                found[token] = kind if self._base.encoding.parse_special else USER_DEFINED
        return found if self._like is None else found | self._types_of_like(found)

    def _types_of_like(self, types: Iterable[int]) -> dict[int, int]:
        """The attributes that the other model has for tokens."""
        assert self._like is not None
        known = {token: self._like.token_to_id.get(self._vocabulary.tokens[token]) for token in types}
        kinds = {token: self._like.attributes[other] for token, other in known.items() if other is not None}
        return {
            token: kind & (SPECIAL_TYPES | NORMAL)
            for token, kind in kinds.items()
            if kind & (SPECIAL_TYPES | NORMAL)
        }

    def _may_be_parsed(self, token: int, text: bytes, vocabulary: Vocabulary) -> bool:
        return (
            token in self._markers
            and not vocabulary.attributes[token] & SPECIAL_TYPES
            and vocabulary.tokens[token].encode() in text
        )

    @cached_property
    def _markers(self) -> MarkerTokens:
        return MarkerTokens(self._vocabulary, self._tokenizer.chat_templates.get("", ""))

    def _end_steps(self, state: State, name: str, tried: Sequence[TextWithIds]) -> Iterator[Step]:
        """What else may be before or behind each text, as their first or last ids show."""
        at, vocabulary = (0 if name == "bos" else -1), state.encoding.vocabulary
        special = vocabulary.special_ids[name_of_added(vocabulary, name)]
        ends = Counter(each.ids[at] for each in tried if each.ids)
        usual = [end for end, _ in ends.most_common(2) if self._may_be_end(end, special, ends, len(tried))]
        found: list[tuple[int, ...]] = [(), *((end,) for end in usual), *((end, end) for end in usual)]
        for end in found:
            own = _ends_of(state, self._add_special)[name != "bos"]
            if end != own:
                yield Step(name, lambda given, end=end: given._replace(**{_FIELD[name]: end}))  # type: ignore[misc]

    def _may_be_end(self, token: int, special: int | None, ends: Counter[int], count: int) -> bool:
        """Whether a token that texts begin or end with may have been added."""
        if not 0 <= token < len(self._vocabulary.tokens):
            return False
        is_special = token == special or self._vocabulary.attributes[token] & SPECIAL_TYPES != 0
        return is_special or token in self._markers or (ends[token] == count > 2)

    def _model_steps(self) -> Iterator[Step]:
        yield Step("parse_special", _encoding(with_parse_special))
        if not self._vocabulary.tokenizer_model.has_pre_tokenizer:
            for kind, change in model_changes(self._vocabulary, self._same):
                yield Step(kind, _encoding(change), least=_LEAST_OF_SCORES if kind == "scores" else 0.0)
            return
        yield Step("ignore_merges", _encoding(with_ignore_merges), least=_LEAST_OF_MERGES)
        for other in self._same:
            if list(other.vocabulary.merges) != list(self._vocabulary.merges):
                yield Step("merges", _encoding(with_merges(other.vocabulary)), least=_LEAST_OF_MERGES)
        if self._like is None:
            by_id = _encoding(lambda e: e.with_cause(causes.merges_by_id(), way=BY_ID))
            yield Step("merges", by_id, least=_LEAST_OF_MERGES)

    def _text_steps(self, differing: Sequence[TextWithIds]) -> Iterator[Step]:
        changes = text_changes_of(self._vocabulary)
        if "add_space_prefix" not in self._vocabulary.tokenizer_model.flags:
            changes.append(space_prefix("at the beginning", lambda data: b" " + data))
        for change in changes:
            if any(change.apply(each.text) != each.text for each in differing):
                yield Step(change.cause.id, _with_text_change(change), least=_LEAST_GAIN)

    def _lost_steps(self, state: State, differing: Sequence[TextWithIds]) -> Iterator[Step]:
        """Tokens that only the other side has."""
        size = len(state.encoding.vocabulary.tokens)
        if self._like is not None:
            others = enumerate(self._like.tokens[size:], size) if len(self._like.tokens) > size else ()
            found = {token: (text, self._like.attributes[token]) for token, text in others}
        else:
            found = {
                token: (text, CONTROL) for token, text in texts_of_lost(self._tokenizer, differing).items()
            }
        if found:
            yield Step("lost", _encoding(_with_tokens(found)), least=_LEAST_GAIN)

    def _vocabulary_steps(self, state: State, differing: Sequence[TextWithIds]) -> Iterator[Step]:
        """Ids that are shifted, and tokens that have each other's ids."""
        pairs: set[tuple[int, int]] = set()
        for each in differing:
            ours = self.ids(state, each)
            for shift in shifts(ours, each.ids):
                yield Step("vocabulary", lambda given, s=shift: given._replace(shift=s))  # type: ignore[misc]
            if len(ours) == len(each.ids):
                pairs.update((a, b) for a, b in zip(ours, each.ids) if a != b)
        others = Counter(token for token, _ in pairs)
        # both must have come in the other's place, or another word in the text would do as well
        sure = tuple(
            sorted((a, b) for a, b in pairs if a < b and (b, a) in pairs and others[a] == others[b] == 1)
        )
        if 0 < len(sure) <= _MOST_EXCHANGED:
            yield Step("vocabulary", lambda given: given._replace(exchanged=sure))

    # ---- what is told -----------------------------------------------------------------------------------

    def _told(self, steps: list[Step]) -> Found:
        state = self._after(steps)
        told = {step.kind: self._causes_of(step, state) for step in steps}
        explained = self._explained(state)
        tried = _some(self._compared, 4 * _MOST_BYTES)
        agree = 1.0 if all(explained) else min(self._agreeing(state, tried), 0.9999)
        found = sorted((cause for each in told.values() for cause in each), key=_place)
        outside = [step for step in steps if not any(cause.change for cause in told[step.kind])]

        def expected(changed: Tokenizer, compared: TextWithIds) -> list[int]:
            base = State(Encoding(changed.vocabulary, self._base.encoding.parse_special))
            after = self._after(outside, base)
            vocabulary, _, way, _ = after.encoding
            if vocabulary is not changed.vocabulary or way:
                changed = variants_of(changed).tokenizer(vocabulary, way)
            return self._of(after, compared, changed)

        return Found(tuple(found), agree, state, explained, expected)

    def _causes_of(self, step: Step, state: State) -> list[Cause]:
        """The causes of a step, in words, given all that differs."""
        before = self._base.encoding.vocabulary
        vocabulary = state.encoding.vocabulary
        if step.kind in _FIELD:
            ours = _ends_of(state._replace(head=None, tail=None), self._add_special)[step.kind != "bos"]
            return list(framing(vocabulary, step.kind, ours, getattr(state, _FIELD[step.kind]) or ()))
        if step.names:
            return [self._pre_cause(step, state)]
        if state.shift != (0, 0) and step.kind == "vocabulary":
            return [causes.shifted(state.shift[1], state.shift[0] or None)]
        if step.kind == "vocabulary":
            return [causes.exchanged(before, state.exchanged)]
        if step.kind == "lost":
            size = len(before.tokens)
            seen = {token for each in self._compared for token in each.ids if token >= size}
            tokens = vocabulary.tokens
            return [causes.lost_tokens({token: tokens[token] for token in seen if token < len(tokens)}, size)]
        after = step.apply(self._base)
        return [*(change.cause for change in after.texts), *after.encoding.causes]

    def _pre_cause(self, step: Step, state: State) -> Cause:
        """The cause that the pre-tokenizer is another one: the likeliest of those that give these ids."""
        evidence = self._variants.evidence
        families: dict[str, list[str]] = {PRE_TOKENIZERS[step.names[0]].family: list(step.names)}
        if self._like is None:
            tried = [part for each in self._compared for part in self._parts(each)]
            tried = _some(tried, 2 * _MOST_BYTES)
            ids = [self.ids(state, each) for each in tried]
            for other in self._pre_steps():
                family = PRE_TOKENIZERS[other.names[0]].family
                entry = PRE_TOKENIZERS[other.names[0]]
                vocabulary = state.encoding.vocabulary
                same = state._replace(
                    encoding=state.encoding._replace(vocabulary=vocabulary._replace(pre_tokenizer=entry))
                )
                if other.names != step.names and all(
                    self.ids(same, each) == own for each, own in zip(tried, ids)
                ):
                    families.setdefault(family, []).extend(other.names)
        ranked = sorted(families, key=evidence.place) if len(families) > 1 else list(families)
        adds = bool(_ends_of(state, self._add_special)[0]) if self._add_special else None
        has_cause = state.head is not None
        return named_pre(self._vocabulary, families[ranked[0]], ranked[1:], evidence, adds, has_cause)


_FIELD = {"bos": "head", "eos": "tail"}


def _place(cause: Cause) -> int:
    return -1 if cause.id == "pre_type" else CAUSES.index(cause.id)


def _some(compared: Iterable[TextWithIds], most: int) -> list[TextWithIds]:
    """The shortest, up to so many bytes, but at least one if there is any."""
    chosen: list[TextWithIds] = []
    size = 0
    for each in sorted(compared, key=lambda each: len(each.text)):
        size += len(each.text)
        if chosen and size > most:
            break
        chosen.append(each)
    return chosen


def _ends_of(state: State, add_special: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What is before and behind each text in a state."""
    before, behind = state.encoding.vocabulary.added if add_special else ([], [])
    head, tail = state.head, state.tail
    return tuple(before) if head is None else head, tuple(behind) if tail is None else tail


def _variant(state: State, text: bytes, add_special: bool) -> Variant:
    vocabulary, parse_special, way, _ = state.encoding
    for change in state.texts:
        text = change.apply(text)
    head, tail = _ends_of(state, add_special)
    return Variant(
        vocabulary, text, parse_special, way, head, tail, shift=state.shift, exchanged=state.exchanged
    )


def _encoding(*changes: EncodingChange) -> Callable[[State], State]:
    """The changes of an encoding as one of a state."""

    def apply(state: State) -> State:
        return state._replace(encoding=reduce(lambda given, change: change(given), changes, state.encoding))

    return apply


def _with_tokens(found: Mapping[int, tuple[str, int]]) -> EncodingChange:
    """The change that puts tokens behind the others, each with its text and attribute; gaps get names."""

    def change(encoding: Encoding) -> Encoding:
        own = encoding.vocabulary
        more = range(len(own.tokens), max(found) + 1)
        texts = [found[token][0] if token in found else f"[LOST_{token}]" for token in more]
        kinds = [found[token][1] if token in found else UNUSED for token in more]
        special = (token for token, kind in zip(more, kinds) if kind & SPECIAL_TYPES)
        vocabulary = own._replace(
            tokens=[*own.tokens, *texts],
            token_to_id={**dict(own.token_to_id), **dict(zip(texts, more))},
            attributes=[*own.attributes, *kinds],
            special_token_ids=(*own.special_token_ids, *special),
            scores=[*own.scores, *[0.0] * len(more)] if own.scores else (),
        )
        if own.first_attributes:
            vocabulary = vocabulary._replace(first_attributes=vocabulary.attributes)
        return encoding._replace(vocabulary=vocabulary)

    return change


def _exchange(pairs: tuple[tuple[int, int], ...]) -> Step:
    """The step after which the tokens of each pair have each other's ids."""
    return Step("vocabulary", lambda given: given._replace(exchanged=pairs))


def _with_text_change(change: TextChange) -> Callable[[State], State]:
    return lambda state: state._replace(texts=(*state.texts, change))


def _bos_by_name(encoding: Encoding) -> Encoding:
    """Whether BOS is added follows from the pre-tokenizer, if the file does not say."""
    vocabulary = encoding.vocabulary
    entry, said = vocabulary.pre_tokenizer, vocabulary.named_add_bos
    added = (entry.add_bos if said is None else said) or entry.always_add_bos
    return encoding._replace(vocabulary=vocabulary._replace(add_bos=added))
