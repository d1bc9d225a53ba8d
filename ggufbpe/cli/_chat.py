"""Chats as commands take them: the flags, and the body of a request out of a file of messages."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .._util.errors import printable
from .._util.shell import shell_word
from ..chat.request.body import body_with_fields
from ..data.corpora.records import decompressed, has_json_lines
from ..gguf.reader import GGUFFile
from ..hub.model_location import ModelName, locate
from ..tokenizer import Tokenizer
from . import _output
from ._arguments import Parser, UsageError
from ._input import read_file, read_stdin

if TYPE_CHECKING:
    from datetime import datetime


_OF_CHATS = (
    *("--tools", "--chat-template-kwargs", "--no-generation-prompt", "--date"),
    *("--chat-template", "--chat-template-file", "--mmproj"),
)


def refuse_text_flags(arguments: argparse.Namespace) -> None:
    """Raise `UsageError` if there are flags that say how a text is encoded: a chat decides that itself."""
    given = {
        "--no-bos": arguments.no_bos,
        "--no-parse-special": not arguments.parse_special,
        "--escape": getattr(arguments, "escape", False),
    }
    if flags := [flag for flag, is_given in given.items() if is_given]:
        escapes = ", and escape sequences are not processed" if "--escape" in flags else ""
        raise UsageError(
            f"special tokens are always added and parsed in chats{escapes}: leave out {' and '.join(flags)}"
        )


def add_chat_flags(parser: Parser) -> None:
    """The flags for fields of a request and for another template."""
    parser.add_argument("--tools", metavar="FILE", help="a JSON array of tools that the model may call")
    parser.add_argument(
        "--chat-template-kwargs",
        metavar="JSON",
        help="an object of values for the template, such as '{\"enable_thinking\": false}'",
    )
    parser.add_switch("--no-generation-prompt", help="do not begin an answer at the end of the prompt")
    add_template_flags(parser)


def add_date(parser: Parser) -> None:
    """The flag for templates that write the date."""
    parser.add_argument(
        "--date",
        metavar="DATE",
        help="the day or time for templates that write it, such as 2026-07-01 (default: now)",
    )


def add_media_flags(parser: Parser) -> None:
    """The flags for chats with images and audio."""
    parser.add_argument(
        "--mmproj",
        metavar="FILE",
        help="count images and audio as llama-server does with this projector, from their headers alone",
    )
    parser.add_argument(
        "--media-path",
        metavar="DIR",
        help="the folder of files that messages may name by file:// (default: none)",
    )


def check_media(arguments: argparse.Namespace) -> None:
    """`UsageError` for `--media-path` without `--mmproj`."""
    if arguments.media_path is not None and arguments.mmproj is None:
        raise UsageError("--media-path is for images and audio: give --mmproj")


def warn_of_mismatch(mmproj: str, model: ModelName) -> None:
    """Warn if llama-server would refuse a projector for a model."""
    from ..chat.media.model_match import embedding_mismatch

    with GGUFFile(locate(model).opened()) as file:
        if problem := embedding_mismatch(mmproj, file):
            _output.warning(problem)


def add_template_flags(parser: Parser) -> None:
    """The flags for a template in place of the model's."""
    parser.add_argument(
        "--chat-template",
        metavar="TEMPLATE",
        help="use this template instead of the model's: its text, known:NAME for llama.cpp's template of that name "
        "(models/templates; known:chatml), or the name of one in the file, such as tool_use",
    )
    parser.add_argument(
        "--chat-template-file", metavar="FILE", help="use the template in this file, or known:NAME"
    )


def require_chat(arguments: argparse.Namespace) -> None:
    """`UsageError` for these flags without `--chat`."""
    if arguments.chat:
        return
    for flag in _OF_CHATS:
        if getattr(arguments, flag[2:].replace("-", "_"), None) not in (None, False):
            raise UsageError(f"{flag} needs a chat: give --chat FILE")


