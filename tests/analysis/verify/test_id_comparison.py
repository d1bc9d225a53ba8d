"""`ggufbpe verify`: what differs, in which step, why, in how small a text, and how it is shown.

The oracles themselves are in test_oracles.py. Here most differences are made with our own engine as the
oracle and another model, since only then is it certain what differs; the real llama.cpp is asked, too.
"""

from __future__ import annotations

import gzip
import html.parser
import io
import itertools
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from commands import output_of_terminal
from conftest import GPT2, RAW_UTF8, ROOT, UNSPLIT, missing
from reference import (
    CHATS,
    NotPreparedError,
    library,
    library_is_installed,
    llama_tokenize_command,
    vocabulary,
    with_pre,
    xllamacpp_packages,
)
from rich.cells import cell_len
from synthetic import tokenizer_as

from ggufbpe import Tokenizer
from ggufbpe.analysis.oracles.oracle import Answer, Failure, Oracle
from ggufbpe.analysis.oracles.recorded_ids import OtherModel
from ggufbpe.analysis.verify import side_by_side
from ggufbpe.analysis.verify.align import Placed, align, own_row, place
from ggufbpe.analysis.verify.fuzz import texts_for
from ggufbpe.analysis.verify.given_texts import cut_into_texts
from ggufbpe.analysis.verify.id_comparison import verify
from ggufbpe.analysis.verify.model_diff import diff
from ggufbpe.analysis.verify.result import ComparedText, Verification
from ggufbpe.analysis.verify.shrink import Shrinking, shrink
from ggufbpe.analysis.views.terminal import isolated
from ggufbpe.cli import main
from ggufbpe.data.corpora.corpus_files import files_of
from ggufbpe.models.pretokenizers.random_texts import RandomTexts
from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS

pytestmark = pytest.mark.tries_fixes

posix_only = pytest.mark.skipif(os.name != "posix", reason="fake commands are shell scripts")
ADD_BOS, ADD_EOS = "tokenizer.ggml.add_bos_token", "tokenizer.ggml.add_eos_token"
BOS = {ADD_BOS: True}


def cached(name: str) -> Path:
    try:
        return vocabulary(name)
    except NotPreparedError as error:
        missing(str(error))


@pytest.fixture(scope="session")
def gpt2() -> Tokenizer:
    return Tokenizer.from_gguf(GPT2)


class Engine(Oracle):
    """Our engine as an oracle that nobody knows to be ours; `answers` changes what it says."""

    name = "engine"

    def __init__(
        self,
        tokenizer: Tokenizer,
        answers: Callable[[bytes, list[int]], Answer] = lambda text, ids: ids,
    ) -> None:
        self._tokenizer, self._answers = tokenizer, answers
        self.asked = 0

    def encode(self, texts: Sequence[bytes], add_special: bool, parse_special: bool) -> list[Answer]:
        self.asked += len(texts)
        flags = {"add_special": add_special, "parse_special": parse_special}
        return [self._answers(text, self._tokenizer.encode(text, **flags)) for text in texts]


def compared(tokenizer: Tokenizer, oracle: Oracle, *texts: bytes, **flags: bool) -> Verification:
    return verify(tokenizer, oracle, [ComparedText("test", 0, text) for text in texts], **flags)


# ---- rows, aligned --------------------------------------------------------------------------------------


def placed(*tokens: tuple[int, int, int]) -> list[Placed]:
    return [Placed(token, b"", start, end) for token, start, end in tokens]


