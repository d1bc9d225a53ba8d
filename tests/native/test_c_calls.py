"""The functions of the C library: offsets, split points, growing texts, decoding, streams, callbacks and errors."""

from __future__ import annotations

import ctypes
import random
import threading
import warnings
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from c_library import (
    CANNOT_ENCODE,
    INTERRUPTED,
    INVALID_ARGUMENT,
    IO,
    LIBRARY,
    NO_SUCH_ID,
    CGrowingText,
    CLibraryError,
    CTokenizer,
    Poll,
    library,
)
from conftest import GPT2, PLAMO, RAW_UTF8, ROOT, UNIGRAM
from split_cases import odd_text

from ggufbpe import GGUFWarning, Tokenizer
from ggufbpe.models import SUPPORTED
from ggufbpe.tokenizer.split_points import SplitPoints

pytestmark = pytest.mark.skipif(not LIBRARY, reason="GGUFBPE_C_LIBRARY names no library")

VOCABS = ROOT / "fixtures" / "vocabs"
MADE = ("gpt-oss", "gemma4", "hybriddna", "spm-phi-3", "rwkv", "spm", "wpm", "whitespace", "plamo3")
MODELS = [
    *(GPT2, RAW_UTF8, UNIGRAM, PLAMO),
    *(VOCABS / f"{name}.gguf" for name in MADE),
]


class Pair:
    """A model, opened by the Python package and by the C library."""

    def __init__(self, path: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GGUFWarning)
            self.tok = Tokenizer.from_gguf(path)
        self.c = CTokenizer.open_file(path)
        special = [self.tok.id_to_token(token) for token in self.tok.vocabulary.special_token_ids]
        self.text = odd_text(path.stem, [text for text in special if text])

    def encodes(self, data: bytes) -> bool:
        """Whether llama.cpp does not throw for a text."""
        try:
            self.c.encode(data)
        except CLibraryError as error:
            if error.status != CANNOT_ENCODE:
                raise
            return False
        return True


@pytest.fixture(scope="module", params=MODELS, ids=lambda path: path.stem)
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    made = Pair(request.param)
    yield made
    made.c.close()


@pytest.fixture
def gpt2() -> Iterator[CTokenizer]:
    with CTokenizer.open_file(GPT2) as tok:
        yield tok


def test_there_are_all_models() -> None:
    models = []
    for path in MODELS:
        with CTokenizer.open_file(path) as tok:
            models.append(tok.facts()["model"])
    assert set(models) == set(SUPPORTED)


@pytest.mark.parametrize("parse_special", [True, False])
def test_offsets(pair: Pair, parse_special: bool) -> None:
    for part in pair.text.split(b"\n"):
        if pair.encodes(part):
            ids, spans = pair.tok.encode_with_offsets(part, parse_special=parse_special)
            assert pair.c.encode_with_offsets(part, True, parse_special) == (ids, list(spans))


def test_split_points(pair: Pair) -> None:
    data = pair.text[:6000]
    for parse_special in (True, False):
        places = SplitPoints.of(pair.tok, parse_special, continues=True)
        ours = [places.next(data, start) for start in range(1, len(data), 7)]
        theirs = [pair.c.find_split_point(data, start, parse_special) for start in range(1, len(data), 7)]
        assert theirs == ours


def test_parts_have_the_ids_of_the_whole(pair: Pair) -> None:
    data = pair.text[:6000]
    if not pair.encodes(data):
        pytest.skip("llama.cpp throws for the text")
    ids: list[int] = []
    start = 0
    while start < len(data):
        end = pair.c.find_split_point(data, start + 40) if start + 40 < len(data) else len(data)
        ids += pair.c.encode(data[start:end], False, continues=start > 0)
        start = end
    assert ids == pair.c.encode(data, False)


def test_growing_text(pair: Pair) -> None:
    dice = random.Random("growing")
    data = b"".join(part for part in pair.text.splitlines(keepends=True) if pair.encodes(part))[:8000]
    growing, old, done = CGrowingText(pair.c), pair.c.encode(b""), 0
    assert growing.ids == old
    while done < len(data):
        size = dice.choice((1, 1, 2, 3, 7, 50, 700))
        try:
            kept, removed, inserted = growing.append(data[done : done + size])
        except CLibraryError as error:  # part of a character has bytes without a token
            if error.status != CANNOT_ENCODE:
                raise
            break
        done += size
        new = growing.ids
        assert new == pair.c.encode(data[:done])
        assert old[:kept] + new[kept : kept + inserted] + old[kept + removed :] == new
        old = new
    assert growing.ids == old
    growing.close()


def test_an_append_costs_what_the_end_costs(gpt2: CTokenizer) -> None:
    growing = CGrowingText(gpt2)
    growing.append(b"Some words, and others. " * 50_000)
    kept, removed, inserted = growing.append(b"more")
    assert kept > 100_000
    assert removed + inserted < 10
    growing.close()


