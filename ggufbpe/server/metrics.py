"""Metrics for Prometheus (/metrics), and the log as lines of JSON. Neither ever contains a text of a request."""

from __future__ import annotations

import json
import logging
import os
import time
import warnings
from collections.abc import Sequence
from typing import Any

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
    multiprocess,
)

LOG = logging.getLogger("ggufbpe.server")
OTHER = "(other)"  # in place of an unknown path, which may hold a secret
SHARED_NUMBERS = "PROMETHEUS_MULTIPROC_DIR"  # where several worker processes keep their metrics

_BUCKETS = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60)


class Metrics:
    """The metrics of a server, of all its processes together."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        names = "endpoint", "status"
        self._requests = Counter("ggufbpe_requests", "Requests answered.", names, registry=self._registry)
        self._seconds = Histogram(
            "ggufbpe_request_seconds",
            "Seconds from the head of a request to its answer.",
            ["endpoint"],
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._bytes = Counter(
            "ggufbpe_bytes", "Bytes of bodies, in and out.", ["direction"], registry=self._registry
        )
        self.models_open = self._gauge("ggufbpe_models_open", "Models that are open.")
        self.in_threads = self._gauge(
            "ggufbpe_requests_in_threads", "Requests that wait for a thread or have one.", ["work"]
        )
        self.slow = self._gauge(
            "ggufbpe_requests_slow", "Requests whose chat templates are slow, waiting or running."
        )
        self._in, self._out = self._bytes.labels("in"), self._bytes.labels("out")
        self._known: dict[tuple[str, int], tuple[Any, Any]] = {}

    def _gauge(self, name: str, text: str, labels: Sequence[str] = ()) -> Gauge:
        """A number that goes up and down, of all processes together."""
        return Gauge(name, text, labels, registry=self._registry, multiprocess_mode="livesum")

    def note(self, endpoint: str, status: int, seconds: float, received: int, sent: int) -> None:
        """Count a request."""
        children = self._known.get((endpoint, status))
        if children is None:
            children = self._requests.labels(endpoint, str(status)), self._seconds.labels(endpoint)
            self._known[endpoint, status] = children
        children[0].inc()
        children[1].observe(seconds)
        self._in.inc(received)
        self._out.inc(sent)

    def exposition(self) -> bytes:
        """The metrics in Prometheus's text format."""
        if SHARED_NUMBERS not in os.environ:
            return generate_latest(self._registry)
        registry = CollectorRegistry()
        multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)


def forget_process(pid: int | None) -> None:
    """Leave a worker process that has ended out of the gauges, which are sums of all processes that run."""
    if SHARED_NUMBERS in os.environ:
        multiprocess.mark_process_dead(pid)  # type: ignore[no-untyped-call]


class _Lines(logging.Formatter):
    """A record as a line of JSON: time, level, event, and its other fields."""

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{record.msecs:03.0f}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "told", {}),
        }
        if record.exc_info:
            entry["trace"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=True)


def log_event(level: int, event: str, **told: Any) -> None:
    """Log an event with its fields."""
    LOG.log(level, event, extra={"told": told})


def _log_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Log a warning, such as one about a file that is opened."""
    log_event(logging.WARNING, "warning", message=str(message))


def log_to_stderr() -> None:
    """Send the server's log, Python's warnings and uvicorn's log to standard error."""
    warnings.showwarning = _log_warning
    handler = logging.StreamHandler()
    handler.setFormatter(_Lines())
    for logger, level in ((LOG, logging.INFO), (logging.getLogger("uvicorn.error"), logging.WARNING)):
        logger.handlers[:] = [handler]
        logger.setLevel(level)
        logger.propagate = False
