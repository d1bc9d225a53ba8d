"""How fast: opening and encoding, beside llama.cpp, HF tokenizers and tiktoken, all in one run on one thread.

    python scripts/reference.py prepare --vocabs --library
    pip install -e '.[tokenizers,tiktoken]'
    python scripts/benchmark.py [--text NAME=FILE …] [--megabytes 8] [--runs 3] [--json results.json]

Vocabulary: Llama 3 (ggml-vocab-llama-bpe.gguf). Texts, unless given: English prose (the dictionary of Debian's
package dict-gcide, else the docstrings of Python's library), code (the source of Python's library), and manual pages
in other languages (/usr/share/man). Ids are checked to be equal before anything is timed. What is not installed is
left out and said so. Figures are medians; machines differ, so compare those of one run only.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import json
import statistics
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from reference import NotPreparedError, vocabulary

from ggufbpe import Tokenizer

Encode = Callable[[str], Any]
Opener = Callable[[], Encode]
DICTIONARY = Path("/usr/share/dictd/gcide.dict.dz")
MANUALS = Path("/usr/share/man")
PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


# ---- texts ----------------------------------------------------------------------------------------------


def sources() -> Iterator[str]:
    """The source files of Python's library."""
    for path in sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py")):
        if "site-packages" not in path.parts:
            yield path.read_text("utf-8", "replace")


def docstrings() -> Iterator[str]:
    """The docstrings of Python's library."""
    for source in sources():
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                yield (ast.get_docstring(node) or "") + "\n"


def manuals() -> Iterator[str]:
    """Manual pages that are not English."""
    for path in sorted(MANUALS.glob("[a-z][a-z]*/man*/*.gz")):
        yield gzip.decompress(path.read_bytes()).decode("utf-8", "replace")


def joined(parts: Iterator[str], size: int) -> str:
    """The parts put together, up to `size` bytes of UTF-8."""
    pieces, total = [], 0
    for part in parts:
        pieces.append(part)
        total += len(part.encode())
        if total >= size:
            break
    return "".join(pieces).encode()[:size].decode("utf-8", "ignore")


def default_texts(size: int) -> dict[str, str]:
    """What any machine has; shorter than `size` where it has less."""
    if DICTIONARY.exists():
        prose = gzip.decompress(DICTIONARY.read_bytes())[:size].decode("utf-8", "ignore")
    else:
        prose = joined(docstrings(), size)
        print("prose: docstrings (apt-get install dict-gcide gives English prose)", file=sys.stderr)
    texts = {"prose": prose, "code": joined(sources(), size), "many languages": joined(manuals(), size)}
    return {name: text for name, text in texts.items() if text}


# ---- engines --------------------------------------------------------------------------------------------


def open_ours(path: Path) -> Encode:
    """ggufbpe."""
    tokenizer = Tokenizer.from_gguf(path)
    return lambda text: tokenizer.encode(text, add_special=False, parse_special=False)


def open_llama_cpp(path: Path) -> Encode:
    """llama.cpp in process, vocabulary only."""
    import ctypes

    import llama_cpp

    silent = llama_cpp.llama_log_callback(lambda *_: None)
    llama_cpp.llama_log_set(silent, ctypes.c_void_p(0))
    parameters = llama_cpp.llama_model_default_params()
    parameters.vocab_only = True
    model = llama_cpp.llama_model_load_from_file(str(path).encode(), parameters)
    vocab = llama_cpp.llama_model_get_vocab(model)

    def encode(text: str) -> Any:
        data = text.encode()
        buffer = (llama_cpp.llama_token * (len(data) + 1))()
        count = llama_cpp.llama_tokenize(vocab, data, len(data), buffer, len(buffer), False, False)
        return buffer[:count]

    encode.silent = silent  # type: ignore[attr-defined]  # the library calls it for as long as it lives
    return encode


