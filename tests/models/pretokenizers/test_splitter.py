"""Plain text to words: held to splitters written straight from the rules, one alternative after the other.

The oracles below know nothing of patterns, stages and collapsed alphabets. Each is a function that says how far
a match at one place of a piece goes, in loops over characters.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator
from itertools import product

import pytest
from conftest import ROOT
from hypothesis import given
from hypothesis import strategies as st
from synthetic import (
    BYTE_LEVEL,
    BYTE_LEVEL_FAMILIES,
    CHARACTERS,
    ONE_OF_EACH_FAMILY,
    RAW_NAMES,
    bounded,
    texts,
    tokenizer_as,
)

from ggufbpe._util.llama_cpp_states import CHATS, FOLLOWED
from ggufbpe.models.pretokenizers import splitter as split
from ggufbpe.models.pretokenizers.compiled_splitter import compiled_splitter
from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS, one_of_each
from ggufbpe.models.pretokenizers.splitter import Splitter, splitter
from ggufbpe.native import native

Match = Callable[[str, int], int]  # (piece, start) to the end of the match; the start itself for none
Split = Callable[[str], list[str]]

# ---- what the oracles are made of -----------------------------------------------------------------------

WHITE_SPACE = frozenset("\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000") | {
    chr(code_point) for code_point in range(0x2000, 0x200B)
}


def is_a(classes: str, piece: str, at: int) -> bool:
    """Whether there is a character at `at`, of one of the classes L, M, N, P, S, or W for white space."""
    if not 0 <= at < len(piece):
        return False
    char = piece[at]
    return ("W" if char in WHITE_SPACE else unicodedata.category(char)[0]) in classes


def run(classes: str, piece: str, at: int, most: int | None = None) -> int:
    """The end of the run of these classes that begins at `at`."""
    end = at
    while is_a(classes, piece, end) and (most is None or end - at < most):
        end += 1
    return end


def run_without(classes: str, piece: str, at: int) -> int:
    """The end of the run of anything else."""
    end = at
    while end < len(piece) and not is_a(classes, piece, end):
        end += 1
    return end


def run_of(chars: str, piece: str, at: int) -> int:
    end = at
    while end < len(piece) and piece[end] in chars:
        end += 1
    return end


def first_of(*matches: Match) -> Match:
    """The first alternative that matches."""

    def match(piece: str, at: int) -> int:
        return next((end for each in matches if (end := each(piece, at)) > at), at)

    return match


def pieces_by(match: Match, pieces: Iterable[str]) -> Iterator[str]:
    """Each match is a piece, and so is each part that nothing matches."""
    for piece in pieces:
        begin = at = 0
        while at < len(piece):
            end = match(piece, at)
            if end == at:
                at += 1
                continue
            if begin < at:
                yield piece[begin:at]
            yield piece[at:end]
            begin = at = end
        if begin < len(piece):
            yield piece[begin:]


def in_turn(*matches: Match) -> Split:
    """One pattern after the other, each on what the one before left."""

    def words(text: str) -> list[str]:
        pieces: Iterable[str] = [text] if text else []
        for match in matches:
            pieces = pieces_by(match, pieces)
        return list(pieces)

    return words


# ---- alternatives that many patterns share --------------------------------------------------------------

SUFFIXES = ("s", "t", "re", "ve", "m", "ll", "d")


def small_contraction(piece: str, at: int) -> int:
    """'s|'t|'re|'ve|'m|'ll|'d"""
    return next((at + 1 + len(s) for s in SUFFIXES if piece.startswith("'" + s, at)), at)


def contraction(piece: str, at: int) -> int:
    """The same in either case."""
    ends = (at + 1 + len(s) for s in SUFFIXES if piece[at : at + 1 + len(s)].lower() == "'" + s)
    return next(ends, at)


def word(letters: str = "L", not_before: str = "LN") -> Match:
    r"""[^\r\n..]?[..]+: a run of letters, and any one character of no class in `not_before` before it."""

    def match(piece: str, at: int) -> int:
        before = at < len(piece) and piece[at] not in "\r\n" and not is_a(not_before, piece, at)
        start = at + 1 if before and is_a(letters, piece, at + 1) else at
        end = run(letters, piece, start)
        return end if end > start else at

    return match


