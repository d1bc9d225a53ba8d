"""The registry's patterns, parsed: what each piece of syntax means, and what is refused."""

from __future__ import annotations

import re
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic import bounded

from ggufbpe._util.unicode_classes import class_of
from ggufbpe.models.pretokenizers.pattern import (
    CharSet,
    always_matches,
    char_sets,
    option_texts,
    options,
    parse,
)
from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS, PreTokenizer, Stage
from ggufbpe.models.pretokenizers.splitter import Splitter


def set_of(pattern: str) -> CharSet:
    (found,) = char_sets(parse(pattern))
    return found


class OneStage(PreTokenizer):
    """An entry that is not in the registry; its name is its one pattern."""

    @property
    def stages(self) -> tuple[Stage, ...]:
        return (Stage(self.name, self.name),)


def splitter_by(pattern: str) -> Splitter:
    return Splitter(OneStage(pattern, family="none"))


# ---- sets of code points --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "members", "others"),
    [
        ("a", "a", "Ab"),
        (r"\.", ".", "a\\"),
        (r"\n", "\n", "nr"),
        (r"\u00e9", "é", "eu"),
        (r"\U00010400", "\U00010400", "\u0400"),
        ("[a-c]", "abc", "d-`"),
        ("[a-cx-z]", "abcxyz", "dw-"),
        ("[a-]", "a-", "b"),
        ("[-a]", "a-", "b"),
        (r"[\]\-\\]", "]-\\", "["),
        ("[^a-c]", "d中\n\0", "abc"),
        (r"\d", "09", "٣²a"),  # ASCII only
        (r"\p{N}", "09٣²Ⅳ𝟘", "a"),
        (r"\p{L}", "aZé中ªʰ", "1_\u0301"),
        (r"\p{M}", "\u0301\u0903\u20dd", "a"),
        (r"\p{P}", "!_«。", "$+<"),
        (r"\p{S}", "$+<€🙂", "!_"),
        (r"\p{Lu}", "aAé中ʰ", "1"),  # any letter, as are the other four
        (r"\p{Ll}", "aAé中ʰ", "1"),
        (r"\p{Lt}", "aAé中ʰ", "1"),
        (r"\p{Lm}", "aAé中ʰ", "1"),
        (r"\p{Lo}", "aAé中ʰ", "1"),
        (r"\s", " \t\n\v\f\r\x85\xa0\u2003\u3000", "\x1c\x1d\x1e\x1f\u200b\ufeffa"),
        (r"\S", "a\x1c\u200b", " \n\u3000"),
        (r"[^\s\p{L}\p{N}]", "!\u0301\0\u0378🙂", " a1é٣\u3000"),
        ("[^a-z]", "Aé中\u3000 ", "az"),  # all that is not ASCII
        (r"[\u3000-\u3002]", "\u3001\u3002", "\u3000"),  # white space beyond ASCII counts as U+000B
        (r"[\u0000-\u0020]", "\t\u3000\xa0\0 ", "!"),
        (r"[^\r\n]", "\u2028\x85a", "\r\n"),
        (r"\p{Han}", "中㐀\U00020000豈", "あ가a、"),
        (r"(?=[\p{L}])([^a-z])", "Aé中", "az1!"),  # one code point out of both
        (r"(?!\p{Han})\p{L}", "aあ", "中1"),
        (r"(?!a)[abc]", "bc", "ad"),
    ],
)
def test_membership(pattern: str, members: str, others: str) -> None:
    chars = set_of(pattern)
    assert [char for char in members if not chars.contains(ord(char))] == []
    assert [char for char in others if chars.contains(ord(char))] == []


@bounded(200)
@given(
    st.text(alphabet="abcdefgh", min_size=1, max_size=8), st.sampled_from("abcdefghi\u3000"), st.booleans()
)
def test_bracket_of_random_ranges(ends: str, char: str, negated: bool) -> None:
    ranges = [(min(a, b), max(a, b)) for a, b in pairwise(ends)] or [(ends, ends)]
    inside = "".join(f"{a}-{b}" for a, b in ranges)
    chars = set_of(f"[{'^' * negated}{inside}]")
    assert chars.contains(ord(char)) == (any(a <= char <= b for a, b in ranges) != negated)


@bounded(200)
@given(st.integers(0, 0x10FFFF))
def test_class_letter_of_a_code_point_may_be_given(code_point: int) -> None:
    for pattern in (r"[^\s\p{L}\p{N}]", r"\s", r"[\u3000-\u3002]", "[^a-z]"):
        chars = set_of(pattern)
        assert chars.contains(code_point) == chars.contains_in_class(code_point, class_of(code_point))


# ---- what a pattern matches -----------------------------------------------------------------------------

