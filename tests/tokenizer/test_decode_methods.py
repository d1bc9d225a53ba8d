"""The arguments of decoding; what is decoded is tested in test_detokenization.py."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from synthetic import byte_tokens, make_vocabulary

from ggufbpe import Tokenizer
from ggufbpe.models.vocabulary import CONTROL
from ggufbpe.tokenizer.decode_methods import DecodeMethods

TOK = Tokenizer(
    make_vocabulary([*byte_tokens(), "<s>"], attributes={"<s>": CONTROL}, special_ids={"bos": 256}),
    "reference",
)
FLAGS = ["remove_special", "unparse_special", "clean_spaces", "continues"]
CALLS: list[tuple[str, tuple[Any, ...], str]] = [
    *(("decode", ([97, 256],), flag) for flag in FLAGS),
    *(("decode_bytes", ([97, 256],), flag) for flag in FLAGS),
    *(("decode_batch", ([[97, 256]],), flag) for flag in FLAGS),
    *(("decode_stream", (), flag) for flag in FLAGS),
    ("token_to_piece", (256,), "special"),
]


@pytest.mark.parametrize(("name", "arguments", "flag"), CALLS)
def test_flags_are_bools_of_python_or_numpy(name: str, arguments: tuple[Any, ...], flag: str) -> None:
    assert name in vars(DecodeMethods)
    method = getattr(TOK, name)
    for value in (2, -1, 10**5000, None, "no", []):
        with pytest.raises(TypeError, match=f"^{flag} must be True or False, not "):
            method(*arguments, **{flag: value})
    for value in (False, True):
        assert repr(method(*arguments, **{flag: numpy.bool_(value)})) == repr(
            method(*arguments, **{flag: value})
        )


@pytest.mark.parametrize(("batch", "shown"), [(None, "None"), (5, "int"), (b"ab", "a single bytes")])
def test_a_batch_is_an_iterable(batch: Any, shown: str) -> None:
    with pytest.raises(TypeError, match=f"^batch must be an iterable of lists of ids, not {shown}$"):
        TOK.decode_batch(batch)
