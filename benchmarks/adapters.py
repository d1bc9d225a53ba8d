"""The time of a call through each adapter of ggufbpe/integrations/, over that of our own call with the same result.

    .cache/integrations-venv/bin/python benchmarks/adapters.py [--rounds 30] [LIBRARY...]

scripts/test_integrations.sh makes that environment. The text has 1 kB, and the vocabulary is GPT-2's. All calls of a
row are measured in turn; a ratio is the median of the rounds' ratios. Times are the processor's, of one thread: no
other program counts. The rows of transformers have its own fast tokenizer, with our exported tokenizer.json, in place
of our call.

What a library asks of every tokenizer, beyond our call, is measured with ids that are ready. It is left out of the
ratio: (through the adapter - the library's part) / ours.
An adapter whose library is missing is left out, and named on standard error.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from operator import sub
from pathlib import Path
from typing import Any

import numpy as np
import timing

import ggufbpe
from ggufbpe import Tokenizer

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # it asks the network otherwise
os.environ.setdefault("HF_HUB_OFFLINE", "1")

ROOT = Path(__file__).resolve().parent.parent
GPT2 = ROOT / "ggufbpe" / "models" / "gpt2.gguf"
Call = Callable[[], Any]
# What is called, through the adapter, by our own, and the library's part if it has one.
Calls = tuple[str, Call, Call] | tuple[str, Call, Call, Call]


def main() -> None:
    """Measure the named libraries, and print a Markdown table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=30, help="default: 30")
    parser.add_argument("libraries", nargs="*", default=list(ROWS), help="default: all")
    options = parser.parse_args()
    tok = Tokenizer.from_gguf(GPT2)
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")[:1000]
    print("| call | ours, µs | through the adapter, µs | of which the library's, µs | ratio |")
    print("| --- | --- | --- | --- | --- |")
    for library in options.libraries:
        try:
            module = import_module(f"ggufbpe.integrations.{library}")
        except ggufbpe.NotInstalledError as error:
            timing.say(f"left out: {error}")
            continue
        for name, *calls in ROWS[library](module, tok, text):
            gc.freeze()  # `seconds` collects garbage, and libraries have millions of objects
            print(row(f"{library}: {name}", calls, options.rounds), flush=True)


def row(name: str, calls: Sequence[Call], rounds: int) -> str:
    """Return the line of the table for a call through the adapter, our own, and the library's part, if there is one."""
    times = [[timing.seconds_of_one(call, time.thread_time) for call in calls] for _ in range(rounds)]
    through, ours, *parts = map(list, zip(*times))
    ratio = timing.median_ratio(list(map(sub, through, *parts)) if parts else through, ours)
    part = f"{1e6 * statistics.median(parts[0]):.1f}" if parts else ""
    mine, whole = (f"{1e6 * statistics.median(each):.1f}" for each in (ours, through))
    return f"| {name} | {mine} | {whole} | {part} | {ratio:.2f} |"


def plain(tok: Tokenizer, text: str) -> Callable[[], Any]:
    """Our call for the ids of plain text."""
    return partial(tok.encode_ordinary, text)


def parsed(tok: Tokenizer, text: str) -> Callable[[], Any]:
    """Our call for ids where control tokens are recognized."""
    return partial(tok.encode, text, add_special=False)


def counted(tok: Tokenizer, text: str) -> Callable[[], Any]:
    """Our call for the number of tokens of plain text."""
    return partial(tok.count, text, add_special=False, parse_special=False)


def of_chonkie(module: Any, tok: Tokenizer, text: str) -> Iterator[Calls]:
    made = module.tokenizer(tok)
    yield "encode", partial(made.encode, text), plain(tok, text)
    yield "count_tokens", partial(made.count_tokens, text), counted(tok, text)


def of_guidance(module: Any, tok: Tokenizer, text: str) -> Iterator[Calls]:
    made = module.tokenizer(tok)
    yield "encode", partial(made.encode, text.encode()), partial(tok.encode, text.encode(), add_special=False)
    ids = tok.encode_ordinary(text)
    yield "decode", partial(made.decode, ids), partial(tok.decode_bytes, ids)


def of_langchain(module: Any, tok: Tokenizer, text: str) -> Iterator[Calls]:
    yield "length_function", partial(module.length_function(tok), text), counted(tok, text)


