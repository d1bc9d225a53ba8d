"""Traces SPM: spaces, and merges by the scores of tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING

from ..._util import utf8
from ..._util.spelling import SPACE
from .bpe import MergeTracer
from .trace_types import Fragment, RewrittenText, Step, among_changes

if TYPE_CHECKING:
    from ..spm import SpmText


class SpmTracer(MergeTracer):
    """The `Tracer` (models/tracers/trace_types.py) of SPM."""

    _text: SpmText

    def steps(self, fragment: bytes, start: int) -> Iterator[Step]:
        """The space before it, spaces, and words."""
        yield Fragment("text", start, start + len(fragment))
        if self._text.prefix:
            yield RewrittenText(start, start, b"", self._text.prefix, ("space_prefix",))
        words = (
            self._word(word, 0, utf8.Offsets(word, bounds), ())
            for word, bounds in self._words(fragment, start)
        )
        yield from among_changes(words, self._spaces(fragment, start))

    def _words(self, fragment: bytes, start: int) -> Iterator[tuple[str, list[int]]]:
        """Yields each word, and where its characters begin and the last one ends; lazily, since a text may be long."""
        plain = self._text.plain(fragment)
        ends = chain((match.start() for match in self._text.word_ends.finditer(plain)), [len(plain)])
        bounds = (start + bound for bound in self._text.bounds(fragment))
        last = next(bounds)
        for first, end in pairwise(chain([0], ends)):
            own = [last, *islice(bounds, end - first)]
            yield plain[first:end], own
            last = own[-1]

    def _spaces(self, fragment: bytes, start: int) -> Iterator[RewrittenText]:
        for match in re.finditer(b" +", fragment):
            first, end = match.span()
            yield RewrittenText(
                start + first, start + end, match[0], SPACE * (end - first), ("escaped_space",)
            )
