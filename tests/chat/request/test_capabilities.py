"""What small templates support, found by running them."""

from __future__ import annotations

import pytest

from ggufbpe import ChatError
from ggufbpe.chat.request.capabilities import Capabilities, detect_capabilities, preserving_names
from ggufbpe.chat.template.environment import Template

PLAIN = "{% for m in messages %}{{ m.role }}: {{ m.content }}{% endfor %}"
NO_TOOLS = {"supports_tools": False, "supports_tool_calls": False, "supports_parallel_tool_calls": False}
CALLS = (
    "{{ tools|tojson }}{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}"
    "{{ c.function.name }}ARGUMENTS{% endfor %}{% endfor %}"
)

# A template, and the capabilities that differ from the defaults.
TEMPLATES: dict[str, tuple[str, dict[str, bool]]] = {
    "text alone": (PLAIN, NO_TOOLS),
    "parts alone": (
        "{% for m in messages %}{% for p in m.content %}{{ p.text }}{% endfor %}{% endfor %}",
        {**NO_TOOLS, "supports_string_content": False, "supports_typed_content": True},
    ),
    "text or parts": (
        "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}"
        "{% for p in m.content %}{{ p.text }}{% endfor %}{% endif %}{% endfor %}",
        {**NO_TOOLS, "supports_typed_content": True},
    ),
    "no system role": (
        "{% for m in messages %}{% if m.role != 'system' %}{{ m.content }}{% endif %}{% endfor %}",
        {**NO_TOOLS, "supports_system_role": False},
    ),
    "a system role that is refused": (
        "{% if messages[0].role == 'system' %}{{ raise_exception('no') }}{% endif %}" + PLAIN,
        {**NO_TOOLS, "supports_system_role": False},
    ),
    "calls with objects": (
        CALLS.replace("ARGUMENTS", "{{ c.function.arguments|tojson }}"),
        {"supports_object_arguments": True},
    ),
    "calls with text": (CALLS.replace("ARGUMENTS", "{{ c.function.arguments }}"), {}),
    "one call": (
        PLAIN + "{{ tools|tojson }}{% for m in messages %}{% if m.tool_calls %}"
        "{{ m.tool_calls[0].function.arguments.arg }}{% endif %}{% endfor %}",
        {"supports_object_arguments": True, "supports_parallel_tool_calls": False},
    ),
    "reasoning that is kept": (
        PLAIN
        + "{% for m in messages %}{% if preserve_thinking %}{{ m.reasoning_content }}{% endif %}{% endfor %}",
        {**NO_TOOLS, "supports_preserve_reasoning": True},
    ),
    "effort": (PLAIN + "{{ reasoning_effort }}", {**NO_TOOLS, "supports_reasoning_effort": True}),
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_detect_capabilities(name: str) -> None:
    source, changes = TEMPLATES[name]
    assert detect_capabilities(Template(source)) == Capabilities(**changes)


def test_a_template_that_takes_messages_away() -> None:
    with pytest.raises(ChatError, match="takes messages away"):
        detect_capabilities(Template("{{ messages.pop() }}"))


def test_names_by_which_reasoning_is_kept() -> None:
    assert preserving_names(True) == {
        "preserve_thinking": True,
        "clear_thinking": False,
        "truncate_history_thinking": False,
        "drop_thinking": False,
    }
