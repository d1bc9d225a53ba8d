"""How long `diagnose` searches: seconds for single causes, pairs of causes, and ids without an explanation.

    python benchmarks/diagnose.py [--model model.gguf] [--bytes 10000]

By default over Llama 3's vocabulary, where the search has two seconds for 10 kB. Every case begins cold: no word is
encoded, no merge looked up and no pattern compiled. Opening the model, which is not part of the search, has a row of
its own.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import unicodedata
import warnings
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "makers")]

from fixture_texts import texts  # noqa: E402
from reference import vocabulary  # noqa: E402

from ggufbpe import Tokenizer  # noqa: E402
from ggufbpe.analysis.diagnose.id_diagnosis import diagnose  # noqa: E402
from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS  # noqa: E402
from ggufbpe.models.pretokenizers.splitter import splitter  # noqa: E402

Made = Callable[[Tokenizer, bytes], list[int]]


def _with_pre(tokenizer: Tokenizer, name: str) -> Tokenizer:
    return Tokenizer(tokenizer.vocabulary._replace(pre=name, pre_tokenizer=PRE_TOKENIZERS[name]))


def _random(tokenizer: Tokenizer, text: bytes) -> list[int]:
    chance = random.Random(1)
    return [chance.randrange(tokenizer.vocab_size) for _ in tokenizer.encode(text)]


def _shuffled(tokenizer: Tokenizer, text: bytes) -> list[int]:
    """The same text in other tokens: half of them cut in two if the vocabulary allows it."""
    chance = random.Random(1)
    ids: list[int] = []
    for token in tokenizer.encode(text):
        piece = tokenizer.token_to_piece(token)
        at = chance.randrange(1, max(len(piece), 2))
        cut = chance.random() < 0.5 and token not in tokenizer.vocabulary.special_token_ids
        parts = (piece[:at], piece[at:]) if cut else ()
        found = [tokenizer.encode(part, add_special=False) for part in parts if part.isascii()]
        ids += found[0] + found[1] if len(found) == 2 else [token]
    return ids


CASES: dict[str, Made] = {
    "no BOS": lambda tok, text: tok.encode(text, add_special=False),
    "one line break too many": lambda tok, text: tok.encode(text + b"\n"),
    "another pre-tokenizer (qwen2)": lambda tok, text: _with_pre(tok, "qwen2").encode(text),
    "another pre-tokenizer (superbpe)": lambda tok, text: _with_pre(tok, "superbpe").encode(text),
    "pre-tokenizer, EOS": lambda tok, text: [*_with_pre(tok, "gpt-2").encode(text), tok.eos_id or 0],
    "pre-tokenizer, lower case": lambda tok, text: _with_pre(tok, "gpt-2").encode(text.decode().lower()),
    "line ends, NFD": lambda tok, text: tok.encode(
        unicodedata.normalize("NFD", text.decode().replace("\n", "\r\n"))
    ),
    "pre-tokenizer, cut off": lambda tok, text: _with_pre(tok, "gpt-2").encode(text)[:512],
    "shifted, pre-tokenizer": lambda tok, text: [i + 3 for i in _with_pre(tok, "gpt-2").encode(text)],
    "another text": lambda tok, text: tok.encode(text.replace(b"a", b"b", 1)),
    "pre-tokenizer, another text": lambda tok, text: _with_pre(tok, "gpt-2").encode(text.replace(b"a", b"b")),
    "tokens cut at random (no explanation)": _shuffled,
    "random ids (no explanation)": _random,
}


def text_of(size: int) -> bytes:
    """Prose, code and the texts of the fixtures, to about `size` bytes."""
    prose = (
        b"The quick brown fox doesn't jump over 12345 lazy dogs; `f(x) = y_1`.\n\tif (a == b) { return; }\n"
    )
    parts = []
    for text in texts():
        try:
            text.decode()
        except UnicodeDecodeError:
            continue
        if len(text) < 100:
            parts += [text, b" ", prose[:60]]
    joined = b"".join(parts)
    return joined[:size].decode("utf-8", "ignore").encode()


def main() -> None:
    """Print a row for each case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", help="a .gguf file; by default Llama 3's vocabulary from the cache")
    parser.add_argument("--bytes", type=int, default=10_000)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    start = time.perf_counter()
    opened = Tokenizer.from_gguf(options.model or vocabulary("llama-bpe"))
    print(f"{time.perf_counter() - start:6.2f} s  opening the model")
    text = text_of(options.bytes)
    for name, make in CASES.items():
        ids = make(opened, text)
        splitter.cache_clear()
        tokenizer = Tokenizer(opened.vocabulary)
        start, busy = time.perf_counter(), time.process_time()
        found = diagnose(tokenizer, text, ids)
        seconds, busy = time.perf_counter() - start, time.process_time() - busy
        answer = "match"
        if not found.match:
            best = found.explanations[0]
            answer = f"{' + '.join(cause.id for cause in best.causes)}, {best.explains:.3f}"
        print(f"{seconds:6.2f} s ({busy:.2f} of CPU)  {name}: {answer}", flush=True)


if __name__ == "__main__":
    main()
