"""Changed tokenizers: other values for the keys of a file. What is overridden is as if it stood in the file."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import GPT2, RAW_UTF8, ROOT
from synthetic import gpt2_vocabulary

from ggufbpe import (
    GGUFError,
    GGUFWarning,
    MissingKeyError,
    Tokenizer,
    UnknownPreTokenizerError,
    WrongTypeError,
)
from ggufbpe.fix import Edit, write_fixed
from ggufbpe.gguf.constants import GGUFValueType, TokenizerKey

K, T = TokenizerKey, GGUFValueType
TINY = ROOT / "fixtures" / "variants" / "vocabulary-version-3-little.gguf"

WAYS: dict[str, Callable[[Path], Callable[[Any], Tokenizer]]] = {
    "from_gguf": lambda path: lambda overrides: Tokenizer.from_gguf(path, overrides=overrides),
    "with_overrides": lambda path: Tokenizer.from_gguf(path).with_overrides,
    "of a pickle": lambda path: pickle.loads(pickle.dumps(Tokenizer.from_gguf(path))).with_overrides,
}


def told(open_it: Callable[[], Tokenizer]) -> tuple[object, ...]:
    """The vocabulary but for its file, and the warnings; or the kind of error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = open_it().vocabulary
        except GGUFError as error:
            return type(error), error.key
    bare = found._replace(
        path="", architecture="", name="", tokens=list(found.tokens), merges=list(found.merges)
    )
    return bare, [str(warning.message).split(".gguf: ")[-1] for warning in caught]


