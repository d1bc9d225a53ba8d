"""`ggufbpe tokenize`: the ids of a text, byte for byte as llama-tokenize prints them.

Source: tools/tokenize/tokenize.cpp; for the flags, common/arg.cpp.
"""

from __future__ import annotations

import argparse
import io
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from itertools import chain
from typing import Any, BinaryIO

from .._util.escapes import Unescaped
from .._util.wording import counted
from ..analysis.views import terminal
from ..native import native
from ..tokenizer import Tokenizer
from ..tokenizer.chunking import added_ids, chunks_of_stream, ids_of_chunks
from ..tokenizer.token_offsets import Spans, spans
from . import _output
from ._arguments import Parser, UsageError, require_no_models
from ._classic import classic_trace, classic_vocabulary, write_tokens
from ._given_models import opened_tokenizer
from ._input import opened_file, settle_stdin, stdin
from ._llama_flags import IGNORED

_BACKGROUNDS = ("\x1b[30;46m", "\x1b[30;43m", "\x1b[30;42m", "\x1b[30;45m")  # black on a colour, in turn
_SPECIAL = "\x1b[1;7m"  # special tokens: bold, reversed
_DIM, _RESET = "\x1b[2m", "\x1b[0m"


def add_arguments(parser: Parser) -> None:
    parser.ignored = IGNORED
    parser.add_model()
    parser.add_llama_cpp()
    parser.add_text()
    parser.add_argument(
        "-bf", "--binary-file", dest="file", metavar="PATH", help="the same as -f, as in llama.cpp"
    )
    parser.add_argument("text", nargs="?", help="the text, as with -p")
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--ids", action="store_true", help="print only the ids, as [1, 2, 3]")
    shape.add_argument(
        "--json",
        action="store_true",
        help="print objects of id, piece, start and end (in bytes of the text); also bytes, in hexadecimal, "
        "if a piece is not UTF-8",
    )
    parser.add_special_flags()
    parser.add_argument(
        "-e", "--escape", action="store_true", default=None, help="process escape sequences (the default)"
    )
    parser.add_argument(
        "--no-escape", dest="escape", action="store_false", default=None, help="keep backslashes as they are"
    )
    parser.add_switch("--show-count", help="print the number of tokens at the end")
    parser.add_color("colour the pieces")


def run(arguments: argparse.Namespace) -> int:
    _check(arguments)
    classic = classic_vocabulary(arguments)
    with _given_text(arguments) as given:
        if classic is not None:
            text: Any = given or stdin()
            text = text if arguments.escape is False else Unescaped(text)
            write_tokens(classic_trace(classic, text, arguments), arguments)
            return 0
        tokenizer = opened_tokenizer(arguments)
        stream: Any = given or stdin()  # only now, so that a model that cannot be opened costs no typing
        unescaped = None if arguments.escape is False else Unescaped(stream)
        parts = _Parts(tokenizer, unescaped or stream, arguments)
        if arguments.json:
            _write_objects(tokenizer, parts.spans())
        elif arguments.ids:
            _write_ids(parts.ids())
        elif _output.use_color(arguments.color):
            _write_colored(tokenizer, parts.ids())
        else:
            line = cache(partial(_line, tokenizer))
            for ids in parts.ids():
                _output.write(b"".join(map(line, ids)))
    if arguments.show_count:
        _output.write(b"Total number of tokens: %d\n" % parts.count)
    if unescaped is not None and unescaped.processed and arguments.escape is None:
        were = counted(unescaped.processed, "escape sequence was", "escape sequences were")
        _output.note(
            f"ggufbpe: {were} processed, as by llama-tokenize; --no-escape keeps the backslashes, and -e says that "
            "this is meant"
        )
    return 0


