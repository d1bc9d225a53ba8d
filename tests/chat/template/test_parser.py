"""Statements by llama.cpp's grammar, as jinja2's nodes."""

from __future__ import annotations

import pytest
from jinja2 import Environment, TemplateSyntaxError, nodes

from ggufbpe.chat.template.lexer import tokens
from ggufbpe.chat.template.parser import parsed_template

# Both grammars agree on these statements, so the trees must be equal.
SHARED = [
    "{% if a %}x{% elif b %}y{% else %}z{% endif %}",
    "{% for a in b %}x{% else %}y{% endfor %}",
    "{% for a, b in c %}{{ a }}{% endfor %}",
    "{% set a = b %}",
    "{% set a, b = c, d %}",
    "{% set a %}x{% endset %}",
    "{% macro m() %}x{% endmacro %}",
    "{% filter upper() %}x{% endfilter %}",
    "{% for a in b %}{% continue %}{% break %}{% endfor %}",
]


@pytest.mark.parametrize("source", SHARED)
def test_statements_that_jinja2_has_too(source: str) -> None:
    expected = Environment(extensions=["jinja2.ext.loopcontrols"]).parse(source)
    assert parsed_template(tokens(source)) == expected


OWN = {
    "{# x #}a{% generation %}b{% endgeneration %}c": ["Output", "Output", "Output"],
    "{% call m(1) %}x{% endcall %}": ["CallBlock"],
    "{% macro 'm'() %}{% endmacro %}": ["Output"],  # fails when it is reached
}


@pytest.mark.parametrize("source", OWN)
def test_statements_of_llama_cpp(source: str) -> None:
    assert [type(node).__name__ for node in parsed_template(tokens(source)).body] == OWN[source]


def test_parameters_of_a_macro() -> None:
    [macro] = parsed_template(tokens("{% macro m(a, b=1 c) %}{% endmacro %}")).body
    assert isinstance(macro, nodes.Macro)
    assert [argument.name for argument in macro.args] == ["a", "b", "c"]
    assert macro.defaults == [None, nodes.Const(1), None]


REFUSED = {
    "a\n{% unknown %}": (2, "Unknown statement: unknown"),
    "{% 1 %}": (1, "Unknown statement"),
    "{% if a %}x": (1, "Unexpected token type"),
    "{% if a %}{% endfor %}": (1, "Unknown statement: endfor"),
    "{% for a of b %}{% endfor %}": (1, "Expected 'in'"),
    "{% set a = 1 }}": (1, "Parser Error: Expected %} (Got }})"),
    "{% call 1() %}{% endcall %}": (1, "Expected identifier"),
}


@pytest.mark.parametrize("source", REFUSED)
def test_refused(source: str) -> None:
    with pytest.raises(TemplateSyntaxError) as refusal:
        parsed_template(tokens(source))
    assert (refusal.value.lineno, refusal.value.message) == REFUSED[source]
