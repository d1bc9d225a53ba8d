"""`ggufbpe train`: arguments, output and what is said when something is wrong."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from commands import Run, assert_error, posix_only, run, run_on_terminal, run_process
from conftest import ROOT

from ggufbpe import Tokenizer
from ggufbpe.cli._arguments import Parser
from ggufbpe.cli._help import help_texts
from ggufbpe.cli.train import add_arguments

__all__ = ["run"]  # the fixture


def first_lines(shown: str) -> list[str]:
    """The line of each merge, without its circumstances."""
    return [line for line in shown.splitlines() if not line.startswith(" ")]


TEXT = b"low lower lowest, new newer newest\n" * 3


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_bytes(TEXT)
    return path


def test_writes_a_vocabulary_and_says_what_it_is(run: Run, corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "vocab.gguf"
    result = run("train", corpus, "--vocab-size", "265", "--special", "<|endoftext|>", "-o", out)
    assert (result.code, result.err) == (0, "")
    assert result.text == f"wrote {out}: 265 tokens, 8 merges, learned from 8 distinct words\n"
    tok = Tokenizer.from_gguf(out)
    assert (tok.vocab_size, tok.pre, tok.add_bos, tok.eos_id) == (265, "gpt-2", False, 0)


def test_one_merge_and_one_word_are_singular(run: Run, tmp_path: Path) -> None:
    command = ("train", "-", "--vocab-size", "259", "--special", "<s>", "-o", tmp_path / "v.gguf")
    result = run(*command, stdin=b"ab")
    assert result.text.endswith(": 258 tokens, 1 merge, learned from 1 distinct word\n")
    assert "no pair is left after 1 merge: " in result.err


def test_one_token_is_singular(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"a")
    flags = ("--units", "chars", "--pre", "words", "--vocab-size", 3)
    result = run("train", tmp_path / "a.txt", *flags, "-o", tmp_path / "a.json")
    assert ": 1 token, 0 merges, " in result.text
    assert "the vocabulary has 1 token, not 3" in result.err


def test_standard_input_and_files_give_the_same(run: Run, corpus: Path, tmp_path: Path) -> None:
    one, other = tmp_path / "a.json", tmp_path / "b.json"
    assert run("train", corpus, "--vocab-size", "265", "-o", one).code == 0
    assert run("train", "-", "--vocab-size", "265", "-o", other, stdin=TEXT).code == 0
    assert one.read_bytes() == other.read_bytes()


def test_trace_needs_no_file(run: Run, corpus: Path) -> None:
    result = run("train", corpus, "--vocab-size", "258", "--trace", "--pre", "llama-bpe")
    assert (result.code, result.text) == (
        0,
        (
            "1. w + e = we, 12 times\n"
            "   cut now    Ġ·l·o·w·e·r ×3, Ġ·l·o·w·e·s·t ×3, Ġ·n·e·w·e·r ×3, Ġ·n·e·w·e·s·t ×3\n"
            "   runners-up e + w 9, l + o 9, n + e 9, o + w 9\n"
            "2. l + o = lo, 9 times\n"
            "   cut now    l·o·w ×3, Ġ·l·o·we·r ×3, Ġ·l·o·we·s·t ×3\n"
            "   runners-up n + e 9, Ġ + n 9, e + we 6, o + we 6\n"
            "   tie        2 other pairs are as frequent; this one goes first, since its left token l has the id 75, "
            "which is lower than that of n, 77\n"
        ),
    )


def test_trace_is_safe_for_a_terminal(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\x1b[\x1b[")
    result = run("train", tmp_path / "a", "--vocab-size", "3", "--trace", "--pre", "none", "--units", "chars")
    assert (
        result.text
        == "1. \\x1b + [ = \\x1b[, 2 times\n   cut now    \\x1b·[·\\x1b·[ ×1\n   runners-up [ + \\x1b 1\n"
    )


def test_no_control_token_is_said(run: Run, corpus: Path, tmp_path: Path) -> None:
    result = run("train", corpus, "--vocab-size", "260", "-o", tmp_path / "v.gguf")
    assert result.code == 0
    assert "warning: the vocabulary has no special token" in result.err
    assert "--special" in result.err


@pytest.mark.parametrize(
    ("flags", "bos"), [([], "'<0x00>' (0)"), (["--special", "<s>"], "'<s>' (0)"), (["--bos", "<s>"], None)]
)
def test_bos_that_nobody_asked_for_is_said(
    flags: list[str], bos: str | None, run: Run, corpus: Path, tmp_path: Path
) -> None:
    out = tmp_path / "v.gguf"
    result = run("train", corpus, "--pre", "gemma4", "--vocab-size", "300", *flags, "-o", out)
    said = f"llama.cpp puts BOS before each text, whatever the file says: here {bos}; name the token for it with --bos"
    assert (said in result.err, "puts BOS" in result.err) == (bos is not None, bos is not None)
    assert Tokenizer.from_gguf(out).encode("low")[0] == 0


def test_what_directories_have_beside_text_is_said(run: Run, corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\0")
    result = run("train", tmp_path, "--vocab-size", "258", "--trace")
    assert "skipped in directories: 1 binary" in result.err


WRONG = [
    ([], "--vocab-size"),
    (["--vocab-size", "300", "--trace"], "nothing to learn from"),
    (["CORPUS", "--vocab-size", "300"], "say where the vocabulary goes"),
    (["CORPUS", "--vocab-size", "300", "-o", "v.bin"], ".gguf, .json, .txt"),
    (["CORPUS", "--vocab-size", "300", "-o", "no/v.gguf"], "'no' is not a directory"),
    (
        ["CORPUS", "--vocab-size", "300", "-o", "v.gguf", "--pre", "none"],
        "no pre-tokenizer that splits as 'none'",
    ),
    (["CORPUS", "--vocab-size", "300", "-o", "v.gguf", "--unk", "?"], "no unknown token"),
    (["CORPUS", "--vocab-size", "300", "-o", "v.gguf", "--pre", "gpt2"], "near: gpt-2"),
    (["CORPUS", "--vocab-size", "10", "-o", "v.gguf"], "no room"),
    (
        ["CORPUS", "--vocab-size", "5", "--pre", "words", "--units", "chars", "--trace"],
        "; --limit-alphabet N makes them fewer",
    ),
    (["nowhere", "--vocab-size", "300", "-o", "v.gguf"], "nowhere: No such file"),
    (["bad", "--vocab-size", "300", "-o", "v.gguf"], "bad: byte 3: 0xff is not UTF-8"),
    (["--word-counts", "bad", "--vocab-size", "300", "-o", "v.json"], "bad: byte 3 is not UTF-8"),
    (["--word-counts", "CORPUS", "--vocab-size", "300", "-o", "v.json"], "corpus.txt: line 1: not a word"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=[message for _, message in WRONG])
def test_errors_are_one_line_and_leave_nothing(
    arguments: list[str], message: str, run: Run, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(corpus.parent)
    Path("bad").write_bytes(b"abc\xff")
    assert_error(run("train", *[str(corpus) if each == "CORPUS" else each for each in arguments]), message)
    assert sorted(path.name for path in corpus.parent.iterdir()) == ["bad", "corpus.txt"]


def test_a_file_that_is_there_is_replaced_only_by_force(run: Run, corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "v.gguf"
    out.write_text("mine")
    command = ["train", str(corpus), "--vocab-size", "260", "-o", str(out)]
    assert_error(run(*command), "already exists")
    assert out.read_text() == "mine"
    assert run(*command, "--force").code == 0
    assert out.read_bytes().startswith(b"GGUF")


@pytest.mark.parametrize("page", ["v.json", "./v.json", "link.json"])
def test_the_vocabulary_and_the_page_are_two_files(
    page: str, run: Run, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(corpus.parent)
    Path("link.json").symlink_to("v.json")
    command = ["train", corpus, "--vocab-size", "258", "-o", "v.json", "--html", page, "--force"]
    assert_error(run(*command), "-o and --html both name 'v.json'")
    assert not Path("v.json").exists()


@pytest.mark.parametrize("flag", ["-o", "--html"])
@pytest.mark.parametrize("read", [[], ["--word-counts"]])
def test_what_is_read_is_not_written_over(read: list[str], flag: str, run: Run, tmp_path: Path) -> None:
    corpus, link = tmp_path / "corpus.txt", tmp_path / "link.txt"
    corpus.write_text("ab 2\n")
    link.symlink_to(corpus)
    command = ["train", *read, corpus, "--vocab-size", "257", flag, link, "--force"]
    assert_error(run(*command), "is the input file; give another name")
    assert corpus.read_text() == "ab 2\n"


def test_replaced_bytes(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a\xffa\xff")
    flags = "--vocab-size 4 --trace --units chars --pre none --errors replace"
    result = run("train", tmp_path / "a", *flags.split())
    assert first_lines(result.text) == [
        "1. a + \ufffd = a\ufffd, 2 times",
        "2. a\ufffd + a\ufffd = a\ufffda\ufffd, 1 time",
    ]


def test_word_counts_are_added_up(run: Run, tmp_path: Path) -> None:
    (tmp_path / "words").write_text("ab 2\ncd\t3\n\nab 2\nice cream 1\n")
    result = run("train", "--word-counts", tmp_path / "words", "--vocab-size", "258", "--trace")
    assert first_lines(result.text) == ["1. a + b = ab, 4 times", "2. c + d = cd, 3 times"]


def test_help_names_all_flags_and_its_examples_are_flags(run: Run) -> None:
    shown, parser = run("train", "--help").text, Parser("ggufbpe train")
    add_arguments(parser)
    for word in help_texts("train")[1].split():
        if word.startswith("--"):
            assert word in shown
            assert word in parser.flags()
    assert "lowest-ids" in shown


@posix_only
def test_a_progress_bar_only_on_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("".join(f"{number * 7919 % 10007} " for number in range(200_000)))
    command = ["train", str(tmp_path / "a"), "--vocab-size", "1000", "-o", str(tmp_path / "v.json")]
    assert run_process(*command).err == ""
    at_once = "import ggufbpe.cli._progress as p; p.DELAY = 0; from ggufbpe.cli import main; main()"
    shown = run_on_terminal(*command, "--force", command=[sys.executable, "-c", at_once])
    assert shown.code == 0
    assert "merge" in shown.text


@pytest.mark.slow
def test_benchmark_holds_the_merges_equal(tmp_path: Path) -> None:
    import json
    import subprocess

    pytest.importorskip("tokenizers")
    script = ROOT / "benchmarks" / "train.py"
    flags = "--megabytes 0.2 --vocab-size 600 --rounds 1 --reference".split()
    command = [sys.executable, str(script), *flags, "--json", str(tmp_path / "results.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert [line.split(" | ")[1:] for line in done.stdout.splitlines() if line.endswith(" yes |")]
    [row] = json.loads((tmp_path / "results.json").read_text())["rows"]
    assert {rounds[0]["merges"] for rounds in row["rounds"].values()} == {600 - 256}
    assert len(row["rounds"]) == 3


@pytest.mark.parametrize("flag", ["--json", "--trace"])
def test_one_thing_at_a_time_is_written_to_standard_output(run: Run, corpus: Path, flag: str) -> None:
    result = run("train", corpus, "--vocab-size", "265", "--html", "-", flag)
    assert_error(result, f"--html - and {flag}: only one of them can be standard output")
