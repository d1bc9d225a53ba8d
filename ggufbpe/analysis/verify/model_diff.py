"""Compares two models: their vocabularies, their chat templates, and the texts that they encode differently.

Texts are compared by id_comparison.py, with the second model as the oracle.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..._util.verdicts import same_or_different
from ..._util.wording import counted
from ...data.corpora.records import raised
from ...gguf.change import Change
from ...models.pretokenizers.families import Evidence
from ...models.vocabulary import Vocabulary
from ...tokenizer import Tokenizer
from ...tokenizer.inputs import Model, tokenizers_of
from ..diagnose.cause import Cause, of_two_models
from ..diagnose.causes import with_known_pre
from ..diagnose.variants import variants_of
from ..doctor.proposal import Proposal, Trial, prove
from ..doctor.round_trip_checks import SAMPLES
from ..doctor.texts_with_ids import TextWithIds, encoding
from ..doctor.token_checks import is_misspelt
from ..oracles.recorded_ids import OtherModel
from .explaining import Explaining, share_most_tokens
from .given_texts import ReadingTexts, Source, read_texts
from .id_comparison import ids_compared
from .result import Verification
from .template_diff import template_differences
from .vocabulary_diff import Sections, sections_to_dict, vocabulary_differences
from .weighing import change_to, other_template_of, template_change, weigh, without_template

# Problems of a vocabulary that say no more than that the ids are the other's.
_CLEAR = ("other model", "out of range")


@dataclass(frozen=True, repr=False)
class Differences:
    """The result of `diff`: the differences of vocabularies and chat templates by section, and of texts if given.

    `models` are the paths of both, `names` what they are called in words. `sections` maps each section ("tokens",
    "types", "merges", "flags", "special", "pre", "templates") to its differences, an empty list if there are none.
    `texts` is the comparison of the texts; None if none were given. If both have one vocabulary and one of them looks
    broken, `suspect` is 0 for the first or 1 for the second, `reasons` say why, and `proposal` is the change that makes
    it like the other. If nothing tells which file is right, `changes` has what each would have to change to be like the
    other.
    """

    models: tuple[str, str]
    names: tuple[str, str]
    sections: Sections
    texts: Verification | None
    suspect: int | None = None
    reasons: tuple[str, ...] = ()
    proposal: Proposal | None = None
    changes: tuple[Change, Change] = (Change(), Change())

    @property
    def fix(self) -> str:
        """The command that changes the file that looks broken; "" where both look healthy, or it would not help."""
        return self.proposal.command if self.proposal else ""

    @property
    def verdict(self) -> str:
        """The result in a word: "same" or "different"."""
        return same_or_different(self.same)

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return not any(self.sections.values()) and (self.texts is None or self.texts.same)

    def to_dict(self) -> dict[str, Any]:
        """All of it as `ggufbpe diff --json` writes it."""
        suspect = None if self.suspect is None else ("a", "b")[self.suspect]
        changes = dict(zip("ab", (change.described for change in self.changes)))
        advice = {"suspect": suspect, "reasons": list(self.reasons), "fix": self.fix, "changes": changes}
        found = {"a": self.models[0], "b": self.models[1], **sections_to_dict(self.sections), **advice}
        return found if self.texts is None else {**found, "texts": self.texts.to_dict()}

    def __repr__(self) -> str:
        number = sum(map(len, self.sections.values()))
        texts = f"; {self.texts!r}" if self.texts is not None else ""
        between = " and ".join(self.names)
        return f"<Differences of {between}: {counted(number, 'difference')} of vocabularies and chat templates{texts}>"


def diff(a: Model, b: Model, texts: Source | Iterable[Source] = ()) -> Differences:
    """Find how the tokenizers of two models differ, and where they encode texts differently, and why.

    The result also has a unified diff of the chat templates, and the small chats of which the prompts differ.

    `a` and `b` are each a `Tokenizer` or the path of a file; tokens are compared by their text, after llama.cpp's
    loading rules. `texts` are `str`, bytes, files (`pathlib.Path`) and binary streams, or one of them; each is encoded
    whole, with BOS and EOS and special tokens. `GGUFError` for a model that cannot be used.

    >>> diff("a.gguf", "b.gguf").sections["pre"]                             # doctest: +SKIP
    [<VocabularyDifference pre: 1 pre-tokenizer>]
    """
    (name, one), (other_name, other) = tokenizers_of([a, b]).items()
    names = name, other_name
    sections = {
        **vocabulary_differences(one.vocabulary, other.vocabulary, names),
        "templates": template_differences(one, other, names),
    }
    found = list(read_texts(texts, ReadingTexts(raised), whole=True))
    result = _encoded(one, other, found, names) if found else None
    models, same = (one.name, other.name), not any(sections.values())
    differences = Differences(models, names, sections, result)
    if same or not share_most_tokens(one.vocabulary, other.vocabulary):
        return differences
    advised = _advised(differences, one, other, [text.data for text in found])
    if result is not None and advised.suspect != 0:
        for difference in result.differences:
            difference.causes = tuple(map(_without_conversion, difference.causes))
    return advised


def _without_conversion(cause: Cause) -> Cause:
    """Return a cause without its advice for the first model, which does not look broken.

    Where the cause has a change, its `fix` is for the other side.
    """
    return cause if cause.change else cause._replace(fix="")


def _advised(found: Differences, a: Tokenizer, b: Tokenizer, texts: Sequence[bytes]) -> Differences:
    """Return `found` with which of the two looks broken, and the change that makes it like the other.

    The change is tried on the texts; without texts, on samples.
    """

    def evidence() -> Evidence:
        return variants_of(a).evidence

    with Trial(a, evidence) as one, Trial(b, evidence) as other:
        suspect, reasons = _suspected(one, other)
        if suspect is None:
            return replace(found, changes=(_whole_change(one, other), _whole_change(other, one)))
        (broken, trial), (good, good_trial) = ((a, one), (b, other))[:: 1 - 2 * suspect]
        proposal = _proposal(trial, good_trial, broken, good, texts or [text.encode() for text in SAMPLES])
    if proposal is not None and not texts:
        proposal = proposal._replace(unit="sample text")
    return replace(found, suspect=suspect, reasons=reasons, proposal=proposal)


def _suspected(one: Trial, other: Trial) -> tuple[int | None, tuple[str, ...]]:
    """Return 0 or 1, the file that looks broken, and why; None if nothing tells."""
    weighed = weigh(one, other)
    if weighed.suspect is not None:
        return weighed.suspect, weighed.reasons[weighed.suspect]
    suspect = without_template(one, other)
    return suspect, () if suspect is None else ("it has no chat template",)


def _whole_change(one: Trial, other: Trial) -> Change:
    """Return what would have to change in one file for it to be like the other, its chat template included."""
    return change_to(one, other) | other_template_of(one, other)


def _proposal(
    trial: Trial, good_trial: Trial, broken: Tokenizer, good: Tokenizer, texts: Sequence[bytes]
) -> Proposal | None:
    """Return the change that makes the broken model like the good one."""
    encode = encoding()
    asked = [TextWithIds(text, []) for text in texts]
    compared = [each._replace(ids=ids) for each in asked if (ids := encode(good, each)) or not each.text]
    change, template = change_to(trial, good_trial), template_change(trial, good_trial)
    # others were renamed on purpose, as a reserved token is in a model that was trained further
    change = replace(change, texts={old: new for old, new in change.texts.items() if is_misspelt(old, new)})
    proposal = prove(trial, change | template, compared)
    if template and not proposal.command:  # doctor may warn of the other template, too
        without = prove(trial, change, compared)
        if without.command:
            proposal, template = without, Change()
    change |= template
    if proposal.command and proposal.explained == proposal.differing:  # nothing has to be searched for
        return proposal
    encoded = [(each, ids) for each in compared if (ids := encode(broken, each)) or not each.text]
    differing = [each for each, ids in encoded if ids != each.ids]
    agreeing = [each for each, ids in encoded if ids == each.ids]
    explaining = Explaining(broken, OtherModel(good), differing, agreeing, (True, True))
    return explaining.proposal_on(trial, change)


def _encoded(a: Tokenizer, b: Tokenizer, texts: list[Any], names: tuple[str, str]) -> Verification:
    """How the two encode the texts, without the causes that are clear."""
    result = ids_compared(a, OtherModel(b, names[1]), texts, propose=False)
    for difference in result.differences:
        causes = [
            with_known_pre(cause, a.vocabulary, b.vocabulary) if cause.id == "pre_type" else cause
            for cause in difference.causes
            if cause.id != "vocabulary" or cause.detail.get("problem") not in _CLEAR
        ]
        told = [_of_lacking(cause, b.vocabulary, names[1]) for cause in causes]
        difference.causes = tuple(of_two_models(cause, *names) for cause in told)
    return result


def _of_lacking(cause: Cause, theirs: Vocabulary, name: str) -> Cause:
    """A cause that markers are encoded as plain text, where the other model lacks them, so that none can be parsed."""
    tokens = cause.detail.get("tokens", []) if cause.id == "special_token_types" else []
    if not tokens or any(token["token"] in theirs.token_to_id for token in tokens):  # type: ignore[attr-defined]
        return cause
    what = f"{cause.detail['what']}; {name} has no such tokens"
    return cause._replace(detail={**cause.detail, "what": what}, fix="", change=Change())
