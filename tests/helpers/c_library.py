"""The C library through ctypes, for tests: the functions of include/ggufbpe.h that they call.

`GGUFBPE_C_LIBRARY` is the path of the shared library; scripts/check_library.sh builds one and runs the tests with it.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache
from typing import Any

from ggufbpe._util.utf8 import is_utf8

LIBRARY = os.environ.get("GGUFBPE_C_LIBRARY", "")
SPECIAL_IDS = ("bos", "eos", "eot", "eom", "unk", "sep", "pad", "mask")
FIM_IDS = ("fim_pre", "fim_suf", "fim_mid", "fim_pad", "fim_rep", "fim_sep")
INVALID_ARGUMENT, IO, INTERRUPTED, TRUNCATED, BUFFER_TOO_SMALL, CANNOT_ENCODE, NO_SUCH_ID, INTERNAL = (
    1,
    3,
    4,
    6,
    10,
    11,
    12,
    13,
)

_Pointer, _Size, _Int = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int32


class _Error(ctypes.Structure):
    _fields_ = (
        ("status", _Int),
        ("message", ctypes.c_char * 404),
        ("key", ctypes.c_char * 104),
        ("offset", ctypes.c_uint64),
        ("needed", ctypes.c_uint64),
    )


class _OpenOptions(ctypes.Structure):
    _fields_ = (("size", _Size), ("cache_bytes", _Size), ("poll", _Pointer), ("poll_context", _Pointer))


class _EncodeOptions(ctypes.Structure):
    _fields_ = (
        ("size", _Size),
        ("add_special", _Int),
        ("parse_special", _Int),
        ("continues", _Int),
        ("threads", _Int),
        ("poll", _Pointer),
        ("poll_context", _Pointer),
        ("is_utf8", _Int),
        ("reserved", _Int),
    )


class _DecodeOptions(ctypes.Structure):
    _fields_ = (("size", _Size), ("remove_special", _Int), ("unparse_special", _Int), ("clean_spaces", _Int))


class _Change(ctypes.Structure):
    _fields_ = (("kept", _Size), ("removed", _Size), ("inserted", _Size))


Poll = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
Read = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t)


class CLibraryError(Exception):
    """A call that failed, with what the library says of it."""

    def __init__(self, error: _Error) -> None:
        self.status: int = error.status
        self.key: str = error.key.decode()
        self.offset: int = error.offset
        self.needed: int = error.needed
        super().__init__(error.message.decode())


@cache
def library() -> Any:
    """The shared library, with the types of what is not an int."""
    loaded = ctypes.CDLL(LIBRARY)
    for name in ("encoding_new", "encoding_ids", "encoding_spans", "growing_text_ids"):
        getattr(loaded, f"ggufbpe_{name}").restype = _Pointer
    for name in ("encoding_count", "vocabulary_size", "growing_text_count", "warning_count"):
        getattr(loaded, f"ggufbpe_{name}").restype = _Size
    for name in ("error_message", "model_name", "pre_tokenizer_name", "warning"):
        getattr(loaded, f"ggufbpe_{name}").restype = ctypes.c_char_p
    loaded.ggufbpe_open_callback.argtypes = (Read, _Pointer, ctypes.c_uint64, _Pointer, _Pointer, _Pointer)
    return loaded


def called(name: str, *arguments: object) -> None:
    """Call a function whose last parameter is an error. Raises `CLibraryError`."""
    error = _Error()
    error.message = b"not set"
    status = getattr(library(), f"ggufbpe_{name}")(*arguments, ctypes.byref(error))
    if status:
        assert status == error.status
        assert error.message not in (b"", b"not set")
        raise CLibraryError(error)


def _options(
    add_special: bool, parse_special: bool, continues: bool, threads: int, poll: Any, text: bytes = b""
) -> Any:
    pointer = ctypes.cast(poll, _Pointer) if poll else None
    known = len(text) % 2 == 1 and is_utf8(text)  # of half of the texts, which are not checked then
    return ctypes.byref(
        _EncodeOptions(
            ctypes.sizeof(_EncodeOptions),
            add_special,
            parse_special,
            continues,
            threads,
            pointer,
            None,
            known,
        )
    )


def _bytes(fill: Callable[[Any, Any, Any], None]) -> bytes:
    """What a function writes into a buffer that is first empty and then as large as it says."""
    size = _Size(0)
    try:
        fill(None, _Size(0), ctypes.byref(size))
    except CLibraryError as error:
        if error.status != BUFFER_TOO_SMALL:
            raise
    buffer = ctypes.create_string_buffer(size.value + 1)
    fill(buffer, size, ctypes.byref(size))
    return buffer.raw[: size.value]


class CTokenizer:
    """A tokenizer of the C library, with some names of `ggufbpe.Tokenizer`."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle
        self._encoding = _Pointer(library().ggufbpe_encoding_new())

    @classmethod
    def open_file(cls, path: str | os.PathLike[str]) -> CTokenizer:
        handle = _Pointer()
        called("open_file", os.fsencode(path), None, ctypes.byref(handle))
        return cls(handle)

    @classmethod
    def open_buffer(cls, data: bytes) -> CTokenizer:
        handle = _Pointer()
        called("open_buffer", data, _Size(len(data)), None, ctypes.byref(handle))
        return cls(handle)

    @classmethod
    def open_callback(cls, read: Callable[[int, int], bytes | None], size: int = 2**64 - 1) -> CTokenizer:
        def fill(_context: Any, offset: int, to: int, count: int) -> int:
            data = read(offset, count)
            if data is None:
                return -1
            ctypes.memmove(to, data, len(data))
            return len(data)

        handle, callback = _Pointer(), Read(fill)
        called("open_callback", callback, None, size, None, ctypes.byref(handle))
        return cls(handle)

    def close(self) -> None:
        library().ggufbpe_encoding_free(self._encoding)
        library().ggufbpe_close(self.handle)

    def __enter__(self) -> CTokenizer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def encode(
        self,
        text: bytes,
        add_special: bool = True,
        parse_special: bool = True,
        continues: bool = False,
        threads: int = 1,
        poll: Any = None,
    ) -> list[int]:
        options = _options(add_special, parse_special, continues, threads, poll, text)
        called("encode", self.handle, text, _Size(len(text)), options, self._encoding)
        return self._ids()

    def encode_with_offsets(
        self, text: bytes, add_special: bool = True, parse_special: bool = True
    ) -> tuple[list[int], list[tuple[int, int]]]:
        options = _options(add_special, parse_special, False, 1, None, text)
        called("encode_with_offsets", self.handle, text, _Size(len(text)), options, self._encoding)
        ids = self._ids()
        place = library().ggufbpe_encoding_spans(self._encoding)
        numbers = list((ctypes.c_int64 * (2 * len(ids))).from_address(place)) if ids else []
        return ids, list(zip(numbers[::2], numbers[1::2]))

    def count(
        self, text: bytes, add_special: bool = True, parse_special: bool = True, threads: int = 1
    ) -> int:
        count = _Size()
        options = _options(add_special, parse_special, False, threads, None, text)
        called("count", self.handle, text, _Size(len(text)), options, ctypes.byref(count))
        return count.value

    def find_split_point(self, text: bytes, start: int, parse_special: bool = True) -> int:
        place = _Size()
        options = _options(True, parse_special, False, 1, None)
        called(
            "find_split_point",
            self.handle,
            text,
            _Size(len(text)),
            _Size(start),
            options,
            ctypes.byref(place),
        )
        return place.value

    def decode(
        self,
        ids: list[int],
        remove_special: bool = False,
        unparse_special: bool = False,
        clean_spaces: bool = True,
    ) -> bytes:
        array = (_Int * len(ids))(*ids)
        flags = _DecodeOptions(ctypes.sizeof(_DecodeOptions), remove_special, unparse_special, clean_spaces)
        options = ctypes.byref(flags)

        def fill(buffer: Any, capacity: Any, size: Any) -> None:
            called("decode", self.handle, array, _Size(len(ids)), options, buffer, capacity, size)

        return _bytes(fill)

    def decode_stream(
        self, ids: list[int], remove_special: bool = False, unparse_special: bool = False
    ) -> list[str]:
        """What each id settles, and the rest."""
        stream, text, size = _Pointer(), _Pointer(), _Size()
        flags = _DecodeOptions(ctypes.sizeof(_DecodeOptions), remove_special, unparse_special, True)
        called("decode_stream_new", self.handle, ctypes.byref(flags), ctypes.byref(stream))
        found = []
        out = ctypes.byref(text), ctypes.byref(size)
        for token in ids:
            called("decode_stream_push", stream, _Int(token), *out)
            found.append(ctypes.string_at(text.value or 0, size.value).decode())
        called("decode_stream_finish", stream, *out)
        found.append(ctypes.string_at(text.value or 0, size.value).decode())
        library().ggufbpe_decode_stream_free(stream)
        return found

    def token_to_piece(self, token: int, special: bool = True) -> bytes:
        return _bytes(lambda *rest: called("token_piece", self.handle, _Int(token), _Int(special), *rest))

    def token_text(self, token: int) -> str:
        text, size = _Pointer(), _Size()
        called("token_text", self.handle, _Int(token), ctypes.byref(text), ctypes.byref(size))
        return ctypes.string_at(text.value or 0, size.value).decode()

    def find_token(self, text: str) -> int:
        data = text.encode()
        return int(library().ggufbpe_find_token(self.handle, data, _Size(len(data))))

    def facts(self) -> dict[str, Any]:
        """What loading found, for comparison with a vocabulary of the Python package."""
        loaded, size = library(), library().ggufbpe_vocabulary_size(self.handle)
        special = [
            loaded.ggufbpe_special_id(self.handle, number) for number in range(len(SPECIAL_IDS + FIM_IDS))
        ]
        ids = range(size)
        return {
            "model": loaded.ggufbpe_model_name(self.handle).decode(),
            "pre": loaded.ggufbpe_pre_tokenizer_name(self.handle).decode(),
            "tokens": [self.token_text(token) for token in ids],
            "attributes": [loaded.ggufbpe_token_attributes(self.handle, token) for token in ids],
            "special_ids": {name: None if i < 0 else i for name, i in zip(SPECIAL_IDS + FIM_IDS, special)},
            "eog_ids": {token for token in ids if loaded.ggufbpe_is_end_of_generation(self.handle, token)},
            "adds": [bool(loaded.ggufbpe_adds_bos(self.handle)), bool(loaded.ggufbpe_adds_eos(self.handle))],
        }

    def warnings(self) -> list[str]:
        count = library().ggufbpe_warning_count(self.handle)
        return [library().ggufbpe_warning(self.handle, _Size(index)).decode() for index in range(count)]

    def _ids(self) -> list[int]:
        count = library().ggufbpe_encoding_count(self._encoding)
        place = library().ggufbpe_encoding_ids(self._encoding)
        return list((_Int * count).from_address(place)) if count else []


