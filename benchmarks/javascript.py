"""The package for JavaScript beside transformers.js, gpt-tokenizer and wllama: the same texts, ids checked equal first.

    python benchmarks/javascript.py --packages FOLDER [--vocab NAME=MODEL ...] [--rounds 5] [--json FILE]

FOLDER has the others: npm install @huggingface/tokenizers gpt-tokenizer @wllama/wllama@2. The first is the tokenizer of
transformers.js; wllama 3 has no function for ids. In Node, seconds are processor time. wllama needs a browser, so
it and ggufbpe are measured in Debian's Chromium as well, where seconds are those of the clock.

But: the others read other files: a tokenizer.json without BOS, tables of their own, and a model with weights, which
here are tiny.
"""

from __future__ import annotations

import argparse
import functools
import json
import shutil
import subprocess
import sys
import tempfile
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from texts import machine_texts
from tokenizer_json import tokenizer_json

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "makers"), str(ROOT / "scripts")]

from ggufbpe import Tokenizer  # noqa: E402

HERE = ROOT / "benchmarks" / "javascript.mjs"
OURS = "ggufbpe"
MODULES = {
    "ggufbpe": "index.js",
    "transformers.js": "@huggingface/tokenizers/dist/tokenizers.mjs",
    "gpt-tokenizer": "gpt-tokenizer/esm/encoding/r50k_base.js",
    "wllama": "@wllama/wllama/esm/index.js",
    "wllamaWasm": "@wllama/wllama/esm/single-thread/wllama.wasm",
}
SIZE = 4 << 20  # bytes of a text


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--packages", required=True, type=Path, metavar="FOLDER")
    parser.add_argument("--vocab", nargs="+", default=[f"gpt-2={ROOT / 'ggufbpe/models/gpt2.gguf'}"])
    parser.add_argument("--size", type=int, default=SIZE, help="bytes of a text at most")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    texts = {text.name: text.text for text in machine_texts(arguments.size)}
    results = []
    for given in arguments.vocab:
        name, _, model = given.partition("=")
        for place, measured in measure(name, Path(model), texts, arguments):
            results.append({"vocab": name, "place": place, **measured})
            show(results[-1], texts)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n")
    return 0


def measure(name: str, model: Path, texts: dict[str, str], arguments: argparse.Namespace) -> Any:
    """Where and what was measured, one engine after the other. `SystemExit` if ids differ."""
    modules = arguments.packages.resolve() / "node_modules"
    paths = {key: str(modules / path) for key, path in MODULES.items()}
    paths[OURS] = str(ROOT / "ggufbpe" / "javascript" / "index.js")
    tokenizer = Tokenizer.from_gguf(model)
    work = {
        "model": str(model.resolve()),
        "tokenizerJson": tokenizer_json(tokenizer.vocabulary),
        "modules": paths,
        "texts": texts,
        "rounds": arguments.rounds,
    }
    engines = [OURS, "transformers.js", *(["gpt-tokenizer"] if name == "gpt-2" else [])]
    found = [("node", in_node(engine, work)) for engine in engines]
    if Path(paths["wllama"]).is_file() and shutil.which("chromium"):
        found += [("chromium", each) for each in in_chromium([OURS, "wllama"], work, model, modules)]
    for text in texts:
        if len({measured["texts"][text]["ids"] for _, measured in found}) != 1:
            who = {
                f"{measured['name']} in {place}": measured["texts"][text]["ids"] for place, measured in found
            }
            raise SystemExit(f"{name}, {text}: the ids differ: {who}")
    return found


def in_node(engine: str, work: dict[str, Any]) -> dict[str, Any]:
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"name": engine, "work": work}, file)
        file.flush()
        done = subprocess.run(["node", str(HERE), file.name], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{engine}: {done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


class _Handler(SimpleHTTPRequestHandler):
    def guess_type(self, path: Any) -> str:
        return "text/javascript" if str(path).endswith(".mjs") else super().guess_type(path)

    def log_message(self, *_: Any) -> None:
        """Nothing is printed."""


def in_chromium(engines: list[str], work: dict[str, Any], model: Path, modules: Path) -> list[dict[str, Any]]:
    """Measured on a page of a server whose folder has all that is needed."""
    from make_tiny_model import make_tiny_model
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        root = Path(folder)
        (root / "packages").symlink_to(modules)
        (root / "ggufbpe").symlink_to(ROOT / "ggufbpe" / "javascript")
        (root / "measure.mjs").symlink_to(HERE)
        (root / "index.html").write_text("<!doctype html>")
        make_tiny_model(root / "weights.gguf", model)
        server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Handler, directory=folder))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_address[1]}"
        paths = {key: f"{base}/packages/{path}" for key, path in MODULES.items()}
        paths[OURS] = f"{base}/ggufbpe/index.js"
        there = {**work, "modules": paths, "model": f"{base}/weights.gguf", "weights": f"{base}/weights.gguf"}
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        page.set_default_timeout(0)
        page.goto(base)
        call = "async ([name, work]) => (await import('/measure.mjs')).measure(name, work)"
        found = [page.evaluate(call, [engine, there]) for engine in engines]
        browser.close()
        server.shutdown()
        server.server_close()
    return found


def show(found: dict[str, Any], texts: dict[str, str]) -> None:
    """A line: the time to open, and MB/s of each text for the first pass and for later ones."""
    line = f"{found['vocab']:10} {found['place']:9} {found['name']:16} open {1000 * found['opened']:6.0f} ms"
    for name, text in texts.items():
        megabytes = len(text.encode()) / 1e6
        one = found["texts"][name]
        line += f"   {name} {megabytes / one['first']:.3g} / {megabytes / one['later']:.3g}"
    print(line, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
