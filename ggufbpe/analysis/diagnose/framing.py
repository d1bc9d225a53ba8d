"""Explains BOS, EOS or SEP around the ids of a text that differ from those that the model adds."""

from __future__ import annotations

from collections.abc import Iterator

from ..._util.wording import counted
from ...gguf.change import Change
from ...gguf.constants import TokenizerKey
from ...models.pieces import quoted_token
from ...models.vocabulary import Vocabulary
from .cause import Cause

_K = TokenizerKey


def framing(
    vocabulary: Vocabulary, name: str, ours: tuple[int, ...], theirs: tuple[int, ...]
) -> Iterator[Cause]:
    """The cause if `ours`, at one end of the model's ids, is not `theirs`, at that end of the given ones.

    `name` is "bos" or "eos".
    """
    if ours == theirs:
        return
    added = name_of_added(vocabulary, name)
    special = vocabulary.special_ids[added]
    upper, flag = added.upper(), {"bos": _K.ADD_BOS, "eos": _K.ADD_EOS}[name]
    key = {"bos": _K.BOS_ID, "eos": _K.EOS_ID, "sep": _K.SEP_ID}[added]
    add, remove = f"let the other tool add {upper}", f"stop the other tool from adding {upper}"
    change, heeds = Change(), _heeds(vocabulary, name)
    if not theirs:
        problem, what, fix = "missing", f"the model adds {upper}, but the given ids have none", add
        if not heeds:
            fix += f", which llama.cpp always adds for this model, whatever {flag} says"
        elif name == "bos" and vocabulary.pre_tokenizer.always_add_bos:
            fix += f", which llama.cpp adds under this pre-tokenizer whatever {flag} says"
        else:
            change = Change({flag: "false"})
        if name == "bos":
            fix += "; for one call, add_special=False"
    elif (kept := without_padding(special, ours, theirs)) != theirs:
        pad, begin, inside = (theirs[0], "begin", "after") if name == "bos" else (theirs[-1], "end", "before")
        problem, fix = "padded", "switch off padding in the other tool, or leave out the ids that it masks"
        count = counted(theirs.count(pad), "padding token")
        what = f"the given ids {begin} with {count}, {_token(vocabulary, pad)}"
        if ours and not kept:
            what += f", with no {upper} {inside} them"
    elif len(theirs) > 1:
        problem, what = "twice", f"{upper} is there {len(theirs)} times"
        fix = f"{remove}: the text or its chat template already has one"
    elif theirs[0] != special:
        problem, what, fix = "other", f"the given ids have {_token(vocabulary, theirs[0])} as {upper}", ""
        what += f", the model adds {_token(vocabulary, ours[0])}" if ours else ", the model adds none"
        if ours:
            change = Change({key: str(theirs[0])})
        elif heeds:
            fix, change = remove, Change({key: str(theirs[0]), flag: "true"})
        else:
            fix = f"{remove}: llama.cpp never adds one for this model"
    else:
        problem, what, fix = "added", f"the given ids have {upper}, but the model adds none", remove
        if not heeds and not _adds(vocabulary, name):
            fix += f": llama.cpp never adds one for this model, whatever {flag} says"
        elif _adds(vocabulary, name):
            fix += ", or add special tokens here as well (leave out add_special=False)"
        else:
            change = Change({flag: "true"})
    detail: dict[str, object] = {"what": what, "problem": problem}
    yield Cause(added, {**detail, "ours": list(ours), "theirs": list(theirs)}, fix, change)


def without_padding(special: int | None, ours: tuple[int, ...], theirs: tuple[int, ...]) -> tuple[int, ...]:
    """Return `theirs`, at one end of the given ids; where that is padding, `ours` if `special` is among it."""
    is_padding = len(theirs) > 1 and theirs != (special, special)
    return ours * (special in theirs) if is_padding else theirs


def name_of_added(vocabulary: Vocabulary, name: str) -> str:
    """The name of the token that the model adds at the beginning ("bos") or the end ("eos", in some models "sep")."""
    found = vocabulary.tokenizer_model.added_names(True, True)[name != "bos"]
    return found[0] if found else name


def _adds(vocabulary: Vocabulary, name: str) -> bool:
    """Whether the model adds a token there, if asked for special tokens."""
    return bool(vocabulary.added[name != "bos"])


def _heeds(vocabulary: Vocabulary, name: str) -> bool:
    """Whether that depends on the flags in the file."""
    model, at = vocabulary.tokenizer_model, name != "bos"
    return bool(model.added_names(True, True)[at]) != bool(model.added_names(False, False)[at])


def _token(vocabulary: Vocabulary, token: int) -> str:
    known = 0 <= token < len(vocabulary.tokens)
    return f"{token} ({quoted_token(vocabulary, token)})" if known else str(token)