@pytest.mark.parametrize(("remove_special", "unparse_special"), [(True, False), (False, True)])
def test_decoding(pair: Pair, remove_special: bool, unparse_special: bool) -> None:
    dice, size = random.Random("decoding"), pair.tok.vocab_size
    for count in (0, 1, 2, 5, 40, 400):
        ids = [dice.randrange(size) for _ in range(count)]
        ids = [*pair.tok.encode(b""), *ids] if count % 2 else ids
        flags = {"remove_special": remove_special, "unparse_special": unparse_special}
        text = pair.tok.decode_bytes(ids, **flags)
        assert pair.c.decode(ids, remove_special, unparse_special) == text
        stream = pair.tok.decode_stream(**flags)
        ours, theirs = (
            [*map(stream.push, ids), stream.finish()],
            pair.c.decode_stream(ids, remove_special, unparse_special),
        )
        assert "".join(theirs) == "".join(ours)
        if b"\xed" not in text:  # Python's decoder waits for the third byte of a surrogate
            assert theirs == ours


def test_cleaned_spaces(gpt2: CTokenizer) -> None:
    tok, dice = Tokenizer.from_gguf(GPT2), random.Random("spaces")
    for _ in range(2000):
        text = "".join(dice.choices([" ", " ", "'", "r", "v", "e", "s", "m", "!", ",", "ü"], k=12))
        ids = [token for char in text for token in tok.encode(char)]
        stream = tok.decode_stream()
        assert gpt2.decode(ids) == tok.decode_bytes(ids)
        assert gpt2.decode_stream(ids) == [*map(stream.push, ids), stream.finish()]


