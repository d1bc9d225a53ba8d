"""How often and how long a request is tried again."""

from __future__ import annotations

import pytest

from ggufbpe.hub.remote import retries
from ggufbpe.hub.remote.retries import Retries

# (status, Retry-After) of each answer in turn, and the seconds that are waited
ANSWERS: dict[str, tuple[list[tuple[int, str]], list[float]]] = {
    "as it says": ([(429, "7"), (503, "3")], [7.0, 3.0]),
    "it says nothing": ([(500, ""), (502, ""), (504, "")], [0.1, 0.2, 0.4]),
    "no more than four times in all": ([(503, "1")] * 9, [1.0, 1.0, 1.0]),
    "no more than a minute": ([(429, "61")], []),
    "no more than a minute in all": ([(429, "40"), (429, "40")], [40.0]),
    "not where the answer would be the same": ([(404, "1")], []),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_wait_for_busy(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    answers, expected = ANSWERS[case]
    waits: list[float] = []
    monkeypatch.setattr(retries, "sleep", waits.append)
    made = Retries()
    again = [made.wait_for_busy(status, {"Retry-After": wait}) for status, wait in answers]
    assert waits == pytest.approx(expected)
    assert again == [index < len(expected) for index in range(len(answers))]
