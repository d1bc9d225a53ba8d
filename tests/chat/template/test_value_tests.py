"""The table of tests, such as `value is even`; test_template_language.py asks llama.cpp about them in templates."""

from __future__ import annotations

import time
from typing import Any

import pytest

from ggufbpe.chat.template.call_arguments import Arguments
from ggufbpe.chat.template.runtime import Runtime
from ggufbpe.chat.template.value_tests import TESTS
from ggufbpe.chat.template.values import TemplateError, Undefined

CASES = [
    ("string", ["a"], True),
    ("string", [1], False),
    ("integer", [True], False),  # unlike Python's
    ("number", [1.5], True),
    ("odd", [-1], True),
    ("even", [-1], False),
    ("divisibleby", [9, 3], True),
    ("iterable", [{}], True),
    ("iterable", [Undefined()], True),
    ("true", [1], False),
    ("test", ["odd"], True),
    ("test", ["odder"], False),
]


def answer(name: str, given: list[Any]) -> Any:
    return TESTS[name](Runtime(time.gmtime(0)), Arguments(given))


@pytest.mark.parametrize(("name", "given", "expected"), CASES)
def test_answers(name: str, given: list[Any], expected: bool) -> None:
    assert answer(name, given) is expected


@pytest.mark.parametrize(("name", "given"), [("divisibleby", [1, 0]), ("odd", ["a"]), ("string", [])])
def test_refusals(name: str, given: list[Any]) -> None:
    with pytest.raises(TemplateError):
        answer(name, given)
