"""A vocabulary: everything that a tokenizer needs of a model file, as llama.cpp holds it after loading."""

# No `from __future__ import annotations`: `typing` would compile each annotation of a NamedTuple at every import.

from collections.abc import Callable, Mapping, MutableSequence, Sequence
from typing import TYPE_CHECKING, NamedTuple

from .._util.caller import frames_to_caller
from .._util.llama_cpp_states import FOLLOWED
from .pretokenizers.registry import PreTokenizer

if TYPE_CHECKING:
    from .tokenizer_model import TokenizerModel


class GGUFWarning(UserWarning):
    """A problem in a model file that llama.cpp loads all the same."""


# What a token is and does, as flags; the values are llama.cpp's (include/llama.h: llama_token_attr). They are plain
# integers, not `TokenAttribute`: an enumeration's `|` costs a microsecond, and there are 250,000 tokens.
UNKNOWN, UNUSED, NORMAL, CONTROL, USER_DEFINED, BYTE, LSTRIP, RSTRIP = 1, 2, 4, 8, 16, 32, 128, 256
SPACES = " \t\n\v\f\r"  # what LSTRIP and RSTRIP strip: isspace in the C locale
SPECIAL_TYPES = CONTROL | USER_DEFINED | UNKNOWN  # those of `Vocabulary.special_token_ids`


class Correction(NamedTuple):
    """Something in a file that llama.cpp changes by itself while loading it, so that there is nothing to mend.

    `id` names the kind of correction for programs, and `what` describes it for people. `token` is the id of the token
    that is changed; None if the correction is not about a token.
    """

    id: str
    what: str
    token: int | None = None


Correct = Callable[[Correction], None]


class Vocabulary(NamedTuple):
    """Everything that a tokenizer needs of a model file. `tokens`, `attributes` and `scores` are indexed by token id.

    `tokens`, `token_to_id` and `merges` are `LazyStrings` and `LazyIds` if the compiled engine has read them.

    - `model`: the kind of tokenizer, `tokenizer.ggml.model`
    - `pre`: the name of the pre-tokenizer in force, "" for a `model` without one; `named_pre` is `tokenizer.ggml.pre`
      as in the file, "" if it has none, and `pre_tokenizer` holds patterns and flags
    - `merges`: "left right", by rank
    - `attributes`: flags of `TokenAttribute`; `first_attributes` are those from before special tokens were found by
      their texts (t5 and plamo models)
    - `scores`: float32, in models that have them
    - `special_ids`: the ids of "bos", "eos", "eot", "eom" … "fim_sep", or None; `eog_ids` are those that end a
      generation
    - `special_token_ids`: those of the tokens that are found in text, ascending: control, user-defined and unknown ones
    - `add_bos`, `add_eos`, `add_sep`, `add_space_prefix`: what the file or `pre` wants added to a text; `named_add_bos`
      is `tokenizer.ggml.add_bos_token` as in the file, None if `pre` decides
    - `lowercase`: whether words become lower case, in whitespace and bert models; `strip_accents`: whether they lose
      their accents, in bert models
    - `nfc`, `charsmap`, `remove_extra_whitespaces` (t5 models): whether text is composed first (Unicode's NFC),
      sentencepiece's precompiled map, and whether runs of spaces become one and none stay at the ends
    - `strict_utf8`: whether overlong forms are bytes that are not UTF-8, as from llama.cpp b11739 on
    - `llama_cpp`: the state of llama.cpp whose ids these are (_util/llama_cpp_states.py)
    - `path`, `architecture`, `name`: the file's path, `general.architecture` and `general.name`; "" for what is missing
    - `warnings`: what is wrong in the file though it loads, such as a likely wrong `pre`
    - `corrections`: what llama.cpp changed by itself
    """

    model: str
    pre: str
    pre_tokenizer: PreTokenizer
    tokens: Sequence[str]
    token_to_id: Mapping[str, int]
    attributes: MutableSequence[int]
    merges: Sequence[str]
    special_ids: dict[str, int | None]
    eog_ids: frozenset[int]
    special_token_ids: tuple[int, ...]
    add_bos: bool = False
    add_eos: bool = False
    add_sep: bool = False
    add_space_prefix: bool = False
    lowercase: bool = True
    strip_accents: bool = True
    remove_extra_whitespaces: bool = False
    nfc: bool = False
    strict_utf8: bool = True
    llama_cpp: str = FOLLOWED
    scores: Sequence[float] = ()
    first_attributes: Sequence[int] = ()
    charsmap: bytes = b""
    path: str = ""
    architecture: str = ""
    name: str = ""
    named_pre: str = ""
    named_add_bos: bool | None = None
    warnings: tuple[str, ...] = ()
    corrections: tuple[Correction, ...] = ()

    @property
    def tokenizer_model(self) -> "TokenizerModel":
        """The model that `model` names."""
        from . import tokenizer_model

        return tokenizer_model(self.model)

    @property
    def added(self) -> tuple[list[int], list[int]]:
        """The tokens added before and after a text."""
        return self.tokenizer_model.added(self)

    @property
    def makes_lower_case(self) -> bool:
        """Whether words are lowercased before they are looked up."""
        return self.lowercase and self.tokenizer_model.makes_lower_case

    def __repr__(self) -> str:
        return f"<Vocabulary {self.model} {self.pre} of {len(self.tokens)} tokens>"

    def __deepcopy__(self, memo: dict[int, object]) -> "Vocabulary":
        from copy import copy

        return self._replace(
            tokens=copy(self.tokens),
            token_to_id=copy(self.token_to_id),
            attributes=self.attributes[:],
            merges=copy(self.merges),
            special_ids=dict(self.special_ids),
        )


def emit_warnings(vocabulary: Vocabulary) -> None:
    """Raise a `GGUFWarning` for each of the vocabulary's `warnings`, attributed to the code that opened the file."""
    if vocabulary.warnings:
        import warnings

        level = frames_to_caller()
        for problem in vocabulary.warnings:
            where = f"{vocabulary.path}: " if vocabulary.path else ""
            warnings.warn(f"{where}{problem}", GGUFWarning, stacklevel=level)
