"""`ggufbpe verify`: our ids against those of llama.cpp or another tokenizer."""

from __future__ import annotations

import argparse
import os
from collections import Counter

from .._util.errors import RemoteNotFoundError
from .._util.progress import OnProgress, Progress
from .._util.wording import counted, in_bytes
from ..analysis.oracles.against import CHATS_OF_HUB, USAGES, Against, against_of, for_chats
from ..analysis.verify.chat_comparison import ComparedChat
from ..analysis.verify.given_texts import Source
from ..analysis.verify.id_comparison import verify
from ..analysis.verify.result import ComparedText, Verification
from ..analysis.views import answers, terminal
from ..analysis.views.report_page import to_html
from ..data.corpora.corpus_files import File, files_of
from ..data.corpora.records import problem_with
from ..tokenizer import Tokenizer
from . import _output
from ._arguments import Parser, UsageError, require_no_models
from ._chat import add_chat_flags, bodies_of_file, refuse_text_flags, require_chat, template_of
from ._files import add_no_ignore, ignored_of, require_page, say_what_was_left_out, write_outputs
from ._given_models import located, opened_tokenizer
from ._input import settle_stdin, stdin
from ._progress import Bar
from ._signals import interruption_as_stop

EXIT_SAME, EXIT_DIFFERENT, EXIT_ERROR = 0, 1, 2


def add_arguments(parser: Parser) -> None:
    parser.add_model()
    parser.add_llama_cpp()
    parser.add_argument("--against", metavar="ORACLE", help=f"what to compare with: {', '.join(USAGES)}")
    parser.add_argument("paths", nargs="*", metavar="PATH", help="files and directories")
    parser.add_argument("-p", "--prompt", metavar="TEXT", help="compare a text")
    parser.add_stdin("compare")
    parser.add_repeated(
        "--chat",
        metavar="FILE",
        help="compare the chat in a .json file, or those in a .jsonl file, one per line",
    )
    add_chat_flags(parser)
    parser.add_argument(
        "--field",
        "--text-column",
        metavar="NAME",
        help='read all files as JSON lines with the text in this field (default: "text")',
    )
    add_no_ignore(parser)
    parser.add_number("--fuzz", help="compare N random texts")
    parser.add_argument("--seed", metavar="S", default="1", help="the seed of the random texts (default: 1)")
    parser.add_switch("-e", "--escape", help="process escape sequences in texts")
    parser.add_special_flags()
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=float,
        default=30.0,
        help="the time limit of the other tokenizer for a text (default: 30)",
    )
    parser.add_switch("--json", help="print one object")
    parser.add_argument("--html", metavar="PATH", help="also write a report as a web page")
    parser.add_switch("--force", help="overwrite an existing report")
    parser.add_color()


def run(arguments: argparse.Namespace) -> int:
    meant = _checked(arguments)
    if meant.note:
        _output.note(f"ggufbpe: {meant.note}")
    tokenizer = opened_tokenizer(arguments)
    unread: list[str] = []

    def report(path: str, error: Exception) -> None:
        unread.append(path)
        _output.error(f"{path}: {problem_with(path, error)}")

    skipped: Counter[str] = Counter()
    files = list(files_of(arguments.paths, skipped, report, ignored_of(arguments)))
    template = template_of(arguments, tokenizer)
    chats = [ComparedChat(*each) for path in arguments.chat for each in bodies_of_file(path, arguments)]
    bar = Bar()

    def tell() -> None:
        _output.note("ggufbpe: stopping; what was compared is shown in a moment (Ctrl-C again ends at once)")

    with interruption_as_stop(tell) as is_stopped:
        try:
            result = verify(
                tokenizer,
                _opened(meant, arguments),
                _sources(arguments, files),
                chats=chats,
                chat_template=template,
                fuzz=arguments.fuzz or 0,
                seed=arguments.seed,
                add_special=not arguments.no_bos,
                parse_special=arguments.parse_special,
                field=arguments.field,
                escape=arguments.escape,
                timeout=arguments.timeout,
                report=report,
                progress=_shown_on(bar, _total_bytes(arguments, files), arguments.fuzz),
                stop=is_stopped,
            )
        finally:
            bar.clear()
        was_stopped = is_stopped()
    say_what_was_left_out(skipped, "give a path to compare it")
    _report(arguments, result)
    if was_stopped:
        raise KeyboardInterrupt
    if unread or not (result.compared or result.failed or (result.chats and result.chats.chats)):
        return EXIT_ERROR
    return EXIT_SAME if result.same else EXIT_DIFFERENT


