"""SPM, the model `llama`: what its recorded answers (test_loading.py, test_recorded.py) do not ask.

Both engines are held to the same answers.
"""

from __future__ import annotations

import pickle
import random
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from loading_rules import SPM_TEXTS
from reference import write_metadata

from ggufbpe import GGUFWarning, Tokenizer
from ggufbpe._util.errors import VocabularyError
from ggufbpe.cli import main
from ggufbpe.native import native

ENGINES = ["reference", "native"] if native is not None else ["reference"]
K = "tokenizer.ggml."


@cache
def opened(name: str, engine: Any) -> Tokenizer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GGUFWarning)
        return Tokenizer.from_gguf(ROOT / "fixtures" / "vocabs" / f"{name}.gguf", engine)


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


def tokens_of(tok: Tokenizer, text: str | bytes) -> list[str]:
    return list(map(tok.id_to_token, tok.encode(text, add_special=False)))


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("spm", "hello", ["▁hello"]),
        (
            "spm",
            "xhello",
            ["▁", "x", "he", "llo"],
        ),  # of equal ways to a text, the merges with the best scores
        ("spm", "", []),
        ("spm", " ", ["▁▁"]),  # the space before a text is merged with its own
        ("spm-without-prefix", "hello", ["he", "llo"]),
        ("spm", "</s>h", ["</s>", "▁", "h"]),  # and stands behind a special token
        ("spm-equal-scores", "aaaaa", ["▁", "aaa", "aa"]),  # the leftmost of equal ones
        ("spm", "é中", ["▁", "é", "<0xE4>", "<0xB8>", "<0xAD>"]),
        ("spm", b"\xff", ["▁", "<0xFF>"]),
        ("spm", b"\xc3 h", ["▁", "<0xC3>", "<0xE2>", "<0x96>", "<0x81>", "h"]),  # it announces two bytes
        ("spm", b"\xf0h\xe9", ["▁", "<0xF0>", "<0x68>", "<0xE9>"]),
        ("spm", b"\xed\xa0\x80\xc0\xa0", ["▁", *(f"<0x{byte:02X}>" for byte in b"\xed\xa0\x80\xc0\xa0")]),
        ("spm-without-space", "h", ["<0xE2>", "<0x96>", "<0x81>", "h"]),
        ("spm-bytes-as-characters", "~\t", ["▁", "~", "\t"]),
    ],
)
def test_tokens(name: str, text: str | bytes, expected: list[str], engine: str) -> None:
    assert tokens_of(opened(name, engine), text) == expected


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("spm", "hello", [(0, 5)]),
        ("spm", " hello", [(0, 0), (0, 6)]),
        ("spm", "é中 h", [(0, 0), (0, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7)]),
        ("spm-without-space", "h h", [(0, 0), (0, 0), (0, 0), (0, 1), (1, 2), (1, 2), (1, 2), (2, 3)]),
        ("spm", b"\xff h", [(0, 0), (0, 1), (1, 2), (2, 2), (2, 2), (2, 3)]),
        ("spm", "</s>h", [(0, 4), (4, 4), (4, 5)]),
    ],
)
def test_offsets(name: str, text: str | bytes, expected: list[tuple[int, int]], engine: str) -> None:
    assert opened(name, engine).encode_with_offsets(text, add_special=False)[1] == expected


@pytest.mark.parametrize("unit", [" ", "he", "hello", "h\u2581"])
@pytest.mark.parametrize("name", ["spm", "spm-equal-scores", "spm-without-scores"])
def test_long_runs(name: str, unit: str) -> None:
    """Where tokens share a score, a merge may make another one of its own rank, before all that wait."""
    if native is None:
        pytest.skip("the compiled engine is not installed")
    text = unit * 1500
    assert opened(name, "native").encode(text) == opened(name, "reference").encode(text)


def test_words_end_where_no_token_goes_on(engine: str) -> None:
    assert opened("spm", engine).pre_tokenize("hel  wor d wo h") == ["▁hel", "▁▁wor", "▁d", "▁wo▁h"]


def test_a_token_may_stand_across_words(engine: Any, tmp_path: Path) -> None:
    tokens = {"<s>": 0.0, "▁": 0.0, "o": 0.0, "w": 0.0, "o▁": -1.0, "o▁w": -2.0, "▁w": -3.0}
    keys = {"general.architecture": "llama", K + "model": "llama", K + "bos_token_id": 0}
    path = write_metadata(
        tmp_path / "v.gguf", {**keys, K + "tokens": list(tokens), K + "scores": list(tokens.values())}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GGUFWarning)
        tok = Tokenizer.from_gguf(path, engine)
    assert tokens_of(tok, "wo w wo o") == ["▁w", "o▁w", "▁w", "o▁", "o"]


