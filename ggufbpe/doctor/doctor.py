"""What is wrong or suspicious in the metadata of a model file, before anyone loses a day.

    file.gguf -> metadata, vocabulary -> [this file] -> findings -> cli/doctor.py

It works on files whose tokenizer cannot be opened, and tells all that is wrong with them, where opening stops
at the first problem. Of tokenizers that are not byte pair encoding it looks at what they have in common with it.

An *error* makes llama.cpp refuse the file or abort, or is a value that cannot be meant; a *warning* most likely
gives other ids than the model was trained with; a *note* is good to know. Unharmed models have no errors.

But: the tokenizer only. Tensors and the rest of the metadata are not looked at.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

from ..errors import GGUFError, UnsupportedTokenizerError, printable
from ..fix import CONVERT_VERSION_1, argument_for, id_ranges
from ..gguf.constants import KEY_ARCHITECTURE, TokenizerKey, TokenType
from ..gguf.metadata import Metadata, Overrides
from ..gguf.reader import GGUFFile
from ..gguf.schema import (
    KEY_TYPES,
    NOT_REFUSED,
    has_right_type,
    ids_out_of_range,
    wrong_type,
)
from ..models import SUPPORTED, tokenizer_model
from ..models.bpe.families import Evidence, Family, evidence, parts
from ..models.bpe.hf_splitting import DIFFERENCES
from ..models.bpe.merge import BYTE_CHARS, WordEncoder
from ..models.bpe.registry import PRE_TOKENIZERS
from ..tokenizer import Tokenizer
from ..vocab import (
    CONTROL,
    END_OF_GENERATION,
    NORMAL,
    SPECIAL_IDS,
    UNKNOWN,
    USER_DEFINED,
    load,
)

_K = TokenizerKey
_SEVERITIES = ("error", "warning", "note")
_EXAMPLES = 5  # of each finding
_SHARE_UNREACHABLE = 0.01  # from here on, it is not a few leftovers of the training


class Where(NamedTuple):
    """The place of a finding: metadata key, token id, byte offset in the file; None where it has none."""

    key: str | None = None
    token: int | None = None
    offset: int | None = None


class Finding(NamedTuple):
    """One thing that is wrong or suspicious."""

    severity: str  # "error", "warning" or "note"
    id: str
    what: str
    why: str
    fix: str
    where: Where = Where()
    detail: dict[str, Any] | None = None  # numbers and examples, for programs


def examine(path: str | os.PathLike[str], overrides: Overrides | None = None) -> list[Finding]:
    """All findings about a model file, the gravest first.

    >>> [finding.id for finding in examine("model.gguf")]                   # doctest: +SKIP
    ['pre_missing', 'hf_splitting']

    `overrides` are those of `Tokenizer.from_gguf`. Raises a `GGUFError` where the file is no sound GGUF, `OSError`
    where it cannot be opened.
    """
    with GGUFFile(path) as file:
        file.require_first_shard()
        model = _Model(file, overrides)
        checks = _CHECKS if model.kind.is_supported else _COMMON_CHECKS
        if not model.kind.has_pre_tokenizer:
            checks = tuple(check for check in checks if check not in _BYTE_PAIR_CHECKS)
        found = [finding for check in checks for finding in check(model)]
        found += _refusal(model, found)
    return sorted(found, key=lambda finding: _SEVERITIES.index(finding.severity))


def to_json(path: str, findings: Iterable[Finding]) -> dict[str, Any]:
    """The findings as JSON objects, with their number by severity."""
    found = [
        {**finding._asdict(), "where": finding.where._asdict(), "detail": finding.detail or {}}
        for finding in findings
    ]
    counts = {severity: sum(f["severity"] == severity for f in found) for severity in _SEVERITIES}
    return {"path": path, "counts": counts, "findings": found}


# ---- what is looked at ----------------------------------------------------------------------------------


class _Model:
    """The metadata of a file as far as it can be read; a value of a wrong type is as good as missing."""

    def __init__(self, file: GGUFFile, overrides: Overrides | None) -> None:
        self.file = Metadata(file, overrides) if overrides else file
        self.version = file.version
        self.model = self.string(_K.MODEL) or ""
        self.kind = tokenizer_model(self.model)
        self.pre = self.string(_K.PRE)
        self.tokens: list[str] = self.array(_K.LIST)
        self.merges: list[str] = self.array(_K.MERGES)
        self.types: list[int] = self.array(_K.TOKEN_TYPE)
        self.template = self.string(_K.CHAT_TEMPLATE) or ""
        self.refusal: GGUFError | None = None
        self.tokenizer: Tokenizer | None = None
        try:
            self.tokenizer = Tokenizer(
                load(file.path, overrides)[0]
            )  # what it warns of is among the findings
        except GGUFError as error:
            self.refusal = error

    @cached_property
    def ids(self) -> dict[str, int]:
        """The id of each token; of duplicates the first."""
        return dict(zip(reversed(self.tokens), range(len(self.tokens) - 1, -1, -1)))

    @cached_property
    def pairs(self) -> list[tuple[str, str]]:
        """The two sides of each merge."""
        return list(map(parts, self.merges))

    @cached_property
    def merged(self) -> set[str]:
        """The texts that merges make."""
        return {left + right for left, right in self.pairs}

    @cached_property
    def evidence(self) -> Evidence:
        return evidence(self.tokens, self.merges, self.pre or "", self.string(KEY_ARCHITECTURE) or "")

    def scalar(self, key: str) -> Any:
        return self.file[key] if key in self.file and has_right_type(self.file, key) else None

    def string(self, key: str) -> str | None:
        value = self._readable(key)
        return value.partition("\0")[0] if isinstance(value, str) else None

    def array(self, key: str) -> list[Any]:
        value = self._readable(key)
        if not isinstance(value, list):
            return []
        return [item.partition("\0")[0] for item in value] if value and isinstance(value[0], str) else value

    def _readable(self, key: str) -> Any:
        try:
            return self.scalar(key)
        except GGUFError:  # not UTF-8; opening the tokenizer says where
            return None

    def type_of(self, token: int) -> int:
        """The type that the file gives a token; without types, all are normal."""
        return self.types[token] if token < len(self.types) else int(TokenType.NORMAL)

    def is_normal(self, token: int) -> bool:
        """Whether it is a normal token, also after llama.cpp made control tokens of some."""
        if self.tokenizer is not None:
            return not self.tokenizer.vocabulary.attributes[token] & ~NORMAL
        return self.type_of(token) == int(TokenType.NORMAL)

    def is_made_normal(self, token: int) -> bool:
        """Whether llama.cpp takes it for a normal token whatever its type is: "</s>" beside those of some families."""
        return (
            self.tokenizer is not None and self.is_normal(token) and self.tokens[token] in END_OF_GENERATION
        )

    def key(self, key: str) -> Where:
        return Where(key, None, self.file.offset(key) if key in self.file else None)

    def token(self, index: int) -> Where:
        return Where(_K.LIST, index, self.file.element_offset(_K.LIST, index))

    def command(self, *changes: str) -> str:
        """The command that makes these changes."""
        if self.version == 1:
            return CONVERT_VERSION_1
        given = " ".join(shlex.quote(change) for change in changes)
        return f"ggufbpe fix {shlex.quote(self.file.path)} {given} -o fixed.gguf"

    def set(self, key: str, value: object) -> str:
        return self.command("--set", f"{key}={value}")

    def remove(self, key: str) -> str:
        return self.command("--remove", key)

    def set_types(self, **tokens: Iterable[int]) -> str:
        """The command that gives tokens types, by the names of these; words where the types cannot be read."""
        if _K.TOKEN_TYPE in self.file and not has_right_type(self.file, _K.TOKEN_TYPE):
            return f"convert the model again, with a {_K.TOKEN_TYPE} of the right type"
        changes = [f"{ids}={name}" for name, indexes in tokens.items() for ids in id_ranges(indexes)]
        return self.command(*(part for change in changes for part in ("--set-token-type", change)))

    def set_id(self, key: str) -> str:
        """How to set a special id: the command for the token that has the text of one, or words."""
        texts = _TEXTS_OF_IDS.get(key, ())
        found = [self.ids[text] for text in texts if text in self.ids and not self.is_normal(self.ids[text])]
        return self.set(key, found[0]) if found else f"set {key} to the id of the right token"


def _listed(items: Iterable[object], number: int) -> str:
    """The first items of `number`."""
    shown = [printable(item, 40) if isinstance(item, str) else str(item) for item in items][:_EXAMPLES]
    return ", ".join(shown) + (" …" if number > len(shown) else "")


def _some(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


# ---- the pre-tokenizer ----------------------------------------------------------------------------------

_SPLIT_WHY = (
    "The pre-tokenizer cuts text into words before merging. With another one than in training, the ids are not "
    "those that the model knows, most visibly in numbers, code and white space, and its answers get worse."
)


def _pre_tokenizer(model: _Model) -> Iterator[Finding]:
    if model.kind.ignores_pre or not model.tokens:
        return
    if _K.PRE in model.file and model.pre is None:  # of a wrong type, or not UTF-8: said of all keys alike
        return
    found = model.evidence
    problem, own = found.problem, found.own
    if not problem:
        return
    severity, why = "warning", _SPLIT_WHY
    if problem == "unknown":
        severity, why = "error", f"llama.cpp refuses the file. {_SPLIT_WHY}"
        what = f"{_K.PRE} is {printable(found.pre)}, which llama.cpp does not know"
    elif problem == "doubtful":
        cut = f", which cuts {own.of - own.kept} of them ({_listed(own.cut, 9)})" if own else ""
        what = f"{_K.PRE} is {found.pre}, but the tokens speak against it{cut}"
    else:
        what = f"{_K.PRE} is {problem}"
        why = (
            f"llama.cpp then splits as `default` does, which hardly any model was trained with. {_SPLIT_WHY}"
        )
        if found.name and not found.is_against:
            severity = "note"
    fix = _right_pre(model)
    if severity == "note":
        fix = f"nothing to do, or {fix}" if problem == "missing" else "nothing to do"
    detail = {
        "pre": model.pre,
        "suggested": found.name or None,
        "families": [_family_json(family) for family in found.best],
        "next": [_family_json(family) for family in found.found if family not in found.best][:3],
    }
    yield Finding(
        severity, f"pre_{problem}", f"{what}. {found.sentence}", why, fix, model.key(_K.PRE), detail
    )


def _right_pre(model: _Model) -> str:
    """How to set the name that the tokens point to."""
    if model.evidence.name:
        return model.set(_K.PRE, model.evidence.name)
    return f"set {_K.PRE} to the name of the model's pre-tokenizer (`ggufbpe list-pre` has all)"


def _family_json(family: Family) -> dict[str, Any]:
    return {**family._asdict(), "share": family.share, "names": family.names, "cost": round(family.cost, 2)}


def _hugging_face(model: _Model) -> Iterator[Finding]:
    entry = (
        model.tokenizer.vocabulary.pre_tokenizer if model.tokenizer else PRE_TOKENIZERS.get(model.pre or "")
    )
    differences = DIFFERENCES.get(entry.family, ()) if entry else ()
    if not differences:
        return
    told = [
        f"{difference.characters}: {difference.what} ({printable(difference.example)} is "
        f"{' | '.join(map(printable, difference.hugging_face))} there, "
        f"{' | '.join(map(printable, difference.llama_cpp))} here)"
        for difference in differences
    ]
    yield Finding(
        "note",
        "hf_splitting",
        f"{entry.name if entry else ''} splits otherwise in llama.cpp than in Hugging Face's tokenizers. "
        + "; ".join(told),
        "The model was trained with the ids of Hugging Face's side; on texts with these characters, llama.cpp "
        "gives it others. ggufbpe gives llama.cpp's.",
        "there is none in the file: llama.cpp cannot run the original pattern",
        model.key(_K.PRE),
        {"differences": [difference._asdict() for difference in differences]},
    )


# ---- tokens ---------------------------------------------------------------------------------------------


def _wrong_types(model: _Model) -> Iterator[Finding]:
    for key in KEY_TYPES:
        if key not in model.file or has_right_type(model.file, key):
            continue
        argument = argument_for(model.file, key)
        if argument is not None:
            fix = model.set(key, argument)
        elif key == _K.PRE and model.tokens and not model.kind.ignores_pre:
            fix = _right_pre(model)
        elif key in _NEEDED:
            fix = "convert the model again"
        else:
            fix = f"convert the model again, or take it out: {model.remove(key)}"
        refused = key not in NOT_REFUSED
        yield Finding(
            "error" if refused else "warning",
            "wrong_type",
            f"{key}: {wrong_type(model.file, key).problem}",
            "llama.cpp takes no other type, and refuses the file."
            if refused
            else "llama.cpp takes the text of a number for a template, and overlooks a list.",
            fix,
            model.key(key),
        )


_NEEDED = (KEY_ARCHITECTURE, _K.MODEL, _K.LIST, _K.MERGES, _K.TOKEN_TYPE)  # what no file can do without


def _duplicates(model: _Model) -> Iterator[Finding]:
    if len(model.ids) == len(model.tokens):
        return
    again = [
        (index, token) for index, token in enumerate(model.tokens) if model.ids[token] != index and token
    ]
    if not again:
        return
    index, token = again[0]
    yield Finding(
        "error",
        "duplicate_tokens",
        f"{_some(len(again), 'token stands', 'tokens stand')} a second time: {index} is {printable(token)}, as is "
        f"{model.ids[token]}",
        "llama.cpp aborts on a vocabulary in which two tokens are the same.",
        "convert the model again with a fixed tokenizer: its tokens must differ",
        model.token(index),
        {"count": len(again), "ids": [i for i, _ in again[:100]]},
    )


def _empty(model: _Model) -> Iterator[Finding]:
    empty = [index for index, token in enumerate(model.tokens) if not token] if "" in model.ids else []
    if empty:
        yield Finding(
            "warning",
            "empty_tokens",
            f"{_some(len(empty), 'token')} without text: {_listed(empty, len(empty))}",
            "llama.cpp calls them [EMPTY_…]. Text never gives such an id, but a model that was trained with a text "
            "there, or that generates one, shows a wrong one.",
            "convert the model again; nothing to do if they only fill up the vocabulary",
            model.token(empty[0]),
            {"count": len(empty), "ids": empty[:100]},
        )


_PADDING = re.compile(
    r"\[PAD\d+\]|<(dummy|unused|extra_id_|placeholder)_?\d+>|\[unused\d+\]|"
    r"<\|(dummy|unused|reserved|extra|placeholder)[_a-z]*\d+\|>|<unused\d+>"
)


def _padding(model: _Model) -> Iterator[Finding]:
    found = [index for index, token in enumerate(model.tokens) if _PADDING.fullmatch(token)]
    if found:
        types = {int(kind): kind.name for kind in TokenType}
        kinds = sorted({types.get(model.type_of(index), "?") for index in found})
        yield Finding(
            "note",
            "padding_tokens",
            f"{_some(len(found), 'token')} only fill up the vocabulary, from {found[0]}, "
            f"{printable(model.tokens[found[0]])}, on; of type {', '.join(kinds)}",
            "The model has rows for them, but no text becomes such an id unless it has their names in it.",
            "nothing to do",
            model.token(found[0]),
            {"count": len(found), "ids": found[:100], "types": kinds},
        )


# What looks like a control token: <|…|>, <｜…｜>, and the names that models give them.
_CONTROL_LIKE = re.compile(
    r"<\|[^|<>\s]{1,80}\|>|<｜[^｜<>]{1,80}｜>|</?s>|"
    r"<(?:pad|bos|eos|mask|cls|sep|(?:start|end)_of_(?:turn|text|utterance|image)|fim[-_][a-z]+)>|"
    r"<(?:BOS_TOKEN|EOS_TOKEN|PAD|EOT|EOS|BOS|\|?endoftext\|?)>|"
    r"\[/?INST\]|\[(?:BOS|EOS|PAD|CLS|SEP|MASK|EOT|gMASK|/?TOOL_[A-Z]+|/?SYSTEM_PROMPT|/?AVAILABLE_TOOLS)\]"
)
_HTML = frozenset(("<s>", "</s>"))  # in Gemma's vocabulary, beside <i> and <b>


def _control_types(model: _Model) -> Iterator[Finding]:
    """Tokens that merges make are left out: where Qwen 2's vocabulary has "</s>", it is text like any other."""
    text = _HTML if "<i>" in model.ids else frozenset()
    found = [
        index
        for index, token in enumerate(model.tokens)
        if token[:1] in ("<", "[")
        and model.is_normal(index)
        and not model.is_made_normal(index)
        and _CONTROL_LIKE.fullmatch(token)
        and not _PADDING.fullmatch(token)
        and token not in model.merged
        and token not in text
    ]
    if found:
        names = [model.tokens[index] for index in found]
        yield Finding(
            "warning",
            "control_type",
            f"{_some(len(found), 'token looks like a control token but is', 'tokens look like control tokens but are')}"
            f" of type NORMAL: {_listed(names, len(names))}",
            "A normal token is never found in a prompt: its text is cut into pieces like any other, and when the "
            "model generates it, it is shown as text. (llama.cpp mends a few that end a generation, by name.)",
            model.set_types(CONTROL=found),
            model.token(found[0]),
            {"count": len(found), "ids": found[:100], "texts": names[:100]},
        )


