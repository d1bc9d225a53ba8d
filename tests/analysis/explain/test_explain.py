"""`ggufbpe explain` and why a piece was not produced: each reason on GPT-2, and every view of hostile texts."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from charsmaps import charsmap
from conftest import GPT2, RAW_UTF8, ROOT, UNIGRAM
from hypothesis import given
from hypothesis import strategies as st
from synthetic import (
    ONE_OF_EACH_FAMILY,
    bounded,
    broken_bytes,
    gpt2_vocabulary,
    make_vocabulary,
    texts,
    tokenizer_as,
)

from ggufbpe import Tokenizer, cli
from ggufbpe.analysis.explain.explain_words import Quote, taken_by
from ggufbpe.analysis.explain.reasons import Place, WhyNot
from ggufbpe.analysis.explain.why_not import why_not
from ggufbpe.analysis.explain.why_not_words import answer_in_words
from ggufbpe.analysis.views import html_page
from ggufbpe.analysis.views.explain_page import html as html_in_pieces
from ggufbpe.analysis.views.html_page import marked, rendered, safe
from ggufbpe.models.loading import load_vocabulary
from ggufbpe.models.pretokenizers.pattern import option_texts
from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS
from ggufbpe.models.token_attribute import TokenAttribute
from ggufbpe.models.tracers.bpe import traced_stages
from ggufbpe.models.tracers.trace_types import (
    Cut,
    Fragment,
    LatticeEdge,
    LatticePath,
    Merge,
    RewrittenText,
    Symbol,
    TokenMatch,
    TracedStage,
    TriedToken,
    Word,
    WordLattice,
)
from ggufbpe.models.vocabulary import BYTE, UNKNOWN
from ggufbpe.tokenizer.trace import Token, Trace

pytestmark = pytest.mark.both_engines

HOSTILE = (
    "Hello <|endoftext|> naïve שלום مرحبا 世界 👩‍👧 <script>alert(1)</script> & \\ \u202e\u2066"
    "\x1b[31m\x00\r\n\t\x9b31m\ue000"
).encode() + b"\xff\xe4 "


def html(*given: Any) -> str:
    return "".join(html_in_pieces(*given))


def plain(said: Sequence[str | Quote]) -> str:
    quotes = (part if isinstance(part, str) else part.text for part in said)
    shown = (text.decode("utf-8", "backslashreplace") if isinstance(text, bytes) else text for text in quotes)
    return "".join(text if isinstance(part, str) else f"«{text}»" for part, text in zip(said, shown))


def answered(answer: WhyNot, tok: Tokenizer, text: str, **flags: bool) -> str:
    return " ".join(map(plain, answer_in_words(tok.trace(text, **flags), answer)))


# ---- why not: a table of reasons on GPT-2's vocabulary --------------------------------------------------


def gpt2() -> Tokenizer:
    return tokenizer_as("gpt-2")


def without_merges_from(rank: int) -> Tokenizer:
    return Tokenizer(gpt2_vocabulary()._replace(merges=gpt2_vocabulary().merges[:rank]))


@cache
def opened(name: str) -> Tokenizer:
    return Tokenizer(load_vocabulary(ROOT / "fixtures" / "vocabs" / f"{name}.gguf"))


@cache
def unigram() -> Tokenizer:
    words = {"<unk>": 0.0, "▁": -4.0, "▁a": -2.0, "a": -3.0, "b": -3.0, "▁ab": -4.5, "ab": -5.0, "▁b": -7.0}
    tokens = {**words, "\t": -1.0, "<0x41>": -1.0}
    vocabulary = make_vocabulary(
        tokens, attributes={"<unk>": UNKNOWN, "<0x41>": BYTE}, model="t5", special_ids={"unk": 0},
        add_space_prefix=True, remove_extra_whitespaces=True, charsmap=charsmap({b"\t": b" "}),
        scores=list(tokens.values()), flags={"byte_encode": False},
    )  # fmt: skip
    return Tokenizer(vocabulary)


# tokenizer, text, piece, flags, the reason, and what the answer in words must say
REASONS: list[tuple[str, Callable[[], Tokenizer], str, str, dict[str, bool], str]] = [
    ("produced", gpt2, "Hello world", " world", {}, r"was produced: token 1 \(bytes 5 to 11\)"),
    ("produced", gpt2, "Hello world", "Ġworld", {}, r"was produced: token 1"),
    ("unknown", gpt2, "Hello", "  Hello", {}, r"not a token of this vocabulary. The vocabulary has « Hello»"),
    ("unknown", gpt2, "Hello", "28254", {}, r"not a token of this .* looked up as text, not as an id\.$"),
    ("absent", gpt2, "Hello world", " Hello", {}, r"does not occur in the text. But this does: «Hello»"),
    ("absent", gpt2, "say hello", "Hello", {}, r"But this does: « ?hello»"),
    ("absent", gpt2, "Hello", "cat", {}, r"does not occur in the text\.$"),
    ("not_parsed", gpt2, "a<|endoftext|>", "<|endoftext|>", {"parse_special": False}, "special tokens are not parsed"),
    ("not_added", gpt2, "a", "<|endoftext|>", {}, "it is not added: the model does not ask for it"),
    ("special", gpt2, "x<|endoftext|>", "end", {}, r"bytes 3 to 6: the special token «<\|endoftext\|>» \(50256\)"),
    ("boundary", gpt2, "a\n\nb", "\n\n", {},
     r"boundary at byte 2 cuts it.*alternative 11 of 11: «\\s\+\(\?!\\S\)».*splitter adds to the pattern: «\\s\+»"),
    ("boundary", lambda: tokenizer_as("starcoder"), "in 2014", "2014", {}, r"made by stage 1 of 2: «2» was matched"),
    ("boundary", lambda: tokenizer_as("viking"), "a 12", "12", {}, r"byte 3 cuts it, made by stage 2 of 2: «1»"),
    ("part", gpt2, "Hello", "Hell", {}, r"«ell» \+ «o» \(rank 10853\) took part.*«H» \+ «ell» \(rank 27998\)"),
    ("part", gpt2, " world", "orld", {}, r"« w» \+ «or» \(rank 220\) took part.*«or» \+ «ld» \(rank 1508\)"),
    ("part", gpt2, "Hello world", "world", {},
     r"« » \+ «w» \(rank 10\) took part.*«w» \+ «orld» \(rank 6638\) has a higher rank"),
    ("part", gpt2, " 者", "者", {}, r"« » \+ «\\xe8» \(rank 5269\).*own merge «\\xe8» \+ «\\x80»"),
    ("longer", gpt2, "Hello", "ell", {}, r"«ell» \+ «o» \(rank 10853\) came after it was made.* into «ello»"),
    ("longer", gpt2, "Hello", "H", {}, r"«H» \+ «ello» \(rank 15240\)"),
    ("whole", lambda: tokenizer_as("llama-bpe"), "Hello", "ell", {}, r"taken whole without merging \(ignore_merges\)"),
    ("merges", lambda: without_merges_from(100), "Hello", "Hello", {}, r"«H» «e» «ll» «o», and no merge produces it"),
    ("byte", lambda: tokenizer_as("gemma4"), "hello", "<0xF0>", {}, "No character of this text needs it"),
    # by scores
    ("produced", lambda: opened("spm"), "hello", " hello", {}, r"was produced: token 0 \(bytes 0 to 5\)"),
    ("part", lambda: opened("spm"), "hel", "hel", {},
     r"«▁» \+ «he» \(score -3\) took part.*«he» \+ «l» \(score -4\) has a lower score"),
    ("longer", lambda: opened("spm"), "hello", "llo", {}, r"«▁he» \+ «llo» \(score -7\) came after it was made"),
    ("byte", lambda: opened("spm"), "hello", "<0xE4>", {}, "No character of this text needs it"),
    # by the longest match
    ("longer_match", lambda: opened("wpm"), "Hello", " h", {},
     r"bytes 0 to 1: in the word «hello».*«▁hello» \(4\), which is longer"),
    ("earlier_match", lambda: opened("wpm"), "a hello", "el", {},
     r"bytes 3 to 5: in the word.*the match before it took «▁hello»"),
    ("unknown_word", lambda: opened("wpm"), "hello☃x", " hello", {},
     r"no token matches at «.*x», so the whole word becomes the unknown token"),
    ("normalized", lambda: opened("wpm"), "Hello", "▁H", {},
     r"bytes 0 to 1: normalization changes it .*: «H» becomes «h» \(lower case\)"),
    ("unneeded", lambda: opened("wpm"), "hello", "[UNK]", {}, "nothing that the other tokens cannot write"),
    ("longer_match", lambda: opened("rwkv"), "a world", " ", {}, r"bytes 1 to 2: .*« world» \(260\), which is longer"),
    ("earlier_match", lambda: opened("rwkv"), "a world", "w", {},
     r"bytes 2 to 3: .*« world» \(260\), which overlaps this one"),
    # by the best path
    ("path", unigram, "ab", "b", {},
     r"with it has the sum -5: «▁a» \(-2\) \+ «b» \(-3\); .* the sum -4.5: «▁ab» \(-4.5\), which is more"),
    ("path", unigram, "b", "b", {}, r"taken has the sum -7: «▁b» \(-7\), which is no less"),
    ("normalized", unigram, "a\tb", "\t", {}, r"«\t» becomes «▁» \(charsmap, space written as U\+2581\)"),
    ("path", lambda: opened("plamo2"), "hello", "hello", {},
     r"with it has the sum -90000: «hello» .* the sum -60000: «hel» \(-30000\) \+ «lo» \(-30000\), which is more"),
    ("not_tried", lambda: opened("plamo2-score-of-1000"), "hello", "h", {}, "with score -1000 ends the search"),
    ("not_for_text", unigram, "a<0x41>", "<0x41>", {}, "plain text never becomes a token of this type"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("reason", "make", "text", "piece", "flags", "said"),
    REASONS,
    ids=[f"{reason}-{text}-{piece}" for reason, _, text, piece, *_ in REASONS],
)
def test_reason(
    reason: str, make: Callable[[], Tokenizer], text: str, piece: str, flags: dict[str, bool], said: str
) -> None:
    tok = make()
    flags = {"add_special": False, **flags} if reason != "not_added" else flags
    answer = why_not(tok, text, piece, **flags)
    assert answer.reason == reason
    assert re.search(said, answered(answer, tok, text, **flags), re.DOTALL)
    assert (answer.token is None) == (reason == "unknown")
    sentences = [
        part
        for said in answer_in_words(tok.trace(text, **flags), answer)
        for part in said
        if isinstance(part, str)
    ]
    assert all(part.strip(" .").lower() in str(answer).lower() for part in sentences)
    assert (answer.token in tok.encode(text, **flags)) == (reason == "produced")
    assert json.loads(json.dumps(answer.to_dict()))["reason"] == reason


def test_every_reason_has_a_case() -> None:
    documented = re.findall(r'- "(\w+)":', f"{WhyNot.__doc__}{Place.__doc__}")
    assert {reason for reason, *_ in REASONS} == set(documented)


def test_names_in_json_are_documented() -> None:
    documented = set(re.findall(r"`(\w+)`", (ROOT / "docs" / "explain.md").read_text(encoding="utf-8")))
    records = (
        Trace,
        TracedStage,
        Fragment,
        RewrittenText,
        Word,
        Cut,
        Merge,
        TokenMatch,
        TriedToken,
        WordLattice,
        LatticeEdge,
    )
    more = (LatticePath, Symbol, Token, WhyNot, Place)
    assert not {name for record in (*records, *more) for name in record._fields} - documented


def test_evidence_is_the_traces() -> None:
    answer = why_not(gpt2(), "Hello world", "Hell")
    [place] = answer.places
    assert (place.start, place.end, place.word) == (0, 4, 0)
    assert place.merge == Merge(10853, "ell", "o", 1)
    assert place.merge in gpt2().trace("Hello world").words[0].merges
    assert place.needed == answer.makers[0] == Merge(27998, "H", "ell", 0)


def test_merge_that_would_make_it_but_finds_no_such_pair() -> None:
    merges = gpt2_vocabulary().merges
    tok = Tokenizer(gpt2_vocabulary()._replace(merges=["e l", *merges]))  # before "l l", which "ell" needs
    answer = why_not(tok, "ell", "ell")
    assert (answer.reason, answer.alone, answer.makers[0][:3]) == ("merges", ("el", "l"), (440, "e", "ll"))
    assert "so the merge that would produce it, «e» + «ll» (rank 440), finds no such pair" in answered(
        answer, tok, "ell"
    )


def test_same_rank_further_to_the_left() -> None:
    tok = Tokenizer(gpt2_vocabulary()._replace(merges=["a a", "aa a"]))
    answer = why_not(tok, "aaa", "aa")
    assert [(place.reason, place.start) for place in answer.places] == [("longer", 0), ("part", 1)]
    assert "being further to the left; its own merge «a» + «a» (rank 0) has the same" in answered(
        answer, tok, "aaa"
    )


def test_a_merge_that_waits_for_another_of_a_higher_rank() -> None:
    tok = Tokenizer(gpt2_vocabulary()._replace(merges=["w orld", "Ġ w", "o r", "l d", "or ld"]))
    answer = why_not(tok, " world", "world")
    assert (
        "« » + «w» (rank 1) took part of it first; its own merge «or» + «ld» (rank 4) has a higher rank"
        in answered(answer, tok, " world")
    )


def test_places_are_bytes_of_the_text_where_it_was_changed() -> None:
    tok = tokenizer_as("gemma4")
    text = b"\xff hello"
    inner = next(p for p in ("hell", "ell", "el", "he", "ll") if why_not(tok, text, p).places)
    place = why_not(tok, text, inner).places[0]
    assert text[place.start : place.end] == inner.encode()
    place = why_not(gpt2(), b"\xff\xff Hello", "Hell").places[0]
    assert (place.start, place.end) == (3, 7)


def test_piece_may_be_bytes_that_are_no_text() -> None:
    assert why_not(gpt2(), "世", b"\xe4\xb8").reason == "produced"


def test_empty_piece() -> None:
    with pytest.raises(ValueError, match="empty"):
        why_not(gpt2(), "a", "")


_PIECES = st.sampled_from([0, 1, 50, 220, 257, 314, 1000, 1849, 30000, 50256])


@bounded(150)
@given(
    st.one_of(texts, broken_bytes), _PIECES, st.sampled_from(["gpt-2", "llama-bpe", "viking"]), st.booleans()
)
def test_there_is_an_answer_for_every_piece_and_it_fits(
    text: str | bytes, token: int, name: str, parse_special: bool
) -> None:
    tok = tokenizer_as(name)
    found = tok.trace(text, parse_special=parse_special)
    answer = why_not(tok, text, tok.id_to_token(token), parse_special=parse_special)
    assert (answer.token in found.ids) == (answer.reason == "produced")
    assert list(answer_in_words(found, answer))
    for place in answer.places:
        assert 0 <= place.start < place.end <= len(found.text)


@bounded(60)
@given(st.text("Helo wrd", min_size=1, max_size=12), st.data())
def test_every_part_of_a_text_that_is_a_token_has_a_reason_of_its_place(
    text: str, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    answer = why_not(gpt2(), text, text[start:end])
    assert answer.reason in ("unknown", "produced", "boundary", "part", "longer")
    if answer.places:
        assert (start, end) in [(place.start, place.end) for place in answer.places]


# ---- words ----------------------------------------------------------------------------------------------

TAKEN = [  # pre-tokenizer, text, word, what took it
    ("gpt-2", "Hello", 0, r"matched by alternative 8 of 11: « ?\p{L}+»"),
    ("superbpe", "no ", 0, "matched by no pattern"),
    ("starcoder", "12", 0, r"matched by stage 1 of 2, the pattern «\p{N}»"),
    (
        "viking",
        " ab1",
        0,
        r"left over by stage 2 of 2 from « ab1», matched by stage 1 of 2, the pattern « ?[^(\s|.",
    ),
    ("afmoe", "1234", 1, r"matched by stage 1 of 3 (step digit_groups), the pattern «\p{AFMoE_digits}»"),
]


@pytest.mark.parametrize(("name", "text", "word", "expected"), TAKEN, ids=[name for name, *_ in TAKEN])
def test_what_took_a_word(name: str, text: str, word: int, expected: str) -> None:
    found = tokenizer_as(name).trace(text)
    assert plain(taken_by(found, found.words[word])).startswith(expected)


# ---- the command ----------------------------------------------------------------------------------------


@pytest.fixture
def explain(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(*arguments: str, model: Path = GPT2, code: int = 0) -> str:
        assert cli.main(["explain", "-m", str(model), *arguments]) == code
        shown = capsys.readouterr()
        return shown.err if code else shown.out

    return run


def test_view_of_hello_world(explain: Callable[..., str]) -> None:
    assert explain("Hello world") == (
        "gpt2, pre-tokenizer gpt-2: 11 bytes, 2 words, 2 tokens\n"
        "\n"
        "Hello| world|\n"
        "\n"
        "fragments\n"
        "  bytes  what  text\n"
        "  0–11   text  'Hello world'\n"
        "\n"
        "word 0  'Hello'  bytes 0–5\n"
        "  matched by alternative 8 of 11: / ?\\p{L}+/\n"
        "   rank  H e l l o\n"
        "     41  H e ll  o   l + l\n"
        "    439  H ell   o   e + ll\n"
        "  10853  H ello      ell + o\n"
        "  15240  Hello       H + ello\n"
        "  → Hello 15496\n"
        "\n"
        "word 1  ' world'  bytes 5–11\n"
        "  matched by alternative 8 of 11: / ?\\p{L}+/\n"
        "  rank  ␣ w o r l d\n"
        "    10  ␣w  o r l d   ␣ + w\n"
        "    17  ␣w  or  l d   o + r\n"
        "    79  ␣w  or  ld    l + d\n"
        "   220  ␣wor    ld    ␣w + or\n"
        "   739  ␣world        ␣wor + ld\n"
        "  → ␣world 995\n"
        "\n"
        "tokens\n"
        "  #     id  bytes  piece     vocabulary\n"
        "  0  15496  0–5    'Hello'\n"
        "  1    995  5–11   ' world'  Ġworld\n"
    )


SYMBOLS = [("者", r"\xe8 \x80 \x85"), (" é", "␣ \\xc3 \\xa9"), ("\u200b", r"\xe2 \x80 \x8b")]


@pytest.mark.parametrize(("text", "symbols"), SYMBOLS)
def test_symbols_are_shown_as_what_they_stand_for(
    text: str, symbols: str, explain: Callable[..., str]
) -> None:
    """Not in the byte-level alphabet, which nobody reads; the token's own spelling stands in the table of tokens."""
    word = explain(text).partition("word 0")[2].partition("tokens")[0]
    assert f" {symbols}\n" in word
    assert not set("èĢħĠÃ©âĭ") & set(word)


