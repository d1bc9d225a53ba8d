"""Records llama.cpp's answers in fixtures/recorded/, for tests that need nothing but the repository.

    python scripts/reference.py prepare --newer --chats
    python tests/makers/record_fixtures.py [--only names|rules|unigram|plamo|real|older]

Nine files, JSON in gzip, the same bytes at every run. They are written once all answers are there:

- `byte_level.json.gz`: the names of byte-level pre-tokenizers, over GPT-2's vocabulary;
- `unsplit.json.gz`: the same over fixtures/unsplit.gguf, whose ids show where words end;
- `raw_utf8.json.gz`: the names that do not byte-encode, over fixtures/raw-utf8.gguf;
- `unigram.json.gz`: fixtures/unigram.gguf, as it is and with other keys (`UNIGRAM_KEYS`);
- `plamo.json.gz`: fixtures/plamo.gguf, likewise (`PLAMO_KEYS`);
- `real.json.gz`: real vocabularies of the models without pre-tokenizers, by name, which `reference.py prepare` gets;
- `loading_rules.json.gz`: the vocabularies of loading_rules.py, which are written to fixtures/vocabs/;
- `older.json.gz`: the ids that b11549 gives instead, of the first six, and the rules that it has another answer to.

Bytes stand in JSON as strings of the code points 0 to 255 (`as_json`, `as_bytes`). Since most names answer a
question alike, each question has the list of its different answers, and for each name and pair of flags the
number of its answer in that list (`Table`). An answer null is a crash of llama.cpp.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
import tempfile
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

from fixture_texts import texts
from loading_rules import RULES, Rule

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from reference import CHATS, NEWER, ROOT, Crash, LoadError, Oracle, vocabulary, with_pre, write_metadata

from ggufbpe._util.llama_cpp_states import lacks
from ggufbpe.models.pretokenizers.random_texts import within_unicode
from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS

FIXTURES = ROOT / "fixtures"
RECORDED = FIXTURES / "recorded"
VOCABULARIES = FIXTURES / "vocabs"
GPT2 = ROOT / "ggufbpe" / "models" / "gpt2.gguf"
RAW = FIXTURES / "raw-utf8.gguf"
UNSPLIT = FIXTURES / "unsplit.gguf"
REAL = ["llama-spm", "phi-3", "baichuan"]
RAW_NAMES = ["gemma4", "granite-embed-multi-311m", "mmbert", "sarvam-moe", "whitespace"]
# tokenizer.ggml.model, where it is not that of the vocabulary: RAW's is gemma4, which has the one name.
MODELS = {
    **dict.fromkeys(("granite-embed-multi-311m", "mmbert", "sarvam-moe"), "gpt2"),
    "whitespace": "whitespace",
}
UNIGRAM = FIXTURES / "unigram.gguf"
_K = "tokenizer.ggml."
UNIGRAM_KEYS: dict[str, dict[str, Any]] = {  # names in the place of pre-tokenizers: what is changed
    "unigram": {},
    "unigram-keeps-spaces": {_K + "remove_extra_whitespaces": False},
    "unigram-no-prefix": {_K + "add_space_prefix": False},
    "unigram-neither": {_K + "remove_extra_whitespaces": False, _K + "add_space_prefix": False},
    "unigram-no-charsmap": {_K + "precompiled_charsmap": None, _K + "remove_extra_whitespaces": None},
    "unigram-equal-scores": {_K + "scores": [-1.5] * 1200},
    "unigram-no-scores": {_K + "scores": None, _K + "bos_token_id": 3, _K + "add_bos_token": True},
    "unigram-user-defined": {
        _K + "token_type": [3, 3, 2, *[4 if token % 7 == 0 else 1 for token in range(1197)]]
    },
    "unigram-nfc": {_K + "normalizer.nfc": True},
    "unigram-nfc-keeps-spaces": {
        _K + "normalizer.nfc": True,
        _K + "precompiled_charsmap": None,
        _K + "remove_extra_whitespaces": False,
    },
    "unigram-other-unknown": {_K + "unknown_token_id": 40, _K + "add_eos_token": False},
}
PLAMO = FIXTURES / "plamo.gguf"
PLAMO_KEYS: dict[str, dict[str, Any]] = {
    "plamo2": {},
    "plamo3": {_K + "model": "plamo3", _K + "add_eos_token": True},
    "plamo2-equal-scores": {_K + "scores": [-1.5] * 1500},
}
CHANGES = UNIGRAM_KEYS | PLAMO_KEYS
FLAGS = list(product([True, False], repeat=2))  # (add_special, parse_special), (remove_, unparse_special)

# What `clean_spaces` acts on in decoding: random sequences of ids have more of these than chance gives.
CLEANED = [
    b" ",
    b".",
    b"?",
    b"!",
    b",",
    b" .",
    b" ,",
    b"'",
    b" '",
    b"'s",
    b"s",
    b"m",
    b"t",
    b"re",
    b"ve",
    b" 's",
]


class Table:
    """Answers to questions, by name and flags, each different answer written once."""

    def __init__(self) -> None:
        self.answers: list[list[Any]] = []
        self.index: dict[str, list[list[int]]] = {}

    def add(self, name: str, answers: Sequence[Sequence[Any]]) -> None:
        """The answers for `name`: for each pair of flags, one to each question."""
        self.index[name] = [
            [self._number(question, answer) for question, answer in enumerate(column)] for column in answers
        ]

    def _number(self, question: int, answer: Any) -> int:
        if question == len(self.answers):
            self.answers.append([])
        known = self.answers[question]
        if answer not in known:
            known.append(answer)
        return known.index(answer)

    def as_json(self) -> dict[str, Any]:
        return {"answers": self.answers, "index": self.index}


def column(table: dict[str, Any], name: str, flags: int) -> list[Any]:
    """From a recorded table: the answers for `name` under `FLAGS[flags]`, one to each question."""
    return [
        answers[number] for answers, number in zip(table["answers"], table["index"][name][flags], strict=True)
    ]


def as_json(data: bytes) -> str:
    """Bytes as a string that JSON can hold.

    >>> as_json(b"\\xff")
    'ÿ'
    """
    return data.decode("latin-1")


def as_bytes(text: str) -> bytes:
    """The bytes that `as_json` was given."""
    return text.encode("latin-1")


def read_recorded(name: str) -> dict[str, Any]:
    """One recorded file, by its name without endings."""
    content: dict[str, Any] = json.loads(gzip.decompress((RECORDED / f"{name}.json.gz").read_bytes()))
    return content


def read_older() -> dict[str, Any] | None:
    """What an older state answers instead; None if that is not recorded."""
    return read_recorded("older") if (RECORDED / "older.json.gz").is_file() else None


def write_recorded(name: str, content: dict[str, Any]) -> None:
    """Write a recorded file; the same content gives the same bytes."""
    RECORDED.mkdir(parents=True, exist_ok=True)
    data = json.dumps(content, ensure_ascii=True, separators=(",", ":")).encode()
    path = RECORDED / f"{name}.json.gz"
    path.write_bytes(gzip.compress(data, 9, mtime=0))
    print(f"{path}: {path.stat().st_size} bytes, {len(data)} unpacked", flush=True)


def variant(path: Path, name: str, out: Path) -> Path:
    """The vocabulary under a name: with this pre-tokenizer, or with the keys that the name stands for."""
    if name in CHANGES:
        return with_pre(path, None, out, extra=CHANGES[name])
    return with_pre(path, name, out, MODELS.get(name))


def record_names(path: Path, names: list[str]) -> dict[str, Any]:
    """All texts, and what else can be asked, for each name over one vocabulary.

    `LoadError` with the name if llama.cpp does not know one.
    """
    questions = texts()
    ids, decoded, pieces, described = Table(), Table(), Table(), Table()
    sequences: list[list[int]] = []
    with tempfile.TemporaryDirectory() as folder, Oracle(path) as oracle:
        for name in names:
            try:
                oracle.open(variant(path, name, Path(folder) / "vocabulary.gguf"))
            except LoadError as error:
                raise LoadError(f"llama.cpp {NEWER} does not load {path.name} as {name}: {error}") from error
            answers = [ask_ids(oracle, questions, *flags) for flags in FLAGS]
            sequences = sequences or id_sequences(answers[0], oracle.pieces(special=True), 360)
            ids.add(name, answers)
            decoded.add(name, [ask_bytes(oracle, sequences, *flags) for flags in FLAGS])
            pieces.add(name, [[list(map(as_json, oracle.pieces(special)))] for special in (True, False)])
            described.add(name, [[describe(oracle)]])
            print(f"{name}: {oracle.crashes} crashes so far", flush=True)
    return {
        "llama.cpp": NEWER,
        "vocabulary": path.relative_to(ROOT).as_posix(),
        "texts": list(map(as_json, questions)),
        "ids": ids.as_json(),
        "sequences": sequences,
        "decoded": decoded.as_json(),
        "pieces": pieces.as_json(),
        "described": described.as_json(),
    }


def record_real(names: list[str]) -> dict[str, Any]:
    """All texts, and ids to decode, for each of these vocabularies."""
    questions = texts()
    ids, decoded = Table(), Table()
    sequences: list[list[int]] = []  # of the ids that the first of them has
    with Oracle(GPT2) as oracle:
        for name in names:
            oracle.open(vocabulary(name))
            answers = [ask_ids(oracle, questions, *flags) for flags in FLAGS]
            sequences = sequences or id_sequences(answers[0], oracle.pieces(special=True), 360)
            ids.add(name, answers)
            decoded.add(name, [ask_bytes(oracle, sequences, *flags) for flags in FLAGS])
    return {
        "llama.cpp": NEWER,
        "texts": list(map(as_json, questions)),
        "ids": ids.as_json(),
        "sequences": sequences,
        "decoded": decoded.as_json(),
    }


def record_rules() -> dict[str, Any]:
    """All that can be asked about the vocabularies of loading_rules.py."""
    VOCABULARIES.mkdir(parents=True, exist_ok=True)
    for path in VOCABULARIES.glob("*.gguf"):
        path.unlink()
    found: dict[str, Any] = {}
    with Oracle(RAW) as oracle:
        for name, rule in RULES.items():
            path = write_metadata(VOCABULARIES / f"{name}.gguf", rule.keys)
            try:
                oracle.open(path)
                found[name] = record_rule(oracle, rule.all_texts(name))
            except LoadError as error:
                found[name] = {"refused": "crash" if error.crash else "error"}
                print(f"{name}: refused", flush=True)
    return {"llama.cpp": NEWER, "rules": found}


def record_older(newer: dict[str, Any], state: str = CHATS) -> dict[str, Any]:
    """What an older state answers instead, to the questions in `newer`, or of the recorded files that it lacks."""
    names: dict[str, Any] = {}
    files = [
        ("raw_utf8", RAW),
        ("unsplit", UNSPLIT),
        ("byte_level", GPT2),
        ("unigram", UNIGRAM),
        ("plamo", PLAMO),
    ]
    with tempfile.TemporaryDirectory() as folder, Oracle(RAW, state) as oracle:
        for recorded, path in files:
            content = newer.get(recorded) or read_recorded(recorded)
            texts = list(map(as_bytes, content["texts"]))
            names[recorded] = {}
            for name in content["ids"]["index"]:
                if name in lacks(state, "pre"):
                    continue
                oracle.open(variant(path, name, Path(folder) / "vocabulary.gguf"))
                names[recorded][name] = [
                    _other_answers(oracle, texts, column(content["ids"], name, number), *flags)
                    for number, flags in enumerate(FLAGS)
                ]
            print(f"{recorded}: {oracle.crashes} crashes so far", flush=True)
        rules = (newer.get("loading_rules") or read_recorded("loading_rules"))["rules"]
        older = {name: _older_rule(oracle, name, RULES[name], rule) for name, rule in rules.items()}
    changed = {name: answer for name, answer in older.items() if answer is not None}
    return {"llama.cpp": state, "ids": names, "rules": changed}


def _other_answers(
    oracle: Oracle, texts: list[bytes], newer: list[Any], add_special: bool, parse_special: bool
) -> list[list[Any]]:
    """[number of the text, the older state's ids or None for a crash] for each text where that differs from `newer`.

    Texts that crash the newer state (None in `newer`) are left out, and so are values above U+10FFFF, all of which
    crash the older one.
    """
    asked = [
        number
        for number, (text, ids) in enumerate(zip(texts, newer, strict=True))
        if ids is not None and within_unicode(text) == text
    ]
    answers = ask_ids(oracle, [texts[number] for number in asked], add_special, parse_special)
    pairs = zip(asked, answers, strict=True)
    return [[number, old] for number, old in pairs if old != newer[number]]


def _older_rule(oracle: Oracle, name: str, rule: Rule, newer: dict[str, Any]) -> Any:
    """What the older state makes of a rule's vocabulary; None if it is the same."""
    try:
        oracle.open(VOCABULARIES / f"{name}.gguf")
    except LoadError:
        return None if "refused" in newer else {"refused": True}
    described = describe(oracle)
    return None if described == newer.get("described") else {"described": described}


def record_rule(oracle: Oracle, questions: list[bytes]) -> dict[str, Any]:
    ids, decoded = Table(), Table()
    answers = [ask_ids(oracle, questions, *flags) for flags in FLAGS]
    sequences = id_sequences(answers[0], oracle.pieces(special=True), 90)
    ids.add("", answers)
    decoded.add("", [ask_bytes(oracle, sequences, *flags) for flags in FLAGS])
    return {
        "texts": list(map(as_json, questions)),
        "ids": ids.as_json(),
        "sequences": sequences,
        "decoded": decoded.as_json(),
        "pieces": [list(map(as_json, oracle.pieces(special))) for special in (True, False)],
        "described": describe(oracle),
    }


def ask_ids(oracle: Oracle, questions: list[bytes], add_special: bool, parse_special: bool) -> list[Any]:
    """The ids of each text; None for a crash."""
    answers = oracle.tokenize(questions, add_special, parse_special)
    return [None if isinstance(answer, Crash) else answer for answer in answers]


def ask_bytes(
    oracle: Oracle, sequences: list[list[int]], remove_special: bool, unparse_special: bool
) -> list[Any]:
    """The text of each sequence of ids; None for a crash."""
    answers = oracle.detokenize_each([(ids, remove_special, unparse_special) for ids in sequences])
    return [None if isinstance(answer, Crash) else as_json(answer) for answer in answers]


def id_sequences(answers: list[Any], pieces: list[bytes], count: int) -> list[list[int]]:
    """Sequences to decode: those that encoding gave, then `count` random ones with much of `CLEANED`."""
    dice = random.Random(len(pieces))
    cleaned = [token for token, piece in enumerate(pieces) if piece in CLEANED] or [0]
    found = [
        ids for ids in answers if ids is not None and -1 not in ids
    ]  # -1: an unknown token that is missing
    for length in (number % 9 for number in range(count)):
        common = dice.choices(cleaned, k=length)
        found.append([token if dice.random() < 0.7 else dice.randrange(len(pieces)) for token in common])
    return [list(ids) for ids in dict.fromkeys(map(tuple, found))]


def describe(oracle: Oracle) -> dict[str, Any]:
    """What llama.cpp made of the vocabulary, in JSON's types."""
    description = oracle.describe()._asdict()
    return {**description, "texts": list(map(as_json, description["texts"]))}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", choices=["names", "rules", "unigram", "plamo", "real", "older"])
    only = parser.parse_args().only
    found: dict[str, Any] = {}
    if only in (None, "rules"):
        found["loading_rules"] = record_rules()
    if only in (None, "unigram"):
        found["unigram"] = record_names(UNIGRAM, list(UNIGRAM_KEYS))
    if only in (None, "plamo"):
        found["plamo"] = record_names(PLAMO, list(PLAMO_KEYS))
    if only in (None, "real"):
        found["real"] = record_real(REAL)
    if only in (None, "names"):
        found["raw_utf8"] = record_names(RAW, RAW_NAMES)
        byte_level_names = [name for name in PRE_TOKENIZERS if name not in RAW_NAMES]
        found["unsplit"] = record_names(UNSPLIT, byte_level_names)
        found["byte_level"] = record_names(GPT2, byte_level_names)
    if only in (None, "older"):
        found["older"] = record_older(found)
    for name, content in found.items():
        write_recorded(name, content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
