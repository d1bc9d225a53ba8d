"""Says that the merges of the file are damaged, rather than that the other side ignores them or has others.

Where merges are cut off, misspelt or shuffled, nearly every word has other ids than the model was trained with. The
changes that a search tries then explain the ids by chance: words that are taken whole, or merged by token ids.
"""

from __future__ import annotations

from collections.abc import Iterable
from weakref import WeakKeyDictionary

from ..._util.errors import GGUFError
from ...models.pretokenizers.registry import PRE_TOKENIZERS
from ...tokenizer import Tokenizer
from ..doctor.merge_checks import unreachable
from ..doctor.proposal import Trial
from .cause import Cause
from .cause_search import Answer
from .variants import variants_of

# Of the tokens; fewer may only come out as whole words, under a pre-tokenizer that the file has lost.
_LEAST = 0.1


def with_damaged_merges(tokenizer: Tokenizer, found: Iterable[Answer]) -> list[Answer]:
    """Return `found` with damaged merges as the cause where they are what the ids show; equal answers are one."""
    told: dict[str, Answer] = {}
    for answer in found:
        causes = told_as_damage(tokenizer, answer.causes)
        told.setdefault(repr(causes), answer._replace(causes=tuple(causes)))
    return list(told.values())


def told_as_damage(tokenizer: Tokenizer, causes: Iterable[Cause]) -> list[Cause]:
    """Return `causes` with damaged merges, if the file has such, instead of those that they may be taken for."""
    told = list(causes)
    suspect = [cause for cause in told if _may_be_damage(tokenizer, cause)]
    damage = _damage(tokenizer) if suspect else None
    return told if damage is None else [*(cause for cause in told if cause not in suspect), damage]


def _may_be_damage(tokenizer: Tokenizer, cause: Cause) -> bool:
    """Whether ids that differ by a cause may differ because merges are damaged."""
    if cause.id == "pre_type":  # of one that takes words whole, to which the tokens do not point
        names: list[str] = cause.detail["names"]  # type: ignore[assignment]
        own = tokenizer.vocabulary.pre_tokenizer
        takes_whole = all(PRE_TOKENIZERS[name].ignore_merges for name in names)
        return takes_whole and not own.ignore_merges and not variants_of(tokenizer).evidence.is_against
    return cause.id == "ignore_merges" or (cause.id == "merges" and "model" not in cause.detail)


_DAMAGE: WeakKeyDictionary[Tokenizer, Cause | None] = WeakKeyDictionary()


def _damage(tokenizer: Tokenizer) -> Cause | None:
    """The cause that the merges of the file are damaged, kept as long as the tokenizer; None if they are not."""
    if tokenizer not in _DAMAGE:
        _DAMAGE[tokenizer] = _found_damage(tokenizer)
    return _DAMAGE[tokenizer]


def _found_damage(tokenizer: Tokenizer) -> Cause | None:
    """The cause if `doctor` warns of tokens that merges do not produce."""
    try:
        with Trial(tokenizer) as trial:
            size = len(trial.before.tokens)
            found = [each for each in unreachable(trial.before) if each.severity == "warning"]
    except (GGUFError, OSError):  # the tokenizer was made without a file, or it was removed
        return None
    if not found or not found[0].detail:
        return None
    count = found[0].detail["count"]
    if count <= _LEAST * size and variants_of(tokenizer).evidence.is_against:
        return None
    what = f"the merges of the file are damaged or missing: they do not produce {count} of its {size} tokens"
    return Cause(
        "merges",
        {"what": what, "problem": "damaged", "count": count, "size": size},
        "convert the model again, with the merges of its own tokenizer",
    )
