"""A corrected copy of a GGUF file: other keys and values, the tensors byte for byte as they were.

    model.gguf + edits -> [this file] -> fixed.gguf

Only the keys that change are packed anew, by the `gguf` package's writer; every other byte is copied in
blocks. The whole file does not go through `GGUFWriter`: it takes tensors as arrays, in its own order and with
its own padding, so a 40 GB model would pass through memory and come out with other bytes. Tensor offsets count
from the beginning of the data section, so the tensor infos stay as they are, and only the padding before that
section is new (ggml/src/gguf.cpp, gguf_init_from_reader).

A file is replaced in one step or not at all: the copy is written beside it under a temporary name, brought to
the disk, opened as a tokenizer, and renamed.

But: files of version 1, whose lengths no writer writes any more, and which llama.cpp no longer reads.
"""

from __future__ import annotations

import os
import re
import struct
import warnings
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import IO, Any, NamedTuple

from .errors import CorruptMetadataError, GGUFError, TruncatedFileError, UnsupportedTokenizerError, printable
from .files import replacing
from .gguf.constants import GGUFValueType, TokenizerKey, TokenType
from .gguf.metadata import Metadata
from .gguf.reader import GGUFFile, Span
from .gguf.schema import ID_KEYS, KEY_TYPES, errors_in
from .vocab import GGUFWarning, load_vocabulary

_T = GGUFValueType
_K = TokenizerKey
_ALIGNMENT = "general.alignment"
_DEFAULT_ALIGNMENT = 32  # GGUF_DEFAULT_ALIGNMENT
_MOST_DIMENSIONS = 4  # GGML_MAX_DIMS

_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class Edit(NamedTuple):
    """One change: `key` gets `value`, or goes where `type` is None."""

    key: str
    type: GGUFValueType | None = None
    value: Any = None
    element: GGUFValueType | None = None  # the element type of an array


_Part = bytes | Span  # new bytes, or those of the source file


# ---- edits ----------------------------------------------------------------------------------------------


def parse_set(file: GGUFFile, argument: str) -> Edit:
    """The edit that `KEY=VALUE` or `KEY=TYPE:VALUE` means in this file; `ValueError` where it means none.

    Without a type, a key has the type that llama.cpp wants for it, else the one it has in the file. The value
    of an array is a JSON list, and TYPE is its elements'.
    """
    key, equals, text = argument.partition("=")
    if not equals or not key:
        raise ValueError(f"{printable(argument)} is not of the form KEY=VALUE")
    name, colon, rest = text.partition(":")
    if colon and name in GGUFValueType.__members__ and name != "ARRAY":
        given = GGUFValueType[name]
        return (
            _array(key, given, rest) if rest.startswith("[") else Edit(key, given, _scalar(key, given, rest))
        )
    known = KEY_TYPES.get(key)
    if isinstance(known, tuple):
        return _array(key, known[0], text)
    if known is None and key not in file:
        raise ValueError(
            f"the file has no key {printable(key)}, so say its type: {key}=TYPE:VALUE, where TYPE is one of "
            + ", ".join(member.name for member in _T if member is not _T.ARRAY)
        )
    if known is None and (element := file.element_type(key)) is not None:
        return _array(key, element, text)
    value_type = known or file.value_type(key)
    return Edit(key, value_type, _scalar(key, value_type, text))


def parse_remove(file: GGUFFile, key: str) -> Edit:
    """The edit that takes `key` out; `ValueError` where the file has no such key."""
    if key not in file:
        import difflib

        near = difflib.get_close_matches(key, file.keys(), n=2)
        raise ValueError(
            f"the file has no key {printable(key)}" + (f"; near: {', '.join(near)}" if near else "")
        )
    return Edit(key)


