"""PLaMo (`tokenizer.ggml.model` = plamo2, plamo3): what the recorded answers of llama.cpp do not show.

Its rules one by one are held to llama.cpp in test_loading.py and test_recorded.py. Here is each by itself on both
engines, with offsets into the text as given, bytes that are not UTF-8, long texts, and all methods.
"""

from __future__ import annotations

import pickle
import random
import warnings
from array import array
from pathlib import Path
from typing import Any

import pytest
from conftest import PLAMO
from make_plamo_vocab import keys
from reference import write_metadata
from synthetic import make_vocabulary

from ggufbpe import GGUFWarning, Tokenizer, VocabularyError
from ggufbpe._util.spelling import BYTE_TOKENS
from ggufbpe.models.plamo import _NO_PRE_TOKENIZER, PlamoText, in_ten_thousandths
from ggufbpe.models.vocabulary import BYTE, Vocabulary
from ggufbpe.native import native

ENGINES = ["reference", *(["native"] if native is not None else [])]
MODELS = ["plamo2", "plamo3"]
OWN = ["<|plamo:unk|>", "<|plamo:bos|>", "<|plamo:eos|>", "<|plamo:pad|>"]
FIRST = len(OWN) + 256  # the id of the first token of `vocabulary`
LONG = {
    "one letter": "a" * 600_000,
    "words": "hello the world, x " * 40_000,
    "no place to cut": "日本語の文章" * 40_000,
    "spaces and lines": ("    " * 3 + "\n") * 50_000,
    "nothing that is known": "ъ" * 200_000,
    "markers": "<|plamo:x|>" * 40_000,
    "half of markers": "<|plamo:" * 50_000,
}


def vocabulary(tokens: dict[str, float], model: str = "plamo2") -> Vocabulary:
    texts = [*OWN, *BYTE_TOKENS, *tokens]
    made = make_vocabulary(
        texts, attributes=dict.fromkeys(BYTE_TOKENS, BYTE), model=model, special_ids={"unk": 0}
    )
    scores = array("f", [*[-9.0] * FIRST, *tokens.values()])
    return made._replace(scores=scores, pre="", pre_tokenizer=_NO_PRE_TOKENIZER)


def opened(model: str = "plamo2", engine: Any = "auto", **keys: Any) -> Tokenizer:
    overrides = {f"tokenizer.ggml.{name}": value for name, value in {"model": model, **keys}.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GGUFWarning)
        return Tokenizer.from_gguf(PLAMO, engine=engine, overrides=overrides)


def pieces(tok: Tokenizer, text: str | bytes) -> list[bytes]:
    return [tok.token_to_piece(token) for token in tok.encode(text, add_special=False, parse_special=False)]


# ---- the best path ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("score", "whole"),
    [
        (-1.5, -15000),
        (0.03125, 313),  # halves go away from zero
        (-0.03125, -313),
        (-1000.0, -10_000_000),
        (-1999.9999, -19_999_999),
        (-2000.0, -20_000_000),
        (-1e30, -20_000_000),  # what is too large for 32 bits becomes the least of them
        (214748.3, 2_147_483_000),
        (214749.0, -20_000_000),
        (float("inf"), -20_000_000),
        (float("nan"), -20_000_000),
    ],
)
def test_scores_are_whole(score: float, whole: int) -> None:
    assert in_ten_thousandths(score) == whole


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("tokens", "text", "expected"),
    [
        ({"a": -1.0, "b": -1.0, "ab": -1.5}, "ab", ["ab"]),
        ({"a": -1.0, "b": -1.0, "ab": -2.5}, "ab", ["a", "b"]),
        ({"a": -1.0, "b": -1.0, "ab": -2.0}, "ab", ["ab"]),  # equal sums: the longest first
        ({"a": 0.0, "ab": 0.0, "bc": 0.0, "c": 0.0}, "abc", ["ab", "c"]),
        ({"ab": -1.0}, "axb", ["a", "x", "b"]),  # bytes
        ({"ab": -2000.0, "a": -1.0}, "ab", ["a", "b"]),  # never taken
        ({"ab": -1999.9, "a": -1.0}, "ab", ["a", "b"]),
        ({"ab": -1000.0}, "ab", ["ab"]),  # not even bytes are looked at
        ({"ab": -1000.0, "a": -1.0, "b": -1.0}, "ab", ["ab"]),
        ({"ab": -1000.0, "x": -1.0, "xa": -1.0}, "xab", ["x", "ab"]),  # the "x" by its byte: see below
        ({"a": -1.0}, "", []),
        ({"a": -1.0}, "\ufeffa", ["a"]),  # a byte order mark in front is left out
        ({"a": -1.0, "\ufeff": -1.0}, "\ufeff\ufeffa\ufeff", ["\ufeff", "a", "\ufeff"]),
    ],
)
def test_best_path(engine: Any, tokens: dict[str, float], text: str, expected: list[str]) -> None:
    assert pieces(Tokenizer(vocabulary(tokens), engine), text) == [each.encode() for each in expected]


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_in_front_of_a_token_that_ends_the_list_is_in_bytes(engine: Any) -> None:
    tok = Tokenizer(vocabulary({"ab": -1000.0, "x": -1.0, "yx": -1.0}), engine)
    assert tok.encode("x", add_special=False) == [FIRST + 1]
    assert tok.encode("yxab", add_special=False) == [4 + ord("y"), 4 + ord("x"), FIRST]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("xaaaax", ["x", "aaaa", "x"]),
        ("xaaax", ["xa", "aa", "x"]),
        ("x  x", ["x", "  ", "x"]),
        ("x x", ["x ", "x"]),
        ("x\n\n\n\n", ["x\n", "\n", "\n", "\n"]),  # line breaks are no run
        ("x<|plamo:a|>x", ["x", "<|plamo:", "a", "|>", "x"]),
        ("x<|plamo:a |>x", ["x<", "|plamo:", "a", " ", "|>x"]),
        ("x\uee00x", ["x", "x"]),
        ("\ufeffx", ["\ufeff", "x"]),  # stays
    ],
)
def test_segments_of_plamo_3(engine: Any, text: str, expected: list[str]) -> None:
    tokens = [
        "x",
        "a",
        "xa",
        "aa",
        "aaaa",
        " ",
        "  ",
        "x ",
        " x",
        "x\n",
        "\n",
        "x<",
        "<|plamo:",
        "|plamo:",
        "|>",
        "|>x",
    ]
    tok = Tokenizer(vocabulary(dict.fromkeys([*tokens, "\ufeff"], -1.0), "plamo3"), engine)
    assert pieces(tok, text) == [each.encode() for each in expected]


