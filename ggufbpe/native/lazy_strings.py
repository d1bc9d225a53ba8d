"""The strings of a vocabulary without an object for each: the list and the dictionary are made on first use.

A vocabulary has some 400,000 strings, and most who open one ask for few of them: `LazyStrings` is used as the list of
them, `LazyIds` as the dictionary from a string to its index in the list. Neither changes. The loops of the reference
engine want a real dictionary, which `as_dict` gives.
"""

from __future__ import annotations

import struct
from _weakref import ref  # `weakref` takes longer to import than all else here
from collections import deque
from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, Sequence, ValuesView
from typing import TYPE_CHECKING, Any, TypeVar, overload

from .._util.lazy import IMPORT_LOCK
from . import native

if TYPE_CHECKING:
    from .table_cache import KnownArray

_LENGTH = struct.Struct("<Q")
_SHARED_FROM = 1000  # strings; shorter lists are quickly made
_IN_USE: deque[ref[LazyStrings]] = deque(maxlen=16)  # those that may be shared

_T = TypeVar("_T")


class LazyStrings(Sequence[str]):
    """A list of strings that is kept as a `native.Strings`, or as a `native.PackedStrings` until one of them is needed.

    >>> texts = lazy_strings(["a", "b"])
    >>> texts[1], texts == ["a", "b"]
    ('b', True)
    """

    __slots__ = ("__weakref__", "_digest", "_kept", "_list", "_made", "_strings", "unknown_as")

    def __init__(self, kept: Any, digest: tuple[bytes, bytes] | None = None) -> None:
        """`digest` is a secret, and the digest of the strings under it."""
        self._kept = kept
        self._strings = None if isinstance(kept, compiled().PackedStrings) else kept
        self._digest = digest
        self._list: list[str] | None = None
        self._made: dict[object, Any] = {}
        self.unknown_as: KnownArray | None = None  # where these strings were looked for in vain

    @property
    def strings(self) -> Any:
        """The strings as a `native.Strings`, always the same one."""
        if self._strings is None:
            with IMPORT_LOCK:
                if self._strings is None:
                    self._kept = self._strings = self._kept.strings()
        return self._strings

    def digest(self, secret: bytes) -> bytes:
        """16 bytes that stand for the strings; who does not know the secret cannot make others with the same."""
        known = self._digest
        if known is None or known[0] != secret:
            known = self._digest = secret, self._kept.digest(secret)
        return known[1]

    def has_same(self, other: LazyStrings) -> bool:
        """Whether the strings are those of `other`; digests that both have are compared in place of them."""
        if len(self) != len(other):
            return False
        ours, theirs = self._digest, other._digest
        if ours is not None and theirs is not None and ours[0] == theirs[0]:
            return ours == theirs
        return bool(self.strings == other.strings)

    def to_list(self) -> list[str]:
        """The list, always the same one: do not change it."""
        with IMPORT_LOCK:
            if self._list is None:
                self._list = self.strings.to_list()
            return self._list

    def made_once(self, make: Callable[[LazyStrings], _T]) -> _T:
        """Return what `make` makes of these strings, always the same object: do not change it."""
        with IMPORT_LOCK:
            if make not in self._made:
                self._made[make] = make(self)
            made: _T = self._made[make]
            return made

    def packed(self) -> bytes:
        """The bytes of the strings as they stand in a little-endian GGUF, each after its length."""
        data: bytes = self.strings.packed()
        return data

    def __len__(self) -> int:
        return len(self._kept)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if self._list is not None or isinstance(index, slice):
            return self.to_list()[index]
        text: str = self.strings[index]
        return text

    def __iter__(self) -> Iterator[str]:
        return iter(self.to_list())

    def __reversed__(self) -> Iterator[str]:
        return reversed(self.to_list())

    def __contains__(self, text: object) -> bool:
        return text in self.to_list()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, LazyStrings):
            return self.has_same(other)
        return self.to_list() == other if isinstance(other, list) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as of a list

    def __repr__(self) -> str:
        return repr(self.to_list())

    def __reduce__(self) -> tuple[Any, ...]:
        return unpacked_strings, (len(self), self.packed())

    def __copy__(self) -> LazyStrings:
        return LazyStrings(self._kept, self._digest)  # which do not change

    def __deepcopy__(self, memo: dict[int, Any]) -> LazyStrings:
        return LazyStrings(self._kept, self._digest)


