"""Draws the statistics of tokenizers: a panel per measure, a row per group, a bar per tokenizer.

With one group, each tokenizer has a row. Of very many groups, those with the most bytes are drawn, with a note that
says so.

No window is opened, matplotlib's global state is untouched, and every number drawn is in the table.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from ..._util.extras import imported
from ..._util.files import replacing
from ..._util.wording import percent

if TYPE_CHECKING:
    from .measure import Measures, Stats

SUFFIXES = (".png", ".svg")
THEMES = ("light", "dark")

_MOST_ROWS, _MOST_BARS = 60, 120  # per panel; more would be too tall
_NAME = 44  # characters shown of a name
_TITLE_NAME = 60
_BAR = 0.19  # inches
_GAP = 0.16  # inches between groups
_TALLEST = 15.0  # inches per panel; with more bars, bars and gaps are thinner
_PANEL = 2.35  # inches

# Distinguishable with any colour vision, on light and dark: Okabe and Ito's, without black.
_COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#B8A800", "#8C8C8C")
_HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "oo", "++", "--")  # when colours begin again

# For names in scripts that matplotlib's own font lacks; the first ones installed are used.
_FONTS = (
    *("Noto Sans CJK SC", "Noto Sans CJK JP", "Hiragino Sans GB", "Microsoft YaHei", "WenQuanYi Zen Hei"),
    *("Noto Sans Devanagari", "Noto Sans Thai", "Arial Unicode MS"),
)


class _Theme(NamedTuple):
    background: str
    text: str
    faint: str


_THEMES = {"light": _Theme("#ffffff", "#1f2328", "#d0d7de"), "dark": _Theme("#0d1117", "#e6edf3", "#3d444d")}


class _Panel(NamedTuple):
    title: str
    better: str
    measure: str
    is_share: bool


_PANELS = (
    _Panel("bytes per token", "higher means fewer tokens", "bytes_per_token", False),
    _Panel("tokens per word", "lower means fewer tokens", "tokens_per_word", False),
    _Panel("tokens of one byte", "share of tokens", "single_byte_share", True),
    _Panel("tokens used", "share of the vocabulary", "used", True),
)


def check(path: str | os.PathLike[str]) -> None:
    """Raise the errors of `plot` that do not depend on the numbers: `ValueError`, `NotInstalledError`, `OSError`."""
    suffix = os.path.splitext(os.fspath(path))[1].lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"{os.fspath(path)}: a plot is a {' or '.join(SUFFIXES)} file")
    _figure_class()
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(2, "No such directory for the plot", folder)


def plot(stats: Stats, path: str | os.PathLike[str], *, theme: str = "light") -> None:
    """Write the picture, in the format that the suffix of `path` names.

    `ValueError` for another suffix or theme, or if there is no token to draw; `NotInstalledError` without
    matplotlib; `OSError` if the file cannot be written.
    """
    check(path)
    if theme not in THEMES:
        raise ValueError(f"a theme must be {' or '.join(THEMES)}, not {theme!r}")
    rows = [row for row in stats.rows if row.tokens]
    if not rows:
        raise ValueError("there are no tokens to draw")
    suffix = os.path.splitext(os.fspath(path))[1].lower()
    with replacing(path) as (file, _), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # names in any script
        with _settings():
            _save(_drawn(stats, rows, _THEMES[theme]), file, suffix[1:])


def _figure_class() -> Any:
    return imported("matplotlib.figure", "plot", "a plot").Figure


def _settings() -> Any:
    """Matplotlib's settings for one picture."""
    from matplotlib import rc_context
    from matplotlib.font_manager import get_font_names

    installed = set(get_font_names())
    fonts = ["DejaVu Sans", *(font for font in _FONTS if font in installed)]
    # Text in an SVG stays text, so it can be searched and shown in any script; equal numbers give equal files.
    return rc_context({"font.family": fonts, "svg.fonttype": "none", "svg.hashsalt": "ggufbpe"})


def _save(figure: Any, file: IO[bytes], kind: str) -> None:
    metadata = {"Date": None} if kind == "svg" else {"Software": None}
    background = figure.get_facecolor()
    figure.savefig(file, format=kind, dpi=150, facecolor=background, metadata=metadata, bbox_inches="tight")


# ---- the picture ----------------------------------------------------------------------------------------


_Rows = dict[str, list["Measures"]]  # the bars of each row, by its name


