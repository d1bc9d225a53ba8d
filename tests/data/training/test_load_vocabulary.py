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
    rows = json.loads(run("tokenize", "-m", path, "-p", "low lower", "--json").out)
    assert [row["id"] for row in rows] == ids
    assert rows[-1]["end"] == 9
    changed = ("--override-kv", "tokenizer.ggml.pre=str:gpt-2")
    assert_error(run("tokenize", "-m", path, "-p", "low", *changed), "--override-kv needs a GGUF")
    assert_error(
        run("tokenize", "-m", path, "-p", "low", "--llama-cpp", "b11549"), "--llama-cpp needs a GGUF"
    )


def test_explain_shows_it_in_all_forms(run: Run, tmp_path: Path) -> None:
    path, page = tmp_path / "v.json", tmp_path / "x.html"
    made = trained(FORMS["end of word"])
    made.save(path)
    arguments = ("explain", "-m", path, "low lower")
    ids = made.encode("low lower")
    shown = run(*arguments).text
    assert shown.startswith(f"trained, pre-tokenizer words: 9 bytes, 2 words, {len(ids)} tokens\n")
    assert "\n  rank  l o w _\n" in shown
    found = json.loads(run(*arguments, "--json").out)
    assert (found["model"], found["ids"], found["pre"]) == (str(path), ids, "words")
    word = json.loads(run(*arguments, "--word", "1", "--json").out)
    assert word == {"schema": 1, "model": str(path), **found["words"][1]}
    token = json.loads(run(*arguments, "--token", "0", "--json").out)
    assert token["in_word"] == found["words"][0]
    assert run(*arguments, "--html", page).code == 0
    assert str(path) in page.read_text(encoding="utf-8")
    assert_error(run(*arguments, "--word", "2"), "there is no word 2")
    assert_error(run(*arguments, "--why-not", "lo"), "--why-not needs a GGUF")
    (tmp_path / "text").write_bytes(b"\xff")
    assert_error(run("explain", "-m", path, "-f", tmp_path / "text"), "byte 0 of the text is not UTF-8")


def test_compare_takes_it_beside_other_models(run: Run, tmp_path: Path) -> None:
    for name, form in (("one", "end of word"), ("two", "unknown")):
        trained(FORMS[form]).save(tmp_path / f"{name}.json")
    both = (tmp_path / "one.json", tmp_path / "two.json")
    assert run("compare", both[0], both[0], "-p", "low lower").code == 0
    found = json.loads(run("compare", both[1], GPT2, "-p", "low é", "--json").out)
    assert found["bytes"] == 6
    assert [model["name"] for model in found["models"]] == ["two.json", GPT2.stem]
    assert found["stretches"][-1]["tokens"][0][-1]["piece"] == "<unk>"
    (tmp_path / "text").write_bytes(b"\xff")
    assert_error(run("compare", *both, "-f", tmp_path / "text"), "byte 0 of the text is not UTF-8")
    changed = ("--override-kv", "tokenizer.ggml.pre=str:gpt-2")
    assert_error(run("compare", *both, "-p", "low", *changed), "--override-kv needs a GGUF")