# Overrides, and how the same would be written to a file.
CASES: list[dict[str, Edit]] = [
    {K.PRE: Edit(K.PRE, T.STRING, "llama-bpe")},
    {K.PRE: Edit(K.PRE)},
    {K.PRE: Edit(K.PRE, T.STRING, "no-such-name")},
    {K.PRE: Edit(K.PRE, T.INT32, -5)},
    {K.ADD_BOS: Edit(K.ADD_BOS, T.BOOL, True), K.BOS_ID: Edit(K.BOS_ID, T.UINT32, 3)},
    {K.ADD_BOS: Edit(K.ADD_BOS, T.UINT32, 1)},
    {K.EOS_ID: Edit(K.EOS_ID, T.UINT32, 2**32 - 1)},
    {K.EOS_ID: Edit(K.EOS_ID, T.UINT64, 2**32)},
    {K.EOS_ID: Edit(K.EOS_ID, T.INT32, -1)},
    {K.EOS_ID: Edit(K.EOS_ID, T.FLOAT32, 1.5)},
    {K.MODEL: Edit(K.MODEL)},
    {K.MODEL: Edit(K.MODEL, T.STRING, "bert")},
    {K.MERGES: Edit(K.MERGES)},
    {K.MERGES: Edit(K.MERGES, T.ARRAY, ["a b"], T.STRING)},
    {K.TOKEN_TYPE: Edit(K.TOKEN_TYPE, T.ARRAY, [1, 2, 3], T.INT32)},
    {K.TOKEN_TYPE: Edit(K.TOKEN_TYPE)},
    {K.TOKEN_TYPE: Edit(K.TOKEN_TYPE, T.STRING, "normal")},
    {"general.name": Edit("general.name", T.STRING, "Phi-3")},
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", [TINY, RAW_UTF8], ids=lambda path: path.stem)
@pytest.mark.parametrize(
    "edits", CASES, ids=lambda edits: " ".join(f"{e.key}={e.value}" for e in edits.values())
)
def test_an_override_is_as_if_it_stood_in_the_file(
    tmp_path: Path, edits: dict[str, Edit], path: Path, way: str
) -> None:
    written = tmp_path / "written.gguf"
    write_fixed(path, written, edits.values(), check=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with_overrides = WAYS[way](path)
    overrides = {key: edit.value for key, edit in edits.items()}
    expected = told(lambda: Tokenizer.from_gguf(written))
    assert told(lambda: with_overrides(overrides)) == expected


@pytest.mark.parametrize(
    ("overrides", "error", "hint"),
    [
        ({"tokenizer.ggml.prre": "gpt-2"}, ValueError, "near: tokenizer.ggml.pre"),
        ({K.PRE: b"gpt-2"}, TypeError, "cannot hold"),
        ({K.PRE: {}}, TypeError, "cannot hold"),
        ({K.PRE: "\ud800"}, TypeError, "cannot hold"),
        ({K.EOS_ID: 2**64}, TypeError, "cannot hold"),
        ({K.TOKEN_TYPE: [1, "two"]}, TypeError, "cannot hold"),
        ({K.PRE: 5}, WrongTypeError, "it is overridden"),
        ({K.PRE: "no-such-name"}, UnknownPreTokenizerError, "it is overridden"),
        ({K.MERGES: None}, MissingKeyError, "it is overridden"),
    ],
)
def test_what_cannot_be_an_override(overrides: Any, error: type[Exception], hint: str) -> None:
    with pytest.raises(error, match=hint):
        Tokenizer.from_gguf(TINY, overrides=overrides)


def test_a_changed_tokenizer_shares_the_rest() -> None:
    tok = Tokenizer.from_gguf(GPT2)
    with pytest.warns(GGUFWarning, match="cuts tokens such as"):
        changed = tok.with_overrides({K.ADD_BOS: True, K.PRE: "llama-bpe"})
    assert (changed.encode("1234"), tok.encode("1234")) != (tok.encode("1234"), changed.encode("1234"))
    assert changed.encode("a")[0] == changed.bos_id
    assert changed.vocabulary.merges == tok.vocabulary.merges
    assert not tok.add_bos
    assert changed.with_overrides({K.ADD_BOS: None, K.PRE: "gpt-2"}).encode("1234") == tok.encode("1234")
    if tok.engine == "native":
        for field in ("tokens", "merges"):
            assert getattr(changed.vocabulary, field).strings is getattr(tok.vocabulary, field).strings


def test_the_engine_stays() -> None:
    assert Tokenizer.from_gguf(GPT2, "reference").with_overrides({}).engine == "reference"


def test_a_vocabulary_has_no_keys() -> None:
    with pytest.raises(ValueError, match="_replace"):
        Tokenizer(gpt2_vocabulary()).with_overrides({})


def test_warnings_name_who_asked() -> None:
    tok = Tokenizer.from_gguf(GPT2)
    with pytest.warns(GGUFWarning, match="is missing") as caught:
        tok.with_overrides({K.PRE: None})
    assert {warning.filename for warning in caught} == {__file__}


FACTS = (
    *(
        "vocabulary",
        "model",
        "pre",
        "vocab_size",
        "add_bos",
        "add_eos",
        "eog_ids",
        "bos_id",
        "eos_id",
        "eot_id",
    ),
    *(
        "eom_id",
        "unk_id",
        "sep_id",
        "pad_id",
        "mask_id",
        "fim_pre_id",
        "fim_suf_id",
        "fim_mid_id",
        "fim_pad_id",
    ),
    *("fim_rep_id", "fim_sep_id", "engine"),
)


@pytest.mark.parametrize("name", FACTS)
def test_what_cannot_be_changed_is_read_only(name: str) -> None:
    tok = Tokenizer.from_gguf(TINY)
    before = getattr(tok, name)
    with pytest.raises(AttributeError, match=name):
        setattr(tok, name, before)
    with pytest.raises(AttributeError, match=name):
        delattr(tok, name)
    assert getattr(tok, name) is before or getattr(tok, name) == before


def test_the_error_says_what_to_do() -> None:
    tok = Tokenizer.from_gguf(TINY)
    with pytest.raises(AttributeError, match=r"with_overrides\(\{'tokenizer.ggml.add_bos_token': \.\.\.\}\)"):
        tok.add_bos = False  # type: ignore[assignment]
