"""Opening by the compiled module: the same vocabulary, warnings and errors as without it, and no object for a string.

The rules of loading have tests of their own; here every file there is is opened in both ways. Behind that come the
parts: scanning arrays of strings, finding a string, and the lazy list and dictionary, which must act as real ones.
"""

from __future__ import annotations

import copy
import gc
import os
import pickle
import shutil
import struct
import subprocess
import sys
import tracemalloc
import weakref
from array import array
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from conftest import GPT2, ROOT
from hypothesis import given
from hypothesis import strategies as st
from synthetic import bounded

from ggufbpe._util.errors import GGUFError
from ggufbpe.gguf import section as gguf_file
from ggufbpe.gguf.reader import GGUFFile
from ggufbpe.models import loading
from ggufbpe.models.bpe.merge import parts
from ggufbpe.models.loading import load_vocabulary
from ggufbpe.native import native
from ggufbpe.native.lazy_strings import (
    LazyIds,
    LazyStrings,
    as_dict,
    finder,
    first_indexes,
    lazy_ids,
    lazy_strings,
    made_once,
    shared_strings,
)

pytestmark = pytest.mark.skipif(native is None, reason="there is no compiled module")

FIXTURES = ROOT / "fixtures"
CACHE = Path(os.environ.get("GGUFBPE_REFERENCE") or ROOT / ".cache") / "vocabs"  # of scripts/reference.py
FILES = [
    GPT2,
    *(path for path in sorted(FIXTURES.rglob("*")) if path.is_file() and path.suffix != ".json"),
    *sorted(CACHE.glob("*.gguf")),
]


# ---- the same with and without --------------------------------------------------------------------------


def opened(path: Path) -> object:
    """The vocabulary of a file as plain lists and dictionaries, with its warnings; or the error."""
    try:
        found = load_vocabulary(path)
    except GGUFError as error:
        return type(error), str(error)
    return found._replace(
        scores=array("f", found.scores).tobytes(),  # one that is no number is itself
        tokens=list(found.tokens),
        token_to_id=dict(found.token_to_id),
        attributes=list(found.attributes),
        merges=list(found.merges),
    )


def metadata(path: Path) -> object:
    """All values of a file, and where the elements of arrays are; or the error."""
    try:
        with GGUFFile(path) as file:
            arrays = [key for key in file if file.array_length(key)]
            last = [file.element_offset(key, file.array_length(key) - 1) for key in arrays]
            return repr(dict(file)), last, file.metadata_end
    except GGUFError as error:
        return type(error), str(error)


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_file_opens_as_without_the_compiled_module(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [(opened(path), metadata(path))]
    monkeypatch.setattr(gguf_file, "native", None)
    monkeypatch.setattr(loading, "native", None)
    answers.append((opened(path), metadata(path)))
    assert answers[0] == answers[1]


@pytest.mark.parametrize("name", ["phi-3", "types", "empty-tokens", "nul-in-tokens", "hybriddna"])
def test_tokens_are_lazy(name: str) -> None:
    found = load_vocabulary(FIXTURES / "vocabs" / f"{name}.gguf")
    assert isinstance(found.tokens, LazyStrings)
    assert isinstance(found.token_to_id, LazyIds)


def test_opening_makes_no_object_for_a_token() -> None:
    load_vocabulary(GPT2)
    with GGUFFile(GPT2) as file:
        section = file.metadata_end
    tracemalloc.start()
    found = load_vocabulary(GPT2)
    size, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size < 3 * len(found.tokens)  # 2 bytes are the attribute
    assert peak < 1.2 * section + 16 * len(found.tokens)


def test_nothing_of_the_file_is_needed_later(tmp_path: Path) -> None:
    path = Path(shutil.copy(GPT2, tmp_path))
    found = load_vocabulary(path)
    os.truncate(path, 0)
    assert found._replace(path="") == load_vocabulary(GPT2)._replace(path="")
    assert list(found.merges) == list(load_vocabulary(GPT2).merges)


def test_the_environment_can_do_without_the_compiled_module() -> None:
    program = f"""if True:
        import pickle, sys
        from ggufbpe.native import native
        from ggufbpe.models.loading import load_vocabulary
        own, given = load_vocabulary({str(GPT2)!r}), pickle.load(sys.stdin.buffer)
        print(native, type(own.tokens).__name__, type(given.tokens).__name__, own == given)
    """
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=pickle.dumps(load_vocabulary(GPT2)),
        env={**os.environ, "GGUFBPE_ENGINE": "reference"},
        capture_output=True,
        check=True,
    )
    assert done.stdout.split() == b"None list list True".split()


# ---- scanning -------------------------------------------------------------------------------------------

LAYOUTS = [(4, False), (4, True), (8, False), (8, True)]  # width of a length, whether it is big-endian


