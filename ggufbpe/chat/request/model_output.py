"""Finds what a model writes under a template: marks around its answers, and the form of its tool calls.

llama.cpp finds this out by comparing what a template makes of a few chats, and parses answers accordingly. It matters
to a prompt in two ways: a chat is refused if the answer to be continued could not be such output, and a template is
not accepted at all if its tool calls look like JSON but are not valid.

Source: analyze_content, analyze_tools and `workarounds` in common/chat-diff-analyzer.cpp.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..._util.errors import ChatError
from ..template.values import WHITE_SPACE, viewed
from .json_text import JSONError, parsed_as_llama_cpp
from .reasoning import (
    ANSWER,
    ARGUMENT,
    FIRST,
    MARK,
    SECOND,
    SPACE,
    THOUGHT,
    TOOLS,
    USER,
    Reasoning,
    Render,
    match_near,
    parted,
    rendered_both,
    tool_call,
)


@dataclass(frozen=True)
class Output:
    """The mark before each answer's text, the form of tool calls, and the text before the first call, if any.

    `supports_calls` says whether the template takes calls at all, in whatever form. `name_start` is what comes before
    the name in tagged calls that have no `calls_start`. With `tagged_arguments`, each argument has a tag of its own.
    """

    content_start: str = ""
    calls: Literal["", "json", "tagged"] = ""
    calls_start: str = ""
    name_start: str = ""
    supports_calls: bool = False
    tagged_arguments: bool = False


_WRAPPED = re.compile(rf"({MARK}{SPACE}){ANSWER}{SPACE}{MARK}")
_IN_JSON = r'[{{:]{}"{}"'
_NAMED = re.compile(
    rf"<(?:(?!{FIRST})[^>])*{FIRST}(?!{SPACE}<)[^>]*>{SPACE}"
    rf"|\[(?:(?!{FIRST})[^\]])*{FIRST}(?!{SPACE}\[[^\]]*\]){SPACE}"
)


def detect_output(source: str, render: Render, marks: Reasoning, supports_tool_calls: bool) -> Output:
    """What llama.cpp finds out. `ChatError` for a template that it does not accept."""
    output = Output(_content_start(render, marks), supports_calls=supports_tool_calls)
    if supports_tool_calls:
        output = _with_calls(output, render, marks)
    for present, patch in _PATCHES:
        if all(text in source for text in present) and not (
            output.content_start and patch.get("content_start")
        ):
            output = replace(output, **patch)
    return output


def _answer(content: str, **fields: Any) -> list[dict[str, Any]]:
    return [USER, {"role": "assistant", "content": content, **fields}]


def _content_start(render: Render, marks: Reasoning) -> str:
    plain = {"messages": _answer(ANSWER), "tools": TOOLS}
    calling = rendered_both(render, plain, {**plain, "messages": _answer("", tool_calls=[_TEST_CALL])})
    thinking = rendered_both(render, plain, {**plain, "messages": _answer("", reasoning_content=THOUGHT)})
    if calling is None or thinking is None:
        return ""
    beside_call, beside_thought = parted(*calling)[0], parted(*thinking)[0]
    if beside_call.strip(WHITE_SPACE) == ANSWER:
        if beside_thought[:1] not in tuple(WHITE_SPACE):
            return ""
        if (
            marks.present
            and marks.end
            and re.search(f"{re.escape(marks.end)}{SPACE}{ANSWER}", beside_thought)
        ):
            return ""
    if marks.end:
        _, mark, content = beside_thought.partition(marks.end)
        beside_thought = content if mark else beside_thought
    match = match_near(_WRAPPED, max(beside_call, beside_thought, key=len), ANSWER)
    return match[1] if match else ""


def _with_calls(output: Output, render: Render, marks: Reasoning) -> Output:
    first = _answer("", tool_calls=[tool_call(FIRST, "XXXX", "YYYY")])
    texts = rendered_both(
        render, {"messages": _answer(ANSWER), "tools": TOOLS}, {"messages": first, "tools": TOOLS}
    )
    written = parted(*texts)[1] if texts else ""
    if not written:
        return output
    is_json = re.search(_IN_JSON.format(SPACE, FIRST), written)
    in_json = is_json or re.search(_IN_JSON.format(SPACE, ARGUMENT), written)
    output = replace(output, tagged_arguments=not in_json)
    for mark in filter(None, (marks.start, marks.end)):
        written = written.replace(mark, "", 1)
    if is_json:
        return replace(output, calls="json", calls_start=_before_json(written))
    start = _before_tagged(written)
    if start:
        return replace(output, calls="tagged", calls_start=start)
    second = _answer("", tool_calls=[tool_call(SECOND, "XXXX", "YYYY", "call00002")])
    texts = rendered_both(render, {"messages": first, "tools": TOOLS}, {"messages": second, "tools": TOOLS})
    left, right = parted(*texts) if texts else ("", "")
    name_start = left.partition(FIRST)[0] if FIRST in left and SECOND in right else ""
    return replace(output, calls="tagged", name_start=name_start)


def _before_json(written: str) -> str:
    start, end = written.find("{"), written.rfind("}")
    try:
        if start < 0:
            raise JSONError("there is no object")
        parsed_as_llama_cpp(written[start : end + 1])
    except JSONError as error:
        raise ChatError(f"a tool call looks like JSON in this template, but is not valid: {error}") from None
    before = written[:start]
    bare = before.rstrip(WHITE_SPACE)
    if bare.endswith("[") and written[end + 1 :].lstrip(WHITE_SPACE).startswith("]"):
        before = bare[:-1]
    return before.lstrip(WHITE_SPACE)


def _before_tagged(written: str) -> str:
    named = match_near(_NAMED, written, FIRST)
    marker = re.escape(named[0] if named else FIRST)
    for between in (f"{MARK}{SPACE}.*?", ""):
        match = match_near(re.compile(f"({MARK}{SPACE}){between}{marker}", re.DOTALL), written, FIRST)
        if match:
            return match[1]
    return ""


_TEST_CALL = {
    "id": "call00001",
    "type": "function",
    "function": {"name": "test_func", "arguments": {"arg1": "value1"}},
}

# Texts by which a template is known if it has all of them, and what then holds.
_PATCHES: tuple[tuple[tuple[str, ...], dict[str, Any]], ...] = (
    (
        (
            "Write your thoughts between <think></think> and write your response between <response></response>",
        ),
        {"content_start": ""},
    ),
    (("<|CHATBOT_TOKEN|>", "<|END_OF_TURN_TOKEN|>"), {"content_start": "<|CHATBOT_TOKEN|>"}),
    (
        (
            'set has_code_interpreter = tools | selectattr("type", "equalto", "code_interpreter") '
            "| list | length > 0",
        ),
        {"content_start": "", "calls_start": "<function=", "name_start": ""},
    ),
    (
        ("{{'<｜Assistant｜><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>' + tool['type'] + '<｜tool▁sep｜>'",),
        {"calls_start": viewed("<｜tool▁calls▁begin｜>")},
    ),
    (
        ("<SPECIAL_10>", "<SPECIAL_11>", "<SPECIAL_12>", "<TOOL_RESPONSE>"),
        {"content_start": "", "calls": "json", "calls_start": "<TOOLCALL>"},
    ),
)
