"""Write fixtures/variants: sound GGUF files in every version and byte order, and what they hold.

    python tests/makers/make_gguf_variants.py              # writes the folder
    python tests/makers/make_gguf_variants.py --out DIR    # writes it elsewhere

Three contents, each in versions 1, 2 and 3 and in both byte orders: `types` has all 13 value types with
their least and greatest values, arrays of each, empty ones, and odd keys; `vocabulary` is a whole byte pair
vocabulary of 20 tokens; `nothing` has no key. Further files: one with a tensor after the section, the first
part of a split model, and values that only a careless program writes. `expected.json` has all of it again
as plain values. tests/gguf/test_reader.py holds the reader to it.

All are written by hand (gguf_by_hand.py); what the `gguf` package can write too must be the same bytes.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGUFEndian, GGUFWriter
from gguf_by_hand import TINY_VOCABULARY, Field, Section, array_of, section_of

from ggufbpe.gguf.constants import GGUFValueType
from ggufbpe.gguf.value_types import SCALARS

TARGET = Path(__file__).resolve().parents[2] / "fixtures" / "variants"

T = GGUFValueType
ORDERS = ("little", "big")

# What llama-tokenize prints for the tiny vocabulary: text and ids.
TINY_IDS = {
    "hello world!\nhello": [14, 19, 3, 1, 14],
    "helloworld": [14, 10, 16, 18],
    "<|endoftext|>held": [0, 12, 18],
}


def bounds(type: GGUFValueType) -> list[Any]:
    """Values at the edges of a type.

    >>> bounds(T.INT8)
    [-128, -1, 0, 127]
    """
    if type is T.STRING:
        return ["", "a", "two words", "\u00fcber \u4f60\u597d \U0001f600", "NUL \0 and\nnewline", "x" * 300]
    if type is T.BOOL:
        return [False, True]
    if type is T.FLOAT32:
        return [0.0, -0.0, 1.5, 2.0**-149, -(2.0 - 2.0**-23) * 2.0**127, math.inf, -math.inf, math.nan]
    if type is T.FLOAT64:
        return [0.0, -0.0, 0.1, 5e-324, -1.7976931348623157e308, math.inf, -math.inf, math.nan]
    bits = 8 * SCALARS[type][1]
    if type.name.startswith("U"):
        return [0, 1, 2 ** (bits - 1), 2**bits - 1]
    return [-(2 ** (bits - 1)), -1, 0, 2 ** (bits - 1) - 1]


def all_types() -> dict[str, Field]:
    """Every value type alone, in an array, and in an empty array; keys of odd names."""
    kinds = [kind for kind in T if kind is not T.ARRAY]
    fields = {
        f"{kind.name.lower()}.{index}": Field(kind, value)
        for kind in kinds
        for index, value in enumerate(bounds(kind))
    }
    fields |= {f"{kind.name.lower()}.array": array_of(kind, bounds(kind)) for kind in kinds}
    fields |= {f"{kind.name.lower()}.array.empty": array_of(kind, []) for kind in kinds}
    fields["string.array.of.empty"] = array_of(T.STRING, [""] * 5)
    fields["uint16.array.long"] = array_of(T.UINT16, list(range(0, 65536, 97)))
    for key in (" ", "\u00e9t\u00e9", "\u952e", "\U0001f511", "line\nbreak\x1b", "k" * 300):
        fields[key] = Field(T.UINT8, len(key) % 256)
    return fields


CONTENTS: dict[str, dict[str, Field]] = {
    "types": all_types(),
    "vocabulary": TINY_VOCABULARY,
    "nothing": {},
    "first-shard": {
        **TINY_VOCABULARY,
        "split.no": Field(T.UINT16, 0),
        "split.count": Field(T.UINT16, 3),
        "split.tensors.count": Field(T.INT32, 7),
    },
    "odd-bools": {"two": Field(T.BOOL, True), "array": array_of(T.BOOL, [False, True, True])},
}


def written_by_gguf(fields: Mapping[str, Field], byteorder: str) -> bytes:
    """The same file from the `gguf` package, which knows version 3 and no empty arrays."""
    endian = GGUFEndian.LITTLE if byteorder == "little" else GGUFEndian.BIG
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "written.gguf")
        writer = GGUFWriter(path, "llama", endianess=endian)
        writer.kv_data[0].clear()  # its own general.architecture
        for key, field in fields.items():
            writer.add_key_value(key, field.value, field.type, field.element)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.close()
        return path.read_bytes()


def with_tensor() -> bytes:
    """The tiny vocabulary with one tensor behind it, as the `gguf` package writes a model."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.gguf")
        writer = GGUFWriter(path, "llama")
        for key, field in TINY_VOCABULARY.items():
            if key not in writer.kv_data[0]:
                writer.add_key_value(key, field.value, field.type, field.element)
        writer.add_tensor("token_embd.weight", np.arange(64, dtype=np.float32).reshape(2, 32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path.read_bytes()


def odd_bools() -> bytes:
    """Truth values other than 0 and 1; llama.cpp takes each but 0 for true."""
    section = Section().add_raw("two", T.BOOL, b"\x02")
    elements = section.pack.number(T.UINT32, T.BOOL) + section.pack.length(3) + b"\x00\x80\xff"
    return section.add_raw("array", T.ARRAY, elements).file()


def variants() -> dict[str, tuple[bytes, dict[str, Any]]]:
    """By file name: the bytes, and what the reader must say of the file."""
    found: dict[str, tuple[bytes, dict[str, Any]]] = {}

    def note(
        name: str, data: bytes, content: str, version: int = 3, order: str = "little", count: int = 0
    ) -> None:
        about = {"content": content, "version": version, "byteorder": order, "tensor_count": count}
        found[f"{name}.gguf"] = (data, about)

    for content in ("types", "vocabulary", "nothing"):
        for version in (1, 2, 3):
            for order in ORDERS:
                data = section_of(CONTENTS[content], version, order).file()
                note(f"{content}-version-{version}-{order}", data, content, version, order)
    for order in ORDERS:
        full = {
            key: field
            for key, field in CONTENTS["types"].items()
            if field.element is None or len(field.value) > 0  # type: ignore[arg-type]
        }
        for fields in (full, TINY_VOCABULARY):
            assert written_by_gguf(fields, order) == section_of(fields, 3, order).file(), order
    note("model-with-tensor", with_tensor(), "vocabulary", count=1)
    shard = section_of(CONTENTS["first-shard"]).file()
    note("model-00001-of-00003", shard, "first-shard")
    note("odd-bools", odd_bools(), "odd-bools")
    return found


def plain(fields: Mapping[str, Field]) -> dict[str, list[Any]]:
    """What JSON can hold: by key the type, the element type or None, and the value."""
    return {
        key: [field.type.name, None if field.element is None else field.element.name, field.value]
        for key, field in fields.items()
    }


def write(target: Path) -> None:
    """Write the folder anew; files of former variants go."""
    target.mkdir(parents=True, exist_ok=True)
    for old in target.glob("*.gguf"):
        old.unlink()
    found = variants()
    for name, (data, _) in found.items():
        (target / name).write_bytes(data)
    expected = {
        "files": {name: about for name, (_, about) in found.items()},
        "contents": {name: plain(fields) for name, fields in CONTENTS.items()},
        "tiny_ids": TINY_IDS,
    }
    (target / "expected.json").write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, default=TARGET, help="the folder to write")
    write(parser.parse_args().out)


if __name__ == "__main__":
    main()
