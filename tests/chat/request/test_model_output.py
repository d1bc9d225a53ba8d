"""What a model writes under a template: the mark before an answer, and the form of calls."""

from __future__ import annotations

import pytest
from test_reasoning import render_by

from ggufbpe import ChatError
from ggufbpe.chat.request.model_output import Output, detect_output
from ggufbpe.chat.request.reasoning import Reasoning

TURN = (
    "{% for m in messages %}<|{{ m.role }}|>ANSWER"
    "{% for c in m.tool_calls or [] %}CALL{% endfor %}<|end|>{% endfor %}"
)


def template(answer: str, call: str = "") -> str:
    """A template of these parts."""
    return TURN.replace("ANSWER", answer).replace("CALL", call)


PLAIN = "{{ m.content or '' }}"
NAME, ARGUMENTS = "{{ c.function.name }}", "{{ c.function.arguments|tojson }}"
TEMPLATES: dict[str, tuple[str, bool, Output]] = {
    "no calls": (template(PLAIN), False, Output()),
    "a mark around answers": (
        template(
            "{% if m.content and m.role == 'assistant' %}<say>{{ m.content }}</say>"
            "{% else %}{{ m.content }}{% endif %}"
        ),
        False,
        Output(content_start="<say>"),
    ),
    "calls in JSON": (
        template(PLAIN, '<call>{"name": "' + NAME + '", "arguments": ' + ARGUMENTS + "}</call>"),
        True,
        Output(calls="json", calls_start="<call>", supports_calls=True),
    ),
    "calls in an array of JSON": (
        template(PLAIN, '[C][{"name": "' + NAME + '", "arguments": ' + ARGUMENTS + "}]"),
        True,
        Output(calls="json", calls_start="[C]", supports_calls=True),
    ),
    "tagged calls": (
        template(PLAIN, "<calls><call=" + NAME + ">{% for k, v in c.function.arguments.items() %}"
                 "<p={{ k }}>{{ v }}</p>{% endfor %}</call></calls>"),
        True,
        Output(calls="tagged", calls_start="<calls>", supports_calls=True, tagged_arguments=True),
    ),
    "known by its text": (
        template(PLAIN) + "{# <|CHATBOT_TOKEN|><|END_OF_TURN_TOKEN|> #}",
        False,
        Output(content_start="<|CHATBOT_TOKEN|>"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TEMPLATES)
def test_detect_output(name: str) -> None:
    source, supports_calls, output = TEMPLATES[name]
    assert detect_output(source, render_by(source), Reasoning(), supports_calls) == output


def test_calls_that_only_look_like_json() -> None:
    source = template(PLAIN, '{"name": "' + NAME + '", "arguments": {{ c.function.arguments|string }}}')
    with pytest.raises(ChatError, match="a tool call looks like JSON in this template, but is not valid"):
        detect_output(source, render_by(source), Reasoning(), True)
