"""Reads a file's chat templates while it is open, so that they stay with the tokenizer and its pickles.

Source: llama_model_chat_template in src/llama-model.cpp; the names are those that convert_hf_to_gguf.py lists.
"""

from __future__ import annotations

from collections.abc import Iterator

from .._util.errors import GGUFError
from ..gguf.constants import KEY_ARCHITECTURE, GGUFValueType, TokenizerKey
from ..gguf.metadata import Metadata

_ASKED_FOR = ("tool_use", "rerank")  # llama.cpp looks for them, listed or not

# What llama.cpp puts in the place of a template that Mistral-Small-2503 does not have: a name that only its older
# engine knows, so that llama-server's prompts consist of it.
_OF_TEKKEN = "mistral-v7-tekken"
_LAYERS_OF_TEKKEN = 40


def chat_templates(file: Metadata) -> dict[str, str]:
    """Templates by name; the unnamed one is "". Values that are not text, or cannot be read, are left out."""
    templates = {"": _OF_TEKKEN} if _is_small_tekken(file) else {}
    for name in ("", *dict.fromkeys((*_ASKED_FOR, *_listed(file)))):
        key = f"{TokenizerKey.CHAT_TEMPLATE}.{name}" if name else TokenizerKey.CHAT_TEMPLATE
        try:
            if key in file and file.value_type(key) is GGUFValueType.STRING:
                templates[name] = str(file[key]).partition("\0")[0]
        except GGUFError:
            continue
    return templates


def _is_small_tekken(file: Metadata) -> bool:
    """Whether llama.cpp takes it for Mistral-Small-2503. Source: llama_model_chat_template."""
    try:
        return (
            file[TokenizerKey.PRE] == "tekken"
            and TokenizerKey.CHAT_TEMPLATE not in file
            and file[f"{file[KEY_ARCHITECTURE]}.block_count"] == _LAYERS_OF_TEKKEN
        )
    except (GGUFError, KeyError):
        return False


def _listed(file: Metadata) -> Iterator[str]:
    key = TokenizerKey.CHAT_TEMPLATES
    if key not in file or file.element_type(key) is not GGUFValueType.STRING:
        return
    try:
        names = file[key]
    except GGUFError:
        return
    yield from (name for name in names if name)  # type: ignore[union-attr, misc]
