"""Edits of the vocabulary itself: tokens that are added, removed, renamed or given another type.

All lists that have an entry for each token change together, with the ids that other keys hold. A model has a row for
each token in some of its tensors (src/llama-model.cpp, llama_model_base::load_tensors: `n_vocab` is the number of
tokens), so only a file without such tensors can get more or fewer tokens.
"""

from __future__ import annotations

import bisect
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .._util.errors import TensorError, printable
from .._util.utf8 import has_utf8
from .._util.wording import counted
from .constants import KEY_ARCHITECTURE, GGUFValueType, TokenizerKey, TokenType
from .edit import Edit
from .merges import parts
from .reader import GGUFFile
from .schema import ID_KEYS
from .tensors import tensor_infos

_T, _K = GGUFValueType, TokenizerKey
_ADDED_SCORE = -1000.0  # convert_hf_to_gguf.py, _create_vocab_sentencepiece: the score of an added token
_SHOWN_TENSORS = 4
USUAL_ADDED = TokenType.USER_DEFINED.name  # the type of an added token that is not special, in that script

Token = int | str  # by its id or its text
Tokens = int | str | range  # or all ids of a range


@dataclass(frozen=True)
class TokenChanges:
    """What is to change about tokens; false if nothing.

    Ids are those of the file as it is; tokens are renamed first, then added (with the ids behind the last one), then
    given types, then removed.
    """

    rename: Collection[tuple[Token, str]] = ()
    add: Collection[tuple[str, str | TokenType]] = ()
    types: Collection[tuple[Tokens, str | TokenType]] = ()
    remove: Collection[Token] = ()

    def __bool__(self) -> bool:
        return bool(self.rename or self.add or self.types or self.remove)


def token_edits(file: GGUFFile, changes: TokenChanges, given: Collection[str] = ()) -> list[Edit]:
    """The edits that make these changes, in the lists of tokens, types, scores and merges and in keys that hold ids.

    Keys in `given` get their value elsewhere, and are left alone. Removing a token moves the ids behind it. Merges
    that make or use a removed token go with it. `ValueError` for tokens that do not exist or exist already, for
    those that stand for a byte, and for a removed token that another key names; `TensorError` where tensors would have
    to change.
    """
    table = _TokenTable(file)
    for token, text in changes.rename:
        table.rename(table.index(token), text)
    if changes.add or changes.remove:
        table.fit()
    for text, kind in changes.add:
        table.add(text, _token_type(kind))
    for tokens, kind in changes.types:
        table.set_type(tokens, _token_type(kind))
    removed = {table.index(token) for token in changes.remove}
    if removed or changes.add:
        _require_no_rows(file, table.size_before)
    moved = _moved_ids(file, removed, given) if removed else []
    table.remove(removed)
    edits = [*table.edits(), *moved]
    size_key = f"{file[KEY_ARCHITECTURE]}.vocab_size" if KEY_ARCHITECTURE in file else ""
    if len(table.texts) != table.size_before and size_key in file and size_key not in given:
        edits.append(Edit(size_key, file.value_type(size_key), len(table.texts)))
    return edits


def set_token_types(file: GGUFFile, types: Iterable[tuple[Tokens, str | TokenType]]) -> Edit:
    """The edit of `tokenizer.ggml.token_type` that gives tokens these types, by name or number, in order.

    If the file has no types, all other tokens are normal, as without the key. `ValueError` for tokens and types
    that do not exist.
    """
    (edit,) = token_edits(file, TokenChanges(types=list(types)))
    return edit


