"""Quotes words and paths for the commands in messages, so that a command can be copied into a shell and run."""

from __future__ import annotations

import re

from .errors import escape_invisible, is_visible

# A part of a command between quotation marks, as shlex writes it.
_QUOTED = r"""'[^']*'|"[^"]*\""""


def shell_word(text: str) -> str:
    r"""Return `text` as one types it in a shell; what cannot be seen is escaped, as bash, zsh and POSIX 2024 read it.

    >>> print(shell_word("it's"), shell_word("m\x1b[31m.gguf"))
    'it'"'"'s' $'m\033[31m.gguf'
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

    Older shells and `subprocess` do not know `$'…'`, so JSON has the command without these escapes.

    >>> print(visible_command("rm 'a b' 'c\nd'"))
    rm 'a b' $'c\012d'
    """
    return re.sub(_QUOTED, _visible_part, command)


def _visible_part(match: re.Match[str]) -> str:
    part: str = match[0]
    if part[0] != "'" or escape_invisible(part) == part:
        return part
    escaped = "".join(
        char if is_visible(char) else "".join(f"\\{byte:03o}" for byte in _bytes(char))
        for char in part.replace("\\", "\\\\")
    )
    return f"${escaped}"


def _bytes(char: str) -> bytes:
    """The bytes of a character as a path has them; those of a text from a file may be any half of a surrogate pair."""
    is_byte = "\udc80" <= char <= "\udcff"
    return char.encode("utf-8", "surrogateescape" if is_byte else "surrogatepass")
