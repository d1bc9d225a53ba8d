"""Unigram models (`tokenizer.ggml.model` = t5): charsmap, normalization, offsets, the best path, and sums that round.

That the ids are llama.cpp's is held by the recorded answers (test_recorded.py); here are the rules one by one, on both
engines.
"""

from __future__ import annotations

import pickle
import random
import struct
import sys
import warnings
from array import array
from typing import Any

import pytest
from charsmaps import charsmap
from conftest import UNIGRAM, peak_growth
from synthetic import make_vocabulary

from ggufbpe import GGUFError, GGUFWarning, Tokenizer
from ggufbpe._util.unicode_composition import COMPOSING, UNICODE_VERSION
from ggufbpe.models.charsmap import Charsmap
from ggufbpe.models.composition import compose
from ggufbpe.models.unigram import _NO_PRE_TOKENIZER
from ggufbpe.models.unigram_text import UnigramText
from ggufbpe.models.vocabulary import CONTROL, NORMAL, UNKNOWN, USER_DEFINED, Vocabulary
from ggufbpe.native import native, why_not_native

ENGINES = ["reference", *(["native"] if native is not None else [])]
WORDS = {
    "<pad>": 0.0,
    "</s>": 0.0,
    "<unk>": 0.0,
    "▁": -4.0,
    "▁a": -2.0,
    "a": -3.0,
    "b": -3.0,
    "▁ab": -4.5,
    "ab": -5.0,
}
KINDS = {"<pad>": CONTROL, "</s>": CONTROL, "<unk>": UNKNOWN}
REPLACED = charsmap(
    {b"\n": b" ", b"\t": b" ", "ﬁ".encode(): b"ab", "é".encode(): b"", "¨".encode(): b" b", b"bb": b"a"}
)


def vocabulary(
    tokens: dict[str, float] | None = None, kinds: dict[str, int] | None = None, **changes: Any
) -> Vocabulary:
    scores = WORDS if tokens is None else {**dict.fromkeys(KINDS, 0.0), **tokens}
    fields = {"add_space_prefix": True, "remove_extra_whitespaces": True, "charsmap": REPLACED, **changes}
    made = make_vocabulary(
        scores, attributes={**KINDS, **(kinds or {})}, model="t5", special_ids={"unk": 2, "eos": 1}, **fields
    )
    return made._replace(scores=array("f", scores.values()), pre="", pre_tokenizer=_NO_PRE_TOKENIZER)


def opened(path: Any, **options: Any) -> Tokenizer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GGUFWarning)
        return Tokenizer.from_gguf(path, **options)


# ---- the charsmap -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"\nx", (b" ", 1)),
        (b"bbb", (b"a", 2)),
        (b"ba", None),
        (b"\xef\xac", None),
        ("ﬁx".encode(), (b"ab", 3)),
        ("é".encode(), (b"", 2)),
        (b"\0", None),
    ],
)
def test_longest_key(text: bytes, found: tuple[bytes, int] | None) -> None:
    assert Charsmap(REPLACED).longest(text, 0) == found


def chain(length: int) -> bytes:
    """A charsmap whose keys are 1 to `length` bytes of 1, none of which has a replacement that ends."""
    units = [2 << 10, 0]  # the first place is 2
    for place in range(2, 2 * length + 2, 2):
        units += [
            1 << 31,
            1 | 0x100 | ((place + 1) ^ (place + 2)) << 10,
        ]  # a value, and the child for the byte 1
    units += [1 << 31, *[0] * (-(len(units) + 1) % 256)]
    return struct.pack(f"<{len(units) + 1}I", 4 * len(units), *units) + b"a"


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is Linux's")
def test_damage_takes_memory_for_the_charsmap_alone() -> None:
    """Not for a text of each place, which together are as large as the square of the charsmap."""
    found = []
    assert peak_growth(lambda: found.append(Charsmap(chain(20_000)).damage())) < 40 << 20
    [damage] = found
    assert damage.places == 20_000
    assert damage.texts == [b"\1" * length for length in range(1, 101)]


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is Linux's")
def test_long_tokens_take_memory_for_themselves_alone() -> None:
    """Not for all of their beginnings."""
    long = {"a" * 20_000: -1.0, "ab" * 10_000: -2.0}
    text = UnigramText(vocabulary(WORDS | long, dict.fromkeys(long, USER_DEFINED)))
    assert peak_growth(lambda: (text.normalizer, text.lattice)) < 40 << 20
    assert list(text.runs(b"ab")) == [((list(WORDS).index("▁ab"),),)]


