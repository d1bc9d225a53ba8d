"""Merging, and what becomes of a symbol that is no token: held to the rules in their plainest form."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import pytest
from conftest import RAW_UTF8
from hypothesis import given
from hypothesis import strategies as st
from synthetic import bounded, byte_tokens, gpt2_vocabulary, make_vocabulary, raw_utf8_vocabulary, texts

from ggufbpe import Tokenizer
from ggufbpe.models.bpe import merge as bpe
from ggufbpe.models.bpe.merge import BYTE_CHARS, CHAR_BYTES, NO_MERGE, PairRanks, WordEncoder, byte_level
from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS
from ggufbpe.native import native

# ---- merges as they are listed --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "merges",
    [
        [],
        ["a b", "ab c"],
        ["a\nb c", "\n \n"],  # Gemma's have line breaks
        [" b c", "a b"],  # llama.cpp does not cut at a space at the beginning
        ["a b c", "ab"],
        ["a ", "b\0 c"],
    ],
)
def test_results_of_all_merges_are_those_of_each(merges: list[str]) -> None:
    each = [bpe.parts(merge) for merge in merges]
    assert bpe.results(merges) == [left + right for left, right in each]


# ---- the byte-level alphabet ----------------------------------------------------------------------------


def test_byte_alphabet_is_gpt2s() -> None:
    """As OpenAI's encoder.py lists it: bytes_to_unicode."""
    printable = [
        *range(ord("!"), ord("~") + 1),
        *range(ord("¡"), ord("¬") + 1),
        *range(ord("®"), ord("ÿ") + 1),
    ]
    characters = {byte: chr(byte) for byte in printable}
    for byte in range(256):
        characters.setdefault(byte, chr(256 + len(characters) - len(printable)))
    assert {byte: BYTE_CHARS[byte] for byte in range(256)} == characters
    assert {char: byte for byte, char in characters.items()} == CHAR_BYTES


@pytest.mark.parametrize(
    ("word", "written"),
    [
        ("", ""),
        (" go", "Ġgo"),
        ("\n\t", "Ċĉ"),
        ("é", "Ã©"),
        ("\xad", "ÂŃ"),
        ("🙂", "ðŁĻĤ"),
        ("\ud800", "íłĢ"),
    ],
)
def test_byte_level(word: str, written: str) -> None:
    assert byte_level(word) == written


@bounded(100)
@given(texts)
def test_byte_level_keeps_every_byte(text: str) -> None:
    assert bytes(CHAR_BYTES[char] for char in byte_level(text)) == text.encode()


# ---- ranks ----------------------------------------------------------------------------------------------


def parsed(merges: list[str]) -> dict[tuple[str, str], int]:
    """llama_vocab::impl::load: cut at the first space that is not the first byte; the first of a pair counts."""
    ranks: dict[tuple[str, str], int] = {}
    for rank, merge in enumerate(merges):
        at = merge.find(" ", 1)
        pair = (merge[:at], merge[at + 1 :]) if at >= 0 else ("", "")
        ranks.setdefault(pair, rank)
    return ranks


@pytest.mark.parametrize(
    ("merges", "pair", "rank"),
    [
        (["a b"], ("a", "b"), 0),
        (["a b"], ("b", "a"), NO_MERGE),
        (["x y", "a b", "a b"], ("a", "b"), 1),  # the first of two
        (["a b c"], ("a", "b c"), 0),  # the rest may have spaces
        (["a b c"], ("a b", "c"), NO_MERGE),
        ([" a b"], (" a", "b"), 0),  # a space that begins the merge belongs to the left part
        (["  b"], (" ", "b"), 0),
        (["a  "], ("a", " "), 0),
        (["a  b"], ("a", " b"), 0),
        (["ab"], ("a", "b"), NO_MERGE),  # no space: no pair
        (["Ġ Ġ", "ĠĠ a"], ("ĠĠ", "a"), 1),
    ],
)
def test_rank_of_pair(merges: list[str], pair: tuple[str, str], rank: int) -> None:
    assert PairRanks(merges)[pair] == rank


odd_merges = st.lists(st.text(alphabet="ab ", max_size=5), max_size=6)


