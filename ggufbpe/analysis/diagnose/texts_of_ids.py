"""Finds the texts of lost and swapped tokens from texts whose ids are given.

The tokens around an id tell where its text begins and ends, whatever the file says about that id. No text is encoded,
so pre-tokenizer, merges and scores of the file may be wrong.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import takewhile

from ...tokenizer import Tokenizer
from ..doctor.texts_with_ids import TextWithIds, end_of_token
from ..doctor.token_checks import FILLER, is_written_as_marker

_SURE = 3  # tokens behind an id by which the end of its text is found
_LONGEST = 80  # bytes of a text that an id may stand for
_SPACES = rb"\s{0,80}"  # without a limit, three tokens take time by the cube of a run of white space
_LOST_SIGHT = 2000  # bytes within which the tokens are found again behind a text that they do not have
_MOST_LOST = 1 << 14  # ids that a vocabulary may lack; one that is further off is no token of a model
_MOST_SWAPPED = 8  # pairs; ids that differ more are those of another vocabulary


def texts_of_lost(tokenizer: Tokenizer, compared: Collection[TextWithIds]) -> dict[int, str]:
    """Return the texts of ids that the vocabulary lacks, or has fillers for, as far as the texts tell them."""
    size, fillers = len(tokenizer.vocabulary.tokens), fillers_in(tokenizer, compared)
    read = {token: text.decode("utf-8", "replace") for token, text in _read(tokenizer, compared).items()}
    found = {
        token: text
        for token, text in read.items()
        if size <= token < size + _MOST_LOST or (token in fillers and _may_be_added(text))
    }
    return {token: text for token, text in found.items() if text not in tokenizer.vocabulary.token_to_id}


def _may_be_added(text: str) -> bool:
    """Check that a text is a marker or one word; anything else may be several tokens of another vocabulary."""
    return is_written_as_marker(text) or (text.split() == [text] and "\ufffd" not in text)


def fillers_in(tokenizer: Tokenizer, compared: Iterable[TextWithIds]) -> set[int]:
    """Return the ids of tokens that only fill up the vocabulary."""
    tokens = tokenizer.vocabulary.tokens
    used = {token for each in compared for token in each.ids}
    return {token for token in used if 0 <= token < len(tokens) and FILLER.fullmatch(tokens[token])}


def swapped(tokenizer: Tokenizer, compared: Iterable[TextWithIds]) -> tuple[tuple[int, int], ...]:
    """Return the pairs of tokens each of which stands in the ids where the texts have the text of the other."""
    size = len(tokenizer.vocabulary.tokens)
    read = {t: text.strip(b" ") for t, text in _read(tokenizer, compared).items() if 0 <= t < size}
    own = {token: tokenizer.token_to_piece(token).strip(b" ") for token in read}
    with_text: dict[bytes, list[int]] = {}
    for token, text in own.items():
        with_text.setdefault(text, []).append(token)
    found = [
        (one, other)
        for one in sorted(read)
        for other in sorted(with_text.get(read[one], ()))
        if one < other and read[other] == own[one]
    ]
    tokens = Counter(token for pair in found for token in pair)
    is_clear = len(found) <= _MOST_SWAPPED and all(count == 1 for count in tokens.values())
    return tuple(found) if is_clear else ()


def exchanged_in(
    ours: Sequence[str], theirs: Sequence[str], compared: Iterable[TextWithIds]
) -> tuple[tuple[int, int], ...]:
    """Return the pairs of tokens of the compared ids that have each other's ids in another vocabulary."""
    if ours == theirs:
        return ()
    other_id = {ours[token]: token for token, other in enumerate(theirs[: len(ours)]) if other != ours[token]}
    pairs = ((token, other_id.get(theirs[token], token)) for token in sorted(other_id.values()))
    found = [(one, other) for one, other in pairs if one < other and theirs[other] == ours[one]]
    used = {token for each in compared for token in each.ids}
    found = [pair for pair in found if not used.isdisjoint(pair)]
    return tuple(found) if len(found) <= _MOST_SWAPPED else ()


def _read(tokenizer: Tokenizer, compared: Iterable[TextWithIds]) -> dict[int, bytes]:
    """Return the text that most often stands where an id does, for ids that do not stand for their own text."""
    votes: dict[int, Counter[bytes]] = {}
    fitting: Counter[int] = Counter()
    for each in compared:
        for token, text in _read_in(tokenizer, each):
            if text is None:
                fitting[token] += 1
            else:
                votes.setdefault(token, Counter())[text] += 1
    best = {token: counts.most_common(1)[0] for token, counts in votes.items()}
    return {token: text for token, (text, count) in best.items() if count > fitting[token]}


def _read_in(tokenizer: Tokenizer, compared: TextWithIds) -> Iterator[tuple[int, bytes | None]]:
    """Yield each id of a text that has a text of its own there, with that; None where it is the token's."""
    size, (text, ids, *_) = len(tokenizer.vocabulary.tokens), compared
    pieces = [tokenizer.token_to_piece(token) if 0 <= token < size else None for token in ids]
    tokens = tokenizer.vocabulary.tokens
    special = set(tokenizer.vocabulary.special_token_ids)
    at = 0
    for index, (token, piece) in enumerate(zip(ids, pieces)):
        is_filled = piece is not None and FILLER.fullmatch(tokens[token]) is not None
        if is_filled:
            piece = tokens[token].encode()  # no text is shown for one of type UNUSED
        end = -1 if piece is None else end_of_token(piece, text, at)
        if end >= 0:
            yield token, None
            at = max(end, at)
            continue
        if token in special and not is_filled:  # then it was added, such as BOS
            continue
        end = _end_before(pieces[index + 1 : index + 1 + _SURE], text, at + 1)
        end = len(text) if index + 1 == len(ids) else end
        if at < end <= at + _LONGEST:
            yield token, text[at:end].rstrip()
        at = max(end, at)


def _end_before(behind: Sequence[bytes | None], text: bytes, start: int) -> int:
    """Return the place at or behind `start` where the pieces `behind` an id begin; -1 if there is none.

    The farthest of them may be wrong as well; then the others decide, if they are near.
    """
    known = [piece.strip(b" ") for piece in takewhile(lambda piece: piece is not None, behind) if piece]
    for count in range(len(known), 0, -1):
        pieces = [piece for piece in known[:count] if piece]
        most = _LOST_SIGHT if count == _SURE else _LONGEST
        end = start + most + sum(map(len, pieces))
        if not pieces or any(text.find(piece, start, end) < 0 for piece in pieces):
            continue  # before a pattern is compiled, which takes longer
        # special tokens may have white space around them that the text has not, or the ids have not
        follows = re.compile(_SPACES.join(map(re.escape, pieces)))
        if match := follows.search(text, start, end):
            return match.start()
    return -1
