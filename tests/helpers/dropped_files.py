"""Files that are dropped on a page of a browser."""

from __future__ import annotations

from base64 import b64encode

from playwright.sync_api import Page

DROP = """(files) => {
    const dropped = new DataTransfer();
    for (const [name, base64] of files) {
        dropped.items.add(new File([Uint8Array.from(atob(base64), (one) => one.charCodeAt(0))], name));
    }
    const how = { dataTransfer: dropped, bubbles: true, cancelable: true };
    document.body.dispatchEvent(new DragEvent("drop", how));
}"""


def drop(page: Page, files: dict[str, bytes]) -> None:
    """Drop files, by their names, on the page as a whole."""
    page.evaluate(DROP, [[name, b64encode(content).decode()] for name, content in files.items()])
