"""rich's output as safe lines."""

from __future__ import annotations

import pytest
from rich.console import RenderableType
from rich.text import Text

from ggufbpe.analysis.views.drawing import (
    beside,
    columns,
    drawn,
    indented,
    paragraph,
    pattern_lines,
    piece,
    styled,
    unbroken,
    uncut,
)


def lines(part: RenderableType, width: int | None = None, color: bool = False) -> list[str]:
    return list(drawn([part], color, width))


def test_a_line_is_broken_unless_it_may_not_be() -> None:
    text = "one two three"
    assert lines(Text(text), 8) == ["one two ", "three"]
    assert lines(uncut(text), 8) == [text]
    assert lines(paragraph(text, 2), 8) == ["  one", "  two", "  three"]
    assert lines(beside("- ", text), 8) == ["- one", "  two", "  three"]
    assert lines(beside("-", text, 4), 9) == ["-   one", "    two", "    three"]
    assert lines(indented(uncut(text), 3)) == [f"   {text}"]
    assert lines(Text(text)) == [text]  # of a pipe


def test_color_is_an_escape_sequence_or_nothing() -> None:
    assert lines(uncut("a").append("b", "red"), color=True) == ["a\x1b[31mb\x1b[0m"]
    assert lines(Text("a", "red"), color=True) == ["\x1b[31ma\x1b[0m"]
    assert lines(styled("a", "red")) == lines(Text("a", "red")) == ["a"]
    assert lines(styled("a", "red").append("b"), color=True) == ["\x1b[31ma\x1b[0mb"]


def test_markup_is_text() -> None:
    assert lines("[bold]x[/bold] :smile:") == ["[bold]x[/bold] :smile:"]


def test_spaces_within_quotes_stay_on_their_line() -> None:
    """A line that ends before the space would hide it."""
    assert lines(paragraph("the token ' world' is", 0), 12) == ["the token", "' world' is"]
    assert lines(Text(unbroken("a b") + " c d"), 5) == ["a b c", "d"]


def test_columns() -> None:
    rows = [["1", "one", "x"], ["23", "twenty-three", "y"]]
    assert lines(columns(rows, 1)) == [" 1  one           x", "23  twenty-three  y"]


@pytest.mark.parametrize(
    ("pattern", "width", "expected"),
    [
        (r"abcd|efgh|ijkl", None, r"abcd|efgh|ijkl"),
        (r"abcd|efgh|ijkl", 12, "abcd|efgh|\nijkl"),
        (r"abcd|efgh|ijkl", 3, "abcd|efgh|\nijkl"),  # not narrower than 10
        ("x" * 25, 10, "\n".join(["x" * 10, "x" * 10, "x" * 5])),
        ("xxxxxxx\\u4e00y", 10, "xxxxxxx\n\\u4e00y"),  # an escape stays whole
    ],
)
def test_patterns(pattern: str, width: int | None, expected: str) -> None:
    assert pattern_lines(pattern, width) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b" world", "␣world"),
        (b"", "∅"),
        (b"\x1b[31m\xff", "\\x1b[31m\\xff"),
        (b"x" * 40, "x" * 27 + "…"),
    ],
)
def test_pieces(data: bytes, expected: str) -> None:
    assert piece(data).plain == expected


def test_right_to_left_text_is_isolated_line_by_line() -> None:
    assert lines(uncut("a")) == ["a"]
    assert lines(uncut("שלום")) != ["שלום"]
    assert "שלום" in lines(uncut("שלום"))[0]
