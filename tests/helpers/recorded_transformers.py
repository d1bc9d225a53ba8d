"""Recorded answers of transformers to chats, in place of the package (tests/makers/record_transformers.py)."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from record_chats import BOS, EOS, read_chats
from record_transformers import key_of

from ggufbpe import Tokenizer
from ggufbpe.analysis.oracles.chat_answers import Refused
from ggufbpe.analysis.oracles.oracle import Failure
from ggufbpe.analysis.oracles.transformers_oracle import TransformersOracle


@functools.cache
def recorded_transformers() -> dict[str, Any]:
    """The recorded file."""
    return read_chats("transformers")


class RecordedTransformers(TransformersOracle):
    """transformers with a folder that has the given template, asked what `doctor` asked when it was recorded."""

    def __init__(self, tokenizer: Tokenizer, folder: str) -> None:
        self.location = "hf:org/model"
        self.source, self.name, self._child = "org/model", "transformers with org/model", None
        self._ends, self._templates = tokenizer.chats.ends, {"": folder}
        self._ids, self._before = {}, ""
        self.special_tokens = {"bos_token": BOS, "eos_token": EOS}
        self.added_tokens = {}

    def answer(self, question: Mapping[str, Any]) -> dict[str, Any] | Refused | Failure:
        said = recorded_transformers()["asked"][key_of(self._templates[""], question)]
        return Refused(said[0]) if isinstance(said, list) else {"prompt": said, "ids": []}
