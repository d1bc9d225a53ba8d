"""Worker threads, and a bound on how many requests wait for one. The engine releases the GIL while it encodes.

app.py -> [this file] -> a function in a thread
"""

from __future__ import annotations

import asyncio
from asyncio import FIRST_COMPLETED
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Semaphore
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from .failures import RequestError
from .rendering import LATER, MOST_SLOW, GoneError, Rendering, SlowRequests

T = TypeVar("T")

_MOMENT = 0.1  # seconds


class Work:
    """A limited number of threads, of requests that wait for one, and of seconds that a request may take.

    There are more threads for requests whose chat templates are slow; `slow` has the places for them.
    """

    def __init__(
        self, threads: int, most_waiting: int, timeout: float, template_timeout: float, slow: SlowRequests
    ) -> None:
        self._pool = ThreadPoolExecutor(threads + MOST_SLOW, thread_name_prefix="ggufbpe")
        self._places = Semaphore(threads)
        self._most = threads + most_waiting
        self._timeout = timeout
        self._template_timeout = template_timeout
        self._slow = slow
        self._begun = 0
        self._jobs: WeakSet[_Job[Any]] = WeakSet()

    async def done(
        self, function: Callable[[Rendering], T], until_gone: Callable[[], asyncio.Future[None]]
    ) -> T:
        """The function's result. `RequestError` 429 if too many wait already, 503 if it takes too long.

        `GoneError` when the future that `until_gone` gives is done before: the client hung up. Most work is done in a
        moment, and never asks for it.

        A thread cannot be stopped but in a chat template: work that it has begun holds it, and counts, until it ends.
        Other work is dropped.
        """
        if self._begun >= self._most:
            raise RequestError(429, "too many requests at once", LATER)
        loop = asyncio.get_running_loop()
        self._begun += 1
        job = _Job(function, Rendering(self._template_timeout, self._slow, self._places))
        self._jobs.add(job)
        future = self._pool.submit(job)
        future.add_done_callback(lambda _: loop.call_soon_threadsafe(self._end))
        awaited = asyncio.wrap_future(future)
        moment = min(_MOMENT, self._timeout)
        if (await asyncio.wait((awaited,), timeout=moment))[0]:
            return awaited.result()
        gone = until_gone()
        await asyncio.wait((awaited, gone), timeout=self._timeout - moment, return_when=FIRST_COMPLETED)
        if awaited.done():
            return awaited.result()
        awaited.add_done_callback(_forget)
        future.cancel()
        job.drop()
        if gone.done():
            raise GoneError
        raise RequestError(503, f"the answer takes more than {self._timeout:g} seconds", LATER)

    def _end(self) -> None:
        self._begun -= 1

    def close(self) -> None:
        """Shut down without waiting for threads: whatever still runs has no client."""
        for job in tuple(self._jobs):
            job.drop()
        self._pool.shutdown(wait=False, cancel_futures=True)


class _Job(Generic[T]):
    """A function to call once. The pool keeps a job until a thread is free, but nothing of one that is dropped."""

    def __init__(self, function: Callable[[Rendering], T], rendering: Rendering) -> None:
        self._function: Callable[[Rendering], T] | None = function
        self._rendering = rendering

    def __call__(self) -> T:
        try:
            self._rendering.enter()
            function, self._function = self._function, None
            if function is None:
                raise GoneError
            return function(self._rendering)
        finally:
            self._rendering.leave()

    def drop(self) -> None:
        """Forget the function, and the body with it; end the chat templates that it runs."""
        self._function = None
        self._rendering.drop()


def _forget(future: asyncio.Future[T]) -> None:
    """Retrieve an error that no client is told of; asyncio would complain about it."""
    if not future.cancelled():
        future.exception()
