"""The figures as Markdown tables.

figures and rows -> [this file] -> standard output
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator
from typing import Any

from goals import SHORT_OVERHEAD

VERDICT = {True: "yes", False: "NO", None: ""}


def print_all(results: dict[str, Any]) -> None:
    """The conditions, the speeds, and the goals."""
    for part in (
        _head(results),
        _speeds(results["encode"]),
        _short(results["short"]),
        _goals(results["rows"]),
        _sum(results["rows"]),
    ):
        print("\n".join(part))


def _head(results: dict[str, Any]) -> Iterator[str]:
    facts = results["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items() if version)
    yield f"Machine: {facts['cpu']}, {facts['cores']} cores; Python {facts['python']}; {versions}."
    settings = results["settings"]
    yield f"ggufbpe's engine: {settings['engine']}. {settings['rounds']} rounds; one thread unless it says otherwise."
    for text in results["texts"]:
        yield f"Text: {text['name']}, {text['bytes'] / 1e6:.2f} MB, {text['source']}."
    for name, reason in results["left_out"].items():
        yield f"Left out: {name} ({reason})."
    different = [check for check in results["ids"] if not check["equal"]]
    yield f"Ids: {len(results['ids']) - len(different)} of {len(results['ids'])} checks equal."
    for check in different:
        yield (
            f"Ids differ: {check['engine']}, {check['vocabulary']}, {check['text']}: {check['missing_tokens']} of "
            f"{check['expected_tokens']} tokens of {check['standard']} are not there."
        )


def _speeds(figures: list[dict[str, Any]]) -> Iterator[str]:
    """For each vocabulary: engines down, texts across, first pass / later passes in MB/s."""
    for vocabulary in _distinct(figure["vocabulary"] for figure in figures):
        of_vocabulary = [figure for figure in figures if figure["vocabulary"] == vocabulary]
        texts = _distinct(figure["text"] for figure in of_vocabulary)
        yield f"\n| {vocabulary}: encode, MB/s, first pass / later | " + " | ".join(texts) + " |"
        yield "| --- |" + " --- |" * len(texts)
        for engine in _distinct(figure["engine"] for figure in of_vocabulary):
            cells = {figure["text"]: figure for figure in of_vocabulary if figure["engine"] == engine}
            yield f"| {engine} | " + " | ".join(_speed(cells.get(text)) for text in texts) + " |"


def _speed(figure: dict[str, Any] | None) -> str:
    return f"{figure['first_mb_per_s']:.1f} / {figure['later_mb_per_s']:.1f}" if figure else ""


def _short(figures: list[dict[str, Any]]) -> Iterator[str]:
    """Vocabularies across, engines down."""
    if not figures:
        return
    vocabularies = _distinct(figure["vocabulary"] for figure in figures)
    yield "\n| 50 characters, us | form | " + " | ".join(vocabularies) + " |"
    yield "| --- | --- |" + " --- |" * len(vocabularies)
    median = {
        (figure["engine"], figure["form"], figure["vocabulary"]): statistics.median(figure["microseconds"])
        for figure in figures
    }
    for engine, form in dict.fromkeys(key[:2] for key in median):
        cells = (median.get((engine, form, vocabulary)) for vocabulary in vocabularies)
        yield f"| {engine} | {form} | " + " | ".join("" if c is None else f"{c:.2f}" for c in cells) + " |"


def _goals(rows: list[dict[str, Any]]) -> Iterator[str]:
    """A line for each comparison that has a goal."""
    for vocabulary in _distinct(row["vocabulary"] for row in rows):
        yield f"\n| {vocabulary} | text | ggufbpe | against | ratio | floor | met | aim | met | note |"
        yield "| --- |" + " --- |" * 9
        for row in rows:
            if row["vocabulary"] == vocabulary and (row["floor"], row["aim"]) != (None, None):
                yield _goal(row)


def _sum(rows: list[dict[str, Any]]) -> Iterator[str]:
    """How many goals are reached."""
    counts = []
    for goal in ("floor", "aim"):
        verdicts = [row[f"{goal}_met"] for row in rows if row[f"{goal}_met"] is not None]
        counts.append(f"{sum(verdicts)} of {len(verdicts)} {goal}s")
    yield "\nReached: " + ", ".join(counts) + "."


def _goal(row: dict[str, Any]) -> str:
    sign = "≥" if row["at_least"] else "≤"
    unit = row["unit"]
    value_unit = unit if row["what"] == SHORT_OVERHEAD else "x"
    cells = [
        row["what"],
        row["text"] or "",
        f"{row['ours']:.3g} {unit}",
        f"{row['against']} {row['theirs']:.3g} {unit}",
        f"{row['value']:.2f} {value_unit}",
        "" if row["floor"] is None else f"{sign} {row['floor']:g}",
        VERDICT[row["floor_met"]],
        "" if row["aim"] is None else f"{sign} {row['aim']:g}",
        VERDICT[row["aim_met"]],
        row["note"],
    ]
    return "| " + " | ".join(cells) + " |"


def _distinct(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))
