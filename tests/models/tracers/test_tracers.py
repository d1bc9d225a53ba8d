"""What a trace says of SPM, WPM, UGM, RWKV and PLaMo, held to `encode` and to the vocabulary, read in the plainest way.

Merges are run by hand, matches looked for among all tokens, and all paths through a lattice are tried. So is what
`--why-not` claims.
"""

from __future__ import annotations

import io
import json
import random
import subprocess
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Any

import pytest
from charsmaps import charsmap
from conftest import ROOT, UNIGRAM, missing
from hypothesis import given
from hypothesis import strategies as st
from record_fixtures import FLAGS, REAL, as_bytes, column, read_recorded
from reference import NotPreparedError, vocabulary
from synthetic import bounded, broken_bytes, make_vocabulary, texts
from trace_checks import check_fragments, replayed

from ggufbpe import GGUFWarning, Tokenizer, UnsupportedTokenizerError
from ggufbpe.analysis.explain import long_text_parts, piece_search
from ggufbpe.analysis.explain.byte_bounds import rewritten
from ggufbpe.analysis.explain.reasons import Place
from ggufbpe.analysis.explain.survey import Wanted, survey, survey_whole
from ggufbpe.analysis.explain.why_not import why_not
from ggufbpe.analysis.views.answers import answer as json_answer
from ggufbpe.analysis.views.explain_json import of_parts
from ggufbpe.analysis.views.explain_lines import ExplainLines
from ggufbpe.analysis.views.explain_page import html
from ggufbpe.analysis.views.terminal import json_bytes
from ggufbpe.models.plamo import in_ten_thousandths
from ggufbpe.models.spm import ScoreRanks, score_ranks
from ggufbpe.models.tracers.trace_types import LatticeEdge, Word, WordLattice
from ggufbpe.models.vocabulary import BYTE, CONTROL, NORMAL, UNKNOWN, USER_DEFINED, Vocabulary
from ggufbpe.tokenizer.reference_engine import ReferenceEngine
from ggufbpe.tokenizer.trace import Trace, tracer_of

pytestmark = pytest.mark.both_engines

NAMES = [
    "spm", "spm-without-prefix", "spm-equal-scores", "spm-user-defined", "spm-without-space", "spm-infinite-scores",
    "spm-bytes-as-characters", "spm-without-scores", "wpm", "wpm-cased", "wpm-with-accents", "wpm-special-tokens",
    "wpm-unknown-missing", "wpm-begins-alone", "rwkv", "rwkv-without-bytes", "rwkv-unknown-missing", "unigram",
    "unigram-neither", "unigram-joined", "unigram-infinite", "plamo2", "plamo2-equal-scores", "plamo2-byte-twice",
    "plamo2-score-of-1000", "plamo2-score-of-1000-within-another", "plamo2-scores-beyond-all",
    "plamo2-special-tokens", "plamo3", "plamo3-score-of-1000", "plamo3-user-defined",
]  # fmt: skip


@cache
def opened(name: str) -> Tokenizer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GGUFWarning)
        if name in UNIGRAMS:
            return Tokenizer(unigram(**UNIGRAMS[name]))
        path = UNIGRAM if name == "unigram" else ROOT / "fixtures" / "vocabs" / f"{name}.gguf"
        return Tokenizer.from_gguf(path)


SCORES = {
    "<unk>": 0.0,
    "<s>": 0.0,
    "▁": -4.0,
    "▁a": -2.0,
    "a": -3.0,
    "b": -3.0,
    "▁ab": -4.5,
    "ab": -5.0,
    "<u>": 0.0,
}
MAP = charsmap({b"\n": b" ", "ﬁ".encode(): b"ab", "é".encode(): b"", "¨".encode(): b" b", b"bb": b"a"})
UNIGRAMS: dict[str, dict[str, Any]] = {
    "unigram-neither": {"add_space_prefix": False, "remove_extra_whitespaces": False},
    "unigram-joined": {
        "scores": {"<unk>": 0.0, "<s>": 0.0, "a": -1.0, "b▁a": -1.5, "aa": -2.0}
    },  # no token is a space
    "unigram-infinite": {"scores": SCORES | {"a": float("-inf"), "▁": float("inf")}},
}


