"""Arguments of calls that are not JSON: llama-server's words for what is wrong with them, all asked live (b11549)."""

from __future__ import annotations

import pytest

from ggufbpe.chat.request.json_text import JSONError, parsed_as_llama_cpp

_SYNTAX = "[json.exception.parse_error.101] parse error at line {}, column {}: syntax error while parsing {}"
# A text, and the line, the column and the rest of what nlohmann::json says of it.
WRONG: dict[str, tuple[int, int, str]] = {
    "{": (1, 2, "object key - unexpected end of input; expected string literal"),
    "Paris": (1, 1, "value - invalid literal; last read: 'P'"),
    " falt": (1, 5, "value - invalid literal; last read: ' falt'"),
    "truefal:": (1, 8, "value - invalid literal; last read: 'truefal:'; expected end of input"),
    "-1.5e3l": (1, 7, "value - invalid literal; last read: '-1.5e3l'; expected end of input"),
    '"b"10\n': (1, 0, "value - unexpected number literal; expected end of input"),
    "[1\n,\n]": (3, 1, "value - unexpected ']'; expected '[', '{', or a literal"),
    '{"a" 1}': (1, 6, "object separator - unexpected number literal; expected ':'"),
    '{"a": 1, 2}': (1, 10, "object key - unexpected number literal; expected string literal"),
    '{"a": 1]': (1, 8, "object - unexpected ']'; expected '}'"),
    "[1 2]": (1, 4, "array - unexpected number literal; expected ']'"),
    "-": (1, 2, "value - invalid number; expected digit after '-'; last read: '-'"),
    "1.": (1, 3, "value - invalid number; expected digit after '.'; last read: '1.'"),
    "1ex": (1, 3, "value - invalid number; expected '+', '-', or digit after exponent; last read: '1ex'"),
    "1e+": (1, 4, "value - invalid number; expected digit after exponent sign; last read: '1e+'"),
    '"a': (1, 3, "value - invalid string: missing closing quote; last read: '\"a'"),
    '"\\x"': (1, 3, "value - invalid string: forbidden character after backslash; last read: '\"\\x'"),
    '"\t"': (
        1,
        2,
        "value - invalid string: control character U+0009 (HT) must be escaped to \\u0009 or \\t; "
        "last read: '\"<U+0009>'",
    ),
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong(text: str) -> None:
    line, column, rest = WRONG[text]
    with pytest.raises(JSONError) as error:
        parsed_as_llama_cpp(text)
    assert str(error.value) == _SYNTAX.format(line, column, rest)


OTHERS = {
    "": "[json.exception.parse_error.101] parse error at line 1, column 1: attempting to parse an empty input; "
    "check that your input string or stream contains the expected JSON",
    "1e999": "[json.exception.out_of_range.406] number overflow parsing '1e999'",
}


@pytest.mark.parametrize("text", OTHERS)
def test_other_refusals(text: str) -> None:
    with pytest.raises(JSONError) as error:
        parsed_as_llama_cpp(text)
    assert str(error.value) == OTHERS[text]


def test_a_text_ends_at_nul() -> None:
    assert parsed_as_llama_cpp('{"a": 1}\0{') == {"a": 1}
