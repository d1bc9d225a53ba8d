"""Which chats the template refuses, and which messages and tools it leaves out of the prompt.

rendered.py -> [this file] -> examine.py
"""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import printable
from ..gguf.constants import TokenizerKey
from .facts import Facts
from .finding import Finding
from .rendered import ANSWER, NEXT, QUESTION, RESULT, SYSTEM, TOOL

_TEMPLATE = TokenizerKey.CHAT_TEMPLATE
_NOTHING = "nothing to do, if the model was trained so"

# Chats that a template may refuse, and what the server does then; a user's question alone is in template.py.
_CHATS = {
    "turns": "an answer and another question",
    "system": "a message of the system",
    "tools": "tools",
    "tool call": "a call of a tool and its result",
    "thinking": "an answer with its reasoning",
    "no thinking": "enable_thinking set to false",
}
# What a prompt must have of a chat, by the chat, and what it is.
_PARTS = (
    ("user", QUESTION, "the user's message"),
    ("turns", ANSWER, "the assistant's earlier message"),
    ("turns", NEXT, "the user's second message"),
    ("system", SYSTEM, "the system's message"),
    ("tool call", RESULT, "the result of a tool"),
)
_PLAIN = ("user", "turns")  # without which there is no chat


def chats_refused(model: Facts) -> Iterator[Finding]:
    """Chats that the template refuses; but for those that all templates take, as is the model's right."""
    rendered = model.rendered
    if rendered is None or rendered.refusal("user"):
        return
    for chat, what in _CHATS.items():
        error = rendered.refusal(chat)
        if error is None or (chat == "tool call" and rendered.refusal("tools")):
            continue
        line = "" if error.line is None else f" in line {error.line}"
        yield Finding(
            "warning" if chat in _PLAIN else "note",
            "chat_refused",
            f"the chat template refuses a chat with {what}{line}: {printable(error.reason, 200)}",
            "llama-server answers such a request with this error.",
            f"give it one that takes it: {model.set_template_file()}" if chat in _PLAIN else _NOTHING,
            model.key(_TEMPLATE),
            {"chat": chat, "line": error.line, "reason": error.reason},
        )


def messages_lost(model: Facts) -> Iterator[Finding]:
    """Messages that are not in the prompt, or in the place of another role's."""
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
            f"the chat template leaves out {what}",
            "It is not in llama-server's prompt, and the model does not see it.",
            f"give it one that writes it: {model.set_template_file()}" if chat in _PLAIN else _NOTHING,
            model.key(_TEMPLATE),
            {"chat": chat},
        )
    if f"{SYSTEM}\n{QUESTION}".encode() in (rendered.prompt("system") or b""):
        yield Finding(
            "note",
            "no_system_role",
            "the chat template takes no message of the system",
            "llama-server puts its text before that of the next message, with a line break between them.",
            _NOTHING,
            model.key(_TEMPLATE),
        )


def tools_not_shown(model: Facts) -> Iterator[Finding]:
    """Tools that the model does not see."""
    if not _shows_tools(model):
        yield Finding(
            "note",
            "tools_not_shown",
            "the chat template does not write the tools that a request has",
            "llama-server takes such a request, but the model does not know of the tools, and cannot call them.",
            "nothing to do, if the model was not trained to call tools",
            model.key(_TEMPLATE),
        )


def _shows_tools(model: Facts) -> bool:
    """Whether the prompt has the tools, or there is none."""
    prompt = model.rendered.prompt("tools") if model.rendered else None
    return prompt is None or TOOL.encode() in prompt