class _TokenTable:
    """The tokens of a file with what it has for each of them."""

    def __init__(self, file: GGUFFile) -> None:
        self.texts: list[str] = string_array(file, _K.LIST)
        self.size_before = len(self.texts)
        types = _list(file, _K.TOKEN_TYPE, _T.INT32) if _K.TOKEN_TYPE in file else []
        self._types = types + [int(TokenType.NORMAL)] * (len(self.texts) - len(types))
        self._file = file
        self._changed: set[str] = set()
        self._ids: dict[str, int] | None = None

    # Types change often, as proposals, and need neither scores nor merges.

    @cached_property
    def _scores(self) -> list[Any]:
        if _K.SCORES not in self._file:
            return []
        return _list(self._file, _K.SCORES, _T.FLOAT32, _T.INT32)

    @cached_property
    def _merges(self) -> list[str]:
        return string_array(self._file, _K.MERGES) if _K.MERGES in self._file else []

    @cached_property
    def _in_merges(self) -> set[str]:
        """The tokens that merges make or use."""
        return {text for merge in self._merges for text in _tokens_of(merge)}

    @cached_property
    def _score_type(self) -> GGUFValueType | None:
        return self._file.element_type(_K.SCORES)

    def index(self, token: Token) -> int:
        """The id of a token; `ValueError` if there is none."""
        if isinstance(token, str):
            found = self._by_text().get(token)
            if found is None:
                raise ValueError(f"the file has no token {printable(token)}")
            return found
        if not 0 <= token < len(self.texts):
            raise ValueError(
                f"token id {token} is out of range: the vocabulary has ids 0 to {len(self.texts) - 1}"
            )
        return token

    def _by_text(self) -> dict[str, int]:
        """The first id of each text."""
        if self._ids is None:
            self._ids = {}
            for index, text in enumerate(self.texts):
                self._ids.setdefault(text, index)
        return self._ids

    def fit(self) -> None:
        """Give the lists an entry for each token, and none beyond: llama.cpp accepts longer ones."""
        size = len(self.texts)
        if len(self._types) > size:
            self._types = self._types[:size]
            self._changed.add(_K.TOKEN_TYPE)
        if self._scores and len(self._scores) != size:
            zero = 0.0 if self._score_type is _T.FLOAT32 else 0
            self._scores = self._scores[:size] + [zero] * (size - len(self._scores))
            self._changed.add(_K.SCORES)

    def rename(self, index: int, text: str) -> None:
        """Give a token another text."""
        old = self.texts[index]
        self._require_new(text)
        self._require_no_byte(index, "renamed")
        if old in self._in_merges:
            raise ValueError(
                f"merges make or use the token {printable(old)}, so it cannot be renamed: it would never come out"
            )
        self.texts[index] = text
        self._ids = None  # an equal text may stand at another id
        self._changed.add(_K.LIST)

    def add(self, text: str, kind: TokenType) -> None:
        """Add a token behind the last one."""
        self._require_new(text)
        if kind is TokenType.BYTE:
            raise ValueError(
                f"{printable(text)} cannot be of type BYTE: a vocabulary that has such tokens has all of them"
            )
        self._by_text()[text] = len(self.texts)
        self.texts.append(text)
        self._types.append(int(kind))
        self._changed |= {_K.LIST, _K.TOKEN_TYPE}
        if self._scores:
            is_float = self._score_type is _T.FLOAT32
            self._scores.append(_ADDED_SCORE if is_float else int(_ADDED_SCORE))
            self._changed.add(_K.SCORES)

    def set_type(self, tokens: Tokens, kind: TokenType) -> None:
        """Give one token, or all of a range, a type."""
        ids = tokens if isinstance(tokens, range) else range(self.index(tokens), self.index(tokens) + 1)
        if not ids:
            raise ValueError(f"there are no ids from {ids.start} to {ids.stop - 1}")
        for end in (ids[0], ids[-1]):
            self.index(end)  # which must be there
        for index in ids:
            self._types[index] = int(kind)
        self._changed.add(_K.TOKEN_TYPE)

    def remove(self, removed: set[int]) -> None:
        """Remove tokens, with the merges that make or use them."""
        if not removed:
            return
        for index in sorted(removed):
            self._require_no_byte(index, "removed")
        gone = {self.texts[index] for index in removed}
        kept = [index for index in range(len(self.texts)) if index not in removed]
        if not kept:
            raise ValueError("a vocabulary needs a token")
        self.texts = [self.texts[index] for index in kept]
        self._types = [self._types[index] for index in kept]
        self._changed |= {_K.LIST, _K.TOKEN_TYPE}
        if self._scores:
            self._scores = [self._scores[index] for index in kept]
            self._changed.add(_K.SCORES)
        merges = [merge for merge in self._merges if gone.isdisjoint(_tokens_of(merge))]
        if len(merges) != len(self._merges):
            self._merges = merges
            self._changed.add(_K.MERGES)

    def edits(self) -> list[Edit]:
        """The edits of the lists that have changed."""
        found = []
        for key in (_K.LIST, _K.TOKEN_TYPE, _K.SCORES, _K.MERGES):
            if key in self._changed:
                values, element = self._list_of(key)
                found.append(Edit(key, _T.ARRAY, values, element) if values else Edit(key))
        return found

    def _list_of(self, key: str) -> tuple[list[Any], GGUFValueType | None]:
        if key == _K.SCORES:
            return self._scores, self._score_type
        if key == _K.TOKEN_TYPE:
            return self._types, _T.INT32
        return (self.texts if key == _K.LIST else self._merges), _T.STRING

    def _require_new(self, text: str) -> None:
        if not text:
            raise ValueError("a token needs a text; llama.cpp gives an empty one another")
        if not has_utf8(text):
            raise ValueError(f"the text of a token must be UTF-8: {printable(text)}")
        if (index := self._by_text().get(text)) is not None:
            raise ValueError(f"the file already has the token {printable(text)}, with the id {index}")

    def _require_no_byte(self, index: int, done: str) -> None:
        """`ValueError` for a token without which some bytes could not be encoded."""
        text = self.texts[index]
        is_letter = bool(self._merges) and len(text) == 1 and self._types[index] == TokenType.NORMAL
        if self._types[index] == TokenType.BYTE or is_letter:
            raise ValueError(f"the token {printable(text)} stands for a byte, so it cannot be {done}")


