"""A vocabulary in sentencepiece's own file: types that it has no place for, and what is said of them."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from conftest import UNIGRAM
from exporting import names

from ggufbpe import GGUFWarning, Tokenizer
from ggufbpe.analysis.conversion import parity
from ggufbpe.convert.exporters.sentencepiece_model import to_sentencepiece
from ggufbpe.convert.portable_patterns import NotExpressibleError
from ggufbpe.gguf.constants import GGUFValueType as T
from ggufbpe.gguf.constants import TokenType
from ggufbpe.gguf.value_types import Field
from ggufbpe.gguf.writer import packed_file
from ggufbpe.models.loading import load_vocabulary

BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
TOKENS = ["<unk>", *BYTES, "a", "b", "ab", "▁", "▁▁", "<s>"]


def opened(types: dict[str, TokenType], folder: Path) -> Tokenizer:
    """A model that puts `<s>` before a text, and no space; its tokens are normal, unless `types` says otherwise."""
    kinds = {
        "<unk>": TokenType.UNKNOWN,
        **dict.fromkeys(BYTES, TokenType.BYTE),
        "<s>": TokenType.CONTROL,
        **types,
    }
    keys = {
        "general.architecture": Field(T.STRING, "llama"),
        "tokenizer.ggml.model": Field(T.STRING, "llama"),
        "tokenizer.ggml.tokens": Field(T.ARRAY, TOKENS, T.STRING),
        "tokenizer.ggml.scores": Field(T.ARRAY, [-float(token) for token in range(len(TOKENS))], T.FLOAT32),
        "tokenizer.ggml.token_type": Field(
            T.ARRAY, [kinds.get(text, TokenType.NORMAL) for text in TOKENS], T.INT32
        ),
        "tokenizer.ggml.unknown_token_id": Field(T.UINT32, 0),
        "tokenizer.ggml.bos_token_id": Field(T.UINT32, TOKENS.index("<s>")),
        "tokenizer.ggml.add_bos_token": Field(T.BOOL, True),
        "tokenizer.ggml.add_space_prefix": Field(T.BOOL, False),
    }
    path = folder / "model.gguf"
    path.write_bytes(packed_file(keys))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GGUFWarning)
        return Tokenizer.from_gguf(path)


CASES: dict[str, tuple[dict[str, TokenType], str, str, bool]] = {  # types, limit, text that differs, with BOS
    "control token of one character": ({"b": TokenType.CONTROL}, "merged_special_tokens", "b", False),
    "user-defined byte": ({"<0x41>": TokenType.USER_DEFINED}, "user_defined_special_tokens", "<0x41>", False),
    "user-defined unknown token": (
        {"<unk>": TokenType.USER_DEFINED},
        "user_defined_special_tokens",
        "<unk>",
        False,
    ),
    "user-defined spaces": ({"▁▁": TokenType.USER_DEFINED}, "escaped_spaces", " ▁▁", False),
    "BOS that is no control token": ({"<s>": TokenType.NORMAL}, "bos_and_eos", "a", True),
}


@pytest.mark.parametrize("case", CASES)
def test_a_type_that_has_no_place_is_a_limit(case: str, tmp_path: Path) -> None:
    types, limit, text, add_special = CASES[case]
    tok = opened(types, tmp_path)
    export = to_sentencepiece(tok.vocabulary)
    assert names(export.limits) == {limit}
    library = parity.sentencepiece(*export.files.values())
    ours = tok.encode(text, add_special=add_special, parse_special=False)
    assert ours != library.encode(text, add_special, False)


def test_a_unigram_model_whose_bos_is_no_control_token() -> None:
    vocabulary = load_vocabulary(UNIGRAM)
    normal = vocabulary._replace(add_bos=True, special_ids={**vocabulary.special_ids, "bos": 5})
    assert "bos_and_eos" in names(to_sentencepiece(normal).limits)
    assert "bos_and_eos" not in names(to_sentencepiece(vocabulary).limits)


def test_a_sound_vocabulary_has_no_limits(tmp_path: Path) -> None:
    tok = opened({}, tmp_path)
    export = to_sentencepiece(tok.vocabulary)
    assert export.limits == ()
    library = parity.sentencepiece(*export.files.values())
    for text in ("ab  ▁▁a<0x41>", "", "é<unk>"):
        assert tok.encode(text, parse_special=False) == library.encode(text, True, False)


def test_a_byte_of_another_type_is_refused(tmp_path: Path) -> None:
    """sentencepiece would not load such a file."""
    with pytest.raises(NotExpressibleError, match="255 of 256 bytes"):
        to_sentencepiece(opened({"<0xED>": TokenType.CONTROL}, tmp_path).vocabulary)
