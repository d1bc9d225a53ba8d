"""The special ids: whether they name plausible tokens, and what ends a generation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from ..._util.errors import printable
from ..._util.utf8 import original_bytes
from ...gguf.constants import TokenizerKey, TokenType
from ...gguf.schema import ids_out_of_range
from ...models.special_ids import END_OF_GENERATION, SPECIAL_IDS
from ...models.vocabulary import BYTE, UNUSED
from .facts import TEXTS_OF_IDS, Facts
from .finding import Finding
from .marker_types import set_marker_types
from .tensor_checks import rows
from .token_checks import BRACKETED, CONTROL_LIKE, FILLER, marker_like

_K = TokenizerKey

# They begin or end texts; a wrong PAD or MASK changes no ids of a text.
_TELLING = ("bos", "eos", "eot", "eom")
_NAMED_END = re.compile(r"(?i)end|stop|\beo[a-z]\b|</")
_OTHER_USES = ("[UNK]", "[MASK]", "[PAD]", "<unk>", "<mask>", "<pad>", "<PAD>")
_BEGINNINGS = (("end", "start"), ("end", "begin"), ("END", "START"), ("</", "<"))  # of what has an end
_UNKNOWN_WHY = (
    "llama.cpp encodes unknown text as this token, and the model learned another meaning for the token."
)
_SEP_WHY = "SEP ends every text, so every text gets another last id."
_SPECIAL_WHY = "With a wrong or missing special id, answers may never end, or prompts begin wrongly."


def wrong_special_ids(model: Facts) -> Iterator[Finding]:
    """Special ids that are out of range, or those of normal tokens."""
    size = len(model.tokens)
    out_of_range = dict(ids_out_of_range(model.file, size))
    for name, keys, _ in SPECIAL_IDS:
        for key in keys:
            token = model.scalar(key)
            if token is None or not size:
                continue
            if key in out_of_range:
                default = model.kind.default_ids.get(name)
                instead = "then has none" if default is None else f"uses the default, {default}"
                may_be_removed = not model.adds(name) if default is None else _is_right(model, key, default)
                fix = model.set_id(key)
                if name != "pad" and token < rows(model)[0]:  # whose row may be a filler's
                    fix = "convert the model again: its tensors have a row for this token, which was lost"
                elif may_be_removed:
                    fix += f", or remove the key: {model.remove(key)}"
                yield Finding(
                    "error",
                    "special_id_out_of_range",
                    f"The file gives {name.upper()} an id that no token has.",
                    f"llama.cpp ignores it, and {instead}." + f" {_SPECIAL_WHY}" * _is_telling(model, name),
                    fix,
                    model.key(key),
                    None,
                    f"{key} is {token}, but the vocabulary has ids 0 to {size - 1}.",
                )
            elif key == _K.UNK_ID and _written_as_unknown(model, token) is not None:
                yield _wrong_kind(model, name, key, token)
            elif model.types and model.is_normal(token):
                yield _normal_token(model, name, key, token)
            elif _is_telling(model, name) and _is_no_marker(model, token):
                yield _no_marker(model, name, key, token)
            elif model.types and _is_of_wrong_kind(model, key, token):
                yield _wrong_kind(model, name, key, token)


def _is_telling(model: Facts, name: str) -> bool:
    """Check that a special token is among the ids of every text, or ends a generation."""
    return name in _TELLING or model.adds(name)


def _written_as_unknown(model: Facts, unknown: int) -> int | None:
    """Return the token that is written as UNK, such as [UNK], if UNK is another token; None if there is no such."""
    if not model.kind.needs_unknown or model.tokens[unknown] in TEXTS_OF_IDS[_K.UNK_ID]:
        return None
    return next((each for each in model.usual_ids(_K.UNK_ID) if not model.is_normal(each)), None)


def _why(model: Facts, name: str) -> str:
    """Why a wrong token matters for one of the special ids."""
    if name == "unk":
        return _UNKNOWN_WHY
    return _SEP_WHY if name == "sep" and model.adds(name) else _SPECIAL_WHY


def _is_right(model: Facts, key: str, token: int) -> bool:
    """Check that a default fits the vocabulary: that of GPT-2 is 11, which is a comma in most models."""
    if token >= len(model.tokens) or model.is_normal(token) or model.lost_token_of_family(key):
        return False
    return token == model.id_of_family(key) or model.tokens[token] in TEXTS_OF_IDS.get(key, ())


def _normal_token(model: Facts, name: str, key: str, token: int) -> Finding:
    """An id of a token that stands for its own text: the id is wrong, or if the token is a marker, its type is."""
    theirs = model.id_of_family(key)
    is_family_s = theirs == token
    text = model.tokens[token]
    is_usual = CONTROL_LIKE.fullmatch(text) or text in TEXTS_OF_IDS.get(key, ())
    is_own_end = key == _K.EOS_ID and (text in END_OF_GENERATION or _is_named_end(model, text))
    is_marker = is_family_s or (is_usual and (theirs is None or is_own_end))
    family = f" In {model.family.name} files, this token is a marker." if is_family_s and model.family else ""
    return Finding(
        "warning" if _is_telling(model, name) else "note",
        "special_id_is_normal",
        f"The file says that {name.upper()} is {model.quoted(token)}, which is ordinary text.",
        "In a prompt, such a token is encoded like other text, and when it is generated, it is shown as text."
        if is_marker or name != "sep"
        else _why(model, name),
        set_marker_types(model, [token])
        if is_marker and not model.is_made_normal(token)
        else model.set_id(key),
        model.key(key, token),
        None,
        f"{key} is {token}, a token of type NORMAL." + (family or _family_has(model, key)),
    )


def _is_no_marker(model: Facts, token: int) -> bool:
    """Check that llama.cpp takes a token for a byte or an unused one."""
    return model.tokenizer is not None and bool(
        model.tokenizer.vocabulary.attributes[token] & (BYTE | UNUSED)
    )


def _no_marker(model: Facts, name: str, key: str, token: int) -> Finding:
    """An id of a byte or of an unused token; of a marker that has such a type, only the type is wrong."""
    text, kind = model.tokens[token], "BYTE" if model.type_of(token) == TokenType.BYTE else "UNUSED"
    is_written = BRACKETED.fullmatch(text) and text in model.template
    is_marker = is_written or (CONTROL_LIKE.fullmatch(text) and not FILLER.fullmatch(text))
    quoted, what = model.quoted(token), "a byte of text" if kind == "BYTE" else "marked as unused"
    if is_marker and kind == "BYTE":
        quoted, what = printable(text), "stored as a byte of text"
    return Finding(
        "warning",
        "special_id_of_wrong_kind",
        f"The file says that {name.upper()} is {quoted}, which is {what}.",
        _why(model, name),
        model.set_types(CONTROL=[token]) if is_marker else model.set_id(key),
        model.key(key, token),
        None,
        f"{key} is {token}, a token of type {kind}." + ("" if is_marker else _family_has(model, key)),
    )


def _is_of_wrong_kind(model: Facts, key: str, token: int) -> bool:
    """Check that a special token cannot be meant: the model's family has another, and this one is no BOS or EOS.

    A SEP cannot be meant if it is a token of another use, such as [CLS] or [MASK].
    """
    text = model.tokens[token]
    if key == _K.SEP_ID:
        is_other = text in _OTHER_USES or text in TEXTS_OF_IDS[_K.BOS_ID]
        return is_other and text not in TEXTS_OF_IDS[_K.SEP_ID] and model.adds("sep")
    theirs = model.id_of_family(key)
    if theirs == token:
        return False
    is_apart = model.obeys_flags and text in _OTHER_USES  # in BERT, nothing depends on EOS
    if key == _K.EOS_ID:
        ends = text in END_OF_GENERATION or text in TEXTS_OF_IDS[_K.EOS_ID] or _is_named_end(model, text)
        at_end, before_next = model.rendered.behind_answer if model.rendered else (b"", b"")
        written = original_bytes(text)
        # the template may write `eos_token`, whatever that is
        is_variable = text in _OTHER_USES and text not in model.template
        if written in at_end + before_next and not is_variable:
            before = at_end.removesuffix(written)
            return not ends and written not in before and _has_end(model, before)
        return not ends and (theirs is not None or is_apart)
    if key != _K.BOS_ID or not model.adds("bos"):
        return False
    is_end = token == model.id_of_family(_K.EOS_ID) != model.scalar(_K.EOS_ID)  # else `bos_is_eos` reports it
    if text in TEXTS_OF_IDS[_K.BOS_ID] and not is_end:
        return False
    is_apart |= text in TEXTS_OF_IDS[_K.EOS_ID]
    return theirs is not None or (is_apart and usual_token(model, key) is not None)


def usual_token(model: Facts, key: str) -> int | None:
    """Return the marker whose text is usual for BOS, or for EOS, and not for both; None if there is none.

    "<|endoftext|>" is usual for both.
    """
    other = _K.BOS_ID if key == _K.EOS_ID else _K.EOS_ID
    for token in model.usual_ids(key):
        text = model.tokens[token]
        is_marker = not model.is_normal(token) or token in marker_like(model)
        if is_marker and text not in TEXTS_OF_IDS[other] and text not in model.merged:
            return token
    return None


def _has_end(model: Facts, text: bytes) -> bool:
    """Check that a token that ends a generation is in a text, so that others only begin what follows."""
    ends = model.tokenizer.eog_ids if model.tokenizer else ()
    return any(original_bytes(model.tokens[token]) in text for token in ends)


def _is_named_end(model: Facts, text: str) -> bool:
    """Check that a marker's name says that it ends something, as <|my_end|> of a tuned model or a misspelt <|imend|>.

    One of a pair, such as <|end_header_id|>, ends a part of a text.
    """
    if not (BRACKETED.fullmatch(text) and _NAMED_END.search(text)):
        return False
    return not beginnings_of(model, text)


def beginnings_of(model: Facts, text: str) -> list[int]:
    """Return the tokens that begin what a marker ends by its name: of <|end_header_id|>, <|start_header_id|>."""
    pairs = [(end, text.replace(end, begin)) for end, begin in _BEGINNINGS]
    return [model.ids[other] for end, other in pairs if end in text and other in model.ids]


def _wrong_kind(model: Facts, name: str, key: str, token: int) -> Finding:
    what = {"bos": "begin texts", "unk": "stand for unknown text"}.get(name, "end texts")
    return Finding(
        "warning",
        "special_id_of_wrong_kind",
        f"The file says that {name.upper()} is {model.quoted(token)}, which does not {what}.",
        _why(model, name),
        model.set_id(key),
        model.key(key, token),
        None,
        f"{key} is {token}." + (_unknown_is(model, token) if name == "unk" else _family_has(model, key)),
    )


def _unknown_is(model: Facts, unknown: int) -> str:
    """A sentence about the token that is written as UNK, "" if there is no other than `unknown`."""
    written = _written_as_unknown(model, unknown)
    return "" if written is None else f" {model.quoted(written)} is token {written}."


def _family_has(model: Facts, key: str) -> str:
    """A sentence about the id that the files of the model's family have, "" if it is not known."""
    theirs = model.id_of_family(key)
    if theirs is None or model.family is None:
        return ""
    return f" {model.family.name} files have {theirs}, {model.quoted(theirs)}."