def test_pieces_and_texts(pair: Pair) -> None:
    tok = pair.tok
    for token in range(0, tok.vocab_size, max(tok.vocab_size // 3000, 1)):
        for special in (True, False):
            assert pair.c.token_to_piece(token, special) == tok.token_to_piece(token, special=special)
        text = tok.id_to_token(token)
        found = pair.c.find_token(text)
        assert (None if found < 0 else found) == tok.token_to_id(text)


def test_all_ways_to_open(gpt2: CTokenizer) -> None:
    data, ids = GPT2.read_bytes(), gpt2.encode(b"Hello world")
    asked: list[tuple[int, int]] = []

    def read(offset: int, size: int) -> bytes:
        asked.append((offset, size))
        return data[offset : offset + size]

    with CTokenizer.open_buffer(data) as tok:
        assert tok.encode(b"Hello world") == ids
    for size in (len(data), 2**64 - 1):
        asked.clear()
        with CTokenizer.open_callback(read, size) as tok:
            assert tok.encode(b"Hello world") == ids
        assert asked == sorted(asked)
        assert all(a + n <= b for (a, n), (b, _) in pairwise(asked))  # nothing is read twice


def test_a_read_that_fails() -> None:
    with pytest.raises(CLibraryError, match="callback") as caught:
        CTokenizer.open_callback(lambda offset, size: None)
    assert caught.value.status == IO


def test_errors_say_where(tmp_path: Path) -> None:
    with pytest.raises(CLibraryError) as caught:
        CTokenizer.open_file(tmp_path / "none.gguf")
    assert caught.value.status == IO
    with pytest.raises(CLibraryError, match="occurs twice") as caught:
        CTokenizer.open_file(ROOT / "fixtures" / "malformed" / "key-twice.gguf")
    assert caught.value.key
    assert caught.value.offset > 8


def test_wrong_arguments(gpt2: CTokenizer) -> None:
    for call in (
        lambda: gpt2.decode([50_257]),
        lambda: gpt2.token_to_piece(-1),
        lambda: gpt2.decode_stream([1 << 30]),
    ):
        with pytest.raises(CLibraryError, match="out of range") as caught:
            call()
        assert caught.value.status == NO_SUCH_ID
    with pytest.raises(CLibraryError) as caught:
        gpt2.find_split_point(b"abc", 4)
    assert caught.value.status == INVALID_ARGUMENT


def test_null_is_refused() -> None:
    status = library().ggufbpe_encode(None, b"a", ctypes.c_size_t(1), None, None, None)
    assert status == INVALID_ARGUMENT
    library().ggufbpe_close(None)
    library().ggufbpe_encoding_free(None)
    assert library().ggufbpe_vocabulary_size(None) == 0


@pytest.mark.parametrize("size", [2**64 - 1, 2**63, 2**64 - 4096])
def test_impossible_sizes_are_refused(size: int, gpt2: CTokenizer) -> None:
    """Such as -1 as a size_t, of which nothing may be read."""
    out, given, handle = ctypes.byref(ctypes.c_size_t()), ctypes.c_size_t(size), ctypes.c_void_p()
    encoding = ctypes.c_void_p(library().ggufbpe_encoding_new())
    growing = ctypes.c_void_p()
    library().ggufbpe_growing_text_new(gpt2.handle, None, ctypes.byref(growing), None)
    text = (gpt2.handle, b"abc", given)
    start = ctypes.c_size_t(0)
    statuses = [
        library().ggufbpe_encode(*text, None, encoding, None),
        library().ggufbpe_encode_with_offsets(*text, None, encoding, None),
        library().ggufbpe_count(*text, None, out, None),
        library().ggufbpe_find_split_point(*text, start, None, out, None),
        library().ggufbpe_growing_text_append(growing, b"abc", given, None, None),
        library().ggufbpe_open_buffer(b"abc", given, None, ctypes.byref(handle), None),
        library().ggufbpe_count(
            gpt2.handle, b"abc", ctypes.c_size_t(3), size.to_bytes(8, "little"), out, None
        ),
    ]
    assert statuses == [INVALID_ARGUMENT] * len(statuses)
    assert library().ggufbpe_find_token(*text) == -1
    library().ggufbpe_growing_text_free(growing)
    library().ggufbpe_encoding_free(encoding)


@pytest.mark.parametrize("count", [2**64 - 1, 2**63, 2**63 - 1, 2**62, 2**61])
def test_impossible_numbers_of_ids_are_refused(count: int, gpt2: CTokenizer) -> None:
    size, ids, none = ctypes.c_size_t(7), (ctypes.c_int32 * 2)(15496, 995), ctypes.c_size_t(0)
    out = ctypes.byref(size)
    status = library().ggufbpe_decode(gpt2.handle, ids, ctypes.c_size_t(count), None, None, none, out, None)
    assert (status, size.value) == (INVALID_ARGUMENT, 7)


def test_options_of_other_versions(gpt2: CTokenizer) -> None:
    """A shorter structure lacks fields, which count as zero; a longer one may have only zeros more."""
    encoding = ctypes.c_void_p(library().ggufbpe_encoding_new())

    def status(size: int, tail: bytes) -> int:
        options = size.to_bytes(8, "little") + (1).to_bytes(4, "little") * 2 + tail
        text = ctypes.c_size_t(1)
        return int(library().ggufbpe_encode(gpt2.handle, b"a", text, options, encoding, None))

    assert status(16, b"") == 0
    assert status(80, bytes(64)) == 0
    assert status(80, bytes(63) + b"\1") == INVALID_ARGUMENT
    assert status(0, bytes(64)) == INVALID_ARGUMENT
    library().ggufbpe_encoding_free(encoding)


def test_a_reserved_option_is_zero(gpt2: CTokenizer) -> None:
    """So that it can be given a meaning."""

    def status(reserved: int) -> int:
        options = (24).to_bytes(8, "little") + bytes(12) + reserved.to_bytes(4, "little")
        size = ctypes.c_size_t()
        return int(
            library().ggufbpe_decode(
                gpt2.handle,
                None,
                ctypes.c_size_t(0),
                options,
                None,
                ctypes.c_size_t(0),
                ctypes.byref(size),
                None,
            )
        )

    assert [status(0), status(1)] == [0, INVALID_ARGUMENT]

    def status_of_count(reserved: int) -> int:
        options = (48).to_bytes(8, "little") + bytes(36) + reserved.to_bytes(4, "little")
        size = ctypes.c_size_t()
        return int(
            library().ggufbpe_count(gpt2.handle, b"", ctypes.c_size_t(0), options, ctypes.byref(size), None)
        )

    assert [status_of_count(0), status_of_count(1)] == [0, INVALID_ARGUMENT]


def test_threads_share_a_tokenizer(gpt2: CTokenizer) -> None:
    tok = Tokenizer.from_gguf(GPT2)
    text = (GPT2.parent / "loading.py").read_bytes() * 40
    expected = tok.encode(text)
    found: list[list[int]] = []

    def work() -> None:
        own = CTokenizer(gpt2.handle)  # with an encoding of its own
        found.append(own.encode(text))
        found.append(own.encode(text, threads=3))
        library().ggufbpe_encoding_free(own._encoding)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 8


@pytest.mark.parametrize("threads", [1, 3])
def test_a_poll_ends_a_call(gpt2: CTokenizer, threads: int) -> None:
    calls = []

    def poll(_context: object) -> int:
        calls.append(1)
        return len(calls) > 3

    text = b"".join(b"%d words and 'more'\n" % number for number in range(400_000))
    with pytest.raises(CLibraryError) as caught:
        gpt2.encode(text, threads=threads, poll=Poll(poll))
    assert caught.value.status == INTERRUPTED
    assert gpt2.encode(b"Hello world", poll=Poll(lambda _context: 0)) == gpt2.encode(b"Hello world")


def test_warnings_tell_what_is_wrong() -> None:
    with CTokenizer.open_file(VOCABS / "pre-missing.gguf") as tok:
        assert any("tokenizer.ggml.pre" in line for line in tok.warnings())
    with CTokenizer.open_file(VOCABS / "ids-out-of-range.gguf") as tok:
        assert any("99999" in line for line in tok.warnings())