def argument_for(file: GGUFFile | Metadata, key: str) -> str | None:
    """The VALUE by which `--set` gives `key` its right type and the meaning that its value has now; None: none.

    >>> argument_for(file, "tokenizer.ggml.add_bos_token")  # of type FLOAT32, 1.0    # doctest: +SKIP
    'true'
    """
    wanted = KEY_TYPES[key]
    if wanted not in (_T.BOOL, _T.UINT32):
        return None
    try:
        value = file[key]
    except GGUFError:  # not UTF-8
        return None
    text = str(value).lower() if isinstance(value, (bool, int, str)) else ""
    if isinstance(value, float) and value.is_integer():
        text = str(int(value))
    try:
        found = _scalar(key, wanted, text)
    except ValueError:
        return None
    size = file.array_length(_K.LIST) if _K.LIST in file else 0
    return None if key in ID_KEYS and found >= size else str(found).lower()


def id_ranges(ids: Iterable[int]) -> Iterator[str]:
    """Ascending ids as `set_token_types` takes them: those in a row as the first and the last one.

    >>> list(id_ranges([3, 4, 5, 9]))
    ['3..5', '9']
    """
    for _, group in groupby(enumerate(ids), lambda pair: pair[1] - pair[0]):
        found = [index for _, index in group]
        yield f"{found[0]}..{found[-1]}" if len(found) > 1 else str(found[0])


def set_token_types(file: GGUFFile, arguments: Iterable[str]) -> Edit:
    """The edit of `tokenizer.ggml.token_type` that `ID=TYPE`, `ID..ID=TYPE` or `TEXT=TYPE` mean together.

    A number is an id, and two with dots between them are all ids from the first to the second. Where the file has
    no types, all other tokens are normal, as without the key.
    """
    tokens = _list(file, _K.LIST, _T.STRING)
    types = _list(file, _K.TOKEN_TYPE, _T.INT32) if _K.TOKEN_TYPE in file else []
    types = types + [int(TokenType.NORMAL)] * (len(tokens) - len(types))
    for argument in arguments:
        token, equals, name = argument.rpartition("=")
        if not equals or name not in TokenType.__members__:
            kinds = ", ".join(TokenType.__members__)
            raise ValueError(
                f"{printable(argument)} is not of the form ID=TYPE, ID..ID=TYPE or TEXT=TYPE, TYPE one of {kinds}"
            )
        if ids := re.fullmatch(r"([0-9]+)(?:\.\.([0-9]+))?", token):
            first, last = int(ids[1]), int(ids[2] or ids[1])
        elif token in tokens:
            first = last = tokens.index(token)
        else:
            raise ValueError(f"the file has no token {printable(token)}")
        if last < first:
            raise ValueError(f"{printable(token)} has no ids: the second is the smaller one")
        if last >= len(tokens):
            raise ValueError(
                f"token id {last} is out of range: the vocabulary has ids 0 to {len(tokens) - 1}"
            )
        types[first : last + 1] = [int(TokenType[name])] * (last + 1 - first)
    return Edit(_K.TOKEN_TYPE, _T.ARRAY, types, _T.INT32)


def _list(file: GGUFFile, key: str, element: GGUFValueType) -> list[Any]:
    if key not in file or file.element_type(key) is not element:
        raise ValueError(f"the file has no {key} that is an array of {element.name}")
    value = file[key]
    assert isinstance(value, list)
    return list(value)


def _scalar(key: str, value_type: GGUFValueType, text: str) -> Any:
    """`text` as a value of `value_type`, in its range."""
    if value_type is _T.STRING:
        return text
    try:
        if value_type is _T.BOOL:
            return _TRUTH[text.lower()]
        if value_type in (_T.FLOAT32, _T.FLOAT64):
            number = float(text)
            struct.pack(
                "<f" if value_type is _T.FLOAT32 else "<d", number
            )  # OverflowError where it does not fit
            return number
        return _in_range(value_type, int(text, 0))
    except (KeyError, ValueError, OverflowError):
        raise ValueError(
            f"{printable(text)} is no value of type {value_type.name}, which {key} has"
        ) from None


