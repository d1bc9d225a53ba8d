"""One tokenizer in many hands: threads, pickles, copies, and caches that do not grow without end."""

from __future__ import annotations

import copy
import os
import pickle
import pickletools
import random
import subprocess
import sys
import sysconfig
import warnings
from array import array
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from conftest import GPT2, RAW_UTF8, ROOT
from gguf import GGUFValueType
from gguf_by_hand import Field, section_of
from synthetic import CHARACTERS, WORDS, byte_pairs, gpt2_vocabulary, tokenizer_as

from ggufbpe import GGUFError, Tokenizer, tokenizer
from ggufbpe.gguf.constants import TokenizerKey
from ggufbpe.gguf.reader import GGUFFile
from ggufbpe.gguf.value_types import Value
from ggufbpe.models import word_cache
from ggufbpe.models.bpe import merge as bpe
from ggufbpe.models.pretokenizers import splitter
from ggufbpe.models.vocabulary import CONTROL, NORMAL, Vocabulary
from ggufbpe.tokenizer import CACHE_BYTES, reference_engine
from ggufbpe.tokenizer.reference_engine import BYTES_OF_A_WORD

pytestmark = pytest.mark.both_engines

PRE, ADD_BOS = TokenizerKey.PRE, TokenizerKey.ADD_BOS

THREADS = 8
FLAGS = [{"add_special": a, "parse_special": b} for a in (False, True) for b in (False, True)]


def sample_texts(count: int, seed: int) -> list[str]:
    chooser = random.Random(seed)
    parts = [*CHARACTERS, *WORDS, *["the", "of", "and", "to", "in", "a", "is", "that", "for", "it"]]
    return ["".join(chooser.choices(parts, k=chooser.randrange(60))) for _ in range(count)]


TEXTS = [*sample_texts(60, seed=1), "long " * 300, "x" * 5000, "é" * 500, ""]


@pytest.fixture
def hurried() -> Iterator[None]:
    """Threads that take turns as often as the interpreter can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def all_answers(tok: Tokenizer, order: list[int]) -> dict[int, object]:
    """Everything that fills a cache, for each text."""
    answers: dict[int, object] = {}
    for index in order:
        text = TEXTS[index]
        source = text.encode() + b"\xff" if index % 3 == 0 else text
        ids = [tok.encode(source, **flags) for flags in FLAGS]
        stream = tok.decode_stream()
        streamed = "".join(map(stream.push, ids[0])) + stream.finish()
        answers[index] = (
            ids,
            tok.encode_with_offsets(source),
            tok.pre_tokenize(source),
            tok.decode(ids[0]),
            streamed,
        )
    return answers


@pytest.mark.parametrize("name", ["gpt-2", "llama-bpe", "deepseek-llm", "gemma4"])
def test_threads_on_one_tokenizer_get_what_one_gets(name: str, hurried: None) -> None:
    vocabulary = tokenizer_as(name).vocabulary
    expected = all_answers(Tokenizer(vocabulary), list(range(len(TEXTS))))
    shared, barrier = Tokenizer(vocabulary), Barrier(THREADS)

    def work(seed: int) -> dict[int, object]:
        order = random.Random(seed).sample(range(len(TEXTS)), len(TEXTS))
        barrier.wait(timeout=60)  # all meet caches that are still empty
        return all_answers(shared, order)

    with ThreadPoolExecutor(THREADS) as pool:
        for answers in pool.map(work, range(THREADS)):
            assert answers == expected


@pytest.mark.slow
def test_threads_while_caches_overflow(hurried: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the reference engine; test_native.py and the tests of the C++ have the others."""
    expected = all_answers(Tokenizer(gpt2_vocabulary()), list(range(len(TEXTS))))
    monkeypatch.setattr(reference_engine, "BYTES_OF_A_WORD", CACHE_BYTES // 3)
    monkeypatch.setattr(bpe, "_PAIR_CACHE", 5)
    monkeypatch.setattr(splitter, "_MARKER_CACHE", 4)
    shared = Tokenizer(gpt2_vocabulary(), "reference")
    with ThreadPoolExecutor(THREADS) as pool:
        for answers in pool.map(lambda _: all_answers(shared, list(range(len(TEXTS)))), range(THREADS)):
            assert answers == expected


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python always has the lock")
def test_the_lock_stays_switched_off(tmp_path: Path) -> None:
    program = (
        "import sys, ggufbpe\n"
        "tok = ggufbpe.Tokenizer.from_gguf(sys.argv[1])\n"
        "tok.encode_batch_to_numpy(['Hello', ' world'], threads=2)\n"
        "print(tok.engine, sys._is_gil_enabled())"
    )
    command = [sys.executable, "-c", program, str(GPT2)]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == [Tokenizer(gpt2_vocabulary()).engine, "False"]


# ---- caches of the reference engine; those of the compiled one are in test_native.py ---------------------


def test_the_word_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference_engine, "BYTES_OF_A_WORD", CACHE_BYTES // 50)
    tok, unbounded = Tokenizer(gpt2_vocabulary(), "reference"), tokenizer_as("gpt-2")
    sizes = set()
    for number in range(300):
        text = f" w{number}x q{number * 7}z"
        assert tok.encode(text) == unbounded.encode(text)
        sizes.add(len(byte_pairs(tok).word_ids))
    assert 10 < max(sizes) <= 50


def test_long_words_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_cache, "_CACHED_LENGTH", 5)
    tok = Tokenizer(gpt2_vocabulary(), "reference")
    for _ in range(2):
        assert tok.decode(tok.encode("abcde abcdefghijk")) == "abcde abcdefghijk"
    assert set(byte_pairs(tok).word_ids) == {"abcde"}


