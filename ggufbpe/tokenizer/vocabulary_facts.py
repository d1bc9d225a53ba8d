"""Gives `Tokenizer` its read-only attributes about the vocabulary, and tokens by id and text."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Generic, TypeVar, overload

from ..gguf.constants import TokenizerKey as Key
from ..models.vocabulary import TokenAttribute, Vocabulary

T = TypeVar("T")


class Fact(Generic[T]):
    """A read-only attribute, computed from the vocabulary; assigning to it raises an `AttributeError`."""

    def __init__(self, doc: str, read: Callable[[Vocabulary], T], key: str | None = None) -> None:
        self.__doc__ = doc
        self._read = read
        self._key = key

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, tokenizer: None, owner: type) -> Fact[T]: ...
    @overload
    def __get__(self, tokenizer: VocabularyFacts, owner: type) -> T: ...
    def __get__(self, tokenizer: VocabularyFacts | None, owner: type) -> Fact[T] | T:
        return self if tokenizer is None else self._read(tokenizer._vocabulary)

    def __delete__(self, tokenizer: VocabularyFacts) -> None:
        self.__set__(tokenizer)

    def __set__(self, tokenizer: VocabularyFacts, value: None = None) -> None:
        raise AttributeError(
            f"{self._name} cannot be changed"
            + (f"; with_overrides({{{self._key!r}: ...}}) gives a changed tokenizer" if self._key else "")
        )


def _special_id(name: str, key: str, meaning: str) -> Fact[int | None]:
    doc = f"The id of the {name.upper()} token ({meaning}); None if there is none."
    return Fact(doc, lambda vocabulary: vocabulary.special_ids[name], key)


class VocabularyFacts:
    """The base of `Tokenizer`: facts about its vocabulary, under llama.cpp's names."""

    _vocabulary: Vocabulary

    vocabulary = Fact(
        "Everything that was read from the model file, a `Vocabulary`.", lambda vocabulary: vocabulary
    )
    llama_cpp = Fact(
        "The state of llama.cpp whose ids these are, such as `b11739`.",
        lambda vocabulary: vocabulary.llama_cpp,
    )
    model = Fact(
        "The kind of tokenizer, `tokenizer.ggml.model`.", lambda vocabulary: vocabulary.model, Key.MODEL
    )
    pre = Fact(
        "The name of the pre-tokenizer in force, `tokenizer.ggml.pre`.",
        lambda vocabulary: vocabulary.pre,
        Key.PRE,
    )
    vocab_size = Fact("The number of tokens.", lambda vocabulary: len(vocabulary.tokens))
    add_bos = Fact(
        "Whether `encode` puts BOS before a text.", lambda vocabulary: vocabulary.add_bos, Key.ADD_BOS
    )
    add_eos = Fact(
        "Whether `encode` puts EOS after a text.", lambda vocabulary: vocabulary.add_eos, Key.ADD_EOS
    )
    eog_ids = Fact(
        "The ids of the tokens that end a generation, a frozenset.", lambda vocabulary: vocabulary.eog_ids
    )
    bos_id = _special_id("bos", Key.BOS_ID, "beginning of the sequence")
    eos_id = _special_id("eos", Key.EOS_ID, "end of the sequence")
    eot_id = _special_id("eot", Key.EOT_ID, "end of a turn")
    eom_id = _special_id("eom", Key.EOM_ID, "end of a message")
    unk_id = _special_id("unk", Key.UNK_ID, "unknown")
    sep_id = _special_id("sep", Key.SEP_ID, "separator")
    pad_id = _special_id("pad", Key.PAD_ID, "padding")
    mask_id = _special_id("mask", Key.MASK_ID, "masked")
    fim_pre_id = _special_id("fim_pre", Key.FIM_PRE_ID, "fill in the middle: before the prefix")
    fim_suf_id = _special_id("fim_suf", Key.FIM_SUF_ID, "fill in the middle: before the suffix")
    fim_mid_id = _special_id("fim_mid", Key.FIM_MID_ID, "fill in the middle: where the middle begins")
    fim_pad_id = _special_id("fim_pad", Key.FIM_PAD_ID, "fill in the middle: padding")
    fim_rep_id = _special_id("fim_rep", Key.FIM_REP_ID, "fill in the middle: name of the repository")
    fim_sep_id = _special_id("fim_sep", Key.FIM_SEP_ID, "fill in the middle: between files")

    def token_to_id(self, token: str) -> int | None:
        """The id of the token with this text, as written in the file (byte-level: "Ġworld"); None if there is none."""
        if not isinstance(token, str):
            raise TypeError(f"a token is a str, not {type(token).__name__}")
        return self.vocabulary.token_to_id.get(token)

    def id_to_token(self, token: int) -> str:
        """The text of a token as written in the file; `token_to_piece` gives what it decodes to."""
        return self.vocabulary.tokens[self._checked(token)]

    def token_attributes(self, token: int) -> TokenAttribute:
        """The token's attributes, as llama_token_get_attr gives them."""
        return TokenAttribute(self.vocabulary.attributes[self._checked(token)])

    def _checked(self, token: int) -> int:
        if not 0 <= operator.index(token) < self.vocab_size:
            raise ValueError(
                f"token id {token} is out of range: the vocabulary has ids 0 to {self.vocab_size - 1}"
            )
        return operator.index(token)


def content_bytes(vocabulary: Vocabulary) -> bytes:
    """Return the content of a vocabulary that was made in memory, as bytes that are equal for equal vocabularies."""
    import io
    import pickle

    fields = vocabulary._replace(path="", warnings=(), corrections=())._asdict()
    del fields["token_to_id"]  # follows from the tokens
    fields["eog_ids"] = sorted(vocabulary.eog_ids)
    for name in ("tokens", "attributes", "merges", "scores", "first_attributes"):
        fields[name] = list(fields[name])  # whatever sequence it is
    data = io.BytesIO()
    pickler = pickle.Pickler(data, 5)
    pickler.fast = True  # strings that are one object are written like equal ones
    pickler.dump(fields)
    return data.getvalue()
