"""Dates in prompts."""

from __future__ import annotations

from datetime import datetime

import pytest

from ggufbpe.analysis.diagnose.dates import dates_in

JULY = datetime(2024, 7, 26)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Today is 2024-07-26.", [JULY]),
        ("26 Jul 2024", [JULY]),
        ("Jul 26, 2024", [JULY]),
        ("July 26 2024", [JULY]),
        ("26 July 2024", [JULY]),
        ("2024/07/26", [JULY]),
        ("26/07/2024", [JULY]),
        ("2024-07-26 12:30:59", [datetime(2024, 7, 26, 12, 30, 59), JULY]),
        ("05/07/2024", [datetime(2024, 7, 5), datetime(2024, 5, 7)]),  # either way
        ("Knowledge: December 2023", []),
        ("31 Feb 2024 and 2024-13-01", []),
        ("12024-07-26 or 2024-07-261", []),  # parts of other numbers
        ("2024-07-26, 26 Jul 2024", [JULY]),  # once
        ("2024-07-26, 2021-03-03, 2024-07-26", [JULY, datetime(2021, 3, 3)]),
        ("3 Mar 2021 2020-01-02", [datetime(2021, 3, 3), datetime(2020, 1, 2)]),  # in the order of the text
        (" ".join(f"2024-01-0{day}" for day in range(1, 8)), [datetime(2024, 1, day) for day in range(1, 5)]),
    ],
)
def test_dates(text: str, expected: list[datetime]) -> None:
    assert dates_in(text) == expected
