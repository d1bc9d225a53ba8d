"""`ggufbpe fix`: a corrected copy of a model, with its tensors as they were."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator

from ..errors import InvalidUTF8Error, printable
from ..examination.mend import write_fixed
from ..gguf.arguments import parse_remove, parse_set, set_token_types
from ..gguf.constants import GGUFValueType, TokenType
from ..gguf.edit import Edit
from ..gguf.in_place import recover
from ..gguf.reader import GGUFFile
from ..gguf.schema import as_fields
from ..views import terminal
from . import _output
from ._arguments import Parser, UsageError, add_model_first, add_override_kv, overrides_of, required_model
from ._files import require_free
from ._signals import termination_as_exit

_DESCRIPTION = """\
Write a copy of a model with other metadata. The tensors are copied byte for byte, and stay aligned; memory does \
not grow with the model. Keys of the tokenizer get the type that llama.cpp wants, other keys the one they have; \
KEY=TYPE:VALUE names another. An array is a JSON list.

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
    parser.add_argument("-o", "--output", metavar="PATH", help="the file to write")
    parser.add_argument("--in-place", action="store_true", help="replace the model itself")
    parser.add_argument(
        "--force", action="store_true", help="write over an existing file, and write what cannot be opened"
    )


def run(arguments: argparse.Namespace) -> int:
    source = required_model(arguments, "fix")
    is_change = _is_to_change(arguments)
    if not is_change and _was_recovered(source):
        return 0
    target = _target(arguments, source)
    if is_change and arguments.in_place:
        _was_recovered(source)
    with GGUFFile(source) as file:
        edits = [parse_set(file, argument) for argument in arguments.set]
        edits += [parse_remove(file, key) for key in arguments.remove]
        edits += [Edit(key, *field) for key, field in as_fields(overrides_of(arguments)).items()]
        if arguments.set_token_type:
            edits.append(set_token_types(file, arguments.set_token_type))
        if not edits:
            raise UsageError("nothing to change: give --set, --override-kv, --remove or --set-token-type")
        keys = [edit.key for edit in edits]
        if twice := next((key for key in keys if keys.count(key) > 1), None):
            raise UsageError(f"{printable(twice)} is changed twice")
        lines = [line for edit in edits for line in _lines(file, edit)]
        tensors = file.tensor_count
    with termination_as_exit():
        done = write_fixed(source, target, edits, check=not arguments.force)
    size = os.path.getsize(target)
    how = {"in place": "its metadata alone, in place; ", "shared": "sharing the tensors on the disk; "}.get(
        done, ""
    )
    lines.append(f"wrote {terminal.one_line(target)} ({how}{size} bytes, {tensors} tensors as they were)")
    _output.write("".join(line + "\n" for line in lines).encode("utf-8", "backslashreplace"))
    return 0


def _was_recovered(source: str) -> bool:
    """End a change that was interrupted, if there was one."""
    found = recover(source)
    if found is not None:
        name = terminal.one_line(source)
        _output.note(f"ggufbpe: a change of {name} had been interrupted; it is {found} now")
    return found is not None


def _is_to_change(arguments: argparse.Namespace) -> bool:
    return bool(arguments.set or arguments.override_kv or arguments.remove or arguments.set_token_type)


def _target(arguments: argparse.Namespace, source: str) -> str:
    """Where the copy goes."""
    target = arguments.output
    if (target is None) is not arguments.in_place:
        raise UsageError("say where the copy goes: -o PATH, or --in-place to replace the model itself")
    if target is None:
        return source
    if os.path.isdir(target):
        raise UsageError(f"{printable(target)} is a directory; -o takes a file")
    if os.path.exists(target) and os.path.exists(source) and os.path.samefile(target, source):
        raise UsageError("-o names the model itself; to replace it, say --in-place")
    require_free(target, None, arguments.force)
    return str(target)


def _lines(file: GGUFFile, edit: Edit) -> Iterator[str]:
    """What an edit changes, for people."""
    try:
        old = file[edit.key] if edit.key in file else None  # noqa: SIM401 - no dict, has no get
        before = "missing" if old is None else _shown(old)
    except InvalidUTF8Error:
        old, before = None, "not UTF-8"
    if edit.element is GGUFValueType.INT32 and isinstance(old, list) and len(old) == len(edit.value):
        changed = [(i, a, b) for i, (a, b) in enumerate(zip(old, edit.value)) if a != b]
        for index, one, other in changed[:10]:
            yield f"{terminal.one_line(edit.key)}[{index}]: {_number(one)} -> {_number(other)}"
        if len(changed) > 10:
            yield f"  and {len(changed) - 10} more"
        return
    after = "removed" if edit.type is None else _shown(edit.value)
    yield f"{terminal.one_line(edit.key)}: {before} -> {after}"


def _number(value: object) -> str:
    names = {int(kind): kind.name for kind in TokenType}
    return f"{value} ({names[value]})" if isinstance(value, int) and value in names else str(value)


def _shown(value: object) -> str:
    if isinstance(value, list):
        return f"{len(value)} elements"
    return printable(value, 60) if isinstance(value, str) else str(value).lower()
