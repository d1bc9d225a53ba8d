"""Gives `Tokenizer` its methods about budgets: whether a text fits, the part of it that does, and pieces that do.

The numbers are of a text's own ids, so BOS and EOS are added only if asked for.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar, cast

from .._util.arguments import checked_flag, checked_str, integer
from .._util.lazy import IMPORT_LOCK, cached_property
from .._util.spelling import SPACE
from .._util.utf8 import to_bytes
from .._util.wording import counted
from ..models.pieces import piece_lengths
from .engine import Text
from .split_points import SplitPoints

if TYPE_CHECKING:
    from ..chat.prompt_tokenizer import Side
    from ..models.vocabulary import Vocabulary
    from . import Tokenizer
    from .boundaries import Boundaries, KeepSeparator
    from .truncation import CutAt

T = TypeVar("T", str, bytes, bytearray, memoryview)


class BudgetMethods:
    """The base class of `Tokenizer` with everything about texts that must fit."""

    def fits(self, text: Text, limit: int, *, add_special: bool = False, parse_special: bool = True) -> bool:
        """Return whether `text` has at most `limit` ids.

        Only as much of `text` is read as the answer needs: a gigabyte is compared with 8,192 ids in less than a
        millisecond. Unigram (t5) and DNA models and the reference engine can split a text only at special tokens.
        After a megabyte that cannot be split, such as a single word, the rest of the text is read at once, unless its
        number of bytes decides. BOS and EOS count with `add_special`. `ValueError` for a negative `limit`.

        >>> tok.fits("Hello world", 2)
        True
        """
        limit = integer("limit", limit, least=0)
        return self._count_up_to(text, limit, add_special, parse_special, False) <= limit

    def truncate(
        self,
        text: T,
        limit: int,
        *,
        side: Side = "right",
        marker: str = "",
        at: CutAt = "character",
        add_special: bool = False,
        parse_special: bool = True,
    ) -> T:
        """Return `text` if it has at most `limit` ids, else the longest part of it that has, encoded by itself.

        `side` is where text is taken away: at its end ("right"), at its beginning ("left"), or in its "middle", so that
        as many characters stay at the beginning as at the end (one more at the beginning). `marker` takes the place of
        what was taken away, and its ids count. The cut is between two characters, and with `at="word"` not between two
        letters, digits or marks, except beside ideographs and kana. BOS and EOS count with `add_special`.

        A longer part may have fewer ids, so parts are counted from the longest downwards. In a text without certain
        split points (see `fits`), and in a single word, that is done for some hundred parts near the place that a
        search by halves finds. Bytes that are not UTF-8 are cut between any two of them.

        `ValueError` for a negative `limit`, or if `marker` alone has more ids.

        >>> tok.truncate("one two three four", 3, marker=" …")
        'one two …'
        """
        from ..chat.prompt_tokenizer import SIDES
        from .truncation import CUT_AT, longest_part

        _check_choice("side", side, SIDES)
        _check_choice("at", at, CUT_AT)
        limit = integer("limit", limit, least=0)
        marker = _checked_marker(marker)
        parse_special = checked_flag("parse_special", parse_special)
        if self.fits(text, limit, add_special=add_special, parse_special=parse_special):
            return text
        tokenizer = cast("Tokenizer", self)
        limit -= self._added_count(add_special)
        if limit < 0:
            raise ValueError("the limit is less than the number of tokens that are added to every text")
        if isinstance(text, str):
            try:
                kept = longest_part(tokenizer, text, limit, side, marker, at, parse_special)
                kept.encode()  # longest_part takes some surrogates for undecodable bytes
            except UnicodeEncodeError:
                to_bytes(text)  # raises the error that says where the surrogate is
                raise
            return kept
        source = bytes(text).decode("utf-8", "surrogateescape")
        cut = longest_part(tokenizer, source, limit, side, marker, at, parse_special)
        data = cut.encode("utf-8", "surrogateescape")
        return data if isinstance(text, bytes) else type(text)(data)

    def split(
        self,
        text: str | bytes,
        size: int,
        overlap: int = 0,
        boundaries: Boundaries = "paragraph",
        keep_separator: KeepSeparator = "end",
        *,
        add_special: bool = False,
        parse_special: bool = True,
    ) -> list[tuple[int, int]]:
        """Return the spans (start, end) of consecutive parts of `text` that each encode to at most `size` ids.

        Spans are in characters of a `str`, in bytes of bytes. Without `overlap` the parts join to `text`. Each ends at
        the last boundary of the strongest level there is within its reach: of "paragraph" (blank lines), "sentence",
        "line" and "word", beginning with the one that `boundaries` names, and then between two tokens. "markdown" has
        headings and fenced blocks before these, "code" definitions; a sequence of `BoundaryLevel` gives your own.

        With `add_special`, the BOS and EOS of each part count, as they must for a model that embeds the parts.

        What separates two parts belongs to the first ("end") or the second ("start"); with `keep_separator=False`,
        white space at both ends of each part is left out, and parts of white space alone are dropped. With `overlap`,
        a part begins at a boundary such that it repeats at most so many ids of the part before it.

        One character that has more than `size` ids by itself is a part of its own. `ValueError` for an unknown name,
        for a text with a lone surrogate, and unless `0 <= overlap < size`, not counting the tokens that are added.

        >>> tok.split("One two. Three four.", 4)
        [(0, 9), (9, 20)]
        """
        with IMPORT_LOCK:
            from .boundaries import SEPARATORS, SplitRequest, levels_of
        size, overlap = check_overlap(size, overlap, self._added_count(add_special))
        _check_choice("keep_separator", keep_separator, SEPARATORS)
        parse_special = checked_flag("parse_special", parse_special)
        vocabulary = cast("Tokenizer", self).vocabulary
        model = vocabulary.tokenizer_model
        puts_space = "add_space_prefix" in model.flags and vocabulary.add_space_prefix
        request = SplitRequest(
            size,
            overlap,
            levels_of(boundaries),
            keep_separator,
            parse_special,
            self._token_lengths,
            model.begins_words,
            model.begins_words or puts_space,
        )
        return cast("Tokenizer", self)._engine.split(text, request)

    def encode_pair(self, a: str, b: str, *, limit: int | None = None) -> list[int]:
        """Return the ids of a query and a document as llama-server's `/rerank` forms them for a model that ranks.

        That is the file's template for "rerank" with `{query}` and `{document}` replaced, else the texts with BOS, EOS
        and SEP where the model wants them: BOS a EOS SEP b EOS. No control token is recognized in the texts then. The
        input of an embedding is `encode(text)`.

        With `limit`, the texts are cut at their ends until the pair has at most so many ids, the longer one first.
        llama-server refuses a pair that is too long. `ValueError` if a pair of empty texts has more.

        Source: format_prompt_rerank in tools/server/server-common.cpp.
        """
        from .model_inputs import encode_pair

        most = None if limit is None else integer("limit", limit, least=0)
        return encode_pair(cast("Tokenizer", self), checked_str("a", a), checked_str("b", b), most)

    def encode_infill(
        self,
        prefix: str,
        suffix: str,
        prompt: str = "",
        extra: Iterable[Mapping[str, str]] = (),
        *,
        n_batch: int = 2048,
        n_predict: int = -1,
        n_ctx: int | None = None,
        spm_infill: bool = False,
    ) -> list[int]:
        """Return the ids for filling in between `prefix` and `suffix`, as llama-server's `/infill` forms them.

        `prompt` is the beginning of the middle, and `extra` are other files of the repository, each with "text" and
        "filename". Of a long prefix the end is kept, of a long suffix the beginning, so that both fit a batch of
        `n_batch` ids; of the other files, what fits the context of `n_ctx` ids besides, everything with None. The
        defaults are llama-server's. `spm_infill` puts the suffix first.

        `ValueError` if the vocabulary has no FIM tokens.

        Source: format_prompt_infill in tools/server/server-common.cpp.
        """
        from .model_inputs import encode_infill

        return encode_infill(
            cast("Tokenizer", self),
            prefix,
            suffix,
            prompt,
            extra,
            n_batch=integer("n_batch", n_batch),
            n_predict=integer("n_predict", n_predict),
            n_ctx=None if n_ctx is None else integer("n_ctx", n_ctx),
            spm_infill=checked_flag("spm_infill", spm_infill),
        )

    def _added_count(self, add_special: bool) -> int:
        """The number of tokens that `add_special` adds to every text."""
        added = cast("Tokenizer", self).vocabulary.added
        return sum(map(len, added)) if checked_flag("add_special", add_special) else 0

    def _count_up_to(
        self, text: Text, limit: int, add_special: bool, parse_special: bool, continues: bool
    ) -> int:
        with IMPORT_LOCK:
            from .budgets import count_up_to
        limit = integer("limit", limit, least=0)
        return count_up_to(
            cast("Tokenizer", self),
            text,
            limit,
            checked_flag("add_special", add_special),
            checked_flag("parse_special", parse_special),
            checked_flag("continues", continues),
        )

    @cached_property
    def _split_points(self) -> dict[tuple[bool, bool], SplitPoints]:
        """The places where texts can be split, by `parse_special` and `continues`."""
        return {}

    def _split_points_for(self, parse_special: bool) -> SplitPoints:
        """The places after which texts are encoded with `continues`."""
        return SplitPoints.of(cast("Tokenizer", self), parse_special, continues=True)

    @cached_property
    def _longest_piece(self) -> int:
        from .budgets import longest_piece

        return longest_piece(cast("Tokenizer", self))

    @cached_property
    def _token_lengths(self) -> bytes:
        """The bytes of text that each token stands for, as int32; empty if the model changes text.

        The unknown token stands for any character, whatever the bytes of its name are: it has -1. Where tokens begin
        words, the bytes are those of text that the model does not change, and `BEGINS_WORD` is set.
        """
        tokenizer = cast("Tokenizer", self)
        model = tokenizer.vocabulary.tokenizer_model
        entry = tokenizer.vocabulary.pre_tokenizer
        # Such tokens are decoded by GPT-2's alphabet of bytes, but the text is not written in it.
        has_other_bytes = model.has_pre_tokenizer and not entry.byte_encode and not entry.escape_whitespaces
        unknown = tokenizer.unk_id
        if model.begins_words:
            return _lengths_in_words(tokenizer.vocabulary, unknown).tobytes()
        if model.changes_text or entry.prepend_space or has_other_bytes:
            return b""
        lengths = piece_lengths(tokenizer.vocabulary)
        if unknown is not None and 0 <= unknown < len(lengths):
            lengths[unknown] = -1
        return lengths.tobytes()


def _lengths_in_words(vocabulary: Vocabulary, unknown: int | None) -> array[int]:
    """The bytes of tokens without the U+2581 that begins them, and `BEGINS_WORD` where it does.

    `BEGINS_WORD` is also set for tokens that may stand alone whatever they begin with: the unknown and special ones.
    """
    from .boundaries import BEGINS_WORD

    added = BEGINS_WORD - len(SPACE.encode())
    sizes = map(len, map(str.encode, vocabulary.tokens))
    lengths = array(
        "i", [size + added * text.startswith(SPACE) for text, size in zip(vocabulary.tokens, sizes)]
    )
    for token in {*vocabulary.special_token_ids, unknown}:
        if token is not None and 0 <= token < len(lengths):
            lengths[token] |= BEGINS_WORD
    return lengths


def check_overlap(size: int, overlap: int, added: int = 0) -> tuple[int, int]:
    """Return how many of `size` tokens are left for a part's own text, beside `added` ones, and `overlap`.

    `ValueError` unless `overlap` is at least 0 and less than what is left.
    """
    size, overlap = integer("size", size, least=1), integer("overlap", overlap)
    tokens = f"{counted(added, 'token that is', 'tokens that are')} added to every part"
    if size <= added:
        raise ValueError(f"size must be more than the {tokens}; it is {size}")
    if not 0 <= overlap < size - added:
        besides = f" without the {tokens}" if added else ""
        raise ValueError(
            f"overlap must be 0 or more and less than size, not {overlap}; size is {size - added}{besides}"
        )
    return size - added, overlap


def _checked_marker(marker: object) -> str:
    """Return the marker. `TypeError` for what is no `str`, `ValueError` for one that UTF-8 cannot write."""
    text = checked_str("marker", marker)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        found = f"U+{ord(text[error.start]):04X}, at character {error.start}"
        raise ValueError(f"marker has a lone surrogate, {found}, which UTF-8 cannot write") from None
    return text


def _check_choice(name: str, value: object, allowed: Sequence[object]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} is {' or '.join(map(repr, allowed))}, not {value!r}")
