"""Chat templates for `fix`: read, tried with a chat, and turned into edits of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from small_models import CHATML, FactsOf, K, facts_of, small_keys

from ggufbpe import ChatError
from ggufbpe.analysis.doctor.template_edits import NAMES_KEY, template_edits, template_text
from ggufbpe.chat.known_templates import known_template
from ggufbpe.chat.template.lexer import MOST_SOURCE

__all__ = ["facts_of"]  # the fixture

DEFAULT = K.CHAT_TEMPLATE
QWEN = "Qwen-Qwen3-0.6B"
NO_TOOLS = "{% if not tools %}{{ raise_exception('no tools') }}{% endif %}"


@pytest.mark.parametrize(
    ("given", "listed", "expected"),
    [
        (CHATML, None, {DEFAULT: CHATML}),
        ({"default": CHATML}, None, {DEFAULT: CHATML}),
        ({"": CHATML, "rag": "x"}, None, {DEFAULT: CHATML, f"{DEFAULT}.rag": "x", NAMES_KEY: ["rag"]}),
        ({"rag": "x"}, ["rag", "old"], {f"{DEFAULT}.rag": "x"}),  # listed already
        ({"rag": "x"}, ["old"], {f"{DEFAULT}.rag": "x", NAMES_KEY: ["old", "rag"]}),
        (
            {"tool_use": NO_TOOLS},
            None,
            {f"{DEFAULT}.tool_use": NO_TOOLS, NAMES_KEY: ["tool_use"]},
        ),  # given tools
        (f"known:{QWEN}", None, {DEFAULT: known_template(QWEN).source}),
    ],
)
def test_edits(given: Any, listed: list[str] | None, expected: dict[str, Any], facts_of: FactsOf) -> None:
    file = facts_of({**small_keys(), **({NAMES_KEY: listed} if listed else {})}).source
    assert {edit.key: edit.value for edit in template_edits(file, given)} == expected


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"a-b": "x"}, ValueError, "is not a valid name"),
        ("{% for", ChatError, "nothing was written; force=True writes it"),
        (NO_TOOLS, ChatError, "no tools"),
    ],
)
def test_what_is_refused(given: Any, error: type[Exception], words: str, facts_of: FactsOf) -> None:
    file = facts_of(small_keys()).source
    with pytest.raises(error, match=words):
        list(template_edits(file, given))
    if error is ChatError:
        assert [edit.value for edit in template_edits(file, given, check=False)] == [given]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\xef\xbb\xbf{{ a }}", "{{ a }}"),  # the byte order mark is no part of it
        (b"a\r\nb", "a\r\nb"),
        (b"a\xff", "is not UTF-8: invalid start byte at byte 1"),
        (b" \n", "is empty; to remove the model's"),
        (b"a\0b", "contains a NUL character"),
        (b"x" * (MOST_SOURCE + 1), "too many for a chat template"),
    ],
)
def test_the_text_of_a_file(data: bytes, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "template.jinja"
    path.write_bytes(data)
    if expected[0] in "{a" and expected[1] != "s":
        assert template_text(path) == template_text(data) == expected
        return
    for given, what in ((path, "template.jinja'"), (data, "the chat template")):
        with pytest.raises(ValueError, match=f"{what} ?{expected[:20]}|{expected}"):
            template_text(given)
