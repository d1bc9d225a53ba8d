"""WordPiece and RWKV: what the recorded answers of llama.cpp (test_loading.py) do not show.

Offsets into the text as given, long texts on both engines and several threads, and what is refused.
"""

from __future__ import annotations

import pickle
import sys
import warnings
from array import array
from itertools import product
from pathlib import Path

import pytest
from conftest import ROOT, peak_growth
from reference import write_metadata

from ggufbpe import GGUFWarning, Tokenizer
from ggufbpe.convert.export_formats import export_to
from ggufbpe.convert.portable_patterns import NotExpressibleError
from ggufbpe.gguf.constants import TokenType
from ggufbpe.models.rwkv import unescape
from ggufbpe.native import native
from ggufbpe.native.lazy_strings import lazy_ids, lazy_strings
from ggufbpe.tokenizer.native_engine import NativeEngine

ENGINES = ["reference", *(["native"] if native is not None else [])]
MODELS = ["wpm", "rwkv"]
LONG = {
    "one letter": "h" * 1_000_000,
    "words": "hello the world, x " * 60_000,
    "white space": " \n" * 400_000 + "hello",
    "accents": "héllo e\u0301 " * 50_000,
    "nothing that is known": "ъ" * 200_000,
}


def opened(name: str, engine: str = "auto") -> Tokenizer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GGUFWarning)
        return Tokenizer.from_gguf(ROOT / "fixtures" / "vocabs" / f"{name}.gguf", engine=engine)  # type: ignore[arg-type]


def rwkv(path: Path, tokens: list[str], **keys: int | list[int]) -> Tokenizer:
    ids = {f"tokenizer.ggml.{name}": value for name, value in keys.items()}
    model = {"general.architecture": "rwkv6", "tokenizer.ggml.model": "rwkv", "tokenizer.ggml.tokens": tokens}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GGUFWarning)
        return Tokenizer.from_gguf(write_metadata(path, {**model, **ids}))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("hello", ["hello"]),
        ("HÉllo, hello", ["HÉllo", ",", "hello"]),
        ("he\u0301llo", ["he\u0301llo"]),
        ("hello\u0301 x", ["hello", "x"]),  # what is dropped at the end is in no token
        ("\u0301 \u00ad hel\u00adlo", ["hel\u00adlo"]),
        ("中文中", ["中", "文", "中"]),
        ("hellore", ["hello", "re"]),
        ("zzz hello", ["zzz", "hello"]),  # unknown
        ("\u037e한", [";", "한"]),
    ],
)
def test_offsets_lead_to_the_text_as_given(text: str, spans: list[str], engine: str) -> None:
    data = text.encode()
    ids, found = opened("wpm", engine).encode_with_offsets(text, add_special=False)
    assert [data[start:end].decode().replace("\u037e", ";") for start, end in found] == spans
    assert ids == opened("wpm", engine).encode(text, add_special=False)


@pytest.mark.parametrize("engine", ENGINES)
def test_offsets_of_rwkv_are_bytes(engine: str) -> None:
    data = "hello中\n\n".encode() + b"\xff"
    ids, found = opened("rwkv", engine).encode_with_offsets(data)
    assert b"".join(data[start:end] for start, end in found) == data
    assert opened("rwkv", engine).decode_bytes(ids) == data


def test_words_are_normalized() -> None:
    assert opened("wpm").pre_tokenize("Héllo,\tWÖRLD\u00ad 中文") == ["hello", ",", "world", "中", "文"]
    assert opened("wpm-cased").pre_tokenize("Héllo,\tWÖRLD") == ["Héllo", ",", "WÖRLD"]


@pytest.mark.slow
@pytest.mark.skipif(native is None, reason="there is no compiled engine")
@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
@pytest.mark.parametrize("name", MODELS)
def test_engines_agree_on_long_texts(name: str, text: str) -> None:
    tok = opened(name)
    ids = opened(name, "reference").encode(text)
    assert tok.encode(text) == tok.encode(text, parse_special=False) == ids
    assert tok.encode_to_numpy(text, threads=3).tolist() == ids
    assert tok.count(text, threads=2) == len(ids)
    assert tok.encode_batch([text, "hello"], threads=2) == [ids, tok.encode("hello")]


@pytest.mark.parametrize("name", MODELS)
def test_pickles(name: str) -> None:
    tok = opened(name)
    again = pickle.loads(pickle.dumps(tok))
    assert again.encode("hello, 中\xff x") == tok.encode("hello, 中\xff x")


@pytest.mark.skipif(native is None or sys.platform != "linux", reason="of the compiled engine, by /proc")
@pytest.mark.parametrize("letters", ["abc", "abcde", "abcdefg"])
def test_a_trie_takes_some_bytes_for_each_node(letters: str) -> None:
    """Where all nodes have three, five or seven children, each block keeps free cells that fit no others."""
    length, nodes = 1, len(letters)
    while nodes < 30_000:
        length += 1
        nodes += len(letters) ** length
    texts = lazy_strings(["".join(token) for token in product(letters, repeat=length)])
    vocabulary = opened("rwkv").vocabulary._replace(
        tokens=texts,
        token_to_id=lazy_ids(texts),
        attributes=array("H", [4]) * len(texts),
        special_token_ids=(),
    )
    assert peak_growth(lambda: NativeEngine(vocabulary, 1 << 16)) < 200 * nodes


def test_rwkv_can_be_exported_as_a_gguf_only() -> None:
    with pytest.raises(
        NotExpressibleError, match="which none of these formats has a place for; the format vocab-gguf can"
    ):
        export_to("tokenizer.json", opened("rwkv").vocabulary)


def test_rwkv_comes_to_an_end_where_llama_cpp_does_not(tmp_path: Path) -> None:
    """The text begins a token, and no token is whole."""
    tok = rwkv(tmp_path / "v.gguf", ["?", "abc", "b"], unknown_token_id=0)
    assert tok.encode("ab") == [0, 2]
    assert tok.encode("ababc") == [0, 2, 1]
    assert tok.nl_id is None


@pytest.mark.parametrize(
    ("token", "data"),
    [
        ("", b""),
        ("a\\tb\\n\\r", b"a\tb\n\r"),
        (r"\xff\x0A", b"\xff" + bytes([(ord("A") - ord("0")) & 0xFF])),  # a capital is no digit to llama.cpp
        (r"\'\"\\q", b"'\"\\q"),
        ("é\\", "é".encode()),
        ("a\\x", b"a"),
        ("a\\x4", b"a"),
    ],
)
def test_unescaped(token: str, data: bytes) -> None:
    assert unescape(token) == data


@pytest.mark.both_engines
def test_a_token_of_type_byte_may_have_any_text(tmp_path: Path) -> None:
    """llama.cpp looks for <0xXX> only in the tokens of models that have no escapes."""
    byte, normal = int(TokenType.BYTE), int(TokenType.NORMAL)
    tok = rwkv(tmp_path / "byte.gguf", ["a", "ab", r"\xc3", r"\n"], token_type=[byte, normal, byte, byte])
    assert tok.encode("aab\n") == [0, 1, 3]
    assert [tok.token_to_piece(token) for token in range(4)] == [b"a", b"ab", b"\xc3", b"\n"]
