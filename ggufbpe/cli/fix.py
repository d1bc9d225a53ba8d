"""`ggufbpe fix`: a corrected copy of a model, with its tensors as they were."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator
from typing import Any

from .._util.errors import printable
from .._util.wording import counted
from ..analysis.doctor.fix import Fixed, KeyChange, edits_for, whole_file, write_changes
from ..analysis.doctor.template_sources import template_source
from ..analysis.views import answers, terminal
from ..gguf.constants import TokenizerKey, TokenType
from ..gguf.edit import Edit
from ..gguf.edit_arguments import (
    parse_added_token,
    parse_renamed_token,
    parse_set,
    parse_token,
    parse_token_type,
)
from ..gguf.in_place import recover
from ..gguf.reader import GGUFFile
from ..gguf.schema import as_fields
from ..gguf.token_edits import TokenChanges
from ..gguf.value_types import Field
from ..hub.model_location import ModelLocation
from ..tokenizer.inputs import TextOrPath
from . import _output
from ._arguments import Parser, UsageError, overrides_of
from ._files import check_json, is_standard_output, require_free, require_path
from ._given_models import required_model
from ._input import read_stdin
from ._signals import termination_as_exit

# the arguments that change something
_CHANGES = (
    *("set", "override_kv", "remove", "set_token_type", "chat_template"),
    *("add_token", "remove_token", "rename_token"),
)
_SHOWN_ELEMENTS = 10  # of an array that has changed


def add_arguments(parser: Parser) -> None:
    parser.add_model_first(has_default=False)
    parser.add_repeated("--set", metavar="KEY=VALUE", help="set a key; may be repeated")
    parser.add_override_kv("the same as --set, in llama.cpp's syntax")
    parser.add_repeated("--remove", metavar="KEY", help="remove a key")
    parser.add_repeated(
        "--set-token-type",
        metavar="TOKEN=TYPE",
        help="set the type of a token, given by its id or text, or of the tokens ID..ID: "
        + ", ".join(TokenType.__members__),
    )
    parser.add_repeated(
        "--add-token",
        metavar="TEXT[=TYPE]",
        help="add a token after the last one, of type USER_DEFINED unless given; not in a model with tensors",
    )
    parser.add_repeated(
        "--remove-token",
        metavar="TOKEN",
        help="remove a token, given by its id or text, and move the ids after it; not in a model with tensors",
    )
    parser.add_repeated(
        "--rename-token", metavar="TOKEN=TEXT", help="give a token, such as a reserved one, another text"
    )
    parser.add_repeated(
        "--chat-template",
        metavar="[NAME=]FILE",
        help="set the chat template, or the one called NAME (tool_use), to that in FILE: a template, a folder with "
        "tokenizer_config.json, or another model, also by its name (hf:OWNER/REPO); - is standard input, known:NAME a "
        "template of llama.cpp's",
    )
    parser.add_argument("-o", "--output", metavar="PATH", help="the file to write")
    parser.add_switch("--in-place", help="change the model itself")
    parser.add_switch("--force", help="overwrite an existing file, and write a copy even if it has errors")
    parser.add_switch("--json", help="print one object: model, path, changes …")


def run(arguments: argparse.Namespace) -> int:
    model = required_model(arguments, "fix")
    source = whole_file(model, arguments.in_place)
    is_change = any(getattr(arguments, name) for name in _CHANGES)
    recovered = _recovered(source) if arguments.in_place or not is_change else None
    if recovered and not is_change:
        if arguments.json:
            _output.write_json(answers.fixed(Fixed(source, "", recovered=recovered), source))
        return 0
    if not is_change:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in _CHANGES if name != "override_kv")
        raise UsageError(f"nothing to change: give one of {flags} (see ggufbpe fix --help)")
    if (arguments.output is None) is not arguments.in_place:
        raise UsageError("where should the copy go? Give -o PATH, or --in-place to change the model itself")
    if arguments.output is not None:
        require_path(arguments.output, "this command examines the copy before it puts it in place", "path")
    check_json(arguments)
    templates = _chat_templates(arguments.chat_template)
    try:
        with termination_as_exit():
            done = write_changes(
                source,
                arguments.output,
                lambda file: _edits(file, arguments, templates),
                in_place=arguments.in_place,
                force=arguments.force,
            )
    except FileExistsError:
        require_free(arguments.output, arguments.force)  # as all commands say it
        raise
    if arguments.json:
        _output.write_json(answers.fixed(done, source))
        return 0
    lines = [line for change in done.changes for line in _lines(change)]
    how = {"in place": "only its metadata, in place; ", "shared": "sharing the tensors on disk; "}
    size = f"{done.size} bytes, " * bool(done.size)  # a pipe has none
    size = f"{how.get(done.written, '')}{size}{counted(done.tensors, 'tensor')} unchanged"
    lines.append(f"wrote {terminal.one_line(done.path)} ({size})")
    if isinstance(model, ModelLocation) and model.store:
        from ..hub.stores.all_stores import how_to_use

        why = f"a copy, since {model.store}'s own files are not changed"
        lines.append(terminal.one_line(f"{why}; {how_to_use(model.name, model.store, done.path)}"))
    if is_standard_output(done.path):
        for line in lines:
            _output.note(line)
    else:
        _output.write_lines(lines)
    return 0


def _chat_templates(given: list[str]) -> dict[str, TextOrPath] | None:
    """The templates of --chat-template by name: FILE, known:NAME or hf:OWNER/REPO, each perhaps behind NAME=."""
    found: dict[str, TextOrPath] = {}
    for argument in given:
        name, source = "", argument
        if named := re.fullmatch(r"(\w+)=(.+)", argument, re.DOTALL):
            name, source = named[1], named[2]
        if name in found:
            raise UsageError(
                f"the chat template {name} is given twice" if name else "two chat templates are given"
            )
        found[name] = read_stdin() if source == "-" else template_source(source)
    return found or None


def _edits(
    file: GGUFFile, arguments: argparse.Namespace, templates: dict[str, TextOrPath] | None
) -> list[Edit]:
    """The edits of this file that the arguments mean: the ids and texts in them are those of its tokens."""
    tokens = TokenChanges(
        rename=[parse_renamed_token(file, argument) for argument in arguments.rename_token],
        add=list(map(parse_added_token, arguments.add_token)),
        types=list(map(parse_token_type, arguments.set_token_type)),
        remove=list(map(parse_token, arguments.remove_token)),
    )
    return edits_for(file, _settings(file, arguments), arguments.remove, tokens, templates, arguments.force)


def _recovered(source: str) -> str | None:
    """Undo or finish an earlier change that was interrupted; return what it is now, None if there was none."""
    found = recover(source)
    if found is not None:
        name = terminal.one_line(source)
        _output.note(f"ggufbpe: an earlier change of {name} was interrupted; it is now {found}")
    return found


def _settings(file: GGUFFile, arguments: argparse.Namespace) -> dict[str, Field]:
    """The values of --set and --override-kv with their types."""
    edits = [parse_set(file, argument) for argument in arguments.set]
    overrides = as_fields(overrides_of(arguments))
    given = {edit.key: Field(edit.type, edit.value, edit.element) for edit in edits if edit.type is not None}
    keys = [*(edit.key for edit in edits), *overrides]
    if twice := next((key for key in keys if keys.count(key) > 1), None):
        raise UsageError(f"{printable(twice)} is changed twice")
    return {**given, **overrides}


def _lines(change: KeyChange) -> Iterator[str]:
    """A change in words: the key, the old value and the new one."""
    key, old, new = terminal.one_line(change.key), change.before, change.after
    if old == new and old is not None:
        yield f"{key}: unchanged"
        return
    if isinstance(old, list) and isinstance(new, list) and isinstance(new[0], (int, float, str)):
        changed = list(_changed_elements(change.key, old, new))
        for index, words in changed[:_SHOWN_ELEMENTS]:
            yield f"{key}[{index}]: {words}"
        if len(changed) > _SHOWN_ELEMENTS:
            yield f"  and {len(changed) - _SHOWN_ELEMENTS} more"
        if len(old) == len(new):
            return
    place = ""
    if isinstance(old, str) and isinstance(new, str) and _shown(old) == _shown(new):
        place, old, new = _from_where_they_differ(old, new)
    before = "not UTF-8" if not change.was_readable else "missing" if old is None else _shown(old)
    yield f"{key}{place}: {before} -> {'removed' if new is None else _shown(new)}"


def _from_where_they_differ(old: str, new: str) -> tuple[str, str, str]:
    """The line in which two texts begin to differ, in words, and what both have from there on."""
    alike = len(os.path.commonprefix((old, new)))  # noqa: RUF071 - of texts that are no paths
    start = max(old.rfind("\n", 0, alike) + 1, alike - 20)
    return f", from line {old.count(chr(10), 0, start) + 1}", old[start:], new[start:]


def _changed_elements(key: str, old: list[Any], new: list[Any]) -> Iterator[tuple[int, str]]:
    """The elements of an array that have changed, with their index and what has become of them.

    Where strings have moved, those that are in one of the arrays alone; of other arrays that became longer or shorter,
    none.
    """
    is_text = isinstance(new[0], str)
    before, after = (set(old), set(new)) if is_text else (set(), set())
    pairs = [(index, one, other) for index, (one, other) in enumerate(zip(old, new)) if one != other]
    if len(old) == len(new) and not (is_text and len(pairs) > len(before - after)):
        for index, one, other in pairs:
            yield index, f"{_element(key, one)} -> {_element(key, other)}"
        return
    yield from (
        (index, f"{_element(key, text)} removed")
        for index, text in enumerate(old)
        if is_text and text not in after
    )
    yield from (
        (index, f"{_element(key, text)} added")
        for index, text in enumerate(new)
        if is_text and text not in before
    )


def _element(key: str, value: object) -> str:
    if isinstance(value, str):
        return _shown(value)
    names = {int(kind): kind.name for kind in TokenType} if key == TokenizerKey.TOKEN_TYPE else {}
    return f"{value} ({names[value]})" if isinstance(value, int) and value in names else str(value)


def _shown(value: object) -> str:
    if isinstance(value, list):
        return counted(len(value), "element")
    return printable(value, 60) if isinstance(value, str) else str(value).lower()
