"""Checks that a prefilled assistant message is a valid start of the model's output.

Before it generates anything, llama-server reads the start of the answer with the parser of the model's output, and
refuses the chat if the parser fails at the first byte. A text that ends early does not fail, nor does one that goes
wrong later. So all that matters is what a parser expects first. Mostly that is the generation prompt, which is there;
but it is JSON if a `response_format` asks for it and the template has no generation prompt.

Source: common_chat_session and common_chat_peg_parse in common/chat.cpp; autoparser::build_parser in
common/chat-auto-parser-generator.cpp; the lenient parsers of common/peg-parser.cpp, and json() among them.
"""

from __future__ import annotations

import re

from ..template.values import WHITE_SPACE, viewed
from .messages import Request
from .model_output import Output
from .reasoning import Reasoning

FENCE = "```json"
_CLOSED = "```"


def may_be_output(
    text: str, generation_prompt: str, marks: Reasoning, output: Output, request: Request
) -> bool:
    """Whether llama.cpp's parser accepts the start of an answer under a template that it does not know.

    The text begins with the generation prompt, or with as much of it as stands before the mark of reasoning.
    """
    mark = marks.start.strip(WHITE_SPACE)
    common = generation_prompt.partition(mark)[0] if mark else generation_prompt
    if common or not text or text[0] in WHITE_SPACE:
        return True
    extracts = request.extracts_reasoning and marks.present
    if extracts and marks.end and may_begin(text, mark):
        return True
    if isinstance(request.json_schema, dict):
        return may_begin_with_json(text)
    if request.tools and request.tool_choice != "none" and output.supports_calls:
        return _may_begin_with_call(text, output, request)
    return not extracts or may_begin(text, output.content_start)


def _may_begin_with_call(text: str, output: Output, request: Request) -> bool:
    """Whether a text can be the start of an answer with tool calls; only the start of a call is looked at."""
    if output.calls == "tagged" and not output.calls_start:
        names = (viewed(tool["function"]["name"]) for tool in request.tools)
        return any(may_begin(text, output.name_start + name) for name in names)
    if output.calls != "json" or not output.content_start:
        return True  # any text may come before calls
    starts = (output.calls_start,) if output.calls_start else ("{", "[")
    return any(may_begin(text, start) for start in (output.content_start, *starts))


def may_begin(text: str, wanted: str) -> bool:
    """Whether a text, which may be cut off anywhere, can begin with another."""
    return text.startswith(wanted) or wanted.startswith(text)


def may_begin_with_json(text: str) -> bool:
    """Whether a text, which may be cut off anywhere, begins with JSON or with a fenced block of it.

    >>> [may_begin_with_json(text) for text in ('{"a": [1', "tr", "```json 1", "12 apples", "No.", "[1,]")]
    [True, True, True, True, False, False]
    """
    if FENCE.startswith(text):
        return True
    if text.startswith(FENCE):
        end = _after_value(text, _after_space(text, len(FENCE)))
        return end is None or (end > 0 and may_begin(text[_after_space(text, end) :], _CLOSED))
    return _after_value(text, 0) != _NO_JSON


_NO_JSON = -1
_SPACE = re.compile(f"[{WHITE_SPACE}]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![0-9.eE+-])")
_CUT_NUMBER = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.(?:[0-9]+(?:[eE][+-]?[0-9]*)?)?|[eE][+-]?[0-9]*)?)?\Z")
_CHARACTERS = r'"(?:[^"\\]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*'
_STRING = re.compile(f'{_CHARACTERS}"')
_CUT_STRING = re.compile(rf"{_CHARACTERS}(?:\\(?:u[0-9a-fA-F]{{0,3}})?)?\Z")
_WORDS = {"t": "true", "f": "false", "n": "null"}
_CLOSING = {"{": "}", "[": "]"}


def _after_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    assert match is not None
    return match.end()


def _after_scalar(text: str, at: int) -> int | None:
    """Where a string, number or word ends; None if the text ends first, `_NO_JSON` if there is none."""
    first = text[at : at + 1]
    if first in _WORDS:
        word = _WORDS[first]
        return (
            at + len(word) if text.startswith(word, at) else None if word.startswith(text[at:]) else _NO_JSON
        )
    whole, cut = (_STRING, _CUT_STRING) if first == '"' else (_NUMBER, _CUT_NUMBER)
    if cut.match(text, at):
        return None
    match = whole.match(text, at)
    return match.end() if match else _NO_JSON


def _after_value(text: str, at: int) -> int | None:
    """Where any JSON value ends; None if the text ends first, `_NO_JSON` if there is none.

    The function is not recursive, since nesting can be as deep as the message is long.
    """
    closing: list[str] = []  # brackets of the arrays and objects that `at` is in
    is_key = may_close = False  # what may come next
    while at < len(text):
        if text[at] in _CLOSING and not is_key:
            closing.append(_CLOSING[text[at]])
            at = _after_space(text, at + 1)
            is_key, may_close = closing[-1] == "}", True
            continue
        if not (may_close and text[at] == closing[-1]):
            if is_key and text[at] != '"':
                return _NO_JSON
            end = _after_scalar(text, at)
            if end is None or end == _NO_JSON:
                return end
            at = end
            if is_key:
                at = _after_space(text, at)
                if text[at : at + 1] not in ("", ":"):
                    return _NO_JSON
                at = _after_space(text, at + 1)
                is_key = may_close = False
                continue
        while closing and text[(at := _after_space(text, at)) : at + 1] == closing[-1]:
            closing.pop()
            at += 1
        if not closing:
            return at
        if text[at : at + 1] not in ("", ","):
            return _NO_JSON
        at = _after_space(text, at + 1)
        is_key, may_close = closing[-1] == "}", False
    return None
