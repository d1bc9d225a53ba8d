"""Texts in chunks: ids and words are those of the whole, for every pre-tokenizer, whatever the text is."""

from __future__ import annotations

import io
import subprocess
import sys
from array import array
from itertools import chain, product
from pathlib import Path
from typing import Any

import pytest
from conftest import GPT2, ROOT
from split_cases import lines, odd_text, opened, special_texts
from synthetic import ONE_OF_EACH_FAMILY, make_vocabulary, tokenizer_as

from ggufbpe import Tokenizer
from ggufbpe._util.spelling import BYTE_TOKENS
from ggufbpe.analysis.explain import long_text_parts
from ggufbpe.analysis.explain import piece_search as searches
from ggufbpe.analysis.explain import survey as surveys
from ggufbpe.analysis.explain.survey import Wanted, survey, survey_whole
from ggufbpe.analysis.explain.why_not import why_not
from ggufbpe.analysis.views.answers import answer as json_answer
from ggufbpe.analysis.views.explain_json import of_parts
from ggufbpe.analysis.views.explain_page import html
from ggufbpe.analysis.views.terminal import json_bytes
from ggufbpe.cli import main
from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS
from ggufbpe.models.vocabulary import BYTE, Vocabulary
from ggufbpe.native import native
from ggufbpe.tokenizer import chunking
from ggufbpe.tokenizer.chunking import chunks_of_stream, ids_of_chunks, stable_chunks
from ggufbpe.tokenizer.split_points import SplitPoints
from ggufbpe.tokenizer.trace import Trace

pytestmark = pytest.mark.skipif(native is None, reason="the reference engine takes whole texts")
MEMORY = """
import sys
from ggufbpe.cli import explain, main
code = main(sys.argv[1:])
[peak] = (line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(peak, file=sys.stderr)
sys.exit(code)
"""


def check(tokenizer: Tokenizer, data: bytes, size: int, *others: Tokenizer) -> list[bytes]:
    for parse_special, between_words in product((True, False), repeat=2):
        models = [tokenizer, *others]
        found = list(
            chunks_of_stream(io.BytesIO(data), models, parse_special, size, between_words=between_words)
        )
        assert b"".join(found) == data
        flags = {"add_special": False, "parse_special": parse_special}
        ids = tokenizer.encode(data, **flags)
        assert list(chain(*(tokenizer.encode(each, **flags) for each in found))) == ids
        assert list(chain(*ids_of_chunks(tokenizer, found, parse_special))) == ids
        if between_words:
            assert list(chain(*map(tokenizer.pre_tokenize, found))) == tokenizer.pre_tokenize(data)
    return found


@pytest.mark.parametrize("name", PRE_TOKENIZERS)
def test_ids_and_words_are_those_of_the_whole(name: str) -> None:
    tokenizer = tokenizer_as(name)
    found = check(tokenizer, odd_text(name, special_texts(tokenizer)), 64)
    assert len(found) > 5


@pytest.mark.filterwarnings("ignore:.*was not an end-of-generation token")  # of opening it
def test_special_tokens_that_strip_white_space() -> None:
    tokenizer = Tokenizer.from_gguf(ROOT / "fixtures" / "vocabs" / "jina-v2-code.gguf")
    data = b"word" + b" word <mask>  word\n <mask>\n\n<mask> <mask>" * 60
    assert len(check(tokenizer, data, 16)) > 20


def test_a_place_suits_every_tokenizer() -> None:
    data = odd_text("several", ["<|endoftext|>"])
    first, second = tokenizer_as("llama-bpe"), tokenizer_as("gpt-2")
    assert len(check(first, data, 64, second)) > 5
    check(second, data, 64, first)


@pytest.mark.parametrize(
    ("text", "chunks"),
    [
        (b"a\n\nb", [b"a\n\nb"]),  # "\n", "\n"; but "\n\n" where a text ends
        (b"Hello worlds", [b"Hello worlds"]),  # what may follow is not far enough away
        (b"Hello worlds" + b"!" * 26, [b"Hello", b" worlds", b"!" * 26]),
        (b"<|endoftext|>", [b"<|endoftext|>"]),
        (b"!<|endoftext|>" + b"!" * 26, [b"!", b"<|endoftext|>" + b"!" * 26]),
        (b"", []),
        ("é".encode(), ["é".encode()]),
    ],
)
def test_where_texts_are_divided(text: bytes, chunks: list[bytes]) -> None:
    assert list(chunks_of_stream(io.BytesIO(text), [tokenizer_as("gpt-2")], size=2)) == chunks


