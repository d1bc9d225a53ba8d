"""What a trace says is what the tokenizer does: held to `encode`, to the words, and to the merges run by hand."""

from __future__ import annotations

import json
from functools import cache

import pytest
from conftest import GPT2, ROOT
from hypothesis import given
from hypothesis import strategies as st
from synthetic import (
    ONE_OF_EACH_FAMILY,
    bounded,
    broken_bytes,
    byte_pairs,
    byte_tokens,
    gpt2_vocabulary,
    make_vocabulary,
    texts,
    tokenizer_as,
)
from trace_checks import check_fragments, replayed

from ggufbpe import Tokenizer
from ggufbpe.models.loading import load_vocabulary
from ggufbpe.models.pretokenizers.pattern import option_texts, options, parse
from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS
from ggufbpe.models.pretokenizers.splitter import splitter
from ggufbpe.models.token_attribute import TokenAttribute
from ggufbpe.models.tracers.trace_types import Cut, Merge, TracedStage
from ggufbpe.models.vocabulary import CONTROL, LSTRIP, RSTRIP, USER_DEFINED
from ggufbpe.tokenizer.trace import Trace

pytestmark = pytest.mark.both_engines


@cache
def gpt2() -> Tokenizer:
    return Tokenizer.from_gguf(GPT2)


# ---- worked examples ------------------------------------------------------------------------------------


def test_hello_world_on_gpt2() -> None:
    found = gpt2().trace("Hello world")
    hello, world = found.words
    assert (found.text, found.model, found.pre) == (b"Hello world", "gpt2", "gpt-2")
    assert [(f.kind, f.start, f.end) for f in found.fragments] == [("text", 0, 11)]
    assert (hello.text, hello.start, hello.end) == ("Hello", 0, 5)
    assert (world.text, world.start, world.end, world.written) == (" world", 5, 11, "Ġworld")
    assert found.stages[0].alternatives[7] == r" ?\p{L}+"
    assert [word.cuts for word in found.words] == [(Cut(0, 7, 0, 5),), (Cut(0, 7, 5, 11),)]
    assert world.merges == (
        Merge(10, "Ġ", "w", 0),
        Merge(17, "o", "r", 2),
        Merge(79, "l", "d", 4),
        Merge(220, "Ġw", "or", 0),
        Merge(739, "Ġwor", "ld", 0),
    )
    for merge in (*hello.merges, *world.merges):
        assert gpt2().vocabulary.merges[merge.rank] == f"{merge.left} {merge.right}"
    assert [(t.id, t.start, t.end, t.piece, t.text, t.origin, t.word) for t in found.tokens] == [
        (15496, 0, 5, b"Hello", "Hello", "symbol", 0),
        (995, 5, 11, b" world", "Ġworld", "symbol", 1),
    ]


# name, text, and for each word: its text, and (stage, alternative) of what took it stage by stage
CUTS: list[tuple[str, str, list[tuple[str, list[int | None]]]]] = [
    ("gpt-2", "I'll go  12", [("I", [7]), ("'ll", [5]), (" go", [7]), (" ", [10]), (" 12", [8])]),
    ("gpt-2", " \xa0", [(" \xa0", [10])]),
    ("starcoder", "a12", [("a", [None, 7]), ("1", [0, 8]), ("2", [0, 8])]),
    ("viking", " ab1", [(" ab", [0, None]), ("1", [0, 0])]),
    ("superbpe", "no 1234", [("no ", [None, None]), ("1", [0, 0]), ("234", [0, 0])]),
    ("afmoe", "ab1234", [("ab", [0, None, 1]), ("1", [0, None, None]), ("234", [0, None, None])]),
    ("exaone-moe", "on it's", [("on it", [1]), ("'s", [0])]),
    ("jais-2", "a" + " " * 1100, [("a", [None, 1])]
     + [(" " * 512, [None, 5])] * 2 + [(" " * 64, [None, 8]), (" " * 8, [None, 11]), (" " * 4, [None, 12])]),
    ("deepseek-llm", "a  ", [("a", [None, 0, 0, None, None, None]), ("  ", [None, None, None, 0, None, None])]),
    ("kimi-k2", "中a", [("中", [0]), ("a", [1])]),
    ("gemma4", "a\n\n", [("a", [0]), ("\n\n", [1])]),
    ("whitespace", "a b", [("a", [0]), ("b", [0])]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "expected"), CUTS, ids=[name for name, *_ in CUTS])