def packed(strings: list[bytes], width: int, big_endian: bool) -> bytes:
    form = "<>"[big_endian] + ("I" if width == 4 else "Q")
    return b"".join(struct.pack(form, len(string)) + string for string in strings)


def is_plain(string: bytes) -> bool:
    try:
        return "\0" not in string.decode()
    except UnicodeDecodeError:
        return False


def scanned(data: bytes, count: int, width: int = 8, big_endian: bool = False, start: int = 0) -> Any:
    assert native is not None
    found = native.Strings.scan(data, start, len(data), count, width, big_endian)
    return None if found is None else found.to_list()


pieces = st.one_of(
    st.text(max_size=20).map(str.encode),
    st.text(alphabet="aé€🙂\0", max_size=40).map(str.encode),
    st.binary(max_size=6),
)


@pytest.mark.slow
@bounded(500)
@given(st.lists(pieces, max_size=12), st.sampled_from(LAYOUTS), st.binary(max_size=9), st.binary(max_size=20))
def test_scan(strings: list[bytes], layout: tuple[int, bool], before: bytes, after: bytes) -> None:
    assert native is not None
    data, start = before + packed(strings, *layout) + after, len(before)
    end = len(data) - len(after)
    assert native.Strings.walk(data, start, len(strings), *layout) == (len(strings), end)
    expected = [string.decode() for string in strings] if all(map(is_plain, strings)) else None
    assert scanned(data[:end], len(strings), *layout, start=start) == expected
    assert scanned(data, len(strings), *layout, start=start) == expected
    for block in (1, 3, 40):
        assert read_in_blocks(data[:end], start, len(strings), layout, block) == expected
    assert read_in_blocks(data[: end - 1], start, len(strings), layout, 40) is None or start == end


def read_in_blocks(
    data: bytes, position: int, count: int, layout: tuple[int, bool], block: int
) -> list[str] | None:
    """What a `Scanner` makes of blocks, each of which is larger if no string fits in it."""
    assert native is not None
    scanner, left, size = native.Scanner(count), count, block
    while left and size <= len(data) + block:
        done, end = scanner.add(data[position : position + size], 0, left, *layout)
        position, left, size = position + end, left - done, block if done else size + block
    found = scanner.take()
    return None if found is None else found.to_list()


def test_a_scanner_takes_no_more_strings_than_it_was_made_for() -> None:
    assert native is not None
    data, scanner = packed([b"a", b"b"], 8, False), native.Scanner(1)
    assert scanner.add(data, 0, 2, 8, False) == (1, 9)
    assert scanner.add(data, 9, 1, 8, False) == (0, 9)
    assert scanner.take().to_list() == ["a"]
    assert scanner.take().to_list() == []  # they were taken
    assert scanner.add(data, 0, 2, 8, False) == (0, 0)


def test_a_scanner_grows() -> None:
    assert native is not None
    texts = ["a" * 5000, *map(str, range(3000)), "b" * 100_000]
    data, scanner = packed([text.encode() for text in texts], 8, False), native.Scanner(len(texts))
    assert scanner.add(data, 0, len(texts), 8, False) == (len(texts), len(data))
    assert scanner.take().to_list() == texts


def test_a_count_that_lies_takes_no_memory() -> None:
    assert native is not None
    scanner = native.Scanner(2**32 - 2)
    assert scanner.add(packed([b"a"], 8, False), 0, 2**32 - 2, 8, False) == (1, 9)
    assert scanner.take() is None


@bounded(200)
@given(st.lists(st.text(max_size=12).map(str.encode), min_size=1, max_size=6), st.sampled_from(LAYOUTS))
def test_scan_of_what_is_cut_off(strings: list[bytes], layout: tuple[int, bool]) -> None:
    assert native is not None
    data = packed(strings, *layout)
    for end in range(len(data)):
        assert scanned(data[:end], len(strings), *layout) is None
        ends = [len(packed(strings[:count], *layout)) for count in range(len(strings) + 1)]
        whole = sum(each <= end for each in ends) - 1
        assert native.Strings.walk(data[:end], 0, len(strings), *layout) == (whole, ends[whole])


@pytest.mark.parametrize(("width", "big_endian"), LAYOUTS)
@pytest.mark.parametrize("length", [2**31, 2**32 - 1, 2**63, 2**64 - 1, 2**64 - 8])
def test_lengths_that_lie(width: int, big_endian: bool, length: int) -> None:
    assert native is not None
    lie = min(length, 2 ** (8 * width) - 1).to_bytes(width, "big" if big_endian else "little")
    data = packed([b"a"], width, big_endian) + lie + b"b" * 40
    assert scanned(data, 2, width, big_endian) is None
    assert native.Strings.walk(data, 0, 2, width, big_endian) == (1, width + 1)
    for count, start in ((length, 0), (1, length), (length, length)):
        assert scanned(data, count, width, big_endian, start) is None
        assert native.Strings.walk(data, start, count, width, big_endian)[0] < count