def _lengths(model: _Model) -> Iterator[Finding]:
    for key, name in ((_K.TOKEN_TYPE, "types"), (_K.SCORES, "scores")):
        if key not in model.file or not has_right_type(model.file, key) or not model.tokens:
            continue
        length, size = model.file.array_length(key), len(model.tokens)
        if length != size:
            short = length < size
            yield Finding(
                "error" if short else "warning",
                f"{name}_length",
                f"{_some(length, name[:-1])} for {_some(size, 'token')}",
                "llama.cpp reads beyond the end of the array."
                if short
                else "Tokens and types do not belong together, or some tokens are missing.",
                "convert the model again"
                + ("" if name == "types" else f", or take them out: {model.remove(key)}"),
                model.key(key),
                {"length": length, "tokens": size},
            )
    if model.tokens and _K.TOKEN_TYPE not in model.file and model.kind.is_supported:
        like = [index for index, token in enumerate(model.tokens) if _CONTROL_LIKE.fullmatch(token)]
        yield Finding(
            "warning",
            "types_missing",
            f"{_K.TOKEN_TYPE} is missing, so all tokens count as normal",
            "Special tokens in a prompt, such as <|im_start|>, are then cut into pieces like other text.",
            model.set_types(CONTROL=like) if like else "nothing to do if there are no special tokens",
            model.key(_K.TOKEN_TYPE),
        )
    known = {int(kind) for kind in TokenType}
    strange = [index for index, kind in enumerate(model.types[: len(model.tokens)]) if kind not in known]
    if strange:
        yield Finding(
            "warning",
            "type_unknown",
            f"{_some(len(strange), 'token')} of a type that does not exist: {_listed(strange, len(strange))}",
            "llama.cpp gives such a token no attribute: it is never shown as text.",
            model.set_types(
                **{
                    name: chosen
                    for name, is_name in (("CONTROL", True), ("NORMAL", False))
                    if (chosen := [i for i in strange if _is_name(model.tokens[i]) is is_name])
                }
            ),
            Where(_K.TOKEN_TYPE, strange[0], model.file.element_offset(_K.TOKEN_TYPE, strange[0])),
            {"count": len(strange), "ids": strange[:100]},
        )