def unigram(scores: dict[str, float] = SCORES, **changes: Any) -> Vocabulary:
    kinds = {"<unk>": UNKNOWN, "<s>": CONTROL, "<u>": USER_DEFINED}
    flags = {"add_space_prefix": True, "remove_extra_whitespaces": True, "charsmap": MAP, **changes}
    return make_vocabulary(
        scores, attributes=kinds, model="t5", special_ids={"unk": 0}, scores=list(scores.values()),
        flags={"byte_encode": False}, **flags,
    )  # fmt: skip


def texts_of(tok: Tokenizer) -> st.SearchStrategy[str | bytes]:
    """Tokens of a vocabulary one after the other, any text, and what is no text."""
    dice = random.Random(1)
    some = dice.sample(range(tok.vocab_size), min(tok.vocab_size, 60))
    own = [tok.token_to_piece(token) for token in some] + [
        b" ",
        b"  ",
        b"Hel",
        "ﬁ".encode(),
        "É".encode(),
        b"\xff",
    ]
    if tok.model.startswith("plamo"):
        own += [
            "\ufeff".encode(),
            "\uee00".encode(),
            b"aaaa",
            b"\xc1\xa1",
            b"\xf7\x80\x80\x80",
            b"<|plamo:x|>",
        ]
    return st.one_of(st.lists(st.sampled_from(own), max_size=12).map(b"".join), texts, broken_bytes)


# ---- what always holds ----------------------------------------------------------------------------------


def check(tok: Tokenizer, text: str | bytes, add_special: bool, parse_special: bool) -> None:
    flags = {"add_special": add_special, "parse_special": parse_special}
    try:
        ids, spans = tok.encode_with_offsets(text, **flags)
    except ValueError as error:  # a byte that has no token
        with pytest.raises(ValueError, match=str(error)[:20]):
            tok.trace(text, **flags)
        return
    found = tok.trace(text, **flags)
    assert found.ids == ids == tok.encode(text, **flags)
    assert [(token.start, token.end) for token in found.tokens] == spans
    check_fragments(found)
    check_changes(tok, found)
    for number, word in enumerate(found.words):
        ids = [token.id for token in found.tokens if token.word == number]
        assert [token for symbol in word.symbols for token in symbol.ids] == ids
        check_word(tok, word)


def check_changes(tok: Tokenizer, found: Trace) -> None:
    """What the changes make of a fragment is what its words are made of."""
    for change in found.changes:
        assert found.text[change.start : change.end] == change.text
        assert change.became.encode("utf-8", "surrogateescape") != change.text
        assert change.reasons
    if not _is_utf8(found.text):
        return
    for number, fragment in enumerate(found.fragments):
        if fragment.kind != "text":
            continue
        words = [word.written for word in found.words if word.fragment == number]
        made = "".join(char for char, _, _ in rewritten(found, fragment.start, fragment.end))
        if tok.vocabulary.model == "bert":
            assert "".join(word.text for word in found.words if word.fragment == number) == made.replace(
                " ", ""
            )
        else:
            assert b"".join(map(_data, words)) == _data(made)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def check_word(tok: Tokenizer, word: Word) -> None:
    """The steps of a word: one kind, each as the vocabulary has it."""
    if word.matches:
        check_matches(tok, word)
    elif word.lattice is not None:
        check_lattice(tok, word, word.lattice)
    elif tok.vocabulary.tokenizer_model.has_scores and tok.vocabulary.model != "t5":
        check_merges(tok, word)
    else:
        assert not all(map(isfinite, tok.vocabulary.scores))