@bounded(300)
@given(odd_merges)
def test_ranks_of_odd_merges(merges: list[str]) -> None:
    parts = ["".join(part) for length in (1, 2, 3) for part in product("ab ", repeat=length)]
    ranks, expected = PairRanks(merges), parsed(merges)
    assert all(ranks[pair] == expected.get(pair, NO_MERGE) for pair in product(parts, parts))


def test_remembered_pairs_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bpe, "_PAIR_CACHE", 10)
    ranks = PairRanks(["a b", "b c"])
    for pair in product("abcdefg", "abcdefg"):
        assert ranks[pair] == {("a", "b"): 0, ("b", "c"): 1}.get(pair, NO_MERGE)
        assert len(ranks) <= 10


# ---- merging --------------------------------------------------------------------------------------------


def merged_by_the_rule(word: str, merges: list[str]) -> list[str]:
    """Join the neighbours of the lowest rank, the leftmost of them, until none have a rank."""
    ranks = parsed(merges)
    symbols = list(word)
    while True:
        ranked = [(ranks[pair], at) for at, pair in enumerate(pairwise(symbols)) if pair in ranks]
        if not ranked:
            return symbols
        _, at = min(ranked)
        symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]


def merged_in_every_way(word: str, merges: list[str]) -> list[list[str]]:
    encoder = WordEncoder(PRE_TOKENIZERS["gpt-2"], {}, merges)
    return [
        bpe._merge_by_search(list(word), PairRanks(merges)),
        bpe._merge_by_queue(list(word), PairRanks(merges)),
        encoder.merged(list(word)),
    ]


symbol = st.text(alphabet="abc", min_size=1, max_size=4)
random_merges = st.lists(st.tuples(symbol, symbol).map(" ".join), max_size=12)


@st.composite
def grown_merges(draw: st.DrawFn) -> list[str]:
    """Merges as training makes them, each of symbols that there are by then, in any order."""
    symbols = ["a", "b", "c"]
    merges = []
    for _ in range(draw(st.integers(1, 12))):
        left, right = draw(st.sampled_from(symbols)), draw(st.sampled_from(symbols))
        merges.append(f"{left} {right}")
        symbols.append(left + right)
    return draw(st.permutations(merges)) if draw(st.booleans()) else merges


@bounded(300)
@given(st.text(alphabet="abcd", max_size=40), st.one_of(grown_merges(), random_merges, odd_merges))
def test_merging_follows_the_rule(word: str, merges: list[str]) -> None:
    assert merged_in_every_way(word, merges) == [merged_by_the_rule(word, merges)] * 3


@bounded(50)
@given(st.text(alphabet="ab", min_size=55, max_size=150), grown_merges())
def test_merging_of_words_around_the_length_where_the_queue_begins(word: str, merges: list[str]) -> None:
    assert 55 < bpe._QUEUE_FROM < 150
    assert merged_in_every_way(word, merges) == [merged_by_the_rule(word, merges)] * 3


@pytest.mark.parametrize(
    "merges",
    [
        ["a a", "aa a", "aa aa", "a b", "b a", "ab a"],
        ["aa aa", "a a", "a aa", "b b", "bb a"],
        ["a b", "ab ab", "b a", "ba ba"],
        ["b a", "a b", "a ba", "ab a", "aba b"],
        ["a a", "a a", "b b", "aa bb"],
    ],
)
def test_merging_of_every_short_word(merges: list[str]) -> None:
    for length in range(10):
        for word in map("".join, product("ab", repeat=length)):
            assert merged_in_every_way(word, merges) == [merged_by_the_rule(word, merges)] * 3


def test_long_words_take_the_queue_and_short_ones_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    ways: list[str] = []
    monkeypatch.setattr(bpe, "_merge_by_search", lambda symbols, ranks: ways.append("search"))
    monkeypatch.setattr(bpe, "_merge_by_queue", lambda symbols, ranks: ways.append("queue"))
    encoder = WordEncoder(PRE_TOKENIZERS["gpt-2"], {}, [])
    for length in (bpe._QUEUE_FROM - 1, bpe._QUEUE_FROM):
        encoder.merged(["a"] * length)
    assert ways == ["search", "queue"]


