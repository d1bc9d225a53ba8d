"""Requests in worker threads: how many run, how many wait, and what becomes of one that takes too long."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from ggufbpe.server.failures import RequestError
from ggufbpe.server.rendering import SHORT, GoneError, SlowRequests, TemplateTime
from ggufbpe.server.worker_threads import Work


def stays() -> asyncio.Future[None]:
    """A client that waits for its answer."""
    return asyncio.get_running_loop().create_future()


def gone() -> asyncio.Future[None]:
    """A client that has hung up."""
    future = asyncio.get_running_loop().create_future()
    future.set_result(None)
    return future


def run(use: Callable[[Work], Any], threads: int = 1, most_waiting: int = 1, timeout: float = 60.0) -> Any:
    """The result of a coroutine that uses workers, which are then closed."""

    async def used() -> Any:
        work = Work(threads, most_waiting, timeout, 5.0, SlowRequests())
        try:
            return await use(work)
        finally:
            work.close()

    return asyncio.run(used())


def test_results_and_errors() -> None:
    def fail(_: TemplateTime) -> None:
        raise ValueError("told")

    async def use(work: Work) -> int:
        with pytest.raises(ValueError, match="told"):
            await work.done(fail, stays)
        return await work.done(lambda _: 5, stays)

    assert run(use) == 5


def test_too_many_requests_are_refused() -> None:
    finish = threading.Event()

    async def use(work: Work) -> list[Any]:
        begun = [asyncio.ensure_future(work.done(lambda _: finish.wait(60), stays)) for _ in range(2)]
        await asyncio.sleep(0)  # until both have been submitted
        with pytest.raises(RequestError) as refusal:
            await work.done(lambda _: None, stays)
        assert (refusal.value.status, dict(refusal.value.headers)) == (429, {"retry-after": "1"})
        finish.set()
        return [await each for each in begun]

    assert run(use) == [True, True]


def test_an_answer_that_takes_too_long() -> None:
    finish = threading.Event()

    async def use(work: Work) -> None:
        try:
            with pytest.raises(RequestError, match=r"the answer takes more than 0\.05 seconds") as refusal:
                await work.done(lambda _: finish.wait(60), stays)
            assert refusal.value.status == 503
        finally:
            finish.set()

    run(use, timeout=0.05)


def test_work_of_a_client_that_hung_up_is_dropped() -> None:
    finish, ran = threading.Event(), []

    async def use(work: Work) -> None:
        first = asyncio.ensure_future(work.done(lambda _: finish.wait(60), stays))
        await asyncio.sleep(0)
        with pytest.raises(GoneError):
            await work.done(lambda _: ran.append("second"), gone)  # waits behind the first
        finish.set()
        await first
        await work.done(lambda _: ran.append("third"), stays)

    run(use)
    assert ran == ["third"]


def test_a_slow_request_gives_up_its_place() -> None:
    """One thread: the second request can only run if the first has left its place."""
    slow, finish = threading.Event(), threading.Event()

    def templates(rendering: TemplateTime) -> bool:
        rendering.look(starts=True)
        end = time.thread_time() + 2 * SHORT
        while time.thread_time() < end:  # as a template that takes processor time
            pass
        rendering.look(starts=False)
        slow.set()
        return finish.wait(60)

    async def use(work: Work) -> bool:
        first = asyncio.ensure_future(work.done(templates, stays))
        await work.done(lambda _: finish.set(), stays)
        return await first

    assert run(use)
    assert slow.is_set()
