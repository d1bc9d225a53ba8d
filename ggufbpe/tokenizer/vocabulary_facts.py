"""Gives `Tokenizer` its read-only attributes about the vocabulary, and tokens by id and text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, SupportsIndex, TypeVar, overload

from .._util.arguments import integer
from .._util.lazy import cached_property
from ..gguf.constants import TokenizerKey as Key
from ..models.vocabulary import CONTROL, UNKNOWN, Vocabulary
from ..native.lazy_strings import as_dict

if TYPE_CHECKING:
    from ..models.token_attribute import TokenAttribute

T = TypeVar("T")
if TYPE_CHECKING:
    from . import Tokenizer

    Self = TypeVar("Self", bound="Tokenizer")
else:
    Self = TypeVar("Self")  # `typing` would compile the bound, in each short command


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


def _special_text(name: str, key: str) -> Fact[str | None]:
    def read(vocabulary: Vocabulary) -> str | None:
        token = vocabulary.special_ids[name]
        return None if token is None else vocabulary.tokens[token]

    return Fact(
        f"The text of the {name.upper()} token as written in the file; None if there is none.", read, key
    )


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

    bos_token = _special_text("bos", Key.BOS_ID)
    eos_token = _special_text("eos", Key.EOS_ID)
    eot_token = _special_text("eot", Key.EOT_ID)
    eom_token = _special_text("eom", Key.EOM_ID)
    unk_token = _special_text("unk", Key.UNK_ID)
    sep_token = _special_text("sep", Key.SEP_ID)
    pad_token = _special_text("pad", Key.PAD_ID)
    mask_token = _special_text("mask", Key.MASK_ID)
    special_ids = Fact(
        "The ids of the special tokens by name, such as `bos` and `fim_pre`, as a new dict; missing ones are left out.",
        lambda vocabulary: {
            name: token for name, token in vocabulary.special_ids.items() if token is not None
        },
    )

    @cached_property
    def control_ids(self) -> frozenset[int]:
        """The ids of the control tokens, which `encode` yields from text only with `parse_special`."""
        attributes = self._vocabulary.attributes
        return frozenset(token for token, attribute in enumerate(attributes) if attribute & CONTROL)

    def __len__(self) -> int:
        """Return the number of tokens."""
        return self.vocab_size

    def get_vocab(self) -> dict[str, int]:
        """Return a new dict from the text of each token, as written in the file, to its id."""
        return as_dict(self.vocabulary.token_to_id).copy()

    def is_special(self, token: SupportsIndex) -> bool:
        """Whether `decode` leaves `token` out unless `unparse_special` is set: a control token or the unknown one.

        `special_ids` differ: they list ids by role, such as BOS, and may include ordinary tokens.
        """
        return bool(self.vocabulary.attributes[self._checked(token)] & (CONTROL | UNKNOWN))

    def is_eog(self, token: SupportsIndex) -> bool:
        """Whether the token ends a generation, as llama_vocab_is_eog tells."""
        return self._checked(token) in self.vocabulary.eog_ids

    def token_to_id(self, token: str) -> int | None:
        """The id of the token with this text, as written in the file (byte-level: "Ġworld"); None if there is none."""
        if not isinstance(token, str):
            raise TypeError(f"a token is a str, not {type(token).__name__}")
        return self.vocabulary.token_to_id.get(token)

    def id_to_token(self, token: SupportsIndex) -> str:
        """The text of a token as written in the file; `token_to_piece` gives what it decodes to."""
        return self.vocabulary.tokens[self._checked(token)]

    def token_attributes(self, token: SupportsIndex) -> TokenAttribute:
        """The token's attributes, as llama_token_get_attr gives them."""
        from ..models.token_attribute import TokenAttribute

        return TokenAttribute(self.vocabulary.attributes[self._checked(token)])

    def _checked(self, token: SupportsIndex) -> int:
        if not 0 <= (number := integer("a token id", token)) < self.vocab_size:
            raise ValueError(
                f"token id {token} is out of range: the vocabulary has ids 0 to {self.vocab_size - 1}"
            )
        return number


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
