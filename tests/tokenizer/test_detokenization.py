"""Ids to text: pieces of single tokens, the clean-up of spaces, the whole, and the same as a stream."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from contextlib import suppress
from itertools import accumulate, product
from pathlib import Path
from typing import Any

import pytest
from conftest import GPT2, ROOT, missing
from hypothesis import given
from hypothesis import strategies as st
from reference import NotPreparedError, vocabulary
from synthetic import BYTE_LEVEL, bounded, byte_tokens, make_vocabulary, texts, tokenizer_as

from ggufbpe import GGUFError, GGUFWarning, Tokenizer
from ggufbpe.models.vocabulary import BYTE, CONTROL, NORMAL, RSTRIP, UNKNOWN, UNUSED, USER_DEFINED
from ggufbpe.native.lazy_strings import lazy_strings
from ggufbpe.tokenizer.detokenization import clean_spaces

pytestmark = pytest.mark.both_engines

VOCABULARIES = ROOT / "fixtures" / "vocabs"

# ---- single tokens --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("token", "attribute", "pre", "piece", "hidden"),
    [
        ("Ġworld", NORMAL, "gpt-2", b" world", False),
        ("Ã©", NORMAL, "gpt-2", b"\xc3\xa9", False),
        ("Ã", NORMAL, "gpt-2", b"\xc3", False),
        ("Ġworld", USER_DEFINED, "gpt-2", "Ġworld".encode(), False),  # as it stands
        ("<s>", CONTROL, "gpt-2", b"<s>", True),
        ("<unk>", UNKNOWN, "gpt-2", b"<unk>", True),
        ("<s>", CONTROL | RSTRIP, "gpt-2", b"<s>", True),
        ("<s>", CONTROL | UNUSED, "gpt-2", b"<s>", True),
        ("<s>", CONTROL | NORMAL, "gpt-2", b"<s>", True),
        ("Ġa", UNUSED, "gpt-2", b"", False),
        ("Ġa", 0, "gpt-2", b"", False),
        ("a一", NORMAL, "gpt-2", "a[UNK_BYTE_0xe4b880a一]".encode(), False),  # not in the byte-level alphabet
        ("▁a▁", NORMAL, "gemma4", b" a ", False),
        ("▁a", USER_DEFINED, "gemma4", "▁a".encode(), False),
        ("Ġa", NORMAL, "gemma4", "Ġa".encode(), False),
        ("▁a", NORMAL, "gpt-2", "[UNK_BYTE_0xe29681▁a]a".encode(), False),
        ("<0x0A>", BYTE, "gemma4", b"\n", False),
        ("<0xfF>", BYTE, "gpt-2", b"\xff", False),
        ("<0xZZ>", BYTE, "gpt-2", b"\0", False),  # as C's strtol reads it
        ("<0x4>", BYTE, "gpt-2", b"\x04", False),
        ("<0x-1>", BYTE, "gpt-2", b"\xff", False),
    ],
)
def test_token_to_piece(token: str, attribute: int, pre: str, piece: bytes, hidden: bool) -> None:
    tok = Tokenizer(make_vocabulary([token], attributes={token: attribute}, pre=pre))
    assert tok.token_to_piece(0) == piece
    assert tok.token_to_piece(0, special=True) == piece
    assert tok.token_to_piece(0, special=False) == (b"" if hidden else piece)


ONE_TOKEN = [
    ("Ġworld", NORMAL, "gpt-2"),
    ("Ā", NORMAL, "gpt-2"),  # the byte 0
    ("a\0", NORMAL, "gpt-2"),  # not in the byte-level alphabet
    ("a一", NORMAL, "gpt-2"),
    ("Ġa", USER_DEFINED, "gpt-2"),
    ("Ġa", UNUSED, "gpt-2"),
    ("Ġa", 0, "gpt-2"),
    ("<s>", CONTROL, "gpt-2"),
    ("<unk>", UNKNOWN, "gpt-2"),
    ("<0xfF>", BYTE, "gpt-2"),
    ("▁a▁", NORMAL, "gemma4"),
    ("a\0b", NORMAL, "gemma4"),
    ("一▁\u2580", NORMAL, "gemma4"),
    ("▁a", USER_DEFINED, "gemma4"),
]


@pytest.mark.parametrize(("token", "attribute", "pre"), ONE_TOKEN)
def test_token_bytes(token: str, attribute: int, pre: str) -> None:
    vocabulary = make_vocabulary(["x", token, "yĠ"], attributes={token: attribute}, pre=pre)
    for tokens in (vocabulary.tokens, lazy_strings(list(vocabulary.tokens))):
        tok = Tokenizer(vocabulary._replace(tokens=tokens))
        assert tok.token_bytes == tuple(map(tok.token_to_piece, range(3)))


def test_token_bytes_of_fixtures() -> None:
    models = set()
    for path in [GPT2, *sorted((ROOT / "fixtures").glob("*.gguf")), *sorted(VOCABULARIES.glob("*.gguf"))]:
        with suppress(GGUFError):  # some are there to be refused
            models.add(opened(path).model)
            check_token_bytes(opened(path))
    assert models >= {"gpt2", "gemma4", "llama", "bert", "t5", "rwkv", "plamo2", "plamo3"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["llama-bpe", "gpt-neox", "gemma-4", "llama-spm", "bert-bge", "nomic-bert-moe"]
)
def test_token_bytes_of_real_vocabularies(name: str) -> None:
    try:
        path = vocabulary(name)
    except NotPreparedError as error:
        missing(str(error))
    check_token_bytes(opened(path))


def opened(path: Path) -> Tokenizer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GGUFWarning)
        return Tokenizer.from_gguf(path)


def check_token_bytes(tok: Tokenizer) -> None:
    pieces = tuple(map(tok.token_to_piece, range(tok.vocab_size)))
    assert tok.token_bytes == pieces
    buffer, offsets = tok.token_bytes_to_numpy()
    assert buffer.tobytes() == b"".join(pieces)
    assert offsets.tolist() == list(accumulate(map(len, pieces), initial=0))


def test_decode_batch() -> None:
    tok = tokenizer_as("gpt-2")
    assert tok.decode_batch([[15496, 995], [], [50256, 64]], unparse_special=True) == [
        "Hello world",
        "",
        "<|endoftext|>a",
    ]


# ---- the clean-up of spaces -----------------------------------------------------------------------------


def transcribed(data: bytes) -> bytes:
    """The three passes of llama_vocab::impl::detokenize, in place and byte by byte as it has them."""
    text = bytearray(data)
    total = len(text)

    end, total = total, 1 if total else 0  # " ?", " !", " .", " ,"
    for i in range(1, end):
        x = text[i]
        if text[i - 1] == ord(" ") and x in b"?!.,":
            total -= 1
        text[total] = x
        total += 1

    end, total = total, 1 if total else 0  # " ' "
    i = 1
    while i < end:
        x = text[i]
        if x == ord("'") and i + 1 < end and text[i - 1] == ord(" ") and text[i + 1] == ord(" "):
            total -= 1
            i += 1
            text[i] = 0
        text[total] = x
        total += 1
        i += 1

    end, total = total, 1 if total else 0  # " 's", " 'm", " 're", " 've"
    for i in range(1, end):
        x = text[i]
        if text[i - 1] == ord(" ") and x == ord("'") and i + 1 < end:
            x1 = text[i + 1]
            if x1 in b"sm":  # nothing for " 't", " 'd" and " 'll"
                total -= 1
            elif i + 2 < end:
                x2 = text[i + 2]
                if (x1 == ord("r") and x2 == ord("e")) or (x1 == ord("v") and x2 == ord("e")):
                    total -= 1
        text[total] = x
        total += 1
    return bytes(text[:total])


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        (b"", b""),
        (b" ", b" "),
        (b"a .", b"a."),
        (b" .", b"."),
        (b"a  !", b"a !"),
        (b". . .", b"..."),
        (b"a ? b , c", b"a? b, c"),
        (b"a ; b", b"a ; b"),
        (b"a ' b", b"a'b"),
        (b"a ' ' b", b"a'' b"),  # the space after the first one is used up
        (b"a '", b"a '"),
        (b"it 's I 'm we 're they 've", b"it's I'm we're they've"),
        (b"we 'll I 'd can 't", b"we 'll I 'd can 't"),
        (b"it 'S", b"it 'S"),
        (b"a ' .", b"a '."),  # one pass after the other
        (b"a ' s", b"a's"),
        (b"a '  s", b"a' s"),
        (b"a\n.", b"a\n."),
        (b"\xff .\xff", b"\xff.\xff"),
    ],
)
def test_clean_spaces(text: bytes, cleaned: bytes) -> None:
    assert clean_spaces(text) == cleaned == transcribed(text)


def test_clean_spaces_on_every_short_text() -> None:
    for length in range(7):
        for data in map(bytes, product(b" '.re", repeat=length)):
            assert clean_spaces(data) == transcribed(data)
    for length in range(5):
        for data in map(bytes, product(b" '?!.,smrvetdl\0", repeat=length)):
            assert clean_spaces(data) == transcribed(data)


@bounded(300)
@given(st.lists(st.sampled_from([*b"     '''''smrevtdl?!.,\0\n\xffx"]), max_size=40).map(bytes))
def test_clean_spaces_on_random_texts(data: bytes) -> None:
    assert clean_spaces(data) == transcribed(data)


# ---- many tokens ----------------------------------------------------------------------------------------

TOKENS = {
    **dict.fromkeys(["Ġa", "b", "Ġ", ".", "Ġ.", "'", "Ġ'", "s", "re", "r", "e", "Ã", "©", "Ġ'Ġ"], NORMAL),
    **dict.fromkeys(["ðŁ", "Ļ", "Ĥ", "ÿ", "âĸ", "Ċ"], NORMAL),
    "<s>": CONTROL,
    "</s>": CONTROL,
    "<unk>": UNKNOWN,
    " u ": USER_DEFINED,
    "<x>": UNUSED,
    " c": CONTROL,
}
BOS, EOS = list(TOKENS).index("<s>"), list(TOKENS).index("</s>")


def tokenizer(
    *,
    clean: bool = False,
    add_bos: bool = False,
    add_eos: bool = False,
    add_space_prefix: bool = False,
    bos_is_eos: bool = False,
) -> Tokenizer:
    vocabulary = make_vocabulary(
        TOKENS,
        attributes=TOKENS,
        flags={"clean_spaces": clean},
        special_ids={"bos": BOS, "eos": BOS if bos_is_eos else EOS},
        add_bos=add_bos,
        add_eos=add_eos,
        add_space_prefix=add_space_prefix,
    )
    return Tokenizer(vocabulary)


ALL = [
    tokenizer(clean=clean, add_bos=add_bos, add_eos=add_eos, add_space_prefix=prefix, bos_is_eos=same)
    for clean, add_bos, add_eos, prefix, same in product((False, True), repeat=5)
]


@pytest.mark.parametrize(
    ("tokens", "switches", "text"),
    [
        ("", "", ""),
        ("<s> Ġa b </s>", "", " ab"),
        ("<s> Ġa b </s>", "unparse_special", "<s> ab</s>"),
        ("<s> Ġa </s>", "remove_special unparse_special", "<s> a</s>"),  # the model adds neither
        ("<s> Ġa </s>", "remove_special unparse_special add_bos", " a</s>"),
        ("<s> Ġa </s>", "remove_special unparse_special add_eos", "<s> a"),
        ("<s> Ġa </s>", "unparse_special add_bos add_eos", "<s> a</s>"),
        ("<s> <s> b </s> </s>", "remove_special unparse_special add_bos add_eos", "<s>b</s>"),  # one of each
        ("Ġa <s> </s> b", "remove_special unparse_special add_bos add_eos", " a<s></s>b"),  # only at the ends
        ("</s>", "remove_special unparse_special add_bos add_eos", ""),
        ("<s>", "remove_special unparse_special add_bos add_eos", ""),
        ("<unk> b", "", "b"),
        ("<unk> b", "unparse_special", "<unk>b"),
        ("Ġa Ġa", "add_space_prefix", "a a"),  # the space that the model's converter added
        ("Ġ Ġa", "add_space_prefix", " a"),
        ("b Ġa", "add_space_prefix", "b a"),
        ("<s> Ġa", "add_space_prefix", " a"),  # only the first token loses it, be it empty
        ("<s> Ġa", "add_space_prefix add_bos", " a"),
        ("<s> Ġa", "add_space_prefix add_bos remove_special", " a"),  # not after BOS
        ("Ġa", "add_space_prefix add_bos remove_special", "a"),
        ("Ġa .", "clean", " a."),
        ("Ġa Ġ.", "clean", " a."),
        ("Ġa Ġ.", "", " a ."),
        ("Ġ .", "clean add_space_prefix", "."),
        ("Ġ Ġ .", "clean add_space_prefix", "."),
        ("b Ġ' s", "clean", "b's"),
        ("b Ġ'Ġ s", "clean", "b's"),
        ("Ġ <s> .", "clean", "."),  # a hidden token parts nothing
        ("Ġ <s> .", "clean unparse_special", " <s>."),
        ("ðŁ Ļ Ĥ", "", "🙂"),
        ("Ã b ÿ", "", "\ufffdb\ufffd"),
        ("ðŁ Ļ", "", "\ufffd"),
        ("<x> Ġa", "unparse_special", " a"),
        ("Ġa Ġa", "add_space_prefix continues", " a a"),  # behind ids that were decoded before
        ("Ġ Ġ .", "clean add_space_prefix continues", " ."),
        ("<s> Ġa", "add_space_prefix add_bos remove_special continues", " a"),
    ],
)
def test_decode(tokens: str, switches: str, text: str) -> None:
    on = set(switches.split())
    flags = {name: True for name in on if name in ("clean", "add_bos", "add_eos", "add_space_prefix")}
    how = dict.fromkeys(on - set(flags), True)
    tok = tokenizer(**flags)
    ids = [list(TOKENS).index(token) for token in tokens.split()]
    assert tok.decode(ids, **how) == text
    stream = tok.decode_stream(**how)
    assert "".join(map(stream.push, ids)) + stream.finish() == text


def test_the_parts_of_an_answer_join_to_the_whole() -> None:
    tok = tokenizer(add_space_prefix=True)
    ids = [list(TOKENS).index(token) for token in ("Ġa", "b", "Ġa", "Ġa")]
    for cut in range(1, len(ids)):
        rest = ids[cut:]
        assert tok.decode(ids[:cut]) + tok.decode(rest, continues=True) == "ab a a"
        assert tok.decode_batch([rest], continues=True) == [tok.decode_bytes(rest, continues=True).decode()]
        stream = tok.decode_stream(continues=True)
        for _ in range(2):  # after `finish`, the stream serves another text that goes on
            assert tok.decode(ids[:cut]) + "".join(map(stream.push, rest)) + stream.finish() == "ab a a"


def test_repr_of_a_stream() -> None:
    stream = tokenizer().decode_stream()
    assert repr(stream) == "<DecodeStream: empty>"
    stream.push(list(TOKENS).index("b"))
    assert repr(stream) == "<DecodeStream: begun>"


def test_user_defined_tokens_stand_as_they_are() -> None:
    tok = tokenizer(clean=True)
    ids = [list(TOKENS).index(token) for token in (" u ", ".")]
    assert tok.decode(ids) == " u."
    assert tokenizer(add_space_prefix=True).decode(ids) == "u ."


random_ids = st.lists(st.integers(0, len(TOKENS) - 1), max_size=15)


@bounded(400)
@given(random_ids, st.sampled_from(ALL), st.booleans(), st.booleans())
def test_stream_gives_what_decode_gives(
    ids: list[int], tok: Tokenizer, remove_special: bool, unparse_special: bool
) -> None:
    expected = tok.decode(ids, remove_special=remove_special, unparse_special=unparse_special)
    stream = tok.decode_stream(remove_special=remove_special, unparse_special=unparse_special)
    for _ in range(2):  # after `finish`, the stream serves another text
        assert "".join(map(stream.push, ids)) + stream.finish() == expected


@bounded(300)
@given(random_ids, st.sampled_from(ALL), st.booleans(), st.booleans())
def test_decode_bytes_is_pieces_then_clean_up(
    ids: list[int], tok: Tokenizer, remove_special: bool, unparse_special: bool
) -> None:
    """llama_vocab::impl::detokenize without buffers."""
    tokens, remove_space = list(ids), tok.vocabulary.add_space_prefix
    if remove_special and tok.add_bos and tokens[:1] == [BOS]:
        remove_space, tokens = False, tokens[1:]
    if remove_special and tok.add_eos and tokens[-1:] == [tok.eos_id]:
        tokens.pop()
    text = b""
    for position, token in enumerate(tokens):
        piece = tok.token_to_piece(token, special=unparse_special)
        text += piece[1:] if position == 0 and remove_space and piece[:1] == b" " else piece
    expected = transcribed(text) if tok.vocabulary.pre_tokenizer.clean_spaces else text
    how = {"remove_special": remove_special, "unparse_special": unparse_special}
    assert tok.decode_bytes(ids, **how) == expected
    assert tok.decode(ids, **how) == expected.decode("utf-8", "replace")


def test_stream_of_every_short_text() -> None:
    """Byte by byte, over what the clean-up looks for: nothing comes out too early."""
    stream = Tokenizer(make_vocabulary(byte_tokens(), flags={"clean_spaces": True})).decode_stream()
    for length in range(7):
        for data in map(bytes, product(b" '.re", repeat=length)):
            assert ("".join(map(stream.push, data)) + stream.finish()).encode() == transcribed(data)


@bounded(100)
@given(st.lists(st.integers(0, 50256), max_size=20), st.booleans())
def test_stream_of_gpt2(ids: list[int], unparse_special: bool) -> None:
    tok = tokenizer_as("gpt-2")
    stream = tok.decode_stream(unparse_special=unparse_special)
    expected = tok.decode(ids, unparse_special=unparse_special)
    assert "".join(map(stream.push, ids)) + stream.finish() == expected


@bounded(100)
@given(st.lists(st.sampled_from([*b"  ''revsx.\n\xf0\x9f\x99\x82\xc3"]), max_size=20), st.booleans())
def test_stream_holds_back_only_what_is_uncertain(data: list[int], clean: bool) -> None:
    """After an ASCII character on which nothing to come can act, all of the text is out."""
    tok = Tokenizer(make_vocabulary(byte_tokens(), flags={"clean_spaces": clean}))
    stream = tok.decode_stream()
    shown = ""
    for count, byte in enumerate(data, 1):
        shown += stream.push(byte)
        if byte < 0x80 and not (clean and byte in b" 'rv"):
            assert shown == tok.decode(data[:count])
    assert shown + stream.finish() == tok.decode(data)


@pytest.mark.parametrize(
    ("tokens", "clean", "pushes"),
    [
        ("b Ġa b", False, ["b", " a", "b"]),
        ("ðŁ Ļ Ĥ", False, ["", "", "🙂"]),
        ("Ã b", False, ["", "\ufffdb"]),
        ("b Ġ Ġ. Ġa", True, ["b", "", " .", " a"]),
        ("Ġ ' s", True, ["", "", "'s"]),
        ("Ġ ' re b", True, ["", "", "'re", "b"]),
        ("Ġ ' r b", True, ["", "", "", " 'rb"]),
    ],
)
def test_when_the_stream_gives_its_text(tokens: str, clean: bool, pushes: list[str]) -> None:
    stream = tokenizer(clean=clean).decode_stream()
    assert [stream.push(list(TOKENS).index(token)) for token in tokens.split()] == pushes


def test_an_id_out_of_range_leaves_the_stream_as_it_was() -> None:
    tok = tokenizer(add_bos=True, add_space_prefix=True)
    stream = tok.decode_stream(remove_special=True, unparse_special=True)
    for bad, error in ((len(TOKENS), ValueError), (-1, ValueError), (1.5, TypeError), ("a", TypeError)):
        with pytest.raises(error):
            stream.push(bad)  # type: ignore[arg-type]
    assert stream.push(BOS) + stream.push(0) + stream.finish() == " a"


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda stream: pickle.loads(pickle.dumps(stream))]
)
def test_a_copy_of_a_stream_and_the_stream_go_on_by_themselves(copied: Callable[[Any], Any]) -> None:
    begun, rest = map(list(TOKENS).index, ("ðŁ", "Ļ")), list(TOKENS).index("Ĥ")
    stream = tokenizer().decode_stream()
    assert list(map(stream.push, begun)) == ["", ""]
    other = copied(stream)
    assert (other.push(rest), stream.push(rest)) == ("🙂", "🙂")


# ---- there and back -------------------------------------------------------------------------------------

WITHOUT_CLEAN_UP = [
    name for name in BYTE_LEVEL if not tokenizer_as(name).vocabulary.pre_tokenizer.clean_spaces
]


@pytest.mark.parametrize("name", WITHOUT_CLEAN_UP)
def test_decode_of_encode_is_the_text(name: str) -> None:
    tok = tokenizer_as(name)

    @bounded(12)
    @given(texts)
    def check(text: str) -> None:
        ids = tok.encode(text, add_special=False)
        assert tok.decode(ids, unparse_special=True) == text
        assert tok.decode_bytes(ids, unparse_special=True) == text.encode()

    check()


@bounded(60)
@given(texts)
def test_decode_of_encode_with_clean_up(text: str) -> None:
    tok = tokenizer_as("gpt-2")
    assert tok.decode_bytes(tok.encode(text), unparse_special=True) == transcribed(text.encode())


REAL_VOCABULARIES = {  # byte pair encodings of llama.cpp's tests: whether spaces are cleaned up
    **dict.fromkeys(["aquila", "falcon", "gemma-4", "gpt-2", "gpt-neox", "llama-bpe", "mpt"], True),
    **dict.fromkeys(["refact", "starcoder"], True),
    **dict.fromkeys(["command-r", "deepseek-coder", "deepseek-llm", "qwen2", "qwen35"], False),
}
ROUND_TRIPS = (
    *("", " ", "   ", " a", " ' ", "Hello , it 's fine !", "I'll  've don 't , . ! ?"),
    "  two  spaces ' a 's 've . ? \n\n\t x",
    *("naïve 者 🙂 éÀ ﬁ \u00a0\u2003", "\r\n\r\n x1234567"),
)


def changed_by(tok: Tokenizer, clean_spaces: bool) -> list[str]:
    """The texts that are not the same after encoding and decoding."""
    ids = [tok.encode(text, parse_special=False) for text in ROUND_TRIPS]
    back = [tok.decode_bytes(row, clean_spaces=clean_spaces) for row in ids]
    streams = [tok.decode_stream(clean_spaces=clean_spaces) for _ in ids]
    streamed = ["".join(map(stream.push, row)) + stream.finish() for stream, row in zip(streams, ids)]
    assert streamed == [tok.decode(row, clean_spaces=clean_spaces) for row in ids]
    assert streamed == [data.decode("utf-8", "replace") for data in back]
    return [text for text, data in zip(ROUND_TRIPS, back) if data != text.encode()]


@pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")
@pytest.mark.parametrize("name", REAL_VOCABULARIES)
def test_only_the_clean_up_of_spaces_changes_a_text(name: str) -> None:
    try:
        tok = Tokenizer.from_gguf(vocabulary(name))
    except NotPreparedError as error:
        missing(str(error))
    assert changed_by(tok, clean_spaces=False) == []
    assert tok.vocabulary.pre_tokenizer.clean_spaces == REAL_VOCABULARIES[name]
    assert bool(changed_by(tok, clean_spaces=True)) == REAL_VOCABULARIES[name]


FIXTURES = ROOT / "fixtures" / "vocabs"
CHANGES_TEXTS = {  # byte pair encodings that cannot give a text back, and why
    **dict.fromkeys(
        [
            *("bytes-missing", "default-ids-out-of-range", "empty-tokens", "gemma4-without-byte-tokens"),
            *("gpt-2-pre-of-gemma4-tokens", "mmbert-without-byte-tokens", "no-line-break-token"),
        ],
        "some bytes have no token",
    ),
    **dict.fromkeys(
        ["fim-falcon-h1", "hybriddna-with-escaped-spaces", "ignore-merges", "whitespace-with-escaped-spaces"],
        "BOS is an ordinary token, which decoding shows",
    ),
    **dict.fromkeys(
        ["hybriddna-with-mmbert", "mmbert", "mmbert-without-mask", "whitespace-with-mmbert"],
        "a space is put before each text",
    ),
    **dict.fromkeys(
        ["whitespace", "whitespace-lowercase", "whitespace-model-with-gpt-2", "whitespace-pre-of-gpt2-model"],
        "white space is dropped or has no token",
    ),
    "merges-to-no-token": "a merge makes a text that is no token",
}


def byte_pair_fixtures() -> list[str]:
    names = []
    for path in sorted(FIXTURES.glob("*.gguf")):
        with suppress(GGUFError), warnings.catch_warnings():
            warnings.simplefilter("ignore", GGUFWarning)
            if Tokenizer.from_gguf(path).vocabulary.tokenizer_model.algorithm == "merges":
                names.append(path.stem)
    return names


@pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")
def test_every_byte_pair_encoding_gives_texts_back_unless_it_cannot() -> None:
    names = byte_pair_fixtures()
    assert len(names) > 80
    changing = [
        name
        for name in names
        if changed_by(Tokenizer.from_gguf(FIXTURES / f"{name}.gguf"), clean_spaces=False)
    ]
    assert sorted(changing) == sorted(CHANGES_TEXTS)
