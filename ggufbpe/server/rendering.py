"""Runs the chat templates of one request within a time limit, and lets slow ones wait for each other.

A template is run by Python and holds the interpreter lock (GIL), so that several slow ones at once only hinder
everything else. A request whose templates have taken `SHORT` seconds gives up its thread's slot to another request
and continues in a slot for slow requests. There are few of these slots; one model may have half of them, and its
requests in them run one at a time.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from threading import Lock

from .failures import RequestError

SHORT = 0.1  # seconds of CPU time in templates
MOST_SLOW = 8  # requests, whether they run or wait
MOST_SLOW_OF_MODEL = 4
LATER = {"retry-after": "1"}
_MOMENT = 0.1  # seconds between two looks at whether somebody still waits for the answer


class GoneError(Exception):
    """Nobody waits for the answer: the client hung up, or was told that it takes too long."""


class SlowRequests:
    """The places for requests whose templates are slow; `noted` is called with their number when it changes."""

    def __init__(self, noted: Callable[[int], object] = lambda total: None) -> None:
        self._noted = noted
        self._changing = Lock()
        self._models: Counter[str] = Counter()
        self._turns: dict[str, Lock] = {}

    def enter(self, model: str) -> Lock:
        """Take a place; the model's turn is to be acquired next. `RequestError` 429 if there is no place."""
        with self._changing:
            if self._models.total() >= MOST_SLOW or self._models[model] >= MOST_SLOW_OF_MODEL:
                raise RequestError(429, "too many requests at once whose chat templates are slow", LATER)
            self._models[model] += 1
            self._noted(self._models.total())
            return self._turns.setdefault(model, Lock())

    def count(self, model: str) -> int:
        """The places that requests of a model have."""
        return self._models[model]

    def leave(self, model: str) -> None:
        """Free a place."""
        with self._changing:
            self._models[model] -= 1
            self._noted(self._models.total())


class TemplateTime:
    """The time that templates take in one request, and the place that the request has.

    `give_up_place` is called when another thread may take the place of the request's thread.
    """

    def __init__(self, seconds: float, slow: SlowRequests, give_up_place: Callable[[], None]) -> None:
        self.model: Callable[[], str] = str  # the name of the request's model
        self.has_place = True
        self._seconds = seconds
        self._slow = slow
        self._give_up_place = give_up_place
        self._is_dropped = False
        self._used = self._last = 0.0
        self._slow_model: str | None = None
        self._turn: Lock | None = None

    def drop(self) -> None:
        """End the templates, since nobody waits for the answer."""
        self._is_dropped = True

    def leave(self) -> None:
        """Free the place for slow requests, if the request has one, and forget its body."""
        self.model = str
        if self._turn is not None:
            self._turn.release()
            self._turn = None
        if self._slow_model is not None:
            self._slow.leave(self._slow_model)
            self._slow_model = None

    def look(self, starts: bool) -> None:
        """Add up the time of templates; for `ggufbpe.chat.template.run_limits.watched_by`.

        `GoneError` if nobody waits for the answer. `RequestError` 400 if templates have taken too long, 429 if they
        are slow and there is no place for that.
        """
        self._check()
        now = time.thread_time()
        if not starts:
            self._used += now - self._last
        self._last = now
        if self._used > self._seconds:
            raise RequestError(
                400, f"the chat template takes more than {self._seconds:g} seconds of processor time"
            )
        if self._used > SHORT and self._slow_model is None:
            self._go_on_as_slow()

    def _go_on_as_slow(self) -> None:
        model = self.model()
        turn = self._slow.enter(model)
        self._slow_model = model
        self.has_place = False
        self._give_up_place()
        while not turn.acquire(timeout=_MOMENT):
            self._check()
        self._turn = turn

    def _check(self) -> None:
        if self._is_dropped:
            raise GoneError
