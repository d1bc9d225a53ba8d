"""Dividing a document: `Tokenizer.split` beside other splitters, and beside `encode`.

    python benchmarks/splitting.py [--vocab FILE.gguf] [--text FILE] [--kilobytes 300] [--size 128 512 2048] [--runs 5]
    python benchmarks/splitting.py --levels [--overlap 0.125]

semantic-text-splitter, Chonkie and LangChain count tokens once by our tokenizer, through the adapters in
ggufbpe.integrations, and once by the tokenizers that they usually have: `tokenizers` and `tiktoken`, made from the same
vocabulary. Each that is not installed is left out. Prints the least CPU time of some runs, in which all take turns, and
the ratio to that of `split`; how many parts have more than `size` tokens; and whether the parts join to the text, which
LangChain, as it strips them, does not promise. Parts differ: ours end at the levels of "paragraph", theirs where each
library's own rules say.

With --levels, `split` alone, at all levels of boundaries: its time by that of `encode` of the text.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ggufbpe import Tokenizer
from ggufbpe.tokenizer.boundaries import BOUNDARIES

ROOT = Path(__file__).resolve().parent.parent
Split = Callable[[str], list[str]]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--vocab", type=Path, default=ROOT / ".cache/vocabs/ggml-vocab-llama-bpe.gguf")
    parser.add_argument("--text", type=Path, help="by default the pages in docs/")
    parser.add_argument("--kilobytes", type=int, default=300, help="take so much of the text (300)")
    parser.add_argument("--size", type=int, nargs="+", default=[128, 512, 2048], help="tokens of a part")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--levels", action="store_true", help="`split` alone, at all levels of boundaries")
    parser.add_argument("--overlap", type=float, default=0, help="with --levels: of the size (0)")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    tok = Tokenizer.from_gguf(str(options.vocab))
    pages = [options.text] if options.text else sorted((ROOT / "docs").glob("*.md"))
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)[: options.kilobytes * 1000]
    if options.levels:
        print_levels(tok, text, options.size, options.overlap, options.runs)
    else:
        print_splitters(tok, text, options.size, options.runs)


def print_splitters(tok: Tokenizer, text: str, sizes: list[int], runs: int) -> None:
    """Print the table of all splitters that are installed."""
    spent = least_times({"": tok.encode}, text, runs)[""]
    print(f"{len(text) / 1000:.0f} kB: encode takes {spent:.2f} ms\n")
    print("| splitter | tokenizer beneath | size | ms | of split | parts | too long | join |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for size in sizes:
        splits = dict(available(tok, size))
        times = least_times(splits, text, runs)
        for (name, beneath), split in splits.items():
            parts = split(text)
            spent, too_long = times[name, beneath], sum(not tok.fits(part, size) for part in parts)
            ratio = spent / times["ggufbpe", "ours"]
            joins = "yes" if "".join(parts) == text else "no"
            print(
                f"| {name} | {beneath} | {size} | {spent:.2f} | {ratio:.1f} | {len(parts)} | {too_long} | {joins} |"
            )


def print_levels(tok: Tokenizer, text: str, sizes: list[int], overlap: float, runs: int) -> None:
    """Print the time of `split` by that of `encode`, a row for each size."""
    print(f"| parts of | {' | '.join(BOUNDARIES)} |\n| --- |{' --- |' * len(BOUNDARIES)}")
    for size in sizes:
        calls: dict[Any, Callable[[str], Any]] = {"encode": tok.encode}
        for name in BOUNDARIES:
            calls[name] = lambda text, name=name, size=size: tok.split(text, size, int(overlap * size), name)
        times = least_times(calls, text, runs)
        ratios = (f"{times[name] / times['encode']:.2f}" for name in BOUNDARIES)
        print(f"| {size} | {' | '.join(ratios)} |", flush=True)


def least_times(calls: dict[Any, Callable[[str], Any]], text: str, runs: int) -> dict[Any, float]:
    """The least CPU time of some runs of each, in milliseconds; they take turns."""
    least = dict.fromkeys(calls, float("inf"))
    for _ in range(runs):
        for name, call in calls.items():
            begun = time.process_time()
            call(text)
            least[name] = min(least[name], 1000 * (time.process_time() - begun))
    return least


def available(tok: Tokenizer, size: int) -> Iterator[tuple[tuple[str, str], Split]]:
    """The splitters whose libraries are installed, each with the tokenizer beneath it."""
    for name, make in SPLITTERS.items():
        try:
            yield name, make(tok, size)
        except ImportError as error:
            print(f"{' with '.join(name)} is left out: {error}", file=sys.stderr)


# ---- the splitters -----------------------------------------------------------------------------------


def ours(tok: Tokenizer, size: int) -> Split:
    """Our `split`, with the parts as strings."""
    return lambda text: [text[start:end] for start, end in tok.split(text, size)]


def semantic(tok: Tokenizer, size: int) -> Split:
    """`semantic_text_splitter.TextSplitter` with our tokenizer."""
    from ggufbpe.integrations.semantic_text_splitter import text_splitter

    split: Split = text_splitter(tok, size, trim=False).chunks
    return split


def semantic_tokenizers(tok: Tokenizer, size: int) -> Split:
    """`semantic_text_splitter.TextSplitter.from_huggingface_tokenizer_str`."""
    from semantic_text_splitter import TextSplitter

    document = exported(tok, "tokenizer.json")["tokenizer.json"].decode()
    split: Split = TextSplitter.from_huggingface_tokenizer_str(document, size, trim=False).chunks
    return split


def chonkie(tok: Tokenizer, size: int) -> Split:
    """Chonkie's `RecursiveChunker` with our tokenizer."""
    from ggufbpe.integrations.chonkie import tokenizer

    return recursive_chunker(tokenizer(tok), size)


