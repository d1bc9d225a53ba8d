"""Where given ids and the ids of a text part, and why: what a cache of keys and values can keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from .._util.wording import counted, quoted_piece
from .detokenization import token_ids
from .incremental import common_id_count

if TYPE_CHECKING:
    from . import Tokenizer
    from .engine import Text

_MOST_SHOWN = 6  # tokens
_MOST_COMPARED = 64  # tokens on both sides; differences that go on for longer are shown by how they begin


class CommonPrefix(NamedTuple):
    """How far given ids are the beginning of a text's ids.

    `ids` is the number of ids that agree, `position` the byte of the text at which these end, and `cause` what is
    different after them, in words; "" if nothing is.
    """

    ids: int
    position: int
    cause: str


def common_prefix(
    tokenizer: Tokenizer, ids: Sequence[int], text: Text, *, add_special: bool, parse_special: bool
) -> CommonPrefix:
    """Compare `ids` with the ids of `text`; `Tokenizer.common_prefix` describes the arguments."""
    given = token_ids(ids)
    for token in (min(given), max(given)) if given else ():  # the others are between them
        tokenizer._checked(token)
    own, spans = tokenizer.encode_with_offsets(text, add_special=add_special, parse_special=parse_special)
    kept = common_id_count(given, own)
    position = spans[kept - 1][1] if kept else 0
    if kept == len(given) == len(own):
        return CommonPrefix(kept, position, "")
    if kept == len(given):
        return CommonPrefix(kept, position, f"the text goes on for {counted(len(own) - kept, 'more id')}")
    if kept == len(own):
        return CommonPrefix(
            kept, position, f"the ids go on for {counted(len(given) - kept, 'id')} after the text"
        )
    return CommonPrefix(kept, position, _cause(tokenizer, given[kept:], own[kept:], is_start=kept == 0))


def _cause(tokenizer: Tokenizer, given: list[int], own: list[int], *, is_start: bool) -> str:
    """How the tokens differ up to where both have ended a token at the same byte, or to where their bytes differ."""
    added, _ = tokenizer.vocabulary.added
    bos = _shown(tokenizer, added)
    if is_start and added and own[: len(added)] == added:
        return f"the tokenizer puts {bos} before the text, and the ids do not have it"
    if is_start and added and given[: len(added)] == added:
        return f"the ids begin with {bos}, which is not put before the text (add_special is false)"
    ours, theirs = _same_text(tokenizer, given, own)
    if ours:
        return _parted(tokenizer, given[:theirs], own[:ours])
    return f"the text is different: {_parted(tokenizer, given[:1], own[:1])}"


def _parted(tokenizer: Tokenizer, given: list[int], own: list[int]) -> str:
    return f"the ids have {_shown(tokenizer, given)}, and the tokenizer gives {_shown(tokenizer, own)}"


def _same_text(tokenizer: Tokenizer, given: list[int], own: list[int]) -> tuple[int, int]:
    """How many tokens of `own` and of `given` stand for the same bytes, as few as do; 0 of both if none do."""
    ours = theirs = 0
    one = other = b""
    while ours + theirs < _MOST_COMPARED:
        if len(one) <= len(other) and ours < len(own):
            one += tokenizer.token_to_piece(own[ours])
            ours += 1
        elif theirs < len(given):
            other += tokenizer.token_to_piece(given[theirs])
            theirs += 1
        else:
            return 0, 0
        length = min(len(one), len(other))
        if one[:length] != other[:length]:
            return 0, 0
        if len(one) == len(other) and ours and theirs:
            break
    return ours, theirs


def _shown(tokenizer: Tokenizer, ids: list[int]) -> str:
    """The pieces of ids, quoted, with a plus between them; ids that have no piece are numbers."""
    pieces = [tokenizer.token_to_piece(token) for token in ids[:_MOST_SHOWN]]
    shown = [quoted_piece(piece) if piece else f"id {token}" for token, piece in zip(ids, pieces)]
    return " + ".join(shown) + " + …" * (len(ids) > _MOST_SHOWN)
