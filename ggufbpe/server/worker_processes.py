"""Keeps the worker processes of a server running, and gives up if none of them can start."""

from __future__ import annotations

import logging
import multiprocessing
import signal
import socket
import threading
import time

import uvicorn
from uvicorn.supervisors import Multiprocess
from uvicorn.supervisors.multiprocess import Process

from .metrics import forget_process, log_event

_START = 120  # seconds until a new worker must be ready; imports take long on a busy machine
_LOOK = 0.1  # seconds to wait for the answer of a worker that may not be ready
_ENDING = 10  # seconds for a worker to end, besides those for the requests that are under way
_STOPPING = {signal.SIGINT, signal.SIGTERM}


class WorkerProcesses(Multiprocess):
    """Worker processes that share sockets. One that ends or hangs is replaced.

    If as many fail as there are workers before the first one is ready, `failure` says so and `run` ends. uvicorn's own
    class starts workers again for ever, and kills those that are not ready after 5 seconds.
    """

    failure = ""

    def __init__(self, config: uvicorn.Config, sockets: list[socket.socket]) -> None:
        super().__init__(config, sockets)
        self._ready: set[Process] = set()
        self._started: dict[Process, float] = {}
        self._failures = 0
        self._is_any_ready = False

    def keep_subprocess_alive(self) -> None:
        """Replace the workers that ended or hang, each with a line in the log."""
        for index, worker in enumerate(self.processes):
            if self.should_exit.is_set() or self._is_well(worker):
                continue
            worker.kill()
            worker.join()
            log_event(logging.ERROR, "a worker process ended", pid=worker.pid, exit_code=worker.exitcode)
            self._failures += 1
            self._forget(worker)
            if not self._is_any_ready and self._failures >= self.processes_num:
                self.failure = f"no worker process can start; the last one ended with code {worker.exitcode}"
                self.should_exit.set()
                return
            self.processes[index] = Process(self.config, self.sockets)
            self.processes[index].start()

    def restart_all(self) -> None:
        """Replace each worker as soon as its replacement is ready, on SIGHUP. If that fails, keep the old workers.

        An old worker answers what has arrived; one that does not end in the time for that is killed.
        uvicorn's own method gives up after the seconds of a health check, in which a worker seldom starts.
        """
        for index, old in enumerate(self.processes):
            new = Process(self.config, self.sockets)
            new.start()
            if not self._becomes_ready(new):
                new.kill()
                new.join()
                self._forget(new)
                if not self._is_told_to_stop():
                    event = "a new worker process does not become ready; the old one stays"
                    log_event(logging.ERROR, event, pid=new.pid, exit_code=new.exitcode)
                return
            self._ready.add(new)
            self.processes[index] = new
            old.terminate()
            old.process.join((self.config.timeout_graceful_shutdown or 0) + _ENDING)
            if old.exitcode is None:
                old.kill()
                old.join()
                log_event(logging.ERROR, "an old worker process did not end and was killed", pid=old.pid)
            self._forget(old)

    def handle_ttou(self) -> None:
        """End the last worker, on SIGTTOU, unless it is the only one."""
        last = self.processes[-1]
        super().handle_ttou()
        if last not in self.processes:
            self._forget(last)

    def _becomes_ready(self, worker: Process) -> bool:
        """Wait for a new worker until it is ready, ends, or has taken too long, or until the server is told to stop."""
        end = time.monotonic() + _START
        while worker.exitcode is None and time.monotonic() < end and not self._is_told_to_stop():
            if worker.is_ready(1):
                return True
            time.sleep(_LOOK)
        return False

    def _is_told_to_stop(self) -> bool:
        """Whether a signal to stop waits to be handled."""
        return not _STOPPING.isdisjoint(self.signal_queue)

    def _forget(self, worker: Process) -> None:
        """Forget a worker that has ended."""
        self._started.pop(worker, None)
        self._ready.discard(worker)
        forget_process(worker.pid)

    def _is_well(self, worker: Process) -> bool:
        """Whether a worker serves, or may still be starting."""
        if worker.exitcode is not None:
            return False
        if worker in self._ready:
            return worker.ping(self.config.timeout_worker_healthcheck)
        if worker.is_ready(_LOOK):
            self._ready.add(worker)
            self._is_any_ready = True
            return True
        now = time.monotonic()
        return now - self._started.setdefault(worker, now) < _START


def stop_with_parent() -> None:
    """In a worker process, stop as on SIGTERM once the process that started it is gone, however that ended.

    A supervisor that is killed tells its workers nothing: they would serve for ever, and hold the port.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def wait() -> None:
        parent.join()
        signal.raise_signal(signal.SIGTERM)

    threading.Thread(target=wait, name="ggufbpe-parent", daemon=True).start()


def check_is_no_worker() -> None:
    """Raise a `ChildProcessError` in a worker process that is about to start a server of its own.

    A worker first runs the script that started the server, under another name. The attribute is the one by which
    `multiprocessing` itself refuses to start processes there.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise ChildProcessError(
            "a worker process runs the script that started this server, which starts a server again; "
            'in that script, put the start under: if __name__ == "__main__":'
        )
