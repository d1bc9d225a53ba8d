"""Finds the causes that together explain the texts that differ, and proposes one change of the model file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from operator import eq

from ...gguf.change import Change, all_of
from ...models.vocabulary import Vocabulary
from ...tokenizer import Tokenizer
from ..diagnose.cause import Cause
from ..diagnose.encoding_changes import Encoding
from ..diagnose.model_changes import other_models
from ..diagnose.several import FoundCauses, Several
from ..diagnose.variants import variants_of
from ..doctor.proposal import Proposal, Trial, prove_by_parts, unless_ends_are_lost
from ..doctor.texts_with_ids import TextWithIds, encoding
from ..oracles.oracle import Oracle
from .weighing import weigh

_ALIKE = 0.98  # the share of tokens with the same ids in two files of one vocabulary
_NEARLY_ALL = 0.9  # of the tokens are in the file that has lost some


class Explaining:
    """The search for what explains the differing texts; texts that agree must stay as they are."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        oracle: Oracle,
        differing: Sequence[TextWithIds],
        agreeing: Sequence[TextWithIds],
        flags: tuple[bool, bool],
    ) -> None:
        """`flags` are `add_special` and `parse_special` of the comparison."""
        self._tokenizer, self._oracle = tokenizer, oracle
        self._differing, self._agreeing = differing, agreeing
        self._flags = flags
        self._by_text = {each.text: number for number, each in enumerate(differing)}

    @property
    def is_of_other_vocabulary(self) -> bool:
        """Whether the ids are known to be those of another vocabulary."""
        other = self._oracle.tokenizer
        return other is not None and not share_most_tokens(self._tokenizer.vocabulary, other.vocabulary)

    @cached_property
    def _several(self) -> Several:
        other = self._oracle.tokenizer
        same = [other] if other and not self.is_of_other_vocabulary else []
        return Several(
            self._tokenizer,
            [*self._differing, *self._agreeing],
            add_special=self._flags[0],
            parse_special=self._flags[1],
            same=same,
            like=other.vocabulary if other else None,
        )

    @cached_property
    def found(self) -> FoundCauses | None:
        """The changes after which most ids agree; None if the ids are of another vocabulary."""
        if self.is_of_other_vocabulary or not self._differing:
            return None
        if self._other_model is None:
            return self._several.found()
        model, cause = self._other_model
        changed = Encoding(model.vocabulary, self._flags[1])
        every = [True] * (len(self._differing) + len(self._agreeing))
        return FoundCauses((cause,), 1.0, changed, every, encoding(*self._flags))

    @cached_property
    def _other_model(self) -> tuple[Tokenizer, Cause] | None:
        """The file read as another tokenizer model, and that as a cause, if it gives the other side's ids of all texts.

        One such cause explains more than several changes of a model that the file does not have.
        """
        encode = encoding(*self._flags)
        for model, cause in other_models(self._tokenizer):
            if all(encode(model, each) == each.ids for each in [*self._differing, *self._agreeing]):
                return model, cause
        return None

    @property
    def explained(self) -> list[bool]:
        """Which of the differing texts have the other side's ids after all changes."""
        return self.found.explained[: len(self._differing)] if self.found else []

    @property
    def changed(self) -> Tokenizer:
        """The model with all changes."""
        if self._other_model is not None:
            return self._other_model[0]
        return self._several.tokenizer(self.found.encoding) if self.found else self._tokenizer

    def ids_of(self, text: bytes) -> list[int] | None:
        """Return the other side's ids of a differing text; None if they were not kept."""
        number = self._by_text.get(text)
        return None if number is None else self._differing[number].ids

    def is_explained(self, text: bytes) -> bool:
        """Return whether a differing text has the other side's ids after all changes."""
        number = self._by_text.get(text)
        return number is not None and self.explained[number]

    def proposal(self, more: Iterable[Cause] = ()) -> Proposal | None:
        """Return the change of the file that explains most texts, tried in memory; None if no cause calls for one.

        `more` are causes that were found for some of the texts alone. If the ids are those of another file, that one
        may be the broken one: then its ids are no reason to change this one.
        """
        change = all_of(cause.change for cause in more)
        if self.is_of_other_vocabulary or not (change or self._change):
            return None
        with Trial(self._tokenizer, lambda: variants_of(self._tokenizer).evidence) as trial:
            proposal = self.proposal_on(trial, change)
            if not (proposal and proposal.command):
                return proposal
            if self._oracle.tokenizer is not None:
                return self._unless_other_is_suspect(trial, proposal)
            return unless_ends_are_lost(trial, proposal)

    @property
    def _change(self) -> Change:
        return all_of(cause.change for cause in self.found.causes) if self.found else Change()

    def proposal_on(self, trial: Trial, more: Change) -> Proposal | None:
        """Return the better of two changes: what the texts call for with `more`, or, if that does not pass, without."""
        tried: list[Proposal] = []
        for change in (self._change | more, self._change):
            if change and not (tried and tried[0].change == change):
                tried.append(self._proved(trial, change))
                if tried[-1].command and tried[-1].explained == tried[-1].differing:
                    break
        return max(tried, key=lambda each: (bool(each.command), each.explained), default=None)

    def _unless_other_is_suspect(self, trial: Trial, proposal: Proposal) -> Proposal:
        other = self._oracle.tokenizer
        assert other is not None
        with Trial(other, lambda: variants_of(self._tokenizer).evidence) as others:
            weighed = weigh(trial, others)
        if weighed.suspect == 0:
            return proposal
        if weighed.suspect is None:
            return proposal._replace(command="", objection="nothing tells which of the two files is right")
        why = f"{self._oracle.name} looks like the broken one: {weighed.reasons[1][0]}"
        return proposal._replace(command="", objection=why)

    def _proved(self, trial: Trial, change: Change) -> Proposal:
        compared, encode = [*self._differing, *self._agreeing], encoding(*self._flags)
        if self.found is None:
            return prove_by_parts(trial, change, compared, encode=encode)
        exchanged = self.found.encoding.exchanged
        return prove_by_parts(
            trial, change, compared, encode=encode, expected=self.found.expected, exchanged=exchanged
        )


def share_most_tokens(one: Vocabulary, other: Vocabulary) -> bool:
    """Return whether two vocabularies are one, but for a few tokens: those of one may be lost in the other.

    With the same tokens, `tokenizer.ggml.model` may be what is wrong in one of them.
    """
    if one.tokens == other.tokens:
        return True
    if one.model != other.model:
        return False
    size = min(len(one.tokens), len(other.tokens))
    same = sum(map(eq, one.tokens, other.tokens))
    return same >= _ALIKE * size and size >= _NEARLY_ALL * max(len(one.tokens), len(other.tokens))
