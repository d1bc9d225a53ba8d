"""Measuring a corpus: numbers as naive counting gives them, read in parts that change no id, by every grouping."""

from __future__ import annotations

import gzip
import importlib
import io
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Any

import pytest
from conftest import GPT2
from hypothesis import given
from hypothesis import strategies as st
from synthetic import (
    bounded,
    broken_bytes,
    byte_tokens,
    gpt2_vocabulary,
    make_vocabulary,
    tokenizer_as,
)

import ggufbpe
from ggufbpe import Tokenizer, stats
from ggufbpe._util.progress import Progress
from ggufbpe._util.utf8 import is_utf8
from ggufbpe.cli import _output, _progress, main
from ggufbpe.data.corpora.records import CorpusError
from ggufbpe.data.statistics import compare_corpus, measure
from ggufbpe.data.statistics.compare_corpus import Measures, Stats, Usage
from ggufbpe.data.statistics.plots import plot
from ggufbpe.models.vocabulary import CONTROL, UNUSED
from ggufbpe.tokenizer.chunking import chunks_of_stream
from ggufbpe.tokenizer.inputs import tokenizers_of

NOTE = "ggufbpe: no model given (-m); using the GPT-2 vocabulary that comes with ggufbpe\n"


def tiny() -> Tokenizer:
    """A token for each byte, whose id is the byte; "the" (258, by way of "th"), "é" (259), and two no text gives."""
    tokens = [*byte_tokens(), "th", "x", "the", "Ã©", "<s>", "reserved"]
    tokens[257] = "<never>"
    return Tokenizer(
        make_vocabulary(
            tokens,
            merges=["t h", "th e", "Ã ©"],
            attributes={"<s>": CONTROL, "reserved": UNUSED},
            pre="gpt-2",
        )
    )


def one(found: Stats) -> Measures:
    [row] = found.total
    return row


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts are read in parts of some 64 bytes."""
    monkeypatch.setattr(compare_corpus, "chunks_of_stream", partial(chunks_of_stream, size=64))


# ---- the numbers ----------------------------------------------------------------------------------------


def test_numbers_of_a_text_by_hand() -> None:
    row = one(stats(tiny(), ["the thé\nè"]))
    # the| |th|é|\n|Ã|¨: "è" is two bytes, which no merge joins
    assert (row.texts, row.bytes, row.characters, row.words, row.undecodable_bytes) == (1, 11, 9, 3, 0)
    assert (row.tokens, row.pieces) == (7, 4)  # "the", " thé", "\n", "è"
    assert (row.single_byte_tokens, row.partial_tokens, row.used_tokens) == (4, 2, 7)
    assert row.bytes_per_token == 11 / 7
    assert row.characters_per_token == 9 / 7
    assert row.tokens_per_word == 7 / 3
    assert row.tokens_per_piece == 7 / 4
    assert row.single_byte_share == 4 / 7
    assert row.partial_share == 2 / 7


def test_usage_of_the_vocabulary() -> None:
    [usage] = stats(tiny(), ["the the", "<s>"]).usage
    assert (usage.vocab_size, usage.text_tokens, usage.used_tokens, usage.unused_tokens) == (262, 260, 2, 258)
    assert usage.counts.shape == (262,)
    assert {token: int(usage.counts[token]) for token in (258, 32, 260, 0)} == {258: 2, 32: 1, 260: 1, 0: 0}
    assert set(usage.unused_ids) == set(range(260)) - {258, 32}


def test_special_tokens_are_plain_text_on_demand() -> None:
    assert one(stats(tiny(), ["<s>"])).tokens == 1
    assert one(stats(tiny(), ["<s>"], parse_special=False)).tokens == 3


@pytest.mark.parametrize(
    ("add_bos", "add_eos", "tokens"), [(True, True, 3), (True, False, 2), (False, True, 1), (False, False, 1)]
)
def test_what_llama_tokenize_adds_to_a_text_counts(add_bos: bool, add_eos: bool, tokens: int) -> None:
    tokenizer = Tokenizer(gpt2_vocabulary()._replace(add_bos=add_bos, add_eos=add_eos))
    found = stats(tokenizer, ["Hello"])
    assert (one(found).tokens, one(found).used_tokens, found.usage[0].counts.sum()) == (tokens, 1, tokens)
    assert one(stats(tokenizer, ["Hello"], add_bos=False)).tokens == 1


def test_count_and_stats_count_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One reader for both: compressed files, JSON lines, and BOS with each text."""
    model = tmp_path / "bos.gguf"
    assert main(["fix", str(GPT2), "--set", "tokenizer.ggml.add_bos_token=true", "-o", str(model)]) == 0
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    lines = b'{"text": "Hello world"}\n\n{"text": "a"}\n{"none": 1}\n'
    files = {
        "a.txt": b"Hello\xff",
        "b.txt.gz": gzip.compress(b"zipped " * 99),
        "c.jsonl": lines,
        "empty": b"",
    }
    files |= {"d.ndjson.gz": gzip.compress(lines), "bad.gz": b"no gzip", ".hidden": b"x", "binary": b"\0"}
    for name, data in files.items():
        (corpus / name).write_bytes(data)
    capsys.readouterr()
    texts = [files["a.txt"], b"zipped " * 99, *["Hello world", "a"] * 2, b""]
    tokenizer = Tokenizer.from_gguf(GPT2)
    without_bos = sum(len(tokenizer.encode(text, add_special=False)) for text in texts)
    for flags in ([], ["--no-bos"]):
        found = {}
        for command in ("count", "stats"):
            assert main([command, "-m", str(model), "--json", *flags, str(corpus)]) == 2
            found[command] = json.loads(capsys.readouterr().out)
        counted, measured = found["count"], found["stats"]
        assert counted["total"]["tokens"] == measured["total"][0]["tokens"] == without_bos + 7 * (not flags)
        assert {c["name"]: (c["tokens"], c["bytes"], c["characters"]) for c in counted["files"]} == {
            row["group"]: (row["tokens"], row["bytes"], row["characters"]) for row in measured["rows"]
        }
        assert counted["skipped"] == measured["skipped"] == {"binary": 1, "hidden": 1}
        assert counted["errors"] == measured["errors"]
        assert len(counted["errors"]) == 3


