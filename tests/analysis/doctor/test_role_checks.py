"""Chats that a template refuses, and messages and tools that it leaves out."""

from __future__ import annotations

import pytest
from small_models import CHATML, NORMAL, FactsOf, K, facts_of, found, small_keys, with_template

from ggufbpe.analysis.doctor.advice import advised
from ggufbpe.analysis.doctor.checks import findings_of
from ggufbpe.analysis.doctor.role_checks import (
    answer_not_begun,
    chats_refused,
    messages_lost,
    tools_not_shown,
)

__all__ = ["facts_of"]  # the fixture

WITH_TOOLS = "{% if tools %}{{ tools|tojson }}{% endif %}" + CHATML
NO_SYSTEM = CHATML.replace("in messages", "in messages if message.role != 'system'")


def refusing(condition: str) -> str:
    """ChatML, but chats of which `condition` holds are refused."""
    return f"{{% if {condition} %}}{{{{ raise_exception('not so') }}}}{{% endif %}}" + CHATML


@pytest.mark.parametrize(
    ("template", "refused"),
    [
        (CHATML, {}),
        (refusing("messages|length > 2"), {"turns": "warning", "tool call": "note", "thinking": "note"}),
        (refusing("tools"), {"tools": "note"}),  # and so the call of one, which is not told a second time
        (refusing("true"), {}),  # not even one message, which another check reports
    ],
)
def test_refused_chats(template: str, refused: dict[str, str], facts_of: FactsOf) -> None:
    findings = list(chats_refused(facts_of(with_template(template))))
    assert {finding.detail and finding.detail["chat"]: finding.severity for finding in findings} == refused
    assert all("not so" in finding.evidence for finding in findings)


@pytest.mark.parametrize(
    ("template", "lost"),
    [
        (WITH_TOOLS, {}),
        ("chat_template.jinja", {"user": "warning", "turns": "warning", "system": "note"}),
        ("known:chatml-7", {"user": "warning", "turns": "warning", "system": "note"}),
        ("<|im_start|>{{ messages[-1].content }}<|im_end|>", {"turns": "warning"}),
        ("{% set first = messages[0].content ~ '' %}" + NO_SYSTEM, {"system": "note"}),
        (WITH_TOOLS.replace("in messages", "in messages if message.role != 'tool'"), {"tool call": "note"}),
    ],
)
def test_lost_messages(template: str, lost: dict[str, str], facts_of: FactsOf) -> None:
    findings = [f for f in messages_lost(facts_of(with_template(template))) if f.id == "message_lost"]
    assert {finding.detail and finding.detail["chat"]: finding.severity for finding in findings} == lost


NOT_BEGUN = CHATML.replace("add_generation_prompt", "false")
PLAIN = "{% for m in messages %}{{ m.role }}: {{ m.content }}<|im_end|>\n{% endfor %}"


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        (CHATML, []),
        (NOT_BEGUN, [("answer_not_begun", "warning")]),
        (PLAIN, []),  # no marker begins an answer
        (
            CHATML.replace("{% if add_generation_prompt %}", "").removesuffix("{% endif %}"),
            [],
        ),  # always begun
        (NOT_BEGUN.replace("im_start", "start"), [("answer_not_begun", "warning")]),  # no token
    ],
)
def test_an_answer_that_is_not_begun(
    template: str, expected: list[tuple[str, str]], facts_of: FactsOf
) -> None:
    findings = list(answer_not_begun(facts_of(with_template(template))))
    assert found(findings) == expected
    assert all("start|>assistant\\n'" in finding.evidence for finding in findings)


def test_lost_types_do_not_hide_that_an_answer_is_not_begun(facts_of: FactsOf) -> None:
    """Else the command that restores the types would reveal it, and such a command is not proposed."""
    keys = with_template(NOT_BEGUN)
    keys[K.TOKEN_TYPE] = [NORMAL] * len(keys[K.LIST])
    model = facts_of(keys)
    assert found(answer_not_begun(model)) == [("answer_not_begun", "warning")]
    _, proposal = advised(model, findings_of(model))
    assert proposal is not None
    assert set(proposal.change.types.values()) == {"CONTROL"}


def test_a_system_message_that_becomes_the_users(facts_of: FactsOf) -> None:
    assert found(messages_lost(facts_of(with_template(NO_SYSTEM)))) == [("no_system_role", "note")]


def test_tools(facts_of: FactsOf) -> None:
    assert found(tools_not_shown(facts_of(with_template(CHATML)))) == [("tools_not_shown", "note")]
    for keys in (with_template(WITH_TOOLS), with_template(refusing("tools")), small_keys()):
        assert not list(tools_not_shown(facts_of(keys)))
