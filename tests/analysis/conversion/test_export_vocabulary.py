"""`export` and `import_vocabulary` give in Python what the commands write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import Run, run
from conftest import GPT2, UNIGRAM

import ggufbpe
from ggufbpe import Agreement, NotExpressibleError, NotImportableError, Tokenizer, export, import_vocabulary
from ggufbpe.analysis.conversion import export_vocabulary, parity
from ggufbpe.analysis.conversion import import_vocabulary as import_module

__all__ = ["run"]  # the fixture

NAMES = {
    "tokenizer.json": ["tokenizer.json", "tokenizer_config.json"],
    "tiktoken": ["gpt2.tiktoken", "gpt2.tiktoken.json"],
    "merges.txt": ["merges.txt", "vocab.json"],
    "vocab-gguf": ["gpt2-vocab.gguf"],
}


@pytest.mark.slow
@pytest.mark.parametrize("to", NAMES)
def test_the_command_writes_the_files_of_the_function(to: str, run: Run, tmp_path: Path) -> None:
    found = export(GPT2, to, check=False)
    assert run("export", GPT2, "--to", to, "--no-check", "-o", f"{tmp_path}/").code == 0
    assert [(tmp_path / name).read_bytes() for name in NAMES[to]] == list(found.files.values())
    assert (found.agreement, found.not_checked, found.is_explained) == (None, "", True)
    assert repr(found) == f"<Exported {', '.join(found.files)}: ids not compared>"


def test_files_are_saved_under_their_names(tmp_path: Path) -> None:
    found = export(GPT2, "merges.txt", check=False)
    paths = found.save(tmp_path / "new")
    assert paths == [str(tmp_path / "new" / name) for name in ("merges.txt", "vocab.json")]
    assert [Path(path).read_bytes() for path in paths] == list(found.files.values())


def test_overrides_are_those_of_from_gguf() -> None:
    found = export(GPT2, "tokenizer.json", check=False, overrides={"tokenizer.ggml.add_bos_token": True})
    config = json.loads(found.files["tokenizer_config.json"])
    assert (config["add_bos_token"], config["add_eos_token"]) == (True, False)


def test_chat_templates_with_names_come_back(tmp_path: Path) -> None:
    templates = {"tool_use": "{{ messages[0].content }}B", "": "{{ messages[0].content }}A"}
    ggufbpe.fix(GPT2, tmp_path / "two.gguf", chat_template=templates)
    export(tmp_path / "two.gguf", "tokenizer.json", check=False).save(tmp_path / "made")
    config = json.loads((tmp_path / "made" / "tokenizer_config.json").read_text())
    assert sorted(part["name"] for part in config["chat_template"]) == ["default", "tool_use"]
    import_vocabulary(tmp_path / "made", check=False).save(tmp_path / "back.gguf")
    assert Tokenizer.from_gguf(tmp_path / "back.gguf").chat_templates == templates


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare on few texts, for these tests are not of what is compared."""
    for module in (export_vocabulary, import_module):
        monkeypatch.setattr(
            module,
            "agreement",
            lambda *given: parity.agreement(*given, random_texts=5, characters=[65, 0xE9]),
        )


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_ids_are_compared_with_the_library(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    found = export(GPT2, "tokenizer.json", sample=["Hello world", "naïve"])
    assert found.agreement is not None
    assert (found.agreement.same, found.agreement.characters, found.is_explained) == (True, 2, True)
    assert repr(found).endswith(f": all ids the same in {found.agreement.texts} texts and 2 characters>")
    found.save(tmp_path)
    back = import_vocabulary(tmp_path, sample=["Hello world"])
    assert back.agreement is not None
    assert (back.agreement.same, back.pre, back.is_explained, back.not_checked) == (True, "gpt-2", True, "")
    assert repr(back).startswith("<ImportedVocabulary gpt2 gpt-2 of 50257 tokens: all ids the same in ")
    back.save(tmp_path / "vocab.gguf")
    assert Tokenizer.from_gguf(tmp_path / "vocab.gguf").encode("Hello world") == [15496, 995]


@pytest.mark.slow
def test_ids_of_a_file_that_says_too_little_are_not_compared(run: Run, tmp_path: Path) -> None:
    export(GPT2, "merges.txt", check=False).save(tmp_path)
    found = import_vocabulary(tmp_path, name="mine", architecture="gpt2")
    assert found.agreement is None
    assert found.not_checked.startswith("not checked: merges.txt does not say how text is split")
    assert (found.recognized, found.metadata["general.name"]) != ("as given", "")
    given = import_vocabulary(tmp_path / "merges.txt", pre="gpt-2", check=False)
    assert (given.pre, given.recognized, given.not_checked) == ("gpt-2", "as given", "")
    output = tmp_path / "written.gguf"
    line = ["--name", "mine", "--architecture", "gpt2", "--no-check"]
    assert run("import", tmp_path, "-o", output, *line).code == 0
    assert output.read_bytes() == found.gguf


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no such format": ({"to": "ggml"}, "there is no format 'ggml'"),
    "renumber": ({"to": "merges.txt", "renumber": True}, "renumber is for tiktoken"),
    "code points": ({"to": "tiktoken", "code_points": True}, "code_points is for tokenizer.json"),
    "overrides": (
        {"to": "vocab-gguf", "overrides": {"general.name": "x"}},
        "vocab-gguf keeps the file's keys",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_options_that_do_not_go_together(name: str) -> None:
    options, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        export(GPT2, **options)


def test_what_has_no_place() -> None:
    with pytest.raises(NotExpressibleError, match="tiktoken"):
        export(UNIGRAM, "tiktoken")
    with pytest.raises(NotImportableError, match="is a GGUF already"):
        import_vocabulary(GPT2)
    with pytest.raises(FileNotFoundError):
        import_vocabulary("nowhere.json")


def agreement(**numbers: Any) -> Agreement:
    none = dict.fromkeys(("differing", "tokens", "differing_tokens", "characters"), 0)
    return Agreement(
        **{"library": "x 1", "texts": 10, **none, "differing_characters": (), "examples": (), **numbers}
    )


def test_a_difference_is_explained_by_a_limit_that_concerns_it() -> None:
    example = parity.DifferingText("a\u017f", [1], [2])
    differing = agreement(differing=1, examples=(example,))
    assert differing.summary == "ids differ in 1 text and on 0 characters, of 10 texts and 0 characters"
    long_s = ggufbpe.Incompatibility("long_s", "the long s", 1)
    assert parity.unexplained(differing, [])
    assert not parity.unexplained(differing, [long_s])
    other = differing._replace(examples=(example._replace(text="a"),))
    assert parity.unexplained(other, [long_s])
    assert not parity.unexplained(agreement(), [])
    assert not parity.unexplained("not checked", [])


def test_one_file_may_have_a_path_of_its_own(tmp_path: Path) -> None:
    found = export(GPT2, "vocab-gguf", check=False)
    assert found.save(tmp_path / "mine.gguf") == [str(tmp_path / "mine.gguf")]
    assert (tmp_path / "mine.gguf").is_file()
    assert found.save(tmp_path / "folder") == [str(tmp_path / "folder" / "vocab.gguf")]
