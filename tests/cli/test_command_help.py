"""Help texts as wide as the terminal (cli/_help.py)."""

from __future__ import annotations

import argparse

import pytest

from ggufbpe.cli import _output
from ggufbpe.cli._help import HelpFormatter

LIST = """formats:

  one      a description of several words, which is longer than a line
  other    short
  a-name-of-one-column-that-is-longer-than-any-line"""
EXAMPLES = "examples:\n  ggufbpe command --with a very long line of arguments that nobody breaks"


def shown(description: str, width: int | None, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(_output, "terminal_width", lambda: width)
    parser = argparse.ArgumentParser(
        "x", description=description, formatter_class=HelpFormatter, add_help=False
    )
    return parser.format_help().splitlines()[2:]


def test_paragraphs_are_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "one two-three four\n\nfive six"
    assert shown(text, 14, monkeypatch) == ["one", "two-three", "four", "", "five six"]  # hyphens stay
    assert shown(text, 80, monkeypatch) == ["one two-three four", "", "five six"]


def test_the_second_column_of_a_list_is_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(LIST, 42, monkeypatch) == [
        "formats:",
        "",
        "  one      a description of several",
        "           words, which is longer than a",
        "           line",
        "  other    short",
        "  a-name-of-one-column-that-is-longer-than-any-line",
    ]


def test_examples_are_never_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(f"a b c\n\n{EXAMPLES}", 20, monkeypatch) == ["a b c", "", *EXAMPLES.split("\n")]


@pytest.mark.parametrize(("terminal", "width"), [(None, 78), (60, 58), (300, 98)])
def test_width(terminal: int | None, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown("ab " * 99, terminal, monkeypatch)
    assert width - 2 <= max(map(len, lines)) <= width


@pytest.mark.parametrize(("terminal", "column"), [(100, 24), (50, 16)])
def test_what_is_said_of_flags_begins_further_left_on_a_narrow_terminal(
    terminal: int, column: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_output, "terminal_width", lambda: terminal)
    parser = argparse.ArgumentParser("x", formatter_class=HelpFormatter, add_help=False)
    parser.add_argument("--flag", metavar="N", help="what it does")
    parser.add_argument("--a-flag-of-another-length", metavar="N", help="what it does")
    assert parser.format_help().splitlines()[-3:] == [
        f"{'  --flag N':{column}}what it does",
        "  --a-flag-of-another-length N",
        f"{'':{column}}what it does",
    ]
