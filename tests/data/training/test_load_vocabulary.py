"""A vocabulary of a classic form that was saved as JSON opens as it was, in the library and in commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Run, assert_error, run
from conftest import GPT2

from ggufbpe import TrainedVocabulary, train
from ggufbpe.data.training.load_vocabulary import is_trained_vocabulary, load_trained_vocabulary

__all__ = ["run"]  # the fixture

FORMS: dict[str, dict[str, object]] = {
    "end of word": {"pre": "words", "units": "chars", "end_of_word": "_"},
    "unknown": {"pre": "words", "units": "chars", "unk": "<unk>"},
    "lines": {"pre": "none"},
    "as llama.cpp": {"pre": "gpt-2", "special": ["<|endoftext|>"]},
}


def trained(form: dict[str, object]) -> TrainedVocabulary:
    options = {"vocab_size": 265 if form["pre"] in ("none", "gpt-2") else 18, **form}
    return train(["low lower lowest newer newest"] * 3, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("form", FORMS)
def test_what_is_saved_opens_as_it_was(form: str, tmp_path: Path) -> None:
    made = trained(FORMS[form])
    made.save(tmp_path / "v.json")
    assert is_trained_vocabulary(tmp_path / "v.json")
    found = load_trained_vocabulary(tmp_path / "v.json")
    assert (found.tokens, found.attributes, found.merges, found.trace) == (
        made.tokens,
        made.attributes,
        made.merges,
        made.trace,
    )
    for text in ("low lowest", "newer", ""):
        assert found.encode(text) == made.encode(text)


@pytest.mark.parametrize("content", ["{}", "[]", '{"pre": 1, "units": 2, "end_of_word": 3}', "x"])
def test_other_files_are_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "v.json").write_text(content)
    with pytest.raises(ValueError, match="not a vocabulary that `ggufbpe train` wrote as JSON"):
        load_trained_vocabulary(tmp_path / "v.json")


def test_only_json_files_of_that_form_are_recognized(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps({"version": "1.0", "pre_tokenizer": None}))
    assert not is_trained_vocabulary(tmp_path / "tokenizer.json")
    assert not is_trained_vocabulary(GPT2)
    assert not is_trained_vocabulary(tmp_path / "none.json")


def test_commands_open_it(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "v.json"
    made = trained(FORMS["end of word"])
    made.save(path)
    ids = made.encode("low lower")
    assert run("tokenize", "-m", path, "-p", "low lower", "--ids").text == f"{ids}\n"
    lines = run("tokenize", "-m", path, "-p", "low lower", "--show-count").text.splitlines()
    assert lines[-1] == f"Total number of tokens: {len(ids)}"
    assert lines[0] == f"{ids[0]:6} -> '{made.tokens[ids[0]]}'"
    shown = run("explain", "-m", path, "low lower").text.splitlines()
    assert shown[:4] == [
        f"words, chars: 9 characters, {len(ids)} tokens",
        "",
        "word 0  'low'",
        "  rank  l o w _",
    ]
    [first] = [rank for rank, pair in enumerate(made.merges) if pair == ("l", "o")]
    assert f"{first:6}  lo w _" in shown
    assert_error(run("explain", "-m", path, "low", "--html", tmp_path / "x.html"), "--html needs a GGUF")
    assert_error(run("tokenize", "-m", path, "-p", "low", "--json"), "--json needs a GGUF")
    assert_error(run("explain", "-m", path, "low", "--word", "0"), "--word needs a GGUF")
    changed = ("--override-kv", "tokenizer.ggml.pre=str:gpt-2")
    assert_error(run("tokenize", "-m", path, "-p", "low", *changed), "--override-kv needs a GGUF")
    assert_error(
        run("tokenize", "-m", path, "-p", "low", "--llama-cpp", "b11549"), "--llama-cpp needs a GGUF"
    )