def of_litellm(module: Any, tok: Tokenizer, text: str) -> Iterator[Calls]:
    made = module.custom_tokenizer(tok)["tokenizer"]
    yield "encode_batch_fast", partial(made.encode_batch_fast, [text]), parsed(tok, text)


def of_llama_cpp(module: Any, tok: Tokenizer, text: str) -> Iterator[Calls]:
    made, data = module.Tokenizer(tok), text.encode()
    yield "tokenize", partial(made.tokenize, data), partial(tok.encode, data)
    ids = tok.encode(text)
    yield "detokenize", partial(made.detokenize, ids), partial(tok.decode_bytes, ids)


def of_llama_index(module: Any, tok: Tokenizer, text: str) -> Iterator[Calls]:
    yield "tokenizer", partial(module.tokenizer(tok), text), plain(tok, text)


def of_llguidance(module: Any, tok: Tokenizer, text: str) -> Iterator[Calls]:
    ids, llguidance = tok.encode_ordinary(text), import_module("llguidance")

    class Ready(module.TokensOfGrammars):  # type: ignore[misc, name-defined]
        """A tokenizer that has the ids already."""

        def __call__(self, text: str | bytes) -> list[int]:
            return ids

    ready = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Ready(tok)), None, tok.eos_id)
    made = module.ll_tokenizer(tok)
    yield (
        "tokenize_str",
        partial(made.tokenize_str, text),
        plain(tok, text),
        partial(ready.tokenize_str, text),
    )


def of_lm_format_enforcer(module: Any, tok: Tokenizer, text: str) -> Iterator[Calls]:
    ids = tok.encode_ordinary(text)
    yield "decoder", partial(module.tokenizer_data(tok).decoder, ids), partial(tok.decode, ids)


def of_mistral_common(module: Any, tok: Tokenizer, text: str) -> Iterator[Calls]:
    made, ids = module.tokenizer(tok), tok.encode_ordinary(text)
    yield "encode", partial(made.encode, text, bos=True, eos=False), plain(tok, text)
    yield "decode", partial(made.decode, ids), partial(tok.decode, ids)


def of_outlines(module: Any, tok: Tokenizer, text: str) -> Iterator[Calls]:
    made, ids = module.tokenizer(tok), tok.encode_to_numpy(text)

    def of_its_protocol() -> Any:
        """Two int64 arrays of two dimensions, of ids that are ready: nothing in numpy makes them sooner."""
        found = np.array(ids, np.int64, ndmin=2)
        mask = found.copy()
        mask.fill(1)
        return found, mask

    yield "encode", partial(made.encode, text), partial(tok.encode_to_numpy, text), of_its_protocol
    yield "decode", partial(made.decode, ids), partial(tok.decode, ids)


def of_tiktoken(module: Any, tok: Tokenizer, text: str) -> Iterator[Calls]:
    made, ids = module.encoding(tok), tok.encode_ordinary(text)
    yield "encode", partial(made.encode, text), plain(tok, text)
    yield "encode_ordinary", partial(made.encode_ordinary, text), plain(tok, text)
    yield "decode", partial(made.decode, ids), partial(tok.decode, ids)


def of_transformers(module: Any, tok: Tokenizer, text: str) -> Iterator[Calls]:
    made = module.GGUFTokenizer(tok)
    with tempfile.TemporaryDirectory() as folder:
        ggufbpe.export(GPT2, to="tokenizer.json", check=False).save(folder)
        fast = import_module("transformers").AutoTokenizer.from_pretrained(folder)
    yield "call", partial(made, text), partial(fast, text)
    ids = tok.encode(text)
    yield "decode", partial(made.decode, ids), partial(fast.decode, ids)


ROWS: dict[str, Callable[[Any, Tokenizer, str], Iterator[Calls]]] = {
    "chonkie": of_chonkie,
    "guidance": of_guidance,
    "langchain": of_langchain,
    "litellm": of_litellm,
    "llama_cpp": of_llama_cpp,
    "llama_index": of_llama_index,
    "llguidance": of_llguidance,
    "lm_format_enforcer": of_lm_format_enforcer,
    "mistral_common": of_mistral_common,
    "outlines": of_outlines,
    "tiktoken": of_tiktoken,
    "transformers": of_transformers,
}

if __name__ == "__main__":
    main()
