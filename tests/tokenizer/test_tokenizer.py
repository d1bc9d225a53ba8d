"""The public face: each name of the interface, what it takes and refuses, and that its forms agree."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic import (
    BYTE_LEVEL,
    BYTE_LEVEL_FAMILIES,
    ONE_OF_EACH_FAMILY,
    RAW_NAMES,
    bounded,
    broken_bytes,
    byte_pairs,
    byte_tokens,
    make_vocabulary,
    texts,
    tokenizer_as,
)

from ggufbpe import DecodeStream, TokenAttribute, Tokenizer
from ggufbpe._util import utf8
from ggufbpe.models.dna import K_MER_MARKER
from ggufbpe.models.vocabulary import CONTROL, NORMAL, UNKNOWN, USER_DEFINED

pytestmark = pytest.mark.both_engines

GPT2 = tokenizer_as("gpt-2")
END = 50256  # <|endoftext|>

# ---- opening --------------------------------------------------------------------------------------------


def test_from_gguf_takes_a_str_and_a_path(gpt2_path: Path) -> None:
    for path in (gpt2_path, str(gpt2_path), os.fspath(gpt2_path)):
        assert Tokenizer.from_gguf(path).encode("Hello world") == [15496, 995]


def test_from_gguf_of_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no\.gguf"):
        Tokenizer.from_gguf(tmp_path / "no.gguf")


@pytest.mark.parametrize("model", [None, 5, ["model.gguf"]])
def test_from_gguf_of_what_is_no_path(model: Any) -> None:
    kind = type(model).__name__
    with pytest.raises(TypeError, match=f"a model is given by its path or name, .* not {kind}"):
        Tokenizer.from_gguf(model)


# ---- names and defaults ---------------------------------------------------------------------------------

ENCODING = "(self, text, *, add_special=True, parse_special=True)"
DECODING = "(self, ids, *, remove_special=False, unparse_special=False, clean_spaces=True, continues=False)"


@pytest.mark.parametrize(
    ("method", "signature"),
    [
        ("encode", ENCODING.replace(")", ", continues=False)")),
        ("encode_ordinary", "(self, text, *, continues=False)"),
        ("encode_to_numpy", ENCODING.replace(")", ", continues=False, threads=1)")),
        ("encode_with_offsets", ENCODING.replace(")", ", continues=False, unit='bytes')")),
        ("encode_with_offsets_to_numpy", ENCODING.replace(")", ", continues=False, unit='bytes')")),
        ("encode_batch", ENCODING.replace("text", "texts").replace(")", ", threads=None)")),
        ("encode_batch_to_numpy", ENCODING.replace("text", "texts").replace(")", ", threads=None)")),
        ("count", ENCODING.replace(")", ", continues=False, threads=1, limit=None)")),
        ("count_batch", ENCODING.replace("text", "texts").replace(")", ", threads=None)")),
        ("tokens", ENCODING.replace(")", ", continues=False)")),
        ("pre_tokenize", "(self, text)"),
        ("words", "(self, text)"),
        ("find_split_point", "(self, data, start)"),
        ("decode", DECODING),
        ("decode_batch", DECODING.replace(" ids,", " batch,")),
        ("decode_bytes", DECODING),
        ("decode_stream", DECODING.replace(" ids,", "")),
        ("token_to_piece", "(self, token, *, special=True)"),
        ("token_to_id", "(self, token)"),
        ("id_to_token", "(self, token)"),
        ("token_attributes", "(self, token)"),
        ("is_special", "(self, token)"),
        ("is_eog", "(self, token)"),
        ("get_vocab", "(self)"),
        ("token_bytes_to_numpy", "(self)"),
    ],
)
def test_signature(method: str, signature: str) -> None:
    found = inspect.signature(getattr(Tokenizer, method))
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in found.parameters.values()]
    assert str(inspect.Signature(bare)) == signature


def test_type_checkers_know_that_a_subclass_stays_one() -> None:
    methods = (
        Tokenizer.from_gguf,
        Tokenizer.from_huggingface,
        Tokenizer.with_overrides,
        Tokenizer.with_llama_cpp,
    )
    assert {repr(get_type_hints(method)["return"]) for method in methods} == {"~Self"}


@pytest.mark.parametrize(
    "method",
    [
        DecodeStream.push,
        Tokenizer.token_to_piece,
        Tokenizer.is_special,
        Tokenizer.is_eog,
        Tokenizer.id_to_token,
        Tokenizer.token_attributes,
    ],
)
def test_type_checkers_know_that_ids_may_be_integers_of_numpy(method: Callable[..., Any]) -> None:
    assert method.__annotations__["token"] == "SupportsIndex"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("vocab_size", 50257),
        ("model", "gpt2"),
        ("pre", "gpt-2"),
        ("add_bos", False),
        ("add_eos", False),
        ("eog_ids", frozenset({END})),
        ("bos_id", END),
        ("eos_id", END),
        ("eot_id", END),
        ("nl_id", 198),
        ("bos_token", "<|endoftext|>"),
        ("eos_token", "<|endoftext|>"),
        ("eot_token", "<|endoftext|>"),
        *[(f"{name}_token", None) for name in ["eom", "unk", "sep", "pad", "mask"]],
        ("special_ids", {"bos": END, "eos": END, "eot": END}),
        ("control_ids", frozenset({END})),
        *[(f"{name}_id", None) for name in ["eom", "unk", "sep", "pad", "mask"]],
        *[(f"fim_{name}_id", None) for name in ["pre", "suf", "mid", "pad", "rep", "sep"]],
    ],
)
def test_attributes_of_gpt2(name: str, value: object) -> None:
    found = getattr(GPT2, name)
    assert found == value
    assert type(found) is type(value)


def test_attributes_of_the_raw_vocabulary() -> None:
    tok = tokenizer_as("gemma4")
    names = {"bos": "<bos>", "eos": "<eos>", "unk": "<unk>", "pad": "<pad>", "mask": "<mask>", "nl": "\n"}
    assert {name: tok.id_to_token(getattr(tok, f"{name}_id")) for name in names} == names
    assert (tok.model, tok.pre, tok.add_bos, tok.add_eos) == ("gemma4", "gemma4", True, False)


def test_special_tokens_of_the_raw_vocabulary() -> None:
    tok = tokenizer_as("gemma4")
    assert (tok.bos_token, tok.pad_token, tok.unk_token) == ("<bos>", "<pad>", "<unk>")
    assert {name: tok.id_to_token(token) for name, token in tok.special_ids.items() if name[:3] != "fim"} == {
        name: f"<{'turn|' if name == 'eot' else name}>" for name in tok.special_ids if name[:3] != "fim"
    }


def test_what_is_special_and_what_ends_a_generation() -> None:
    kinds = {"a": NORMAL, "<c>": CONTROL, "<u>": UNKNOWN, "<d>": USER_DEFINED}
    vocabulary = make_vocabulary([*kinds, "<e>"], attributes={**kinds, "<e>": CONTROL})
    tok = Tokenizer(vocabulary._replace(eog_ids=frozenset({4})))
    assert list(map(tok.is_special, range(5))) == [False, True, True, False, True]
    assert tok.control_ids == {1, 4}
    assert list(map(tok.is_eog, range(5))) == [False, False, False, False, True]


def test_the_vocabulary_as_a_dict() -> None:
    vocabulary = GPT2.get_vocab()
    assert len(vocabulary) == len(GPT2) == GPT2.vocab_size
    assert (vocabulary["Ġworld"], vocabulary["<|endoftext|>"]) == (995, END)
    vocabulary.clear()  # it is the caller's
    assert GPT2.get_vocab() != {}


def test_nl_id_where_there_is_no_line_break() -> None:
    assert Tokenizer(make_vocabulary(["a"])).nl_id is None


def test_repr_says_what_it_is() -> None:
    assert repr(GPT2) == "<Tokenizer gpt2 gpt-2 of 50257 tokens>"


# ---- ids and tokens -------------------------------------------------------------------------------------


def test_encode_and_decode_hello_world() -> None:
    assert GPT2.encode("Hello world") == [15496, 995]
    assert GPT2.decode([15496, 995]) == "Hello world"
    assert GPT2.decode_bytes([15496, 995]) == b"Hello world"
    assert GPT2.encode_with_offsets("Hello world") == ([15496, 995], [(0, 5), (5, 11)])
    assert GPT2.encode_batch(["Hello", b" world", ""]) == [[15496], [995], []]
    assert GPT2.count("Hello world") == 2
    assert GPT2.pre_tokenize("Hello world") == ["Hello", " world"]
    assert GPT2.token_to_piece(995) == b" world"
    assert GPT2.id_to_token(995) == "Ġworld"
    assert GPT2.token_to_id("Ġworld") == 995
    assert GPT2.token_to_id(" world") is None


def test_token_attributes_are_flags() -> None:
    assert GPT2.token_attributes(995) is TokenAttribute.NORMAL
    assert GPT2.token_attributes(END) is TokenAttribute.CONTROL
    assert TokenAttribute.RSTRIP in TokenAttribute(CONTROL | 256)


def test_ids_and_tokens_are_each_others_inverse() -> None:
    assert [GPT2.token_to_id(GPT2.id_to_token(token)) for token in range(0, 50257, 97)] == list(
        range(0, 50257, 97)
    )


@pytest.mark.parametrize(
    "ids",
    [
        [15496, 995],
        (15496, 995),
        iter([15496, 995]),
        (token for token in (15496, 995)),
        {15496: "", 995: ""},
        [np.int32(15496), np.int64(995)],
        np.array([15496, 995]),
        np.array([15496, 995], dtype=np.uint16),
        np.array([15496, 0, 995, 0], dtype=np.int32)[::2],
    ],
)
def test_decode_takes_any_integers(ids: Any) -> None:
    assert GPT2.decode(ids) == "Hello world"


def test_single_ids_may_be_any_integers() -> None:
    assert GPT2.token_to_piece(np.int64(995)) == b" world"
    assert GPT2.id_to_token(np.uint16(995)) == "Ġworld"
    assert GPT2.token_to_piece(True) == GPT2.token_to_piece(1)  # as everywhere in Python
    assert GPT2.decode([True]) == GPT2.decode([1])
    assert GPT2.decode_stream().push(np.int32(995)) == " world"


# ---- texts ----------------------------------------------------------------------------------------------

ENCODERS: list[Callable[[Any], Any]] = [
    GPT2.encode,
    GPT2.encode_to_numpy,
    GPT2.encode_with_offsets,
    GPT2.count,
    GPT2.words,
    lambda text: GPT2.encode_batch([text]),
]


@pytest.mark.parametrize("text", ["", "Hello world", "naïve 中文 🙂", "a\0b"])
def test_text_may_be_str_or_bytes(text: str) -> None:
    data = text.encode()
    kinds = (data, bytearray(data), memoryview(data), memoryview(b"x" + data + b"x")[1:-1])
    for encoder in ENCODERS:
        assert [repr(encoder(kind)) for kind in kinds] == [repr(encoder(text))] * len(kinds)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("", []),
        (b"", []),
        ("a", [64]),
        (b"\0", [188]),
        (b"\xff", [4210]),  # one U+FFFD
        (b"a\xe2\x82b", [64, 6353, 65]),  # two of them
        (b"\xc1\x81", [6353]),  # an overlong "A" is two U+FFFD
        ("<|endoftext|>", [END]),
        ("a<|endoftext|>b", [64, END, 65]),
    ],
)
def test_ids_of_odd_texts(text: str | bytes, ids: list[int]) -> None:
    assert GPT2.encode(text) == ids


def test_every_single_byte_has_ids() -> None:
    for byte in range(256):
        expected = bytes([byte]) if byte < 0x80 else "\ufffd".encode()
        assert GPT2.decode_bytes(GPT2.encode(bytes([byte]))) == expected


@pytest.mark.parametrize(
    ("add_bos", "add_eos", "text", "flags", "tokens"),
    [
        (False, False, "a", {}, "a"),
        (True, False, "a", {}, "<s> a"),
        (False, True, "a", {}, "a </s>"),
        (True, True, "a", {}, "<s> a </s>"),
        (True, True, "", {}, "<s> </s>"),
        (True, True, "a", {"add_special": False}, "a"),
        (True, True, "", {"add_special": False}, ""),
        (True, True, "<s>a</s>", {}, "<s> <s> a </s> </s>"),  # as llama.cpp, which only warns
        (True, False, "<s>", {"parse_special": False}, "<s> < s >"),
        (False, False, "<s>", {"parse_special": False, "add_special": False}, "< s >"),
    ],
)
def test_bos_and_eos(add_bos: bool, add_eos: bool, text: str, flags: dict[str, bool], tokens: str) -> None:
    vocabulary = make_vocabulary(
        [*byte_tokens(), "<s>", "</s>"],
        attributes={"<s>": CONTROL, "</s>": CONTROL},
        special_ids={"bos": 256, "eos": 257},
        add_bos=add_bos,
        add_eos=add_eos,
    )
    tok = Tokenizer(vocabulary)
    assert [tok.id_to_token(token) for token in tok.encode(text, **flags)] == tokens.split()
    spans = tok.encode_with_offsets(text, **flags)[1]
    if add_bos and flags.get("add_special", True):
        assert spans[0] == (0, 0)
    if add_eos and flags.get("add_special", True):
        assert spans[-1] == (len(text), len(text))


def test_bos_and_eos_that_are_to_be_added_but_do_not_exist() -> None:
    tok = Tokenizer(make_vocabulary(["a"], add_bos=True, add_eos=True))
    assert tok.encode("a") == [0]
    assert tok.encode_with_offsets("a") == ([0], [(0, 1)])


# ---- what is refused ------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [None, 5, 1.5, ["a"], ("a",), object, np.array([1])])
def test_text_of_a_wrong_type(text: Any) -> None:
    for encoder in ENCODERS:
        with pytest.raises(TypeError, match=f"text must be str or bytes, not {type(text).__name__}"):
            encoder(text)


@pytest.mark.parametrize("text", ["one text", b"one text", bytearray(b"a"), memoryview(b"a")])
def test_a_batch_of_one_text_is_a_mistake(text: Any) -> None:
    with pytest.raises(TypeError, match="texts must be an iterable of texts, not a single"):
        GPT2.encode_batch(text)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("\ud800", r"U\+D800, at character 0"),
        ("aé\udfff", r"U\+DFFF, at character 2"),
        ("\ud83d\ude00", r"U\+D83D, at character 0"),  # a pair is no character in Python either
        ("🙂\udc80\udc81", r"U\+DC80, at character 1"),
    ],
)
def test_lone_surrogates(text: str, where: str) -> None:
    for encoder in ENCODERS:
        with pytest.raises(ValueError, match=f"lone surrogate, {where}"):
            encoder(text)


def test_flags_are_by_name_only() -> None:
    encoders: list[Callable[..., Any]] = [
        GPT2.encode,
        GPT2.count,
        GPT2.encode_with_offsets,
        GPT2.encode_to_numpy,
    ]
    for method in encoders:
        with pytest.raises(TypeError, match="positional argument"):
            method("a", False)
    decoders: list[Callable[..., Any]] = [GPT2.decode, GPT2.decode_bytes]
    for method in decoders:
        with pytest.raises(TypeError, match="positional argument"):
            method([64], True)


ONE_ID: list[Callable[[Any], Any]] = [
    GPT2.token_to_piece,
    GPT2.id_to_token,
    GPT2.token_attributes,
    GPT2.is_special,
    GPT2.is_eog,
    lambda token: GPT2.token_to_piece(token, special=False),
    lambda token: GPT2.decode([64, token]),
    lambda token: GPT2.decode_bytes([token]),
    lambda token: GPT2.decode_stream().push(token),
]


@pytest.mark.parametrize("token", [-1, 50257, 1 << 31, -(1 << 31), 1 << 80, np.int64(50257)])
def test_id_out_of_range(token: int) -> None:
    for ask in ONE_ID:
        with pytest.raises(ValueError, match=f"token id {token} is out of range: .* ids 0 to 50256"):
            ask(token)


@pytest.mark.parametrize("token", [1.0, "64", None, b"a", [64], np.float32(1), np.array([1.5]), int])
def test_id_of_a_wrong_type(token: Any) -> None:
    for ask in ONE_ID:
        with pytest.raises(TypeError, match=r"(a token id|ids) must be (an integer|integers), not"):
            ask(token)


@pytest.mark.parametrize(
    "ids", [5, None, "64", b"a", [1.0], ["a"], [None], np.array([1.0]), np.array([[64]]), np.array(5)]
)
def test_ids_of_a_wrong_type(ids: Any) -> None:
    for decode in (GPT2.decode, GPT2.decode_bytes):
        with pytest.raises(TypeError, match=r"ids must be (a sequence of )?integers, not "):
            decode(ids)


def test_the_type_of_an_id_that_is_none_is_named() -> None:
    with pytest.raises(TypeError, match="ids must be integers, not str"):
        GPT2.decode([15496, "995"])  # type: ignore[list-item]
    with pytest.raises(TypeError, match=r"ids must be integers$"):
        GPT2.decode(each for each in ("995",))  # type: ignore[misc]


@pytest.mark.parametrize("token", [995, b"a", None])
def test_token_text_of_a_wrong_type(token: Any) -> None:
    with pytest.raises(TypeError, match=f"a token is a str, not {type(token).__name__}"):
        GPT2.token_to_id(token)


def test_errors_about_arguments_name_the_class_that_people_know() -> None:
    for call, problem in [
        (lambda: GPT2.encode("a", add_bos=False), r"Tokenizer\.encode\(\) got an unexpected"),  # type: ignore[call-arg]
        (lambda: GPT2.truncate("a", max_tokens=2), r"Tokenizer\.truncate\(\)"),  # type: ignore[call-arg]
        (
            lambda: GPT2.fit_chat([]),
            r"Tokenizer\.fit_chat\(\) missing 1 required positional argument: 'limit'",
        ),  # type: ignore[call-arg]
    ]:
        with pytest.raises(TypeError, match=f"^{problem}"):
            call()


# ---- the forms of encoding agree ------------------------------------------------------------------------


def both_ends(tok: Tokenizer) -> Tokenizer:
    """The same with BOS and EOS added."""
    return Tokenizer(tok.vocabulary._replace(add_bos=True, add_eos=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", ONE_OF_EACH_FAMILY)
def test_every_form_gives_the_same_ids(name: str) -> None:
    tok = both_ends(tokenizer_as(name))

    @bounded(25)
    @given(st.one_of(texts, broken_bytes), st.booleans(), st.booleans())
    def check(text: str | bytes, add_special: bool, parse_special: bool) -> None:
        flags = {"add_special": add_special, "parse_special": parse_special}
        ids = tok.encode(text, **flags)
        array = tok.encode_to_numpy(text, **flags)
        assert array.dtype == np.int32
        assert array.shape == (len(ids),)
        assert array.tolist() == ids
        assert tok.encode_with_offsets(text, **flags)[0] == ids
        assert tok.encode_batch([text, text], **flags) == [ids, ids]
        assert tok.count(text, **flags) == len(ids)
        assert all(type(token) is int and 0 <= token < tok.vocab_size for token in ids)
        if isinstance(text, str):
            assert tok.encode(text.encode(), **flags) == ids

    check()


@bounded(100)
@given(texts)
def test_ids_of_plain_text_are_those_of_its_words(text: str) -> None:
    for name in ("gpt-2", "llama-bpe", "deepseek-llm"):
        tok = tokenizer_as(name)
        by_word = [
            tok.encode(word, add_special=False, parse_special=False) for word in tok.pre_tokenize(text)
        ]
        assert by_word == [
            list(byte_pairs(tok).word_ids.encoder.ids(word)) for word in tok.pre_tokenize(text)
        ]


@pytest.mark.parametrize(
    "text", ["<|endoftext|>", "a<|endoftext|> b", "Hello world", "", b"\xff<|endoftext|>"]
)
def test_ordinary_text_has_no_control_tokens(text: str | bytes) -> None:
    tok = Tokenizer(GPT2.vocabulary._replace(add_bos=True))
    ids = tok.encode_ordinary(text)
    assert tok.eos_id not in ids
    assert ids == tok.encode(text, add_special=False, parse_special=False)
    assert tok.decode_bytes(ids) == (
        text.encode() if isinstance(text, str) else "\ufffd<|endoftext|>".encode()
    )


def test_older_names_of_methods_give_the_same() -> None:
    assert GPT2.words("Hello world") == GPT2.pre_tokenize("Hello world")
    with pytest.warns(DeprecationWarning, match=r"Tokenizer\.cut is now Tokenizer\.find_split_point"):
        position = GPT2.cut(b"Hello world", 1)
    assert position == GPT2.find_split_point(b"Hello world", 1)


# ---- offsets --------------------------------------------------------------------------------------------


def check_spans(tok: Tokenizer, data: bytes, add_special: bool) -> list[tuple[int, bytes]]:
    """What holds for every text; the inner tokens with the bytes they stand for."""
    ids, spans = tok.encode_with_offsets(data, add_special=add_special)
    assert len(ids) == len(spans)
    if add_special:
        assert (spans[0], spans[-1]) == ((0, 0), (len(data), len(data)))
        ids, spans = ids[1:-1], spans[1:-1]
    assert all(0 <= start <= end <= len(data) for start, end in spans)
    assert spans == sorted(spans)
    assert [end for _, end in spans] == sorted(end for _, end in spans)
    return [(token, data[start:end]) for token, (start, end) in zip(ids, spans)]


@pytest.mark.slow
@pytest.mark.parametrize("name", BYTE_LEVEL_FAMILIES)
def test_spans_of_sound_text_are_the_pieces(name: str) -> None:
    tok = both_ends(tokenizer_as(name))

    @bounded(20)
    @given(texts, st.booleans())
    def check(text: str, add_special: bool) -> None:
        found = check_spans(tok, text.encode(), add_special)
        assert [part for _, part in found] == [tok.token_to_piece(token) for token, _ in found]
        assert b"".join(part for _, part in found) == text.encode()

    check()


@pytest.mark.parametrize("name", RAW_NAMES)
def test_spans_of_sound_text_with_escaped_spaces(name: str) -> None:
    tok = both_ends(tokenizer_as(name))

    @bounded(50)
    @given(texts, st.booleans())
    def check(text: str, add_special: bool) -> None:
        text = text.replace("▁", "")  # its piece is a space
        found = check_spans(tok, text.encode(), add_special)
        if not tok.vocabulary.pre_tokenizer.prepend_space:  # a token may be of nothing but such a space
            assert [part for _, part in found] == [tok.token_to_piece(token) for token, _ in found]
        assert b"".join(part for _, part in found) == text.encode()

    check()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt-2", "llama-bpe", "deepseek-llm", "bloom", "gemma4"])
def test_spans_of_broken_bytes_cover_whole_characters(name: str) -> None:
    tok = both_ends(tokenizer_as(name))

    @bounded(100)
    @given(broken_bytes)
    def check(data: bytes) -> None:
        check_spans(tok, data, add_special=True)
        _, spans = tok.encode_with_offsets(data)
        covered = {at for start, end in spans for at in range(start, end)}
        assert covered == set(range(len(data)))
        start = 0
        for end in utf8.char_ends(data):
            char = data[start:end]
            if utf8.decode(char).encode("utf-8", "surrogatepass") != char:
                assert not any(start < bound < end for span in spans for bound in span)
            start = end

    check()


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        (b"a\xffb", [(0, 1), (1, 2), (2, 3)]),
        (b"a\xe2\x82b", [(0, 1), (1, 3), (3, 4)]),  # two U+FFFD, and GPT-2 has a token for both
        (b"\xc1\x81", [(0, 2)]),
        (
            b"\xe0\x80\xa0a",
            [(0, 3), (3, 4)],
        ),  # an overlong space is three U+FFFD, for which GPT-2 has a token
        ("🙂".encode(), [(0, 2), (2, 4)]),
        (b"\xff<|endoftext|>\xff", [(0, 1), (1, 14), (14, 15)]),
    ],
)
def test_spans(text: bytes, spans: list[tuple[int, int]]) -> None:
    assert GPT2.encode_with_offsets(text)[1] == spans


@pytest.mark.parametrize(
    ("text", "ids", "spans"),
    [
        (b"\xc1\x81", [32], [(0, 2)]),  # an overlong "A"
        (b"\xe0\x80\xa0a", [257], [(0, 4)]),  # an overlong space is the space of " a"
        (b"\xa1\xc0\xba\xe5", [4210, 25, 4210], [(0, 1), (1, 3), (3, 4)]),
        (b"\xff", [4210], [(0, 1)]),
    ],
)
@pytest.mark.parametrize("state", ["0c1e57098", "b11549"])
def test_ids_of_older_builds(
    state: str, text: bytes, ids: list[int], spans: list[tuple[int, int]], gpt2_path: Path
) -> None:
    tok = Tokenizer.from_gguf(gpt2_path, llama_cpp=state)
    assert tok.llama_cpp == state
    assert tok.encode_with_offsets(text) == (ids, spans)
    assert tok.encode(text) == ids
    characters = [(0, 1), (1, 2), (2, 3)][: len(spans)]
    if len(spans) == 3:
        assert tok.encode_with_offsets(text, unit="characters")[1] == characters


def test_offsets_of_str_are_bytes_of_its_utf8() -> None:
    for text in ("é中🙂 é", "中<|endoftext|>é"):
        assert GPT2.encode_with_offsets(text) == GPT2.encode_with_offsets(text.encode())
        assert GPT2.encode_with_offsets(text)[1][-1][1] == len(text.encode())


def test_tokens_of_one_escaped_space_share_its_span() -> None:
    tok = Tokenizer(make_vocabulary(["a", "<0xE2>", "<0x96>", "<0x81>"], pre="gemma4"))
    assert tok.encode_with_offsets("a a") == ([0, 1, 2, 3, 0], [(0, 1), (1, 2), (1, 2), (1, 2), (2, 3)])


def test_spaces_of_broken_bytes_are_escaped_but_not_overlong_ones() -> None:
    vocabulary = make_vocabulary(["a", "▁", " ", "\ufffd"], pre="gemma4")
    strict = Tokenizer(vocabulary)
    assert strict.encode(b"a \xff\xc0\xa0a") == [0, 1, 3, 3, 3, 0]
    tok = Tokenizer(vocabulary._replace(strict_utf8=False))  # as before b11739
    ids, spans = tok.encode_with_offsets(b"a \xff\xc0\xa0a")
    assert ids == tok.encode(b"a \xff\xc0\xa0a") == [0, 1, 3, 2, 0]
    assert spans == [(0, 1), (1, 2), (2, 3), (3, 5), (5, 6)]
    assert tok.pre_tokenize(b"a \xff") == ["a▁\ufffd"]


def test_white_space_that_a_special_token_strips_is_in_no_span() -> None:
    strips = int(TokenAttribute.CONTROL | TokenAttribute.LSTRIP | TokenAttribute.RSTRIP)
    vocabulary = make_vocabulary(
        [*byte_tokens(), "<m>"], attributes={"<m>": strips}, special_ids={"eos": 0}, add_eos=True
    )
    ids, spans = Tokenizer(vocabulary).encode_with_offsets("a  <m>\n b<m> ")
    assert ids == [97, 256, 98, 256, 0]
    assert spans == [(0, 1), (3, 6), (8, 9), (9, 12), (13, 13)]


# ---- models that are not GPT-2's ------------------------------------------------------------------------


def whitespace_tokenizer(lowercase: bool) -> Tokenizer:
    tokens = ["hello", "h", "e", "l", "o", "he", "ll", "hell", "H", "i", "k"]
    merges = ["h e", "l l", "he ll", "hell o"]
    vocabulary = make_vocabulary(
        tokens, merges=merges, model="whitespace", pre="whitespace", lowercase=lowercase
    )
    return Tokenizer(vocabulary)


@pytest.mark.parametrize(
    ("text", "lowercase", "words", "tokens", "spans"),
    [
        ("", True, [], [], []),
        (" \n\u3000", True, [], [], []),
        ("hello", False, ["hello"], ["hello"], [(0, 5)]),
        (" hello\t hell", False, ["hello", "hell"], ["hello", "hell"], [(1, 6), (8, 12)]),
        ("Hello", False, ["Hello"], ["H", "e", "ll", "o"], [(0, 1), (1, 2), (2, 4), (4, 5)]),
        ("Hello HELLO", True, ["hello", "hello"], ["hello", "hello"], [(0, 5), (6, 11)]),
        ("\u3000hello\xa0o", False, ["hello", "o"], ["hello", "o"], [(3, 8), (10, 11)]),
        ("\u0130 \u212ao", True, ["i", "ko"], ["i", "k", "o"], [(0, 2), (3, 6), (6, 7)]),  # İ, Kelvin's K
        ("h\x1ce", False, ["h\x1ce"], ["h", "e"], [(0, 1), (2, 3)]),  # no white space to llama.cpp
    ],
)
def test_whitespace_model(
    text: str, lowercase: bool, words: list[str], tokens: list[str], spans: list[tuple[int, int]]
) -> None:
    tok = whitespace_tokenizer(lowercase)
    assert tok.pre_tokenize(text) == words
    ids, found = tok.encode_with_offsets(text)
    assert [tok.id_to_token(token) for token in ids] == tokens
    assert found == spans
    assert tok.encode(text) == ids


def dna_tokenizer(*, without: str = "") -> Tokenizer:
    pieces = [token for token in ("<dna>", "</dna>", "<oov>") if token != without]
    k_mers = ["ACGTAC", "AAAAAA", "ACGAAA"]
    vocabulary = make_vocabulary([*byte_tokens(), *pieces, *k_mers], model="hybriddna")
    by_marked = {k_mer + K_MER_MARKER: vocabulary.token_to_id.pop(k_mer) for k_mer in k_mers}
    vocabulary.token_to_id.update(by_marked)
    return Tokenizer(vocabulary)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("ab", "a:a b:b"),
        ("<dna>ACGTACAAAAAA</dna>", "<dna>:<dna> ACGTAC:ACGTAC AAAAAA:AAAAAA </dna>:</dna>"),
        ("a<dna>acgtac</dna>b", "a:a <dna>:<dna> ACGTAC:acgtac </dna>:</dna> b:b"),
        ("<dna>ACGTACACG", "<dna>:<dna> ACGTAC:ACGTAC ACGAAA:ACG"),  # padded with A
        (
            "<dna>ACGTANA</dna>",
            "<dna>:<dna> <oov>:ACGTAN ACGTAC:A".replace("ACGTAC:A", "AAAAAA:A") + " </dna>:</dna>",
        ),
        ("<dna></dna>", "<dna>:<dna> </dna>:</dna>"),
        ("</dna>", "<:< /:/ d:d n:n a:a >:>"),
        ("<dna>éé", "<dna>:<dna> <oov>:éé"),  # counted in bytes
        ("A<dna>A</dna><dna>A", "A:A <dna>:<dna> AAAAAA:A </dna>:</dna> <dna>:<dna> AAAAAA:A"),
        ("", ""),
    ],
)
def test_dna(text: str, tokens: str) -> None:
    tok = dna_tokenizer()
    data = text.encode()
    for source in (text, data):
        ids, spans = tok.encode_with_offsets(source)
        assert tok.encode(source) == ids
        shown = [f"{tok.id_to_token(i)}:{data[start:end].decode()}" for i, (start, end) in zip(ids, spans)]
        assert shown == tokens.split()


@pytest.mark.parametrize("without", ["<dna>", "</dna>", "<oov>"])
def test_dna_without_its_tokens_is_plain_text(without: str) -> None:
    text = "<dna>ACGTAC</dna>"
    assert dna_tokenizer(without=without).encode(text) == list(text.encode())


@pytest.mark.parametrize("name", BYTE_LEVEL)
def test_names_under_gpt2s_vocabulary_give_ids(name: str) -> None:
    tok = tokenizer_as(name)
    assert tok.pre == name
    assert tok.decode(tok.encode("Hello world 2024", add_special=False)) == "Hello world 2024"