def _opened(meant: Against, arguments: argparse.Namespace) -> Tokenizer | Against:
    """What to compare with; another model is opened here, since the flags for names apply to it."""
    if meant.kind not in ("gguf", "hub", CHATS_OF_HUB) or not meant.rest:
        return meant._replace(note="")  # which was said already
    try:
        return Tokenizer.from_gguf(located(arguments, meant.rest))
    except RemoteNotFoundError as refused:
        if meant.kind == "gguf":
            raise
        if meant.kind == CHATS_OF_HUB:
            from ..analysis.oracles.transformers_oracle import folder_of_repository

            return Against("transformers", folder_of_repository(meant.rest, offline=arguments.offline))
        from ..analysis.oracles.hub_oracle import tokenizer_json_on_hub

        path = tokenizer_json_on_hub(meant.rest, refused, offline=arguments.offline)
        return Against("tokenizers", path)


def _sources(arguments: argparse.Namespace, files: list[File]) -> list[Source]:
    """What is compared, in order."""
    prompt = arguments.prompt
    found: list[Source] = [] if prompt is None else [ComparedText("-p", 0, os.fsencode(prompt))]
    return [*found, *files, *([stdin()] if arguments.stdin else [])]


def _total_bytes(arguments: argparse.Namespace, files: list[File]) -> int | None:
    """How much is compared, if that is known."""
    if arguments.stdin or arguments.fuzz is not None:
        return None
    return sum(file.size for file in files) + len(os.fsencode(arguments.prompt or ""))


def _checked(arguments: argparse.Namespace) -> Against:
    """What to compare with. `UsageError` or `OracleError` for arguments that make no sense."""
    require_no_models(arguments.paths, "verify", arguments)
    if arguments.against is None:
        raise UsageError(
            f"what should the ids be compared with? Give --against with one of {', '.join(USAGES)}"
        )
    if not arguments.chat or "-" in arguments.paths:  # what is piped in may be the chat
        settle_stdin(arguments, "paths", "prompt", "fuzz")
    sources = [arguments.paths, arguments.stdin, arguments.chat]
    if not any(sources) and arguments.prompt is None and arguments.fuzz is None:
        raise UsageError("no texts: give files or directories, -p TEXT, --stdin, --fuzz N or --chat FILE")
    require_chat(arguments)
    meant = against_of(arguments.against)
    if arguments.chat:
        meant = for_chats(meant)
        _check_chats(arguments, meant)
    if arguments.fuzz is not None and meant.kind == "ids":
        raise UsageError("--fuzz makes new texts, for which there are no recorded ids")
    if arguments.html is not None:
        if arguments.html == "-" and arguments.json:
            raise UsageError("--html - and --json: only one of them can be standard output")
        read = (arguments.model, *arguments.paths, *arguments.chat, meant.rest)
        require_page(arguments.html, arguments.force, *read)
    if not arguments.timeout > 0:
        raise UsageError(f"--timeout must be more than 0, not {arguments.timeout:g}")
    return meant


def _check_chats(arguments: argparse.Namespace, meant: Against) -> None:
    if meant.kind not in ("server", "gguf", CHATS_OF_HUB, "transformers"):
        raise UsageError(
            "--chat needs something that makes prompts: --against server:URL, another GGUF, or a folder or repository "
            "of transformers"
        )
    refuse_text_flags(arguments)


def _report(arguments: argparse.Namespace, result: Verification) -> None:
    if arguments.json:
        _output.write_json(answers.verification(result))
    elif arguments.html != "-":  # which is standard output: nothing but the page goes there
        from ..analysis.views.report_lines import ReportLines

        printer = ReportLines(_output.use_color(arguments.color), _output.terminal_width())
        _output.write_lines(printer.lines(result, result.note))
    if arguments.html is not None:
        _output.flush()
        write_outputs({arguments.html: to_html(result, result.model, result.note).encode()})
    if arguments.html not in (None, "-"):
        _output.note(f"ggufbpe: the report is in {terminal.one_line(arguments.html)}")


def _shown_on(bar: Bar, total_bytes: int | None, total_texts: int | None) -> OnProgress:
    """What draws the bar: by bytes, or by texts if only their number is known."""

    def show(now: Progress) -> None:
        if bar.is_due():
            size = now.counts.get("bytes", 0)
            total, done = (total_bytes, size) if total_bytes else (total_texts, now.done)
            told = f"{counted(now.done, now.unit[:-1])}, {in_bytes(size)}"
            bar.draw(done / total if total else None, f"{now.step}: {told}")

    return show