def test_alternatives(name: str, text: str, expected: list[tuple[str, list[int | None]]]) -> None:
    found = whitespace_model().trace(text) if name == "whitespace" else tokenizer_as(name).trace(text)
    assert [
        (word.text.replace("▁", " "), [cut.alternative for cut in word.cuts]) for word in found.words
    ] == expected


def test_stages_show_what_is_matched_and_for_steps_llama_cpps_pattern() -> None:
    assert tokenizer_as("kimi-k2").trace("").stages[0].alternatives[0] == r"\p{Han}+"
    assert tokenizer_as("tiny_aya").trace("").stages[0] == TracedStage(
        (r"\d{1,3}(?=(?:\d{3})*\b)",), "digit_groups", 1
    )
    assert tokenizer_as("jais-2").trace("").stages[0] == TracedStage((), "blocks_of_white_space", 0)


def test_piece_before_a_later_stage_cuts_it() -> None:
    [rest, digit] = tokenizer_as("viking").trace(" ab1").words
    assert rest.cuts == (Cut(0, 0, 0, 4), Cut(1, None, 0, 3))
    assert digit.cuts == (Cut(0, 0, 0, 4), Cut(1, 0, 3, 4))


def test_word_taken_whole() -> None:
    tok = tokenizer_as("llama-bpe")  # ignore_merges
    [word] = tok.trace(" world", add_special=False).words
    assert (word.whole, word.merges, [symbol.ids for symbol in word.symbols]) == (
        "ignore_merges",
        (),
        [(995,)],
    )
    gemma = tokenizer_as("gemma4")
    run = next(text for text in ("\n\n\n", "\n\n", "\n") if gemma.token_to_id(text) is not None)
    assert gemma.trace(run).words[0].whole == "newline_runs"
    assert gpt2().trace(" world").words[0].whole is None


def test_fall_back_to_bytes_and_what_has_no_token() -> None:
    found = tokenizer_as("gemma4").trace("𐍈", add_special=False)
    [symbol] = found.words[0].symbols
    assert (symbol.text, symbol.is_token, symbol.dropped) == ("𐍈", False, b"")
    assert [(t.text, t.origin, t.start, t.end) for t in found.tokens] == [
        (f"<0x{byte:02X}>", "byte", at, at + 1) for at, byte in enumerate("𐍈".encode())
    ]
    tok = Tokenizer(make_vocabulary([token for token in byte_tokens() if token != "Ã"]))
    [first, second] = tok.trace("é").words[0].symbols
    assert (first.ids, first.dropped, first.is_token) == ((), b"\xc3", False)
    assert (second.text, second.dropped, second.is_token) == ("©", b"", True)
    tok = Tokenizer(make_vocabulary([*"ab"], merges=["a b"]))  # merged to what is no token: its letters are
    [symbol] = tok.trace("ab").words[0].symbols
    assert (symbol.text, symbol.ids, symbol.is_token) == ("ab", (0, 1), False)


def test_bos_and_eos_are_fragments_at_the_ends() -> None:
    vocabulary = gpt2_vocabulary()._replace(add_bos=True, add_eos=True)
    found = Tokenizer(vocabulary).trace("é")
    assert [(f.kind, f.start, f.end, f.token) for f in found.fragments] == [
        ("bos", 0, 0, 50256), ("text", 0, 2, None), ("eos", 2, 2, 50256),
    ]  # fmt: skip
    assert [token.origin for token in found.tokens] == ["bos", "symbol", "eos"]


