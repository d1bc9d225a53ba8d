"""sentencepiece as an oracle: which file it is given, and what it is told to add. The package is made up."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_models import small_tokenizer

from ggufbpe import Tokenizer
from ggufbpe.analysis.oracles.library_oracle import sentencepiece_library
from ggufbpe.analysis.oracles.oracle import OracleError

PLAIN, WITH_BOS, WITH_EOS = small_tokenizer(), small_tokenizer(add_bos=True), small_tokenizer(add_eos=True)
PACKAGE = """
class SentencePieceProcessor:
    def __init__(self, model_proto):
        self.size = len(model_proto)

    def encode(self, text, add_bos, add_eos):
        return [self.size, len(text), int(add_bos), int(add_eos)]
"""


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sentencepiece")  # whose version is asked for
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "sentencepiece.py").write_text(PACKAGE)
    monkeypatch.setenv("PYTHONPATH", str(folder))


@pytest.mark.parametrize(
    ("tokenizer", "bos", "eos"),
    [(PLAIN, 0, 0), (WITH_BOS, 1, 0), (WITH_EOS, 0, 1)],
    ids=["none", "BOS", "EOS"],
)
def test_it_adds_what_the_model_does(tokenizer: Tokenizer, bos: int, eos: int, tmp_path: Path) -> None:
    path = tmp_path / "my.model"
    path.write_bytes(b"12345")
    with sentencepiece_library(str(path), "model.gguf", tokenizer, 60) as oracle:
        assert oracle.add_special(True)
        assert not oracle.parse_special(True)
        assert "as plain text" in oracle.note
        assert oracle.encode([b"abc"], True, False) == [[5, 3, bos, eos]]
        assert oracle.encode([b"abc"], False, False) == [[5, 3, 0, 0]]


@pytest.mark.parametrize(
    "names", [["tokenizer.model", "spiece.model"], ["spiece.model"], ["sentencepiece.bpe.model"]]
)
def test_the_file_in_a_folder(names: list[str], tmp_path: Path) -> None:
    for size, name in enumerate(names, 1):
        (tmp_path / name).write_bytes(b"x" * size)
    with sentencepiece_library(str(tmp_path), "model.gguf", PLAIN, 60) as oracle:
        assert oracle.encode([b""], True, False) == [[1, 0, 0, 0]]


def test_no_file(tmp_path: Path) -> None:
    for given, name in ((tmp_path, "tokenizer.model"), (tmp_path / "my.model", "my.model")):
        with pytest.raises(OracleError, match=f"{name}: No such file"):
            sentencepiece_library(str(given), "model.gguf", PLAIN, 60)
