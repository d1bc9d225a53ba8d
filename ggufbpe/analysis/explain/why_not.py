"""Finds the first step that kept a piece of the vocabulary from being produced: `ggufbpe explain --why-not`.

The piece is searched for in the text after normalization. At each place where it stands, one step is the reason: a
special token or a word boundary divides it, the word was taken whole, a merge took a part of it or it became a part
of a longer token, the merges do not lead to it at all, a match was longer or began before it, or another path had the
higher total. If only the original text has the piece, normalization is the reason.
"""

from __future__ import annotations

import io
from itertools import chain
from typing import IO, TYPE_CHECKING, Any

from ...models.tracers.trace_types import Tracer
from ...models.vocabulary import BYTE, CONTROL, UNKNOWN
from ...tokenizer.inputs import Model, TextOrPath, text_of, tokenizer_of
from ...tokenizer.trace import tracer_of
from .piece_search import PieceSearch, likely_pieces, token_meant
from .reasons import WhyNot

if TYPE_CHECKING:
    from ...tokenizer import Tokenizer


def why_not(
    model: Model,
    text: TextOrPath | IO[bytes],
    piece: str | bytes,
    *,
    add_special: bool = True,
    parse_special: bool = True,
) -> WhyNot:
    """Find out why `piece` is not among the tokens of `text`; the answer, a `WhyNot`, may also be that it is.

    `model` is a `Tokenizer` or the path of a file, `text` a `str`, bytes, the `pathlib.Path` of a file, or a binary
    stream. `piece` is text (" world") or the token as the vocabulary has it ("Ġworld"). Only the first 100 tokens and
    places are given. `ValueError` for an empty piece.

    >>> why_not("model.gguf", "Hello world", "Hell").reason
    'part'
    """
    if not isinstance(piece, (str, bytes)):
        raise TypeError(f"the piece must be a str or bytes, not {type(piece).__name__}")
    tokenizer = tokenizer_of(model)
    name = piece if isinstance(piece, str) else piece.decode("utf-8", "surrogateescape")
    if not name:
        raise ValueError("the piece is empty: give the text of a token")
    tracer = tracer_of(tokenizer)
    token = token_meant(tokenizer, tracer, name)
    if token is None:
        near = [other for other in likely_pieces(name) if token_meant(tokenizer, tracer, other) is not None]
        return WhyNot(name, "unknown", instead=tuple(near))
    search = PieceSearch(tokenizer, tracer, name, token, parse_special)
    stream: Any = text if hasattr(text, "read") else io.BytesIO(text_of(text))
    answer = search.through(stream, add_special)
    return answer if answer.times else _explained(tokenizer, tracer, answer, parse_special)


def _explained(tokenizer: Tokenizer, tracer: Tracer, answer: WhyNot, parse_special: bool) -> WhyNot:
    """The reason for a piece that is not among the tokens."""
    assert answer.token is not None
    attributes = tokenizer.vocabulary.attributes[answer.token]
    places = answer.places
    ends = {tokenizer.bos_id, tokenizer.eos_id, *chain(*tokenizer.vocabulary.added)}
    if attributes & BYTE and not places:
        return answer._replace(reason="byte", instead=())
    if attributes & (CONTROL | UNKNOWN) and not parse_special and places:
        return answer._replace(reason="not_parsed")
    if not places and answer.token in ends:
        return answer._replace(reason="not_added", instead=())
    if not places and answer.token == tracer.unknown:
        return answer._replace(reason="unneeded", instead=())
    if not places:
        return answer._replace(reason="absent")
    explained = answer._replace(reason=places[0].reason, instead=())
    alone = tracer.alone(tracer.looked_up(answer.token))
    if alone is None:
        return explained
    return explained._replace(alone=alone.symbols, own=alone.merges, makers=alone.makers)
