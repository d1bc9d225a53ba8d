"""The marks of reasoning, and where two texts differ."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from ggufbpe.chat.request.reasoning import (
    Reasoning,
    Render,
    common_length,
    detect_reasoning,
    match_near,
    parted,
    patched,
    segments,
)
from ggufbpe.chat.template.environment import Template
from ggufbpe.chat.template.values import viewed


def render_by(source: str) -> Render:
    """What a template makes of a chat."""
    template = Template(source)

    def render(messages: Any, tools: Any = None, **names: Any) -> str:
        return template.render(viewed({"messages": messages, "tools": tools, **names}), time.gmtime(0))

    return render


TURN = "{% for m in messages %}<|{{ m.role }}|>REASONING{{ m.content }}{% endfor %}"
TEMPLATES = {
    "none": (TURN.replace("REASONING", ""), Reasoning()),
    "in answers": (
        TURN.replace(
            "REASONING", "{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>\n{% endif %}"
        ),
        Reasoning(True, "<think>", "</think>\n"),
    ),
    "behind alone": (
        TURN.replace("REASONING", "{% if m.reasoning_content %}{{ m.reasoning_content }}[/T]{% endif %}"),
        Reasoning(True, "<|assistant|>", "[/T]"),
    ),
    "in the generation prompt": (
        TURN.replace("REASONING", "")
        + "{% if add_generation_prompt %}<|assistant|>{% if enable_thinking %}<think>{% endif %}{% endif %}",
        Reasoning(True, "<think>", ""),
    ),
    "closed where it is switched off": (
        TURN.replace("REASONING", "")
        + "{% if add_generation_prompt %}<|assistant|><think>{% if not enable_thinking %}</think>{% endif %}"
        "{% endif %}",
        Reasoning(True, "<think>", "</think>"),
    ),
    "beside calls": (
        "{% for m in messages %}<|{{ m.role }}|>{% if m.tool_calls %}[R]{{ m.reasoning_content }}[/R]"
        "{{ m.tool_calls|tojson }}{% else %}{{ m.content }}{% endif %}{% endfor %}",
        Reasoning(True, "[R]", "[/R]"),
    ),
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_detect_reasoning(name: str) -> None:
    source, marks = TEMPLATES[name]
    assert detect_reasoning(render_by(source), supports_tool_calls=True) == marks


FOUND = Reasoning(True, "<r>\n", "</r>\n")
PATCHED = [
    ("any", FOUND, FOUND),
    ("content.split('</think>')", Reasoning(), Reasoning(True, "<think>", "</think>")),
    ("content.split('</think>')", FOUND, FOUND),
    ("content.split('</think>') reasoning_content", Reasoning(), Reasoning()),
    ("<SPECIAL_10><SPECIAL_11><SPECIAL_12><TOOL_RESPONSE>", FOUND, Reasoning(True, "<think>\n", "</think>")),
    ("laguna_glm_thinking", FOUND, Reasoning(True, "<r>", "</r>")),
]


@pytest.mark.parametrize(("source", "found", "expected"), PATCHED)
def test_patched(source: str, found: Reasoning, expected: Reasoning) -> None:
    assert patched(source, found) == expected


def test_segments() -> None:
    assert segments("a<b>c[d] <e") == [
        (False, "a"),
        (True, "<b>"),
        (False, "c"),
        (True, "[d]"),
        (False, " "),
        (False, "<e"),
    ]


PARTED = {  # two texts, and what each has that the other has not
    ("abc", "abc"): ("", ""),
    ("abXc", "abYYc"): ("X", "YY"),
    ("<a>x", "<a><b>x"): ("", "<b>"),
    ("<ab>", "<ac>"): ("<ab>", "<ac>"),  # marks are compared as a whole
    ("", "x"): ("", "x"),
    ("x", "xyz"): ("", "yz"),
}


@pytest.mark.parametrize("texts", PARTED)
def test_parted(texts: tuple[str, str]) -> None:
    assert parted(*texts) == PARTED[texts]
    assert parted(*texts[::-1]) == PARTED[texts][::-1]


def test_common_length_and_match_near() -> None:
    assert [common_length("abc", other) for other in ("abd", "abcd", "", "x")] == [2, 3, 0, 0]
    pattern = re.compile("b+c")
    assert match_near(pattern, "b" * 2000 + "N" + "bc", "N") is not None
    assert match_near(pattern, "N" + "x" * 2000 + "bc", "N") is None
