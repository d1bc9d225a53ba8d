"""Statements compiled to Python source, run with a scope."""

from __future__ import annotations

import time
from typing import Any

import pytest

from ggufbpe.chat.template.compiler import python_source
from ggufbpe.chat.template.lexer import tokens
from ggufbpe.chat.template.parser import parsed_template
from ggufbpe.chat.template.runtime import Runtime
from ggufbpe.chat.template.values import TemplateError


def written(source: str, *, exact: bool = False, **scope: Any) -> str:
    """What a template writes."""
    code = python_source(parsed_template(tokens(source)), exact, True)
    module: dict[str, Any] = {}
    exec(code, module)
    text: str = module["root"](Runtime(time.gmtime(0)), scope)
    return text


STATEMENTS = {
    "{% if n > 3 %}a{% elif n == 3 %}b{% else %}c{% endif %}": "b",
    "{% for x in l %}{{ loop.index }}{{ x }}{% if not loop.last %},{% endif %}{% endfor %}": "1a,2b",
    "{% for x in [] %}{{ x }}{% else %}none{% endfor %}": "none",
    "{% for k, v in {'a': 1}.items() %}{{ k }}={{ v }}{% endfor %}": "a=1",
    "{% for x in (l if n == 3) %}{{ x }}{% endfor %}": "ab",
    "{% set x = 1 %}{% for y in l %}{% set x = y %}{% endfor %}{{ x }}": "1",
    "{% set s = namespace(x=1) %}{% for y in l %}{% set s.x = y %}{% endfor %}{{ s.x }}": "b",
    "{% set s = '' %}{% set s = s ~ 'a' + 'b' %}{{ s }}": "ab",
    "{% set a, b = [1, 2] %}{{ b }}{{ a }}": "21",
    "{% set x %}a{{ n }}{% endset %}{{ x }}{{ x }}": "a3a3",
    "{% for x in l %}{{ x }}{% if x == 'a' %}-{% continue %}{% endif %}!{% endfor %}": "ab!",
    "{% for x in l %}{{ x }}{% break %}{% endfor %}": "a",
    "{% macro m(x, y='d') %}<{{ x }}{{ y }}{{ n }}>{% endmacro %}{{ m(1) }}{{ m(1, y=2) }}": "<1d3><123>",
    "{% macro m() %}[{{ caller('c') }}]{% endmacro %}{% call(x) m() %}{{ x }}{{ n }}{% endcall %}": "[c3]",
    "{% filter upper %}a{{ l[1] }}{% endfilter %}": "AB",
}


@pytest.mark.parametrize("source", STATEMENTS)
@pytest.mark.parametrize("exact", [False, True])
def test_statements(source: str, exact: bool) -> None:
    assert written(source, exact=exact, n=3, l=["a", "b"]) == STATEMENTS[source]


def test_with_exact_equal_literals_are_different_objects() -> None:
    source = "{% set a = 'x' %}{{ a is sameas a }}{{ 'x' is sameas 'x' }}"
    assert [written(source, exact=exact) for exact in (True, False)] == ["TrueFalse", "TrueTrue"]


REFUSED = {
    "{% break %}": "Break statement executed",
    "{% set a[0] = 1 %}": "Cannot assign to computed member",
    "{% set f() = 1 %}": "Invalid LHS inside assignment expression: CallExpression",
    "{% set a, b = [1] %}": "Too few items to unpack in set",
    "{% for 1 in [1] %}{% endfor %}": "Invalid loop variable(s): IntegerLiteral",
    "{% for a, 'b' in [[1, 2]] %}{% endfor %}": "Cannot unpack non-identifier type: StringLiteral",
}


@pytest.mark.parametrize("source", REFUSED)
def test_refused(source: str) -> None:
    with pytest.raises(TemplateError) as refusal:
        written(source)
    assert str(refusal.value) == REFUSED[source]