# ---- merges ---------------------------------------------------------------------------------------------


def _merge_parts(model: _Model) -> Iterator[Finding]:
    bad: list[int] = []
    first = ""
    for index, (left, right) in enumerate(model.pairs):
        if left in model.ids and right in model.ids and left + right in model.ids:
            continue
        missing = next(text for text in (left, right, left + right) if text not in model.ids)
        first = first or f"{printable(model.merges[index])}, whose {printable(missing)} is not"
        bad.append(index)
    if bad and model.tokens:
        yield Finding(
            "warning",
            "merges_not_in_vocabulary",
            f"{_some(len(bad), 'merge')} of {len(model.merges)} with a part or a result that is no token: the first "
            f"is merge {bad[0]}, {first}",
            "The symbol that such a merge makes has no id, so it falls back to its bytes; tokens and merges are not "
            "of one model.",
            "convert the model again",
            Where(_K.MERGES, None, model.file.element_offset(_K.MERGES, bad[0])),
            {"count": len(bad), "of": len(model.merges), "merges": bad[:100]},
        )
    if len(set(model.merges)) < len(model.merges):
        count = len(model.merges) - len(set(model.merges))
        what = f"{_some(count, 'merge stands', 'merges stand')} a second time"
        why = "The first one counts. Harmless, but a faulty conversion."
        yield Finding(
            "note",
            "duplicate_merges",
            what,
            why,
            "convert the model again",
            model.key(_K.MERGES),
            {"count": count},
        )


