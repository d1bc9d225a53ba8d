"""The forms of encoding, on an engine that notes what it is asked."""

from __future__ import annotations

import pickle
from typing import Any

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
    ("encode_batch", ("one text",), {}, TypeError, "a batch is several texts; for one, use encode"),
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


@pytest.mark.parametrize(("name", "arguments", "options", "error", "message"), REFUSED)
def test_refused(
    name: str, arguments: tuple[Any, ...], options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as refusal:
        getattr(Encoding(), name)(*arguments, **options)
    assert message in str(refusal.value)


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