@bounded(60)
@given(st.lists(broken_bytes, max_size=4))
def test_numbers_are_those_of_naive_counting(parts: list[bytes]) -> None:
    tokenizer = tokenizer_as("llama-bpe")
    row = one(stats(tokenizer, [io.BytesIO(part) for part in parts]))
    ids = [tokenizer.encode(part, add_special=False) for part in parts]
    whole = list(chain(*ids))
    pieces = [tokenizer.token_to_piece(token, special=False) for token in whole]
    assert row.bytes == sum(map(len, parts))
    assert row.tokens == len(whole)
    assert row.pieces == sum(len(tokenizer.pre_tokenize(part)) for part in parts)
    assert row.single_byte_tokens == sum(len(piece) == 1 for piece in pieces)
    assert row.partial_tokens == sum(not is_utf8(piece) for piece in pieces)
    assert row.used_tokens == len({t for t in whole if not tokenizer.vocabulary.attributes[t] & CONTROL})


@pytest.mark.parametrize(
    ("data", "characters", "undecodable"),
    [
        (b"a\xffb", 3, 1),
        (b"\xe2\x82", 2, 2),
        ("\ufffd".encode(), 1, 0),
        ("\ufffd".encode() + b"\xff\xef\xbf", 4, 3),
        (b"\xed\xa0\x80", 1, 0),  # a surrogate, which llama.cpp decodes
    ],
)
def test_bytes_that_are_not_utf8_are_counted(data: bytes, characters: int, undecodable: int) -> None:
    row = one(stats(tiny(), [io.BytesIO(data)]))
    assert (row.characters, row.undecodable_bytes, row.tokens > 0) == (characters, undecodable, True)


@pytest.mark.parametrize("corpus", [[], [""], {"de": []}, {"de": ""}])
def test_nothing_to_measure_has_no_ratios(corpus: Any) -> None:
    row = one(stats(tiny(), corpus))
    assert (row.tokens, row.bytes, row.words) == (0, 0, 0)
    ratios = {name: value for name, value in row.to_dict().items() if "per" in name or "share" in name}
    assert len(ratios) == 6
    assert set(ratios.values()) == {None}


def test_total_is_the_sum_but_for_what_is_used_twice() -> None:
    found = stats(tiny(), ["the the", "the a"])
    first, second = found.rows
    total = one(found)
    assert [first.used_tokens, second.used_tokens, total.used_tokens] == [2, 3, 3]
    assert total.tokens == first.tokens + second.tokens == 6
    assert total.texts == 2


