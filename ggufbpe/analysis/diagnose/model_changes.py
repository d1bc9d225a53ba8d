"""Lists changes for models without a pre-tokenizer: flags, charsmap, scores, bytes, and the model itself.

The model says which flags it heeds (`TokenizerModel.flags`), and which file is one of its own (`recognizes`).
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any
from weakref import WeakKeyDictionary

from ..._util.errors import GGUFError
from ..._util.spelling import BYTE_TOKENS, SPACE
from ...gguf.change import Change
from ...gguf.constants import TokenizerKey
from ...gguf.metadata import Metadata
from ...gguf.reader import GGUFFile
from ...models.format_detection import detect_looks, likely_models, models_alike
from ...models.loading import load
from ...models.pieces import quoted_token
from ...models.token_table import tokens_with
from ...models.vocabulary import BYTE, NORMAL, Vocabulary
from ...models.wordpiece import BertNormalizer
from ...tokenizer import Tokenizer
from ..doctor.facts import TEXTS_OF_IDS
from ..doctor.model_checks import has_capitals, tokens_with_spaces
from .cause import Cause
from .causes import are_flat
from .encoding_changes import Encoding, EncodingChange
from .variants import BYTES_FOR_UNKNOWN, EACH_UNKNOWN, READ_AS_REFERENCE, SPACE_ONCE, UNKNOWN_FOR_BYTES

_K = TokenizerKey

# By field of `Vocabulary`: the id of the cause, the key, and the words for the flag set and not set.
_FLAGS = {
    "add_space_prefix": (
        *("space_prefix", _K.ADD_PREFIX),
        *("a space is put before the text", "no space is put before the text"),
    ),
    "remove_extra_whitespaces": (
        *("extra_whitespace", _K.REMOVE_EXTRA_WS),
        *("extra spaces are removed", "all spaces are kept"),
    ),
    "lowercase": (
        *("lower_case", _K.NORMALIZER_LOWERCASE),
        *("letters are lowercased", "letters keep their case"),
    ),
    "strip_accents": (
        *("accents", _K.NORMALIZER_STRIP_ACCENTS),
        *("accents are stripped", "accents are kept"),
    ),
}
_SET_TOGETHER = ("lowercase", "strip_accents")  # the second follows the first unless a key says otherwise

RARE = frozenset(("charsmap", "scores", "byte_fallback", "escape_whitespaces"))  # not two of them at once

NamedChange = tuple[str, EncodingChange]  # those with the same name exclude each other


def model_changes(
    vocabulary: Vocabulary, others: Sequence[Tokenizer], given: Iterable[int] = ()
) -> Iterator[NamedChange]:
    """The changes that make sense for a vocabulary and `given` ids; `others` are models with the same tokens."""
    yield from _flag_changes(vocabulary, given)
    if vocabulary.charsmap:
        cause = Cause(
            "charsmap",
            {"what": "the text is not normalized by the charsmap of the model", "change": "none"},
            "switch on the normalizer of the other tool",
            Change({_K.PRECOMPILED_CHARSMAP: None}),
        )
        yield "charsmap", _with(cause, charsmap=b"")
    for other in others:
        if other.vocabulary.charsmap != vocabulary.charsmap:
            yield "charsmap", _of_other("charsmap", vocabulary, other, other.vocabulary.charsmap)
    yield from _score_changes(vocabulary, others)
    yield from _byte_changes(vocabulary)
    yield from _unknown_changes(vocabulary)


def _flag_changes(vocabulary: Vocabulary, given: Iterable[int]) -> Iterator[NamedChange]:
    flags = vocabulary.tokenizer_model.flags
    shown = _shown(vocabulary, given) if "lowercase" in flags else set()
    together = flags if flags == _SET_TOGETHER else ()
    for one in flags:
        if not together:
            yield one, _flipped(vocabulary, (one,), shown)
    if vocabulary.add_space_prefix and "add_space_prefix" in flags:
        what = "a space is put before the text, but not after special tokens, as some tools do (legacy=false)"
        fix = "set legacy=true in the other tool: llama.cpp puts a space there as well, and has no switch for it"
        once = Cause("space_prefix", {"what": what, "theirs": "once"}, fix)
        yield "add_space_prefix", _with(once, SPACE_ONCE, add_space_prefix=False)
    for choice in product((False, True), repeat=len(together)):
        if any(choice):
            flipped = tuple(flag for flag, on in zip(together, choice) if on)
            yield "normalizer", _flipped(vocabulary, flipped, shown)


def _shown(vocabulary: Vocabulary, given: Iterable[int]) -> set[str]:
    """The causes in `_FLAGS` that plain tokens speak for: those with accents and capital letters among `given` ids."""
    special = vocabulary.special_ids.values()  # in a file without types, these are plain
    plain = set(tokens_with(vocabulary.attributes, NORMAL)).difference(special).intersection(given)
    characters = set().union(*(vocabulary.tokens[token] for token in plain))
    normalizer = BertNormalizer(lowercase=True, strip_accents=True)
    shown = {reason for character in characters for reason in normalizer.reasons(ord(character))}
    return shown | {"lower_case"} if has_capitals(vocabulary) else shown


def _flipped(vocabulary: Vocabulary, flags: tuple[str, ...], shown: set[str]) -> EncodingChange:
    """A change that inverts all of `flags`."""
    new: dict[str, Any] = {flag: not getattr(vocabulary, flag) for flag in flags}
    keys: dict[str, str | None] = {_FLAGS[flag][1]: str(value).lower() for flag, value in new.items()}
    fix = ""
    if not (new.get("lowercase", True) or "lower_case" in shown):
        del keys[_K.NORMALIZER_LOWERCASE]
        fix = "let the other tool lowercase texts"
        if not (new.get("strip_accents", True) or "accents" in shown):
            del keys[_K.NORMALIZER_STRIP_ACCENTS]
            fix += " and strip accents"
        fix += ": hardly any tokens of the model have capital letters"
    elif flags == _SET_TOGETHER[:1]:
        keys[_K.NORMALIZER_STRIP_ACCENTS] = str(vocabulary.strip_accents).lower()
    theirs, ours = (
        " and ".join(_FLAGS[flag][2 if value == on else 3] for flag, value in new.items())
        for on in (True, False)
    )
    cause = Cause(
        _FLAGS[flags[0]][0],
        {"what": f"in the given ids, {theirs}; in the model, {ours}", "theirs": new},
        fix,
        Change(keys),
    )
    return _with(cause, **new)


def _score_changes(vocabulary: Vocabulary, others: Sequence[Tokenizer]) -> Iterator[NamedChange]:
    if not vocabulary.tokenizer_model.has_scores:
        return
    yield from _guessed_scores(vocabulary)
    size = len(vocabulary.tokens)
    for other in others:
        theirs = other.vocabulary.scores[:size]  # the file may have lost tokens behind these
        if len(theirs) == size and theirs != vocabulary.scores:
            yield "scores", _of_other("scores", vocabulary, other, theirs)


def _guessed_scores(vocabulary: Vocabulary) -> Iterator[NamedChange]:
    """Scores that fall with the id, where the file has lost its own, and none, where the other side has lost them."""
    size = len(vocabulary.tokens)
    if are_flat(vocabulary.scores):
        if vocabulary.tokenizer_model.algorithm != "scores":
            return  # for a best path, scores are not just ranks, and cannot be guessed
        what = "the scores of the model are all the same, but the given ids need scores that fall with the id"
        fix = "convert the model again, with the scores of its own tokenizer (tokenizer.model)"
        cause = Cause("scores", {"what": what, "problem": "flat", "theirs": "by id"}, fix)
        by_id = array("f", map(float, range(0, -size, -1)))
        spaces = [token for token, text in enumerate(vocabulary.tokens) if not text.strip(SPACE)]
        yield "scores", _with(cause, scores=by_id)
        last = by_id[:]
        for token in spaces:  # sentencepiece gives these a low score: they were added to what it learned
            last[token] = float(-2 * size)
        yield "scores", _with(cause, scores=last)
    else:
        what = "the given ids are those of a model whose scores are all the same"
        fix = "the model file of the other tool has lost its scores: convert it again"
        cause = Cause("scores", {"what": what, "problem": "other", "theirs": "flat"}, fix)
        yield "scores", _with(cause, scores=array("f", bytes(4 * size)))


def _byte_changes(vocabulary: Vocabulary) -> Iterator[NamedChange]:
    """Characters without a token as bytes or as the unknown token; and spaces that are not replaced by U+2581."""
    fix = "switch {} byte_fallback in the other tool; llama.cpp has no switch for it"
    if any(kind & BYTE for kind in vocabulary.attributes):
        what = "characters without a token become the unknown token, rather than the tokens of their bytes"
        cause = Cause("byte_fallback", {"what": what, "theirs": False}, fix.format("on"))
        yield "byte_fallback", _with(cause, UNKNOWN_FOR_BYTES)
        each = cause._replace(detail={**cause.detail, "what": f"{what}, one for each"})
        yield "byte_fallback", _with(each, EACH_UNKNOWN)
    if all(token in vocabulary.token_to_id for token in BYTE_TOKENS):
        what = "characters without a token become the tokens of their bytes, rather than the unknown token"
        cause = Cause("byte_fallback", {"what": what, "theirs": True}, fix.format("off"))
        yield "byte_fallback", _with(cause, BYTES_FOR_UNKNOWN)
    entry = vocabulary.pre_tokenizer
    if entry.escape_whitespaces and not vocabulary.tokenizer_model.has_charsmap:
        if tokens_with_spaces(vocabulary.tokens):
            what = "the tokens of the file have spaces where llama.cpp expects U+2581"
            fix = "convert the model again with llama.cpp's own converter, which keeps U+2581"
        else:
            what = "spaces are not replaced by U+2581"
            fix = "let the other tool replace spaces by U+2581 before it looks up tokens"
        cause = Cause("escape_whitespaces", {"what": what, "theirs": False}, fix)
        unescaped = entry._replace(escape_whitespaces=False)
        yield "escape_whitespaces", _with(cause, READ_AS_REFERENCE, pre_tokenizer=unescaped)


def _unknown_changes(vocabulary: Vocabulary) -> Iterator[NamedChange]:
    """Another unknown token, which has a usual text, such as [UNK]."""
    unknown = vocabulary.special_ids["unk"]
    if not vocabulary.tokenizer_model.needs_unknown:
        return
    for text in TEXTS_OF_IDS[_K.UNK_ID]:
        token = vocabulary.token_to_id.get(text)
        if token is None or token == unknown:
            continue
        own = "has no unknown token" if unknown is None else f"uses {quoted_token(vocabulary, unknown)}"
        cause = Cause(
            "unk",
            {
                "what": f"the given ids use {quoted_token(vocabulary, token)} for unknown text; the model {own}",
                "ours": unknown,
                "theirs": token,
            },
            change=Change({_K.UNK_ID: str(token)}),
        )
        yield "unk", _with(cause, special_ids={**vocabulary.special_ids, "unk": token})


def _of_other(field: str, vocabulary: Vocabulary, other: Tokenizer, theirs: Any) -> EncodingChange:
    """A change to `theirs`, the scores or the charsmap of another model with the same tokens."""
    what = f"the given ids are made with the {field} of {other.name}"
    if field == "charsmap" and not vocabulary.charsmap:
        what += ", and the model has none"
    cause = Cause(
        field,
        {"what": what, "problem": "other model", "model": other.name},
        f"convert the model again with the {field} of {other.name}",
    )
    return _with(cause, **{field: theirs})


def _with(cause: Cause, way: str = "", **fields: object) -> EncodingChange:
    """A change of fields of the vocabulary, and of the way in which words become ids if one is given."""

    def change(encoding: Encoding) -> Encoding:
        changed = encoding.vocabulary._replace(**fields)  # type: ignore[arg-type]
        return encoding.with_cause(cause, vocabulary=changed, way=way or encoding.way)

    return change


_OTHER_MODELS: WeakKeyDictionary[Tokenizer, list[tuple[Tokenizer, Cause]]] = WeakKeyDictionary()


def other_models(tokenizer: Tokenizer) -> list[tuple[Tokenizer, Cause]]:
    """Return the file read as the tokenizer models that its tokens look like, rather than or as much as its own.

    They are opened once, and kept as long as the tokenizer is.
    """
    if tokenizer not in _OTHER_MODELS:
        _OTHER_MODELS[tokenizer] = list(_opened_as_others(tokenizer.vocabulary))
    return _OTHER_MODELS[tokenizer]


def _opened_as_others(vocabulary: Vocabulary) -> Iterator[tuple[Tokenizer, Cause]]:
    if not os.path.isfile(vocabulary.path):
        return
    try:
        with GGUFFile(vocabulary.path) as file:
            looks = detect_looks(Metadata(file))
    except (OSError, GGUFError):
        return
    others = likely_models(vocabulary.tokens, looks, vocabulary.model, vocabulary.named_pre)
    alike = models_alike(looks, vocabulary.model)
    for name in (*others, *alike):
        try:
            found = load(vocabulary.path, {_K.MODEL: name})[0]
        except GGUFError:
            continue
        why = "its tokens fit both" if name in alike else "its tokens look like it"
        what = f"the model is {name} ({found.tokenizer_model.description}), not {vocabulary.model}: {why}"
        cause = Cause(
            "model",
            {"what": what, "model": name, "ours": vocabulary.model},
            change=Change({_K.MODEL: name}),
        )
        yield Tokenizer(found), cause
