"""Finds several causes over many texts, change by change, as long as more of the expected ids come out.

Defects of a file act on different ids: the pre-tokenizer on words, types on markers, flags on the ends of a text. So
the change after which most ids agree is right, whatever else is wrong, and the rest is compared again under the model
as changed so far. At the end, changes without which the ids are the same are left out. cause_search.py, in contrast,
tries every set of at most two changes of one text, so that it finds all the smallest ones that give its ids.

A change that no file can express, such as the merges of another model, takes part like any other: what the others
explain only shows beside it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from operator import ge
from typing import NamedTuple

from ...models.pretokenizers.registry import PRE_TOKENIZERS
from ...models.vocabulary import Vocabulary
from ...tokenizer import Tokenizer
from ..doctor.texts_with_ids import Encode, TextWithIds, parts_of
from . import causes
from .agreement import common
from .cause import Cause
from .cause_search import named_pre
from .damaged_merges import told_as_damage
from .encoding_changes import Encoding, with_exchanged
from .framing import framing
from .search_steps import FIELD, SearchStep, Steps
from .texts_of_ids import exchanged_in, swapped
from .variants import variants_of

_MOST_STEPS = 6
_MOST_BYTES = 12_000  # of texts by which changes are chosen
SECONDS = 2.0  # of processor time, for trying changes


class FoundCauses(NamedTuple):
    """What was found: causes, the share of ids that agree, and which texts come out whole."""

    causes: tuple[Cause, ...]
    explains: float
    encoding: Encoding
    explained: list[bool]
    expected: Encode  # the ids of a text by a changed model, where what no file can express differs as well


class Several(Steps):
    """A search over several texts."""

    _end = 0.0  # when no more changes are tried

    def found(self) -> FoundCauses:
        """Return the changes after which most ids agree."""
        tried: Sequence[TextWithIds] = self._telling(self._base)
        steps = evident = [*self._doubted(tried), *self._swapped(tried), *self._filled_steps(tried)]
        self._end = time.thread_time() + SECONDS
        for _ in range(_MOST_STEPS):
            encoding = self._after(steps)
            if self._all_agree(encoding, tried):
                more = self._telling(encoding)  # what the texts that were tried do not show, others may
                if not more:
                    break
                tried = more
            best = self._best(encoding, steps, tried)
            if best is None or time.thread_time() > self._end:
                break
            steps = [*steps, best]
        steps = self._needed(steps, evident, tried)
        return self._told([*steps, *self._hidden_by(steps, tried)])

    def _doubted(self, tried: Sequence[TextWithIds]) -> list[SearchStep]:
        """The pre-tokenizer that the tokens point to, if they do not fit the file's and the ids fit that one.

        Of those that fit the tokens alike, the one by which most ids agree.
        """
        if self._like is not None:
            return []
        shares = {step: self._agreeing(step.apply(self._base), tried) for step in self._likely_pre()}
        best = max(shares, key=shares.__getitem__, default=None)
        return [best] if best and shares[best] >= self._agreeing(self._base, tried) else []

    def _hidden_by(self, steps: list[SearchStep], tried: Sequence[TextWithIds]) -> list[SearchStep]:
        """The pre-tokenizer that the tokens point to, if the ids fit it after the changes in `steps`.

        Before them they may not: markers that are taken for text are split by it as well.
        """
        if not steps or any(step.kind == "pre" for step in steps):
            return []
        encoding = self._after(steps)
        share, explained = self._agreeing(encoding, tried), self._explained(encoding)
        for step in self._likely_pre():
            after = step.apply(encoding)
            if self._agreeing(after, tried) >= share and all(map(ge, self._explained(after), explained)):
                return [step]
        return []

    def _likely_pre(self) -> list[SearchStep]:
        """The steps to pre-tokenizers that the tokens point to, if they do not fit the file's; the likeliest first."""
        if self._vocabulary.tokenizer_model.ignores_pre or not self._variants.has_doubtful_pre:
            return []
        evidence = self._variants.evidence
        if not evidence.is_against:
            return []
        families = {family.family for family in evidence.best}
        steps = [step for step in self._pre_steps() if PRE_TOKENIZERS[step.names[0]].family in families]
        return sorted(steps, key=lambda step: evidence.name not in step.names)

    def _swapped(self, tried: Sequence[TextWithIds]) -> list[SearchStep]:
        """Tokens that have each other's ids, as the texts show; other scores or merges may hide it in the ids."""
        if self._like is None:
            pairs = swapped(self._tokenizer, tried)
        else:
            pairs = exchanged_in(self._vocabulary.tokens, self._like.tokens, tried)
        return [SearchStep("vocabulary", with_exchanged(self._vocabulary, pairs))] if pairs else []

    def _telling(self, encoding: Encoding) -> list[TextWithIds]:
        """The shortest texts that still differ, and some that agree; empty if none differs."""
        differing = [each for each, is_same in zip(self._compared, self._explained(encoding)) if not is_same]
        if not differing:
            return []
        parts = [part for each in differing for part in self._parts(each)]
        differing = [each for each in parts if self.ids(encoding, each) != each.ids] or differing
        chosen = shortest(differing, _MOST_BYTES)
        agreeing = [each for each in self._compared if each not in chosen and each not in differing]
        return chosen + shortest(agreeing, _MOST_BYTES // 4)

    def _parts(self, each: TextWithIds) -> list[TextWithIds]:
        """A text, or if it is long, its lines."""
        return parts_of(self._tokenizer, each) if len(each.text) > _MOST_BYTES else [each]

    def _best(
        self, encoding: Encoding, steps: Sequence[SearchStep], tried: Sequence[TextWithIds]
    ) -> SearchStep | None:
        """The change after which most ids agree, if these are more than before."""
        taken = {step.kind for step in steps}
        best, most = None, self._agreeing(encoding, tried)
        before = most
        for step in self._steps(encoding, tried):
            if step.kind in taken:
                continue
            after = step.apply(encoding)
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

    # ---- how far ids agree -------------------------------------------------------------------------------

    def _after(self, steps: Iterable[SearchStep], base: Encoding | None = None) -> Encoding:
        return reduce(lambda encoding, step: step.apply(encoding), steps, base or self._base)

    def _explained(self, encoding: Encoding) -> list[bool]:
        """Which texts have the other side's ids in an encoding; by the compiled engine if they are long."""
        tokenizer = self.tokenizer(encoding)
        if sum(len(each.text) for each in self._compared) > _MOST_BYTES and not encoding.way:
            tokenizer = Tokenizer(encoding.vocabulary)
        found = []
        for each in self._compared:
            try:
                found.append(self._of(encoding, each, tokenizer) == each.ids)
            except ValueError:  # a byte without a token, a damaged charsmap
                found.append(False)
        return found

    def _agreeing(self, encoding: Encoding, compared: Sequence[TextWithIds]) -> float:
        """The share of the ids of all texts that agree, in order."""
        tokenizer = self.tokenizer(encoding)
        agree = total = 0
        for each in compared:
            try:
                ours = self._of(encoding, each, tokenizer)
            except ValueError:  # a byte without a token, a damaged charsmap
                return 0.0
            agree += common(ours, each.ids)
            total += max(len(ours), len(each.ids))
        return agree / total if total else 1.0

    def _all_agree(self, encoding: Encoding, compared: Iterable[TextWithIds]) -> bool:
        return all(self.ids(encoding, each) == each.ids for each in compared)

    # ---- what is told -----------------------------------------------------------------------------------

    def _told(self, steps: list[SearchStep]) -> FoundCauses:
        encoding = self._after(steps)
        told = {step.kind: told_as_damage(self._tokenizer, self._causes_of(step, encoding)) for step in steps}
        explained = self._explained(encoding)
        tried = shortest(self._compared, 4 * _MOST_BYTES)
        agree = 1.0 if all(explained) else min(self._agreeing(encoding, tried), 0.9999)
        found = sorted(
            (cause for each in told.values() for cause in each),
            key=lambda cause: -1 if cause.id == "pre_type" else cause.place,
        )
        outside = [step for step in steps if not any(cause.change for cause in told[step.kind])]

        def expected(changed: Tokenizer, compared: TextWithIds) -> list[int]:
            after = self._after(outside, Encoding(changed.vocabulary, self._base.parse_special))
            if after.vocabulary is not changed.vocabulary or after.way:
                changed = variants_of(changed).tokenizer(after.vocabulary, after.way)
            return self._of(after, compared, changed)

        return FoundCauses(tuple(found), agree, encoding, explained, expected)

    def _causes_of(self, step: SearchStep, encoding: Encoding) -> list[Cause]:
        """The causes of a step, in words, given all that differs."""
        vocabulary = encoding.vocabulary
        if step.kind in FIELD:
            ours = encoding._replace(head=None, tail=None).around(self._add_special)[step.kind != "bos"]
            return list(framing(vocabulary, step.kind, ours, getattr(encoding, FIELD[step.kind]) or ()))
        if step.names:
            return [self._pre_cause(step, encoding)]
        if step.kind == "lost":
            return list(self._lost_causes(vocabulary))
        return list(step.apply(self._base).causes)

    def _lost_causes(self, vocabulary: Vocabulary) -> Iterator[Cause]:
        """The causes that the file lacks tokens that `vocabulary` has."""
        own, tokens = self._vocabulary.tokens, vocabulary.tokens
        size = len(own)
        if seen := {token for each in self._compared for token in each.ids if size <= token < len(tokens)}:
            yield causes.lost_tokens({token: tokens[token] for token in seen}, size)
        if filled := [token for token in range(size) if own[token] != tokens[token]]:
            found = {token: (tokens[token], vocabulary.attributes[token]) for token in filled}
            yield causes.replaced_by_fillers(self._vocabulary, found)

    def _pre_cause(self, step: SearchStep, encoding: Encoding) -> Cause:
        """The cause that the pre-tokenizer is another one: the likeliest of those that give these ids."""
        evidence = self._variants.evidence
        families: dict[str, list[str]] = {PRE_TOKENIZERS[step.names[0]].family: list(step.names)}
        if self._like is None:
            tried = [part for each in self._compared for part in self._parts(each)]
            tried = shortest(tried, 2 * _MOST_BYTES)
            ids = [self.ids(encoding, each) for each in tried]
            for other in self._pre_steps():
                entry = PRE_TOKENIZERS[other.names[0]]
                same = encoding._replace(vocabulary=encoding.vocabulary._replace(pre_tokenizer=entry))
                if other.names != step.names and all(
                    self.ids(same, each) == own for each, own in zip(tried, ids)
                ):
                    families.setdefault(entry.family, []).extend(other.names)
        ranked = sorted(families, key=evidence.place)
        adds = bool(encoding.around(self._add_special)[0]) if self._add_special else None
        has_cause = encoding.head is not None
        return named_pre(self._vocabulary, families[ranked[0]], ranked[1:], evidence, adds, has_cause)


def shortest(compared: Iterable[TextWithIds], most: int) -> list[TextWithIds]:
    """Return the shortest texts, of at most `most` bytes together, but at least one if there is any."""
    chosen: list[TextWithIds] = []
    size = 0
    for each in sorted(compared, key=lambda each: len(each.text)):
        size += len(each.text)
        if chosen and size > most:
            break
        chosen.append(each)
    return chosen