ALIGNED = {
    "the same": (placed((1, 0, 2), (2, 2, 3)), placed((1, 0, 2), (2, 2, 3)), ["0-3 2=2"]),
    "nothing": ([], [], []),
    "one against two": (placed((1, 0, 2), (9, 2, 3)), placed((3, 0, 1), (4, 1, 2), (9, 2, 3)), ["0-2 1!2", "2-3 1=1"]),
    "shifted": (placed((1, 0, 2), (2, 2, 4)), placed((3, 0, 1), (4, 1, 3), (5, 3, 4)), ["0-4 2!3"]),
    "BOS on one side": (placed((7, 0, 0), (1, 0, 2)), placed((1, 0, 2)), ["0-0 1!0", "0-2 1=1"]),
    "BOS on both": (placed((7, 0, 0), (1, 0, 2)), placed((7, 0, 0), (1, 0, 2)), ["0-2 2=2"]),
    "EOS on one side": (placed((1, 0, 2)), placed((1, 0, 2), (8, 2, 2)), ["0-2 1=1", "2-2 0!1"]),
    "only one side": (placed((1, 0, 2)), [], ["0-2 1!0"]),
    "two that share a span": (placed((1, 0, 1), (2, 0, 1)), placed((1, 0, 1), (2, 0, 1)), ["0-1 2=2"]),
    "dropped text": (
        placed((1, 0, 2), (2, 4, 5)), placed((1, 0, 2), (3, 2, 4), (2, 4, 5)), ["0-2 1=1", "2-4 0!1", "4-5 1=1"]
    ),
    "two differences": (
        placed((1, 0, 1), (2, 1, 2), (3, 2, 3)),
        placed((4, 0, 1), (2, 1, 2), (5, 2, 3)),
        ["0-1 1!1", "1-2 1=1", "2-3 1!1"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("left", "right", "expected"), ALIGNED.values(), ids=ALIGNED)
def test_spans_of_two_rows(left: list[Placed], right: list[Placed], expected: list[str]) -> None:
    def count(part: tuple[int, int]) -> int:
        return part[1] - part[0]

    found = [
        f"{span.start}-{span.end} {count(span.left)}{'=' if span.same else '!'}{count(span.right)}"
        for span in align(left, right)
    ]
    assert found == expected


@pytest.mark.parametrize("name", ["gpt-2", "llama-bpe", "gemma4", "sarvam-moe"])
def test_ids_are_laid_where_the_engine_has_them(name: str) -> None:
    """Ids from elsewhere get the places that the engine they come from gives them, and no token gets lost."""
    ours = tokenizer_as(name)
    other = Tokenizer(
        ours.vocabulary._replace(
            pre_tokenizer=PRE_TOKENIZERS["falcon" if name in ("gpt-2", "llama-bpe") else "gemma4"],
            add_bos=not ours.add_bos,
        )
    )
    source = texts_for(ours, "align")
    flags = {"add_special": True, "parse_special": True}
    differing = 0
    for text in (source.text() for _ in range(400)):
        left = own_row(ours, text, **flags)
        right = own_row(other, text, **flags)
        found = place(ours, text, [token.id for token in right], left)
        spans = align(left, found)
        assert spans == align(left, right), text
        assert [i for span in spans for i in range(*span.left)] == list(range(len(left)))
        assert [i for span in spans for i in range(*span.right)] == list(range(len(right)))
        differing += not all(span.same for span in spans)
    assert differing > 100, "or nothing was tried"


@pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")  # no newline character
def test_text_without_a_token_has_an_empty_piece(gpt2: Tokenizer) -> None:
    """RWKV without an unknown token gives -1 there, as llama.cpp does."""
    other = Tokenizer.from_gguf(GPT2, overrides={"tokenizer.ggml.model": "rwkv"})
    assert own_row(other, b"a b", add_special=False, parse_special=True)[1] == Placed(-1, b"", 1, 2)
    assert [each.tokens for each in side_by_side.compare([other, gpt2], b"a b").stretches]
    assert verify(other, OtherModel(gpt2), ["a b"]).differences


def test_ids_of_no_place_share_the_text(gpt2: Tokenizer) -> None:
    text = b"Hello world, again"
    left = own_row(gpt2, text, add_special=True, parse_special=True)
    ids = [token.id for token in left]

    def spans(ids: list[int]) -> list[tuple[int, int, bool]]:
        return [(s.start, s.end, s.same) for s in align(left, place(gpt2, text, ids, left))]

    assert spans([ids[0], 99_999_999, *ids[2:]]) == [(0, 5, True), (5, 11, False), (11, 18, True)]
    assert spans([ids[0], 50000, -3, *ids[2:]]) == [(0, 5, True), (5, 11, False), (11, 18, True)]
    assert spans([99_999_999]) == [(0, 18, False)]
    assert spans([]) == [(0, 18, False)]
    assert spans([*ids, ids[-1]]) == [(0, 18, True), (18, 18, False)]


# ---- the smallest text ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "needed", "smallest"),
    [
        (b"x" * 5000 + b"12" + b"y" * 5000, [b"12"], b"12"),
        (b"1" + b"x" * 3000 + b"2", [b"1", b"2"], b"12"),
        ("é".encode() * 100 + b"\xff" + "中".encode() * 100, [b"\xff"], b"\xff"),
        ("中文".encode(), [b"\xe4"], b"\xe4"),
        (b"anything", [], b""),
    ],
)
def test_shrinking_leaves_only_what_is_needed(text: bytes, needed: list[bytes], smallest: bytes) -> None:
    def differ(texts: Sequence[bytes]) -> list[bool]:
        return [all(part in text for part in needed) for text in texts]

    assert shrink(text, Shrinking(differ, seconds=30)) == smallest


def test_shrinking_takes_hints_and_has_an_end() -> None:
    asked: list[bytes] = []

    def differ(texts: Sequence[bytes]) -> list[bool]:
        asked.extend(texts)
        return [b"needle" in text for text in texts]

    haystack = b"hay " * 10_000 + b"needle" + b" hay" * 10_000
    assert shrink(haystack, Shrinking(differ), [b"a needle"]) == b"needle"
    assert len(asked) < 50
    asked.clear()
    assert b"needle" in shrink(haystack, Shrinking(differ, asked=20))
    assert len(asked) <= 20
    assert shrink(haystack, Shrinking(differ, seconds=0)) == haystack


# ---- what differs, and why ------------------------------------------------------------------------------


def with_changes(tokenizer: Tokenizer, **changes: Any) -> Tokenizer:
    return Tokenizer(tokenizer.vocabulary._replace(**changes))


class Case(NamedTuple):
    """A model changed in one way, a text, and what must be found: the step, the cause, the smallest text."""

    changes: Callable[[Tokenizer], dict[str, Any]]
    text: bytes
    step: str
    cause: str
    smallest: bytes


def _pre(name: str) -> Callable[[Tokenizer], dict[str, Any]]:
    return lambda _: {"pre": name, "pre_tokenizer": PRE_TOKENIZERS[name]}


def _swapped(tokenizer: Tokenizer) -> dict[str, Any]:
    """ " the" and " of" have changed places."""
    tokens = list(tokenizer.vocabulary.tokens)
    a, b = tokens.index("Ġthe"), tokens.index("Ġof")
    tokens[a], tokens[b] = tokens[b], tokens[a]
    return {"tokens": tokens, "token_to_id": {token: index for index, token in enumerate(tokens)}}


def _merges_without(*dropped: str) -> Callable[[Tokenizer], dict[str, Any]]:
    return lambda tok: {"merges": [merge for merge in tok.vocabulary.merges if merge not in dropped]}


CASES = {
    "another pre-tokenizer": Case(
        _pre("llama-bpe"),
        b"It was in 2024 that\n\nthey'll  DON'T pay 1234567\r\n (or not).\n" * 3,
        *("words", "pre_type", b""),
    ),
    "BOS": Case(lambda tok: {"add_bos": True}, b"Hello world", "BOS/EOS", "bos", b""),
    "EOS": Case(lambda tok: {"add_eos": True}, b"Hello world", "BOS/EOS", "eos", b""),
    "other merges": Case(
        _merges_without("Ġ t"), b"all of the things that I know, and these two", "merges", "merges", b" t"
    ),
    "another vocabulary": Case(_swapped, b"the end of the day", "vocabulary", "vocabulary", b" of"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize("known", [False, True], ids=["from elsewhere", "another model"])
def test_step_cause_and_smallest_text(
    case: Case, known: bool, gpt2: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both where the oracle is known to be our engine with another model, and where it only gives ids."""
    other = with_changes(gpt2, **case.changes(gpt2))
    oracle: Oracle = Engine(other)
    if known:
        oracle = OtherModel(other)
    result = compared(gpt2, oracle, case.text)
    assert (result.texts, result.different, result.same) == (1, 1, False)
    first = result.differences[0]
    assert first.step == case.step
    assert first.first.text.data == case.text
    assert first.smallest is not None
    smallest = first.smallest.text.data
    assert gpt2.encode(smallest) != other.encode(smallest), "it does differ"
    if case.step == "words":
        assert len(smallest) <= 4
    else:
        assert len(smallest) <= len(case.smallest)
    for index in range(len(smallest)):
        part = smallest[:index] + smallest[index + 1 :]
        spans_left = compared(gpt2, Engine(other), part).differences
        assert all(set(one.kinds).isdisjoint(first.kinds[:1]) for one in spans_left), (
            "nothing can be left out"
        )
    # A file with that pre-tokenizer would add BOS, which the other model does not: that is known only of a model.
    also = "bos" if known and case.cause == "pre_type" else ""
    assert "".join(cause.id for cause in first.causes) == case.cause + also


def test_a_cause_holds_for_texts_that_do_not_differ(gpt2: Tokenizer) -> None:
    """chameleon has these ids of the first text, too, but not of the second, which gpt-2 and qwen2 encode alike."""
    texts = [b"in 2024, 12345 of them", b"a  b\n\n c"]
    result = compared(gpt2, Engine(tokenizer_as("qwen2")), *texts)
    assert result.different == 1
    [cause] = result.differences[0].causes
    theirs, found = tokenizer_as("qwen2"), tokenizer_as(str(cause.detail["pre"]))
    assert [found.encode(text) for text in texts] == [theirs.encode(text) for text in texts]


def test_special_tokens(gpt2: Tokenizer) -> None:
    """The oracle takes special tokens for text."""
    plain = with_changes(gpt2, special_token_ids=())
    result = compared(gpt2, Engine(plain), b"Say <|endoftext|> twice")
    [difference] = result.differences
    assert difference.step == "special tokens"
    assert difference.smallest is not None
    assert difference.smallest.text.data == b"<|endoftext|>"
    assert [token.id for token in difference.smallest.ours] == [50256]


def test_two_causes_are_two_differences(gpt2: Tokenizer) -> None:
    other = with_changes(gpt2, add_eos=True, **_pre("qwen2")(gpt2))
    result = compared(gpt2, Engine(other), b"It was in 2024\n\nthat they'LL pay 1234567\r\n (or not).\n")
    assert {"BOS/EOS", "words"} == {difference.step for difference in result.differences}
    found = {difference.step: [cause.id for cause in difference.causes] for difference in result.differences}
    assert found["words"] == ["pre_type"]
    assert found["BOS/EOS"] == ["eos"]


def test_no_differences(gpt2: Tokenizer) -> None:
    result = compared(gpt2, Engine(gpt2), b"Hello world", b"", b"\xff")
    assert result.same
    assert (result.texts, result.bytes, result.different, result.differences) == (3, 12, 0, [])
    assert result.tokens == result.oracle_tokens == 3
    assert result.seconds > 0 < result.oracle_seconds


def test_flags_reach_both_sides(gpt2: Tokenizer) -> None:
    asked: list[tuple[bool, bool]] = []

    class Noting(Engine):
        def encode(self, texts: Sequence[bytes], add_special: bool, parse_special: bool) -> list[Answer]:
            asked.append((add_special, parse_special))
            return super().encode(texts, add_special, parse_special)

    both = with_changes(gpt2, add_bos=True)
    for flags in ({}, {"add_special": False}, {"parse_special": False}):
        assert compared(both, Noting(both), b"<|endoftext|>", **flags).same
    assert asked == [(True, True), (False, True), (True, False)]


# ---- failures of the oracle -----------------------------------------------------------------------------


def test_failures_are_findings_and_the_run_goes_on(gpt2: Tokenizer) -> None:
    answers: dict[bytes, Answer] = {
        b"crash": Failure("crash", "ended by SIGSEGV"),
        b"hang": Failure("timeout", "no answer within 1 s"),
        b"rubbish": Failure("garbage", "no output"),
        b"not UTF-8 at 3": Failure("refused", "the text is not UTF-8 at byte 3"),
        b"not UTF-8 at 45": Failure("refused", "the text is not UTF-8 at byte 45"),
    }
    oracle = Engine(gpt2, lambda text, ids: answers.get(text, ids))
    result = compared(gpt2, oracle, b"good", *answers, b"good too", b"crash")
    found = [(group.kind, group.texts, group.first.data) for group in result.failures]
    assert found == [
        ("crash", 2, b"crash"),
        ("timeout", 1, b"hang"),
        ("garbage", 1, b"rubbish"),
        ("refused", 2, b"not UTF-8 at 3"),
    ]
    assert (result.failed, result.refused, result.compared, result.different) == (4, 2, 2, 0)
    assert result.tokens == result.oracle_tokens  # of the texts that were compared
    assert not result.same


def test_differences_are_shrunk_past_crashes(gpt2: Tokenizer) -> None:
    """An oracle that crashes on half of the parts still leads to the smallest text."""
    other = tokenizer_as("llama-bpe")
    oracle = Engine(other, lambda text, ids: Failure("crash", "it did") if len(text) % 2 else ids)
    result = compared(gpt2, oracle, b"costs 12345 in all")
    [difference] = result.differences
    assert difference.smallest is not None
    assert len(difference.smallest.text.data) <= 6


# ---- large corpora --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_memory_does_not_grow_with_the_corpus() -> None:
    """Texts of 16 kB and small ones that differ: if they were kept, there would be 7 MB of them."""
    ours, other = tokenizer_as("gpt-2"), tokenizer_as("llama-bpe")
    filler = (b"x" * 120 + b" ") * 135  # long words that are all the same, so that it does not take long

    def texts(count: int) -> Iterator[ComparedText]:
        for number in range(count):
            yield ComparedText(
                "made", number, b"%d" % (number + 1000) * 2 if number % 10 == 0 else filler + b"."
            )

    def peak(count: int) -> int:
        tracemalloc.start()
        result = verify(ours, Engine(other), texts(count))
        assert result.texts == count
        assert 0 < result.different <= count / 10
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(20)  # fills the caches
    small, large = peak(20), peak(450)
    assert large < small + 3_000_000, (small, large)


@pytest.mark.slow
def test_kinds_of_differences_are_bounded(gpt2: Tokenizer) -> None:
    """An oracle that gives random ids differs in any number of ways; not all of them are kept."""
    numbers = itertools.count(1)

    def wrong(text: bytes, ids: list[int]) -> Answer:
        return [next(numbers) * 7919 % 50000 for _ in ids]

    source = RandomTexts("wrong")
    texts = [ComparedText("made", 0, source.text()) for _ in range(300)]
    result = verify(gpt2, Engine(gpt2, wrong), texts)
    assert 1 <= len(result.differences) <= 100
    assert result.different > 200


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", [b""]),
        (b"short", [b"short"]),
        (b"12345678", [b"12345678"]),
        (b"1234\n6789\n", [b"1234\n", b"6789\n"]),
        (b"123456789", [b"12345678", b"9"]),
        ("äöüßé".encode(), ["äöüß".encode(), "é".encode()]),
        (b"1" + "中文字".encode(), [b"1" + "中文".encode(), "字".encode()]),
        (b"\x80" * 12, [b"\x80" * 5, b"\x80" * 7]),
        (b"a\n" * 6, [b"a\n" * 4, b"a\n" * 2]),
    ],
)
def test_files_are_cut_after_lines_and_between_characters(data: bytes, expected: list[bytes]) -> None:
    found = list(cut_into_texts(io.BytesIO(data), 8))
    assert found == expected
    assert b"".join(found) == data


class Trickling(io.BytesIO):
    """A stream that gives 7 bytes at most, as a pipe may that is not buffered."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(7 if size is None or size < 0 else min(size, 7))


@pytest.mark.parametrize("whole", [False, True], ids=["verify", "diff"])
def test_streams_are_read_to_their_end(whole: bool, gpt2: Tokenizer) -> None:
    stream = Trickling(b"words and more words" * 5000)
    result = diff(gpt2, gpt2, stream).texts if whole else verify(gpt2, gpt2, stream)
    assert result is not None
    assert (result.same, result.bytes) == (True, 100_000)


def test_what_is_no_iterable_is_named(gpt2: Tokenizer) -> None:
    with pytest.raises(TypeError, match="against must be an iterable of lists of ids, not None"):
        verify(gpt2, None, ["a"])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="texts must be an iterable of texts, not int"):
        verify(gpt2, gpt2, 5)  # type: ignore[arg-type]


@pytest.mark.parametrize("compare", [verify, diff])
def test_streams_of_str_are_refused(compare: Callable[..., Any], gpt2: Tokenizer) -> None:
    with pytest.raises(TypeError, match="the stream gives str; open it in binary mode"):
        compare(gpt2, gpt2, io.StringIO("text"))


# ---- random texts ---------------------------------------------------------------------------------------


def test_random_texts_follow_from_the_seed(gpt2: Tokenizer) -> None:
    first, same, other = (texts_for(gpt2, seed) for seed in ("1", "1", "2"))
    texts = [first.text() for _ in range(50)]
    assert texts == [same.text() for _ in range(50)]
    assert texts != [other.text() for _ in range(50)]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt-2", "llama-bpe", "gpt-4o", "qwen2", "tekken", "bloom", "deepseek-v3"])
def test_random_texts_reach_every_alternative(name: str) -> None:
    """Each alternative of the model's patterns takes some word of some text."""
    tokenizer = tokenizer_as(name)
    source = texts_for(tokenizer, "reach")
    reached: set[tuple[int, int | None]] = set()
    for _ in range(600):
        for word in tokenizer.trace(source.text(), parse_special=False).words:
            reached |= {(cut.stage, cut.alternative) for cut in word.cuts}
    trace = tokenizer.trace("")
    wanted = {
        (number, alternative)
        for number, stage in enumerate(trace.stages)
        for alternative in range(len(stage.alternatives))
    }
    assert wanted <= reached


# ---- the real llama.cpp ---------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("package", ["llama-cpp-python", "xllamacpp"])
def test_real_models_agree_with_llama_cpp_in_process(
    package: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    if package == "xllamacpp":
        try:
            monkeypatch.setenv("PYTHONPATH", str(xllamacpp_packages()))
        except NotPreparedError as error:
            missing(str(error))
    elif not library_is_installed():
        missing("no llama-cpp-python: `python scripts/reference.py prepare --package` installs it")
    for model in (GPT2, RAW_UTF8, cached("qwen2")):
        build = {"xllamacpp": "b11549", "llama-cpp-python": "0c1e57098"}[package]
        asked = ("-m", model, "--against", package, "--llama-cpp", build)
        found = run(*asked, "--fuzz", "200", "--seed", "9", "--json")
        assert found.code == 0
        assert found.json["same"]
        assert (found.json["texts"], found.json["failed_texts"]) == (200, 0)


def test_llama_cpp_in_a_folder_and_a_difference_between_builds(run: Run, tmp_path: Path) -> None:
    """The followed build agrees; an older one differs in an overlong form, and the cause is named."""
    try:
        newest, older = library(), library(CHATS)
    except NotPreparedError as error:
        missing(str(error))
    found = run("-m", GPT2, "--against", f"llama-cpp:{newest}", "--fuzz", "100", "--seed", "3", "--json")
    assert (found.code, found.json["same"]) == (0, True)
    (tmp_path / "text").write_bytes(b"a\xc1\x81b")
    asked = ("-m", GPT2, "--against", f"llama-cpp:{older}", tmp_path / "text")
    differs = run(*asked)
    assert differs.code == 1
    assert (
        "build: These are the ids of llama.cpp b11549, and the model was asked for those of b11739: since"
        in (" ".join(differs.out.split()))
    )
    assert run(*asked, "--llama-cpp", "b11549").code == 0


@pytest.mark.slow
def test_wrong_pre_against_llama_tokenize(run: Run, tmp_path: Path) -> None:
    """The ids of the real command on the right model, and a model whose `pre` is wrong."""
    try:
        command = llama_tokenize_command()
    except NotPreparedError as error:
        missing(str(error))
    right = cached("llama-bpe")
    wrong = with_pre(right, "gpt-2", tmp_path / "wrong.gguf")
    text = tmp_path / "text.txt"
    text.write_bytes(b"In 2024,\n\nthey'LL pay 1234567 to:them\r\n")
    ids = subprocess.run(
        [command, "-m", right, "-f", text, "--ids", "--no-escape"], capture_output=True, check=True
    )
    (tmp_path / "ids.txt").write_bytes(ids.stdout)
    found = run("-m", wrong, "--against", str(tmp_path / "ids.txt"), text, "--json")
    assert found.code == 1
    words = next(one for one in found.json["differences"] if one["step"] == "words")
    assert words["causes"][0]["id"] == "pre_type"
    assert words["smallest"] is None, "recorded ids cannot be asked for another text"
    assert run("-m", right, "--against", f"llama-tokenize:{command}", text).code == 0


# ---- what verify, diagnose and doctor say together --------------------------------------------------------

ALIKE, TELLING = (
    "I'LL count 1234567 words",
    "It's 1234567\n\n  (x)",
)  # as `default` splits them, and otherwise

# Llama 3's vocabulary, broken, a text, and what must be named, in this order, for ids that the sound one gives.
BROKEN: dict[str, tuple[str | None, dict[str, Any], str, list[str]]] = {
    "pre default": ("default", {}, ALIKE, ["pre_type"]),
    "pre missing": (None, {"tokenizer.ggml.pre": None}, TELLING, ["pre_type"]),
    "pre plausible but wrong": ("gpt-2", {}, TELLING, ["pre_type"]),
    "pre default, BOS switched off": ("default", {ADD_BOS: False}, ALIKE, ["pre_type", "bos"]),
    "pre wrong, EOS switched on": ("qwen2", {ADD_BOS: True, ADD_EOS: True}, TELLING, ["pre_type", "eos"]),
    "BOS switched off": ("llama-bpe", {ADD_BOS: False}, ALIKE, ["bos"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", BROKEN)
def test_the_fixes_shown_mend_the_file(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of verify together, and those of each explanation of diagnose."""

    def run(*arguments: str | Path) -> Ran:
        code = main(list(map(str, arguments)))
        return Ran(code, *capsys.readouterr())

    def is_mended_by(command: str) -> bool:
        Path("fixed.gguf").unlink(missing_ok=True)
        assert run(*shlex.split(command)[1:]).code == 0
        return run("verify", "-m", "fixed.gguf", "--against", "ids", "-p", text).code == 0

    monkeypatch.chdir(tmp_path)
    pre, extra, text, expected = BROKEN[case]
    right = cached("llama-bpe")
    broken = with_pre(right, pre, tmp_path / "broken.gguf", extra=extra)
    (tmp_path / "ids").write_text(str(Tokenizer.from_gguf(right).encode(text)))
    source = ("-m", broken, "-p", text, "--json")
    verified = run("verify", *source, "--against", "ids").json
    named = [cause["id"] for one in verified["differences"] for cause in one["causes"]]
    assert sorted(set(named)) == sorted(expected)
    assert named[0] == expected[0] or text == TELLING
    assert is_mended_by(verified["fix"])
    explanations = run("diagnose", *source, "--ids", "ids").json["explanations"]
    assert [cause["id"] for cause in explanations[0]["causes"]] == expected
    commands = [explanation["fix"] for explanation in explanations if explanation["fix"]]
    assert len(commands) == 1, "one command for all changes"
    assert is_mended_by(commands[0])
    if expected[0] == "pre_type":
        best = str(explanations[0]["causes"][0]["detail"])
        assert "llama-bpe keeps 121492 of 121492 tokens whole" in best
        assert "'pre': 'llama-bpe'" in best
    if case == "pre default":
        assert '"suggested": "llama-bpe"' in run("doctor", broken, "--json").out


def test_recorded_ids_of_either_meaning_of_adding_special_tokens(run: Run, tmp_path: Path) -> None:
    """Where the model adds EOS and no BOS, the command llama-tokenize adds neither."""
    model = ROOT / "fixtures" / "vocabs" / "add-eos-only.gguf"
    tokenizer = Tokenizer.from_gguf(model)
    ids = tmp_path / "ids"
    for added, how in ((True, "with EOS"), (False, "without EOS")):
        ids.write_text(str(tokenizer.encode("ab ab", add_special=added)))
        found = run("-m", model, "--against", str(ids), "-p", "ab ab")
        assert (found.code, how in found.out) == (0, True)
        assert run("-m", model, "--against", str(ids), "-p", "ab ba").code == 1
    assert run("-m", model, "--against", str(ids), "-p", "ab ab", "--no-bos").code == 0


# ---- the command ----------------------------------------------------------------------------------------


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Ran]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str | Path) -> Ran:
        code = main(["verify", *map(str, arguments)])
        return Ran(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def llama3_like(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """GPT-2 with Llama 3's way of splitting, and BOS."""
    return with_pre(GPT2, "llama-bpe", tmp_path_factory.mktemp("models") / "llama3-like.gguf", extra=BOS)


def test_the_same_is_exit_code_0(run: Run) -> None:
    found = run("-m", GPT2, "--against", str(GPT2), "-p", "Hello world")
    assert (found.code, found.err) == (0, "")
    assert found.out.startswith("the ids are the same\n")
    assert "2 tokens" in found.out
    assert "11 bytes" in found.out
    assert "MB/s" not in found.out


def test_one_byte_is_no_bytes(run: Run) -> None:
    assert re.search(r" 1 byte$", run("-m", GPT2, "--against", str(GPT2), "-p", "a").out, re.MULTILINE)


def test_a_difference_is_exit_code_1_and_shown(run: Run, llama3_like: Path) -> None:
    found = run("-m", GPT2, "--against", str(llama3_like), "--no-bos", "-p", "It costs 123456 in all")
    assert found.code == 1
    assert found.out.startswith("1 of 1 text differs, in 1 place\n")
    assert re.search(r"^1\. words: 1 place$", found.out, re.MULTILINE)
    assert re.search(r"^   cause: pre_type: ", found.out, re.MULTILINE)
    assert "first in -p, byte 8" in found.out
    assert re.search(r'^   smallest text: "[ \d]{2,4}" \(', found.out, re.MULTILINE)
    lines = found.out.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("     ours"))
    assert [line[14:] for line in lines[at : at + 5]] == [
        "It    ␣costs  ␣123       456    ␣in  ␣all",
        "1026  3484    17031      29228  287  477",
        "It    ␣costs  ␣   123    456    ␣in  ␣all",
        "1026  3484    220 10163  29228  287  477",
        "              ^^^^^^^^^",
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["-p", "Hi"],
            "what should the ids be compared with? Give --against with one of llama-tokenize[:PATH]",
        ),
        (
            ["--against", "gguf:x.gguf"],
            "no texts: give files or directories, -p TEXT, --stdin, --fuzz N or --chat FILE",
        ),
        (["--against", "gguf:/no/such.gguf", "-p", "Hi"], "/no/such.gguf: No such file or directory"),
        (["--against", "nobody", "-p", "Hi"], "'nobody' is not something to compare with"),
        (["--against", "ids:x", "--fuzz", "3"], "--fuzz makes new texts"),
        (["--against", str(GPT2), "--fuzz", "-3"], "fuzz must be 0 or more, not -3"),
        (["--against", "gguf:x", "-p", "Hi", "--timeout", "0"], "--timeout must be more than 0"),
    ],
)
def test_what_cannot_run_is_exit_code_2(arguments: list[str], said: str, run: Run) -> None:
    found = run("-m", GPT2, *arguments)
    assert (found.code, found.out) == (2, "")
    assert found.err.startswith("ggufbpe: error: ")
    assert said in found.err
    assert found.err.count("\n") == 1


def test_nothing_compared_is_not_the_same(run: Run, tmp_path: Path) -> None:
    found = run("-m", GPT2, "--against", str(GPT2), tmp_path, "--json")
    assert (found.code, found.json["texts"], found.json["same"]) == (2, 0, False)


def test_a_file_that_cannot_be_read_is_exit_code_2(run: Run, tmp_path: Path) -> None:
    good = tmp_path / "good.txt"
    good.write_text("good")
    found = run("-m", GPT2, "--against", str(GPT2), tmp_path / "absent", good)
    assert found.code == 2
    assert "absent: No such file or directory" in found.err
    assert found.out.startswith("the ids are the same"), "the others are compared"


def test_directories_are_searched_as_count_does(run: Run, tmp_path: Path) -> None:
    for name, data in {"b.txt": b"b", "a/c.txt": b"c", ".hidden": b"h", "binary": b"\0"}.items():
        path = tmp_path / "texts" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    found = run("-m", GPT2, "--against", str(GPT2), "--json", tmp_path / "texts")
    assert (found.code, found.json["texts"], found.json["bytes"]) == (0, 2, 2)
    assert "skipped in directories: 1 binary, 1 hidden" in found.err


def test_texts_are_taken_as_they_are_but_with_escape(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "text"
    file.write_bytes(rb"a\n")
    sizes = {}
    for flag in ("--no-bos", "--escape"):
        found = run("-m", GPT2, "--against", str(GPT2), "--json", "-p", rb"a\n".decode(), file, flag)
        sizes[flag] = found.json["bytes"]
    assert sizes == {"--no-bos": 6, "--escape": 4}


def test_large_files_are_cut_and_recorded_ids_are_of_whole_ones(
    run: Run, tmp_path: Path, gpt2: Tokenizer
) -> None:
    file, ids = tmp_path / "large.txt", tmp_path / "ids.json"
    file.write_bytes(b"a line of text\n" * 10_000)
    ids.write_text(json.dumps(gpt2.encode(file.read_bytes())))
    assert run("-m", GPT2, "--against", str(GPT2), "--json", file).json["texts"] == 3
    assert run("-m", GPT2, "--against", str(ids), "--json", file).json["texts"] == 1


@pytest.mark.slow
@posix_only
def test_crash_of_the_real_command_is_reported_with_its_text(run: Run, tmp_path: Path) -> None:
    try:
        command = llama_tokenize_command()
    except NotPreparedError as error:
        missing(str(error))
    model = with_pre(GPT2, "gpt-4o", tmp_path / "gpt-4o.gguf")
    for name, text in {"1": b"Hello", "2": b"a" * 60_000, "3": b"world"}.items():
        (tmp_path / name).write_bytes(text)
    paths = [tmp_path / name for name in "123"]
    found = run("-m", model, "--against", f"llama-tokenize:{command}", *paths, "--json")
    assert found.code == 1
    assert (found.json["texts"], found.json["failed_texts"], found.json["different_texts"]) == (3, 1, 0)
    [failure] = found.json["failures"]
    assert failure["kind"] == "crash"
    assert failure["first"]["source"] == str(tmp_path / "2")
    assert failure["first"]["text"] == "a" * 60_000


@posix_only
def test_hanging_and_babbling_commands_are_findings(run: Run, tmp_path: Path) -> None:
    command = tmp_path / "llama-tokenize"
    command.write_text(
        '#!/bin/sh\ngrep -q hang "$4" && sleep 60\ngrep -q rubbish "$4" && echo rubbish || echo "[15496]"\n'
    )
    command.chmod(0o755)
    for name, text in {"1": "hang", "2": "rubbish", "3": "Hello"}.items():
        (tmp_path / name).write_text(text)
    paths = [tmp_path / name for name in "123"]
    found = run("-m", GPT2, "--against", f"llama-tokenize:{command}", *paths, "--timeout", "0.5")
    assert found.code == 1
    assert "llama-tokenize failed on 2 texts" in found.out
    first = f'   1 text, first {paths[0]}, byte 0\n   "hang"'
    assert f"\ntimeout: no answer within 0.5 s\n{first}" in found.out
    assert re.search(r"^garbage: .*'rubbish\\n'\n   1 text, first [^\"]*\n", found.out, re.MULTILINE)


def test_stdin_streams() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "ggufbpe",
            "verify",
            "--against",
            str(GPT2),
            "-m",
            GPT2,
            "--stdin",
            "--json",
        ],
        input=b"line\n" * 100_000,
        capture_output=True,
        check=True,
    )
    found = json.loads(done.stdout)
    assert (found["same"], found["bytes"], found["texts"]) == (True, 500_000, 8)


# ---- how it is shown ------------------------------------------------------------------------------------

NASTY = "\x1b[31mred\x07 <b>&\u202e \u05e9\u05dc\u05d5\u05dd 1234567 👍🏽 \u200b'LL\r\n"


@pytest.fixture
def nasty(tmp_path: Path) -> Path:
    path = tmp_path / "evil\x1b[2J.txt"
    path.write_bytes(NASTY.encode() + b"\xff\x00 7777777")
    return path


def test_untrusted_text_does_not_reach_the_terminal(run: Run, nasty: Path, llama3_like: Path) -> None:
    found = run("-m", GPT2, "--against", str(llama3_like), nasty)
    assert found.code == 1
    assert "words" in found.out
    allowed = {"\u2068", "\u2069"}  # isolates, which we set ourselves, in pairs
    raw = {char for char in found.out if not char.isprintable()} - {"\n"}
    assert raw <= allowed
    assert found.out.count("\u2068") == found.out.count("\u2069")


def test_json_has_bytes_and_is_whole(run: Run, nasty: Path, llama3_like: Path) -> None:
    found = run("-m", GPT2, "--against", str(llama3_like), nasty, "--json")
    first = found.json["differences"][0]["first"]
    assert bytes.fromhex(first["text_bytes"]) == nasty.read_bytes()
    assert {"step", "places", "kinds", "causes", "explains", "first", "smallest"} == set(
        found.json["differences"][0]
    )
    for side in ("ours", "theirs"):
        assert first[side]
        assert all({"id", "piece", "start", "end", "differs"} <= set(token) for token in first[side])
    assert found.json["mb_per_second"]["ggufbpe"] > 0


class _Page(html.parser.HTMLParser):
    """Collects what a browser would fetch or run, and the text."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.tags: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.fetched += [
            f"{tag} {name}" for name, _ in attrs if name in ("src", "href") or name.startswith("on")
        ]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_html_is_one_safe_file(run: Run, nasty: Path, llama3_like: Path, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    found = run("-m", GPT2, "--against", str(llama3_like), nasty, "--html", path)
    assert found.code == 1
    assert "the report is in" in found.err
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    assert page.fetched == []
    assert not page.tags & {"script", "img", "iframe", "link", "b"}
    assert "url(" not in path.read_text()
    assert "prefers-color-scheme" in path.read_text()
    for shown in ("1 of 1 text differs", "words", "pre_type", "smallest", "\u05e9", "<b>"):
        assert shown.lower() in page.text.lower()
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", page.text)


def test_html_to_standard_output_is_the_page_alone(run: Run) -> None:
    found = run("-m", GPT2, "--against", str(GPT2), "-p", "Hi", "--html", "-")
    assert (found.code, found.err) == (0, "")
    assert found.out.startswith("<!doctype html>") or found.out.startswith("<!DOCTYPE html>")


def test_a_text_that_is_the_smallest_is_shown_once(run: Run) -> None:
    against = ["-m", GPT2, "--against", str(UNSPLIT), "--no-bos"]
    assert "smallest text" not in run(*against, "-p", "b").out
    assert "smallest text" in run(*against, "-p", "ab ab").out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("a 123456", "ours a ␣123 456"),
        ("a b c d e f g h i 123456", "ours … ␣d ␣e ␣f ␣g ␣h ␣i ␣123 456"),
        ("a 123456 b c d e f g h i", "ours a ␣123 456 ␣b ␣c ␣d ␣e ␣f …"),
        ("a b c d e f g h i 123456 b c d e f g h i", "ours … ␣d ␣e ␣f ␣g ␣h ␣i ␣123 456 ␣b ␣c ␣d ␣e ␣f …"),
    ],
)
def test_rows_show_whether_there_is_more_of_the_text(
    text: str, row: str, run: Run, llama3_like: Path, tmp_path: Path
) -> None:
    out = run("-m", GPT2, "--against", str(llama3_like), "--no-bos", "-p", text).out
    assert " ".join(next(line for line in out.splitlines() if "ours" in line).split()) == row
    page = tmp_path / "report.html"
    run("-m", GPT2, "--against", str(llama3_like), "--no-bos", "-p", text, "--html", page)
    assert page.read_text(encoding="utf-8").partition("First text")[2].count("…") == row.count("…")


def test_narrow_terminals_get_lines_that_fit(
    run: Run, nasty: Path, llama3_like: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ggufbpe.cli._output.terminal_width", lambda: 50)
    found = run("-m", GPT2, "--against", str(llama3_like), nasty, "--color", "never")
    uncut = ("   fix:", "   first in ")  # can be copied
    lines = [line for line in found.out.splitlines() if not line.startswith(uncut)]
    assert max(map(cell_len, lines)) <= 50
    assert len(lines) > 10


def test_colour_marks_the_differing_span(run: Run, llama3_like: Path) -> None:
    arguments = ["-m", GPT2, "--against", str(llama3_like), "-p", "in 123456", "--no-bos"]
    colored = run(*arguments, "--color", "always").out
    assert "\x1b[1;31m␣123" in colored
    assert "^" not in colored
    plain = re.sub(r"\x1b\[[\d;]*m", "", colored)
    without = run(*arguments, "--color", "never").out
    rate = r"[\d.e-]+ MB/s"

    def rows(text: str) -> list[str]:
        return [re.sub(rate, "", line).rstrip() for line in text.splitlines() if "^" not in line]

    assert rows(plain) == rows(without)


def test_right_to_left_text_is_isolated() -> None:
    assert isolated("abc") == "abc"
    assert isolated("中") == "中"
    assert isolated("a שלום.") == "a \u2068שלום\u2069."
    assert isolated("שלום  עולם") == "\u2068שלום\u2069  \u2068עולם\u2069", "columns of a table stay"


@pytest.mark.slow
@posix_only
def test_progress_bar_on_a_terminal(llama3_like: Path) -> None:
    import pty

    ours, theirs = pty.openpty()
    done = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "ggufbpe",
            "verify",
            "-m",
            GPT2,
            "--against",
            str(GPT2),
            "--fuzz",
            "12000",
        ],
        stdout=subprocess.PIPE,
        stderr=theirs,
        # The compiled engine would be done before there is anything to show.
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80", "GGUFBPE_ENGINE": "reference"},
    )
    shown = output_of_terminal(done, ours, theirs)
    assert done.communicate()[0].startswith(b"the ids are the same")
    assert re.search(rb"\r#+\.+ +\d+% comparing: \d+ texts", shown)
    assert shown.endswith(b"\r\x1b[K"), "it is cleared in the end"
    assert max(map(len, re.split(rb"\r|\x1b\[K", shown))) < 80


def test_compressed_files_and_json_lines_are_read(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"Hello world"))
    (tmp_path / "b.jsonl").write_text('{"text": "one"}\n{"text": "two words"}\n')
    found = run("-m", GPT2, "--against", str(GPT2), "--json", tmp_path)
    result = json.loads(found.out)
    assert (found.code, result["texts"], result["bytes"], result["tokens"]["ggufbpe"]) == (0, 3, 23, 5)
    (tmp_path / "b.jsonl").write_text('{"body": "one", "text": 1}\n')
    found = run("-m", GPT2, "--against", str(GPT2), "--json", "--field", "body", tmp_path / "b.jsonl")
    assert (found.code, json.loads(found.out)["bytes"]) == (0, 3)
    (tmp_path / "bad.gz").write_bytes(b"no gzip")
    found = run("-m", GPT2, "--against", str(GPT2), tmp_path)
    assert (found.code, "bad.gz: the compressed data is broken" in found.err) == (2, True)


def test_files_found_are_those_that_count_finds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One rule for both commands."""
    files = {
        "one": b"1",
        "deep/two": b"22",
        "deep/.hidden": b"3",
        "deep/er/four": b"",
        "binary": b"\0",
        "z": b"5",
    }
    for name, data in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (tmp_path / "link").symlink_to(tmp_path / "one")
    assert main(["count", "--json", "-m", str(GPT2), str(tmp_path), str(tmp_path / "binary")]) == 0
    counted = json.loads(capsys.readouterr().out)
    skipped: Counter[str] = Counter()
    found = list(files_of([str(tmp_path), str(tmp_path / "binary")], skipped, lambda *_: None))
    assert [(file.path, file.size) for file in found] == [(c["name"], c["bytes"]) for c in counted["files"]]
    assert +skipped == counted["skipped"]
    assert len(found) == 5


@posix_only
def test_interrupting_a_hanging_command(tmp_path: Path) -> None:
    """Ctrl-C does not wait for the command, and leaves none of it behind."""
    command = tmp_path / "llama-tokenize"
    mark = tmp_path / "started"
    command.write_text(f'#!/bin/sh\ngrep -q hang "$4" && {{ echo $$ > "{mark}"; sleep 60; }}\necho "[1]"\n')
    command.chmod(0o755)
    arguments = ["-m", GPT2, "--against", f"llama-tokenize:{command}", "-p", "hang"]
    running = subprocess.Popen(
        [sys.executable, "-m", "ggufbpe", "verify", *arguments], stdout=subprocess.DEVNULL
    )
    end = time.monotonic() + 60
    while not (mark.exists() and mark.read_text()):
        assert time.monotonic() < end
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)
    assert running.wait(30) == 130  # not the 60 s that the command sleeps
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)


def test_report_that_cannot_be_written_is_told_before_the_work(run: Run, tmp_path: Path) -> None:
    found = run(
        "-m",
        GPT2,
        "--against",
        "llama-tokenize:/no",
        "-p",
        "Hi",
        "--html",
        tmp_path / "absent" / "report.html",
    )
    assert (found.code, found.out) == (2, "")
    assert "nothing can be written there" in found.err


@pytest.mark.parametrize("target", ["model.gguf", "text.txt", "ids"])
def test_a_report_does_not_take_the_place_of_what_is_read(target: str, run: Run, tmp_path: Path) -> None:
    files = {"model.gguf": RAW_UTF8.read_bytes(), "text.txt": b"Hello", "ids": b"[1]"}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    model, text, ids = (tmp_path / name for name in files)
    found = run("-m", model, "--against", str(ids), text, "--html", tmp_path / target, "--force")
    assert (found.code, "is the input file" in found.err) == (2, True)
    assert (tmp_path / target).read_bytes() == files[target]


@pytest.mark.parametrize("fuzz", [None, "3", 1.5])
def test_a_number_of_texts_that_is_none_is_refused_by_name(fuzz: Any) -> None:
    with pytest.raises(TypeError, match="fuzz must be an integer, not "):
        verify(GPT2, GPT2, fuzz=fuzz)
