"""Makes text safe for a terminal and for JSON, so that no control sequence in it takes effect.

drawing.py draws, and cli/_output.py writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from math import isfinite
from typing import Any

from ..._util import utf8
from ..._util.errors import escape_invisible, is_visible


def one_line(text: str) -> str:
    r"""`text` with all that takes effect on a terminal or cannot be seen escaped.

    >>> one_line("a\nb")
    'a\\nb'
    """
    return escape_invisible(text)


def visible(piece: bytes) -> str:
    r"""The bytes of a token, with backslashes and all that cannot be seen or is not UTF-8 escaped.

    >>> visible(b"\x1b[31m\xe4 ")
    '\\x1b[31m\\xe4 '
    """
    return one_line(piece.replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace"))


def in_quotes(shown: str, mark: str = "'") -> str:
    r"""Text that is safe for a terminal, between quotation marks that can be told from those in it.

    The other mark is taken if the text has this one; if it has both, those within are escaped. Backslashes of the text
    are escaped already, by `visible`.

    >>> print(in_quotes("a"), in_quotes("it's"), in_quotes("'\""), in_quotes('say "a"', '"'))
    'a' "it's" '\'"' 'say "a"'
    """
    other = '"' if mark == "'" else "'"
    if mark in shown and other not in shown:
        mark = other
    return f"{mark}{shown.replace(mark, chr(92) + mark)}{mark}"


def json_bytes(value: object) -> bytes:
    """JSON for people and programs: a list has an element a line; only what cannot be seen is escaped."""
    if isinstance(value, list):
        text = "[\n" + ",\n".join(map(json_text, value)) + "\n]" if value else "[]"
    else:
        text = json_text(value, indent=2)
    return (text + "\n").encode()


def json_parts(value: Mapping[str, object], name: str, items: Iterable[object]) -> Iterator[bytes]:
    """What `json_bytes` makes of an object whose last field `name` is a list, item by item, as it may be large."""
    yield json_text({**value, name: []}, indent=2).removesuffix("[]\n}").encode()
    yield from (part.encode() for part in json_list(items))
    yield b"\n}\n"


def json_list(items: Iterable[object]) -> Iterator[str]:
    """A list that is a field of an object, as `json_bytes` writes it there; item by item."""
    is_empty = True
    for item in items:
        yield "[\n    " if is_empty else ",\n    "
        yield json_text(item, indent=2).replace("\n", "\n    ")
        is_empty = False
    yield "[]" if is_empty else "\n  ]"


def json_text(value: object, indent: int | None = None) -> str:
    """`value` as JSON, in one line without `indent`, with invisible characters escaped.

    Strict parsers can read it (`strict_json`).
    """
    import json

    write = partial(json.dumps, ensure_ascii=False, indent=indent, allow_nan=False)
    try:
        text = write(value)
        text.encode()
    except ValueError:  # a lone surrogate, or a number that is not finite
        text = write(strict_json(value))
    unseen = {
        ord(char): json.dumps(char)[1:-1] for char in set(text) if not is_visible(char) and char != "\n"
    }
    return text.translate(unseen) if unseen else text


def strict_json(value: Any) -> Any:
    r"""`value` without what strict parsers refuse: lone surrogates, and numbers that are not finite.

    Lone surrogates come from paths and texts that are not UTF-8. They become U+FFFD, and if the string is a field of
    an object, `NAME_bytes` beside it has its bytes in hexadecimal.

    >>> strict_json({"path": "m\udcff", "after": float("inf")})
    {'path': 'm�', 'path_bytes': '6dff', 'after': 'inf'}
    """
    if isinstance(value, str):
        return utf8.without_surrogates(value)
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if isinstance(value, (list, tuple)):
        return list(map(strict_json, value))
    if not isinstance(value, Mapping):
        return value
    found: dict[Any, Any] = {}
    for name, item in value.items():
        name = strict_json(name)
        found[name] = strict_json(item)
        if isinstance(item, str) and found[name] != item:
            found.setdefault(f"{name}_bytes", utf8.original_bytes(item).hex())
    return found


# ---- right-to-left text ---------------------------------------------------------------------------------

_RTL = "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]+"


def isolated(text: str) -> str:
    """`text` with each right-to-left word in marks that keep it from turning around what stands beside it."""
    if text.isascii():
        return text
    import re

    return re.sub(_RTL, "\u2068\\g<0>\u2069", text)


def visible_text(data: bytes, limit: int) -> tuple[bytes, bool]:
    """The first `limit` bytes of a text or one character less or more, and whether it is cut."""
    if len(data) <= limit:
        return data, False
    ends = [end for end in utf8.char_ends(data[: limit + 4]) if end <= limit]
    return data[: ends[-1] if ends else limit], True


def shown_text(data: bytes, most: int) -> str:
    """A text in quotes, escaped, and cut if it has more than `most` bytes."""
    head, is_cut = visible_text(data, most)
    return in_quotes(visible(head) + "…" * is_cut, '"')
