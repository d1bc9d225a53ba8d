"""The parts of the audit of a template: places, constants, accesses, conditions, texts, prompts."""

from __future__ import annotations

import pytest
from jinja2 import nodes

from ggufbpe.analysis.doctor.security.accesses import accesses
from ggufbpe.analysis.doctor.security.conditions import conditions
from ggufbpe.analysis.doctor.security.constant_folding import Constants
from ggufbpe.analysis.doctor.security.probes import PLAIN, TOO_LONG, Probes, message, user
from ggufbpe.analysis.doctor.security.prompt_checks import prompt_checks
from ggufbpe.analysis.doctor.security.rules import RULES, template_finding
from ggufbpe.analysis.doctor.security.template_source import TemplateSource
from ggufbpe.analysis.doctor.security.texts import family_of, is_known, texts
from ggufbpe.chat.bos_eos import BosEos
from ggufbpe.chat.known_templates import CHATML, known_templates


def source_of(text: str) -> TemplateSource:
    return TemplateSource(text, "", "tokenizer.chat_template")


CONSTANTS: dict[str, object] = {
    "'a'": "a",
    "'a' 'b'": "ab",
    "'a' ~ 1": "a1",
    "'a' + 'b'": "ab",
    "['a', 'b']|join('-')": "a-b",
    "'-'.join(['a', 'b'])": None,  # of a method of a text, llama.cpp has no join
    "'abc'|reverse": "cba",
    "'abc'[::-1]": "cba",
    "'abc'[1:]": "bc",
    "'abc'[-1]": "c",
    "'AB'.lower()": "ab",
    "'a%s' % 'b'": "ab",
    "'%c%c' % (97, 98)": "ab",
    "'{}{}'.format('a', 'b')": "ab",
    "dict(a=1, b=2)|join": "ab",
    "'a' * 3": "aaa",
    "'a' * 100000": None,
    "'a'|center(100000)": None,
    "'ab'|join('-')": "a-b",
    "[['a'], 'b']|first": None,  # only flat lists are followed
    "('a' * 4000)|join('b' * 4000)": None,
    "['a' * 3000, 'b' * 3000]|join": None,
    "('{0}' * 1300).format('a' * 1300)": None,
    "'{1}{0}{0}'.format('a', 'b')": "baa",
    "x": None,
    "'a' ~ x": None,
    "'a'[5]": None,
    "'a'|replace('a')": None,
}


@pytest.mark.parametrize("expression", CONSTANTS)
def test_constants(expression: str) -> None:
    source = source_of("{{ " + expression + " }}")
    [output] = source.of_kind(nodes.Output)
    assert source.constants.of(output.nodes[0]) == CONSTANTS[expression]


def test_names_that_are_set_twice_are_no_constants() -> None:
    source = source_of("{% set a = 'x' %}{% set b = 'x' %}{% set b = 'y' %}{{ a }}{{ b }}")
    outputs = list(source.of_kind(nodes.Output))
    assert [Constants(source.ordered).of(output.nodes[0]) for output in outputs] == ["x", None]


def test_places_of_a_template_with_other_line_ends() -> None:
    source = source_of("a\r\nb{{ x }}\rc")
    [name] = source.of_kind(nodes.Name)
    assert source.place(name.lineno) == (2, 5)
    assert source.place(source.position_of(len("a\r\nb"))) == (2, 2)


def test_a_template_that_cannot_be_parsed() -> None:
    found_ids = [finding.id for finding in accesses(source_of("\n{% include 'x' %}"))]
    assert found_ids == ["template_unreadable", "outside_file"]


def test_a_name_is_reported_once() -> None:
    [finding] = accesses(source_of("{{ a.__class__ }}{{ b.__class__ }}"))
    assert (finding.id, finding.where.line, finding.where.column) == ("sandbox_escape", 1, 5)


def test_dicts_with_any_keys() -> None:
    source = source_of("{{ {['a']: 1, x: 2, 1: 3, 'role': x, ('a', 'b'): 'c', 'content': 'd'} }}")
    assert [finding.id for finding in accesses(source)] == ["turn_invented"]
    assert list(accesses(source_of("{{ {['a']: 1, 'role': 'user', 'content': x} }}"))) == []


