"""Arithmetic and slices of templates, as C++ on x86 computes them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ggufbpe.chat.template.operators import ARITHMETIC, cast_to_int, is_number, negated, slice_of

SMALLEST = -(1 << 63)

SUMS = [
    (1, "+", 2, 3),
    (1, "+", 2.5, 3.5),
    (1 << 53, "+", 1, 1 << 53),  # through doubles
    ((1 << 53) + 1, "-", 1 << 53, SMALLEST),  # an int that no double equals counts as infinite
    ((1 << 63) - 1, "+", 1, SMALLEST),  # does not fit
    (3, "*", -4, -12),
    (7, "/", 2, 3.5),
    (1, "/", 0, math.inf),
    (-1, "/", 0, -math.inf),
    (1, "/", -0.0, -math.inf),
    (-7, "%", 4, -3),  # the sign of the dividend, unlike Python
    (7, "%", -4, 3),
    (5, "%", 0, SMALLEST),  # NaN as an int64
    (-7.5, "%", 2, -1.5),
    (2, "<", 2.5, True),
    (2, ">=", 3, False),
]


@pytest.mark.parametrize(("left", "operator", "right", "expected"), SUMS)
def test_arithmetic(left: Any, operator: str, right: Any, expected: Any) -> None:
    value = ARITHMETIC[operator](left, right)
    assert (value, type(value)) == (expected, type(expected))


@pytest.mark.parametrize(("left", "operator"), [(0, "/"), (0.0, "%"), (math.inf, "%")])
def test_an_invalid_operation_is_a_negative_nan(left: float, operator: str) -> None:
    value = ARITHMETIC[operator](left, 0.0)
    assert math.isnan(value)
    assert math.copysign(1, value) == -1


@pytest.mark.parametrize(
    ("number", "expected"),
    [(2.9, 2), (-2.9, -2), (2.0**63, SMALLEST), (-math.inf, SMALLEST), (math.nan, SMALLEST)],
)
def test_cast_to_int(number: float, expected: int) -> None:
    assert cast_to_int(number) == expected


def test_negated() -> None:
    assert [negated(number) for number in (3, -2.5, SMALLEST, SMALLEST + 1)] == [
        -3,
        2.5,
        SMALLEST,
        (1 << 63) - 1,
    ]


def test_a_bool_is_no_number() -> None:
    assert [is_number(value) for value in (1, 1.0, True, "1", None)] == [True, True, False, False, False]


SLICES = [
    (0, 3, 1, "abc"),
    (-2, 5, 1, "de"),
    (-9, 9, 2, "ace"),
    (3, 1, 1, ""),
    (4, -1, -1, "edcba"),  # -1 is the end of a backward slice, unlike Python
    (9, 1, -2, "ec"),
    (4, -3, -1, "ed"),
]


@pytest.mark.parametrize(("start", "stop", "step", "expected"), SLICES)
def test_slice_of(start: int, stop: int, step: int, expected: str) -> None:
    assert "abcde"[slice_of(5, start, stop, step)] == expected
    assert ""[slice_of(0, start, stop, step)] == ""
