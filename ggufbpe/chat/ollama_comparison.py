"""A chat as Ollama makes a prompt of it, beside llama-server's prompt of the same chat."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from difflib import unified_diff
from typing import TYPE_CHECKING, Any, NamedTuple

from .._util.errors import ChatError, escape_invisible, printable
from .ollama_model import OllamaModel

if TYPE_CHECKING:
    from ..hub.stores.ollama_store import OllamaLayers
    from .prompt_tokenizer import PromptTokenizer


class Rendered(NamedTuple):
    """A prompt in UTF-8, and its ids with what the tokenizer adds."""

    prompt: bytes
    ids: list[int]

    @classmethod
    def of(cls, tokenizer: PromptTokenizer, prompt: bytes) -> Rendered:
        return cls(prompt, tokenizer.encode(prompt))

    def to_dict(self) -> dict[str, Any]:
        return {"prompt": self.prompt.decode("utf-8", "replace"), "ids": self.ids, "count": len(self.ids)}


class OllamaChat(NamedTuple):
    """Ollama's prompt of a chat. `source` is what renders it, `says` one sentence about that."""

    ollama: Rendered
    source: str
    says: str
    llama_server: Rendered | None = None

    @property
    def is_same(self) -> bool:
        """Whether both prompts have the same ids; true if there is only one."""
        return self.llama_server is None or self.llama_server.ids == self.ollama.ids

    def to_dict(self) -> dict[str, Any]:
        found = {**self.ollama.to_dict(), "ollama": {"template": self.source, "says": self.says}}
        if self.llama_server is None:
            return found
        verdict = "same" if self.is_same else "different"
        return {"verdict": verdict, **found, "llama_server": self.llama_server.to_dict()}

    def lines(self, tokenizer: PromptTokenizer) -> Iterator[str]:
        """The differences for people: of the texts by lines, then the first one of the ids."""
        if self.llama_server is None:
            return
        theirs, ours = self.llama_server, self.ollama
        before, after = (
            one.prompt.decode("utf-8", "replace").splitlines(keepends=True) for one in (theirs, ours)
        )
        heads = f"llama-server, {len(theirs.ids)} tokens", f"Ollama, {len(ours.ids)} tokens"
        for number, line in enumerate(unified_diff(before, after, heads[0], heads[1], n=1, lineterm="")):
            text = escape_invisible(line.removesuffix("\n"))
            yield text if number < 2 or line[0] == "@" else text + "\\n" * line.endswith("\n")
        if self.is_same:
            yield f"The prompts have the same {len(ours.ids)} ids."
            return
        differing = (place for place, (a, b) in enumerate(zip(theirs.ids, ours.ids)) if a != b)
        first = next(differing, min(len(theirs.ids), len(ours.ids)))
        has = (_shown(tokenizer, one.ids[first : first + 1]) for one in (theirs, ours))
        yield "ids differ from place {} on: llama-server has {}, Ollama has {}".format(first, *has)


def _shown(tokenizer: PromptTokenizer, ids: list[int]) -> str:
    """A token by its id and text; "none" where there is none."""
    return (
        f"{ids[0]} {printable(tokenizer.token_to_piece(ids[0]).decode('utf-8', 'replace'))}"
        if ids
        else "none"
    )


def ollama_chat(
    tokenizer: PromptTokenizer,
    layers: OllamaLayers,
    body: Mapping[str, Any],
    now: datetime | None = None,
    *,
    compares: bool = False,
) -> OllamaChat:
    """The prompt that Ollama makes of a chat, with llama-server's beside it if `compares`.

    `ChatError` if either refuses the chat, or if Ollama renders it by code of its own.
    """
    model = OllamaModel(layers, tokenizer)
    found = OllamaChat(Rendered.of(tokenizer, model.prompt(body, now)), model.source, model.in_words())
    if not compares:
        return found
    try:
        return found._replace(llama_server=Rendered.of(tokenizer, tokenizer.chats.prompt(body, now=now)))
    except ChatError as error:
        raise ChatError(f"llama-server refuses the chat: {error}") from None
