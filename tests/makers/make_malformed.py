"""Write fixtures/malformed: one small file for each way in which a GGUF can lie, and what must come of it.

    python tests/makers/make_malformed.py                            # writes the folder
    python tests/makers/make_malformed.py --out DIR                  # writes it elsewhere
    python tests/makers/make_malformed.py --check llama-tokenize     # asks llama.cpp what it makes of each file

`expected.json` beside the files says for each of them: the error class of ggufbpe._util.errors (null where
llama.cpp goes on and so must we), the key, the range in which the byte offset must lie, words that the
message or the warning must have, and what llama.cpp does ("loads", "refuses" with an error, "aborts" the
process). tests/gguf/test_malformed.py holds the package to it. Where llama.cpp loads and we do not, `why` says
the reason.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import charsmaps
from gguf_by_hand import (
    BOS,
    EOS,
    MERGES,
    MODEL,
    PRE,
    SCORES,
    TINY_MERGES,
    TINY_TOKENS,
    TOKEN_TYPE,
    TOKENS,
    Field,
    Section,
    array_of,
    section_of,
    tiny_vocabulary,
)

from ggufbpe.gguf.constants import GGUFValueType, TokenType
from ggufbpe.gguf.writer import Packer

TARGET = Path(__file__).resolve().parents[2] / "fixtures" / "malformed"

T = GGUFValueType
KEY = "a.key"
COUNT = len(TINY_TOKENS)


class Case(NamedTuple):
    """One file and what must come of it."""

    name: str  # of the file, without .gguf
    data: bytes
    error: str | None  # a class of ggufbpe._util.errors; None: opens, and a warning or correction has `words`
    key: str | None = None  # that the error must name
    offset: tuple[int, int] | None = None  # first and last offset that the error may name; None: no offset
    words: tuple[str, ...] = ()  # of the message, warning or correction, in any case of letters
    llama_cpp: str | None = "refuses"  # "loads", "refuses" or "aborts"; None: not comparable
    why: str = ""  # where we refuse what llama.cpp loads: the reason


def at(offset: int) -> tuple[int, int]:
    """The range of one offset only."""
    return (offset, offset)


# ---- files that are something else ------------------------------------------------------------------


def other_files() -> Iterator[Case]:
    """What users hand over instead of a GGUF."""
    lfs_pointer = (
        b"version https://git-lfs.github.com/spec/v1\n"
        b"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
    )
    header = b'{"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    safetensors = len(header).to_bytes(8, "little") + header + bytes(4)
    web_page = b"<!DOCTYPE html>\n<html><head><title>401 Unauthorized</title></head></html>\n"
    table: list[tuple[str, bytes, str]] = [
        ("empty", b"", "empty"),
        ("git-lfs-pointer", lfs_pointer, "git lfs pull"),
        ("safetensors", safetensors, "safetensors"),
        ("pytorch-zip", b"PK\x03\x04" + bytes(60), "zip"),
        ("pytorch-pickle", b"\x80\x02}q\x00." + bytes(60), "not a gguf"),
        ("ggml", b"lmgg" + bytes(60), "ggml"),
        ("ggmf", b"fmgg\x01\0\0\0" + bytes(60), "ggml"),
        ("ggjt", b"tjgg\x03\0\0\0" + bytes(60), "ggml"),
        ("html", web_page, "web page"),
        ("html-indented", b"\n  <html>\n<body>Not found</body></html>\n", "web page"),
        ("xml-error", b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>", "web page"),
        ("json", b'{"error": "Repository not found"}', "json"),
        ("gzip", b"\x1f\x8b\x08\0" + bytes(60), "gunzip"),
        ("zeros", bytes(4096), "not a gguf"),
        ("text", b"hello\n", "not a gguf"),
        ("magic-reversed", b"FUGG" + section_of(tiny_vocabulary()).file()[4:], "not a gguf"),
        ("magic-lower-case", b"gguf" + section_of(tiny_vocabulary()).file()[4:], "not a gguf"),
        ("control-characters", b"\x1b[2J\r\n\0\x07" + bytes(60), "not a gguf"),
    ]
    for name, data, word in table:
        yield Case(name, data, "NotGGUFError", None, at(0), (word,))


# ---- header ------------------------------------------------------------------------------------------


def headers() -> Iterator[Case]:
    """Magic, version and the two counts."""
    sound = section_of(tiny_vocabulary())
    for length, inside in ((1, 0), (3, 0), (4, 4), (7, 4), (8, 8), (15, 8), (16, 16), (23, 16)):
        yield Case(
            f"header-cut-at-{length:02}",
            sound.file()[:length],
            "TruncatedFileError",
            offset=at(inside),
            words=("ends",),
        )
    versions = {
        "0": 0,
        "4": 4,
        "ffff": 0xFFFF,
        "2-to-31": 2**31,
        "minus-1": 2**32 - 1,
        "big-endian-4": 4 << 24,
    }
    for name, number in versions.items():
        data = sound.file(version=number.to_bytes(4, "little"))
        yield Case(f"version-{name}", data, "UnsupportedVersionError", None, at(4), ("version",))
    yield Case(
        "version-swapped-alone",  # a big-endian version number before a little-endian rest
        sound.file(version=(3).to_bytes(4, "big")),
        "CorruptMetadataError",
        offset=at(16),
        words=("keys",),
    )
    counts = {
        "2-to-32": 2**32,
        "2-to-62": 2**62,
        "2-to-63": 2**63,
        "minus-5": 2**64 - 5,
        "minus-1": 2**64 - 1,
    }
    for name, number in counts.items():
        data = sound.file(key_count=number)
        yield Case(f"key-count-{name}", data, "CorruptMetadataError", None, at(16), (str(number), "keys"))
    yield Case(
        "key-count-one-too-many",
        sound.file(key_count=sound.count + 1),
        "TruncatedFileError",
        offset=at(sound.end),
        words=("ends",),
    )
    yield Case(
        "key-count-1000-too-many",
        sound.file(key_count=sound.count + 1000),
        "TruncatedFileError",
        offset=at(16),
        words=("1009", "keys"),
    )
    for name, number in (("2-to-63", 2**63), ("minus-1", 2**64 - 1)):
        data = sound.file(tensor_count=number)
        yield Case(
            f"tensor-count-{name}", data, "CorruptMetadataError", None, at(8), (str(number), "tensors")
        )
    old = section_of(tiny_vocabulary(), version=1)
    yield Case(
        "version-1-key-count-2-to-31",
        old.file(key_count=2**31),
        "CorruptMetadataError",
        offset=at(12),
        words=("keys",),
    )
    yield Case(
        "version-1-cut-in-counts", old.file()[:14], "TruncatedFileError", offset=at(12), words=("ends",)
    )
    yield Case(
        "version-3-called-1",  # the upper half of the tensor count is then the number of keys: none
        sound.file(version=(1).to_bytes(4, "little")),
        "MissingKeyError",
        MODEL,
        words=(MODEL,),
    )
    yield Case(
        "version-1-called-3",
        old.file(version=(3).to_bytes(4, "little")),
        "CorruptMetadataError",
        offset=at(16),
        words=("keys",),
    )


# ---- keys and values ---------------------------------------------------------------------------------


def preamble(version: int = 3, byteorder: str = "little") -> Section:
    """Two sound keys, so that the lie is not the first thing in the section."""
    fields = tiny_vocabulary()
    names = ("general.architecture", "general.name")
    return section_of({name: fields[name] for name in names}, version, byteorder)


def truncated_values() -> Iterator[Case]:
    """A sound section of three keys that ends inside the third, at each of its parts."""
    values = {
        "uint8": Field(T.UINT8, 1),
        "uint64": Field(T.UINT64, 1),
        "string": Field(T.STRING, "some text"),
        "uint16s": array_of(T.UINT16, [1, 2, 3]),
        "strings": array_of(T.STRING, ["first", "second", "third"]),
    }
    for name, field in values.items():
        section = preamble().add(KEY, field)
        place = section.places[KEY]
        data = section.file()
        text = place.value + 8  # of a string; of an array, its first element is 4 bytes further
        cuts: dict[str, tuple[int, int, bool]] = {  # part: (bytes left, offset to name, is the key known)
            "value": (place.end - 1, place.value, True),
        }
        if name == "uint8":
            cuts |= {
                "key-length": (place.start + 3, place.start, False),
                "key": (place.start + 8 + 2, place.start, False),
                "before-type": (place.type, place.type, True),
                "type": (place.type + 3, place.type, True),
                "before-value": (place.value, place.value, True),
            }
        if name == "string":
            cuts |= {
                "length": (place.value + 5, place.value, True),
                "before-text": (text, place.value, True),
            }
        if name == "uint16s":
            cuts |= {
                "element-type": (place.value + 2, place.value, True),
                "count": (place.value + 4 + 7, place.value + 4, True),
                "before-elements": (text + 4, place.value + 4, True),
                "value": (place.end - 1, place.value + 4, True),
            }
        if name == "strings":
            last = place.end - len("third") - 8
            cuts |= {
                "first-length": (text + 4 + 2, place.value + 4, True),  # the count alone cannot be true then
                "before-last-length": (last, last, True),
                "last-length": (last + 5, last, True),
                "value": (place.end - 1, last, True),
            }
        for part, (left, offset, known) in cuts.items():
            key = KEY if known else None
            yield Case(f"cut-{name}-in-{part}", data[:left], "TruncatedFileError", key, at(offset), ("end",))


def lying_values() -> Iterator[Case]:
    """Lengths, counts and type numbers that no sound file has."""

    def lie(name: str, section: Section, error: str, offset: int, *words: str, key: str | None = KEY) -> Case:
        return Case(name, section.file(key_count=3, tail=bytes(64)), error, key, at(offset), words)

    def with_value(type_number: int, value: bytes) -> Section:
        return preamble().add_raw(KEY, type_number, value)

    pack = Packer().length
    number = Packer().number
    start = preamble().end
    at_type = start + 8 + len(KEY)
    at_value = at_type + 4

    for name, length in (("2-to-40", 2**40), ("2-to-63", 2**63), ("2-to-64-less-1", 2**64 - 1)):
        section = preamble().add_bytes(pack(length) + KEY.encode())
        yield lie(f"key-length-{name}", section, "CorruptMetadataError", start, "past the end", key=None)
        section = with_value(T.STRING, pack(length) + b"text")
        yield lie(f"string-length-{name}", section, "CorruptMetadataError", at_value, "past the end")
    section = preamble().add_bytes(pack(5000) + KEY.encode())
    yield lie("key-past-end", section, "TruncatedFileError", start, "past the end", key=None)
    section = with_value(T.STRING, pack(5000) + b"text")
    yield lie("string-past-end", section, "TruncatedFileError", at_value, "past the end")

    for element in T:
        if element is T.ARRAY:
            continue
        for name, count in (("2-to-60", 2**60), ("2-to-61", 2**61), ("minus-1", 2**64 - 1)):
            section = with_value(T.ARRAY, number(T.UINT32, element) + pack(count))
            name = f"array-of-{element.name.lower()}-count-{name}"
            yield lie(name, section, "CorruptMetadataError", at_value + 4, "past the end")
        section = with_value(T.ARRAY, number(T.UINT32, element) + pack(1000))
        name = f"array-of-{element.name.lower()}-past-end"
        yield lie(name, section, "TruncatedFileError", at_value + 4, "past the end")

    strings = number(T.UINT32, T.STRING) + pack(2) + pack(3) + b"one"
    section = with_value(T.ARRAY, strings + pack(2000))
    yield lie("string-in-array-past-end", section, "TruncatedFileError", at_value + 23, "past the end")
    section = with_value(T.ARRAY, strings + pack(2**64 - 9))
    yield lie("string-in-array-2-to-64", section, "CorruptMetadataError", at_value + 23, "past the end")

    inner = number(T.UINT32, T.UINT8) + pack(1) + b"\x07"
    section = with_value(T.ARRAY, number(T.UINT32, T.ARRAY) + pack(1) + inner)
    yield lie("array-of-arrays", section, "CorruptMetadataError", at_value, "array of arrays")
    deep = (number(T.UINT32, T.ARRAY) + pack(1)) * 300
    section = with_value(T.ARRAY, deep + inner)
    yield lie("array-of-arrays-300-deep", section, "CorruptMetadataError", at_value, "array of arrays")

    for name, code in (("13", 13), ("99", 99), ("minus-1", -1), ("big-endian-4", 4 << 24)):
        section = with_value(code, bytes(16))
        yield lie(f"value-type-{name}", section, "CorruptMetadataError", at_type, "type", str(code % 2**32))
        section = with_value(T.ARRAY, number(T.UINT32, code % 2**32) + pack(1))
        yield lie(f"element-type-{name}", section, "CorruptMetadataError", at_value, "type")

    yield lie(
        "key-empty", preamble().add("", Field(T.UINT8, 1)), "CorruptMetadataError", start, "empty", key=None
    )
    section = preamble().add("general.name", Field(T.STRING, "another"))
    yield lie("key-twice", section, "DuplicateKeyError", start, "twice", key="general.name")
    key = "two\nlines\x1b[31m\x00"
    section = preamble().add(key, Field(T.UINT8, 1))
    again = section.end
    section.add(key, Field(T.UINT8, 1))
    data = section.file()
    yield Case("key-twice-control-characters", data, "DuplicateKeyError", key, at(again), ("twice",))
    key = "k" * 3000
    section = preamble().add_raw(key, 99, b"")
    offset = section.places[key].type
    yield lie("key-of-3000-letters", section, "CorruptMetadataError", offset, "type", key=key)

    for version, byteorder in ((1, "little"), (1, "big"), (2, "big"), (3, "big")):
        section = preamble(version, byteorder)
        section.add_raw(KEY, T.STRING, section.pack.length(2**31) + b"text")
        offset = section.places[KEY].value
        yield lie(
            f"string-past-end-version-{version}-{byteorder}",
            section,
            "CorruptMetadataError",
            offset,
            "past the end",
        )


def undecodable() -> Iterator[Case]:
    """Bytes that are not UTF-8, where text is wanted."""
    section = section_of(tiny_vocabulary())
    offset = section.end + 8 + 3
    section.add(b"caf\xe9.key", Field(T.UINT8, 1))
    words = ("UTF-8", "0xE9")
    why = "a key that can neither be shown nor asked for"
    yield Case("utf8-key", section.file(), "InvalidUTF8Error", None, at(offset), words, "loads", why)
    wrong = {
        "latin-1": b"caf\xe9",
        "surrogate": b"\xed\xa0\x80",
        "overlong": b"\xc0\x80",
        "past-10ffff": b"\xf4\x90\x80\x80",
        "cut": "ll\u0120".encode()[:3],
    }
    texts = "token texts are Python strings, and the bytes are a sign of damage"
    for name, data in wrong.items():
        fields = tiny_vocabulary({TOKENS: array_of(T.STRING, [*TINY_TOKENS, data]), TOKEN_TYPE: None})
        loads = "" if name == "past-10ffff" else texts
        yield vocabulary_case(f"utf8-token-{name}", fields, "InvalidUTF8Error", TOKENS, "UTF-8", loads=loads)
    for key, value in ((MODEL, b"gpt\xff"), (PRE, b"gpt-\xff2")):
        name = key.rpartition(".")[2]
        fields = tiny_vocabulary({key: Field(T.STRING, value)})
        yield vocabulary_case(f"utf8-{name}", fields, "InvalidUTF8Error", key, "UTF-8", "0xFF")
    fields = tiny_vocabulary({MERGES: array_of(T.STRING, [*TINY_MERGES, b"l \xff"])})
    yield vocabulary_case("utf8-merge", fields, "InvalidUTF8Error", MERGES, "UTF-8", "0xFF", loads=texts)


# ---- the vocabulary ----------------------------------------------------------------------------------


def vocabulary_case(
    name: str,
    fields: Mapping[str, Field],
    error: str | None,
    key: str | None,
    *words: str,
    llama_cpp: str = "refuses",
    loads: str = "",
) -> Case:
    """A sound section with an unsound vocabulary; the offset lies anywhere in the key that is named."""
    section = section_of(fields)
    place = section.places.get(key or "")
    offset = (place.start, place.end) if place and error else None
    return Case(name, section.file(), error, key, offset, words, "loads" if loads else llama_cpp, loads)


# Every key that llama.cpp reads for a byte pair vocabulary, with the one type that it takes.
ID_NAMES = [
    *("bos", "eos", "eot", "eom", "unknown", "seperator", "padding", "mask"),
    *("fim_pre", "fim_suf", "fim_mid", "fim_pad", "fim_rep", "fim_sep", "prefix", "suffix", "middle"),
]
FLAG_NAMES = [
    *("add_bos_token", "add_eos_token", "add_sep_token", "add_space_prefix", "remove_extra_whitespaces"),
    *("normalizer.lowercase", "normalizer.strip_accents"),
]
TYPES: dict[str, tuple[T, T | None]] = {
    **dict.fromkeys((MODEL, PRE, "general.name", "general.architecture"), (T.STRING, None)),
    **{f"tokenizer.ggml.{name}_token_id": (T.UINT32, None) for name in ID_NAMES},
    "tokenizer.ggml.token_type_count": (T.UINT32, None),
    **{f"tokenizer.ggml.{name}": (T.BOOL, None) for name in FLAG_NAMES},
    TOKENS: (T.ARRAY, T.STRING),
    MERGES: (T.ARRAY, T.STRING),
    TOKEN_TYPE: (T.ARRAY, T.INT32),
    SCORES: (T.ARRAY, T.FLOAT32),
    "tokenizer.ggml.suppress_tokens": (T.ARRAY, T.INT32),
}

NAME_SHORT = {"string": Field(T.STRING, "0"), "bool": Field(T.BOOL, True), "float32": Field(T.FLOAT32, 1.0)}
INTEGERS = {kind.name.lower(): Field(kind, 1) for kind in (T.UINT8, T.INT32, T.UINT32, T.UINT64)}


def wrong_types() -> Iterator[Case]:
    """Each tokenizer key with values of other types than llama.cpp's `get_key` takes."""
    other = {
        T.STRING: [
            INTEGERS["uint32"], NAME_SHORT["bool"], array_of(T.STRING, ["gpt2"]), array_of(T.UINT8, [1])
        ],
        T.UINT32: [INTEGERS["int32"]],
        T.BOOL: [INTEGERS["uint8"]],
    }  # fmt: skip
    thorough = {  # one key of each type sees all other types
        BOS: [*INTEGERS.values(), *NAME_SHORT.values(), array_of(T.UINT32, [1])],
        "tokenizer.ggml.add_bos_token": [*INTEGERS.values(), *NAME_SHORT.values(), array_of(T.BOOL, [True])],
        TOKENS: [
            Field(T.STRING, "hello"), INTEGERS["uint32"], array_of(T.INT32, range_of(COUNT)),
            array_of(T.UINT8, range_of(COUNT)), array_of(T.INT32, []),
        ],
        MERGES: [Field(T.STRING, "h e"), array_of(T.FLOAT32, [1.0]), array_of(T.UINT32, range_of(9))],
        TOKEN_TYPE: [
            INTEGERS["int32"],
            *(array_of(kind, [1] * COUNT) for kind in (T.UINT32, T.INT8, T.INT64, T.FLOAT32)),
            array_of(T.STRING, ["1"] * COUNT), array_of(T.BOOL, [True] * COUNT),
        ],
        SCORES: [
            NAME_SHORT["float32"], array_of(T.FLOAT64, [1.0] * COUNT), array_of(T.UINT32, [1] * COUNT),
            array_of(T.STRING, ["1"] * COUNT),
        ],
        "tokenizer.ggml.suppress_tokens": [
            INTEGERS["int32"], array_of(T.UINT32, [1]), array_of(T.INT64, [1]), array_of(T.STRING, ["1"])
        ],
    }  # fmt: skip
    for key, (wanted, element) in TYPES.items():
        for field in thorough.get(key) or other[wanted]:
            if (field.type, field.element) == (wanted, element):
                continue
            kind = field.type.name if field.element is None else f"array-of-{field.element.name}"
            if field.element and not field.value:
                kind += "-empty"
            name = f"type-{key.removeprefix('tokenizer.ggml.')}-{kind.lower()}"
            words = (wanted.name if element is None else element.name,)
            yield vocabulary_case(name, tiny_vocabulary({key: field}), "WrongTypeError", key, *words)


