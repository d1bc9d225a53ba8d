"""The compiled engine gives the ids of the reference engine, on purpose where blocks, caches and threads have edges.

What every engine promises is in test_tokenizer.py and beside it, which run on both. Here are the two side by side over
all families, and what is the compiled engine's alone: threads, arrays without a copy, interruption, a bounded cache.
"""

from __future__ import annotations

import copy
import gc
import os
import pickle
import random
import signal
import subprocess
import sys
from array import array
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic import (
    CHARACTERS,
    ONE_OF_EACH_FAMILY,
    WORDS,
    bounded,
    broken_bytes,
    byte_pairs,
    byte_tokens,
    gpt2_vocabulary,
    make_vocabulary,
    native_encoder,
    texts,
    tokenizer_as,
)

from ggufbpe import Tokenizer, tokenizer
from ggufbpe.models.dna import K_MER_MARKER
from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS
from ggufbpe.models.vocabulary import CONTROL, LSTRIP, RSTRIP, USER_DEFINED
from ggufbpe.native import native

# Where it must be, in CI, these tests fail without it.
IS_NEEDED = os.environ.get("CI") == "true" and os.environ.get("GGUFBPE_ENGINE") != "reference"
pytestmark = pytest.mark.skipif(native is None and not IS_NEEDED, reason="there is no compiled engine")

BLOCK = 1 << 16  # bytes: src/split/splitter.h, Splitter::BLOCK
PART = 1 << 17  # bytes that a thread takes of a long text: src/encoder.cpp
SEARCHED = 1 << 20  # bytes in which a thread looks for special tokens: src/encoder.cpp
CACHE = 4 << 20  # bytes


# Ids by word, one cache for all families that encode words alike: merging in Python takes most of the time here.
_MERGED_WORDS: dict[tuple[object, ...], Callable[[str], tuple[int, ...]]] = {}


class Engines:
    """Both engines over the same vocabulary."""

    def __init__(self, name: str) -> None:
        vocabulary = tokenizer_as(name).vocabulary
        self.native, self.reference = Tokenizer(vocabulary, "native"), Tokenizer(vocabulary, "reference")
        encoder = byte_pairs(self.reference).word_ids.encoder
        entry = vocabulary.pre_tokenizer
        flags = (entry.byte_encode, entry.ignore_merges, entry.newline_runs, entry.prepend_space)
        encoder.ids = _MERGED_WORDS.setdefault(
            (type(encoder), id(vocabulary.merges), *flags), cache(encoder.ids)
        )

    def expected(self, text: str | bytes) -> list[int]:
        return self.reference.encode(text, add_special=False)

    def found(self, text: str | bytes | memoryview, threads: int = 1) -> list[int]:
        ids: list[int] = self.native.encode_to_numpy(text, add_special=False, threads=threads).tolist()
        return ids

    def finds(self, text: bytes, before: Any, others: list[int]) -> bool:
        """Whether the ids are those of an array and others, which takes less time than lists."""
        ids = self.native.encode_to_numpy(text, add_special=False)
        return np.array_equal(ids[: len(before)], before) and ids[len(before) :].tolist() == others


@cache
def engines_of(name: str) -> Engines:
    return Engines(name)


@pytest.fixture(params=ONE_OF_EACH_FAMILY)
def engines(request: pytest.FixtureRequest) -> Engines:
    """Both engines, of each family in turn."""
    return engines_of(request.param)


# ---- which engine ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("engine", "runs"), [("auto", "native"), ("native", "native"), ("reference", "reference")]
)
def test_engine_says_what_makes_the_ids(engine: Any, runs: str, gpt2_path: Path) -> None:
    for tok in (Tokenizer.from_gguf(gpt2_path, engine=engine), Tokenizer(gpt2_vocabulary(), engine=engine)):
        assert tok.engine == runs
        assert tok.encode("Hello world") == [15496, 995]
        assert tok._engine.name == runs


def test_auto_is_the_default(gpt2_path: Path) -> None:
    assert Tokenizer.from_gguf(gpt2_path).engine == Tokenizer(gpt2_vocabulary()).engine == "native"


@pytest.mark.parametrize("engine", ["", "fast", "Native", None, True])
def test_an_engine_that_does_not_exist(engine: Any, gpt2_path: Path) -> None:
    with pytest.raises(ValueError, match=f"'auto', 'native' or 'reference', not {engine!r}"):
        Tokenizer(gpt2_vocabulary(), engine)
    with pytest.raises(ValueError, match="'auto', 'native' or 'reference'"):
        Tokenizer.from_gguf(gpt2_path, engine=engine)


def test_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer, "native", None)
    monkeypatch.delenv("GGUFBPE_ENGINE", raising=False)
    assert (
        Tokenizer(gpt2_vocabulary()).engine == Tokenizer(gpt2_vocabulary(), "reference").engine == "reference"
    )
    assert Tokenizer(gpt2_vocabulary()).encode("Hello world") == [15496, 995]
    monkeypatch.setattr(tokenizer, "why_not_native", "it is not installed")
    with pytest.raises(
        RuntimeError, match=r"compiled engine is not available: it is not installed\. .* C\+\+17 compiler"
    ):
        Tokenizer(gpt2_vocabulary(), "native")


