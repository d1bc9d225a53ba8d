"""Compares texts, a batch at a time, and groups differences into kinds by the tokens on both sides."""

from __future__ import annotations

import time
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from ..._util.progress import OnProgress, Progress
from ..._util.unicode_classes import class_of
from ...tokenizer import Tokenizer
from ..diagnose.agreement import AS_COMMAND, SAID_OF, added_as
from ..doctor.texts_with_ids import TextWithIds
from ..oracles.oracle import Answer, Failure, Oracle
from .align import Row, Span, align, own_row, place
from .result import OWN, ComparedText, Difference, DifferenceExample, FailureGroup, ShownToken, Verification

MOST_KINDS = 100  # kinds of differences; places of further kinds are only counted
_CONTEXT = 6  # tokens shown on each side of a differing span
_MOST_SHOWN = 24  # tokens of a differing span that are shown
_REMEMBERED = 1 << 16  # pairs of rows of ids with their kind: in a large text most come many times
_REMEMBERED_TOKENS = 16  # of such a pair; longer ones hardly come twice, and would take gigabytes
# What is kept as evidence, of texts that differ and of those that do not: bytes of text, and texts.
_MOST_BYTES, _MOST_TEXTS = 1 << 20, 2000


_Side = tuple[tuple[int, bytes], ...]  # the tokens of one side of a place, with their bytes


class AlignedRows(NamedTuple):
    """Both rows of one text, aligned."""

    ours: Row
    theirs: Row
    spans: list[Span]


class Kept:
    """Texts with their ids that are kept as evidence: the first ones, until they are many."""

    def __init__(self) -> None:
        self.texts: list[TextWithIds] = []
        self._size = 0

    def add(self, compared: TextWithIds) -> None:
        """Keep a text, unless those that are kept are many already."""
        size = self._size + len(compared.text)
        if not self.texts or (len(self.texts) < _MOST_TEXTS and size <= _MOST_BYTES):
            self.texts.append(compared)
            self._size = size


