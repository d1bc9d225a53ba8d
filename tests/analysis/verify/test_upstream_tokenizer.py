"""An original of another model is told from one whose ids differ in what llama.cpp does not know."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_models import small_tokenizer

from ggufbpe import Tokenizer
from ggufbpe.analysis.verify.result import ComparedText, Difference, DifferenceExample
from ggufbpe.analysis.verify.upstream_tokenizer import known_limit, limit_findings, other_tokenizer
from ggufbpe.convert.export_formats import export_to
from ggufbpe.models.vocabulary import CONTROL, LSTRIP


def difference(text: str, places: int = 1) -> Difference:
    """A difference whose smallest text is `text`."""
    data = text.encode()
    found = Difference(
        "words", DifferenceExample(ComparedText("", 0, data), 0, len(data), 0, (), (), (0, 0)), 0
    )
    found.places, found.smallest = places, found.first
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(export_to("tokenizer.json", small_tokenizer().vocabulary, None).files["tokenizer.json"])
    return path


def test_the_same_tokenizer(folder: Path) -> None:
    assert other_tokenizer(small_tokenizer().vocabulary, str(folder), "x") is None
    assert other_tokenizer(small_tokenizer("<|new|>").vocabulary, str(folder), "x") is None  # longer


def test_another_tokenizer(folder: Path) -> None:
    tokens = small_tokenizer().vocabulary.tokens
    moved = small_tokenizer().vocabulary._replace(tokens=[*tokens[1:], tokens[0]])
    finding = other_tokenizer(moved, str(folder), "the folder")
    assert finding is not None
    assert (finding.id, finding.severity) == ("upstream_other_tokenizer", "warning")
    assert finding.what == "the folder has another tokenizer than the file."


def test_a_file_that_cannot_be_read_is_left_to_the_comparison(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": {"type": "?"}}))
    vocabulary = small_tokenizer().vocabulary
    for path in (tmp_path / "tokenizer.json", tmp_path / "none.json"):
        assert other_tokenizer(vocabulary, str(path), "x") is None


STRIPPING = small_tokenizer("<|tag|>", attributes={"<|tag|>": CONTROL | LSTRIP})


@pytest.mark.parametrize(
    ("text", "tokenizer", "expected"),
    [
        ("\U00010d6f'l", small_tokenizer(), "a character that came after Unicode 15.1"),
        ("'\u017f", small_tokenizer(), "ſ (U+017F)"),
        ("\u3000<|tag|>", STRIPPING, "white space beyond ASCII"),
        ("\u3000a", STRIPPING, ""),  # beside no token that strips it
        ("\u3000<|tag|>", small_tokenizer(), ""),
        ("I'll", small_tokenizer(), ""),
        ("é\x00", small_tokenizer(), ""),
    ],
)
def test_limits(text: str, tokenizer: Tokenizer, expected: str) -> None:
    found = known_limit(difference(text), tokenizer.vocabulary)
    assert found.startswith(expected)
    assert bool(found) is bool(expected)


def test_one_note_says_all_limits() -> None:
    assert list(limit_findings([], "x")) == []
    found = [("one", difference("a", 2)), ("other", difference("b"))]
    [finding] = limit_findings(found, "x")
    assert finding.severity == "note"
    assert finding.evidence == "3 places differ, by one; other: 'a', 'b'."