def body_of_file(path: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """The body of a request out of a JSON file, "-" for standard input, with the fields that flags set."""
    from ..data.corpora.chat_records import request_body_of  # not at the top, as in `chat_json`

    name = "standard input" if path == "-" else path
    data = read_stdin() if path == "-" else _read_file(path)
    try:
        found = chat_json(data, name)
    except ValueError:
        chats = sum(1 for line in data.split(b"\n") if line.strip())
        if chats > 1 and has_json_lines(path):
            raise ValueError(f"{path} has {chats} chats, one a line; this command takes one") from None
        raise
    return body_with_fields(request_body_of(found), request_fields(arguments))


def bodies_of_file(path: str, arguments: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any]]]:
    """The chats of a file, each with its place: one, or one a line in a file named .jsonl or .ndjson."""
    if not has_json_lines(path):
        yield ("standard input" if path == "-" else path), body_of_file(path, arguments)
        return
    from ..data.corpora.chat_records import request_body_of

    fields = request_fields(arguments)
    for number, line in enumerate(_read_file(path).split(b"\n"), 1):
        if line.strip():
            where = f"{path}, line {number}"
            yield where, body_with_fields(request_body_of(chat_json(line, where)), fields)


def _read_file(path: str) -> bytes:
    """All of a file, which may be compressed."""
    with open(path, "rb") as raw, decompressed(raw, path) as stream:
        return stream.read()


def request_fields(arguments: argparse.Namespace) -> dict[str, Any]:
    """The fields of a request that flags set."""
    fields: dict[str, Any] = {}
    if arguments.tools is not None:
        fields["tools"] = chat_json(read_file(arguments.tools), arguments.tools)
    if arguments.no_generation_prompt:
        fields["add_generation_prompt"] = False
    if arguments.chat_template_kwargs is not None:
        given = chat_json(os.fsencode(arguments.chat_template_kwargs), "--chat-template-kwargs")
        if not isinstance(given, dict):
            raise UsageError(
                "--chat-template-kwargs takes a JSON object, such as '{\"enable_thinking\": false}'"
            )
        fields["chat_template_kwargs"] = given
    return fields


def date_of(arguments: argparse.Namespace) -> datetime | None:
    """The time of `--date`; None if it is not given."""
    if arguments.date is None:
        return None
    from datetime import datetime

    try:
        return datetime.fromisoformat(arguments.date)
    except ValueError:
        raise UsageError(
            f"--date takes a day or time such as 2026-07-01 or 2026-07-01T09:30, not {printable(arguments.date)}"
        ) from None


def template_of(arguments: argparse.Namespace, tokenizer: Tokenizer) -> str | None:
    """The template of `--chat-template` or `--chat-template-file`; None if neither is given."""
    given, source = arguments.chat_template, arguments.chat_template_file
    if given is not None and source is not None:
        raise UsageError("--chat-template or --chat-template-file, not both")
    if given is not None:
        return _named_or_text(given, tokenizer)
    if source is None:
        return None
    from ..chat.known_templates import file_text, known_source  # not at the top, as in `chat_json`

    known = known_source(source)
    return file_text(source) if known is None else known


def _named_or_text(given: str, tokenizer: Tokenizer) -> str:
    """The template that `--chat-template` means. `ValueError` for a path, or for what can only be a misspelt name."""
    from ..chat.known_templates import check_is_template, is_template, known_source

    if (known := known_source(given)) is not None:
        return known
    if given not in tokenizer.chat_templates:
        if not is_template(given) and os.path.exists(given):
            raise UsageError(f"{given} is a file: give it as --chat-template-file {shell_word(given)}")
        check_is_template(given)
    return given


def chat_json(data: bytes, name: str) -> Any:
    """What a JSON file says; `ValueError` with its name."""
    if not data.strip():
        raise ValueError(f"{name} is empty")
    from ..chat.request.json_text import parsed_file  # not at the top: `count` of texts starts without it

    try:
        return parsed_file(data)
    except ValueError as error:
        raise ValueError(f"{name} is not JSON: {error}") from None
