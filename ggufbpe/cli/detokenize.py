"""`ggufbpe detokenize`: the text of ids, as llama_detokenize gives it."""

from __future__ import annotations

import argparse
import re
import sys

from .._util.errors import printable
from .._util.utf8 import text_fields
from ..analysis.views.answers import answer
from . import _output
from ._arguments import Parser, UsageError, require_no_models
from ._given_models import opened_tokenizer
from ._input import read_file, read_stdin, settle_stdin

_SEPARATOR = re.compile(r"[\s,]+")
_NUMBER = re.compile(r"[+-]?[0-9]{1,20}")


def add_arguments(parser: Parser) -> None:
    parser.add_model()
    parser.add_sources("the ids")
    parser.add_argument("ids", nargs="*", metavar="ID", help="token ids")
    parser.add_switch("--remove-special", help="leave out the BOS and EOS that encoding adds")
    parser.add_switch("--unparse-special", help="show special tokens as their text instead of nothing")
    parser.add_switch(
        "--json", help="print one object: model, ids, text, and text_bytes if that is not UTF-8"
    )


def run(arguments: argparse.Namespace) -> int:
    settle_stdin(arguments, "ids", "file")
    require_no_models(arguments.ids, "detokenize", arguments, "an id")
    if bool(arguments.ids) + (arguments.file is not None) + arguments.stdin != 1:
        raise UsageError("give ids, or -f PATH, or --stdin: one of them (see ggufbpe detokenize --help)")
    ids = None if arguments.stdin else _parse_ids(_given_text(arguments))
    tokenizer = opened_tokenizer(arguments)
    if ids is None:
        ids = _parse_ids(_text(read_stdin()))
    text = tokenizer.decode_bytes(
        ids, remove_special=arguments.remove_special, unparse_special=arguments.unparse_special
    )
    if arguments.json:
        _output.write_json(answer({"ids": ids, **text_fields("text", text)}, model=tokenizer.name))
        return 0
    if _output.is_terminal(sys.stdout) and not text.endswith(b"\n"):
        text += b"\n"
    _output.write(text)
    return 0


def _given_text(arguments: argparse.Namespace) -> str:
    return " ".join(arguments.ids) if arguments.ids else _text(read_file(arguments.file))


def _text(data: bytes) -> str:
    return data.decode("utf-8-sig", "backslashreplace")


def _parse_ids(text: str) -> list[int]:
    """The numbers in `text`.

    >>> _parse_ids("[1, 2]"), _parse_ids("1,2 3"), _parse_ids("[]")
    ([1, 2], [1, 2, 3], [])
    """
    text = text.strip()
    if text[:1] == "[":
        if text[-1] != "]":
            raise ValueError("the list of ids that begins with [ does not end with ]")
        text = text[1:-1]
    words = [word for word in _SEPARATOR.split(text) if word]
    for index, word in enumerate(words):
        if not _NUMBER.fullmatch(word):
            raise ValueError(f"{printable(word, 40)} is not a token id (item {index + 1} of {len(words)})")
    return list(map(int, words))