def test_no_charsmap_replaces_nothing() -> None:
    assert Charsmap(b"").longest(b"\n", 0) is None


def damaged(*, at: int, unit: int | None = None, cut: int | None = None) -> bytes:
    """A charsmap of `a` alone, with one unit of its array replaced, or without its last bytes."""
    data = charsmap({b"a": b"b"})
    if unit is not None:
        data = data[: 4 + 4 * at] + struct.pack("<I", unit) + data[8 + 4 * at :]
    return data[:cut]


def unit_of(byte: int) -> int:
    """Where the one key of `damaged` stands."""
    data = charsmap({b"a": b"b"})
    units = struct.unpack(f"<{256}I", data[4 : 4 + 1024])
    return next(index for index, unit in enumerate(units) if unit & 0x800000FF == byte)


A = unit_of(ord("a"))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "data",
    [
        damaged(at=0, unit=0x3FFFFF << 10),  # the root's children are beyond the array
        damaged(at=0, unit=0x3FFFFF << 10 | 0x200),  # and as far as it can be
        damaged(at=A, unit=ord("a") | 0x100 | 0x1FFFFF << 10),  # so is the index of the replacement
        damaged(at=A, unit=ord("a") | 0x100 | 0x1FFFFF << 10 | 0x200),
        damaged(at=0, cut=-1),  # the replacement does not end
    ],
    ids=["root", "root-far", "value", "value-far", "unterminated"],
)
def test_text_that_leads_out_of_the_charsmap_is_an_error(engine: Any, data: bytes) -> None:
    tok = Tokenizer(vocabulary(charsmap=data), engine)
    for _ in range(2):  # nothing of it is remembered
        with pytest.raises(ValueError, match=r"the bytes 61 of the text lead out of it"):
            tok.encode("a")


@pytest.mark.parametrize("engine", ENGINES)
def test_other_text_is_encoded_with_a_damaged_charsmap(engine: Any) -> None:
    tok = Tokenizer(vocabulary(charsmap=damaged(at=0, cut=-1)), engine)
    assert tok.encode("b b", add_special=False) == [3, 6, 3, 6]


@pytest.mark.parametrize("value", [[], [1, 0, 0], [0, 0, 0, 0], [8, 0, 0, 0, 1, 2, 3, 4], [255] * 12])
def test_charsmap_that_is_shorter_than_it_says_is_refused(value: list[int]) -> None:
    with pytest.raises(GGUFError, match="precompiled_charsmap"):
        opened(UNIGRAM, overrides={"tokenizer.ggml.precompiled_charsmap": value})


# ---- normalization ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prefix", "merges", "text", "normalized"),
    [
        (True, True, "a  b", "▁a▁b"),
        (False, True, "a  b", "▁a▁b"),
        (True, True, "  a\n\t b  ", "▁a▁b"),
        (True, False, "  a  b ", "▁▁▁a▁▁b▁"),
        (False, False, " a\n\tb", "▁a▁▁b"),
        (True, True, " \n ", ""),
        (True, False, "  ", "▁▁"),
        (True, True, "éaéﬁ", "▁aab"),
        (True, True, "a¨¨", "▁a▁b▁b"),
        (True, True, "▁a", "▁▁a"),
        (True, False, "é a", "▁▁a"),
        (True, True, "", ""),
    ],
)
def test_normalized(prefix: bool, merges: bool, text: str, normalized: str) -> None:
    made = UnigramText(vocabulary(add_space_prefix=prefix, remove_extra_whitespaces=merges)).normalizer
    assert made.normalize(text.encode()).text.decode() == normalized


