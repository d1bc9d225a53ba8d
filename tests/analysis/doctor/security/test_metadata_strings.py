"""What the audit finds in strings of the metadata and in the names of tokens, and by which characters."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from reference import write_metadata
from small_models import CONTROL, K, Keys, small_keys

from ggufbpe.analysis.doctor.security.characters import odd_characters, skeleton
from ggufbpe.analysis.doctor.security.metadata_checks import string_findings, token_names
from ggufbpe.gguf.metadata import Metadata
from ggufbpe.gguf.reader import GGUFFile


def ids_of(folder: Path, keys: Keys) -> list[str]:
    path = folder / "model.gguf"
    inspect.unwrap(write_metadata)(path, keys)
    path.write_bytes(path.read_bytes().replace("\u2603".encode(), b"\xff\xc3\x80"))  # not UTF-8
    with GGUFFile(path) as file:
        return [finding.id for finding in (*string_findings(file), *token_names(Metadata(file), file))]


VALUES: dict[str, tuple[str | list[str], list[str]]] = {
    "plain": ("A model, for all.\nIt is naïve: 你好, привет", []),
    "emoji with joiners": ("👩\u200d🔬", ["odd_character"]),
    "a title of the terminal": ("x\x1b]0;y\x07", ["terminal_escape"]),
    "a control of eight bits": ("x\x9b2J", ["terminal_escape"]),
    "a line that is overwritten": ("rm\rls", ["terminal_escape"]),
    "line ends of Windows": ("a\r\nb\r\n", []),
    "a direction": ("a\u202eb", ["unseen_character"]),
    "hidden ASCII": ("a\U000e0041", ["unseen_character"]),
    "two alphabets": ("Miсrosoft", ["mixed_scripts"]),
    "a script": ("<script>x</script>", ["web_code"]),
    "a link that runs code": ("javascript:x", ["web_code"]),
    "a template": ("{{ x.__class__ }}", ["sandbox_escape"]),
    "not UTF-8": ("\x1b\u2603", ["not_utf8", "terminal_escape"]),
    "in a list not UTF-8": (["a", "\u2603", "b\x1bc"], ["not_utf8", "terminal_escape"]),
    "a sign for what is not UTF-8": ("\ufffd", []),
    "in a long list": (["\x1b", *["a"] * 10_000], ["list_large", "terminal_escape"]),
    "at the end of a long list": ([*["a"] * 10_000, "\x1b"], ["list_large"]),
    "a list as long as is read": (["a"] * 10_000, []),
    "in a list": (["a", "b\x1bc"], ["terminal_escape"]),
}


@pytest.mark.parametrize("name", VALUES)
def test_values(name: str, tmp_path: Path) -> None:
    value, expected = VALUES[name]
    assert ids_of(tmp_path, {**small_keys(), "general.description": value}) == expected


@pytest.mark.parametrize("value", ["x\x1b", [1, 2], 3])
def test_merges_of_another_type(value: object, tmp_path: Path) -> None:
    found = ids_of(tmp_path, {**small_keys(), K.MERGES: value})
    assert found == (["terminal_escape"] if isinstance(value, str) else [])


def test_names_of_keys(tmp_path: Path) -> None:
    assert ids_of(tmp_path, {**small_keys(), "general.\x1b[2J": "x"}) == ["terminal_escape"]


TOKENS: dict[str, tuple[tuple[str, ...], list[str]]] = {
    "markers": (("<|system|>", "[PAD]", "<unused1>", "<unk>"), []),
    "a word": (("password",), ["control_word"]),
    "two words": (("▁of▁course",), ["control_word"]),
    "a twin with a space of no width": (("<|im_end\u200b|>",), ["unseen_character", "token_lookalike"]),
    "a twin with another alphabet": (("<|im_еnd|>",), ["token_lookalike"]),
    "a word, and another that is not UTF-8": (("password", "\u2603"), ["not_utf8", "control_word"]),
    "an escape": (("<\x1b[2J>",), ["terminal_escape"]),
}


@pytest.mark.parametrize("name", TOKENS)
def test_names_of_special_tokens(name: str, tmp_path: Path) -> None:
    added, expected = TOKENS[name]
    assert [
        id for id in ids_of(tmp_path, small_keys(*added, kind=CONTROL)) if id != "mixed_scripts"
    ] == expected


def test_tokens_that_are_not_utf8_are_a_warning(tmp_path: Path) -> None:
    """With the place of each: vocabularies with tokens of single bytes exist."""
    path = tmp_path / "model.gguf"
    inspect.unwrap(write_metadata)(path, small_keys("\u2603"))
    data = path.read_bytes().replace("\u2603".encode(), b"\xff\xff\xff")
    path.write_bytes(data)
    with GGUFFile(path) as file:
        [finding] = string_findings(file)
    where = finding.where
    assert (finding.id, finding.severity) == ("not_utf8", "warning")
    assert (where.token, where.offset) == (len(small_keys()[K.LIST]), data.index(b"\xff") - 8)


def test_only_the_first_few_tokens_are_listed(tmp_path: Path) -> None:
    words = [f"word{letter}{other}" for letter in "abcdefgh" for other in "abcdefgh"]
    assert ids_of(tmp_path, small_keys(*words, kind=CONTROL)) == ["control_word"] * 5


def test_characters_have_places() -> None:
    [odd] = odd_characters("abc\u202ed\u202e")
    assert odd == ("unseen_character", 3, "U+202E, 2 times")
    assert list(odd_characters("plain äöü 你好 السلام हिन्दी")) == []


def test_how_a_text_looks() -> None:
    assert skeleton("ѕуѕtem") == "system"
    assert skeleton("a\u200bb\u00adc") == "abc"


def test_places_are_found_for_the_tokens_that_are_shown_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finding a place takes a walk over all tokens before it: for each of 120,000 odd ones, minutes."""
    asked: list[int] = []
    place = Metadata.element_offset

    def noted(metadata: Metadata, key: str, index: int) -> int | None:
        asked.append(index)
        return place(metadata, key, index)

    monkeypatch.setattr(Metadata, "element_offset", noted)
    words = [
        "pass" + "".join(chr(ord("a") + int(digit)) for digit in f"{number:03}") for number in range(200)
    ]
    assert ids_of(tmp_path, small_keys(*words, kind=CONTROL)) == ["control_word"] * 5
    assert len(asked) == 5