def _is_name(token: str) -> bool:
    """Whether it stands for something, and not for its text."""
    return token[:1] in ("<", "[") and bool(_CONTROL_LIKE.fullmatch(token) or _PADDING.fullmatch(token))


def _unreachable(model: _Model) -> Iterator[Finding]:
    """Tokens that merging the characters of their own text does not give back."""
    if not model.merges or not model.kind.is_supported:
        return
    entry = PRE_TOKENIZERS.get(model.kind.own_pre if model.kind.ignores_pre else model.pre or "default")
    encoder = WordEncoder(entry or PRE_TOKENIZERS["default"], model.ids, model.merges)
    found = [
        index
        for index, token in enumerate(model.tokens)
        if len(token) > 1 and model.type_of(index) == int(TokenType.NORMAL) and not _is_name(token)
        if encoder.merged(list(token)) != [token]
    ]
    if not found:
        return
    whole = entry is not None and entry.ignore_merges
    many = len(found) > _SHARE_UNREACHABLE * len(model.tokens)
    texts = [model.tokens[index] for index in found]
    yield Finding(
        "note" if whole or not many else "warning",
        "unreachable_tokens",
        f"{_some(len(found), 'token')} that no merges lead to: {_listed(texts, len(texts))}",
        f"{model.pre} takes a whole word that is a token for that token, so they are found there, but not as parts "
        "of words."
        if whole
        else "Encoding never gives them. A few are left over from training or were added later; many mean that "
        "tokens and merges are not of one model, or that the model wants a pre-tokenizer that ignores merges for "
        "whole words, as llama-bpe does.",
        "nothing to do" if whole or not many else "convert the model again",
        model.token(found[0]),
        {"count": len(found), "ids": found[:100], "texts": texts[:100]},
    )