def open_tokenizers(path: Path) -> Encode:
    """HF tokenizers, made from our vocabulary; opening is not comparable and not timed."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers

    vocab = _ours(path)
    merges = [(left, right) for left, _, right in (merge.partition(" ") for merge in vocab.merges)]
    tokenizer = Tokenizer(models.BPE(dict(vocab.token_to_id), merges, ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PATTERN), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


def open_tiktoken(path: Path) -> Encode:
    """tiktoken, made from our vocabulary, whose ids are its ranks; opening is not timed."""
    import tiktoken

    tokenizer = Tokenizer.from_gguf(path)
    special = set(tokenizer.vocabulary.special_token_ids)
    ranks = {tokenizer.token_to_piece(i): i for i in range(tokenizer.vocab_size) if i not in special}
    return tiktoken.Encoding(
        "llama3", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={}
    ).encode_ordinary


def _ours(path: Path) -> Any:
    return Tokenizer.from_gguf(path).vocabulary


ENGINES: dict[str, Callable[[Path], Encode]] = {
    "ggufbpe, reference engine": open_ours,
    "llama.cpp": open_llama_cpp,
    "HF tokenizers": open_tokenizers,
    "tiktoken": open_tiktoken,
}
OPENED_FROM_GGUF = ("ggufbpe, reference engine", "llama.cpp")


# ---- measuring ------------------------------------------------------------------------------------------


def seconds(action: Callable[[], Any]) -> float:
    """How long `action` takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def available(path: Path) -> dict[str, Encode]:
    """The engines that are installed, opened."""
    found = {}
    for name, opener in ENGINES.items():
        try:
            found[name] = opener(path)
        except ImportError as error:
            print(f"{name}: left out, {error}", file=sys.stderr)
    return found


def measure(path: Path, texts: dict[str, str], runs: int) -> dict[str, Any]:
    """All figures: seconds to open, MB/s of the first and of later passes."""
    engines = available(path)
    for name, text in texts.items():
        expected = list(engines["llama.cpp" if "llama.cpp" in engines else "ggufbpe, reference engine"](text))
        for engine, encode in engines.items():
            if list(encode(text)) != expected:
                raise SystemExit(f"{engine} gives other ids on {name}: nothing measured")
    figures: dict[str, Any] = {"open_seconds": {}, "megabytes_per_second": {}}
    for engine in OPENED_FROM_GGUF:
        if engine in engines:
            # ready to encode: the first ids are there
            times = [seconds(lambda e=engine: ENGINES[e](path)("Hello world")) for _ in range(max(runs, 3))]
            figures["open_seconds"][engine] = round(statistics.median(times), 4)
    for name, text in texts.items():
        megabytes = len(text.encode()) / 1e6
        for engine in engines:
            first, later = [], []
            for _ in range(runs):
                encode = ENGINES[engine](path)  # fresh: no cache has seen the text
                encode("Hello world")
                first.append(seconds(lambda e=encode, t=text: e(t)))
                later.append(seconds(lambda e=encode, t=text: e(t)))
            row = figures["megabytes_per_second"].setdefault(engine, {})
            row[name] = {
                "first": round(megabytes / statistics.median(first), 2),
                "later": round(megabytes / statistics.median(later), 2),
            }
    return figures


def print_tables(figures: dict[str, Any], texts: dict[str, str]) -> None:
    """The figures as two Markdown tables."""
    sizes = ", ".join(f"{name} {len(text.encode()) / 1e6:.1f} MB" for name, text in texts.items())
    print(f"Texts: {sizes}. One thread, ids equal.\n")
    print("| open, until the first ids | seconds |\n| --- | --- |")
    for engine, value in figures["open_seconds"].items():
        print(f"| {engine} | {value:.2f} |")
    print("\n| encode, MB/s (first pass / later) | " + " | ".join(texts) + " |")
    print("| --- |" + " --- |" * len(texts))
    for engine, row in figures["megabytes_per_second"].items():
        cells = " | ".join(f"{row[name]['first']:.1f} / {row[name]['later']:.1f}" for name in texts)
        print(f"| {engine} | {cells} |")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--text", action="append", default=[], metavar="NAME=FILE", help="a text of your own")
    parser.add_argument("--megabytes", type=float, default=8, help="take so much of each text")
    parser.add_argument("--runs", type=int, default=3, help="runs of which the median counts")
    parser.add_argument("--json", metavar="FILE", help="write the figures there, too")
    options = parser.parse_args()
    size = int(options.megabytes * 1e6)
    given = dict(item.split("=", 1) for item in options.text)
    texts = {n: Path(f).read_bytes()[:size].decode("utf-8", "ignore") for n, f in given.items()}
    texts = texts or default_texts(size)
    try:
        path = vocabulary("llama-bpe")
    except NotPreparedError as error:
        raise SystemExit(str(error)) from None
    figures = measure(path, texts, options.runs)
    print_tables(figures, texts)
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
