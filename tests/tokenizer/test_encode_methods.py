"""The forms of encoding, on an engine that notes what it is asked."""

from __future__ import annotations

import pickle
import sys
from itertools import product
from typing import Any

import numpy
import pytest
from synthetic import byte_tokens, make_vocabulary

from ggufbpe import Tokenizer
from ggufbpe._util.processors import processors
from ggufbpe.models.vocabulary import CONTROL
from ggufbpe.native import native
from ggufbpe.tokenizer.encode_methods import EncodeMethods

VOCABULARY = make_vocabulary(
    [*byte_tokens(), "<s>"], attributes={"<s>": CONTROL}, special_ids={"bos": 256}, add_bos=True
)
ENGINES = ["reference", *(["native"] if native is not None else [])]


class Noting:
    """An engine that returns the name and the arguments of each call."""

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: (name, *arguments)


class Encoding(EncodeMethods):
    """Only the methods, over such an engine."""

    _vocabulary = VOCABULARY
    _engine = Noting()  # type: ignore[assignment]


CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any], tuple[Any, ...]]] = [
    ("encode", ("t",), {}, ("encode", "t", True, True, False)),
    ("encode", ("t",), {"add_special": False, "continues": True}, ("encode", "t", False, True, True)),
    ("encode_ordinary", ("t",), {"continues": True}, ("encode", "t", False, False, True)),
    ("encode_to_numpy", ("t",), {"threads": 3}, ("encode_to_numpy", "t", True, True, False, 3)),
    ("encode_batch", (["t"],), {"threads": 3}, ("encode_batch", ["t"], True, True, 3)),
    ("encode_batch", (["t"],), {}, ("encode_batch", ["t"], True, True, processors())),
    ("encode_batch", (["t"],), {"threads": 2**70}, ("encode_batch", ["t"], True, True, sys.maxsize)),
    ("encode_to_numpy", ("t",), {"threads": 2**70}, ("encode_to_numpy", "t", True, True, False, sys.maxsize)),
    ("count", ("t",), {"threads": 2**70}, ("count", "t", True, True, sys.maxsize, False)),
    ("count", ("t",), {"parse_special": False}, ("count", "t", True, False, 1, False)),
    ("words", ("t",), {}, ("pre_tokenize", "t")),
    ("count_words", ("t",), {}, ("count_pre_tokens", "t")),
    ("find_split_point", (b"t", 1), {}, ("find_split_point", b"t", 1)),
]


@pytest.mark.parametrize(("name", "arguments", "options", "asked"), CALLS)
def test_what_the_engine_is_asked(
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    arguments: tuple[Any, ...],
    options: dict[str, Any],
    asked: Any,
) -> None:
    engine = Noting()
    engine.find_split_point = lambda data, start, continues: ("find_split_point", data, start)  # type: ignore[attr-defined]
    monkeypatch.setattr(Encoding, "_engine", engine)
    assert getattr(Encoding(), name)(*arguments, **options) == asked


REFUSED: list[tuple[str, tuple[Any, ...], dict[str, Any], type[Exception], str]] = [
    ("encode_batch", ("one text",), {}, TypeError, "texts must be an iterable of texts, not a single str"),
    ("encode_batch", ([],), {"threads": 0}, ValueError, "threads must be 1 or more, not 0"),
    ("count", ("t",), {"threads": 0}, ValueError, "threads must be 1 or more, not 0"),
    ("encode_to_numpy", ("t",), {"threads": 1.5}, TypeError, "threads must be an integer, not float"),
    (
        "encode_with_offsets",
        ("t",),
        {"unit": "words"},
        ValueError,
        "unit is 'bytes' or 'characters', not 'words'",
    ),
]


REFUSED += [
    (name, (None,), {}, TypeError, "texts must be an iterable of texts, not None")
    for name in ("encode_batch", "encode_batch_to_numpy", "count_batch")
]
REFUSED += [
    ("find_split_point", ("abc", 0), {}, TypeError, "data must be bytes, not str"),
    ("find_split_point", (b"abc", -1), {}, ValueError, "start must be 0 or more, not -1"),
    ("find_split_point", (b"abc", "1"), {}, TypeError, "start must be an integer, not str"),
]