class Comparing:
    """One run: asks both sides, and collects what differs."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        oracle: Oracle,
        add_special: bool,
        parse_special: bool,
        progress: OnProgress,
        propose: bool = True,
    ) -> None:
        """`propose` tells whether a change of the model is wanted."""
        self._tokenizer = tokenizer
        self._oracle = oracle
        self._add_special, self._parse_special = add_special, parse_special
        self._progress, self._proposes = progress, propose
        self._special = {*tokenizer.vocabulary.special_token_ids, tokenizer.bos_id, tokenizer.eos_id}
        self._kinds: dict[str, Difference] = {}
        self._kind_of = lru_cache(_REMEMBERED)(self._kind_of_tokens)
        self._shape_of = lru_cache(_REMEMBERED)(self._shape_of_piece)
        self._failures: dict[tuple[str, str], FailureGroup] = {}
        self._recorded: dict[str, list[int]] = {}  # the ids of first texts, which cannot be requested again
        # A change has to explain the differing texts, and leave the agreeing ones as they are.
        self._differing, self._agreeing = (Kept(), Kept())
        self.result = Verification(oracle.name)

    # ---- comparing ------------------------------------------------------------------------------

    def compare(self, batch: list[ComparedText]) -> None:
        result = self.result
        if self._oracle.recorded and self._add_special and not result.texts:
            self._choose_meaning(batch[0])
        self._tell("comparing")
        data = [text.data for text in batch]
        began = time.perf_counter()
        ours = self._own(data)
        between = time.perf_counter()
        theirs = self._oracle.encode(data, self._add_special, self._parse_special)
        result.oracle_seconds += time.perf_counter() - between
        result.seconds += between - began
        for text, ids, answer in zip(batch, ours, theirs):
            result.bytes += len(text.data)
            if isinstance(answer, Failure):
                self._failed(text, answer)
            elif isinstance(ids, Failure):
                result.different += 1
                self._failed(text, ids)
            else:
                result.tokens += len(ids)
                result.oracle_tokens += len(answer)
                (self._agreeing if answer == ids else self._differing).add(TextWithIds(text.data, answer))
                if answer != ids:
                    self._differs(text, answer)
            result.texts += 1

    def _own(self, texts: list[bytes]) -> list[Answer]:
        """Our ids of each text, or why it cannot be encoded."""
        flags = {"add_special": self._add_special, "parse_special": self._parse_special}
        try:
            return [*self._tokenizer.encode_batch(texts, **flags)]
        except ValueError as error:  # the vocabulary lacks a byte that one of the texts has
            if len(texts) == 1:
                return [Failure(OWN, f"the model gives no ids: {error}")]
            return [answer for text in texts for answer in self._own([text])]

    def _choose_meaning(self, first: ComparedText) -> None:
        """Adopt the meaning of "add special tokens" that the first recorded ids follow."""
        ids = self._oracle.first_recorded()
        meaning = added_as(self._tokenizer, first.data, ids, self._parse_special)
        if meaning:
            self._add_special = meaning != AS_COMMAND
            self._oracle.note = f"the ids are taken {SAID_OF[meaning]}"

    def _failed(self, text: ComparedText, failure: Failure) -> None:
        without_numbers = "".join(char for char in failure.detail if not char.isdigit())
        key = (failure.kind, without_numbers)
        if key not in self._failures:
            if len(self._failures) >= MOST_KINDS:
                key = (failure.kind, "")  # all further ones, under the words of the first
            self._failures.setdefault(key, FailureGroup(failure, text))
        self._failures[key].texts += 1

    def _differs(self, text: ComparedText, ids: list[int]) -> None:
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
                self._kinds[kind] = Difference(kind, example_of(text, comparison, number), self.result.texts)
                if self._oracle.recorded:
                    self._recorded[kind] = ids
            self._kinds[kind].places += 1

    def _tell(self, step: str) -> None:
        """Call `progress` with what is being done, and with the texts and bytes that were compared."""
        done = self.result
        self._progress(Progress(step, done.texts, None, "texts", counts={"bytes": done.bytes}))

    def _aligned(self, text: bytes, ids: list[int], model: Tokenizer | None = None) -> AlignedRows:
        """The rows of the model, or of `model` in its place, and of the oracle."""
        flags = {"add_special": self._add_special, "parse_special": self._parse_special}
        ours = own_row(model or self._tokenizer, text, **flags)
        theirs = place(self._oracle.tokenizer or self._tokenizer, text, ids, ours)
        return AlignedRows(ours, theirs, align(ours, theirs))

    # ---- kinds ----------------------------------------------------------------------------------

    def _kind(self, comparison: AlignedRows, span: Span) -> str:
        """The kind of a difference, by the tokens on both sides."""
        sides = comparison.ours[slice(*span.left)], comparison.theirs[slice(*span.right)]
        left, right = (tuple([token[:2] for token in side]) for side in sides)
        kind_of = self._kind_of if len(left) + len(right) <= _REMEMBERED_TOKENS else self._kind_of_tokens
        return kind_of(left, right, span.start < span.end)

    def _kind_of_tokens(self, left: _Side, right: _Side, has_text: bool) -> str:
        sides = left, right
        special = any(token in self._special for side in sides for token, _ in side)
        texts = [b"".join(piece for _, piece in side) for side in sides]
        if texts[0] != texts[1] and not special and has_text:
            return "another text"
        return " / ".join(self._shape(side, special) for side in sides)

    def _shape(self, side: _Side, special: bool) -> str:
        """Tokens by their classes of characters, repeated ones as one: "L", " L|N+".

        If there is a special token on either side, only special tokens matter.
        """
        each = (
            "text" if special and token not in self._special else self._shape_of(token, piece)
            for token, piece in side
        )
        shapes = [shape + "+" * (shape != "text" and len(list(same)) > 1) for shape, same in groupby(each)]
        if special and len(shapes) > 1:
            shapes = [shape for shape in shapes if shape != "text"]
        return "|".join(shapes[:8] + ["…"] * (len(shapes) > 8)) or "nothing"

    def _shape_of_piece(self, token: int, piece: bytes) -> str:
        if token in self._special:
            return piece.decode("utf-8", "replace") or f"token {token}"
        if not piece:
            return "no token"
        try:
            text = piece.decode()
        except UnicodeDecodeError:
            return "bytes"
        letters = (char if char in " \n\r\t'" else class_of(ord(char)) for char in text[:40])
        return "".join(letter for letter, _ in groupby(letters))


def example_of(text: ComparedText, comparison: AlignedRows, number: int) -> DifferenceExample:
    """The part of a comparison that is kept: the tokens around span `number`."""
    spans = comparison.spans
    rows: list[list[ShownToken]] = []
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
            shown += [ShownToken(*token, index, not span.same) for token in tokens]
        rows.append(shown)
    span = spans[number]
    ours, theirs = (tuple(row) for row in rows)
    left_out = (max(b - a - _MOST_SHOWN, 0) for a, b in (span.left, span.right))
    return DifferenceExample(
        text, span.start, span.end, number, ours, theirs, (next(left_out), next(left_out))
    )
