"""`ggufbpe explain`: how a text becomes ids, step by step."""

from __future__ import annotations

import argparse
import io
import os
from collections.abc import Iterator
from contextlib import nullcontext
from tempfile import SpooledTemporaryFile
from typing import Any

from .._util.escapes import Unescaped, process_escapes
from ..analysis.explain.long_text_parts import Parts
from ..analysis.explain.reasons import WhyNot
from ..analysis.explain.survey import Survey, Wanted, survey, survey_whole
from ..analysis.explain.why_not import why_not
from ..analysis.views import explain_json, terminal
from ..chat.token_origins import ChatTokens, chat_tokens
from ..tokenizer import Tokenizer
from ..tokenizer.trace import Totals, Trace, tracer_of
from . import _output
from ._arguments import Parser, UsageError, require_no_models
from ._chat import add_chat_flags, body_of_file, refuse_text_flags, require_chat, template_of
from ._classic import classic_trace, classic_vocabulary
from ._files import check_page, write_page
from ._given_models import opened_tokenizer
from ._input import given_text, settle_stdin, stdin

_WORDS_OF_PAGE, _MOST_FRAGMENTS = 500, 5000  # on a page
_READ, _IN_MEMORY = 1 << 16, 1 << 20  # bytes


def add_arguments(parser: Parser) -> None:
    parser.add_model()
    parser.add_llama_cpp()
    parser.add_text()
    parser.add_argument("text", nargs="?", help="the text, as with -p")
    parser.add_argument(
        "--chat",
        metavar="FILE",
        help="explain the prompt of a chat, a JSON file as `ggufbpe chat` takes; - is standard input",
    )
    add_chat_flags(parser)
    parser.add_switch("-e", "--escape", help="process escape sequences such as \\n, in PIECE as well")
    parser.add_special_flags()
    part = parser.add_mutually_exclusive_group()
    part.add_argument("--word", type=int, metavar="N", help="show only word N, with all its steps")
    part.add_argument("--token", type=int, metavar="N", help="show only token N and its word")
    part.add_argument(
        "--why-not",
        metavar="PIECE",
        help='say why this token was not produced; PIECE is text (" world") or as in the vocabulary ("Ġworld")',
    )
    parser.add_switch("--merges", help="show how words that are taken whole would have been merged")
    parser.add_switch("--all", help="show a long text in full")
    parser.add_switch("--json", help="print the whole trace as JSON")
    parser.add_argument("--html", metavar="FILE", help="write a self-contained page instead")
    parser.add_switch("--force", help="write the page over an existing file")
    parser.add_color()


def run(arguments: argparse.Namespace) -> int:
    if arguments.chat is None:
        settle_stdin(arguments, "text", "prompt", "file")
    stream: Any
    _check_chat(arguments)
    require_no_models([arguments.text or ""], "explain", arguments)
    is_one = arguments.word is not None or arguments.token is not None
    if arguments.html is not None and is_one:
        raise UsageError("--html shows all words: leave out --word and --token")
    check_page(arguments)
    classic = classic_vocabulary(arguments, "--chat", "--why-not", "--merges")
    if classic is not None:
        with given_text(arguments, "explain") as given:
            stream = given or stdin()
            _show_trace(
                arguments,
                classic_trace(classic, Unescaped(stream) if arguments.escape else stream, arguments),
            )
        return 0
    body = None if arguments.chat is None else body_of_file(arguments.chat, arguments)
    with nullcontext() if body is not None else given_text(arguments, "explain") as given:
        tokenizer = opened_tokenizer(arguments)
        chat = None
        if body is not None:
            chat = chat_tokens(tokenizer, tokenizer.chats.parts(body, template_of(arguments, tokenizer)))
            given = io.BytesIO(chat.rendered.prompt)
        stream = given or stdin()
        stream = Unescaped(stream) if arguments.escape else stream
        flags = {"add_special": not arguments.no_bos, "parse_special": arguments.parse_special}
        if arguments.why_not is None and not arguments.json and (is_one or not arguments.all):
            _show(arguments, tokenizer, _survey(arguments, tokenizer, stream, flags), None, chat)
            return 0
        with SpooledTemporaryFile(_IN_MEMORY) as file:  # the text is read several times, and may be a pipe
            for part in iter(lambda: stream.read(_READ), b""):
                file.write(part)
            whole = Parts(tokenizer, file, **flags)
            answer = _answer(arguments, whole)
            if arguments.json:
                for text in _json(arguments, whole, answer, chat):
                    _output.write(text.encode())
            elif arguments.all and not is_one:
                _show(arguments, tokenizer, whole, answer, chat)
            else:
                _show(arguments, tokenizer, _survey(arguments, tokenizer, whole.file, flags), answer, chat)
    return 0


