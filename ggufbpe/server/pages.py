"""Serves everything that is not an endpoint of the API: the page, the API's description, and the metrics.

Pages have a Content-Security-Policy that allows requests to this server only.
"""

from __future__ import annotations

from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from .api_description import description, description_page
from .guard import FILES_OF_PAGE
from .metrics import Metrics
from .page_files import page_files
from .served_models import Models

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_NO_SNIFFING = {"x-content-type-options": "nosniff"}
_SAFE = {**_NO_SNIFFING, "content-security-policy": POLICY, "referrer-policy": "no-referrer"}
_SAFE_FILE = {
    **_SAFE,
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cache-control": "no-cache",
}
PAGES = frozenset({*FILES_OF_PAGE, "/docs", "/openapi.json", "/metrics"})
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}


def pages(metrics: Metrics, models: Models) -> Starlette:
    """The routes."""

    async def numbers(request: Request) -> Response:
        metrics.models_open.set(models.open_count)
        return Response(metrics.exposition(), media_type=metrics.content_type, headers=_NO_SNIFFING)

    async def openapi(request: Request) -> Response:
        return JSONResponse(description(), headers=_NO_SNIFFING)

    async def docs(request: Request) -> Response:
        return HTMLResponse("".join(description_page()), headers=_SAFE)

    async def file(request: Request) -> Response:
        name = request.url.path.removeprefix("/") or "index.html"
        return Response(page_files()[name], media_type=_TYPES[Path(name).suffix], headers=_SAFE_FILE)

    return Starlette(
        routes=[
            Route("/metrics", numbers),
            Route("/openapi.json", openapi),
            Route("/docs", docs),
            *(Route(path, file) for path in FILES_OF_PAGE),
        ]
    )
