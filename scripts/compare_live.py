"""Compares both engines with the real llama.cpp on random texts, in process and through its command.

    python scripts/reference.py prepare
    python scripts/compare_live.py --strings 1000000 --seed 1 --processes 2
    python scripts/compare_live.py --state b11549 --commands 0

Every pre-tokenizer name gets its share of the strings: over GPT-2's vocabulary, over one whose ids show where
words end (for names that do not byte-encode: over a raw UTF-8 one), and over vocabularies with random merges,
special tokens and flags; the real vocabularies get some as well. A tenth of the strings has bytes that are not UTF-8:
overlong forms, surrogates, truncated characters and values above U+10FFFF. For each string, the ids of the compiled
engine, alone and in batches, those of the reference engine and those of llama.cpp are compared, and the text of ids,
under random flags; for each vocabulary everything that loading decides. A difference is shrunk and printed. Then
the command `llama-tokenize` and ours get the same arguments, and their output must be the same bytes.

llama.cpp is the state that is followed, or the one given by `--state`, whose ids we then give, too
(`Tokenizer.from_gguf(..., llama_cpp=...)`); an older one is not asked about names that it does not know. The command is
always the oldest state's, and so are the ids that ours prints in that part.

Without the compiled engine, only the reference engine is compared; a note on standard error says so.

Ends with lines of totals, and with status 1 if anything differed. The same seed asks the same questions,
whatever the number of processes.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "makers"))

from random_texts import ATOMS_OF_MODEL, OTHER_MODELS, RandomTexts, random_vocabulary
from record_fixtures import GPT2, MODELS, RAW, RAW_NAMES, UNSPLIT, VOCABULARIES
from reference import (
    NEWER,
    OLDER,
    SPECIAL_IDS,
    Crash,
    LoadError,
    NotPreparedError,
    Oracle,
    cache_directory,
    llama_tokenize_command,
    vocabulary,
    with_pre,
    write_metadata,
)

from ggufbpe import GGUFError, Tokenizer
from ggufbpe._util.llama_cpp_states import STATES, lacks
from ggufbpe.models.pretokenizers.random_texts import within_unicode
from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS
from ggufbpe.models.vocabulary import CONTROL, UNKNOWN, USER_DEFINED
from ggufbpe.native import native

ALL_NAMES = [*PRE_TOKENIZERS, *OTHER_MODELS]
REAL = [
    "bert-bge",
    "nomic-bert-moe",
    *("baichuan", "llama-spm", "phi-3"),
    *(
        "aquila",
        "command-r",
        "deepseek-coder",
        "deepseek-llm",
        "falcon",
        "gemma-4",
        "gpt-2",
        "gpt-neox",
        "llama-bpe",
    ),
    *("mpt", "qwen2", "qwen35", "refact", "starcoder"),
    *("t5", "umt5"),
]
BATCH = 16_000  # enough to be divided among threads
BATCH_THREADS = 2
LONG_TEXT_FOR = 1000  # short ones
STRINGS_OF_RANDOM_VOCABULARY = 5000
STRINGS_OF_OTHER_MODEL = 500  # where more goes wrong in the vocabulary than in the text
COMMANDS_AT_A_TIME = 25
RANDOM_SHARE = 0.3  # of the strings of a name, over random vocabularies
# Strings of a name; fewer are over one vocabulary, since opening one takes longer than they do.
SPREAD_FROM = 1000
ASKED_ALONE = 16  # every so many tokens are asked for by `token_to_piece`
BROKEN_SHARE = 0.1  # of all strings: bytes that are not UTF-8
REAL_SHARE = 0.05  # of all strings, over the real vocabularies with their own names
STACK = 1 << 30  # bytes for llama.cpp, so that it has an answer for long runs, too
SHOWN = 20  # differences printed; all are counted


@dataclass(frozen=True)
class Job:
    """Some strings for one name, over one vocabulary or, if that is None, random ones."""

    name: str
    vocabulary: Path | None
    strings: int
    seed: str
    state: str
    reference_every: int = 1  # the reference engine is compared on every so many texts


@dataclass
class Result:
    totals: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)


class Comparison:
    """llama.cpp and us, over one vocabulary at a time."""

    def __init__(self, oracle: Oracle, job: Job, result: Result, with_pieces: bool) -> None:
        self._oracle = oracle
        self._state = job.state
        self._reference_every = job.reference_every
        self._result = result
        self._name = ""
        self.tok: Tokenizer
        self._engines: dict[str, Tokenizer] = {}
        self._with_pieces = with_pieces

    def open(self, path: Path, name: str) -> bool:
        """Switch to a vocabulary; False if llama.cpp refuses it, which we must do, too."""
        self._name = name
        try:
            self._oracle.open(path)
        except LoadError as error:
            if error.crash is None and _can_open(path, self._state):
                self._differ(f"llama.cpp refuses {path}, and we do not")
            self._result.totals["refused"] += 1
            return False
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            engine = "auto" if native is None else "native"
            self.tok = Tokenizer.from_gguf(path, engine, llama_cpp=self._state)
        self._engines = {"reference": Tokenizer(self.tok.vocabulary, "reference")}
        if native is not None:
            self._engines["native"] = self.tok
        self._compare_loading()
        return True

    def count_broken(self) -> None:
        """Count a text that is not UTF-8."""
        self._result.totals["broken"] += 1

    def ids(self, questions: Sequence[tuple[bytes, bool, bool]]) -> list[list[int]]:
        """Compare the ids of texts: (text, add_special, parse_special); returns llama.cpp's."""
        answers = self._oracle.tokenize_each(questions)
        for number, (question, expected) in enumerate(zip(questions, answers, strict=True)):
            engines = [*self._engines]
            if isinstance(expected, Crash):
                self._result.totals["crashes"] += 1
                expected = self._encode("reference", question)
            elif native is not None and number % self._reference_every:
                engines.remove("reference")
            self._result.totals["texts of the reference engine"] += "reference" in engines
            if any(_is_other(expected, self._encode(engine, question)) for engine in engines):
                self._report_ids(*question)
        if native is not None:
            self._compare_batches(questions, answers)
        found = [answer for answer in answers if not isinstance(answer, Crash)]
        self._result.totals["texts"] += len(questions)
        self._result.totals["tokens"] += sum(map(len, found))
        return found

    def _compare_batches(
        self, questions: Sequence[tuple[bytes, bool, bool]], answers: Sequence[list[int] | Crash]
    ) -> None:
        """The same again, texts with equal flags together, without those that crash llama.cpp."""
        for flags in {question[1:] for question in questions}:
            both = [
                (question[0], answer)
                for question, answer in zip(questions, answers)
                if question[1:] == flags and not isinstance(answer, Crash)
            ]
            ids = self.tok.encode_batch(
                [text for text, _ in both],
                add_special=flags[0],
                parse_special=flags[1],
                threads=BATCH_THREADS,
            )
            wrong = [text for (text, answer), ours in zip(both, ids) if ours != answer]
            if wrong:
                self._differ(
                    f"ids in a batch of {len(both)} texts, {flags}, of {len(wrong)}, first {wrong[0]!r}"
                )

    def decoded(self, questions: Sequence[tuple[Sequence[int], bool, bool]]) -> None:
        """Compare the texts of ids: (ids, remove_special, unparse_special)."""
        answers = self._oracle.detokenize_each(questions)
        self._result.totals["decoded"] += len(questions)
        for question, expected in zip(questions, answers, strict=True):
            if isinstance(expected, Crash):
                self._result.totals["crashes"] += 1
            elif self._decode(question) != expected:
                self._report_decoded(*question)

    def _compare_loading(self) -> None:
        tok, theirs = self.tok, self._oracle.describe()
        ours = {
            "texts": [text.encode() for text in tok.vocabulary.tokens],
            "attributes": list(tok.vocabulary.attributes),
            "special ids": {key: getattr(tok, f"{key}_id") for key in SPECIAL_IDS if key != "eot"},
            "flags": (tok.add_bos, tok.add_eos),
            "end of generation": sorted(tok.eog_ids),
        }
        for token in range(0, tok.vocab_size, ASKED_ALONE):
            ours["texts"][token] = tok.id_to_token(token).encode()
            ours["attributes"][token] = int(tok.token_attributes(token))
        expected = {
            "texts": theirs.texts,
            "attributes": theirs.attributes,
            "special ids": {key: theirs.special_ids[key] for key in SPECIAL_IDS if key != "eot"},
            "flags": (theirs.add_bos, theirs.add_eos),
            "end of generation": theirs.eog_ids,
        }
        for special in (True, False) if self._with_pieces else ():
            what = "pieces" if special else "pieces without special"
            ours[what], expected[what] = self._pieces(special), self._oracle.pieces(special)
        for what, value in expected.items():
            if ours[what] != value:
                self._differ(f"{what}: {_first_difference(value, ours[what])}")

    def _pieces(self, special: bool) -> list[bytes]:
        """The piece of every token: of most as `token_bytes` gives them at once, which takes a fraction of the time."""
        tok = self.tok
        pieces = list(tok.token_bytes)
        for token in (*range(0, tok.vocab_size, ASKED_ALONE), *marked(tok)):
            pieces[token] = tok.token_to_piece(token, special=special)
        return pieces

    def _encode(self, engine: str, question: tuple[bytes, bool, bool]) -> Any:
        data, add_special, parse_special = question
        try:
            text = _as_text(data) if len(data) % 2 else data
            return self._engines[engine].encode(text, add_special=add_special, parse_special=parse_special)
        except Exception as error:
            return repr(error)

    def _decode(self, question: tuple[Sequence[int], bool, bool]) -> Any:
        ids, remove_special, unparse_special = question
        try:
            return self.tok.decode_bytes(ids, remove_special=remove_special, unparse_special=unparse_special)
        except Exception as error:
            return repr(error)

    def _report_ids(self, text: bytes, add_special: bool, parse_special: bool) -> None:
        def both(part: bytes) -> tuple[Any, Any]:
            """The expected answer, and the first answer that differs from it, if any."""
            question = (part, add_special, parse_special)
            ours = [self._encode(engine, question) for engine in self._engines]
            expected = self._oracle.tokenize_each([question])[0]
            if isinstance(expected, Crash):
                expected = ours[0]
            return expected, next((ids for ids in ours if ids != expected), expected)

        text = shrink(text, both)
        answers = {"llama.cpp": self._oracle.tokenize_each([(text, add_special, parse_special)])[0]}
        for engine in self._engines:
            answers[engine] = self._encode(engine, (text, add_special, parse_special))
        shown = "".join(f"\n  {name:9} {answer}" for name, answer in answers.items())
        flags = f"add_special={add_special} parse_special={parse_special}"
        self._differ(f"ids {flags}\n  text {text!r}{shown}")

    def _report_decoded(self, ids: Sequence[int], remove_special: bool, unparse_special: bool) -> None:
        def both(part: Sequence[int]) -> tuple[Any, Any]:
            question = (part, remove_special, unparse_special)
            return self._oracle.detokenize_each([question])[0], self._decode(question)

        ids = shrink(list(ids), both)
        expected, ours = both(ids)
        flags = f"remove_special={remove_special} unparse_special={unparse_special}"
        self._differ(f"decoded {flags}\n  ids {ids}\n  llama.cpp {expected!r}\n  ours      {ours!r}")

    def _differ(self, what: str) -> None:
        self._result.totals["differences"] += 1
        place = self._oracle.path
        if self._result.totals["differences"] <= SHOWN:
            self._result.differences.append(f"{self._name} over {place}: {what}")
            _keep(Path(place))


