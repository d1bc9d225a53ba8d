"""`info` describes a file, whether its tokenizer is read, unknown, broken or absent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import GPT2, UNIGRAM

from ggufbpe import GGUFError, Tokenizer
from ggufbpe.analysis.doctor.model_info import ModelInfo, info
from ggufbpe.gguf.value_types import Field, GGUFValueType
from ggufbpe.gguf.writer import packed_file

pytestmark = pytest.mark.tries_fixes

PRE, MODEL = "tokenizer.ggml.pre", "tokenizer.ggml.model"
STRING = GGUFValueType.STRING


def test_a_tokenizer_that_is_read() -> None:
    tok, found = Tokenizer.from_gguf(GPT2), info(GPT2)
    assert (found.file["path"], found.file["size"]) == (str(GPT2), GPT2.stat().st_size)
    assert (found.tokenizer["model"], found.tokenizer["pre"], found.engine) == (
        tok.model,
        tok.pre,
        tok.engine,
    )
    assert found.tokenizer["patterns"] == list(tok.vocabulary.pre_tokenizer.patterns)
    assert found.sizes is not None
    assert (found.sizes["tokens"], found.sizes["merges"]) == (tok.vocab_size, len(tok.vocabulary.merges))
    assert sum(found.sizes["types"].values()) == tok.vocab_size
    assert found.flags is not None
    assert (found.flags["add_bos"], found.flags["clean_spaces"]) == (tok.add_bos, True)
    assert found.special_tokens is not None
    assert {each["name"]: each["id"] for each in found.special_tokens}["eos"] == tok.eos_id
    assert (found.error, found.metadata, found.chat_templates) == (None, None, {})
    assert repr(found) == f"<ModelInfo {str(GPT2)!r}: gpt2 gpt-2 50257 tokens>"
    assert "error" not in found.to_dict()


@pytest.mark.parametrize(
    ("field", "length"),
    [
        (Field(GGUFValueType.UINT32, 131072), 131072),
        (Field(STRING, "long"), None),
        (Field(GGUFValueType.BOOL, True), None),
        (None, None),
    ],
)
def test_the_context_length_is_that_of_the_architecture(
    field: Field | None, length: int | None, tmp_path: Path
) -> None:
    path = tmp_path / "model.gguf"
    keys = {
        "general.architecture": Field(STRING, "qwen2"),
        "llama.context_length": Field(GGUFValueType.UINT32, 1),
    }
    path.write_bytes(packed_file(keys if field is None else {**keys, "qwen2.context_length": field}))
    assert info(path).general["context_length"] == length


@pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")
def test_overrides_are_those_of_from_gguf() -> None:
    found = info(GPT2, overrides={PRE: "qwen2", "tokenizer.ggml.add_bos_token": True})
    assert found.tokenizer["pre"] == "qwen2"
    assert found.flags is not None
    assert found.flags["add_bos"]
    assert info(UNIGRAM).tokenizer["model"] == "t5"


def unsupported(found: ModelInfo) -> None:
    assert (found.tokenizer["supported"], found.error, found.sizes) == (False, None, {"tokens": 0})
    assert found.metadata == {MODEL: "telepathy"}


def broken(found: ModelInfo) -> None:
    assert isinstance(found.error, GGUFError)
    assert found.tokenizer["problem"] == str(found.error)
    assert (found.general["name"], found.sizes) == ("mine", None)
    assert repr(found).endswith(": gpt2, broken>")


def absent(found: ModelInfo) -> None:
    assert (found.tokenizer["description"], found.metadata) == ("no tokenizer in this file", {})
    assert repr(found).endswith(": no tokenizer>")


FILES: dict[str, tuple[dict[str, str], Callable[[ModelInfo], None]]] = {
    "unsupported": ({MODEL: "telepathy"}, unsupported),
    "broken": ({"general.name": "mine", MODEL: "gpt2"}, broken),
    "absent": ({"general.name": "mine"}, absent),
}


@pytest.mark.parametrize("name", FILES)
def test_other_files(name: str, tmp_path: Path) -> None:
    keys, check = FILES[name]
    path = tmp_path / "model.gguf"
    path.write_bytes(packed_file({key: Field(STRING, value) for key, value in keys.items()}))
    check(info(path))


def test_what_is_no_model() -> None:
    with pytest.raises(GGUFError):
        info(__file__)
    with pytest.raises(OSError, match="nowhere"):
        info("nowhere.gguf")
