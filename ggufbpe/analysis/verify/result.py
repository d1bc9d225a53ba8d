"""The result of a comparison: differences, each with an example, and texts for which the oracle gave no ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..._util.verdicts import NOT_COMPARED, same_or_different
from ..._util.wording import counted
from ..oracles.oracle import Failure

if TYPE_CHECKING:
    from ..diagnose.cause import Cause
    from ..doctor.proposal import Proposal
    from .chat_comparison import ChatResult


OWN = "not encoded"  # the kind of a failure of the model itself, in texts that count as different


class ComparedText(NamedTuple):
    """A text to compare; `offset` is where it begins in its source, in bytes."""

    source: str
    offset: int
    data: bytes


class ShownToken(NamedTuple):
    """A token of a row; `span` is the number of the span, by which both rows are aligned."""

    id: int
    piece: bytes
    start: int
    end: int
    span: int
    differs: bool


class DifferenceExample(NamedTuple):
    """A text that differs, with the tokens of both sides around a differing span, `text[start:end]`.

    `left_out` is how many more tokens each side has in the span.
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
    """Places where two tokenizers differ in the same step for the same cause, as far as is known."""

    def __init__(self, kind: str, first: DifferenceExample, number: int) -> None:
        self.kinds = [kind]
        self.first = first
        self.number = number  # of the text, from 0
        self.places = 0
        self.smallest: DifferenceExample | None = None
        self.step = self.seen_step = ""  # `seen_step` is judged by the ids alone
        self.causes: tuple[Cause, ...] = ()
        self.explains = 0.0  # the share of ids that the causes turn into the oracle's

    def __repr__(self) -> str:
        causes = " + ".join(cause.id for cause in self.causes) or "no known cause"
        return f"<Difference in {self.step}: {counted(self.places, 'place')}, {causes}>"


class FailureGroup:
    """Texts for which the other tokenizer, or the model itself, gave no ids, for the same reason."""

    def __init__(self, failure: Failure, first: ComparedText) -> None:
        self.kind, self.detail = failure
        self.first = first
        self.texts = 0

    def __repr__(self) -> str:
        return f"<FailureGroup {self.kind}: {counted(self.texts, 'text')}>"


class Verification:
    """The result of `verify`: what was compared, and how the ids differ."""

    def __init__(self, oracle: str) -> None:
        self.oracle = oracle
        self.texts = self.bytes = self.tokens = self.oracle_tokens = 0
        self.different = 0  # texts
        self.seconds = self.oracle_seconds = 0.0
        self.differences: list[Difference] = []
        self.failures: list[FailureGroup] = []
        self.other_places = 0  # beyond MOST_KINDS
        self.model = ""  # its path
        self.is_stopped = False  # before all texts were compared
        self.note = ""  # what readers have to know about the oracle
        self.chats: ChatResult | None = None  # their prompts are among the texts
        self.proposal: Proposal | None = None  # the change of the model file that explains most

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
    return {**place, **_bytes("text", text.data)}


def _token(shown: ShownToken) -> dict[str, Any]:
    found = shown._asdict()
    del found["piece"], found["span"]
    return {"id": found.pop("id"), **_bytes("piece", shown.piece), **found}


def _bytes(name: str, data: bytes) -> dict[str, str]:
    text = data.decode("utf-8", "replace")
    return {name: text} if text.encode() == data else {name: text, f"{name}_bytes": data.hex()}
