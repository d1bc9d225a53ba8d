"""Texts in many scripts and source code to train vocabularies on."""

from __future__ import annotations

from conftest import ROOT

EVERY_SCRIPT = (
    "The café's naïve coöperation; l'été, İstanbul'dan Türkçe'nin, 12345 + 3.14, x² ≠ ½.\n"
    "def f(x):\n    if x:\n\t\treturn [x]  # 你好，世界\n\n\nשלום עולם! नमस्ते दुनिया। 👩‍💻🙂 cafe\u0301\r\n"
)


def source_text() -> str:
    """Some 300 kB of English prose and code: this project's own."""
    paths = sorted((ROOT / "tests").rglob("*.py"))
    return "".join(path.read_text(encoding="utf-8") for path in paths)[:300_000]
