"""For mistral-common: a `Tokenizer` of its interface."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..tokenizer import Tokenizer as GGUFTokenizer
from ._protocol import checked, library

_base = library("mistral_common.tokens.tokenizers.base", "mistral-common")
_Base: Any = _base.Tokenizer
_Policy: Any = _base.SpecialTokenPolicy


def tokenizer(tok: GGUFTokenizer, version: str = "v7") -> MistralTokenizer:
    """Return a `mistral_common` tokenizer. `version` names the form of its prompts, such as "v3" or "v13"."""
    return MistralTokenizer(checked(tok), _base.TokenizerVersion(version))


class MistralTokenizer(_Base):  # type: ignore[misc]
    """The ids of a `ggufbpe.Tokenizer` behind mistral-common's abstract `Tokenizer`."""

    def __init__(self, tok: GGUFTokenizer, version: Any) -> None:
        self.tok = tok
        self._version = version
        self._bos, self._eos = tok.bos_id, tok.eos_id
        self._is_of_sentencepiece = tok.vocabulary.tokenizer_model.has_scores

    n_words = property(lambda self: len(self.tok), doc="The number of tokens.")
    special_ids = property(lambda self: set(self.tok.control_ids), doc="The ids of the control tokens.")
    num_special_tokens = property(lambda self: len(self.tok.control_ids), doc="How many these are.")
    model_settings_builder = property(lambda self: None, doc="None: a GGUF has no model settings.")
    bos_id = property(lambda self: _known(self.tok.bos_id), doc="The id of BOS; -1 if there is none.")
    eos_id = property(lambda self: _known(self.tok.eos_id), doc="The id of EOS; -1 if there is none.")
    pad_id = property(lambda self: _known(self.tok.pad_id), doc="The id of PAD; -1 if there is none.")
    unk_id = property(lambda self: _known(self.tok.unk_id), doc="The id of UNK; -1 if there is none.")
    version = property(lambda self: self._version, doc="The version of its prompts.")
    file_path = property(
        lambda self: Path(self.tok.vocabulary.path),
        doc="The path of the GGUF; Path() of an unpickled tokenizer.",
    )

    def vocab(self) -> list[str]:
        """Return the tokens as written in the file."""
        return list(self.tok.vocabulary.tokens)

    def id_to_piece(self, token_id: int) -> str:
        """Return the piece of a token.

        In a SentencePiece vocabulary that is the token as written in the file, such as "▁Hello" and "<0x0A>". In others
        it is the text of the token, as in mistral-common's own tekken; bytes that are not UTF-8 become U+FFFD.
        """
        if self._is_of_sentencepiece:
            return self.tok.id_to_token(token_id)
        return self.tok.token_to_piece(token_id).decode("utf-8", "replace")

    def encode(self, s: str, bos: bool, eos: bool) -> list[int]:
        """Return the ids of plain text, with BOS and EOS as asked for. `ValueError` if the vocabulary has none."""
        ids = self.tok.encode_ordinary(s)
        if bos:
            ids.insert(0, _required(self._bos, "BOS"))
        if eos:
            ids.append(_required(self._eos, "EOS"))
        return ids

    def decode(self, tokens: list[int], special_token_policy: Any = _Policy.IGNORE) -> str:
        """Return the text of ids. Control tokens are left out, kept, or refused with `ValueError`, by the policy.

        Kept ones stand among the pieces of the other tokens, as in mistral-common. The unknown token is left out like a
        control token, as llama.cpp does; mistral-common writes it as " ⁇ ".
        """
        policy = _Policy.validate(special_token_policy)
        if policy == _Policy.KEEP:
            return self._to_string(tokens)
        if self.tok.control_ids.isdisjoint(tokens):
            return self.tok.decode(tokens)
        if policy == _Policy.RAISE:
            raise ValueError(
                "A control token is among these tokens, and the policy is SpecialTokenPolicy.RAISE."
            )
        return self.tok.decode([token for token in tokens if token not in self.tok.control_ids])

    def get_special_token(self, s: str) -> int:
        """Return the id of a control token. `ValueError` if there is none of this text."""
        token = self.tok.token_to_id(s)
        if token is None or token not in self.tok.control_ids:
            raise ValueError(f"The vocabulary has no control token {s!r}.")
        return token

    def is_special(self, token: Any) -> bool:
        """Whether an id, or the text of a token, is that of a control token."""
        found = self.tok.token_to_id(token) if isinstance(token, str) else int(token)
        return found in self.tok.control_ids

    def _to_string(self, tokens: list[int]) -> str:
        if self._is_of_sentencepiece:
            return "".join(map(self.id_to_piece, tokens))
        return self.tok.decode(tokens, unparse_special=True)


def _known(token: int | None) -> int:
    return -1 if token is None else token


def _required(token: int | None, name: str) -> int:
    if token is None:
        raise ValueError(f"The vocabulary has no {name} token.")
    return token
