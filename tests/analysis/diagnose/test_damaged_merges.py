"""Damaged merges of the file, which are told from another way to use sound ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import GPT2
from reference import with_pre
from small_models import small_tokenizer

from ggufbpe import Tokenizer
from ggufbpe.analysis.diagnose import damaged_merges
from ggufbpe.analysis.diagnose.cause_search import Answer
from ggufbpe.analysis.diagnose.causes import merges_by_id, merges_of
from ggufbpe.analysis.diagnose.damaged_merges import with_damaged_merges
from ggufbpe.analysis.diagnose.id_diagnosis import diagnose
from ggufbpe.analysis.diagnose.several import Several
from ggufbpe.analysis.doctor.texts_with_ids import TextWithIds
from ggufbpe.gguf.constants import TokenizerKey
from ggufbpe.models.loading import load_vocabulary

pytestmark = pytest.mark.tries_fixes

TEXTS = ("the radius", "Größe, the radius is 1234567, Qxzyt", "hypocrisy of pitchers, guessing")
DAMAGES: dict[str, Callable[[list[str]], list[str]]] = {
    "cut": lambda merges: merges[: len(merges) // 2],
    "misspelt": lambda merges: [merge.replace("Ġ", " ") for merge in merges],
    "backwards": lambda merges: merges[::-1],
}


def right() -> Tokenizer:
    return Tokenizer(load_vocabulary(GPT2))


@pytest.mark.parametrize("name", DAMAGES)
def test_the_file_is_named_and_no_other_tool(name: str, tmp_path: Path) -> None:
    merges = DAMAGES[name](list(right().vocabulary.merges))
    copy = with_pre(GPT2, None, tmp_path / "damaged.gguf", extra={TokenizerKey.MERGES: merges})
    broken, told = Tokenizer(load_vocabulary(copy)), 0
    for text in TEXTS:
        found = diagnose(broken, text.encode(), right().encode(text))
        for each in found.explanations:
            told += 1
            assert [cause.id for cause in each.causes] == ["merges"]
            assert "the merges of the file are damaged or missing" in str(each.causes[0].detail["what"])
            assert each.causes[0].fix == "convert the model again, with the merges of its own tokenizer"
    assert told >= 2


def test_the_file_is_named_for_several_texts(tmp_path: Path) -> None:
    merges = DAMAGES["misspelt"](list(right().vocabulary.merges))
    copy = with_pre(GPT2, None, tmp_path / "damaged.gguf", extra={TokenizerKey.MERGES: merges})
    compared = [TextWithIds(text.encode(), right().encode(text)) for text in TEXTS]
    found = Several(Tokenizer(load_vocabulary(copy)), compared).found()
    assert [cause.detail["problem"] for cause in found.causes] == ["damaged"]


def test_a_cause_that_no_merges_explain_stays(tmp_path: Path) -> None:
    merges = DAMAGES["cut"](list(right().vocabulary.merges))
    copy = with_pre(GPT2, None, tmp_path / "damaged.gguf", extra={TokenizerKey.MERGES: merges})
    broken, text = Tokenizer(load_vocabulary(copy)), "hypocrisy of pitchers"
    ids = [*right().encode(text), right().eos_id or 0]
    best = diagnose(broken, text.encode(), ids).explanations[0]
    assert {cause.id for cause in best.causes} == {"eos", "merges"}


def test_sound_merges_are_not_accused() -> None:
    found = [Answer((merges_by_id(),), 1.0)]
    assert with_damaged_merges(right(), found) == found
    assert with_damaged_merges(small_tokenizer(), found) == found  # has no file


def test_merges_of_a_known_model_are_no_reason_to_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(damaged_merges, "unreachable", lambda _: pytest.fail("looked at all tokens"))
    found = [Answer((merges_of("good.gguf"),), 1.0)]
    assert with_damaged_merges(right(), found) == found
