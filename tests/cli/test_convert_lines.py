"""How export and import tell how far ids agree with a library's (cli/_convert.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from ggufbpe.analysis.conversion.parity import Agreement, DifferingText
from ggufbpe.cli._arguments import Parser, parse_arguments
from ggufbpe.cli._convert import add_check, agreement_lines, lines_of, tell

SAME = Agreement("tokenizers 0.21", 200, 0, 1000, 0, 5, (), ())
TRIED = "tokenizers 0.21: 200 texts and 5 characters"


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (None, []),
        ("tokenizers is not installed", ["tokenizers is not installed"]),
        (SAME, [f"{TRIED}, all ids the same"]),
        (
            SAME._replace(differing=3, differing_tokens=7, examples=(DifferingText("a\n", [1, 2], None),)),
            [
                f"{TRIED}; ids differ in 3 texts (1.5%), in at most 7 of 1000 tokens",
                "  'a\\n': [1, 2] here, an error there",
            ],
        ),
        (
            SAME._replace(differing=199),
            [f"{TRIED}; ids differ in 199 texts (99.5%), in at most 0 of 1000 tokens"],
        ),
        (
            SAME._replace(differing_characters=(0x41, 0x1F642)),
            [
                f"{TRIED}; ids differ in 0 texts (0%), in at most 0 of 1000 tokens and on 2 characters: "
                "U+0041, U+1F642"
            ],
        ),
        (
            SAME._replace(differing=1, differing_characters=tuple(range(65, 80))),
            [
                f"{TRIED}; ids differ in 1 text (0.5%), in at most 0 of 1000 tokens and on 15 characters: "
                + ", ".join(f"U+00{code:X}" for code in range(65, 77))
                + " …"
            ],
        ),
        (
            SAME._replace(differing=1, examples=(DifferingText("a", list(range(20)), [5]),)),
            [
                f"{TRIED}; ids differ in 1 text (0.5%), in at most 0 of 1000 tokens",
                "  'a': [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, …] here, [5] there",
            ],
        ),
    ],
)
def test_agreement(found: Agreement | str | None, expected: list[str]) -> None:
    assert list(agreement_lines(found)) == expected


def test_flags() -> None:
    parser = Parser("ggufbpe export")
    add_check(parser)
    assert vars(parse_arguments(parser, [])).items() >= {"no_check": False, "sample": []}.items()
    found = parse_arguments(parser, ["--no-check", "--sample", "a", "--sample", "b"])
    assert (found.no_check, found.sample) == (True, ["a", "b"])


def test_lines_keep_their_ends(tmp_path: Path) -> None:
    path = tmp_path / "sample.txt"
    path.write_bytes(b"one\r\n\ntwo\xff")
    assert list(lines_of(str(path))) == ["one\r\n", "\n", "two\ufffd"]


@pytest.mark.parametrize("on_stderr", [True, False])
def test_a_line_goes_where_no_file_is_written(on_stderr: bool, capfd: pytest.CaptureFixture[str]) -> None:
    tell("limit: \x1b", on_stderr)
    out, err = capfd.readouterr()
    told, other = (err, out) if on_stderr else (out, err)
    assert (told, other) == ("limit: \\x1b\n", "")
