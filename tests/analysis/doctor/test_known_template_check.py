"""A template compared with the one that llama.cpp has for a model of that name."""

from __future__ import annotations

import re

import pytest
from small_models import CHATML, FactsOf, Keys, facts_of, with_template

from ggufbpe.analysis.doctor import known_template_check
from ggufbpe.analysis.doctor.chat_markers import markers_of
from ggufbpe.analysis.doctor.known_template_check import replacement, template_differs
from ggufbpe.analysis.doctor.template_checks import chat_markers, template_errors
from ggufbpe.chat.known_templates import KnownTemplate, known_template

__all__ = ["facts_of"]  # the fixture

NAME = "Qwen-Qwen2.5-7B-Instruct"
QWEN = known_template(NAME).source
OTHER = QWEN.replace("<|im_end|>\\n", "<|im_end|>")
assert OTHER != QWEN


def named(name: str, template: str, **general: str) -> Keys:
    """A small model of this name and template."""
    return {
        "general.name": name,
        **with_template(template),
        **{f"general.{key.replace('base_name', 'base_model.0.name')}": text for key, text in general.items()},
    }


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (named("Qwen2.5 7B Instruct", QWEN), None),
        (named("Qwen2.5 7B Instruct", QWEN.replace("\n", "\r\n") + "\r\n"), None),
        (named("Qwen2.5 7B Instruct", OTHER), ("warning", True)),
        (named("qwen_qwen2.5-7b-instruct", OTHER, organization="Qwen"), ("warning", True)),
        (named("x", OTHER, basename="Qwen2.5", finetune="Instruct", size_label="7B"), ("warning", True)),
        (named("Qwen2.5 72B Instruct", OTHER), ("note", False)),  # another size
        (named("Mine", OTHER, base_name="Qwen2.5 7B Instruct"), ("note", False)),
        (named("Qwen2.5 7B", OTHER), None),
        (named("Mine", OTHER), None),
        (named("Llama 3.1 8B Instruct", CHATML), None),  # whose markers the vocabulary lacks
    ],
)
def test_which_template_is_compared(keys: Keys, expected: tuple[str, bool] | None, facts_of: FactsOf) -> None:
    findings = [(f.severity, f.detail and f.detail["same_model"]) for f in template_differs(facts_of(keys))]
    assert findings == ([expected] if expected else [])


def test_the_difference_is_told(facts_of: FactsOf) -> None:
    model = facts_of(named("Qwen2.5 7B Instruct", QWEN.replace("# Tools", "# Utensils")))
    [finding] = template_differs(model)
    assert finding.severity == "note"  # plain chats have the same prompts
    assert finding.detail is not None
    assert finding.detail["prompts"] == ["tools", "tool call"]
    assert finding.evidence.endswith("; prompts differ for tools, tool call.")
    assert finding.fix == f"to use llama.cpp's: {model.set_template(known_template(NAME))}"


@pytest.mark.parametrize(
    ("name", "template", "expected"),
    [
        ("Qwen2.5 7B Instruct", "{% for", NAME),
        ("Qwen2.5 72B Instruct", "{% for", NAME),  # of a model like it
        ("Qwen2.5 7B Instruct", QWEN, None),  # it is that one already
        ("Mine", "{% for", None),
        ("Llama 3.1 8B Instruct", "{% for", None),
    ],
)
def test_the_template_to_put_in_its_place(
    name: str, template: str, expected: str | None, facts_of: FactsOf
) -> None:
    found = replacement(facts_of(named(name, template)))
    assert (found and found.name) == expected


def test_of_two_templates_for_a_model_the_one_of_its_publisher_is_taken(facts_of: FactsOf) -> None:
    found = replacement(facts_of(gemma_4("Gemma 4 31B It", "{% for")))
    assert found is not None
    assert found.name == "google-gemma-4-31B-it"  # not google-gemma-4-31B-it-interleaved


def gemma_4(name: str, template: str) -> Keys:
    """A small model of this name and template whose vocabulary has Gemma 4's markers."""
    markers = sorted(markers_of(known_template("google-gemma-4-31B-it").source))
    return {**with_template(template, *markers), "general.name": name}


def test_an_older_template_is_not_exchanged_for_a_variant_that_was_made_of_it(facts_of: FactsOf) -> None:
    """llama-server says of either: "Consider updating to the official template"."""
    variant = known_template("google-gemma-4-31B-it-interleaved").source
    older, count = re.subn(r"\{#- Preserve reasoning .*?endif -%\}\s*", "", variant, flags=re.DOTALL)
    assert count == 1
    [finding] = template_differs(model := facts_of(gemma_4("Gemma 4 31B It", older)))
    assert finding.fix == f"to use llama.cpp's: {model.set_template(known_template('google-gemma-4-31B-it'))}"
    assert finding.severity == "note"


def test_a_template_of_a_longer_name_may_be_that_of_another_model(
    facts_of: FactsOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As DeepSeek V4 and DeepSeek V4 Flash."""
    templates = [KnownTemplate("x", ("X-1B",), QWEN), KnownTemplate("x-flash", ("X-2B",), CHATML)]
    by_name = {known.name: known for known in templates}
    monkeypatch.setattr(known_template_check, "known_templates", lambda: by_name)
    [finding] = template_differs(facts_of(named("X 3B", CHATML + "\n{#- ours #}")))
    assert finding.detail is not None
    assert finding.detail["known"] == "x-flash"


def test_the_template_of_another_size_is_proposed_only_if_all_prompts_stay_the_same(
    facts_of: FactsOf,
) -> None:
    """Gemma 4 E4B begins no empty thought, as Gemma 4 31B does."""
    known = known_template("google-gemma-4-31B-it")
    smaller, count = re.subn(
        r"\s*\{%- if not enable_thinking .*?endif -%\}", "", known.source, flags=re.DOTALL
    )
    assert count == 1
    [finding] = template_differs(facts_of(gemma_4("Gemma 4 E4B It", smaller)))
    assert finding.detail is not None
    assert finding.detail["prompts"] == ["no thinking"]
    assert finding.fix == "nothing to do if the original model has this template"
    with_a_comment = f"{{#- ours -#}}{known.source}"
    [finding] = template_differs(model := facts_of(gemma_4("Gemma 4 E4B It", with_a_comment)))
    assert finding.fix == f"to use llama.cpp's: {model.set_template(known)}"


def test_that_of_a_base_model_takes_only_the_place_of_a_broken_one(facts_of: FactsOf) -> None:
    """A tuned model may write markers as text on purpose, as many with ChatML or Zephyr's template do."""
    zephyr = "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}\n{% endfor %}<|assistant|>\n"
    model = facts_of(named("Mine", zephyr, base_name="Qwen2.5 7B Instruct"))
    finding, *_ = chat_markers(model)
    assert finding.fix == (
        "the template is for another model, unless this one was trained with such text; set the right template: "
        + model.set_template_file()
    )
    finding, *_ = chat_markers(model := facts_of(named("Qwen2.5 7B Instruct", zephyr)))
    assert finding.fix.endswith(model.set_template(known_template(NAME)))
    [finding] = template_errors(model := facts_of(named("Mine", "{% for", base_name="Qwen2.5 7B Instruct")))
    assert finding.fix.endswith(model.set_template(known_template(NAME)))
