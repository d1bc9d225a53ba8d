"""`ggufbpe list-pre`: the registry of pre-tokenizers."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .._util.errors import printable
from ..analysis.views import terminal
from ..models.pretokenizers.registry import PRE_TOKENIZERS, PreTokenizer, names_alike
from . import _output
from ._arguments import Parser, UsageError

if TYPE_CHECKING:
    from rich.console import RenderableType


_SHOWN = 5  # characters
_NARROW = 90  # columns under which the patterns get lines of their own

# The flags of a `PreTokenizer`, in words. `lowercase` is left out: it is on everywhere and means something only in
# models of the kind "whitespace", whose one name turns it off.
FLAGS = {
    "byte_encode": "words are written in GPT-2's alphabet of bytes",
    "escape_whitespaces": "spaces become U+2581 before splitting, and back in decoding",
    "clean_spaces": "decoding drops spaces before punctuation and some contractions",
    "ignore_merges": "a word that is a token is that token, whatever the merges",
    "add_bos": "BOS is added, unless the file says otherwise",
    "add_sep": "SEP is added, unless the file says otherwise",
    "no_default_bos": "there is no BOS unless the file names one",
    "newline_runs": "a run of line breaks that is a token is that token",
    "prepend_space": "a word without U+2581 in front gets one, except line breaks",
    "always_add_bos": "BOS is added, even if the file says not to",
}


def add_arguments(parser: Parser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="show everything about these")
    parser.add_switch("--regex", help="print the patterns of the NAMEs as the package regex compiles them")
    parser.add_switch("--json", help="print a list of objects")


def run(arguments: argparse.Namespace) -> int:
    for name in arguments.names:
        _check(name)
    entries = [PRE_TOKENIZERS[name] for name in arguments.names or sorted(PRE_TOKENIZERS)]
    if arguments.regex:
        return _regex(arguments, entries)
    width = _output.terminal_width()
    if arguments.json:
        _output.write(terminal.json_bytes([_object(entry) for entry in entries]))
    elif arguments.names:
        parts = (part for number, entry in enumerate(entries) for part in _details(entry, number > 0))
        _output.draw(parts, width=width)
    elif width is None:
        _output.write_lines(_lines(entries))
    else:
        _output.draw(_table(entries, width), width=width)
    return 0


def _regex(arguments: argparse.Namespace, entries: list[PreTokenizer]) -> int:
    """Print the patterns for the package `regex`, and the characters that it classifies differently."""
    from ..models.pretokenizers.regex_patterns import patterns

    if not arguments.names:
        raise UsageError("--regex needs the NAMEs of pre-tokenizers; `ggufbpe list-pre` shows all")
    found = [patterns(entry.name) for entry in entries]
    if arguments.json:
        objects = [
            {
                "name": one.name,
                "regex": [pattern.pattern for pattern in one],
                "other_characters": list(one.other_characters),
            }
            for one in found
        ]
        _output.write(terminal.json_bytes(objects))
        return 0
    for one in found:
        _output.write_lines(pattern.pattern for pattern in one)
        if count := len(one.other_characters):
            shown = ", ".join(f"U+{point:04X}" for point in one.other_characters[:_SHOWN])
            more = f" … ({count} in all; --json lists them)" if count > _SHOWN else ""
            _output.note(f"{one.name}: the package regex puts {shown}{more} in another class than llama.cpp")
    return 0


def flags_of(entry: PreTokenizer) -> dict[str, bool]:
    return {name: getattr(entry, name) for name in FLAGS}


def _check(name: str) -> None:
    if name in PRE_TOKENIZERS:
        return
    from difflib import get_close_matches

    near = get_close_matches(name, PRE_TOKENIZERS, n=3)
    hint = f"near: {', '.join(near)}" if near else "`ggufbpe list-pre` shows all names"
    raise ValueError(f"unknown pre-tokenizer {printable(name)}; {hint}")


def _object(entry: PreTokenizer) -> dict[str, object]:
    return {
        "name": entry.name,
        "family": entry.family,
        "patterns": list(entry.patterns),
        "flags": flags_of(entry),
        "splits_alike": names_alike(entry),
    }


def _lines(entries: list[PreTokenizer]) -> Iterator[str]:
    """A line for each pattern of each name."""
    name_width, family_width = _widths(entries)
    for entry in entries:
        for pattern in entry.patterns:
            yield f"{entry.name:{name_width}}  {entry.family:{family_width}}  {pattern}"


def _table(entries: list[PreTokenizer], width: int) -> Iterator[RenderableType]:
    """The names sorted by family, with its patterns beside the first; on narrow terminals they have their own lines."""
    from ..analysis.views.drawing import columns, indented, pattern_lines

    name_width, family_width = _widths(entries)
    narrow = width < _NARROW
    room = width - 1 - (4 if narrow else name_width + family_width + 4)
    rows = [("name", "family", "patterns")]
    shown: dict[str, str] = {}
    if narrow:
        yield "name, family, patterns"
    for entry in sorted(entries, key=lambda entry: (entry.family, entry.name)):
        first = shown.setdefault(entry.family, entry.name)
        patterns = "\n".join(pattern_lines(pattern, room) for pattern in entry.patterns)
        rows.append((entry.name, entry.family, patterns if first == entry.name else f"as {first}"))
        if narrow:  # a name too long to fit twice in 40 columns is shown once
            yield entry.name if entry.name == entry.family else f"{entry.name}, {entry.family}"
            if first == entry.name:
                yield indented(patterns, 4)
    if not narrow:
        yield columns(rows)


def _widths(entries: list[PreTokenizer]) -> tuple[int, int]:
    return max(len(entry.name) for entry in entries), max(len(entry.family) for entry in entries)


def _details(entry: PreTokenizer, is_another: bool) -> Iterator[RenderableType]:
    """Everything about one name, one pattern per line."""
    from ..analysis.views.drawing import beside, indented, pattern_lines

    width = _output.terminal_width()
    yield from [""] * is_another
    yield entry.name
    yield f"  family: {entry.family}"
    yield beside("  splits like: ", ", ".join(names_alike(entry)) or "no other name")
    yield f"  patterns: {len(entry.patterns)}"
    for pattern in entry.patterns:
        yield indented(pattern_lines(pattern, width and width - 5), 4)
    flags = [name for name, value in flags_of(entry).items() if value]
    yield f"  flags:{'' if flags else ' none'}"
    for name in flags:
        yield beside(f"    {name}: ", FLAGS[name])