def test_special_tokens_and_what_they_strip() -> None:
    vocabulary = make_vocabulary(
        [*byte_tokens(), "<m>", "<n>"], attributes={"<m>": CONTROL | LSTRIP, "<n>": CONTROL | RSTRIP}
    )
    found = Tokenizer(vocabulary).trace("a <m> b<n>\t")
    assert [(f.kind, f.start, f.end, f.token, f.dropped_by) for f in found.fragments] == [
        ("text", 0, 1, None, None), ("dropped", 1, 2, None, 256), ("special", 2, 5, 256, None),
        ("text", 5, 7, None, None), ("special", 7, 10, 257, None), ("dropped", 10, 11, None, 257),
    ]  # fmt: skip
    assert [token.attributes for token in found.tokens if token.origin == "special"] == [
        TokenAttribute.CONTROL | TokenAttribute.LSTRIP,
        TokenAttribute.CONTROL | TokenAttribute.RSTRIP,
    ]
    [text] = Tokenizer(vocabulary).trace("a <m>", parse_special=False).fragments
    assert (text.kind, text.end) == ("text", 5)


@cache
def whitespace_model() -> Tokenizer:
    return model_of("whitespace-lowercase")


@cache
def model_of(name: str) -> Tokenizer:
    return Tokenizer(load_vocabulary(ROOT / "fixtures" / "vocabs" / f"{name}.gguf"))


def test_white_space_of_the_whitespace_model_is_dropped() -> None:
    found = whitespace_model().trace(" A  b ")
    assert [(f.kind, f.start, f.end) for f in found.fragments] == [
        ("dropped", 0, 1), ("text", 1, 2), ("dropped", 2, 4), ("text", 4, 5), ("dropped", 5, 6),
    ]  # fmt: skip
    assert [word.text for word in found.words] == ["a", "b"]


def test_k_mers_of_a_dna_model() -> None:
    tok = model_of("hybriddna-of-normal-tags")
    found = tok.trace(b"hi <dna>acgtacAA</dna>")
    dna = [(f.kind, f.start, f.end) for f in found.fragments if f.kind != "bos"]
    assert dna == [("text", 0, 3), ("dna", 3, 8), ("dna", 8, 14), ("dna", 14, 16), ("dna", 16, 22)]
    assert {token.origin for token in found.tokens if token.start >= 3} == {"dna"}


def test_a_long_word_is_traced_in_time() -> None:
    found = gpt2().trace("a" * 20_000)
    assert found.ids == gpt2().encode("a" * 20_000)
    assert len(found.words[0].merges) + len(found.words[0].symbols) == 20_000


# ---- what always holds ----------------------------------------------------------------------------------


def check(tok: Tokenizer, text: str | bytes, add_special: bool, parse_special: bool) -> Trace:
    """Hold a trace to everything else that says what the tokenizer does."""
    flags = {"add_special": add_special, "parse_special": parse_special}
    found = tok.trace(text, **flags)
    ids, spans = tok.encode_with_offsets(text, **flags)
    assert found.ids == ids == tok.encode(text, **flags)
    assert [(token.start, token.end) for token in found.tokens] == spans
    check_fragments(found)
    check_words(tok, found)
    return found


def check_words(tok: Tokenizer, found: Trace) -> None:
    for number, word in enumerate(found.words):
        assert len(word.cuts) == len(found.stages)
        assert (word.cuts[-1].start, word.cuts[-1].end) == (word.start, word.end)
        assert all(cut.start <= word.start <= word.end <= cut.end for cut in word.cuts)
        for stage, cut in zip(found.stages, word.cuts):
            assert cut.alternative is None or cut.alternative < len(stage.alternatives)
        assert "".join(symbol.text for symbol in word.symbols) == word.written
        ids = [token for symbol in word.symbols for token in symbol.ids]
        assert ids == [token.id for token in found.tokens if token.word == number]
        assert word.symbols[0].start == word.start
        assert word.symbols[-1].end == word.end
        if word.whole is None:
            ranks = byte_pairs(tok).word_ids.encoder.ranks
            assert replayed(ranks, word.written, word.merges) == [symbol.text for symbol in word.symbols]


