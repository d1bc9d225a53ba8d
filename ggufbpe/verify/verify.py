"""Compares our ids with an oracle's, and finds for each kind of difference its smallest text and its cause.

    texts, oracle -> [this file] -> Result -> report.py, cli/verify.py

Texts come one by one and only examples are kept, so a corpus may be of any size. Differences are told apart
first by what stands on both sides ("N" for digits against "N|N", say); for each kind the first text is kept.
At the end each is shrunk, the step in which the two part is read off a trace, the cause is looked for, and
kinds of one step and cause become one difference.

But: says what differs, not who is right.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from .. import utf8
from ..diagnose.agreement import AS_COMMAND, SAID_OF, added_as
from ..oracles.oracles import Failure, Oracle, OracleError
from ..tokenizer import Tokenizer
from ..unicode_classes import class_of
from .align import Placed, Row, Span, align, own_row, place
from .shrink import Shrinking, shrink

if TYPE_CHECKING:
    from ..diagnose.causes import Cause, Explanation

BATCH_BYTES = 1 << 18
MOST_KINDS = 100  # kinds of differences told apart; what comes after them is counted
EXAMINED = 12  # kinds that are shrunk, those with most places first
SHRINK_SECONDS = 40.0  # for all of them; each gets 10 at most
_CONTEXT = 6  # tokens shown on each side of a differing span
_MOST_SHOWN = 24  # tokens of a differing span that are shown
_EVIDENCE = 8000  # bytes of text in which causes are looked for
_WINDOW = 400  # bytes of a long text around a difference

WORDS, MERGES, VOCABULARY, SPECIAL, ENDS, TEXT = (
    *("words", "merges", "vocabulary", "special tokens", "BOS/EOS", "text"),
)
STEP_OF_CAUSE = {
    **dict.fromkeys(["pre_type"], WORDS),
    **dict.fromkeys(["ignore_merges", "merges"], MERGES),
    **dict.fromkeys(["vocabulary"], VOCABULARY),
    **dict.fromkeys(["parse_special", "special_token_types"], SPECIAL),
    **dict.fromkeys(["bos", "eos", "truncated"], ENDS),
    **dict.fromkeys(["space_prefix", "normalization", "newlines", "trailing_newline", "leading_space"], TEXT),
    **dict.fromkeys(["bom", "escapes", "invalid_utf8", "text_differs"], TEXT),
}


class Text(NamedTuple):
    """A text to compare; `offset` is where it begins in its source, in bytes."""

    source: str
    offset: int
    data: bytes


class Shown(NamedTuple):
    """A token of a row; `span` numbers the spans, by which both rows are aligned."""

    id: int
    piece: bytes
    start: int
    end: int
    span: int
    differs: bool


class Example(NamedTuple):
    """A text that differs, with the tokens of both sides around a differing span, `text[start:end]`.

    `left_out` says how many more tokens of the span itself both sides have.
    """

    text: Text
    start: int
    end: int
    span: int
    ours: tuple[Shown, ...]
    theirs: tuple[Shown, ...]
    left_out: tuple[int, int]


class Difference:
    """Places where the two part in the same step for the same cause, as far as is known."""

    def __init__(self, kind: str, first: Example, number: int) -> None:
        self.kinds = [kind]
        self.first = first
        self.number = number  # of the text, from 0
        self.places = 0
        self.smallest: Example | None = None
        self.step = self.seen_step = ""  # the second is what the ids alone look like
        self.causes: tuple[Cause, ...] = ()
        self.explains = 0.0  # the share of ids that the causes turn into the oracle's


class FailureGroup:
    """Texts for which the oracle gave no ids, for one reason."""

    def __init__(self, failure: Failure, first: Text) -> None:
        self.kind, self.detail = failure
        self.first = first
        self.texts = 0


class Result:
    """What a comparison found."""

    def __init__(self, oracle: str) -> None:
        self.oracle = oracle
        self.texts = self.bytes = self.tokens = self.oracle_tokens = 0
        self.different = 0  # texts
        self.seconds = self.oracle_seconds = 0.0
        self.differences: list[Difference] = []
        self.failures: list[FailureGroup] = []
        self.other_places = 0  # beyond MOST_KINDS

    @property
    def refused(self) -> int:
        """Texts that the oracle cannot take; nothing is known about them."""
        return sum(group.texts for group in self.failures if group.kind == "refused")

    @property
    def failed(self) -> int:
        """Texts on which the oracle crashed, hung or gave garbage."""
        return sum(group.texts for group in self.failures) - self.refused

    @property
    def compared(self) -> int:
        return self.texts - self.refused - self.failed

    @property
    def fix(self) -> str:
        """The one command that makes all changes to the model file that the causes call for; "" for none."""
        from ..diagnose.causes import together

        return together(cause for difference in self.differences for cause in difference.causes)

    @property
    def same(self) -> bool:
        return not self.different and not self.failed


Progress = Callable[[str, int, int], None]
"""Told what is being done, and the texts and bytes that are done."""


def verify(
    tokenizer: Tokenizer,
    oracle: Oracle,
    texts: Iterable[Text],
    *,
    add_special: bool = True,
    parse_special: bool = True,
    progress: Progress = lambda *_: None,
) -> Result:
    """Compare the ids of `texts`. Raises `OracleError` where the oracle has no more to say.

    >>> with open_oracle("llama-tokenize", path, tok, 30) as oracle:            # doctest: +SKIP
    ...     verify(tok, oracle, [Text("greeting", 0, b"Hello world")]).same
    True
    """
    job = _Job(tokenizer, oracle, oracle.add_special(add_special), parse_special, progress)
    for batch in _batches(texts, oracle.batch):
        job.compare(batch)
    if oracle.recorded and not job.result.texts:
        raise OracleError("there is no text to go with the recorded ids")
    job.examine()
    return job.result


def _batches(texts: Iterable[Text], most: int) -> Iterator[list[Text]]:
    batch: list[Text] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(text.data)
        if len(batch) >= most or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class _Comparison(NamedTuple):
    """Both rows of one text, aligned."""

    ours: Row
    theirs: Row
    spans: list[Span]


class _Job:
    """One run: asks both sides, collects, and examines in the end."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        oracle: Oracle,
        add_special: bool,
        parse_special: bool,
        progress: Progress,
    ) -> None:
        self._tokenizer = tokenizer
        self._oracle = oracle
        self._add_special, self._parse_special = add_special, parse_special
        self._progress = progress
        self._special = {*tokenizer.vocabulary.special_token_ids, tokenizer.bos_id, tokenizer.eos_id}
        self._kinds: dict[str, Difference] = {}
        self._failures: dict[tuple[str, str], FailureGroup] = {}
        self._recorded: dict[str, list[int]] = {}  # the ids of first texts that cannot be asked for again
        self.result = Result(oracle.name)

    # ---- comparing ------------------------------------------------------------------------------

    def compare(self, batch: list[Text]) -> None:
        result = self.result
        if self._oracle.recorded and self._add_special and not result.texts:
            self._choose_meaning(batch[0])
        self._progress("comparing", result.texts, result.bytes)
        data = [text.data for text in batch]
        began = time.perf_counter()
        ours = self._tokenizer.encode_batch(
            data, add_special=self._add_special, parse_special=self._parse_special
        )
        between = time.perf_counter()
        theirs = self._oracle.encode(data, self._add_special, self._parse_special)
        result.oracle_seconds += time.perf_counter() - between
        result.seconds += between - began
        for text, ids, answer in zip(batch, ours, theirs):
            result.bytes += len(text.data)
            result.tokens += len(ids)
            if isinstance(answer, Failure):
                self._failed(text, answer)
            else:
                result.oracle_tokens += len(answer)
                if answer != ids:
                    self._differs(text, answer)
            result.texts += 1

    def _choose_meaning(self, first: Text) -> None:
        """Of the two meanings of "add special tokens" the one that the first recorded ids follow."""
        ids = self._oracle.first_recorded()
        meaning = added_as(self._tokenizer, first.data, ids, self._parse_special)
        if meaning:
            self._add_special = meaning != AS_COMMAND
            self._oracle.note = f"the ids are taken {SAID_OF[meaning]}"

    def _failed(self, text: Text, failure: Failure) -> None:
        without_numbers = "".join(char for char in failure.detail if not char.isdigit())
        key = (failure.kind, without_numbers)
        if key not in self._failures:
            if len(self._failures) >= MOST_KINDS:
                key = (failure.kind, "")  # the rest of them, under the first one's words
            self._failures.setdefault(key, FailureGroup(failure, text))
        self._failures[key].texts += 1

    def _differs(self, text: Text, ids: list[int]) -> None:
        self.result.different += 1
        comparison = self._aligned(text.data, ids)
        for number, span in enumerate(comparison.spans):
            if span.same:
                continue
            kind = self._kind(comparison, span)
            if kind not in self._kinds:
                if len(self._kinds) >= MOST_KINDS:
                    self.result.other_places += 1
                    continue
                self._kinds[kind] = Difference(kind, _example(text, comparison, number), self.result.texts)
                if self._oracle.recorded:
                    self._recorded[kind] = ids
            self._kinds[kind].places += 1

    def _aligned(self, text: bytes, ids: list[int]) -> _Comparison:
        ours = own_row(
            self._tokenizer, text, add_special=self._add_special, parse_special=self._parse_special
        )
        theirs = place(self._oracle.tokenizer or self._tokenizer, text, ids, ours)
        return _Comparison(ours, theirs, align(ours, theirs))

    # ---- kinds ----------------------------------------------------------------------------------

    def _kind(self, comparison: _Comparison, span: Span) -> str:
        """What stands on both sides, so far as it tells one kind of difference from another."""
        sides = comparison.ours[slice(*span.left)], comparison.theirs[slice(*span.right)]
        special = any(token.id in self._special for side in sides for token in side)
        texts = [b"".join(token.piece for token in side) for side in sides]
        if texts[0] != texts[1] and not special and span.start < span.end:
            return "another text"
        return " / ".join(self._shape(side, special) for side in sides)

    def _shape(self, tokens: Row, special: bool) -> str:
        """Tokens by their classes of characters, equal neighbours as one: "L", " L|N+".

        With a special token on either side, only such matter.
        """
        shapes: list[str] = []
        for token in tokens:
            shape = "text" if special and token.id not in self._special else self._shape_of(token)
            if not shapes or shapes[-1].removesuffix("+") != shape:
                shapes.append(shape)
            elif shape != "text" and not shapes[-1].endswith("+"):
                shapes[-1] += "+"
        if special and len(shapes) > 1:
            shapes = [shape for shape in shapes if shape != "text"]
        return "|".join(shapes[:8] + ["…"] * (len(shapes) > 8)) or "nothing"

    def _shape_of(self, token: Placed) -> str:
        if token.id in self._special:
            return token.piece.decode("utf-8", "replace") or f"token {token.id}"
        if not token.piece:
            return "no token"
        try:
            text = token.piece.decode()
        except UnicodeDecodeError:
            return "bytes"
        found: list[str] = []
        for char in text[:40]:
            letter = char if char in " \n\r\t'" else class_of(ord(char))
            if not found or found[-1] != letter:
                found.append(letter)
        return "".join(found)

    # ---- examining ------------------------------------------------------------------------------

    def examine(self) -> None:
        """Shrink, find steps and causes, and put together what belongs together."""
        kinds = sorted(self._kinds.values(), key=lambda kind: (-kind.places, kind.number))
        self.result.failures = list(self._failures.values())
        if not self._oracle.recorded:
            self._shrink(kinds[:EXAMINED])
        for kind in kinds:
            kind.step = kind.seen_step = self._step(kind)
        if kinds:
            self._progress("looking for causes", self.result.texts, self.result.bytes)
            self._find_causes(kinds)
        self.result.differences = _merged(kinds)

    def _shrink(self, kinds: list[Difference]) -> None:
        end = time.monotonic() + SHRINK_SECONDS
        for number, kind in enumerate(kinds):
            self._progress(f"shrinking {number + 1}/{len(kinds)}", self.result.texts, self.result.bytes)
            seconds = min((end - time.monotonic()) / (len(kinds) - number), 10.0)
            text, (start, stop) = kind.first.text.data, (kind.first.start, kind.first.end)
            shrinking = Shrinking(
                partial(self._have, kind.kinds[0]), seconds=seconds, batch=min(self._oracle.batch, 8)
            )
            found = shrink(text, shrinking, [text[start:stop], *_windows(text, start, stop)])
            example = self._asked(found, kind.kinds[0])
            kind.smallest = example

    def _have(self, kind: str, texts: Sequence[bytes]) -> list[bool]:
        """Which texts have a difference of this kind."""
        return [bool(self._spans_of(kind, text, ids)) for text, ids in zip(texts, self._ask(texts))]

    def _spans_of(self, kind: str, text: bytes, ids: list[int] | Failure) -> list[int]:
        if isinstance(ids, Failure):
            return []
        comparison = self._aligned(text, ids)
        spans = enumerate(comparison.spans)
        return [number for number, span in spans if not span.same and self._kind(comparison, span) == kind]

    def _ask(self, texts: Sequence[bytes]) -> list[list[int] | Failure]:
        return self._oracle.encode(texts, self._add_special, self._parse_special)

    def _asked(self, text: bytes, kind: str) -> Example | None:
        [ids] = self._ask([text])
        numbers = self._spans_of(kind, text, ids)
        if isinstance(ids, Failure) or not numbers:
            return None
        return _example(Text("", 0, text), self._aligned(text, ids), numbers[0])

    # ---- steps ----------------------------------------------------------------------------------

    def _step(self, kind: Difference) -> str:
        """The first step of the two sides that differs, as far as ids and our own trace tell."""
        example = kind.smallest or kind.first
        ours, theirs = _differing(example)
        ends = {self._tokenizer.bos_id, self._tokenizer.eos_id}
        special = {token.id for token in ours} ^ {token.id for token in theirs}
        if example.start == example.end or any(
            token.start == token.end and token.id in ends for token in ours + theirs
        ):
            return ENDS
        if special & self._special:
            return SPECIAL
        if not all(0 <= token.id < self._tokenizer.vocab_size for token in theirs):
            return VOCABULARY
        texts = [b"".join(token.piece for token in side) for side in (ours, theirs)]
        length = min(map(len, texts)) if any(example.left_out) else max(map(len, texts))
        if texts[0][:length] != texts[1][:length]:
            return VOCABULARY
        if [token.piece for token in ours] == [token.piece for token in theirs]:
            return VOCABULARY
        return WORDS if self._cuts_words(example) else MERGES

    def _cuts_words(self, example: Example) -> bool:
        """Whether the oracle has other words: another engine's are known, else a token across two of ours tells."""
        from ..trace.trace import trace

        # A trace of a long text takes long; words seldom depend on what is further away.
        first, last = _window(example.text.data, example.start, example.end)
        text = example.text.data[first:last]
        words = trace(self._tokenizer, text, parse_special=self._parse_special).words
        bounds = {first + word.start for word in words}
        other = self._oracle.tokenizer
        if other is not None:
            others = trace(other, text, parse_special=self._parse_special).words
            return any(
                example.start <= bound < example.end
                for bound in bounds ^ {first + word.start for word in others}
            )
        tokens = _differing(example)[1]
        return any(token.start < bound < token.end for token in tokens for bound in bounds)

    # ---- causes ---------------------------------------------------------------------------------

    def _find_causes(self, kinds: list[Difference]) -> None:
        """One search for all kinds together, which has most to go by; where that fails, one for each."""
        groups: dict[object, list[Difference]] = {}
        if self._oracle.recorded:  # no new text can be made, so those of one text go together
            for kind in kinds:
                groups.setdefault(kind.number, []).append(kind)
        else:
            explanation = self._explanation(self._evidence(kinds))
            if explanation is None or explanation.explains < 1.0:
                groups = {kind.kinds[0]: [kind] for kind in kinds}
            else:
                _attribute(kinds, explanation)
        for group in list(groups.values())[:EXAMINED]:
            explanation = self._explanation(self._evidence(group))
            if explanation is not None:
                _attribute(group, explanation)

    def _evidence(self, kinds: list[Difference]) -> _Evidence:
        """A text with the differences in it."""
        if self._oracle.recorded:
            return self._recorded_evidence(kinds[0])
        parts: list[bytes] = []
        for kind in kinds:
            text = kind.first.text.data
            first, last = _window(text, kind.first.start, kind.first.end)
            parts.append(text[first:last])
            if sum(map(len, parts)) > _EVIDENCE:
                break
        text = b"\n".join(dict.fromkeys(parts)) if len(parts) > 1 else parts[0]
        return _Evidence(text, self._ask([text])[0], self._add_special)

    def _recorded_evidence(self, kind: Difference) -> _Evidence:
        """The text that was recorded; of a long one some lines around the difference, without BOS and EOS."""
        text, ids = kind.first.text.data, self._recorded[kind.kinds[0]]
        if len(text) <= 2 * _EVIDENCE:
            return _Evidence(text, ids, self._add_special)
        theirs = [token for token in self._aligned(text, ids).theirs if token.start < token.end]
        # Both sides surely begin a word where a line begins with something else than white space.
        ends = {token.end for token in theirs if text[token.end - 1 : token.end] == b"\n"}
        lines = sorted({0, *(end for end in ends if not text[end : end + 1].isspace())})
        first = max((line for line in lines if line <= kind.first.start), default=0)
        last = max((line for line in lines if line <= first + _EVIDENCE), default=0)
        if last < kind.first.end:
            return _Evidence(b"", Failure("refused", "no line around the difference is short enough"), False)
        within = [token.id for token in theirs if first <= token.start and token.end <= last]
        return _Evidence(text[first:last], within, False)

    def _explanation(self, evidence: _Evidence) -> Explanation | None:
        text, ids, add_special = evidence
        if isinstance(ids, Failure):
            return None
        from ..diagnose.diagnose import diagnose

        others = [self._oracle.tokenizer] if self._oracle.tokenizer else []
        diagnosis = diagnose(
            self._tokenizer,
            text,
            ids,
            add_special=add_special,
            parse_special=self._parse_special,
            others=others,
        )
        for explanation in diagnosis.explanations:
            other_text = any(cause.id == "text_differs" for cause in explanation.causes)
            if self._oracle.recorded or not other_text:  # it was asked about this very text
                return explanation
        return None