def missing_special_ids(model: Facts) -> Iterator[Finding]:
    """BOS, EOS and UNK without a key, and those that would be added but do not exist."""
    if model.tokenizer is None or model.likely_models:
        return
    vocabulary = model.tokenizer.vocabulary
    unknown = vocabulary.special_ids["unk"]
    if _K.UNK_ID not in model.file and unknown is not None:
        yield from _wrong_default_of_unknown(model, unknown)
    added = set(chain(*model.kind.added_names(True, True)))
    for name, key in (("bos", _K.BOS_ID), ("eos", _K.EOS_ID), ("sep", _K.SEP_ID)):
        token = vocabulary.special_ids[name]
        is_wanted = name in added or (name == "eos" and "sep" not in added)  # EOS also ends a generation
        if not is_wanted or (name == "sep" and token is not None):
            continue
        # The default of a model such as BERT is mostly right; that of GPT-2 is a comma.
        is_right = token is not None and not model.kind.has_pre_tokenizer and not model.is_normal(token)
        is_right &= model.id_of_family(key) in (None, token)
        if is_right and token is not None and name != "sep" and model.tokens[token] not in TEXTS_OF_IDS[key]:
            is_right = usual_token(model, key) is None  # Gemma's <bos> is 2, and 1, the default, is <eos>
        family = model.family
        is_foreign = name == "bos" and family is not None and family.bos is None  # as in T5
        if key not in model.file and not is_right and not is_foreign:
            default = "there is none" if token is None else f"llama.cpp uses {token}, {model.quoted(token)}"
            yield Finding(
                "warning" if name != "bos" or vocabulary.add_bos else "note",
                "special_id_missing",
                f"The file does not say which token is {name.upper()}.",
                _SPECIAL_WHY,
                model.set_id(key),
                model.key(key),
                None,
                f"{key} is missing, so {default}.",
            )
        if token is None and model.adds(name):
            yield _wanted(model, name, key, "" if is_foreign else model.set_id(key))