@pytest.mark.parametrize(
    ("data", "normalized"),
    [
        (b"a\xff", b"a\xef\xbf\xbd"),
        (b"\xe2\x82", b"\xef\xbf\xbd" * 2),
        (b"\xc0\xa0", b"\xef\xbf\xbd" * 2),
        (b"\xed\xa0\x80", b"\xed\xa0\x80"),
        (b"\xf7\xbf\xbf\xbf", b"\xef\xbf\xbd" * 4),
        (b"\xf8\x88\x80\x80\x80", b"\xef\xbf\xbd" * 5),
    ],
)
@pytest.mark.parametrize("nfc", [False, True])
def test_bytes_that_are_not_utf8(data: bytes, normalized: bytes, nfc: bool) -> None:
    made = UnigramText(vocabulary(add_space_prefix=False, remove_extra_whitespaces=False)._replace(nfc=nfc))
    assert made.normalizer.normalize(data).text == normalized


@pytest.mark.parametrize(
    ("data", "normalized"),
    [
        (b"a\xff", b"a\xef\xbf\xbd"),
        (b"\xc0\xa0", b"\xc0\xa0"),
        (b"\xf7\xbf\xbf\xbf", b"\xf7\xbf\xbf\xbf"),
    ],
)
def test_bytes_that_are_not_utf8_before_b11739(data: bytes, normalized: bytes) -> None:
    old = vocabulary(add_space_prefix=False, remove_extra_whitespaces=False)._replace(strict_utf8=False)
    assert UnigramText(old).normalizer.normalize(data).text == normalized


# ---- composition ------------------------------------------------------------------------------------------

COMPOSED = [  # all asked of llama.cpp b11739 (unicode_cpts_normalize_nfc)
    ("", ""),
    ("abc \u4e2d", "abc \u4e2d"),
    ("e\u0301", "\xe9"),
    ("xe\u0301\u0301x", "x\xe9\u0301x"),
    ("a\u0315\u0300", "\xe0\u0315"),  # the mark of the lower class comes first
    ("q\u0307\u0323", "q\u0323\u0307"),
    ("a\u0323\u0302\u0301", "\u1ead\u0301"),
    ("\u0344", "\u0308\u0301"),
    ("\u0301\u0301", "\u0301\u0301"),  # with nothing to combine with
    ("\u212b\u2126\u212a", "\xc5\u03a9K"),  # singletons
    ("\u0958", "\u0915\u093c"),  # an exclusion
    ("\u0915\u093c", "\u0915\u093c"),
    ("\u0f73", "\u0f71\u0f72"),
    ("\u1112\u1161\u11ab", "\ud55c"),
    ("\ud558\u11ab", "\ud55c"),
    ("\uac00\u11a7", "\uac00\u11a7"),  # the filler is no trailing consonant
    ("\uac01\u11a8", "\uac01\u11a8"),
    ("\U00011935\U00011930", "\U00011938"),  # of Unicode 13
    ("\u059a\u1dfa", "\u1dfa\u059a"),  # of Unicode 14
    ("<\u0338=\u0338", "\u226e\u2260"),
    ("\U0001d160", "\U0001d158\U0001d165\U0001d16e"),
    ("\uf900", "\u8c48"),
]


@pytest.mark.parametrize(("text", "composed"), COMPOSED)
def test_composed(text: str, composed: str) -> None:
    assert compose(text) == composed
    assert compose(composed) == composed


