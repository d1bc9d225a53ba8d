"""Texts that grow: the part of `Tokenizer` for prompts that get longer, streams, and prefixes that are kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, cast

from .._util.arguments import checked_flag, iterable
from .._util.lazy import IMPORT_LOCK
from .engine import Text

if TYPE_CHECKING:
    from . import Tokenizer
    from .common_prefix import CommonPrefix
    from .incremental import IncrementalEncoding


class IncrementalMethods:
    """The base class of `Tokenizer` with everything for a text that is not there as a whole, or changes."""

    def incremental(
        self, text: Text = "", *, add_special: bool = True, parse_special: bool = True
    ) -> IncrementalEncoding:
        """Return a text that can change, with its ids, which are always those of `encode` of the whole text.

        A change takes the time of what it changes, not of the text. The arguments are those of `encode`.

        >>> growing = tok.incremental("Hello wor")
        >>> growing.append("ld").kept, growing.ids
        (1, [15496, 995])
        """
        with IMPORT_LOCK:
            from .incremental import IncrementalEncoding
        return IncrementalEncoding(
            cast("Tokenizer", self),
            text,
            add_special=checked_flag("add_special", add_special),
            parse_special=checked_flag("parse_special", parse_special),
        )

    def encode_stream(
        self, pieces: Iterable[Text], *, add_special: bool = True, parse_special: bool = True
    ) -> Iterator[int]:
        """Yield the ids of a text that comes in pieces, each as soon as no later text can change it.

        The ids are those of `encode` of the joined pieces, with the same flags. A piece is `str` or bytes; bytes may
        end within a character. The memory is that of the longest stretch that cannot be split (docs/limits.md).

        >>> list(tok.encode_stream(["Hello wor", "ld"]))
        [15496, 995]

        `TypeError` for a single text. What `encode` raises for a text is raised when the ids are asked for.
        """
        with IMPORT_LOCK:
            from .incremental import encode_stream
        return encode_stream(
            cast("Tokenizer", self),
            iterable("pieces", pieces, "texts"),
            add_special=checked_flag("add_special", add_special),
            parse_special=checked_flag("parse_special", parse_special),
        )

    def common_prefix(
        self, ids: Sequence[int], text: Text, *, add_special: bool = True, parse_special: bool = True
    ) -> CommonPrefix:
        """Compare `ids`, such as those that a model generated, with the ids of `text`, and say where and why they part.

        A KV cache of `ids` can be reused for `text` up to the first difference.

        >>> tok.common_prefix([15496, 266, 1764], "Hello world")
        CommonPrefix(ids=1, position=5, cause="the ids have ' w' + 'orld', and the tokenizer gives ' world'")

        `ValueError` for an id out of range; the other arguments and errors are those of `encode`.
        """
        with IMPORT_LOCK:
            from .common_prefix import common_prefix
        return common_prefix(
            cast("Tokenizer", self), ids, text, add_special=add_special, parse_special=parse_special
        )
