"""Chat templates that are JSON files, begin with a byte order mark, or were escaped once too often."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from reference import write_metadata
from small_models import CHATML, FactsOf, K, facts_of, found, with_template

from ggufbpe.analysis.doctor.examination import doctor
from ggufbpe.analysis.doctor.template_checks import template_errors
from ggufbpe.analysis.doctor.template_form_checks import (
    byte_order_mark,
    escapes_in_prompts,
    template_is_settings,
)
from ggufbpe.cli import main
from ggufbpe.gguf.change import COMMAND
from ggufbpe.gguf.reader import GGUFFile

__all__ = ["facts_of"]  # the fixture


@pytest.mark.parametrize(
    ("template", "fix"),
    [
        (CHATML, None),
        ('{"{{ messages }}": 1}', "set the right one: "),
        (json.dumps({"chat_template": CHATML}), "take the template out of it: ggufbpe fix "),
        (
            json.dumps({"chat_template": [{"name": "default", "template": CHATML}]}),
            "take the template out of it: ",
        ),
        (json.dumps({"chat_template": CHATML + '{{ "x" }}'}), "take the template out of it: "),
        (json.dumps({"chat_template": ["x"]}), "set the right one: "),
        (json.dumps({"chat_template": ""}), "set the right one: "),
    ],
)
def test_settings_of_transformers_in_its_place(template: str, fix: str | None, facts_of: FactsOf) -> None:
    findings = list(template_is_settings(facts_of(with_template(template))))
    assert found(findings) == ([("template_is_json", "error")] if fix else [])
    errors = list(template_errors(facts_of(with_template(template))))
    assert not (findings and errors)  # whose fix would be another file
    assert all(finding.fix.startswith(fix or "") for finding in findings)


def test_the_template_in_the_settings_of_transformers_is_taken_out(tmp_path: Path) -> None:
    model = write_metadata(tmp_path / "v=2.gguf", with_template(json.dumps({"chat_template": CHATML})))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        [finding] = [each for each in doctor("v=2.gguf").findings if each.id == "template_is_json"]
        [command] = COMMAND.findall(finding.fix)
        assert main(shlex.split(command)[1:]) == 0
    with GGUFFile(model.with_name("fixed.gguf")) as file:
        assert file[K.CHAT_TEMPLATE] == CHATML


def test_settings_in_place_of_a_named_template(facts_of: FactsOf) -> None:
    """The model's own template is the default one, so it is no source for another."""
    settings = json.dumps({"chat_template": CHATML})
    model = facts_of({**with_template(CHATML), f"{K.CHAT_TEMPLATE}.tool_use": settings})
    [finding] = template_is_settings(model)
    assert "--chat-template tool_use=FILE " in finding.fix


def test_a_byte_order_mark_is_left_out(tmp_path: Path) -> None:
    model = write_metadata(tmp_path / "model.gguf", with_template("\ufeff" + CHATML))
    [finding] = [each for each in doctor(model).findings if each.id == "template_bom"]
    [command] = COMMAND.findall(finding.fix)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        assert main(shlex.split(command)[1:]) == 0
    with GGUFFile(tmp_path / "fixed.gguf") as file:
        assert file[K.CHAT_TEMPLATE] == CHATML


@pytest.mark.parametrize(
    ("template", "escapes"),
    [
        (CHATML, None),
        (CHATML.replace("\n", "\\n"), ["\\n"]),
        (CHATML.replace("<|", "&lt;|").replace("|>", "|&gt;"), ["&lt;", "&gt;"]),
        (CHATML + "{% if tools %}\\\\n{% endif %}", None),  # as in the JSON of an example
        ("<|im_start|>system\nSeparate lines by \\n in strings.<|im_end|>\n" + CHATML, None),
    ],
)
def test_escapes_in_plain_prompts(template: str, escapes: list[str] | None, facts_of: FactsOf) -> None:
    model = facts_of(with_template(template))
    findings = list(escapes_in_prompts(model))
    assert [finding.detail for finding in findings] == ([{"escapes": escapes}] if escapes else [])
    assert found(byte_order_mark(model)) == []
    known = facts_of({**with_template(template), "general.name": "Qwen2.5 7B Instruct"})
    assert all("known:Qwen-Qwen2.5-7B-Instruct" in each.fix for each in escapes_in_prompts(known))
