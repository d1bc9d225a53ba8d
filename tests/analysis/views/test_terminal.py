"""Text that is safe for a terminal, and JSON that strict parsers can read (views/terminal.py)."""

from __future__ import annotations

import math

import orjson
import pytest

from ggufbpe.analysis.views.terminal import json_bytes, json_parts, json_text

STRICT = [
    ({"path": "m\udcff.gguf"}, {"path": "m\ufffd.gguf", "path_bytes": b"m\xff.gguf".hex()}),
    ({"text": "\ud800"}, {"text": "\ufffd", "text_bytes": "eda080"}),
    ({"text": "\udcc3", "text_bytes": "c3a4"}, {"text": "\ufffd", "text_bytes": "c3a4"}),
    ({"all": ["a", {"text": "\udcff"}]}, {"all": ["a", {"text": "\ufffd", "text_bytes": "ff"}]}),
    (["a\udcff\udcfe", ("\udcff",)], ["a\ufffd\ufffd", ["\ufffd"]]),
    ({"a\udcff": 1, "b": None}, {"a\ufffd": 1, "b": None}),
    (
        {"after": math.nan, "scores": [math.inf, -math.inf, 0.5]},
        {"after": "nan", "scores": ["inf", "-inf", 0.5]},
    ),
    ({"text": "a😀é\ufffd", "number": 1}, {"text": "a😀é\ufffd", "number": 1}),
]


@pytest.mark.parametrize(("value", "expected"), STRICT)
def test_strict_parsers_read_all_json(value: object, expected: object) -> None:
    assert orjson.loads(json_text(value)) == expected
    assert orjson.loads(json_bytes(value)) == expected
    assert orjson.loads(b"".join(json_parts({}, "items", [value]))) == {"items": [expected]}
