"""`ggufbpe fix`: a corrected copy of a model, with its tensors as they were."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

from ..by_name import Found
from ..chat.known import PREFIX
from ..errors import printable
from ..examination.mend import KeyChange, fix, whole_file
from ..gguf.arguments import parse_set, parse_token_type
from ..gguf.constants import TokenType
from ..gguf.in_place import recover
from ..gguf.reader import GGUFFile
from ..gguf.schema import as_fields
from ..gguf.values import Field
from ..inputs import TextOrPath
from ..views import terminal
from ..wording import counted
from . import _output
from ._arguments import Parser, UsageError, add_model_first, add_override_kv, overrides_of, required_model
from ._files import require_free
from ._input import read_stdin
from ._signals import termination_as_exit

_DESCRIPTION = """\
Write a copy of a model with other metadata. The tensors are copied byte for byte, and stay aligned; memory does \
not grow with the model. Keys of the tokenizer get the type that llama.cpp wants, other keys the one they have; \
KEY=TYPE:VALUE names another. An array is a JSON list. A chat template must make a prompt of a chat; known:NAME is the \
one that llama.cpp has under that name in its models/templates.

The copy is opened as a tokenizer before it takes its place. If it has an error that the model does not have, or \
one in a key that was changed, it is not written; --force writes it anyway.