def test_a_word_is_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tok = Tokenizer(gpt2_vocabulary(), "reference")
    asked: list[str] = []
    ids = byte_pairs(tok).word_ids.encoder.ids

    def counted(word: str) -> tuple[int, ...]:
        asked.append(word)
        return ids(word)

    monkeypatch.setattr(byte_pairs(tok).word_ids.encoder, "ids", counted)
    assert tok.encode("go go go") == tok.encode("go go go")
    assert asked == ["go", " go"]


def test_the_bound_is_for_the_caller_to_set() -> None:
    tok = Tokenizer(gpt2_vocabulary(), "reference", cache_bytes=1 << 20)
    tok.encode(" ".join(f"w{number}" for number in range(5000)))
    assert 10 < len(byte_pairs(tok).word_ids) <= (1 << 20) // BYTES_OF_A_WORD
    tok.release_memory()
    assert len(byte_pairs(tok).word_ids) == 0
    assert tok.encode("Hello world") == [15496, 995]


@pytest.mark.parametrize(
    ("cache_bytes", "error"),
    [(2**20 - 1, ValueError), (-1, ValueError), (True, ValueError), (1e9, TypeError)],
)
def test_what_is_no_bound(cache_bytes: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        Tokenizer(gpt2_vocabulary(), cache_bytes=cache_bytes)
    with pytest.raises(error):
        Tokenizer.from_gguf(GPT2, cache_bytes=cache_bytes)


def test_a_bound_may_be_beyond_all_memory() -> None:
    assert Tokenizer(gpt2_vocabulary(), cache_bytes=1 << 64).encode("Hello world") == [15496, 995]


# ---- copies ---------------------------------------------------------------------------------------------


def pickled(protocol: int) -> Callable[[Tokenizer], Tokenizer]:
    return lambda tok: pickle.loads(pickle.dumps(tok, protocol))


COPIES: dict[str, Callable[[Tokenizer], Tokenizer]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    **{f"pickle protocol {number}": pickled(number) for number in range(pickle.HIGHEST_PROTOCOL + 1)},
}


@pytest.mark.parametrize("name", ["gpt-2", "gemma4"])
@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("used", [False, True])
def test_copies_are_equal_and_their_own(name: str, how: str, used: bool) -> None:
    original = Tokenizer(tokenizer_as(name).vocabulary, cache_bytes=2**21)
    few = list(range(0, len(TEXTS), 12))
    if used:
        all_answers(original, few)
    duplicate = COPIES[how](original)
    assert duplicate is not original
    assert type(duplicate) is Tokenizer
    assert duplicate.vocabulary == original.vocabulary
    assert not {"pipeline", "_engine"} & vars(duplicate).keys()  # no cache comes along
    assert duplicate._cache_bytes == 2**21
    assert all_answers(duplicate, few) == all_answers(original, few)


def test_a_deep_copy_shares_nothing_that_changes() -> None:
    original = Tokenizer(gpt2_vocabulary())
    duplicate = copy.deepcopy(original)
    assert duplicate.vocabulary.tokens is not original.vocabulary.tokens
    duplicate.vocabulary.attributes[15496] = CONTROL
    assert original.token_attributes(15496) == NORMAL


def same_but_for_the_file(one: Vocabulary, other: Vocabulary) -> bool:
    bare = {"path": "", "architecture": "", "name": "", "scores": ()}
    scores = [array("f", each.scores).tobytes() for each in (one, other)]  # a score may be no number
    return one._replace(**bare) == other._replace(**bare) and scores[0] == scores[1]


VOCABS = ROOT / "fixtures" / "vocabs"
VARIANTS = ROOT / "fixtures" / "variants"


@pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")
@pytest.mark.parametrize("path", [GPT2, RAW_UTF8, *sorted(VOCABS.glob("*.gguf"))], ids=lambda path: path.stem)
def test_a_pickle_of_what_a_file_holds(path: Path) -> None:
    try:
        original = Tokenizer.from_gguf(path)
    except GGUFError:
        return  # a file that cannot be opened
    pickled = pickle.dumps(original)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # they were told when the file was opened
        duplicate = pickle.loads(pickled)
    assert same_but_for_the_file(duplicate.vocabulary, original.vocabulary)
    assert duplicate.vocabulary.path == ""
    assert pickle.dumps(duplicate) == pickled
    assert pickle.dumps(copy.deepcopy(original)) == pickle.dumps(copy.copy(original)) == pickled
    assert len(pickled) < path.stat().st_size + 1000


def rewritten(path: Path, name: str | None) -> None:
    """The small vocabulary with its keys the other way round, other names, and something in place of tensors."""
    with GGUFFile(VARIANTS / "vocabulary-version-3-little.gguf") as file:
        fields = {
            key: Field(
                GGUFValueType(file.value_type(key)),
                file[key],
                None if element is None else GGUFValueType(element),
            )
            for key in reversed(file.keys())
            for element in (file.element_type(key),)
            if key.startswith("tokenizer.")
        }
    if name is not None:
        fields = {"general.name": Field(GGUFValueType.STRING, name), **fields}
    path.write_bytes(section_of(fields).file(tail=b"tensors"))


def test_equal_tokenizers_have_equal_pickles(tmp_path: Path) -> None:
    """A hash of them is the key of some caches: that of `datasets`, for one."""
    paths = list(VARIANTS.glob("vocabulary-version-*.gguf"))
    for name in (None, "one name", "another name"):
        paths.append(tmp_path / f"{name}.gguf")
        rewritten(paths[-1], name)
    for engine in ("auto", "reference"):
        pickles = {pickle.dumps(Tokenizer.from_gguf(path, engine)) for path in paths}
        assert len(pickles) == 1
    changes: list[dict[str, Value | None]] = [{ADD_BOS: True}, {ADD_BOS: None}, {PRE: "llama-bpe"}]
    overridden = [pickle.dumps(Tokenizer.from_gguf(paths[0], overrides=each)) for each in changes]
    assert len({*pickles, *overridden}) == 1 + len(changes)


def test_pickles_are_equal_on_each_engine() -> None:
    """Also where there is no compiled module, and so strings are lists."""
    program = f"""if True:
        import pickle, sys
        from ggufbpe import Tokenizer
        sys.stdout.buffer.write(pickle.dumps(Tokenizer.from_gguf({str(GPT2)!r}), 4))
    """
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "GGUFBPE_ENGINE": engine},
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
        for engine in ("auto", "reference")
    }
    assert found == {pickle.dumps(Tokenizer.from_gguf(GPT2), 4)}


