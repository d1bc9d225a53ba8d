"""The package transformers as an oracle of chats: the templates of a folder or a repository, run as it runs them.

transformers runs in a child process with limits of time and memory (library_child.py). A prompt of its has the BOS that
the template writes, and no other is added; here it is without those that our tokenizer adds, as our own prompts are.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from ..._util.errors import ModelNameError, RemoteNotFoundError, printable
from ...tokenizer import Tokenizer
from .chat_answers import Body, ChatAnswer, Prompt, Refused
from .library_child import CHAT
from .library_oracle import LibraryOracle
from .oracle import Answer, Failure, OracleError

# What transformers reads of a repository (tokenization_auto.py; VOCAB_FILES of its classes); the first must be there.
_NEEDED = "tokenizer_config.json"
_FILES = (
    *("tokenizer.json", "chat_template.jinja", "chat_template.json", "special_tokens_map.json"),
    *("added_tokens.json", "config.json", "additional_chat_templates/tool_use.jinja"),
)
# Without tokenizer.json.
_VOCABULARIES = ("tokenizer.model", "spiece.model", "vocab.json", "merges.txt", "vocab.txt")
_MOST_KEPT = 1000  # prompts of which the ids are remembered


class TransformersOracle(LibraryOracle):
    """transformers with the tokenizer of a folder. `OracleError` if it is not installed, or cannot open the folder."""

    takes_chats = True
    note = "special tokens that templates write are compared; transformers adds none to a prompt"

    def __init__(self, folder: str, tokenizer: Tokenizer, seconds: float, name: str = "") -> None:
        self.location = name or folder
        """What names the folder or repository in a command."""
        folder = os.path.abspath(folder)
        super().__init__("transformers", {"folder": folder, "seconds": seconds}, "transformers", seconds)
        self.source = name or printable(os.path.basename(folder))[1:-1]
        self.name = f"{self.name} with {self.source}"
        self._ends = tokenizer.chats.ends
        self._ids: dict[bytes, list[int]] = {}
        self._before = ""  # the BOS that a template writes, of the last prompt
        said = self.answer({})
        if not isinstance(said, dict):
            raise OracleError(f"{self.name} does not say what it has: {said}")
        self._templates: dict[str, str] = said["templates"]
        self.special_tokens: dict[str, str] = said["special"]
        """The texts of "bos_token" and others."""
        self.added_tokens = {
            int(token): (text, is_special) for token, (text, is_special) in said["added"].items()
        }
        """Id to text and whether it is special."""

    def chat_templates(self) -> dict[str, str]:
        return self._templates

    def chat(
        self, body: Mapping[str, Any], chat_template: str | None = None, now: datetime | None = None
    ) -> ChatAnswer:
        """The prompt of a chat; `chat_template` is run in place of the folder's, and `now` is the time it is told."""
        question = arguments_of(body)
        if chat_template:
            question["chat_template"] = chat_template
        if now:
            question["now"] = now.replace(tzinfo=None).isoformat()
        said = self.answer(question)
        if not isinstance(said, dict):
            return said
        whole = said["prompt"].encode("utf-8", "surrogatepass")
        bare = self._ends.without_added(whole.decode("latin-1")).encode("latin-1")
        self._before = whole[: whole.find(bare)].decode("utf-8", "replace") if self._ends.adds_bos else ""
        if len(self._ids) >= _MOST_KEPT:
            self._ids.clear()
        self._ids[bare] = said["ids"]
        return Prompt(bare)

    def encode(self, texts: Sequence[bytes], add_special: bool, parse_special: bool) -> list[Answer]:
        """The ids that go with a prompt; of another text, as if it were one of the last template's."""
        before = self._before.encode() if add_special else b""
        found: list[Answer] = []
        for text in texts:
            known = self._ids.get(text) if add_special and parse_special else None
            found += [known] if known is not None else super().encode([before + text], False, parse_special)
        return found

    def answer(self, question: Mapping[str, Any]) -> dict[str, Any] | Refused | Failure:
        """The answer to a question of `open_transformers` (library_adapters.py), or why there is none."""
        answer = self._answer(CHAT, json.dumps(question).encode())
        if isinstance(answer, Failure):
            reason = answer.detail.removeprefix("TemplateError: ")
            return Refused(reason) if answer.kind == "refused" else answer
        found: dict[str, Any] = json.loads(answer)
        return found


def arguments_of(body: Body) -> dict[str, Any]:
    """The arguments of transformers' `apply_chat_template` that ask for what the body of a request asks for.

    An answer at the end is continued, as llama-server does. Arguments of tool calls become objects, as transformers'
    documentation wants them; in a request they are JSON as text.
    """
    messages, kwargs = body.get("messages"), body.get("chat_template_kwargs")
    last = messages[-1] if isinstance(messages, list) and messages else None
    continued = body.get("continue_final_message") or (
        isinstance(last, dict) and last.get("role") == "assistant"
    )
    effort = body.get("reasoning_effort")
    return {
        **({"reasoning_effort": effort} if effort else {}),
        **(kwargs if isinstance(kwargs, dict) else {}),
        "conversation": list(map(_with_objects, messages)) if isinstance(messages, list) else messages,
        "tools": body.get("tools") or None,
        "add_generation_prompt": False if continued else body.get("add_generation_prompt", True),
        "continue_final_message": continued,
    }


def _with_objects(message: Any) -> Any:
    """A message with the arguments of its tool calls as objects."""
    calls = message.get("tool_calls") if isinstance(message, dict) else None
    return (
        {**message, "tool_calls": list(map(_call_with_object, calls))} if isinstance(calls, list) else message
    )


def _call_with_object(call: Any) -> Any:
    function = call.get("function") if isinstance(call, dict) else None
    given = function.get("arguments") if isinstance(function, dict) else None
    if not isinstance(function, dict) or not isinstance(given, str):
        return call
    try:
        value = json.loads(given)
    except (ValueError, RecursionError):
        return call
    return {**call, "function": {**function, "arguments": value}} if isinstance(value, dict) else call


def transformers_library(rest: str, model: str, tokenizer: Tokenizer, seconds: float) -> TransformersOracle:
    """transformers with the folder at `rest`, or the repository of the hub that it names."""
    if os.path.isdir(rest):
        return TransformersOracle(rest, tokenizer, seconds)
    return TransformersOracle(folder_of_repository(rest), tokenizer, seconds, rest)


def folder_of_repository(name: str, *, offline: bool = False) -> str:
    """The folder, in the cache of huggingface_hub, with the files of a repository's tokenizer, downloaded if need be.

    A `RemoteError` if it has no tokenizer_config.json; `OracleError` if `name` does not name a repository.
    """
    from ...hub.name_grammar import HubName, parse_name
    from ...hub.remote.huggingface import downloaded

    try:
        reference = parse_name(name)
    except ModelNameError:
        reference = None
    if not isinstance(reference, HubName) or reference.quant or reference.file:
        raise OracleError(f"{printable(name)} is neither a folder nor a repository such as hf:OWNER/REPO")
    path = downloaded(reference, _NEEDED, offline=offline)

    def is_there(file: str) -> bool:
        try:
            downloaded(reference, file, offline=offline)
        except RemoteNotFoundError:
            return False
        return True

    there = {file for file in _FILES if is_there(file)}
    if "tokenizer.json" not in there:
        any(map(is_there, _VOCABULARIES[:2])) or all(map(is_there, _VOCABULARIES[2:]))
    return os.path.dirname(path)