# ---- bytes and offsets ------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("text", "expected", "spans"),
    [
        ("aé", ["a", "é"], [(0, 1), (1, 3)]),
        ("aъ", ["a", b"\xd1", b"\x8a"], [(0, 1), (1, 2), (2, 3)]),
        (b"a\xffa", ["a", b"\xef", b"\xbf", b"\xbd", "a"], [(0, 1), (1, 2), (1, 2), (1, 2), (2, 3)]),
        (b"\xc1\xa1", [b"\xef", b"\xbf", b"\xbd"] * 2, [(0, 1)] * 3 + [(1, 2)] * 3),  # an overlong "a"
        (b"\xed\xa0\x80a", [b"\xed", b"\xa0", b"\x80", "a"], [(0, 1), (1, 2), (2, 3), (3, 4)]),
        (
            b"\xf4\x90\x80\x80",
            [b"\xef", b"\xbf", b"\xbd"] * 4,
            [(at, at + 1) for at in (0, 1, 2, 3) for _ in "123"],
        ),
    ],
)
def test_bytes_and_offsets(
    engine: Any, model: str, text: str | bytes, expected: list[Any], spans: list[tuple[int, int]]
) -> None:
    check_bytes_and_offsets(vocabulary({"a": -1.0, "é": -1.0}, model), engine, text, expected, spans)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("text", "expected", "spans"),
    [
        (b"a\xffa", ["a", b"\xef", b"\xbf", b"\xbd", "a"], [(0, 1), (1, 2), (1, 2), (1, 2), (2, 3)]),
        (b"\xc1\xa1", ["a"], [(0, 2)]),  # an overlong "a"
        (b"\xc1\x81", ["A"], [(0, 2)]),
        (
            b"a\xf7\xbf\xbf\xbf",
            ["a", b"\xf7", b"\xbf", b"\xbf", b"\xbf"],
            [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)],
        ),
        (b"\xf4\x90\x80\x80", [b"\xf4", b"\x90", b"\x80", b"\x80"], [(0, 1), (1, 2), (2, 3), (3, 4)]),
    ],
)
def test_bytes_and_offsets_before_b11739(
    engine: Any, model: str, text: str | bytes, expected: list[Any], spans: list[tuple[int, int]]
) -> None:
    old = vocabulary({"a": -1.0, "é": -1.0}, model)._replace(strict_utf8=False)
    check_bytes_and_offsets(old, engine, text, expected, spans)


def check_bytes_and_offsets(
    made: Vocabulary, engine: Any, text: str | bytes, expected: list[Any], spans: list[tuple[int, int]]
) -> None:
    tok = Tokenizer(made, engine)
    ids, found = tok.encode_with_offsets(text, add_special=False)
    assert ids == tok.encode(text, add_special=False)
    assert [tok.token_to_piece(token) for token in ids] == [
        each.encode() if isinstance(each, str) else each for each in expected
    ]
    assert found == spans


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("model", "text", "spans"),
    [
        ("plamo2", "\ufeffa", [(3, 4)]),
        ("plamo3", "a\uee00a", [(0, 1), (4, 5)]),
        ("plamo3", "\ufeffa", [(0, 1), (1, 2), (2, 3), (3, 4)]),
    ],
)
def test_what_is_left_out_has_no_offsets(
    engine: Any, model: str, text: str, spans: list[tuple[int, int]]
) -> None:
    tok = Tokenizer(vocabulary({"a": -1.0}, model), engine)
    assert tok.encode_with_offsets(text, add_special=False)[1] == spans