def check_merges(tok: Tokenizer, word: Word) -> None:
    known = tok.vocabulary.tokens
    ranks = ScoreRanks(dict(zip(known, score_ranks(tok.vocabulary.scores, len(known)))))
    assert replayed(ranks, word.written, word.merges) == [symbol.text for symbol in word.symbols]
    scores = tok.vocabulary.scores or [0.0] * len(known)
    for merge in word.merges:
        assert merge.score == scores[tok.vocabulary.token_to_id[merge.left + merge.right]]


@cache
def texts_of_tokens(tok: Tokenizer) -> dict[bytes, int]:
    """The bytes that each token stands for where it is looked up; of equal ones the last counts."""
    tracer = tracer_of(tok)
    return {_data(tracer.looked_up(token)): token for token in range(tok.vocab_size)}


def _data(written: str) -> bytes:
    try:
        return written.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return written.encode("utf-8", "surrogatepass")


def check_matches(tok: Tokenizer, word: Word) -> None:
    tokens = texts_of_tokens(tok)
    written, at = _data(word.written), 0
    if max(word.written) >= "\udc80" and tok.vocabulary.model == "bert":
        return  # surrogates in the text: positions count three bytes for each
    for match in word.matches:
        assert match.position == at
        here = sorted(
            (data, token) for data, token in tokens.items() if data and written.startswith(data, at)
        )
        assert [(tried.token, tried.length) for tried in match.tried] == [
            (token, len(data)) for data, token in here
        ]
        assert match.taken == (here[-1][1] if here else None)
        reached = max((_common(data, written[at:]) for data in tokens), default=0)
        assert match.reach <= reached < match.reach + 4  # whole characters, where these are looked up
        at += match.tried[-1].length if match.tried else 0
    assert at == len(written) or word.matches[-1].taken is None


def _common(left: bytes, right: bytes) -> int:
    return next((at for at, (a, b) in enumerate(zip(left, right)) if a != b), min(len(left), len(right)))


def check_lattice(tok: Tokenizer, word: Word, lattice: WordLattice) -> None:
    size = len(_data(word.written))
    for path in filter(None, (lattice.best, lattice.next_best)):
        ends = [0, *(edge.position + edge.length for edge in path.edges)]
        assert [edge.position for edge in path.edges] == ends[:-1]
        assert ends[-1] == size
        assert set(path.edges) <= set(lattice.edges)
        assert path.total == sum_in_order(lattice.before, path.edges)
    scores = {(edge.token, edge.position, edge.length): edge.score for edge in lattice.edges}
    if not lattice.is_from_end:
        assert scores == pytest.approx(edges_of(tok, word.written))
    elif not any("\ud800" <= char < "\ue000" for char in word.written):
        assert scores == suffix_edges_of(tok, word.written)
    everything = list(all_paths(lattice.edges, size)) if len(lattice.edges) < 16 else []
    if everything:
        totals = sorted((sum_in_order(lattice.before, path) for path in everything), reverse=True)
        assert lattice.best.total == totals[0]
        if lattice.is_from_end:  # of equal ones, the one whose first edges are the longest
            assert lattice.best.edges == max(
                sorted(everything, key=lambda path: [-edge.length for edge in path]),
                key=lambda path: sum_in_order(lattice.before, path),
            )
        assert (lattice.next_best is None) == (len(totals) == 1)
        assert lattice.next_best is None or lattice.next_best.total == totals[1]


def sum_in_order(before: float, edges: tuple[LatticeEdge, ...]) -> float:
    for edge in edges:
        before += edge.score
    return before


def all_paths(edges: tuple[LatticeEdge, ...], size: int, at: int = 0) -> Iterator[tuple[LatticeEdge, ...]]:
    if at == size:
        yield ()
    for edge in edges:
        if edge.position == at:
            yield from ((edge, *rest) for rest in all_paths(edges, size, at + edge.length))


