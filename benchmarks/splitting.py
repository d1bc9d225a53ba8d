"""Dividing a document: `Tokenizer.split` beside other splitters, all with the same tokenizer.

    python benchmarks/splitting.py [--vocab FILE.gguf] [--text FILE] [--kilobytes 300] [--size 128 512 2048] [--runs 5]

semantic-text-splitter, Chonkie and LangChain count tokens by the adapters in ggufbpe.integrations; each that is not
installed is left out. Prints the least CPU time of some runs, and the ratio to that of `split`. Parts differ: ours end
at the levels of "paragraph", theirs where each library's own rules say.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ggufbpe import Tokenizer

ROOT = Path(__file__).resolve().parent.parent
Split = Callable[[str], Any]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--vocab", type=Path, default=ROOT / ".cache/vocabs/ggml-vocab-llama-bpe.gguf")
    parser.add_argument("--text", type=Path, help="by default the pages in docs/")
    parser.add_argument("--kilobytes", type=int, default=300, help="take so much of the text (300)")
    parser.add_argument("--size", type=int, nargs="+", default=[128, 512, 2048], help="tokens of a part")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    tok = Tokenizer.from_gguf(str(options.vocab))
    pages = [options.text] if options.text else sorted((ROOT / "docs").glob("*.md"))
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)[: options.kilobytes * 1000]
    print(f"{len(text) / 1000:.0f} kB: encode takes {least_time(tok.encode, text, options.runs):.2f} ms\n")
    print("| splitter | size | parts | ms | of split |\n| --- | --- | --- | --- | --- |")
    for size in options.size:
        ours = 0.0
        for name, make in SPLITTERS.items():
            try:
                split = make(tok, size)
            except ImportError as error:
                print(f"{name} is left out: {error}", file=sys.stderr)
                continue
            spent = least_time(split, text, options.runs)
            ours = ours or spent
            print(f"| {name} | {size} | {len(split(text))} | {spent:.2f} | {spent / ours:.1f} |", flush=True)


def least_time(split: Split, text: str, runs: int) -> float:
    """The least CPU time of some runs, in milliseconds."""
    least = float("inf")
    for _ in range(runs):
        begun = time.process_time()
        split(text)
        least = min(least, time.process_time() - begun)
    return 1000 * least


def ours(tok: Tokenizer, size: int) -> Split:
    """Our `split`, with the parts as strings."""
    return lambda text: [text[start:end] for start, end in tok.split(text, size)]


def semantic(tok: Tokenizer, size: int) -> Split:
    """`semantic_text_splitter.TextSplitter`."""
    from ggufbpe.integrations.semantic_text_splitter import text_splitter

    split: Split = text_splitter(tok, size, trim=False).chunks
    return split


def chonkie(tok: Tokenizer, size: int) -> Split:
    """Chonkie's `RecursiveChunker`."""
    from chonkie import RecursiveChunker

    from ggufbpe.integrations.chonkie import tokenizer

    split: Split = RecursiveChunker(tokenizer(tok), chunk_size=size).chunk
    return split


def langchain(tok: Tokenizer, size: int) -> Split:
    """LangChain's `RecursiveCharacterTextSplitter`."""
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    from ggufbpe.integrations.langchain import length_function

    counts = length_function(tok)
    split: Split = RecursiveCharacterTextSplitter(
        chunk_size=size, chunk_overlap=0, length_function=counts
    ).split_text
    return split


SPLITTERS: dict[str, Callable[[Tokenizer, int], Split]] = {
    "ggufbpe": ours,
    "semantic-text-splitter": semantic,
    "Chonkie RecursiveChunker": chonkie,
    "LangChain RecursiveCharacterTextSplitter": langchain,
}

if __name__ == "__main__":
    main()