def numbers(most: int | None) -> Match:
    return lambda piece, at: run("N", piece, at, most)


def spaced(classes: str) -> Match:
    """` ?[..]+`"""

    def match(piece: str, at: int) -> int:
        start = at + (piece[at : at + 1] == " ")
        end = run(classes, piece, start)
        return end if end > start else at

    return match


def others(classes: str = "WLN", then: str = "\r\n", most: int | None = None) -> Match:
    r"""` ?[^\s\p{L}\p{N}]+[\r\n]*`"""

    def match(piece: str, at: int) -> int:
        start = at + (piece[at : at + 1] == " ")
        end = run_without(classes, piece, start)
        if end == start:
            return at
        limit = len(piece) if most is None else end + most
        return min(run_of(then, piece, end), limit)

    return match


def lines(piece: str, at: int) -> int:
    r"""\s*[\r\n]+: white space up to the last line break of its run."""
    end = run("W", piece, at)
    while end > at and piece[end - 1] not in "\r\n":
        end -= 1
    return end


def spaces(piece: str, at: int) -> int:
    r"""\s+(?!\S)|\s+: white space, but for the last of several if something follows."""
    end = run("W", piece, at)
    return end - 1 if end - at > 1 and end < len(piece) else end


# ---- the oracles ----------------------------------------------------------------------------------------

gpt2 = first_of(small_contraction, spaced("L"), spaced("N"), others(then=""), spaces)


def with_contraction(match: Match) -> Match:
    return lambda piece, at: contraction(piece, end) if (end := match(piece, at)) > at else at


def cased(before: bool, upper_first: bool) -> Match:
    """Upper case then lower case, one of them optional; a letter beyond ASCII is both."""

    def is_upper(piece: str, at: int) -> bool:
        return is_a("L", piece, at) and not "a" <= piece[at] <= "z"

    def is_lower(piece: str, at: int) -> bool:
        return is_a("L", piece, at) and not "A" <= piece[at] <= "Z"

    def match(piece: str, at: int) -> int:
        start = at
        if before:
            if at >= len(piece) or piece[at] in "\r\n" or is_a("LN", piece, at):
                return at
            start += 1
        most = start
        while is_upper(piece, most):
            most += 1
        for turn in range(most, start - (not upper_first), -1):
            end = turn
            while is_lower(piece, end):
                end += 1
            if end > (start if upper_first else turn):
                return end
        return at

    return match


CASED = [cased(before, upper_first) for upper_first in (False, True) for before in (True, False)]


def is_han(char: str) -> bool:
    return "\u4e00" <= char <= "\u9fff" or "\u3400" <= char <= "\u4dbf"  # those of the alphabets used here


def kimi_word(piece: str, at: int) -> int:
    def is_letter(position: int) -> bool:
        return is_a("L", piece, position) and not is_han(piece[position])

    start = at
    if at < len(piece) and piece[at] not in "\r\n" and not is_a("LN", piece, at) and is_letter(at + 1):
        start = at + 1
    end = start
    while is_letter(end):
        end += 1
    return contraction(piece, end) if end > start else at


def han(piece: str, at: int) -> int:
    end = at
    while end < len(piece) and is_han(piece[end]):
        end += 1
    return end


def blocks_of_spaces(piece: str, at: int) -> int:
    """jais-2: 512, 256 … 4, 2 or 1 of white space if what follows is none either, else just one."""
    has = run("W", piece, at) - at
    for count in (512, 256, 128, 64, 32, 16, 8, 4, 2, 1):
        if has >= count and (at + count == len(piece) or is_a("W", piece, at + count)):
            return at + count
    return at + min(has, 1)


def joined_word(piece: str, at: int) -> int:
    """exaone-moe: letters with their marks, and on over single spaces that letters follow."""
    before = at < len(piece) and piece[at] not in "\r\n" and not is_a("LN", piece, at)
    start = end = at + 1 if before and is_a("L", piece, at + 1) else at
    while True:
        if is_a("L", piece, end):
            end = run("M", piece, end + 1)
        elif end > start and piece[end : end + 1] == " " and is_a("L", piece, end + 1):
            end += 1
        else:
            return end if end > start else at


