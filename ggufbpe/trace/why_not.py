"""Why a piece that is in the vocabulary was not produced: the first step that made it impossible.

    search.py -> [this file] -> `ggufbpe explain --why-not`

The piece is looked for in the text as merging sees it. At each place where it stands, one step is the reason:
a special token or a word boundary cuts it, the word was taken whole, a merge took a part of it or it became a
part of a longer token, or the merges do not lead to it at all.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

from ..models.bpe.steps import merge
from ..models.bpe.text import byte_pair_text
from ..models.steps import Merge
from ..vocab import BYTE, CONTROL, UNKNOWN
from .places import written_form
from .reasons import WhyNot
from .search import PieceSearch, variants_of

if TYPE_CHECKING:
    from ..tokenizer import Text, Tokenizer


def why_not(
    tokenizer: Tokenizer,
    text: Text | IO[bytes],
    piece: str | bytes,
    *,
    add_special: bool = True,
    parse_special: bool = True,
) -> WhyNot:
    """Why `piece` is not among the tokens of `text`, which may be a binary stream; where it is, that.

    `piece` is text (" world") or the token as the vocabulary has it ("Ġworld"). Of tokens and places the first 100 are
    given. `ValueError` for an empty piece.

    >>> tok = Tokenizer.from_gguf("model.gguf")                  # doctest: +SKIP
    >>> why_not(tok, "Hello world", "Hell").reason               # doctest: +SKIP
    'part'
    """
    name = piece if isinstance(piece, str) else piece.decode("utf-8", "surrogateescape")
    if not name:
        raise ValueError("the piece is empty: give the text of a token")
    written = _resolved(tokenizer, name)
    if written is None:
        near = [other for other in variants_of(name) if _resolved(tokenizer, other)]
        return WhyNot(name, "unknown", instead=tuple(near))
    search = PieceSearch(tokenizer, name, written, parse_special)
    answer = search.through(_stream(tokenizer, text), add_special)
    return answer if answer.times else _explained(tokenizer, answer, parse_special)


def _stream(tokenizer: Tokenizer, text: Text | IO[bytes]) -> Any:
    if hasattr(text, "read"):
        return text
    source = tokenizer.pipeline.source(text)
    return io.BytesIO(source if isinstance(source, bytes) else source.encode())


def _resolved(tokenizer: Tokenizer, piece: str) -> str | None:
    """The token that `piece` means, as the vocabulary has it: text first, then the vocabulary's own form."""
    forms = [
        written_form(tokenizer, piece),
        piece,
        piece + tokenizer.vocabulary.tokenizer_model.hidden_suffix,
    ]
    return next((form for form in forms if form in tokenizer.vocabulary.token_to_id), None)


def _explained(tokenizer: Tokenizer, answer: WhyNot, parse_special: bool) -> WhyNot:
    """The reason of a piece that is not among the tokens."""
    assert answer.token is not None
    attributes = tokenizer.vocabulary.attributes[answer.token]
    places = answer.places
    ends = {tokenizer.bos_id, tokenizer.eos_id}
    if attributes & BYTE and not places:
        return answer._replace(reason="byte", instead=())
    if attributes & (CONTROL | UNKNOWN) and not parse_special and places:
        return answer._replace(reason="not_parsed")
    if not places and answer.token in ends:
        return answer._replace(reason="not_added", instead=())
    if not places:
        return answer._replace(reason="absent")
    own, alone = merge(byte_pair_text(tokenizer).word_ids.encoder, answer.written)
    makers = tuple(_makers(tokenizer, answer.written))
    return answer._replace(reason=places[0].reason, instead=(), alone=tuple(alone), own=own, makers=makers)


def _makers(tokenizer: Tokenizer, written: str) -> Iterator[Merge]:
    """The merges whose result is `written`."""
    for cut in range(1, len(written)):
        left, right = written[:cut], written[cut:]
        rank = byte_pair_text(tokenizer).word_ids.encoder.rank(left, right)
        if rank is not None:
            yield Merge(rank, left, right, 0)
