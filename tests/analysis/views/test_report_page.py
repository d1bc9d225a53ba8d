"""The page of a comparison, and the words that it shares with the lines."""

from __future__ import annotations

import pytest

from ggufbpe.analysis.diagnose.cause import Cause
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
from ggufbpe.analysis.views.report_page import by_span, goes_on, rate, to_html, verdict


def result(**fields: object) -> Verification:
    made = Verification("other")
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def failed(texts: int) -> FailureGroup:
    group = FailureGroup(Failure("crash", ""), ComparedText("", 0, b""))
    group.texts = texts
    return group


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (result(), "nothing was compared"),
        (result(texts=1, failures=[failed(1)]), "nothing was compared"),
        (result(texts=3, different=1), "1 of 3 texts differs"),
        (result(texts=3, different=2, failures=[failed(1)]), "2 of 2 texts differ"),
        (result(texts=3, failures=[failed(1)]), "the ids of 2 texts of 3 are the same"),
        (result(texts=3), "the ids are the same"),
        (result(texts=3, chats=ChatResult(chats=3, prompts=3)), "the ids of the prompts are the same"),
        (result(texts=4, chats=ChatResult(chats=3, prompts=3)), "the ids are the same"),
    ],
)
def test_verdicts(made: Verification, expected: str) -> None:
    assert verdict(made) == expected


@pytest.mark.parametrize(
    ("size", "seconds", "expected"),
    [(2_500_000, 0.5, "5 MB/s"), (123_456, 1, "0.123 MB/s"), (99_999, 1, ""), (1_000_000, 0, "")],
)
def test_rates(size: int, seconds: float, expected: str) -> None:
    assert rate(size, seconds) == expected


A, B = ShownToken(1, b"a", 5, 6, 0, False), ShownToken(2, b"bc", 6, 8, 1, True)
B1, B2 = ShownToken(3, b"b", 6, 7, 1, True), ShownToken(4, b"c", 7, 8, 1, True)
C, D = ShownToken(5, b"d", 8, 9, 2, False), ShownToken(6, b"<e>", 9, 12, 2, False)


def example(size: int, *, offset: int = 0) -> DifferenceExample:
    text = ComparedText("a.txt", 0, b"<<<<<abcd<e>"[offset:] + b"." * (size - 12))
    return DifferenceExample(text, 6, 8, 1, (A, B, C, D), (A, B1, B2, C, D), (3, 4))


def test_tokens_by_span_are_one_by_one_where_they_agree() -> None:
    assert list(by_span(example(12))) == [
        ([A], [A], (0, 0)),
        ([B], [B1, B2], (3, 4)),
        ([C], [C], (0, 0)),
        ([D], [D], (0, 0)),
    ]


@pytest.mark.parametrize(("size", "rest"), [(12, None), (20, 12)])
def test_text_around_the_tokens(size: int, rest: int | None) -> None:
    assert goes_on(example(size)) == (True, rest)
    at_start = [token._replace(start=token.start - 5, end=token.end - 5) for token in (A, B)]
    whole = DifferenceExample(ComparedText("", 0, b"abc"), 1, 3, 1, tuple(at_start), tuple(at_start), (0, 0))
    assert goes_on(whole) == (False, None)
    assert goes_on(whole._replace(ours=(), theirs=())) == (False, 0)


def test_the_page_has_what_was_found_and_nothing_that_runs() -> None:
    found = Difference("kind", example(12), 0)
    found.step, found.places, found.explains = "merges", 3, 1.0
    found.causes = (Cause("merges", {"what": "other <b>merges</b>"}),)
    page = to_html(result(texts=1, different=1, differences=[found]), "my <model>.gguf", "a note")
    assert page.startswith("<!DOCTYPE html>")
    for words in (
        "1 of 1 text differs",
        "my &lt;model&gt;.gguf",
        "a note",
        "other &lt;b&gt;merges&lt;/b&gt;",
        "a.txt",
    ):
        assert words in page, words
    assert "<e>" not in page
    assert "&lt;e&gt;" in page
    assert "<script" not in page
