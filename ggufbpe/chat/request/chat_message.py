"""A message of a chat, as it is read from a request and as templates get it.

Source: common_chat_msg::to_json_oaicompat in common/chat.cpp.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from ..template.values import WHITE_SPACE

MEDIA_MARKER = "media_marker"  # the type of a part that stands for an image


@dataclass(frozen=True)
class Message:
    """One message; a content is a text or parts, each with a type and a text."""

    role: str
    content: str = ""
    parts: tuple[tuple[str, str], ...] = ()
    calls: tuple[tuple[str, str, str], ...] = ()  # name, arguments, id
    reasoning: str = ""
    name: str = ""
    call_id: str = ""

    @property
    def empty(self) -> bool:
        """Whether it has nothing but a role."""
        return self == Message(self.role)

    def rendered_content(self) -> str:
        """The text, or the texts of its parts with empty lines between them."""
        out = self.content
        for kind, text in self.parts if not out else ():
            if kind == "text":
                out += ("\n\n" if out else "") + text
        return out

    def _joined(self) -> str:
        """The texts of the parts with line ends between them, except around images."""
        out, before = "", MEDIA_MARKER
        for kind, text in self.parts:
            out += ("\n" if out and MEDIA_MARKER not in (kind, before) else "") + text
            before = kind
        return out

    def texts(self) -> Iterator[str]:
        """All texts of the message but its role."""
        yield from (self.content, self.reasoning, self.name, self.call_id)
        for group in (*self.parts, *self.calls):
            yield from group

    def as_json(self) -> dict[str, Any]:
        """The message as templates get it."""
        out: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.parts and not self.content:
            out["content"] = [{"type": kind, "text": text} for kind, text in self.parts]
            if any(kind == MEDIA_MARKER for kind, _ in self.parts):
                out["content"] = self._joined()
        if self.reasoning:
            out["reasoning_content"] = self.reasoning
        if self.name:
            out["name"] = self.name
        if self.call_id:
            out["tool_call_id"] = self.call_id
        if self.calls:
            out["tool_calls"] = [
                {
                    "type": "function",
                    "function": {"name": name, "arguments": arguments},
                    **({"id": identity} if identity else {}),
                }
                for name, arguments, identity in self.calls
            ]
        return out

    def trimmed(self) -> Message:
        """A copy of the message without white space around its texts."""
        return replace(
            self,
            content=self.content.strip(WHITE_SPACE),
            reasoning=self.reasoning.strip(WHITE_SPACE),
            parts=tuple(
                (kind, text.strip(WHITE_SPACE) if kind == "text" else text) for kind, text in self.parts
            ),
        )