@pytest.mark.parametrize(("name", "arguments", "options", "error", "message"), REFUSED)
def test_refused(
    name: str, arguments: tuple[Any, ...], options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as refusal:
        getattr(Encoding(), name)(*arguments, **options)
    assert message in str(refusal.value)


ENCODE = [
    "encode",
    "encode_to_numpy",
    "encode_with_offsets",
    "encode_with_offsets_to_numpy",
    "count",
    "tokens",
]
ENCODE_BATCH = ["encode_batch", "encode_batch_to_numpy", "count_batch"]
FLAGS = [
    *product(ENCODE, ["add_special", "parse_special", "continues"]),
    *product([*ENCODE_BATCH, "trace"], ["add_special", "parse_special"]),
    ("encode_ordinary", "continues"),
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("name", "flag"), FLAGS)
def test_flags_are_bools_of_python_or_numpy(engine: Any, name: str, flag: str) -> None:
    method = getattr(Tokenizer(VOCABULARY, engine), name)
    text = ["a<s>"] if name in ENCODE_BATCH else "a<s>"
    for value in (1, None, "no", []):
        with pytest.raises(TypeError, match=f"^{flag} must be True or False, not "):
            method(text, **{flag: value})
    for value in (False, True):
        assert repr(method(text, **{flag: numpy.bool_(value)})) == repr(method(text, **{flag: value}))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_split_point_is_behind_the_beginning_and_not_behind_the_end(engine: Any) -> None:
    tokenizer = Tokenizer(VOCABULARY, engine)
    assert [tokenizer.find_split_point(b"abc", start) for start in (0, 3, 10**30)] == [3, 3, 3]
    assert tokenizer.find_split_point(b"", 0) == 0


UNITS = [  # a text, spans in bytes, spans in characters
    ("aé", [(0, 0), (0, 1), (1, 2), (2, 3)], [(0, 0), (0, 1), (1, 2), (1, 2)]),
    (b"\xffa", [(0, 0), (0, 1), (1, 2)], [(0, 0), (0, 1), (1, 2)]),
    ("ab", [(0, 0), (0, 1), (1, 2)], [(0, 0), (0, 1), (1, 2)]),
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("text", "in_bytes", "in_characters"), UNITS)
def test_units_of_offsets(
    engine: Any, text: str | bytes, in_bytes: list[Any], in_characters: list[Any]
) -> None:
    tokenizer = Tokenizer(VOCABULARY, engine)
    if isinstance(text, bytes):  # an undecodable byte becomes the three of U+FFFD
        in_bytes = [in_bytes[0], *[(0, 1)] * 3, in_bytes[-1]]
        in_characters = [in_characters[0], *[(0, 1)] * 3, in_characters[-1]]
    for unit, expected in (("bytes", in_bytes), ("characters", in_characters)):
        _, spans = tokenizer.encode_with_offsets(text, unit=unit)  # type: ignore[arg-type]
        assert list(spans) == expected
        _, array = tokenizer.encode_with_offsets_to_numpy(text, unit=unit)  # type: ignore[arg-type]
        assert array.tolist() == [list(span) for span in expected]


def test_cut_is_deprecated() -> None:
    with pytest.warns(DeprecationWarning, match=r"Tokenizer\.cut is now Tokenizer\.find_split_point"):
        assert Tokenizer(VOCABULARY, "reference").cut(b"a b", 1) == 3


def test_a_method_can_be_pickled_and_is_called_the_tokenizers() -> None:
    for method in (Tokenizer.encode, Tokenizer.split, Tokenizer.decode, Tokenizer.apply_chat_template):
        assert pickle.loads(pickle.dumps(method)) is method
    with pytest.raises(
        TypeError, match=r"^Tokenizer\.encode\(\) got an unexpected keyword argument 'add_bos'"
    ):
        Tokenizer(VOCABULARY).encode("a", add_bos=True)  # type: ignore[call-arg]