def groups_from_the_right(text: str) -> list[str]:
    """afmoe, tiny_aya: a number's first one to three digits end a word, each three after them are one."""
    cuts = [0]
    at = 0
    while at < len(text):
        end = run("N", text, at)
        if end > at:
            cuts += [cut for cut in range(at + 1, end + 1) if (end - cut) % 3 == 0]
        at = max(end, at + 1)
    return [text[a:b] for a, b in zip(cuts, [*cuts[1:], len(text)]) if a < b]


def afmoe(text: str) -> list[str]:
    def asian(piece: str, at: int) -> int:
        return run_of("中㐀一あアｱ가ກ", piece, at)

    def punctuated(piece: str, at: int) -> int:
        if not (piece[at].isascii() and is_a("PS", piece, at)):
            return at
        end = at + 1
        while end < len(piece) and piece[end].isascii() and piece[end].isalpha():
            end += 1
        return end if end > at + 1 else at

    def marks(piece: str, at: int) -> int:
        end = spaced("PS")(piece, at)
        return run_of("\r\n", piece, end) if end > at else at

    last = first_of(punctuated, word("LM", not_before="LPS"), marks, lines, spaces)
    return [w for piece in groups_from_the_right(text) for w in in_turn(asian, last)(piece)]


def tiny_aya(text: str) -> list[str]:
    named = with_contraction(word("LM"))
    last = first_of(named, numbers(3), others(then="\r\n/"), lines, spaces)
    return [w for piece in groups_from_the_right(text) for w in in_turn(last)(piece)]


def superbpe(text: str) -> list[str]:
    """Numbers stand apart; ASCII digits are cut in threes from the right."""
    result = []
    for piece in in_turn(numbers(None))(text):
        begin = 0
        for at in range(1, len(piece)):
            digits = at
            while digits < len(piece) and piece[digits] in "0123456789":
                digits += 1
            if digits > at and (digits - at) % 3 == 0:
                result.append(piece[begin:at])
                begin = at
        result.append(piece[begin:])
    return result


def deepseek_llm(text: str) -> list[str]:
    def after_white_space(chars: str) -> Match:
        def match(piece: str, at: int) -> int:
            start = at + is_a("W", piece, at)
            end = run_of(chars, piece, start)
            return end if end > start else at

        return match

    def line_break(piece: str, at: int) -> int:
        return at + (piece[at] in "\r\n")

    def trailing(piece: str, at: int) -> int:
        end = run("W", piece, at)
        return end if end == len(piece) else at

    def han_or_hangul(piece: str, at: int) -> int:
        """Nearly all from U+0800 up, but no white space."""
        end = at
        while end < len(piece) and not is_a("W", piece, end):
            if not ("\u0800" <= piece[end] <= "\u9fa5" or "\uac00" <= piece[end] <= "\ud7ff"):
                break
            end += 1
        return end

    ascii_letters = "".join(chr(c) for c in range(128) if chr(c).isalpha())
    marks = "".join(chr(c) for a, b in ("!/", ":~") for c in range(ord(a), ord(b) + 1)) + "，。’"
    return in_turn(
        line_break,
        after_white_space(ascii_letters + "éÉßЖ"),
        after_white_space(marks),
        trailing,
        han_or_hangul,
        numbers(None),
    )(text)


def starcoder(text: str) -> list[str]:
    return in_turn(numbers(1), gpt2)(text)


def newline_runs(piece: str, at: int) -> int:
    return run_of("\n", piece, at)


QWEN2 = (contraction, word(), numbers(1), others(), lines, spaces)
GPT4O_TAIL = (numbers(3), others(then="\r\n/"), lines, spaces)