def test_one_word_and_one_token(explain: Callable[..., str]) -> None:
    word = explain("Hello world", "--word", "1")
    assert "word 1  ' world'" in word
    assert "'Hello'" not in word
    token = explain("Hello world", "--token", "1")
    assert re.search(r"\n  1  995  5–11", token)
    assert "word 1" in token


def test_text_is_taken_as_it_is_unless_told(explain: Callable[..., str], tmp_path: Path) -> None:
    def text_of(*arguments: str) -> str:
        text: str = json.loads(explain("--json", *arguments))["text"]
        return text

    (tmp_path / "t.txt").write_bytes(b"a\\n\r\n\n")
    assert text_of(r"a\n") == text_of("-p", r"a\n") == r"a\n"
    assert text_of("-e", r"a\n") == "a\n"
    assert text_of("-f", str(tmp_path / "t.txt")) == "a\\n\r\n\n"


def test_json_is_the_trace_or_the_part_of_it(explain: Callable[..., str]) -> None:
    everything = json.loads(explain("Hello world", "--json"))
    assert everything["ids"] == [15496, 995]
    shared = {name: everything[name] for name in ("schema", "model")}
    word = json.loads(explain("Hello world", "--json", "--word", "1"))
    assert word == {**shared, **everything["words"][1]}
    token = json.loads(explain("Hello world", "--json", "--token", "1"))
    assert (token["id"], token["in_word"]) == (995, everything["words"][1])
    assert json.loads(explain("Hello world", "--json", "--why-not", "Hell"))["reason"] == "part"