class _Evidence(NamedTuple):
    """What causes are looked for in."""

    text: bytes
    ids: list[int] | Failure
    add_special: bool


def _attribute(kinds: list[Difference], explanation: Explanation) -> None:
    """Give each kind those causes that belong to its step, or all where none does, and then their step.

    The first one, and those like it, also get what no other has: only all causes together give the ids.
    """
    causes = explanation.causes
    for kind in kinds:
        fitting = tuple(cause for cause in causes if STEP_OF_CAUSE.get(cause.id) == kind.step)
        kind.causes = fitting or causes
    told = [cause for kind in kinds for cause in kind.causes]
    first = tuple(cause for cause in causes if cause in kinds[0].causes or cause not in told)
    for kind in [kind for kind in kinds if kind.causes == kinds[0].causes]:
        kind.causes = first
    for kind in kinds:
        kind.explains = explanation.explains
        steps = [STEP_OF_CAUSE[cause.id] for cause in kind.causes if cause.id in STEP_OF_CAUSE]
        if explanation.explains == 1.0 and steps and kind.step not in steps:
            kind.step = steps[0]


def _merged(kinds: list[Difference]) -> list[Difference]:
    """One difference for each step and cause; kinds without a known cause stay apart."""
    groups: dict[object, list[Difference]] = {}
    for kind in kinds:
        known = kind.causes and kind.explains == 1.0
        groups.setdefault((kind.step, repr(kind.causes)) if known else kind.kinds[0], []).append(kind)
    return sorted(map(_as_one, groups.values()), key=lambda difference: -difference.places)


