"""Chats that must fit: `--fit`, and a flag for each field of the policy, under its name in Python."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from .._util.errors import ChatTooLongError
from .._util.shell import shell_word
from .._util.wording import counted
from . import _output
from ._arguments import Parser, UsageError

if TYPE_CHECKING:
    from datetime import datetime

    from ..chat.fitting import FittedChat
    from ..tokenizer import Tokenizer

_NUMBERS = ("keep_first", "keep_last", "shorten_to")
_ROLES = ("keep_roles", "shorten")
_POLICY = (*_ROLES, *_NUMBERS, "side", "marker", "note")


def add_fit_flags(parser: Parser) -> None:
    """The flags for a chat that must fit, and for what may be left out or cut."""
    add = parser.add_argument
    parser.add_number(
        "--fit",
        help="leave out the fewest of the oldest turns such that the prompt has at most N tokens; system messages "
        "and the last turn stay, unless the flags below say otherwise",
    )
    parser.add_number("--answer", help="with --fit: of these tokens, leave N for the answer")
    add(
        "--keep-roles",
        metavar="ROLES",
        help="with --fit: roles whose messages always stay, with commas (default: system,developer)",
    )
    parser.add_number("--keep-first", help="with --fit: the first N turns stay (default: 0)")
    parser.add_number("--keep-last", help="with --fit: the last N turns stay (default: 1)")
    add(
        "--shorten",
        metavar="ROLES",
        help="with --fit: before any turn is left out, cut long contents of these roles, such as tool",
    )
    parser.add_number("--shorten-to", help="with --shorten: cut to N tokens (default: 256)")
    add(
        "--side",
        choices=("right", "left", "middle"),
        help="with --shorten: where text is taken away (default: middle)",
    )
    add(
        "--marker",
        metavar="TEXT",
        help="with --shorten: what takes its place (default: … on a line of its own)",
    )
    add(
        "--note",
        metavar="TEXT",
        help="with --fit: put TEXT before the first turn that stays, with {dropped} for the number of messages that "
        "were left out before it",
    )


def check_fit(arguments: argparse.Namespace) -> None:
    """`UsageError` for flags of the policy without `--fit`, and for values that it cannot have."""
    given = _given(arguments)
    needed = "fit" if arguments.fit is None else "shorten" if arguments.shorten is None else ""
    of_it = {"fit": (*_POLICY, "answer"), "shorten": ("shorten_to", "side", "marker"), "": ()}[needed]
    for name in of_it:
        if getattr(arguments, name) is not None:
            value = "ROLES" if needed == "shorten" else "N"
            raise UsageError(f"{_flag(name)} is for --{needed}: give --{needed} {value}")
    for name in ("fit", "answer", *_NUMBERS):
        number = given.get(name, getattr(arguments, name))
        if number is not None and number < 0:
            raise UsageError(f"{_flag(name)} must be 0 or more, not {number}")


def fitted_chat(
    arguments: argparse.Namespace,
    tokenizer: Tokenizer,
    body: dict[str, Any],
    template: str | None,
    now: datetime | None,
) -> tuple[FittedChat, dict[str, Any]]:
    """The chat without the turns that do not fit, and what `--json` says of them; their number is said."""
    from ..chat.fitting import fit_chat

    limit, answer = arguments.fit, arguments.answer or 0
    try:
        found = fit_chat(tokenizer, body, limit, _given(arguments), template, now, answer)
    except ChatTooLongError as error:
        error.reason, error.keep = _in_flags(error), None
        raise
    for numbers, done in ((found.dropped, "left out"), (found.shortened, "cut")):
        if numbers:
            messages = counted(len(numbers), "message was", "messages were")
            _output.note(f"ggufbpe: {messages} {done}; the prompt has {counted(found.count, 'token')}")
    said = {
        "limit": limit,
        "answer": answer,
        "dropped": list(found.dropped),
        "shortened": list(found.shortened),
        "messages": [dict(message) for message in found.messages],
    }
    return found, {"fitted": said}


def _given(arguments: argparse.Namespace) -> dict[str, Any]:
    """The fields of the policy that flags set."""
    given = {name: getattr(arguments, name) for name in _POLICY if getattr(arguments, name) is not None}
    roles = {
        name: [role for role in map(str.strip, given[name].split(",")) if role]
        for name in _ROLES
        if name in given
    }
    return {**given, **roles}


def _in_flags(error: ChatTooLongError) -> str:
    """What the error says, with flags for the policy that it advises."""
    if error.keep is None:
        return error.reason
    values = {
        name: shell_word(",".join(value) if name in _ROLES else str(value))
        for name, value in error.keep.items()
    }
    flags = " ".join(f"{_flag(name)} {value}" for name, value in values.items())
    return f"{error.reason}; {error.remedy_by(flags)}"


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
