"""The compiled engine on files that lie: nothing crashes, and both engines say the same.

A crash would take pytest with it, so this file is also the program that does the work: `python
test_damaged_vocabularies.py SEED COUNT` damages vocabularies, opens each and encodes with both engines; with the
argument `parts` it builds models from wrong parts. The C++ alone is fuzzed under sanitizers by scripts/check_kernel.py.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import warnings
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from conftest import missing

if TYPE_CHECKING:
    from ggufbpe import Tokenizer

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "fixtures"
NUMBERS = (0, 1, 2, 7, 255, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**61, 2**63, 2**64 - 1, 2**64 - 8)
MODELS = {"gpt2", "gemma4", "hybriddna", "whitespace", "llama", "bert", "t5", "rwkv", "plamo2", "plamo3"}
TEXTS: tuple[str | bytes, ...] = (
    "hello world!\nhello <|endoftext|>  \n\n  7654321 don't",
    "\u4f60\u597d\u3000\u2581 \u00e9e\u0301\U0001f600\x00 " * 9,
    "  a   b    <pad><unk> <s>\t\t!" * 20,
    b"\xff\xc0\xa0 \xed\xa0\x80 \xf8\x88 hello \xe4\xbd",
)


@pytest.mark.slow
def test_damaged_vocabularies_give_both_engines_the_same() -> None:
    from ggufbpe.native import native

    if native is None:
        missing("the compiled module is not there")
    # What was freed, and what was never written, is not 0: who reads it gets other ids.
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "tests"),
        "MALLOC_PERTURB_": "165",
        "PYTHONFAULTHANDLER": "1",
    }
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


WRONG_PARTS = {
    "SPM over tokens without an index": "ValueError: the tokens have no index",
    "SPM with too few scores": "ValueError: as many attributes and scores as tokens are needed",
    "SPM with too many scores": "ValueError: as many attributes and scores as tokens are needed",
    "SPM with scores that are no numbers": "TypeError: must be real number, not str",
    "SPM over nothing": "TypeError: __new__(): incompatible function arguments.",
    "WPM over tokens without an index": "ValueError: the tokens have no index",
    "WPM over nothing": "TypeError: __new__(): incompatible function arguments.",
    "RWKV over nothing": "TypeError: __new__(): incompatible function arguments.",
    "UGM with too few kinds": "ValueError: as many attributes and scores as tokens are needed",
    "UGM with too few attributes": "ValueError: as many attributes and scores as tokens are needed",
    "UGM with attributes that are too large": "OverflowError: unsigned short is greater than maximum",
    "UGM with a charsmap that is cut off": "ValueError: the charsmap is shorter than it says",
    "BPE over tokens without an index": "ValueError: the tokens have no index",
    "BPE over other tokens": "ValueError: as many attributes and scores as tokens are needed",
    "BPE without a splitter": "ValueError: a model that needs a splitter",
    "BPE with neither merges nor tables": "ValueError: neither merges nor tables",
    "BPE with spaces before words that are not escaped": "ValueError: only escaped spaces are put before words",
    "a model that there is not": "ValueError: there is no such tokenizer model",
    "a special token that is not there": "ValueError: a special token that is not there",
    "a special token below the first": "ValueError: a special token that is not there",
    "no special ids": "KeyError: 'unk'",
    "an encoder of nothing": "TypeError: __new__(): incompatible function arguments.",
    "strings that were not made": "TypeError: __len__(): incompatible function arguments.",
    "strings without an index": "ValueError: find needs index",
    "a learner of tokens that are not bytes": "TypeError: the raw form of a token is bytes",
    "words that are not UTF-8": "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 1",
}


def test_models_of_wrong_parts_are_refused() -> None:
    from ggufbpe.native import native

    if native is None:
        missing("the compiled module is not there")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, "parts"],
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT / "tests"),
            "MALLOC_PERTURB_": "165",
            "PYTHONFAULTHANDLER": "1",
        },
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = dict(line.split(" -> ") for line in done.stdout.splitlines())
    assert found.keys() == WRONG_PARTS.keys()
    assert {name: said[: len(WRONG_PARTS[name])] for name, said in found.items()} == WRONG_PARTS


def _try_wrong_parts() -> None:
    """Print what each way to build a model wrongly gives, and its first ids if it is not refused."""
    from ggufbpe.models.loading import load_vocabulary
    from ggufbpe.models.pretokenizers import compiled_splitter, registry
    from ggufbpe.native import native

    assert native is not None
    cache = 1 << 20
    splitter = compiled_splitter.compiled_splitter(registry.PRE_TOKENIZERS["gpt-2"])
    texts = ["<unk>", "a", "\u2581", "ab"]
    plain, tokens = native.Strings.of(texts), native.Strings.of(texts)
    merges = native.Strings.of(["a b"])
    tokens.index()
    sound = load_vocabulary(ROOT / "ggufbpe" / "models" / "gpt2.gguf")._replace(
        attributes=array("H", [1, 4, 4, 4]), scores=array("f", [0, -1, -2, -3]), special_token_ids=()
    )

    def ids(
        model: str,
        names: Any = tokens,
        splitter: Any = splitter,
        merges: Any = merges,
        **changes: Any,
    ) -> list[int]:
        vocabulary = sound._replace(model=model, **changes)
        encoder = native.Encoder(vocabulary, names, tokens, merges, splitter, [], [], cache)
        found: list[int] = encoder.encode("ab a", True, True, False)
        return [*found, *encoder.encode_batch(["a b ab " * 900] * 3, True, True, 2, False)[0]]

    def counted(word: bytes) -> Any:
        counter = native.WordCounter(1)
        counter.add_word(word, 1)
        return counter.words()

    ways: dict[str, Callable[[], Any]] = {
        "SPM over tokens without an index": lambda: ids("llama", plain),
        "SPM with too few scores": lambda: ids("llama", scores=[0.0]),
        "SPM with too many scores": lambda: ids("llama", scores=[0.0] * 5),
        "SPM with scores that are no numbers": lambda: ids("llama", scores=["a"] * 4),
        "SPM over nothing": lambda: ids("llama", None),
        "WPM over tokens without an index": lambda: ids("bert", plain),
        "WPM over nothing": lambda: ids("bert", None),
        "RWKV over nothing": lambda: ids("rwkv", None),
        "UGM with too few kinds": lambda: ids("t5", first_attributes=array("H", [4])),
        "UGM with too few attributes": lambda: ids("t5", attributes=array("H", [4])),
        "UGM with attributes that are too large": lambda: ids("t5", attributes=[1 << 20] * 4),
        "UGM with a charsmap that is cut off": lambda: ids("t5", charsmap=b"\xff\xff\xff\xff1"),
        "BPE over tokens without an index": lambda: ids("gpt2", plain),
        "BPE over other tokens": lambda: ids("gpt2", native.Strings.of(["a"])),
        "BPE without a splitter": lambda: ids("gpt2", splitter=None),
        "BPE with neither merges nor tables": lambda: ids("gpt2", merges=None),
        "BPE with spaces before words that are not escaped": lambda: ids(
            "gpt2", pre_tokenizer=sound.pre_tokenizer._replace(prepend_space=True)
        ),
        "a model that there is not": lambda: ids("x"),
        "a special token that is not there": lambda: ids("gpt2", special_token_ids=(4,)),
        "a special token below the first": lambda: ids("gpt2", special_token_ids=(-1,)),
        "no special ids": lambda: ids("gpt2", special_ids={}),
        "an encoder of nothing": lambda: native.Encoder(None, tokens, tokens, None, None, [], [], cache),
        "strings that were not made": lambda: len(native.Strings.__new__(native.Strings)),
        "strings without an index": lambda: plain.find("a"),
        "a learner of tokens that are not bytes": lambda: native.Learner(
            ["a"], ["a"], [1], [], 10, "lowest-ids", 1, 9, []
        ),
        "words that are not UTF-8": lambda: counted(b"a\xff"),
    }
    for name, make in ways.items():
        print(f"{name} -> ", end="", flush=True)
        try:
            print(make())
        except Exception as error:
            print(f"{type(error).__name__}: {str(error).splitlines()[0]}", flush=True)


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
    from ggufbpe.native import native

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
    from ggufbpe.models.loading import load_vocabulary

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
    if sys.argv[1:] == ["parts"]:
        _try_wrong_parts()
    else:
        _main(int(sys.argv[1]), int(sys.argv[2]))
