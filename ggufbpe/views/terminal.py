"""Text on its way to a terminal, and JSON: nothing in it takes effect there, and no line is too long.

But: writes nothing; cli/_output.py does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from .. import utf8
from ..errors import escape_invisible, is_visible

RESET, DIM, BOLD = "\x1b[0m", "\x1b[2m", "\x1b[1m"
_PIECE_WIDTH = 28  # columns of a piece in a row


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


def json_bytes(value: object) -> bytes:
    """JSON for people and programs: a list has an element a line; only what cannot be seen is escaped."""
    if isinstance(value, list):
        text = "[\n" + ",\n".join(map(json_text, value)) + "\n]" if value else "[]"
    else:
        text = json_text(value, indent=2)
    return (text + "\n").encode()


def json_parts(value: Mapping[str, object], name: str, items: Iterable[object]) -> Iterator[bytes]:
    """What `json_bytes` makes of an object whose last field `name` is a list, item by item, as it may be large."""
    head = json_text({**value, name: []}, indent=2).removesuffix("]\n}")
    between = "\n    "
    for item in items:
        yield (head + between + json_text(item, indent=2).replace("\n", "\n    ")).encode()
        head = ","
    yield (f"{head}]\n}}\n" if head != "," else "\n  ]\n}\n").encode()


def json_text(value: object, indent: int | None = None) -> str:
    """The same as text, in one line without `indent`."""
    import json

    text = json.dumps(value, ensure_ascii=False, indent=indent)
    unseen = {
        ord(char): json.dumps(char)[1:-1] for char in set(text) if not is_visible(char) and char != "\n"
    }
    return text.translate(unseen) if unseen else text


def wrapped(text: str, width: int | None, indent: int, breaks: str = " ", start: int | None = None) -> str:
    """`text` in lines of at most `width`, broken after one of `breaks` if possible, all but the first indented.

    The first line begins in column `start` (default: `indent`). Nothing is dropped but a space at which a line
    is broken, and none in patterns, where it means something. With a width of None there is one line.

    >>> wrapped("abcd|efgh|ijkl", 12, 2, "|").splitlines()
    ['abcd|efgh|', '  ijkl']
    """
    if width is None:
        return text
    lines = []
    room = max(width - (indent if start is None else start), 10)
    while len(text) > room:
        cut = max(text.rfind(mark, 0, room) for mark in breaks) + 1
        if cut <= room // 3:
            cut = text.rfind("\\", 0, room)  # so that \u4e00 stays whole
            cut = cut if cut > room // 3 else room
        lines.append(text[:cut].rstrip(" ") if breaks == " " else text[:cut])
        text = text[cut:]
        room = max(width - indent, 10)
    return ("\n" + " " * indent).join([*lines, text])


# ---- right-to-left text ---------------------------------------------------------------------------------

_RTL = "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]+"


def isolated(text: str) -> str:
    """`text`, in marks that keep a right-to-left text from turning around what stands beside it."""
    if text.isascii():
        return text
    from unicodedata import bidirectional

    return f"\u2068{text}\u2069" if any(bidirectional(char) in ("R", "AL", "AN") for char in text) else text


def safe_line(text: str) -> str:
    """`text` on one line where nothing takes effect and right-to-left parts do not turn around what is beside."""
    return isolated_runs(one_line(text))


def isolated_runs(text: str) -> str:
    """`text` with only the right-to-left runs in such marks."""
    if text.isascii():
        return text
    import re

    return re.sub(f"{_RTL}(?: +{_RTL})*", "\u2068\\g<0>\u2069", text)


def display_width(text: str) -> int:
    """The columns that a terminal gives to `text`, which is printable.

    >>> display_width("a中\\u0301")
    3
    """
    if text.isascii():
        return len(text)
    from unicodedata import category, east_asian_width

    return sum(
        0 if category(char) in ("Mn", "Me", "Cf") else 2 if east_asian_width(char) in "WF" else 1
        for char in text
    )


def shown_piece(piece: bytes) -> tuple[str, int]:
    """A piece for a row: safe, spaces visible, not too long; and its width in columns."""
    text = visible(piece).replace(" ", "␣") or "∅"
    while display_width(text) > _PIECE_WIDTH:
        text = text[: max(len(text) * _PIECE_WIDTH // display_width(text) - 1, 1)] + "…"
    width = display_width(text)
    return isolated(text), width


def visible_text(data: bytes, limit: int) -> tuple[bytes, bool]:
    """The first `limit` bytes of a text or one character less or more, and whether it is cut."""
    if len(data) <= limit:
        return data, False
    ends = [end for end in utf8.char_ends(data[: limit + 4]) if end <= limit]
    return data[: ends[-1] if ends else limit], True


def shown_text(data: bytes, most: int) -> str:
    """A text in quotes, escaped, and cut if it has more than `most` bytes."""
    head, is_cut = visible_text(data, most)
    return f'"{isolated(visible(head))}{"…" if is_cut else ""}"'
