"""Runs the server's processes: the socket, signals, and a graceful shutdown."""

from __future__ import annotations

import logging
import os
import signal
import socket
import tempfile
from collections.abc import Callable
from functools import partial

import uvicorn

from .._util.processors import processors
from .app import Application
from .metrics import SHARED_NUMBERS, log_event, log_to_stderr
from .protocol import Protocol
from .settings import MOST_WORKERS, Settings
from .worker_processes import WorkerProcesses, check_is_no_worker, stop_with_parent

_WAITING = 2048  # connections in the backlog of the socket

# uvloop accepts one connection per listener and turn of its loop. While long texts are encoded, a turn takes
# milliseconds: of many clients that come at once, the last would wait until the first had several answers.
_LISTENERS = 16


def serve(settings: Settings, listening: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; `listening` is told the address.

    `ValueError` for more workers than this machine may have, `OSError` if the address cannot be bound,
    `ChildProcessError` if no worker process can start or this is one.
    """
    check_is_no_worker()
    check_workers(settings.workers)
    listeners = listening_sockets(settings)
    log_to_stderr()
    config = uvicorn.Config(
        partial(application, settings),
        factory=True,
        http=Protocol,
        ws="none",
        workers=settings.workers,
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        headers=[("server", "ggufbpe")],
        backlog=_WAITING,
        timeout_graceful_shutdown=int(settings.stop_timeout),
        timeout_keep_alive=30,
    )
    before = signal.getsignal(signal.SIGTERM)
    try:
        with tempfile.TemporaryDirectory(prefix="ggufbpe-") as folder:
            if settings.workers == 1:
                server = uvicorn.Server(config)
                # before and after uvicorn's own handler, which raises the signal again at the end
                signal.signal(signal.SIGTERM, partial(_stop, server))
                listening(_address(listeners[0]))
                server.run(listeners)
            else:
                os.environ[SHARED_NUMBERS] = folder  # for the metrics of all workers together
                workers = WorkerProcesses(config, listeners)
                listening(_address(listeners[0]))
                workers.run()
                if workers.failure:
                    raise ChildProcessError(workers.failure)
    finally:
        signal.signal(signal.SIGTERM, before)
        for each in listeners:
            each.close()
    log_event(logging.INFO, "stopped")


def check_workers(workers: int) -> None:
    """Raise a `ValueError` for more worker processes than this machine may have."""
    most = MOST_WORKERS * processors()
    if workers > most:
        raise ValueError(f"workers must be at most {most} on this machine: {MOST_WORKERS} for each processor")


def application(settings: Settings) -> Application:
    """The application of one process."""
    log_to_stderr()
    if settings.workers > 1:
        stop_with_parent()
    return Application(settings)


def listening_sockets(settings: Settings) -> list[socket.socket]:
    """Duplicates of the one socket that listens. `OSError` if the address cannot be bound."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    place = socket.create_server((settings.host, settings.port), family=family, backlog=_WAITING)
    return [place, *(place.dup() for _ in range(_LISTENERS - 1))]


def _address(place: socket.socket) -> str:
    host, port = place.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _stop(server: uvicorn.Server, *_: object) -> None:
    server.should_exit = True
