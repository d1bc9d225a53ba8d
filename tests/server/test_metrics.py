"""Metrics and log lines."""

from __future__ import annotations

import json
import logging

import pytest

from ggufbpe.server.metrics import LOG, Metrics, log_event, log_to_stderr


def test_counts_of_requests() -> None:
    metrics = Metrics()
    metrics.note("/tokenize", 200, 0.0003, received=10, sent=100)
    metrics.note("/tokenize", 200, 0.2, received=1, sent=2)
    metrics.note("/tokenize", 400, 0.2, received=0, sent=5)
    metrics.models_open.set(2)
    metrics.slow.set(3)
    metrics.in_threads.labels("long").inc()
    lines = metrics.exposition().decode().splitlines()
    for line in (
        'ggufbpe_requests_total{endpoint="/tokenize",status="200"} 2.0',
        'ggufbpe_requests_total{endpoint="/tokenize",status="400"} 1.0',
        'ggufbpe_request_seconds_bucket{endpoint="/tokenize",le="0.0005"} 1.0',
        'ggufbpe_request_seconds_count{endpoint="/tokenize"} 3.0',
        'ggufbpe_bytes_total{direction="in"} 11.0',
        'ggufbpe_bytes_total{direction="out"} 107.0',
        "ggufbpe_models_open 2.0",
        "ggufbpe_requests_slow 3.0",
        'ggufbpe_requests_in_threads{work="long"} 1.0',
    ):
        assert line in lines


def test_log_lines_are_json(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for logger in (LOG, logging.getLogger("uvicorn.error")):
        for name in ("handlers", "level", "propagate"):
            monkeypatch.setattr(logger, name, getattr(logger, name))
        monkeypatch.setattr(logger, "handlers", [])
    monkeypatch.setattr("warnings.showwarning", None)
    log_to_stderr()
    log_event(logging.INFO, "answered", status=200, path="ä")
    try:
        raise ValueError("told")
    except ValueError:
        LOG.exception("failed")
    first, second = map(json.loads, capsys.readouterr().err.splitlines())
    assert {name: first[name] for name in ("level", "event", "status", "path")} == {
        "level": "info",
        "event": "answered",
        "status": 200,
        "path": "ä",
    }
    assert first["time"].endswith("Z")
    assert (second["level"], second["event"]) == ("error", "failed")
    assert second["trace"].endswith("ValueError: told")
