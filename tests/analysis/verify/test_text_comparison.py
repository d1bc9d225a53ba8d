"""Texts compared a batch at a time: counts, kinds of differences, examples, failures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from unittest.mock import Mock

import pytest
from small_models import small_tokenizer

from ggufbpe import Tokenizer
from ggufbpe._util.progress import Progress
from ggufbpe.analysis.doctor.texts_with_ids import TextWithIds
from ggufbpe.analysis.oracles.oracle import Answer, Failure, Oracle
from ggufbpe.analysis.oracles.recorded_ids import Recorded
from ggufbpe.analysis.verify import text_comparison
from ggufbpe.analysis.verify.result import ComparedText, Difference, FailureGroup, Verification
from ggufbpe.analysis.verify.text_comparison import Comparing, Kept

TOKENIZER = small_tokenizer()
IDS = TOKENIZER.vocabulary.token_to_id
EOS = TOKENIZER.eos_id or 0


class Other(Oracle):
    """Answers what a function makes of the ids."""

    name = "other"

    def __init__(self, change: Callable[[bytes, list[int]], Answer]) -> None:
        self._change = change

    def encode(self, texts: Sequence[bytes], add_special: bool, parse_special: bool) -> list[Answer]:
        return [self._change(text, TOKENIZER.encode(text)) for text in texts]


class Collected(Comparing):
    """What a comparison has collected, before causes are looked for (difference_causes.py)."""

    @property
    def kinds(self) -> dict[str, Difference]:
        return self._kinds

    @property
    def groups(self) -> list[FailureGroup]:
        return list(self._failures.values())


def compared(
    change: Callable[[bytes, list[int]], Answer], *texts: bytes
) -> tuple[Collected, Verification, list[Progress]]:
    told: list[Progress] = []
    comparing = Collected(TOKENIZER, Other(change), True, True, told.append)
    for number, text in enumerate(texts):
        comparing.compare([ComparedText("source", number, text)])
    return comparing, comparing.result, told


def test_equal_ids() -> None:
    _, result, told = compared(lambda text, ids: ids, b"hello", b"a b")
    assert (result.texts, result.bytes, result.tokens, result.oracle_tokens) == (2, 8, 4, 4)
    assert (result.different, result.same, result.oracle) == (0, True, "other")
    assert [(each.done, each.counts["bytes"]) for each in told] == [(0, 0), (1, 5)]


def kinds_of(change: Callable[[bytes, list[int]], Answer], text: bytes) -> dict[str, int]:
    comparing, _, _ = compared(change, text)
    return {kind: found.places for kind, found in comparing.kinds.items()}


def apart(text: bytes, ids: list[int]) -> list[int]:
    """The same text, of which "hello" is in letters."""
    letters = [IDS[char] for char in "hello"]
    return [token for each in ids for token in (letters if each == IDS["hello"] else [each])]


@pytest.mark.parametrize(
    ("change", "text", "expected"),
    [
        (apart, b"hello 1hello", {"L / L+": 2}),
        (lambda text, ids: [*ids, EOS], b"ab", {"nothing / <|im_end|>": 1}),
        (lambda text, ids: ids[:-1], b"ab<|im_end|>", {"<|im_end|> / nothing": 1}),
        (lambda text, ids: [ids[0], IDS["c"], *ids[2:]], b"abd", {"another text": 1}),
        (lambda text, ids: [IDS["a"], IDS["Ġ"], IDS["b"], IDS["Ġ"]], b"a b ", {}),  # as it is
    ],
)
def test_kinds(change: Callable[[bytes, list[int]], Answer], text: bytes, expected: dict[str, int]) -> None:
    assert kinds_of(change, text) == expected


def test_equal_places_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large text that differs everywhere has the same tokens in many places."""
    shape = Mock(return_value="L")
    monkeypatch.setattr(Comparing, "_shape", shape)
    assert kinds_of(apart, b"hello 1" * 1000) == {"L / L": 1000}
    assert shape.call_count == 2


def test_an_example_has_the_tokens_around_the_place() -> None:
    comparing, result, _ = compared(apart, b"say: hello you", b"hello")
    [found] = comparing.kinds.values()
    assert (result.different, found.places, found.number) == (2, 2, 0)
    example = found.first
    assert (example.text.data, example.start, example.end) == (b"say: hello you", 5, 10)
    ours = [(token.piece, token.differs) for token in example.ours if token.differs or token.start < 5]
    assert ours[-1] == (b"hello", True)
    assert [token.piece for token in example.theirs if token.differs] == [b"h", b"e", b"l", b"l", b"o"]
    assert all(not token.differs for token in example.ours if token.end <= 5)


def test_failures_of_one_reason_are_one_group() -> None:
    def fail(text: bytes, ids: list[int]) -> Answer:
        return (
            Failure("crash", f"signal at {len(text)}")
            if text.startswith(b"bad")
            else Failure("refused", "no")
        )

    comparing, result, _ = compared(fail, b"bad", b"bad again", b"good")
    assert (result.texts, result.oracle_tokens, result.different) == (3, 0, 0)
    groups = [(group.kind, group.detail, group.texts, group.first.data) for group in comparing.groups]
    assert groups == [("crash", "signal at 3", 2, b"bad"), ("refused", "no", 1, b"good")]


def test_kinds_and_failures_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_comparison, "MOST_KINDS", 1)
    _, result, _ = compared(lambda text, ids: [*ids, EOS] if text == b"a" else ids[:-1], b"a", b"hello")
    assert (result.different, result.other_places) == (2, 1)

    def fail(text: bytes, ids: list[int]) -> Answer:
        return Failure("crash", text.decode())

    comparing, result, _ = compared(fail, b"one", b"two", b"three")
    assert [group.texts for group in comparing.groups] == [1, 2]


@pytest.mark.parametrize(
    ("first", "note"),
    [([97, EOS], "with EOS"), ([97], "without EOS")],
)
def test_recorded_ids_tell_whether_the_command_or_the_library_made_them(first: list[int], note: str) -> None:
    """llama-tokenize leaves out EOS of a model that adds no BOS."""
    tokenizer = Tokenizer(TOKENIZER.vocabulary._replace(add_eos=True))
    oracle = Recorded([first])
    comparing = Comparing(tokenizer, oracle, True, True, lambda told: None)
    comparing.compare([ComparedText("", 0, b"a")])
    assert comparing.result.different == 0
    assert f": {note}" in oracle.note


def test_the_first_texts_are_kept_until_they_are_many() -> None:
    kept = Kept()
    for size in (5, 1 << 20, 7, 1 << 19):
        kept.add(TextWithIds(b"x" * size, []))
    assert [len(each.text) for each in kept.texts] == [5, 7, 1 << 19]
    large = Kept()
    large.add(TextWithIds(b"x" * (1 << 21), []))
    assert len(large.texts) == 1  # at least one
