"""`split` covers a text exactly with parts that fit, at the strongest boundaries."""

from __future__ import annotations

import itertools
import random
import re
import sys
from array import array
from pathlib import Path
from typing import Any

import pytest
from budget_cases import check_split
from budget_texts import KINDS, PIECES, random_text, tokenizer_of_kind
from conftest import ROOT
from synthetic import make_vocabulary

from ggufbpe import BoundaryLevel, Tokenizer
from ggufbpe.models.vocabulary import UNKNOWN, USER_DEFINED
from ggufbpe.tokenizer.boundaries import BOUNDARIES
from ggufbpe.tokenizer.splitting import is_character_start

TOK = tokenizer_of_kind("gpt-2")


@pytest.mark.parametrize("kind", KINDS)
def test_parts_cover_the_text_and_fit(kind: str) -> None:
    tok, dice = tokenizer_of_kind(kind), random.Random(kind)
    for _ in range(40 if kind == "reference" else 100):
        check_split(tok, dice)


@pytest.mark.parametrize("kind", ["gpt-2", "spm", "wpm", "reference"])
def test_separators_can_be_left_out(kind: str) -> None:
    tok, dice = tokenizer_of_kind(kind), random.Random(kind)
    for _ in range(20):
        text = random_text(dice, 40)
        parts = [text[start:end] for start, end in tok.split(text, 8, keep_separator=False)]
        assert [part for part in parts if part != part.strip(" \t\r\n") or not part] == []
        assert [part for part in parts if not tok.fits(part, 8) and len(part) > 1] == []
        assert "".join("".join(parts).split()) == "".join(text.split())


EXAMPLES = [
    ("paragraph", 8, "One.\n\nThree four. Five six.\n\nTen.", ["One.\n\n", "Three four. Five six.\n\n", "Ten."]),
    ("sentence", 7, "One two. Three four. Five.", ["One two. Three four. ", "Five."]),
    ("sentence", 5, "一。二。三。", ["一。二。", "三。"]),
    ("line", 6, "One two. Three\nfour five", ["One two. Three\n", "four five"]),
    ("word", 3, "one two three four", ["one two ", "three four"]),
    ("token", 2, "one two three", ["one two", " three"]),
    ("markdown", 8, "# A\n\ntext\n\n# B\n\nmore text", ["# A\n\ntext\n\n", "# B\n\nmore text"]),
    ("markdown", 14, "T\n\n```\na\n\n# no\n```\nBehind it all", ["T\n\n", "```\na\n\n# no\n```\n", "Behind it all"]),
    ("code", 16, "import os\n\n\ndef f():\n    a\n\n    b\n\n\ndef g(): pass\n", None),
]  # fmt: skip


@pytest.mark.parametrize(("boundaries", "size", "text", "expected"), EXAMPLES)
def test_where_parts_end(boundaries: str, size: int, text: str, expected: list[str] | None) -> None:
    parts = [text[start:end] for start, end in TOK.split(text, size, boundaries=boundaries)]
    if expected is None:
        assert [part for part in parts[1:] if not part.startswith("def ")] == []
        assert len(parts) == 3
    else:
        assert parts == expected


def test_separators_can_begin_parts() -> None:
    text = "one two three four"
    spans = TOK.split(text, 2, boundaries="word", keep_separator="start")
    assert [text[start:end] for start, end in spans] == ["one two", " three four"]


def test_own_levels() -> None:
    level = BoundaryLevel("semicolon", re.compile(rb";"), is_dense=True)
    text = "a b; c d; e f"
    spans = TOK.split(text, 6, boundaries=[level])
    assert [text[start:end] for start, end in spans] == ["a b; c d;", " e f"]


@pytest.mark.parametrize("kind", ["gpt-2", "reference"])
@pytest.mark.parametrize("pattern", [b"", rb"\xc3", "[。！]".encode()])
def test_own_levels_do_not_cut_characters(kind: str, pattern: bytes) -> None:
    tok = TOK if kind == "gpt-2" else Tokenizer(TOK.vocabulary, engine="reference")
    level = BoundaryLevel("own", re.compile(pattern))
    for text in ("éa", "。！ é。a", "！！"):
        for size, overlap in ((1, 0), (3, 0), (3, 2), (8, 0)):
            spans = tok.split(text, size, overlap, [level])
            assert spans == sorted({*spans})
            assert all(start < end for start, end in spans)
            assert all(tok.fits(text[start:end], size) for start, end in spans if end - start > 1)


