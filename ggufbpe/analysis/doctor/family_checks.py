"""Finds the known family of models that the tokens are from, and where the file differs from that family.

Differences are only reported: models are changed on purpose, too. Where another check proposes a command, the family
is its evidence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from ..._util.errors import printable
from ..._util.wording import counted, listed
from ...gguf.constants import KEY_NAME, TokenizerKey
from ...models.known_families import (
    KNOWN_FAMILIES,
    KnownFamily,
    family_of_names,
    family_of_tokens,
    splits_like,
)
from ...models.special_ids import PHI_3
from .facts import Facts
from .finding import Finding

_K = TokenizerKey

TOKENS_MOVED = "tokens_moved"  # beside this finding no command is proposed: any would use wrong ids
_MOST_MOVED = 64  # ids: a few tokens were put in or left out


def known_family(model: Facts) -> Iterator[Finding]:
    """A note that names the family, with what differs from its files."""
    named = family_of_names(model.names)
    family = model.family
    if family is None:
        if named is not None and named[0].model == model.model and model.tokens:
            yield _other_tokens(model, *named)
        return
    differences = list(other_values(model))
    if len(model.tokens) < family.size:
        differences.insert(0, f"the vocabulary has {len(model.tokens)} tokens instead of {family.size}")
    what = f"This is {family.vocabulary}"
    if differences:
        what += f", but the file differs from {family.name} files in {counted(len(differences), 'point')}"
    called = f"The file calls itself {printable(named[1])}. " if named else ""
    same = f"Its pre-tokenizer, BOS and EOS are those of {family.name} files."
    yield Finding(
        "note",
        "known_family",
        f"{what}.",
        "What a file has in common with others of its family is most likely right. A difference may be intended.",
        "nothing to do, unless another finding says so",
        model.key(_K.LIST),
        {"family": family.name, "differences": differences, "named": named[1] if named else None},
        called + ("; ".join(differences) + "." if differences else same),
    )


def last_tokens_missing(model: Facts) -> Iterator[Finding]:
    """The last tokens of a known vocabulary that a file lacks, beyond those that only fill it up."""
    family = model.family
    if family is None or len(model.tokens) > family.last_used[0]:
        return
    first = len(model.tokens)
    index, text = family.last_used
    yield Finding(
        "warning",
        "lost_tokens",
        f"The last tokens of {family.vocabulary} are missing.",
        "Texts that contain them are encoded as other tokens, and ids that the model generates for them have no text.",
        "convert the model again",
        model.key(_K.LIST),
        {"family": family.name, "first": first, "last": index},
        f"The file has {counted(first, 'token')}. {family.name} files have more, such as {printable(text)} with id "
        f"{index}.",
    )


def tokens_moved(model: Facts) -> Iterator[Finding]:
    """Tokens whose ids are shifted against those of their family, where BOS or EOS still has the family's id."""
    if family_of_tokens(model.tokens) is not None:
        return
    for family in KNOWN_FAMILIES:
        last, text = family.last
        by = model.ids.get(text, last) - last
        is_of_model = family.model in (model.model, *model.likely_models)
        if is_of_model and 0 < abs(by) <= _MOST_MOVED and family.begins(model.tokens):
            yield from islice(_moved_with_special(model, family, by), 1)


def _moved_with_special(model: Facts, family: KnownFamily, by: int) -> Iterator[Finding]:
    for key, special in ((_K.BOS_ID, family.bos), (_K.EOS_ID, family.eos)):
        if special is None or special[0] != model.scalar(key) or special[0] >= len(model.tokens):
            continue
        token, marker = special
        if model.tokens[token] == marker or model.ids.get(marker, token + by) != token + by:
            continue
        last = family.last[0]
        yield Finding(
            "warning",
            TOKENS_MOVED,
            f"Many tokens have other ids than in {family.name} files.",
            "The model was trained with the original ids, so it reads other words than those of the prompt, and its "
            "answers are shown as other words.",
            "compare the tokens with those of the original model (`ggufbpe diff`), and convert the model again",
            model.key(key, token),
            {"family": family.name, "by": by},
            f"{key} is {token}, as in {family.name} files, where that is {printable(marker)}; here, it is "
            f"{model.quoted(token)}. {model.quoted(last + by)} is token {last + by} instead of {last}.",
        )


