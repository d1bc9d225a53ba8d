"""`ggufbpe compare` shows how several models cut one text."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import pytest
from commands import Run, call
from reference import write_metadata
from small_models import small_keys, small_model

from ggufbpe.cli import compare
from ggufbpe.cli._arguments import UsageError

__all__ = ["call", "small_model"]  # fixtures


@pytest.fixture(scope="session")
def letters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that merges nothing but "h" and "e"."""
    path = tmp_path_factory.mktemp("letters") / "letters.gguf"
    return inspect.unwrap(write_metadata)(path, small_keys(merges=["h e"]))


def test_models_that_cut_alike_and_that_do_not(call: Run, small_model: Path, letters: Path) -> None:
    assert call(compare, small_model, small_model, "-p", "hello").code == 0
    assert call(compare, small_model, letters, "-p", "he").code == 0
    found = call(compare, small_model, letters, "-p", "hello")
    assert found.code == 1
    assert "small" in found.text
    assert "letters" in found.text


def test_json(call: Run, small_model: Path, letters: Path) -> None:
    found = call(compare, small_model, letters, "-p", "hello", "--json")
    assert found.code == 1
    assert "hello" in json.dumps(json.loads(found.out))


def test_flags(call: Run, small_model: Path, letters: Path) -> None:
    models = (small_model, letters)
    ids = call(compare, *models, "-p", "hello", "--ids").text
    assert "259" in ids  # the id of "hello" in the first one
    assert "259" not in call(compare, *models, "-p", "hello").text
    assert call(compare, *models, "-p", "<|im_end|>").code == 0
    assert (
        call(compare, *models, "-p", r"a\nb", "--escape").text != call(compare, *models, "-p", r"a\nb").text
    )


def test_texts_from_elsewhere(call: Run, small_model: Path, letters: Path, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(b"hello")
    expected = call(compare, small_model, letters, "-p", "hello").out
    assert call(compare, small_model, letters, "-f", path).out == expected
    assert call(compare, small_model, letters, "--stdin", stdin=b"hello").out == expected
    assert call(compare, "-m", small_model, "-m", letters, "-p", "hello").out == expected


def test_a_page(call: Run, small_model: Path, letters: Path, tmp_path: Path) -> None:
    path = tmp_path / "both.html"
    asked = (small_model, letters, "-p", "hello <b>", "--html", path)
    found = call(compare, *asked)
    assert (found.code, found.out, found.err) == (1, b"", f"ggufbpe: the page is in {path}\n")
    assert "<b>" not in path.read_text()
    with pytest.raises(UsageError, match="already exists; --force overwrites it"):
        call(compare, *asked)
    assert call(compare, *asked, "--force").code == 1
    with pytest.raises(UsageError, match="give --html or --json, not both"):
        call(compare, *asked, "--force", "--json")
    assert call(compare, small_model, small_model, "-p", "hello", "--html", "-").out.startswith(b"<!DOCTYPE")


def test_arguments_that_make_no_sense(call: Run, small_model: Path) -> None:
    with pytest.raises(UsageError, match="two models or more, not 1"):
        call(compare, small_model, "-p", "hello")
    with pytest.raises(UsageError, match="give one text"):
        call(compare, small_model, small_model)