def test_several_tokenizers_read_the_same_texts() -> None:
    found = stats({"small": tiny(), "large": GPT2}, ["the cat", "é"], by="total")
    assert found.tokenizers == ["small", "large"]
    assert [(row.group, row.tokenizer, row.tokens) for row in found.rows] == [
        ("total", "small", 6),
        ("total", "large", 3),
    ]
    assert found.total == found.rows


def test_result_is_json() -> None:
    found = json.loads(json.dumps(stats([GPT2], ["Hello world, it's naïve"]).to_dict()))
    assert list(found) == ["tokenizers", "rows", "total", "skipped"]
    assert found["tokenizers"] == [
        {
            "name": "gpt2",
            "pre": "gpt-2",
            "vocab_size": 50257,
            "text_tokens": 50256,
            "used_tokens": 6,
            "unused_tokens": 50250,
        }
    ]
    [row] = found["rows"]
    assert row["tokens"] == 6  # Hello| world|,| it|'s| naïve
    assert row["tokens_per_word"] == 1.5


# ---- long texts in parts --------------------------------------------------------------------------------


@pytest.mark.usefixtures("small_chunks")
def test_numbers_do_not_depend_on_the_parts(tmp_path: Path) -> None:
    path = tmp_path / "code.py"
    path.write_bytes(Path(__file__).read_bytes()[:9000])
    tokenizer = tokenizer_as("llama-bpe")
    row = one(stats(tokenizer, [path]))
    text = path.read_text()
    assert (row.texts, row.words, row.characters) == (1, len(text.split()), len(text))
    assert row.tokens == len(tokenizer.encode(text, add_special=False))
    assert row.pieces == len(tokenizer.pre_tokenize(text))


@pytest.mark.usefixtures("small_chunks")
def test_a_word_that_is_cut_is_one_word() -> None:
    row = one(stats(tiny(), ["a,b;" * 1000 + " " + "b" * 4000]))
    assert (row.words, row.tokens, row.pieces) == (2, 8001, 4001)


# ---- what is read, and by what it is grouped -------------------------------------------------------------


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    files = {
        "de/eins.txt": "Guten Tag",
        "de/tief/zwei.MD": "Danke",
        "fr/un.txt": "Bonjour",
        "top.txt": "x",
        ".hidden/no.txt": "no",
        "fr/binary.bin": "\0",
    }
    for name, text in files.items():
        path = tmp_path / "corpus" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "corpus"


@pytest.mark.parametrize(
    ("by", "groups"),
    [
        ("file", {"de/eins.txt": 9, "de/tief/zwei.MD": 5, "fr/un.txt": 7, "top.txt": 1}),
        ("folder", {"de": 14, "fr": 7, "corpus": 1}),
        ("extension", {".txt": 17, ".md": 5}),
        ("total", {"total": 22}),
    ],
)
def test_groups(by: str, groups: dict[str, int], corpus: Path) -> None:
    found = stats(tiny(), [corpus], by=by)
    named = {
        row.group.removeprefix(f"{corpus}{os.sep}").replace(os.sep, "/"): row.bytes for row in found.rows
    }
    assert named == groups
    assert one(found).bytes == 22
    assert found.skipped == {"binary": 1, "hidden": 1}


def test_folders_that_are_named_themselves(corpus: Path) -> None:
    found = stats(tiny(), [corpus / "de", corpus / "fr" / "un.txt", "a text"], by="folder")
    assert {row.group: row.bytes for row in found.rows} == {"de": 9, "tief": 5, "fr": 7, "text 3": 6}


def test_a_mapping_says_the_groups(corpus: Path) -> None:
    parts: Mapping[str, Any] = {
        "German": [corpus / "de", "Hallo"],
        "French": corpus / "fr",
        "none": io.BytesIO(b"x"),
    }
    assert {row.group: (row.texts, row.bytes) for row in stats(tiny(), parts).rows} == {
        "German": (3, 19),
        "French": (1, 7),
        "none": (1, 1),
    }