def in_a_process(code: str, *arguments: object, **environment: str) -> str:
    """What a program prints that has the package, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *map(str, arguments)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_environment_turns_it_off(gpt2_path: Path) -> None:
    code = """if True:
        import sys
        from ggufbpe import Tokenizer
        tok = Tokenizer.from_gguf(sys.argv[1])
        try:
            Tokenizer.from_gguf(sys.argv[1], engine="native")
        except RuntimeError as error:
            print(tok.engine, tok.encode("Hello world"), "GGUFBPE_ENGINE" in str(error), "_native" in str(sys.modules))
    """
    assert in_a_process(code, gpt2_path, GGUFBPE_ENGINE="reference") == "reference [15496, 995] True False"
    code = "import sys, ggufbpe; print(ggufbpe.Tokenizer.from_gguf(sys.argv[1]).engine)"
    assert in_a_process(code, gpt2_path, GGUFBPE_ENGINE="") == "native"


# ---- the same ids ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_random_texts(engines: Engines) -> None:
    @bounded(150)
    @given(st.one_of(texts, broken_bytes), st.booleans(), st.booleans())
    def check(text: str | bytes, add_special: bool, parse_special: bool) -> None:
        flags = {"add_special": add_special, "parse_special": parse_special}
        assert engines.native.encode(text, **flags) == engines.reference.encode(text, **flags)
        assert engines.native.count(text, **flags) == engines.reference.count(text, **flags)

    check()


@pytest.mark.slow
@pytest.mark.parametrize("name", PRE_TOKENIZERS)
def test_every_name(name: str) -> None:
    both, dice = Engines(name), random.Random(name)
    for _ in range(20):
        text = "".join(dice.choices([*CHARACTERS, *WORDS, "the", "of", " a"], k=dice.randrange(120)))
        assert both.found(text) == both.expected(text), text


special_texts = st.lists(
    st.sampled_from(["<", "<s>", "<s>>", "s>", "<<", " ", "\n", "  \n", "a", "é", "\u3000", "ab<s"]),
    max_size=12,
).map("".join)


@bounded(300)
@given(special_texts, st.sampled_from([0, LSTRIP, RSTRIP, LSTRIP | RSTRIP]), st.booleans(), st.booleans())
def test_special_tokens(text: str, strips: int, add_special: bool, parse_special: bool) -> None:
    vocabulary = make_vocabulary(
        [*byte_tokens(), "<s>", "<<", "ab<s"],
        attributes={"<s>": CONTROL | strips, "<<": USER_DEFINED, "ab<s": USER_DEFINED | strips},
        special_ids={"bos": 256, "eos": 257},
        add_bos=True,
        add_eos=True,
    )
    flags = {"add_special": add_special, "parse_special": parse_special}
    ids = [Tokenizer(vocabulary, engine).encode(text, **flags) for engine in ("native", "reference")]
    assert ids[0] == ids[1]


# Models with a step of their own before splitting, by model, pre-tokenizer, and whether words become lower case.
OWN_STEPS = {
    "k-mers": ("hybriddna", "qwen2", False),
    "k-mers, spaces in words": ("hybriddna", "gpt-2", False),
    "k-mers, escaped spaces": ("hybriddna", "gemma4", False),
    "white space": ("whitespace", "whitespace", False),
    "white space, lower case": ("whitespace", "whitespace", True),
    "white space, split by the lower case": ("whitespace", "gpt-4o", True),
    "white space, escaped spaces": ("whitespace", "gemma4", True),
}
SEQUENCES = [
    *("<dna>", "</dna>", "ACGTAC", "acgta", "ACGN", "<s>"),
    *("\u3000", "\xa0", " Ab", "İB", "\u212a", "Ⱥ", "x1Y"),
]


def own_steps_engines(name: str) -> list[Tokenizer]:
    model, pre, lowercase = OWN_STEPS[name]
    k_mers = [k_mer + K_MER_MARKER for k_mer in ("ACGTAC", "ACGAAA")]
    vocabulary = make_vocabulary(
        [*byte_tokens(), "<dna>", "</dna>", "<oov>", "ab", "ĠA", "<s>", *k_mers],
        merges=["a b", "Ġ A"],
        attributes={"<s>": CONTROL},
        special_ids={"bos": 256},
        add_bos=True,
        model=model,
        pre=pre,
        lowercase=lowercase,
    )
    return [Tokenizer(vocabulary, engine) for engine in ("native", "reference")]


@pytest.mark.slow
@pytest.mark.parametrize("name", OWN_STEPS)
def test_models_with_a_step_of_their_own(name: str) -> None:
    tok, reference = own_steps_engines(name)

    @bounded(200)
    @given(st.one_of(texts, broken_bytes, st.lists(st.sampled_from(SEQUENCES)).map("".join)), st.booleans())
    def check(text: str | bytes, parse_special: bool) -> None:
        expected = reference.encode(text, parse_special=parse_special)
        assert tok.encode(text, parse_special=parse_special) == expected
        assert tok.encode_to_numpy(text, parse_special=parse_special, threads=2).tolist() == expected
        assert tok.encode_batch([text, text], parse_special=parse_special, threads=2) == [expected] * 2
        assert tok.count(text, parse_special=parse_special) == len(expected)

    check()


@pytest.mark.slow
@pytest.mark.parametrize("name", OWN_STEPS)
def test_long_texts_of_models_with_a_step_of_their_own(name: str) -> None:
    """Threads cut at white space, and between k-mers."""
    tok, reference = own_steps_engines(name)
    dice = random.Random(name)
    mixed = "".join(dice.choices([*SEQUENCES, " ", "\n", "aB", "é"], k=300_000))
    long_word = "aB" * 200_000
    sequence = "<dna>" + "ACGTACacgtnACG" * 60_000 + "</dna>"
    for text in (mixed, mixed.encode() + b"\xff \xe3\x80", long_word, sequence, " " * 500_000):
        expected = reference.encode(text)
        assert tok.encode(text) == expected
        for threads in (1, 2, 3):
            assert tok.encode_to_numpy(text, threads=threads).tolist() == expected
            assert tok.count(text, threads=threads) == len(expected)


# Merges of a model that leaves whole lines to them. The compiled engine cuts lines where merges join nothing.
LINE_MERGES = {
    "groups apart": ["a b", "( )", "ab a", "\t \t"],
    "groups joined": ["b (", "a b", ") 1", "ab ()"],
    "digits": ["1 2", "a b"],
    "white space beyond ASCII": ["\xa0 a", "( \xa0", "a b"],
    "vertical tabs": ["\v a", "( \v", "a b"],
    "line breaks": ["\n \n", "a b"],
    "spaces": ["\u2581 a", "\u2581 (", ") \u2581", ")\u2581 a"],
    "beyond ASCII": ["é (", ") é", "é a", "a é"],
    "nothing": [],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LINE_MERGES)
def test_lines_are_cut_only_where_nothing_is_merged(name: str) -> None:
    merges = LINE_MERGES[name]
    characters = "ab()12 \t\n\v\xa0é\u2581"
    tokens = [*characters.replace(" ", ""), *(f"<0x{byte:02X}>" for byte in range(256))]
    tokens += [merge.replace(" ", "") for merge in merges]
    vocabulary = make_vocabulary(tokens, merges=merges, model="gemma4", pre="gemma4")
    tok, reference = (Tokenizer(vocabulary, engine) for engine in ("native", "reference"))

    @bounded(200)
    @given(st.text(st.sampled_from(characters), max_size=40))
    def check(text: str) -> None:
        assert tok.encode(text) == reference.encode(text)

    check()


# ---- edges: words, places in memory, blocks --------------------------------------------------------------

# What words of a given length are made of, and what may follow or go before.
KINDS = {
    "letters": "etaoinshrdlu",
    "capitals": "ETAOINSHRDLU",
    "digits": "0123456789",
    "punctuation": ".,!?-(){}=",
    "spaces": " ",
    "line breaks": "\n",
    "white space": " \t\n\r\u3000",
    "letters beyond ASCII": "éßжקअ",
    "Han": "中文字漢",
    "marks": "a\u0301\u093e",
    "symbols of four bytes": "🙂🦙𝟘",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_words_of_every_length(engines: Engines, kind: str) -> None:
    """Up to 15 bytes a word is its own key in the cache; beyond 1024 it is not kept. Twice: new, and from the cache."""
    dice = random.Random(kind)
    for length in (*range(1, 301), 1023, 1024, 1025):
        word = "".join(dice.choices(KINDS[kind], k=length))
        text = f"{word} x{word}\n" if length % 2 else f"x {word}"
        expected = engines.expected(text)
        assert engines.found(text) == expected, text
        assert engines.found(text) == expected, text


def test_text_at_every_place_in_memory(engines: Engines) -> None:
    """What lies before and behind a text does not count: the same bytes at every offset, and cut at every end."""
    text = "It's 1234 of 中文字, déjà vu...   \n\n ok 🙂🙂 Zzzzzzzzzzzzzzzzzzzzzz".encode()
    whole = engines.expected(text)
    around = "aé1 \n".encode()
    for offset in range(65):
        memory = memoryview((around * 20)[:offset] + text + around * 20)
        assert engines.found(memory[offset : offset + len(text)]) == whole
    for end in range(len(text)):
        expected = engines.expected(text[:end])
        for offset in (0, 1, 15, 16, 31, 63):
            memory = memoryview((around * 20)[:offset] + text + around * 20)
            assert engines.found(memory[offset : offset + end]) == expected


@cache
def some_lines() -> list[bytes]:
    """Lines that each begin with a letter: no word goes on from one to the next."""
    dice, made = random.Random(1), []
    parts = [*CHARACTERS, *"ees  aio", " the", " of", "1234", "中文", "🙂🙂", "don't", "    ", "ÀÉ"]
    parts = [part for part in parts if part not in "<|>\r\v"]
    for _ in range(1000):
        body = "".join(dice.choices(parts, k=dice.randrange(60)))
        made.append(f"{dice.choice('AbCd')}{body}.\n".encode())
    return made


def lines(seed: str, size: int) -> list[bytes]:
    """At least `size` bytes of them, in an order that follows from the seed."""
    dice, made, length = random.Random(seed), [], 0
    while length < size:
        made.append(dice.choice(some_lines()))
        length += len(made[-1])
    return made


@pytest.mark.slow
def test_text_that_ends_anywhere_in_a_block(engines: Engines) -> None:
    """The end of a text, also amid a character, around the ends of blocks and at other places in them."""
    parts = lines("blocks", 2 * BLOCK + 2000)
    ids = [engines.expected(part) for part in parts]
    text = b"".join(parts)
    whole = engines.expected(text)
    assert whole == [token for part in ids for token in part]  # lines stand alone
    starts = [0, *accumulate(map(len, parts))]
    ends = {BLOCK + near for near in range(-70, 71)} | {2 * BLOCK + near for near in range(-20, 21)}
    ends |= set(random.Random(1).sample(range(2 * BLOCK), 60))
    expected, count, line = np.array(whole), 0, 0
    for end in sorted(ends):
        while starts[line + 1] <= end:
            count += len(ids[line])
            line += 1
        assert engines.finds(text[:end], expected[:count], engines.expected(text[starts[line] : end])), end


@cache
def most_of_a_block() -> bytes:
    filler = b"".join(lines("filler", BLOCK - 200))
    return filler[: filler.rindex(b"\n", 0, BLOCK - 200) + 1]


@cache
def ids_of_most_of_a_block(engines: Engines) -> Any:
    return np.array(engines.expected(most_of_a_block()))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_runs_across_the_ends_of_blocks(engines: Engines, kind: str) -> None:
    """A run of what may not be cut, at every distance from the end of a block that a vector has."""
    unit, filler, before = KINDS[kind], most_of_a_block(), ids_of_most_of_a_block(engines)
    for distance in range(0, 36, 5):
        run = (unit * 100)[: 40 + distance]
        head = "B" * (BLOCK - len(filler) - distance - len(run.encode()) // 2) + " "
        tail = f"{head}{run}x it's {run} end"
        assert engines.finds(filler + tail.encode(), before, engines.expected(tail)), (kind, distance)


# ---- threads --------------------------------------------------------------------------------------------


@cache
def text_with_runs_at_the_cuts(run: bytes) -> bytes:
    """A text that is long enough to be shared out, with `run` where it would be cut."""
    made = b""
    for cut in (PART, 2 * PART):
        size = cut - len(run) // 2 - len(made)
        before = b"".join(lines(f"before {cut}", size))[:size]
        made += before[: before.rindex(b"\n") + 1] + run + b"x\n"
    return made + b"".join(lines("after", PART))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_threads_share_out_a_long_text(engines: Engines, kind: str) -> None:
    run = KINDS[kind].encode() * (7000 // len(KINDS[kind].encode()))
    text = text_with_runs_at_the_cuts(run)
    alone = engines.native.encode_to_numpy(text)
    for threads in (2, 5):
        assert np.array_equal(engines.native.encode_to_numpy(text, threads=threads), alone)
        assert engines.native.count(text, threads=threads) == len(alone)


@pytest.mark.slow
def test_threads_give_the_ids_of_the_reference(engines: Engines) -> None:
    text = text_with_runs_at_the_cuts(b"".join(unit.encode() * 60 for unit in KINDS.values()))
    assert engines.found(text, threads=3) == engines.expected(text)


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["a", "1", " ", "\n", ".", "é", "中", "\u0301", "ab ", " a", "\n\n a"])
def test_threads_on_text_that_may_not_be_cut(unit: str) -> None:
    for name in ("default", "deepseek-llm", "qwen35", "sarvam-moe"):
        tok = engines_of(name).native
        text = unit * (5 * PART // 2 // len(unit.encode()))
        alone = tok.encode_to_numpy(text)
        assert np.array_equal(tok.encode_to_numpy(text, threads=4), alone)
        assert tok.count(text, threads=4) == len(alone)


def test_threads_with_special_tokens_and_flags() -> None:
    vocabulary = gpt2_vocabulary()._replace(add_bos=True, add_eos=True)
    both = [Tokenizer(vocabulary, engine) for engine in ("native", "reference")]
    text = b"".join(
        line + b"<|endoftext|>" * (number % 3) for number, line in enumerate(lines("x", 3 * PART))
    )
    for add_special in (False, True):
        for parse_special in (False, True):
            flags = {"add_special": add_special, "parse_special": parse_special}
            expected = both[1].encode(text, **flags)
            assert both[0].encode_to_numpy(text, threads=4, **flags).tolist() == expected
            assert both[0].count(text, threads=4, **flags) == len(expected)


@pytest.mark.parametrize("slow", ["x" * 3 * PART, "\u0301" * PART, ""])
def test_threads_wait_for_a_part_before_theirs(slow: str) -> None:
    """Ids of later parts are there first, and are more than there was room for: each byte is a token."""
    tok = Tokenizer(make_vocabulary(byte_tokens()), "native")
    text = (slow + "\n" + "".join(f"{number} é中🙂\n" for number in range(60_000))).encode()
    alone = tok.encode_to_numpy(text, add_special=False)
    assert len(alone) == len(text)
    for threads in (2, 3, 9):
        for _ in range(5):
            found = tok.encode_to_numpy(text, add_special=False, threads=threads)
            assert np.array_equal(found, alone)


@pytest.mark.slow
@pytest.mark.parametrize("strips", [0, LSTRIP | RSTRIP])
def test_threads_look_for_special_tokens_across_their_ends(strips: int) -> None:
    """A token, and a longer one, at every distance from where the next thread begins to look."""
    vocabulary = make_vocabulary(
        [*byte_tokens(), "<sep>", "<sep><sep>", "p>"],
        attributes={"<sep>": CONTROL | strips, "<sep><sep>": USER_DEFINED, "p>": USER_DEFINED},
    )
    tok = Tokenizer(vocabulary, "native")
    for distance in range(13):
        text = "é" * ((SEARCHED - distance) // 2) + "x" * (distance % 2) + " <sep><sep> <sep> a"
        alone = tok.encode_to_numpy(text)
        assert np.array_equal(tok.encode_to_numpy(text, threads=2), alone)
        assert tok.count(text, threads=2) == len(alone)
        tail = tok.encode(text[-40:])
        assert alone[-len(tail) :].tolist() == tail


@pytest.mark.slow
@pytest.mark.parametrize("last", ["é", "中", "🙂", "\x80", "\x80\x80\x80\x80", "\xf0\x9f", "\xc3"])
def test_threads_check_bytes_across_their_ends(last: str) -> None:
    """A character, or what is none, at every distance from where the next thread begins to check."""
    tok = Tokenizer(gpt2_vocabulary(), "native")
    data = last.encode("latin-1") if last[0] <= "\xf0" and last != "é" else last.encode()
    for distance in range(len(data) + 2):
        text = b"a " * (SEARCHED // 2) + b"."
        text = text[: SEARCHED - distance] + data + b" the end"
        alone = tok.encode_to_numpy(text)
        assert np.array_equal(tok.encode_to_numpy(text, threads=2), alone)
        replaced = text.decode("utf-8", "surrogateescape")
        expected = "".join("\ufffd" if "\udc80" <= char <= "\udcff" else char for char in replaced)
        assert np.array_equal(tok.encode_to_numpy(expected), alone)


def batch_texts() -> list[str | bytes]:
    """Some thousand short ones, empty ones among them, and some long ones."""
    dice = random.Random(5)
    made: list[str | bytes] = []
    for number in range(3000):
        text = "".join(dice.choices([*CHARACTERS, *WORDS], k=dice.choice((0, 1, 3, 10, 60))))
        made.append(text.encode() + b"\xff" if number % 7 == 0 else text)
    for number in range(5):
        made.insert(dice.randrange(len(made)), b"".join(lines(str(number), BLOCK * dice.randrange(1, 12))))
    return made


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt-2", "gemma4", "deepseek-llm"])
def test_a_batch_has_the_ids_of_its_texts_in_their_order(name: str) -> None:
    tok, batch = Tokenizer(tokenizer_as(name).vocabulary, "native"), batch_texts()
    expected = Tokenizer(tok.vocabulary, "reference").encode_batch(batch)
    for threads in (None, 1, 2, 7, 1000):
        assert tok.encode_batch(batch, threads=threads) == expected
        arrays = tok.encode_batch_to_numpy(tuple(batch), threads=threads)
        assert [found.tolist() for found in arrays] == expected
        assert {found.dtype for found in arrays} == {np.dtype(np.int32)}


def test_a_batch_may_be_any_iterable() -> None:
    tok = Tokenizer(gpt2_vocabulary(), "native")
    assert tok.encode_batch(iter(["Hello", b" world"])) == [[15496], [995]]
    assert tok.encode_batch(text for text in ("Hello", "")) == [[15496], []]
    assert tok.encode_batch({"Hello": 1}) == [[15496]]
    assert tok.encode_batch([]) == tok.encode_batch_to_numpy([]) == []
    plain = tok.encode("<|endoftext|>", parse_special=False)
    assert tok.encode_batch(["<|endoftext|>"], parse_special=False) == [plain]


@pytest.mark.slow
def test_many_threads_on_one_tokenizer() -> None:
    """The cache is empty when they meet, and each of them shares out its texts, too."""
    vocabulary, batch = gpt2_vocabulary(), batch_texts()[:600]
    expected = Tokenizer(vocabulary, "reference").encode_batch(batch)
    text = b"".join(lines("many", 3 * BLOCK))
    ids = Tokenizer(vocabulary, "reference").encode(text)
    for _ in range(5):
        tok = Tokenizer(vocabulary, "native")

        def work(number: int, tok: Tokenizer = tok) -> bool:
            if number % 2:
                return tok.encode_batch(batch, threads=2) == expected
            return tok.encode_to_numpy(text, threads=2).tolist() == ids and tok.count(text) == len(ids)

        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(work, range(16)))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_has_a_tokenizer_that_works() -> None:
    code = """if True:
        import os, sys
        from ggufbpe import Tokenizer
        from ggufbpe.models.loading import load_vocabulary
        import ggufbpe
        tok = Tokenizer.from_gguf(sys.argv[1], engine="native")
        text = b"".join(b"line %d of text\\n" % number for number in range(200_000))
        before = tok.encode_to_numpy(text, threads=4).tolist()
        child = os.fork()
        if child == 0:
            same = tok.encode_to_numpy(text, threads=4).tolist() == before
            same = same and tok.encode_batch([text] * 3, threads=3) == [before] * 3
            os._exit(0 if same and tok.encode("a new wooord") else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), tok.encode_to_numpy(text).tolist() == before)
    """
    assert in_a_process(code, Path(gpt2_file())) == "0 True"


def gpt2_file() -> Path:
    return Path(tokenizer.__file__).parents[1] / "models" / "gpt2.gguf"


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_threads_must_be_a_positive_integer(engine: Any) -> None:
    tok = Tokenizer(gpt2_vocabulary(), engine)
    encoders: list[Callable[..., Any]] = [tok.encode_to_numpy, tok.count]
    batches: list[Callable[..., Any]] = [tok.encode_batch, tok.encode_batch_to_numpy]
    for encode, text in [*((encode, "a") for encode in encoders), *((encode, ["a"]) for encode in batches)]:
        for threads in (0, -1, -(1 << 70)):
            with pytest.raises(ValueError, match=f"threads must be 1 or more, not {threads}"):
                encode(text, threads=threads)
        for threads in (1.0, "2"):
            with pytest.raises(TypeError, match="integer"):
                encode(text, threads=threads)
        assert len(encode(text, threads=np.int64(2)) if encode != tok.count else "a") == 1


# ---- lists ----------------------------------------------------------------------------------------------


def test_lists_have_the_ids_of_arrays() -> None:
    """The ints of a list are kept for the next one; that changes no id, nor what becomes of them."""
    tok, batch = Tokenizer(tokenizer_as("default").vocabulary, "native"), batch_texts()
    arrays = [array.tolist() for array in tok.encode_batch_to_numpy(batch)]
    for threads in (1, 3):
        lists = tok.encode_batch(batch, threads=threads)
        assert lists == arrays
        assert {type(token) for ids in lists for token in ids} == {int}
        assert all(gc.is_tracked(ids) for ids in lists)  # they are the caller's, who may put anything in
    assert [tok.encode(text) for text in batch] == arrays
    del tok
    gc.collect()
    assert lists == arrays  # they outlive the tokenizer


def test_a_list_is_the_callers_own() -> None:
    tok = Tokenizer(gpt2_vocabulary(), "native")
    found, other = tok.encode("Hello world"), tok.encode("Hello world")
    assert found is not other
    found[0] += 1
    found.clear()
    assert other == tok.encode("Hello world") == [15496, 995]


def test_the_ints_of_lists_are_released() -> None:
    """As many references as before, whoever goes first, the list or the tokenizer."""
    tok = Tokenizer(gpt2_vocabulary(), "native")
    token = tok.encode("Hello")[0]
    before = sys.getrefcount(token)
    lists = [tok.encode("Hello Hello"), *tok.encode_batch(["Hello"] * 1000, threads=2), tok.encode("Hello")]
    assert {ids[0] for ids in lists} == {token}
    del lists
    assert sys.getrefcount(token) == before
    del tok
    gc.collect()
    assert sys.getrefcount(token) <= before
    assert token == 15496


def test_an_id_beyond_the_vocabulary() -> None:
    """A file may name a BOS that is no token."""
    vocabulary = make_vocabulary(byte_tokens(), special_ids={"bos": 70_000}, add_bos=True)
    expected = [70_000, *Tokenizer(vocabulary, "reference").encode("ab", add_special=False)]
    for engine in ("native", "reference"):
        tok = Tokenizer(vocabulary, engine)  # type: ignore[arg-type]
        assert tok.encode("ab") == tok.encode_to_numpy("ab").tolist() == expected
        assert tok.encode_batch(["ab", "ab"], threads=2) == [expected] * 2


# ---- arrays ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "Hello world", "Hello world " * 5000])
def test_an_array_is_the_callers_own(text: str) -> None:
    tok = Tokenizer(gpt2_vocabulary(), "native")
    expected = tok.encode(text)
    found, other = tok.encode_to_numpy(text), tok.encode_to_numpy(text)
    [in_batch] = tok.encode_batch_to_numpy([text])
    for made in (found, other, in_batch):
        assert made.dtype == np.int32
        assert made.shape == (len(expected),)
        assert made.flags.c_contiguous
        assert made.flags.writeable
        assert not isinstance(made.base, np.ndarray)  # nobody else's memory
        assert made.tolist() == expected
    assert not any(np.shares_memory(found, another) for another in (other, in_batch))
    found[:] = 7
    assert other.tolist() == tok.encode_to_numpy(text).tolist() == expected
    del tok
    gc.collect()
    assert other.tolist() == expected  # it outlives the tokenizer
    assert found.tolist() == [7] * len(expected)


def test_an_array_is_not_copied() -> None:
    """Its memory is what the engine wrote to, which numpy has from it and does not own."""
    made = Tokenizer(gpt2_vocabulary(), "native").encode_to_numpy("Hello world")
    assert not made.flags.owndata
    assert made.base is not None


# ---- texts ----------------------------------------------------------------------------------------------


class OwnBytes(bytes):
    pass


class OwnStr(str):
    __slots__ = ()


DATA = "naïve 中文 🙂, and 'quoted' 1234".encode()


@pytest.mark.parametrize(
    "text",
    [
        OwnBytes(DATA),
        OwnStr(DATA.decode()),
        bytearray(DATA),
        memoryview(DATA),
        memoryview(bytearray(DATA)),
        memoryview(b"x" + DATA + b"x")[1:-1],
        memoryview(bytes(byte for one in DATA for byte in (one, 0x20)))[::2],
        memoryview(DATA[::-1])[::-1],
        memoryview(bytes(1) * 3 + DATA)[3:],
        memoryview(array("i", range(50, 90))),  # the bytes of numbers
        memoryview(DATA[:24]).cast("B", (4, 6)),
        memoryview(DATA)[:0],
        memoryview(DATA)[::3][:0],
        memoryview(np.arange(40, 100, dtype=np.uint8).reshape(6, 10).T),  # Fortran's order
    ],
)
def test_kinds_of_text(text: Any) -> None:
    both = engines_of("default")
    expected = both.reference.encode(text)
    data = text.encode() if isinstance(text, str) else bytes(text)
    assert expected == both.reference.encode(data)
    assert both.native.encode(text) == both.native.encode(data) == expected
    assert both.native.encode_batch([text, data]) == [expected, expected]
    assert both.native.encode_to_numpy(text, threads=2).tolist() == expected
    assert both.native.count(text) == len(expected)


@pytest.mark.parametrize(
    "text", [None, 5, 1.5, ["a"], object, array("b", b"abc"), np.array([1], np.uint8), Path("a")]
)
def test_what_is_no_text(text: Any) -> None:
    """The same error from both engines, also amid a batch."""
    said = set()
    for engine in ("native", "reference"):
        tok = Tokenizer(gpt2_vocabulary(), engine)  # type: ignore[arg-type]
        one: list[Callable[[Any], Any]] = [tok.encode, tok.encode_to_numpy, tok.count]
        batch: list[Callable[[Any], Any]] = [tok.encode_batch, tok.encode_batch_to_numpy]
        for encode, what in [
            *((encode, text) for encode in one),
            *((encode, ["a", text]) for encode in batch),
        ]:
            with pytest.raises(TypeError) as caught:
                encode(what)
            said.add(str(caught.value))
    batch = "; the methods that end in _batch take several texts" if isinstance(text, (list, tuple)) else ""
    assert said == {f"text must be str or bytes, not {type(text).__name__}{batch}"}


def test_a_memoryview_that_was_released() -> None:
    for engine in ("native", "reference"):
        text = memoryview(b"abc")
        text.release()
        with pytest.raises(ValueError, match="released"):
            Tokenizer(gpt2_vocabulary(), engine).encode(text)  # type: ignore[arg-type]


def test_a_lone_surrogate_in_a_batch() -> None:
    for engine in ("native", "reference"):
        tok = Tokenizer(gpt2_vocabulary(), engine)  # type: ignore[arg-type]
        for batch in (["a", "b\udc00c", "\ud800"], ("x", b"\xff", "b\udc00")):
            with pytest.raises(ValueError, match=r"lone surrogate, U\+DC00, at character 1"):
                tok.encode_batch(batch)


def test_bytes_of_surrogates_are_text_as_llama_cpp_reads_them(engines: Engines) -> None:
    for text in (b"\xed\xa0\x80", b"a\xed\xbf\xbf b", b"\xed\xa0\xbd\xed\xb8\x80", b"\xc0\x80 \xe0\x80\xa0x"):
        assert engines.found(text) == engines.expected(text)


def test_a_text_that_changes_while_it_is_encoded_cannot_move() -> None:
    """The engine reads a bytearray where it is; nobody may make it longer meanwhile."""
    tok, text = Tokenizer(gpt2_vocabulary(), "native"), bytearray(b"".join(lines("change", 16 * PART)))
    expected = tok.encode_to_numpy(bytes(text)).tolist()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(tok.encode_to_numpy, text)
        while not waiting.done():
            try:
                text += b"x"
                text.pop()
            except BufferError:  # it is being read
                break
        assert waiting.result().tolist()[:1000] == expected[:1000]


# ---- hostile special tokens -----------------------------------------------------------------------------

HOSTILE = f"""
sys.path[:0] = {sys.path!r}
from synthetic import make_vocabulary
from ggufbpe.models.vocabulary import CONTROL
special = {{special}}
vocabulary = make_vocabulary([*{{plain!r}}, *special], attributes=dict.fromkeys(special, CONTROL))
hostile = Tokenizer(vocabulary, engine="native")
"""
HOSTILE_TOKENS: dict[str, dict[str, str]] = {
    "chains": {"plain": "a", "special": "['a' * k + 'b' for k in range(1, 4001)]"},
    "overlaps": {
        "plain": "hij",
        "special": "['abcdefg', 'efghij', *(f'x{number:05}' for number in range(150_000))]",
    },
}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no limit of processor time")
@pytest.mark.parametrize(
    ("tokens", "text", "count"),
    [
        ("chains", "'a' * 100_000 + 'b'", 96_001),  # text times the square of the longest token took 80 s
        ("overlaps", "'abcdefghij' * 400_000", 1_600_000),  # overlaps times tokens took minutes
    ],
)
def test_special_tokens_that_would_take_long_one_after_the_other(tokens: str, text: str, count: int) -> None:
    """The process is ended by the system beyond some seconds of processor time, ten times what it takes."""
    code = f"""
