"""The result of `verify`, line by line."""

from __future__ import annotations

import pytest

from ggufbpe.analysis.diagnose.cause import Cause
from ggufbpe.analysis.doctor.proposal import Proposal
from ggufbpe.analysis.oracles.oracle import Failure
from ggufbpe.analysis.verify.chat_comparison import ChatResult
from ggufbpe.analysis.verify.result import (
    ComparedText,
    Difference,
    DifferenceExample,
    FailureGroup,
    ShownToken,
    Verification,
)
from ggufbpe.analysis.views.report_lines import ReportLines, where
from ggufbpe.gguf.change import Change

TEXT = ComparedText("a.txt", 100, b"say hello you")
OURS = (
    ShownToken(1, b"say ", 0, 4, 0, False),
    ShownToken(2, b"hello", 4, 9, 1, True),
    ShownToken(5, b" you", 9, 13, 2, False),
)
THEIRS = (
    ShownToken(1, b"say ", 0, 4, 0, False),
    ShownToken(3, b"hel", 4, 7, 1, True),
    ShownToken(4, b"lo", 7, 9, 1, True),
    ShownToken(5, b" you", 9, 13, 2, False),
)


def difference() -> Difference:
    found = Difference("kind", DifferenceExample(TEXT, 4, 9, 1, OURS, THEIRS, (0, 0)), 0)
    found.step, found.places = "merges", 3
    found.causes, found.explains = (Cause("merges", {"what": "other merges"}),), 0.75
    return found


def result(**fields: object) -> Verification:
    made = Verification("other")
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def lines(
    made: Verification, width: int = 80, note: str = "", models: tuple[str, str] | None = None
) -> list[str]:
    return list(ReportLines(False, width, models).lines(made, note))


def test_equal_ids() -> None:
    made = result(texts=2, bytes=200_000, tokens=3, oracle_tokens=3, seconds=0.1, oracle_seconds=0.2)
    assert lines(made, note="a note") == [
        "the ids are the same",
        "  compared   2 texts  200000 bytes",
        "  ggufbpe   3 tokens  2 MB/s",
        "  other     3 tokens  1 MB/s",
        "  a note",
    ]


def test_a_difference_with_both_rows() -> None:
    made = result(texts=2, different=1, differences=[difference()], other_places=4)
    found = lines(made)
    assert found[0] == "1 of 2 texts differs, in 7 places"
    start = found.index("1. merges: 3 places")
    assert found[start:] == [
        "1. merges: 3 places",
        "   cause: merges: Other merges.",
        "   this explains 75.0% of the ids",
        "   first in a.txt, byte 104",
        "     at byte  0     4       9",
        "     ours     say␣  hello   ␣you",
        "              1     2       5",
        "     theirs   say␣  hel lo  ␣you",
        "              1     3   4   5",
        "                    ^^^^^^",
        "",
        "and 4 more places, which were only counted",
    ]


def test_rows_are_cut_into_blocks_that_fit() -> None:
    found = lines(result(texts=1, different=1, differences=[difference()]), width=30)
    assert sum(line.strip().startswith("at byte") for line in found) == 2
    assert max(map(len, found[4:])) <= 30


def test_the_smallest_text_is_shown_unless_it_is_the_first() -> None:
    found = difference()
    found.smallest = DifferenceExample(ComparedText("", 0, b"lo\x1b"), 0, 2, 0, (), (), (0, 0))
    made = result(texts=1, different=1, differences=[found])
    assert any(
        line.startswith("   smallest text: ") and "\\x1b" in line and "3 bytes" in line
        for line in lines(made)
    )
    found.smallest = found.first
    assert not any("smallest text" in line for line in lines(made))


def test_two_models_by_name() -> None:
    found = difference()
    found.causes = ()
    made = result(texts=1, different=1, differences=[found])
    assert "   cause: not found" in lines(made)
    named = lines(made, models=("a.gguf", "b.gguf"))
    assert "   cause: not found" not in named
    assert any(line.split()[:2] == ["a.gguf", "say␣"] for line in named)


def test_failures_and_the_proposal() -> None:
    group = FailureGroup(Failure("crash", "signal\n11"), ComparedText("b.txt", 5, b"boom"))
    group.texts = 2
    change = Proposal(Change({"a": "b"}), command="ggufbpe fix m -o fixed.gguf")
    found = lines(result(texts=4, failures=[group], proposal=change))
    assert found[:2] == ["the ids of 2 texts of 4 are the same", "other failed on 2 texts"]
    start = found.index("crash: signal\\n11")
    assert found[start + 1] == "   2 texts, first b.txt, byte 5"
    assert "boom" in found[start + 2]
    assert found[-2:] == ["fix: this one command makes all changes:", "  ggufbpe fix m -o fixed.gguf"]


def test_refused_texts() -> None:
    group = FailureGroup(Failure("refused", "not UTF-8"), ComparedText("b.txt", 0, b""))
    group.texts = 1
    found = lines(result(texts=3, failures=[group]))
    assert found[1] == "1 text not compared, since other does not accept them"


@pytest.mark.parametrize("texts", [0, 1])
def test_chats_come_first(texts: int) -> None:
    found = lines(result(chats=ChatResult(chats=1), texts=texts))
    assert found[0] == "the prompt of 1 chat is the same"
    assert len(found) == 1 if not texts else found[2] == "the ids are the same"


def test_only_the_first_differences_are_shown() -> None:
    found = lines(result(texts=1, different=1, differences=[difference() for _ in range(12)]))
    assert sum("merges: 3 places" in line for line in found) == 10
    assert "and 2 more differences: --json and --html show all" in found


def test_places() -> None:
    assert where(ComparedText("a\x1b.txt", 10, b""), 5) == "a\\x1b.txt, byte 15"
