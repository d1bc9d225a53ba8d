"""`ggufbpe explain`: the way of a text through the steps, to its ids."""

from __future__ import annotations

import argparse
import io
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from tempfile import SpooledTemporaryFile
from typing import Any, BinaryIO

from ..escapes import Unescaped, process_escapes
from ..tokenizer import Tokenizer
from ..trace.parts import Parts
from ..trace.survey import Survey, Wanted, survey
from ..trace.trace import Totals, as_json, to_json
from ..trace.why_not import WhyNot, why_not
from ..trace.why_not import to_json as answer_to_json
from ..views import terminal
from ..views.explain import (
    html,
)
from ..views.explain_lines import FRAGMENTS, TOKENS, WORDS, ExplainLines
from . import _output
from ._arguments import (
    Parser,
    UsageError,
    add_model,
    add_sources,
    add_special_flags,
    model_path,
    overrides_of,
    require_no_models,
)
from ._files import require_folder, require_free, write_file
from ._input import settle_stdin, stdin

_DESCRIPTION = """\
Show how a text becomes tokens: the fragments between special tokens; the words, each with the alternative of the \
pre-tokenizer's pattern that took it; the merges of each word in order, with their ranks; and the ids, with the \
bytes of the text that they stand for.

The text is taken as it is; backslash escapes are read only with --escape. Words and tokens are numbered from 0."""
_EXAMPLES = """\
examples:
  ggufbpe explain "Hello world"
  ggufbpe explain -m model.gguf -f prompt.txt --word 12
  ggufbpe explain -m model.gguf -p "Hello world" --why-not Hell
  ggufbpe explain -m model.gguf -f prompt.txt --html way.html
  ggufbpe explain -m model.gguf --json < prompt.txt"""

_WORDS_OF_PAGE, _MOST_FRAGMENTS = 500, 5000  # on a page
_READ, _IN_MEMORY = 1 << 16, 1 << 20  # bytes


def add_arguments(parser: Parser) -> None:
    parser.describe(_DESCRIPTION, _EXAMPLES)
    add_model(parser)
    parser.add_argument("-p", "--prompt", metavar="TEXT", help="the text")
    add_sources(parser, "the text")
    parser.add_argument("text", nargs="?", help="the text, as with -p")
    parser.add_argument(
        "-e", "--escape", action="store_true", help="process escape sequences such as \\n, also in PIECE"
    )
    add_special_flags(parser)
    part = parser.add_mutually_exclusive_group()
    part.add_argument("--word", type=int, metavar="N", help="show only word N, with all its merges")
    part.add_argument("--token", type=int, metavar="N", help="show only token N, and its word")
    part.add_argument(
        "--why-not",
        metavar="PIECE",
        help='say why this token was not produced; as text (" world") or as the vocabulary has it ("Ġworld")',
    )
    parser.add_argument("--all", action="store_true", help="show all of a long text")
    parser.add_argument("--json", action="store_true", help="print the trace as JSON, all of it")
    parser.add_argument("--html", metavar="FILE", help="write a page instead, self-contained")
    parser.add_argument("--force", action="store_true", help="write the page over an existing file")
    parser.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", help="colour (default: auto)"
    )


def run(arguments: argparse.Namespace) -> int:
    settle_stdin(arguments, "text", "prompt", "file")
    require_no_models([arguments.text or ""], "explain", arguments)
    with _given_text(arguments) as given:
        tokenizer = Tokenizer.from_gguf(model_path(arguments), overrides=overrides_of(arguments))
        stream: Any = given or stdin()
        stream = Unescaped(stream) if arguments.escape else stream
        flags = {"add_special": not arguments.no_bos, "parse_special": arguments.parse_special}
        is_one = arguments.word is not None or arguments.token is not None
        if arguments.why_not is None and not arguments.json and (is_one or not arguments.all):
            _show(arguments, _survey(arguments, tokenizer, stream, flags), None)
            return 0
        with SpooledTemporaryFile(_IN_MEMORY) as file:  # it is read again and again, and may be a pipe
            for part in iter(lambda: stream.read(_READ), b""):
                file.write(part)
            whole = Parts(tokenizer, file, **flags)
            answer = _answer(arguments, whole)
            if arguments.json:
                for text in _json(arguments, whole, answer):
                    _output.write(text.encode())
            elif arguments.all and not is_one:
                _show(arguments, whole, answer)
            else:
                _show(arguments, _survey(arguments, tokenizer, whole.file, flags), answer)
    return 0


def _show(arguments: argparse.Namespace, found: Survey | Parts, answer: WhyNot | None) -> None:
    """The page, or lines on the terminal."""
    if arguments.html is not None:
        count = found.totals.words if arguments.all else _WORDS_OF_PAGE
        write_file(arguments.html, (text.encode() for text in html(found, count, answer)))
        return
    word, token = (None, None) if isinstance(found, Parts) else _chosen(arguments, found)
    view = ExplainLines(_output.terminal_width() or 100, _output.use_color(arguments.color), arguments.all)
    for line in view.lines(found, word, token, answer):
        _output.write(f"{line.rstrip(' ')}\n".encode("utf-8", "replace"))