import resource, sys, time
from ggufbpe import Tokenizer
{HOSTILE.format(**HOSTILE_TOKENS[tokens])}
text = {text}
limit = int(time.process_time()) + 8
resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
print(hostile.count(text))
"""
    assert in_a_process(code) == str(count)


# ---- interruption ---------------------------------------------------------------------------------------

LONG_WORK = {
    "many words": "tok.encode_to_numpy(words)",
    "many words, counted": "tok.count(words)",
    "threads": "tok.encode_to_numpy(words, threads=3)",
    "one long word": "tok.encode_to_numpy(word)",
    "a batch": "tok.encode_batch_to_numpy([words[:1000]] * 60_000, threads=2)",
    "a batch of lists": "tok.encode_batch([words[:1000]] * 60_000, threads=2)",
    "broken bytes": "tok.encode_to_numpy(words + b'\\xff')",
    "special tokens": "hostile.count('a' * 3_000_000)",
    "strings of a vocabulary": "native.Strings.of(['text'] * 8_000_000)",
    "their index": "strings.index()",
    "a list of them": "strings.to_list()",
    "words that were counted": "counter.words()",
    "words to learn from": "learner.add_counted(counter, list(range(256)))",
    "words to learn from, as symbols": "learner.add_words([1, 2] * 3_000_000, ends, [1] * 3_000_000)",
    "the trie of RWKV": "engine('rwkv', 4)",
    "the trie of user-defined tokens": "engine('t5', 16)",
    "a charsmap": "engine('t5', 4, charsmap)",
}
STRINGS = "strings = native.Strings.of([str(number) for number in range(6_000_000)])"
ENGINE = f"""
    from array import array
    from ggufbpe.native.lazy_strings import LazyStrings, lazy_ids
    from ggufbpe.tokenizer.native_engine import NativeEngine
    {STRINGS.replace("6_000_000", "1_000_000")}
    texts = LazyStrings(strings)
    ids = lazy_ids(texts)
    def engine(model, kind, charsmap=b""):
        kinds = array("H", [kind]) * len(texts)
        vocabulary = tok.vocabulary._replace(
            model=model, tokens=texts, token_to_id=ids, merges=(), attributes=kinds,
            special_token_ids=(), charsmap=charsmap,
        )
        return NativeEngine(vocabulary, 1 << 20)