def edges_of(tok: Tokenizer, written: str) -> dict[tuple[int, int, int], float]:
    """The scores of all tokens at each character, and of the unknown one for a character that is none."""
    tracer, vocabulary = tracer_of(tok), tok.vocabulary
    kinds = vocabulary.first_attributes or vocabulary.attributes
    lowest = min(score for score, kind in zip(vocabulary.scores, kinds) if kind & NORMAL)
    found: dict[tuple[int, int, int], float] = {}
    at = 0
    for place, char in enumerate(written):
        width = len(_data(char))
        here = [
            t
            for t, text in enumerate(vocabulary.tokens)
            if written.startswith(text, place) and tracer.is_for_text(t)
        ]
        for token in here:
            length = len(vocabulary.tokens[token].encode())
            found[token, at, length] = (
                0.0 if vocabulary.attributes[token] & USER_DEFINED else vocabulary.scores[token]
            )
        if not any(vocabulary.tokens[token] == char for token in here):
            found[vocabulary.special_ids["unk"] or 0, at, width] = lowest - 10
        at += width
    return found


_ENDS, _NEVER, _BYTES = -10_000_000, -20_000_000, -10_000_000  # in ten-thousandths, as llama.cpp has them


@cache
def _suffixes(tok: Tokenizer) -> tuple[dict[str, tuple[int, int]], set[str]]:
    """Tokens with their ids and scores, of equal ones the last, and all that they end in."""
    vocabulary = tok.vocabulary
    kinds = vocabulary.first_attributes or vocabulary.attributes
    scores = vocabulary.scores or [0.0] * len(kinds)
    tokens = {
        text: (token, in_ten_thousandths(score))
        for token, (text, score, kind) in enumerate(zip(vocabulary.tokens, scores, kinds))
        if not kind & BYTE
    }
    return tokens, {text[at:] for text in tokens for at in range(len(text))} | {""}


def suffix_edges_of(tok: Tokenizer, written: str) -> dict[tuple[int | None, int, int], float]:
    """What llama.cpp's table has at each character, with strings for its rows."""
    tokens, suffixes = _suffixes(tok)

    def shorter(row: str) -> Iterator[str]:
        """A row and the shorter ones that are looked at."""
        for length in range(len(row), -1, -1):
            if row[:length] in suffixes:
                yield row[:length]
                if tokens.get(row[:length], (0, 0))[1] == _ENDS:
                    return

    found: dict[tuple[int | None, int, int], float] = {}
    row = ""
    for place in range(len(written) - 1, -1, -1):
        char, at = written[place], len(written[:place].encode())
        row = next((char + each for each in shorter(row) if char + each in suffixes), "")
        for each in shorter(row):
            token, score = tokens.get(each, (None, _NEVER))
            if score > _NEVER:
                found[token, at, len(each.encode())] = score
            elif not each:
                found[None, at, len(char.encode())] = _BYTES
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_steps_are_what_encode_does(name: str) -> None:
    tok = opened(name)

    @bounded(40)
    @given(texts_of(tok), st.booleans(), st.booleans())
    def run(text: str | bytes, add_special: bool, parse_special: bool) -> None:
        check(tok, text, add_special, parse_special)

    run()


@pytest.mark.slow
@pytest.mark.parametrize("name", [*REAL, "bert-bge", "nomic-bert-moe"])
def test_ids_of_recorded_texts_by_real_vocabularies(name: str) -> None:
    """llama.cpp's, where it was asked for them, and else those of `encode`."""
    recorded = read_recorded("real")
    try:
        path = vocabulary(name)
    except NotPreparedError as error:
        missing(str(error))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GGUFWarning)
        tok = Tokenizer.from_gguf(path)
    data = list(map(as_bytes, recorded["texts"]))
    ids = column(recorded["ids"], name, FLAGS.index((True, True))) if name in REAL else map(tok.encode, data)
    for text, expected in zip(data, ids, strict=True):
        assert expected is None or tok.trace(text).ids == expected, text


# ---- worked examples ------------------------------------------------------------------------------------