def test_a_pickle_has_no_object_for_a_token() -> None:
    pickled = pickle.dumps(Tokenizer.from_gguf(GPT2))
    assert sum(1 for _ in pickletools.genops(pickled)) < 40


def test_a_subclass_stays_one() -> None:
    assert type(pickle.loads(pickle.dumps(Renamed(gpt2_vocabulary())))) is Renamed


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda tok: pickle.loads(pickle.dumps(tok))])
def test_what_a_subclass_adds_is_copied(copied: Callable[[Renamed], Renamed]) -> None:
    tok = Renamed(gpt2_vocabulary())
    tok.label, tok.itself = ["a name"], tok
    assert tok.words_of_label == ["a", " name"]
    other = copied(tok)
    assert (other.label, "words_of_label" in vars(other)) == (["a name"], False)
    assert (other.label is tok.label, other.itself is other) == (
        copied is copy.copy,
        copied is not copy.copy,
    )


def test_an_attribute_that_is_computed_while_a_tokenizer_is_pickled(monkeypatch: pytest.MonkeyPatch) -> None:
    tok = Renamed(gpt2_vocabulary())

    def interrupted(*arguments: Any) -> bool:
        tok.encode("a")  # as another thread may at any moment
        return hasattr(*arguments)

    monkeypatch.setattr(tokenizer, "hasattr", interrupted, raising=False)
    assert type(pickle.loads(pickle.dumps(tok))) is Renamed
    assert "_engine" in vars(tok)


def test_what_a_subclass_sets_when_it_is_made_is_not_that_of_another_file() -> None:
    tok = Stopping.from_gguf(GPT2)
    other = tok.with_overrides({"tokenizer.ggml.eos_token_id": 5})
    assert (tok.stop, other.stop, other.eos_id) == (50256, 5, 5)
    tok.stop = 7
    copies = copy.copy(tok), copy.deepcopy(tok), tok.with_llama_cpp("b11549")
    assert [each.stop for each in copies] == [7, 7, 50256]


class Stopping(Tokenizer):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.stop = self.eos_id


class Renamed(Tokenizer):
    """At the top of the module, where pickle finds it."""

    label: list[str]
    itself: Renamed

    @cached_property
    def words_of_label(self) -> list[str]:
        """Computed once, so that a copy computes it again."""
        return self.words(self.label[0])