"""
CHARSMAP = """
    units = 1 << 23  # all of them children and keys
    size, unit = (number.to_bytes(4, "little") for number in (4 * units, 0x100 | 1 | 3 << 10))
    charsmap = size + unit * units + b"a" * (1 << 26)
"""
COUNTER = """
    from ggufbpe.models.pretokenizers import registry, compiled_splitter as tables
    counter = native.WordCounter(2)
    counter.add(tables.compiled_splitter(registry.PRE_TOKENIZERS["gpt-2"]), words[:20_000_000])
"""
LEARNER = """
    chars, raw = [chr(byte) for byte in range(256)], [bytes([byte]) for byte in range(256)]
    learner = native.Learner(chars, raw, [1] * 256, [], 1000, "lowest-ids", 1, 99, [])
"""
BEFORE_IT = {
    "words that were counted": COUNTER,
    "words to learn from": COUNTER + LEARNER,
    "words to learn from, as symbols": LEARNER + "\n    ends = list(range(2, 6_000_001, 2))",
    "special tokens": HOSTILE.format(**HOSTILE_TOKENS["chains"]).replace("\n", "\n    "),
    "their index": STRINGS,
    "a list of them": STRINGS,
    "the trie of RWKV": ENGINE,
    "the trie of user-defined tokens": ENGINE,
    "a charsmap": ENGINE + CHARSMAP,
}

INTERRUPTED = """if True:
    import random, signal, sys
    import numpy  # not amid the work: what is raised in its import, it may catch
    from ggufbpe import Tokenizer
    from ggufbpe.native import native
    dice = random.Random(1)
    tok = Tokenizer.from_gguf(sys.argv[1], engine="native")
    tok.encode_to_numpy("Hello world")
    words = dice.randbytes(24_000_000).hex(" ", 8).encode()
    word = dice.randbytes(20_000_000).translate(bytes(ord("a") + byte % 26 for byte in range(256)))
    {setup}
    calls, is_ended = 0, False
    class Ended(Exception):
        pass
    def look(*_):  # only called during the work if that looks at signals; afterwards, once at most
        global calls, is_ended
        calls += 1
        if calls >= 5 and not is_ended:  # one that comes amid this call is called in it, and may be the sixth
            is_ended = True
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise Ended
    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    try:
        {work}
    except Ended:
        print("ended by the fifth call")
    signal.setitimer(signal.ITIMER_REAL, 0)
    print(tok.encode("Hello world"))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers that signal here")
