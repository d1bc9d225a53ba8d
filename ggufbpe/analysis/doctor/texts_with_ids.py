"""Holds texts with the ids that another tool gives for them, whole or in lines, to prove proposals by."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import NamedTuple

from ...tokenizer import Tokenizer


class TextWithIds(NamedTuple):
    """A text with the ids that the other side gives for it; or a part of one, which may lack its begin and its end."""

    text: bytes
    ids: list[int]
    has_begin: bool = True
    has_end: bool = True


Encode = Callable[[Tokenizer, TextWithIds], list[int]]
"""The ids of a text by a tokenizer, under the conditions of a comparison; none if the text cannot be encoded."""


def encoding(add_special: bool = True, parse_special: bool = True) -> Encode:
    """Return the `Encode` of a comparison with these flags of `Tokenizer.encode`."""

    def encode(tokenizer: Tokenizer, compared: TextWithIds) -> list[int]:
        text, _, has_begin, has_end = compared
        try:
            if has_begin and has_end:
                return tokenizer.encode(text, add_special=add_special, parse_special=parse_special)
            ids = tokenizer.encode(
                text, add_special=False, parse_special=parse_special, continues=not has_begin
            )
        except ValueError:  # the vocabulary lacks a byte
            return []
        before, behind = tokenizer.vocabulary.added if add_special else ([], [])
        return [*before * has_begin, *ids, *behind * has_end]

    return encode


_LINE = re.compile(rb"\n(?=[^\s])")
_SPACE = re.compile(rb"\s{1,1000}")  # a longer run would be read to its end for each id


def parts_of(
    tokenizer: Tokenizer, compared: TextWithIds, exchanged: Iterable[tuple[int, int]] = ()
) -> list[TextWithIds]:
    """Cut a text with its ids into lines; return the text alone where that cannot be done.

    It is cut behind a line break that ends a token of the other side and is not followed by white space: there, every
    pre-tokenizer begins a word. What is before and behind the text stays with the first and the last part. `exchanged`
    are pairs of tokens that have each other's ids on the other side.
    """
    size, text = len(tokenizer.vocabulary.tokens), compared.text
    read = with_exchange(compared.ids, exchanged)
    pieces = [tokenizer.token_to_piece(token) if 0 <= token < size else b"" for token in read]
    cuts = {match.end() for match in _LINE.finditer(text)}
    found: list[TextWithIds] = []
    start = at = begin = 0
    for index, piece in enumerate(pieces):
        end = end_of_token(piece, text, at) if piece else -1
        is_before = at == index == 0 and end < 0
        if is_before or at == len(text):
            continue
        if end < 0:
            return [compared]
        at = end
        if at in cuts:
            found.append(TextWithIds(text[start:at], compared.ids[begin : index + 1], not found, False))
            start, begin = at, index + 1
    if at < len(text) or not found:
        return [compared]
    return [*found, TextWithIds(text[start:], compared.ids[begin:], False)]


def with_exchange(ids: list[int], pairs: Iterable[tuple[int, int]]) -> list[int]:
    """Return ids in which the tokens of each pair have each other's ids; applied again, `ids` themselves.

    >>> with_exchange([5, 6, 7], [(5, 7)])
    [7, 6, 5]
    """
    others = {a: b for pair in pairs for a, b in (pair, pair[::-1])}
    return [others.get(token, token) for token in ids] if others else ids


def end_of_token(piece: bytes, text: bytes, at: int) -> int:
    """Return where a token ends that begins at `at`; -1 if it is not there.

    The token may have a space that the model adds, and a special token before it may have taken white space away.
    """
    shown = piece.removeprefix(b" ")
    space = _SPACE.match(text, at)
    for start in (at, space.end() if space else at):
        for part in (piece, shown):
            if part and text.startswith(part, start):
                return start + len(part)
    return -1 if shown else at


def ends_of(tokenizer: Tokenizer, compared: TextWithIds) -> list[TextWithIds]:
    """Return what the other side has before and behind a text, as parts that have no text of their own.

    Special tokens that the text itself begins or ends with are left to the text.
    """
    text, ids, has_begin, has_end = compared
    special = set(tokenizer.vocabulary.special_token_ids)
    pieces = {token: tokenizer.token_to_piece(token) for token in special.intersection(ids)}
    head = list(takewhile(pieces.__contains__, ids))
    tail = list(takewhile(pieces.__contains__, reversed(ids[len(head) :])))[::-1]
    while head and text.startswith(pieces[head[-1]]):
        text = text[len(pieces[head.pop()]) :]
    while tail and text.endswith(pieces[tail[0]]):
        text = text[: -len(pieces[tail.pop(0)])]
    return [TextWithIds(b"", head, True, False)] * has_begin + [TextWithIds(b"", tail, False, True)] * has_end
