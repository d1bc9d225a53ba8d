"""The kinds of tokens as an enumeration, for people; loading and encoding use the plain integers of vocabulary.py."""

from __future__ import annotations

from enum import IntFlag

from . import vocabulary


class TokenAttribute(IntFlag):
    """The kind of a token; the values are llama.cpp's (include/llama.h: llama_token_attr)."""

    UNDEFINED = 0
    UNKNOWN = vocabulary.UNKNOWN
    UNUSED = vocabulary.UNUSED
    NORMAL = vocabulary.NORMAL
    CONTROL = vocabulary.CONTROL
    USER_DEFINED = vocabulary.USER_DEFINED
    BYTE = vocabulary.BYTE
    LSTRIP = vocabulary.LSTRIP
    RSTRIP = vocabulary.RSTRIP