@bounded(200)
@given(st.text(alphabet="abc", max_size=30), st.one_of(grown_merges(), random_merges))
def test_steps_are_the_merges_in_their_order(word: str, merges: list[str]) -> None:
    """Each step joins the leftmost pair of the lowest rank; a symbol stays at the place where it began."""
    symbols, left_over = list(word), list(word)
    for rank, left, right in bpe.merge_steps(symbols, PairRanks(merges)):
        assert symbols[left] + "".join(symbols[left + 1 : right]) == symbols[left]  # nothing in between
        ranked = [
            (parsed(merges)[pair], at)
            for at, pair in enumerate(pairwise(left_over))
            if pair in parsed(merges)
        ]
        lowest, at = min(ranked)
        assert rank == lowest
        assert (symbols[left], symbols[right]) == (left_over[at], left_over[at + 1])
        assert left == len("".join(left_over[:at]))
        left_over[at : at + 2] = [left_over[at] + left_over[at + 1]]
    assert list(filter(None, symbols)) == merged_by_the_rule(word, merges)


def test_a_word_that_would_fill_the_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bpe, "_LONGEST_WORD", 100)
    encoder = WordEncoder(PRE_TOKENIZERS["gpt-2"], {"a": 7}, [])
    assert encoder.ids("a" * 100) == (7,) * 100
    for encode in (encoder.ids, encoder.ids_with_ends):
        with pytest.raises(ValueError, match="a word of 101 characters"):
            encode("a" * 101)


def test_a_word_of_one_letter_and_a_hundred_thousand_of_them() -> None:
    """2^k times `a` are joined in pairs, and pairs of pairs; what is left over is at the end."""
    merges = ["a a", "aa aa", "aaaa aaaa"]
    assert bpe._merge_by_queue(["a"] * 100_007, PairRanks(merges)) == ["a" * 8] * 12_500 + ["aaaa", "aa", "a"]


# ---- words to ids ---------------------------------------------------------------------------------------

TOKENS = ["a", "b", "c", "ab", "abc", "Ġ", "Ġa", "!", "<0x0A>", "<0xC3>", "<0xA9>", "\n", "\n\n", "bc", "c\n"]


def ids_of(word: str, merges: list[str], pre: str, without: str = "", **flags: bool) -> list[str]:
    """The texts of the ids of `word`, under TOKENS but for `without`."""
    vocabulary = make_vocabulary([t for t in TOKENS if t not in without.split("|")], pre=pre, flags=flags)
    encoder = WordEncoder(vocabulary.pre_tokenizer, vocabulary.token_to_id, merges)
    with_ends = encoder.ids_with_ends(word)
    assert [token for token, _, _ in with_ends] == list(encoder.ids(word))
    return [vocabulary.tokens[token] for token in encoder.ids(word)]


@pytest.mark.parametrize(
    ("word", "merges", "pre", "without", "expected"),
    [
        ("abc", ["a b"], "gpt-2", "", ["ab", "c"]),
        ("abc", [], "gpt-2", "", ["a", "b", "c"]),
        (" a", ["Ġ a"], "gpt-2", "", ["Ġa"]),
        ("ab", ["a b"], "gpt-2", "ab", ["a", "b"]),  # the merge's result is no token: back to its bytes
        ("ab!", ["a b"], "gpt-2", "ab|a", ["b", "!"]),  # and a byte without a token is dropped
        (" a", ["Ġ a"], "gpt-2", "Ġa", ["a"]),  # "Ġ" is two bytes, neither of them a token
        ("é", [], "gpt-2", "", []),
        ("é", [], "gemma4", "", ["<0xC3>", "<0xA9>"]),
        ("ab", ["a b"], "gemma4", "ab", []),  # not byte-level: only <0xXX> counts
        ("\n", [], "gemma4", "\n", ["<0x0A>"]),
        ("é\n", [], "gemma4", "\n|<0xC3>", ["<0xA9>", "<0x0A>"]),
    ],
)
def test_ids_of_word(word: str, merges: list[str], pre: str, without: str, expected: list[str]) -> None:
    assert ids_of(word, merges, pre, without) == expected


@pytest.mark.parametrize(
    ("word", "ignore_merges", "expected"),
    [
        ("abc", False, ["ab", "c"]),
        ("abc", True, ["abc"]),
        ("abcb", True, ["ab", "c", "b"]),  # not itself a token
        (" a", True, ["Ġa"]),  # looked up in the byte-level alphabet
        (" a", False, ["Ġ", "a"]),
    ],
)
def test_ignore_merges(word: str, ignore_merges: bool, expected: list[str]) -> None:
    assert ids_of(word, ["a b"], "gpt-2", ignore_merges=ignore_merges) == expected


