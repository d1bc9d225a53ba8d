"""The files of the page in the browser, which a server sends and a static site consists of."""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def page_files() -> dict[str, bytes]:
    """Return the files of the page by their names; its stylesheet begins with that of the reports."""
    folder = Path(__file__).parent
    files = {path.name: path.read_bytes() for path in (folder / "static").iterdir()}
    shared = folder.parent / "analysis" / "views" / "templates" / "style.css"
    return {**files, "page.css": shared.read_bytes() + files["page.css"]}
