"""Other programs' files open as the GGUF that `ggufbpe import` writes, in Python and on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Run, run
from conftest import GPT2

import ggufbpe
from ggufbpe import GGUFWarning, NotImportableError, Tokenizer
from ggufbpe.convert.in_memory import is_other_format

__all__ = ["run"]  # a fixture

TEXTS = ["Hello world", "naïve 者也 😀", "a<|endoftext|>b", "  two  spaces\n"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """GPT-2's tokenizer.json and tokenizer_config.json."""
    path = tmp_path_factory.mktemp("huggingface")
    ggufbpe.export(GPT2, to="tokenizer.json", check=False).save(path)
    return path


@pytest.mark.parametrize("name", ["", "tokenizer.json"])
@pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")
def test_ids_are_those_of_the_import(name: str, folder: Path, tmp_path: Path) -> None:
    opened = Tokenizer.from_huggingface(folder / name)
    ggufbpe.import_vocabulary(folder / name, check=False).save(tmp_path / "vocab.gguf")
    written = Tokenizer.from_gguf(tmp_path / "vocab.gguf")
    assert (opened, opened.name) == (written, str(folder / name))
    assert (
        opened.encode_batch(TEXTS)
        == written.encode_batch(TEXTS)
        == Tokenizer.from_gguf(GPT2).encode_batch(TEXTS)
    )
    assert opened.with_overrides({"tokenizer.ggml.add_bos_token": True}).encode("a") == [50256, 64]


def test_the_name_of_the_pre_tokenizer_can_be_given(folder: Path) -> None:
    with pytest.warns(GGUFWarning, match="which cuts tokens"):
        opened = Tokenizer.from_huggingface(folder, pre="llama-bpe")
    assert opened.pre == "llama-bpe"


@pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")  # of what the vocabulary itself says
def test_a_warning_of_what_does_not_carry_over(folder: Path, tmp_path: Path) -> None:
    document = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    document["model"]["dropout"] = 0.1
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    limits = ggufbpe.import_vocabulary(path, check=False).limits
    assert limits
    with pytest.warns(
        GGUFWarning, match=r"tokenizer\.json: not in the tokenizer that was made of it: "
    ) as told:
        Tokenizer.from_huggingface(path)
    assert [str(each.message).endswith(limit.what) for limit, each in zip(limits, told)] == [True] * len(
        limits
    )


@pytest.mark.parametrize(("content", "error"), [("{}", NotImportableError), (None, FileNotFoundError)])
def test_errors(content: str | None, error: type[Exception], tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(error):
        Tokenizer.from_huggingface(path)


def test_what_is_taken_for_another_format(folder: Path, tmp_path: Path) -> None:
    assert is_other_format(str(folder))
    assert is_other_format(str(folder / "tokenizer.json"))
    (tmp_path / "tokenizer.json").write_bytes(GPT2.read_bytes()[:100])
    (tmp_path / "model.gguf").touch()
    for path in (
        GPT2,
        tmp_path,
        tmp_path / "tokenizer.json",
        tmp_path / "vocab.txt",
        tmp_path.parent / "none",
    ):
        assert not is_other_format(str(path))


@pytest.mark.parametrize("name", ["", "tokenizer.json"])
def test_on_the_command_line(name: str, folder: Path, run: Run) -> None:
    found = run("tokenize", "-m", str(folder / name), "-p", "Hello world", "--ids")
    assert (found.code, json.loads(found.out)) == (0, [15496, 995])