def marked(tok: Tokenizer) -> list[int]:
    """The tokens that are not ordinary text."""
    kinds = CONTROL | USER_DEFINED | UNKNOWN
    return [token for token, attributes in enumerate(tok.vocabulary.attributes) if attributes & kinds]


def shrink(value: Any, both: Callable[[Any], tuple[Any, Any]]) -> Any:
    """The shortest part of a sequence, found by leaving out stretches, on which the two still differ."""

    def differs(part: Any) -> bool:
        expected, ours = both(part)
        return not isinstance(expected, Crash) and expected != ours

    size = len(value) // 2
    while size:
        start = 0
        while start < len(value):
            part = value[:start] + value[start + size :]
            if differs(part):
                value = part
            else:
                start += size
        size //= 2
    return value


_bases_with_pieces: set[Path | None] = set()  # whose pieces this process has compared


@cache
def _oracle(state: str) -> Oracle:
    """The llama.cpp of this process, for all its jobs: starting one takes as long as a thousand texts."""
    return Oracle(RAW, state, stack=STACK)


def run(job: Job) -> Result:
    """Do one job, the work of one process."""
    result = Result()
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        # Of a vocabulary that many jobs give other names to, pieces are the same under each name that byte-encodes.
        with_pieces = job.vocabulary not in _bases_with_pieces
        _bases_with_pieces.update({GPT2, UNSPLIT} & {job.vocabulary})
        comparison = Comparison(_oracle(job.state), job, result, with_pieces)
        if job.vocabulary is not None:
            path = job.vocabulary
            if path in (GPT2, UNSPLIT, RAW):
                path = with_pre(path, job.name, Path(folder) / f"{job.name}.gguf", MODELS.get(job.name))
            _compare_strings(comparison, path, job, job.strings, job.seed)
        else:
            size = STRINGS_OF_OTHER_MODEL if job.name in OTHER_MODELS else STRINGS_OF_RANDOM_VOCABULARY
            for number in range(0, job.strings, size):
                seed = f"{job.seed}/{number}"
                keys = _random_keys(seed, job.name)
                path = write_metadata(Path(folder) / f"{seed.replace('/', '_')}.gguf", keys)
                strings = min(size, job.strings - number)
                _compare_strings(comparison, path, job, strings, seed)
                path.unlink()
    result.totals["microseconds"] = int((time.perf_counter() - start) * 1e6)
    return result


