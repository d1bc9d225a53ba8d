"""The parts of a tokenizer.json that depend on the algorithm, and how single steps are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..incompatibilities import Incompatibility

NOT_IN_1 = "not_read_by_tokenizers_1"

Part = dict[str, Any] | None


class HFParts(NamedTuple):
    """The parts of a tokenizer.json specific to one algorithm, and where its ids differ from ours."""

    normalizer: Part
    pre_tokenizer: Part
    decoder: Part
    model: dict[str, Any]
    limits: list[Incompatibility]
    scores: Mapping[int, float] = {}  # of tokens whose score the model's part does not give
    second_type: int = 0  # not 0: of two texts, the second begins without BOS


def sequence(children: str, steps: list[dict[str, Any]]) -> Part:
    """Steps to run one after the other; `children` is the key of the list."""
    if len(steps) < 2:
        return steps[0] if steps else None
    return {"type": "Sequence", children: steps}


def replace(old: str, new: str, kind: str = "String") -> dict[str, Any]:
    """A step that replaces each `old`, which is a "String" or a "Regex"."""
    return {"type": "Replace", "pattern": {kind: old}, "content": new}


def byte_pair_model(
    vocabulary: Mapping[str, int],
    merges: Sequence[tuple[str, str]],
    *,
    byte_fallback: bool,
    ignore_merges: bool = False,
    unknown: str | None = None,
) -> dict[str, Any]:
    """The model part of a tokenizer.json that merges pairs by rank."""
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": unknown,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": byte_fallback,
        "ignore_merges": ignore_merges,
        "vocab": vocabulary,
        "merges": merges,
    }
