"""`ggufbpe info`: what a model file says about itself and its tokenizer.

It also works on files whose tokenizer is not supported: their metadata is shown, with a description in words.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .._util.errors import printable
from .._util.wording import counted
from ..analysis.doctor.model_info import Facts, info
from ..analysis.views import terminal
from ..analysis.views.answers import answer, failure
from ..models import SUPPORTED
from . import _output
from ._arguments import Parser, overrides_of
from ._given_models import model_path

if TYPE_CHECKING:
    from rich.console import RenderableType


_LABEL_WIDTH = 14


def add_arguments(parser: Parser) -> None:
    parser.add_model_first(has_default=True)
    parser.add_override_kv()
    parser.add_switch("--json", help="print one object")


def run(arguments: argparse.Namespace) -> int:
    found = info(model_path(arguments), overrides=overrides_of(arguments))
    if arguments.json:
        wrong = {} if found.error is None else {"error": failure(found.error, str(found.error))["error"]}
        _output.write_json(
            answer({**found.to_dict(), **wrong}, model=found.file.get("name", found.file["path"]))
        )
    else:
        width = _output.terminal_width()
        _output.draw(_parts(found.to_dict(), width), width=width)
    if found.error is not None:
        raise found.error
    return 0


# ---- showing --------------------------------------------------------------------------------------------


def _parts(facts: Facts, width: int | None) -> Iterator[RenderableType]:
    """The facts in sections, one per line."""
    for number, (title, rows) in enumerate(_sections(facts)):
        yield from [""] * (number > 0)
        yield title
        column = max(_LABEL_WIDTH, *(len(label) for label, _, _ in rows)) + 4
        if not rows[0][0]:  # a section of values without labels
            column = 2
        for label, value, kind in rows:
            yield from _row(label, column, terminal.one_line(value), width, kind)


def _row(label: str, column: int, value: str, width: int | None, kind: str) -> Iterator[RenderableType]:
    """Label and value side by side; on a narrow terminal the value has its own lines."""
    from ..analysis.views.drawing import beside, pattern_lines, uncut

    if width is not None and label and width < 3 * column:
        yield f"  {label}"
        label, column = "", 4
    if kind == "path":
        yield uncut(f"{f'  {label}':{column}}{value}")
        return
    if kind == "pattern":
        value = pattern_lines(value, width and width - column - 1)
    yield beside(f"  {label}", value, column)


Rows = list[tuple[str, str, str]]  # label, value, "path" or "pattern" where the value is one


def _sections(facts: Facts) -> Iterator[tuple[str, Rows]]:
    name = facts["file"].get("name")
    found = [*_plain([("by name", name)] if name else []), ("path", facts["file"]["path"], "path")]
    noted = [("note", facts["file"]["note"])] if "note" in facts["file"] else []
    yield "file", [*found, *_plain([*_file_rows(facts), *noted])]
    yield "tokenizer", list(_tokenizer_rows(facts))
    if "flags" in facts:
        yes, no = (
            ", ".join(name for name, value in facts["flags"].items() if value is wanted) or "none"
            for wanted in (True, False)
        )
        yield "flags", _plain([("on", yes), ("off", no)])
    if facts.get("special_tokens"):
        yield (
            "special tokens",
            _plain([(token["name"], _token(token)) for token in facts["special_tokens"]]),
        )
    if facts.get("end_of_generation"):
        yield "end of generation", _plain([("", _token(token)) for token in facts["end_of_generation"]])
    if facts.get("corrections"):
        yield "corrected by llama.cpp", _plain([("", each["what"]) for each in facts["corrections"]])
    if facts.get("metadata"):
        rows = [
            (key, value if isinstance(value, str) else str(value).lower())
            for key, value in facts["metadata"].items()
        ]
        yield "metadata", _plain(rows)
    yield "ggufbpe", _plain([("engine", facts["engine"])])


def _plain(rows: list[tuple[str, str]]) -> Rows:
    return [(label, value, "") for label, value in rows]


def _file_rows(facts: Facts) -> list[tuple[str, str]]:
    file, general = facts["file"], facts["general"]
    context = general["context_length"]
    templates = facts["chat_templates"].items()
    named = [
        f"{length} characters" + (f" ({name})" if name != "default" else "") for name, length in templates
    ]
    return [
        (
            "GGUF",
            f"version {file['version']}, {file['byte_order']}-endian, {counted(file['keys'], 'key')}, "
            f"{counted(file['tensors'], 'tensor')}, {counted(file['size'], 'byte')}",
        ),
        *([("broken", file["problem"])] if "problem" in file else []),
        ("architecture", general["architecture"] or "not given"),
        ("name", general["name"] or "not given"),
        ("context length", "not given" if context is None else counted(context, "token")),
        ("file type", general["file_type"] or "not given"),
        ("chat template", ", ".join(named) or "none"),
    ]


def _tokenizer_rows(facts: Facts) -> Iterator[tuple[str, str, str]]:
    tokenizer = facts["tokenizer"]
    description = tokenizer["description"] or "not given"
    yield "model", f"{tokenizer['model']}: {description}" if tokenizer["model"] else description, ""
    if not tokenizer["supported"]:
        yield "ids", f"cannot be made: ggufbpe reads {', '.join(SUPPORTED)}", ""
    if tokenizer["pre"]:
        yield "pre-tokenizer", tokenizer["pre"], ""
    if tokenizer.get("family"):
        yield "family", tokenizer["family"], ""
        yield "splits like", ", ".join(tokenizer["splits_alike"]) or "no other name", ""
        for index, pattern in enumerate(tokenizer["patterns"]):
            label = "pattern" if len(tokenizer["patterns"]) == 1 else f"pattern {index + 1}"
            yield label, pattern, "pattern"
    sizes = facts.get("sizes", {})
    for name, value in sizes.items():
        if name == "types":
            yield "types", ", ".join(f"{number} {kind}" for kind, number in value.items()), ""
        else:
            yield name, str(value), ""


def _token(token: Facts) -> str:
    text = "no such token" if token["text"] is None else printable(token["text"], 60)
    return f"{token['id']:<7} {text}"