def test_composition_is_that_of_unicode_15_1() -> None:
    unicodedata2 = pytest.importorskip("unicodedata2")
    assert unicodedata2.unidata_version == UNICODE_VERSION
    dice = random.Random(1)
    decompositions = map(unicodedata2.decomposition, map(chr, range(0x110000)))
    pairs = [
        (point, *(int(part, 16) for part in parts.split()))
        for point, parts in enumerate(decompositions)
        if parts and parts[0] != "<"
    ]
    parts = [*(point for pair in pairs for point in pair), *range(0x1100, 0x1200)]
    parts += [point for first, last, _ in COMPOSING for point in (first, last)]
    texts = ["".join(map(chr, dice.choices(parts, k=dice.randrange(1, 9)))) for _ in range(30_000)]
    for text in [*map(chr, range(0, 0x110000, 7)), *texts]:
        assert compose(text) == unicodedata2.normalize("NFC", text), ascii(text)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_model_whose_file_says_so_composes(engine: Any) -> None:
    """The answers are those of llama.cpp b11739 for these tokens; each fragment is composed by itself."""
    tokens = {"e": -1.0, "\xe9": -1.125, "\u0301": -1.25, "x": -1.375, "\ufffd": -1.5}
    made = vocabulary(tokens, add_space_prefix=False, remove_extra_whitespaces=False, charsmap=b"")
    plain, nfc = (Tokenizer(made._replace(nfc=each), engine) for each in (False, True))
    cases = [
        ("xe\u0301x", ["x", "e", "\u0301", "x"], ["x", "\xe9", "x"], [(0, 1), (1, 4), (4, 5)]),
        ("x\xe9", ["x", "\xe9"], ["x", "\xe9"], [(0, 1), (1, 3)]),
        (b"e\xff\xcc\x81", ["e", "\ufffd", "\u0301"], ["e", "\ufffd", "\u0301"], [(0, 1), (1, 4), (1, 4)]),
        ("\u0301e", ["\u0301", "e"], ["\u0301", "e"], [(0, 2), (2, 3)]),
    ]
    for text, before, after, spans in cases:
        flags = {"add_special": False}
        assert [plain.id_to_token(token) for token in plain.encode(text, **flags)] == before
        ids, found = nfc.encode_with_offsets(text, **flags)
        assert [nfc.id_to_token(token) for token in ids] == after
        assert ids == nfc.encode(text, **flags)
        assert found == spans


@pytest.mark.slow
def test_both_engines_compose_alike_in_long_texts_and_threads() -> None:
    """Cuts between parts, words from the cache, and offsets, with marks beside everything that may be a separator."""
    if native is None:
        pytest.skip(str(why_not_native))
    dice = random.Random(5)
    atoms = [
        "a",
        "b",
        "e\u0301",
        " ",
        " ",
        "\n",
        "=",
        "=\u0338",
        "\u0301",
        "\u1100\u1161",
        "\u11a8",
        "\ufb01",
        "x" * 40,
    ]
    for prefix, merges in ((True, True), (True, False), (False, False)):
        made = vocabulary(add_space_prefix=prefix, remove_extra_whitespaces=merges)._replace(nfc=True)
        ours, theirs = Tokenizer(made, "reference"), Tokenizer(made, "native")
        text = "".join(dice.choices(atoms, k=30_000))
        data = text.encode() + b"\xff e\xcc" + text.encode()[:1000]
        ids, spans = ours.encode_with_offsets(data)
        assert theirs.encode_with_offsets(data) == (ids, spans)
        assert theirs.encode_to_numpy(data, threads=2).tolist() == ids
        assert theirs.words(data) == ours.words(data)


def test_what_a_user_defined_token_begins_with_stays_as_it_is() -> None:
    own = {**WORDS, "bbc": -1.0, "¨x": -1.0}
    made = UnigramText(vocabulary(own, {"bbc": USER_DEFINED, "¨x": USER_DEFINED})).normalizer
    assert made.normalize(b"bba bbb").text.decode() == "▁bba▁bbb"
    assert made.normalize("¨".encode()).text.decode() == "▁¨"


# ---- the best path ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("ab", [7]),  # -4.5 rather than -2 - 3
        ("aab", [4, 8]),  # equal sums: the one whose last token begins first
        ("a?!b", [4, 2, 6]),  # unknown ones in a row are one
        ("?", [3, 2]),
        ("? ?", [3, 2, 3, 2]),
        ("", []),
        (" ", []),
    ],
)
def test_best_path(engine: Any, text: str, ids: list[int]) -> None:
    assert Tokenizer(vocabulary(), engine).encode(text, add_special=False) == ids


@pytest.mark.parametrize("engine", ENGINES)
def test_unknown_tokens_of_two_words_are_one_where_a_space_is_unknown_too(engine: Any) -> None:
    tok = Tokenizer(vocabulary({"a": -3.0}), engine)
    assert tok.encode("? ? a ?", add_special=False) == [2, 3, 2]