def fix_of_name(model: Facts) -> str:
    """How to mend a model that llama.cpp refuses because its name says Phi-3; "" if no better way than usual is known.

    A whole vocabulary of another family gets another name. Under another name, the markers of a Phi-3 would no longer
    take the spaces behind them, so that chats would get other ids.
    """
    family = model.family
    if family is None or model.refusal is None or model.refusal.key != KEY_NAME:
        return ""
    if family.name.lower() in PHI_3:
        return "convert the model again"
    if not family.is_whole(model.tokens, model.scalar(_K.EOS_ID)):
        return ""
    name = re.sub("|".join(PHI_3), lambda found: f"{found[0][:3]} 3", model.text(KEY_NAME), flags=re.I | re.A)
    return model.set(KEY_NAME, name)


def added_text(model: Facts) -> Iterator[Finding]:
    """Tokens of plain text that files of the family find in texts as they find markers, and this file does not.

    Only those that no merge makes are reported: as normal tokens, they never come out of a text.
    """
    family = model.family
    if family is None or model.tokenizer is None or len(model.tokens) < family.added_text.stop:
        return
    found = [
        index
        for index in family.added_text
        if model.is_normal(index) and model.tokens[index] not in model.merged
    ]
    if not found:
        return
    yield Finding(
        "warning",
        "added_text_is_normal",
        f"{counted(len(found), 'added token is', 'added tokens are')} never produced.",
        "They were added to the vocabulary, so no merge makes them. Only a user-defined token is found without merges.",
        model.set_types(USER_DEFINED=found),
        model.token(found[0]),
        {"count": len(found), "ids": found},
        f"{counted(len(found), 'token is', 'tokens are')} of type NORMAL and not USER_DEFINED: "
        f"{listed(found, len(found), shown=model.quoted)}.",
    )


def _other_tokens(model: Facts, family: KnownFamily, name: str) -> Finding:
    index, text = family.last
    own = model.quoted(index) if index < len(model.tokens) else "missing"
    return Finding(
        "note",
        "known_family",
        f"The file calls itself {printable(name)}, but its tokens are not those of {family.name}.",
        "Either the model has a vocabulary of its own, or some of its tokens were lost or exchanged.",
        "compare the tokens with those of the original model (`ggufbpe diff`)",
        model.key(KEY_NAME),
        {"family": family.name, "named": name},
        f"The token with id {index} is {own}; in {family.name} files, that is {printable(text)}. The file has "
        f"{counted(len(model.tokens), 'token')}, {family.name} files {family.size}.",
    )


def other_values(model: Facts) -> Iterator[str]:
    """Yield the values that a file has and those of its family do not, in words."""
    family = model.family
    if family is None:
        return
    if not model.kind.ignores_pre and family.pres and not splits_like(model.pre, family):
        own = f"is {printable(model.pre)}" if model.pre else "is missing"
        yield f"{_K.PRE} {own} instead of {family.pres[0]}"
    if model.tokenizer is None:
        return
    for name, is_theirs in (("bos", family.add_bos), ("eos", family.add_eos)):
        if model.obeys_flags and model.adds(name) != is_theirs:
            yield f"{name.upper()} is {'not added to texts' if is_theirs else 'added to every text'}"
    vocabulary = model.tokenizer.vocabulary
    if "add_space_prefix" in model.kind.flags and not vocabulary.add_space_prefix:  # which all families have
        yield f"no space is put before texts ({_K.ADD_PREFIX})"
    ids = (("BOS", model.tokenizer.bos_id, family.bos), ("EOS", model.tokenizer.eos_id, family.eos))
    for name, token, expected in ids:
        if expected is not None and token != expected[0]:
            shown = "missing" if token is None else f"token {token}, {model.quoted(token)},"
            yield f"{name} is {shown} instead of {expected[0]}, {printable(expected[1])}"
