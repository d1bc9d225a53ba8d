"""Writes Apache Thrift's compact protocol, the encoding of the metadata of parquet files.

Source: thrift, doc/specs/thrift-compact-protocol.md.

>>> struct({1: i32(-3), 4: list_of([binary(b"ab")])})[1].hex()
'1505391802616200'
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Value = tuple[int, bytes]  # the number of its type, and how it is written


def varint(number: int) -> bytes:
    """A number that is not negative, in groups of 7 bits, the lowest first."""
    encoded = bytearray()
    while number >= 0x80:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def _zigzag(number: int) -> bytes:
    return varint(2 * number if number >= 0 else -2 * number - 1)


def boolean(value: bool) -> Value:
    """A field of a struct; its type is the value."""
    return 1 if value else 2, b""


def i8(number: int) -> Value:
    """A byte."""
    return 3, number.to_bytes(1, "little", signed=True)


def i32(number: int) -> Value:
    """An integer of 32 bits."""
    return 5, _zigzag(number)


def i64(number: int) -> Value:
    """An integer of 64 bits."""
    return 6, _zigzag(number)


def binary(data: bytes) -> Value:
    """Bytes, or a text in UTF-8."""
    return 8, varint(len(data)) + data


def list_of(values: Sequence[Value]) -> Value:
    """A list of values of one type."""
    kind, size = values[0][0] if values else 12, len(values)
    head = bytes([size << 4 | kind]) if size < 15 else bytes([0xF0 | kind]) + varint(size)
    return 9, head + b"".join(data for _, data in values)


def struct(fields: Mapping[int, Value]) -> Value:
    """Fields by number, in ascending order, of which each is less than 16 behind the one before."""
    parts, last = [], 0
    for number, (kind, data) in fields.items():
        parts += [bytes([(number - last) << 4 | kind]), data]
        last = number
    return 12, b"".join([*parts, b"\0"])
