"""The names that a template takes from its caller."""

from __future__ import annotations

import pytest

from ggufbpe.chat.template.lexer import tokens
from ggufbpe.chat.template.names_read import names_from_outside
from ggufbpe.chat.template.parser import parsed_template

NAMES = {
    "{{ a.b[c] }}": "a c",
    "{% set a = b %}{{ a }}": "b",
    "{{ a }}{% set a = 1 %}": "a",
    "{% for a in b if a == c %}{{ a }}{{ d }}{% else %}{{ e }}{% endfor %}{{ a }}": "a b c d e",
    "{% if a %}{% set b = 1 %}{% endif %}{{ b }}": "a b",
    "{% if a %}{% set b = 1 %}{% else %}{% set b = 2 %}{% endif %}{{ b }}": "a",
    "{% macro m(a, b=c) %}{{ a }}{{ b }}{{ d }}{% endmacro %}{{ m(e) }}": "c d e",
    "{% set a %}{{ b }}{% set c = 1 %}{% endset %}{{ a }}{{ c }}": "b c",
    "{% set n = namespace(x=a) %}{% set n.x = b %}{{ n.x }}": "a b namespace",
}


@pytest.mark.parametrize("source", NAMES)
def test_names_from_outside(source: str) -> None:
    tree = parsed_template(tokens(source))
    assert names_from_outside(tree.body, set()) == set(NAMES[source].split())


def test_names_that_are_set_are_given_back() -> None:
    own = {"loop"}
    tree = parsed_template(tokens("{{ loop }}{% set a = 1 %}{% if x %}{% set b = 1 %}{% endif %}"))
    assert names_from_outside(tree.body, own) == {"x"}
    assert own == {"loop", "a"}
