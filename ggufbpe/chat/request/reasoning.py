"""Finds the marks that a template puts around reasoning by comparing what it writes.

llama.cpp finds them for templates that it does not know. A prompt depends on them in two ways: whether thinking is on
by default, and what comes before an answer that is to be continued.

Source: analyze_reasoning and `workarounds` in common/chat-diff-analyzer.cpp, calculate_diff_split and
segmentize_markers in common/chat-auto-parser-helpers.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ..._util.errors import ChatError
from ..template.values import WHITE_SPACE

Render = Callable[..., str]  # messages, tools, add_generation_prompt, enable_thinking -> text


@dataclass(frozen=True)
class Reasoning:
    """The marks, each possibly empty; `present` says whether the template knows about reasoning at all."""

    present: bool = False
    start: str = ""
    end: str = ""


_QUESTION = "U_USER_MSG Hello END_U"
ANSWER = "A_ASST_MSG I can help END_A"
THOUGHT = "REASON_PART I am thinking END_R"
MARK = r"(?:<[^>]*>|\[[^\]]*\])"
SPACE = r"[ \t\n\v\f\r]*"
_BEHIND = re.compile(rf"{THOUGHT}{SPACE}(?P<post>{MARK}{SPACE})?")
_AROUND = re.compile(rf"(?P<pre>{MARK}{SPACE}){THOUGHT}(?P<post>{SPACE}{MARK}{SPACE})")
_AROUND_CALL = re.compile(rf"(?P<pre>{MARK}{SPACE}){THOUGHT}{SPACE}(?P<post>{MARK}{SPACE})")
_NEAR = 1000  # characters
USER = {"role": "user", "content": _QUESTION}
_PARAMETERS = {
    "type": "object",
    "properties": {
        "AA_ARG_FST_AA": {"type": "string", "description": "First argument"},
        "BB_ARG_SND_BB": {"type": "string", "description": "Second argument"},
    },
    "required": [],
}
FIRST, SECOND = "FFF_FIRST_FUN_F", "SSS_SECOND_FUN_S"
ARGUMENT = "AA_ARG_FST_AA"
_FUNCTIONS = ((FIRST, "Test function foo"), (SECOND, "Test function bar"))
TOOLS = [
    {"type": "function", "function": {"name": name, "description": about, "parameters": _PARAMETERS}}
    for name, about in _FUNCTIONS
]


def tool_call(name: str, first: str, second: str, identity: str = "call00001") -> dict[str, Any]:
    """A tool call with values for its two arguments."""
    arguments = {ARGUMENT: first, "BB_ARG_SND_BB": second}
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


def detect_reasoning(render: Render, supports_tool_calls: bool) -> Reasoning:
    """The marks as found, before `patched`. `render` gives the template's text or raises `ChatError`."""
    reasoning = _in_answers(render)
    reasoning = _by_switch(render, reasoning)
    if supports_tool_calls:
        reasoning = _in_calls(render, reasoning)
    return reasoning


def rendered_both(render: Render, first: dict[str, Any], second: dict[str, Any]) -> tuple[str, str] | None:
    """What the template makes of two chats; None if it refuses either."""
    try:
        return render(**first), render(**second)
    except ChatError:
        return None


def _answer(**fields: Any) -> list[dict[str, Any]]:
    return [USER, {"role": "assistant", "content": ANSWER, **fields}]


def _in_answers(render: Render) -> Reasoning:
    texts = rendered_both(render, {"messages": _answer()}, {"messages": _answer(reasoning_content=THOUGHT)})
    if texts is None or THOUGHT not in parted(*texts)[1]:
        return Reasoning()
    match = match_near(_AROUND, texts[1]) or _BEHIND.search(texts[1])
    marks = match.groupdict("") if match else {}
    if not marks.get("post"):
        return Reasoning()
    return Reasoning(True, marks.get("pre", ""), marks["post"])


