"""What may differ in models without a pre-tokenizer, and the file read as other tokenizer models."""

from __future__ import annotations

from pathlib import Path

import pytest
from real_vocabularies import cached
from reference import write_metadata
from small_models import CONTROL, NORMAL, K, Keys, scored_keys

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
    assert [[cause.id for cause in item.causes] for item in found] == [["lower_case"], ["lower_case"]]
    assert not any(item.change for item in found)
    assert [item.causes[0].fix for item in found] == [
        f"let the other tool {do}: hardly any tokens of the model have capital letters"
        for do in ("lowercase texts", "lowercase texts and strip accents")
    ]


@pytest.mark.parametrize(
    ("text", "keeps_accents", "changed", "says_more"),
    [
        ("Tokyo world", False, {K.NORMALIZER_LOWERCASE: "false", K.NORMALIZER_STRIP_ACCENTS: "true"}, False),
        ("Hello müller", True, {K.NORMALIZER_STRIP_ACCENTS: "false"}, True),
    ],
)
@pytest.mark.parametrize("has_types", [True, False])
def test_given_tokens_with_capitals_or_accents_are_the_models(
    text: str, keeps_accents: bool, changed: dict[str, str], says_more: bool, has_types: bool, tmp_path: Path
) -> None:
    """Tokens that come out of no text in the model speak for a command, however few there are."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    words = ["▁Tokyo", "▁müller", "▁hello", "▁world", *(f"▁w{number}" for number in range(600))]
    keys: Keys = {"general.architecture": "bert", K.MODEL: "bert", K.LIST: special + words}
    keys |= {K.UNK_ID: 1, K.BOS_ID: 2, K.SEP_ID: 3}
    if has_types:
        keys[K.TOKEN_TYPE] = [CONTROL] * len(special) + [NORMAL] * len(words)
    tok = Tokenizer.from_gguf(write_metadata(tmp_path / "model.gguf", keys))
    other = tok.vocabulary._replace(lowercase=False, strip_accents=not keeps_accents)
    first, *_ = diagnose(tok, text, Tokenizer(other).encode(text)).explanations
    assert (first.change.keys, bool(first.fix)) == (changed, True)
    assert ("let the other tool lowercase texts: " in first.causes[0].fix) == says_more


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_a_known_family_tells_which_model_is_tried(name: str, tmp_path: Path) -> None:
    bad = tmp_path / "bad.gguf"
    fix(cached("gemma-4"), bad, set={"tokenizer.ggml.model": name, "tokenizer.ggml.pre": "gpt-2"})
    assert [cause.detail["model"] for _, cause in other_models(Tokenizer.from_gguf(bad))] == ["gemma4"]