EDGES = (
    b"\x00\x41\x7f\x80\x8f\x90\x9f\xa0\xbf\xc0\xc1\xc2\xdf\xe0\xe1\xec\xed\xee\xef\xf0\xf1\xf3\xf4\xf5\xff"
)


@pytest.mark.slow
@pytest.mark.parametrize("first", EDGES)
def test_utf8_of_up_to_four_bytes(first: int) -> None:
    for size in range(4):
        for rest in product(EDGES, repeat=size):
            string = bytes((first, *rest))
            assert (scanned(packed([string], 4, False), 1, 4) is not None) == is_plain(string)


@pytest.mark.parametrize(
    "string", [b"\xc3\xa9", b"\xe2\x82\xac", b"\xf0\x9f\x99\x82", b"\xe2\x82", b"\xa9", b"\0"]
)
def test_utf8_at_every_place(string: bytes) -> None:
    for before in range(70):
        for after in (0, 1, 15, 16, 17, 4096):
            text = b"x" * before + string + b"y" * after
            assert (scanned(packed([text], 8, False), 1) is not None) == is_plain(string)


@pytest.mark.parametrize("text", ["é", "€", "🙂"])
def test_halves_of_a_character_are_no_strings(text: str) -> None:
    data = text.encode()
    for cut in range(1, len(data)):
        strings = [b"a", data[:cut], data[cut:], b"b"]
        assert scanned(packed(strings, 8, False), 4) is None
        assert scanned(packed([b"a", data[:cut], b"", data[cut:]], 8, False), 4) is None


# ---- finding --------------------------------------------------------------------------------------------


@bounded(200)
@given(st.lists(st.text(max_size=40) | st.text(alphabet="ab", max_size=3), max_size=60))
def test_find(texts: list[str]) -> None:
    assert native is not None
    strings = native.Strings.of(texts)
    assert strings.to_list() == texts
    repeated = [index for index, text in enumerate(texts) if text in texts[:index]]
    for _ in range(2):
        assert strings.index() == (repeated[0] if repeated else -1)
    assert [strings.find(text) for text in texts] == list(map(texts.index, texts))
    assert all(strings.find(text + "c") == -1 for text in texts if text + "c" not in texts)


def test_find_of_what_no_strings_can_have() -> None:
    assert native is not None
    strings = native.Strings.of(["a"])
    with pytest.raises(ValueError, match="index"):
        strings.find("a")
    strings.index()
    assert strings.find("\ud800") == -1
    with pytest.raises(TypeError):
        strings.find(None)
    with pytest.raises(UnicodeEncodeError):
        native.Strings.of(["\ud800"])


@bounded(200)
@given(
    st.lists(st.text("ab é", min_size=1, max_size=4), max_size=20),
    st.lists(st.text("ab é", max_size=6), max_size=9),
)
def test_tokens_that_merges_make(tokens: list[str], merges: list[str]) -> None:
    found = native.Strings.of(tokens)
    found.index()
    made = [
        tokens.index(left + right) if {left, right, left + right} <= set(tokens) else -1
        for left, right in map(parts, merges)
    ]
    assert list(array("i", native.Strings.of(merges).made_tokens(found))) == made


def test_merges_are_looked_up_in_indexed_tokens() -> None:
    with pytest.raises(ValueError, match="index"):
        native.Strings.of(["a b"]).made_tokens(native.Strings.of(["a", "b", "ab"]))


# ---- as a list and a dictionary -------------------------------------------------------------------------

TEXTS = ["b", "a", "Ġé", "", "🙂", "Hello world"]
IDS = dict(zip(TEXTS, range(len(TEXTS))))


def outcome(act: Callable[[Any], object], on: object) -> object:
    try:
        return act(on)
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("used", [False, True])
@pytest.mark.parametrize(
    "act",
    [
        len,
        list,
        repr,
        hash,
        sorted,
        bool,
        lambda texts: texts[0],
        lambda texts: texts[-1],
        lambda texts: texts[6],
        lambda texts: texts[-7],
        lambda texts: texts["0"],
        lambda texts: texts[1:4],
        lambda texts: texts[::-2],
        lambda texts: list(reversed(texts)),
        lambda texts: texts.index("Ġé"),
        lambda texts: texts.index("c"),
        lambda texts: texts.count("a"),
        lambda texts: ("a" in texts, "c" in texts, 1 in texts),
        lambda texts: (texts == TEXTS, [*TEXTS] == texts, texts != TEXTS),
        lambda texts: (texts == TEXTS[:-1], texts == tuple(TEXTS), texts == [*TEXTS[:-1], "c"]),
        lambda texts: [*texts[:1], *texts],
        lambda texts: dict(enumerate(texts)),
    ],
)
def test_lazy_strings_are_as_a_list(act: Callable[[Any], object], used: bool) -> None:
    lazy = lazy_strings(TEXTS)
    assert isinstance(lazy, LazyStrings)
    if used:
        assert lazy.to_list() == TEXTS
    assert outcome(act, lazy) == outcome(act, TEXTS)


