"""Everything that is served beside the API: the page, the description and the metrics."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from conftest import GPT2

import ggufbpe.server.pages as pages_module
from ggufbpe.server.metrics import Metrics
from ggufbpe.server.pages import PAGES, pages
from ggufbpe.server.served_models import Models


def get(path: str) -> tuple[int, dict[str, str], bytes]:
    """The status, headers and body of an answer."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [],
        "scheme": "http",
        "server": ("localhost", 80),
    }
    metrics = Metrics()
    metrics.note("/tokenize", 200, 0.1, 1, 2)
    asyncio.run(pages(metrics, Models({"gpt2": str(GPT2)}))(scope, receive, send))
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], headers, b"".join(message.get("body", b"") for message in sent[1:])


STATIC = Path(pages_module.__file__).with_name("static")
KINDS = {".css": "text/css", ".js": "text/javascript"}
FILES = {"/": "text/html"} | {
    f"/{path.name}": KINDS[path.suffix] for path in STATIC.iterdir() if path.suffix in KINDS
}


@pytest.mark.parametrize("path", FILES)
def test_files_of_the_page(path: str) -> None:
    status, headers, body = get(path)
    assert status == 200
    assert headers["content-type"].startswith(FILES[path])
    assert "connect-src 'self'" in headers["content-security-policy"]
    assert headers["cache-control"] == "no-cache"
    assert body


def test_the_description_has_no_scripts() -> None:
    status, headers, body = get("/docs")
    assert (status, b"/v1/count" in body) == (200, True)
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "script-src" not in headers["content-security-policy"]
    assert "/v1/count" in json.loads(get("/openapi.json")[2])["paths"]


def test_metrics() -> None:
    _, headers, body = get("/metrics")
    assert headers["content-type"].startswith("text/plain")
    assert b'ggufbpe_requests_total{endpoint="/tokenize",status="200"} 1.0' in body
    assert b"ggufbpe_models_open 0.0" in body


@pytest.mark.parametrize("path", sorted(PAGES))
def test_no_browser_guesses_a_type(path: str) -> None:
    assert get(path)[1]["x-content-type-options"] == "nosniff"