def _by_switch(render: Render, reasoning: Reasoning) -> Reasoning:
    """What changes with `enable_thinking`."""
    asked = {"messages": [USER], "add_generation_prompt": True}
    texts = rendered_both(render, {**asked, "enable_thinking": False}, {**asked, "enable_thinking": True})
    if texts is None:
        return reasoning
    off, on = texts
    left, right = parted(off, on)
    left_mark, right_mark = left.strip(WHITE_SPACE), right.strip(WHITE_SPACE)
    if not left_mark and right:
        if right_mark and on.endswith(right_mark) and not reasoning.start:
            reasoning = replace(reasoning, present=True, start=right)
    elif not right_mark and left:
        if left_mark and off.endswith(left_mark) and not reasoning.end:
            parts = [part for part in segments(off) if part[1].strip(WHITE_SPACE)]
            start = reasoning.start
            if len(parts) >= 2 and parts[-1][1] == left_mark and parts[-2][0]:
                start = parts[-2][1]
            reasoning = Reasoning(True, start, left)
    elif left_mark and right_mark:
        reasoning = _behind_tail(off, on, reasoning)
    return replace(reasoning, present=reasoning.present or bool(reasoning.end and not reasoning.start))


def _behind_tail(off: str, on: str, reasoning: Reasoning) -> Reasoning:
    """The marks that one text has after what is the end of the other."""
    for base, longer in ((on, off), (off, on)):
        tail = base[-64:]
        at = longer.rfind(tail)
        if at < 0 or at + len(tail) >= len(longer):
            continue
        parts = [
            part
            for part in segments(longer[at + len(tail) :].strip(WHITE_SPACE))
            if part[1].strip(WHITE_SPACE)
        ]
        if len(parts) == 2 and parts[0][0] and parts[1][0]:
            return Reasoning(True, reasoning.start or parts[0][1], reasoning.end or parts[1][1])
    return reasoning


def match_near(pattern: re.Pattern[str], text: str, needle: str = THOUGHT) -> re.Match[str] | None:
    """The first match, looking only near a needle: searching the whole text would be quadratic."""
    for hit in re.finditer(needle, text):
        match = pattern.search(text, max(hit.start() - _NEAR, 0), hit.end() + _NEAR)
        if match:
            return match
    return None


def _in_calls(render: Render, reasoning: Reasoning) -> Reasoning:
    """The marks, if reasoning is written only together with tool calls."""
    calling = {
        "role": "assistant",
        "content": None,
        "reasoning_content": THOUGHT,
        "tool_calls": [tool_call(FIRST, "VVVV", "XXXX")],
    }
    texts = rendered_both(
        render,
        {"messages": _answer(reasoning_content=THOUGHT), "tools": TOOLS},
        {"messages": [USER, calling], "tools": TOOLS},
    )
    if texts is None or THOUGHT in texts[0] or THOUGHT not in texts[1]:
        return reasoning
    match = match_near(_AROUND_CALL, texts[1])
    if match:
        return Reasoning(True, match["pre"], match["post"])
    behind = _BEHIND.search(texts[1])
    return Reasoning(True, reasoning.start, (behind and behind["post"]) or "")


# Texts that a template must have, texts that it must not have, and the marks that it then has.
_PATCHES: tuple[tuple[tuple[str, ...], tuple[str, ...], Reasoning], ...] = (
    (
        ("content.split('</think>')",),
        ("reasoning_content", "<SPECIAL_12>"),
        Reasoning(True, "<think>", "</think>"),
    ),
    (
        (
            "Write your thoughts between <think></think> and write your response between <response></response>",
        ),
        (),
        Reasoning(True, "<think>", "</think>"),
    ),
    (
        ("<SPECIAL_10>", "<SPECIAL_11>", "<SPECIAL_12>", "<TOOL_RESPONSE>"),
        (),
        Reasoning(True, "<think>\n", "</think>"),
    ),
)
_TRIMMED = "laguna_glm_thinking"  # its marks have no white space


def patched(source: str, reasoning: Reasoning) -> Reasoning:
    """The marks of templates known by their text; for all others, the marks that were found."""
    for number, (present, absent, marks) in enumerate(_PATCHES):
        fits = all(text in source for text in present) and not any(text in source for text in absent)
        if fits and not (number == 0 and reasoning.present):
            reasoning = marks
    if _TRIMMED in source:
        reasoning = replace(
            reasoning, start=reasoning.start.strip(WHITE_SPACE), end=reasoning.end.strip(WHITE_SPACE)
        )
    return reasoning


