"""Lists what tools do to a text before they encode it, as functions from bytes to bytes.

The order is that of the tools: a file is read, then its text is processed, then normalized. Normal forms follow
the Unicode version of the running Python.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from ..._util import utf8
from ..._util.escapes import process_escapes
from ..._util.spelling import SPACE
from .cause import Cause
from .causes import UTF8_FIX


class TextChange(NamedTuple):
    """What a tool does to a text: `apply` gives the bytes that it would encode."""

    cause: Cause
    apply: Callable[[bytes], bytes]


def _change(cause: str, change: str, what: str, fix: str, apply: Callable[[bytes], bytes]) -> TextChange:
    return TextChange(Cause(cause, {"what": what, "change": change}, fix), apply)


def _as_text(apply: Callable[[str], str]) -> Callable[[bytes], bytes]:
    return lambda data: apply(utf8.decode(data)).encode("utf-8", "surrogatepass")


def _without_accents(text: str) -> str:
    """As BERT does: decomposed, and without the marks."""
    decomposed = unicodedata.normalize("NFD", text)
    marks = [ord(char) for char in set(decomposed) if unicodedata.category(char) == "Mn"]
    return decomposed.translate(dict.fromkeys(marks))


def _invalid(replace: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    """`replace` for a text that is not UTF-8; others stay."""
    return lambda data: data if utf8.is_utf8(data) else replace(data)


def _decoded(encoding: str, errors: str) -> Callable[[bytes], bytes]:
    return _invalid(lambda data: data.decode(encoding, errors).encode("utf-8", "surrogatepass"))


def _typed(letters: bytes) -> Callable[[bytes], bytes]:
    r"""Control characters written as two: a backslash and one of `letters`."""
    pairs = [(process_escapes(b"\\" + bytes([c])), b"\\" + bytes([c])) for c in letters]

    def apply(data: bytes) -> bytes:
        for char, written in pairs:
            data = data.replace(char, written)
        return data

    return apply


def _normalization() -> Iterator[TextChange]:
    forms: dict[str, Callable[[str], str]] = {
        form: partial(unicodedata.normalize, form) for form in ("NFC", "NFD", "NFKC", "NFKD")
    }
    forms["lower case"] = str.lower
    forms["accents stripped"] = _without_accents
    forms["accents stripped, lower case"] = lambda text: _without_accents(text).lower()
    forms["accents stripped, NFC"] = lambda text: unicodedata.normalize("NFC", _without_accents(text))
    forms["NFKC, case folded"] = lambda text: unicodedata.normalize("NFKC", text).casefold()
    for form, apply in forms.items():
        yield _change(
            "normalization",
            form,
            f"the other tool normalizes the text: {form}",
            "switch off the normalizer of the other tool; if the model was trained with it, normalize the text before "
            "giving it to llama.cpp, which does not do that",
            _as_text(apply),
        )


def _named(change: str) -> str:
    """A change of line endings, with the system that uses them.

    >>> _named("CRLF to LF")
    'CRLF (Windows) to LF'
    """
    return change.replace("CRLF", "CRLF (Windows)")


_LINES_FIX = "give both tools the same line endings; in Python, open files with newline='' or in binary mode"
_END_FIX = "give both tools the same end of the text: use printf '%s' instead of echo, and do not strip() what was read"
_SPACE_FIX = "give both tools the same text; do not strip() it"
_BOM_FIX = "save the file as UTF-8 without a byte order mark; in Python, open it with encoding='utf-8-sig'"
_ESCAPE_FIX = "use escape=True only if backslash escapes in the text are meant to be processed"

TEXT_CHANGES: tuple[TextChange, ...] = (
    *(
        _change("invalid_utf8", change, f"bytes that are not UTF-8 are {what}", UTF8_FIX, apply)
        for change, what, apply in (
            ("U+FFFD a sequence", "one U+FFFD per sequence, as in Python", _decoded("utf-8", "replace")),
            ("dropped", "dropped", _decoded("utf-8", "ignore")),
            ("latin-1", "taken as a sign that the text is Latin-1", _decoded("latin-1", "strict")),
            ("cp1252", "taken as a sign that the text is Windows-1252", _decoded("cp1252", "replace")),
            (
                "question mark",
                "replaced by question marks",
                _invalid(
                    lambda data: utf8.decode(data).replace("\ufffd", "?").encode("utf-8", "surrogatepass")
                ),
            ),
        )
    ),
    *(
        _change("bom", change, f"U+FEFF at the beginning is {change}", _BOM_FIX, apply)
        for change, apply in (
            ("removed", lambda data: data.removeprefix(b"\xef\xbb\xbf")),
            ("added", lambda data: b"\xef\xbb\xbf" + data),
        )
    ),
    *(
        _change("newlines", change, f"line endings are changed: {_named(change)}", _LINES_FIX, apply)
        for change, apply in (
            ("CRLF to LF", lambda data: data.replace(b"\r\n", b"\n")),
            ("CRLF and CR to LF", lambda data: data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")),
            ("CR to LF", lambda data: re.sub(rb"\r(?!\n)", b"\n", data)),
            ("LF to CRLF", lambda data: data.replace(b"\n", b"\r\n")),
            ("all to CRLF", lambda data: re.sub(rb"\r\n?|\n", b"\r\n", data)),
            ("LF to CR", lambda data: data.replace(b"\n", b"\r")),
            ("CRLF to CR", lambda data: data.replace(b"\r\n", b"\r")),
        )
    ),
    *(
        _change("trailing_newline", change, f"at the end, {change}", _END_FIX, apply)
        for change, apply in (
            ("a line break is removed", lambda data: re.sub(rb"(?:\r\n|\n)\Z", b"", data)),
            ("all line breaks are removed", lambda data: data.rstrip(b"\r\n")),
            ("all white space is removed", bytes.rstrip),
            ("a line break is added", lambda data: data + b"\n"),
            ("CRLF is added", lambda data: data + b"\r\n"),
        )
    ),
    *(
        _change("escapes", change, what, _ESCAPE_FIX, apply)
        for change, what, apply in (
            ("processed", "backslash escapes in the text are processed", process_escapes),
            (
                "\\n processed",
                "\\n in the text is processed, but no other escapes",
                lambda data: data.replace(b"\\n", b"\n"),
            ),
            ("\\n typed", "line breaks are written as a backslash and n", _typed(b"n")),
            ("typed", "control characters are written as backslash escapes", _typed(b"nrt")),
            ("all typed", "control characters, backslashes and quotes are escaped", _typed(b'\\nrt"')),
        )
    ),
    *_normalization(),
    *(
        _change("escape_whitespaces", change, what, "give both tools spaces as spaces", apply)
        for change, what, apply in (
            (
                "written",
                "spaces are written as U+2581",
                lambda data: data.replace(b" ", SPACE.encode()),
            ),
            (
                "read",
                "U+2581 in the text are read as spaces",
                lambda data: data.replace(SPACE.encode(), b" "),
            ),
        )
    ),
    *(
        _change("leading_space", change, f"at the beginning, {change}", _SPACE_FIX, apply)
        for change, apply in (
            ("a space is removed", lambda data: data.removeprefix(b" ")),
            ("all white space is removed", bytes.lstrip),
            ("a space is added", lambda data: b" " + data),
        )
    ),
)


def _as_charsmap(text: str) -> str:
    """Nearly what sentencepiece's own charsmaps do: white space to spaces, no control characters, then NFKC."""
    kept = (
        " " if c in "\t\n\r\u2028\u2029" else c
        for c in text
        if c in "\t\n\r" or unicodedata.category(c) != "Cc"
    )
    return unicodedata.normalize("NFKC", "".join(kept))


# For a model that should have a charsmap, but has none.
CHARSMAP_MISSING = _change(
    "charsmap",
    "missing",
    "the model has no charsmap, but the text of the given ids was normalized (white space, NFKC)",
    "convert the model again, with the precompiled charsmap of its own tokenizer",
    _as_text(_as_charsmap),
)
# Changes that a model may make itself, by its flags.
OF_FLAGS = ("lower case", "accents stripped", "accents stripped, lower case", "accents stripped, NFC")

SPACE_PREFIX_FIX = (
    "switch off add_prefix_space or add_dummy_prefix in the other tool; if the model was trained with it, put the "
    "space into the text"
)


def space_prefix(change: str, apply: Callable[[bytes], bytes]) -> TextChange:
    """A space before the text or before every plain part of it, as SentencePiece does."""
    return _change("space_prefix", change, f"a space is added {change}", SPACE_PREFIX_FIX, apply)
