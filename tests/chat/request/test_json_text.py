"""Arguments of calls that are not JSON: refused where llama-server refuses them (b11549), with the place."""

from __future__ import annotations

import pytest

from ggufbpe.chat.request.json_text import JSONError, parsed_as_llama_cpp

# A text that llama-server refuses, and what our message says.
WRONG = {
    "": "Expecting value at line 1, column 1",
    "{": "Expecting property name enclosed in double quotes at line 1, column 2",
    "Paris": "Expecting value at line 1, column 1",
    " falt": "Expecting value at line 1, column 2",
    "truefal:": "Extra data at line 1, column 5",
    "-1.5e3l": "Extra data at line 1, column 7",
    '"b"10\n': "Extra data at line 1, column 4",
    "[1\n,\n}": "Expecting value at line 3, column 1",
    '{"a" 1}': "Expecting ':' delimiter at line 1, column 6",
    '{"a": 1, 2}': "Expecting property name enclosed in double quotes at line 1, column 10",
    '{"a": 1]': "Expecting ',' delimiter at line 1, column 8",
    "[1 2]": "Expecting ',' delimiter at line 1, column 4",
    "-": "Expecting value at line 1, column 1",
    "1.": "Extra data at line 1, column 2",
    "1ex": "Extra data at line 1, column 2",
    "1e+": "Extra data at line 1, column 2",
    '"a': "Unterminated string starting at line 1, column 1",
    '"\\x"': "Invalid \\escape at line 1, column 2",
    '"\t"': "Invalid control character at line 1, column 2",
    '"\\ud800"': "an escaped surrogate stands alone",
    "1e999": "number overflow parsing '1e999'",
    '"a\0b"': "Unterminated string starting at line 1, column 1",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong(text: str) -> None:
    with pytest.raises(JSONError) as error:
        parsed_as_llama_cpp(text)
    assert str(error.value) == WRONG[text]


def test_a_text_ends_at_nul() -> None:
    assert parsed_as_llama_cpp('{"a": 1}\0{') == {"a": 1}
