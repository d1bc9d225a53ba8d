"""Chats as commands take them: the flags, and the body of a request out of a file of messages."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from typing import Any

from ..errors import printable
from ..tokenizer import Tokenizer
from ._arguments import Parser, UsageError, shell_word
from ._input import read_file, read_stdin


def add_chat_flags(parser: Parser) -> None:
    """The flags for tools and for another template."""
    parser.add_argument("--tools", metavar="FILE", help="a JSON array of tools that the model may call")
    add_template_flags(parser)


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
    given = (arguments.tools, arguments.chat_template, arguments.chat_template_file)
    if not arguments.chat and any(each is not None for each in given):
        raise UsageError("--tools, --chat-template and --chat-template-file need a chat: give --chat FILE")


def body_of_file(path: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """The body of a request out of a JSON file, "-" for standard input, with the tools of `--tools`."""
    name = "standard input" if path == "-" else path
    data = read_stdin() if path == "-" else _read_file(path)
    try:
        found = chat_json(data, name)
    except ValueError:
        chats = sum(1 for line in data.split(b"\n") if line.strip())
        if chats > 1 and _has_lines(path):
            raise ValueError(f"{path} has {chats} chats, one a line; this command takes one") from None
        raise
    return with_tools(found, arguments)


def bodies_of_file(path: str, arguments: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any]]]:
    """The chats of a file, each with its place: one, or one a line in a file named .jsonl or .ndjson."""
    if not _has_lines(path):
        yield ("standard input" if path == "-" else path), body_of_file(path, arguments)
        return
    for number, line in enumerate(_read_file(path).split(b"\n"), 1):
        if line.strip():
            where = f"{path}, line {number}"
            yield where, with_tools(chat_json(line, where), arguments)


def _has_lines(path: str) -> bool:
    """Whether a file is named as one with a chat in each line."""
    from ..data.corpora.records import has_json_lines

    return has_json_lines(path)


def _read_file(path: str) -> bytes:
    """All of a file, which may be compressed."""
    from ..data.corpora.records import decompressed

    with open(path, "rb") as raw, decompressed(raw, path) as stream:
        return stream.read()


def with_tools(found: Any, arguments: argparse.Namespace) -> dict[str, Any]:
    """The body of a request out of what JSON says, with the tools of `--tools`."""
    tools = tools_of(arguments)
    return {**_body(found), **({} if tools is None else {"tools": tools})}


def _body(found: Any) -> dict[str, Any]:
    """An object is the body of a request, anything else its messages."""
    return found if isinstance(found, dict) else {"messages": found}


def tools_of(arguments: argparse.Namespace) -> Any:
    """The tools of `--tools`; None if it is not given."""
    path = arguments.tools
    return None if path is None else chat_json(read_file(path), path)


def template_of(arguments: argparse.Namespace, tokenizer: Tokenizer) -> str | None:
    """The template of `--chat-template` or `--chat-template-file`; None if neither is given."""
    given, source = arguments.chat_template, arguments.chat_template_file
    if given is not None and source is not None:
        raise UsageError("--chat-template or --chat-template-file, not both")
    if given is not None:
        return _named_or_text(given, tokenizer)
    if source is None:
        return None
    from ..chat.known_templates import known_source  # not at the top, as in `chat_json`

    if (known := known_source(source)) is not None:
        return known
    try:
        return read_file(source).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{source} is not UTF-8, {error.reason} at byte {error.start}") from None


def _named_or_text(given: str, tokenizer: Tokenizer) -> str:
    """The template that `--chat-template` means. `UsageError` for a path, or for what can only be a misspelt name."""
    from ..chat.known_templates import known_source, nearest_known

    if (known := known_source(given)) is not None:
        return known
    if "{" in given or given == "chatml" or given in tokenizer.chat_templates:
        return given
    if os.path.exists(given):
        raise UsageError(f"{given} is a file: give it as --chat-template-file {shell_word(given)}")
    near = ", ".join(f"known:{name}" for name in nearest_known(given))
    raise UsageError(
        f"{printable(given)} is neither the text of a template nor the name of one; near: {near}"
    )


def chat_json(data: bytes, name: str) -> Any:
    """What a JSON file says; `ValueError` with its name."""
    if not data.strip():
        raise ValueError(f"{name} is empty")
    from ..chat.request.json_text import parsed_file  # not at the top: `count` of texts starts without it

    try:
        return parsed_file(data)
    except ValueError as error:
        raise ValueError(f"{name} is not JSON: {error}") from None