def _as_one(kinds: list[Difference]) -> Difference:
    """Kinds of one step and cause: with the examples that show this step best."""
    typical = [kind for kind in kinds if kind.seen_step == kind.step] or kinds
    first = min(typical, key=lambda kind: (kind.number, kind.first.start))
    first.places = sum(kind.places for kind in kinds)
    first.kinds = [kind.kinds[0] for kind in kinds]
    smallest = [kind.smallest for kind in typical if kind.smallest is not None]
    first.smallest = min(smallest, key=lambda example: len(example.text.data), default=None)
    return first


def _differing(example: Example) -> tuple[list[Shown], list[Shown]]:
    """The tokens of both sides in the differing span itself."""
    ours, theirs = (
        [token for token in row if token.span == example.span] for row in (example.ours, example.theirs)
    )
    return ours, theirs


def _example(text: Text, comparison: _Comparison, number: int) -> Example:
    """What is kept of a comparison: the tokens around span `number`."""
    spans = comparison.spans
    rows: list[list[Shown]] = []
    for side, row in enumerate((comparison.ours, comparison.theirs)):
        shown = []
        for index in range(max(number - 2, 0), min(number + 3, len(spans))):
            span = spans[index]
            tokens = row[slice(*(span.right if side else span.left))]
            if index < number:
                tokens = tokens[-_CONTEXT:]
            elif index > number:
                tokens = tokens[:_CONTEXT]
            else:
                tokens = tokens[:_MOST_SHOWN]
            shown += [Shown(*token, index, not span.same) for token in tokens]
        rows.append(shown)
    span = spans[number]
    ours, theirs = (tuple(row) for row in rows)
    left_out = (max(b - a - _MOST_SHOWN, 0) for a, b in (span.left, span.right))
    return Example(text, span.start, span.end, number, ours, theirs, (next(left_out), next(left_out)))


