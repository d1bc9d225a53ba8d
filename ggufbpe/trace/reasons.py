"""Why a piece that is in the vocabulary was not produced, as plain data.

why_not.py, places.py -> [this file] -> views/
"""

from __future__ import annotations

from math import isfinite
from typing import Any, NamedTuple

from ..errors import printable
from ..models.steps import Change, Cut, Match, Merge, Path


class Place(NamedTuple):
    """One place where the piece stands, in bytes of the text, and the step that is the reason there.

    `reason`, and what is given with it:
    - "special": a special token, `token`, takes a part of it
    - "boundary": the stage of `cuts` parts the text at `boundary`; the cuts are of the pieces before and after, as far
      as they are near, and `sides` is what these have there
    - "whole": the word, `word`, was taken as one token, by the flag `whole`
    - "part": `merge`, in `word`, took a part of it before `needed`, of its own merges, had its turn
    - "longer": the piece was made, and `merge` made it a part of a longer token
    - "merges": its own merges end elsewhere: see `WhyNot.alone`
    - "produced": it is a symbol there
    - "longer_match": of the tokens of `match`, which begins just there, a longer one was taken
    - "earlier_match": `match` begins before the piece, and took a part of it
    - "unknown_word": no token stands at the place of `match`, where `rest` is left of the word, so that all of it is
      the unknown token
    - "path": `path` is the best way through the word's lattice that takes it, and `best` the one that was taken; both
      are left out at all but the first places of a very long word
    - "not_tried": its text stands there, but the model's table does not have the token at this place
    - "not_for_text": plain text never becomes this token, whose attributes are no token's for text
    - "normalized": the text has it, and `changes` made something else of it before tokens were looked for

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
    match: Match | None = None
    rest: bytes = b""
    path: Path | None = None
    best: Path | None = None
    changes: tuple[Change, ...] = ()


class WhyNot(NamedTuple):
    """The answer. `reason` is that of the first place, or

    - "produced": the piece is among the tokens, so many `times` (`tokens` has the numbers, `spans` the bytes of
      the first ones)
    - "unknown": no such token is in the vocabulary
    - "not_parsed": it is a special token, and these are not parsed
    - "not_added": it is BOS or EOS, and not in the text
    - "byte": it stands for a byte of symbols that are no tokens, and no symbol here needs it
    - "unneeded": it stands for what no token makes up, and nothing here needs it
    - "absent": it does not stand in the text; `instead` has what does: the same with or without a leading space,
      or in other letters
    """

    piece: str  # as it was asked for
    reason: str
    token: int | None = None
    written: str = ""  # the text of the token as it stands in the vocabulary
    places: tuple[Place, ...] = ()
    tokens: tuple[int, ...] = ()
    spans: tuple[tuple[int, int], ...] = ()
    times: int | None = None
    instead: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()  # the symbols that the piece becomes when merged by itself
    own: tuple[Merge, ...] = ()  # the merges that do that
    makers: tuple[Merge, ...] = ()  # the merges whose result would be the piece

    def to_dict(self) -> dict[str, Any]:
        """All of it as `ggufbpe explain --why-not --json` writes it; without what does not apply."""
        return {"piece": self.piece, "reason": self.reason, **_plain(self)}

    def __repr__(self) -> str:
        return f"<WhyNot {printable(self.piece)}: {self.reason}>"


def _plain(value: Any) -> Any:
    """A record as dictionaries, lists, strings and numbers; without what is empty."""
    if hasattr(value, "_asdict"):
        return {key: _plain(item) for key, item in value._asdict().items() if item not in (None, (), "")}
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    return list(map(_plain, value)) if isinstance(value, tuple) else value
