"""Checks which chats the template refuses, and which messages, tools and beginnings of answers it leaves out."""

from __future__ import annotations

from collections.abc import Iterator

from ..._util.errors import printable
from ...gguf.constants import TokenizerKey
from .chat_markers import markers_of_prompt
from .facts import Facts
from .finding import Finding
from .known_template_check import replacement
from .sample_prompts import ANSWER, NEXT, QUESTION, RESULT, SYSTEM, TOOL

_TEMPLATE = TokenizerKey.CHAT_TEMPLATE
_NOTHING = "nothing to do if the model was trained that way"

# Chats that a template may refuse; a user's question alone is in template_checks.py.
_CHATS = {
    "turns": "an answer and another question",
    "system": "a system message",
    "tools": "tools",
    "tool call": "a tool call and its result",
    "thinking": "an answer with reasoning",
    "no thinking": "enable_thinking set to false",
}
# What the prompt of a chat must contain, and what it is.
_PARTS = (
    ("user", QUESTION, "the user's message"),
    ("turns", ANSWER, "the assistant's earlier message"),
    ("turns", NEXT, "the user's second message"),
    ("system", SYSTEM, "the system message"),
    ("tool call", RESULT, "the result of a tool"),
)
_PLAIN = ("user", "turns")  # without which there is no chat


def chats_refused(model: Facts) -> Iterator[Finding]:
    """Chats that the template refuses: a warning for plain ones, which every template should take, else a note."""
    rendered = model.rendered
    if rendered is None or rendered.refusal("user"):
        return
    for chat, what in _CHATS.items():
        error = rendered.refusal(chat)
        if error is None or (chat == "tool call" and rendered.refusal("tools")):
            continue
        line = "" if error.line is None else f" (in its line {error.line})"
        yield Finding(
            "warning" if chat in _PLAIN else "note",
            "chat_refused",
            f"The chat template refuses a chat with {what}.",
            "llama-server answers such a request with this error.",
            f"set a template that accepts it: {model.set_template_file()}" if chat in _PLAIN else _NOTHING,
            model.key(_TEMPLATE),
            {"chat": chat, "line": error.line, "reason": error.reason},
            f"It says{line}: {printable(error.reason, 200)}.",
        )


def answer_not_begun(model: Facts) -> Iterator[Finding]:
    """A prompt that ends with the user's message, although a marker begins earlier answers.

    The user's message ends as answers do. Tokens do not matter, so that a command which mends those reveals nothing.
    """
    rendered = model.rendered
    if rendered is None:
        return
    behind = (rendered.prompt("user") or b"").rpartition(QUESTION.encode())[2].rstrip()
    between = (rendered.prompt("turns") or b"").partition(QUESTION.encode())[2].partition(ANSWER.encode())[0]
    if not behind or not between.startswith(behind) or not rendered.behind_answer[1].startswith(behind):
        return
    begins = between[len(behind) :].decode("utf-8", "replace")
    if not markers_of_prompt(begins):
        return
    known = replacement(model)
    yield Finding(
        "warning",
        "answer_not_begun",
        "The chat template does not begin the answer.",
        "The model has to write the beginning of its answer itself, and may write another message of the user instead.",
        f"use llama.cpp's template for this model: {model.set_template(known)}"
        if known
        else f"set a template that begins the answer if add_generation_prompt is true: {model.set_template_file()}",
        model.key(_TEMPLATE),
        {"begins": begins},
        f"Earlier answers begin with {printable(begins)}, and the prompt ends before that.",
    )


def messages_lost(model: Facts) -> Iterator[Finding]:
    """Messages that are missing from the prompt, or written as those of another role."""
    rendered = model.rendered
    if rendered is None:
        return
    for chat, text, what in _PARTS:
        prompt = rendered.prompt(chat)
        if prompt is None or text.encode() in prompt or (chat == "tool call" and not _shows_tools(model)):
            continue
        yield Finding(
            "warning" if chat in _PLAIN else "note",
            "message_lost",
            f"The chat template leaves out {what}.",
            "It is not in llama-server's prompt, so the model does not see it.",
            f"set a template that writes it: {model.set_template_file()}" if chat in _PLAIN else _NOTHING,
            model.key(_TEMPLATE),
            {"chat": chat},
        )
    if f"{SYSTEM}\n{QUESTION}".encode() in (rendered.prompt("system") or b""):
        yield Finding(
            "note",
            "no_system_role",
            "The chat template has no place for a system message.",
            "llama-server prepends their text to the next message, with a line break between them.",
            _NOTHING,
            model.key(_TEMPLATE),
        )


def tools_not_shown(model: Facts) -> Iterator[Finding]:
    """Tools that the model does not see."""
    if not _shows_tools(model):
        yield Finding(
            "note",
            "tools_not_shown",
            "The chat template leaves out the tools of a request.",
            "llama-server accepts such a request, but the model is not told of the tools, and cannot call them.",
            "nothing to do if the model was not trained to call tools",
            model.key(_TEMPLATE),
        )


def _shows_tools(model: Facts) -> bool:
    """Whether the prompt has the tools; True if there is no prompt."""
    prompt = model.rendered.prompt("tools") if model.rendered else None
    return prompt is None or TOOL.encode() in prompt