# ---- special ids ----------------------------------------------------------------------------------------

_SPECIAL_WHY = "A wrong or missing special id shows as answers that never end, or prompts that begin wrongly."


# Texts of the tokens that models have for these, the most telling first.
_TEXTS_OF_IDS: dict[str, tuple[str, ...]] = {
    _K.BOS_ID: (
        *("<|begin_of_text|>", "<bos>", "<s>", "<|startoftext|>", "<｜begin▁of▁sentence｜>", "<BOS_TOKEN>"),
        *("[BOS]", "<|endoftext|>"),
    ),
    _K.EOS_ID: (
        *(
            "<|end_of_text|>",
            "<eos>",
            "</s>",
            "<|endoftext|>",
            "<｜end▁of▁sentence｜>",
            "<EOS_TOKEN>",
            "[EOS]",
        ),
        *("<|im_end|>", "<|eot_id|>", "<|end|>"),
    ),
}


def _special_ids(model: _Model) -> Iterator[Finding]:
    size = len(model.tokens)
    out_of_range = dict(ids_out_of_range(model.file, size))
    for name, keys, _ in SPECIAL_IDS:
        for key in keys:
            token = model.scalar(key)
            if token is None or not size:
                continue
            if key in out_of_range:
                default = model.kind.default_ids.get(name)
                instead = "has none then" if default is None else f"takes the default, {default}"
                remove, own = model.remove(key), model.set_id(key)
                yield Finding(
                    "error",
                    "special_id_out_of_range",
                    f"{key} is {token}, but the vocabulary has ids 0 to {size - 1}",
                    f"llama.cpp ignores it, and {instead}. {_SPECIAL_WHY}",
                    f"{own}, or take it out: {remove}",
                    model.key(key),
                )
            elif model.types and model.is_normal(token):
                yield Finding(
                    "warning" if name in ("bos", "eos", "eot", "eom") else "note",
                    "special_id_is_normal",
                    f"{key} is {token}, {printable(model.tokens[token])}, a normal token",
                    "Its text in a prompt is not found as a token, and when it is generated, it is shown as text. "
                    "Perhaps the id is wrong.",
                    model.set_id(key)
                    if model.is_made_normal(token)
                    else f"{model.set_types(CONTROL=[token])}, or set another id",
                    Where(key, token, model.file.offset(key)),
                )


