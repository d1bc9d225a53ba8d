"""Quotes words and paths for the commands in messages, so that a command can be copied into a shell and run."""

from __future__ import annotations

import os
import re

from .errors import escape_invisible, is_visible

# A part of a command between quotation marks, as shlex writes it; compiled on first use, which hardly any command has.
_QUOTED = r"""'[^']*'|"[^"]*\""""


def shell_word(text: str) -> str:
    r"""Return `text` as one types it in a shell; what cannot be seen is escaped, as bash, zsh and POSIX 2024 read it.

    >>> print(shell_word("it's"), shell_word("m\x1b[31m.gguf"))
    'it'"'"'s' $'m\x1b[31m.gguf'
    """
    import shlex  # slow to import, and needed for messages alone

    return visible_command(shlex.quote(text))


def shell_path(path: str) -> str:
    """Return a path as one types it in a shell, such that no command takes it for a flag.

    >>> shell_path("-m.gguf")
    './-m.gguf'
    """
    return shell_word(no_flag(path))


def no_flag(path: str) -> str:
    """Return `path`, with `./` before a dash at its beginning, which a command would read as a flag."""
    return f"./{path}" if path.startswith("-") else path


def visible_command(command: str) -> str:
    r"""Return a command that `shlex` quoted with all that cannot be seen escaped, so that it does the same.

    Python's own `subprocess` and the shells of 2023 do not read the escapes: JSON has the command as it was.

    >>> print(visible_command("rm 'a b' 'c\nd'"))
    rm 'a b' $'c\x0ad'
    """
    return re.sub(_QUOTED, _visible_part, command)


def _visible_part(match: re.Match[str]) -> str:
    part: str = match[0]
    if part[0] != "'" or escape_invisible(part) == part:
        return part
    escaped = "".join(
        char if is_visible(char) else "".join(f"\\x{byte:02x}" for byte in os.fsencode(char))
        for char in part.replace("\\", "\\\\")
    )
    return f"${escaped}"
