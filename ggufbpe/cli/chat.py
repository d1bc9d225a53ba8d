"""`ggufbpe chat`: the prompt that llama-server makes of messages, its ids, or their number."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from ..chat.json_text import JSONError, parsed
from ..tokenizer import Tokenizer
from ..views import terminal
from . import _output
from ._arguments import Parser, UsageError, add_model, model_path, overrides_of
from ._input import read_file, read_stdin

_DESCRIPTION = """\
Print the prompt that `llama-server --jinja` makes of a chat: of messages in OpenAI's form, a JSON array, or of the \
whole body of a request, a JSON object with "messages" and what else llama-server takes. What llama-server refuses \
is refused, with its reason.

The template is that of the model's file, or the one of ChatML where it has none."""
_EXAMPLES = """\
examples:
  ggufbpe chat -m model.gguf messages.json
  ggufbpe chat -m model.gguf --system "You are terse." -p "What is 2 + 2?" --count
  ggufbpe chat -m model.gguf messages.json --tools tools.json --ids
  ggufbpe chat -m model.gguf -p Hi --chat-template-file template.jinja
  cat request.json | ggufbpe chat -m model.gguf - --json"""


def add_arguments(parser: Parser) -> None:
    parser.describe(_DESCRIPTION, _EXAMPLES)
    add_model(parser)
    parser.add_argument("file", nargs="?", metavar="FILE", help="the chat as JSON; - is standard input")
    parser.add_argument("-p", dest="user", metavar="TEXT", help="a chat of one message by the user")
    parser.add_argument("--system", metavar="TEXT", help="a message by the system before all others")
    parser.add_argument("--tools", metavar="FILE", help="a JSON array of tools that the model may call")
    parser.add_argument(
        "--chat-template-file", metavar="FILE", help="a template in place of the one in the model's file"
    )
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--prompt", action="store_true", help="print the prompt (the default)")
    shape.add_argument("--ids", action="store_true", help="print only the ids, as [1, 2, 3]")
    shape.add_argument("--count", action="store_true", help="print only the number of tokens")
    shape.add_argument("--json", action="store_true", help="print an object of prompt, ids and count")


def run(arguments: argparse.Namespace) -> int:
    if (arguments.file is None) == (arguments.user is None):
        raise UsageError("give a FILE, or - for standard input, or -p TEXT: one of them")
    body = _body(arguments)
    source = arguments.chat_template_file
    template = None if source is None else _text(read_file(source), source)
    model = model_path(arguments)
    if not isinstance(model, str) and model.note:
        _output.note(f"ggufbpe: {model.note}")
    tokenizer = Tokenizer.from_gguf(model, overrides=overrides_of(arguments))
    prompt = tokenizer.chats.prompt(body, template)
    if template is None and not tokenizer.chat_templates:
        _output.note("ggufbpe: the model has no chat template, so this is ChatML, as llama-server takes")
    if body.get("tools") and not tokenizer.chats.shows_tools(template):
        _output.note("ggufbpe: the template does not show the tools")
    if arguments.ids or arguments.count or arguments.json:
        ids = tokenizer.encode(prompt)
        if arguments.json:
            text = prompt.decode("utf-8", "replace")
            _output.write(terminal.json_bytes({"prompt": text, "ids": ids, "count": len(ids)}))
        else:
            _output.write(f"{len(ids) if arguments.count else ids}\n".encode())
    elif _output.is_terminal(sys.stdout):
        lines = (terminal.visible(line) for line in prompt.split(b"\n"))
        _output.write("\n".join(lines).encode() + b"\n")
    else:
        _output.write(prompt)
    return 0


def _body(arguments: argparse.Namespace) -> dict[str, Any]:
    """The body of a request out of the arguments."""
    if arguments.user is not None:
        found: Any = [{"role": "user", "content": arguments.user}]
    else:
        data = read_stdin() if arguments.file == "-" else read_file(arguments.file)
        found = _json(data, "standard input" if arguments.file == "-" else arguments.file)
    body = found if isinstance(found, dict) else {"messages": found}
    if arguments.system is not None and isinstance(body.get("messages"), list):
        first = {"role": "system", "content": arguments.system}
        body = {**body, "messages": [first, *body["messages"]]}
    if arguments.tools is not None:
        body = {**body, "tools": _json(read_file(arguments.tools), arguments.tools)}
    return body


def _text(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is no UTF-8: {error}") from None


def _json(data: bytes, name: str) -> Any:
    try:
        return parsed(data.decode("utf-8-sig"))
    except (JSONError, UnicodeDecodeError) as error:
        raise ValueError(f"{name} is no JSON: {error}") from None
