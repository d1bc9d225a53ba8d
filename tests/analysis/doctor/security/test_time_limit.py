"""A time limit ends what takes longer, and what comes after it."""

from __future__ import annotations

import pytest

from ggufbpe.analysis.doctor.security.time_limit import OutOfTimeError, TimeLimit
from ggufbpe.chat.template.run_limits import look_at_clock


def work(limit: TimeLimit, rounds: int) -> None:
    with limit.timed():
        for _ in range(rounds):
            look_at_clock(False)


def test_what_takes_longer_is_ended_and_nothing_begins_after_it() -> None:
    limit = TimeLimit(0.01)
    with pytest.raises(OutOfTimeError):
        work(limit, 10**9)
    with pytest.raises(OutOfTimeError):
        work(limit, 0)


def test_what_is_short_enough_is_not_ended() -> None:
    work(TimeLimit(60), 1000)
