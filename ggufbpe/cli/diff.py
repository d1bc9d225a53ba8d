"""`ggufbpe diff`: the tokenizers of two models side by side."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from typing import Any

from ..errors import printable
from ..escapes import process_escapes
from ..tokenizer import Tokenizer
from ..verify.compare import VocabularyDifference, compare, to_json
from ..views import terminal
from . import _output
from ._arguments import Parser, UsageError, add_override_kv, overrides_of
from ._input import read_file

_DESCRIPTION = """\
Compare the tokenizers of two models: tokens, types, merges, flags, special ids and pre-tokenizer, all after \
llama.cpp's loading rules. Tokens are compared by their text. With texts, also where the two encode them \
differently, and why.

The exit code is 0 if they are the same, 1 if anything differs, 2 if they could not be compared."""
_EXAMPLES = """\
examples:
  ggufbpe diff a.gguf b.gguf
  ggufbpe diff a.gguf b.gguf -f prompt.txt
  ggufbpe diff a.gguf b.gguf -p "12345 and 你好" --json"""

_SECTIONS = {
    "tokens": "tokens",
    "types": "types",
    "merges": "merges",
    "flags": "flags",
    "special": "special tokens",
    "pre": "pre-tokenizer",
}
_SHOWN = 5  # examples of each difference
_WIDTH = 100


def add_arguments(parser: Parser) -> None:
    parser.describe(_DESCRIPTION, _EXAMPLES)
    parser.add_argument("models", nargs="*", metavar="MODEL", help="two .gguf files: a and b")
    parser.add_argument(
        "-p", "--prompt", action="append", default=[], metavar="TEXT", help="a text to encode"
    )
    parser.add_argument(
        "-f", "--file", action="append", default=[], metavar="PATH", help="a text from a file"
    )
    add_override_kv(parser)
    parser.add_argument("-e", "--escape", action="store_true", help="process escape sequences in texts")
    parser.add_argument("--json", action="store_true", help="print one object")
    parser.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", help="colour (default: auto)"
    )


def run(arguments: argparse.Namespace) -> int:
    if len(arguments.models) != 2:
        raise UsageError(f"two models, not {len(arguments.models)} (see ggufbpe diff --help)")
    texts = [("-p", os.fsencode(text)) for text in arguments.prompt]
    texts += [(path, read_file(path)) for path in arguments.file]
    if arguments.escape:
        texts = [(source, process_escapes(text)) for source, text in texts]
    overrides = overrides_of(arguments)
    a, b = (Tokenizer.from_gguf(path, overrides=overrides) for path in arguments.models)
    sections = compare(a.vocabulary, b.vocabulary)
    result = _encoded(a, b, texts) if texts else None
    if arguments.json:
        found: dict[str, Any] = {"a": arguments.models[0], "b": arguments.models[1], **to_json(sections)}
        if result is not None:
            from ..views import report

            found["texts"] = report.to_json(result, arguments.models[0])
        _output.write(terminal.json_bytes(found))
    else:
        width = _output.terminal_width()
        width = None if width is None else min(width, _WIDTH)
        color = _output.use_color(arguments.color)
        lines = list(_lines(arguments.models, sections, color, width))
        if result is not None:
            from ..views.report_lines import ReportLines

            lines += [_heading("texts", color), *ReportLines(color, width or _WIDTH).lines(result, "")]
        _output.write(("\n".join(lines) + "\n").encode("utf-8", "backslashreplace"))
    return int(any(sections.values()) or (result is not None and not result.same))


def _encoded(a: Tokenizer, b: Tokenizer, texts: list[tuple[str, bytes]]) -> Any:
    """How the two encode the texts: verify, with b for an oracle."""
    from ..oracles.recorded_ids import OtherModel
    from ..verify.result import Text
    from ..verify.verify import verify

    with OtherModel(b) as oracle:
        return verify(
            a,
            oracle,
            [Text(source, 0, text) for source, text in texts],
            add_special=True,
            parse_special=True,
            progress=lambda *_: None,
        )


def _heading(title: str, color: bool) -> str:
    return f"{terminal.BOLD}{title}{terminal.RESET}" if color else title


def _lines(
    models: list[str], sections: dict[str, list[VocabularyDifference]], color: bool, width: int | None
) -> Iterator[str]:
    def wrapped(text: str, indent: int) -> str:
        return " " * indent + terminal.wrapped(terminal.safe_line(text), width, indent + 2, start=indent)

    for name, path in zip("ab", models):
        yield wrapped(f"{name}: {path}", 0)
    same = [_SECTIONS[name] for name, differences in sections.items() if not differences]
    for name, differences in sections.items():
        if not differences:
            continue
        yield _heading(_SECTIONS[name], color)
        for difference in differences:
            yield wrapped(_sentence(difference), 2)
            for line in difference.lines[:_SHOWN]:
                yield wrapped(line, 4)
            if difference.lines and difference.number > _SHOWN and len(difference.lines) > _SHOWN:
                yield wrapped("…", 4)
    if same:
        yield wrapped(f"the same: {', '.join(same)}", 0)


def _sentence(difference: VocabularyDifference) -> str:
    if difference.a is None and difference.b is None:
        return f"{difference.number} {difference.what}"
    return f"{difference.what}: {_value(difference.a)} in a, {_value(difference.b)} in b"


def _value(value: object) -> str:
    if isinstance(value, dict):
        return f"{value['id']} {printable(value['text'], 40)}"
    if isinstance(value, list):
        return ", ".join(printable(text, 40) for text in value) or "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    return "none" if value is None else str(value)
