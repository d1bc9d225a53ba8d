"""Thrift's compact protocol, by the bytes of its specification; test_row_formats.py reads whole files by pyarrow."""

from __future__ import annotations

import pytest

from ggufbpe.data.corpora.thrift import Value, binary, boolean, i8, i32, i64, list_of, struct, varint


@pytest.mark.parametrize(
    ("number", "expected"),
    [(0, "00"), (127, "7f"), (128, "8001"), (300, "ac02"), (50399, "df8903"), (1 << 32, "8080808010")],
)
def test_numbers_in_groups_of_seven_bits(number: int, expected: str) -> None:
    assert varint(number).hex() == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (boolean(True), (1, "")),
        (boolean(False), (2, "")),
        (i8(-1), (3, "ff")),
        (i32(0), (5, "00")),
        (i32(-1), (5, "01")),  # zigzag: the sign is the lowest bit
        (i32(1), (5, "02")),
        (i32(-(1 << 31)), (5, "ffffffff0f")),
        (i64(1 << 62), (6, "80808080808080808001")),
        (binary(b"ab"), (8, "026162")),
        (list_of([]), (9, "0c")),
        (list_of([i32(1)] * 14), (9, "e5" + "02" * 14)),
        (list_of([i32(1)] * 15), (9, "f50f" + "02" * 15)),  # a size that does not fit into four bits
        (struct({}), (12, "00")),
        (struct({1: boolean(True), 3: i8(5), 18: boolean(False)}), (12, "112305f200")),
    ],
)
def test_values(value: Value, expected: tuple[int, str]) -> None:
    kind, data = value
    assert (kind, data.hex()) == expected