class CGrowingText:
    """A growing text of the C library."""

    def __init__(self, tokenizer: CTokenizer, add_special: bool = True, parse_special: bool = True) -> None:
        self._handle = _Pointer()
        options = _options(add_special, parse_special, False, 1, None)
        called("growing_text_new", tokenizer.handle, options, ctypes.byref(self._handle))

    def append(self, text: bytes) -> tuple[int, int, int]:
        change = _Change()
        called("growing_text_append", self._handle, text, _Size(len(text)), ctypes.byref(change))
        return change.kept, change.removed, change.inserted

    @property
    def ids(self) -> list[int]:
        count = library().ggufbpe_growing_text_count(self._handle)
        place = library().ggufbpe_growing_text_ids(self._handle)
        return list((_Int * count).from_address(place)) if count else []

    def close(self) -> None:
        library().ggufbpe_growing_text_free(self._handle)


def facts_of(vocabulary: Any) -> dict[str, Any]:
    """The facts that `CTokenizer.facts` gives, of a vocabulary that the Python package loaded."""
    return {
        "model": vocabulary.model,
        "pre": vocabulary.pre,
        "tokens": list(vocabulary.tokens),
        "attributes": list(map(int, vocabulary.attributes)),
        "special_ids": vocabulary.special_ids,
        "eog_ids": set(vocabulary.eog_ids),
        "adds": [vocabulary.add_bos, vocabulary.add_eos],
    }
