"""Turns ids into text: the part of `Tokenizer` that decodes ids and gives the bytes of tokens."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from typing import TYPE_CHECKING, SupportsIndex

from .._util.arguments import checked_flag, integer, iterable
from .._util.lazy import cached_property
from ..models.pieces import Pieces, all_pieces
from ..models.vocabulary import Vocabulary
from .detokenization import DecodeStream, detokenize, token_ids
from .engine import numpy

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class DecodeMethods:
    """The base class of `Tokenizer` with everything that turns ids into bytes or text."""

    _vocabulary: Vocabulary

    def decode(
        self,
        ids: Iterable[int],
        *,
        remove_special: bool = False,
        unparse_special: bool = False,
        clean_spaces: bool = True,
        continues: bool = False,
    ) -> str:
        """Return the text of `ids`. Invalid UTF-8, such as part of a character, becomes U+FFFD.

        `remove_special` leaves out the BOS and EOS that `encode` adds; `unparse_special` writes control tokens as
        text. llama.cpp's clean-up drops spaces before ".", ",", "!" and "?" and around apostrophes for the models
        whose pre-tokenizer asks for that, such as GPT-2, Llama 3 and Gemma 4; `clean_spaces=False` keeps all spaces.
        `continues` means that the ids go on where others ended, such as an answer in two parts: a model that puts a
        space before each text (Llama 2, Phi-3) then keeps the first one.

        Raises `ValueError` for an id out of range, `TypeError` for anything but integers.
        """
        data = self.decode_bytes(
            ids,
            remove_special=remove_special,
            unparse_special=unparse_special,
            clean_spaces=clean_spaces,
            continues=continues,
        )
        return data.decode("utf-8", "replace")

    def decode_batch(
        self,
        batch: Iterable[Iterable[int]],
        *,
        remove_special: bool = False,
        unparse_special: bool = False,
        clean_spaces: bool = True,
        continues: bool = False,
    ) -> list[str]:
        """Return the text of each list of ids in `batch`. The other arguments and the errors are those of `decode`."""
        return [
            self.decode(
                ids,
                remove_special=remove_special,
                unparse_special=unparse_special,
                clean_spaces=clean_spaces,
                continues=continues,
            )
            for ids in iterable("batch", batch, "lists of ids")
        ]

    def decode_bytes(
        self,
        ids: Iterable[int],
        *,
        remove_special: bool = False,
        unparse_special: bool = False,
        clean_spaces: bool = True,
        continues: bool = False,
    ) -> bytes:
        """Return the bytes of `ids`, as llama_detokenize gives them; the arguments are those of `decode`.

        With `clean_spaces=False`, `decode_bytes(encode(text))` is the UTF-8 of `text` for a byte pair encoding that has
        tokens for all bytes, if no control token is in the text (or with `unparse_special=True`).

        Source: src/llama-vocab.cpp, llama_vocab::impl::detokenize.
        """
        return detokenize(
            self._vocabulary,
            self._pieces[checked_flag("unparse_special", unparse_special)],
            token_ids(ids),
            checked_flag("remove_special", remove_special),
            clean=checked_flag("clean_spaces", clean_spaces) and self._vocabulary.pre_tokenizer.clean_spaces,
            continues=checked_flag("continues", continues),
        )

    def decode_stream(
        self,
        *,
        remove_special: bool = False,
        unparse_special: bool = False,
        clean_spaces: bool = True,
        continues: bool = False,
    ) -> DecodeStream:
        """Return a decoder that takes ids one by one and gives text as soon as it is certain.

        `push(id)` returns the text that an id settles, often "", and `finish()` the rest, which is lost without it. The
        arguments are those of `decode`, which gives the same text for all ids at once.

        >>> stream = tok.decode_stream()
        >>> "".join(map(stream.push, tok.encode("Hello world"))) + stream.finish()
        'Hello world'
        """
        return DecodeStream(
            self._vocabulary,
            self._pieces[checked_flag("unparse_special", unparse_special)],
            checked_flag("remove_special", remove_special),
            clean=checked_flag("clean_spaces", clean_spaces) and self._vocabulary.pre_tokenizer.clean_spaces,
            continues=checked_flag("continues", continues),
        )

    def token_to_piece(self, token: SupportsIndex, *, special: bool = True) -> bytes:
        """The bytes of one token, exactly as llama_token_to_piece; empty for control tokens if not `special`."""
        return self._pieces[checked_flag("special", special)][integer("a token id", token)]

    @cached_property
    def token_bytes(self) -> tuple[bytes, ...]:
        """The bytes of every token by id, as `token_to_piece` gives them: control tokens as their text.

        >>> tok.token_bytes[995]
        b' world'

        Made on first use for all tokens at once, which takes a fraction of the time of `token_to_piece` for each.
        """
        return tuple(all_pieces(self._vocabulary))

    def token_bytes_to_numpy(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
        """Return `token_bytes` as one uint8 array, and the vocab_size + 1 offsets between which each token lies.

        The bytes of token `i` are `buffer[offsets[i] : offsets[i + 1]]`. Both arrays are read-only.
        """
        return self._token_bytes_arrays

    @cached_property
    def _token_bytes_arrays(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
        ends = accumulate(map(len, self.token_bytes), initial=0)
        offsets = numpy().fromiter(ends, numpy().int64, len(self.token_bytes) + 1)
        offsets.flags.writeable = False
        return numpy().frombuffer(b"".join(self.token_bytes), numpy().uint8), offsets

    @cached_property
    def _pieces(self) -> tuple[Pieces, Pieces]:
        return Pieces(self._vocabulary, special=False), Pieces(self._vocabulary, special=True)