@pytest.mark.parametrize("engine", ENGINES)
def test_ids_of_minus_one_where_there_is_no_unknown_token(engine: Any) -> None:
    without = vocabulary()._replace(special_ids={**vocabulary().special_ids, "unk": None})
    assert Tokenizer(without, engine).encode("?", add_special=False) == [3, -1]


def test_words_are_the_same_wherever_sums_are_exact_and_rounded_where_they_are_not() -> None:
    """Scores that only a long sum rounds: the reference engine adds all of them up, the compiled one by words."""
    dice = random.Random(1)
    pieces = {"▁": -3.0, **{letter: -dice.expovariate(1) * 10 ** dice.choice((-9, 4)) for letter in "abcd"}}
    pairs = {one + other: pieces[one] + pieces[other] for one in "abcd" for other in "abcd"}
    made = vocabulary({**pieces, **pairs}, charsmap=b"")
    text = " ".join("".join(dice.choices("abcd", k=dice.randint(1, 6))) for _ in range(4000))
    expected = Tokenizer(made, "reference").encode(text)
    by_words = [
        id for word in text.split() for id in Tokenizer(made, "reference").encode(word, add_special=False)
    ]
    assert expected[:-1] != by_words  # or the test shows nothing
    for engine in ENGINES:
        assert Tokenizer(made, engine).encode(text) == expected, engine


@pytest.mark.skipif(native is None, reason="the reference engine has one thread")
def test_threads_where_sums_of_a_long_text_are_rounded() -> None:
    """Threads begin as if sums were exact; here they find that they are not, late, and one begins again."""
    dice = random.Random(2)
    pieces = {"▁": -1.0, "é": -300.0, **{letter: -dice.randint(1, 1 << 20) * 2.0**-30 for letter in "abcd"}}
    pieces |= {"z" * size: -1.0 for size in range(1, 50)}  # by the mean of all scores, sums should stay small
    pairs = {one + other: pieces[one] + pieces[other] for one in "abcd" for other in "abcd"}
    tok = Tokenizer(vocabulary({**pieces, **pairs}, charsmap=b""), "native")
    exact = " ".join("".join(dice.choices("abcd", k=dice.randint(1, 6))) for _ in range(100_000))
    rounded = exact + 40_000 * " é" + exact
    by_words = [id for word in rounded.split() for id in tok.encode(word, add_special=False)]
    for text, is_rounded in ((exact, False), (rounded, True)):
        ids = tok.encode(text)
        assert (ids[:-1] != by_words[: len(ids) - 1]) == is_rounded  # or the test shows nothing
        assert tok.encode_to_numpy(text, threads=2).tolist() == ids
        assert tok.count(text, threads=2) == len(ids)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("changes", [{}, {"remove_extra_whitespaces": False}, {"add_space_prefix": False}])
def test_threads_and_counts(engine: Any, changes: dict[str, bool]) -> None:
    keys = {f"tokenizer.ggml.{key}": value for key, value in changes.items()}
    tok = opened(UNIGRAM, engine=engine, overrides=keys)
    text = "The quick  brown\tfox ﬁnds 日本 ✓ \n naïve words. " * (9000 if engine == "native" else 100)
    ids = tok.encode(text)
    assert tok.encode_to_numpy(text, threads=2).tolist() == ids
    assert tok.count(text, threads=2) == tok.count(text) == len(ids)
    assert tok.encode_batch([text, "x"], threads=2) == [ids, tok.encode("x")]