def _show_trace(arguments: argparse.Namespace, trace: Trace) -> None:
    """Show a text that is traced as a whole, in whatever form is asked for."""
    if arguments.json:
        _require_numbers(arguments, survey_whole(trace).totals)
        found = explain_json.of_trace(trace, arguments.model, arguments.word, arguments.token)
        _output.write(terminal.json_bytes(found))
    else:
        _show(arguments, None, survey_whole(trace), None, None)


def _show(
    arguments: argparse.Namespace,
    tokenizer: Tokenizer | None,
    found: Survey | Parts,
    answer: WhyNot | None,
    chat: ChatTokens | None,
) -> None:
    """Write the page, or print lines to the terminal; without a `tokenizer`, of a vocabulary that was trained."""
    alone = tracer_of(tokenizer).alone if tokenizer and arguments.merges else None
    if arguments.html is not None:
        from ..analysis.views.explain_page import html

        count = found.totals.words if arguments.all else _WORDS_OF_PAGE
        page = html(found, count, answer, tokenizer.name if tokenizer else arguments.model, chat, alone)
        write_page(arguments.html, page)
        return
    from ..analysis.views.explain_lines import ExplainLines

    word, token = (None, None) if isinstance(found, Parts) else _chosen(arguments, found)
    color = _output.use_color(arguments.color)
    view = ExplainLines(_output.terminal_width(), color, arguments.all, chat, alone)
    _output.write_lines(line.rstrip(" ") for line in view.lines(found, word, token, answer))


def _survey(
    arguments: argparse.Namespace, tokenizer: Tokenizer, stream: Any, flags: dict[str, bool]
) -> Survey:
    """The counts of the whole text, and a trace of what is shown."""
    if arguments.html is not None:
        words, tokens, fragments = _WORDS_OF_PAGE, 0, _MOST_FRAGMENTS
    else:
        from ..analysis.views.explain_lines import FRAGMENTS, TOKENS, WORDS

        words, tokens, fragments = WORDS, TOKENS, FRAGMENTS
    # one word more: what the stages cut is not known in full for the last one
    wanted = Wanted(words + 1, tokens, arguments.word, arguments.token)
    return survey(tokenizer, stream, wanted, **flags, fragments=fragments)


def _answer(arguments: argparse.Namespace, whole: Parts) -> WhyNot | None:
    if arguments.why_not is None:
        return None
    piece = os.fsencode(arguments.why_not)
    piece = process_escapes(piece) if arguments.escape else piece
    whole.file.seek(0)
    answer = why_not(whole.tokenizer, whole.file, piece, **whole.flags)
    whole.file.seek(0)
    return answer


def _check_chat(arguments: argparse.Namespace) -> None:
    """`UsageError` for flags that do not go with --chat, or only go with it."""
    require_chat(arguments)
    if arguments.chat is None:
        return
    given = (arguments.text, arguments.prompt, arguments.file)
    if any(text is not None for text in given) or arguments.stdin:
        raise UsageError("give a text or --chat, not both")
    refuse_text_flags(arguments)


def _chosen(arguments: argparse.Namespace, found: Survey) -> tuple[int | None, int | None]:
    """The word and the token that --word and --token ask for, numbered within the traced part."""
    _require_numbers(arguments, found.totals)
    word, token = arguments.word, arguments.token
    return (
        None if word is None else word - found.before.words,
        None if token is None else token - found.before.tokens,
    )


def _require_numbers(arguments: argparse.Namespace, totals: Totals) -> None:
    """`UsageError` for a --word or --token that the text does not have."""
    for noun, number, count in (
        ("word", arguments.word, totals.words),
        ("token", arguments.token, totals.tokens),
    ):
        if number is not None and not 0 <= number < count:
            there = f"there are {noun}s 0 to {count - 1}" if count else f"the text has no {noun}s"
            raise UsageError(f"there is no {noun} {number}: {there}")


def _json(
    arguments: argparse.Namespace, whole: Parts, answer: WhyNot | None, chat: ChatTokens | None
) -> Iterator[str]:
    """What --json prints, in pieces: the trace, the part of it that was asked for, or the answer."""
    if answer is not None:
        return explain_json.of_answer(answer, whole.tokenizer.name)
    if arguments.word is None and arguments.token is None:
        return explain_json.of_parts(whole, chat, merges=arguments.merges)
    _require_numbers(arguments, whole.totals)
    return explain_json.of_one(whole, arguments.word, arguments.token, merges=arguments.merges)
