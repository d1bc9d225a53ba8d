"""Finds markers of chats, such as <|im_start|>, in templates and prompts."""

from __future__ import annotations

import re

from ...chat.template import lexer
from ...chat.template.values import plain, viewed

# Only the forms that models have as special tokens. What diagnose takes for a marker is much wider
# (analysis/diagnose/chat_causes.py): "<tool_call>" and "[ANSWER]" are plain text in many templates, and no finding.
_MARKER = re.compile(
    r"<\|[^|<>{}\s'\"]{1,60}\|>|<｜[^｜<>{}\s'\"]{1,60}｜>|\[/?INST\]|<</?SYS>>|"
    r"<(?:start|end)_of_turn>|<\|?turn\|?>|\[/?(?:SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\]"
)
PLAIN_MARKERS = re.compile(r"\[/?INST\]|<</?SYS>>")  # plain text in Llama 2 and Mistral 7B v0.1
_ENDS = re.compile(r"</?s>|<(?:bos|eos)>")  # only in prompts: conditions of templates contain them, too
_JINJA_COMMENT = re.compile(r"\{#.*?#\}", re.DOTALL)


def without_comments(template: str) -> str:
    """A template without its comments."""
    return _JINJA_COMMENT.sub("", template)


def markers_of(template: str) -> list[str]:
    """The markers in a template's source."""
    return list(dict.fromkeys(_MARKER.findall(without_comments(template))))


def markers_of_prompt(prompt: str) -> list[str]:
    """The markers in a prompt."""
    return list(dict.fromkeys((*_MARKER.findall(prompt), *_ENDS.findall(prompt))))


def literals_of(template: str) -> list[str]:
    """The texts in a template's source: what is outside of blocks, and strings within; none that cannot be read.

    In `messages[0]`, "[0]" is no text.
    """
    try:
        found = list(lexer.tokens(viewed(template)))
    except lexer.LexerError:  # which another check reports
        return []
    return [plain(value) for _, kind, value in found if kind in ("data", "string")]
