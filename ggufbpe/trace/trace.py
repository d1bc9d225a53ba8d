"""The way of one text through the tokenizer, every step of it kept.

    Tokenizer, text -> [this file] -> explain, why_not, verify, diagnose

A trace is made by the same steps that `Tokenizer.encode` runs, one at a time, so its ids are those of `encode`.
All of it is plain NamedTuples (models/steps.py has those of the steps); `to_json` makes it dictionaries and lists.
Stages, alternatives, words and tokens are counted from 0.

But: explains nothing in words (explain.py) and looks for no causes (diagnose.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..models.bpe.text import byte_pair_text
from ..models.steps import EncodedWord, Fragment, Stage, Tracer, Word
from ..utf8 import byte_length
from ..vocab import LSTRIP, RSTRIP, TokenAttribute

if TYPE_CHECKING:
    from ..tokenizer import Text, Tokenizer


class Token(NamedTuple):
    """One id. `origin` is "bos", "eos", "special", "dna", "symbol" or "byte" (a byte of a symbol)."""

    id: int
    start: int
    end: int
    piece: bytes  # what it decodes to, control tokens as their text
    text: str  # as it stands in the vocabulary
    attributes: TokenAttribute
    origin: str
    fragment: int
    word: int | None


class Totals(NamedTuple):
    """How much there is of a text, or of what comes before a part of it."""

    bytes: int = 0
    words: int = 0
    tokens: int = 0
    fragments: int = 0

    def __add__(self, other: object) -> Totals:
        if not isinstance(other, Totals):
            return NotImplemented
        return Totals(*(one + more for one, more in zip(self, other)))


_BEGINNING = Totals()


class Trace(NamedTuple):
    """The whole way, in order."""

    text: bytes
    add_special: bool
    parse_special: bool
    model: str
    pre: str
    stages: tuple[Stage, ...]
    fragments: tuple[Fragment, ...]
    words: tuple[Word, ...]
    tokens: tuple[Token, ...]

    @property
    def ids(self) -> list[int]:
        """Those of `encode`."""
        return [token.id for token in self.tokens]


def trace(tokenizer: Tokenizer, text: Text, *, add_special: bool = True, parse_special: bool = True) -> Trace:
    """The trace of `text`; arguments and errors are those of `Tokenizer.encode`.

    >>> tok = Tokenizer.from_gguf("model.gguf")                      # doctest: +SKIP
    >>> [merge.rank for merge in tok.trace(" low").words[0].merges]  # doctest: +SKIP
    [44, 66, 1621]
    """
    bos = add_special and tokenizer.add_bos and tokenizer.bos_id is not None
    eos = add_special and tokenizer.add_eos and tokenizer.eos_id is not None
    return trace_part(tokenizer, text, parse_special, bos=bos, eos=eos, add_special=add_special)


def tracer_of(tokenizer: Tokenizer) -> Tracer:
    """What tells the steps of plain text."""
    return byte_pair_text(tokenizer).tracer()


def trace_part(
    tokenizer: Tokenizer,
    text: Text,
    parse_special: bool,
    *,
    bos: bool,
    eos: bool,
    add_special: bool,
    tracer: Tracer | None = None,
) -> Trace:
    """The trace of a text or a part of one, with BOS before and EOS behind it if it begins and ends the text.

    `tracer`, if it is given, keeps words from one part for the next.
    """
    source = tokenizer.pipeline.source(text)
    tracer = tracer_of(tokenizer) if tracer is None else tracer
    way = _Way(tokenizer, source, tracer)
    if bos and tokenizer.bos_id is not None:
        way.add_token("bos", tokenizer.bos_id, 0, 0)
    way.add_fragments(parse_special)
    data = source if isinstance(source, bytes) else source.encode()
    if eos and tokenizer.eos_id is not None:
        way.add_token("eos", tokenizer.eos_id, len(data), len(data))
    return Trace(
        data,
        add_special,
        parse_special,
        tokenizer.model,
        tokenizer.pre,
        tracer.stages,
        tuple(way.fragments),
        tuple(way.words),
        tuple(way.tokens),
    )


def to_json(trace: Trace) -> dict[str, Any]:
    """`trace` as dictionaries, lists, strings and numbers, and its ids.

    Bytes are text, with U+FFFD for what is not UTF-8; beside such, `…_bytes` has them in hexadecimal.
    """
    return {"ids": trace.ids, **as_json(trace)}


def as_json(record: Any, before: Totals = _BEGINNING) -> dict[str, Any]:
    """The same of one record, which is of a part of the text: `before` is what comes before the part."""
    found: dict[str, Any] = {}
    for name, value in record._asdict().items():
        counted = _COUNTED_ON.get(name)
        if isinstance(value, bytes):
            found[name] = value.decode("utf-8", "replace")
            if found[name].encode() != value:
                found[f"{name}_bytes"] = value.hex()
        elif isinstance(value, TokenAttribute):
            found[name] = names_of(value)
        elif isinstance(value, tuple):
            found[name] = [as_json(item, before) if hasattr(item, "_asdict") else item for item in value]
        elif counted is not None and value is not None:
            found[name] = value + getattr(before, counted)
        else:
            found[name] = value
    return found


# The fields that are positions or numbers in a text, and what they count.
_COUNTED_ON = {"start": "bytes", "end": "bytes", "word": "words", "fragment": "fragments"}


def names_of(attributes: TokenAttribute) -> list[str]:
    """The names of the flags that are set.

    >>> names_of(TokenAttribute.CONTROL | TokenAttribute.LSTRIP)
    ['CONTROL', 'LSTRIP']
    """
    return [str(flag.name) for flag in TokenAttribute if flag & attributes]


def stripped_by(tokenizer: Tokenizer, before: int | None, after: int | None) -> int | None:
    """Which of the tokens on either side strips the white space between them, if one does."""
    for token, flag in ((after, LSTRIP), (before, RSTRIP)):
        if token is not None and tokenizer.vocabulary.attributes[token] & flag:
            return token
    return None


class _Way:
    """Collects fragments, words and tokens of a text."""

    def __init__(self, tokenizer: Tokenizer, source: str | bytes, tracer: Tracer) -> None:
        self.fragments: list[Fragment] = []
        self.words: list[Word] = []
        self.tokens: list[Token] = []
        self._tokenizer = tokenizer
        self._source = source
        self._tracer = tracer
        self._known: dict[int, tuple[bytes, str, TokenAttribute]] = {}

    def add_token(self, kind: str, token: int, start: int, end: int) -> None:
        """A fragment that is one token."""
        self.fragments.append(Fragment(kind, start, end, token))
        self._add_id(token, start, end, kind, None)

    def add_fragments(self, parse_special: bool) -> None:
        """All of the text: special tokens, plain text, and what is stripped between them."""
        byte, character = 0, 0
        before: int | None = None
        for token, start, end in self._tokenizer.pipeline.special.partition(self._source, parse_special):
            first = byte + byte_length(self._source[character:start])
            self._add_stripped(byte, first, before, token)
            fragment = self._source[start:end]
            byte = first + byte_length(fragment)
            if token is not None:
                self.add_token("special", token, first, byte)
            else:
                self._add_text(fragment, first)
            character, before = end, token
        self._add_stripped(byte, byte + byte_length(self._source[character:]), before, None)

    def _add_stripped(self, start: int, end: int, before: int | None, after: int | None) -> None:
        if start < end:
            by = stripped_by(self._tokenizer, before, after)
            self.fragments.append(Fragment("dropped", start, end, dropped_by=by))

    def _add_text(self, fragment: str | bytes, start: int) -> None:
        """A plain fragment."""
        for step in self._tracer.steps(fragment, start):
            if isinstance(step, EncodedWord):
                for token, first, end, origin in step.tokens:
                    self._add_id(token, first, end, origin, len(self.words))
                self.words.append(step.word._replace(fragment=len(self.fragments) - 1))
            elif step.token is not None:
                self.add_token(step.kind, step.token, step.start, step.end)
            else:
                self.fragments.append(step)

    def _add_id(self, token: int, start: int, end: int, origin: str, word: int | None) -> None:
        known = self._known.get(token)
        if known is None:
            tok = self._tokenizer
            known = tok.token_to_piece(token), tok.id_to_token(token), tok.token_attributes(token)
            self._known[token] = known
        self.tokens.append(Token(token, start, end, *known, origin, len(self.fragments) - 1, word))