SHARED_WITH_PYTHON = [
    "a",
    "ab|a",
    "a|ab",
    "(?:ab|a)b",
    "a*",
    "a+b?",
    "a{2}",
    "a{1,2}b",
    "(a|b){1,2}c",
    "a(?!b)",
    "a(?=b)",
    "(?=(aa)+(?!a))a",
    "(?:a(?: a)*)+",
    "[^a]+|a",
    r"\s+(?!\S)|\s+",
    r"\s*[\n]+",
    r"\s{1,2}(?!\S)|\s{1}",
    r" ?[^\sa]+[\n]*",
]


@pytest.mark.parametrize("pattern", SHARED_WITH_PYTHON)
def test_matching_is_that_of_python_where_the_syntax_means_the_same(pattern: str) -> None:
    """First alternative, as much as possible; the words are the matches and what is left between them."""
    words = splitter_by(pattern).words
    for length in range(6):
        for text in map("".join, product("abc \n", repeat=length)):
            cuts = {0, len(text), *(end for m in re.finditer(pattern, text) for end in m.span())}
            expected = [text[a:b] for a, b in pairwise(sorted(cuts))]
            assert words(text) == expected


@pytest.mark.parametrize(
    ("pattern", "text", "words"),
    [
        (r"\p{L}+", "añ1中", ["añ", "1", "中"]),
        (r"\p{L}+\p{M}", "e\u0301e\u0301", ["e\u0301", "e\u0301"]),
        (r"\d+", "1٣2", ["1", "٣", "2"]),
        (r"(?:'[sS])", "a's'S", ["a", "'s", "'S"]),
        (r"((?=[\p{L}])([^a-z]))+", "aBÉé", ["a", "BÉé"]),
    ],
)
def test_words(pattern: str, text: str, words: list[str]) -> None:
    assert splitter_by(pattern).words(text) == words


@pytest.mark.parametrize(
    ("pattern", "always"),
    [
        (r"\S+|\s+", True),
        (r"[^\n]+|[\n]+", True),
        (r"[^\n]|\n", True),
        (r" ?[^\s]+[\r\n]*|\s+", True),
        (r"\s+(?!\S)|\s+|\S", True),
        (r"\p{L}|\p{M}|\p{N}|\p{P}|\p{S}|\s", False),  # control characters and unassigned code points
        (r"\S+|\s+(?!\S)", False),  # white space before something else
        (r"\S+|\s{2}", False),
        (r"\S+|\s\s", False),
        (r"[^\u4e00]|[\u4e00]", True),
        (r"[^\u4e00]", False),
        (r"(?:\S|\s)", True),
        ("a*", False),
        ("a", False),
    ],
)
def test_always_matches(pattern: str, always: bool) -> None:
    assert always_matches(parse(pattern)) is always


def test_options() -> None:
    assert len(options(parse("a|b|c"))) == 3
    assert options(parse("ab")) == (parse("ab"),)


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        ("a", ["a"]),
        ("a|b", ["a", "b"]),
        ("(?:a|b)|c", ["(?:a|b)", "c"]),
        ("((a|b)|c){1,2}|d", ["((a|b)|c){1,2}", "d"]),
        (r"[|(]|\||\(|a", ["[|(]", r"\|", r"\(", "a"]),
        (r"[\]|]|a", [r"[\]|]", "a"]),
    ],
)
def test_option_texts(pattern: str, texts: list[str]) -> None:
    assert option_texts(pattern) == texts


@pytest.mark.parametrize("name", PRE_TOKENIZERS)
def test_option_texts_of_the_registry_are_its_options(name: str) -> None:
    for stage in PRE_TOKENIZERS[name].stages:
        whole = parse(stage.rule)
        assert tuple(map(parse, option_texts(stage.rule))) in (options(whole), (whole,))


# ---- what is refused ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("a)", "unbalanced parenthesis at 1"),
        ("(a", "missing )"),
        ("(?=a", "missing )"),
        ("[a", "unexpected end"),
        ("a\\", "unexpected end"),
        ("*a", "not supported"),
        ("a|+", "not supported"),
        (".", "not supported"),
        ("^a", "not supported"),
        ("a$", "not supported"),
        (r"\w", "unknown escape"),
        (r"\b", "unknown escape"),
        (r"\p{Greek}", "unknown property 'Greek'"),
        (r"[\S]", "negated class in a bracket"),
        ("(?<=a)b", "not supported"),
    ],
)
def test_unsupported_syntax(pattern: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)) as caught:
        parse(pattern)
    assert repr(pattern) in str(caught.value)


@pytest.mark.parametrize("name", PRE_TOKENIZERS)
def test_every_rule_of_the_registry_is_understood(name: str) -> None:
    for stage in PRE_TOKENIZERS[name].stages:
        assert list(char_sets(parse(stage.rule)))
