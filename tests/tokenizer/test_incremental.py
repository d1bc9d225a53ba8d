"""A text that changes has the ids of `encode` of the whole text, whatever the changes are."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import GPT2
from growing_texts import ChangingText, all_tokenizers, small_segments
from split_cases import odd_text, opened, special_texts
from synthetic import gpt2_vocabulary, make_vocabulary, tokenizer_as

from ggufbpe import Tokenizer
from ggufbpe.native import native
from ggufbpe.tokenizer.incremental import IdsChange, IncrementalEncoding, common_id_count

ENGINES = ["reference", *["native"] * (native is not None)]
TOK = Tokenizer.from_gguf(GPT2, "reference")
HELLO, WORLD = 15496, 995


@pytest.mark.parametrize("engine", ENGINES)
def test_random_changes(engine: str) -> None:
    """18,000 of them with the compiled engine and 2,000 with the other, over all names and recorded vocabularies."""
    steps = 0
    with small_segments():
        for name, tokenizer in all_tokenizers(engine):
            text = ChangingText(tokenizer, f"{engine} {name}")
            for _ in range(70 if engine == "native" else 8):
                assert (name, text.step()) == (name, None)
                steps += 1
    assert steps > (18_000 if engine == "native" else 2_000)


def test_a_wrong_id_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    text = ChangingText(TOK, "wrong")
    monkeypatch.setattr(IncrementalEncoding, "ids", [1, 2, 3])
    assert any("not [" in (text.step() or "") for _ in range(30))


CHANGES: list[tuple[str, list[tuple[Any, ...]], IdsChange, bytes]] = [
    ("Hello", [("append", " world")], IdsChange(1, 0, [WORLD]), b"Hello world"),
    ("Hello wor", [("append", "ld")], IdsChange(1, 1, [WORLD]), b"Hello world"),
    ("Hello world", [("truncate", 5)], IdsChange(1, 1, []), b"Hello"),
    ("Hello world", [("replace", 0, 5, "Hi")], IdsChange(0, 1, [17250]), b"Hi world"),
    ("Hello world", [("append", "")], IdsChange(2, 0, []), b"Hello world"),
    ("", [("append", "<|endof"), ("append", "text|>")], IdsChange(0, 4, [50256]), b"<|endoftext|>"),
    ("", [("append", b"\xe8\x80"), ("append", b"\x85")], IdsChange(0, 1, [5099, 227]), "者".encode()),
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("text", "calls", "change", "after"), CHANGES)
def test_how_ids_change(
    engine: Any, text: str, calls: list[tuple[Any, ...]], change: IdsChange, after: bytes
) -> None:
    tokenizer = Tokenizer(gpt2_vocabulary(), engine)
    growing = tokenizer.incremental(text)
    for name, *arguments in calls:
        old = growing.ids
        found = getattr(growing, name)(*arguments)
    assert growing.to_bytes() == after
    assert growing.ids == tokenizer.encode(after)
    assert old[: found.kept] + found.inserted + old[found.kept + found.removed :] == growing.ids
    if name != "append" or b"\x85" not in arguments:
        assert found == change


def test_what_is_added_stays_at_the_ends() -> None:
    vocabulary = make_vocabulary([*"ab", "<s>"], special_ids={"bos": 2, "eos": 2}, add_bos=True, add_eos=True)
    growing = Tokenizer(vocabulary, "reference").incremental("a")
    assert growing.ids == [2, 0, 2]
    assert growing.append("b") == IdsChange(2, 0, [1])
    assert (growing.ids, growing.count, len(growing), growing.size) == ([2, 0, 1, 2], 4, 4, 2)


def test_flags() -> None:
    growing = TOK.incremental("a", parse_special=False)
    growing.append("<|endoftext|>")
    assert growing.ids == TOK.encode("a<|endoftext|>", parse_special=False)


def test_checkpoints() -> None:
    growing = TOK.incremental("Hello")
    state = growing.checkpoint()
    assert (state.size, state.count, repr(state)) == (5, 1, "<Checkpoint: 5 bytes, 1 ids>")
    growing.append(" world")
    later = growing.checkpoint()
    growing.replace(0, 5, "Hi")
    assert growing.restore(state) == IdsChange(0, 2, [HELLO])
    assert growing.ids == [HELLO]
    assert growing.restore(later) == IdsChange(1, 0, [WORLD])
    assert TOK.incremental().restore(later) == IdsChange(0, 0, [HELLO, WORLD])


def test_copies_change_separately() -> None:
    growing = TOK.incremental("Hello")
    others = [copy.copy(growing), copy.deepcopy(growing), pickle.loads(pickle.dumps(growing))]
    growing.append(" world")
    assert growing.ids == [HELLO, WORLD]
    assert [other.ids for other in others] == [[HELLO]] * 3


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("flags", [{}, {"add_special": False}, {"parse_special": False}])
def test_a_pickle_has_text_flags_and_tokenizer(engine: Any, flags: dict[str, bool]) -> None:
    growing = Tokenizer(gpt2_vocabulary()._replace(add_bos=True), engine).incremental(
        b"a<|endoftext|>\xe8" * 300, **flags
    )
    state = growing.checkpoint()
    other, restored = pickle.loads(pickle.dumps((growing, state)))
    assert (other.to_bytes(), other.ids, other._settings) == (
        growing.to_bytes(),
        growing.ids,
        growing._settings,
    )
    change = growing.append(b"\x80\x85")
    assert other.append(b"\x80\x85") == change
    other.restore(restored)
    growing.restore(state)
    assert other.ids == growing.ids


REFUSED: list[tuple[str, tuple[Any, ...], type[Exception], str]] = [
    ("append", (5,), TypeError, "text must be str or bytes, not int"),
    ("append", ("a\ud800",), ValueError, "a lone surrogate, U+D800, at character 1"),
    ("truncate", (6,), ValueError, "length must be from 0 to 5"),
    ("truncate", (-1,), ValueError, "length must be from 0 to 5"),
    ("replace", (3, 2, ""), ValueError, "start and end must be in order and from 0 to 5"),
    ("replace", (0, 6, ""), ValueError, "start and end must be in order and from 0 to 5"),
    ("replace", (0.5, 6, ""), TypeError, "start must be an integer, not float"),
    ("restore", ([],), TypeError, "not a Checkpoint but list"),
    ("restore", (TOK.incremental(add_special=False).checkpoint(),), ValueError, "of other add_special"),
]


@pytest.mark.parametrize(("name", "arguments", "error", "message"), REFUSED)
def test_refused(name: str, arguments: tuple[Any, ...], error: type[Exception], message: str) -> None:
    growing = TOK.incremental("Hello")
    with pytest.raises(error) as refusal:
        getattr(growing, name)(*arguments)
    assert message in str(refusal.value)
    assert growing.to_bytes() == b"Hello"


def test_a_text_that_cannot_be_encoded_changes_nothing() -> None:
    growing = opened()["spm-without-bytes"].incremental("hello")
    ids = growing.ids
    with pytest.raises(ValueError, match="no token"):
        growing.append("\x01")
    assert (growing.ids, growing.to_bytes()) == (ids, b"hello")


def encoded_bytes(monkeypatch: pytest.MonkeyPatch, growing: IncrementalEncoding) -> list[int]:
    """Takes note of how many bytes are encoded from now on."""
    sizes: list[int] = []
    real = growing._encode

    def encode(text: bytes, *rest: bool) -> list[int]:
        sizes.append(len(text))
        return real(text, *rest)

    monkeypatch.setattr(growing, "_encode", encode)
    return sizes


@pytest.mark.skipif(native is None, reason="the reference engine has few places")
@pytest.mark.parametrize("name", ["gpt-2", "spm.gguf", "wpm.gguf", "rwkv.gguf", "plamo2.gguf"])
def test_an_append_encodes_as_little_at_the_end_of_a_longer_text(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = opened()[name[:-5]] if name.endswith(".gguf") else tokenizer_as(name)
    for times in (100, 10_000):
        growing = tokenizer.incremental("hello world, and so on\n" * times)
        sizes = encoded_bytes(monkeypatch, growing)
        for _ in range(50):
            growing.append("hello you, and so on\n" * 5)
        growing.replace(1000, 1005, "you")
        assert sum(sizes) < 50 * 800 + 10_000
        assert growing.ids == tokenizer.encode(growing.to_bytes())


@pytest.mark.parametrize("engine", ENGINES)
def test_a_special_token_is_a_place_for_every_model(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = Tokenizer(gpt2_vocabulary(), engine)
    growing = tokenizer.incremental(("a" * 1000 + "<|endoftext|>") * 50)
    sizes = encoded_bytes(monkeypatch, growing)
    growing.append("b" * 10)
    assert sum(sizes) < 3000
    assert growing.ids == tokenizer.encode(growing.to_bytes())


# ---- streams --------------------------------------------------------------------------------------------


def in_pieces(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


@pytest.mark.parametrize("engine", ENGINES)
def test_ids_of_a_stream(engine: Any) -> None:
    with small_segments():
        for name, tokenizer in all_tokenizers(engine):
            data = odd_text(name, special_texts(tokenizer))[: 300 if engine == "native" else 60]
            for size, flag in ((1, True), (7, False), (90, True)):
                flags = {"add_special": flag, "parse_special": flag}
                try:
                    expected = tokenizer.encode(data, **flags)
                except ValueError:
                    continue
                found = list(tokenizer.encode_stream(in_pieces(data, size), **flags))
                assert (name, found) == (name, expected)


@pytest.mark.skipif(native is None, reason="the reference engine has few places")
def test_a_stream_yields_ids_before_its_end() -> None:
    given = []

    def pieces() -> Iterator[str]:
        for number in range(100):
            given.append(number)
            yield "Hello world, "

    stream = tokenizer_as("gpt-2").encode_stream(pieces())
    assert next(stream) == HELLO
    assert len(given) < 10


def test_one_long_word_is_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = tokenizer_as("gpt-2")
    searched = []
    real = tokenizer._engine.special_token_spans

    def spans(data: bytes, flag: bool) -> list[tuple[int, int]]:
        searched.append(len(data))
        return real(data, flag)

    monkeypatch.setattr(tokenizer._engine, "special_token_spans", spans)
    assert len(list(tokenizer.encode_stream("a" * 10 for _ in range(2000)))) > 100
    assert sum(searched) < 2000 * 200


def test_one_text_is_not_a_stream() -> None:
    with pytest.raises(TypeError, match="pieces must be an iterable of texts, not a single str"):
        list(TOK.encode_stream("Hello"))


@pytest.mark.parametrize(
    ("one", "other", "length"),
    [
        ([], [], 0),
        ([1], [], 0),
        ([1, 2, 3], [1, 2, 3, 4], 3),
        ([1, 2, 3], [1, 2, 4], 2),
        ([1, 2], [2, 1], 0),
        ([*range(99), 0], [*range(100)], 99),
    ],
)
def test_how_many_are_equal(one: list[int], other: list[int], length: int) -> None:
    assert common_id_count(one, other) == common_id_count(other, one) == length
