"""Finds several causes over many texts, change by change, as long as more of the expected ids come out.

Defects of a file act on different ids: the pre-tokenizer on words, types on markers, flags on the ends of a text. So
the change after which most ids agree is right, whatever else is wrong, and the rest is compared again under the model
as changed so far. At the end, changes without which the ids are the same are left out.

A change that no file can express, such as the merges of another model, takes part like any other: what the others
explain only shows beside it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from operator import ge
from typing import NamedTuple

from ...models.pretokenizers.pretokenizer_evidence import telltales
from ...models.pretokenizers.registry import PRE_TOKENIZERS
from ...tokenizer import Tokenizer
from ..doctor.texts_with_ids import Encode, TextWithIds, parts_of
from . import vocabulary_causes
from .cause import CAUSES, Cause
from .cause_search import named_pre
from .damaged_merges import told_as_damage
from .encoding_changes import Encoding
from .encoding_states import MOST_BYTES, EncodingState, SearchStep, around, shortest
from .framing import framing
from .search_steps import FIELD, Steps, exchange
from .texts_of_ids import exchanged_in, swapped
from .variants import variants_of

_MOST_STEPS = 6
SECONDS = 2.0  # of processor time, for trying changes


class FoundCauses(NamedTuple):
    """What was found: causes, the share of ids that agree, and which texts come out whole."""

    causes: tuple[Cause, ...]
    explains: float
    state: EncodingState
    explained: list[bool]
    expected: Encode  # the ids of a text by a changed model, where what no file can express differs as well


class Several(Steps):
    """A search over several texts."""

    _end = 0.0  # when no more changes are tried

    def found(self) -> FoundCauses:
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
        steps = self._needed(steps, evident, tried)
        return self._told([*steps, *self._hidden_by(steps, tried)])

    def _doubted(self, tried: Sequence[TextWithIds]) -> list[SearchStep]:
        """The pre-tokenizer that the tokens point to, if they do not fit the file's and the ids fit that one."""
        if self._like is not None:
            return []
        share = self._agreeing(self._base, tried)
        return [step for step in self._likely_pre() if self._agreeing(step.apply(self._base), tried) >= share]

    def _hidden_by(self, steps: list[SearchStep], tried: Sequence[TextWithIds]) -> list[SearchStep]:
        """The pre-tokenizer that the tokens point to, if the ids fit it after the changes in `steps`.

        Before them they may not: markers that are taken for text are split by it as well.
        """
        if not steps or any(step.kind == "pre" for step in steps):
            return []
        state = self._after(steps)
        share, explained = self._agreeing(state, tried), self._explained(state)
        for step in self._likely_pre():
            after = step.apply(state)
            if self._agreeing(after, tried) >= share and all(map(ge, self._explained(after), explained)):
                return [step]
        return []

    def _likely_pre(self) -> list[SearchStep]:
        """The steps to a pre-tokenizer that the tokens point to, if they do not fit the file's."""
        own = self._vocabulary
        if own.tokenizer_model.ignores_pre:
            return []
        if own.pre != "default" and not telltales(own.pre_tokenizer, own.token_to_id):
            return []
        evidence = self._variants.evidence
        if not evidence.is_against:
            return []
        best = {name for family in evidence.best for name in family.names}
        names = {evidence.name} if self._like is None else best
        return [step for step in self._pre_steps() if not names.isdisjoint(step.names)]

    def _swapped(self, tried: Sequence[TextWithIds]) -> list[SearchStep]:
        """Tokens that have each other's ids, as the texts show; other scores or merges may hide it in the ids."""
        if self._like is None:
            pairs = swapped(self._tokenizer, tried)
        else:
            pairs = exchanged_in(self._vocabulary.tokens, self._like.tokens, tried)
        return [exchange(pairs)] if pairs else []

    def _telling(self, state: EncodingState) -> list[TextWithIds]:
        """The shortest texts that still differ, and some that agree; empty if none differs."""
        differing = [each for each, is_same in zip(self._compared, self._explained(state)) if not is_same]
        if not differing:
            return []
        parts = [part for each in differing for part in self._parts(each)]
        differing = [each for each in parts if self.ids(state, each) != each.ids] or differing
        chosen = shortest(differing, MOST_BYTES)
        agreeing = [each for each in self._compared if each not in chosen and each not in differing]
        return chosen + shortest(agreeing, MOST_BYTES // 4)

    def _parts(self, each: TextWithIds) -> list[TextWithIds]:
        """A text, or if it is long, its lines."""
        return parts_of(self._tokenizer, each) if len(each.text) > MOST_BYTES else [each]

    def _best(
        self, state: EncodingState, steps: Sequence[SearchStep], tried: Sequence[TextWithIds]
    ) -> SearchStep | None:
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

    def _needed(
        self, steps: list[SearchStep], evident: Sequence[SearchStep], tried: Sequence[TextWithIds]
    ) -> list[SearchStep]:
        """Those steps without which fewer ids would agree, and those that are `evident` without the ids."""
        share = self._agreeing(self._after(steps), tried)
        for step in [step for step in steps[:-1] if step not in evident]:
            others = [other for other in steps if other is not step]
            if self._agreeing(self._after(others), tried) >= share:
                steps = others
        return steps

    # ---- what is told -----------------------------------------------------------------------------------

    def _told(self, steps: list[SearchStep]) -> FoundCauses:
        state = self._after(steps)
        told = {step.kind: told_as_damage(self._tokenizer, self._causes_of(step, state)) for step in steps}
        explained = self._explained(state)
        tried = shortest(self._compared, 4 * MOST_BYTES)
        agree = 1.0 if all(explained) else min(self._agreeing(state, tried), 0.9999)
        found = sorted((cause for each in told.values() for cause in each), key=_place)
        outside = [step for step in steps if not any(cause.change for cause in told[step.kind])]

        def expected(changed: Tokenizer, compared: TextWithIds) -> list[int]:
            base = EncodingState(Encoding(changed.vocabulary, self._base.encoding.parse_special))
            after = self._after(outside, base)
            vocabulary, _, way, _ = after.encoding
            if vocabulary is not changed.vocabulary or way:
                changed = variants_of(changed).tokenizer(vocabulary, way)
            return self._of(after, compared, changed)

        return FoundCauses(tuple(found), agree, state, explained, expected)

    def _causes_of(self, step: SearchStep, state: EncodingState) -> list[Cause]:
        """The causes of a step, in words, given all that differs."""
        before = self._base.encoding.vocabulary
        vocabulary = state.encoding.vocabulary
        if step.kind in FIELD:
            ours = around(state._replace(head=None, tail=None), self._add_special)[step.kind != "bos"]
            return list(framing(vocabulary, step.kind, ours, getattr(state, FIELD[step.kind]) or ()))
        if step.names:
            return [self._pre_cause(step, state)]
        if state.shift != (0, 0) and step.kind == "vocabulary":
            return [vocabulary_causes.shifted(state.shift[1], state.shift[0] or None)]
        if step.kind == "vocabulary":
            return [vocabulary_causes.exchanged(before, state.exchanged)]
        if step.kind == "lost":
            size = len(before.tokens)
            seen = {token for each in self._compared for token in each.ids if token >= size}
            tokens = vocabulary.tokens
            return [
                vocabulary_causes.lost_tokens(
                    {token: tokens[token] for token in seen if token < len(tokens)}, size
                )
            ]
        after = step.apply(self._base)
        return [*(change.cause for change in after.texts), *after.encoding.causes]

    def _pre_cause(self, step: SearchStep, state: EncodingState) -> Cause:
        """The cause that the pre-tokenizer is another one: the likeliest of those that give these ids."""
        evidence = self._variants.evidence
        families: dict[str, list[str]] = {PRE_TOKENIZERS[step.names[0]].family: list(step.names)}
        if self._like is None:
            tried = [part for each in self._compared for part in self._parts(each)]
            tried = shortest(tried, 2 * MOST_BYTES)
            ids = [self.ids(state, each) for each in tried]
            for other in self._pre_steps():
                entry = PRE_TOKENIZERS[other.names[0]]
                vocabulary = state.encoding.vocabulary
                same = state._replace(
                    encoding=state.encoding._replace(vocabulary=vocabulary._replace(pre_tokenizer=entry))
                )
                if other.names != step.names and all(
                    self.ids(same, each) == own for each, own in zip(tried, ids)
                ):
                    families.setdefault(entry.family, []).extend(other.names)
        ranked = sorted(families, key=evidence.place) if len(families) > 1 else list(families)
        adds = bool(around(state, self._add_special)[0]) if self._add_special else None
        has_cause = state.head is not None
        return named_pre(self._vocabulary, families[ranked[0]], ranked[1:], evidence, adds, has_cause)


def _place(cause: Cause) -> int:
    return -1 if cause.id == "pre_type" else CAUSES.index(cause.id)
