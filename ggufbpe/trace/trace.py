"""The way of one text through the tokenizer, every step of it kept.

    Tokenizer, text -> [this file] -> explain, why_not, verify, diagnose

A trace is made by the same steps that `Tokenizer.encode` runs, one at a time, so its ids are those of `encode`.
All of it is plain NamedTuples; `to_json` makes it dictionaries and lists.

Positions are bytes of the text (`start`, `end`), but for merges: these count the symbols that a word has
before merging. Stages, alternatives, words and tokens are counted from 0.

But: explains nothing in words (explain.py) and looks for no causes (diagnose.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ..models.bpe.pattern import option_texts
from ..models.bpe.split import splitter
from ..models.bpe.text import Part, byte_pair_text
from ..utf8 import Offsets, byte_length, char_ends
from ..vocab import LSTRIP, RSTRIP, TokenAttribute

if TYPE_CHECKING:
    from ..models.bpe.merge import WordEncoder
    from ..models.bpe.split import Piece
    from ..tokenizer import Text, Tokenizer


_KEPT = 1 << 16  # characters of words that are kept merged


class Stage(NamedTuple):
    """One stage of the pre-tokenizer: the alternatives of its pattern, in the order in which they are tried.

    As llama.cpp writes them, which with a `step`, a function of split.py, is not how the work is done. Those after the
    first `in_pattern` are not in the pattern that `list-pre` shows: llama.cpp's splitter adds them.
    """

    alternatives: tuple[str, ...]
    step: str | None
    in_pattern: int


class Fragment(NamedTuple):
    """A part of the text before it is split.

    `kind` is "text", "special" (a special token), "dna" (a tag or k-mer of a DNA model), "dropped" (white space
    that has no token) or, at the ends, "bos" and "eos". `token` is the id of the kinds that have one.
    """

    kind: str
    start: int
    end: int
    token: int | None = None
    dropped_by: int | None = None  # the special token that strips the white space; None: no token has any


class Cut(NamedTuple):
    """The piece in which a word was after a stage, and the alternative that took it; None if none did."""

    stage: int
    alternative: int | None
    start: int
    end: int


class Merge(NamedTuple):
    """`left` and `right` become one symbol; `position` is where `left` begins, in symbols before merging."""

    rank: int
    left: str
    right: str
    position: int


class Symbol(NamedTuple):
    """What merging left, with its ids: one, or where it is no token itself, those of its bytes that have one."""

    text: str
    start: int
    end: int
    ids: tuple[int, ...]
    is_token: bool
    dropped: bytes = b""  # the bytes that have no token either


class Word(NamedTuple):
    """A piece that the pre-tokenizer made."""

    text: str  # as it was split: spaces escaped, undecodable bytes U+FFFD
    start: int
    end: int
    fragment: int
    cuts: tuple[Cut, ...]  # one a stage
    written: str  # as it is merged: in the byte-level alphabet, if the model has it
    whole: str | None  # the flag by which the word was taken as one token: "ignore_merges" or "newline_runs"
    merges: tuple[Merge, ...]
    symbols: tuple[Symbol, ...]


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


def trace_part(
    tokenizer: Tokenizer,
    text: Text,
    parse_special: bool,
    *,
    bos: bool,
    eos: bool,
    add_special: bool,
    merged: MergedWords | None = None,
) -> Trace:
    """The trace of a text or a part of one, with BOS before and EOS behind it if it begins and ends the text.

    `merged`, if it is given, keeps words from one part for the next.
    """
    source = tokenizer.pipeline.source(text)
    tracer = _Tracer(tokenizer, source, MergedWords(tokenizer) if merged is None else merged)
    if bos and tokenizer.bos_id is not None:
        tracer.add_token("bos", tokenizer.bos_id, 0, 0)
    tracer.add_fragments(parse_special)
    data = source if isinstance(source, bytes) else source.encode()
    if eos and tokenizer.eos_id is not None:
        tracer.add_token("eos", tokenizer.eos_id, len(data), len(data))
    return Trace(
        data,
        add_special,
        parse_special,
        tokenizer.model,
        tokenizer.pre,
        stages_of(tokenizer),
        tuple(tracer.fragments),
        tuple(tracer.words),
        tuple(tracer.tokens),
    )


def stages_of(tokenizer: Tokenizer) -> tuple[Stage, ...]:
    """The stages of a tokenizer's pre-tokenizer, with what is matched in each."""
    stages = tokenizer.vocabulary.pre_tokenizer.stages
    patterns = [tuple(filter(None, option_texts(stage.pattern))) for stage in stages]
    added = [
        () if stage.step else tuple(option_texts(stage.rule))[len(pattern) :]
        for stage, pattern in zip(stages, patterns)
    ]
    return tuple(
        Stage(pattern + more, stage.step, len(pattern))
        for stage, pattern, more in zip(stages, patterns, added)
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


class _Tracer:
    """Collects fragments, words and tokens; `byte` is where in the text the next fragment begins."""

    def __init__(self, tokenizer: Tokenizer, source: str | bytes, merged: MergedWords) -> None:
        self.fragments: list[Fragment] = []
        self.words: list[Word] = []
        self.tokens: list[Token] = []
        self._tokenizer = tokenizer
        self._special = tokenizer.pipeline.special
        self._plain_text = byte_pair_text(tokenizer)
        self._source = source
        self._splitter = splitter(tokenizer.vocabulary.pre_tokenizer)
        self._merged = merged
        self._known: dict[int, tuple[bytes, str, TokenAttribute]] = {}

    def add_token(self, kind: str, token: int, start: int, end: int) -> None:
        """A fragment that is one token."""
        self.fragments.append(Fragment(kind, start, end, token))
        self._add_id(token, start, end, kind, None)

    def add_fragments(self, parse_special: bool) -> None:
        """All of the text: special tokens, plain text, and what is stripped between them."""
        byte, character = 0, 0
        before: int | None = None
        for token, start, end in self._special.partition(self._source, parse_special):
            first = byte + byte_length(self._source[character:start])
            self._add_stripped(byte, first, before, token)
            byte = first + byte_length(self._source[start:end])
            if token is not None:
                self.add_token("special", token, first, byte)
            else:
                self._add_text(self._source[start:end], first)
            character, before = end, token
        end = byte + byte_length(self._source[character:])
        self._add_stripped(byte, end, before, None)

    def _add_stripped(self, start: int, end: int, before: int | None, after: int | None) -> None:
        if start < end:
            by = stripped_by(self._tokenizer, before, after)
            self.fragments.append(Fragment("dropped", start, end, dropped_by=by))

    def _add_text(self, fragment: str | bytes, byte: int) -> None:
        """A plain fragment, which begins at `byte`."""
        for part in self._plain_text.parts(fragment):
            if part.token is not None:
                self.add_token("dna", part.token, byte + part.start, byte + part.end)
            else:
                self._add_part(part, fragment[part.start : part.end], byte + part.start)

    def _add_part(self, part: Part, own: str | bytes, byte: int) -> None:
        ends = char_ends(own)
        bounds = [byte, *(byte + end for end in ends)]
        done = 0  # characters of the part
        for piece, first in self._plain_text.pieces(part.text):
            self._add_stripped(bounds[done], bounds[first], None, None)
            done = first + len(piece)
            self.fragments.append(Fragment("text", bounds[first], bounds[done]))
            self._add_words(piece, Offsets(piece, bounds[first : done + 1]))
        self._add_stripped(bounds[done], bounds[-1], None, None)

    def _add_words(self, piece: str, offsets: Offsets) -> None:
        ends = [0, *char_ends(piece)]
        stages = self._splitter.stages(piece)

        def span(cut: Piece) -> tuple[int, int]:
            return offsets.start(ends[cut.start]), offsets.end(ends[cut.end])

        for start, end, cuts in _words_with_cuts(stages):
            way = tuple(Cut(number, cut.alternative, *span(cut)) for number, cut in enumerate(cuts))
            self._add_word(piece[start:end], ends[start], offsets, way)

    def _add_word(self, text: str, at: int, offsets: Offsets, cuts: tuple[Cut, ...]) -> None:
        merged = self._merged[text]
        symbols = tuple(
            Symbol(text, offsets.start(at + start), offsets.end(at + end), ids, is_token, dropped)
            for text, start, end, ids, is_token, dropped in merged.symbols
        )
        word = len(self.words)
        for token, start, end, origin in merged.tokens:
            self._add_id(token, offsets.start(at + start), offsets.end(at + end), origin, word)
        self.words.append(
            Word(
                text,
                cuts[-1].start,
                cuts[-1].end,
                len(self.fragments) - 1,
                cuts,
                merged.written,
                merged.whole,
                merged.merges,
                symbols,
            )
        )

    def _add_id(self, token: int, start: int, end: int, origin: str, word: int | None) -> None:
        known = self._known.get(token)
        if known is None:
            tok = self._tokenizer
            known = tok.token_to_piece(token), tok.id_to_token(token), tok.token_attributes(token)
            self._known[token] = known
        self.tokens.append(Token(token, start, end, *known, origin, len(self.fragments) - 1, word))


def _words_with_cuts(stages: list[list[Piece]]) -> Iterator[tuple[int, int, list[Piece]]]:
    """(start, end, the piece in which it was after each stage) of each word."""
    at = [0] * len(stages)
    for word in stages[-1]:
        for number, pieces in enumerate(stages):
            while pieces[at[number]].end < word.end:
                at[number] += 1
        yield word.start, word.end, [pieces[at[number]] for number, pieces in enumerate(stages)]


class _Merged(NamedTuple):
    """A word merged, wherever in the text it stands: positions are bytes of its own UTF-8."""

    written: str
    whole: str | None
    merges: tuple[Merge, ...]
    symbols: list[Symbol]
    tokens: list[tuple[int, int, int, str]]  # id, start, end, origin


class MergedWords(dict[str, _Merged]):
    """Words by their text, merged when first asked for. Full, it starts anew: all merges of a word are many."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__()
        self._tokenizer = tokenizer
        self._characters = 0

    def __missing__(self, word: str) -> _Merged:
        merged = _merge_word(self._tokenizer, word)
        self._characters += len(word)
        if self._characters > _KEPT:
            self.clear()
            self._characters = len(word)
        self[word] = merged
        return merged


def _merge_word(tokenizer: Tokenizer, word: str) -> _Merged:
    encoder, entry = byte_pair_text(tokenizer).word_ids.encoder, tokenizer.vocabulary.pre_tokenizer
    written = encoder.written(word)
    whole = None
    if encoder.is_whole(written):
        whole = "ignore_merges" if entry.ignore_merges else "newline_runs"
    merges, found = merge(encoder, written) if whole is None else ((), [written])
    symbols: list[Symbol] = []
    tokens: list[tuple[int, int, int, str]] = []
    place = -encoder.prepended(word)
    for text in found:
        data = text.encode("utf-8", "surrogatepass")
        start, place = place, place + (len(text) if entry.byte_encode else len(data))
        begin, end = max(start, 0), max(place, 0)
        token = tokenizer.vocabulary.token_to_id.get(text)
        if token is not None:
            tokens.append((token, begin, end, "symbol"))
            symbols.append(Symbol(text, begin, end, (token,), True))
        else:
            pieces = encoder.fallback(text)
            tokens += [(token, max(start + at, 0), max(start + at + 1, 0), "byte") for token, at in pieces]
            kept = {at for _, at in pieces}
            dropped = bytes(
                byte for at, byte in enumerate(_bytes_of(text, entry.byte_encode)) if at not in kept
            )
            symbols.append(Symbol(text, begin, end, tuple(token for token, _ in pieces), False, dropped))
    return _Merged(written, whole, merges, symbols, tokens)


def merge(encoder: WordEncoder, written: str) -> tuple[tuple[Merge, ...], list[str]]:
    """The merges of a word as it is written, in order, and the symbols that they leave."""
    symbols = list(written)
    merges = tuple(
        Merge(rank, symbols[left], symbols[right], left) for rank, left, right in encoder.steps(symbols)
    )
    return merges, list(filter(None, symbols))


def _bytes_of(symbol: str, byte_encode: bool) -> bytes:
    from ..models.bpe.merge import CHAR_BYTES

    if byte_encode:
        return bytes(CHAR_BYTES[char] for char in symbol)
    return symbol.encode("utf-8", "surrogatepass")
