"""The compiled engine on files that lie: nothing crashes, and both engines say the same.

A crash would take pytest with it, so this file is also the program that does the work: `python test_kernel_malformed.py
SEED COUNT` damages vocabularies, opens each and encodes with both engines. The C++ alone is fuzzed under sanitizers by
scripts/check_kernel.py.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from conftest import missing

if TYPE_CHECKING:
    from ggufbpe import Tokenizer

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "fixtures"
NUMBERS = (0, 1, 2, 7, 255, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**61, 2**63, 2**64 - 1, 2**64 - 8)
MODELS = {"gpt2", "gemma4", "hybriddna", "whitespace", "llama", "bert", "t5", "rwkv", "plamo2", "plamo3"}
TEXTS: tuple[str | bytes, ...] = (
    "hello world!\nhello <|endoftext|>  \n\n  7654321 don't",
    "\u4f60\u597d\u3000\u2581 \u00e9e\u0301\U0001f600\x00 " * 9,
    "  a   b    <pad><unk> <s>\t\t!" * 20,
    b"\xff\xc0\xa0 \xed\xa0\x80 \xf8\x88 hello \xe4\xbd",
)


def test_damaged_vocabularies_give_both_engines_the_same() -> None:
    from ggufbpe.kernel import native

    if native is None:
        missing("the compiled module is not there")
    # What was freed, and what was never written, is not 0: who reads it gets other ids.
    environment = {**os.environ, "MALLOC_PERTURB_": "165", "PYTHONFAULTHANDLER": "1"}
    done = subprocess.run(
        [sys.executable, __file__, "1", "3000"], env=environment, capture_output=True, text=True, timeout=600
    )
    assert (done.returncode, done.stderr) == (0, "")
    outcomes = dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())
    assert sum(map(int, outcomes.values())) == 3000
    opened = {name.removesuffix(" opens"): int(times) for name, times in outcomes.items() if "opens" in name}
    assert opened.keys() == MODELS
    assert min(opened.values()) > 30  # damage that leaves a vocabulary, whose ids were compared
    assert len(outcomes) > 6  # and damage that reaches many checks


def _damaged(sound: bytes, choose: random.Random) -> bytes:
    data = bytearray(sound)
    for _ in range(choose.choice((1, 1, 2, 3, 8))):
        place = choose.randrange(len(data) or 1)
        kind = choose.randrange(9)
        if kind > 5:  # another text: most likely still a vocabulary
            if data and 0x20 <= data[place] < 0x7F:
                data[place] = choose.choice(b"\x00 \nab<>|helo019")
        elif kind == 0 and data:
            data[place] = choose.randrange(256)
        elif kind == 1:
            width = choose.choice((1, 4, 8))
            number = choose.choice(NUMBERS) % 2 ** (8 * width)
            data[place : place + width] = number.to_bytes(width, "little")
        elif kind == 2:
            del data[place : place + choose.randrange(1, 30)]
        elif kind == 3:
            data[place:place] = choose.randbytes(choose.randrange(1, 12))
        elif kind == 4:
            other = choose.randrange(len(data) or 1)
            size = choose.randrange(1, 12)
            data[place : place + size] = data[other : other + size]
        elif choose.random() < 0.2:
            del data[place:]
    return bytes(data)


def _outcome(path: Path) -> str:
    """The error that opening gives, or the model and "opens"; an AssertionError where the engines differ."""
    from ggufbpe import GGUFError, Tokenizer

    try:
        native, reference = (Tokenizer.from_gguf(path, engine) for engine in ("native", "reference"))
    except GGUFError as error:
        return type(error).__name__
    for text in TEXTS:
        for parse_special in (False, True):
            ids = _ids_or_none(reference, text, parse_special)
            assert _ids_or_none(native, text, parse_special) == ids, (path, text)
            if ids is not None:
                assert native.count(text, parse_special=parse_special) == len(ids), (path, text)
    return f"{native.vocabulary.model} opens"


def _ids_or_none(tokenizer: Tokenizer, text: str | bytes, parse_special: bool) -> list[int] | None:
    """The ids of a text; None where it needs what the vocabulary does not have."""
    try:
        return tokenizer.encode(text, parse_special=parse_special)
    except ValueError:
        return None


def _scan_anywhere(data: bytes, choose: random.Random) -> None:
    """The reader of strings at places where none are."""
    from ggufbpe.kernel import native

    assert native is not None
    for _ in range(20):
        start = choose.randrange(len(data) + 9) if choose.random() < 0.9 else choose.choice(NUMBERS)
        end = choose.randrange(len(data) + 9) if choose.random() < 0.9 else choose.choice(NUMBERS)
        count = choose.randrange(9) if choose.random() < 0.7 else choose.choice(NUMBERS)
        width, big = choose.choice((4, 8)), choose.random() < 0.3
        native.Strings.walk(data, start, count, width, big)
        strings = native.Strings.scan(data, start, end, count, width, big)
        if strings is not None and len(strings) < 1000:
            texts = strings.to_list()
            assert len(texts) == len(strings) == count
            strings.index()
            assert [strings.find(text) for text in texts] == [texts.index(text) for text in texts]


def _sound_and_others() -> list[list[bytes]]:
    """Small files: those of each model that open, so that none is seldom damaged, then some of any kind."""
    from ggufbpe import GGUFError
    from ggufbpe.vocab import load_vocabulary

    by_model: dict[str, list[bytes]] = {}
    paths = [path for path in sorted(FIXTURES.glob("*/*.gguf")) if path.stat().st_size < 20_000]
    for path in paths:
        try:
            model = load_vocabulary(path).model
        except GGUFError:
            continue
        by_model.setdefault(model, []).append(path.read_bytes())
    assert by_model.keys() == MODELS
    usual = [
        [path.read_bytes() for path in paths if path.match(f"{room}/*")] for room in ("variants", "malformed")
    ]
    return [*by_model.values(), *usual, *usual, by_model["gpt2"]]


def _main(seed: int, count: int) -> None:
    warnings.simplefilter("ignore")
    choose = random.Random(seed)
    files = _sound_and_others()
    outcomes: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "damaged.gguf"
        for number in range(count):
            data = _damaged(choose.choice(choose.choice(files)), choose)
            path.write_bytes(data)
            try:
                outcome = _outcome(path)
                _scan_anywhere(data, choose)
            except BaseException:
                print(f"seed {seed}, file {number}", file=sys.stderr)
                raise
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
    for outcome, times in outcomes.items():
        print(outcome, times)


if __name__ == "__main__":
    _main(int(sys.argv[1]), int(sys.argv[2]))
