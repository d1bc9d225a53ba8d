"""Special tokens in text: held to llama.cpp's own algorithm, a search of the whole text for each token."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic import bounded, make_vocabulary

from ggufbpe.models.special_order import sort_longest_first
from ggufbpe.models.vocabulary import CONTROL, LSTRIP, NORMAL, RSTRIP, UNKNOWN, USER_DEFINED, Vocabulary
from ggufbpe.tokenizer.special_tokens import SpecialTokens

pytestmark = pytest.mark.both_engines

Fragments = list[tuple[str | None, bytes]]  # the special token, or None for plain text; its bytes


def transcribed(vocabulary: Vocabulary, source: bytes, parse_special: bool) -> Fragments:
    """llama_vocab::impl::tokenizer_st_partition, on offsets and lengths in bytes as it has them."""
    order = [index for _, index in sort_longest_first(token_lengths(vocabulary))]
    buffer: list[tuple[int | None, int, int]] = [(None, 0, len(source))] if source else []
    for special in order:
        text, attribute = vocabulary.tokens[special].encode(), vocabulary.attributes[special]
        if not parse_special and attribute & (CONTROL | UNKNOWN):
            continue
        done: list[tuple[int | None, int, int]] = []
        for token, offset, length in buffer:
            if token is not None:
                done.append((token, offset, length))
                continue
            while True:
                match = source.find(text, offset, offset + length)
                if match < 0:
                    break
                if match > offset:
                    left = match - offset
                    if attribute & LSTRIP:
                        while left > 0 and source[offset + left - 1 : offset + left] in tuple(C_SPACES):
                            left -= 1
                    if left > 0:
                        done.append((None, offset, left))
                done.append((special, match, len(text)))
                right, rest = match + len(text), length - (match - offset + len(text))
                if attribute & RSTRIP:
                    while rest > 0 and source[right : right + 1] in tuple(C_SPACES):
                        right, rest = right + 1, rest - 1
                offset, length = right, rest
            if length > 0:
                done.append((None, offset, length))
        buffer = done
    return [
        (None if token is None else vocabulary.tokens[token], source[offset : offset + length])
        for token, offset, length in buffer
    ]


C_SPACES = (b" ", b"\t", b"\n", b"\v", b"\f", b"\r")  # isspace in the C locale


def token_lengths(vocabulary: Vocabulary) -> list[tuple[int, int]]:
    return [(len(vocabulary.tokens[index].encode()), index) for index in vocabulary.special_token_ids]


def partitioned(vocabulary: Vocabulary, source: str | bytes, parse_special: bool) -> Fragments:
    result: Fragments = []
    for token, start, end in SpecialTokens(vocabulary).partition(source, parse_special):
        part = source[start:end]
        data = part.encode() if isinstance(part, str) else part
        result.append((None if token is None else vocabulary.tokens[token], data))
    return result


# ---- cases to read --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tokens", "text", "expected"),
    [
        ({"<s>": CONTROL}, "", []),
        ({"<s>": CONTROL}, "a", ["a"]),
        ({"<s>": CONTROL}, "<s>", ["[<s>]"]),
        ({"<s>": CONTROL}, "a<s><s>b", ["a", "[<s>]", "[<s>]", "b"]),
        ({"<s>": CONTROL}, "<s<s>", ["<s", "[<s>]"]),
        ({"<s>": NORMAL}, "a<s>", ["a<s>"]),
        ({}, "a<s>", ["a<s>"]),
        # the longest token is cut first, wherever it stands
        ({"ab": CONTROL, "abc": CONTROL}, "abcab", ["[abc]", "[ab]"]),
        ({"ab": CONTROL, "bcd": CONTROL}, "abcd", ["a", "[bcd]"]),
        ({"abc": CONTROL, "cd": CONTROL}, "abcd", ["[abc]", "d"]),
        ({"abc": CONTROL, "b": CONTROL}, "babcb", ["[b]", "[abc]", "[b]"]),
        ({"aa": CONTROL}, "aaaaa", ["[aa]", "[aa]", "a"]),
        # of two that are equally long, the one of the lower id, for up to 16 tokens
        ({"ab": CONTROL, "bc": CONTROL}, "abc", ["[ab]", "c"]),
        ({"bc": CONTROL, "ab": CONTROL}, "abc", ["a", "[bc]"]),
        ({"é": CONTROL, "abc": CONTROL, "ab": CONTROL}, "abcé", ["[abc]", "[é]"]),
        ({"cé": CONTROL, "abc": CONTROL}, "abcé", ["ab", "[cé]"]),  # both have three bytes
        ({"bcd": CONTROL, "ab": CONTROL, "éb": CONTROL}, "ébcd", ["é", "[bcd]"]),
        # white space
        ({"<s>": CONTROL | LSTRIP}, "a \n<s> b", ["a", "[<s>]", " b"]),
        ({"<s>": CONTROL | RSTRIP}, "a <s> \nb", ["a ", "[<s>]", "b"]),
        ({"<s>": CONTROL | LSTRIP | RSTRIP}, " <s> <s> ", ["[<s>]", "[<s>]"]),
        ({"<s>": CONTROL | LSTRIP}, "\v\f\t\r<s>", ["[<s>]"]),
        ({"<s>": CONTROL | LSTRIP}, "\xa0\u2003\x1c<s>", ["\xa0\u2003\x1c", "[<s>]"]),  # not isspace
        ({"<s>": CONTROL | LSTRIP, "  ": USER_DEFINED}, "a  <s>", ["a", "[<s>]"]),
        ({"<s>": CONTROL | LSTRIP, "    ": USER_DEFINED}, "a      <s>", ["a", "[    ]", "[<s>]"]),
        ({"<s>": CONTROL | RSTRIP, "  ": USER_DEFINED}, "<s>  a", ["[<s>]", "a"]),
        ({"<s>": CONTROL | RSTRIP, "    ": USER_DEFINED}, "<s>    a", ["[<s>]", "[    ]", "a"]),
        ({"<s>": CONTROL | LSTRIP, "  ": USER_DEFINED}, "  <s>", ["[<s>]"]),
    ],
)
def test_partition(tokens: dict[str, int], text: str, expected: list[str]) -> None:
    vocabulary = make_vocabulary(tokens, attributes=tokens)
    for source in (text, text.encode()):
        shown = [
            f"[{token}]" if token else part.decode() for token, part in partitioned(vocabulary, source, True)
        ]
        assert shown == expected


@pytest.mark.parametrize(
    ("attribute", "parse_special", "is_found"),
    [
        (CONTROL, True, True),
        (CONTROL, False, False),
        (UNKNOWN, True, True),
        (UNKNOWN, False, False),
        (USER_DEFINED, True, True),
        (USER_DEFINED, False, True),
        (USER_DEFINED | CONTROL, False, False),
        (NORMAL, True, False),
    ],
)
def test_which_tokens_count(attribute: int, parse_special: bool, is_found: bool) -> None:
    vocabulary = make_vocabulary(["<x>"], attributes={"<x>": attribute})
    assert partitioned(vocabulary, "<x>", parse_special) == [("<x>" if is_found else None, b"<x>")]


def test_tokens_are_found_as_bytes_in_what_is_no_utf8() -> None:
    vocabulary = make_vocabulary(["é", "<s>"], attributes={"é": CONTROL, "<s>": CONTROL})
    source = b"\xff<s>\xc3\xc3\xa9\xa9"
    expected = [(None, b"\xff"), ("<s>", b"<s>"), (None, b"\xc3"), ("é", b"\xc3\xa9"), (None, b"\xa9")]
    assert partitioned(vocabulary, source, True) == expected


# ---- random vocabularies --------------------------------------------------------------------------------

KINDS = [
    kind | strip
    for kind in (CONTROL, USER_DEFINED, UNKNOWN)
    for strip in (0, LSTRIP, RSTRIP, LSTRIP | RSTRIP)
]


def vocabularies(letters: str, kinds: list[int], most: int) -> st.SearchStrategy[Vocabulary]:
    token = st.text(alphabet=letters, min_size=1, max_size=4)
    tokens = st.dictionaries(token, st.sampled_from(kinds), max_size=most)
    return tokens.map(lambda kinds_of: make_vocabulary(kinds_of, attributes=kinds_of))


PLAIN_KINDS = [CONTROL, USER_DEFINED, UNKNOWN]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("letters", "kinds", "most"),
    [
        ("ab", PLAIN_KINDS, 6),  # overlaps of every sort
        ("abc<", PLAIN_KINDS, 15),
        ("abcdé", PLAIN_KINDS, 60),  # enough for the order of std::sort to matter
        ("a \n", KINDS, 4),  # white space that one token is and another strips
        ("ab \t", KINDS, 10),
        ("aé一 \xa0🙂", KINDS, 12),
        ("[]-^\\ |.*", KINDS, 12),  # what a regular expression would take for its own
    ],
)
def test_random_tokens_in_random_texts(letters: str, kinds: list[int], most: int) -> None:
    @bounded(250)
    @given(vocabularies(letters, kinds, most), st.text(alphabet=letters + "x", max_size=16), st.booleans())
    def check(vocabulary: Vocabulary, text: str, parse_special: bool) -> None:
        expected = transcribed(vocabulary, text.encode(), parse_special)
        assert partitioned(vocabulary, text, parse_special) == expected
        assert partitioned(vocabulary, text.encode(), parse_special) == expected

    check()


@bounded(300)
@given(
    vocabularies("aé一 ", KINDS, 8),
    st.lists(st.sampled_from([*"aé一 ".encode(), 0x80, 0xFF]), max_size=14).map(bytes),
    st.booleans(),
)
def test_random_tokens_in_broken_bytes(vocabulary: Vocabulary, source: bytes, parse_special: bool) -> None:
    assert partitioned(vocabulary, source, parse_special) == transcribed(vocabulary, source, parse_special)


def test_one_partition_does_not_change_the_next() -> None:
    vocabulary = make_vocabulary(["<s>", "<u>"], attributes={"<s>": CONTROL, "<u>": USER_DEFINED})
    special = SpecialTokens(vocabulary)
    for _ in range(2):
        for source in ("<s><u>", b"<s><u>"):
            assert [f.token for f in special.partition(source, True)] == [0, 1]
            assert [f.token for f in special.partition(source, False)] == [None, 1]


class CountingText(str):
    """A text that counts how many of its characters are looked at."""

    reads = 0

    def __getitem__(self, key: Any) -> str:
        part = super().__getitem__(key)
        self.reads += len(part)
        return part

    def startswith(self, prefix: Any, *place: Any) -> bool:
        self.reads += len(prefix)
        return super().startswith(prefix, *place)

    def find(self, sub: str, start: Any = None, end: Any = None) -> int:
        found = super().find(sub, start, end)
        self.reads += (len(self) if found < 0 else found + len(sub)) - (start or 0)
        return found


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (["a" * k + "b" for k in range(1, 200)], "a" * 1000),
        (["a" * k for k in range(1, 200)], "a" * 1000),
        (["a" * k for k in range(100, 199)] + ["a" * 199 + "b"], ("a" * 298 + "b") * 4),
        (["ab", "bcd", *map(str, range(2000))], "abcd" * 200),
    ],
)
def test_a_text_is_read_at_most_once_for_each_character_of_the_longest_token(
    tokens: list[str], text: str
) -> None:
    vocabulary = make_vocabulary(tokens, attributes=dict.fromkeys(tokens, CONTROL))
    counting = CountingText(text)
    SpecialTokens(vocabulary).partition(counting, True)
    assert counting.reads <= len(text) * (max(map(len, tokens)) + 1)


# ---- the order of std::sort -----------------------------------------------------------------------------


def spread(count: int, kinds: int, seed: int) -> list[int]:
    """`count` numbers from 1 to `kinds`, the same everywhere (a linear congruential generator)."""
    numbers = []
    for _ in range(count):
        seed = (seed * 1103515245 + 12345) % 2**31
        numbers.append(1 + (seed >> 16) % kinds)
    return numbers


# Recorded with g++ 12.2 (libstdc++), from a program that sorts the indices of the lengths by falling length,
# as llama_vocab::impl::load does:
#     std::sort(ids.begin(), ids.end(), [&](int a, int b) { return lengths[a] > lengths[b]; });
# Up to 24 lengths the ids themselves; beyond, the beginning of the SHA-256 of the ids as a JSON list.
# fmt: off
SORTED = [
    (2, 1, 1, [0, 1]),
    (16, 2, 2, [1, 2, 4, 5, 7, 9, 10, 11, 13, 14, 0, 3, 6, 8, 12, 15]),
    (17, 1, 3, [8, 16, 15, 14, 13, 12, 11, 10, 9, 0, 7, 6, 5, 4, 3, 2, 1]),
    (17, 2, 4, [16, 2, 3, 4, 15, 14, 7, 0, 9, 10, 11, 12, 13, 8, 6, 5, 1]),
    (17, 3, 5, [16, 2, 3, 4, 5, 6, 15, 13, 12, 11, 8, 0, 10, 9, 14, 7, 1]),
    (18, 2, 6, [1, 5, 6, 7, 8, 14, 10, 11, 17, 0, 16, 15, 13, 12, 9, 4, 3, 2]),
    (20, 3, 7, [10, 19, 17, 14, 13, 12, 9, 8, 7, 5, 4, 2, 1, 0, 11, 15, 16, 18, 6, 3]),
    (20, 20, 8, [15, 11, 13, 4, 18, 8, 0, 2, 5, 3, 6, 9, 7, 12, 14, 16, 19, 17, 1, 10]),
    (24, 2, 9, [1, 20, 19, 17, 16, 15, 14, 12, 11, 10, 9, 8, 6, 3, 2, 7, 13, 5, 4, 18, 0, 21, 22, 23]),
    (24, 4, 10, [0, 23, 22, 4, 21, 20, 8, 14, 1, 19, 17, 9, 6, 5, 3, 13, 10, 16, 18, 2, 11, 12, 15, 7]),
]
SORTED_LONG = [
    (30, 3, 11, "cf4b9d106008ed2f"),
    (33, 2, 12, "b8aff40bbea5f4cd"),
    (33, 8, 13, "1e2a16bd3062f86f"),
    (36, 3, 14, "54dcf4a2b83343de"),
    (40, 1, 15, "f5b24f9478f3711a"),
    (40, 2, 16, "bc80b2bd2a8cc47a"),
    (40, 5, 17, "4ba336f367aa80d0"),
    (40, 30, 18, "7ba1a7a2014d04e9"),
    (64, 2, 21, "2ab0184a22be7319"),
    (64, 5, 22, "56a356bf0aeb0dce"),
    (100, 3, 23, "390afc3acae398ef"),
    (100, 40, 24, "96daa8de5b0c618d"),
    (257, 1, 25, "0288b143cd40e698"),
    (257, 4, 26, "b3ccaab01a819afc"),
    (300, 8, 27, "d85a5b9c526949e9"),
    (300, 100, 28, "a6f67046d64de8c9"),
    (1000, 3, 29, "fb50314c89f071e2"),
    (1000, 12, 30, "f5ec2cc6a0d4264c"),
    (1024, 20, 31, "ae3874d445f1ad08"),
    (5000, 30, 32, "b8edc2db6ecb9bc2"),
]
SORTED_NAMED = [
    ("<unused", 99, "554cbfc7a2806530"),
    ("<unused", 6242, "7d6298083800f9d1"),
    ("<|reserved_special_token_", 251, "d87498c6f24826f4"),
    ("<SPECIAL_", 1000, "7f5f73fc6512565e"),
    ("[control_", 768, "28456502ea00ca63"),
    ("<extra_", 112, "c44a968ed9a9de4e"),
]
SORTED_RISING_AND_FALLING = [
    (20, "c761a4da340d9bcb"),
    (75, "fec2c73ac0a68d08"),
    (150, "d59789cf26d27aca"),
    (500, "1964664480bd4747"),
    (2000, "cb2a1875cd2bc1b8"),
]
# fmt: on


def ids_sorted(lengths: list[int]) -> list[int]:
    return [index for _, index in sort_longest_first([(length, i) for i, length in enumerate(lengths)])]


@pytest.mark.parametrize(("count", "kinds", "seed", "expected"), SORTED)
def test_sort_is_libstdcxxs(count: int, kinds: int, seed: int, expected: list[int]) -> None:
    assert ids_sorted(spread(count, kinds, seed)) == expected


@pytest.mark.parametrize(("count", "kinds", "seed", "expected"), SORTED_LONG)
def test_long_sort_is_libstdcxxs(count: int, kinds: int, seed: int, expected: str) -> None:
    ids = ids_sorted(spread(count, kinds, seed))
    assert sorted(ids) == list(range(count))
    assert sha256(json.dumps(ids).encode()).hexdigest()[:16] == expected


@pytest.mark.parametrize(("name", "count", "expected"), SORTED_NAMED)
def test_sort_of_numbered_names_is_libstdcxxs(name: str, count: int, expected: str) -> None:
    """Series such as real vocabularies have: the lengths rise with the id, in long runs of equal ones."""
    ids = ids_sorted([len(f"{name}{number}>") for number in range(count)])
    assert sha256(json.dumps(ids).encode()).hexdigest()[:16] == expected


@pytest.mark.parametrize(("count", "expected"), SORTED_RISING_AND_FALLING)
def test_sort_where_quicksort_goes_too_deep_is_libstdcxxs(count: int, expected: str) -> None:
    """Lengths that the median of three parts badly: libstdc++ then sorts by heap."""
    ids = ids_sorted([*range(count), *range(count - 1, -1, -1)])
    assert sha256(json.dumps(ids).encode()).hexdigest()[:16] == expected


@bounded(100)
@given(st.lists(st.integers(1, 5), max_size=16))
def test_short_sort_is_stable(lengths: list[int]) -> None:
    assert ids_sorted(lengths) == sorted(range(len(lengths)), key=lambda index: -lengths[index])
