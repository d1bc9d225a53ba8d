"""Chat templates for `fix`: read, tried with a chat, and turned into edits of a file."""

from __future__ import annotations

from typing import Any

import pytest
from small_models import CHATML, FactsOf, K, facts_of, small_keys

from ggufbpe import ChatError
from ggufbpe.analysis.doctor.template_edits import template_edits
from ggufbpe.chat.known_templates import known_template

__all__ = ["facts_of"]  # the fixture

DEFAULT, NAMES = K.CHAT_TEMPLATE, K.CHAT_TEMPLATES
QWEN = "Qwen-Qwen3-0.6B"
NO_TOOLS = "{% if not tools %}{{ raise_exception('no tools') }}{% endif %}"


@pytest.mark.parametrize(
    ("given", "listed", "expected"),
    [
        (CHATML, None, {DEFAULT: CHATML}),
        ({"default": CHATML}, None, {DEFAULT: CHATML}),
        ({"": CHATML, "rag": "x"}, None, {DEFAULT: CHATML, f"{DEFAULT}.rag": "x", NAMES: ["rag"]}),
        ({"rag": "x"}, ["rag", "old"], {f"{DEFAULT}.rag": "x"}),  # listed already
        ({"rag": "x"}, ["old"], {f"{DEFAULT}.rag": "x", NAMES: ["old", "rag"]}),
        (
            {"tool_use": NO_TOOLS},
            None,
            {f"{DEFAULT}.tool_use": NO_TOOLS, NAMES: ["tool_use"]},
        ),  # given tools
        (f"known:{QWEN}", None, {DEFAULT: known_template(QWEN).source}),
    ],
)
def test_edits(given: Any, listed: list[str] | None, expected: dict[str, Any], facts_of: FactsOf) -> None:
    file = facts_of({**small_keys(), **({NAMES: listed} if listed else {})}).source
    assert {edit.key: edit.value for edit in template_edits(file, given)} == expected


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"a-b": "x"}, ValueError, "is not a valid name"),
        ("{% for", ChatError, "Unexpected token type|Unexpected EOF"),
        (NO_TOOLS, ChatError, "no tools"),
        ("# A title\n", ChatError, "the template leaves out the user's message"),
    ],
)
def test_what_is_refused(given: Any, error: type[Exception], words: str, facts_of: FactsOf) -> None:
    file = facts_of(small_keys()).source
    with pytest.raises(error, match=words):
        list(template_edits(file, given))
    if error is ChatError:
        assert [edit.value for edit in template_edits(file, given, check=False)] == [given]
