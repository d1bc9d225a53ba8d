"""Whether one model may draft for another in llama.cpp's speculative decoding, judged by their vocabularies.

Source: common/speculative.cpp, common_speculative_are_compatible; which drafts it is not called for is in
common_speculative_types_from_gguf. It is not called for drafts of the architecture eagle3 either, which have a type of
their own.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import compress, count
from operator import ne
from typing import NamedTuple

from ..._util.errors import GGUFError, printable
from ..._util.wording import counted, listed
from ...gguf.change import Change, all_of
from ...gguf.constants import TokenizerKey
from ...gguf.reader import GGUFFile
from ...gguf.tensors import tensor_infos
from ...models.vocabulary import Vocabulary
from ...tokenizer import Tokenizer
from ...tokenizer.inputs import Model, tokenizers_of
from .facts import DRAFTERS
from .local_models import BROKEN, LocalModel, local_models, model_size
from .proposal import Proposal, Trial, prove

MOST_TOKENS_MORE = 128  # SPEC_VOCAB_MAX_SIZE_DIFFERENCE
FIRST_COMPARED = 5  # SPEC_VOCAB_CHECK_START_TOKEN_ID
COMPATIBLE, INCOMPATIBLE, NOT_ASKED = "compatible", "incompatible", "not_asked"

_MTP_TENSOR = "blk.{}.nextn.eh_proj.weight"


class DraftDifference(NamedTuple):
    """A difference of two vocabularies for which llama.cpp refuses the draft.

    `id` is "type", "bos", "eos", "size" or "tokens", and `what` a sentence. For "tokens", `ids` are those of all tokens
    that differ, ascending. `change` is the change of the draft by which this difference goes away; None if there is
    none.
    """

    id: str
    what: str
    ids: tuple[int, ...] = ()
    change: Change | None = None


@dataclass(frozen=True)
class DraftCheck:
    """The result of `check_draft`. `verdict` is "compatible", "incompatible" or "not_asked".

    `target` and `draft` are the names of the models, and `differences` what llama.cpp refuses the draft for. `reason`
    says why a draft is not asked; "" if it is. `proposal` is the change of the draft by which it would be compatible,
    if there is one.
    """

    target: str
    draft: str
    differences: tuple[DraftDifference, ...] = ()
    reason: str = ""
    proposal: Proposal | None = None

    @property
    def verdict(self) -> str:
        if self.reason:
            return NOT_ASKED
        return INCOMPATIBLE if self.differences else COMPATIBLE

    @property
    def may_draft(self) -> bool:
        """Whether llama.cpp takes the draft, as far as vocabularies decide that."""
        return bool(self.reason) or not self.differences

    @property
    def fix(self) -> str:
        """The command that makes a compatible copy of the draft; "" if none is needed or none would do."""
        return self.proposal.command if self.proposal else ""


def check_draft(target: Model, draft: Model) -> DraftCheck:
    """Find whether `draft` may draft for `target` in llama.cpp's speculative decoding, and if not, why.

    llama.cpp wants vocabularies of one type that agree on whether BOS and EOS are added, and which they are if so; that
    have at most 128 tokens more or less; and whose tokens from id 5 on have the same texts as far as both have them.
    Drafts with heads of their own (MTP, EAGLE-3, DFlash) use the target's vocabulary and are not asked.

    Each argument is a `Tokenizer` or the path or name of a model. `GGUFError` if one cannot be used.

    >>> check_draft("Qwen3-32B.gguf", "Qwen3-0.6B.gguf").verdict              # doctest: +SKIP
    'compatible'
    """
    one, other = tokenizers_of({"target": target, "draft": draft}).values()
    paths = one.name or one.pre, other.name or other.pre
    if reason := _own_head(other):
        return DraftCheck(*paths, reason=reason)
    found = tuple(draft_differences(one.vocabulary, other.vocabulary))
    changes = [each.change for each in found if each.change is not None]
    if not found or len(changes) < len(found):
        return DraftCheck(*paths, found)
    return DraftCheck(*paths, found, proposal=_proven(one, other, all_of(changes)))


def draft_differences(target: Vocabulary, draft: Vocabulary) -> Iterator[DraftDifference]:
    """Return what llama.cpp refuses `draft` for; more than one where it would stop at the first."""
    types = target.tokenizer_model.vocab_type, draft.tokenizer_model.vocab_type
    if types[0] != types[1]:
        what = f"The target's tokenizer is {target.model}, and the draft's is {draft.model}."
        yield DraftDifference("type", what)
    yield from _of_special(target, draft)
    sizes = len(target.tokens), len(draft.tokens)
    if abs(sizes[0] - sizes[1]) > MOST_TOKENS_MORE:
        what = (
            f"The target has {sizes[0]} tokens and the draft {sizes[1]}, more than {MOST_TOKENS_MORE} apart."
        )
        yield DraftDifference("size", what)
    if ids := _other_texts(target.tokens, draft.tokens):
        both = (
            f"{id} ({printable(target.tokens[id], 20)} and {printable(draft.tokens[id], 20)})" for id in ids
        )
        shown = listed(both, len(ids), " and more", str)
        what = f"{counted(len(ids), 'token has', 'tokens have')} another text: {shown}."
        yield DraftDifference("tokens", what, ids)


def _of_special(target: Vocabulary, draft: Vocabulary) -> Iterator[DraftDifference]:
    """BOS and EOS: whether they are added, and if both add them, which tokens they are."""
    for name, flag, key, id_key in (
        ("bos", "add_bos", TokenizerKey.ADD_BOS, TokenizerKey.BOS_ID),
        ("eos", "add_eos", TokenizerKey.ADD_EOS, TokenizerKey.EOS_ID),
    ):
        adds = getattr(target, flag), getattr(draft, flag)
        ids = target.special_ids[name], draft.special_ids[name]
        change = Change({key: str(adds[0]).lower()} if adds[0] != adds[1] else {})
        if adds[0] and ids[0] != ids[1]:
            change |= Change({id_key: None if ids[0] is None else str(ids[0])})
        if not change:
            continue
        if adds[0] != adds[1]:
            sides = ("target", "draft") if adds[0] else ("draft", "target")
            what = f"The {sides[0]} adds {name.upper()} to a text, and the {sides[1]} does not."
        else:
            what = f"{name.upper()} is {_named(target, ids[0])} in the target and {_named(draft, ids[1])} in the draft."
        yield DraftDifference(name, what, change=change)


def _named(vocabulary: Vocabulary, id: int | None) -> str:
    return "no token" if id is None else f"token {id} ({printable(vocabulary.tokens[id])})"


def _other_texts(target: Iterable[str], draft: Iterable[str]) -> tuple[int, ...]:
    """Return the ids from 5 on whose texts differ; texts are C strings there, which end at a NUL."""
    texts, others = list(target), list(draft)
    if texts == others:
        return ()
    ids = compress(count(), map(ne, texts, others))
    return tuple(
        id
        for id in ids
        if id >= FIRST_COMPARED and texts[id].partition("\0")[0] != others[id].partition("\0")[0]
    )


def _own_head(draft: Tokenizer) -> str:
    """Return why llama.cpp does not ask about a draft's vocabulary; "" if it does."""
    architecture = draft.vocabulary.architecture
    if kind := DRAFTERS.get(architecture):
        return f"The draft is a head of its own ({kind}), which uses the target's vocabulary."
    path = draft.vocabulary.path
    if not os.path.isfile(path):
        return ""
    with GGUFFile(path) as file:
        key = f"{architecture}.block_count"
        blocks = file[key] if key in file else None  # noqa: SIM401 - no dict, has no get
        if not isinstance(blocks, int):
            return ""
        wanted = _MTP_TENSOR.format(blocks - 1).encode()
        is_mtp = any(info.name == wanted for info in tensor_infos(file))
    return (
        "The draft has layers for multi-token prediction (MTP), which use the target's vocabulary."
        if is_mtp
        else ""
    )


