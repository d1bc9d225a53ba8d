"""`ggufbpe train`: a vocabulary learned from a corpus, as a GGUF that llama.cpp loads."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from .._util.errors import printable
from .._util.progress import Progress
from .._util.wording import counted, in_bytes
from ..analysis.views import terminal
from ..analysis.views.answers import answer
from ..data.training.learn_merges import TIES
from ..data.training.save_vocabulary import SUFFIXES
from ..data.training.train_vocabulary import TrainedVocabulary, train
from ..data.training.trained_vocabulary import Form
from ..data.training.word_counts import UNITS, splitting
from . import _output
from ._arguments import Parser, UsageError, overrides_of
from ._files import GivenPath, require_folder, require_free, require_page, say_what_was_left_out, write_page
from ._input import pipe_has_text, read_file
from ._progress import Bar
from ._signals import termination_as_exit

_RECORDED = 200  # merges


def add_arguments(parser: Parser) -> None:
    add = parser.add_argument
    add(
        "corpus",
        nargs="*",
        metavar="CORPUS",
        help="files, directories and URLs for fsspec; - is standard input",
    )
    parser.add_number("--vocab-size", required=True, help="number of tokens, not counting --unk")
    add("-o", "--output", metavar="PATH", help="the file to write: .gguf, .json, or .txt for only the merges")
    parser.add_switch("--force", help="write over an existing file")
    parser.add_switch(
        "--trace",
        help=f"print each merge: the pair and its count; for the first {_RECORDED} also the words as they are cut now, "
        "the runners-up, and how a tie was decided",
    )
    add("--html", metavar="FILE", help="write a page that replays these merges")
    parser.add_switch("--json", help="print one object: path, tokens, merges …; with --trace, each merge")
    add("--pre", metavar="NAME", help="the pre-tokenizer (default: gpt-2, or the seed's)")
    add(
        "--ties",
        choices=TIES,
        default=TIES[0],
        help="the first of equally frequent pairs (default: lowest-ids)",
    )
    parser.add_repeated("--special", metavar="TOKEN", help="add a control token; may be repeated")
    parser.add_repeated("--user-defined", metavar="TOKEN", help="add a token that is always shown")
    add("--bos", metavar="TOKEN", help="add this control token, put before each text (default: none)")
    add(
        "--eos",
        metavar="TOKEN",
        help="add this control token, the end of a text (default: the first --special)",
    )
    parser.add_number(
        "--min-frequency", default=1, help="join only pairs that occur at least N times (default: 1)"
    )
    parser.add_number("--max-token-length", help="make no token longer than N bytes, or characters")
    add("--seed-vocab", metavar="PATH", help="a .gguf whose tokens and merges come first")
    parser.add_override_kv()
    parser.add_number("--threads", help="count words on N threads (default: all); the result is the same")
    parser.add_color("colour of --trace")
    add("--ray", metavar="ADDRESS", help="count words on a Ray cluster: its address, auto, or local")
    _add_reading(parser.add_argument_group("reading").add_argument)
    _add_classic(parser.add_argument_group("classic forms").add_argument)


def _add_reading(add: Callable[..., object]) -> None:
    add(
        "--field",
        "--text-column",
        metavar="NAME",
        help='the field or column with the text of JSON lines and tables (default: "text"); all other files are then '
        "read as JSON lines",
    )
    add(
        "--errors",
        choices=("strict", "replace"),
        default="strict",
        help="bytes that are not UTF-8: stop (default), or take them for U+FFFD",
    )
    add(
        "--word-counts",
        metavar="PATH",
        help="words that are already split: lines of a word, a tab or space, a count",
    )


def _add_classic(add: Callable[..., object]) -> None:
    add("--units", choices=UNITS, help="what merging begins with (default: bytes, or what --pre writes)")
    add("--end-of-word", metavar="TEXT", help="a symbol after each word")
    add(
        "--no-merge-end-of-word",
        dest="merge_end_of_word",
        action="store_false",
        help="never merge that symbol",
    )
    add("--unk", metavar="TOKEN", help="the token of characters that are not in the alphabet")
    add("--alphabet", default="", metavar="CHARS", help="characters to include even if the corpus lacks them")
    add("--limit-alphabet", type=int, metavar="N", help="keep only the N most frequent characters")


def run(arguments: argparse.Namespace) -> int:
    _check(arguments)
    skipped: Counter[str] = Counter()
    bar = Bar()

    def show(now: Progress) -> None:
        if bar.is_due():
            told = (
                f"{now.done} of {now.total} merges" if now.step == "merge" else f"read: {in_bytes(now.done)}"
            )
            bar.draw(now.share if now.total else None, told)

    try:
        vocabulary = train(
            list(map(_source, arguments.corpus)),
            vocab_size=arguments.vocab_size,
            pre=arguments.pre,
            units=arguments.units,
            special=arguments.special,
            user_defined=arguments.user_defined,
            bos=arguments.bos,
            eos=arguments.eos,
            unk=arguments.unk,
            end_of_word=arguments.end_of_word,
            merge_end_of_word=arguments.merge_end_of_word,
            min_frequency=arguments.min_frequency,
            max_token_length=arguments.max_token_length,
            limit_alphabet=arguments.limit_alphabet,
            alphabet=arguments.alphabet,
            ties=arguments.ties,
            seed_vocab=arguments.seed_vocab,
            seed_overrides=overrides_of(arguments),
            word_counts=_word_counts(arguments.word_counts),
            field=arguments.field,
            errors=arguments.errors,
            threads=arguments.threads,
            ray=arguments.ray,
            progress=show,
            skipped=skipped,
            record=_RECORDED if arguments.trace or arguments.html is not None else 0,
        )
    finally:
        bar.clear()
    say_what_was_left_out(skipped)
    if arguments.output is not None:
        with termination_as_exit():
            vocabulary.save(arguments.output)
    if arguments.html is not None:
        from ..analysis.views.training_page import training_html

        write_page(arguments.html, training_html(vocabulary))
    _say(vocabulary, arguments)
    return 0


def _source(path: str) -> object:
    """What `train` takes for an argument."""
    if path == "-":
        return sys.stdin.buffer
    return GivenPath(path)


def _check(arguments: argparse.Namespace) -> None:
    """Refuse at once what would otherwise fail only after a long time."""
    if not arguments.corpus and arguments.word_counts is None and pipe_has_text():
        arguments.corpus = ["-"]
    if not arguments.corpus and arguments.word_counts is None:
        raise UsageError(
            "nothing to learn from: give files, directories, - for standard input, or --word-counts"
        )
    if "-" in arguments.corpus and sys.stdin is None:
        raise ValueError("standard input is closed")
    if arguments.override_kv and arguments.seed_vocab is None:
        raise UsageError("--override-kv is for the keys of a seed; name one with --seed-vocab")
    target = arguments.output
    read = [*arguments.corpus, arguments.word_counts, arguments.seed_vocab]
    if arguments.html is not None:
        if arguments.html == "-" and (arguments.json or arguments.trace):
            flag = "--json" if arguments.json else "--trace"
            raise UsageError(f"--html - and {flag}: only one of them can be standard output")
        if target is not None and os.path.realpath(target) == os.path.realpath(arguments.html):
            raise UsageError(f"-o and --html both name {printable(target)}; give one of them another name")
        require_page(arguments.html, arguments.force, *read)
    if target is None:
        if not arguments.trace and arguments.html is None:
            raise UsageError("say where the vocabulary goes: -o PATH (or --trace to see only the merges)")
        return
    if Path(target).suffix not in SUFFIXES:
        raise UsageError(f"-o {printable(target)}: the suffix names the format, {', '.join(SUFFIXES)}")
    if target.endswith(".gguf") and arguments.seed_vocab is None:
        split = splitting(arguments.pre or "gpt-2", arguments.units)
        reason = Form(split, end_of_word=arguments.end_of_word, unk=arguments.unk).why_not_llama_cpp()
        if reason is not None:
            raise UsageError(f"{reason}; or write it as .json")
    require_free(target, arguments.force, *read)
    require_folder(target)


def _word_counts(path: str | None) -> dict[str, int] | None:
    if path is None:
        return None
    counts: dict[str, int] = {}
    try:
        lines = read_file(path).decode().split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: byte {error.start} is not UTF-8") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        word, _, count = line.rstrip().replace("\t", " ").rpartition(" ")
        if not word.strip() or not count.isascii() or not count.isdigit():
            raise ValueError(f"{path}: line {number}: not a word, a tab or space, and a count")
        counts[word.rstrip()] = counts.get(word.rstrip(), 0) + int(count)
    return counts


def _say(vocabulary: TrainedVocabulary, arguments: argparse.Namespace) -> None:
    if arguments.json:
        from ..analysis.views.training_lines import training_as_json

        found = training_as_json(vocabulary, trace=arguments.trace)
        _output.write_json(answer(found, path=arguments.output))
        return
    lines: list[str] = []
    if arguments.trace:
        from ..analysis.views.training_lines import BYTE_ALPHABET, trace_lines

        if vocabulary.form.splitting.units == "bytes":
            _output.note(f"ggufbpe: {BYTE_ALPHABET}")
        color, width = _output.use_color(arguments.color), _output.terminal_width()
        lines += trace_lines(vocabulary, color=color, width=width)
    size = len(vocabulary.tokens) - (vocabulary.form.unk is not None)
    if arguments.output is not None:
        tokens, merges = counted(size, "token"), counted(len(vocabulary.merges), "merge")
        words = counted(vocabulary.word_count, "distinct word")
        lines.append(f"wrote {terminal.one_line(arguments.output)}: {tokens}, {merges}, learned from {words}")
    _output.write_lines(line.rstrip(" ") for line in lines)
    _say_if_it_ended_early(vocabulary, size, arguments)


def _say_if_it_ended_early(vocabulary: TrainedVocabulary, size: int, arguments: argparse.Namespace) -> None:
    if size < arguments.vocab_size:
        rare = f" that stands {arguments.min_frequency} times" if arguments.min_frequency > 1 else ""
        _output.note(
            f"ggufbpe: no pair{rare} is left after {counted(len(vocabulary.trace), 'merge')}: "
            f"the vocabulary has {counted(size, 'token')}, not {arguments.vocab_size}"
        )
