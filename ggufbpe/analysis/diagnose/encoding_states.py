"""Holds the states of a search: all that turns a text into ids, the resulting ids, and how many agree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import NamedTuple

from ...models.vocabulary import Vocabulary
from ...tokenizer import Tokenizer
from ..doctor.texts_with_ids import TextWithIds
from .agreement import common
from .encoding_changes import Encoding
from .id_evidence import is_lossless
from .text_changes import TextChange
from .variants import Variant, Variants, variants_of

MOST_BYTES = 12_000  # of texts by which changes are chosen


class EncodingState(NamedTuple):
    """All that turns a text into ids; `head` and `tail` are around it instead of what the vocabulary adds."""

    encoding: Encoding
    texts: tuple[TextChange, ...] = ()
    head: tuple[int, ...] | None = None
    tail: tuple[int, ...] | None = None
    shift: tuple[int, int] = (0, 0)
    exchanged: tuple[tuple[int, int], ...] = ()


class SearchStep(NamedTuple):
    """A change. Steps of one `kind` exclude each other; `names` are those of a pre-tokenizer."""

    kind: str
    apply: Callable[[EncodingState], EncodingState]
    names: tuple[str, ...] = ()
    least: float = 0.0  # the share of what disagrees that must agree afterwards


class States:
    """The states of one search over several texts. `same` are models with the same tokens, from which the ids may come.

    `like` is the vocabulary that the ids are known to come from: only what differs there is suspected.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        compared: Sequence[TextWithIds],
        *,
        add_special: bool = True,
        parse_special: bool = True,
        same: Sequence[Tokenizer] = (),
        like: Vocabulary | None = None,
    ) -> None:
        self._tokenizer, self._vocabulary = tokenizer, tokenizer.vocabulary
        self._variants: Variants = variants_of(tokenizer)
        self._compared = compared
        self._add_special = add_special
        self._same, self._like = same, like
        self._base = EncodingState(Encoding(self._vocabulary, parse_special))
        self._is_lossless = is_lossless(self._vocabulary)

    def _after(self, steps: Iterable[SearchStep], base: EncodingState | None = None) -> EncodingState:
        return reduce(lambda state, step: step.apply(state), steps, base or self._base)

    def ids(self, state: EncodingState, compared: TextWithIds) -> list[int]:
        """Return the ids of a text in a state."""
        return self._of(state, compared, self.tokenizer(state))

    def _of(self, state: EncodingState, compared: TextWithIds, tokenizer: Tokenizer) -> list[int]:
        """The ids of a text in a state, of which `tokenizer` is the tokenizer."""
        variant = variant_of(state, compared.text, self._add_special)
        head, tail = variant.head * compared.has_begin, variant.tail * compared.has_end
        return variant._replace(head=head, tail=tail).of(tokenizer, continues=not compared.has_begin)

    def _explained(self, state: EncodingState) -> list[bool]:
        """Which texts have the other side's ids in a state; by the compiled engine if they are long."""
        tokenizer = self.tokenizer(state)
        if sum(len(each.text) for each in self._compared) > MOST_BYTES and not state.encoding.way:
            tokenizer = Tokenizer(state.encoding.vocabulary)
        found = []
        for each in self._compared:
            try:
                found.append(self._of(state, each, tokenizer) == each.ids)
            except ValueError:  # a byte without a token, a damaged charsmap
                found.append(False)
        return found

    def tokenizer(self, state: EncodingState) -> Tokenizer:
        """Return the tokenizer of a state."""
        return self._variants.tokenizer(state.encoding.vocabulary, state.encoding.way)

    def _agreeing(self, state: EncodingState, compared: Sequence[TextWithIds]) -> float:
        """The share of the ids of all texts that agree, in order."""
        tokenizer = self.tokenizer(state)
        agree = total = 0
        for each in compared:
            try:
                ours = self._of(state, each, tokenizer)
            except ValueError:  # a byte without a token, a damaged charsmap
                return 0.0
            agree += common(ours, each.ids)
            total += max(len(ours), len(each.ids))
        return agree / total if total else 1.0

    def _all_agree(self, state: EncodingState, compared: Iterable[TextWithIds]) -> bool:
        return all(self.ids(state, each) == each.ids for each in compared)


def shortest(compared: Iterable[TextWithIds], most: int) -> list[TextWithIds]:
    """The shortest, up to so many bytes, but at least one if there is any."""
    chosen: list[TextWithIds] = []
    size = 0
    for each in sorted(compared, key=lambda each: len(each.text)):
        size += len(each.text)
        if chosen and size > most:
            break
        chosen.append(each)
    return chosen


def around(state: EncodingState, add_special: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What is before and behind each text in a state."""
    before, behind = state.encoding.vocabulary.added if add_special else ([], [])
    head, tail = state.head, state.tail
    return tuple(before) if head is None else head, tuple(behind) if tail is None else tail


def variant_of(state: EncodingState, text: bytes, add_special: bool) -> Variant:
    """Return the `Variant` that encodes `text` with all changes of `state`."""
    vocabulary, parse_special, way, _ = state.encoding
    for change in state.texts:
        text = change.apply(text)
    head, tail = around(state, add_special)
    return Variant(
        vocabulary, text, parse_special, way, head, tail, shift=state.shift, exchanged=state.exchanged
    )
