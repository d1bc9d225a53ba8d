"""The chat templates of a file: read while it is open, so that they stay with the tokenizer and its pickles.

metadata.py -> [this file] -> tokenizer.py, chat/

Source: llama_model_chat_template in src/llama-model.cpp; the names are those that convert_hf_to_gguf.py lists.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import GGUFError
from ..gguf.constants import GGUFValueType, TokenizerKey
from ..gguf.metadata import Metadata

_NAMES = "tokenizer.chat_templates"  # the names that follow the key and a dot
_ASKED_FOR = ("tool_use",)  # llama.cpp looks for it, listed or not


def chat_templates(file: Metadata) -> dict[str, str]:
    """Templates by name; the unnamed one is "". Values that are not text, or cannot be read, are left out."""
    found = {}
    for name in ("", *dict.fromkeys((*_ASKED_FOR, *_listed(file)))):
        key = f"{TokenizerKey.CHAT_TEMPLATE}.{name}" if name else TokenizerKey.CHAT_TEMPLATE
        try:
            if key in file and file.value_type(key) is GGUFValueType.STRING:
                found[name] = str(file[key]).partition("\0")[0]
        except GGUFError:
            continue
    return found


def _listed(file: Metadata) -> Iterator[str]:
    if _NAMES not in file or file.element_type(_NAMES) is not GGUFValueType.STRING:
        return
    try:
        names = file[_NAMES]
    except GGUFError:
        return
    yield from (name for name in names if name)  # type: ignore[union-attr, misc]