@pytest.mark.parametrize("work", LONG_WORK)
def test_signals_are_looked_at_amid_the_work(work: str) -> None:
    """A handler is called again and again during one call, and what it raises ends it."""
    code = INTERRUPTED.replace("{work}", LONG_WORK[work]).replace("{setup}", BEFORE_IT.get(work, ""))
    assert in_a_process(code, gpt2_file()).splitlines() == ["ended by the fifth call", "[15496, 995]"]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers that signal here")
def test_signals_are_looked_at_in_each_of_many_documents() -> None:
    """Most of the time goes into the documents between special tokens, each of them shorter than a block."""
    code = """if True:
        import random, signal, sys, time
        from ggufbpe import Tokenizer
        tok = Tokenizer.from_gguf(sys.argv[1], engine="native")
        words = random.Random(1).randbytes(12_000_000).hex(" ", 8)
        text = "<|endoftext|>".join(words[at : at + 50_000] for at in range(0, len(words), 50_000))
        times = [time.process_time()]
        signal.signal(signal.SIGPROF, lambda *_: times.append(time.process_time()))
        signal.setitimer(signal.ITIMER_PROF, 0.005, 0.005)
        tok.count(text)
        signal.setitimer(signal.ITIMER_PROF, 0)
        times.append(time.process_time())
        print(max(end - begin for begin, end in zip(times, times[1:])) / (times[-1] - times[0]))
    """
    assert float(in_a_process(code, gpt2_file())) < 0.25  # of the time of the call


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for a single process")
def test_ctrl_c() -> None:
    code = """if True:
        import random, sys
        import numpy  # which may take a Ctrl-C for itself while it is imported
        from ggufbpe import Tokenizer
        tok = Tokenizer.from_gguf(sys.argv[1], engine="native")
        words = random.randbytes(8_000_000).hex(" ", 8).encode()
        print("ready", flush=True)
        while True:
            tok.encode_batch_to_numpy([words, words], threads=2)
    """
    with subprocess.Popen(
        [sys.executable, "-c", code, gpt2_file()], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=60)
    assert errors.rstrip().endswith("KeyboardInterrupt"), errors
    assert child.returncode in (1, -signal.SIGINT)