def _survey(
    arguments: argparse.Namespace, tokenizer: Tokenizer, stream: Any, flags: dict[str, bool]
) -> Survey:
    """The text counted, and traced where it is shown."""
    is_page = arguments.html is not None
    words, tokens = (_WORDS_OF_PAGE, 0) if is_page else (WORDS, TOKENS)
    # one word more, for of the last one not all is seen that the stages cut
    wanted = Wanted(words + 1, tokens, arguments.word, arguments.token)
    fragments = _MOST_FRAGMENTS if is_page else FRAGMENTS
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


@contextmanager
def _given_text(arguments: argparse.Namespace) -> Iterator[BinaryIO | None]:
    """The text of the one source that is given; None for standard input."""
    given = [arguments.text, arguments.prompt, arguments.file]
    if sum(each is not None for each in given) + arguments.stdin != 1:
        raise UsageError("give one text: TEXT, -p TEXT, -f PATH or --stdin (see ggufbpe explain --help)")
    if arguments.html is not None and arguments.json:
        raise UsageError("--html and --json: give one of them")
    if arguments.html is not None and (arguments.word is not None or arguments.token is not None):
        raise UsageError("--html shows all words: leave out --word and --token")
    if arguments.html is not None:
        require_free(arguments.html, arguments.file, arguments.force)
        require_folder(arguments.html)
    if arguments.file is not None:
        with open(arguments.file, "rb") as file:
            yield file
        return
    text = arguments.text if arguments.text is not None else arguments.prompt
    yield None if text is None else io.BytesIO(os.fsencode(text))


def _chosen(arguments: argparse.Namespace, found: Survey) -> tuple[int | None, int | None]:
    """The numbers of the word and the token that --word and --token ask for, in the part that is traced."""
    _require_numbers(arguments, found.totals)
    word, token = arguments.word, arguments.token
    return (
        None if word is None else word - found.before.words,
        None if token is None else token - found.before.tokens,
    )


def _require_numbers(arguments: argparse.Namespace, totals: Totals) -> None:
    """Refuse a --word or --token that the text does not have."""
    for noun, number, count in (
        ("word", arguments.word, totals.words),
        ("token", arguments.token, totals.tokens),
    ):
        if number is not None and not 0 <= number < count:
            there = f"there are {noun}s 0 to {count - 1}" if count else f"the text has no {noun}s"
            raise UsageError(f"there is no {noun} {number}: {there}")


# ---- JSON -----------------------------------------------------------------------------------------------


def _json(arguments: argparse.Namespace, whole: Parts, answer: WhyNot | None) -> Iterator[str]:
    """What --json prints, in pieces: the trace, the part of it that was asked for, or the answer."""
    if answer is not None:
        yield terminal.json_text(answer_to_json(answer), indent=2)
    elif arguments.word is not None or arguments.token is not None:
        _require_numbers(arguments, whole.totals)
        yield terminal.json_text(_one(whole, arguments.word, arguments.token), indent=2)
    else:
        yield from _json_of(whole)
    yield "\n"


def _one(whole: Parts, word: int | None, token: int | None) -> dict[str, Any]:
    """One word, or one token with its word."""
    for before, found in whole.parts:
        if word is not None and word - before.words < len(found.words):
            return as_json(found.words[word - before.words], before)
        if token is not None and token - before.tokens < len(found.tokens):
            one = found.tokens[token - before.tokens]
            in_word = None if one.word is None else as_json(found.words[one.word], before)
            return {**as_json(one, before), "in_word": in_word}
    raise AssertionError("a number that is not in the text")


def _json_of(whole: Parts) -> Iterator[str]:
    """The trace of all, as `to_json` has it; a list at a time, so that none is held."""
    lists: dict[str, Iterable[Any]] = {
        "ids": chain.from_iterable(whole.ids),
        "fragments": (as_json(fragment) for fragment, _ in whole.fragments),
        "words": (as_json(word, before) for before, found in whole.parts for word in found.words),
        "tokens": (as_json(token, before) for before, found in whole.parts for token in found.tokens),
    }
    between = "{\n  "
    for key, value in to_json(whole.model).items():
        yield f'{between}"{key}": '
        between = ",\n  "
        if key == "text":
            yield from _json_text_of(whole)
        elif key in lists:
            yield from _json_list(lists[key])
        else:
            yield terminal.json_text(value, indent=2).replace("\n", "\n  ")
    yield "\n}"


def _json_list(items: Iterable[Any]) -> Iterator[str]:
    is_empty = True
    for item in items:
        yield "[\n    " if is_empty else ",\n    "
        yield terminal.json_text(item, indent=2).replace("\n", "\n    ")
        is_empty = False
    yield "[]" if is_empty else "\n  ]"


def _json_text_of(whole: Parts) -> Iterator[str]:
    """The text, and its bytes where it is not UTF-8."""
    is_utf8 = True
    yield '"'
    for data in whole.text:  # cut between characters
        text = data.decode("utf-8", "replace")
        is_utf8 = is_utf8 and text.encode() == data
        yield terminal.json_text(text)[1:-1]
    yield '"'
    if not is_utf8:
        yield ',\n  "text_bytes": "'
        yield from (data.hex() for data in whole.text)
        yield '"'
