"""Worker processes that cannot start, and those that die."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from conftest import GPT2

from ggufbpe.server.metrics import SHARED_NUMBERS
from ggufbpe.server.run import check_workers, serve
from ggufbpe.server.settings import Settings
from ggufbpe.server.worker_processes import WorkerProcesses, check_is_no_worker

MODULE = "ggufbpe.server.worker_processes"
LAUNCHER = """\
import sys
from ggufbpe.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_workers_that_cannot_start_end_the_server(tmp_path: Path) -> None:
    """Each worker runs the script again, which has no `if __name__ == "__main__"`."""
    script = tmp_path / "launcher.py"
    script.write_text(LAUNCHER)
    command = [sys.executable, str(script), "serve", "-m", str(GPT2), "--port", "0", "--workers", "2"]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=300)
    lines = done.stderr.splitlines()
    deaths = [json.loads(line) for line in lines if line.startswith("{")]
    assert (done.returncode, [each["event"] for each in deaths]) == (2, ["a worker process ended"] * 2)
    # The worker that replaced the first may have said so, too, before the second one's end was seen.
    assert sum('if __name__ == "__main__"' in line for line in lines) in (2, 3)
    assert sum("listening" in line for line in lines) == 1
    assert lines[-1] == "ggufbpe: error: no worker process can start; the last one ended with code 2"


def test_this_process_may_start_a_server() -> None:
    check_is_no_worker()