@pytest.mark.parametrize("used", [False, True])
@pytest.mark.parametrize(
    "act",
    [
        len,
        list,
        repr,
        hash,
        bool,
        dict,
        lambda ids: ids["Ġé"],
        lambda ids: ids["c"],
        lambda ids: ids[None],
        lambda ids: ids["\ud800"],
        lambda ids: [ids.get("a"), ids.get("c"), ids.get("c", 7), ids.get(None), ids.get("\ud800")],
        lambda ids: ["" in ids, "c" in ids, None in ids, 1 in ids, "\ud800" in ids],
        lambda ids: (list(ids.keys()), list(ids.values()), list(ids.items())),
        lambda ids: ids.keys() & {"a", "c"},
        lambda ids: {**ids},
        lambda ids: (ids == IDS, IDS.copy() == ids, ids != IDS, ids == {}, ids == 1),
    ],
)
def test_lazy_ids_are_as_a_dictionary(act: Callable[[Any], object], used: bool) -> None:
    lazy = lazy_ids(lazy_strings(TEXTS))
    assert isinstance(lazy, LazyIds)
    if used:
        assert lazy.to_dict() == IDS
    assert outcome(act, lazy) == outcome(act, IDS)


def test_lazy_ones_are_equal_by_what_they_hold() -> None:
    texts, others = lazy_strings(TEXTS), lazy_strings([*TEXTS[:-1], "Hello worlds"])
    assert texts == lazy_strings(list(TEXTS)) != others
    assert lazy_ids(texts) == lazy_ids(lazy_strings(list(TEXTS))) != lazy_ids(others)
    assert lazy_strings(["ab", "c"]) != lazy_strings(["a", "bc"])


def test_lazy_ones_do_not_change() -> None:
    for lazy in (lazy_strings(TEXTS), lazy_ids(lazy_strings(TEXTS))):
        with pytest.raises(TypeError):
            lazy[0] = "c"  # type: ignore[index]
        with pytest.raises(TypeError):
            del lazy[0]  # type: ignore[attr-defined]


def test_as_dict() -> None:
    lazy, given = lazy_ids(lazy_strings(TEXTS)), dict(IDS)
    assert type(as_dict(lazy)) is dict
    assert as_dict(lazy) == IDS
    assert as_dict(given) is given


COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    **{
        f"pickle protocol {number}": lambda value, number=number: pickle.loads(pickle.dumps(value, number))
        for number in range(pickle.HIGHEST_PROTOCOL + 1)
    },
}


@pytest.mark.parametrize("how", COPIES)
def test_copies(how: str) -> None:
    texts = lazy_strings(TEXTS)
    pair = COPIES[how]((texts, lazy_ids(texts)))
    assert pair == (texts, lazy_ids(texts)) == (TEXTS, IDS)
    assert [type(each) for each in pair] == [LazyStrings, LazyIds]
    assert pair[1]._texts is pair[0]


def test_equal_strings_in_use_are_shared_with_what_is_made_of_them() -> None:
    """Only long lists: a short one is made in no time."""
    texts = list(map(str, range(2000)))
    one, same, other = (
        shared_strings(LazyStrings(native.Strings.of(each))) for each in (texts, texts, [*texts[1:], "0"])
    )
    assert [same is one, other is one] == [True, False]
    assert made_once(one, first_indexes) is made_once(same, first_indexes) is lazy_ids(same).to_dict()  # type: ignore[attr-defined]
    few = [shared_strings(LazyStrings(native.Strings.of(texts[:10]))) for _ in range(2)]
    assert few[0] is not few[1]


def test_strings_that_are_no_longer_in_use_are_not_kept() -> None:
    texts = list(map(str, range(2000)))
    one = shared_strings(LazyStrings(native.Strings.of(texts)))
    one.made_once(first_indexes)
    gone = weakref.ref(one)
    del one
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("texts", [[], ["a", "b"], ["a", "b", "a"]])
def test_of_equal_strings_the_first_index_counts(texts: list[str]) -> None:
    expected = {text: texts.index(text) for text in texts}
    assert made_once(texts, first_indexes) == made_once(lazy_strings(texts), first_indexes) == expected
    for some in (texts, lazy_strings(texts)):
        assert [finder(some)(text) for text in ("a", "b", "c")] == [expected.get(t, -1) for t in "abc"]
