"""Values by type, as llama.cpp reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from reference import write_metadata

from ggufbpe._util.errors import MissingKeyError, WrongTypeError
from ggufbpe.gguf import typed
from ggufbpe.gguf.metadata import Metadata
from ggufbpe.gguf.reader import GGUFFile

T = "tokenizer.ggml."
KEYS: dict[str, Any] = {
    "general.type": "mmproj",
    "general.name": "a\0b",
    T + "model": "gpt2",
    T + "tokens": ["a", "b\0c"],
    T + "merges": ["a b"],
    T + "add_bos_token": False,
    T + "bos_token_id": 7,
    T + "eos_token_id": "seven",
}


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Metadata]:
    """A file with these keys."""
    with GGUFFile(write_metadata(tmp_path / "m.gguf", KEYS)) as opened:
        yield Metadata(opened)


READ: list[tuple[Callable[..., Any], tuple[Any, ...], Any]] = [
    (typed.has, (T + "model",), True),
    (typed.has, (T + "pre",), False),
    (typed.string, ("general.name",), "a"),  # a C string ends at NUL
    (typed.string, (T + "pre", "default"), "default"),
    (typed.strings, (T + "tokens",), ["a", "b"]),
    (typed.flag, (T + "add_bos_token", True), False),
    (typed.flag, (T + "add_eos_token", True), True),
    (typed.flag_if_there, (T + "add_eos_token",), None),
    (typed.flag_if_there, (T + "add_bos_token",), False),
    (typed.unsigned, (T + "bos_token_id",), 7),
    (typed.unsigned, (T + "unknown_token_id",), None),
    (typed.compiled_strings, (T + "tokens",), None),  # with a NUL, they are read by Python
]


@pytest.mark.parametrize(("read", "arguments", "value"), READ)
def test_values(file: Metadata, read: Callable[..., Any], arguments: tuple[Any, ...], value: Any) -> None:
    assert read(file, *arguments) == value


def test_compiled_strings(file: Metadata) -> None:
    strings = typed.compiled_strings(file, T + "merges")
    assert strings is None or list(strings) == ["a b"]


def test_another_type_is_refused(file: Metadata) -> None:
    for read in (typed.has, typed.unsigned):
        with pytest.raises(WrongTypeError) as refusal:
            read(file, T + "eos_token_id")
        assert refusal.value.key == T + "eos_token_id"


def test_a_missing_key_says_what_the_file_is(file: Metadata) -> None:
    with pytest.raises(MissingKeyError, match=r"this is a multimodal projector \(mmproj\)"):
        typed.require(file, T + "pre")
    usual = Metadata(file, {"general.type": None})
    with pytest.raises(MissingKeyError, match=r"scores': the key is missing; convert the model again$"):
        typed.strings(usual, T + "scores")
    bare = Metadata(file, {"general.type": None, T + "model": None, T + "tokens": None})
    with pytest.raises(
        MissingKeyError, match=r"the file has no tokenizer; give a language model that has one$"
    ):
        typed.string(bare, T + "model")