def test_own_levels_of_one_name() -> None:
    levels = [BoundaryLevel("own", re.compile(pattern)) for pattern in (rb";", rb",")]
    text = "a, b; c, d"
    spans = TOK.split(text, 3, boundaries=levels)
    assert spans == TOK.split(text, 3, boundaries=[levels[0], levels[1]._replace(name="other")])
    assert spans[0] == (0, 2)


def test_a_character_of_many_tokens_is_a_part() -> None:
    assert TOK.split("a𓀀b", 1) == [(0, 1), (1, 2), (2, 3)]


def test_long_texts_are_measured_by_the_lengths_of_tokens() -> None:
    text = random_text(random.Random(5), 20_000)
    for kind in ("gpt-2", "spm", "wpm", "spm that strips"):
        tok = tokenizer_of_kind(kind)
        spans = tok.split(text, 200)
        assert "".join(text[start:end] for start, end in spans) == text
        assert [span for span in spans if not tok.fits(text[slice(*span)], 200)] == []


@pytest.mark.parametrize("kind", ["wpm", "spm", "unigram", "gpt-2"])
def test_parts_of_an_embedder_have_room_for_what_is_added(kind: str) -> None:
    tok, text = tokenizer_of_kind(kind), random_text(random.Random(kind), 200)
    for overlap in (0, 3):
        spans = tok.split(text, 12, overlap, add_special=True)
        assert max(len(tok.encode(text[start:end])) for start, end in spans) == 12
    added = len(tok.encode("a")) - len(tok.encode("a", add_special=False))
    assert tok.split(text, 12, add_special=True) == tok.split(text, 12 - added)


@pytest.mark.parametrize(
    ("kind", "added"), [("spm", "1 token that is added"), ("wpm", "2 tokens that are added")]
)
def test_what_is_added_leaves_no_room(kind: str, added: str) -> None:
    tok, count = tokenizer_of_kind(kind), int(added[0])
    with pytest.raises(
        ValueError, match=f"^size must be more than the {added} to every part; it is {count}$"
    ):
        tok.split("a b", count, add_special=True)
    with pytest.raises(ValueError, match=f"not 3; size is 3 without the {added} to every part$"):
        tok.split("a b", 3 + count, 3, add_special=True)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [((5, 5), "overlap must be 0 or more and less than size, not 5; size is 5$"),
     ((0,), "size must be 1 or more, not 0"), ((5, 0, "page"), "boundaries is one of"),
     ((5, 0, "word", "both"), "keep_separator is")],
)  # fmt: skip
def test_what_is_refused(arguments: tuple[object, ...], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        TOK.split("a b", *arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "arguments", "problem"),
    [
        (Path("chat.json"), (3,), "text must be str or bytes, not PosixPath"),
        (5, (3,), "text must be str or bytes, not int"),
        ([104, 105], (3,), "text must be str or bytes, not list"),
        ("a b", (2.5,), "size must be an integer, not float"),
        ("a b", (3, "1"), "overlap must be an integer, not str"),
        ("a b", (3, 0, None), "boundaries is a name or a sequence of BoundaryLevel, not NoneType"),
        ("a b", (3, 0, ["line"]), "a sequence of BoundaryLevel, not of str"),
        ("a b", (3, 0, BoundaryLevel("x", re.compile(b";"))), "not BoundaryLevel"),
        ("a b", (3, 0, [BoundaryLevel("x", re.compile(";"))]), "a compiled one of bytes"),  # type: ignore[arg-type]
        ("a b", (3, 0, [BoundaryLevel("x", re.compile(b";"), ";")]), "hint .* is bytes, not str"),  # type: ignore[arg-type]
    ],
)
def test_arguments_of_a_wrong_type(text: Any, arguments: tuple[Any, ...], problem: str) -> None:
    with pytest.raises(TypeError, match=problem.replace("PosixPath", type(Path()).__name__)):
        TOK.split(text, *arguments)


