"""Finds tokens that are markers, such as <|im_start|>, without their types, which may be the defect.

A token that merges produce is text, whatever it looks like: "[i]" comes out of plain text as well. A marker is written
in brackets, no merge produces it, and something else speaks for it: a usual name, the chat template, or a neighbour in
the vocabulary that is special or a marker as well. Added text, such as runs of spaces, stands between markers.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from functools import cached_property
from weakref import WeakKeyDictionary

from ..._util.spelling import BYTE_TOKENS, SPACE
from ...gguf.constants import TokenType
from ...models.bpe.merge import BYTE_CHARS, texts_made_by
from ...models.special_ids import MADE_CONTROL
from ...models.token_table import tokens_with
from ...models.vocabulary import BYTE, CONTROL, NORMAL, SPECIAL_TYPES, USER_DEFINED, Vocabulary
from ...tokenizer import Tokenizer
from .marker_types import shown_markers
from .token_checks import (
    BARS,
    BRACKETED,
    CONTROL_LIKE,
    FILLER,
    NEAR,
    are_most_words,
    is_added_word,
    is_written_as_marker,
    lacks_merges,
)

# Bytes that UTF-8 lacks.
_OF_NO_TEXT = frozenset(BYTE_CHARS[byte] for byte in (0xC0, 0xC1, *range(0xF5, 0x100)))
BYTES_OF_TEXT = frozenset(BYTE_CHARS) - _OF_NO_TEXT  # of which merges make all other tokens
_BYTES_WRITTEN = frozenset(BYTE_TOKENS)
_SCORES_OF_ADDED = (0.0, -1000.0)  # of tokens that were added to a vocabulary with scores
_MOST_ADDED = 64  # tokens of text among the markers; more are words whose merges are missing


class MarkerTokens:
    """The markers of one vocabulary; `token in markers` tells whether a token is one, or was added with them."""

    def __init__(
        self, vocabulary: Vocabulary, template: str = "", merged: Callable[[], Container[str]] | None = None
    ) -> None:
        """`merged` gives the texts that merges produce, where they are already known."""
        self._merged = merged
        self._tokens, self._attributes = vocabulary.tokens, vocabulary.attributes
        self._merges, self._scores = vocabulary.merges, vocabulary.scores
        is_byte_level = vocabulary.pre_tokenizer.byte_encode
        self._of_no_text = _OF_NO_TEXT if is_byte_level else frozenset()
        self._bytes = BYTES_OF_TEXT if is_byte_level else frozenset(map(chr, range(0x80)))
        self._special_ids = {token for token in vocabulary.special_ids.values() if token is not None}
        self._template = template
        self._added: dict[int, list[int]] = {}  # what `added_text_at` has found

    def __contains__(self, token: object) -> bool:
        if not isinstance(token, int) or not 0 <= token < len(self._tokens):
            return False
        return self._is_marker(token) or token in self.added_text_at(token)

    def is_word(self, token: int) -> bool:
        """Check that a token is ordinary text, such as "user", and no special id of the model.

        Merges produce it. Without merges, or where most are lost, it has a score that was learned, or ordinary tokens
        stand behind it: words that are added have the score 0 or -1000, and stand at the end. Where most words are
        special, all tokens that are not written as markers are words.
        """
        text = self._tokens[token] if 0 <= token < len(self._tokens) else ""
        if token in self._special_ids or is_written_as_marker(text):
            return False
        if self.lacks_words:
            return True
        if not text.strip():
            return False
        if self._merges and (text in self._results or text in self._bytes):
            return True
        if text in self._of_no_text or (self._merges and not self._lacks_merges):
            return False
        if self._has_scores:
            return bool(text.strip(SPACE)) and self._scores[token] not in _SCORES_OF_ADDED
        return token < self._last_plain

    def may_become(self, token: int, kind: str) -> bool:
        """Check that a token may be given a type though that changes what the token decodes to."""
        if kind == TokenType.BYTE.name:
            return self._tokens[token] in _BYTES_WRITTEN
        if kind == TokenType.NORMAL.name or (kind == TokenType.USER_DEFINED.name and self.lacks_words):
            return token in self or self.is_word(token)
        is_added = kind == TokenType.USER_DEFINED.name and is_added_word(self._tokens[token])
        return token in self or (is_added and self._tokens[token] not in self._results)

    @cached_property
    def lacks_words(self) -> bool:
        """Check that most words are not plain text by their types: these then do not tell words from markers."""
        special = (token for token, attribute in enumerate(self._attributes) if not attribute & NORMAL)
        return are_most_words(self._tokens, special)

    @cached_property
    def _last_plain(self) -> int:
        return max(tokens_with(self._attributes, NORMAL), default=-1)

    def _is_marker(self, token: int) -> bool:
        if not self._is_bracketed(token):
            return False
        text = self._tokens[token]
        return bool(
            (CONTROL_LIKE.fullmatch(text) and (not self._lacks_merges or self._is_added(token)))
            or text in MADE_CONTROL
            or text in self._template
            or any(self._is_special(near) or self._is_bracketed(near) for near in (token - 1, token + 1))
        )

    def _is_added(self, token: int) -> bool:
        """Check that a token with the name of a marker has bars in it, or a token near it that is special by its type.

        What llama.cpp makes special by its text may be ordinary text, as "</s>" of Qwen 2 is, which stands near "<s>".
        """
        near = filter(self._is_special, range(token - NEAR, token + NEAR + 1))
        is_near = any(self._tokens[other] not in MADE_CONTROL for other in near)
        return is_near or BARS.search(self._tokens[token]) is not None

    def _is_special(self, token: int) -> bool:
        return 0 <= token < len(self._tokens) and self._attributes[token] & SPECIAL_TYPES != 0

    def _is_bracketed(self, token: int) -> bool:
        """Return whether a token is written in brackets and no merge produces it.

        Merges may produce a text that llama.cpp takes for a control token anyway, as "</s>" of Qwen 2.
        """
        if not 0 <= token < len(self._tokens) or not BRACKETED.fullmatch(self._tokens[token]):
            return False
        if self._tokens[token] in MADE_CONTROL:
            return True
        is_byte = self._attributes[token] & BYTE or self._tokens[token] in _BYTES_WRITTEN
        return not is_byte and not self._is_merged(token)

    def _is_merged(self, token: int) -> bool:
        """Check that merges produce a token; where most of them are missing, that they may have produced it."""
        text = self._tokens[token]
        if text in self._results:
            return True
        return self._lacks_merges and text not in self._of_no_text and not BRACKETED.fullmatch(text)

    @cached_property
    def _results(self) -> Container[str]:
        """The texts that merges produce."""
        return self._merged() if self._merged else texts_made_by(self._merges)

    @cached_property
    def _has_scores(self) -> bool:
        return any(self._scores)  # all are 0 where they are lost

    @cached_property
    def _lacks_merges(self) -> bool:
        return bool(self._merges) and lacks_merges(self._tokens, self._results)

    def added_text_at(self, token: int) -> list[int]:
        """Return the tokens without brackets that were added to the vocabulary together with `token`.

        That is a run of tokens that no merge produces, markers among them. Empty for a model without merges.
        """
        if token not in self._added:
            run, found = self._found_added(token)
            self._added |= dict.fromkeys(run, found)
        return self._added[token]

    def _found_added(self, token: int) -> tuple[list[int], list[int]]:
        """Return the tokens of the run as far as it was looked at, and those of them that were added."""
        run = [token]
        if not self._merges or self._is_merged(token):
            return run, []
        found: list[int] = []
        has_markers = False
        for step in (1, -1):
            at = token if step == 1 else token - 1
            while 0 <= at < len(self._tokens) and not self._is_merged(at):
                run.append(at)
                if BRACKETED.fullmatch(self._tokens[at]):
                    has_markers = True
                elif len(found) == _MOST_ADDED:
                    return run, []
                else:
                    found.append(at)
                at += step
        return run, sorted(found) if has_markers else []

    @cached_property
    def _not_special(self) -> list[int]:
        """The markers that are not special, ascending."""
        bracketed = (token for token, text in enumerate(self._tokens) if text[:1] in ("<", "[", ">"))
        return [token for token in bracketed if not self._is_special(token) and self._is_marker(token)]

    def group_of(self, tokens: Iterable[int]) -> list[int]:
        """Return `tokens` and the markers near them that are not special either: with the same brackets, or well known.

        Markers are added to a vocabulary together, so where one has lost its type, its neighbours have, too. Where no
        merges tell added tokens from others, only brackets with bars do: Baichuan's `<h2>` is text, and so is `<SEP>`.
        A well-known name without bars must be near as well: in Qwen 2's vocabulary, `<s>` is HTML.
        """
        found = set(tokens)
        if not found:
            return []
        brackets = {self._brackets(token) for token in found}
        waiting = sorted(found)
        others = [token for token in self._not_special if self._brackets(token) in brackets]
        if not self._merges:
            others = [token for token in others if BARS.search(self._tokens[token])]
        others = [token for token in others if "|" in self._tokens[token] or not self._is_filler(token)]
        while waiting:
            token = waiting.pop()
            near = [other for other in others if other not in found and abs(other - token) <= NEAR]
            found.update(near)
            waiting += near
        usual = {token for token in self._not_special if CONTROL_LIKE.fullmatch(self._tokens[token])}
        usual = {token for token in usual if BARS.search(self._tokens[token]) or _is_near(token, found)}
        usual = {token for token in usual if "|" in self._tokens[token] or not self._is_filler(token)}
        special_ids = {token for token in self._special_ids if self._may_be_special_id(token)}
        return sorted(found | usual | (special_ids & set(self._not_special)))

    def _may_be_special_id(self, token: int) -> bool:
        """Check that a special id is hardly wrong itself, as a filler is, or HTML that no merges tell from text."""
        is_known = bool(self._merges) or CONTROL_LIKE.fullmatch(self._tokens[token]) is not None
        return is_known and not self._is_filler(token)

    def _is_filler(self, token: int) -> bool:
        return FILLER.fullmatch(self._tokens[token]) is not None

    def _brackets(self, token: int) -> tuple[object, ...]:
        """Return the kind of brackets of a marker: "<|x|>", "<|x>" and "<x|>" are of one kind."""
        match = BRACKETED.fullmatch(self._tokens[token])
        return (*(part.replace("|", "") for part in match.groups()), "|" in match[0]) if match else ()

    def types_of(self, parsed: Iterable[int]) -> dict[int, int]:
        """Return the attributes that markers must have which are `parsed` as one token, with those of their group.

        Added text is shown, so it is user-defined; it belongs to the group if none of it is special any more. A marker
        that a known family shows is user-defined as well, and so are audio codes.
        """
        found = set(parsed)
        types = {token: CONTROL if self._is_bracketed(token) else USER_DEFINED for token in sorted(found)}
        types |= dict.fromkeys(self.group_of(token for token in found if types[token] == CONTROL), CONTROL)
        shown = shown_markers([self._tokens[token] for token in types], self._tokens)
        types |= dict.fromkeys((token for token in types if self._tokens[token] in shown), USER_DEFINED)
        for token in found:
            if token not in (added := self.added_text_at(token)) and any(map(self._is_special, added)):
                continue
            types |= dict.fromkeys((other for other in added if not self._is_special(other)), USER_DEFINED)
        return types


def _is_near(token: int, others: Iterable[int]) -> bool:
    return any(abs(token - other) <= NEAR for other in others)


_MARKERS: WeakKeyDictionary[Tokenizer, MarkerTokens] = WeakKeyDictionary()


def find_marker_tokens(tokenizer: Tokenizer) -> MarkerTokens:
    """Return the markers of a tokenizer, kept as long as the tokenizer is."""
    if tokenizer not in _MARKERS:
        _MARKERS[tokenizer] = MarkerTokens(tokenizer.vocabulary, tokenizer.chat_templates.get("", ""))
    return _MARKERS[tokenizer]