def _wanted(model: Facts, name: str, key: str, fix: str) -> Finding:
    """A special token that is added and does not exist; `fix` sets its id, and is "" if the family has none."""
    flag = _K.ADD_BOS if name == "bos" else _K.ADD_EOS
    always = model.tokenizer is not None and model.tokenizer.vocabulary.pre_tokenizer.always_add_bos
    can_be_off = name not in chain(*model.kind.added_names(False, False))
    if can_be_off and not (name == "bos" and always):
        fix = ", or ".join(filter(None, (fix, model.set(flag, "false"))))
    return Finding(
        "error",
        "special_id_wanted",
        f"The file adds {name.upper()} to every text, but does not say which token that is.",
        "llama.cpp aborts when a text is encoded.",
        fix or model.set_id(key),
        model.key(key),
    )


def _wrong_default_of_unknown(model: Facts, unknown: int) -> Iterator[Finding]:
    """A default that is UNK although another token is written as one."""
    if told := _unknown_is(model, unknown):
        yield Finding(
            "warning",
            "special_id_missing",
            f"The file does not say which token is UNK, so llama.cpp uses {model.quoted(unknown)}.",
            _UNKNOWN_WHY,
            model.set_id(_K.UNK_ID),
            model.key(_K.UNK_ID),
            None,
            f"{_K.UNK_ID} is missing, so UNK is {unknown}.{told}",
        )


def generation_ends(model: Facts) -> Iterator[Finding]:
    """An EOS that does not end a generation."""
    if model.tokenizer is None:
        return
    vocabulary = model.tokenizer.vocabulary
    eos = vocabulary.special_ids["eos"]
    if eos is not None and eos not in vocabulary.eog_ids:
        yield Finding(
            "warning",
            "eos_not_end_of_generation",
            "Answers do not stop at EOS.",
            "Other tokens of the vocabulary identify a model family in which this one does not end a generation, so "
            "llama.cpp continues after it.",
            f"set another EOS: {model.set(_K.EOS_ID, min(vocabulary.eog_ids))}"
            if vocabulary.eog_ids
            else f"set {_K.EOS_ID} to the id of a token that ends a generation (`ggufbpe fix` with --set)",
            model.key(_K.EOS_ID, eos),
            None,
            f"EOS is token {eos}, {model.quoted(eos)}, which llama.cpp does not take for the end of a generation.",
        )