NAMES = [name for name in PRE_TOKENIZERS if name != "whitespace"]
flags = st.tuples(st.booleans(), st.booleans())


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_name(name: str) -> None:
    tok = tokenizer_as(name)

    @bounded(6)
    @given(st.one_of(texts, broken_bytes), flags)
    def run(text: str | bytes, given_flags: tuple[bool, bool]) -> None:
        check(tok, text, *given_flags)

    run()


MODELS = ["whitespace", "whitespace-lowercase", "hybriddna", "hybriddna-of-normal-tags", "overlaps", "jina-v2-de",
          "phi-3", "bytes-missing", "gemma4", "gemma4-without-byte-tokens", "ignore-merges", "merges-to-no-token",
          "merges-odd", "add-bos-and-eos", "types"]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_models_with_rules_of_their_own(model: str) -> None:
    tok = model_of(model)
    special = [tok.id_to_token(token) for token in tok.vocabulary.special_token_ids][:40]
    own = st.lists(
        st.sampled_from([*special, "<dna>", "</dna>", "acgtac", " ", "\n", "a", "B", "é"]), max_size=12
    )

    @bounded(40)
    @given(st.one_of(own.map("".join), texts, broken_bytes), flags)
    def run(text: str | bytes, given_flags: tuple[bool, bool]) -> None:
        check(tok, text, *given_flags)

    run()


@bounded(150)
@given(st.sampled_from([name for name in ONE_OF_EACH_FAMILY if name != "whitespace"]), texts)
def test_stages_end_in_the_words_of_the_splitter(name: str, text: str) -> None:
    """All stages, piece by piece, against the one pass over the whole text."""
    found = splitter(PRE_TOKENIZERS[name])
    assert [text[piece.start : piece.end] for piece in found.stages(text)[-1]] == found.words(text)


@pytest.mark.parametrize("family", ONE_OF_EACH_FAMILY)
def test_alternatives_as_they_are_written_are_those_that_are_matched(family: str) -> None:
    for stage in PRE_TOKENIZERS[family].stages:
        written, matched = map(parse, option_texts(stage.rule)), options(parse(stage.rule))
        assert [option for each in written for option in options(each)] == [
            option for each in matched for option in options(each)
        ]


@bounded(30)
@given(st.one_of(texts, broken_bytes), flags)
def test_json_can_be_written_and_has_the_ids(text: str | bytes, given_flags: tuple[bool, bool]) -> None:
    add_special, parse_special = given_flags
    found = tokenizer_as("gemma4").trace(text, add_special=add_special, parse_special=parse_special)
    read = json.loads(json.dumps(found.to_dict()))
    assert read["ids"] == [token["id"] for token in read["tokens"]] == found.ids
    assert [word["start"] for word in read["words"]] == [word.start for word in found.words]
    assert bytes.fromhex(read.get("text_bytes", found.text.hex())) == found.text


def test_json_of_what_is_not_utf8() -> None:
    found = gpt2().trace(b"\xff").to_dict()
    assert (found["text"], found["text_bytes"]) == ("\ufffd", "ff")
    assert found["tokens"][0]["attributes"] == ["NORMAL"]


def test_errors_are_those_of_encode() -> None:
    with pytest.raises(ValueError, match="surrogate"):
        gpt2().trace("\ud800")
    with pytest.raises(TypeError):
        gpt2().trace(1)  # type: ignore[arg-type]


def test_user_defined_tokens_are_found_without_parse_special() -> None:
    tok = Tokenizer(make_vocabulary([*byte_tokens(), "<u>"], attributes={"<u>": USER_DEFINED}))
    assert [f.kind for f in tok.trace("a<u>", parse_special=False).fragments] == ["text", "special"]
