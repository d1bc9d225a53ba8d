"""`ggufbpe diagnose`: why ids from elsewhere are not those of a model."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from .._util.escapes import process_escapes
from .._util.wording import counted, percent
from ..analysis.diagnose.agreement import AS_COMMAND, SAID_OF, agreeing_share, first_difference
from ..analysis.diagnose.explanation import Diagnosis, Explanation
from ..analysis.diagnose.id_diagnosis import diagnose
from ..analysis.oracles.chat_answers import Prompt, Refused, answered
from ..analysis.oracles.id_parsing import parse_ids
from ..analysis.views import answers, terminal
from ..hub.model_location import ModelLocation
from ..tokenizer import Tokenizer
from . import _output
from ._arguments import Parser, UsageError, overrides_of
from ._chat import add_chat_flags, body_of_file, refuse_text_flags, require_chat, template_of
from ._given_models import default_model, model_paths
from ._input import read_file, read_stdin, read_text, settle_stdin

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text


EXIT_MATCH, EXIT_DIFFERENT = 0, 1
_LISTED = 8  # explanations that are printed; --json has all
_AROUND = 2  # tokens shown before the first that differs
_SHOWN = 5  # and from there on
_PIECE = 24  # characters of a piece

_NUMBERS = re.compile(r"\s*[0-9]+ -> '.*|[\s,0-9+-]*", re.DOTALL)


def add_arguments(parser: Parser) -> None:
    parser.add_models("further models are tried as well")
    parser.add_text()
    parser.add_argument("--ids", metavar="FILE_OR_LIST", help="the ids: a file, -, or a list such as [1, 2]")
    parser.add_argument("--chat", metavar="FILE", help="a chat instead of a text")
    parser.add_argument(
        "--expected-prompt", metavar="FILE", help="the expected prompt of the chat, instead of ids"
    )
    add_chat_flags(parser)
    parser.add_switch("-e", "--escape", help="process escape sequences in the text")
    parser.add_special_flags()
    parser.add_switch("--json", help="print one object: verdict, findings, explanations")
    parser.add_color()


def run(arguments: argparse.Namespace) -> int:
    if arguments.chat is not None or arguments.expected_prompt is not None:
        return _run_chat(arguments)
    require_chat(arguments)
    text = _given_text(arguments)
    ids = _given_ids(arguments.ids)
    tokenizer, others = _models(arguments)
    text = process_escapes(text) if arguments.escape else text
    flags = {"add_special": not arguments.no_bos, "parse_special": arguments.parse_special}
    found = diagnose(tokenizer, text, ids, others=others, **flags)

    def parts(width: int) -> Iterable[RenderableType]:
        flags["add_special"] &= found.added_as != AS_COMMAND
        return _parts(tokenizer, tokenizer.encode(text, **flags), ids, found, width)

    return _written(arguments, found, tokenizer.name, parts)


def _written(
    arguments: argparse.Namespace,
    found: Diagnosis,
    model: str,
    parts: Callable[[int], Iterable[RenderableType]],
) -> int:
    """Write the result, as JSON or in the parts for a terminal of some columns; the exit code."""
    if arguments.json:
        _output.write_json(answers.diagnosis(found, model))
    else:
        from ..analysis.views.drawing import ROW

        width = _output.terminal_width()
        _output.draw(parts(width or ROW), arguments.color, width)
    return EXIT_MATCH if found.match else EXIT_DIFFERENT


def _models(arguments: argparse.Namespace) -> tuple[Tokenizer, list[str | ModelLocation]]:
    model, *others = model_paths(arguments)
    tokenizer = Tokenizer.from_gguf(model, overrides=overrides_of(arguments))
    if tokenizer.vocabulary.path == default_model():  # a fix must not name a file of the package
        tokenizer = Tokenizer(tokenizer.vocabulary._replace(path=""))
    return tokenizer, others


def _run_chat(arguments: argparse.Namespace) -> int:
    _check_chat(arguments)
    body = body_of_file(arguments.chat, arguments)
    source = arguments.expected_prompt
    expected = None if source is None else read_stdin() if source == "-" else read_file(source)
    ids = None if arguments.ids is None else _given_ids(arguments.ids)
    tokenizer, others = _models(arguments)
    template = template_of(arguments, tokenizer)
    found = diagnose(
        tokenizer, None, ids, others=others, chat=body, expected_prompt=expected, chat_template=template
    )

    def parts(width: int) -> Iterable[RenderableType]:
        ours = answered(tokenizer, body, template)
        if isinstance(ours, Refused):
            return _refused(ours, found)
        if expected is not None:
            return _prompt_parts(ours, Prompt(expected), found)
        return _parts(tokenizer, tokenizer.encode(ours.text), ids or [], found, width)

    return _written(arguments, found, tokenizer.name, parts)


def _check_chat(arguments: argparse.Namespace) -> None:
    if arguments.chat is None:
        raise UsageError("--expected-prompt needs a chat: give --chat FILE")
    if (arguments.ids is None) == (arguments.expected_prompt is None):
        raise UsageError("--chat needs either --ids or --expected-prompt")
    if arguments.prompt is not None or arguments.file is not None or arguments.stdin:
        raise UsageError("give a text or --chat, not both: leave out -p, -f and --stdin")
    refuse_text_flags(arguments)
    if [arguments.chat, arguments.ids, arguments.expected_prompt].count("-") > 1:
        raise UsageError("only one of chat, ids and prompt can come from standard input")


def _given_text(arguments: argparse.Namespace) -> bytes:
    if arguments.ids != "-":
        settle_stdin(arguments, "prompt", "file")
    if arguments.ids is None:
        raise UsageError("which ids? Give --ids with a file, -, or a list such as [1, 2]")
    if arguments.stdin and arguments.ids == "-":
        raise UsageError("--stdin and --ids -: only one of text and ids can come from standard input")
    return read_text(arguments, "diagnose")


def _given_ids(where: str) -> list[int]:
    """The ids of --ids. What looks like numbers is not a file; a file named 1 can be given as ./1."""
    if where == "-":
        name, data = "standard input", read_stdin()
    elif _NUMBERS.fullmatch(where) or (where.lstrip()[:1] in ("[", "{") and not os.path.isfile(where)):
        name, data = "--ids", os.fsencode(where)
    else:
        name, data = where, read_file(where)
    try:
        lists = parse_ids(data)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    if len(lists) != 1:
        raise ValueError(f"{name} has the ids of {len(lists)} texts; give the ids of one")
    return lists[0]


# ---- output ---------------------------------------------------------------------------------------------


def _parts(
    tokenizer: Tokenizer, ours: list[int], theirs: list[int], found: Diagnosis, width: int
) -> Iterator[RenderableType]:
    """The verdict, the tokens around the first difference, and the explanations."""
    from rich.text import Text

    if found.match:
        these = "this" if len(ours) == 1 else "these"
        how = f", {SAID_OF[found.added_as]}" if found.added_as else ""
        yield Text.assemble(("match", "green"), f": the model gives {these} {counted(len(ours), 'id')}{how}")
        return
    at = first_difference(ours, theirs)
    share = percent(agreeing_share(ours, theirs))
    text = f": the model gives {counted(len(ours), 'id')}, and you gave {len(theirs)}; "
    text += f"{share} agree, and the first difference is at index {at}"
    yield Text.assemble(("no match", "bold red"), text)
    yield _row(tokenizer, "model", ours, at, width)
    yield _row(tokenizer, "given", theirs, at, width)
    yield from _explanations(found, "all ids")


def _prompt_parts(ours: Prompt, theirs: Prompt, found: Diagnosis) -> Iterator[RenderableType]:
    """The verdict on a prompt, both around the first byte that differs, and the explanations."""
    from rich.text import Text

    from ..analysis.views.chat_words import prompts_around
    from ..analysis.views.drawing import beside

    if found.match:
        yield Text.assemble(
            ("match", "green"), f": the model gives this prompt of {counted(len(ours.text), 'byte')}"
        )
        return
    where, *sides = prompts_around(ours.text, theirs.text)
    yield Text.assemble(
        ("no match", "bold red"), f": the model gives another prompt; the first difference is {where} bytes"
    )
    for name, (before, differs, behind) in zip(("model", "given"), sides):
        yield beside(f"  {name}  ", Text.assemble(before, (differs, "bold red"), behind))
    yield from _explanations(found, "the whole prompt")


def _refused(ours: Refused, found: Diagnosis) -> Iterator[RenderableType]:
    from rich.text import Text

    reason = terminal.one_line(str(ours))
    yield Text.assemble(("no match", "bold red"), f": llama-server refuses this chat: {reason}")
    yield from _explanations(found, "all of it")


def _explanations(found: Diagnosis, of: str) -> Iterator[RenderableType]:
    """The explanations that are listed, and the one command that is proposed; `of` is what they explain."""
    from ..analysis.views.cause_lines import proposal_lines

    distinct = {_but_for_the_family(each): each for each in reversed(found.explanations)}
    shown = [each for each in found.explanations if each is distinct[_but_for_the_family(each)]][:_LISTED]
    for number, explanation in enumerate(shown, 1):
        yield ""
        yield from _explanation(number, explanation, of)
    if left := len(found.explanations) - len(shown):
        yield ""
        more = counted(left, "more explanation")
        if len(shown) == len(distinct):
            more += f" {'fits' if left == 1 else 'fit'} equally well"
        yield f"… {more}; --json lists all"
    tried = [each.proposal for each in found.explanations if each.proposal is not None]
    if tried:
        yield ""
        yield from proposal_lines(next((each for each in tried if each.command), tried[0]))


def _row(tokenizer: Tokenizer, label: str, ids: list[int], at: int, width: int) -> Text:
    """The tokens around the first that differs, as many as fit on the line."""
    from rich.text import Text

    first = max(at - _AROUND, 0)
    line = Text(f"  {label} {'  …' if first else ''}", no_wrap=True)
    for index in range(first, min(at + _SHOWN, len(ids))):
        shown = Text(f"{ids[index]} {_piece(tokenizer, ids[index])}", "bold red" if index == at else "")
        if line.cell_len + shown.cell_len + len("    (end)") > width and index > at:
            return line.append("  …")
        line.append("  ").append_text(shown)
    return line.append("  …" if at + _SHOWN < len(ids) else "  (end)")


def _explanation(number: int, explanation: Explanation, of: str) -> Iterator[RenderableType]:
    from rich.text import Text

    from ..analysis.views.cause_lines import cause_lines

    names = " + ".join(cause.id for cause in explanation.causes)
    explains = f"explains {of}" if explanation.explains == 1 else f"{percent(explanation.explains)} agree"
    if names == "unknown":
        explains = f"{percent(explanation.explains)} agree as it is"
    yield Text.assemble((f"{number}. {names}", "bold"), f": {explains}")
    for cause in explanation.causes:
        yield from cause_lines(cause, 3)


def _but_for_the_family(explanation: Explanation) -> str:
    """A key that is equal for explanations that differ only in the pre-tokenizer, unless they are partial."""
    rest = [tuple(cause) for cause in explanation.causes if cause.id != "pre_type"]
    is_pre = len(rest) < len(explanation.causes)
    return repr((rest, explanation.explains, is_pre))


def _piece(tokenizer: Tokenizer, token: int) -> str:
    if not 0 <= token < tokenizer.vocab_size:
        return "(no token)"
    shown = terminal.visible(tokenizer.token_to_piece(token))
    return terminal.in_quotes(shown if len(shown) <= _PIECE else shown[: _PIECE - 1] + "…")
