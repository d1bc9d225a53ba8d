"""For vLLM: `--tokenizer-mode ggufbpe`, a tokenizer with the ids that llama.cpp gives.

vLLM calls `register` by the entry point that pyproject.toml declares, wherever ggufbpe is installed beside it.
"""

from __future__ import annotations

import os
import warnings
from importlib import import_module
from typing import Any

from .._util.lazy import cached_property
from ._protocol import library
from .transformers import VOCABULARY_FILE, GGUFTokenizer

MODE = "ggufbpe"
_PASSED_ON = ("truncation_side", "padding_side", "llama_cpp")  # of what vLLM gives to every kind of tokenizer


def register() -> None:
    """Make `--tokenizer-mode ggufbpe` known to vLLM, by its registries of tokenizers and of what renders chats.

    A vLLM that has no such registries is only warned of, since an exception would keep it from starting.
    `NotInstalledError` without vLLM. Sources: vllm/tokenizers/registry.py and vllm/renderers/registry.py.
    """
    library("vllm", "vllm")
    try:
        import_module("vllm.tokenizers").TokenizerRegistry.register(MODE, __name__, VLLMTokenizer.__name__)
        renderers = import_module("vllm.renderers.registry").RENDERER_REGISTRY
        renderers.register(MODE, "vllm.renderers.hf", "HfRenderer")  # which calls `apply_chat_template`
    except (ImportError, AttributeError) as error:
        warnings.warn(f"the tokenizer mode {MODE} does not fit this version of vLLM: {error}", stacklevel=2)


class VLLMTokenizer(GGUFTokenizer):
    """A `GGUFTokenizer` with all members of vLLM's protocol (vllm/tokenizers/protocol.py: TokenizerLike)."""

    @classmethod
    def from_pretrained(
        cls,
        path_or_repo_id: str | os.PathLike[str],
        *args: Any,
        trust_remote_code: bool = False,
        revision: str | None = None,
        download_dir: str | None = None,
        gguf_file: str | None = None,
        **settings: Any,
    ) -> VLLMTokenizer:
        """Open the GGUF that vLLM names: a file, a folder and `gguf_file`, or any name that `ggufbpe` takes.

        A folder without `gguf_file` must have one GGUF. `ValueError` if it has none or several; other errors are those
        of `ggufbpe.Tokenizer.from_gguf`. Nothing is executed, so `trust_remote_code` has no effect; `revision` and
        `download_dir` are for files that vLLM itself downloads.
        """
        path = os.fspath(path_or_repo_id)
        if os.path.isdir(path):
            path = os.path.join(path, gguf_file or _only_gguf(path))
        return cls.from_gguf(path, **{name: settings[name] for name in _PASSED_ON if name in settings})

    @property
    def is_fast(self) -> bool:
        """True: vLLM warns of tokenizers that are slow."""
        return True

    @property
    def max_token_id(self) -> int:
        """The largest id."""
        return len(self.tok) - 1

    @cached_property
    def max_chars_per_token(self) -> int:
        """The most characters that one token stands for."""
        return max(len(piece.decode("utf-8", "replace")) for piece in self.tok.token_bytes)

    def get_chat_template(
        self, chat_template: str | None = None, tools: list[dict[str, Any]] | None = None
    ) -> str | None:
        """Return `chat_template`, or the file's template for chats with or without `tools`; None if it has none."""
        if chat_template is not None:
            return chat_template
        templates = self.tok.chat_templates
        return (templates.get("tool_use") if tools else None) or templates.get("")

    def apply_chat_template(  # type: ignore[override]
        self, conversation: Any, tools: Any = None, **settings: Any
    ) -> Any:
        """Return the prompt of a chat as `llama-server --jinja` makes it, or its ids with `tokenize=True`."""
        settings = {"tokenize": False, "return_dict": False, "add_generation_prompt": True, **settings}
        return super().apply_chat_template(conversation, tools, **settings)


def _only_gguf(folder: str) -> str:
    names = sorted(name for name in os.listdir(folder) if name.endswith(".gguf"))
    if VOCABULARY_FILE in names:
        return VOCABULARY_FILE
    if len(names) != 1:
        found = ", ".join(names) or "none"
        raise ValueError(f"{folder} must have one GGUF for the tokenizer mode {MODE}; it has {found}")
    return names[0]
