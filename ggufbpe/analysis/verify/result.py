"""The result of a comparison: differences, each with an example, and texts for which the oracle gave no ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..._util.utf8 import text_fields
from ..._util.verdicts import NOT_COMPARED, same_or_different
from ..._util.wording import counted
from ..oracles.oracle import Failure

if TYPE_CHECKING:
    from ..diagnose.cause import Cause
    from ..doctor.proposal import Proposal
    from .chat_comparison import ChatResult


OWN = "not encoded"  # the kind of a failure of the model itself, in texts that count as different


class ComparedText(NamedTuple):
    """A text to compare: its bytes are `data`, and it begins at byte `offset` of its `source`, such as a file."""

    source: str
    offset: int
    data: bytes


class ShownToken(NamedTuple):
    """A token of a row: its `id`, its bytes (`piece`), and the bytes of the text from `start` to `end` that it covers.

    Both rows are aligned by spans: `span` is the number of the token's span, and `differs` tells whether the rows
    differ in that span.
    """

    id: int
    piece: bytes
    start: int
    end: int
    span: int
    differs: bool


class DifferenceExample(NamedTuple):
    """A `text` that differs, with the tokens of both sides around a differing span.

    The span covers the bytes from `start` to `end` of the text, and `span` is its number. `ours` and `theirs` are the
    tokens of the model and of the other tokenizer. `left_out` is how many more tokens each side has in the span.
    """

    text: ComparedText
    start: int
    end: int
    span: int
    ours: tuple[ShownToken, ...]
    theirs: tuple[ShownToken, ...]
    left_out: tuple[int, int]

    def in_span(self, number: int) -> tuple[list[ShownToken], list[ShownToken]]:
        """The tokens of both sides in a span."""
        ours, theirs = ([token for token in row if token.span == number] for row in (self.ours, self.theirs))
        return ours, theirs


class Difference:
    """Places where two tokenizers differ in the same step for the same cause, as far as is known.

    `places` counts them. `first` is the first text that has one, `number` the number of that text from 0, and
    `smallest` the text that it was shrunk to; None if no text was shrunk. `kinds` describe the tokens on both sides by
    their characters, such as "N / N|N" for digits. `step` is the first step that differs ("words", "merges",
    "vocabulary", "special tokens", "BOS/EOS" or "text"), and `seen_step` is the same, judged by the ids alone. With the
    `causes`, the share `explains` of the ids agrees, 0 to 1.
    """

    def __init__(self, kind: str, first: DifferenceExample, number: int) -> None:
        self.kinds = [kind]
        self.first = first
        self.number = number
        self.places = 0
        self.smallest: DifferenceExample | None = None
        self.step = self.seen_step = ""
        self.causes: tuple[Cause, ...] = ()
        self.explains = 0.0

    def __repr__(self) -> str:
        causes = " + ".join(cause.id for cause in self.causes) or "no known cause"
        return f"<Difference in {self.step}: {counted(self.places, 'place')}, {causes}>"


class FailureGroup:
    """Texts for which the other tokenizer, or the model itself, gave no ids, for the same reason.

    `kind` and `detail` are those of a `Failure`; if the model gave no ids, `kind` is "not encoded". `texts` counts the
    texts, and `first` is the first of them.
    """

    def __init__(self, failure: Failure, first: ComparedText) -> None:
        self.kind, self.detail = failure
        self.first = first
        self.texts = 0

    def __repr__(self) -> str:
        return f"<FailureGroup {self.kind}: {counted(self.texts, 'text')}>"


class Verification:
    """The result of `verify`: what was compared, and how the ids differ.

    `model` and `oracle` are the names of the model and of the other tokenizer, of which `note` says what a reader must
    know. `texts` and `bytes` count what was compared, `different` the texts that differ. `tokens` and `oracle_tokens`
    count the ids of both sides, and `seconds` and `oracle_seconds` are the times that encoding took. `differences` are
    the places that differ, by step and cause; `other_places` counts those beyond 100 kinds. `failures` are the texts
    without ids, by reason. `chats` is the result for chats, whose prompts are among the texts; None if none were given.
    `proposal` is the change of the model file that explains most; None if there is none. `is_stopped` tells whether
    `stop` ended the comparison before all texts were compared.
    """

    def __init__(self, oracle: str) -> None:
        self.oracle = oracle
        self.texts = self.bytes = self.tokens = self.oracle_tokens = self.different = 0
        self.seconds = self.oracle_seconds = 0.0
        self.differences: list[Difference] = []
        self.failures: list[FailureGroup] = []
        self.other_places = 0
        self.model = ""
        self.is_stopped = False
        self.note = ""
        self.chats: ChatResult | None = None
        self.proposal: Proposal | None = None

    @property
    def refused(self) -> int:
        """Texts that the other tokenizer does not accept; nothing is known about them."""
        return sum(group.texts for group in self.failures if group.kind == "refused")

    @property
    def failed(self) -> int:
        """Texts on which the other tokenizer crashed, hung or gave garbage."""
        return sum(group.texts for group in self.failures if group.kind not in ("refused", OWN))

    @property
    def compared(self) -> int:
        """Texts for which both sides gave ids."""
        return self.texts - self.refused - self.failed

    @property
    def fix(self) -> str:
        """The one command that makes all changes to the model file; "" unless trying it has proved that it helps."""
        return self.proposal.command if self.proposal else ""

    @property
    def same(self) -> bool:
        """Whether at least one text was compared, none differs, no text failed, and no chat differs."""
        if self.chats is not None and not self.chats.same:
            return False
        return bool(self.compared or self.chats) and not self.different and not self.failed

    @property
    def verdict(self) -> str:
        """The result in a word: "same", "different", or "not_compared" if there was no text and no chat."""
        has_nothing = not self.different and not self.failed and not (self.chats and self.chats.chats)
        return NOT_COMPARED if has_nothing and not self.same else same_or_different(self.same)

    def to_dict(self) -> dict[str, Any]:
        """All of it as `ggufbpe verify --json` writes it.

        Bytes are text, with `…_bytes` in hexadecimal beside what is not UTF-8.
        """
        chats = {} if self.chats is None else {"chats": self.chats.to_dict()}
        return {
            "model": self.model,
            "oracle": self.oracle,
            "note": self.note or None,
            "same": self.same,
            "stopped": self.is_stopped,
            **chats,
            "texts": self.texts,
            "bytes": self.bytes,
            "different_texts": self.different,
            "failed_texts": self.failed,
            "refused_texts": self.refused,
            "tokens": {"ggufbpe": self.tokens, "oracle": self.oracle_tokens},
            "seconds": {"ggufbpe": round(self.seconds, 6), "oracle": round(self.oracle_seconds, 6)},
            "mb_per_second": {
                "ggufbpe": _rate(self.bytes, self.seconds),
                "oracle": _rate(self.bytes, self.oracle_seconds),
            },
            "differences": [_difference(difference) for difference in self.differences],
            "fix": self.fix,
            "explained_texts": self.proposal.explained if self.proposal and self.fix else 0,
            "other_places": self.other_places,
            "failures": [
                {
                    "kind": group.kind,
                    "detail": group.detail,
                    "texts": group.texts,
                    "first": _text(group.first),
                }
                for group in self.failures
            ],
        }

    def __repr__(self) -> str:
        counts = f"{counted(self.texts, 'text')}, {self.different} different, {self.failed} failed"
        chats = (
            f"{counted(self.chats.chats, 'chat')}, {self.chats.different} different; " if self.chats else ""
        )
        return f"<Verification against {self.oracle}: {chats}{counts}>"


def _rate(size: int, seconds: float) -> float | None:
    return round(size / 1e6 / seconds, 6) if seconds else None


def _difference(difference: Difference) -> dict[str, Any]:
    return {
        "step": difference.step,
        "places": difference.places,
        "kinds": difference.kinds,
        "causes": [cause.to_dict() for cause in difference.causes],
        "explains": difference.explains,
        "first": _example(difference.first),
        "smallest": None if difference.smallest is None else _example(difference.smallest),
    }


def _example(example: DifferenceExample) -> dict[str, Any]:
    return {
        **_text(example.text),
        "start": example.start,
        "end": example.end,
        "left_out": {"ours": example.left_out[0], "theirs": example.left_out[1]},
        "ours": [_token(shown) for shown in example.ours],
        "theirs": [_token(shown) for shown in example.theirs],
    }


def _text(text: ComparedText) -> dict[str, Any]:
    place = {"source": text.source, "offset": text.offset} if text.source else {}
    return {**place, **text_fields("text", text.data)}


def _token(shown: ShownToken) -> dict[str, Any]:
    found = shown._asdict()
    del found["piece"], found["span"]
    return {"id": found.pop("id"), **text_fields("piece", shown.piece), **found}