def range_of(count: int) -> list[int]:
    """The numbers below `count` as a list."""
    return list(range(count))


def tokens_of(*more: str, types: Mapping[int, int] | None = None) -> dict[str, Field | None]:
    """Changes that append tokens to the tiny vocabulary, with token types by id."""
    tokens = [*TINY_TOKENS, *more]
    kinds = [int(TokenType.CONTROL)] + [int(TokenType.NORMAL)] * (len(tokens) - 1)
    for index, kind in (types or {}).items():
        kinds[index] = kind
    return {TOKENS: array_of(T.STRING, tokens), TOKEN_TYPE: array_of(T.INT32, kinds)}


def of_model(name: str) -> dict[str, Field | None]:
    """Another model than byte pair encoding."""
    return {MODEL: Field(T.STRING, name), PRE: None, MERGES: None}


def broken_vocabularies() -> Iterator[Case]:
    """Sound sections whose keys do not make a vocabulary."""
    for key in (MODEL, TOKENS, MERGES):
        name = f"missing-{key.rpartition('.')[2]}"
        yield vocabulary_case(name, tiny_vocabulary({key: None}), "MissingKeyError", key, key)
    yield Case("missing-everything", Section().file(), "MissingKeyError", MODEL, None, (MODEL,))
    gemma = {MODEL: Field(T.STRING, "gemma4"), MERGES: None}
    yield vocabulary_case("missing-merges-gemma4", tiny_vocabulary(gemma), "MissingKeyError", MERGES, MERGES)

    for key, kind, count in (
        (SCORES, T.FLOAT32, COUNT - 1),
        (SCORES, T.INT32, 1),
        (SCORES, T.FLOAT32, 0),
        (TOKEN_TYPE, T.INT32, COUNT - 1),
        (TOKEN_TYPE, T.INT32, 0),
    ):
        name = f"{key.rpartition('.')[2].replace('_', '-')}-only-{count}-{kind.name.lower()}"
        fields = tiny_vocabulary({key: array_of(kind, [1] * count)})
        yield vocabulary_case(name, fields, "VocabularyError", key, str(count), str(COUNT))

    def bad(name: str, changes: Mapping[str, Field | None], *words: str, llama_cpp: str = "refuses") -> Case:
        fields = tiny_vocabulary(changes)
        return vocabulary_case(name, fields, "VocabularyError", TOKENS, *words, llama_cpp=llama_cpp)

    yield bad("token-twice", tokens_of("hello"), "hello", "14", "20", llama_cpp="aborts")
    yield bad("token-twice-in-a-row", tokens_of("x", "x"), "'x'", "20", "21", llama_cpp="aborts")
    control = tokens_of("a\nb\x1b[31m", "a\nb\x1b[31m")
    yield bad("token-twice-control-characters", control, "20", "21", llama_cpp="aborts")
    yield bad("token-twice-long", tokens_of("y" * 500, "y" * 500), "20", "21", llama_cpp="aborts")
    yield bad("token-twice-up-to-nul", tokens_of("x\0y", "x\0z"), "'x'", "20", "21", llama_cpp="aborts")
    yield bad("token-twice-as-empty", tokens_of("[EMPTY_21]", ""), "[EMPTY_21]", llama_cpp="aborts")
    byte = {COUNT: int(TokenType.BYTE)}
    for name, text in (("1", "x"), ("2", "<0")):
        changes = tokens_of(text, types=byte)
        yield bad(f"byte-token-of-{name}", changes, "20", repr(text))

    names = {
        "unknown": "unknown",
        "upper": "GPT-2",
        "space": "gpt-2 ",
        "lines": "two\nlines\x1b[31m",
        "long": "x" * 500,
    }
    for label, name in names.items():
        fields = tiny_vocabulary({PRE: Field(T.STRING, name)})
        yield vocabulary_case(f"pre-{label}", fields, "UnknownPreTokenizerError", PRE, "pre-tokenizer")

    kinds = {
        "none": "no tokenizer",
        "no_vocab": "no tokenizer",
        "test": "hash",
    }
    for name, word in kinds.items():
        fields = tiny_vocabulary(of_model(name))
        error = "UnsupportedTokenizerError"
        case = vocabulary_case(f"model-{name.replace('_', '-')}", fields, error, MODEL, name, word)
        yield case._replace(llama_cpp=None)  # it asks for other tokens than the tiny vocabulary's
    for name in ("plamo2", "plamo3"):
        fields = tiny_vocabulary(of_model(name))
        yield vocabulary_case(f"bytes-missing-{name}", fields, "VocabularyError", TOKENS, "0x00, 0x01")
    charsmap = "tokenizer.ggml.precompiled_charsmap"
    sound = charsmaps.charsmap({b"\n": b" "})
    contents = {
        "empty": b"",
        "of-three-bytes": b"\1\0\0",
        "nothing-behind": b"\4\0\0\0\0\0\0\0",
        "size-2-to-32-less-1": b"\xff" * 12,
        "replacement-without-end": sound[:-1],
        "root-out-of-range": sound[:4] + b"\xff\xff\xff\x7f" + sound[8:],
    }
    for label, content in contents.items():
        fields = tiny_vocabulary({**of_model("t5"), charsmap: array_of(T.UINT8, [*content])})
        yield vocabulary_case(f"charsmap-{label}", fields, "VocabularyError", charsmap, charsmap)

    nan = array_of(T.FLOAT32, [math.nan, *[0.0] * (COUNT - 1)])
    spm = tiny_vocabulary({**of_model("llama"), "tokenizer.ggml.scores": nan})
    case = vocabulary_case(
        "scores-not-numbers-llama", spm, "VocabularyError", "tokenizer.ggml.scores", "token 0"
    )
    yield case._replace(llama_cpp=None)  # its queue of pairs has no order then

    names = {"unknown": "unigram", "empty": "", "upper": "GPT2", "lines": "gpt2\n\x1b[31m"}
    for label, name in names.items():
        fields = tiny_vocabulary({MODEL: Field(T.STRING, name)})
        yield vocabulary_case(f"model-{label}", fields, "GGUFError", MODEL)

    name = "general.name"
    phi = tiny_vocabulary({name: Field(T.STRING, "Phi-3 mini")})  # such a model has these tokens
    case = vocabulary_case("phi-3-without-its-tokens", phi, "VocabularyError", name, "</s>")
    yield case._replace(offset=None)  # what is wrong lies nowhere

    later = {"split.no": Field(T.UINT16, 1), "split.count": Field(T.UINT16, 3)}
    section = section_of({**later, "split.tensors.count": Field(T.INT32, 7)})
    place = section.places["split.no"]
    for name, word in (
        ("shard-00002-of-00003", "shard-00001-of-00003.gguf"),
        ("shard-renamed", "-00001-of-"),
    ):
        offset = (place.start, place.end)
        yield Case(name, section.file(), "ShardError", "split.no", offset, (word, "2 of 3"))
    section = section_of({**tiny_vocabulary(), **later})  # some programs repeat the metadata in each part
    place = section.places["split.no"]
    yield Case(
        "shard-00003-of-00003",
        section_of({**tiny_vocabulary(), **later, "split.no": Field(T.UINT16, 2)}).file(),
        "ShardError",
        "split.no",
        (place.start, place.end),
        ("shard-00001-of-00003.gguf", "3 of 3"),
    )