def _missing_special_ids(model: _Model) -> Iterator[Finding]:
    if model.tokenizer is None:
        return
    vocabulary = model.tokenizer.vocabulary
    for name, key in (("bos", _K.BOS_ID), ("eos", _K.EOS_ID)):
        token = vocabulary.special_ids[name]
        if key not in model.file:
            default = (
                "there is none"
                if token is None
                else f"llama.cpp takes {token}, {printable(vocabulary.tokens[token])}"
            )
            yield Finding(
                "warning" if name == "eos" or vocabulary.add_bos else "note",
                "special_id_missing",
                f"{key} is missing, so {default}",
                _SPECIAL_WHY,
                model.set_id(key),
                model.key(key),
            )
        if token is None and getattr(vocabulary, f"add_{name}"):
            fix = model.set_id(key)
            if not (name == "bos" and vocabulary.pre_tokenizer.always_add_bos):
                fix += f", or {model.set(_K.ADD_BOS if name == 'bos' else _K.ADD_EOS, 'false')}"
            yield Finding(
                "error",
                "special_id_wanted",
                f"{name.upper()} is to be added to every text, but there is none",
                "llama.cpp aborts as soon as a text is encoded.",
                fix,
                model.key(key),
            )


def _end_of_generation(model: _Model) -> Iterator[Finding]:
    if model.tokenizer is None:
        return
    vocabulary = model.tokenizer.vocabulary
    eos = vocabulary.special_ids["eos"]
    if eos is not None and eos not in vocabulary.eog_ids:
        yield Finding(
            "warning",
            "eos_not_end_of_generation",
            f"the EOS token {eos}, {printable(vocabulary.tokens[eos])}, does not end a generation",
            "llama.cpp takes it out of the set, because other tokens of the vocabulary show a model family in which "
            "it does not end one. Generation then runs on after it.",
            f"set another one: {model.set(_K.EOS_ID, min(vocabulary.eog_ids))}"
            if vocabulary.eog_ids
            else f"set {_K.EOS_ID} to the id of a token that ends a generation",
            Where(_K.EOS_ID, eos, model.key(_K.EOS_ID).offset),
        )
    named = {vocabulary.tokens[i] for i in vocabulary.eog_ids} | {"eos_token"}
    if (
        model.template
        and vocabulary.special_ids["eot"] is None
        and not any(n in model.template for n in named)
    ):
        yield Finding(
            "note",
            "eot_missing",
            "the chat template has none of the tokens that end a generation, and no EOT is named",
            "A model ends its turn as the template does; with a token that llama.cpp does not know for an end, its "
            "answers do not stop.",
            f"set {_K.EOT_ID} to the id of the token that ends a turn",
            model.key(_K.EOT_ID),
        )


def _made_control(model: _Model) -> Iterator[Finding]:
    """Normal tokens that llama.cpp takes for control tokens, by their text."""
    if model.tokenizer is None or not model.types:
        return
    attributes, normal = model.tokenizer.vocabulary.attributes, int(TokenType.NORMAL)
    for index, kind in enumerate(model.types[: len(attributes)]):
        if kind == normal and attributes[index] & CONTROL:
            ends = index in model.tokenizer.eog_ids
            yield Finding(
                "note",
                "made_control",
                f"llama.cpp takes token {index}, {printable(model.tokens[index])}, for a control token"
                + (", and one that ends a generation" if ends else "")
                + ", though its type is NORMAL",
                "Other tokenizers cut this text into pieces, or go on after it.",
                f"nothing to do, or say so in the file as well: {model.set_types(CONTROL=[index])}",
                model.token(index),
            )


# ---- chat template --------------------------------------------------------------------------------------

_MARKER = re.compile(
    r"<\|[^|<>{}\s'\"]{1,60}\|>|<｜[^｜<>{}\s'\"]{1,60}｜>|\[/?INST\]|<</?SYS>>|"
    r"<(?:start|end)_of_turn>|<\|?turn\|?>|\[/?(?:SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\]"
)
_PLAIN_MARKERS = re.compile(r"\[/?INST\]|<</?SYS>>")  # in Llama 2 they are text like any other
_JINJA_COMMENT = re.compile(r"\{#.*?#\}", re.DOTALL)