def _proven(target: Tokenizer, draft: Tokenizer, change: Change) -> Proposal:
    """Return the proposal for the draft, tried in memory: afterwards nothing may differ, and nothing else be worse."""
    with Trial(draft) as trial:
        proposal = prove(trial, change, widening=0)
        if not proposal.command:
            return proposal
        after = trial.changed(proposal.change).tokenizer
        left = [] if after is None else list(draft_differences(target.vocabulary, after.vocabulary))
    if left:
        return proposal._replace(command="", objection=left[0].what)
    return proposal


class LocalDraft(NamedTuple):
    """A `model` on this machine that may draft for another, with the result of `check_draft` (`check`)."""

    model: LocalModel
    check: DraftCheck


def local_drafts(target: Model) -> list[LocalDraft]:
    """Return the models on this machine that may draft for `target`, the smallest first; reads only metadata.

    Those are smaller than the target, if its size is known, and compatible with it by `check_draft`, or would be after
    the `fix` of the check.

    >>> [each.model.name for each in local_drafts("Qwen3-32B.gguf")]         # doctest: +SKIP
    ['hf:Qwen/Qwen3-0.6B-GGUF:Q8_0']
    """
    [one] = tokenizers_of([target]).values()
    own = os.path.realpath(one.vocabulary.path) if one.vocabulary.path else ""
    models = local_models(verdicts=False)
    size = model_size(own) if os.path.isfile(own) else 0
    found = []
    for model in models:
        if model.verdict == BROKEN or not model.path or os.path.realpath(model.path) == own:
            continue
        if size and model.size and model.size >= size:
            continue
        try:
            check = check_draft(one, model.path)
        except (GGUFError, OSError):
            continue  # `ggufbpe models` says what is wrong with it
        if check.may_draft or check.fix:
            found.append(LocalDraft(model, check))
    return sorted(found, key=lambda each: (each.model.size or 0, each.model.name))
