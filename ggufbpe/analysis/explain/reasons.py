"""The reasons why a piece that is in the vocabulary was not produced, as plain data."""

from __future__ import annotations

from math import isfinite
from typing import Any, NamedTuple

from ..._util.errors import printable
from ...models.tracers.trace_types import Cut, LatticePath, Merge, RewrittenText, TokenMatch


class Place(NamedTuple):
    """One place where the piece stands, the bytes of the text from `start` to `end`, and the step that is the reason.

    `reason`, and the fields that go with it:
    - "special": a special token, `token`, takes a part of it
    - "boundary": the stage of `cuts` splits the text at `boundary`; the cuts are those of the pieces on both sides, as
      far as they are near, and `sides` is their text there
    - "whole": the word, `word`, was taken as one token, by the flag `whole`
    - "part": `merge`, in `word`, took a part of it before `needed` had its turn: the one of its own merges that needs
      this part, or one of a higher rank that must come before that
    - "longer": the piece was made, and `merge` made it a part of a longer token
    - "merges": its own merges end elsewhere: see `WhyNot.alone`
    - "produced": it is a symbol there
    - "longer_match": of the tokens of `match`, which begins at the same place, a longer one was taken
    - "earlier_match": `match` begins before the piece, and took a part of it
    - "unknown_word": no token matches at the place of `match`, where `rest` is left of the word, so that the whole word
      is the unknown token
    - "path": `path` is the best way through the word's lattice that takes it, and `best` the one that was taken; both
      are given only for the first places of a very long word
    - "not_tried": its text stands there, but the model's table does not have the token at this place
    - "not_for_text": plain text never becomes this token, by its attributes
    - "normalized": the text has it, and `changes` changed it before tokens were looked up

    `text` is that of the word as it was split, or of the special token.
    """

    reason: str
    start: int
    end: int
    word: int | None = None
    token: int | None = None
    boundary: int | None = None
    cuts: tuple[Cut, ...] = ()
    merge: Merge | None = None
    needed: Merge | None = None
    text: str = ""
    whole: str | None = None
    sides: tuple[bytes, ...] = ()
    match: TokenMatch | None = None
    rest: bytes = b""
    path: LatticePath | None = None
    best: LatticePath | None = None
    changes: tuple[RewrittenText, ...] = ()


class WhyNot(NamedTuple):
    """The answer of `why_not`, in sentences as `what`. `reason` is that of the first of the `places`, or one of

    - "produced": the piece is among the tokens, `times` times (`tokens` has their numbers, `spans` the bytes of the
      first ones)
    - "unknown": no such token is in the vocabulary
    - "not_parsed": it is a special token, and these are not parsed
    - "not_added": it is BOS or EOS, and not in the text
    - "byte": it stands for a byte of symbols that are not tokens, and no symbol here needs it
    - "unneeded": it is the unknown token, and nothing here needs it
    - "absent": it does not stand in the text; `instead` has pieces that do: the same with or without a leading space,
      or in other case

    `piece` is as the caller gave it, `token` its id, None if it is unknown, and `written` its text in the vocabulary.
    If it is not among the tokens, `places` are the first 100 where it stands. If the model merges, `alone` are the
    symbols that the piece becomes when merged by itself, `own` the merges that lead to them, and `makers` the merges
    that result in the piece.
    """

    piece: str
    reason: str
    token: int | None = None
    written: str = ""
    places: tuple[Place, ...] = ()
    tokens: tuple[int, ...] = ()
    spans: tuple[tuple[int, int], ...] = ()
    times: int | None = None
    instead: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    own: tuple[Merge, ...] = ()
    makers: tuple[Merge, ...] = ()
    what: str = ""

    def to_dict(self) -> dict[str, Any]:
        """All of it as `ggufbpe explain --why-not --json` writes it, without fields that do not apply."""
        return {"piece": self.piece, "reason": self.reason, **_plain(self)}

    def __str__(self) -> str:
        return self.what

    def __repr__(self) -> str:
        return f"<WhyNot {printable(self.piece)}: {self.reason}>"


def _plain(value: Any) -> Any:
    """A record as dictionaries, lists, strings and numbers, without empty fields."""
    if hasattr(value, "_asdict"):
        return {key: _plain(item) for key, item in value._asdict().items() if item not in (None, (), "")}
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    return list(map(_plain, value)) if isinstance(value, tuple) else value