def _bos_twice(model: _Model) -> Iterator[Finding]:
    tokenizer = model.tokenizer
    if tokenizer is None or not tokenizer.add_bos or tokenizer.bos_id is None:
        return
    template = _JINJA_COMMENT.sub("", model.template)
    text = tokenizer.vocabulary.tokens[tokenizer.bos_id]
    literally = text in template and tokenizer.bos_id != tokenizer.eos_id
    if literally or re.search(r"\bbos_token\b", template):
        written = printable(text) if literally else "bos_token"
        yield Finding(
            "warning",
            "bos_twice",
            f"BOS is added to every text, and the chat template writes it as well ({written})",
            "llama.cpp's own chat code takes one away. A program that renders the template itself and then encodes "
            "the result with special tokens added sends two, which many models answer worse.",
            "encode rendered prompts without adding BOS"
            + (
                ""
                if tokenizer.vocabulary.pre_tokenizer.always_add_bos
                else f", or {model.set(_K.ADD_BOS, 'false')}"
            ),
            model.key(_K.CHAT_TEMPLATE),
            {"bos": tokenizer.bos_id, "text": text},
        )


def _chat_markers(model: _Model) -> Iterator[Finding]:
    """Markers of the chat template that are not one special token."""
    template = _JINJA_COMMENT.sub("", model.template)
    for marker in dict.fromkeys(_MARKER.findall(template)):
        token = model.ids.get(marker)
        if token is not None and _is_special(model, token):
            continue
        if token is None and model.tokenizer is None:
            pieces = "no token"
        elif token is None and model.tokenizer is not None:
            ids = model.tokenizer.encode(marker, add_special=False)
            pieces = f"no token, and becomes {_some(len(ids), 'token')}"
        else:
            pieces = f"token {token}, but an ordinary one, so it is cut like other text"
        plain = token is None and _PLAIN_MARKERS.fullmatch(marker) is not None
        yield Finding(
            "note" if plain else "warning",
            "chat_marker",
            f"the chat template has {printable(marker)}, which is {pieces}",
            "The model was trained with one special token there; pieces of text do not mean the same to it."
            if not plain
            else "In some models it is meant so, as in Llama 2.",
            "the template is of another model: set the right one with --set " + _K.CHAT_TEMPLATE
            if token is None
            else model.set_types(CONTROL=[token]),
            Where(_K.CHAT_TEMPLATE, token, model.key(_K.CHAT_TEMPLATE).offset),
            {"marker": marker},
        )


def _is_special(model: _Model, token: int) -> bool:
    if model.tokenizer is not None:
        return bool(model.tokenizer.vocabulary.attributes[token] & (CONTROL | USER_DEFINED | UNKNOWN))
    kinds = (TokenType.CONTROL, TokenType.USER_DEFINED, TokenType.UNKNOWN)
    return model.type_of(token) in map(int, kinds)


# ---- text that comes back -------------------------------------------------------------------------------

SAMPLES = (
    "The quick brown fox isn't lazy; it's 3.14159, (x+y)*2 == 42!",
    "def f(a_b, *c):\n\treturn {'k': [a_b[0] ** 2, \"x\\n\"]}  # 100%\r\n\r\n",
    "   leading,  double   and trailing spaces   \n \n\n",
    "Größe, naïve, façade, œuvre, Åse, İstanbul, e\u0301 ﬁ Ω",
    "Привет, мир. Γειά σου Κόσμε. Բարեւ",
    "مرحبا بالعالم، ١٢٣ שָׁלוֹם עוֹלָם",
    "नमस्ते दुनिया। ภาษาไทย বাংলা",
    "你好，世界。日本語のテキスト、한국어 문장",
    "👩\u200d👩\u200d👧 🙂🏽 🇩🇪 \ufe0f ✓ → ∑ € ½ ²",
    "\u00a0\u2003\u3000\ufeff\u200b\u2028 \U00010348 \U0001d7d8 \ufffd",
)
_UTF8_BYTES = [*range(0x80), *range(0x80, 0xC0), *range(0xC2, 0xF5)]
_RARE_BYTES = {*range(0x20), 0x7F, *range(0xF1, 0xF5)} - {9, 10, 13}


def _bytes(model: _Model) -> Iterator[Finding]:
    tokenizer = model.tokenizer
    if tokenizer is None or model.kind.drops_white_space:
        return
    if tokenizer.vocabulary.pre_tokenizer.byte_encode:
        missing = [byte for byte in _UTF8_BYTES if BYTE_CHARS[byte] not in model.ids]
    else:
        missing = [byte for byte in _UTF8_BYTES if f"<0x{byte:02X}>" not in model.ids]
    if missing:
        rare = _RARE_BYTES.issuperset(missing)
        yield Finding(
            "note" if rare else "warning",
            "bytes_missing",
            f"{_some(len(missing), 'byte has', 'bytes have')} no token: "
            + _listed([f"0x{byte:02X}" for byte in missing], len(missing)).replace("'", ""),
            "Text with such a byte loses it: llama.cpp drops what has no token."
            + (" These are control characters and planes without text." if rare else ""),
            "nothing to do" if rare else "convert the model again: a byte-level vocabulary has all 256",
            model.key(_K.LIST),
            {"bytes": missing},
        )


