"""Markers in templates and prompts."""

from __future__ import annotations

import pytest

from ggufbpe.analysis.doctor.chat_markers import markers_of, markers_of_prompt, without_comments


@pytest.mark.parametrize(
    ("text", "of_template", "of_prompt"),
    [
        ("<|im_start|>a<|im_end|><|im_start|>", ["<|im_start|>", "<|im_end|>"], None),
        ("[INST] a [/INST] <<SYS>> b <</SYS>>", ["[INST]", "[/INST]", "<<SYS>>", "<</SYS>>"], None),
        ("<｜User｜><start_of_turn><turn|>", ["<｜User｜>", "<start_of_turn>", "<turn|>"], None),
        ("<s></s><bos>", [], ["<s>", "</s>", "<bos>"]),  # conditions of templates contain them
        ("<tool_call>[ANSWER] a < b <| c |>", [], None),
        ("{# <|a|> \n #}<|b|>{# <|c|> #}", ["<|b|>"], ["<|a|>", "<|b|>", "<|c|>"]),
        ("<|{{ role }}|>", [], None),  # put together when the template runs
    ],
)
def test_markers(text: str, of_template: list[str], of_prompt: list[str] | None) -> None:
    assert markers_of(text) == of_template
    assert markers_of_prompt(text) == (of_template if of_prompt is None else of_prompt)


def test_comments_are_left_out() -> None:
    assert without_comments("a{# b\n{{ c }} #}d{#- e -#}") == "ad"