ORACLES: dict[str, Split] = {
    "gpt-2": in_turn(gpt2),
    "starcoder": starcoder,
    "llama-bpe": in_turn(first_of(contraction, word(), numbers(3), others(), lines, spaces)),
    "qwen2": in_turn(first_of(*QWEN2)),
    "laguna": in_turn(newline_runs, first_of(*QWEN2)),
    "qwen35": in_turn(
        first_of(contraction, word("LM"), numbers(1), others("WLMN"), lines, spaces),
    ),
    "tekken": in_turn(first_of(*CASED, numbers(1), others(then="\r\n/"), lines, spaces)),
    "gpt-4o": in_turn(first_of(*map(with_contraction, CASED), *GPT4O_TAIL)),
    "jais-2": in_turn(first_of(contraction, word(), numbers(3), others(), lines, blocks_of_spaces)),
    "exaone-moe": in_turn(
        first_of(contraction, joined_word, numbers(1), others(then="\r\n/", most=1), lines, spaces)
    ),
    "kimi-k2": in_turn(first_of(han, kimi_word, numbers(3), others(), lines, spaces)),
    "superbpe": superbpe,
    "afmoe": afmoe,
    "tiny_aya": tiny_aya,
    "deepseek-llm": deepseek_llm,
    "gemma4": in_turn(newline_runs),
}

# Besides these, every oracle is tried on one alphabet for all.
ALPHABETS: dict[str, tuple[str, ...]] = {
    "gpt-2": ("'", "s", "l", " ", "\n", "7"),
    "starcoder": ("'", "a", " ", "\n", "7", "²"),
    "llama-bpe": ("'", "S", "!", " ", "\n", "7"),
    "qwen2": ("'", "s", "!", " ", "\r", "7"),
    "laguna": ("a", "!", " ", "\n", "\r", "7"),
    "qwen35": ("a", "\u0301", "!", " ", "\n", "7"),
    "tekken": ("a", "B", "é", " ", "/", "\n"),
    "gpt-4o": ("a", "B", "é", "'", "s", "!"),
    "jais-2": ("a", " ", "\t", "\n", "!", "   "),
    "exaone-moe": ("a", "\u0301", " ", "'", "s", "\n"),
    "kimi-k2": ("a", "中", "!", " ", "'s", "7"),
    "superbpe": ("1", "2", "٣", "a", " ", "000"),
    "afmoe": ("1", "٣", "a", "中", "!", " "),
    "tiny_aya": ("1", "٣", "a", "\u0301", "'s", " "),
    "deepseek-llm": ("a", " ", "\n", "!", "中", "\u3000"),
    "gemma4": ("a", " ", "\n", "\r"),
}
COMMON = ("a", "7", " ", "\n", "!", "\u3000", "\u0301")

by_oracle = pytest.mark.parametrize("name", ORACLES)


@pytest.mark.slow
@by_oracle
def test_every_short_text_is_split_by_the_rules(name: str) -> None:
    words, oracle = splitter(PRE_TOKENIZERS[name]).words, ORACLES[name]
    for symbols, most in ((ALPHABETS[name], 5), (COMMON, 4)):
        for length in range(most + 1):
            for text in map("".join, product(symbols, repeat=length)):
                assert words(text) == oracle(text)


@pytest.mark.slow
@by_oracle
def test_random_texts_are_split_by_the_rules(name: str) -> None:
    words, oracle = splitter(PRE_TOKENIZERS[name]).words, ORACLES[name]
    alphabet = "aAsStTLlDREreBé中あЖ0123٣²  \t\n\r\u3000\xa0\x85'!?./,-$€\u0301\0\x7f\u0378🙂，"

    @bounded(250)
    @given(st.text(alphabet=alphabet, max_size=30))
    def check(text: str) -> None:
        assert words(text) == oracle(text)

    check()


