"""The HTML shell of a report: one self-contained page, and untrusted text made safe to stand in it.

    explain.py, report.py -> [this file] -> one file

Nothing in a page is fetched and nothing in it runs (its Content-Security-Policy says so, too): what opens
and closes is plain `<details>`. Light or dark follows the reader's system.

What a body can use:

| | |
| --- | --- |
| `class="token t0"` … `t5` | the text of a token, in alternating colours (`token()` makes one) |
| `class="token special"` | the text of a special token |
| `class="differs"` | on a token, cell or row: the span that differs |
| `class="muted"`, `class="id"`, `class="good"`, `class="bad"` | secondary text; a number; right; wrong |
| `<div class="scroll"><table>` | a table, which scrolls by itself where the page is too narrow |
| `<td class="number">`, `"span"` | a cell with a number, with a span of bytes |
| `<div class="row">` | tokens in a row, broken where they do not fit |
| `<dl class="facts">` | names and values |
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import escape

COLORS = 6  # of tokens in a row: classes t0 to t5

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #ffffff; --muted: #59636e; --line: #d5dbe1;
  --panel: #f4f6f8; --link: #0b57d0; --bad: #b3261e; --bad-paper: #fde2df; --good: #186a3b;
  --t0: #d6e6fd; --t1: #fbe3c4; --t2: #d3efd9; --t3: #f7d9e6; --t4: #e3dcfa; --t5: #d0eef2; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e8ec; --paper: #14171a; --muted: #9aa5b1; --line: #363d45; --panel: #1d2227;
    --link: #8ab4f8; --bad: #ff9a8f; --bad-paper: #5a211c; --good: #7fd6a0;
    --t0: #1f3f66; --t1: #5a3f14; --t2: #1f4a2d; --t3: #5a2741; --t4: #3e3470; --t5: #164950; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem clamp(0.75rem, 3vw, 2.5rem) 4rem; max-width: 76rem; color: var(--ink);
  background: var(--paper); font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 0.5rem; }
h2 { font-size: 1.15rem; margin: 2rem 0 0.5rem; padding-bottom: 0.25rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.25rem 0 0.25rem; }
p { margin: 0.4rem 0; }
a { color: var(--link); }
code, pre, .token, .id { font-family: ui-monospace, "DejaVu Sans Mono", Consolas, monospace; font-size: 0.92em; }
pre { margin: 0.5rem 0; padding: 0.6rem 0.8rem; background: var(--panel); border-radius: 0.4rem;
  white-space: pre-wrap; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 0.25rem 0.75rem 0.25rem 0; text-align: left; vertical-align: baseline;
  border-bottom: 1px solid var(--line); overflow-wrap: normal; }
th { color: var(--muted); font-weight: 600; font-size: 0.85rem; }
td.number, th.number { text-align: right; }
td.number, td.span { white-space: nowrap; }
td > .row { margin: 0; }
.scroll { overflow-x: auto; margin: 0.5rem 0; }
.row { display: flex; flex-wrap: wrap; gap: 0.2rem; margin: 0.4rem 0; align-items: baseline; }
.token { display: inline-block; padding: 0 0.25em; border-radius: 0.25em; white-space: pre-wrap; max-width: 100%;
  background: var(--panel); }
.t0 { background: var(--t0); } .t1 { background: var(--t1); } .t2 { background: var(--t2); }
.t3 { background: var(--t3); } .t4 { background: var(--t4); } .t5 { background: var(--t5); }
td > .token { vertical-align: top; }  /* of several lines, the first one counts */
.token.special { font-weight: 600; outline: 1px dashed var(--muted); }
.esc { unicode-bidi: isolate; direction: ltr; color: var(--muted); }
.token.differs, .differs > .token { background: var(--bad-paper); outline: 1.5px solid var(--bad); }
tr.differs > td, td.differs { background: var(--bad-paper); }
.muted { color: var(--muted); }
.id { color: var(--muted); }
.good { color: var(--good); } .bad { color: var(--bad); }
.facts { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 0.15rem 1rem; margin: 0.5rem 0; }
.facts dt { color: var(--muted); } .facts dd { margin: 0; }
details { border: 1px solid var(--line); border-radius: 0.4rem; margin: 0.4rem 0; padding: 0.35rem 0.7rem; }
details[open] > summary { margin-bottom: 0.4rem; }
summary { cursor: pointer; }
@media (max-width: 30rem) {
  .facts { grid-template-columns: minmax(0, 1fr); gap: 0; } .facts dd { margin-bottom: 0.4rem; } }
@media print { details { break-inside: avoid; } }
"""


def page(title: str, body: str) -> str:
    """A whole HTML document. `title` is text, made safe here; `body` is HTML, made safe by whoever made it.

    >>> page("a < b", "<p>…").startswith("<!DOCTYPE html>")
    True
    """
    return "".join(page_around(title, [body]))


def page_around(title: str, body: Iterable[str]) -> Iterator[str]:
    """The same in pieces, for a page that is not held in memory."""
    yield f"""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{safe(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>{marked(title)}</h1>
"""
    yield from body
    yield "\n</body>\n</html>\n"


def safe(text: str) -> str:
    r"""`text` for HTML: markup escaped, and all that is not printable written as an escape sequence.

    >>> safe("<b>\x1b\n")
    '&lt;b&gt;\\x1b\\n'
    """
    return escape(_NOT_PRINTABLE.sub(lambda match: _escaped(match[0]), text))


def marked(text: str | bytes) -> str:
    r"""`text` as an isolated piece of HTML, escape sequences set apart from what stands in the text itself.

    Bytes that are not UTF-8 show as `\xe4`; a backslash of the text's own is shown as it is, without the mark.

    >>> marked(b"a\xff<")
    '<bdi>a<span class="esc">\\xff</span>&lt;</bdi>'
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "surrogateescape")
    parts = []
    end = 0
    for match in _NOT_PRINTABLE.finditer(text):
        parts += [escape(text[end : match.start()]), f'<span class="esc">{_escaped(match[0])}</span>']
        end = match.end()
    return f"<bdi>{''.join(parts)}{escape(text[end:])}</bdi>"


def token(piece: str | bytes, classes: str = "") -> str:
    """The text of a token in its own box; `classes` as in the table above, and an empty piece as "∅"."""
    inside = marked(piece) if piece else '<span class="esc">∅</span>'
    return f'<span class="{f"token {classes}".rstrip()}">{inside}</span>'


# What str.isprintable calls not printable but for U+0020 (categories C and Z), as far as it can be written as a
# set; the rest of the categories, unassigned code points, does no harm.
_NOT_PRINTABLE = re.compile(
    "[\0-\x1f\x7f-\xa0\xad\u0600-\u0605\u061c\u06dd\u070f\u180e\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f"
    "\u3000\ud800-\udfff\ue000-\uf8ff\ufeff\ufff0-\ufffb\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
)


def _escaped(char: str) -> str:
    """A character as an escape sequence; a byte that is not UTF-8 (a surrogate, U+DC80 up) as `\\xff`."""
    if "\udc80" <= char <= "\udcff":
        return f"\\x{ord(char) - 0xDC00:02x}"
    return char.encode("unicode_escape").decode()