CHANGES = [
    ("spm", "a  b", [("", "▁", "space_prefix"), ("  ", "▁▁", "escaped_space")]),
    ("spm-without-prefix", "ab", []),
    ("wpm", "HÉ", [("H", "h", "lower_case"), ("É", "e", "accents lower_case")]),
    ("wpm", "e\u0301\x07\0", [("\u0301", "", "accents"), ("\x07\0", "", "control")]),
    ("wpm", "a\u3000", [("\u3000", " ", "white_space")]),
    ("wpm", ",中", [(",", " , ", "alone"), ("中", " 中 ", "alone")]),
    ("wpm-with-accents", "É", [("É", "é", "lower_case")]),
    ("wpm-cased", "É", []),
    ("unigram-neither", "ﬁ b", [("ﬁ", "ab", "charsmap"), (" ", "▁", "escaped_space")]),
    ("unigram-joined", " ﬁ", [(" ", "▁", "escaped_space"), ("ﬁ", "ab", "charsmap")]),
    ("unigram-joined", " a  aé ", [
        (" ", "▁", "escaped_space"), ("  ", "▁", "escaped_space extra_white_space"), ("é", "", "charsmap"),
        (" ", "", "extra_white_space"),
    ]),
    ("unigram-joined", "a", [("", "▁", "space_prefix")]),
    ("rwkv", "É  a", []),
    ("plamo2", "\ufeffa\ufeff", [("\ufeff", "", "left_out")]),
    ("plamo3", "\ufeffa\uee00\uee00b", [("\uee00\uee00", "", "left_out")]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text", "expected"), CHANGES, ids=[f"{name}-{text!r}" for name, text, _ in CHANGES]
)
def test_what_normalization_changed(name: str, text: str, expected: list[tuple[str, str, str]]) -> None:
    found = opened(name).trace(text, add_special=False).changes
    assert [(change.text.decode(), change.became, " ".join(change.reasons)) for change in found] == expected


@pytest.mark.parametrize("name", ["wpm", "unigram-neither", "plamo2"])
def test_a_byte_that_is_no_utf8_is_said_to_be_changed(name: str) -> None:
    [change] = [change for change in opened(name).trace(b"a\xff").changes if change.text == b"\xff"]
    assert change.reasons[0] == "not_utf8"


def test_an_unknown_token_goes_on_over_the_end_of_a_word() -> None:
    found = opened("unigram-joined").trace("x y", add_special=False)  # the space is no token either
    assert [(token.start, token.end, token.origin, token.word) for token in found.tokens] == [
        (0, 3, "unknown", 0)
    ]
    assert [[symbol.ids for symbol in word.symbols] for word in found.words] == [[(0,)], [()]]


def test_a_word_that_no_tokens_make_up() -> None:
    [word] = opened("wpm").trace("hello☃", add_special=False).words
    assert [(match.taken, match.position) for match in word.matches] == [(4, 0), (None, 8)]
    assert [(symbol.ids, symbol.is_unknown) for symbol in word.symbols] == [((1,), True)]


def test_json_of_scores_that_are_not_finite() -> None:
    read = json.loads(json.dumps(opened("spm-infinite-scores").trace("hello").to_dict(), allow_nan=False))
    assert "-inf" in {merge["score"] for word in read["words"] for merge in word["merges"]}


def test_a_model_that_cannot_tell_its_steps_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent:
        """A text model that has no tracer."""

    monkeypatch.setattr(ReferenceEngine, "plain_text", Silent())
    with pytest.raises(UnsupportedTokenizerError, match="whose steps cannot be traced yet"):
        Tokenizer(opened("spm").vocabulary).trace("hello")


# ---- part by part ---------------------------------------------------------------------------------------

PARTED = ["spm", "wpm", "rwkv", "unigram", "unigram-joined", "plamo2", "plamo3"]


def long_text(tok: Tokenizer, size: int) -> bytes:
    dice = random.Random(size)
    own = [tok.token_to_piece(token) for token in range(tok.vocab_size)]
    more = [b" ", b"\n", b" Hello ", "ﬁ É ".encode(), b"\xff", *own[:4]]
    return b"".join(dice.choice(dice.choice([own, more])) for _ in range(size))


@pytest.mark.slow
@pytest.mark.parametrize("name", PARTED)
def test_parts_are_the_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_text_parts, "_SIZE", 64)
    tok = opened(name)
    for data, flag in ((long_text(tok, 200), True), (b" some words", False), (b"", True)):
        flags = {"add_special": flag, "parse_special": flag}
        whole, found = tok.trace(data, **flags), long_text_parts.Parts(tok, io.BytesIO(data), **flags)
        assert "".join(of_parts(found)) == json_bytes(json_answer(whole.to_dict(), model=tok.name)).decode()
        assert found.totals == survey_whole(whole).totals
        assert list(ExplainLines(80, False, True).lines(found, None, None, None)) == list(
            ExplainLines(80, False, True).lines(whole, None, None, None)
        )
        assert "".join(html(found, 9**9)) == "".join(html(whole, 9**9))
        longest = max(
            (word.end - word.start for word in whole.words), default=0
        )  # in PLaMo-2, all of the text
        assert max(sum(word.end - word.start for word in part.words) for _, part in found.parts) < 64 + max(
            256, longest
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", PARTED)
def test_the_part_that_is_wanted_is_that_of_the_whole(name: str) -> None:
    tok = opened(name)
    data = long_text(tok, 3000)
    whole = tok.trace(data)
    for number in (0, 1, len(whole.tokens) // 2, len(whole.tokens) - 1):
        token = whole.tokens[number]
        for wanted in [Wanted(token=number)] + [Wanted(word=token.word)] * (token.word is not None):
            found = survey(tok, io.BytesIO(data), wanted, fragments=9**9)
            assert found.totals == survey_whole(whole).totals
            assert [each for each, _ in found.fragments] == list(whole.fragments)
            there = found.trace.tokens[number - found.before.tokens]
            assert there[:7] == token[:7]
            assert there.fragment + found.before.fragments == token.fragment
            if token.word is not None and there.word is not None:
                assert found.trace.words[there.word].symbols == whole.words[token.word].symbols
            assert len(found.trace.words) < max(len(whole.words) // 2, 3000)
    beginning = survey(tok, io.BytesIO(data), Wanted(21, 60))
    assert beginning.trace.tokens[:60] == whole.tokens[:60]
    assert beginning.trace.words[:21] == whole.words[:21]
    assert len(beginning.trace.tokens) < 2000


MEMORY = """
import sys
from ggufbpe.cli import explain, main
code = main(sys.argv[1:])
[peak] = (line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(peak, file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems count memory in other ways")
def test_what_is_traced_is_not_held(tmp_path: Path) -> None:
    """The text is, with its ids; each byte of it takes a kilobyte and more while it is traced."""
    peaks = []
    for size in (1 << 14, 1 << 15):
        (tmp_path / "t").write_bytes("Some words, naïve ones. ".encode() * (size // 25))
        model = ROOT / "fixtures" / "vocabs" / "spm.gguf"
        command = [sys.executable, "-W", "ignore", "-c", MEMORY, "explain", "-m", str(model), "--json", "-f"]
        command.append(str(tmp_path / "t"))
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        done = subprocess.run(command, **quiet, timeout=120, check=True)
        peaks.append(int(done.stderr.split()[-1]))
    assert peaks[1] - peaks[0] < 6 << 10


# ---- why not --------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_what_is_said_of_a_piece_is_so(name: str) -> None:
    tok = opened(name)
    tokens = st.integers(0, tok.vocab_size - 1)

    @bounded(40)
    @given(texts_of(tok), tokens, st.randoms(use_true_random=False))
    def run(text: str | bytes, token: int, dice: random.Random) -> None:
        try:
            found = tok.trace(text, add_special=False)
        except ValueError:
            return
        here = [each.token for word in found.words for match in word.matches for each in match.tried]
        edges = [edge for word in found.words if word.lattice for edge in word.lattice.edges]
        here += [edge.token for edge in edges if edge.token is not None]
        token = dice.choice([token, *here])
        answer = why_not(tok, text, tok.id_to_token(token), add_special=False)
        assert answer.token is not None
        assert (answer.token in found.ids) == (answer.reason == "produced")
        assert answer.times == (found.ids.count(answer.token) or None)
        for place in answer.places:
            check_place(tok, found, answer.token, place)

    run()


def check_place(tok: Tokenizer, found: Trace, token: int, place: Place) -> None:
    """The claim of a place, tried."""
    tracer = tracer_of(tok)
    piece = _data(tracer.looked_up(token))
    assert 0 <= place.start <= place.end <= len(found.text)
    if place.reason == "special":
        assert place.token in [
            f.token
            for f in found.fragments
            if f.kind == "special" and f.start < place.end and place.start < f.end
        ]
        return
    if place.reason == "normalized":
        assert place.changes
        assert set(place.changes) <= set(found.changes)
        assert found.text[place.start : place.end].replace(b" ", b"") == piece.replace("▁".encode(), b"")
        return
    assert place.word is not None
    word = found.words[place.word]
    written = _data(word.written)
    if place.reason == "boundary":
        assert piece not in written
        return
    assert tracer.splits is False or piece in written
    if place.match is not None:
        assert place.match in word.matches
        longest = place.match.tried[-1] if place.match.tried else None
        if place.reason == "longer_match":
            assert longest is not None
            assert written[place.match.position :].startswith(piece) or not tracer.splits
            assert longest.token == place.match.taken
            assert longest.length > len(piece)
        elif place.reason == "earlier_match":
            assert place.start >= word.start
        else:
            assert not any(data and place.rest.startswith(data) for data in texts_of_tokens(tok))
            assert word.symbols[0].is_unknown
    elif place.path is not None:
        assert word.lattice is not None
        assert token in [edge.token for edge in place.path.edges]
        assert place.best == word.lattice.best
        assert place.path.total == sum_in_order(word.lattice.before, place.path.edges) <= place.best.total
        if len(word.lattice.edges) < 16:
            at = next(edge.position for edge in place.path.edges if edge.token == token)
            ways = all_paths(word.lattice.edges, len(written))
            with_it = [way for way in ways if any((e.token, e.position) == (token, at) for e in way)]
            assert place.path.total == max(sum_in_order(word.lattice.before, way) for way in with_it)
    elif place.reason == "not_tried":
        assert word.lattice is not None
        assert written.find(piece) >= 0
        positions = [at for at in range(len(written)) if written.startswith(piece, at)]
        taken = [edge.position for edge in word.lattice.edges if edge.token == token]
        assert set(positions) - set(taken)
    elif place.merge is not None:
        check_merge_claim(tok, word, token, place)
    else:
        assert place.reason in ("merges", "produced", "not_for_text")


def check_merge_claim(tok: Tokenizer, word: Word, token: int, place: Place) -> None:
    """The merge is one of the word's; where it took a part, the piece's own had no better score."""
    assert place.merge in word.merges
    alone = tracer_of(tok).alone(tok.id_to_token(token))
    assert alone is not None
    assert alone.symbols == (tok.id_to_token(token),)
    if place.reason == "part":
        assert place.needed in alone.merges
        assert place.needed is not None
        assert place.needed.score is not None
        assert place.merge.score is not None
        assert place.needed.score <= place.merge.score
    else:
        assert place.reason == "longer"
        assert tok.id_to_token(token) in (place.merge.left + place.merge.right)


@pytest.mark.slow
@pytest.mark.parametrize("name", PARTED)
def test_why_a_piece_was_not_produced_piece_by_piece(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tok = opened(name)
    data = long_text(tok, 150)
    dice = random.Random(name)
    reasons = set()
    for token in dice.sample(range(tok.vocab_size), min(tok.vocab_size, 50)):
        answers = []
        for size in (32, 1 << 20):
            monkeypatch.setattr(piece_search, "_PIECE", size)
            answers.append(why_not(tok, io.BytesIO(data), tok.id_to_token(token)))
        assert answers[0] == answers[1]
        reasons.add(answers[0].reason)
    assert len(reasons) > 1 or tok.vocab_size < 10
