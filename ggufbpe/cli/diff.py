"""`ggufbpe diff`: the tokenizers of two models side by side."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from .._util.errors import printable
from .._util.escapes import process_escapes
from .._util.shell import shell_word
from ..analysis.verify.model_diff import Differences, diff
from ..analysis.verify.result import ComparedText
from ..analysis.verify.vocabulary_diff import VocabularyDifference
from ..analysis.views import answers, terminal
from ..tokenizer import Tokenizer
from . import _output
from ._arguments import Parser, UsageError, overrides_of
from ._given_models import models_of
from ._input import read_file, read_stdin

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ..analysis.doctor.drafts import DraftCheck
    from ..hub.model_location import ModelLocation, ModelName


_SECTIONS = {
    "tokens": "tokens",
    "types": "types",
    "merges": "merges",
    "flags": "flags",
    "special": "special tokens",
    "pre": "pre-tokenizer",
    "templates": "chat templates",
}
_SHOWN, _ALL = 5, 100  # examples of each difference
_LINES_OF_TEMPLATE = 20  # shown of a template's diff, instead of `_SHOWN`
_LINE = 160  # characters shown of a line
_WIDTH = 100


def add_arguments(parser: Parser) -> None:
    parser.add_argument("models", nargs="*", metavar="MODEL", help="two .gguf files, or names of models")
    parser.add_repeated("-m", "--model", metavar="MODEL", help="one of them")
    parser.add_names("append")
    parser.add_repeated("-p", "--prompt", metavar="TEXT", help="a text to encode")
    parser.add_repeated("-f", "--file", metavar="PATH", help="encode the text in a file; - is standard input")
    parser.add_switch("--stdin", help="a text from standard input")
    parser.add_override_kv()
    parser.add_switch("--draft", help="whether the second model may draft for the first")
    parser.add_switch("--all", help="show up to 100 examples of each difference")
    parser.add_switch("-e", "--escape", help="process escape sequences in texts")
    parser.add_switch("--json", help="print one object")
    parser.add_color()


def run(arguments: argparse.Namespace) -> int:
    if len(arguments.models) > 2:  # before they are looked for, as one of them may be a text
        third = shell_word(arguments.models[2])
        raise UsageError(
            f"give two models, not {len(arguments.models)}; did you mean -p {third}? (see ggufbpe diff --help)"
        )
    models = models_of(arguments, [*arguments.model, *arguments.models])
    if len(models) != 2:
        raise UsageError(f"give two models, not {len(models)} (see ggufbpe diff --help)")
    if arguments.draft:
        return _draft(arguments, models)
    texts = [ComparedText("-p", 0, os.fsencode(text)) for text in arguments.prompt]
    files = arguments.file + ["-"] * (arguments.stdin and "-" not in arguments.file)
    texts += [ComparedText(path, 0, read_stdin() if path == "-" else read_file(path)) for path in files]
    if arguments.escape:
        texts = [text._replace(data=process_escapes(text.data)) for text in texts]
    overrides = overrides_of(arguments)
    a, b = (Tokenizer.from_gguf(path, overrides=overrides) for path in models)
    found = diff(a, b, texts)
    if arguments.json:
        _output.write_json(answers.differences(found))
    else:
        width = _output.terminal_width()
        width = width and min(width, _WIDTH)
        if found.texts is not None:
            from ..analysis.views.report_lines import ReportLines

            color = _output.use_color(arguments.color)
            _output.write_lines([*ReportLines(color, width, found.names).lines(found.texts, ""), ""])
        examples = _ALL if arguments.all else 0 if found.texts is not None else _SHOWN
        _output.draw([*_parts(found, examples), *_advice(found)], arguments.color, width)
    return int(not found.same)


def _draft(arguments: argparse.Namespace, models: Sequence[ModelName | ModelLocation]) -> int:
    """Whether the second model may draft for the first."""
    from ..analysis.doctor.drafts import check_draft

    if arguments.prompt or arguments.file or arguments.stdin:
        raise UsageError("--draft compares vocabularies, and takes no text")
    target, draft = (Tokenizer.from_gguf(path, overrides=overrides_of(arguments)) for path in models)
    found = check_draft(target, draft)
    if arguments.json:
        _output.write_json(answers.draft_check(found))
    else:
        _output.draw(_draft_lines(found), arguments.color, _output.terminal_width())
    return int(not found.may_draft)


def _draft_lines(found: DraftCheck) -> Iterator[RenderableType]:
    from rich.text import Text as Styled

    from ..analysis.views.cause_lines import proposal_lines
    from ..analysis.views.drawing import paragraph

    verdicts = {
        "compatible": "llama.cpp takes this draft",
        "incompatible": "llama.cpp refuses this draft",
        "not_asked": "llama.cpp does not compare the vocabularies of such a draft",
    }
    yield Styled(f"{found.verdict.replace('_', ' ')}: {verdicts[found.verdict]}", "bold")
    for what in filter(None, [found.reason, *(each.what for each in found.differences)]):
        yield paragraph(terminal.one_line(what), 2)
    yield from proposal_lines(found.proposal, "the draft")
    if found.differences and found.proposal is None:
        yield paragraph("No change of the draft's metadata would do.", 0)


def _parts(found: Differences, examples: int) -> Iterator[RenderableType]:
    """How the vocabularies differ, with that many examples of each difference."""
    from rich.text import Text as Styled

    from ..analysis.views.drawing import indented

    names, models, sections = found.names, found.models, found.sections

    def line(text: str, indent: int) -> RenderableType:
        return indented(terminal.one_line(text), indent)

    if not any(sections.values()):
        if found.same:
            yield "the vocabularies and chat templates are the same"
        return
    yield line(f"{names[0]} ({models[0]}) and {names[1]} ({models[1]}) differ", 0)
    is_cut = False
    same = [_SECTIONS[name] for name, differences in sections.items() if not differences]
    for name, differences in sections.items():
        if not differences:
            continue
        yield Styled(_SECTIONS[name], "bold")
        for difference in differences:
            yield line(_sentence(difference, names), 2)
            most = max(examples, _LINES_OF_TEMPLATE) if examples and name == "templates" else examples
            for example in difference.lines[:most]:
                yield line(example if len(example) <= _LINE else f"{example[:_LINE]}…", 4)
            whole = (
                len(difference.lines)
                if name == "templates"
                else max(difference.number, len(difference.lines))
            )
            if difference.lines and 0 < most < whole:
                yield line(f"… and {whole - most} more", 4)
                is_cut = most < _ALL
    if same:
        yield line(f"the same: {', '.join(same)}", 0)
    if not examples and any(difference.lines for found in sections.values() for difference in found):
        yield line("--all shows which ones", 0)
    elif is_cut:
        yield line(f"--all shows up to {_ALL} of each", 0)


def _advice(found: Differences) -> Iterator[RenderableType]:
    """Which of the two files looks broken, and the one command that makes it like the other.

    Where nothing tells which one is right, what each would have to change.
    """
    from ..analysis.views.cause_lines import proposal_lines, sentence
    from ..analysis.views.drawing import paragraph

    def told(text: str) -> RenderableType:
        return paragraph(terminal.one_line(text), 0)

    if found.suspect is not None:
        name = found.names[found.suspect]
        yield ""
        yield told(" ".join([f"{name} looks like the broken one.", *map(sentence, found.reasons)]))
        yield from proposal_lines(found.proposal, name)
    elif any(found.changes):
        yield ""
        yield told("Nothing tells which of the two files is right, so no command is proposed.")
        for change, name, other in zip(found.changes, found.names, found.names[::-1]):
            if change:
                yield told(f"To be like {other}, {name} would need {'; '.join(change.described)}.")


def _sentence(difference: VocabularyDifference, names: tuple[str, str]) -> str:
    if difference.a is None and difference.b is None:
        return f"{difference.number} {difference.what}"
    return f"{difference.what}: {_value(difference.a)} in {names[0]}, {_value(difference.b)} in {names[1]}"


def _value(value: object) -> str:
    if isinstance(value, dict):
        return f"{value['id']} {printable(value['text'], 40)}"
    if isinstance(value, list):
        return ", ".join(printable(text, 40) for text in value) or "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    return "none" if value in (None, "") else str(value)