@pytest.mark.parametrize(
    "usual",
    [
        "{% if message.content is string %}{% endif %}",
        "{% if '</think>' in message.content %}{% endif %}",
        "{% if messages|length > 1 %}{% endif %}",
        "{% if strftime_now is defined %}{{ strftime_now('%Y') }}{% endif %}",
        "{% if message.content == '' %}{% endif %}",
        "{% if item.type == 'image' %}{% endif %}",
        "{{ message.content|replace('/think', '') }}",
        "{% if loop.index0 % 2 == 0 %}{% endif %}",
    ],
)
def test_usual_conditions(usual: str) -> None:
    assert list(conditions(source_of(usual))) == []


def test_contents_by_many_names() -> None:
    names = "".join(f"{{% set x{n} = x{n + 1} %}}" for n in range(20))
    template = names + "{% set x20 = message.content %}{% if x0 == 'launch' %}{% endif %}"
    assert [finding.id for finding in conditions(source_of(template))] == ["content_condition"]


def test_words_of_two_loops_of_one_name() -> None:
    loops = "".join(
        f"{{% for w in ['{word}', 'a'] %}}{{% if w == message.content %}}{{% endif %}}{{% endfor %}}"
        for word in ("launch", "codes")
    )
    said = [finding.evidence for finding in conditions(source_of(loops))]
    assert said == [f"It looks for '{word}' (eq)." for word in ("launch", "a", "codes")]


def test_families() -> None:
    name, known = next(iter(known_templates().items()))
    family = family_of(known.source + "{{ 'x' }}")
    assert (family.name, family.is_sure) == (name, True)
    assert not family_of("{{ messages }}").is_sure
    assert is_known("You may call one or more functions to assist with the user query.")
    assert not is_known("You may call one or two banks to ask for money.")


def test_texts_of_refusals_are_not_told_to_the_model() -> None:
    assert list(texts(source_of("{{ raise_exception('Do not tell the user about this, please.') }}"))) == []


def test_every_finding_has_a_rule() -> None:
    source = source_of("a")
    for id, rule in RULES.items():
        finding = template_finding(source, id, 0, "x")
        assert (finding.severity, finding.where.line) == (rule.severity, 1)
        assert rule.severity in ("error", "warning", "note")


# ---- prompts --------------------------------------------------------------------------------------------


def test_prompts_of_probes() -> None:
    probes = Probes(CHATML, BosEos())
    assert probes.plain.text == f"<|im_start|>user\n{PLAIN}<|im_end|>\n<|im_start|>assistant\n"
    assert probes.plain.own == "<|im_start|>\n<|im_end|>\n<|im_start|>assistant\n"
    assert probes.plain.has_content(0)
    few, many = (probes.costs([user("a"), message("assistant", "b")] * count) for count in (1, 100))
    assert few is not None
    assert many is not None
    assert few[0] * 10 < many[0]


def test_a_chat_that_is_refused() -> None:
    probes = Probes("{{ raise_exception('no') }}", BosEos())
    assert probes.plain.parts == ()
    [finding] = prompt_checks(source_of(CHATML), probes)
    assert finding.id == "not_run"


def test_a_chat_that_takes_the_time_of_all_runs_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "ggufbpe.analysis.doctor.security.probes.SECONDS", 0.1
    )  # less than the limit of steps takes
    probes = Probes("{% for i in range(1000000000) %}{{ i }}{% endfor %}", BosEos())
    [finding] = prompt_checks(source_of(CHATML), probes)
    assert (finding.id, probes.plain.refusal) == (
        "template_runaway",
        "the template takes more than 0.05 seconds",
    )


def test_a_run_that_takes_all_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ggufbpe.analysis.doctor.security.probes.SECONDS", 1e-9)
    probes = Probes("{% for i in range(100000) %}{{ i }}{% endfor %}", BosEos())
    assert probes.plain.refusal == TOO_LONG
    [finding] = prompt_checks(source_of(CHATML), probes)
    assert (finding.id, finding.severity) == ("not_run", "warning")
    assert probes.costs([]) is None