def test_between_words_there_are_no_special_tokens_within_one() -> None:
    text, tokenizer = b"!<|endoftext|>" + b"!" * 26, tokenizer_as("gpt-2")
    assert tokenizer.pre_tokenize(text)[0] == "!<|"
    assert len(list(chunks_of_stream(io.BytesIO(text), [tokenizer], size=2))) == 2
    assert list(chunks_of_stream(io.BytesIO(text), [tokenizer], size=2, between_words=True)) == [text]


def test_chunks_are_little_larger_than_they_must_be() -> None:
    data = Path(__file__).read_bytes()
    found = list(chunks_of_stream(io.BytesIO(data), [tokenizer_as("gpt-2")], size=512))
    assert max(map(len, found)) < 600
    assert len(found) < len(data) / 512 + 2


def test_a_text_shorter_than_a_chunk_is_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = tokenizer_as("gpt-2")
    monkeypatch.setattr(chunking, "places_of", None)
    assert list(chunks_of_stream(io.BytesIO(b"a b c"), [tokenizer], size=6)) == [b"a b c"]
    with pytest.raises(TypeError, match="not callable"):
        list(chunks_of_stream(io.BytesIO(b"a b c"), [tokenizer], size=5))


@pytest.mark.parametrize("data", [b"a" * 5000, b"\x80" * 5000, b"\n" * 5000, b" " * 5000])
def test_a_text_without_a_place_is_one_chunk(data: bytes) -> None:
    assert list(chunks_of_stream(io.BytesIO(data), [tokenizer_as("gpt-2")], size=256)) == [data]


def test_reading_ends_where_too_much_has_no_place() -> None:
    stream = io.BytesIO(b"one two " + b"a" * 5000)
    found = list(chunks_of_stream(stream, [tokenizer_as("gpt-2")], size=256, most=1000))
    assert len(found) == 2
    assert b"".join(found) == stream.getvalue()[: stream.tell()]
    assert 1000 < len(found[1]) < 1300