def accepted() -> Iterator[Case]:
    """What llama.cpp loads, with a warning or without one, and so do we."""

    def fine(name: str, changes: Mapping[str, Field | None], *words: str) -> Case:
        return vocabulary_case(f"ok-{name}", tiny_vocabulary(changes), None, None, *words, llama_cpp="loads")

    def id_key(name: str, number: int) -> dict[str, Field | None]:
        return {f"tokenizer.ggml.{name}_token_id": Field(T.UINT32, number)}

    yield fine("nothing-wrong", {})
    yield fine("bos-out-of-range", id_key("bos", COUNT), "bos_token_id", str(COUNT))
    yield fine("eos-2-to-32-less-1", id_key("eos", 2**32 - 1), "eos_token_id", str(2**32 - 1))
    yield fine("eot-2-to-31", id_key("eot", 2**31), "eot_token_id", str(2**31))
    yield fine("fim-suf-out-of-range", id_key("fim_suf", 4000), "fim_suf_token_id", "4000")
    yield fine("suffix-out-of-range", id_key("suffix", 4000), "suffix_token_id", "4000")
    few = array_of(T.STRING, ["Ċ", "a", "b"])
    default_ids = {TOKENS: few, TOKEN_TYPE: None, BOS: None, EOS: None}
    yield fine("default-bos-out-of-range", default_ids, "bos", "11")
    yield fine("eos-not-end-of-generation", id_key("eos", 5), "eos")
    yield fine("token-empty", tokens_of(""), "empty", "20")
    yield fine("tokens-empty", tokens_of("", "x", ""), "empty", "22")
    yield fine("pre-missing", {PRE: None}, "pre-tokenizer", "default")
    yield fine("pre-empty", {PRE: Field(T.STRING, "")}, "pre-tokenizer", "default")
    yield fine("pre-default", {PRE: Field(T.STRING, "default")}, "pre", "default", "doctor")
    yield fine("control-looking-token", tokens_of("<|im_end|>"), "<|im_end|>", "control")
    yield fine("control-looking-fim", tokens_of("<fim-prefix>"), "<fim-prefix>", "control")
    channel = tokens_of("<|channel|>", types={COUNT: int(TokenType.CONTROL)})
    yield fine("token-rendered-always", channel, "<|channel|>")
    controls = {COUNT + index: int(TokenType.CONTROL) for index in range(3)}
    yield fine("end-not-eog", tokens_of("<|return|>", "<|call|>", "<|end|>", types=controls), "<|end|>")
    controls = {COUNT + index: int(TokenType.CONTROL) for index in range(2)}
    yield fine("s-not-eog", tokens_of("</s>", "<|tool_response>", types=controls), "</s>")
    no_newline = {TOKENS: array_of(T.STRING, [*TINY_TOKENS[:1], "N", *TINY_TOKENS[2:]])}
    yield fine("newline-missing", no_newline, "newline")
    yield fine("no-tokens", {TOKENS: array_of(T.STRING, []), TOKEN_TYPE: None}, "newline")
    yield fine("mask-missing", {PRE: Field(T.STRING, "jina-v2-de")}, "mask")
    yield fine("mask-missing-modern-bert", {"general.name": Field(T.STRING, "Modern-BERT")}, "mask")
    gemma = {MODEL: Field(T.STRING, "gemma4"), "tokenizer.ggml.add_bos_token": Field(T.BOOL, False)}
    yield fine("gemma4-without-bos", gemma, "add_bos_token")

    no_bos = {MODEL: Field(T.STRING, "gemma4"), BOS: None}  # llama.cpp loads it and aborts at the first text
    yield fine("bos-wanted-but-none", no_bos, "bos", "none")._replace(llama_cpp="aborts")

    # llama.cpp says nothing at these
    yield fine("merges-missing-kimi-k2", {PRE: Field(T.STRING, "kimi-k2"), MERGES: None})
    yield fine("merges-none", {MERGES: array_of(T.STRING, [])})
    odd_merges = ["", " ", "hello", "  ", "l l l", "x yz", "l l", " l l"]
    yield fine("merges-odd", {MERGES: array_of(T.STRING, [*TINY_MERGES, *odd_merges])})
    yield fine("scores-more-than-tokens", {SCORES: array_of(T.FLOAT32, [0.5] * (COUNT + 3))})
    yield fine("scores-integers", {SCORES: array_of(T.INT32, range_of(COUNT))})
    yield fine("scores-not-numbers", {SCORES: array_of(T.FLOAT32, [float("nan"), float("inf")] * COUNT)})
    yield fine("token-type-more-than-tokens", {TOKEN_TYPE: array_of(T.INT32, [3] + [1] * (COUNT + 3))})
    unknown_types = [3, 0, -1, 7, 99, 2**31 - 1, -(2**31)] + [1] * (COUNT - 7)
    yield fine("token-type-unknown", {TOKEN_TYPE: array_of(T.INT32, unknown_types)})
    byte = int(TokenType.BYTE)
    texts = ("abc", "<0x", "<0x0", "<0x41>", "<0xZZ>", "zz -1")
    yield fine("byte-tokens-odd", tokens_of(*texts, types={COUNT + n: byte for n in range(len(texts))}))
    suppressed = array_of(T.INT32, [0, -1, COUNT, 2**31 - 1, -(2**31)])
    yield fine("suppress-tokens-out-of-range", {"tokenizer.ggml.suppress_tokens": suppressed})
    # its strings end at the first NUL
    yield fine("token-nul", tokens_of("x\0y", "\0"), "empty", "21")
    yield fine("pre-nul", {PRE: Field(T.STRING, "llama-bpe\0x")})
    yield fine("model-nul", {MODEL: Field(T.STRING, "gpt2\0x")})
    empty = array_of(T.INT32, [])
    yield fine("suppress-tokens-none", {"tokenizer.ggml.suppress_tokens": empty})
    yield fine(
        "unknown-keys", {"tokenizer.ggml.cls_token_id": Field(T.STRING, "?"), "\u00fc": Field(T.BOOL, True)}
    )
    escapes = tokens_of("\\", "\\x", "\\x4", "\\xzz", "\\q", "a\\")  # cut short, or of no such form
    yield fine("rwkv-escapes-odd", {**of_model("rwkv"), **escapes}, "newline")
    ids = [id_key(name, 3) for name in ("bos", "unknown", "seperator", "mask")]
    no_words = {**of_model("bert"), **tokens_of("", "\u2581", "##")}
    yield fine("bert-no-words", no_words | ids[0] | ids[1] | ids[2] | ids[3], "empty")
    scores = {"tokenizer.ggml.scores": array_of(T.FLOAT32, [-1.0 - id for id in range(COUNT)])}
    charsmap = charsmaps.charsmap({b"\n": b" ", "\u00c9".encode(): b"e", b"hell": b"", b"h": b"hello hello"})
    normalized = {"tokenizer.ggml.precompiled_charsmap": array_of(T.UINT8, [*charsmap])}
    yield fine("t5-charsmap", {**of_model("t5"), **scores, **normalized})
    not_numbers = array_of(T.FLOAT32, [math.nan, math.inf, -math.inf, *[0.0] * (COUNT - 3)])
    yield fine("t5-scores-not-numbers", {**of_model("t5"), "tokenizer.ggml.scores": not_numbers})
    yield fine("split-count-1", {"split.no": Field(T.UINT16, 0), "split.count": Field(T.UINT16, 1)})


