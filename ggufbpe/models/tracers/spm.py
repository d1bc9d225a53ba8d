"""Traces SPM: spaces, and merges by the scores of tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, pairwise
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

    def steps(self, fragment: str | bytes, start: int) -> Iterator[Step]:
        """The space before it, spaces, and words."""
        yield Fragment("text", start, start + utf8.byte_length(fragment))
        if self._text.prefix:
            yield RewrittenText(start, start, b"", self._text.prefix, ("space_prefix",))
        words = (
            self._word(word, 0, utf8.Offsets(word, bounds), ())
            for word, bounds in self._words(fragment, start)
        )
        yield from among_changes(words, self._spaces(fragment, start))

    def _words(self, fragment: str | bytes, start: int) -> Iterator[tuple[str, list[int]]]:
        """Yields each word, and where its characters begin and the last one ends; lazily, since a text may be long."""
        plain = self._text.plain(fragment)
        ends = chain((match.start() for match in self._text.word_ends.finditer(plain)), [len(plain)])
        if isinstance(fragment, bytes):
            bounds = [start + bound for bound in self._text.bounds(fragment)]
            for first, end in pairwise(chain([0], ends)):
                yield plain[first:end], bounds[first : end + 1]
            return
        prefix = len(self._text.prefix)
        for first, end in pairwise(chain([0], ends)):
            own = utf8.char_ends(fragment[max(first - prefix, 0) : end - prefix])
            yield plain[first:end], [*[start] * max(prefix - first, 0), start, *(start + at for at in own)]
            start += own[-1] if own else 0

    def _spaces(self, fragment: str | bytes, start: int) -> Iterator[RewrittenText]:
        data = fragment.encode() if isinstance(fragment, str) else fragment
        for match in re.finditer(b" +", data):
            first, end = match.span()
            yield RewrittenText(
                start + first, start + end, match[0], SPACE * (end - first), ("escaped_space",)
            )