@pytest.mark.slow
@pytest.mark.parametrize("before", ["", "a", "!", "\n", "7"])
@pytest.mark.parametrize("after", ["", "a", "!", "\n", "7", "\u0301"])
def test_jais2_takes_white_space_in_blocks(before: str, after: str) -> None:
    words, oracle = splitter(PRE_TOKENIZERS["jais-2"]).words, ORACLES["jais-2"]
    around = (64, 128, 256, 512, 1024, 1536)
    counts = {*range(20), *(n + more for n in around for more in (-1, 0, 1, 2)), 3000}
    for count in counts:
        for run_of_spaces in (" " * count, "\t" * count, "\u3000 " * (count // 2)):
            text = before + run_of_spaces + after + " b"
            assert words(text) == oracle(text)


# ---- cases to read --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "gpt-2",
            "I'll go  to\n\n42nd St.",
            ["I", "'ll", " go", " ", " to", "\n", "\n", "42", "nd", " St", "."],
        ),
        ("gpt-2", "I'LL", ["I", "'", "LL"]),
        ("llama-bpe", "I'LL pay $12345\n\n", ["I", "'LL", " pay", " $", "123", "45", "\n\n"]),
        ("llama-bpe", "a\u3000b", ["a", "\u3000b"]),
        ("qwen2", "12", ["1", "2"]),
        ("superbpe", "a1234567", ["a", "1", "234", "567"]),
        ("afmoe", "ab1234c", ["ab", "1", "234", "c"]),
        ("tekken", "helloWorld", ["hello", "World"]),
        ("gpt-4o", "XMLHttp's", ["XMLHttp's"]),
        ("exaone-moe", "one two  three", ["one two", " ", " three"]),
        ("deepseek-llm", "a b  ", ["a", " b", "  "]),
        ("kimi-k2", "ab中文cd", ["ab", "中文", "cd"]),
        ("bloom", "a, b", ["a", ",", " b"]),
        (
            "chameleon",
            "aIMGIMGABZ  1,<sentinel:1>",
            ["a", "IMGIMGABZ", "  ", "1", ",", "<", "sentinel", ":", "1", ">"],
        ),
        ("gemma4", "a b\n\nc", ["a b", "\n\n", "c"]),
        ("falcon", "1234", ["123", "4"]),
    ],
)
def test_words(name: str, text: str, expected: list[str]) -> None:
    assert splitter(PRE_TOKENIZERS[name]).words(text) == expected


@pytest.mark.parametrize(
    ("name", "text", "stages"),
    [
        ("gpt-2", "", [""]),
        ("gpt-2", "I'll  go", ["7:I 5:'ll 10:_ 7:_go"]),
        ("llama-bpe", "a12 !\n", ["1:a 2:12 3:_!\n"]),
        ("starcoder", "a12", ["-:a 0:1 0:2", "7:a 8:1 8:2"]),
        ("superbpe", "a1234", ["-:a 0:1234", "-:a 0:1 0:234"]),
        (
            "deepseek-coder",
            "a\nb1",
            ["-:a 0:\n -:b1", "0:a -:\n 0:b -:1"] + ["-:a -:\n -:b -:1"] * 2 + ["-:a -:\n -:b 0:1"],
        ),
        ("laguna", "a\n\nb", ["0:a 1:\n\n 0:b", "1:a 4:\n\n 1:b"]),
    ],
)
def test_stages(name: str, text: str, stages: list[str]) -> None:
    """For each stage its pieces, each with the number of the alternative that took it."""
    shown = []
    for pieces in splitter(PRE_TOKENIZERS[name]).stages(text):
        parts = [
            ("-" if p.alternative is None else str(p.alternative), text[p.start : p.end]) for p in pieces
        ]
        shown.append(" ".join(f"{label}:{part.replace(' ', '_')}" for label, part in parts))
    assert shown == stages


# ---- whatever the rules ---------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", [*BYTE_LEVEL, *RAW_NAMES])
def test_words_are_the_text(name: str) -> None:
    """For `whitespace`, whose model drops white space: test_tokenizer.py."""
    tok = tokenizer_as(name)

    @bounded(15)
    @given(texts)
    def check(text: str) -> None:
        words = tok.pre_tokenize(text)
        assert "".join(words) == (text.replace(" ", "▁") if name in RAW_NAMES else text)
        assert all(words)

    check()


@pytest.mark.slow
@pytest.mark.parametrize("name", ONE_OF_EACH_FAMILY)
def test_last_stage_has_the_words(name: str) -> None:
    """The traced way of splitting against the fast one."""
    found = splitter(PRE_TOKENIZERS[name])

    @bounded(40)
    @given(texts)
    def check(text: str) -> None:
        stages = found.stages(text)
        assert len(stages) == len(PRE_TOKENIZERS[name].stages)
        assert [text[piece.start : piece.end] for piece in stages[-1]] == found.words(text)
        for pieces in stages:
            assert "".join(text[piece.start : piece.end] for piece in pieces) == text

    check()