class LazyIds(Mapping[str, int]):
    """The index of each string in a list of different ones, whose `native.Strings` must be indexed.

    >>> ids = lazy_ids(lazy_strings(["a", "b"]))
    >>> ids["b"], ids.get("c"), ids == {"a": 0, "b": 1}
    (1, None, True)
    """

    __slots__ = ("_find", "_texts")

    def __init__(self, texts: LazyStrings) -> None:
        self._texts = texts
        self._find = texts.strings.find

    @property
    def texts(self) -> LazyStrings:
        """The strings, indexed."""
        return self._texts

    def to_dict(self) -> dict[str, int]:
        """The dictionary, always the same one: do not change it."""
        return self._texts.made_once(first_indexes)

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, text: str) -> int:
        index: int = self._find(text) if isinstance(text, str) else -1
        if index < 0:
            raise KeyError(text)
        return index

    def get(self, text: object, default: Any = None) -> Any:
        index = self._find(text) if isinstance(text, str) else -1
        return index if index >= 0 else default

    def __contains__(self, text: object) -> bool:
        return isinstance(text, str) and self._find(text) >= 0

    def __iter__(self) -> Iterator[str]:
        return iter(self.to_dict())

    def keys(self) -> KeysView[str]:
        return self.to_dict().keys()

    def values(self) -> ValuesView[int]:
        return self.to_dict().values()

    def items(self) -> ItemsView[str, int]:
        return self.to_dict().items()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, LazyIds):
            return self._texts == other._texts
        return self.to_dict() == other if isinstance(other, dict) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as of a dict

    def __repr__(self) -> str:
        return repr(self.to_dict())

    def __reduce__(self) -> tuple[Any, ...]:
        return lazy_ids, (self._texts,)


def first_indexes(texts: Sequence[str]) -> dict[str, int]:
    """Return the index of each string; of equal ones, that of the first."""
    found = dict(zip(texts, range(len(texts))))
    if len(found) < len(texts):
        found.update(zip(reversed(texts), range(len(texts) - 1, -1, -1)))
    return found


def finder(texts: Sequence[str]) -> Callable[[str], int]:
    """Return a function that gives the index of a string, of equal ones that of the first; -1 for one that is missing.

    Of `LazyStrings` no dictionary is made, which takes longer than a search needs that asks for few of them.
    """
    if isinstance(texts, LazyStrings):
        texts.strings.index()
        find: Callable[[str], int] = texts.strings.find
        return find
    indexes = first_indexes(texts)
    return lambda text: indexes.get(text, -1)


def made_once(texts: Sequence[str], make: Callable[[Sequence[str]], _T]) -> _T:
    """Return what `make` makes of strings; what it makes of `LazyStrings` is kept, and must not be changed."""
    return texts.made_once(make) if isinstance(texts, LazyStrings) else make(texts)


def shared_strings(texts: LazyStrings) -> LazyStrings:
    """Return those of equal strings that are in use, if there are any; else `texts`.

    Models that are compared mostly have the same tokens and merges.
    """
    if len(texts) < _SHARED_FROM:
        return texts
    with IMPORT_LOCK:
        for reference in _IN_USE.copy():
            known = reference()
            if known is None:
                _IN_USE.remove(reference)
            elif known.has_same(texts):
                return known
        _IN_USE.append(ref(texts))
        return texts


def lazy_strings(texts: list[str]) -> Sequence[str]:
    """`texts` without an object for each; the list itself where there is no compiled engine to keep them."""
    return texts if native is None else LazyStrings(native.Strings.of(texts))


def unpacked_strings(count: int, packed: bytes) -> Sequence[str]:
    """The `count` strings that `LazyStrings.packed` gave the bytes of, as `lazy_strings`."""
    strings = native and native.Strings.scan(packed, 0, len(packed), count, _LENGTH.size, False)
    if strings is not None:
        return LazyStrings(strings)
    texts, position = [], 0
    for _ in range(count):
        start = position + _LENGTH.size
        position = start + _LENGTH.unpack_from(packed, position)[0]
        texts.append(packed[start:position].decode())
    return lazy_strings(texts)


def lazy_ids(texts: Sequence[str]) -> Mapping[str, int]:
    """The index of each of `texts`, which are all different; what `lazy_strings` gave is not made a list."""
    if not isinstance(texts, LazyStrings):
        return dict(zip(texts, range(len(texts))))
    texts.strings.index()
    return LazyIds(texts)


def as_dict(ids: Mapping[str, int]) -> dict[str, int]:
    """`ids` as a dictionary, which must not be changed: it may be the one that `ids` is or has."""
    return ids.to_dict() if isinstance(ids, LazyIds) else ids if isinstance(ids, dict) else {**ids}


def strings_of(texts: Sequence[str]) -> Any:
    """`texts` as the `Strings` of the compiled engine."""
    return kept_strings(texts).strings


def kept_strings(texts: Sequence[str]) -> LazyStrings:
    """`texts` as the compiled engine keeps them."""
    return texts if isinstance(texts, LazyStrings) else LazyStrings(compiled().Strings.of(list(texts)))


def kept_tokens(token_to_id: Mapping[str, int]) -> LazyStrings:
    """What tokens are looked up by, in the order of their ids, ready to be searched."""
    if isinstance(token_to_id, LazyIds):
        return token_to_id.texts
    texts = kept_strings(sorted(token_to_id, key=token_to_id.__getitem__))
    texts.strings.index()
    return texts


def compiled() -> Any:
    """The compiled module; `RuntimeError` where it is not there."""
    if native is None:
        raise RuntimeError("the compiled engine is not installed")
    return native
