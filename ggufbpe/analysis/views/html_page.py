r"""Draws HTML pages with jinja2 from templates/, and makes untrusted text safe on the way.

Everything that a template writes is escaped: markup by jinja2's autoescape, and unprintable characters as escape
sequences such as `\x1b`. `marked` distinguishes those from the same text in the input.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import Any
from unicodedata import category

from ..._util.extras import imported

_BUFFERED = 200  # pieces from jinja2 joined into one


def rendered(name: str, **given: Any) -> Iterator[str]:
    """The page of a template in pieces, made as `given` is read; `NotInstalledError` without jinja2."""
    stream = _environment().get_template(name).stream(given)
    stream.enable_buffering(_BUFFERED)
    return iter(stream)


@lru_cache(maxsize=1)
def _environment() -> Any:
    jinja2 = imported("jinja2", "html", "a page")
    environment = jinja2.Environment(
        autoescape=True,
        finalize=_printable,
        loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates")),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["marked"] = lambda text, spaces=False: jinja2.utils.markupsafe.Markup(
        marked(text, spaces)
    )
    environment.filters["hue"] = hue
    environment.filters["thousands"] = "{:,}".format
    return environment


def hue(token: int) -> str:
    """The hue of an id in degrees: neighbours are far apart, and equal ids have one color wherever they stand.

    server/static/pieces.js has the same rule.

    >>> hue(995)
    '20.5'
    """
    return f"{token * 137.508 % 360:.1f}"


def require_jinja() -> None:
    """Raise `NotInstalledError` without jinja2, before any work for a page that cannot be drawn."""
    _environment()


def _printable(value: object) -> object:
    """Jinja2 calls this for each value: its own markup stays, and text is made safe."""
    return safe(value) if type(value) is str else value


def safe(text: str) -> str:
    r"""`text` with everything unprintable written as an escape sequence.

    >>> safe("<b>\x1b\n")
    '<b>\\x1b\\n'
    """
    return _NOT_PRINTABLE.sub(lambda match: _escaped(match[0]), text)


def marked(text: str | bytes, spaces: bool = False) -> str:
    r"""`text` as an isolated piece of HTML, with escape sequences distinguished from the text itself.

    Bytes that are not UTF-8 show as `\xe4`; a backslash in the text is shown as it is, without the mark. With `spaces`
    they are marked, too, so that they can be seen; accents and the like at the beginning stand on a dotted circle. The
    piece runs from left to right, as tokens follow each other in the text; words of right-to-left scripts in it keep
    their order.

    >>> marked(b"a\xff<")
    '<bdi dir="ltr">a<span class="esc">\\xff</span>&lt;</bdi>'
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "surrogateescape")
    end = next((at for at, char in enumerate(text) if category(char)[0] != "M"), len(text))
    parts = [_on_circle(text[:end])] if end else []
    for match in (_NOT_PRINTABLE_OR_SPACES if spaces else _NOT_PRINTABLE).finditer(text, end):
        shown = match[0]
        kind, shown = ("space", shown) if shown[0] == " " else ("esc", _escaped(shown))
        parts += [escape(text[end : match.start()]), f'<span class="{kind}">{shown}</span>']
        end = match.end()
    return f'<bdi dir="ltr">{"".join(parts)}{escape(text[end:])}</bdi>'


def _on_circle(marks: str) -> str:
    """Marks that a piece begins with, which would stand on the piece before it."""
    if _UNSEEN_MARK.search(marks):
        return f'<span class="esc">{"".join(map(_escaped, marks))}</span>'
    return f'<span class="mark">\u25cc{marks}</span>'


_UNSEEN_MARK = re.compile("[\u034f\u17b4\u17b5\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")

# The characters that str.isprintable rejects except U+0020 (categories C and Z), as far as a set can express them; the
# rest of these categories, unassigned code points, does no harm; and letters and symbols without ink. What joins two
# emojis is seen by that, and stays.
_EMOJI = "\u2600-\u27bf\U0001f000-\U0001fbff"
_NOT_PRINTABLE = re.compile(
    f"(?!(?<=[{_EMOJI}\ufe0f])\u200d[{_EMOJI}])"
    "[\0-\x1f\x7f-\xa0\xad\u0600-\u0605\u061c\u06dd\u070f\u180e\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f"
    "\u3000\ud800-\udfff\ue000-\uf8ff\ufeff\ufff0-\ufffb\U000e0000-\U000e0fff\U000f0000-\U0010ffff"
    "\u115f\u1160\u2800\u3164\uffa0]"
)
_NOT_PRINTABLE_OR_SPACES = re.compile(f"{_NOT_PRINTABLE.pattern}| +")


def _escaped(char: str) -> str:
    """A character as an escape sequence; a byte that is not UTF-8 (a surrogate, U+DC80 up) as `\\xff`."""
    if "\udc80" <= char <= "\udcff":
        return f"\\x{ord(char) - 0xDC00:02x}"
    return char.encode("unicode_escape").decode()
