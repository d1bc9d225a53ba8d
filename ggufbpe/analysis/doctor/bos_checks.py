"""Checks whether a file adds BOS where it should not, or leaves it out where it should add one.

template_checks.py checks for a second BOS, written by the chat template.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...gguf.constants import TokenizerKey
from ...models.pretokenizers.registry import PRE_TOKENIZERS
from ...models.special_ids import END_OF_GENERATION
from .chat_markers import without_comments
from .facts import TEXTS_OF_IDS, Facts
from .finding import Finding
from .pretokenizer_checks import is_of_other_family
from .special_id_checks import usual_token

_K = TokenizerKey


def bos_is_eos(model: Facts) -> Iterator[Finding]:
    """A BOS that is added before every text and ends texts: the file's EOS, or that of its family, which adds none."""
    tokenizer, family = model.tokenizer, model.family
    if tokenizer is None or not model.adds("bos") or not model.obeys_flags or tokenizer.bos_id is None:
        return
    bos = tokenizer.bos_id
    of_family = family is not None and not family.add_bos and bos == model.id_of_family(_K.EOS_ID)
    if not (bos == tokenizer.eos_id or of_family) or model.is_normal(bos):  # which other checks report
        return
    if _K.ADD_BOS not in model.file and model.kind.has_pre_tokenizer and is_of_other_family(model):
        return  # it is the wrong pre-tokenizer that adds it
    if bos == tokenizer.eos_id:
        told = f"BOS is added, and BOS and EOS are both token {bos}, {model.quoted(bos)}."
        told += f" {family.name} files do not add BOS." if family and not family.add_bos else ""
    else:
        told = f"BOS is added, and is token {bos}, {model.quoted(bos)}."
        told += f" {family.name} files end texts with it and do not add it before them." if family else ""
    right = _right_ids(model, bos)
    if right and (family is None or family.add_bos):
        fix = model.command(*(word for key, token in right.items() for word in ("--set", f"{key}={token}")))
    elif tokenizer.vocabulary.pre_tokenizer.always_add_bos:
        fix = f"set {_K.BOS_ID} and {_K.EOS_ID} to the ids of the right tokens (`ggufbpe fix` with --set)"
    else:
        fix = model.set(_K.ADD_BOS, "false")
    yield Finding(
        "warning",
        "bos_is_eos",
        "Every text begins with the token that ends a text.",
        "To the model, that token ends another text. If it was not trained to see it first, it answers worse.",
        fix,
        model.key(_K.ADD_BOS, bos),
        {"token": bos},
        told,
    )


def _right_ids(model: Facts, token: int) -> dict[str, int]:
    """Return the right ids by key where `token` is BOS and EOS: those of the family, or else tokens with usual texts.

    A text that is usual for EOS, such as "<|eot_id|>" of a tuned model, is no wrong one. "<|endoftext|>" may be both.
    """
    text, right = model.tokens[token], {}
    for key in (_K.BOS_ID, _K.EOS_ID):
        is_usual = text in TEXTS_OF_IDS[key] or (key == _K.EOS_ID and text in END_OF_GENERATION)
        if is_usual and key == _K.EOS_ID:
            continue
        own = model.id_of_family(key)
        if own is None and not is_usual:
            own = usual_token(model, key)
        if own is not None and own != token:
            right[key] = own
    return right


def bos_switched_off(model: Facts) -> Iterator[Finding]:
    """A BOS that the file does not add, although its pre-tokenizer or its family does."""
    tokenizer, family = model.tokenizer, model.family
    if tokenizer is None or model.adds("bos") or not model.obeys_flags or tokenizer.bos_id is None:
        return
    bos, is_off = tokenizer.bos_id, model.scalar(_K.ADD_BOS) is False
    if family is not None:
        # without a flag, the right pre-tokenizer adds it again, and another check reports a wrong one
        by_pre = any(PRE_TOKENIZERS[name].add_bos for name in family.pres)
        is_expected, who = family.add_bos and (is_off or not by_pre), f"{family.name} files add"
    else:
        by_pre = model.kind.has_pre_tokenizer and tokenizer.vocabulary.pre_tokenizer.add_bos and is_off
        is_expected = by_pre and bos != tokenizer.eos_id and not model.is_normal(bos)
        who = f"the pre-tokenizer {model.pre} adds"
    if not is_expected:
        return
    lacks_eos = family is not None and family.add_eos and not model.adds("eos")  # XLM-RoBERTa adds both
    right = [word for key in (_K.ADD_BOS, _K.ADD_EOS)[: 1 + lacks_eos] for word in ("--set", f"{key}=true")]
    command = model.command(*right)
    yield Finding(
        "warning" if family else "note",  # the file's own word is better than the name of its pre-tokenizer
        "bos_switched_off",
        "Texts do not begin with BOS, although the model was trained with it."
        if family
        else "Texts do not begin with BOS, which llama.cpp adds for most models with this pre-tokenizer.",
        "Without BOS at the beginning of a text, a model that was trained with it answers worse."
        + (" Chats have it, since the chat template writes it." if _template_writes_bos(model) else ""),
        command if family else f"if the original model adds {model.quoted(bos)}: {command}",
        model.key(_K.ADD_BOS, bos),
        {"token": bos},
        f"{_K.ADD_BOS} {'turns it off' if is_off else 'is missing'}, while {who} BOS{' and EOS' * lacks_eos}.",
    )


def _template_writes_bos(model: Facts) -> bool:
    assert model.tokenizer is not None
    template, bos = without_comments(model.template), model.tokenizer.bos_id
    return (bos is not None and model.tokens[bos] in template) or bool(re.search(r"\bbos_token\b", template))