def cases() -> list[Case]:
    """All cases; their names differ."""
    groups = (
        other_files, headers, truncated_values, lying_values, undecodable, wrong_types, broken_vocabularies,
        accepted,
    )  # fmt: skip
    found = [case for group in groups for case in group()]
    names = [case.name for case in found]
    assert len(set(names)) == len(names), sorted(name for name in names if names.count(name) > 1)
    return found


def write(target: Path) -> None:
    """Write the folder anew; files of former cases go."""
    target.mkdir(parents=True, exist_ok=True)
    for old in target.glob("*.gguf"):
        old.unlink()
    expected: dict[str, dict[str, Any]] = {}
    for case in cases():
        (target / f"{case.name}.gguf").write_bytes(case.data)
        expected[f"{case.name}.gguf"] = {
            field: value for field, value in case._asdict().items() if field not in ("name", "data")
        }
    lines = [f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in expected.items()]
    (target / "expected.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def check(command: str) -> int:
    """Ask `llama-tokenize` about each file; print where it does other than the table says."""
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        for case in cases():
            path = Path(folder, f"{case.name}.gguf")
            run = subprocess.run([command, "-m", path, "-p", "hi", "--ids"], capture_output=True, timeout=60)
            verdict = {0: "loads", 1: "refuses"}.get(run.returncode, "aborts")
            if case.llama_cpp not in (verdict, None):
                wrong += 1
                last = run.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
                print(f"{case.name}: {verdict} and not {case.llama_cpp}; it says {last}")
    print(f"{len(cases())} files, {wrong} differ")
    return 1 if wrong else 0


def main() -> int:
    """Write the folder, or check the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, default=TARGET, help="the folder to write")
    parser.add_argument("--check", metavar="LLAMA_TOKENIZE", help="compare with llama.cpp and write nothing")
    arguments = parser.parse_args()
    if arguments.check:
        return check(arguments.check)
    write(arguments.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
