"""The part of transformers.py that turns texts, pairs and batches into model inputs, and ids into text."""

from __future__ import annotations

from typing import Any, TypeVar

from ..tokenizer import Tokenizer
from ._transformers_frame import AddedTokens

Span = tuple[int, int]
T = TypeVar("T")


class TextEncoding(AddedTokens):
    """The base class of `GGUFTokenizer` that encodes and decodes."""

    tok: Tokenizer

    def tokenize(
        self, text: str, pair: str | None = None, add_special_tokens: bool = False, **options: Any
    ) -> Any:
        """Return the tokens of a text, or of a pair, as written in the file."""
        return self.convert_ids_to_tokens(
            self.encode(text, pair, add_special_tokens=add_special_tokens, **options)
        )

    def _encode_plus(
        self,
        text: Any,
        text_pair: Any = None,
        *,
        return_offsets_mapping: bool = False,
        split_special_tokens: bool = False,
        is_split_into_words: bool = False,
        **options: Any,
    ) -> Any:
        """Return the model inputs of a text, words, ids, a pair of these, or a batch."""
        own = (return_offsets_mapping, not split_special_tokens, is_split_into_words)
        if _is_batch(text, is_split_into_words):  # which calls this for each row
            if options.get("return_overflowing_tokens"):
                raise ValueError(
                    "return_overflowing_tokens takes one text at a time; the windows that a batch would have are those "
                    "of fast tokenizers. Tokenizer.split cuts long texts"
                )
            options["return_offsets_mapping"] = return_offsets_mapping
            options["split_special_tokens"] = split_special_tokens
            return super()._encode_plus(text, text_pair, is_split_into_words=is_split_into_words, **options)
        first, spans = self._ids(text, *own)
        second, second_spans = (None, None) if text_pair is None else self._ids(text_pair, *own)
        options["padding"], options["truncation"] = (
            options.pop("padding_strategy"),
            options.pop("truncation_strategy"),
        )
        if options.get("max_length") == 0:  # which prepare_for_model takes for no limit
            first, second = self._truncated(first, second, options)
        tensors = options.pop("return_tensors", None)
        if tensors:
            options["return_overflowing_tokens"] = False  # which has no form as a tensor
        found = self.prepare_for_model(first, second, **options)
        # prepare_for_model takes no ids for a batch of no rows, and leaves them as they are.
        if not found["input_ids"] and options["padding"] == "max_length":
            chosen = "max_length", "padding", "pad_to_multiple_of", "padding_side", "return_attention_mask"
            found.update(self._pad(found.data, *map(options.get, chosen)))
            if "length" in found:
                found["length"] = len(found["input_ids"])
        if return_offsets_mapping:
            all_spans = self._framed_spans(spans, second_spans, options)
            found["offset_mapping"] = self._padded(
                all_spans, len(found["input_ids"]), options.get("padding_side")
            )
        return found.convert_to_tensors(tensors, prepend_batch_axis=True)

    def _ids(
        self, text: Any, with_spans: bool, parse_special: bool, is_split_into_words: bool
    ) -> tuple[list[int], list[Span]]:
        """Return the ids of one text without what is added around it, and their spans in characters if wanted."""
        if isinstance(text, str):
            if not with_spans:
                return self.tok.encode(text, add_special=False, parse_special=parse_special), []
            ids, spans = self.tok.encode_with_offsets(
                text, add_special=False, parse_special=parse_special, unit="characters"
            )
            return ids, list(spans)
        if not isinstance(text, (list, tuple)):
            kind = type(text).__name__
            raise TypeError(
                f"a text is a str, or a list of tokens or ids, not {kind}; a batch is a list of texts"
            )
        if is_split_into_words:
            words = [self._ids(word, with_spans, parse_special, False) for word in text]
            return [token for ids, _ in words for token in ids], [
                span for _, spans in words for span in spans
            ]
        given: list[Any] = list(text)
        if given and not isinstance(given[0], int):
            given = self.convert_tokens_to_ids(given)
            if None in given:
                raise ValueError(f"the vocabulary has no token {text[given.index(None)]!r}")
        if with_spans and given:
            raise ValueError("return_offsets_mapping needs texts; ids and tokens have no offsets")
        return given, []

    def _framed_spans(
        self, first: list[Span], second: list[Span] | None, options: dict[str, Any]
    ) -> list[Span]:
        """Return the spans of the ids that `prepare_for_model` gives before padding; added tokens have (0, 0)."""
        first, second = self._truncated(first, second, options)
        added = options.get("add_special_tokens", True)
        return self._framed(first, second, (0, 0)) if added else first + (second or [])

    def _truncated(
        self, first: list[T], second: list[T] | None, options: dict[str, Any]
    ) -> tuple[list[T], list[T] | None]:
        """Return both sequences as `prepare_for_model` cuts them."""
        most = options.get("max_length")
        if most is None:
            return first, second
        around = self.num_special_tokens_to_add(pair=second is not None)
        size = len(first) + len(second or []) + (around if options.get("add_special_tokens", True) else 0)
        return self.truncate_sequences(first, second, size - most, options["truncation"])[:2]

    def _pad(self, encoded_inputs: Any, *arguments: Any, **options: Any) -> Any:
        found = super()._pad(encoded_inputs, *arguments, **options)
        if "offset_mapping" in found:
            size = len(found[self.model_input_names[0]])
            found["offset_mapping"] = self._padded(found["offset_mapping"], size, options.get("padding_side"))
        return found

    def _padded(self, spans: list[Span], size: int, side: str | None) -> list[Span]:
        padding = [(0, 0)] * (size - len(spans))
        return padding + spans if (side or self.padding_side) == "left" else spans + padding

    def _decode(
        self,
        token_ids: int | list[int],
        skip_special_tokens: bool = False,
        clean_up_tokenization_spaces: bool | None = None,
        **_: Any,
    ) -> str:
        clean = clean_up_tokenization_spaces
        return self.tok.decode(
            [token_ids] if isinstance(token_ids, int) else token_ids,
            unparse_special=not skip_special_tokens,
            # transformers takes any value for a flag.
            clean_spaces=bool(self.clean_up_tokenization_spaces if clean is None else clean),
        )

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        """Return the text of tokens as written in the file, with all spaces. "" and unknown tokens are left out.

        vLLM has "" for an id that is out of range.
        """
        ids = [token for each in tokens if (token := self.tok.token_to_id(each)) is not None]
        return self._decode(ids, clean_up_tokenization_spaces=False)


def _is_batch(text: Any, words: bool) -> bool:
    """Whether `text` is several texts, as transformers' `PythonBackend` decides."""
    if not isinstance(text, (list, tuple)):
        return False
    if not text:
        return not words
    return isinstance(text[0], (list, tuple) if words else (str, list, tuple))