def test_a_lone_surrogate() -> None:
    with pytest.raises(ValueError, match=r"lone surrogate, U\+D800, at character 1, .* give bytes"):
        TOK.split("a\ud800b", 3)


def test_where_characters_begin() -> None:
    data = "é".encode() + b"\x80\xff" + "者".encode()
    assert [place for place in range(len(data)) if is_character_start(data, place)] == [0, 2, 3, 4]


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("a" + "\n" * 60_000 + "b", {"boundaries": "code"}),
        ("a" + "\r\n" * 30_000 + "b", {"boundaries": "code"}),
        ("a" + "\n" * 60_000 + "b", {"boundaries": "markdown"}),
        ("~" * 60_000, {"boundaries": "markdown"}),
        ("~~~ " * 15_000, {"boundaries": "markdown"}),
        (" " * 20_000, {"overlap": 32}),
        ("a\n" + " " * 20_000 + "\nb", {"overlap": 63}),
        ("a." + ")" * 20_000 + " " * 20_000 + "b", {"overlap": 63}),
        ("```\n" + "a.  b\n\n" * 10_000, {"boundaries": "markdown", "overlap": 32}),
    ],
    ids=[
        *("line breaks", "of Windows", "of Markdown", "tildes", "fences", "spaces"),
        *("spaces in a line", "closing marks", "within a fence"),
    ],
)
def test_runs_take_linear_time(text: str, arguments: dict[str, Any]) -> None:
    """In quadratic time, each would take minutes: the test would not end."""
    tok = tokenizer_of_kind("gpt-2")
    spans = tok.split(text, 64, **arguments)
    assert (spans[0][0], spans[-1][1]) == (0, len(text))
    assert all(tok.fits(text[slice(*span)], 64) for span in spans)


LINES = (
    "# A\n", "## B c\n", "```\n", "```py\n", "~~~\n", "   ```\n", "    ```\n", "---\n", "***  \r\n", "def f():\n",
    "@x\n", "    def g():\n", "pub(crate) fn f<T>\n", "export default class A\n", "template<T>\n", "publicity\n",
    "\n", "\n\n", " \n", "\t\r\n", "\r\n", "One. Two e.g. three! ", '"Why?" Yes. ', "一。二！ 三",
    "words of a line\n", "####### no\n", "`````\n",
)  # fmt: skip