@pytest.mark.parametrize("piece", [b"a" * 10, b"\n"])
def test_each_byte_of_a_text_without_a_place_is_searched_once(
    piece: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = tokenizer_as("gpt-2")
    places = SplitPoints(tokenizer, parse_special=True, continues=True)
    searched = []
    real = SplitPoints.last

    def last(self: SplitPoints, text: bytes, start: int, end: int, **more: bool) -> int:
        searched.append(len(text))
        assert len(text) - end == self.reach
        return real(self, text, start, end, **more)

    monkeypatch.setattr(SplitPoints, "last", last)
    assert list(stable_chunks([piece] * 2000, places)) == [piece * 2000]
    assert max(searched) < 3 * places.reach


def test_a_stream_that_gives_little_at_a_time_is_read_to_its_end() -> None:
    class Slow(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(min(size or 0, 7))

    data = Path(__file__).read_bytes()[:5000]
    whole, slow = (
        list(chunks_of_stream(kind(data), [tokenizer_as("gpt-2")], size=512)) for kind in (io.BytesIO, Slow)
    )
    assert slow == whole


def test_nothing_is_read_after_the_end() -> None:
    """A terminal that has said that a text ends waits for another one."""

    class Terminal(io.BytesIO):
        has_ended = False

        def read(self, size: int | None = -1) -> bytes:
            assert not self.has_ended
            data = super().read(size)
            self.has_ended = not data
            return data

    data = b"some words, " * 100
    for size in (7, 512, 600, 1199, 1200, 1201):
        assert b"".join(chunks_of_stream(Terminal(data), [tokenizer_as("gpt-2")], size=size)) == data


def test_the_reference_engine_takes_the_whole() -> None:
    tokenizer = Tokenizer(tokenizer_as("gpt-2").vocabulary, "reference")
    text = b"one two three" * 9
    assert list(chunks_of_stream(io.BytesIO(text), [tokenizer], size=2)) == [text]


def test_the_reference_engine_divides_at_special_tokens() -> None:
    tokenizer = Tokenizer(tokenizer_as("gpt-2").vocabulary, "reference")
    text = b"one two<|endoftext|>three" + b" four" * 9
    found = list(chunks_of_stream(io.BytesIO(text), [tokenizer], size=2))
    assert found == [b"one two", b"<|endoftext|>three" + b" four" * 9]
    whole = chunks_of_stream(io.BytesIO(text), [tokenizer], size=2, between_words=True)
    assert list(whole) == [text]


def test_text_streams_are_refused() -> None:
    with pytest.raises(TypeError, match="binary mode"):
        list(chunks_of_stream(io.StringIO("text"), [tokenizer_as("gpt-2")]))


# ---- models without patterns ----------------------------------------------------------------------------

NEVER_CUT = {"t5"}  # and PLaMo-3 where there are no two spaces


def spm_vocabulary(tokens: list[str]) -> Vocabulary:
    """Those of a file, with other tokens, all of one score."""
    texts = ["<unk>", *BYTE_TOKENS, *tokens]
    made = make_vocabulary(
        texts, attributes=dict.fromkeys(BYTE_TOKENS, BYTE), model="llama", special_ids={"unk": 0}
    )
    entry = opened()["spm"].vocabulary.pre_tokenizer
    return made._replace(pre="", pre_tokenizer=entry, scores=array("f", bytes(4 * len(texts))))


def answer(tokenizer: Tokenizer, some: list[bytes], flag: bool) -> tuple[list[int], int, list[int]] | str:
    """Of texts that go on from each other, the ids, how many words, and where tokens end; or that a byte has none."""
    ids, words, ends, at = [], 0, [], 0
    for text in some:
        flags = {"add_special": False, "parse_special": flag, "continues": at > 0}
        try:
            found, offsets = tokenizer.encode_with_offsets(text, **flags)
        except ValueError as error:
            return str(error)
        assert tokenizer.encode(text, **flags) == found == tokenizer.encode_to_numpy(text, **flags).tolist()
        assert tokenizer.count(text, **flags) == len(found)
        ids += found
        ends += [at + end for _, end in offsets]
        if at == 0 or not tokenizer.vocabulary.tokenizer_model.is_one_word:
            words += tokenizer.count_words(text)
        at += len(text)
    return ids, words, ends


def without_words(answered: tuple[list[int], int, list[int]] | str) -> Any:
    return answered if isinstance(answered, str) else answered[::2]


@pytest.mark.parametrize("model", ["llama", "bert", "rwkv", "plamo2", "plamo3", "t5"])
def test_chunks_that_go_on_from_each_other_have_the_ids_of_the_whole(model: str) -> None:
    cuts = 0
    for name, tokenizer in opened().items():
        if tokenizer.model != model:
            continue
        text = odd_text(name, special_texts(tokenizer)) + b" \xf0ab c \xe2\x96\x81 d\xf0 e" * 9
        for data in (text, text.decode("utf-8", "ignore").encode()):
            for flag in (True, False):
                for between_words in (True, False):
                    how = {"continues": True, "between_words": between_words}
                    found = list(chunks_of_stream(io.BytesIO(data), [tokenizer], flag, 24, **how))
                    assert b"".join(found) == data
                    ours, whole = answer(tokenizer, found, flag), answer(tokenizer, [data], flag)
                    if not between_words:  # words may end at special tokens
                        ours, whole = without_words(ours), without_words(whole)
                    assert ours == whole, name
                    cuts += (len(found) - 1) * between_words
    assert (cuts == 0) == (model in NEVER_CUT)


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_a_text_that_goes_on_has_no_space_before_it(engine: Any) -> None:
    tokenizer = Tokenizer(opened()["spm"].vocabulary, engine)
    ids = tokenizer.encode("hello", add_special=False)
    more = tokenizer.encode(" world", add_special=False, continues=True)
    assert ids + more == tokenizer.encode("hello world", add_special=False)


@pytest.mark.skipif(native is None, reason="the reference engine has no places")
@pytest.mark.parametrize("model", ["spm", "wpm"])
def test_the_beginning_is_no_place_to_cut(model: str) -> None:
    tokenizer = Tokenizer(opened()[model].vocabulary)
    assert (
        tokenizer.find_split_point(b"hello world, hello", 0)
        == tokenizer.find_split_point(b"hello world, hello", 1)
        < 18
    )


@pytest.mark.parametrize("name", ["spm", "nomic-bert-moe", "rwkv", "wpm", "plamo2", "plamo3"])
@pytest.mark.parametrize("text", ["", "world", " world", "world</s>world", "</s>world", b" \xff"])
def test_both_engines_go_on_alike(name: str, text: str | bytes) -> None:
    tokenizer = opened()[name]
    reference = Tokenizer(tokenizer.vocabulary, "reference")
    assert tokenizer.encode(text, continues=True) == reference.encode(text, continues=True)
    assert tokenizer.count(text, continues=True) == reference.count(text, continues=True)
    assert tokenizer.encode_ordinary(text, continues=True) == reference.encode_ordinary(text, continues=True)
    assert tokenizer.encode_to_numpy(text, continues=True).tolist() == reference.encode(text, continues=True)
    found = reference.encode_with_offsets(text, continues=True)
    assert tokenizer.encode_with_offsets(text, continues=True) == found
    for each in (tokenizer, reference):
        arrays = each.encode_with_offsets_to_numpy(text, continues=True)
        assert (arrays[0].tolist(), list(map(tuple, arrays[1].tolist()))) == found


@pytest.mark.parametrize(
    ("tokens", "text", "expected"),
    [
        (["a", "b"], b"aaaaaaaa bbbbbbb aaaa", [b"aaaaaaaa", b" bbbbbbb", b" aaaa"]),
        (
            ["a", "a\u2581"],
            b"aaaaaaaa bbbb aaaa",
            [b"aaaaaaaa bbbb", b" aaaa"],
        ),  # something may be merged across
        (["a"], "aaaaaaaa\u2581 bbbb  cc".encode(), ["aaaaaaaa\u2581 bbbb".encode(), b"  cc"]),
        (["a"], b"aaaa\xf0abc def ghi jkl", [b"aaaa\xf0abc def ghi", b" jkl"]),  # one could be in a character
        (["a"], b"aaaabbbbcccc\ndddd", [b"aaaabbbbcccc\ndddd"]),
    ],
)
def test_where_texts_of_spm_are_cut(tokens: list[str], text: bytes, expected: list[bytes]) -> None:
    tokenizer = Tokenizer(spm_vocabulary(tokens))
    places = SplitPoints(tokenizer, parse_special=True, continues=True)
    found, at = [0], 1
    while (at := places.next(text, at)) < len(text):
        found.append(at)
        at += 1
    assert [text[first:last] for first, last in zip(found, [*found[1:], None])] == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [["count", "--json"], ["tokenize", "--ids", "-f"], ["tokenize", "--json", "-f"]]
)
def test_commands_take_no_more_memory_for_a_longer_text(command: list[str], tmp_path: Path) -> None:
    peaks = []
    for times in (4, 80):  # the shorter one, too, fills more than one chunk
        path = tmp_path / f"{times}.txt"
        path.write_bytes(b"hello world, and so on\n" * 9000 * times)
        arguments = [
            command[0],
            "-m",
            str(ROOT / "fixtures" / "vocabs" / "spm.gguf"),
            *command[1:],
            str(path),
        ]
        ran = subprocess.run(
            [sys.executable, "-c", MEMORY, *arguments], capture_output=True, text=True, check=True
        )
        peaks.append(int(ran.stderr.split()[-1]))
    assert peaks[1] < peaks[0] + 6000  # kB; the text is 15 MB longer


# ---- a part of it traced --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["gpt-2", "llama-bpe", "gpt-4o", "superbpe", "gemma4", "whitespace", "jais-2"]
)
@pytest.mark.parametrize("flag", [True, False])
def test_a_survey_has_what_the_trace_has(name: str, flag: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surveys, "_PART", 32)
    monkeypatch.setattr(
        surveys,
        "chunks_of_stream",
        lambda stream, *how, size=256: chunks_of_stream(stream, *how, size=size),
    )
    tokenizer = tokenizer_as(name)
    vocabulary = tokenizer.vocabulary._replace(add_bos=flag, add_eos=flag)
    tokenizer = Tokenizer(vocabulary)
    flags = {"add_special": flag, "parse_special": flag}
    for data in (odd_text(name, special_texts(tokenizer))[:2500], b"", b"a"):
        whole = tokenizer.trace(data, **flags)
        count = len(whole.tokens)
        for number in {0, 1, 5, count // 3, count // 2, count - 2, count - 1} & set(range(count)):
            token = whole.tokens[number]
            wants = [Wanted(token=number)] + [Wanted(word=token.word)] * (token.word is not None)
            for wanted in wants:
                found = survey(tokenizer, io.BytesIO(data), wanted, **flags, fragments=9**9)
                before = found.before
                assert found.totals == survey_whole(whole).totals
                assert [each for each, _ in found.fragments] == list(whole.fragments)
                shifted = found.trace.tokens[number - before.tokens]
                place = (shifted.start + before.bytes, shifted.end + before.bytes)
                assert (shifted.id, *place) == (token.id, token.start, token.end)
                if token.word is not None and shifted.word is not None:
                    assert shifted.word + before.words == token.word
                    ours, theirs = found.trace.words[shifted.word], whole.words[token.word]
                    assert (ours.text, ours.merges) == (theirs.text, theirs.merges)


def test_a_survey_of_the_beginning() -> None:
    tokenizer = tokenizer_as("gpt-2")
    data = b"some words <|endoftext|>" * 5000
    whole = tokenizer.trace(data)
    found = survey(tokenizer, io.BytesIO(data), Wanted(21, 60))
    count = len(found.trace.tokens) - 1
    assert found.trace.tokens[:count] == whole.tokens[:count]
    assert found.trace.words[:20] == whole.words[:20]
    assert 60 <= count < 2000
    assert [each for each, _ in found.fragments] == list(whole.fragments[:20])
    assert found.totals == survey_whole(whole).totals


# ---- all of it, part by part ----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ONE_OF_EACH_FAMILY)
def test_parts_are_the_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The JSON has all there is: pieces of every stage too, however far they reach."""
    monkeypatch.setattr(long_text_parts, "_SIZE", 64)
    vocabulary = tokenizer_as(name).vocabulary
    for flag in (True, False):
        tokenizer = Tokenizer(vocabulary._replace(add_bos=flag, add_eos=flag))
        flags = {"add_special": flag, "parse_special": flag}
        odd = odd_text(f"parts of {name}", special_texts(tokenizer))
        for data in (odd[:700], b"some words 123 " * 30, b"") if flag else (odd[700:1400],):
            found = long_text_parts.Parts(tokenizer, io.BytesIO(data), **flags)
            assert "".join(of_parts(found)) == whole_json(tokenizer, data, flags)
            assert found.totals == survey_whole(tokenizer.trace(data, **flags)).totals


def whole_json(tokenizer: Tokenizer, data: bytes, flags: dict[str, bool]) -> str:
    return json_bytes(json_answer(tokenizer.trace(data, **flags).to_dict(), model=tokenizer.name)).decode()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt-2", "deepseek-llm", "whitespace"])
def test_views_of_parts_are_those_of_the_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_text_parts, "_SIZE", 64)
    tokenizer = tokenizer_as(name)
    data = odd_text(f"views of {name}", special_texts(tokenizer))[:1500]
    whole, found = tokenizer.trace(data), long_text_parts.Parts(tokenizer, io.BytesIO(data))
    assert len(list(found.parts)) > 5
    assert lines(found) == lines(whole)
    for words in (2, found.totals.words):
        assert "".join(html(found, words)) == "".join(html(whole, words))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt-2", "llama-bpe", "gemma4", "deepseek-llm"])
def test_why_a_piece_was_not_produced_piece_by_piece(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = tokenizer_as(name)
    data = odd_text(f"why not {name}", special_texts(tokenizer))[:2000]
    ids = tokenizer.encode(data)
    parted = {data[start : start + size] for start in range(0, 2000, 97) for size in (1, 2, 3)}
    asked = [*parted, *(tokenizer.token_to_piece(token) for token in ids[::40]), b"\n\n", b"<|endoftext|>"]
    reasons = set()
    for piece in filter(None, asked):
        answers = []
        for size in (32, 1 << 20):
            monkeypatch.setattr(searches, "_PIECE", size)
            answers.append(why_not(tokenizer, io.BytesIO(data), piece))
        by_pieces, at_once = (  # cuts are seen only near the place
            each._replace(places=tuple(place._replace(cuts=(), sides=()) for place in each.places))
            for each in answers
        )
        assert by_pieces == at_once, piece
        reasons.add(at_once.reason)
    assert len(reasons) > 3


@pytest.mark.parametrize("piece", ["ome", "Some", "wordy", " othe"])
def test_only_where_a_piece_stands_is_the_text_traced(piece: str, monkeypatch: pytest.MonkeyPatch) -> None:
    traced: list[int] = []

    def trace_part(tokenizer: Tokenizer, text: bytes, *rest: bool, **flags: bool) -> Trace:
        traced.append(len(text))
        return real(tokenizer, text, *rest, **flags)

    real = searches.trace_part
    monkeypatch.setattr(searches, "trace_part", trace_part)
    for size in (1, 4):
        data = b"Some words, others too.\n" * ((size << 20) // 24) + b" some words of another kind" * 9
        why_not(tokenizer_as("gpt-2"), io.BytesIO(data), piece)
    assert sum(traced) < 1 << 17


@pytest.mark.parametrize("name", ["hybriddna", "gpt-2"])
def test_escapes_in_a_text_that_is_taken_as_a_whole(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    model = ROOT / "fixtures" / "vocabs" / f"{name}.gguf" if name == "hybriddna" else GPT2
    assert main(["explain", "-m", str(model), "-e", r"a\nb"]) == 0
    assert "3 bytes" in capfd.readouterr().out


# ---- memory ---------------------------------------------------------------------------------------------


def peak(arguments: list[str | Path]) -> int:
    """The most memory that a command had, in KiB."""
    command = [sys.executable, "-c", MEMORY, *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=120, check=True)
    return int(done.stderr.split()[-1])


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems count memory in other ways")
@pytest.mark.parametrize(
    "command",
    [
        ["tokenize", "--json", "-f"],
        ["tokenize", "--ids", "-f"],
        ["tokenize", "-f"],
        ["count"],
        ["stats"],
        ["explain", "-f"],
        ["explain", "--why-not", "ome", "-f"],
        ["explain", "--why-not", " words", "-f"],
        ["explain", "--json", "--word", "9", "-f"],
    ],
    ids=" ".join,
)
def test_memory_does_not_grow_with_the_text(command: list[str], tmp_path: Path) -> None:
    line = "Some words, naïve ones, 12345 of them.\n".encode()
    assert growth(command, line, (1 << 20, 12 << 20), tmp_path) < 6 << 10


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems count memory in other ways")
@pytest.mark.parametrize("how", ["--json", "--all"])
def test_memory_does_not_grow_with_what_explain_shows(how: str, tmp_path: Path) -> None:
    """Each of these tokens took a kilobyte and more while all of them were traced at once."""
    line = b"<|endoftext|>" * 40 + " naïve words\n".encode()
    assert growth(["explain", how, "-f"], line, (1 << 14, 9 << 14), tmp_path) < 6 << 10


def growth(command: list[str], line: bytes, sizes: tuple[int, int], folder: Path) -> int:
    """How much more memory, in KiB, a command takes for the larger one of two texts of a line again and again."""
    peaks = []
    for size in sizes:
        path = folder / f"{size}.txt"
        path.write_bytes(line * (size // len(line)))
        peaks.append(peak([*command, path]))
    return peaks[1] - peaks[0]
