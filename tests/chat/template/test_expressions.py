"""Python source of expressions, run on a scope."""

from __future__ import annotations

import time
from typing import Any

import pytest
from jinja2 import nodes

from ggufbpe.chat.template.call_arguments import MANGLED
from ggufbpe.chat.template.expressions import Expressions, continues
from ggufbpe.chat.template.lexer import tokens
from ggufbpe.chat.template.parser import parsed_template
from ggufbpe.chat.template.runtime import Runtime
from ggufbpe.chat.template.values import (
    GIVEN,
    PLAIN,
    SIZED,
    UNDEFINED,
    Keyword,
    Loop,
    TemplateError,
    Undefined,
)

SCOPE = {"a": "text", "n": 3, "o": {"k": "v", "items": 1}, "l": [1, 2, 3], "nothing": None}


def evaluated(source: str, *, constants: bool = True) -> Any:
    """The value of a template's expression over `SCOPE`."""
    [output] = parsed_template(tokens("{{ " + source + " }}")).body
    assert isinstance(output, nodes.Output)
    run = Runtime(time.gmtime(0))
    names = {
        "run": run,
        "s0": dict(SCOPE),
        "G": GIVEN,
        "K": PLAIN,
        "Z": SIZED,
        "U": UNDEFINED,
        "Keyword": Keyword,
        "Loop": Loop,
        "Undefined": Undefined,
        "N": run.name,
        "A": run.attribute,
        "I": run.item,
        "C": run.call,
        "M": run.call_method,
        "F": run.filter,
        "T": run.test,
        "O": run.operate,
        "P": run.plus,
        "E": run.equal,
        "S": run.stripped,
        "X": run.text,
        "J": run.written,
    }
    return eval(Expressions(exact=False, constants=constants).expression(output.nodes[0]), names)


VALUES: dict[str, Any] = {
    "a ~ n": "text3",
    "a == 'text'": True,
    "n != 'text'": True,
    "o.k": "v",
    "o['items']": 1,
    "o.items()": [("k", "v"), ("items", 1)],
    "l[1:]": [2, 3],
    "l[-1]": 3,
    "' x '|trim": "x",
    "n|string": "3",
    "o|length": 2,
    "n|trim": "3",
    "l|upper": "[1, 2, 3]",
    "missing|default('d')": "d",
    "nothing|d(1)": 1,
    "a is string": True,
    "o is mapping": True,
    "l is mapping": False,
    "missing is defined": False,
    "nothing is none": True,
    "1 if missing": None,
    "not a or n > 2": True,
    "-n + 1": -2,
    "[n, a]": [3, "text"],
    "(n, 1)": (3, 1),
    "{n: a, 'b': 1}": {3: "text", "b": 1},
    "2 in l": True,
    "2 not in l": False,
    "a.replace('t', 'T')": "TexT",
    "range(2)": [0, 1],
    "namespace(x=n)": {"x": 3},
}


@pytest.mark.parametrize("source", VALUES)
def test_values(source: str) -> None:
    value = evaluated(source)
    assert (None if isinstance(value, Undefined) else value) == VALUES[source]


REFUSED = {  # by llama.cpp, each for the first of the reasons that it has
    "n|trim()": "Unknown (built-in) filter 'strip' for type Integer",
    "nothing|upper()": "Unknown (built-in) filter 'upper' for type None",
    "o|wordcount()": "Unknown (built-in) filter 'wordcount' for type Object",
    "o|replace()": "Unknown (built-in) filter 'replace' for type Object",
    "a[nothing:]": f"Function 'slice' expected value of type {MANGLED[int]}, got None",
    "a[nothing:2:a]": f"Function 'slice' expected value of type {MANGLED[int]}, got None",
    "l[:nothing]": "None is not an int value",
    "l[::nothing]": "None is not an int value",
    "(1 if missing)[1:]": "Unknown (built-in) filter 'slice' for type Undefined",
    "nothing[1:2:a]": "Unknown (built-in) filter 'slice' for type None",
    "l[range.x:n - 'a':1 - 'a']": 'Unknown operator "-" between Integer and String',
}


@pytest.mark.parametrize("source", REFUSED)
def test_refused(source: str) -> None:
    with pytest.raises(TemplateError) as refusal:
        evaluated(source)
    assert str(refusal.value) == REFUSED[source]


def test_a_long_row_of_operators_is_written_in_steps() -> None:
    assert evaluated(" + ".join(["n"] * 200)) == 600


def test_constants_can_be_names() -> None:
    assert evaluated("true") is True
    assert isinstance(evaluated("true", constants=False), Undefined)  # `SCOPE` has no such name


ASSIGNMENTS = {
    "set a = a + b": True,
    "set a = a ~ b + c": True,
    "set o.k = o.k ~ b": True,
    "set o['k'] = o.k + b": True,
    "set a = b + a": False,
    "set a = a": False,
    "set a = a * b": False,
    "set o.k = o.j ~ b": False,
    "set a = a + " + " + ".join("b" * 40): False,  # too long a row
}


@pytest.mark.parametrize("source", ASSIGNMENTS)
def test_continues(source: str) -> None:
    [statement] = parsed_template(tokens("{% " + source + " %}")).body
    assert isinstance(statement, nodes.Assign)
    assert continues(statement.target, statement.node) is ASSIGNMENTS[source]