def chonkie_tokenizers(tok: Tokenizer, size: int) -> Split:
    """Chonkie's `RecursiveChunker` with `tokenizers`."""
    from tokenizers import Tokenizer as HFTokenizer

    document = exported(tok, "tokenizer.json")["tokenizer.json"].decode()
    return recursive_chunker(HFTokenizer.from_str(document), size)


def chonkie_tiktoken(tok: Tokenizer, size: int) -> Split:
    """Chonkie's `RecursiveChunker` with tiktoken."""
    return recursive_chunker(tiktoken_encoding(tok), size)


def recursive_chunker(tokenizer: Any, size: int) -> Split:
    """Chonkie's `RecursiveChunker`."""
    from chonkie import RecursiveChunker

    chunker = RecursiveChunker(tokenizer, chunk_size=size)
    return lambda text: [chunk.text for chunk in chunker.chunk(text)]


def langchain(tok: Tokenizer, size: int) -> Split:
    """LangChain's `RecursiveCharacterTextSplitter` with our tokenizer."""
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    from ggufbpe.integrations.langchain import length_function

    counts = length_function(tok)
    split: Split = RecursiveCharacterTextSplitter(
        chunk_size=size, chunk_overlap=0, length_function=counts
    ).split_text
    return split


def langchain_tiktoken(tok: Tokenizer, size: int) -> Split:
    """LangChain's `RecursiveCharacterTextSplitter.from_tiktoken_encoder`."""
    import tiktoken.registry
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    encoding = tiktoken_encoding(tok)
    tiktoken.registry.ENCODINGS[encoding.name] = encoding  # where from_tiktoken_encoder() finds it by name
    split: Split = RecursiveCharacterTextSplitter.from_tiktoken_encoder(
        encoding.name, chunk_size=size, chunk_overlap=0
    ).split_text
    return split


def tiktoken_encoding(tok: Tokenizer) -> Any:
    """A `tiktoken.Encoding` of a vocabulary, to which special tokens are plain text: it raises an error for them."""
    import tiktoken
    from tiktoken.load import load_tiktoken_bpe

    files = exported(tok, "tiktoken")
    side = json.loads(files["ranks.tiktoken.json"])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "ranks.tiktoken")
        path.write_bytes(files["ranks.tiktoken"])
        ranks = load_tiktoken_bpe(str(path))
    return tiktoken.Encoding("measured", pat_str=side["pat_str"], mergeable_ranks=ranks, special_tokens={})


def exported(tok: Tokenizer, name: str) -> dict[str, bytes]:
    """The files of an export."""
    from ggufbpe.convert.export_formats import export_to

    return export_to(name, tok.vocabulary, "measured").files


SPLITTERS: dict[tuple[str, str], Callable[[Tokenizer, int], Split]] = {
    ("ggufbpe", "ours"): ours,
    ("semantic-text-splitter", "ours"): semantic,
    ("semantic-text-splitter", "tokenizers"): semantic_tokenizers,
    ("Chonkie RecursiveChunker", "ours"): chonkie,
    ("Chonkie RecursiveChunker", "tokenizers"): chonkie_tokenizers,
    ("Chonkie RecursiveChunker", "tiktoken"): chonkie_tiktoken,
    ("LangChain RecursiveCharacterTextSplitter", "ours"): langchain,
    ("LangChain RecursiveCharacterTextSplitter", "tiktoken"): langchain_tiktoken,
}

if __name__ == "__main__":
    main()
