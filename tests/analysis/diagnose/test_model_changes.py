"""What may differ in models without a pre-tokenizer, and the file read as other tokenizer models."""

from __future__ import annotations

from pathlib import Path

import pytest
from real_vocabularies import cached
from reference import write_metadata
from small_models import scored_keys

from ggufbpe import Tokenizer, diagnose, fix
from ggufbpe.analysis.diagnose.encoding_changes import Encoding
from ggufbpe.analysis.diagnose.model_changes import model_changes, other_models
from ggufbpe.analysis.diagnose.variants import SPACE_ONCE


def test_a_space_that_is_put_once_leaves_another_change_as_it_is(tmp_path: Path) -> None:
    vocabulary = Tokenizer.from_gguf(write_metadata(tmp_path / "model.gguf", scored_keys(["a"]))).vocabulary
    other = Encoding(vocabulary._replace(remove_extra_whitespaces=True), True)
    made = [change(other) for _, change in model_changes(vocabulary, [])]
    [once] = [each for each in made if each.way == SPACE_ONCE]
    assert once.vocabulary == other.vocabulary._replace(add_space_prefix=False)


def test_a_vocabulary_in_lower_case_goes_on_lowercasing_texts() -> None:
    """Tools that do not lowercase texts give the unknown token for words with capital letters."""
    tok = Tokenizer.from_gguf(cached("bert-bge"))
    ids = Tokenizer(tok.vocabulary._replace(lowercase=False)).encode("Hello world")
    found = diagnose(tok, "Hello world", ids).explanations
    assert {cause.id for item in found for cause in item.causes} == {"lower_case"}
    assert not any(item.fix for item in found)
    assert "let the other tool lowercase" in found[0].causes[0].fix


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_a_known_family_tells_which_model_is_tried(name: str, tmp_path: Path) -> None:
    bad = tmp_path / "bad.gguf"
    fix(cached("gemma-4"), bad, set={"tokenizer.ggml.model": name, "tokenizer.ggml.pre": "gpt-2"})
    assert [cause.detail["model"] for _, cause in other_models(Tokenizer.from_gguf(bad))] == ["gemma4"]
