"""What the chat template writes after an answer: a token that ends a generation, or none."""

from __future__ import annotations

import pytest
from small_models import CHATML, FactsOf, K, facts_of, found, small_keys, with_template

from ggufbpe.analysis.doctor.turn_end_check import turn_ends
from ggufbpe.gguf.change import COMMAND

__all__ = ["facts_of"]  # the fixture

SIZE = len(small_keys()[K.LIST])
ROLES = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}"
ROLE_NAMES = ("<|user|>", "<|assistant|>", "<|system|>", "<|tool|>")


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        (CHATML, []),
        (CHATML.replace("<|im_end|>", "<|turn_end|>"), [("turn_end", "warning")]),
        (ROLES, [("turn_end", "note")]),  # a turn ends where the next one begins
    ],
)
def test_turns_that_do_not_end(template: str, expected: list[tuple[str, str]], facts_of: FactsOf) -> None:
    model = facts_of(with_template(template, "<|turn_end|>", *ROLE_NAMES))
    findings = list(turn_ends(model))
    assert found(findings) == expected
    if expected == [("turn_end", "warning")]:
        assert findings[0].fix == model.set(K.EOT_ID, SIZE)


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        ("</s>", []),  # no token, so text, which another check reports
        ("", [("turn_end", "note")]),
        ("<|turn_end|>", [("turn_end", "warning")]),
    ],
)
def test_what_ends_the_name_of_the_next_role_ends_no_turn(
    end: str, expected: list[tuple[str, str]], facts_of: FactsOf
) -> None:
    """As <|end_header_id|> in Llama 3's chats: <|start_header_id|>user<|end_header_id|>."""
    template = "{% for m in messages %}<|start_name|>{{ m.role }}<|end_name|>{{ m.content }}END{% endfor %}"
    template = (template + "<|start_name|>assistant<|end_name|>").replace("END", end)
    added = ("<|start_name|>", "<|end_name|>", "<|turn_end|>")
    findings = list(turn_ends(facts_of(with_template(template, *added))))
    assert found(findings) == expected
    assert not any(f"={SIZE + 1} " in finding.fix for finding in findings)


@pytest.mark.parametrize(
    "template",
    [
        CHATML.replace("<|im_end|>", ""),  # <|im_start|> begins the next turn, and ends none
        "{% for m in messages %}{{ m.content }}{% endfor %}",
    ],
)
def test_a_template_that_lacks_the_end_that_the_file_has(template: str, facts_of: FactsOf) -> None:
    [finding] = turn_ends(facts_of(with_template(template)))
    assert (finding.id, finding.severity, finding.detail) == ("end_not_written", "note", {"end": SIZE - 1})
    assert "writes '<|im_end|>' after answers" in finding.fix
    assert not COMMAND.search(finding.fix)


def test_a_template_that_marks_no_end(facts_of: FactsOf) -> None:
    keys = with_template("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}")
    keys[K.LIST] = [*keys[K.LIST][:-3], "<a>", "<b>", "<c>"]  # no text that ends a generation
    assert found(turn_ends(facts_of(keys))) == [("eot_missing", "note")]
    assert found(turn_ends(facts_of({**keys, K.EOT_ID: SIZE - 1}))) == [("end_not_written", "note")]