def _windows(text: bytes, start: int, end: int) -> Iterator[bytes]:
    """Parts of `text` around a place, which may do in its stead."""
    for margin in (4, 16, 64, _WINDOW):
        yield text[max(start - margin, 0) : end + margin]
    first, last = _window(text, start, end)
    yield text[first:last]


def _window(text: bytes, start: int, end: int) -> tuple[int, int]:
    """(first, last) of the lines around a place, or of some hundred bytes where these are long."""
    first = text.rfind(b"\n", max(start - _WINDOW, 0), start) + 1
    first = first or max(start - _WINDOW, 0)
    last = text.find(b"\n", end, end + _WINDOW)
    last = min(end + _WINDOW, len(text)) if last < 0 else last + 1
    while 0 < first < len(text) and text[first] & 0xC0 == 0x80 and start - first < _WINDOW + 3:
        first -= 1
    while last < len(text) and text[last] & 0xC0 == 0x80 and last - end < _WINDOW + 3:
        last += 1
    return first, last


def visible_text(data: bytes, limit: int) -> tuple[bytes, bool]:
    """The first `limit` bytes of a text or one character less or more, and whether it is cut."""
    if len(data) <= limit:
        return data, False
    ends = [end for end in utf8.char_ends(data[: limit + 4]) if end <= limit]
    return data[: ends[-1] if ends else limit], True
