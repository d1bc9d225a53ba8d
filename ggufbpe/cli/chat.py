"""`ggufbpe chat`: the prompt that llama-server makes of messages, its ids, or their number."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from typing import TYPE_CHECKING, Any

from .._util.shell import shell_word
from .._util.wording import counted
from ..analysis.views.answers import answer
from ..chat.request.body import body_with_fields
from ..chat.token_origins import chat_tokens
from ..tokenizer import Tokenizer
from . import _chat, _output
from ._arguments import Parser, UsageError, overrides_of, require_no_models
from ._fit import add_fit_flags, check_fit, fitted_chat
from ._given_models import model_path
from ._input import settle_stdin
from ._ollama_chat import add_ollama_flags, run_ollama, says_which_template

if TYPE_CHECKING:
    from datetime import datetime


def add_arguments(parser: Parser) -> None:
    parser.add_model()
    parser.add_argument("file", nargs="?", metavar="FILE", help="the chat as JSON; - is standard input")
    parser.add_argument("-p", dest="user", metavar="TEXT", help="a chat of one user message")
    parser.add_stdin("read the chat from")
    parser.add_argument("--system", metavar="TEXT", help="a system message before all others")
    _chat.add_chat_flags(parser)
    _chat.add_date(parser)
    add_ollama_flags(parser)
    parser.add_switch("--list-templates", help="list llama.cpp's templates, which known:NAME names")
    add_fit_flags(parser)
    _chat.add_media_flags(parser)
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--prompt", action="store_true", help="print only the prompt, without colour")
    shape.add_argument("--ids", action="store_true", help="print only the ids, as [1, 2, 3]")
    shape.add_argument("--count", action="store_true", help="print only the number of tokens")
    shape.add_argument("--by-message", action="store_true", help="print only the table of tokens by message")
    shape.add_argument(
        "--json",
        action="store_true",
        help="print an object of prompt, ids, count, and where each part comes from",
    )
    parser.add_color()


def run(arguments: argparse.Namespace) -> int:
    if arguments.list_templates:
        return _list_templates(arguments)
    settle_stdin(arguments, "file", "user")
    require_no_models([arguments.file or ""], "chat", arguments, "a chat")
    if (arguments.file is not None) + (arguments.user is not None) + arguments.stdin != 1:
        raise UsageError("give one chat: a FILE, -p TEXT or --stdin (see ggufbpe chat --help)")
    if arguments.file is not None and not os.path.lexists(arguments.file):
        meant = f"a message of the user is given as -p {shell_word(arguments.file)}"
        raise UsageError(f"{arguments.file}: {os.strerror(errno.ENOENT)}; {meant}")
    body = _body(arguments)
    model = model_path(arguments)
    tokenizer = Tokenizer.from_gguf(model, overrides=overrides_of(arguments))
    _chat.check_media(arguments)
    check_fit(arguments)
    if arguments.ollama or arguments.ollama_diff:
        if arguments.mmproj is not None:
            raise UsageError("--mmproj counts as llama-server does: leave out --ollama and --ollama-diff")
        return run_ollama(arguments, tokenizer, model, body)
    if said := says_which_template(tokenizer, model):
        _output.note(f"ggufbpe: {said}; the prompt below is llama-server's (--ollama prints Ollama's)")
    template, now = _chat.template_of(arguments, tokenizer), _chat.date_of(arguments)
    if arguments.mmproj is not None:
        code = _count_media(arguments, tokenizer, body, template, now)
        _chat.warn_of_mismatch(arguments.mmproj, model)
        return code
    fitted: dict[str, Any] = {}
    if arguments.fit is not None:
        chat, fitted = fitted_chat(arguments, tokenizer, body, template, now)
        found = chat.tokens
    else:
        found = chat_tokens(tokenizer, tokenizer.chats.parts(body, template, now))
    _say_what_is_missing(tokenizer, body, template)
    for injected in found.injected:
        _output.warning(injected.in_words())
    if arguments.ids or arguments.count:
        _output.write(f"{len(found.ids) if arguments.count else found.ids}\n".encode())
    elif arguments.json:
        _output.write_json(answer({**found.to_dict(), **fitted}, model=tokenizer.name))
    elif arguments.by_message or (not arguments.prompt and _is_shown(arguments.color)):
        from ..analysis.views.chat_lines import chat_lines

        color = _output.use_color(arguments.color)
        width = _output.terminal_width()
        _output.write_lines(chat_lines(found, prompt=not arguments.by_message, color=color, width=width))
    else:
        _output.write(found.rendered.prompt)
    return 0


def _count_media(
    arguments: argparse.Namespace,
    tokenizer: Tokenizer,
    body: dict[str, Any],
    template: str | None,
    now: datetime | None,
) -> int:
    """Print the tokens of a chat with images and audio: their number, an object, or a line for each of them."""
    if arguments.ids or arguments.by_message or arguments.fit is not None:
        raise UsageError(
            "images and audio have no ids: with --mmproj, leave out --ids, --by-message and --fit"
        )
    from ..chat.media.chat_media import count_with_media

    found = count_with_media(tokenizer, body, arguments.mmproj, arguments.media_path, template, now)
    _say_what_is_missing(tokenizer, body, template)
    if arguments.json:
        _output.write_json(answer(found.to_dict(), model=tokenizer.name))
    elif arguments.count:
        _output.write(f"{found.count}\n".encode())
    elif arguments.prompt:
        _output.write(found.prompt)
    else:
        for number, image in enumerate(found.images, 1):
            around = f" and {image.marks} around it" if image.marks else ""
            size = f"{image.width} x {image.height}"
            _output.write(f"image {number}, {size}: {counted(image.image, 'token')}{around}\n".encode())
        for number, sound in enumerate(found.audio, 1):
            around = f" and {sound.marks} around it" if sound.marks else ""
            size = f"{sound.samples} samples"
            _output.write(f"audio {number}, {size}: {counted(sound.audio, 'token')}{around}\n".encode())
        _output.write(f"{counted(found.count, 'token')} in all\n".encode())
    return 0


def _list_templates(arguments: argparse.Namespace) -> int:
    """The names of llama.cpp's templates, each with the models that it belongs to."""
    from ..chat.known_templates import known_templates

    models = {"chatml": (), **{name: each.models for name, each in sorted(known_templates().items())}}
    if arguments.json:
        templates = [{"name": f"known:{name}", "models": list(of)} for name, of in models.items()]
        _output.write_json(answer({"templates": templates}))
        return 0
    width = max(map(len, models))
    _output.write_lines(f"known:{name:{width}}  {', '.join(of)}".rstrip() for name, of in models.items())
    return 0


def _is_shown(color: str) -> bool:
    """Whether someone looks at the prompt: at a terminal, or with a pager that shows colour."""
    return color == "always" or _output.is_terminal(sys.stdout)


def _say_what_is_missing(tokenizer: Tokenizer, body: dict[str, Any], template: str | None) -> None:
    if template is None and not tokenizer.chat_templates:
        _output.note("ggufbpe: the model has no chat template; like llama-server, this uses ChatML")
    if body.get("tools") and not tokenizer.chats.shows_tools(template):
        _output.note("ggufbpe: the template does not show the tools")


def _body(arguments: argparse.Namespace) -> dict[str, Any]:
    """The body of a request out of the arguments."""
    if arguments.user is not None:
        body = body_with_fields(
            [{"role": "user", "content": arguments.user}], _chat.request_fields(arguments)
        )
    else:
        body = _chat.body_of_file("-" if arguments.stdin else arguments.file, arguments)
    if arguments.system is not None and isinstance(body.get("messages"), list):
        first = {"role": "system", "content": arguments.system}
        body = {**body, "messages": [first, *body["messages"]]}
    return body
