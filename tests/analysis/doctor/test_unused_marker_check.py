"""Tokens of type UNUSED that the chat template writes."""

from __future__ import annotations

import sys

import pytest
from small_models import (
    CHATML,
    CONTROL,
    NORMAL,
    UNUSED,
    FactsOf,
    K,
    facts_of,
    found,
    small_keys,
    with_template,
)

from ggufbpe.analysis.doctor.examination import doctor
from ggufbpe.analysis.doctor.template_checks import chat_markers
from ggufbpe.analysis.doctor.unused_marker_check import unused_markers

__all__ = ["facts_of"]  # the fixture

SIZE = len(small_keys()[K.LIST])
WRITTEN = CHATML + "<call>"


@pytest.mark.parametrize(
    ("template", "token", "kind", "severity"),
    [
        (WRITTEN, "<call>", UNUSED, "warning"),
        (CHATML + "{{ '<call>' }}", "<call>", UNUSED, "warning"),
        (CHATML + "{% if images %}<call>{% endif %}", "<call>", UNUSED, "note"),  # in none of the chats
        (CHATML + "<|other|>é", "<|other|>", UNUSED, "warning"),
        (WRITTEN, "<call>", CONTROL, None),
        (WRITTEN, "<call>", NORMAL, None),
        (CHATML, "<call>", UNUSED, None),
        (CHATML + "{# <call> #}", "<call>", UNUSED, None),
        (CHATML + "{{ messages[0].role }}", "[0]", UNUSED, None),  # an index
        (CHATML + "word", "word", UNUSED, None),
        (CHATML + "<|call|>", "<|call|>", UNUSED, None),  # which llama.cpp makes a control token
    ],
)
def test_an_unused_token_in_the_template(
    template: str, token: str, kind: int, severity: str | None, facts_of: FactsOf
) -> None:
    model = facts_of(with_template(template, token, kind=kind))
    findings = list(unused_markers(model))
    assert found(findings) == ([("unused_marker", severity)] if severity else [])
    for finding in findings:
        assert (finding.where.token, finding.fix) == (SIZE, model.set_types(CONTROL=[SIZE]))
        assert f"'{token}' (id {SIZE})" in finding.evidence
    assert not list(chat_markers(model)) or kind == NORMAL  # nothing is told twice


def test_several_are_told_together(facts_of: FactsOf) -> None:
    [finding] = unused_markers(facts_of(with_template(WRITTEN + "</call>", "<call>", "</call>", kind=UNUSED)))
    assert finding.detail == {"count": 2, "ids": [SIZE, SIZE + 1], "texts": ["<call>", "</call>"]}


def test_the_change_is_proposed_and_mends(facts_of: FactsOf) -> None:
    model = facts_of(with_template(WRITTEN, "<call>", kind=UNUSED))
    examination = doctor(model.source.path)
    assert f"--set-token-type {SIZE}=CONTROL" in examination.fix
    types = [*model.types[:SIZE], CONTROL]
    assert not list(unused_markers(model.changed({K.TOKEN_TYPE: types})))


def test_without_jinja2_the_source_is_looked_at(facts_of: FactsOf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert found(unused_markers(facts_of(with_template(WRITTEN, "<call>", kind=UNUSED)))) == [
        ("unused_marker", "warning")
    ]


def test_a_template_that_cannot_be_read(facts_of: FactsOf) -> None:
    assert not list(unused_markers(facts_of(with_template("<call>{{ 'a", "<call>", kind=UNUSED))))


def test_a_tag_that_belongs_to_the_answer_is_user_defined(facts_of: FactsOf) -> None:
    model = facts_of(with_template(f"{CHATML}<tool_call>", "<tool_call>", kind=UNUSED))
    [finding] = unused_markers(model)
    assert finding.fix == model.set_types(USER_DEFINED=[SIZE])