def test_more_workers_than_a_machine_may_have_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistyped number would take all memory of the machine."""
    monkeypatch.setattr("ggufbpe.server.run.processors", lambda: 2)
    check_workers(64)
    with pytest.raises(
        ValueError, match=r"^workers must be at most 64 on this machine: 32 for each processor$"
    ):
        serve(Settings({"a": str(GPT2)}, workers=10**6), print)


class Worker:
    """A worker process without a process."""

    made = 0

    def __init__(
        self, exitcode: int | None = None, is_serving: bool = False, pid: int = 1, ends: bool = True
    ) -> None:
        self.exitcode = exitcode
        self.pid = pid
        self.process = self
        self.waited: list[float | None] = []
        self._is_serving, self._ends = is_serving, ends

    def is_ready(self, timeout: float) -> bool:
        return self._is_serving

    def ping(self, timeout: float) -> bool:
        return self._is_serving

    def start(self) -> None:
        type(self).made += 1

    def kill(self) -> None:
        self.exitcode = self.exitcode or -9

    def terminate(self) -> None:
        self.exitcode = 0 if self._ends else None

    def join(self, timeout: float | None = None) -> None:
        self.waited.append(timeout)


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Callable[..., WorkerProcesses]:
    monkeypatch.setattr("uvicorn.supervisors.multiprocess.SIGNALS", {})
    monkeypatch.setattr(f"{MODULE}.Process", lambda *_: Worker())
    monkeypatch.setattr(Worker, "made", 0)

    def of(*processes: Any) -> WorkerProcesses:
        found = WorkerProcesses(uvicorn.Config("none", workers=len(processes)), [])
        found.processes[:] = processes
        return found

    return of


@pytest.mark.parametrize(
    ("processes", "failure"),
    [
        ([Worker(3), Worker(3)], "no worker process can start; the last one ended with code 3"),
        ([Worker(), Worker(3)], ""),
        ([Worker(is_serving=True), Worker(-9)], ""),
    ],
)
def test_workers_end_before_one_is_ready(
    workers: Callable[..., WorkerProcesses], processes: list[Any], failure: str
) -> None:
    found = workers(*processes)
    found.keep_subprocess_alive()
    assert (found.failure, found.should_exit.is_set()) == (failure, failure != "")
    assert Worker.made == 1


def test_a_worker_that_serves_is_replaced_when_it_dies_however_often(
    workers: Callable[..., WorkerProcesses],
) -> None:
    found: Any = workers(Worker(is_serving=True))
    for died in range(5):
        found.keep_subprocess_alive()
        assert (found.failure, Worker.made) == ("", died)
        found.processes[0] = Worker(-11, True)
        found.keep_subprocess_alive()
        found.processes[0] = Worker(is_serving=True)


def test_a_worker_that_hangs_is_replaced(
    workers: Callable[..., WorkerProcesses], monkeypatch: pytest.MonkeyPatch
) -> None:
    serving = Worker(is_serving=True)
    found = workers(serving)
    found.keep_subprocess_alive()
    serving._is_serving = False
    found.keep_subprocess_alive()
    assert (serving.exitcode, Worker.made) == (-9, 1)


def test_a_worker_may_take_long_to_start_but_not_for_ever(
    workers: Callable[..., WorkerProcesses], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = workers(Worker())
    times = iter((1000.0, 1100.0, 1121.0))
    monkeypatch.setattr(f"{MODULE}.time.monotonic", lambda: next(times))
    for failure in ("", "", "no worker process can start; the last one ended with code -9"):
        found.keep_subprocess_alive()
        assert found.failure == failure


def gauges(folder: Path, *pids: int) -> set[str]:
    """The names of the files that hold the gauges of worker processes, which are made."""
    files = [folder / f"gauge_livesum_{pid}.db" for pid in pids]
    for file in files:
        file.touch()
    return {file.name for file in files}


def test_the_gauges_of_a_worker_that_was_killed_are_dropped(
    workers: Callable[..., WorkerProcesses], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(SHARED_NUMBERS, str(tmp_path))
    left = gauges(tmp_path, 12)
    gauges(tmp_path, 11)
    workers(Worker(-9, pid=11), Worker(is_serving=True, pid=12)).keep_subprocess_alive()
    assert {file.name for file in tmp_path.iterdir()} == left


@pytest.mark.parametrize("seconds", [0, 60])
def test_a_restart_replaces_each_worker(
    workers: Callable[..., WorkerProcesses], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, seconds: float
) -> None:
    """However long the new ones take to start, as on a busy machine."""
    monkeypatch.setenv(SHARED_NUMBERS, str(tmp_path))
    gauges(tmp_path, 11, 12)
    now = itertools.count(1000.0, seconds)
    monkeypatch.setattr("time.monotonic", lambda: next(now))
    monkeypatch.setattr(f"{MODULE}.Process", lambda *_: Worker(is_serving=True, pid=20))
    old = [Worker(is_serving=True, pid=pid) for pid in (11, 12)]
    found = workers(*old)
    found.keep_subprocess_alive()
    found.handle_hup()
    assert [worker.exitcode for worker in old] == [0, 0]
    assert [worker.pid for worker in found.processes] == [20, 20]
    assert found._ready == set(found.processes)
    assert list(tmp_path.iterdir()) == []


def test_a_restart_kills_an_old_worker_that_does_not_end(
    workers: Callable[..., WorkerProcesses], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(f"{MODULE}.Process", lambda *_: Worker(is_serving=True, pid=20))
    old = Worker(is_serving=True, ends=False)
    found = workers(old)
    found.config.timeout_graceful_shutdown = 7
    found.restart_all()
    assert (old.exitcode, old.waited) == (-9, [17, None])
    assert [worker.pid for worker in found.processes] == [20]
    assert [record.msg for record in caplog.records] == ["an old worker process did not end and was killed"]


@pytest.mark.parametrize(("signals", "events"), [([], 1), ([signal.SIGTERM], 0)])
def test_a_restart_whose_new_worker_is_not_ready_keeps_the_old_ones(
    workers: Callable[..., WorkerProcesses],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    signals: list[int],
    events: int,
) -> None:
    new = Worker()
    now = itertools.count(1000.0, 50.0)
    monkeypatch.setattr("time.monotonic", lambda: next(now))
    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.setattr(f"{MODULE}.Process", lambda *_: new)
    old = Worker(is_serving=True)
    found: Any = workers(old)
    found.signal_queue.extend(signals)
    found.restart_all()
    assert (found.processes, old.exitcode, new.exitcode) == ([old], None, -9)
    assert [record.msg for record in caplog.records] == [
        "a new worker process does not become ready; the old one stays"
    ] * events


def test_one_worker_less(workers: Callable[..., WorkerProcesses]) -> None:
    found = workers(Worker(is_serving=True), Worker(is_serving=True))
    found.keep_subprocess_alive()
    for _ in range(2):
        found.handle_ttou()
    assert found._ready == set(found.processes)
    assert len(found.processes) == 1
