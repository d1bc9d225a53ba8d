"""Records every step by which a text becomes tokens.

A trace is made by the same steps that `Tokenizer.encode` runs, one at a time, so its ids are those of `encode`. All of
it is plain NamedTuples (models/tracers/trace_types.py has those of the steps); `to_dict` turns it into dictionaries and
lists. Stages, alternatives, words and tokens are counted from 0.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

from .._util.errors import UnsupportedTokenizerError
from .._util.lazy import IMPORT_LOCK
from .._util.utf8 import text_fields
from .._util.wording import counted
from ..gguf.constants import TokenizerKey
from ..models.token_attribute import TokenAttribute
from ..models.tracers.trace_types import (
    EncodedWord,
    Fragment,
    RewrittenText,
    Traceable,
    TracedStage,
    Tracer,
    Word,
)
from ..models.vocabulary import LSTRIP, RSTRIP

if TYPE_CHECKING:
    from ..chat.token_origins import ChatTokens
    from . import Tokenizer
    from .engine import Text


class Token(NamedTuple):
    """One id. `origin` is the kind of its fragment, or "symbol", "byte" (a byte of a symbol) or "unknown".

    `id` covers the bytes from `start` to `end` of the text and decodes to `piece`, in which control tokens are shown as
    their text; `text` and `attributes` are those in the vocabulary. `fragment` is the number of its fragment, and
    `word` that of its word; None if it is in no word.
    """

    id: int
    start: int
    end: int
    piece: bytes
    text: str
    attributes: TokenAttribute
    origin: str
    fragment: int
    word: int | None


class Totals(NamedTuple):
    """The size of a text, or of what comes before a part of it."""

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
    """All steps from a text to its ids, in order. Positions are in bytes of `text`.

    `add_special` and `parse_special` are as they were given, `model` and `pre` as in the tokenizer, and `stages` are
    those of the pre-tokenizer. The text is divided into `fragments`, `changes` are what normalization did to them,
    `words` what they are split into, and `tokens` the result. `chat` says where the parts of a chat's prompt are from;
    None for others.
    """

    text: bytes
    add_special: bool
    parse_special: bool
    model: str
    pre: str
    stages: tuple[TracedStage, ...]
    fragments: tuple[Fragment, ...]
    words: tuple[Word, ...]
    tokens: tuple[Token, ...]
    changes: tuple[RewrittenText, ...] = ()
    chat: ChatTokens | None = None

    @property
    def ids(self) -> list[int]:
        """The ids, as from `encode`."""
        return [token.id for token in self.tokens]

    def to_dict(self) -> dict[str, Any]:
        """All of it as `ggufbpe explain --json` writes it: dictionaries, lists, strings and numbers, and the ids.

        Bytes are text, with U+FFFD for what is not UTF-8; in that case `…_bytes` has them in hexadecimal as well.
        """
        steps = as_json(self._replace(chat=None))
        del steps["chat"]
        # "model" is everywhere else the file that was asked about
        names = {"model": "tokenizer_model"}
        found = {"ids": self.ids, **{names.get(name, name): value for name, value in steps.items()}}
        return found if self.chat is None else {**found, **self.chat.to_origins()}

    def __repr__(self) -> str:
        parts = (self.text, "byte"), (self.words, "word"), (self.tokens, "token")
        return f"<Trace {self.model} {self.pre}: {', '.join(counted(len(of), one) for of, one in parts)}>"


def trace(tokenizer: Tokenizer, text: Text, *, add_special: bool = True, parse_special: bool = True) -> Trace:
    """The trace of `text`; arguments and errors are those of `Tokenizer.encode`.

    >>> [merge.rank for merge in tok.trace(" low").words[0].merges]
    [44, 66, 1621]
    """
    return trace_part(tokenizer, text, parse_special, add_special=add_special)


class Part(NamedTuple):
    """A traced part of a text; `before` counts what precedes it, and positions are relative to `before.bytes`."""

    before: Totals
    trace: Trace


def tracer_of(tokenizer: Tokenizer) -> Tracer:
    """The tracer of plain text. `UnsupportedTokenizerError` for a model whose steps cannot be traced."""
    found = tokenizer.pipeline.plain_text
    if isinstance(found, Traceable):
        with IMPORT_LOCK:  # imported here
            return found.tracer()
    error = UnsupportedTokenizerError(
        f"the tokenizer is {tokenizer.model} ({tokenizer.vocabulary.tokenizer_model.description}), whose steps cannot "
        "be traced yet",
        path=tokenizer.name,
        key=TokenizerKey.MODEL,
        remedy="tokenize, detokenize, count, info, stats, diff and verify work for it",
    )
    error.model = tokenizer.model
    raise error


Added = list[tuple[str, int]]  # names and ids


def added_to(tokenizer: Tokenizer) -> tuple[Added, Added]:
    """The tokens added before and after a text."""
    vocabulary = tokenizer.vocabulary
    both = vocabulary.tokenizer_model.added_names(vocabulary.add_bos, vocabulary.add_eos)
    before, behind = (
        [(name, token) for name in names if (token := vocabulary.special_ids[name]) is not None]
        for names in both
    )
    return before, behind


def trace_part(
    tokenizer: Tokenizer,
    text: Text,
    parse_special: bool,
    *,
    add_special: bool,
    begins: bool = True,
    ends: bool = True,
    tracer: Tracer | None = None,
) -> Trace:
    """The trace of a text or a part of one; special tokens are added if it begins or ends the text.

    `tracer`, if given, caches words from one part for the next.
    """
    [part] = traced_parts(
        tokenizer,
        text,
        parse_special,
        add_special=add_special,
        begins=begins,
        ends=ends,
        tracer=tracer,
        is_enough=lambda size: False,
    )
    return part.trace


def traced_parts(
    tokenizer: Tokenizer,
    text: Text,
    parse_special: bool,
    *,
    add_special: bool,
    begins: bool = True,
    ends: bool = True,
    tracer: Tracer | None = None,
    is_enough: Callable[[Totals], bool],
    kept: int = 0,
) -> Iterator[Part]:
    """Trace a text in one or more parts. A part ends with the word whose `Totals` make it `is_enough`.

    Each begins with the last `kept` bytes, in whole words, of the one before. All have the whole text and positions
    in it, so `before.bytes` is 0; a fragment that continues is in each of its parts.
    """
    source = tokenizer.pipeline.source(text)
    before, behind = added_to(tokenizer) if add_special else ([], [])
    way = _Collector(tokenizer, source, tracer_of(tokenizer) if tracer is None else tracer)
    stop = len(way.data)

    def part() -> Part:
        return way.part(add_special, parse_special)

    for kind, token in before if begins else ():
        way.add_token(kind, token, 0, 0)
    for size in way.fragments_added(parse_special):
        if is_enough(size):
            yield part()
            way.forget(kept)
    for kind, token in behind if ends else ():
        way.add_token(kind, token, stop, stop)
    yield part()


def as_json(record: Any, before: Totals = _BEGINNING) -> dict[str, Any]:
    """One record as in `Trace.to_dict`, from a part of the text; `before` counts what comes before the part."""
    found: dict[str, Any] = {}
    for name, value in record._asdict().items():
        counted = _COUNTED_ON.get(name)
        if isinstance(value, bytes):
            found |= text_fields(name, value)
        elif isinstance(value, TokenAttribute):
            found[name] = names_of(value)
        elif counted is not None and value is not None:
            found[name] = value + getattr(before, counted)
        else:
            found[name] = json_value(value, before)
    return found


def json_value(value: Any, before: Totals = _BEGINNING) -> Any:
    """A value of a record as JSON; a number that is not finite is text, "inf"."""
    if hasattr(value, "_asdict"):
        return as_json(value, before)
    if isinstance(value, tuple):
        return [json_value(item, before) for item in value]
    return str(value) if isinstance(value, float) and not isfinite(value) else value


# Fields that are positions or numbers in a text, and what they count.
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


class _Collector:
    """Collects fragments, changes, words and tokens of a text; `_gone` counts those already forgotten."""

    def __init__(self, tokenizer: Tokenizer, data: bytes, tracer: Tracer) -> None:
        self.data = data
        self._fragments: list[Fragment] = []
        self._changes: list[RewrittenText] = []
        self._words: list[Word] = []
        self._tokens: list[Token] = []
        self._gone = Totals()
        self._begin, self._end = 0, 0  # of the collected part, in bytes
        self._tokenizer = tokenizer
        self._tracer = tracer
        self._known: dict[int, tuple[bytes, str, TokenAttribute]] = {}

    def part(self, add_special: bool, parse_special: bool) -> Part:
        """The part collected so far."""
        tok = self._tokenizer
        return Part(
            self._gone,
            Trace(
                self.data,
                add_special,
                parse_special,
                tok.model,
                tok.pre,
                self._tracer.stages,
                tuple(self._fragments),
                tuple(self._words),
                tuple(self._tokens),
                tuple(self._changes),
            ),
        )

    def forget(self, kept: int) -> None:
        """Drop all but the last `kept` bytes and a fragment that may continue."""
        limit = self._end - kept
        fragments = bisect_right(self._fragments, limit, key=lambda fragment: fragment.end)
        words = bisect_right(self._words, limit, key=lambda word: word.end)
        changes = len(self._changes)  # one may extend beyond the word after it
        if kept:
            changes = bisect_right(self._changes, limit, key=lambda change: change.end)
        is_gone = [
            token.fragment < fragments or (token.word is not None and token.word < words)
            for token in self._tokens
        ]
        tokens = len(is_gone) - is_gone[::-1].index(True) if True in is_gone else 0
        self._tokens = [
            token._replace(
                fragment=token.fragment - fragments, word=None if token.word is None else token.word - words
            )
            for token in self._tokens[tokens:]
        ]
        self._words = [word._replace(fragment=word.fragment - fragments) for word in self._words[words:]]
        self._fragments, self._changes = self._fragments[fragments:], self._changes[changes:]
        self._gone += Totals(0, words, tokens, fragments)
        self._begin = self._end

    def add_token(self, kind: str, token: int, start: int, end: int) -> None:
        """Add a fragment that is one token."""
        self._add_fragment(Fragment(kind, start, end, token))
        self._add_id(token, start, end, kind, None)

    def fragments_added(self, parse_special: bool) -> Iterator[Totals]:
        """Add the whole text: special tokens, plain text, and what is stripped between them.

        Yields the totals after each of them and each word: bytes since text was last forgotten, words, and tokens.
        """
        done, before = 0, None
        for token, start, end in self._tokenizer.pipeline.special.partition(self.data, parse_special):
            self._add_stripped(done, start, before, token)
            if token is not None:
                self.add_token("special", token, start, end)
                yield self._size()
            else:
                yield from self._text_added(self.data[start:end], start)
            done, before = end, token
        self._add_stripped(done, len(self.data), before, None)

    def _size(self) -> Totals:
        return Totals(self._end - self._begin, len(self._words), len(self._tokens))

    def _add_fragment(self, fragment: Fragment) -> None:
        self._fragments.append(fragment)
        if fragment.kind != "text":
            self._end = fragment.end

    def _add_stripped(self, start: int, end: int, before: int | None, after: int | None) -> None:
        if start < end:
            by = stripped_by(self._tokenizer, before, after)
            self._add_fragment(Fragment("dropped", start, end, dropped_by=by))

    def _text_added(self, fragment: bytes, start: int) -> Iterator[Totals]:
        """Add a plain fragment."""
        for step in self._tracer.steps(fragment, start):
            if isinstance(step, EncodedWord):
                for token, first, end, origin in step.tokens:
                    self._add_id(token, first, end, origin, len(self._words))
                self._words.append(step.word._replace(fragment=len(self._fragments) - 1))
                self._end = step.word.end
                yield self._size()
            elif isinstance(step, RewrittenText):
                self._changes.append(step)
            elif step.token is not None:
                self.add_token(step.kind, step.token, step.start, step.end)
                yield self._size()
            else:
                self._add_fragment(step)

    def _add_id(self, token: int, start: int, end: int, origin: str, word: int | None) -> None:
        known = self._known.get(token)
        if known is None:
            known = self._known[token] = self._looked_at(token)
        self._tokens.append(Token(token, start, end, *known, origin, len(self._fragments) - 1, word))

    def _looked_at(self, token: int) -> tuple[bytes, str, TokenAttribute]:
        tok = self._tokenizer
        if token < 0:  # the model has no unknown token
            return b"", "", TokenAttribute(0)
        return tok.token_to_piece(token), tok.id_to_token(token), tok.token_attributes(token)