@pytest.mark.parametrize("kind", ["gpt-2", "spm", "wpm", "mmbert", "plamo2", "unigram"])
def test_both_engines_divide_alike(kind: str) -> None:
    native, dice = tokenizer_of_kind(kind), random.Random(kind)
    reference = Tokenizer(native.vocabulary, "reference")
    for _ in range(60):
        text = "".join(dice.choice(LINES + PIECES) for _ in range(dice.choice((5, 30))))
        size = dice.choice((3, 9, 25, 60))
        given: Any = (
            size,
            dice.choice((0, size // 3)),
            dice.choice([*BOUNDARIES]),
            dice.choice(("end", "start", False)),
        )
        assert native.split(text, *given) == reference.split(text, *given), (text, given)


@pytest.mark.parametrize("kind", ["gpt-2", "spm", "wpm"])
@pytest.mark.parametrize(
    "rare",
    ["", "é", "</s>", "[SEP]", "\x01", "\u3000", "\n  \n", " 者é " * 40, "中", "♥", "x♥中①", "中♥ " * 2000],
)
def test_both_engines_divide_long_texts_alike(kind: str, rare: str) -> None:
    """Most of the text is plain, and some is not."""
    native, dice = tokenizer_of_kind(kind), random.Random(f"{kind} {rare}")
    reference = Tokenizer(native.vocabulary, "reference")
    words = ["hello", " world", ".", "\n", " the", " Quick (brown)", " fox's", "  12_3", "! ", "\n\n"]
    text = "".join(rare if dice.random() < 0.001 else dice.choice(words) for _ in range(12_000))
    for boundaries in ("paragraph", "word"):
        assert native.split(text, 700, 20, boundaries) == reference.split(text, 700, 20, boundaries)


def test_what_tokens_decode_to_does_not_measure_a_text_without_bytes() -> None:
    """The vocabulary is decoded by GPT-2's alphabet of bytes, but texts are not written in it."""
    tok = tokenizer_of_kind("whitespace")
    text = "İa Ⱥ bx. İȺ  Ⱥ Ⱥ İbȾ x. Ⱦ  İ İ bbb Ⱥ \nȾ  Ⱥ İ x. İ Ⱥİ Ⱥ Ⱥ İ a a a a İx. Ⱥ Ⱥa İ İ x. İ ȺȺx. a a İbx. Ⱦ İ"
    assert [span for span in tok.split(text, 8) if not tok.fits(text[slice(*span)], 8)] == []


def test_lengths_that_add_up_by_chance_do_not_measure_a_text() -> None:
    """A token strips the space behind it, and the text after another begins with one that is put there."""
    tok = tokenizer_of_kind("spm that strips")
    text = "!</s>  \r\n<|endoftext|> world\t x. Y\n```\n者\n\n<s>x. Y!。\r\n4567 don'ta😀the quick brownthe quick brown"
    text += "ि\r\n don't者Hello\n\ndef f():\n  </s>...ab😀... don't</s>\t123. \t!😀zzzzzz <|endoftext|>the quick brown"
    text += "\n\né\n```\n123. é\n\ndef f():\nab world\r\n。x. Y worldzzzzzz<s>"
    spans = tok.split(text, 8, 4, "code")
    assert [span for span in spans if not tok.fits(text[slice(*span)], 8)] == []
    overlaps = [text[start:end] for (_, end), (start, _) in itertools.pairwise(spans)]
    assert [overlap for overlap in overlaps if not tok.fits(overlap, 4)] == []


@pytest.mark.parametrize(
    ("name", "text", "size"),
    [
        ("spm", "éa</s>b▁▁c hello </s></s></s> </s>hello b a</s></s>hello chello hello </s></s>", 30),
        ("spm", b"a\xff\xe2\x96\x81b " * 20, 9),
        ("spm-without-prefix", b"\xff\xff \xe2\x96\x81\xe2\x96\x81 hello " * 9, 7),
        ("rwkv-unknown-missing", "zq zq hello zq" * 20, 9),
        ("mmbert", "é\né▁", 3),
    ],
)
@pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")  # the last one has no token for line breaks
def test_tokens_that_stand_for_other_text_do_not_measure_it(name: str, text: str | bytes, size: int) -> None:
    """A space that is put before a word and U+FFFD have more bytes than the text, U+2581 fewer; some ids have none."""
    native = Tokenizer.from_gguf(ROOT / f"fixtures/vocabs/{name}.gguf")
    reference = Tokenizer(native.vocabulary, "reference")
    spans = native.split(text, size, boundaries="word")
    assert spans == reference.split(text, size, boundaries="word")
    assert all(native.fits(text[start:end], size) for start, end in spans)


@pytest.mark.parametrize("text", ["b b bb. ", "bab aab ab abc\n", "ab ♥b♥ x中中 b\n\n"])
def test_words_may_begin_with_a_token_of_their_own(text: str) -> None:
    """Where U+2581 alone is a token, a word has a token more than characters. ♥ is one only where a word begins."""
    tokens = ["[UNK]", "▁", "▁a", "a", "b", "c", ".", "▁.", "▁♥", "中", "▁中", "x", "▁x"]
    vocabulary = make_vocabulary(tokens, attributes={"[UNK]": UNKNOWN}, model="bert", special_ids={"unk": 0})
    native, reference = Tokenizer(vocabulary, "native"), Tokenizer(vocabulary, "reference")
    for size in (3, 9, 40):
        spans = native.split(200 * text, size)
        assert spans == reference.split(200 * text, size)
        assert all(native.fits((200 * text)[start:end], size) for start, end in spans)


@pytest.mark.parametrize("unknown", [None, 0, 2, 4])
@pytest.mark.parametrize(
    "text", ["ab éb. ", "\x01ÉB\u0301b \u0301 ab\n", "x [SEP]ab中。b\u200b ", "Ⱥa İb ♥b\x01 "]
)
def test_words_whose_characters_are_changed(text: str, unknown: int | None) -> None:
    """Accents and control characters are dropped, and the unknown token may be one that begins other words."""
    tokens = ["[UNK]", "▁", "▁a", "a", "b", "▁b", "e", "▁e", ".", "▁.", "中", "▁中", "▁i", "[SEP]"]
    kinds = {"[UNK]": UNKNOWN, "[SEP]": USER_DEFINED}
    vocabulary = make_vocabulary(tokens, attributes=kinds, model="bert", special_ids={"unk": unknown})
    native, reference = Tokenizer(vocabulary, "native"), Tokenizer(vocabulary, "reference")
    for size, overlap in ((1, 0), (4, 2), (25, 3)):
        given: Any = (90 * text, size, overlap, "token")
        assert native.split(*given) == reference.split(*given)


@pytest.mark.parametrize("boundaries", ["sentence", "word", "token"])
def test_special_tokens_may_begin_with_a_space(boundaries: Any) -> None:
    """A part may begin within one: then its text is not special."""
    tokens = ["[UNK]", "▁a", "a", "▁b", "b", "▁c", "c", " a"]
    special = {"[UNK]": UNKNOWN, " a": USER_DEFINED}
    vocabulary = make_vocabulary(tokens, attributes=special, model="bert", special_ids={"unk": 0})
    native, reference = Tokenizer(vocabulary, "native"), Tokenizer(vocabulary, "reference")
    text = 60 * "babaaba abc aaabbaaa bc "
    for size in (4, 9, 30):
        assert native.split(text, size, 0, boundaries) == reference.split(text, size, 0, boundaries)


def test_a_space_may_have_no_token() -> None:
    """llama.cpp throws for a text that needs such a token; an empty one does not."""
    made = make_vocabulary(["<unk>", "\u2581a", "a"], attributes={"<unk>": UNKNOWN}, model="llama")
    no_pre = made.pre_tokenizer._replace(byte_encode=False)
    scores = array("f", (0, -1, -2))
    vocabulary = made._replace(pre="", pre_tokenizer=no_pre, add_space_prefix=True, scores=scores)
    native = Tokenizer(vocabulary, "native")
    reference = Tokenizer(native.vocabulary, "reference")
    assert native.split("", 3) == reference.split("", 3) == []


@pytest.mark.parametrize("size", [sys.maxsize, 1 << 64, 10**30])
def test_a_size_beyond_all_texts(size: int) -> None:
    assert tokenizer_of_kind("gpt-2").split("One two.", size, size - 1) == [(0, 8)]


def test_a_lone_surrogate_with_own_levels() -> None:
    level = BoundaryLevel("mine", re.compile(b"\n"))
    with pytest.raises(ValueError, match=r"lone surrogate, U\+D800, at character 1"):
        tokenizer_of_kind("gpt-2").split("a\ud800b", 3, boundaries=[level])


@pytest.mark.parametrize("keep", ["end", "start"])
def test_own_levels_find_what_the_compiled_ones_find(keep: Any) -> None:
    dice = random.Random(keep)
    for _ in range(100):
        text = "".join(dice.choice(LINES) for _ in range(20))
        name = dice.choice([*BOUNDARIES])
        own = [level._replace(hint=b"") for level in BOUNDARIES[name]]
        assert TOK.split(text, 12, 0, own, keep) == TOK.split(text, 12, 0, name, keep), (text, name)


def test_a_long_text_beside_special_tokens_that_are_runs_of_another_byte() -> None:
    tok = Tokenizer(make_vocabulary(["x", "  "], attributes={"  ": USER_DEFINED}))
    size = (1 << 20) + 2  # more than is searched between two looks at signals
    assert tok.split("x" * size, 500_000) == [(0, 500_000), (500_000, 1_000_000), (1_000_000, size)]