def _array(key: str, element: GGUFValueType, text: str) -> Edit:
    import json

    wanted: type | tuple[type, ...] = str if element is _T.STRING else bool if element is _T.BOOL else int
    if element in (_T.FLOAT32, _T.FLOAT64):
        wanted = (int, float)
    try:
        value = json.loads(text)
        good = isinstance(value, list) and all(
            isinstance(item, wanted) and (wanted is bool or not isinstance(item, bool)) for item in value
        )
        if not good:
            raise ValueError
        if wanted is int:
            value = [_in_range(element, item) for item in value]
        elif element is _T.FLOAT32:
            struct.pack(f"<{len(value)}f", *value)  # OverflowError where one does not fit
    except (ValueError, OverflowError):
        raise ValueError(
            f"{printable(text)} is no JSON list of {element.name}, which {key} is; write it like [1, 2]"
        ) from None
    if not value:
        raise ValueError(
            f"{key} cannot be an empty array, which the gguf package does not write; --remove it"
        )
    return Edit(key, _T.ARRAY, value, element)


def _in_range(value_type: GGUFValueType, number: int) -> int:
    signed = value_type.name.startswith("INT")
    bits = int(value_type.name.lstrip("UINT"))
    low, high = (-(1 << bits - 1), 1 << bits - 1) if signed else (0, 1 << bits)
    if not low <= number < high:
        raise ValueError
    return number


# ---- the copy -------------------------------------------------------------------------------------------


CONVERT_VERSION_1 = "convert the model again: it is of GGUF version 1, which llama.cpp does not read any more"


def is_of_version_1(path: str | os.PathLike[str]) -> bool:
    """Whether a file cannot be mended here, because it is of GGUF version 1. False for one that is not there."""
    try:
        with open(path, "rb") as file:
            head = file.read(8)
    except OSError:
        return False
    return head in (b"GGUF\1\0\0\0", b"GGUF\0\0\0\1")


def write_fixed(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    edits: Iterable[Edit],
    *,
    check: bool = True,
) -> None:
    """Write to `target` the file `source` with the `edits`; `target` may be `source`, and is replaced whole.

    With `check`, a copy that has an error which `source` has not, or one in a key that was edited, is thrown away
    and the `GGUFError` raised: what keeps the tokenizer from being opened, and what schema.py calls an error.
    What else is wrong with the copy, and what opening it warns of, is a `GGUFWarning`. An `OSError`, such as a
    full disk, and an interruption leave `target` as it was and nothing beside it.
    """
    source, target = os.fspath(source), os.fspath(target)
    edits = list(edits)
    told: list[str] = []
    with GGUFFile(source) as model:
        parts = _plan(model, edits)
        with replacing(target) as (file, temporary):
            _copy(model, parts, file)
            model.close()  # the target may be the source, and some systems do not replace an open file
            file.flush()
            if check and temporary != target:  # not a device or a pipe
                told = _check(temporary, target, source, {edit.key for edit in edits})
    for problem in told:  # only now: a caller may turn warnings into errors
        warnings.warn(problem, GGUFWarning, stacklevel=2)


def _plan(file: GGUFFile, edits: list[Edit]) -> list[_Part]:
    """What the copy is made of, in order: new bytes, and spans of the source."""
    file.require_first_shard()
    kept: dict[str, _Part] = dict(file.spans())
    if file.tensor_count and any(edit.key == _ALIGNMENT for edit in edits):
        raise ValueError(f"{_ALIGNMENT} says where the tensors lie, so it cannot change")
    packed = _packed([edit for edit in edits if edit.type is not None], file.byteorder)
    for edit in edits:
        if edit.type is None:
            kept.pop(edit.key, None)
        else:
            kept[edit.key] = packed[edit.key]
    order = "<" if file.byteorder == "little" else ">"
    counts = struct.pack(f"{order}IQQ", file.version, file.tensor_count, len(kept))
    alignment = _alignment(file)
    first = file.metadata_end
    last = _tensor_infos_end(file, order)
    parts: list[_Part] = [b"GGUF" + counts, *kept.values(), Span(first, last)]
    data = last + -last % alignment
    if file.size > last:  # padding is written where it was, also in a file of metadata alone
        end = sum(len(part) if isinstance(part, bytes) else part.end - part.start for part in parts)
        parts += [bytes(-end % alignment), Span(min(data, file.size), file.size)]
    return parts


