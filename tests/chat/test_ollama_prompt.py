"""Prompts as Ollama makes them: the newer kind of template, the older one turn by turn, and what is refused."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from ggufbpe import ChatError
from ggufbpe.chat.ollama_prompt import OllamaTemplate
from ggufbpe.chat.ollama_values import messages_of, tools_of

SYSTEM = {"role": "system", "content": "Be terse."}
USER, ANSWER = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}
OLD = "{{ if .System }}S:{{ .System }} {{ end }}{{ if .Prompt }}U:{{ .Prompt }} {{ end }}A:{{ .Response }}."


def test_messages() -> None:
    made = OllamaTemplate("{{ range .Messages }}<{{ .Role }}>{{ .Content }}{{ end }}<assistant>")
    assert made.prompt({"messages": [SYSTEM, USER]}) == b"<system>Be terse.<user>Hi<assistant>"
    assert made.names == {"messages", "role", "content"}


def test_the_older_kind_runs_once_for_each_turn() -> None:
    made = OllamaTemplate(OLD)
    assert made.prompt({"messages": [SYSTEM, USER]}) == b"S:Be terse. U:Hi A:"
    assert made.prompt({"messages": [SYSTEM, USER, ANSWER, USER]}) == b"S:Be terse. U:Hi A:Hello.U:Hi A:"


def test_the_date_is_the_one_that_is_given() -> None:
    made = OllamaTemplate(
        "{{ .Response }}{{ currentDate }} {{ yesterdayDate }}{{ range .Messages }}{{ end }}"
    )
    assert made.prompt({"messages": [USER]}, datetime(2026, 3, 1)) == b"2026-03-01 2026-02-28"


@pytest.mark.parametrize("source", [None, b"{{ .Prompt }}"])
def test_a_template_is_a_text(source: Any) -> None:
    with pytest.raises(TypeError, match=r"^source must be a str, not "):
        OllamaTemplate(source)


@pytest.mark.parametrize("source", ["{{ if }}", "{{ .Messages", "{{ nothing }}", "{{ end }}"])
def test_broken_templates_are_refused_with_their_place(source: str) -> None:
    with pytest.raises(ChatError, match=r"line 1 of the chat template: column \d+"):
        OllamaTemplate(source)


def test_a_level_of_thinking_that_there_is_not() -> None:
    with pytest.raises(ChatError, match="'think' must be true, false"):
        OllamaTemplate("{{ .Think }}").prompt({"messages": [USER], "think": "much"})


def test_tools_are_those_of_the_request() -> None:
    tool = {
        "type": "function",
        "function": {"name": "weather", "description": "d", "parameters": {"type": "object"}},
    }
    made = OllamaTemplate(
        "{{ range .Tools }}{{ .Function.Name }} {{ end }}{{ range .Messages }}{{ .Content }}{{ end }}"
    )
    assert made.prompt({"messages": [USER], "tools": [tool, tool]}) == b"weather weather Hi"
    assert len(tools_of([tool])) == 1  # type: ignore[arg-type]
    with pytest.raises(ChatError):
        messages_of("no messages")


def test_a_run_within_another_keeps_its_own_date() -> None:
    made = OllamaTemplate("{{ currentDate }}{{ range .Messages }}{{ end }}")

    class Body(dict[str, Any]):
        def get(self, name: str, default: Any = None) -> Any:  # asked for when the outer run has begun
            if name == "suffix":
                assert made.prompt({"messages": [USER]}, datetime(2020, 1, 1)) == b"2020-01-01"
            return super().get(name, default)

    assert made.prompt(Body(messages=[USER]), datetime(2026, 3, 1)) == b"2026-03-01"
