"""Floats in JSON: recorded answers of nlohmann::json (llama.cpp b11549)."""

from __future__ import annotations

import pytest

from ggufbpe.chat.request import json_numbers
from ggufbpe.chat.request.json_numbers import dumped_float
from ggufbpe.chat.request.json_text import dumped

WRITTEN = {
    0.0: "0.0",
    1.0: "1.0",
    -2.5: "-2.5",
    0.1 + 0.2: "0.30000000000000004",
    1e-4: "0.0001",
    1e-5: "1e-05",
    1e14: "100000000000000.0",
    1e15: "1e+15",
    1234567890123456.0: "1.234567890123456e+15",
    1e23: "9.999999999999999e+22",
    4463.09348: "4463.0934800000005",
    -36800.50192249264: "-36800.501922492636",
    2.454440643907477e-95: "2.4544406439074772e-95",
    5e-324: "5e-324",
    2.0**-1022: "2.2250738585072014e-308",
    2.0**1023: "8.98846567431158e+307",
    1.7976931348623157e308: "1.7976931348623157e+308",
}


@pytest.mark.parametrize("number", WRITTEN)
def test_dumped_float(number: float) -> None:
    assert dumped_float(number) == WRITTEN[number]


def test_negative_zero() -> None:
    assert dumped_float(-0.0) == "-0.0"


def test_only_floats_are_written_so() -> None:
    value = [10**15, 1e15, {'"1e15\\': "4463.09348", "a": 4463.09348}]
    assert dumped(value) == '[1000000000000000,1e+15,{"\\"1e15\\\\":"4463.09348","a":4463.0934800000005}]'
    assert dumped(['\0\1"\\', 1e15, '\\"1e15']) == r'["\u0000\u0001\"\\",1e+15,"\\\"1e15"]'


def test_digits_are_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither equal floats nor whole ones take long, however many there are."""
    asked = []
    digits = json_numbers._digits

    def counted(number: float) -> tuple[str, int]:
        asked.append(number)
        return digits(number)

    monkeypatch.setattr(json_numbers, "_digits", counted)
    assert dumped([0.375, 20.0] * 1000) == f"[{','.join(['0.375,20.0'] * 1000)}]"
    assert asked == [0.375]