def test_flags(explain: Callable[..., str]) -> None:
    def ids(*arguments: str) -> list[int]:
        found: list[int] = json.loads(explain("--json", *arguments, model=RAW_UTF8))["ids"]
        return found

    assert ids("a")[1:] == ids("a", "--no-bos")
    special = json.loads(explain("--json", "--no-parse-special", "<|endoftext|>"))["ids"]
    assert 50256 not in special


def test_why_not_in_words(explain: Callable[..., str]) -> None:
    shown = explain("Hello world", "--why-not", "Hell")
    assert "'Hell' (token 28254) occurs once in the text, but was not produced." in shown
    shown = explain("-e", r"a\n\nb", "--why-not", r"\n\n")
    assert r"'\n\n' (token 628)" in shown


def test_long_texts_say_how_much_is_shown(explain: Callable[..., str]) -> None:
    text = " word another" * 100
    shown = explain(text)
    assert len(shown.splitlines()) < 300
    assert "words 0 to 19 of 200: --word N shows one, --all shows all" in shown
    assert "tokens 0 to 59 of 200" in shown
    assert "merged as word 0" in shown
    assert "word 199" in explain(text, "--all")
    long_word = explain("a" * 5000)
    assert "of 3,750 merges: --word N shows all" in long_word
    assert len(explain("a" * 500, "--word", "0").splitlines()) > 400


