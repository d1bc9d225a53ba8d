"""Where output goes: bytes to standard output, single lines to standard error.

Text of models and files is never trusted: on the way to a terminal it goes through `visible` or `one_line`,
so that no control character in it takes effect.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

RESET, DIM, BOLD = "\x1b[0m", "\x1b[2m", "\x1b[1m"


class OutputError(Exception):
    """Standard output does not take what is written to it: a full disk, a closed descriptor."""


def write(data: bytes) -> None:
    """Bytes to standard output."""
    stdout = _stdout()
    rest = memoryview(data)
    while rest:  # with PYTHONUNBUFFERED, a write may take only a part
        written = _attempt(lambda: stdout.write(rest))  # noqa: B023 - called at once
        if written is None:
            raise OutputError("writing to standard output failed: it is not ready and does not wait")
        rest = rest[written:]


def flush() -> None:
    """Bring out what was written, so that an error shows now and not at the interpreter's end."""
    if sys.stdout is not None:
        _attempt(sys.stdout.flush)


def abandon() -> None:
    """Send what is still in the buffer nowhere; else the interpreter tries again at its end and complains."""
    with suppress(OSError, ValueError):  # not a real file, so there is nothing to fail
        if sys.stdout is not None:
            devnull = os.open(os.devnull, os.O_WRONLY)
            os.dup2(devnull, sys.stdout.fileno())
            os.close(devnull)


def _stdout() -> Any:
    if sys.stdout is None:
        raise OutputError("standard output is closed")
    return getattr(sys.stdout, "buffer", None) or _TextStdout()


class _TextStdout:
    """Bytes to a standard output that a caller replaced by a stream of text."""

    def write(self, data: memoryview) -> int:
        sys.stdout.write(bytes(data).decode("utf-8", "replace"))
        return len(data)


def _attempt(action: Callable[[], Any]) -> Any:
    try:
        return action()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"writing to standard output failed: {error.strerror or error}") from error


def note(text: str) -> None:
    """A line on standard error, after all that was written before."""
    if sys.stdout is not None:
        with suppress(OSError):  # told by whoever writes next, or at the end
            sys.stdout.flush()
    if sys.stderr is not None:
        with suppress(OSError):  # there is nobody left to tell
            sys.stderr.write(text + "\n")
            sys.stderr.flush()


def warning(text: str) -> None:
    note(f"ggufbpe: warning: {one_line(text)}")


def error(text: str) -> None:
    note(f"ggufbpe: error: {one_line(text)}")


# ---- text on its way to a terminal ----------------------------------------------------------------------


def one_line(text: str) -> str:
    r"""`text` with all that is not printable escaped.

    >>> one_line("a\nb")
    'a\\nb'
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else escaped(c) for c in text)


def escaped(char: str) -> str:
    """A character as an escape sequence of Python and JSON."""
    return char.encode("unicode_escape").decode() if char != "\\" else char


def visible(piece: bytes) -> str:
    r"""The bytes of a token, with backslashes and all that is not printable or not UTF-8 escaped.

    >>> visible(b"\x1b[31m\xe4 ")
    '\\x1b[31m\\xe4 '
    """
    return one_line(piece.replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace"))


def json_bytes(value: object) -> bytes:
    """JSON for people and programs: a list has an element a line; only what is not printable is escaped."""
    if isinstance(value, list):
        text = "[\n" + ",\n".join(map(json_text, value)) + "\n]" if value else "[]"
    else:
        text = json_text(value, indent=2)
    return (text + "\n").encode()


def json_text(value: object, indent: int | None = None) -> str:
    """The same as text, in one line without `indent`."""
    import json
    import re

    risky = "[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff]"
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return re.sub(risky, lambda match: f"\\u{ord(match[0]):04x}", text)


# ---- the terminal ---------------------------------------------------------------------------------------


def is_terminal(stream: Any) -> bool:
    try:
        return bool(stream is not None and stream.isatty())
    except ValueError:  # closed
        return False


def use_color(choice: str) -> bool:
    """Whether to colour, by `--color auto|always|never`; `auto` follows NO_COLOR and TERM."""
    if choice != "auto":
        return choice == "always"
    return is_terminal(sys.stdout) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def terminal_width() -> int | None:
    """The columns of the terminal that standard output is, None if it is none."""
    if not is_terminal(sys.stdout):
        return None
    return _width(sys.stdout)


def _width(stream: Any) -> int:
    try:
        columns = int(os.environ.get("COLUMNS", "0"))
        return max(columns if columns > 0 else os.get_terminal_size(stream.fileno()).columns or 80, 20)
    except (OSError, ValueError):
        return 80


def error_width() -> int | None:
    """The columns of the terminal that standard error is, None if it is none that can be drawn on."""
    if not is_terminal(sys.stderr) or os.environ.get("TERM") == "dumb":
        return None
    return _width(sys.stderr)


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


def isolated_runs(text: str) -> str:
    """`text` with only the right-to-left runs in such marks."""
    if text.isascii():
        return text
    import re

    return re.sub(f"{_RTL}(?: +{_RTL})*", "\u2068\\g<0>\u2069", text)
