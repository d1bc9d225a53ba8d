"""How vocabularies that are not byte-level write spaces, as U+2581, and single bytes, as `<0xXX>`.

The other way of writing bytes, GPT-2's alphabet, is in models/bpe/merge.py.
"""

from __future__ import annotations

SPACE = "\u2581"  # an escaped space
BYTE_TOKENS = tuple(f"<0x{byte:02X}>" for byte in range(256))  # the token of each byte
BYTE_OF = {token: byte for byte, token in enumerate(BYTE_TOKENS)}


def escape_spaces(text: str) -> str:
    """`text` with spaces as tokens have them.

    >>> escape_spaces("a b"), unescape_spaces(escape_spaces("a b"))
    ('a▁b', 'a b')
    """
    return text.replace(" ", SPACE)


def unescape_spaces(text: str) -> str:
    """The text of a token, with spaces."""
    return text.replace(SPACE, " ")