# ---- where two texts differ ---------------------------------------------------------------------


def segments(text: str) -> list[tuple[bool, str]]:
    """The text cut into marks, `<...>` and `[...]`, and the text between them; True stands with marks."""
    out = []
    opener, start = "", 0
    for position, character in enumerate(text):
        if not opener and character in "<[":
            if start < position:
                out.append((False, text[start:position]))
            start, opener = position, character
        elif opener and character == (">" if opener == "<" else "]"):
            out.append((True, text[start : position + 1]))
            start, opener = position + 1, ""
    if start < len(text):
        out.append((False, text[start:]))
    return out


def parted(left: str, right: str) -> tuple[str, str]:
    """Where two texts differ, by segments: what each has between their common start and their common end."""
    a, b = segments(left), segments(right)
    if not a or not b:
        return (left, right) if a or b else ("", "")
    rest = _Rest(a, b)
    rest.narrow()
    rest_left, rest_right = rest.left(), rest.right()
    suffix = common_length(rest_left[::-1], rest_right[::-1]) if rest.text_at_end() else 0
    prefix = 0
    if rest.text_at_start():
        cut = [text[: len(text) - suffix] for text in (rest_left, rest_right)]
        prefix = common_length(*cut)
    only_left = rest_left[prefix : len(rest_left) - suffix]
    only_right = rest_right[prefix : len(rest_right) - suffix]
    if not only_left and only_right and right.startswith(left):
        only_right = right[len(left) :]
    return only_left, only_right


def common_length(left: str, right: str) -> int:
    """The length of the common prefix of two texts."""
    return next((n for n, (a, b) in enumerate(zip(left, right)) if a != b), min(len(left), len(right)))


class _Rest:
    """Two lists of segments, narrowed from both ends while they agree; each keeps at least one segment."""

    def __init__(self, a: list[tuple[bool, str]], b: list[tuple[bool, str]]) -> None:
        self.a, self.b = a, b
        self.a_start = self.b_start = 0
        self.a_end, self.b_end = len(a) - 1, len(b) - 1
        self.a_used = self.b_used = False  # whether even the last segment is common

    def narrow(self) -> None:
        a, b = self.a, self.b
        while self.a_start != self.a_end and self.b_start != self.b_end:
            advanced = False
            if a[self.a_start] == b[self.b_start]:
                self.a_start += 1
                self.b_start += 1
                advanced = True
            if a[self.a_end] == b[self.b_end]:
                self._shorten()
                advanced = True
            if not advanced:
                break
        self._finish()

    def _shorten(self) -> None:
        if self.a_start != self.a_end:
            self.a_end -= 1
        else:
            self.a_used = True
        if self.b_start != self.b_end:
            self.b_end -= 1
        else:
            self.b_used = True

    def _finish(self) -> None:
        """Handles a list that is down to one segment, if the other one has it at an end."""
        a, b = self.a, self.b
        a_single, b_single = self.a_start == self.a_end, self.b_start == self.b_end
        if a_single and not b_single:
            if a[self.a_start] == b[self.b_end]:
                self.b_end -= 1
                self.a_used = True
            elif a[self.a_start] == b[self.b_start]:
                self.b_start += 1
                self.a_used = True
        elif b_single and not a_single:
            if a[self.a_end] == b[self.b_start]:
                self.a_end -= 1
                self.b_used = True
            elif a[self.a_start] == b[self.b_start]:
                self.a_start += 1
                self.b_used = True
        elif a_single and b_single and a[self.a_start] == b[self.b_start] and a[self.a_start][0]:
            self.a_used = self.b_used = True

    def text_at_end(self) -> bool:
        return not self.a[self.a_end][0] and not self.b[self.b_end][0]

    def text_at_start(self) -> bool:
        return not self.a[self.a_start][0] and not self.b[self.b_start][0]

    def left(self) -> str:
        end = self.a_end if self.a_used else self.a_end + 1
        return "".join(text for _, text in self.a[self.a_start : end])

    def right(self) -> str:
        end = self.b_end if self.b_used else self.b_end + 1
        return "".join(text for _, text in self.b[self.b_start : end])