def _random_keys(seed: str, name: str) -> dict[str, Any]:
    """The metadata of a random vocabulary for a pre-tokenizer, or for a model other than byte pair encoding."""
    source = RandomTexts(seed)
    if name in OTHER_MODELS:
        return OTHER_MODELS[name](seed, source)
    return random_vocabulary(seed, name, name not in RAW_NAMES, source)


def _compare_strings(comparison: Comparison, path: Path, job: Job, count: int, seed: str) -> None:
    if not comparison.open(path, job.name):
        return
    tok = comparison.tok
    special = [tok.id_to_token(token) for token in marked(tok)]
    source = RandomTexts(seed, special + ATOMS_OF_MODEL.get(job.name, []))
    dice = random.Random(seed + "/flags")

    def flags() -> tuple[bool, bool]:
        return dice.random() < 0.5, dice.random() < 0.5

    def text() -> bytes:
        if dice.random() >= BROKEN_SHARE:
            return source.text()
        comparison.count_broken()
        return source.broken_text() if job.state == NEWER else within_unicode(source.broken_text())

    for start in range(0, count, BATCH):
        texts = [text() for _ in range(min(BATCH, count - start))]
        texts += [source.long_text() for _ in range(len(texts) // LONG_TEXT_FOR)]
        found = comparison.ids([(text, *flags()) for text in texts])
        sequences = [ids for ids in found[::8] if -1 not in ids]  # -1 stands for a missing unknown token
        for _ in range(len(texts) // 16):
            sequences.append([dice.randrange(tok.vocab_size) for _ in range(dice.randrange(8))])
        comparison.decoded([(ids, *flags()) for ids in sequences])


def jobs(
    strings: int, seed: int, names: list[str], state: str = NEWER, reference_every: int = 1
) -> list[Job]:
    """The strings, spread over names and vocabularies."""
    found: list[Job] = []
    real = []
    for title in REAL:
        try:
            real.append((title, vocabulary(title)))
        except NotPreparedError as error:
            print(error, file=sys.stderr)
            break
    for_real = int(strings * REAL_SHARE) if real and set(names) >= set(_names_in(state)) else 0
    for number, (title, path) in enumerate(real if for_real else []):
        found.append(
            Job(
                title,
                path,
                _share(for_real, number, len(real)),
                f"{seed}/real/{title}",
                state,
                reference_every,
            )
        )
    for number, name in enumerate(names):
        share = _share(strings - for_real, number, len(names))
        over_random = share if name in OTHER_MODELS else int(share * RANDOM_SHARE)
        parts: dict[Path | None, int] = {None: over_random}
        if name not in OTHER_MODELS:
            bases = [RAW] if name in RAW_NAMES else [GPT2, UNSPLIT]
            parts |= {path: _share(share - over_random, base, len(bases)) for base, path in enumerate(bases)}
        if share < SPREAD_FROM:
            parts = {[*parts][(seed + number) % len(parts)]: share}
        for path, count in parts.items():
            part = f"{seed}/{path.stem if path else 'random'}/{name}"
            found.append(Job(name, path, count, part, state, reference_every))
    return [job for job in found if job.strings]


def _names_in(state: str) -> list[str]:
    """The names of pre-tokenizers and models that a state knows."""
    unknown = lacks(state, "pre") | lacks(state, "model")
    return [name for name in ALL_NAMES if name not in unknown]


def _share(total: int, number: int, count: int) -> int:
    """The share of number `number` when `total` is divided among `count`.

    >>> [_share(10, number, 4) for number in range(4)]
    [3, 3, 2, 2]
    """
    return total // count + (number < total % count)


# ---- the command ----------------------------------------------------------------------------------------


FLAGS = ["--ids", "--no-bos", "--no-parse-special", "--no-escape", "-e", "--show-count"]
WAYS = [["-p"], ["-p"], ["--prompt"], ["-f"], ["-f"], ["--file"], ["--stdin"], ["--stdin"]]
WAYS += [["-p", "--stdin"], ["-f", "-p"], ["-p", "-f"], ["-f", "--stdin"], ["-p", "-p"], []]
ESCAPES = [
    rb"\n",
    rb"\t",
    rb"\\",
    rb"\x41",
    rb"\xff",
    rb"\'",
    rb"\"",
    rb"\q",
    b"\\",
    rb"\x4",
    rb"\r",
    rb"\0",
    rb"\xe4\xb8\xad",
]


def command_cases(seed: str, count: int, file: Path) -> list[tuple[list[str | bytes], bytes, bytes]]:
    """For `tokenize`: the arguments after the vocabulary, what `file` holds, and what goes to stdin."""
    dice, source = (
        random.Random(f"{seed}/command"),
        RandomTexts(f"{seed}/command", ["<|endoftext|>", "<bos>"]),
    )

    def text() -> bytes:
        made = source.text()
        for _ in range(dice.randrange(3)):
            at = dice.randrange(len(made) + 1)
            made = made[:at] + dice.choice(ESCAPES) + made[at:]
        return made

    found = []
    for _ in range(count):
        arguments: list[str | bytes] = [flag for flag in FLAGS if dice.random() < 0.35]
        for way in dice.choice(WAYS):
            arguments.append(way)
            if way in ("-p", "--prompt"):
                arguments.append(text().replace(b"\x00", b""))
            elif way in ("-f", "--file"):
                arguments.append(str(file))
        found.append((arguments, text(), text()))
    return found


def run_commands(seed: str, count: int) -> Result:
    """Run both commands on the same arguments and compare what they print."""
    result = Result()
    theirs = [str(llama_tokenize_command())]
    ours = [sys.executable, "-m", "ggufbpe", "tokenize", "--llama-cpp", OLDER]
    paths = [GPT2, GPT2, RAW, VOCABULARIES / "phi3.gguf", VOCABULARIES / "add-bos-and-eos.gguf"]
    for title in ("llama-bpe", "qwen2", "gpt-neox"):
        try:
            paths.append(vocabulary(title))
        except NotPreparedError:
            break  # reported by `jobs`
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "prompt.txt"
        for number, (arguments, content, stdin) in enumerate(command_cases(seed, count, file)):
            file.write_bytes(content)
            given = ["-m", str(paths[number % len(paths)]), *arguments]
            # without any text ours would read a pipe, where llama-tokenize asks for a text
            source: dict[str, Any] = {"input": stdin} if "--stdin" in given else {"stdin": subprocess.DEVNULL}
            expected = subprocess.run([*theirs, *given], **source, capture_output=True)
            found = subprocess.run([*ours, *given], **source, capture_output=True)
            result.totals["commands"] += 1
            result.totals["commands refused"] += expected.returncode > 0
            if expected.returncode < 0:
                result.totals["crashes"] += 1
            elif (expected.stdout, expected.returncode == 0) != (found.stdout, found.returncode == 0):
                result.totals["differences"] += 1
                result.differences.append(
                    f"tokenize {given} < {stdin!r}, file {content!r}\n"
                    f"  llama-tokenize {expected.returncode} {expected.stdout!r}\n"
                    f"  ours           {found.returncode} {found.stdout!r} {found.stderr[-300:]!r}"
                )
    return result


# ---- small helpers, and the whole -----------------------------------------------------------------------


def _can_open(path: Path, state: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            Tokenizer.from_gguf(path, llama_cpp=state)
    except GGUFError:
        return False
    return True


def _is_other(one: Any, other: Any) -> bool:
    """Whether ids differ. For errors (str), it does not matter which byte of a text they name."""
    return bool(one != other) and not (isinstance(one, str) and isinstance(other, str))


def _as_text(data: bytes) -> str | bytes:
    """The text as `str`, if possible."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _first_difference(expected: Any, ours: Any) -> str:
    if isinstance(expected, list) and len(expected) == len(ours):
        number = next(i for i, (a, b) in enumerate(zip(expected, ours, strict=True)) if a != b)
        return f"at {number} llama.cpp has {expected[number]!r}, ours {ours[number]!r}"
    return f"llama.cpp has {expected}, ours {ours}"


def _keep(path: Path) -> None:
    """Keep the vocabulary of a difference, if it is a temporary one."""
    if Path(tempfile.gettempdir()) in path.parents and path.exists():
        folder = cache_directory() / "differences"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / path.name).write_bytes(path.read_bytes())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--strings", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--names", nargs="+", choices=ALL_NAMES, metavar="NAME", help="default: all")
    parser.add_argument(
        "--state", choices=STATES, default=NEWER, help=f"state of llama.cpp (default: {NEWER})"
    )
    parser.add_argument(
        "--reference-every",
        type=int,
        default=1,
        metavar="N",
        help="compare the reference engine, which takes most of the time, on every Nth text only",
    )
    parser.add_argument("--processes", type=int, default=multiprocessing.cpu_count())
    parser.add_argument("--commands", type=int, default=300, help="runs of llama-tokenize; 0 for none")
    parser.add_argument("--verbose", action="store_true", help="a line for each part, with its time")
    arguments = parser.parse_args()
    start = time.perf_counter()
    if native is None:
        print("there is no compiled engine: only the reference engine is compared", file=sys.stderr)
    result = Result()
    known = _names_in(arguments.state)
    names = [name for name in arguments.names or known if name in known]
    work = jobs(arguments.strings, arguments.seed, names, arguments.state, arguments.reference_every)
    commands = [
        (f"{arguments.seed}/commands/{first}", min(COMMANDS_AT_A_TIME, arguments.commands - first))
        for first in range(0, arguments.commands, COMMANDS_AT_A_TIME)
    ]
    with multiprocessing.get_context("spawn").Pool(arguments.processes) as pool:
        parts = [pool.apply_async(run, (job,)) for job in work]
        parts += [pool.apply_async(run_commands, chunk) for chunk in commands]
        for job, waiting in zip([*work, *[None] * len(commands)], parts, strict=True):
            part = waiting.get()
            result.totals.update(part.totals)
            for difference in part.differences:
                print(f"DIFFERENCE {difference}", flush=True)
            if arguments.verbose and job is not None:
                over = job.vocabulary.name if job.vocabulary else "random vocabularies"
                seconds = part.totals["microseconds"] / 1e6
                print(f"{job.name} over {over}: {job.strings} strings, {seconds:.1f} s", flush=True)
    totals = result.totals
    print(
        f"compared {'the reference engine' if native is None else 'both engines'} with llama.cpp {arguments.state}: "
        f"{totals['texts']} texts ({totals['broken']} not UTF-8, {totals['texts of the reference engine']} also with "
        f"the reference engine), {totals['tokens']} tokens, "
        f"{totals['decoded']} sequences decoded, "
        f"{totals['commands']} commands ({totals['commands refused']} refused by both), "
        f"{totals['crashes']} crashes of llama.cpp, {totals['differences']} differences, "
        f"{time.perf_counter() - start:.0f} seconds"
    )
    asked = totals["texts"] + totals["decoded"] + totals["commands"]
    print(f"comparisons: {asked - totals['differences']} passed, {totals['differences']} failed")
    return 1 if totals["differences"] else 0


if __name__ == "__main__":
    sys.exit(main())