@pytest.mark.parametrize(
    ("word", "newline_runs", "expected"),
    [
        ("\n\n", True, ["\n\n"]),  # the token, though no merge leads to it
        ("\n\n", False, ["\n", "\n"]),
        ("\n\n\n", True, ["\n", "\n", "\n"]),  # no such token: merged as any word
        ("bc", True, ["b", "c"]),  # only for line breaks
        ("c\n", True, ["c", "\n"]),
    ],
)
def test_newline_rule_of_gemma4(word: str, newline_runs: bool, expected: list[str]) -> None:
    assert ids_of(word, ["a b"], "gemma4", newline_runs=newline_runs) == expected


def test_newline_rule_belongs_to_gemma4_and_mmbert() -> None:
    ruled = {name for name, entry in PRE_TOKENIZERS.items() if entry.newline_runs}
    assert ruled == {"gemma4", "granite-embed-multi-311m", "mmbert"}


def test_newline_rule_in_the_whole() -> None:
    tok = Tokenizer(raw_utf8_vocabulary())
    assert [tok.token_to_piece(i) for i in tok.encode("a\n\n\nb", add_special=False)] == [
        b"a",
        b"\n\n\n",
        b"b",
    ]


@pytest.mark.parametrize(
    ("word", "pre", "expected"),
    [
        ("", "gpt-2", []),
        ("ab", "gpt-2", [("ab", 0, 2)]),
        ("é!", "gpt-2", [("!", 2, 3)]),  # what is dropped has its place nevertheless
        ("aé", "gemma4", [("a", 0, 1), ("<0xC3>", 1, 2), ("<0xA9>", 2, 3)]),
    ],
)
def test_ends_of_tokens(word: str, pre: str, expected: list[tuple[str, int, int]]) -> None:
    vocabulary = make_vocabulary(TOKENS, pre=pre)
    encoder = WordEncoder(vocabulary.pre_tokenizer, vocabulary.token_to_id, ["a b"])
    found = [(vocabulary.tokens[token], start, end) for token, start, end in encoder.ids_with_ends(word)]
    assert found == expected


@bounded(100)
@given(texts)
def test_ids_with_ends_gives_the_same_ids_and_every_byte_once(text: str) -> None:
    vocabulary = gpt2_vocabulary()
    encoder = WordEncoder(vocabulary.pre_tokenizer, vocabulary.token_to_id, vocabulary.merges)
    with_ends = encoder.ids_with_ends(text)
    assert tuple(token for token, _, _ in with_ends) == encoder.ids(text)
    data = text.encode()
    assert [data[start:end] for _, start, end in with_ends] == [
        bytes(CHAR_BYTES[char] for char in vocabulary.tokens[token]) for token, _, _ in with_ends
    ]


@bounded(100)
@given(st.binary(max_size=20))
def test_without_merges_every_byte_is_its_own_token(data: bytes) -> None:
    tok = Tokenizer(make_vocabulary(byte_tokens()))
    assert tok.encode(data.decode("latin-1")) == list(data.decode("latin-1").encode())


@pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")
@pytest.mark.parametrize("engine", ["native", "reference"])
def test_a_space_in_front_of_a_line_takes_nothing_of_the_text(engine: Any) -> None:
    """mmBERT's: spans cover the text, a prepended U+2581 is empty or begins with what it is merged with."""
    if engine == "native" and native is None:
        pytest.skip("there is no compiled engine")
    changed = {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "mmbert"}
    tok = Tokenizer.from_gguf(RAW_UTF8, engine=engine, overrides=changed)
    ids, spans = tok.encode_with_offsets("ab\n\ncd ▁é<", add_special=False)
    assert ids == tok.encode("ab\n\ncd ▁é<", add_special=False)
    assert b"".join(map(tok.token_to_piece, ids)) == " ab\n\n cd  é<".encode()
    assert spans[:2] == [(0, 0), (0, 2)]
    data = "ab\n\ncd ▁é<".encode()
    assert b"".join(data[start:end] for start, end in spans) == data