class _Parts:
    """The tokens of a text, chunk by chunk, so that memory does not grow with it; added tokens come separately."""

    def __init__(self, tokenizer: Tokenizer, stream: Any, arguments: argparse.Namespace) -> None:
        self._tokenizer = tokenizer
        self._parse_special = arguments.parse_special
        self._chunks = chunks_of_stream(stream, [tokenizer], self._parse_special, continues=True)
        # llama-tokenize passes "add BOS" as "add special tokens", so without BOS there is no EOS
        self._before, self._behind = ([], []) if arguments.no_bos else added_ids(tokenizer)
        self.count = 0

    def ids(self) -> Iterator[list[int]]:
        yield self._counted(self._before)
        yield from map(self._counted, ids_of_chunks(self._tokenizer, self._chunks, self._parse_special))
        yield self._counted(self._behind)

    def spans(self) -> Iterator[Spans]:
        """Yield ids with their offsets in the whole text, chunk by chunk."""
        yield Spans(self._before, [0] * len(self._before), [0] * len(self._before))
        at = 0
        for chunk in self._chunks:
            yield spans(self._tokenizer, chunk, self._parse_special, at)
            at += len(chunk)
        yield Spans(self._behind, [at] * len(self._behind), [at] * len(self._behind))

    def _counted(self, ids: list[int]) -> list[int]:
        self.count += len(ids)
        return ids


def _write_ids(parts: Iterator[list[int]]) -> None:
    """`[1, 2, 3]`."""
    before = b"["
    for ids in parts:
        if ids:
            _output.write(before + (b"%a" % ids)[1:-1])
            before = b", "
    _output.write(b"]\n" if before == b", " else b"[]\n")


def _check(arguments: argparse.Namespace) -> None:
    settle_stdin(arguments, "text", "prompt", "file")
    require_no_models([arguments.text or ""], "tokenize", arguments)
    if arguments.json and arguments.show_count:
        raise UsageError("--show-count cannot be used with --json, whose output is one list")
    if arguments.text is not None and (
        arguments.prompt is not None or arguments.file is not None or arguments.stdin
    ):
        raise UsageError("a text and one of -p, -f, --stdin: give one of them")


@contextmanager
def _given_text(arguments: argparse.Namespace) -> Iterator[BinaryIO | None]:
    """The text of -f, -p or the argument; an empty one of the latter two counts as none, as in llama-tokenize.

    None to read standard input instead; a file that is named must be readable even so.
    """
    if arguments.file is not None:
        with opened_file(arguments.file) as file:
            yield None if arguments.stdin else file
        return
    text = arguments.prompt if arguments.prompt is not None else arguments.text
    if not text and not arguments.stdin:
        problem = "no text" if text is None else "an empty text (only a file or standard input may be empty)"
        raise UsageError(f"{problem}: give -p TEXT, -f PATH or --stdin (see ggufbpe tokenize --help)")
    yield None if arguments.stdin else io.BytesIO(os.fsencode(text))


def _line(tokenizer: Tokenizer, token: int) -> bytes:
    """What llama-tokenize prints for a token. It prints the piece as a C string, which ends at a NUL."""
    return b"%6d -> '%b'\n" % (token, tokenizer.token_to_piece(token).partition(b"\0")[0])


def _write_colored(tokenizer: Tokenizer, parts: Iterable[list[int]]) -> None:
    special = set(tokenizer.vocabulary.special_token_ids)
    for index, token in enumerate(chain.from_iterable(parts)):
        color = _SPECIAL if token in special else _BACKGROUNDS[index % len(_BACKGROUNDS)]
        piece = terminal.visible(tokenizer.token_to_piece(token))
        _output.write(f"{token:6} {_DIM}->{_RESET} '{color}{piece}{_RESET}'\n".encode())


def _head(tokenizer: Tokenizer, token: int) -> bytes:
    """A token's JSON object up to its offsets, preceded by a comma."""
    data = tokenizer.token_to_piece(token)
    piece = data.decode("utf-8", "replace")
    item: dict[str, object] = {"id": token, "piece": piece}
    if piece.encode() != data:
        item["bytes"] = data.hex()
    return f',\n{terminal.json_text(item)[:-1]}, "start": '.encode()


def _write_objects(tokenizer: Tokenizer, parts: Iterator[Spans]) -> None:
    """A JSON list, as `terminal.json_bytes` would write all of it."""
    heads: dict[int, bytes] = {}
    begun = False
    for ids, starts, ends in parts:
        if not ids:
            continue
        for token in set(ids).difference(heads):
            heads[token] = _head(tokenizer, token)
        if native is None:
            rows = b"".join(b'%b%d, "end": %d}' % (heads[i], a, b) for i, a, b in zip(ids, starts, ends))
        else:
            rows = native.rows(heads, ids, starts, ends, b', "end": ', b"}")
        _output.write(rows if begun else b"[" + rows[1:])
        begun = True
    _output.write(b"\n]\n" if begun else b"[]\n")
