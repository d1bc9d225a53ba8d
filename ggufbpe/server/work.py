"""Worker threads, and a bound on how many requests wait for one. The engine releases the GIL while it encodes.

app.py -> [this file] -> a function in a thread
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from .failures import RequestError

T = TypeVar("T")

LATER = {"retry-after": "1"}


class Work:
    """A limited number of threads, of requests that wait for one, and of seconds that a request may take."""

    def __init__(self, threads: int, most_waiting: int, timeout: float) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="ggufbpe")
        self._most = threads + most_waiting
        self._timeout = timeout
        self._begun = 0

    async def done(self, function: Callable[[], T]) -> T:
        """The function's result. `RequestError` 429 if too many wait already, 503 if it takes too long.

        A thread cannot be stopped: work that takes too long holds its thread, and counts, until it ends.
        """
        if self._begun >= self._most:
            raise RequestError(429, "too many requests at once", LATER)
        loop = asyncio.get_running_loop()
        self._begun += 1
        future = self._pool.submit(function)
        future.add_done_callback(lambda _: loop.call_soon_threadsafe(self._end))
        awaited = asyncio.wrap_future(future)
        finished, _ = await asyncio.wait((awaited,), timeout=self._timeout)
        if not finished:
            awaited.add_done_callback(_forget)
            future.cancel()  # where no thread has taken it yet
            raise RequestError(503, f"the answer takes more than {self._timeout:g} seconds", LATER)
        return awaited.result()

    def _end(self) -> None:
        self._begun -= 1

    def close(self) -> None:
        """Shut down without waiting for threads: whatever still runs has no client."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _forget(future: asyncio.Future[T]) -> None:
    """Retrieve an error that no client is told of; asyncio would complain about it."""
    if not future.cancelled():
        future.exception()