# ---- the cache ------------------------------------------------------------------------------------------


def test_the_cache_has_a_bound() -> None:
    """More different words than it can hold, in several goes; the ids stay right."""
    tok, sizes = Tokenizer(gpt2_vocabulary(), "native", cache_bytes=CACHE), []
    for start in range(0, 200_000, 20_000):
        numbers = range(start, start + 20_000)
        text = b" ".join(b"%d" % (number * 7919 + 10**9) for number in numbers)
        found = tok.encode_to_numpy(text)
        sizes.append(native_encoder(tok).cache_bytes)
        assert found[-1] == tok.encode(text[-12:])[-1]
    assert CACHE / 4 < max(sizes) <= CACHE * 1.01
    assert tok.encode("Hello world") == [15496, 995]


@pytest.mark.parametrize(("size", "times"), [(1024, 1), (1025, 3)])
def test_words_up_to_a_length_are_merged_once(size: int, times: int) -> None:
    tok = Tokenizer(gpt2_vocabulary(), "native")
    for _ in range(3):
        tok.encode(("abc" * 400)[:size])
    assert native_encoder(tok).cache_misses == times


def test_long_words_are_not_kept() -> None:
    tok = Tokenizer(gpt2_vocabulary(), "native")
    tok.encode("a")
    before = native_encoder(tok).cache_bytes
    for number in range(3000):
        tok.encode("ab" * 600 + chr(0x4E00 + number) * 10)
    assert native_encoder(tok).cache_bytes == before


