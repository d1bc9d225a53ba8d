"""Which members of `loop` a template needs."""

from __future__ import annotations

import pytest
from jinja2 import nodes

from ggufbpe.chat.template.lexer import tokens
from ggufbpe.chat.template.loop_uses import LoopUses, walked
from ggufbpe.chat.template.parser import parsed_template

ALL = ["index", "index0", "revindex", "revindex0", "first", "last", "length", "previtem", "nextitem"]
USES: dict[str, tuple[bool, list[str] | None]] = {
    "{% for x in y %}{{ x }}{% endfor %}": (False, None),
    "{% for x in y %}{{ loop.index }}{{ loop['last'] }}{% endfor %}": (False, ["index", "last"]),
    "{% for x in y %}{% for z in x %}{{ loop.first }}{% endfor %}{% endfor %}": (False, None),
    "{% macro m() %}{{ loop.first }}{% endmacro %}{% for x in y %}{{ m() }}{% endfor %}": (False, ["first"]),
    "{% for x in y %}{{ loop.unknown }}{% endfor %}": (False, []),
    "{% for x in y %}{{ loop[x] }}{% endfor %}": (True, ALL),
    "{% for x in y %}{% set l = loop %}{% endfor %}": (True, ALL),
}


@pytest.mark.parametrize("source", USES)
def test_members_in_the_outer_loop(source: str) -> None:
    tree = parsed_template(tokens(source))
    [loop] = [node for node in tree.body if isinstance(node, nodes.For)]
    uses = LoopUses(tree)
    members = uses.members_in(loop)
    assert (uses.whole, members if members is None else list(members)) == USES[source]


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (0, [1, 0, 3, 2, True, False, 3, "undefined", "b"]),
        (1, [2, 1, 2, 1, False, False, 3, "a", "c"]),
        (2, [3, 2, 1, 0, False, True, 3, "b", "undefined"]),
    ],
)
def test_values_of_members(number: int, expected: list[object]) -> None:
    tree = parsed_template(tokens("{% for x in y %}{{ loop[x] }}{% endfor %}"))
    members = LoopUses(tree).members_in(next(node for node in walked(tree) if isinstance(node, nodes.For)))
    assert members is not None
    names = {"i": number, "rows": "abc", "Undefined": lambda hint: "undefined"}
    assert [eval(members[name].format(i="i", rows="rows"), names) for name in ALL] == expected
