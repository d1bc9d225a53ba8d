"""Where output goes: bytes to standard output, single lines to standard error.

Text from models and files is never trusted: on its way to a terminal it goes through `visible` or `one_line`
(analysis/views/terminal.py), so that control characters in it have no effect.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ..analysis.views.flag_names import with_flags
from ..analysis.views.terminal import json_bytes, one_line

if TYPE_CHECKING:
    from rich.console import RenderableType

_is_quiet = False  # with --quiet
_is_bar_drawn = False  # whether a progress bar is the last line of standard error
_has_begun = False  # whether something was written to standard output


class OutputError(Exception):
    """Standard output cannot be written to: a full disk, a closed descriptor."""


def write(data: bytes) -> None:
    """Bytes to standard output."""
    global _has_begun
    _has_begun = _has_begun or bool(data)
    stdout = _stdout()
    rest = memoryview(data)
    while rest:  # with PYTHONUNBUFFERED, a write may take only a part
        written = _attempt(lambda: stdout.write(rest))  # noqa: B023 - called at once
        if written is None:
            raise OutputError("writing to standard output failed: it is non-blocking and not ready")
        rest = rest[written:]


def write_lines(lines: Iterable[str]) -> None:
    """Lines to standard output, each as soon as it is there."""
    for line in lines:
        write(f"{line}\n".encode("utf-8", "backslashreplace"))


def draw(parts: Iterable[RenderableType], color: str = "never", width: int | None = None) -> None:
    """Draw parts in `width` columns, None for no limit; `color` as in `use_color`."""
    from ..analysis.views.drawing import drawn

    write_lines(drawn(parts, use_color(color), width))


def begin(*, quiet: bool) -> None:
    """Begin a command; with `quiet`, no notes and warnings are shown."""
    global _is_quiet, _has_begun
    _is_quiet, _has_begun = quiet, False


def write_json(value: object) -> None:
    """A result as JSON to standard output."""
    write(json_bytes(value))


def write_failure(failed: Exception, message: str) -> None:
    """An error as JSON to standard output, unless a part of the result is there already."""
    if _has_begun:
        return
    with suppress(OutputError, BrokenPipeError):  # the error is on standard error, too
        from ..analysis.views.answers import failure

        write_json(failure(failed, with_flags(message)))


def flush() -> None:
    """Flush what was written, so that an error shows now rather than when the interpreter exits."""
    if sys.stdout is not None:
        _attempt(sys.stdout.flush)


def abandon() -> None:
    """Discard what is still in the buffer; otherwise the interpreter tries again at exit, and complains."""
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
    """A line on standard error, after all that was written before; none with --quiet."""
    if not _is_quiet:
        say(text)


def say(text: str) -> None:
    """A line on standard error even with --quiet; wrapped on a terminal if it is ours."""
    if text.startswith("ggufbpe: "):
        text = _wrapped(text)
    if sys.stdout is not None:
        with suppress(OSError):  # reported by the next write, or at the end
            sys.stdout.flush()
    if sys.stderr is not None:
        with suppress(OSError):  # there is nobody left to tell
            erase_bar()
            sys.stderr.write(text + "\n")
            sys.stderr.flush()


def draw_bar(text: str) -> None:
    """Draw a progress bar on the last line of standard error, a terminal; the next line takes its place."""
    global _is_bar_drawn
    flush()
    sys.stderr.write(f"\r{text}\x1b[K")
    sys.stderr.flush()
    _is_bar_drawn = True


def erase_bar() -> None:
    """Erase the progress bar, if one is drawn."""
    global _is_bar_drawn
    if _is_bar_drawn:
        _is_bar_drawn = False
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


def _wrapped(text: str) -> str:
    """A line for standard error, wrapped if that is a narrower terminal; further lines are indented.

    Words, such as paths, stay whole. A wide character counts as one column.
    """
    width = error_width()
    if width is None or len(text) < width:
        return text
    import textwrap

    return textwrap.fill(
        text,
        width - 1,
        subsequent_indent="  ",
        replace_whitespace=False,
        break_long_words=False,
        break_on_hyphens=False,
    )


def warning(text: str) -> None:
    note(f"ggufbpe: warning: {one_line(with_flags(text))}")


def error(text: str) -> None:
    say(f"ggufbpe: error: {one_line(with_flags(text))}")


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
    """The columns of the terminal, None if standard output is not one."""
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
    """The columns of the terminal, None if standard error is not one, or cannot be drawn on."""
    if not is_terminal(sys.stderr) or os.environ.get("TERM") == "dumb":
        return None
    return _width(sys.stderr)
