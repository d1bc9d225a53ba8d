"""Answers whose JSON is never held as a whole."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ggufbpe.server.streamed_answers import (
    Items,
    JoinedPieces,
    StreamedAnswer,
    answer_json,
    json_or_stream,
    sent_parts,
)

IDS = np.array([1, 2, 1] * 1000, np.int32)


def test_items_call_for_each_distinct_id_once() -> None:
    asked: list[int] = []

    def item(token: int) -> str:
        asked.append(token)
        return f'"{token}'

    parts = list(Items(IDS, item).parts())
    assert json.loads(b"".join(parts)) == ['"1', '"2', '"1'] * 1000
    assert asked == [1, 2]
    assert len(parts) == 5  # the brackets, and three thousand items in three parts


def test_an_error_is_that_of_the_first_id_that_has_one() -> None:
    ids = np.array([*IDS, 7, -1, 3], np.int32)
    for kind in (Items, JoinedPieces):
        with pytest.raises(KeyError, match="7"):
            kind(
                ids, {1: b"a", 2: b"b"}.__getitem__ if kind is JoinedPieces else {1: "a", 2: "b"}.__getitem__
            )


def test_joined_pieces_decode_across_parts() -> None:
    pieces = {1: b"\xc3", 2: b"\xa4"}
    text = json.loads(b"".join(JoinedPieces(IDS, pieces.__getitem__).parts()))
    assert text == "ä\ufffd" * 1000


def test_a_streamed_answer_is_the_json_of_the_whole() -> None:
    answer = {"n": 3, "ids": np.array([1, 2]), "items": Items(IDS[:3], "?ab".__getitem__), "none": None}
    streamed = json_or_stream(answer)
    assert isinstance(streamed, StreamedAnswer)
    whole = b"".join(sent_parts(streamed))
    assert whole == b'{"n":3,"ids":[1,2],"items":["a","b","a"],"none":null}'
    assert streamed.size == len(whole)
    assert answer_json(answer) == whole


def test_other_answers_are_whole() -> None:
    assert json_or_stream({"n": 3}) == b'{"n":3}'
    assert [len(part) for part in sent_parts(b"x" * 600_000)] == [262_144, 262_144, 75_712]


def test_lone_surrogates_are_escaped() -> None:
    assert answer_json({"s": "\udcff"}) == b'{"s":"\\udcff"}'
    with pytest.raises(TypeError):
        answer_json({"s": object()})