def _round_trip(model: _Model) -> Iterator[Finding]:
    """Texts of which the tokens lose something."""
    tokenizer = model.tokenizer
    if tokenizer is None or model.kind.drops_white_space:
        return
    changed = []
    for sample in SAMPLES:
        ids = tokenizer.encode(sample, add_special=False, parse_special=False)
        if b"".join(map(tokenizer.token_to_piece, ids)) != sample.encode():
            back = b"".join(map(tokenizer.token_to_piece, ids)).decode("utf-8", "replace")
            at = next(
                (i for i, (a, b) in enumerate(zip(sample, back)) if a != b), min(len(sample), len(back))
            )
            changed.append((sample, at))
    if changed:
        sample, at = changed[0]
        yield Finding(
            "warning",
            "round_trip",
            f"{len(changed)} of {len(SAMPLES)} sample texts do not come back from their tokens: the first is "
            f"{printable(sample, 40)}, at character {at}, {printable(sample[at : at + 1])}",
            "What gets lost in encoding, the model never sees.",
            "convert the model again, if its original tokenizer keeps such text",
            model.key(_K.LIST),
            {"samples": [sample for sample, _ in changed]},
        )


def _clean_spaces(model: _Model) -> Iterator[Finding]:
    tokenizer = model.tokenizer
    if tokenizer is None or not tokenizer.vocabulary.pre_tokenizer.clean_spaces:
        return
    text = "It 's here , now !"
    ids = tokenizer.encode(text, add_special=False)
    back = tokenizer.decode([token for token in ids if token >= 0])  # -1 is an unknown token that is missing
    if back != text:
        yield Finding(
            "note",
            "clean_spaces",
            f"decoding drops spaces before punctuation: {printable(text)} comes back as {printable(back)}",
            f"llama.cpp does so for {tokenizer.pre}, and the file cannot change it. The ids are not touched, "
            "only text made of several of them.",
            "nothing to do; tokens decoded one by one (token_to_piece) keep all spaces",
            model.key(_K.PRE),
        )


def _line_break(model: _Model) -> Iterator[Finding]:
    tokenizer = model.tokenizer
    if tokenizer is not None and not model.kind.drops_white_space and tokenizer.nl_id is None:
        yield Finding(
            "warning",
            "no_line_break",
            "the vocabulary has no token for the newline character",
            "Line breaks in a text get lost.",
            "convert the model again",
            model.key(_K.LIST),
        )


# ---- what is left ---------------------------------------------------------------------------------------


def _other_tokenizer(model: _Model) -> Iterator[Finding]:
    if isinstance(model.refusal, UnsupportedTokenizerError) or not model.kind.has_pre_tokenizer:
        yield Finding(
            "note",
            "not_bpe",
            f"the tokenizer is {printable(model.model)} ({model.kind.description}), not byte pair encoding",
            "Only what all tokenizers have in common was looked at: types, special ids, duplicates, template.",
            f"nothing to do; ggufbpe reads {', '.join(SUPPORTED)}",
            model.key(_K.MODEL),
        )


def _refusal(model: _Model, found: list[Finding]) -> Iterator[Finding]:
    """What opening the tokenizer says, unless a finding says the same of that key."""
    error = model.refusal
    if error is None or isinstance(error, UnsupportedTokenizerError):
        return
    if any(finding.severity == "error" and finding.where.key == error.key for finding in found):
        return
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(error).__name__.removesuffix("Error")).lower()
    key = f"{error.key}: " if error.key else ""
    yield Finding(
        "error",
        name,
        key + error.problem,
        "llama.cpp refuses the file, or aborts on it.",
        error.remedy or "convert the model again",
        Where(error.key, None, error.offset),
    )


_COMMON_CHECKS: tuple[Callable[[_Model], Iterator[Finding]], ...] = (
    _other_tokenizer,
    _wrong_types,
    _duplicates,
    _lengths,
    _empty,
    _special_ids,
    _chat_markers,
    _padding,
)
_CHECKS: tuple[Callable[[_Model], Iterator[Finding]], ...] = (
    _pre_tokenizer,
    _wrong_types,
    _duplicates,
    _lengths,
    _end_of_generation,
    _special_ids,
    _missing_special_ids,
    _control_types,
    _made_control,
    _chat_markers,
    _merge_parts,
    _unreachable,
    _bytes,
    _round_trip,
    _line_break,
    _bos_twice,
    _empty,
    _padding,
    _hugging_face,
    _clean_spaces,
)
_BYTE_PAIR_CHECKS = frozenset(
    (_pre_tokenizer, _merge_parts, _unreachable, _bytes, _round_trip, _hugging_face)
)
