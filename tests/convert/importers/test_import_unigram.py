"""Unigram models from a tokenizer.json: scores, the charsmap, and the rules for spaces."""

from __future__ import annotations

from array import array
from base64 import b64encode
from typing import Any

import pytest
from charsmaps import charsmap

from ggufbpe.convert.exporters.hf_config import HFConfig
from ggufbpe.convert.imported import NotImportableError
from ggufbpe.convert.importers.hf_document import HFDocument, require_charsmap
from ggufbpe.convert.importers.import_unigram import import_unigram
from ggufbpe.gguf.constants import TokenizerKey, TokenType

MAP = charsmap({b"\n": b" "})
PRECOMPILED = {"type": "Precompiled", "precompiled_charsmap": b64encode(MAP).decode()}
PREPEND = {"type": "Prepend", "prepend": "▁"}
METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"}


def replace(pattern: str, kind: str = "Regex") -> dict[str, Any]:
    """A step that replaces a pattern."""
    return {"type": "Replace", "pattern": {kind: pattern}, "content": "▁"}


def imported(
    *steps: dict[str, Any], config: dict[str, Any] | None = None, **model: Any
) -> tuple[dict[str, Any], list[str]]:
    """The keys, and the names of what llama.cpp does differently, for these steps of the normalizer."""
    vocab = [["<unk>", 0.0], ["a", -1.5], ["▁", -0.1]]
    own = {"type": "Unigram", "vocab": vocab, "unk_id": 0, **model}
    normalizer = {"type": "Sequence", "normalizers": list(steps)}
    keys, told = import_unigram(HFDocument({"normalizer": normalizer, "model": own}, HFConfig(config or {})))
    return keys, [limit.name for limit in told]


def test_scores_and_types() -> None:
    keys, told = imported()
    single = array("f", [-0.1])[0]
    assert keys["tokenizer.ggml.scores"] == [0.0, -1.5, single]
    assert keys["tokenizer.ggml.token_type"][0] == TokenType.UNKNOWN
    assert keys["tokenizer.ggml.unknown_token_id"] == 0
    assert told == ["rounded_scores", "control_tokens_in_text"]
    assert imported(vocab=[["<unk>", 0.0], ["a", -0.5]])[1] == ["control_tokens_in_text"]
    keys, _ = imported(config={"gguf": {"scores": {"-7.5": [1]}}})
    assert keys["tokenizer.ggml.scores"][1] == -7.5


SPACES: dict[str, tuple[tuple[dict[str, Any], ...], tuple[bool, bool], list[str]]] = {
    # steps, whether spaces are merged and one is put before a text, and what differs
    "none": ((), (False, False), []),
    "one before": ((PREPEND,), (False, True), []),
    "metaspace": ((METASPACE,), (False, True), []),
    "metaspace without one": (({**METASPACE, "prepend_scheme": "never"},), (False, False), []),
    "merged, and none at the ends": (
        (replace(r"\A +| +\z"), replace(" +")),
        (True, False),
        ["space_before_texts"],
    ),
    "merged, none at the ends, and one before": (
        (replace(r"\A +| +\z"), replace(" +"), PREPEND),
        (True, True),
        [],
    ),
    "merged, but kept at the end": (
        (replace(" {2,}"), PREPEND),
        (True, True),
        ["spaces_at_the_end"],
    ),
    "stripped": (({"type": "Strip", "strip_right": True}, replace(" {2,}"), PREPEND), (True, True), []),
    "stripped at the start": (
        ({"type": "Strip", "strip_left": True, "strip_right": False}, replace(" {2,}")),
        (True, False),
        ["spaces_at_the_end", "space_before_texts"],
    ),
    "escaped": ((replace(" ", "String"),), (False, False), []),
    "a step that llama.cpp does not have": (({"type": "Lowercase"},), (False, False), ["normalizer"]),
}


@pytest.mark.parametrize("name", SPACES)
def test_rules_for_spaces(name: str) -> None:
    steps, flags, names = SPACES[name]
    keys, told = imported(*steps, vocab=[["<unk>", 0.0], ["a", -0.5]])
    found = keys["tokenizer.ggml.remove_extra_whitespaces"], keys["tokenizer.ggml.add_space_prefix"]
    assert (found, told[:-1]) == (flags, names)


@pytest.mark.parametrize(
    ("step", "is_told"),
    [
        (METASPACE, True),
        ({**METASPACE, "split": False}, False),
        ({"type": "WhitespaceSplit"}, True),
        ({"type": "Strip"}, False),
    ],
)
def test_tokens_that_splitting_before_spaces_never_makes(step: dict[str, Any], is_told: bool) -> None:
    model = {"type": "Unigram", "vocab": [["<unk>", 0.0], ["▁a", -0.5], ["a▁", -0.5]], "unk_id": 0}
    added = [{"id": 3, "content": "b▁", "special": False}]  # found whole
    file = {"pre_tokenizer": step, "model": model, "added_tokens": added}
    _, told = import_unigram(HFDocument(file, HFConfig({})))
    assert [limit.number for limit in told if limit.name == "splitting"] == [1] * is_told


@pytest.mark.parametrize("scheme", ["always", "first"])
def test_a_metaspace_that_puts_no_space_before_one(scheme: str) -> None:
    model = {"type": "Unigram", "vocab": [["<unk>", 0.0], ["a", -0.5]], "unk_id": 0}
    file = {"pre_tokenizer": {**METASPACE, "prepend_scheme": scheme}, "model": model}
    _, told = import_unigram(HFDocument(file, HFConfig({})))
    names = [limit.name for limit in told]
    assert names == ["first_prefix"] * (scheme == "first") + ["spaces_at_the_start", "control_tokens_in_text"]


def test_composition_and_charsmap() -> None:
    keys, told = imported({"type": "NFC"}, PRECOMPILED)
    assert keys["tokenizer.ggml.precompiled_charsmap"].tobytes() == MAP
    assert keys[TokenizerKey.NORMALIZER_NFC] is True
    assert {"composition", "charsmap_by_graphemes"} <= set(told)
    keys, told = imported(PRECOMPILED, {"type": "NFC"})  # behind the charsmap, where llama.cpp has none
    assert TokenizerKey.NORMALIZER_NFC not in keys
    assert "normalizer" in told


@pytest.mark.parametrize("unknown", [3, -1, True, "0"])
def test_an_unknown_token_that_is_no_id(unknown: Any) -> None:
    with pytest.raises(NotImportableError, match="the unknown token is"):
        imported(unk_id=unknown)


def test_a_charsmap_that_is_cut_off() -> None:
    assert require_charsmap(MAP) == MAP
    for data in (b"\0", MAP[:6]):
        with pytest.raises(NotImportableError, match="the charsmap"):
            require_charsmap(data)
