"""Why a prompt is not that of transformers: another template, or the same one rendered otherwise by llama.cpp."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from record_transformers import model_with
from recorded_transformers import RecordedTransformers

from ggufbpe.analysis.oracles.chat_answers import Prompt, Refused
from ggufbpe.analysis.oracles.oracle import Failure
from ggufbpe.analysis.verify.as_transformers import AsTransformers, is_same_answer

FILE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
BODY: dict[str, Any] = {"messages": [{"role": "user", "content": " Hi "}], "add_generation_prompt": False}


class Scripted(RecordedTransformers):
    """Answers what `render` makes of the template and the first content."""

    render: Any = None

    def answer(self, question: Mapping[str, Any]) -> Any:
        said = self.render(
            question.get("chat_template", self._templates[""]), question["conversation"][0]["content"]
        )
        return {"prompt": said, "ids": []} if isinstance(said, str) else said


def sides(render: Any, folder: str = FILE) -> AsTransformers:
    tokenizer = model_with(FILE)
    oracle = Scripted(tokenizer, folder)
    oracle.render = render
    return AsTransformers(tokenizer, oracle)


def as_file(template: str, content: str) -> str:
    return f"<user>{content}"


def of_other(template: str, content: str) -> str:
    return f"<user>{content}" if template == FILE else f"[user]{content}"


def trimmed(template: str, content: str) -> str:
    return f"<user>{content.strip()}" if template == FILE else f"[user]{content.strip()}"


CASES: dict[str, tuple[Any, str, list[tuple[str, list[str]]]]] = {
    "the same": (as_file, FILE, []),
    "another text, the same prompt": (as_file, FILE + " ", []),
    "another template": (of_other, "[]", [("template", ["other"])]),
    "rendered otherwise": (trimmed, FILE, [("plain_jinja", ["whitespace"])]),
    "both": (trimmed, "[]", [("template", ["other"]), ("plain_jinja", ["whitespace"])]),
    "refused": (lambda template, content: Refused("no"), FILE, [("plain_jinja", ["other"])]),
    "no answer": (lambda template, content: Failure("timeout", "late"), FILE, []),
}


@pytest.mark.parametrize("name", CASES)
def test_causes(name: str) -> None:
    render, folder, expected = CASES[name]
    found = sides(render, folder).causes(BODY)
    assert [(cause.id, cause.detail["topics"]) for cause in found] == expected


def test_words() -> None:
    [cause] = sides(trimmed).causes(BODY)
    assert cause.detail["what"] == (
        "the template is rendered otherwise by llama.cpp than by transformers for white space: "
        "first 'Hi' instead of ' Hi ' at byte 6"
    )
    [cause] = sides(lambda template, content: Refused("no")).causes(BODY)
    assert str(cause.detail["what"]).endswith("explains: transformers refuses the chat (no)")


def test_whether_the_template_is_the_same() -> None:
    assert sides(as_file).has_same_template(BODY)
    assert not sides(as_file, FILE + " ").has_same_template(BODY)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (Prompt(b"a"), Prompt(b"a", 1), True),
        (Prompt(b"a"), Prompt(b"b"), False),
        (Refused("a"), Refused("b"), True),
        (Refused("a"), Prompt(b"a"), False),
    ],
)
def test_is_same(one: Any, other: Any, expected: bool) -> None:
    assert is_same_answer(one, other) is expected
