"""A trained vocabulary as GGUF, JSON and merges.txt."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from synthetic import byte_tokens

from ggufbpe import GGUFWarning, Tokenizer
from ggufbpe.data.training.save_vocabulary import save
from ggufbpe.data.training.trained_vocabulary import Form, LearnedStep, Seed, TrainedVocabulary
from ggufbpe.data.training.word_counts import Splitting
from ggufbpe.hub.model_location import locate
from ggufbpe.models.vocabulary import CONTROL, NORMAL

FORM = Form(Splitting("gpt-2", "bytes"), bos="<s>", eos="<s>", adds_bos=True)
STEPS = [LearnedStep("a", "b", 5, "ab")]


def trained(
    form: Form = FORM, merges: list[tuple[str, str]] | None = None, **options: Seed
) -> TrainedVocabulary:
    """Bytes, a special token and a merge."""
    pairs = [("a", "b")] if merges is None else merges
    tokens, attributes = [*byte_tokens(), "<s>", "ab"], [NORMAL] * 256 + [CONTROL, NORMAL]
    return TrainedVocabulary(tokens, attributes, pairs, STEPS, form, **options)


def test_gguf(tmp_path: Path) -> None:
    save(trained(), tmp_path / "m.gguf")
    tokenizer = Tokenizer.from_gguf(tmp_path / "m.gguf")
    assert tokenizer.encode("ab a") == [256, 257, *tokenizer.encode_ordinary(" a")]
    assert (tokenizer.bos_id, tokenizer.eos_id, tokenizer.vocabulary.pre) == (256, 256, "gpt-2")
    assert tokenizer.vocabulary.add_bos


def test_without_a_special_token_byte_0_ends_texts(tmp_path: Path) -> None:
    with pytest.warns(GGUFWarning, match="both are the token of byte 0"):
        save(trained(FORM._replace(bos=None, eos=None)), tmp_path / "m.gguf")
    assert Tokenizer.from_gguf(tmp_path / "m.gguf").eos_id == 0


def test_the_keys_of_a_seed_stay(tmp_path: Path) -> None:
    save(trained(FORM._replace(adds_bos=False)), tmp_path / "seed.gguf")
    overrides = {
        "tokenizer.ggml.add_bos_token": True,
        "tokenizer.ggml.pre": "falcon",
        "general.name": None,
    }
    save(trained(seed=Seed(locate(str(tmp_path / "seed.gguf")), overrides)), tmp_path / "m.gguf")
    vocabulary = Tokenizer.from_gguf(tmp_path / "m.gguf").vocabulary
    assert (vocabulary.pre, vocabulary.add_bos, vocabulary.name) == ("falcon", True, "")
    assert Tokenizer.from_gguf(tmp_path / "seed.gguf").vocabulary.name != ""


def test_json(tmp_path: Path) -> None:
    save(trained(), tmp_path / "m.json")
    content = json.loads((tmp_path / "m.json").read_text(encoding="utf-8"))
    assert (content["pre"], content["units"], content["bos"], content["unk"]) == (
        "gpt-2",
        "bytes",
        "<s>",
        None,
    )
    assert (content["tokens"][-1], content["merges"], content["frequencies"]) == ("ab", [["a", "b"]], [5])
    assert content["types"][-2:] == ["control", "normal"]


def test_merges(tmp_path: Path) -> None:
    save(trained(), tmp_path / "merges.txt")
    assert (tmp_path / "merges.txt").read_bytes() == b"#version: 0.2\na b\n"


REFUSED = {
    "m.gguf": (trained(merges=[]), "llama.cpp refuses a vocabulary without merges"),
    "w.gguf": (trained(Form(Splitting("words", "chars"))), r"or save it as .json"),
    "m.bin": (trained(), "a vocabulary is saved as .gguf, .json, .txt"),
    "merges.txt": (trained(merges=[(" ", "a")]), "merges.txt cannot hold tokens with spaces"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(tmp_path: Path, name: str) -> None:
    vocabulary, message = REFUSED[name]
    with pytest.raises(ValueError, match=re.escape(message)):
        save(vocabulary, tmp_path / name)
    assert list(tmp_path.iterdir()) == []