def test_a_cache_can_be_emptied() -> None:
    tok = Tokenizer(gpt2_vocabulary(), "native")
    text = b" ".join(b"w%d" % number for number in range(100_000))
    ids, full = tok.encode(text), native_encoder(tok).cache_bytes
    tok.release_memory()
    assert native_encoder(tok).cache_bytes < full
    assert tok.encode(text) == ids


def test_the_bound_of_the_cache_by_default() -> None:
    assert native is not None
    assert tokenizer.CACHE_BYTES == native.CACHE_BYTES


# ---- copies ---------------------------------------------------------------------------------------------


@pytest.fixture(params=["copy", "deepcopy", "pickle"])
def duplicate(request: pytest.FixtureRequest) -> Callable[[Tokenizer], Tokenizer]:
    ways: dict[str, Callable[[Tokenizer], Tokenizer]] = {
        "copy": copy.copy,
        "deepcopy": copy.deepcopy,
        "pickle": lambda tok: pickle.loads(pickle.dumps(tok)),
    }
    return ways[request.param]


@pytest.mark.parametrize("engine", ["auto", "native", "reference"])
def test_a_copy_has_the_same_engine(duplicate: Callable[[Tokenizer], Tokenizer], engine: Any) -> None:
    original = Tokenizer(gpt2_vocabulary(), engine)
    original.encode("Hello world")
    found = duplicate(original)
    assert found.engine == original.engine
    assert found._given_engine == engine
    assert found.encode("Hello world") == [15496, 995]


def test_a_copy_of_what_a_file_gave(duplicate: Callable[[Tokenizer], Tokenizer], gpt2_path: Path) -> None:
    original = Tokenizer.from_gguf(gpt2_path)
    text = "".join(CHARACTERS)
    assert duplicate(original).encode(text) == original.encode(text)


def test_a_pickle_opens_where_there_is_no_compiled_engine(tmp_path: Path, gpt2_path: Path) -> None:
    (tmp_path / "pickled").write_bytes(pickle.dumps(Tokenizer.from_gguf(gpt2_path)))
    code = """if True:
        import pickle, sys
        tok = pickle.load(open(sys.argv[1], "rb"))
        print(tok.engine, tok.encode("Hello world"))
    """
    assert in_a_process(code, tmp_path / "pickled", GGUFBPE_ENGINE="reference") == "reference [15496, 995]"


@pytest.fixture(autouse=True)
def no_tokenizers_left() -> Iterator[None]:
    """Each has some dozen MB of tables: those of a test go with it."""
    yield
    gc.collect()