def _tokens_of(merge: str) -> tuple[str, str, str]:
    """The two tokens of a merge, and the one that it makes."""
    first, second = parts(merge)
    return first, second, first + second


def _moved_ids(file: GGUFFile, removed: set[int], given: Collection[str]) -> list[Edit]:
    """The edits of keys that hold ids, after tokens have been removed; ids of no token, such as 2**32 - 1, stay."""
    before, size = sorted(removed), file.array_length(_K.LIST)

    def moved(token: int) -> int:
        return token - bisect.bisect_left(before, token) if 0 <= token < size else token

    edits = []
    for key in [key for key in ID_KEYS if key in file and key not in given]:
        token = file[key]
        if token in removed:
            raise ValueError(f"{key} is {token}, a token that is removed: set another id, or remove the key")
        if isinstance(token, int) and moved(token) != token:
            edits.append(Edit(key, file.value_type(key), moved(token)))
    key = _K.SUPPRESS_TOKENS
    if key in file and key not in given:
        suppressed = _list(file, key, _T.INT32)
        left = [moved(token) for token in suppressed if token not in removed]
        if left != suppressed:
            edits.append(Edit(key, _T.ARRAY, left, _T.INT32) if left else Edit(key))
    return edits


def _require_no_rows(file: GGUFFile, size: int) -> None:
    """`TensorError` if tensors have a row for each of `size` tokens, or may have one in another shard."""
    named = [info for info in tensor_infos(file) if size in info.shape]
    shown = [f"{info.called} ({info.dimensions})" for info in named[:_SHOWN_TENSORS]]
    if len(named) > len(shown):
        shown.append(f"{len(named) - len(shown)} more")
    if file.part_count > 1:
        shown.append(f"those of the other {counted(file.part_count - 1, 'shard')}")
    if shown:
        raise TensorError(
            f"tensors have a row for each of the {size} tokens and would have to change: {', '.join(shown)}",
            path=file.path,
            remedy="rename a token that is not used, which no tensor needs, or add the tokens before the conversion",
        )


def _token_type(kind: str | TokenType) -> TokenType:
    if isinstance(kind, str) and kind not in TokenType.__members__:
        raise ValueError(
            f"{printable(kind)} is not a token type; there are {', '.join(TokenType.__members__)}"
        )
    return TokenType[kind] if isinstance(kind, str) else TokenType(kind)


def string_array(file: GGUFFile, key: str) -> list[str]:
    """The strings of an array; `ValueError` if the file has no such array."""
    return _list(file, key, _T.STRING)


def _list(file: GGUFFile, key: str, *elements: GGUFValueType) -> list[Any]:
    """The elements of an array, which are of one of these types; `ValueError` if the file has no such array."""
    if key not in file or file.element_type(key) not in elements:
        raise ValueError(f"the file has no {key} that is an array of {elements[0].name}")
    value = file[key]
    assert isinstance(value, list)
    return list(value)
