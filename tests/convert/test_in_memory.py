"""Other programs' files open as the GGUF that `ggufbpe import` writes, in Python and on the command line."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from commands import Run, run
from conftest import GPT2

import ggufbpe
from ggufbpe import GGUFWarning, NotImportableError, Tokenizer
from ggufbpe.convert.importers.import_files import NAMES
from ggufbpe.convert.importers.import_merges import VOCAB_NAMES
from ggufbpe.convert.in_memory import imported_model
from ggufbpe.gguf.source import TOKENIZER_FILES, Source, is_tokenizer_of_others

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


@pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")
def test_a_path_may_be_bytes_as_for_a_gguf(folder: Path) -> None:
    path = folder / "tokenizer.json"
    assert Tokenizer.from_huggingface(os.fsencode(path)) == Tokenizer.from_huggingface(path)  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError, match="no such file or folder"):
        Tokenizer.from_huggingface(b"absent")  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")
def test_the_file_in_memory_is_the_one_of_the_import(folder: Path, tmp_path: Path) -> None:
    model = imported_model(str(folder))
    ggufbpe.import_vocabulary(folder, check=False).save(tmp_path / "vocab.gguf")
    source = model.opened()
    assert isinstance(source, Source)
    assert source.size == (tmp_path / "vocab.gguf").stat().st_size
    assert model.is_imported
    assert "imported in memory" in model.note


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
        GGUFWarning, match=r"tokenizer\.json: as a GGUF, it would give other ids for a few texts: "
    ) as told:
        Tokenizer.from_huggingface(path)
    assert [str(each.message).endswith(limit.what) for limit, each in zip(limits, told)] == [True] * len(
        limits
    )


@pytest.mark.parametrize(
    ("content", "error", "said"),
    [
        ("{}", NotImportableError, r"tokenizer\.json: the file has no model"),
        (None, FileNotFoundError, "no such file or folder, and names of repositories are not taken"),
    ],
)
def test_errors(content: str | None, error: type[Exception], said: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(error, match=said):
        Tokenizer.from_huggingface(path)


def test_the_names_are_those_that_import_reads() -> None:
    assert set(TOKENIZER_FILES) == {*NAMES, *VOCAB_NAMES}


def test_what_is_taken_for_another_format(folder: Path, tmp_path: Path) -> None:
    assert is_tokenizer_of_others(str(folder))
    assert is_tokenizer_of_others(str(folder / "tokenizer.json"))
    (tmp_path / "tokenizer.json").write_bytes(GPT2.read_bytes()[:100])
    (tmp_path / "model.gguf").touch()
    for path in (
        GPT2,
        tmp_path,
        tmp_path / "tokenizer.json",
        tmp_path / "vocab.txt",
        tmp_path.parent / "none",
    ):
        assert not is_tokenizer_of_others(str(path))


@pytest.mark.parametrize("name", ["", "tokenizer.json"])
def test_on_the_command_line(name: str, folder: Path, run: Run) -> None:
    found = run("tokenize", "-m", str(folder / name), "-p", "Hello world", "--ids")
    assert (found.code, json.loads(found.out)) == (0, [15496, 995])


COMMANDS = {
    "info": ["info", "-m", "MODEL"],
    "doctor": ["doctor", "MODEL"],
    "diagnose": ["diagnose", "-m", "MODEL", "-p", "Hello world", "--ids", "[15496, 995]"],
    "chat": ["chat", "-m", "MODEL", "-p", "Hello", "--chat-template", "known:chatml", "--json"],
    "export": ["export", "-m", "MODEL", "--to", "merges.txt", "-o", "OUT"],
    "count": ["count", "-m", "MODEL", "-p", "Hello world"],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["", "tokenizer.json"])
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_commands_open_it(command: list[str], name: str, folder: Path, tmp_path: Path, run: Run) -> None:
    """With the exit code and the answer that the written GGUF gives, but for names and sizes."""
    ggufbpe.import_vocabulary(folder / name, check=False).save(tmp_path / "vocab.gguf")
    found = [
        run(*(str({"MODEL": model, "OUT": tmp_path / out}.get(each, each)) for each in command))
        for model, out in ((folder / name, "a/"), (tmp_path / "vocab.gguf", "b/"))
    ]
    assert found[0].code == found[1].code == 0
    if command[0] == "export":
        written = [(tmp_path / out / "merges.txt").read_bytes() for out in "ab"]
        assert written[0] == written[1]
    elif command[0] == "chat":
        assert json.loads(found[0].out)["ids"] == json.loads(found[1].out)["ids"]
    elif command[0] == "diagnose":
        assert found[0].out == found[1].out


def test_info_says_that_it_is_imported(folder: Path, run: Run) -> None:
    facts = json.loads(run("info", "-m", str(folder), "--json").out)
    assert facts["file"]["path"] == str(folder)
    assert facts["file"]["note"].startswith("imported in memory")
    assert facts["sizes"]["tokens"] == 50257


@pytest.mark.slow
def test_a_proposed_command_begins_with_the_import(folder: Path, run: Run) -> None:
    found = run("doctor", str(folder), "--override-kv", "tokenizer.ggml.pre=str:llama-bpe")
    command = f"  ggufbpe import {folder} -o vocab.gguf && ggufbpe fix vocab.gguf --set "
    assert command in found.out.decode()
    assert "fix: --set tokenizer.ggml.pre=gpt-2\n" in found.out.decode()


def test_fix_wants_a_gguf(folder: Path, run: Run) -> None:
    found = run("fix", str(folder), "--set", "tokenizer.ggml.pre=gpt-2", "-o", "fixed.gguf")
    assert found.code == 2
    assert f"only a GGUF can be changed; `ggufbpe import {folder}` writes vocab.gguf" in found.err
