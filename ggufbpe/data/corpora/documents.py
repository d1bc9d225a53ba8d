"""The options of an encoding: what a document of a corpus is, and what else its ids depend on."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from ...chat.assistant_mask import ALL_PARTS, AssistantPart
from ...tokenizer import Tokenizer
from .byte_formats import Layout
from .chat_records import COLUMNS as CHAT_COLUMNS
from .chat_records import PREFERENCES, ChatRecord, Preference, chat_of_record, normalized_messages
from .marked_ids import MASK_FORMS, MaskForm

SHARD_SIZE = 256 << 20  # bytes of ids
WITH_POSITIONS = ("npy", "parquet", "arrow")  # Megatron-LM and nanotron join documents themselves


class Options(NamedTuple):
    """What the ids depend on beside the inputs and the tokenizer. A manifest has them as its settings."""

    text_column: str
    chat_column: str | None = None  # messages, in place of a text
    bos: bool = False
    eos: bool = True
    parse_special: bool = False
    now: str | None = None  # for the templates of chats, in ISO's form
    chat_template: str | None = None  # in place of the model's
    chats: bool | None = None  # chats in the forms of chat_records.py, in place of a text
    preference: Preference | None = None  # which answer of a pair
    mask: list[AssistantPart] | None = None  # what of the assistant's turns is marked
    max_length: int | None = None  # tokens; a document with more is a bad record
    by_line: bool = False  # each line of a plain text is a document
    pack: int | None = None  # tokens of each row
    shard_size: int = SHARD_SIZE
    mask_form: MaskForm | None = None
    position_ids: bool | None = None
    padding: int | None = None  # the id that fills packed rows, so that chats stay whole; None: chats are cut

    @property
    def is_chat(self) -> bool:
        """Whether documents are chats."""
        return bool(self.chats) or self.chat_column is not None

    @property
    def columns(self) -> tuple[str, ...]:
        """The fields that are read, of tables."""
        return CHAT_COLUMNS if self.chats else (self.chat_column or self.text_column,)

    def chat(self, fields: Mapping[str, Any]) -> ChatRecord:
        """The chat of a record. `ValueError` if it has none, or no message."""
        column = self.chat_column or ""
        if self.chats:
            found = chat_of_record(fields, self.preference)
        else:
            found = ChatRecord(normalized_messages(fields.get(column), column))
        if not found.messages:
            raise ValueError("a chat without messages")
        return found

    def checked_for(self, form: str) -> Options:
        """The options for a format, with how it has a mask. `ValueError` where they contradict each other."""
        if self.chats and self.chat_column is not None:
            raise ValueError(
                "chats=True recognizes records by their fields; chat_column names one: give either"
            )
        if self.preference is not None and not self.chats:
            raise ValueError("preference is for chats=True, which recognizes pairs")
        if self.preference not in (None, *PREFERENCES):
            raise ValueError(f"preference is 'chosen' or 'rejected', not {self.preference!r}")
        if self.mask is not None and not self.is_chat:
            raise ValueError(
                "a mask of what the assistant wrote is for chats: give chats=True or chat_column"
            )
        if self.mask_form is not None and self.mask is None:
            raise ValueError("mask_form is for mask=True")
        if self.mask_form not in (None, *MASK_FORMS):
            raise ValueError(f"mask_form is 'mask' or 'labels', not {self.mask_form!r}")
        if self.position_ids and (self.pack is None or form not in WITH_POSITIONS):
            raise ValueError(
                f"position_ids=True is for packed rows (pack=N) of {', '.join(WITH_POSITIONS)}; elsewhere the index of "
                "documents tells where they begin"
            )
        if self.padding is not None and (self.pack is None or not self.is_chat):
            raise ValueError(
                "whole=True is for packed rows of chats: give pack=N, and chats=True or chat_column=NAME"
            )
        if self.mask is None:
            return self
        usual: MaskForm = "labels" if form in ("parquet", "arrow") else "mask"
        return self._replace(mask_form=self.mask_form or usual)

    def layout(self, dtype: str, tokenizer: str) -> Layout:
        """How shards have it."""
        return Layout(dtype, tokenizer, self.pack, self.mask_form, bool(self.position_ids), self.padding)


def may_lack_tokens(tokenizer: Tokenizer) -> bool:
    """Whether a part of a text may have no token. llama.cpp gives -1 for it, which is no id to be trained on."""
    return tokenizer.unk_id is None and not tokenizer.vocabulary.tokenizer_model.has_pre_tokenizer


def mask_parts(mask: bool | Collection[AssistantPart]) -> list[AssistantPart] | None:
    """The wanted parts of the assistant's turns in a fixed order, since the manifest has them; None for no mask."""
    if isinstance(mask, bool):
        return sorted(ALL_PARTS) if mask else None
    return sorted(set(mask))