def _packed(edits: list[Edit], byteorder: str) -> dict[str, bytes]:
    """Each edited key as it stands in a file, packed by the `gguf` package: name, type and value."""
    if not edits:
        return {}
    import tempfile

    from gguf import GGUFEndian, GGUFWriter
    from gguf import GGUFValueType as Type

    with tempfile.TemporaryDirectory(prefix="ggufbpe-") as folder:
        path = os.path.join(folder, "edits.gguf")
        endian = GGUFEndian.LITTLE if byteorder == "little" else GGUFEndian.BIG
        writer = GGUFWriter(path, "", endianess=endian)
        writer.kv_data[0].clear()  # the architecture, which the writer adds
        for edit in {edit.key: edit for edit in edits}.values():
            assert edit.type is not None
            element = None if edit.element is None else Type(edit.element)
            writer.add_key_value(edit.key, edit.value, Type(edit.type), element)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.close()
        with GGUFFile(path) as file:
            return {key: b"".join(file.blocks(span)) for key, span in file.spans().items()}


def _alignment(file: GGUFFile) -> int:
    if _ALIGNMENT not in file:
        return _DEFAULT_ALIGNMENT
    value = file[_ALIGNMENT]
    if (
        file.value_type(_ALIGNMENT) is not _T.UINT32
        or not isinstance(value, int)
        or not value
        or value & value - 1
    ):
        raise CorruptMetadataError(
            "the alignment of the tensors is no power of two of type UINT32",
            path=file.path,
            offset=file.offset(_ALIGNMENT),
            key=_ALIGNMENT,
            remedy="convert the model again",
        )
    return value


def _tensor_infos_end(file: GGUFFile, order: str) -> int:
    """Where the tensor infos end: for each tensor its name, its dimensions, its type and its offset."""
    length, dimensions = struct.Struct(order + "Q"), struct.Struct(order + "I")
    position = file.metadata_end
    unread = file.blocks(Span(position, file.size))
    data, start = b"", position  # what was read, and where it begins

    def take(size: int) -> bytes:
        nonlocal data, start, position
        while start + len(data) < position + size:
            block = next(unread, None)
            if block is None:
                raise TruncatedFileError(
                    "the file ends inside the list of tensors",
                    path=file.path,
                    offset=position,
                    remedy="the download is unfinished: get the file again",
                )
            data, start = data[position - start :] + block, position
        at = position - start
        position += size
        return data[at : at + size]

    for _ in range(file.tensor_count):
        (size,) = length.unpack(take(8))
        if size > 1 << 16:
            raise CorruptMetadataError(
                f"the name of a tensor has {size} bytes", path=file.path, offset=position - 8
            )
        take(size)
        (rank,) = dimensions.unpack(take(4))
        if rank > _MOST_DIMENSIONS:
            raise CorruptMetadataError(f"a tensor has {rank} dimensions", path=file.path, offset=position - 4)
        take(8 * rank + 4 + 8)
    return position


def _copy(source: GGUFFile, parts: list[_Part], target: IO[bytes]) -> None:
    for part in parts:
        for block in [part] if isinstance(part, bytes) else source.blocks(part):
            target.write(block)


def _check(temporary: str, target: str, source: str, edited: set[str]) -> list[str]:
    """Raise what the edits broke or left broken, and return what is to be said of the rest of the copy.

    All in the name that the copy is to have.
    """
    found, told = _errors(temporary)
    before = {(type(error), error.key) for error in _errors(source)[0]} if found else set()
    for error in found:
        error.path = target
        if error.key in edited or (type(error), error.key) not in before:
            error.remedy = (
                f"{error.remedy or 'change something else'} (nothing was written; --force writes it)"
            )
            raise error
    return [*map(str, found), *(f"{target}: {problem}" for problem in told)]


def _errors(path: str) -> tuple[list[GGUFError], tuple[str, ...]]:
    """What is wrong with the tokenizer of a file, and what opening it warns of."""
    found: list[GGUFError] = []
    try:
        with GGUFFile(path) as file:
            found += errors_in(file)
        return found, load_vocabulary(path).warnings
    except UnsupportedTokenizerError:
        return found, ()
    except GGUFError as error:
        return [*(other for other in found if other.key != error.key), error], ()