@bounded(25)
@given(texts)
def test_names_of_one_family_split_alike(text: str) -> None:
    for names in (BYTE_LEVEL, RAW_NAMES):
        words: dict[str, list[str]] = {}
        for name in names:
            tok = tokenizer_as(name)
            expected = words.setdefault(tok.vocabulary.pre_tokenizer.family, tok.pre_tokenize(text))
            assert tok.pre_tokenize(text) == expected


def test_families_differ() -> None:
    """No family is another one under a second name, but for one pair of patterns that mean the same."""
    sample = "I'LL say: 'tis 12345٣٤ Äpfel  naïve\u0301 \r\n\n  \t中文あ가 <a/>\u3000, -x...!\n/ don't"
    samples = [sample, sample.upper(), "x  y\n\n z", "«a»—b1 2", "a b/\n", "$a,b!\n\n", "`a`", "IMGIMGAZ 1"]
    samples += ["don'tcha", "a  1", "      B"]
    alike: dict[str, set[str]] = {}
    for name in BYTE_LEVEL_FAMILIES:
        words = repr([splitter(PRE_TOKENIZERS[name]).words(text) for text in samples])
        alike.setdefault(words, set()).add(PRE_TOKENIZERS[name].family)
    assert [families for families in alike.values() if len(families) > 1] == [{"qwen2", "bailingmoe"}]


@pytest.mark.parametrize("name", ONE_OF_EACH_FAMILY)
@pytest.mark.parametrize("unit", ["a", " ", "1", "!", "\n", "中", "a ", "'s", " \n", "\u3000", "aB"])
def test_long_runs_get_their_words(name: str, unit: str) -> None:
    """Where llama.cpp's regular expressions run out of stack. Speed is for benchmarks/growth.py."""
    text = unit * 20_000
    assert "".join(splitter(PRE_TOKENIZERS[name]).words(text)) == text


@pytest.mark.parametrize("name", ONE_OF_EACH_FAMILY)
def test_long_texts_are_split_lazily_and_alike(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words = splitter(PRE_TOKENIZERS[name])
    samples = [CHARACTERS, "Hello, world! 12345", "中文 a\u3000b", "", "a"]
    expected = [words.words(sample) for sample in samples]
    monkeypatch.setattr(split, "_FINDALL_LIMIT", 0)
    assert [list(words.iterate(sample)) for sample in samples] == expected


def test_remembered_code_points_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(map(chr, range(0x80, 0x3000)))
    expected = Splitter(PRE_TOKENIZERS["gpt-2"]).words(text)
    monkeypatch.setattr(split, "_MARKER_CACHE", 100)
    bounded_splitter = Splitter(PRE_TOKENIZERS["gpt-2"])
    assert bounded_splitter.words(text) == expected
    assert len(bounded_splitter._alphabet) <= 100


def test_splitter_is_compiled_once() -> None:
    assert splitter(PRE_TOKENIZERS["gpt-2"]) is splitter(PRE_TOKENIZERS["gpt-2"])


def test_registry_names() -> None:
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert f"all {len(PRE_TOKENIZERS)} pre-tokenizer names" in readme
    assert f"are those of llama.cpp {FOLLOWED}; chats and the server are those of {CHATS} " in readme
    assert all(entry.name == name for name, entry in PRE_TOKENIZERS.items())
    assert all(entry.patterns for entry in PRE_TOKENIZERS.values())


@pytest.mark.skipif(native is None, reason="there is no compiled module")
@pytest.mark.parametrize("family", one_of_each())
def test_the_compiled_splitter_tells_which_texts_are_split(family: str) -> None:
    entry = one_of_each()[family]
    samples = [
        "",
        "a",
        " a",
        "ab1",
        "12",
        "1234",
        "don't",
        "a b",
        "\n\n",
        "();\n",
        "\u3000中",
        "é'S",
        CHARACTERS,
    ]
    expected = [index for index, text in enumerate(samples) if len(splitter(entry).words(text)) > 1]
    compiled = compiled_splitter(entry)
    assert compiled.indices_of_split_texts([text.encode() for text in samples]) == expected
    with pytest.raises(TypeError):
        compiled.indices_of_split_texts(["a b"])