def test_files_without_a_suffix_have_a_group_too(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("all:")
    assert stats(tiny(), [tmp_path], by="extension").groups == ["(none)"]


def test_empty_files_are_texts(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_bytes(b"")
    [row] = stats(tiny(), [tmp_path]).rows
    assert (row.texts, row.bytes, row.tokens) == (1, 0, 0)


def json_lines(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_json_lines_by_a_field(tmp_path: Path) -> None:
    path = json_lines(
        tmp_path / "wiki.jsonl",
        {"text": "Hallo", "lang": "de"},
        {"text": "Hi", "lang": "en"},
        {"text": "Tag", "lang": "de"},
        {"text": "?", "lang": None},
        {"text": "!", "lang": 7},
    )
    found = stats(tiny(), [path], by_field="lang")
    assert {row.group: (row.texts, row.bytes) for row in found.rows} == {
        "de": (2, 8),
        "en": (1, 2),
        "(no lang)": (1, 1),
        "7": (1, 1),
    }


def test_each_line_is_a_text_of_its_own(tmp_path: Path) -> None:
    """Not "t" and "h" that merge across lines; and a blank line is none."""
    path = tmp_path / "two.ndjson"
    path.write_text('{"text": "t"}\n\n{"text": "h"}')
    row = one(stats(tiny(), [path]))
    assert (row.texts, row.tokens) == (2, 2)


def test_another_field_makes_every_file_json_lines(tmp_path: Path) -> None:
    path = json_lines(tmp_path / "data.txt", {"body": "the", "text": "no"})
    assert one(stats(tiny(), [path], field="body")).tokens == 1


def test_lone_surrogates_and_broken_bytes_in_json(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(b'{"text": "\\ud800"}\n{"text": "\xff"}\n')
    row = one(stats(tiny(), [path]))
    assert (row.texts, row.bytes, row.undecodable_bytes) == (2, 4, 1)


def test_lines_without_a_text_are_reported_once_a_file(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"text": "a"}\nnot json\n[1]\n{"text": 5}\n{"text": "b"}\n')
    reported: list[tuple[str, Exception]] = []
    found = stats(tiny(), [path], report=lambda name, error: reported.append((name, error)))
    assert one(found).texts == 2
    [(name, error)] = reported
    assert name == str(path)
    assert "line 2: not JSON" in str(error)
    assert "(the first of 3 lines)" in str(error)


def test_compressed_files_go_by_their_names(tmp_path: Path) -> None:
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"the the"))
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(b'{"text": "the"}\n'))
    found = stats(tiny(), [tmp_path], by="extension")
    assert {row.group: row.tokens for row in found.rows} == {".txt": 3, ".jsonl": 1}


@pytest.mark.parametrize("name", ["a.txt.gz", "a.jsonl.gz"])
@pytest.mark.parametrize("damage", [b"no gzip", gzip.compress(b"abc" * 99)[:-9]], ids=["other", "cut"])
def test_broken_compression_is_reported(name: str, damage: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(damage)
    with pytest.raises((CorpusError, OSError), match="gz"):
        stats(tiny(), [tmp_path / name])


def test_without_zstandard_it_says_what_to_install(
    in_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    Path("a.txt.zst").write_bytes(b"(\xb5/\xfd")
    assert main(["stats", "a.txt.zst"]) == 2
    error = capsys.readouterr().err.removeprefix(NOTE)
    assert error.count("a.txt.zst") == 1
    assert "pip install 'ggufbpe[zstd]'" in error


def test_what_cannot_be_read_is_raised_or_reported(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"absent\.txt"):
        stats(tiny(), [tmp_path / "absent.txt"])
    reported: list[str] = []
    corpus = [tmp_path / "absent.txt", "the"]
    found = stats(tiny(), corpus, report=lambda name, error: reported.append(name))
    assert (reported, one(found).tokens) == ([str(tmp_path / "absent.txt")], 1)


def test_progress_goes_from_none_to_all(corpus: Path) -> None:
    seen: list[Progress] = []
    stats(tiny(), [corpus], progress=seen.append)
    done = [told.done for told in seen]
    assert done == sorted(done)
    assert (done[0], done[-1]) == (0, 22)
    assert {(told.step, told.total, told.unit) for told in seen} == {("read", 22, "bytes")}


def test_streams_of_the_caller_stay_open() -> None:
    stream = io.BytesIO(b"the")
    stats(tiny(), [stream])
    assert not stream.closed


@pytest.mark.parametrize("kind", ["path", "stream"])
def test_a_corpus_may_be_one_path_or_stream(kind: str, tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"the")
    forms = {"path": tmp_path / "text", "stream": io.BytesIO(b"the")}
    assert stats(tiny(), forms[kind]).total[0].bytes == 3


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (lambda: stats(tiny(), 5), TypeError, "a sequence"),  # type: ignore[arg-type]
        (lambda: stats(tiny(), "abc"), TypeError, r"a list, \['a text'\] or .*, not str"),  # type: ignore[arg-type]
        (lambda: stats(tiny(), b"abc"), TypeError, "a list, .*, not bytes"),  # type: ignore[arg-type]
        (lambda: stats(tiny(), [5]), TypeError, "not int"),
        (lambda: stats(tiny(), [io.StringIO("x")]), TypeError, "binary mode"),
        (lambda: stats([], ["x"]), ValueError, "no model"),
        (lambda: stats(5, ["x"]), TypeError, "models must be an iterable of models, not int"),  # type: ignore[arg-type]
        (
            lambda: stats(tiny(), ["x"], by="size"),
            ValueError,
            "by must be one of file, folder, extension, total",
        ),
        (lambda: stats("absent.gguf", ["x"]), FileNotFoundError, "absent"),
    ],
)
def test_wrong_arguments(wrong: Callable[[], object], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        wrong()


def test_tokenizers_are_named_by_their_pre_tokenizer() -> None:
    assert list(tokenizers_of([tiny(), tiny()])) == ["gpt-2", "gpt-2 (2)"]


def test_the_function_keeps_its_name_when_modules_of_that_name_are_imported() -> None:
    importlib.import_module("ggufbpe.cli.stats")
    assert ggufbpe.stats is compare_corpus.stats


# ---- the command ----------------------------------------------------------------------------------------


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_table_of_one_tokenizer(in_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.txt").write_text("Hello world, it's naïve")
    Path("empty.txt").write_text("")
    assert main(["stats", "a.txt", "empty.txt"]) == 0
    out, err = capsys.readouterr()
    assert out == (
        "bytes  tokens  bytes/token  chars/token  tokens/word  tokens/piece  1-byte  partial  used  text\n"
        "   24       6         4.00         3.83         1.50          1.00   16.7%     0.0%     6  a.txt\n"
        "    0       0            -            -            -             -       -        -     0  empty.txt\n"
        "   24       6         4.00         3.83         1.50          1.00   16.7%     0.0%     6  total\n"
        "\n"
        "vocabulary  for text  used     never used  tokenizer\n"
        "     50257     50256     6  50250 (99.9%)  gpt2\n"
    )
    assert err == NOTE


def test_table_of_two_tokenizers(in_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.txt").write_text("Hello world")
    shutil.copy(GPT2, "other.gguf")
    assert main(["stats", "-m", str(GPT2), "-m", "other.gguf", "a.txt"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[-2:] for line in lines[:3]] == [
        ["tokenizer", "text"],
        ["gpt2", "a.txt"],
        ["other", "a.txt"],
    ]
    assert [line.split()[1] for line in lines[1:3]] == ["2", "2"]
    assert [line.split()[-1] for line in lines[4:]] == ["tokenizer", "gpt2", "other"]


def test_json_and_csv(in_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a,b.txt").write_text("Hello")
    assert main(["stats", "--json", "a,b.txt", "absent"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert found["errors"] == [{"name": "absent", "error": "No such file or directory"}]
    assert found["rows"][0]["tokens"] == found["total"][0]["tokens"] == 1
    assert main(["stats", "--csv", "a,b.txt"]) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head.startswith("group,tokenizer,texts,bytes,characters,words,")
    assert row.startswith('"a,b.txt",gpt2,1,5,5,1,0,1,1,0,0,1,5.0,')


def test_stdin(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Hello \xff")))
    assert main(["stats", "--stdin"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[1].split()[:2] == ["7", "2"]
    assert out.splitlines()[1].endswith("  (stdin)")
    assert "1 byte is not UTF-8" in err


def test_what_is_left_out_is_said(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stats", str(corpus), "--by", "total"]) == 0
    assert "skipped in directories: 1 binary, 1 hidden" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["stats"], "nothing to measure"),
        (["stats", "--json", "--csv", "x"], "not both"),
        (["stats", "--plot", "a.jpg", "x"], "a.jpg: a plot is a .png or .svg file"),
        (["stats", "--plot", "no/such/a.png", "x"], "no/such"),
        (["stats", "--by", "language", "x"], "invalid choice"),
        (["stats", "-m", "absent.gguf", "x"], "absent.gguf: No such file or directory"),
    ],
)
def test_errors(
    arguments: list[str], words: str, in_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert words in err
    assert "Traceback" not in err


def test_a_text_is_not_drawn_over(in_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.svg").write_text("Hello")
    assert main(["stats", "./a.svg", "--plot", "a.svg", "--force"]) == 2
    assert "'a.svg' is the input file; give another name" in capsys.readouterr().err
    assert Path("a.svg").read_text() == "Hello"


def test_names_of_files_cannot_steer_the_terminal(
    in_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("a\x1b[31m.txt").write_text("Hello")
    for flag in ([], ["--csv"], ["--json"]):
        assert main(["stats", *flag, "."]) == 0
        out = capsys.readouterr().out
        assert "\x1b" not in out
        assert "[31m" in out


@pytest.mark.parametrize("columns", [40, 60, 100])
def test_tables_fit_the_terminal_and_lack_nothing(
    columns: int, corpus: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Names are given from here: a long one is folded, and a digit of it that begins a line would be read as a number.
    monkeypatch.chdir(corpus.parent)
    Path("model.gguf").write_bytes(GPT2.read_bytes())
    arguments = ["stats", "-m", "model.gguf", "-m", "model.gguf", "corpus"]
    assert main(arguments) == 0
    piped = capsys.readouterr().out
    monkeypatch.setattr(_output, "terminal_width", lambda: columns)
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= columns < max(map(len, piped.splitlines()))
    numbers = re.compile(r"^ *(?:-|\d[\d.%]*)(?: +(?:-|\d[\d.%]*))*(?= )", re.MULTILINE)
    assert sorted(" ".join(numbers.findall(shown)).split()) == sorted(
        " ".join(numbers.findall(piped)).split()
    )


def test_progress_bar_goes_away(
    corpus: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_output, "error_width", lambda: 60)
    monkeypatch.setattr(_progress, "INTERVAL", 0.0)
    monkeypatch.setattr(_progress, "DELAY", 0.0)
    assert main(["stats", str(corpus)]) == 0
    drawn = capsys.readouterr().err.removeprefix(NOTE).split("\r")
    assert "41%" in drawn[2]
    assert "zwei.MD" in "".join(drawn)
    assert drawn[-1].startswith("\x1b[K")
    assert max(map(len, drawn[1:-1])) <= 60 + len("\x1b[K")


def test_interrupted(
    in_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    Path("a.txt").write_text("Hello")
    monkeypatch.setattr(measure.Measurer, "add", interrupt)
    assert main(["stats", "--plot", "plot.png", "a.txt"]) == 130
    assert capsys.readouterr() == ("", NOTE)
    assert os.listdir() == ["a.txt"]


def test_help_needs_neither_numpy_nor_matplotlib() -> None:
    program = (
        "import sys; from ggufbpe.cli import main; main(['stats', '--help']);"
        "print([m for m in ('numpy', 'matplotlib', 'gguf') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "[]"


# ---- plots ----------------------------------------------------------------------------------------------


def made_up(groups: list[str], tokenizers: list[str]) -> Stats:
    """Numbers without texts, larger from group to group."""
    import numpy as np

    rows = [
        Measures(group, name, 1, size, size, 9, 0, 10, 9, 1, 0, 7)
        for size, group in enumerate(groups, 100)
        for name in tokenizers
    ]
    usage = [Usage(name, "gpt-2", 50, np.ones(50, np.int64), np.ones(50, np.bool_)) for name in tokenizers]
    return Stats(usage, rows, rows[: len(tokenizers)], {})


def svg_texts(path: Path) -> list[str]:
    return [
        (element.text or "").strip()
        for element in ElementTree.parse(path).iter()
        if element.tag.endswith("}text")
    ]


def test_svg_has_the_numbers_and_names_as_text(tmp_path: Path) -> None:
    path = tmp_path / "plot.svg"
    stats({"small": tiny(), "large": GPT2}, {"$the$": "the the", "中文": "é"}).plot(path)
    found = svg_texts(path)
    assert {"$the$", "中文", "small", "large", "bytes per token"} <= set(found)
    assert found.count("2.33") == 1  # bytes per token of "the the" in `small`
    assert found.count("3.50") == 1  # and in `large`


@pytest.mark.slow
@pytest.mark.parametrize(("groups", "names"), [(1, 1), (1, 12), (3, 1), (3, 12), (2, 70)])
def test_png_of_any_number_of_bars(groups: int, names: int, tmp_path: Path) -> None:
    path = tmp_path / "plot.PNG"
    found = made_up([f"{i}/{'long' * 40}.txt" for i in range(groups)], [f"model-{i}" for i in range(names)])
    plot(found, path, theme="dark")
    assert path.read_bytes().startswith(b"\x89PNG\r\n")
    assert [entry.name for entry in tmp_path.iterdir()] == ["plot.PNG"]


@pytest.mark.slow
@pytest.mark.parametrize("tokenizers", [1, 2, 12])
def test_sixty_files_fit_a_screen_or_two(tokenizers: int, tmp_path: Path) -> None:
    path = tmp_path / "plot.png"
    names = [f"corpus/{'long' * 20}/chapter-{i}.txt" for i in range(60)]
    plot(made_up(names, [f"model-{i}" for i in range(tokenizers)]), path)
    width, height = struct.unpack(">II", path.read_bytes()[16:24])  # of the header of a PNG
    assert (width <= 2000, height <= 2600) == (True, True)


def test_of_many_groups_the_largest_are_drawn_and_it_says_so(tmp_path: Path) -> None:
    path = tmp_path / "plot.svg"
    plot(made_up([f"file-{i}" for i in range(300)], ["a"]), path)
    found = svg_texts(path)
    assert [text for text in found if text.startswith("file-")] == [f"file-{i}" for i in range(240, 300)]
    assert "the 60 of 300 with the most bytes" in found


def test_groups_without_text_are_not_drawn_and_it_says_so(tmp_path: Path) -> None:
    path = tmp_path / "plot.svg"
    stats(tiny(), {"de": "the", "fr": "a", "empty": ""}).plot(path)
    assert "empty" not in svg_texts(path)
    assert "1 without text left out" in svg_texts(path)


def test_the_same_numbers_give_the_same_file(tmp_path: Path) -> None:
    found = made_up(["a", "b"], ["x", "y"])
    for suffix in ("svg", "png"):
        for name in ("one", "two"):
            plot(found, tmp_path / f"{name}.{suffix}")
        assert (tmp_path / f"one.{suffix}").read_bytes() == (tmp_path / f"two.{suffix}").read_bytes()


def test_themes_differ_in_background(tmp_path: Path) -> None:
    found = made_up(["a"], ["x"])
    plot(found, tmp_path / "light.svg")
    plot(found, tmp_path / "dark.svg", theme="dark")
    assert "#0d1117" in (tmp_path / "dark.svg").read_text()
    assert "#0d1117" not in (tmp_path / "light.svg").read_text()


def test_settings_of_matplotlib_are_not_touched(tmp_path: Path) -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    plot(made_up(["a"], ["x"]), tmp_path / "plot.svg")
    assert dict(matplotlib.rcParams) == before


def test_a_plot_that_fails_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.figure import Figure

    def fail(self: object, file: IO[bytes], **_: object) -> None:
        file.write(b"half")
        raise KeyboardInterrupt

    path = tmp_path / "plot.svg"
    path.write_text("old")
    monkeypatch.setattr(Figure, "savefig", fail)
    with pytest.raises(KeyboardInterrupt):
        plot(made_up(["a"], ["x"]), path)
    assert [(entry.name, entry.read_text()) for entry in tmp_path.iterdir()] == [("plot.svg", "old")]


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [("a.pdf", {}, "a .png or .svg file"), ("a.svg", {"theme": "blue"}, "a theme must be light or dark")],
)
def test_plots_that_there_are_not(name: str, options: dict[str, str], words: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=words):
        plot(made_up(["a"], ["x"]), tmp_path / name, **options)


def test_nothing_to_draw(in_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="no tokens"):
        stats(tiny(), [""]).plot("plot.svg")
    Path("empty.txt").write_text("")
    assert main(["stats", "--plot", "plot.svg", "empty.txt"]) == 0
    assert "nothing to draw" in capsys.readouterr().err
    assert os.listdir() == ["empty.txt"]


def test_without_matplotlib_the_command_says_what_to_install_before_it_reads(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, in_folder: Path
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["stats", "--plot", "plot.svg", "absent.txt"]) == 2
    err = capsys.readouterr().err
    assert "pip install 'ggufbpe[plot]'" in err
    assert "absent.txt" not in err


def test_command_draws(in_folder: Path) -> None:
    Path("a.txt").write_text("Hello")
    assert main(["stats", "--plot", "plot.svg", "--theme", "dark", "a.txt"]) == 0
    assert {"a.txt", "gpt2", "5.00"} <= set(svg_texts(Path("plot.svg")))