# ---- what is around it ------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("ab", [(0, 2)]),
        ("  ab", [(0, 4)]),
        ("ab  ", [(0, 2)]),
        ("a  \nb", [(0, 1), (1, 4), (4, 5)]),
        ("xﬁ", [(0, 0), (0, 1), (1, 4)]),
        ("éab", [(2, 2 + 2)]),
        ("a¨", [(0, 1), (1, 3), (1, 3)]),
        (b"a\xff\xffb", [(0, 1), (1, 3), (3, 4)]),
    ],
)
def test_offsets(engine: Any, text: str | bytes, spans: list[tuple[int, int]]) -> None:
    tok = Tokenizer(vocabulary(), engine)
    ids, found = tok.encode_with_offsets(text, add_special=False)
    assert found == spans
    assert ids == tok.encode(text, add_special=False)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_prefix_within_a_replacement_stands_for_what_is_replaced(engine: Any) -> None:
    """The charsmap makes a space and more of the first character: the space that is due comes between."""
    tok = Tokenizer(vocabulary(remove_extra_whitespaces=False), engine)
    ids, spans = tok.encode_with_offsets("¨a", add_special=False)
    assert spans == sorted(spans, key=lambda span: span[1])
    assert spans[:3] == [(0, 2), (0, 2), (0, 2)]
    assert ids == tok.encode("¨a", add_special=False)


@pytest.mark.parametrize("engine", ENGINES)
def test_words(engine: Any) -> None:
    assert Tokenizer(vocabulary(), engine).pre_tokenize(" a b\nﬁ") == ["▁a", "▁b", "▁ab"]
    joined = vocabulary({**WORDS, "a▁b": -1.0})
    assert Tokenizer(joined, engine).pre_tokenize("a b b") == ["▁a▁b", "▁b"]


@pytest.mark.parametrize(
    ("keys", "nl"),
    [
        ({}, 0),  # nothing is left of it: T5's padding
        ({"tokenizer.ggml.padding_token_id": 5, "tokenizer.ggml.unknown_token_id": 6}, 0),
        ({"tokenizer.ggml.remove_extra_whitespaces": False, "tokenizer.ggml.unknown_token_id": 6}, None),
    ],
)
def test_line_break(keys: dict[str, Any], nl: int | None) -> None:
    found = {opened(UNIGRAM, engine=engine, overrides=keys).nl_id for engine in ENGINES}
    assert found == {opened(UNIGRAM).token_to_id("▁") if nl is None else nl}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("letter", ["a", " ", "é", "\n", "日", "▁", "\0"])
def test_a_long_run_of_one_character(engine: Any, letter: str) -> None:
    tok = opened(UNIGRAM, engine=engine)
    count = 300_000 if engine == "native" else 10_000
    assert len(tok.encode(letter * count, add_special=False)) <= count + 1


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a" * 20_000, id="paths that never meet"),
        pytest.param("internationalization" * 1_000, id="paths that meet in every word"),
        pytest.param("\U0010fffd" * 10_000, id="one unknown token"),
        pytest.param("an\U0010fffd\U0010fffdunknown" * 1_500, id="unknown tokens between others"),
        pytest.param("ﬁ\u0301ﬃé" * 3_000, id="characters that normalization changes"),
    ],
)
@pytest.mark.skipif(native is None, reason="the reference engine takes whole words")
def test_a_long_word_is_taken_in_windows(text: str) -> None:
    expected, found = (opened(UNIGRAM, engine=engine) for engine in ("reference", "native"))
    assert found.encode_with_offsets(text) == expected.encode_with_offsets(text)
    assert found.count(text) == len(expected.encode(text))


@pytest.mark.skipif(native is None or sys.platform != "linux", reason="of the compiled engine, by /proc")
def test_a_word_takes_no_memory_for_longer_tokens() -> None:
    tok = Tokenizer(vocabulary({**WORDS, "x" * 5_000_000: -1.0}), "native")
    assert peak_growth(lambda: tok.encode("a ab")) < 32 << 20


def test_pickled() -> None:
    tok = opened(UNIGRAM)
    again = pickle.loads(pickle.dumps(tok))
    assert again.encode("ﬁne words") == tok.encode("ﬁne words")
    assert again.decode(again.encode("ﬁne words")) == "fine words"


def test_normal_tokens_are_those_that_the_file_says() -> None:
    """llama.cpp makes its tries before it finds special tokens by their texts."""
    assert NORMAL & vocabulary().attributes[4]
    made = vocabulary({**WORDS, "</s>x": -1.0})
    first = list(made.attributes)
    found = made._replace(attributes=[*first[:4], CONTROL, *first[5:]], first_attributes=first)
    for engine in ENGINES:
        assert Tokenizer(found, engine).encode("a", add_special=False, parse_special=False) == [4], engine