WRONG = [
    ((), "give one text"),
    (("a", "-p", "b"), "give one text"),
    (("a", "--word", "1"), "there is no word 1: there are words 0 to 0"),
    (("a", "--token", "-1"), "there is no token -1"),
    (("", "--word", "0"), "the text has no words"),
    (("a", "--why-not", ""), "the piece is empty"),
    (("a", "--json", "--html", "x"), "give --html or --json, not both"),
    (("a", "--html", "x", "--word", "0"), "leave out"),
    (("a", "--word", "0", "--token", "0"), "not allowed with"),
]


@pytest.mark.parametrize(("arguments", "problem"), WRONG, ids=[problem for _, problem in WRONG])
def test_wrong_arguments_are_one_line(
    arguments: tuple[str, ...], problem: str, explain: Callable[..., str]
) -> None:
    shown = explain(*arguments, code=2)
    assert problem in shown
    assert shown.count("\n") == 1


@pytest.mark.parametrize("width", [50, 60, 100, 200])
def test_attributes_of_tokens_are_whole_at_any_width(width: int) -> None:
    from ggufbpe.analysis.views.explain_lines import ExplainLines

    vocabulary = gpt2_vocabulary()
    attributes = list(vocabulary.attributes)
    attributes[50256] |= TokenAttribute.LSTRIP | TokenAttribute.RSTRIP
    found = Tokenizer(vocabulary._replace(attributes=attributes)).trace("naïve " * 2 + "<|endoftext|>" * 3)
    lines = list(ExplainLines(width, False, True).lines(found, None, None, None))
    assert max(map(len, lines)) <= width
    words = "\n".join(lines[lines.index("tokens") :]).split()
    assert [word for word in words if word in ("CONTROL", "LSTRIP", "RSTRIP")] == [
        "CONTROL",
        "LSTRIP",
        "RSTRIP",
    ] * 3


