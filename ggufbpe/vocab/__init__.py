"""The vocabulary of a model, and the rules of loading it that all tokenizer models share.

    gguf/ -> metadata -> [this room] -> vocabulary -> tokenizer.py

`vocabulary.py` is the result, `loading.py` the order of the rules, `tokens.py` and `special_ids.py` the rules;
`templates.py` has the chat templates beside it.
"""

from .loading import load, load_from, load_vocabulary, packed
from .special_ids import END_OF_GENERATION, MADE_CONTROL, SPECIAL_IDS
from .templates import chat_templates
from .vocabulary import (
    BYTE,
    CONTROL,
    LSTRIP,
    NORMAL,
    RSTRIP,
    SPECIAL_TYPES,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    GGUFWarning,
    TokenAttribute,
    Vocabulary,
    warn_of,
)

__all__ = [
    "BYTE",
    "CONTROL",
    "END_OF_GENERATION",
    "LSTRIP",
    "MADE_CONTROL",
    "NORMAL",
    "RSTRIP",
    "SPECIAL_IDS",
    "SPECIAL_TYPES",
    "UNKNOWN",
    "UNUSED",
    "USER_DEFINED",
    "GGUFWarning",
    "TokenAttribute",
    "Vocabulary",
    "chat_templates",
    "load",
    "load_from",
    "load_vocabulary",
    "packed",
    "warn_of",
]
