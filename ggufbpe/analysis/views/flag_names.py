"""The language of the command line: library messages name arguments of Python, which are flags here."""

from __future__ import annotations

import re
from functools import cache

# What messages of the library say: what is typed on the command line instead.
FLAGS = {
    "add_special=False": "--no-bos",
    "alphabet=…": "--alphabet",
    "another pre": "another --pre",
    "bos=NAME": "--bos NAME",
    "bos=True": "--bos",
    "chat_column=NAME": "--chat-column NAME",
    "chat_template=…": "--chat-template-file",
    "whole=True": "--whole",
    "with chats=True": "with `ggufbpe encode --chats` or `ggufbpe count --chat`",
    'chat_template="known:chatml"': "--chat-template known:chatml",
    "code_points=True": "--code-points",
    "eos=False": "--no-eos",
    "errors='replace'": "--errors replace",
    "escape=True": "--escape",
    "field=NAME": "--field NAME",
    "force=True": "--force",
    "in_place=True": "--in-place",
    "keep: the marker": "--marker",
    "(shorten_to)": "(--shorten-to)",
    "limit_alphabet=N": "--limit-alphabet N",
    "llama_cpp=": "--llama-cpp ",
    "media_path, the": "--media-path, the",
    "offline=True": "--offline",
    "on_error='skip'": "--on-error skip",
    "overrides={'tokenizer.ggml.pre': NAME}": "--override-kv tokenizer.ggml.pre=str:NAME",
    "parse_special=False": "--no-parse-special",
    "position_ids=True": "--position-ids",
    "pre=NAME": "--pre NAME",
    "pre='gemma4'": "--pre gemma4",
    "preference='chosen'": "--preference chosen",
    "preference='rejected'": "--preference rejected",
    "refresh=True": "--refresh",
    "renumber=True": "--renumber",
    "resume=True": "--resume",
    "special=['<|endoftext|>']": "--special '<|endoftext|>'",
    "text_column=NAME": "--text-column NAME",
    "units='chars'": "--units chars",
    "unk='<unk>'": "--unk '<unk>'",
}


def with_flags(text: str) -> str:
    """Return a message of the library with flags in place of Python's arguments.

    >>> with_flags("out.gguf already exists; force=True overwrites it")
    'out.gguf already exists; --force overwrites it'
    """
    return _any_argument().sub(lambda found: FLAGS[found[0]], text)


@cache
def _any_argument() -> re.Pattern[str]:
    """Return a pattern for Python's arguments, compiled when the first message is shown."""
    return re.compile("|".join(rf"(?<![\w=]){re.escape(each)}" for each in FLAGS))