CONTROL = re.compile("[\0-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2067\ue000\ufeff]")
JOINER = re.compile(
    "(?<=[\u2600-\u27bf\ufe0f\U0001f000-\U0001fbff])\u200d(?=[\u2600-\u27bf\U0001f000-\U0001fbff])"
)


def without_colors(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


MODELS = [
    GPT2,
    RAW_UTF8,
    UNIGRAM,
    *(ROOT / "fixtures" / "vocabs" / f"{name}.gguf" for name in ("spm", "wpm", "rwkv")),
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")
@pytest.mark.parametrize("width", [30, 50, 100, 200])
@pytest.mark.parametrize("model", MODELS, ids=[model.stem for model in MODELS])
def test_views_of_hostile_text(
    width: int,
    model: Path,
    explain: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "t").write_bytes(HOSTILE)
    monkeypatch.setattr("ggufbpe.cli._output.terminal_width", lambda: width)
    views: list[tuple[str, ...]] = [(), ("--all",), ("--word", "0"), ("--why-not", "a")]
    for arguments in views:
        shown = explain("-f", str(tmp_path / "t"), "--color", "always", *arguments, model=model)
        bare = without_colors(shown)
        assert not CONTROL.search(bare)
        for line in bare.splitlines():
            assert line.count("\u2068") == line.count("\u2069")
            assert len(re.sub("[\u2068\u2069]", "", line)) <= width + 16  # place and ids follow what is cut


@pytest.mark.slow
@bounded(60)
@given(st.one_of(texts, broken_bytes), st.sampled_from(["gpt-2", "gemma4", "deepseek-llm"]))
def test_every_text_has_a_view(text: str | bytes, name: str) -> None:
    from ggufbpe.analysis.views.explain_lines import ExplainLines

    found = tokenizer_as(name).trace(text)
    for width, everything in ((30, False), (120, True)):
        shown = "\n".join(ExplainLines(width, False, everything).lines(found, None, None, None))
        assert not CONTROL.search(shown)
        for token in found.tokens[:60]:
            assert str(token.id) in shown


# ---- the page -------------------------------------------------------------------------------------------


class _Reader(HTMLParser):
    """Tags, and the text of the body."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.open = 0
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def read(document: str) -> _Reader:
    reader = _Reader()
    reader.feed(document)
    return reader


_TAGS = "html head meta title style body h1 h2 p dl dt dd section div span bdi br table tr th td details summary code"
ALLOWED = set(_TAGS.split())
HUE = re.compile(r"--hue: [\d.]+")


def test_page_is_self_contained_and_safe() -> None:
    check_page(gpt2(), "Hell", "occurs once in the text")


PAGES = [
    ("spm", "llo", "was produced"),
    ("wpm", " h", "occurs once in the text"),
    ("rwkv", "l", "was produced"),
]


@pytest.mark.parametrize(("name", "piece", "said"), PAGES, ids=[name for name, *_ in PAGES])
def test_page_of_other_models(name: str, piece: str, said: str) -> None:
    check_page(opened(name), piece, said)


def check_page(tok: Tokenizer, piece: str, said: str) -> None:
    found = tok.trace(HOSTILE)
    document = html(found, 100, why_not(tok, HOSTILE, piece))
    reader = read(document)
    assert set(reader.tags) <= ALLOWED
    assert not {name for name, _ in reader.attributes} & {"src", "href", "onclick"}
    assert all(HUE.fullmatch(value or "") for name, value in reader.attributes if name == "style")
    assert "<script" not in document
    assert "default-src 'none'" in document
    assert not CONTROL.search(JOINER.sub("", document))
    assert document.count("<bdi dir=") == document.count("</bdi>")
    assert r"\x1b" in reader.text
    assert "prefers-color-scheme: dark" in document
    assert f"'{piece}'" not in reader.text  # a quote is a box here
    assert said in reader.text


def test_page_has_what_the_terminal_has() -> None:
    reader = read(html(gpt2().trace("Hello world"), 100))
    for expected in ("fragments", "15496", "995", "10853", "15240", r"/ ?\p{L}+/", "bytes 5–11", "Ġworld"):
        assert expected.lower() in reader.text.lower()
    assert reader.tags.count("details") == 2


def test_page_of_a_long_text_says_how_much_it_shows() -> None:
    document = html(gpt2().trace(" word" * 50), 10)
    assert "the first 10 of 50" in document
    assert read(document).tags.count("details") == 10


def test_page_names_the_model(explain: Callable[..., str], tmp_path: Path) -> None:
    explain("Hello", "--html", str(tmp_path / "way.html"), model=RAW_UTF8)
    reader = read((tmp_path / "way.html").read_text(encoding="utf-8"))
    assert reader.text.count(str(RAW_UTF8)) == 2, "in the title and on the page"


def test_without_jinja_the_command_says_what_to_install(
    explain: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    html_page._environment.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert "pip install 'ggufbpe[html]'" in explain("Hello", "--html", str(tmp_path / "way.html"), code=2)


def test_html_flag_writes_a_file(explain: Callable[..., str], tmp_path: Path) -> None:
    assert explain("Hello", "--html", str(tmp_path / "way.html")) == ""
    assert (tmp_path / "way.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert "No such file" in explain("Hello", "--html", str(tmp_path / "no" / "way.html"), code=2)


@bounded(60)
@given(st.one_of(texts, broken_bytes), st.sampled_from(["gpt-2", "gemma4"]))
def test_every_text_has_a_page(text: str | bytes, name: str) -> None:
    document = html(tokenizer_as(name).trace(text), 30)
    assert not CONTROL.search(JOINER.sub("", document))
    assert set(read(document).tags) <= ALLOWED


MARKED: list[tuple[Any, str]] = [
    ("a", '<bdi dir="ltr">a</bdi>'),
    (b"\xff<", '<bdi dir="ltr"><span class="esc">\\xff</span>&lt;</bdi>'),
    ("\u202e", '<bdi dir="ltr"><span class="esc">\\u202e</span></bdi>'),
    (" a", '<bdi dir="ltr"><span class="space"> </span>a</bdi>'),
    ('"&\\', '<bdi dir="ltr">&quot;&amp;\\</bdi>'),
    ("\u0301\u0302a", '<bdi dir="ltr"><span class="mark">\u25cc\u0301\u0302</span>a</bdi>'),
    ("a\u0301", '<bdi dir="ltr">a\u0301</bdi>'),
    ("\ufe0f\u2800", '<bdi dir="ltr"><span class="esc">\\ufe0f</span><span class="esc">\\u2800</span></bdi>'),
]


@pytest.mark.parametrize(("text", "expected"), MARKED, ids=[repr(text) for text, _ in MARKED])
def test_untrusted_text_on_a_page(text: str | bytes, expected: str) -> None:
    assert marked(text, spaces=True) == expected


@bounded(100)
@given(texts)
def test_nothing_that_is_not_printable_is_on_a_page(text: str) -> None:
    printable_or_unassigned = [c for c in safe(text) if not c.isprintable() and c not in ("\u0378",)]
    assert not any(CONTROL.match(c) for c in printable_or_unassigned)


def test_title_is_made_safe() -> None:
    document = "".join(rendered("base.html", title="<b>\x1b", model="<i>"))
    assert "<title>&lt;b&gt;\\x1b: &lt;i&gt;</title>" in document
    assert "<h1>&lt;b&gt;\\x1b</h1>" in document


@pytest.mark.parametrize("name", ONE_OF_EACH_FAMILY)
def test_alternatives_are_counted_as_list_pre_shows_them(name: str) -> None:
    """What is not in the pattern is said to be added."""
    for stage, shown in zip(traced_stages(PRE_TOKENIZERS[name]), PRE_TOKENIZERS[name].stages, strict=True):
        listed = list(filter(None, option_texts(shown.pattern)))
        assert stage.in_pattern == len(listed)
        assert list(stage.alternatives[: stage.in_pattern]) == listed