def test_a_character_that_stands_for_those_beyond_unicode_is_in_no_token() -> None:
    made = vocabulary({"\U0010ffff": -1.0})._replace(strict_utf8=False)
    assert PlamoText(made, cuts_segments=False)._stranger == "\U0010fffe"
    for engine in ENGINES:
        ids = Tokenizer(made, engine).encode(b"\xf4\x8f\xbf\xbf\xf7\x80\x80\x80", add_special=False)
        assert ids == [FIRST, 4 + 0xF7, 4 + 0x80, 4 + 0x80, 4 + 0x80], engine


# ---- what a file must have --------------------------------------------------------------------------------


def without(*tokens: str) -> dict[str, Any]:
    """The metadata of a vocabulary where these bytes have no token."""
    made = keys(dict.fromkeys("ab", -1.0))
    name = "tokenizer.ggml.tokens"
    return {**made, name: [f"x{text}" if text in tokens else text for text in made[name]]}


def with_first(token: str) -> dict[str, Any]:
    """The same where this one is the first."""
    made = keys(dict.fromkeys("ab", -1.0))
    place = made["tokenizer.ggml.tokens"].index(token)
    for name in ("tokens", "token_type"):
        values = made[f"tokenizer.ggml.{name}"]
        values[0], values[place] = values[place], values[0]
    return made


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (without("<0x41>"), "0x41"),
        (without("<0x41>", "<0xFF>"), "0x41, 0xFF"),
        (with_first("<0x41>"), "0x41; the token 0 counts as none"),
    ],
)
def test_a_byte_without_a_token_is_named(made: dict[str, Any], words: str, tmp_path: Path) -> None:
    path = write_metadata(tmp_path / "v.gguf", made)
    with pytest.raises(VocabularyError, match=words):
        Tokenizer.from_gguf(path)


# ---- all that a tokenizer is asked for --------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("model", MODELS)
def test_every_method(engine: Any, model: str) -> None:
    tok = opened(model, engine)
    text = "The naïve  fox, 日本語 <|plamo:op|>\n"
    ids = tok.encode(text)
    assert ids[0] == tok.bos_id == 1
    assert tok.decode(ids, unparse_special=True) == "<|plamo:bos|>" + text
    assert tok.decode(ids) == text.replace("<|plamo:op|>", "")
    assert tok.encode_to_numpy(text).tolist() == ids
    assert tok.count(text) == len(ids)
    assert tok.encode_batch([text, "", "x"]) == [ids, [1], tok.encode("x")]
    assert tok.encode_with_offsets(text)[0] == ids
    stream = tok.decode_stream()
    assert "".join(map(stream.push, ids)) + stream.finish() == tok.decode(ids)
    assert "".join(tok.pre_tokenize(text)) == text
    assert pickle.loads(pickle.dumps(tok)).encode(text) == ids
    assert tok.token_to_piece(tok.nl_id) == b"\n"


@pytest.mark.parametrize("engine", ENGINES)
def test_words_are_segments(engine: Any) -> None:
    assert opened("plamo2", engine).pre_tokenize("\ufeffa  b") == ["a  b"]
    assert opened("plamo3", engine).pre_tokenize("a  b\uee00c<|plamo:x|>") == [
        "a",
        "  ",
        "b",
        "c",
        "<|plamo:x|>",
    ]


@pytest.mark.skipif(native is None, reason="the reference engine alone has nothing to be held to")
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_long_texts(model: str, text: str) -> None:
    tok = opened(model, "native")
    ids = tok.encode_to_numpy(text, threads=1).tolist()
    assert ids == opened(model, "native").encode_to_numpy(text, threads=2).tolist()
    assert tok.count(text) == tok.count(text, threads=2) == len(ids)
    part = text[: len(text) // 20]
    assert tok.encode(part) == opened(model, "reference").encode(part)


@pytest.mark.skipif(native is None, reason="the reference engine has one thread")
@pytest.mark.parametrize("model", MODELS)
def test_texts_are_cut_for_threads_where_no_id_changes(model: str) -> None:
    """Pieces of about the size at which threads take turns, with all there is at the places where they might be cut."""
    dice = random.Random(model)
    seams = [
        *(
            "\ufeffa",
            "aaaaa",
            "   ",
            "\n\n\n",
            "<|plamo:x|>",
            "[PAD1]",
            "\uee00",
            "日",
            b"\xff",
            b"\xc1\x81",
            b"\xf7\xbf\xbf\xbf",
        ),
        *("\n\ufeffa", "\n ", " \n", "\t\t\t\t\n", ". ", ", x", b"\n\xc0\xa0", b"\n\x80", b"\n\xe2\x80"),
    ]
    coded = [seam if isinstance(seam, bytes) else seam.encode() for seam in seams]
    tok = opened(model, "native")
    for _ in range(3):
        text = b"".join(dice.choice(coded) + b"word "[: dice.randrange(6)] for _ in range(100_000))
        found = tok.encode_to_numpy(text, threads=2)
        assert found.tolist() == tok.encode_to_numpy(text, threads=1).tolist()
