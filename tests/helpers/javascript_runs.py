"""Runs JavaScript with the package of ggufbpe/javascript, in Node and on a page of a browser."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from conftest import GPT2, ROOT, missing
from playwright.sync_api import Browser, Page, sync_playwright

PACKAGE = ROOT / "ggufbpe" / "javascript"
HELPERS = ROOT / "tests" / "javascript"

Run = Callable[..., Any]
"""Takes the body of an async function of `given`, and `given`; returns what it returns."""


def built_package() -> Path:
    """The folder of the package, or no test."""
    if not (PACKAGE / "ggufbpe.wasm").is_file():
        missing("ggufbpe.wasm is not built: sh scripts/wasm.sh")
    return PACKAGE


def in_node(folder: Path) -> Run:
    """A `Run` in Node, whose scripts lie in a folder."""
    program = shutil.which("node")
    if program is None:
        missing("Node is not installed: apt-get install nodejs")
    script = folder / "script.mjs"

    def run(body: str, given: Any = None) -> Any:
        script.write_text(
            f'import {{ Tokenizer, TokenizerError }} from "{PACKAGE}/index.js";\n'
            f'import {{ compareAll }} from "{HELPERS}/recorded.js";\n'
            f"const given = {json.dumps(given)};\n"
            f"const answer = await (async () => {{ {body} }})();\n"
            "console.log(JSON.stringify(answer ?? null));\n"
        )
        done = subprocess.run(
            [str(program), "--expose-gc", str(script)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def on_page(page: Page) -> Run:
    """A `Run` on a page whose server has the package and recorded.js in its root."""

    def run(body: str, given: Any = None) -> Any:
        return page.evaluate(
            f"""async (given) => {{
                const {{ Tokenizer, TokenizerError }} = await import("/index.js");
                const {{ compareAll }} = await import("/recorded.js");
                {body}
            }}""",
            given,
        )

    return run


@contextmanager
def debian_chromium() -> Iterator[Browser]:
    """The browser, or no test."""
    program = shutil.which("chromium")
    if program is None:
        missing("the browser chromium is not installed: apt-get install chromium")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


def file_of_40_gb(folder: Path) -> Path:
    """GPT-2's vocabulary at the beginning of a file of 40 GiB, most of which takes no room."""
    path = folder / "large.gguf"
    shutil.copyfile(GPT2, path)
    with path.open("r+b") as file:
        file.truncate(40 << 30)
    return path


def whole_characters(data: bytes, start: int, end: int) -> str:
    """The characters that have a byte of a span."""
    while start < end and data[start] & 0xC0 == 0x80:
        start -= 1
    while start < end < len(data) and data[end] & 0xC0 == 0x80:
        end += 1
    return data[start:end].decode()
