"""Examines kinds of differences: shrinks each to its smallest text, and finds the step that differs and the cause."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ...tokenizer import Tokenizer
from ..doctor.texts_with_ids import TextWithIds
from ..oracles.oracle import Failure
from .explaining import Explaining, share_most_tokens
from .result import ComparedText, Difference, DifferenceExample
from .shrink import SECONDS, Shrinking, shrink
from .text_comparison import Comparing, example_of

if TYPE_CHECKING:
    from ..diagnose.cause import Cause
    from ..diagnose.cause_search import Answer

EXAMINED = 12  # kinds that are shrunk, those with most places first
SHRINK_SECONDS = 40.0  # for all of them; each gets `SECONDS` at most
_EVIDENCE = 8000  # bytes of text in which causes are looked for
_WINDOW = 400  # bytes of a long text around a difference
_AGREEING = 10  # texts that do not differ, and are part of the evidence
_BEGINNING = 200  # bytes of a text that does not differ, and on to the end of the line

WORDS, MERGES, VOCABULARY, SPECIAL, ENDS, TEXT = (
    *("words", "merges", "vocabulary", "special tokens", "BOS/EOS", "text"),
)
STEP_OF_CAUSE = {
    **dict.fromkeys(["pre_type"], WORDS),
    **dict.fromkeys(["ignore_merges", "merges", "scores"], MERGES),
    **dict.fromkeys(["vocabulary", "model", "byte_fallback", "unk", "escape_whitespaces"], VOCABULARY),
    **dict.fromkeys(["parse_special", "special_token_types"], SPECIAL),
    **dict.fromkeys(["bos", "eos", "sep", "truncated"], ENDS),
    **dict.fromkeys(
        ["space_prefix", "build", "normalization", "newlines", "trailing_newline", "leading_space"], TEXT
    ),
    **dict.fromkeys(["extra_whitespace", "lower_case", "accents", "charsmap"], TEXT),
    **dict.fromkeys(["bom", "escapes", "invalid_utf8", "text_differs"], TEXT),
}


class _Evidence(NamedTuple):
    """The text and ids in which causes are looked for."""

    text: bytes
    ids: list[int] | Failure
    add_special: bool


class Examining(Comparing):
    """A run that finally examines what it has collected."""

    def examine(self) -> None:
        """Shrink, find steps and causes, and merge kinds that have the same ones."""
        kinds = sorted(self._kinds.values(), key=lambda kind: (-kind.places, kind.number))
        self.result.failures = list(self._failures.values())
        if not self._oracle.recorded:
            self._shrink(kinds[:EXAMINED])
        for kind in kinds:
            kind.step = kind.seen_step = self._step(kind)
        if kinds:
            self._tell("looking for causes")
            self._find_causes(kinds)
        self.result.differences = _merged(kinds)

    def _shrink(self, kinds: list[Difference]) -> None:
        end = time.monotonic() + SHRINK_SECONDS
        for number, kind in enumerate(kinds):
            self._tell(f"shrinking {number + 1}/{len(kinds)}")
            seconds = min((end - time.monotonic()) / (len(kinds) - number), SECONDS)
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
        try:
            comparison = self._aligned(text, ids)
        except ValueError:  # the vocabulary lacks a byte of this part of a text
            return []
        spans = enumerate(comparison.spans)
        return [number for number, span in spans if not span.same and self._kind(comparison, span) == kind]

    def _ask(self, texts: Sequence[bytes]) -> list[list[int] | Failure]:
        return self._oracle.encode(texts, self._add_special, self._parse_special)

    def _asked(self, text: bytes, kind: str) -> DifferenceExample | None:
        [ids] = self._ask([text])
        numbers = self._spans_of(kind, text, ids)
        if isinstance(ids, Failure) or not numbers:
            return None
        return example_of(ComparedText("", 0, text), self._aligned(text, ids), numbers[0])

    # ---- steps ----------------------------------------------------------------------------------

    def _step(self, kind: Difference) -> str:
        """The first step that differs between the two sides, as far as ids and our own trace show."""
        example = kind.smallest or kind.first
        ours, theirs = example.in_span(example.span)
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

    def _cuts_words(self, example: DifferenceExample) -> bool:
        """Whether the oracle splits words differently: by its trace, or if a token spans two of our words."""
        from ...tokenizer.trace import trace

        both = filter(None, (self._tokenizer, self._oracle.tokenizer))
        if not all(each.vocabulary.tokenizer_model.has_pre_tokenizer for each in both):
            return False
        # Tracing a long text takes long; words seldom depend on distant text.
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
        _, tokens = example.in_span(example.span)
        return any(token.start < bound < token.end for token in tokens for bound in bounds)

    # ---- causes ---------------------------------------------------------------------------------

    def _find_causes(self, kinds: list[Difference]) -> None:
        """First what explains all texts together; what that leaves is searched by itself, under the changed model."""
        explaining = Explaining(
            self._tokenizer, self._oracle, self._differing.texts, self._agreeing.texts, self._flags
        )
        found, model = explaining.found, self._tokenizer
        explained: list[Difference] = []
        if found is not None and found.causes:
            model = explaining.changed
            explained = [kind for kind in kinds if self._is_explained(kind, explaining)]
            _attribute(explained, found.causes, 1.0)
        rest = [kind for kind in kinds if kind not in explained]
        causes = self._find_rest(rest, model) if rest else []
        if self._proposes:
            self.result.proposal = explaining.proposal(causes)

    @property
    def _flags(self) -> tuple[bool, bool]:
        return self._add_special, self._parse_special

    def _is_explained(self, kind: Difference, explaining: Explaining) -> bool:
        """Whether a difference is gone in the changed model."""
        text, ids = kind.first.text.data, explaining.ids_of(kind.first.text.data)
        if ids is None:
            return all(explaining.explained)
        if explaining.is_explained(text):
            return True
        if kind.first.start == kind.first.end:  # around the text
            return False
        return not any(
            not span.same and span.start < kind.first.end and kind.first.start < span.end
            for span in self._aligned(text, ids, explaining.changed).spans
        )

    def _find_rest(self, kinds: list[Difference], model: Tokenizer) -> list[Cause]:
        """One search for all kinds together, with the most evidence; if that fails, one for each."""
        groups: dict[object, list[Difference]] = {}
        found: list[Cause] = []
        if self._oracle.recorded:  # there are no ids of new texts, so kinds from one text go together
            for kind in kinds:
                groups.setdefault(kind.number, []).append(kind)
        else:
            answer = self._answer(self._evidence(kinds), model)
            if answer is None or answer.explains < 1.0:
                groups = {kind.kinds[0]: [kind] for kind in kinds}
            else:
                _attribute(kinds, answer.causes, answer.explains)
                return list(answer.causes)
        for group in list(groups.values())[:EXAMINED]:
            answer = self._answer(self._evidence(group), model)
            if answer is not None:
                _attribute(group, answer.causes, answer.explains)
                found += answer.causes if answer.explains == 1.0 else ()
        return found

    def _evidence(self, kinds: list[Difference]) -> _Evidence:
        """A text that contains the differences, and some that both sides encode alike."""
        if self._oracle.recorded:
            return self._recorded_evidence(kinds[0])
        parts: list[bytes] = []
        for kind in kinds:
            text = kind.first.text.data
            first, last = _window(text, kind.first.start, kind.first.end)
            parts.append(text[first:last])
            if sum(map(len, parts)) > _EVIDENCE:
                break
        # A cause must not make texts differ that are alike now.
        for text, *_ in self._agreeing.texts[:_AGREEING]:
            first, last = _window(text, 0, min(len(text), _BEGINNING))
            parts.append(text[first:last])
        text = b"\n".join(dict.fromkeys(parts)) if len(parts) > 1 else parts[0]
        return _Evidence(text, self._ask([text])[0], self._add_special)

    def _recorded_evidence(self, kind: Difference) -> _Evidence:
        """The text that was recorded; if it is long, some lines around the difference, without BOS and EOS."""
        text, ids = kind.first.text.data, self._recorded[kind.kinds[0]]
        if len(text) <= 2 * _EVIDENCE:
            return _Evidence(text, ids, self._add_special)
        theirs = [token for token in self._aligned(text, ids).theirs if token.start < token.end]
        # Both sides certainly begin a word where a line does not begin with white space.
        ends = {token.end for token in theirs if text[token.end - 1 : token.end] == b"\n"}
        lines = sorted({0, *(end for end in ends if not text[end : end + 1].isspace())})
        first = max((line for line in lines if line <= kind.first.start), default=0)
        last = max((line for line in lines if line <= first + _EVIDENCE), default=0)
        if last < kind.first.end:
            return _Evidence(b"", Failure("refused", "no line around the difference is short enough"), False)
        within = [token.id for token in theirs if first <= token.start and token.end <= last]
        return _Evidence(text[first:last], within, False)

    def _answer(self, evidence: _Evidence, model: Tokenizer) -> Answer | None:
        """Why a model does not give the ids of some text; None if that cannot be told."""
        text, ids, add_special = evidence
        if isinstance(ids, Failure) or isinstance(self._own([text])[0], Failure):
            return None
        from ..diagnose.id_diagnosis import answers

        other = self._oracle.tokenizer
        # that the ids are those of the other file explains nothing where the two have one vocabulary
        is_asked = other is not None and (
            other.vocabulary.tokens == model.vocabulary.tokens
            or not share_most_tokens(self._tokenizer.vocabulary, other.vocabulary)
        )
        others = [other] if other is not None and is_asked else []
        found, *_ = answers(model, TextWithIds(text, ids), (add_special, self._parse_special), others)
        for answer in found:
            # any other oracle was asked about this very text
            if self._oracle.recorded or not answer.takes_another_text:
                return answer
        return None


def _attribute(kinds: list[Difference], causes: tuple[Cause, ...], explains: float) -> None:
    """Give each kind the causes that belong to its step, or if there are none, all causes and their step.

    The first kind, and those like it, also get the causes that no other has: only all together give the ids.
    """
    if not kinds:
        return
    for kind in kinds:
        fitting = tuple(cause for cause in causes if STEP_OF_CAUSE.get(cause.id) == kind.step)
        kind.causes = fitting or causes
    told = [cause for kind in kinds for cause in kind.causes]
    first = tuple(cause for cause in causes if cause in kinds[0].causes or cause not in told)
    for kind in [kind for kind in kinds if kind.causes == kinds[0].causes]:
        kind.causes = first
    for kind in kinds:
        kind.explains = explains
        steps = [STEP_OF_CAUSE[cause.id] for cause in kind.causes if cause.id in STEP_OF_CAUSE]
        if explains == 1.0 and steps and kind.step not in steps:
            kind.step = steps[0]


def _merged(kinds: list[Difference]) -> list[Difference]:
    """One difference for each step and cause; kinds without a known cause stay separate."""
    groups: dict[object, list[Difference]] = {}
    for kind in kinds:
        known = kind.causes and kind.explains == 1.0
        groups.setdefault(
            (kind.step, repr(list(map(tuple, kind.causes)))) if known else kind.kinds[0], []
        ).append(kind)
    return sorted(map(_as_one, groups.values()), key=lambda difference: -difference.places)


def _as_one(kinds: list[Difference]) -> Difference:
    """Kinds with the same step and cause as one difference, with the examples that show this step best."""
    typical = [kind for kind in kinds if kind.seen_step == kind.step] or kinds
    first = min(typical, key=lambda kind: (kind.number, kind.first.start))
    first.places = sum(kind.places for kind in kinds)
    first.kinds = [kind.kinds[0] for kind in kinds]
    smallest = [kind.smallest for kind in typical if kind.smallest is not None]
    first.smallest = min(smallest, key=lambda example: len(example.text.data), default=None)
    return first


def _windows(text: bytes, start: int, end: int) -> Iterator[bytes]:
    """Parts of `text` around a place, which may differ as well."""
    for margin in (4, 16, 64, _WINDOW):
        yield text[max(start - margin, 0) : end + margin]
    first, last = _window(text, start, end)
    yield text[first:last]


def _window(text: bytes, start: int, end: int) -> tuple[int, int]:
    """(first, last) of the lines around a place, or of some hundred bytes if the lines are long.

    Of a place that is itself long, such as an endless word, it is the beginning.
    """
    end = min(end, start + _EVIDENCE)
    first = text.rfind(b"\n", max(start - _WINDOW, 0), start) + 1
    first = first or max(start - _WINDOW, 0)
    last = text.find(b"\n", end, end + _WINDOW)
    last = min(end + _WINDOW, len(text)) if last < 0 else last + 1
    while 0 < first < len(text) and text[first] & 0xC0 == 0x80 and start - first < _WINDOW + 3:
        first -= 1
    while last < len(text) and text[last] & 0xC0 == 0x80 and last - end < _WINDOW + 3:
        last += 1
    return first, last