def _drawn(stats: Stats, group: Sequence[Measures], theme: _Theme) -> Any:
    tokenizers = stats.tokenizers
    groups: _Rows = {}
    for measures in group:
        groups.setdefault(measures.group, []).append(measures)
    single = len(groups) == 1
    if single:
        rows = {measures.tokenizer: [measures] for measures in group}
    else:
        most = max(min(_MOST_BARS // len(tokenizers), _MOST_ROWS), 1)
        kept = set(sorted(groups, key=lambda name: -groups[name][0].bytes)[:most])
        rows = {name: bars for name, bars in groups.items() if name in kept}
    layout = _layout_of(rows)
    size = (_PANEL * len(_PANELS), layout.height)
    figure = _figure_class()(figsize=size, facecolor=theme.background)
    axes = figure.subplots(1, len(_PANELS), sharey=True)
    figure.subplots_adjust(left=0, right=1, bottom=0, top=1, wspace=0.12)
    sizes = {usage.tokenizer: usage.text_tokens for usage in stats.usage}
    looks = {name: _look(0 if single else index, theme) for index, name in enumerate(tokenizers)}
    for panel, axis in zip(_PANELS, axes):
        _draw_panel(axis, panel, rows, layout, sizes, looks, theme)
    _name_rows(axes[0], rows, layout, theme)
    _add_captions(figure, stats, rows, groups, layout.height, None if single else looks, theme)
    return figure


def _look(index: int, theme: _Theme) -> dict[str, Any]:
    return {
        "edgecolor": theme.background,  # of which hatches are drawn
        "linewidth": 0,
        "facecolor": _COLORS[index % len(_COLORS)],
        "hatch": _HATCHES[index // len(_COLORS) % len(_HATCHES)],
    }


def _value(panel: _Panel, bar: Measures, sizes: dict[str, int]) -> float | None:
    if panel.measure == "used":
        size = sizes[bar.tokenizer]
        return bar.used_tokens / size if size else None
    value: float | None = getattr(bar, panel.measure)
    return value


class _Layout(NamedTuple):
    """The thickness of everything, in inches, and where the bars of each row are, from the top."""

    bar: float
    height: float
    positions: list[list[float]]

    def font(self, size: float) -> float:
        """The size of text beside a bar, in points; no larger than the bar."""
        return min(size, self.bar * 72)


def _layout_of(rows: _Rows) -> _Layout:
    bars = sum(map(len, rows.values()))
    share = min(_TALLEST / (bars * _BAR + (len(rows) + 1) * _GAP), 1)
    bar, gap = _BAR * share, _GAP * share
    found = []
    position = gap
    for row in rows.values():
        found.append([position + (index + 0.5) * bar for index in range(len(row))])
        position += len(row) * bar + gap
    return _Layout(bar, position, found)


def _draw_panel(
    axis: Any,
    panel: _Panel,
    rows: _Rows,
    layout: _Layout,
    sizes: dict[str, int],
    looks: dict[str, dict[str, Any]],
    theme: _Theme,
) -> None:
    values = [[_value(panel, bar, sizes) for bar in row] for row in rows.values()]
    largest = max((value for row in values for value in row if value is not None), default=0) or 1
    largest = max(largest, 0.1) if panel.is_share else largest  # so that 1% does not look like everything
    for row, row_values, row_positions in zip(rows.values(), values, layout.positions):
        for bar, value, position in zip(row, row_values, row_positions):
            look = looks[bar.tokenizer]
            if value is not None:
                axis.barh(position, value, layout.bar * 0.84, **look)
            text = "-" if value is None else percent(value) if panel.is_share else f"{value:.2f}"
            place = (value or 0) + largest * 0.02, position
            axis.text(*place, text, va="center", fontsize=layout.font(7.5), color=theme.text)
    axis.set(xlim=(0, largest * 1.22), ylim=(layout.height, 0), facecolor=theme.background, xticks=[])
    axis.tick_params(axis="y", length=0)
    axis.spines[["top", "right", "bottom"]].set_visible(False)
    axis.spines["left"].set_color(theme.faint)
    above = {"xy": (0, 1), "xycoords": "axes fraction", "textcoords": "offset points", "color": theme.text}
    axis.annotate(panel.title, xytext=(0, 16), fontsize=10, fontweight="bold", **above)
    axis.annotate(panel.better, xytext=(0, 5), fontsize=7.5, alpha=0.75, **above)


def _name_rows(axis: Any, rows: _Rows, layout: _Layout, theme: _Theme) -> None:
    middles = [(positions[0] + positions[-1]) / 2 for positions in layout.positions]
    axis.set_yticks(middles, [_shown(name, _NAME) for name in rows])
    for label in axis.get_yticklabels():
        label.set(parse_math=False, color=theme.text, fontsize=layout.font(8.5))


def _add_captions(
    figure: Any,
    stats: Stats,
    rows: _Rows,
    groups: _Rows,
    height: float,
    looks: dict[str, dict[str, Any]] | None,
    theme: _Theme,
) -> None:
    """Name the tokenizers, or the one group, above the panels; note below what is not drawn."""
    from matplotlib.patches import Patch

    above = 1 + 0.5 / height
    if looks is None:
        title = _shown(next(iter(groups)), _TITLE_NAME)
        figure.text(0, above, title, color=theme.text, fontsize=9, parse_math=False, va="bottom")
    else:
        handles = [Patch(label=_shown(name, _NAME), **look) for name, look in looks.items()]
        legend = figure.legend(
            handles=handles,
            loc="lower left",
            bbox_to_anchor=(0, above),
            bbox_transform=figure.transFigure,
            ncols=_columns(list(looks)),
            frameon=False,
            fontsize=8.5,
            labelcolor=theme.text,
            borderaxespad=0,
            borderpad=0,
        )
        for text in legend.get_texts():
            text.set_parse_math(False)
    notes = []
    if len(rows) < len(groups) and looks is not None:
        notes.append(f"the {len(rows)} of {len(groups)} with the most bytes")
    without = len(stats.groups) - len(groups)
    if without:
        notes.append(f"{without} without text left out")
    if notes:
        figure.text(0, -0.08 / height, "; ".join(notes), color=theme.text, fontsize=7.5, alpha=0.75, va="top")


def _columns(names: Sequence[str]) -> int:
    """How many columns of the legend fit above the panels."""
    longest = max(len(_shown(name, _NAME)) for name in names)
    return max(1, min(len(names), int(_PANEL * len(_PANELS) / (0.5 + 0.075 * longest))))


def _shown(name: str, length: int) -> str:
    """A name on one line, shortened in the middle if it is long: the end of a path says most.

    >>> _shown("corpus/de/" + 9 * "very-long-" + "name.txt", 25)
    'corpus/d…ry-long-name.txt'
    """
    text = "".join(char if char.isprintable() else "\ufffd" for char in name)
    return (
        text
        if len(text) <= length
        else f"{text[: length // 3]}…{text[len(text) - (length - length // 3 - 1) :]}"
    )
