"""Whether the tokens were made with the pre-tokenizer that the file names, and where Hugging Face differs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..._util.errors import printable
from ..._util.wording import listed
from ...gguf.constants import TokenizerKey
from ...models import tokenizer_model
from ...models.bpe.merge import BYTE_CHARS, byte_level
from ...models.known_families import splits_like
from ...models.pretokenizers.families import Family
from ...models.pretokenizers.hf_splitting import DIFFERENCES
from ...models.pretokenizers.registry import PRE_TOKENIZERS
from .facts import Facts
from .finding import Finding

_K = TokenizerKey
_SPELT_TWICE = byte_level(BYTE_CHARS[ord(" ")])  # a space in bytes, in bytes
_COSTS_MORE = 0.5  # than the family's own pre-tokenizer, in terms of `Family.cost`

_SPLIT_WHY = (
    "The pre-tokenizer splits text into words before merging. With another one than in training, ids differ from "
    "those that the model has learned, mostly in numbers, code and white space, and its answers get worse."
)


def pre_tokenizer(model: Facts) -> Iterator[Finding]:
    """A name that is missing, unknown, or does not fit the tokens."""
    if model.kind.ignores_pre or not model.tokens:
        return
    if any(tokenizer_model(name).ignores_pre for name in model.likely_models):
        return
    if _K.PRE in model.file and model.pre is None:  # of a wrong type, or not UTF-8, which other checks report
        return
    if _SPELT_TWICE in model.ids and BYTE_CHARS[ord(" ")] not in model.ids:  # `lost_bytes` reports it
        return
    found = model.evidence
    own = found.own
    problem = found.problem or ("doubtful" if is_of_other_family(model) else "")
    if not problem:
        return
    severity, why = "warning", _SPLIT_WHY
    if problem == "unknown":
        severity, why = "error", f"llama.cpp refuses the file. {_SPLIT_WHY}"
        what = "llama.cpp does not know the pre-tokenizer that the file names."
        told = f"{_K.PRE} is {printable(found.pre)}."
    elif problem == "doubtful":
        what = "The pre-tokenizer that the file names does not fit the tokens."
        told = f"{_K.PRE} is {found.pre}"
        if own and own.cut:
            told += f", which cuts {own.of - own.kept} of {own.of} tokens ({listed(own.cut, 9)})"
        told += "."
    else:
        what = "The file does not say which pre-tokenizer the tokens were made with."
        told = f"{_K.PRE} is {problem}."
        why = f"llama.cpp then splits like `default`, which hardly any model was trained with. {_SPLIT_WHY}"
        if found.name and found.name == model.likely_pre and not found.is_against:
            severity = "note"
    if model.family and model.family.pres:
        says = {
            "missing": "does not name its pre-tokenizer",
            "default": "names no pre-tokenizer but `default`",
        }
        what = f"This is {model.family.vocabulary}, but the file {says.get(problem, f'says {printable(found.pre)}')}."
    fix = model.set_pre()
    if severity == "note":
        fix = f"nothing to do, or {fix}" if problem == "missing" else "nothing to do"
    said = found.sentence
    if found.name != model.likely_pre:
        said += f" {model.likely_pre} keeps as many whole, and all files of the family have it."
    detail = {
        "pre": model.pre,
        "suggested": model.likely_pre or None,
        "families": [_family_json(family) for family in found.best],
        "next": [_family_json(family) for family in found.found if family not in found.best][:3],
    }
    yield Finding(severity, f"pre_{problem}", what, why, fix, model.key(_K.PRE), detail, f"{told} {said}")


def is_of_other_family(model: Facts) -> bool:
    """Check that the tokens are of a known family, whose pre-tokenizer is another, and that they fit that one better.

    The one in use may cut none of them: Qwen 2 has no token of three digits, which Llama 3's pre-tokenizer allows.
    """
    family = model.family
    if family is None or not family.pres or model.pre not in PRE_TOKENIZERS or splits_like(model.pre, family):
        return False
    found = model.evidence
    theirs = {PRE_TOKENIZERS[name].family for name in family.pres}
    costs = [each.cost for each in found.found if each.family in theirs]
    is_likely = any(each.family in theirs for each in found.best)
    return is_likely and found.own is not None and found.own.cost > min(costs) + _COSTS_MORE


def _family_json(family: Family) -> dict[str, Any]:
    return {**family._asdict(), "share": family.share, "names": family.names, "cost": round(family.cost, 2)}


def hugging_face_splitting(model: Facts) -> Iterator[Finding]:
    """Where llama.cpp's pre-tokenizer splits differently from Hugging Face's tokenizers."""
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
        "llama.cpp splits some text differently than the model's original tokenizer.",
        "The model was trained with Hugging Face's ids; on text with these characters, llama.cpp gives others, and so "
        "does ggufbpe.",
        "nothing to do in the file: llama.cpp cannot run the original pattern",
        model.key(_K.PRE),
        {"differences": [difference._asdict() for difference in differences]},
        f"{entry.name if entry else ''} differs in Hugging Face's tokenizers. " + "; ".join(told) + ".",
    )