@pytest.mark.parametrize("name", ["spm", "spm-user-defined", "spm-without-prefix", "spm-phi-3"])
def test_a_str_is_encoded_as_its_bytes_which_are_checked(name: str) -> None:
    if native is None:
        pytest.skip("the compiled engine is not installed")
    parts = [*SPM_TEXTS, "é", "中", "🦙", "é</s>é", "中hello中", "\xa0<s>\xa0", " "]
    text = "".join(random.Random(name).choices(parts, k=60_000))
    tok = opened(name, "native")
    expected = tok.encode(text.encode())
    assert expected[:400] == opened(name, "reference").encode(text[:2000])[:400]
    assert tok.encode(text) == expected
    assert tok.encode_to_numpy(text, threads=2).tolist() == expected
    assert tok.encode_to_numpy(text.encode(), threads=2).tolist() == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["spm", "spm-user-defined", "spm-equal-scores", "spm-without-prefix", "spm-phi-3"]
)
def test_engines_agree_on_long_texts_on_threads_and_in_batches(name: str) -> None:
    if native is None:
        pytest.skip("the compiled engine is not installed")
    dice = random.Random(name)
    parts = [*(text.encode() for text in SPM_TEXTS), b"\xff", b" ", "éa".encode(), b"\n"]
    for pieces in (parts, [part for part in parts if part != b"\xff"], [b"a"], [b" ", b"hello"]):
        data = b"".join(dice.choices(pieces, k=400_000 // (1 + sum(map(len, pieces)) // len(pieces))))
        expected = opened(name, "reference").encode(data)
        tok = opened(name, "native")
        for text in (data, data.decode()) if b"\xff" not in pieces else (data,):
            assert tok.encode(text) == expected
            assert tok.encode_to_numpy(text, threads=2).tolist() == expected
            assert tok.count(text, threads=2) == len(expected)
            assert tok.encode_batch([text[:999], text], threads=2)[1] == expected
            tok.release_memory()


def test_a_text_is_decoded_as_it_was(engine: str) -> None:
    tok = opened("spm", engine)
    for text in SPM_TEXTS:
        ids = tok.encode(text, parse_special=False)
        assert tok.decode(ids, remove_special=True) == " " + text.replace("▁", " ")
        stream = tok.decode_stream()
        assert "".join(map(stream.push, ids)) + stream.finish() == tok.decode(ids)


def test_line_break_is_the_token_of_its_byte(engine: str) -> None:
    names = ("spm", "spm-newline-as-character", "spm-without-newline")
    ids = [opened(name, engine).nl_id for name in names]
    assert [None if id is None else opened(name, engine).id_to_token(id) for name, id in zip(names, ids)] == [
        *("<0x0A>", "\n"),
        None,
    ]


def test_a_byte_without_a_token_is_an_error_that_names_it(engine: str) -> None:
    tok = opened("spm-without-newline", engine)
    for encode in (
        tok.encode,
        tok.count,
        tok.encode_with_offsets,
        lambda text: tok.encode_batch([text, "h"]),
    ):
        with pytest.raises(ValueError, match="0x0A"):
            encode("h\nh")
    assert tokens_of(tok, "hh") == ["▁", "h", "h"]  # and the tokenizer goes on


def test_a_score_that_is_no_number_is_an_error(tmp_path: Path) -> None:
    keys = {"general.architecture": "llama", K + "model": "llama", K + "tokens": ["a", "b"]}
    path = write_metadata(tmp_path / "v.gguf", {**keys, K + "scores": [0.0, float("nan")]})
    with pytest.raises(VocabularyError, match="score of token 1"):
        Tokenizer.from_gguf(path)


def test_pickle_has_the_scores(engine: str) -> None:
    tok = opened("spm", engine)
    assert pickle.loads(pickle.dumps(tok)).encode("hello world") == tok.encode("hello world")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["tokenize", "-p", "hello", "--ids"], 0, "[1, 266]"),
        (["detokenize", "1", "266"], 0, " hello"),
        (["info"], 0, "SentencePiece BPE"),
        (["verify", "--against", "spm-equal-scores.gguf", "-p", "xhello"], 1, "differ"),
        (["explain", "-p", "hello"], 0, "▁he + llo"),
        (["diagnose", "-p", "hello", "--ids", "[1]"], 1, "truncated: explains all ids"),
    ],
)
def test_commands(
    arguments: list[str],
    code: int,
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT / "fixtures" / "vocabs")
    assert main([arguments[0], "-m", "spm.gguf", *arguments[1:]]) == code
    assert said in "".join(capsys.readouterr())
