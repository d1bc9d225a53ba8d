"""For transformers: `GGUFTokenizer.from_gguf(path)`, a tokenizer that its models, trainers and collators take.

_transformers_text.py turns texts into its model inputs and back, and _transformers_chat.py does so for chats.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, TypeVar

from .._util.llama_cpp_states import FOLLOWED
from ..gguf.metadata import Overrides
from ..hub.model_location import ModelName
from ..models.vocabulary import LSTRIP, RSTRIP
from ..tokenizer import EngineName, Tokenizer
from ._protocol import library
from ._transformers_chat import ChatPrompts
from ._transformers_frame import ends_by_sep
from ._transformers_text import TextEncoding

_library: Any = library("transformers", "transformers")
VOCABULARY_FILE = "tokenizer.gguf"  # in a folder that `save_pretrained` wrote
_NAMES = ("bos", "eos", "unk", "sep", "pad", "mask")
Self = TypeVar("Self", bound="GGUFTokenizer")


class GGUFTokenizer(ChatPrompts, TextEncoding):
    """A transformers tokenizer with the ids that llama.cpp gives, of a GGUF or of a `ggufbpe.Tokenizer`.

    The vocabulary is that of the file: `add_tokens` raises `ValueError` for a token that the file lacks. `decode`
    gives the text that llama.cpp gives; `clean_up_tokenization_spaces=False` keeps all spaces. Lists of word ids and
    `char_to_token` are those of transformers' fast tokenizers, and missing here.
    """

    vocab_files_names = {"vocab_file": VOCABULARY_FILE}  # noqa: RUF012 - transformers reads it from the class

    def __init__(
        self, vocab_file: Tokenizer | ModelName, *, llama_cpp: str = FOLLOWED, **settings: Any
    ) -> None:
        """Take the tokenizer of a GGUF. `settings` are those of every transformers tokenizer, such as `padding_side`.

        `add_bos_token` and `add_eos_token` are among them; without these, the file decides. Errors are those of
        `ggufbpe.Tokenizer.from_gguf` and of both properties.
        """
        if vocab_file is None:  # what `from_pretrained` gives for a folder of something else
            raise ValueError(
                f"the folder has no {VOCABULARY_FILE}; GGUFTokenizer.from_gguf(path) opens any GGUF"
            )
        if not isinstance(vocab_file, Tokenizer):
            vocab_file = Tokenizer.from_gguf(vocab_file, llama_cpp=llama_cpp)
        self._take(vocab_file)
        for name in ("add_bos_token", "add_eos_token"):
            if (value := settings.pop(name, None)) is not None:
                setattr(self, name, value)
        vocabulary = self.tok.vocabulary
        has_cls = ends_by_sep(vocabulary)
        self._added_tokens_decoder = {
            token: _added_token(self.tok, token) for token in vocabulary.special_token_ids
        }
        defaults: dict[str, Any] = {
            "cls_token" if has_cls and name == "bos" else f"{name}_token": vocabulary.tokens[token]
            for name in _NAMES
            if (token := vocabulary.special_ids[name]) in self._added_tokens_decoder
        }
        defaults["clean_up_tokenization_spaces"] = vocabulary.pre_tokenizer.clean_spaces
        defaults["chat_template"] = self._file_template()
        if has_cls:
            defaults["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
        settings = {**defaults, **settings}
        named = {str(text) for name, text in settings.items() if name.endswith("_token")}
        special = [each.content for each in self._added_tokens_decoder.values() if each.special]
        settings.setdefault("extra_special_tokens", [text for text in special if text not in named])
        super().__init__(llama_cpp=self.tok.llama_cpp, **settings)

    @classmethod
    def from_gguf(
        cls: type[Self],
        path: ModelName,
        *,
        engine: EngineName = "auto",
        overrides: Overrides | None = None,
        llama_cpp: str = FOLLOWED,
        **settings: Any,
    ) -> Self:
        """Open a GGUF by path or name. The arguments and errors are those of `ggufbpe.Tokenizer.from_gguf`."""
        tok = Tokenizer.from_gguf(path, engine, overrides=overrides, llama_cpp=llama_cpp)
        return cls(tok, **{"name_or_path": tok.name, **settings})

    @property
    def vocab_size(self) -> int:
        """The number of tokens."""
        return len(self.tok)

    def __len__(self) -> int:
        """Return the number of tokens."""
        return len(self.tok)

    def get_vocab(self) -> dict[str, int]:
        """Return a new dict from the text of each token, as written in the file, to its id."""
        return self.tok.get_vocab()

    def _convert_token_to_id(self, token: str) -> int | None:
        found = self.tok.token_to_id(token)
        return self.tok.unk_id if found is None else found

    def _convert_id_to_token(self, index: int) -> str:
        return self.tok.id_to_token(index)

    def _add_tokens(self, new_tokens: Sequence[Any], special_tokens: bool = False) -> int:
        for token in map(str, new_tokens):
            if self.tok.token_to_id(token) is None:
                raise ValueError(
                    f"the GGUF has no token {token!r}, and llama.cpp would not find one that is added here"
                )
            if special_tokens and token not in self.all_special_tokens:
                self._extra_special_tokens.append(token)
        return 0

    def save_vocabulary(self, save_directory: str, filename_prefix: str | None = None) -> tuple[str, ...]:
        """Write the metadata of the GGUF, without tensors, as `tokenizer.gguf`; return the path in a tuple.

        `ValueError` if the tokenizer was made from a `Vocabulary` rather than opened from a file.
        """
        name = f"{filename_prefix}-{VOCABULARY_FILE}" if filename_prefix else VOCABULARY_FILE
        path = os.path.join(save_directory, name)
        data = self.tok.to_gguf()
        with open(path, "wb") as file:
            file.write(data)
        return (path,)


def _added_token(tok: Tokenizer, token: int) -> Any:
    """Return transformers' form of a token that is found in a text before the text is split."""
    attribute = tok.vocabulary.attributes[token]
    return _library.AddedToken(
        tok.vocabulary.tokens[token],
        lstrip=bool(attribute & LSTRIP),
        rstrip=bool(attribute & RSTRIP),
        normalized=False,
        special=tok.is_special(token),
    )


class GGUFTokenizerConfig(_library.PreTrainedConfig):  # type: ignore[misc]
    """The configuration class by which `AutoTokenizer` knows `GGUFTokenizer`."""

    model_type = "ggufbpe"


_library.AutoTokenizer.register(GGUFTokenizerConfig, slow_tokenizer_class=GGUFTokenizer, exist_ok=True)