--in-place changes the model itself. Where the new metadata has room before the tensors only that is written, \
with a record beside it until it is whole on the disk: after a crash, the next `ggufbpe fix MODEL` undoes it. Where \
it has no room, the model is replaced by a copy in one step. Interrupted, or with a full disk, it is still the old \
one, whole. A copy shares the tensors with the model on file systems that can (Btrfs, XFS); on others it needs room \
of its own."""
_EXAMPLES = """\
examples:
  ggufbpe fix model.gguf --set tokenizer.ggml.pre=llama-bpe -o fixed.gguf
  ggufbpe fix model.gguf --set tokenizer.ggml.add_bos_token=false --in-place
  ggufbpe fix model.gguf --set-token-type "<|im_end|>=CONTROL" --set-token-type 7=NORMAL -o fixed.gguf
  ggufbpe fix model.gguf --chat-template template.jinja -o fixed.gguf
  ggufbpe fix model.gguf --chat-template known:Qwen-Qwen3-0.6B -o fixed.gguf
  ggufbpe fix model.gguf --set my.key=UINT32:5 --remove tokenizer.ggml.scores -o fixed.gguf"""


def add_arguments(parser: Parser) -> None:
    parser.describe(_DESCRIPTION, _EXAMPLES)
    add_model_first(parser)
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="give a key a value; may be repeated"
    )
    add_override_kv(parser, "the same as --set, as llama.cpp writes it")
    parser.add_argument("--remove", action="append", default=[], metavar="KEY", help="take a key out")
    parser.add_argument(
        "--set-token-type",
        action="append",
        default=[],
        metavar="TOKEN=TYPE",
        help="give a token, by its id or its text, or the tokens ID..ID a type: "
        + ", ".join(TokenType.__members__),
    )
    parser.add_argument(
        "--chat-template",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="set the chat template, or that called NAME (tool_use), to what is in FILE; - is standard input, "
        "known:NAME a template of llama.cpp's",
    )
    parser.add_argument("-o", "--output", metavar="PATH", help="the file to write")
    parser.add_argument("--in-place", action="store_true", help="replace the model itself")
    parser.add_argument(
        "--force", action="store_true", help="write over an existing file, and write what cannot be opened"
    )


def run(arguments: argparse.Namespace) -> int:
    model = required_model(arguments, "fix")
    source = whole_file(model, arguments.in_place)
    changes = ("set", "override_kv", "remove", "set_token_type", "chat_template")
    is_change = any(getattr(arguments, name) for name in changes)
    if (arguments.in_place or not is_change) and _was_recovered(source) and not is_change:
        return 0
    if not is_change:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in changes if name != "override_kv")
        raise UsageError(f"nothing to change: give one of {flags} (see ggufbpe fix --help)")
    if (arguments.output is None) is not arguments.in_place:
        raise UsageError("say where the copy goes: -o PATH, or --in-place to change the model itself")
    settings = _settings(source, arguments)
    try:
        with termination_as_exit():
            done = fix(
                model,
                arguments.output,
                in_place=arguments.in_place,
                set=settings,
                remove=arguments.remove,
                token_types=map(parse_token_type, arguments.set_token_type),
                chat_template=_chat_templates(arguments.chat_template),
                force=arguments.force,
            )
    except FileExistsError:
        require_free(arguments.output, None, arguments.force)  # as all commands say it
        raise
    lines = [line for change in done.changes for line in _lines(change)]
    how = {"in place": "its metadata alone, in place; ", "shared": "sharing the tensors on the disk; "}
    size = f"{how.get(done.written, '')}{done.size} bytes, {counted(done.tensors, 'tensor')} unchanged"
    lines.append(f"wrote {terminal.one_line(done.path)} ({size})")
    if isinstance(model, Found) and model.store:
        from ..names.stores import how_to_use

        why = f"a copy, as the files of {model.store} are not changed"
        lines.append(terminal.one_line(f"{why}; {how_to_use(model.name, model.store, done.path)}"))
    _output.write("".join(line + "\n" for line in lines).encode("utf-8", "backslashreplace"))
    return 0


def _chat_templates(given: list[str]) -> dict[str, TextOrPath] | None:
    """What --chat-template says, by the names of templates: FILE, NAME=FILE, known:NAME or NAME=known:NAME."""
    found: dict[str, TextOrPath] = {}
    for argument in given:
        name, source = "", argument
        if named := re.fullmatch(r"(\w+)=(.+)", argument, re.DOTALL):
            name, source = named[1], named[2]
        if name in found:
            raise UsageError(
                f"the chat template {name} is given twice" if name else "two chat templates are given"
            )
        known = source.startswith(PREFIX)
        found[name] = read_stdin() if source == "-" else source if known else Path(source)
    return found or None


def _was_recovered(source: str) -> bool:
    """End a change that was interrupted, if there was one."""
    found = recover(source)
    if found is not None:
        name = terminal.one_line(source)
        _output.note(f"ggufbpe: a change of {name} had been interrupted; it is {found} now")
    return found is not None


def _settings(source: str, arguments: argparse.Namespace) -> dict[str, Field]:
    """What --set and --override-kv say, with its types."""
    if not (arguments.set or arguments.override_kv):
        return {}
    with GGUFFile(source) as file:
        edits = [parse_set(file, argument) for argument in arguments.set]
    overrides = as_fields(overrides_of(arguments))
    given = {edit.key: Field(edit.type, edit.value, edit.element) for edit in edits if edit.type is not None}
    keys = [*(edit.key for edit in edits), *overrides]
    if twice := next((key for key in keys if keys.count(key) > 1), None):
        raise UsageError(f"{printable(twice)} is changed twice")
    return {**given, **overrides}


def _lines(change: KeyChange) -> Iterator[str]:
    """What is changed, for people."""
    key, old, new = terminal.one_line(change.key), change.before, change.after
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new) and isinstance(new[0], int):
        changed = [(i, a, b) for i, (a, b) in enumerate(zip(old, new)) if a != b]
        for index, one, other in changed[:10]:
            yield f"{key}[{index}]: {_number(one)} -> {_number(other)}"
        if len(changed) > 10:
            yield f"  and {len(changed) - 10} more"
        return
    before = "not UTF-8" if not change.was_readable else "missing" if old is None else _shown(old)
    yield f"{key}: {before} -> {'removed' if new is None else _shown(new)}"


def _number(value: object) -> str:
    names = {int(kind): kind.name for kind in TokenType}
    return f"{value} ({names[value]})" if isinstance(value, int) and value in names else str(value)


def _shown(value: object) -> str:
    if isinstance(value, list):
        return counted(len(value), "element")
    return printable(value, 60) if isinstance(value, str) else str(value).lower()
