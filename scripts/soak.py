"""A long run of everything at once, in one process: are results right, and does memory stay flat?

    python scripts/soak.py [--minutes 60] [--seed 1]        # `.ci/run` takes one minute

Threads encode texts of all sizes, alone and in batches, change buffers while these are read, open and close tokenizers,
pickle them, empty caches and train; each compares its results with those of its own tokenizer from before. The main
thread keeps forking, and the children must answer, too. Memory must stay flat: after half a minute to warm up, its
minimum in the last two fifths of the time is at most 48 MB above that in the first two.

Exit code 1 if an answer was wrong, a child failed or hung, or memory grew.
"""

from __future__ import annotations

import argparse
import gc
import os
import pickle
import random
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import ggufbpe
from ggufbpe import Tokenizer
from ggufbpe.native import native

GPT2 = Path(ggufbpe.__file__).parent / "models" / "gpt2.gguf"
THREADS = 6
FLAT = 48  # MB; the allocator's reserve varies from moment to moment
WARM_UP = 30  # seconds: caches fill, each thread has done everything once
CHILD_HANGS_AFTER = 120  # seconds; a child takes less than one


class Soak:
    """What the threads share."""

    def __init__(self, seed: int) -> None:
        self.tokenizer = Tokenizer.from_gguf(GPT2, engine="native")
        self.texts = make_texts(random.Random(seed))
        own = Tokenizer.from_gguf(GPT2, engine="native")
        self.expected = [own.encode(text) for text in self.texts]
        self.done: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.stop = threading.Event()

    def check(self, what: str, is_right: bool) -> None:
        self.done[what] += 1
        if not is_right:
            self.wrong.append(what)

    def work(self, seed: int) -> None:
        dice = random.Random(seed)
        actions: list[Callable[[random.Random], None]] = [
            *(self.encode, self.encode, self.encode_batch, self.count, self.change_a_buffer),
            *(self.open_another, self.copy_by_pickle, self.meet_new_words, self.release, self.train),
        ]
        while not self.stop.is_set():
            action = dice.choice(actions)
            try:
                action(dice)
            except Exception as error:
                self.wrong.append(f"{action.__name__}: {error!r}")

    def encode(self, dice: random.Random) -> None:
        i = dice.randrange(len(self.texts))
        self.check("encode", self.tokenizer.encode(self.texts[i]) == self.expected[i])
        found = self.tokenizer.encode_to_numpy(self.texts[i], threads=dice.choice((1, 2)))
        self.check("encode_to_numpy", found.tolist() == self.expected[i])

    def encode_batch(self, dice: random.Random) -> None:
        chosen = dice.choices(range(len(self.texts)), k=20)
        found = self.tokenizer.encode_batch([self.texts[i] for i in chosen], threads=dice.choice((1, 3)))
        self.check("encode_batch", found == [self.expected[i] for i in chosen])

    def count(self, dice: random.Random) -> None:
        i = dice.randrange(len(self.texts))
        self.check("count", self.tokenizer.count(self.texts[i], threads=2) == len(self.expected[i]))

    def change_a_buffer(self, dice: random.Random) -> None:
        i, j = dice.randrange(len(self.texts)), dice.randrange(len(self.texts))
        size = min(len(self.texts[i]), len(self.texts[j]))
        contents = self.texts[i][:size], self.texts[j][:size]
        allowed = [self.tokenizer.encode(content) for content in contents]
        text, ended = bytearray(contents[0]), threading.Event()

        def change() -> None:
            while not ended.is_set():
                for content in contents:
                    text[:] = content

        changing = threading.Thread(target=change)
        changing.start()
        found = [self.tokenizer.encode_to_numpy(text).tolist() for _ in range(3)]
        ended.set()
        changing.join()
        self.check("change_a_buffer", all(ids in allowed for ids in found))

    def open_another(self, dice: random.Random) -> None:
        other = Tokenizer.from_gguf(GPT2, engine=dice.choice(("native", "native", "reference")))
        self.check("open_another", other.encode("Hello world") == [15496, 995])

    def copy_by_pickle(self, dice: random.Random) -> None:
        other = pickle.loads(pickle.dumps(self.tokenizer))
        self.check("copy_by_pickle", other.encode("Hello world") == [15496, 995])

    def meet_new_words(self, dice: random.Random) -> None:
        words = b" ".join(b"%x" % dice.getrandbits(48) for _ in range(20_000))
        ids = self.tokenizer.encode(words)
        self.check("meet_new_words", self.tokenizer.decode_bytes(ids) == words)

    def release(self, dice: random.Random) -> None:
        if not dice.randrange(10):
            self.tokenizer.release_memory()
        self.done["release"] += 1

    def train(self, dice: random.Random) -> None:
        texts = [text.decode("utf-8", "replace") for text in dice.choices(self.texts, k=3)]
        trained = ggufbpe.train(texts, vocab_size=300)
        self.check("train", len(trained.tokens) <= 300)

    def fork(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of threads at a fork
            child = os.fork()
        if not child:
            i = os.getpid() % len(self.texts)
            is_right = self.tokenizer.encode_to_numpy(self.texts[i], threads=2).tolist() == self.expected[i]
            is_right = is_right and Tokenizer.from_gguf(GPT2).encode("Hello world") == [15496, 995]
            os._exit(0 if is_right else 1)
        end = time.monotonic() + CHILD_HANGS_AFTER
        while time.monotonic() < end:
            found, status = os.waitpid(child, os.WNOHANG)
            if found:
                return self.check("fork", status == 0)
            time.sleep(0.01)
        os.kill(child, 9)
        os.waitpid(child, 0)
        return self.check("fork (the child hangs)", False)


def make_texts(dice: random.Random) -> list[bytes]:
    """Texts of 0 to 400,000 bytes: words, other scripts, broken UTF-8, runs of one letter, special tokens."""
    words = [b"%x" % dice.getrandbits(dice.randrange(4, 40)) for _ in range(5000)]
    words += [
        word.encode() for word in ("naïve", "日本語", "Привет", "😀", "\n\n", "<|endoftext|>", "don't")
    ] + [b"\xff\xfe"]
    sizes = [0, 1, 3, 20, 200, 2000, 20_000, 100_000]
    texts = [b" ".join(dice.choices(words, k=dice.choice(sizes)))[:400_000] for _ in range(40)]
    return [*texts, b"a" * 50_000, b" " * 30_000, "é".encode() * 20_000]


def megabytes() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if native is None or not hasattr(os, "fork") or not os.path.exists("/proc/self/statm"):
        sys.exit("soak.py needs the compiled engine, and Linux")
    soak = Soak(options.seed)
    threads = [threading.Thread(target=soak.work, args=(options.seed * 100 + i,)) for i in range(THREADS)]
    begun = time.monotonic() + WARM_UP
    for thread in threads:
        thread.start()
    readings: list[tuple[float, float]] = []  # (share of the time, MB)
    while (passed := (time.monotonic() - begun) / (60 * options.minutes)) < 1 and not soak.wrong:
        soak.fork()
        if passed > 0:
            readings.append((passed, megabytes()))
        time.sleep(0.2)
    soak.stop.set()
    for thread in threads:
        thread.join()
    soak.tokenizer.release_memory()
    gc.collect()
    # A leak raises the minimum; the maximum depends on what the threads are doing at the moment.
    readings.append((1.0, megabytes()))
    early = min((size for share, size in readings if share < 0.4), default=None)
    late = min(size for share, size in readings if share > 0.6)
    if early is None:
        print("soak: too few forks in the time to tell whether memory grows")
        return 1
    print(*(f"{what} {count}" for what, count in sorted(soak.done.items())), sep=", ")
    print(f"memory, MB: at least {early:.0f} at first, {late:.0f} later, {megabytes():.0f} at the end")
    print(f"soak: {sum(soak.done.values())} passed, {len(soak.wrong)} failed")
    for what in soak.wrong[:20]:
        print(f"  wrong: {what}")
    return 1 if soak.wrong or late > early + FLAT else 0


if __name__ == "__main__":
    sys.exit(main())
