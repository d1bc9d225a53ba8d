"""Runs requests in worker threads, and limits how many wait for one. The engine releases the GIL while it encodes."""

from __future__ import annotations

import asyncio
from asyncio import FIRST_COMPLETED
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from .failures import RequestError
from .rendering import LATER, MOST_SLOW, GoneError, SlowRequests, TemplateTime

T = TypeVar("T")

_MOMENT = 0.1  # seconds


class Work:
    """A limited number of threads, of requests that wait for one, and of seconds that a request may take.

    A thread takes one waiting request after another. When the chat templates of its request turn out to be slow, it
    finishes only that request, and another thread takes its place: `slow` limits how many such threads there are.
    `tell` is called with the number of requests that wait for a thread or have one, whenever it changes.
    """

    def __init__(
        self,
        threads: int,
        most_waiting: int,
        timeout: float,
        template_timeout: float,
        slow: SlowRequests,
        tell: Callable[[int], object] = int,
    ) -> None:
        # The executor starts a thread only when no earlier one is idle.
        self._executor = ThreadPoolExecutor(threads + MOST_SLOW, thread_name_prefix="ggufbpe")
        self._most_at_work = threads
        self._most = threads + most_waiting
        self._timeout = timeout
        self._template_timeout = template_timeout
        self._slow = slow
        self._tell = tell
        self._begun = 0
        self._jobs: WeakSet[_Job[Any]] = WeakSet()
        self._changing = Lock()  # for the two below
        self._waiting: deque[_Job[Any]] = deque()
        self._at_work = 0  # threads, without those whose requests are slow

    async def done(
        self, function: Callable[[TemplateTime], T], until_gone: Callable[[], asyncio.Future[None]]
    ) -> T:
        """The function's result. `RequestError` 429 if too many wait already, 503 if it takes too long.

        `GoneError` when the future that `until_gone` gives is done before: the client hung up. Most work is done in a
        moment, and never asks for it.

        A thread cannot be stopped but in a chat template: work that it has begun holds it, and counts, until it ends.
        Other work is dropped.
        """
        if self._begun >= self._most:
            raise RequestError(429, "too many requests at once", LATER)
        self._count(1)
        job = _Job(function, TemplateTime(self._template_timeout, self._slow, self._give_up_place))
        awaited = asyncio.wrap_future(job.future)
        awaited.add_done_callback(self._end)
        self._submit(job)
        moment = min(_MOMENT, self._timeout)
        try:
            if (await asyncio.wait((awaited,), timeout=moment))[0]:
                return awaited.result()
            gone = until_gone()
            await asyncio.wait((awaited, gone), timeout=self._timeout - moment, return_when=FIRST_COMPLETED)
            if awaited.done():
                return awaited.result()
        except asyncio.CancelledError:
            awaited.cancel()  # the loop may be closed when the thread is done
            self._drop(job)
            raise
        self._drop(job)
        if gone.done():
            raise GoneError
        raise RequestError(503, f"the answer takes more than {self._timeout:g} seconds", LATER)

    def _end(self, done: asyncio.Future[Any]) -> None:
        """Count a request no longer, and retrieve its error: asyncio complains about one that nobody was told of."""
        self._count(-1)
        if not done.cancelled():
            done.exception()

    def _count(self, change: int) -> None:
        """Count a request that begins or ends. Only the event loop does."""
        self._begun += change
        self._tell(self._begun)

    def _submit(self, job: _Job[Any]) -> None:
        """Put a job behind those that wait."""
        self._jobs.add(job)
        with self._changing:
            self._waiting.append(job)
            self._start_thread_if_needed()

    def _start_thread_if_needed(self) -> None:
        """Start a thread if jobs wait and a place is free. The caller holds `_changing`."""
        if self._waiting and self._at_work < self._most_at_work:
            self._executor.submit(self._run_jobs)
            self._at_work += 1

    def _run_jobs(self) -> None:
        """Run the jobs that wait, until none is left or this thread has given up its place."""
        while True:
            with self._changing:
                if not self._waiting:
                    self._at_work -= 1
                    return
                job = self._waiting.popleft()
            job.run()
            if not job.rendering.has_place:
                return
            del job  # nothing is kept of a request while this thread waits for the lock or is idle

    def _give_up_place(self) -> None:
        """Let another thread take the place of this one, which finishes only its job."""
        with self._changing:
            self._at_work -= 1
            self._start_thread_if_needed()

    def _drop(self, job: _Job[Any]) -> None:
        """Take back a job that waits, and end the chat templates of one that runs."""
        with self._changing:
            if job in self._waiting:
                self._waiting.remove(job)
        job.drop()

    def close(self) -> None:
        """Shut down without waiting for threads: whatever still runs has no client."""
        for job in tuple(self._jobs):
            self._drop(job)
        self._executor.shutdown(wait=False)


class _Job(Generic[T]):
    """A function to call once, and the future that gets its result. Nothing is kept of what was dropped or is done."""

    def __init__(self, function: Callable[[TemplateTime], T], rendering: TemplateTime) -> None:
        self.future: Future[T] = Future()
        self.rendering = rendering
        self._function: Callable[[TemplateTime], T] | None = function

    def run(self) -> None:
        """Call the function, unless the job was dropped."""
        if not self.future.set_running_or_notify_cancel():
            return
        function, self._function = self._function, None
        try:
            if function is None:
                raise GoneError
            result = function(self.rendering)
        except BaseException as error:
            # The error holds this frame, which must not hold the body, nor in the end the error.
            del function
            self.rendering.leave()
            self.future.set_exception(error)
            del self
        else:
            self.rendering.leave()
            self.future.set_result(result)

    def drop(self) -> None:
        """Forget the function, and the body with it; end the chat templates that it runs."""
        self.future.cancel()
        self._function = None
        self.rendering.drop()
