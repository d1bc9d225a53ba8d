"""The result of a comparison as an HTML page.

verify.py: Result -> [this file] -> cli/verify.py
"""

from __future__ import annotations

from ..verification.result import Difference, Example, FailureGroup, Result, Shown, Text
from ..wording import counted
from .page import marked, page, safe, token
from .terminal import visible_text

_TEXT_SHOWN = 2000  # bytes of a text that the page shows


def verdict(result: Result) -> str:
    """The result in a few words.

    >>> verdict(Result("nobody"))
    'nothing was compared'
    """
    if result.different:
        differ = "differs" if result.different == 1 else "differ"
        return f"{result.different} of {counted(result.compared, 'text')} {differ}"
    if not result.compared:
        return "nothing was compared"
    if result.compared < result.texts:
        return f"the ids of {counted(result.compared, 'text')} of {result.texts} are the same"
    return "the ids are the same"


def all_fixes(result: Result) -> str:
    """The one command that makes all changes to the model file, where the causes have several; else ""."""
    fixes = {cause.fix for difference in result.differences for cause in difference.causes}
    return result.fix if sum("ggufbpe fix " in fix for fix in fixes) > 1 else ""


# ---- HTML -----------------------------------------------------------------------------------------------


def to_html(result: Result, model: str, note: str = "") -> str:
    """The page: a summary, and what differs with both rows, token over token."""
    sections = [
        _summary(result, model, note),
        *(_section(number, difference) for number, difference in enumerate(result.differences, 1)),
        *map(_failure, result.failures),
    ]
    if fix := all_fixes(result):
        sections.append(f"<p>All fixes in one: <code>{safe(fix)}</code></p>")
    if result.other_places:
        sections.append(f"<p>{result.other_places} more places differ, which were only counted.</p>")
    return page("ggufbpe verify", _STYLE + "\n".join(sections))


# Tokens of both sides that cover one stretch of the text stand in one column.
_STYLE = """<style>
.aligned { display: flex; flex-wrap: wrap; gap: 0.5rem 0.25rem; margin: 0.5rem 0; }
.column { display: grid; grid-template-rows: 1.1rem auto auto; gap: 0.2rem; align-content: start;
  max-width: 100%; }
.column > span { font-size: 0.75rem; }
.column.muted { grid-template-rows: 1.1rem 2.7rem 2.7rem; margin-right: 0.5rem; }
.side { display: flex; flex-wrap: wrap; gap: 0.25rem; min-height: 2.7rem; align-content: start; }
.side > span { display: inline-grid; max-width: 100%; align-content: start; justify-items: start; }
.side .id { font-size: 0.75rem; white-space: pre; }
</style>
"""


def _summary(result: Result, model: str, note: str) -> str:
    good = result.same and result.compared
    facts = [
        ("model", marked(model)),
        ("compared with", marked(result.oracle)),
        ("texts", f"{result.texts} ({result.bytes} bytes)"),
        ("ggufbpe", f"{result.tokens} tokens, {_speed(result.bytes, result.seconds)}"),
        (
            marked(result.oracle),
            f"{result.oracle_tokens} tokens, {_speed(result.bytes, result.oracle_seconds)}",
        ),
    ]
    if result.failed:
        facts.append(("failed", f'<span class="bad">{counted(result.failed, "text")}</span>'))
    if result.refused:
        facts.append(("not compared", f"{counted(result.refused, 'text')}, which the other side cannot take"))
    if note:
        facts.append(("note", safe(note)))
    rows = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in facts)
    head = f'<p class="{"good" if good else "bad"}"><strong>{safe(verdict(result))}</strong></p>'
    return f'{head}<dl class="facts">{rows}</dl>'


def _speed(size: int, seconds: float) -> str:
    return f"{size / 1e6 / seconds:.3g} MB/s" if seconds else "-"


def _section(number: int, difference: Difference) -> str:
    first, smallest = difference.first, difference.smallest
    places = counted(difference.places, "place")
    parts = [f"<h2>{number}. {safe(difference.step)}: {places}</h2>", _causes(difference)]
    if smallest is not None:
        parts += [f"<h3>Smallest text that differs</h3>{_pre(smallest.text.data)}", _rows(smallest)]
    parts.append(f"<h3>First text</h3><p class='muted'>{_where(first.text, first.start)}</p>{_rows(first)}")
    parts.append(f"<details><summary>the text</summary>{_pre(first.text.data)}</details>")
    return "\n".join(parts)


def _causes(difference: Difference) -> str:
    if not difference.causes:
        return "<p>No cause was found.</p>"
    share = "" if difference.explains == 1.0 else f" (explains {difference.explains:.0%} of the ids)"
    rows = []
    for cause in difference.causes:
        what = str(cause.detail.get("what", ""))
        rows.append(f"<dt>cause</dt><dd><strong>{safe(cause.id)}</strong>{share} {safe(what)}</dd>")
        if cause.fix:
            rows.append(f"<dt>fix</dt><dd><code>{safe(cause.fix)}</code></dd>")
    return f'<dl class="facts">{"".join(rows)}</dl>'


def _failure(group: FailureGroup) -> str:
    return (
        f"<h2>{safe(group.kind)}: {counted(group.texts, 'text')}</h2><p>{safe(group.detail)}</p>"
        f"<p class='muted'>first {_where(group.first, 0)}</p>"
        f"<details><summary>the text, {counted(len(group.first.data), 'byte')}</summary>"
        f"{_pre(group.first.data)}</details>"
    )


def _where(text: Text, start: int) -> str:
    return f"{marked(text.source)}, byte {text.offset + start}"


def _pre(data: bytes) -> str:
    if not data:
        return '<p class="muted">the empty text</p>'
    head, is_cut = visible_text(data, _TEXT_SHOWN)
    return f"<pre>{marked(head)}{'…' if is_cut else ''}</pre>"


def _rows(example: Example) -> str:
    """Both rows in columns, ours above."""
    columns = ['<div class="column muted"><span>byte</span><span>ours</span><span>theirs</span></div>']
    for number in sorted({shown.span for shown in example.ours + example.theirs}):
        ours, theirs = (
            [shown for shown in row if shown.span == number] for row in (example.ours, example.theirs)
        )
        differs = any(shown.differs for shown in ours + theirs)
        if differs:
            columns.append(_column(ours, theirs, example.left_out if number == example.span else (0, 0)))
        else:
            columns += [_column([one], [other], (0, 0)) for one, other in zip(ours, theirs)]
    return f'<div class="aligned">{"".join(columns)}</div>'


def _column(ours: list[Shown], theirs: list[Shown], left_out: tuple[int, int]) -> str:
    first = min(shown.start for shown in ours + theirs)
    sides = _side(ours, left_out[0]) + _side(theirs, left_out[1])
    return f'<div class="column"><span class="muted">{first}</span>{sides}</div>'


def _side(tokens: list[Shown], left_out: int) -> str:
    cells = [_cell(shown.piece, str(shown.id), shown.differs) for shown in tokens]
    cells += [f'<span class="muted">… and {left_out} more</span>'] * bool(left_out)
    return f'<div class="side">{"".join(cells) or _cell(b"", " ", True)}</div>'


def _cell(piece: bytes, number: str, differs: bool) -> str:
    return f'<span>{token(piece, "differs" * differs)}<span class="id">{number}</span></span>'
