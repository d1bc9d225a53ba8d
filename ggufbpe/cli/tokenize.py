"""`ggufbpe tokenize`: the ids of a text, byte for byte as llama-tokenize prints them.

Source: tools/tokenize/tokenize.cpp; for the flags, common/arg.cpp.
"""

from __future__ import annotations

import argparse
import os

from ..escapes import process_escapes
from ..tokenizer import Tokenizer
from . import _output
from ._arguments import Parser, UsageError, add_model, add_sources, add_special_flags, model_path
from ._input import read_file, read_stdin

_DESCRIPTION = """\
Print the tokens of a text. The flags are llama-tokenize's, and so is the output, byte for byte: `diff` of the \
two is empty. Only on a terminal are the pieces coloured, with control characters escaped.

The text is taken from standard input with --stdin, else from the file of -f, else from -p. Escape sequences \
(\\n \\r \\t \\' \\" \\\\ \\xHH) are processed in all three, unless --no-escape is given."""
_EXAMPLES = """\
examples:
  ggufbpe tokenize "Hello world"
  ggufbpe tokenize -m model.gguf -p "<|im_start|>user\\nHi" --ids
  ggufbpe tokenize -m model.gguf -f prompt.txt --no-escape --show-count
  cat prompt.txt | ggufbpe tokenize -m model.gguf --stdin --json
  diff <(ggufbpe tokenize -m model.gguf -p "Hi") <(llama-tokenize -m model.gguf -p "Hi")"""

_BACKGROUNDS = ("\x1b[30;46m", "\x1b[30;43m", "\x1b[30;42m", "\x1b[30;45m")  # black on a colour, in turn
_SPECIAL = "\x1b[1;7m"  # special tokens: bold, reversed


def add_arguments(parser: Parser) -> None:
    parser.describe(_DESCRIPTION, _EXAMPLES)
    add_model(parser)
    parser.add_argument("-p", "--prompt", metavar="TEXT", help="the text")
    add_sources(parser, "the text")
    parser.add_argument("text", nargs="?", help="the text, as with -p")
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--ids", action="store_true", help="print only the ids, as [1, 2, 3]")
    shape.add_argument(
        "--json",
        action="store_true",
        help="print objects of id, piece, start and end (in bytes of the text); also bytes, in hexadecimal, "
        "where a piece is not UTF-8",
    )
    add_special_flags(parser)
    parser.add_argument(
        "-e", "--escape", action="store_true", default=True, help="process escape sequences (the default)"
    )
    parser.add_argument(
        "--no-escape", dest="escape", action="store_false", help="take backslashes as they are"
    )
    parser.add_argument("--show-count", action="store_true", help="print the number of tokens at the end")
    parser.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="colour the pieces (default: auto)",
    )


def run(arguments: argparse.Namespace) -> int:
    _check(arguments)
    text = _given_text(arguments)
    tokenizer = Tokenizer.from_gguf(model_path(arguments))
    if text is None:  # only now: a model that cannot be opened should not cost the user's typing
        text = read_stdin()
    if arguments.escape:
        text = process_escapes(text)
    # llama-tokenize passes "add BOS" as "add special tokens", so where there is no BOS there is no EOS
    flags = {
        "add_special": tokenizer.add_bos and not arguments.no_bos,
        "parse_special": arguments.parse_special,
    }
    if arguments.json:
        _output.write(_output.json_bytes(_objects(tokenizer, text, flags)))
        return 0
    ids = tokenizer.encode(text, **flags)
    if arguments.ids:
        _output.write(b"%a\n" % ids)
    elif _output.use_color(arguments.color):
        _write_colored(tokenizer, ids)
    else:
        lines = _Lines(tokenizer)
        _output.write(b"".join(map(lines.__getitem__, ids)))
    if arguments.show_count:
        _output.write(b"Total number of tokens: %d\n" % len(ids))
    return 0


def _check(arguments: argparse.Namespace) -> None:
    if arguments.json and arguments.show_count:
        raise UsageError("--show-count does not go with --json, whose output is one list")
    if arguments.text is not None and (
        arguments.prompt is not None or arguments.file is not None or arguments.stdin
    ):
        raise UsageError("a text and one of -p, -f, --stdin: give one of them")


def _given_text(arguments: argparse.Namespace) -> bytes | None:
    """The text of -f, -p or the argument; an empty one of the latter two is no text, as in llama-tokenize.

    None if it is to come from standard input; a file that is named must be readable even so.
    """
    data = read_file(arguments.file) if arguments.file is not None else None
    if arguments.stdin or data is not None:
        return None if arguments.stdin else data
    text = arguments.prompt if arguments.prompt is not None else arguments.text
    if not text:
        problem = "no text" if text is None else "an empty text (only a file or standard input may be empty)"
        raise UsageError(f"{problem}: give -p TEXT, -f PATH or --stdin (see ggufbpe tokenize --help)")
    return os.fsencode(text)


class _Lines(dict[int, bytes]):
    """The line that llama-tokenize prints for a token. The piece is a C string there: it ends at a NUL."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__()
        self._tokenizer = tokenizer

    def __missing__(self, token: int) -> bytes:
        piece = self._tokenizer.token_to_piece(token).partition(b"\0")[0]
        line = self[token] = b"%6d -> '%b'\n" % (token, piece)
        return line


def _write_colored(tokenizer: Tokenizer, ids: list[int]) -> None:
    special = set(tokenizer.vocabulary.special_token_ids)
    for index, token in enumerate(ids):
        color = _SPECIAL if token in special else _BACKGROUNDS[index % len(_BACKGROUNDS)]
        piece = _output.visible(tokenizer.token_to_piece(token))
        reset, dim = _output.RESET, _output.DIM
        _output.write(f"{token:6} {dim}->{reset} '{color}{piece}{reset}'\n".encode())


def _objects(tokenizer: Tokenizer, text: bytes, flags: dict[str, bool]) -> list[dict[str, object]]:
    objects: list[dict[str, object]] = []
    for token, (start, end) in zip(*tokenizer.encode_with_offsets(text, **flags)):
        data = tokenizer.token_to_piece(token)
        piece = data.decode("utf-8", "replace")
        item: dict[str, object] = {"id": token, "piece": piece}
        if piece.encode() != data:
            item["bytes"] = data.hex()
        objects.append({**item, "start": start, "end": end})
    return objects
