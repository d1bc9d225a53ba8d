"""`ggufbpe explain` shows the steps from a text to its ids."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Run, call, run
from conftest import GPT2
from small_models import small_model

from ggufbpe import Tokenizer
from ggufbpe.cli import explain
from ggufbpe.cli._arguments import UsageError

__all__ = ["call", "run", "small_model"]  # fixtures


def test_a_text_from_everywhere(call: Run, small_model: Path, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(b"hello world")
    found = call(explain, "-m", small_model, "hello world")
    assert found.code == 0
    assert "hello" in found.text
    for given, stdin in ((["-p", "hello world"], None), (["-f", path], None), (["--stdin"], b"hello world")):
        assert call(explain, "-m", small_model, *given, stdin=stdin).out == found.out


def test_parts(call: Run, small_model: Path) -> None:
    model = ("-m", small_model, "hello world")
    word = call(explain, *model, "--word", "1").text
    assert "world" in word
    assert "hello" not in word
    assert "hello" in call(explain, *model, "--token", "0").text
    why = call(explain, *model, "--why-not", "hell").text
    assert "hell" in why
    assert "rank" in why


def test_json_is_the_trace(call: Run, small_model: Path) -> None:
    tokenizer = Tokenizer.from_gguf(small_model)
    for flags, options in (
        ([], {}),
        (["--no-parse-special"], {"parse_special": False}),
    ):
        found = json.loads(call(explain, "-m", small_model, "a<|im_end|>", "--json", *flags).out)
        assert [token["id"] for token in found["tokens"]] == tokenizer.encode("a<|im_end|>", **options)
    escaped = json.loads(call(explain, "-m", small_model, r"a\nb", "--json", "--escape").out)
    assert [token["id"] for token in escaped["tokens"]] == tokenizer.encode("a\nb")
    answer = json.loads(call(explain, "-m", small_model, "hello", "--why-not", "hell", "--json").out)
    assert answer["reason"] == "longer"


def test_a_page(call: Run, small_model: Path, tmp_path: Path) -> None:
    path = tmp_path / "way.html"
    found = call(explain, "-m", small_model, "hello", "--html", path)
    assert (found.out, found.err) == (b"", f"ggufbpe: the page is in {path}\n")
    assert path.read_text().startswith("<!DOCTYPE html>")
    with pytest.raises(UsageError, match="already exists; --force overwrites it"):
        call(explain, "-m", small_model, "hello", "--html", path)
    assert call(explain, "-m", small_model, "hello", "--html", path, "--force").code == 0


def test_a_chat(call: Run, small_model: Path, tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    path.write_text('[{"role": "user", "content": "hello"}]')
    found = json.loads(call(explain, "-m", small_model, "--chat", path, "--json").out)
    prompt = Tokenizer.from_gguf(small_model).chats.prompt({"messages": json.loads(path.read_text())})
    assert [token["id"] for token in found["tokens"]] == Tokenizer.from_gguf(small_model).encode(prompt)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give one text: TEXT, -p TEXT, -f PATH or --stdin"),
        (["a", "-p", "b"], "give one text"),
        (["a", "--word", "1"], "there is no word 1: there are words 0 to 0"),
        (["", "--token", "0"], "there is no token 0: the text has no tokens"),
        (["a", "--word", "-1"], "there is no word -1"),
        (["a", "--word", "7", "--json"], "there is no word 7"),
        (["a", "--html", "x.html", "--json"], "give --html or --json, not both"),
        (["a", "--html", "x.html", "--word", "0"], "--html shows all words"),
        (["a", "--html", "nowhere/x.html"], "is not a directory"),
        (["a", "--chat", "x"], "give a text or --chat, not both"),
        (["--chat", "x", "--escape"], "special tokens are always added"),
        (["a", "--tools", "x"], "--chat"),
    ],
)
def test_arguments_that_make_no_sense(arguments: list[str], words: str, call: Run, small_model: Path) -> None:
    with pytest.raises(UsageError, match=words):
        call(explain, "-m", small_model, *arguments)


def test_how_a_word_that_is_taken_whole_would_have_been_merged(run: Run, tmp_path: Path) -> None:
    """Under ignore_merges, as in Llama 3, most words show no merges; the flag shows those of the vocabulary."""
    model = tmp_path / "m.gguf"
    run("fix", GPT2, "--set", "tokenizer.ggml.pre=llama-bpe", "-o", model)
    command = ["explain", "-q", "-m", model, "Hello", "--word", "0"]
    assert "rank" not in run(*command).text
    shown = run(*command, "--merges").text
    assert "taken whole without merging (ignore_merges)\n  by its merges, it would be:\n" in shown
    assert "they end in the same token: Hello\n" in shown
    found = json.loads(run(*command, "--merges", "--json").out)
    plain = json.loads(run("explain", "-m", GPT2, "Hello", "--word", "0", "--json").out)
    assert (found["merges"], found["alone"]) == ([], {"merges": plain["merges"], "symbols": ["Hello"]})
    assert "alone" not in json.loads(run(*command, "--json").out)


@pytest.mark.parametrize("is_asked", [False, True])
def test_a_page_has_the_merges_of_a_word_that_is_taken_whole(
    is_asked: bool, run: Run, tmp_path: Path
) -> None:
    model, page = tmp_path / "m.gguf", tmp_path / "page.html"
    run("fix", GPT2, "--set", "tokenizer.ggml.pre=llama-bpe", "-o", model)
    run("explain", "-m", model, "Hello", *["--merges"] * is_asked, "--html", page)
    shown = page.read_text()
    assert "taken whole (ignore_merges)" in shown
    for part in ("By its merges, it would be:", '<td class="number">10853', "They end in the same token:"):
        assert (part in shown) == is_asked
