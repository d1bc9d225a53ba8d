"""The commands: what they print, where, with which exit code; in this process where possible, else in another.

The comparison with the real llama-tokenize over many models and texts is scripts/compare_live.py; here are a
few of its answers, recorded.
"""

from __future__ import annotations

import doctest
import gc
import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import gguf
import pytest
from commands import (
    COMMAND,
    NOTE,
    Result,
    Run,
    assert_error,
    posix_only,
    run,
    run_on_terminal,
    run_process,
)
from conftest import GPT2, ROOT, UNSPLIT, missing
from hypothesis import given
from hypothesis import strategies as st
from make_mmproj import make_mmproj
from reference import with_pre

import ggufbpe
from ggufbpe import LLAMA_CPP, GGUFWarning, Tokenizer
from ggufbpe._util.escapes import Unescaped, process_escapes
from ggufbpe._util.extras import install_command
from ggufbpe._util.llama_cpp_states import CHATS
from ggufbpe.analysis.views import terminal
from ggufbpe.cli import GROUPS, _output, _progress, list_pre, main, tokenize
from ggufbpe.cli._arguments import Parser
from ggufbpe.cli._help import help_texts
from ggufbpe.cli._llama_flags import IGNORED
from ggufbpe.models.bpe.merge import BYTE_CHARS
from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS, PreTokenizer
from ggufbpe.native import native

__all__ = ["run"]  # the fixture

pytestmark = [pytest.mark.both_engines, pytest.mark.tries_fixes]

ENGINE = "reference" if native is None else "native"
of_the_compiled_engine = pytest.mark.skipif(
    native is None, reason="the reference engine imports and compiles more"
)
__all__ = ["run"]  # the fixture

MALFORMED = ROOT / "fixtures" / "malformed"
COMMANDS = ("tokenize", "detokenize", "count", "info", "list-pre")

_PARSER = Parser("tokenize")
tokenize.add_arguments(_PARSER)
TOKENIZE_FLAGS = _PARSER.flags()


def write_model(
    path: Path, model: str = "gpt2", pre: str | None = "gpt-2", **values: bool | int | str
) -> Path:
    """A GGUF with a token for each byte (the id is the byte), then "<s>" (256), "</s>" (257) and "ab" (258)."""
    tokens = [*BYTE_CHARS, "<s>", "</s>", "ab"]
    types = [1] * 256 + [3, 3, 1]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model(model)
    if pre is not None:
        writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(256)
    writer.add_eos_token_id(257)
    for key, value in values.items():
        add = {bool: writer.add_bool, int: writer.add_uint32, str: writer.add_string}[type(value)]
        add(key.replace("__", "."), value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


# ---- tokenize: as llama-tokenize ------------------------------------------------------------------------

# Made with the llama-tokenize of llama.cpp 0c1e57098:
#     llama-tokenize -m ggufbpe/models/gpt2.gguf ARGUMENTS < STDIN 2> /dev/null
RECORDED: list[tuple[list[str | bytes], bytes, bytes]] = [
    (["-p", "Hello world"], b"", b" 15496 -> 'Hello'\n   995 -> ' world'\n"),
    (["-p", "Hello world", "--ids"], b"", b"[15496, 995]\n"),
    (
        ["-p", "Hello world", "--show-count"],
        b"",
        b" 15496 -> 'Hello'\n   995 -> ' world'\nTotal number of tokens: 2\n",
    ),
    (["-p", "Hi", "--ids", "--show-count", "--no-bos"], b"", b"[17250]\nTotal number of tokens: 1\n"),
    (
        ["-p", r"a\n\tb\x21\q" + "\\"],
        b"",
        b"    64 -> 'a'\n   198 -> '\n'\n   197 -> '\t'\n    65 -> 'b'\n     0 -> '!'\n    59 -> '\\'\n"
        b"    80 -> 'q'\n    59 -> '\\'\n",
    ),
    (["-p", r"a\nb", "--no-escape"], b"", b"    64 -> 'a'\n    59 -> '\\'\n 46803 -> 'nb'\n"),
    (["-p", r"a\nb", "--no-escape", "-e", "--ids"], b"", b"[64, 198, 65]\n"),
    (["-p", "x<|endoftext|>", "--ids"], b"", b"[87, 50256]\n"),
    (
        ["-p", "x<|endoftext|>", "--no-parse-special", "--ids"],
        b"",
        b"[87, 27, 91, 437, 1659, 5239, 91, 29]\n",
    ),
    (["-p", "--ids"], b"", b"   438 -> '--'\n  2340 -> 'ids'\n"),
    (["-p", "--"], b"", b"   438 -> '--'\n"),
    (["-p", r"a\x00b"], b"", b"    64 -> 'a'\n   188 -> ''\n    65 -> 'b'\n"),
    (
        ["-p", b"\xe4\xff \xf0\x9f\x99\x82"],
        b"",
        b"  6353 -> '\xef\xbf\xbd\xef\xbf\xbd'\n 32485 -> ' \xf0\x9f\x99\x82'\n",
    ),
    (["--stdin", "-p", "not this", "--ids"], b"caf\xc3\xa9\n", b"[66, 1878, 2634, 198]\n"),
    (["--stdin", "--ids"], b"", b"[]\n"),
    (["-p", "one", "-p", "two", "--ids"], b"", b"[11545]\n"),
    (["-p", "a_b", "--no_bos", "--ids"], b"", b"[64, 62, 65]\n"),
]


@pytest.mark.parametrize(("arguments", "stdin", "expected"), RECORDED)
def test_tokenize_prints_what_llama_tokenize_prints(
    arguments: list[str | bytes], stdin: bytes, expected: bytes, run: Run
) -> None:
    as_text = [os.fsdecode(argument) for argument in arguments]
    result = run("tokenize", "-m", GPT2, *as_text, stdin=stdin if "--stdin" in as_text else None)
    twice = "ggufbpe: warning: -p/--prompt is given more than once; the last one counts: 'two'\n"
    told = "".join(line for line in result.err.splitlines(True) if "escape sequence" not in line)  # see below
    assert result == Result(0, expected, result.err)
    assert told == twice * (as_text.count("-p") > 1)  # llama.cpp warns, too


@posix_only
def test_argument_that_is_not_utf8_reaches_the_tokenizer_as_it_is() -> None:
    arguments, _, expected = next(case for case in RECORDED if isinstance(case[0][1], bytes))
    assert run_process("tokenize", "-m", GPT2, *arguments) == Result(0, expected, "")


def test_a_file_is_read_verbatim_and_wins_over_the_prompt(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "prompt.txt"
    path.write_bytes(b"one\\n\n")
    expected = b"%a\n" % Tokenizer.from_gguf(GPT2).encode("one\n\n")
    for arguments in (["-f", path], ["-f", path, "-p", "two"], ["-p", "two", "--file", path]):
        assert run("tokenize", "-m", GPT2, "--ids", *arguments).out == expected
    assert run("tokenize", "--ids", "-f", path, "--stdin", stdin=b" world").out == b"[995]\n"
    path.write_bytes(b"")
    assert run("tokenize", "--ids", "-f", path).out == b"[]\n"


@pytest.mark.parametrize(
    ("flags", "arguments", "expected"),
    [
        ({}, [], [97]),
        ({"add_bos": True}, [], [256, 97]),
        ({"add_bos": True}, ["--no-bos"], [97]),
        ({"add_bos": True, "add_eos": True}, [], [256, 97, 257]),
        ({"add_bos": True, "add_eos": True}, ["--no-bos"], [97]),
        ({"add_eos": True}, [], [97]),  # llama-tokenize adds special tokens only to models that want BOS
    ],
)
def test_bos_and_eos(
    flags: dict[str, bool], arguments: list[str], expected: list[int], run: Run, tmp_path: Path
) -> None:
    keys = {f"tokenizer__ggml__{name}_token": value for name, value in flags.items()}
    model = write_model(tmp_path / "model.gguf", **keys)
    assert run("tokenize", "-m", model, "--ids", "-p", "a", *arguments).text == f"{expected}\n"
    count = json.loads(run("count", "-m", model, "--json", "-p", "a", *arguments).out)
    assert count["total"]["tokens"] == len(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (rb"", b""),
        (rb"\n\r\t\'\"\\", b"\n\r\t'\"\\"),
        (rb"\x41\x4a\xFF", b"AJ\xff"),
        (rb"\x 5\x+5\x-5", b"\x05\x05\xfb"),  # strtol takes white space and signs
        (rb"\x0x\xg1\x4", rb"\x0x\xg1\x4"),
        (rb"\q\0\\n", rb"\q\0\n"),
        (b"a\\", b"a\\"),
        (b"\\\n\\\xff", b"\\\n\\\xff"),
    ],
)
def test_escapes(text: bytes, expected: bytes) -> None:
    assert process_escapes(text) == expected


@given(st.lists(st.sampled_from(list(b"\\\\\\xn4 -1aA")), max_size=14).map(bytes), st.integers(1, 5))
def test_escapes_in_a_stream_are_those_of_the_whole(text: bytes, size: int) -> None:
    stream = Unescaped(io.BytesIO(text))
    assert b"".join(iter(lambda: stream.read(size), b"")) == process_escapes(text)


SAID_OF_ESCAPES: dict[str, tuple[list[str], str]] = {  # arguments, what is said of escape sequences
    "one": (["-p", r"C:\new"], "1 escape sequence was processed, as by llama-tokenize; --no-escape keeps"),
    "several": (["-p", r"a\tb\n\x41\q"], "3 escape sequences were processed"),
    "of a file": (["-f", "FILE"], "2 escape sequences were processed"),
    "asked for": (["-p", r"C:\new", "-e"], ""),
    "kept": (["-p", r"C:\new", "--no-escape"], ""),
    "none": (["-p", r"C:\Windows\q"], ""),
}


@pytest.mark.parametrize("name", SAID_OF_ESCAPES)
@pytest.mark.parametrize("shape", [[], ["--ids"], ["--json"], ["--show-count"]], ids=lambda shape: shape[-1:])
def test_tokenize_says_where_escapes_made_a_difference(
    name: str, shape: list[str], run: Run, tmp_path: Path
) -> None:
    (tmp_path / "text").write_bytes(rb"first\nsecond\t")
    arguments, said = SAID_OF_ESCAPES[name]
    done = run(
        "tokenize", "-m", GPT2, *(each.replace("FILE", str(tmp_path / "text")) for each in arguments), *shape
    )
    assert done.code == 0
    assert said in done.err if said else done.err == ""


def test_a_positional_text_is_a_prompt(run: Run) -> None:
    assert run("tokenize", r"Hello world\n").out == run("tokenize", "-p", r"Hello world\n").out
    assert run("tokenize", "--ids", "--", "-p").out == run("tokenize", "--ids", "-p", "-p").out


def test_json_of_tokens(run: Run) -> None:
    result = run("tokenize", "--json", "é 🏳\\n")
    assert json.loads(result.out) == [
        {"id": 2634, "piece": "é", "start": 0, "end": 2},
        {"id": 12520, "piece": " \ufffd", "bytes": "20f09f", "start": 2, "end": 5},
        {"id": 237, "piece": "\ufffd", "bytes": "8f", "start": 5, "end": 6},
        {"id": 111, "piece": "\ufffd", "bytes": "b3", "start": 6, "end": 7},
        {"id": 198, "piece": "\n", "start": 7, "end": 8},
    ]
    assert json.loads(run("tokenize", "--json", "--stdin", stdin=b"").out) == []


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ([], "no text"),
        (["-p", ""], "empty text"),
        (["-p"], "expected one argument"),
        (["a", "-p", "b"], "one of"),
        (["a", "b"], "one text only, not 2; between quotation marks it is one: 'a b'"),
        (["-p", "a", "--bogus"], "there is no flag '--bogus' (see"),
        (["-p", "a", "--no-add-special"], "no flag '--no-add-special' (for that, give --no-bos)"),
        (["-p", "a", "--idss"], "there is no flag '--idss'; did you mean --ids?"),
        (["a.gguf"], "a.gguf looks like a model, and no such file is there; did you mean -m?"),
        (["a.gguf", "b"], "did you mean -m? ggufbpe tokenize -m a.gguf ..."),
        (["-p", "a", "--ids", "--json"], "not allowed"),
        (["-p", "a", "--json", "--show-count"], "--show-count"),
        (["-f", "no such file"], "no such file: No such file"),
        (["--stdin", "-f", "no such file"], "no such file: No such file"),
        (["-m", "no such model", "-p", "a"], "no such model: No such file"),
        (["-m", MALFORMED, "-p", "a"], "directory"),
        (["-m", MALFORMED / "model-test.gguf", "-p", "a"], "hash"),
        (["-p", "\ud800"], "surrogates not allowed"),
    ],
)
def test_tokenize_errors(arguments: list[str | Path], word: str, run: Run) -> None:
    assert_error(run("tokenize", *arguments), word)


# ---- tokenize: on a terminal ----------------------------------------------------------------------------


PLAIN = " 15496 -> 'Hello'\n   198 -> '\n'\n   215 -> '\x1b'\n 50256 -> '<|endoftext|>'\n"
TEXT = r"Hello\n\x1b<|endoftext|>"


@posix_only
def test_pieces_are_coloured_on_a_terminal_and_control_characters_shown() -> None:
    result = run_on_terminal("tokenize", "-m", GPT2, "-e", "-p", TEXT)
    assert result.code == 0
    assert "\x1b[30;46mHello\x1b[0m" in result.text
    assert "\x1b[1;7m<|endoftext|>\x1b[0m" in result.text  # special tokens stand out
    uncoloured = re.sub("\x1b\\[[0-9;]*m", "", result.text)
    assert uncoloured == PLAIN.replace("'\n'", r"'\n'").replace("'\x1b'", r"'\x1b'")


@posix_only
@pytest.mark.parametrize(
    ("arguments", "environment"),
    [(["--color", "never"], {}), ([], {"NO_COLOR": "1"}), ([], {"TERM": "dumb"})],
)
def test_colours_can_be_had_not(arguments: list[str], environment: dict[str, str]) -> None:
    assert run_on_terminal("tokenize", "-m", GPT2, "-e", "-p", TEXT, *arguments, **environment).text == PLAIN


def test_colours_can_be_had_without_a_terminal(run: Run) -> None:
    assert run("tokenize", "-m", GPT2, "-p", TEXT).text == PLAIN
    assert "\x1b[30;46mHello\x1b[0m" in run("tokenize", "-m", GPT2, "-p", TEXT, "--color", "always").text


@pytest.mark.parametrize(
    ("piece", "expected"),
    [
        (b" caf\xc3\xa9", " café"),
        (b"\x00\x1b[31m\x7f", r"\x00\x1b[31m\x7f"),
        (b"\xf0\x9f", r"\xf0\x9f"),
        ("\u202eabc\u009b".encode(), r"\u202eabc\x9b"),
        (rb"\n", r"\\n"),  # a backslash in the text is not taken for one of ours
        ("❤\ufe0f\u3164\u034f\u2800".encode(), r"❤\ufe0f\u3164\u034f\u2800"),  # printable, and not to be seen
    ],
)
def test_visible_pieces(piece: bytes, expected: str) -> None:
    assert terminal.visible(piece) == expected


def test_json_escapes_what_cannot_be_seen() -> None:
    text = "é者\\\n\x85\u00a0\u00ad\u200b\ufe0f\U000e0061"
    shown = terminal.json_text({"text": text}, indent=2)
    assert json.loads(shown) == {"text": text}
    assert shown == '{\n  "text": "é者\\\\\\n\\u0085\\u00a0\\u00ad\\u200b\\ufe0f\\udb40\\udc61"\n}'


# ---- detokenize -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words", [["15496", "995"], ["15496,995"], ["[15496, 995]"], ["[15496,", "995]"], [" 15496 ,\n995 "]]
)
def test_detokenize_takes_ids_in_any_form(words: list[str], run: Run, tmp_path: Path) -> None:
    assert run("detokenize", *words) == Result(0, b"Hello world", NOTE)
    path = tmp_path / "ids"
    path.write_text(" ".join(words))
    assert run("detokenize", "-f", path).out == b"Hello world"
    assert run("detokenize", "--stdin", stdin=path.read_bytes()).out == b"Hello world"


def test_a_command_called_from_python_leaves_the_collector_of_cycles_as_it_was(run: Run) -> None:
    threshold, frozen = gc.get_threshold(), gc.get_freeze_count()
    run(["tokenize", "-p", "Hello"])
    assert gc.get_threshold() == threshold
    assert gc.get_freeze_count() <= frozen  # what another test has left frozen may come to its end meanwhile


def test_detokenize_gives_back_the_bytes_of_tokenize(run: Run, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_bytes("naïve\r\n\0 🏳️‍🌈\n\n".encode())
    ids = run("tokenize", "--ids", "--no-escape", "-f", text).out
    assert run("detokenize", "--stdin", stdin=ids).out == text.read_bytes()


def test_detokenize_gives_bytes_that_are_not_utf8(run: Run) -> None:
    assert run("detokenize", "8582").out == b"\xf0\x9f"
    assert run("detokenize", "[]").out == b""
    assert run("detokenize", "--stdin", stdin=b"\xef\xbb\xbf[995]\r\n").out == b" world"


def test_detokenize_special_tokens(run: Run, tmp_path: Path) -> None:
    model = write_model(tmp_path / "model.gguf", tokenizer__ggml__add_bos_token=True)
    for flags, expected in (
        ([], b"a"),
        (["--unparse-special"], b"<s>a<s>"),
        (["--unparse-special", "--remove-special"], b"a<s>"),
    ):
        assert run("detokenize", "-m", model, *flags, "256", "97", "256").out == expected


@posix_only
def test_detokenize_ends_the_line_on_a_terminal() -> None:
    assert run_on_terminal("detokenize", "-m", GPT2, "15496").text == "Hello\n"
    assert run_on_terminal("detokenize", "-m", GPT2, "15496", "198").text == "Hello\n"


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ([], "give ids"),
        (["1", "--stdin"], "one of them"),
        (["1", "2x"], "'2x' is not a token id (item 2 of 2)"),
        (["1_0"], "'1_0' is not a token id"),
        (["[1, 2"], "does not end with ]"),
        (["["], "does not end with ]"),
        (["[[1]]"], "'[1]' is not a token id"),
        (["-1"], "out of range"),
        (["50257"], "out of range"),
        (["9" * 10000], "is not a token id"),
    ],
)
def test_detokenize_errors(arguments: list[str], word: str, run: Run) -> None:
    assert_error(run("detokenize", *arguments), word)
    assert len(run("detokenize", *arguments).err) < 300


# ---- count ----------------------------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A directory with each kind of file."""
    root = tmp_path / "tree"
    (root / "b").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / "a.txt").write_bytes(b"Hello world")
    (root / "b" / "c.txt").write_bytes("é".encode())
    (root / "b" / "empty").write_bytes(b"")
    (root / "b" / "binary").write_bytes(b"a\0b")
    (root / "b" / ".hidden").write_bytes(b"a")
    (root / "d\n.txt").write_bytes(b"\\n")
    return root


def test_count_prints_a_table(run: Run, tree: Path) -> None:
    result = run("count", "-m", GPT2, tree)
    rows = [line.split(None, 3) for line in result.text.splitlines()]
    assert rows == [
        ["tokens", "bytes", "chars/token", "name"],
        ["2", "11", "5.50", f"{tree}/a.txt"],
        ["1", "2", "1.00", f"{tree}/b/c.txt"],
        ["0", "0", "-", f"{tree}/b/empty"],
        [
            "2",
            "2",
            "1.00",
            f"{tree}/d\\n.txt",
        ],  # escapes in a text are not processed, those in a name are shown
        ["5", "15", "2.80", "total"],
    ]
    assert len({line.index(row[3]) for line, row in zip(result.text.splitlines(), rows)}) == 1, "columns"
    assert result.err == "ggufbpe: skipped in directories: 1 binary, 2 hidden (give a path to count it)\n"
    assert result.code == 0


def test_count_counts_whatever_is_named(run: Run, tree: Path) -> None:
    result = run("count", "-m", GPT2, tree / "b" / "binary", tree / "b" / ".hidden")
    assert [line.split()[:2] for line in result.text.splitlines()[1:]] == [["3", "3"], ["1", "1"], ["4", "4"]]
    assert result.err == ""


def test_count_of_one_text_has_no_total(run: Run, tree: Path) -> None:
    for arguments, stdin in (
        ([tree / "a.txt"], None),
        (["-p", "Hello world"], None),
        (["--stdin"], b"Hello world"),
    ):
        lines = run("count", *arguments, stdin=stdin).text.splitlines()
        assert len(lines) == 2
        assert lines[1].split()[:3] == ["2", "11", "5.50"]


def test_count_json(run: Run, tree: Path) -> None:
    result = run("count", "--json", "-p", "Hello", "--stdin", tree, tree / "missing", stdin=b"a\xff")
    assert result.code == 2
    found = json.loads(result.out)
    assert (found.pop("schema"), found.pop("model")) == (1, str(GPT2))
    assert found == {
        "files": [
            {"name": "(prompt)", "tokens": 1, "bytes": 5, "characters": 5, "undecodable_bytes": 0},
            {"name": "(stdin)", "tokens": 2, "bytes": 2, "characters": 2, "undecodable_bytes": 1},
            {"name": f"{tree}/a.txt", "tokens": 2, "bytes": 11, "characters": 11, "undecodable_bytes": 0},
            {"name": f"{tree}/b/c.txt", "tokens": 1, "bytes": 2, "characters": 1, "undecodable_bytes": 0},
            {"name": f"{tree}/b/empty", "tokens": 0, "bytes": 0, "characters": 0, "undecodable_bytes": 0},
            {"name": f"{tree}/d\n.txt", "tokens": 2, "bytes": 2, "characters": 2, "undecodable_bytes": 0},
        ],
        "total": {"tokens": 8, "bytes": 22, "characters": 21, "undecodable_bytes": 1},
        "errors": [{"name": f"{tree}/missing", "error": "No such file or directory"}],
        "skipped": {"binary": 1, "hidden": 2},
    }


@posix_only
def test_count_goes_on_after_a_file_that_cannot_be_read(
    run: Run, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a mocked `open`, for a superuser can read every file."""

    def refuse(path: str, mode: str) -> Any:
        if path.endswith("a.txt"):
            raise PermissionError(13, "Permission denied", path)
        return open(path, mode)

    monkeypatch.setattr("ggufbpe.data.corpora.corpus_files.open", refuse, raising=False)
    result = run("count", "-m", GPT2, tree / "a.txt", tree / "b" / "c.txt")
    assert result.code == 2
    counted = [line.split() for line in result.text.splitlines()[1:]]
    assert counted == [["1", "2", "1.00", f"{tree}/b/c.txt"], ["1", "2", "1.00", "total"]]
    assert result.err.splitlines() == [
        f"ggufbpe: error: {tree}/a.txt: Permission denied",
    ]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    files = {
        ".gitignore": "build/\n",
        "src/.gitignore": "*.log",
        "src/a.log": "x",
        "src/a.txt": "a b",
        "build/b.txt": "b",
    }
    for name, text in {**files, "src/a.txt": "a b", "c.txt": "a b c d"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "bad.txt").write_bytes(b"a\xff\xfe")
    return tmp_path


def rows_of(result: Result) -> list[str]:
    return [line.split()[-1].rpartition("/")[2] for line in result.text.splitlines()[1:]]


def test_what_git_ignores_is_not_counted(run: Run, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", "/nonexistent")  # as of a hook
    found = run("count", repository)
    assert rows_of(found) == ["bad.txt", "c.txt", "a.txt", "total"]
    assert "2 ignored by git" in found.err
    everything = ["bad.txt", "b.txt", "c.txt", "a.log", "a.txt", "total"]
    assert rows_of(run("count", "--no-ignore", repository)) == everything
    below = repository / "logs"  # not ignored itself, but all that is in it
    below.mkdir()
    (repository / ".gitignore").write_text("build/\n*.log\n")
    (below / "b.log").write_text("x")
    assert rows_of(run("count", below)) == ["total"]
    named = run("count", repository / "build", repository / "src" / "a.log")
    assert rows_of(named) == ["b.txt", "a.log", "total"]
    (below / "b.log").unlink()
    assert "2 ignored by git" in run("verify", "--against", str(GPT2), repository).err
    totals = [json.loads(run(command, "--json", repository).out)["total"] for command in ("count", "stats")]
    assert totals[0]["tokens"] == totals[1][0]["tokens"]


@pytest.mark.parametrize("folder", ["no repository", "repository", "repository with a submodule"])
@pytest.mark.parametrize("command", ["count", "verify"])
def test_a_repository_inside_a_folder_has_its_own_rules(
    command: str, folder: str, run: Run, repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The ignored file of the outer one is ignored by that one alone, and those of the inner one by the inner one."""
    outer = tmp_path_factory.mktemp("outer")
    if folder != "no repository":
        subprocess.run(["git", "init", "-q", str(outer)], check=True)
        (outer / ".gitignore").write_text("*.tmp\n")
    (outer / "d.tmp").write_text("d")
    shutil.copytree(repository, outer / "inner")
    (outer / "inner" / "e.tmp").write_text("e")
    if folder == "repository with a submodule":
        shutil.move(outer / "inner" / ".git", outer / ".git" / "inner")
        (outer / "inner" / ".git").write_text("gitdir: ../.git/inner\n")
    arguments = [] if command == "count" else ["--against", str(GPT2)]
    ignored = 2 + (folder != "no repository")
    found = run(command, *arguments, outer)
    assert f"{ignored} ignored by git" in found.err
    if command == "count":
        shown = ["bad.txt", "c.txt", "e.tmp", "a.txt", "total"]
        assert rows_of(found) == (["d.tmp", *shown] if folder == "no repository" else shown)


def test_a_repository_names_no_program_that_is_run(run: Run, repository: Path) -> None:
    (repository / "evil.sh").write_text(f"#!/bin/sh\ntouch {repository}/was-run\n")
    (repository / "evil.sh").chmod(0o755)
    monitor = ["config", "core.fsmonitor", str(repository / "evil.sh")]
    subprocess.run(["git", "-C", str(repository), *monitor], check=True)
    run("count", repository)
    assert not (repository / "was-run").exists()


@pytest.mark.parametrize("by", ["name", "tokens", "bytes"])
def test_count_sorted(by: str, run: Run, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository)
    files = ["build/b.txt", "c.txt", "src/a.log", "bad.txt", "src/a.txt"]
    numbers = json.loads(run("count", "--json", "--sort", by, *files).out)["files"]
    keys = [row[by] for row in numbers]
    assert (len(keys), keys) == (5, sorted(keys, reverse=by != "name"))


def test_count_shows_the_largest(run: Run, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository)
    found = run("count", "--top", "2", "build/b.txt", "c.txt", "bad.txt")
    assert (rows_of(found)[0], len(rows_of(found)), "the total includes 1 more file" in found.err) == (
        "c.txt",
        3,
        True,
    )
    assert run("count", "--top", "0", "c.txt").code == 2


def test_count_says_how_many_bytes_are_not_utf8(run: Run, repository: Path) -> None:
    assert "2 bytes are not UTF-8" in run("count", repository / "bad.txt").err
    assert "not UTF-8" not in run("count", repository / "c.txt").err
    assert json.loads(run("count", "--json", repository).out)["total"]["undecodable_bytes"] == 2


# ---- where the model and the text come from -------------------------------------------------------------

READ = {  # command: its other arguments, a standard input, and what it says of that
    "tokenize": (["--ids"], b"Hello", b"[15496]\n"),
    "detokenize": ([], b"[15496, 995]", b"Hello world"),
    "count": (["--json"], b"Hello", b'"tokens": 1'),
    "stats": (["--json"], b"Hello", b'"tokens": 1'),
    "explain": ([], b"Hello", b"15496"),
    "diagnose": (["--ids", "[15496]"], b"Hello", b"match"),
    "verify": (["--against", str(GPT2)], b"Hello", b"the ids are the same"),
    "train": (["--vocab-size", "257", "--trace"], b"low low", b"lo"),
    "chat": ([], b'[{"role": "user", "content": "Hello"}]', b"<|im_start|>user\nHello<|im_end|>"),
    "compare": ([str(GPT2), "--all"], b"Hello", b"Hello"),
}
_FILE_FLAG = ("explain", "tokenize", "detokenize", "diagnose", "compare")


@pytest.mark.slow
@posix_only
@pytest.mark.parametrize("way", ["a pipe", "-", "--stdin", "-f -"])
@pytest.mark.parametrize("command", READ)
def test_standard_input_is_the_same_everywhere(command: str, way: str) -> None:
    arguments, given, expected = READ[command]
    if (way == "-f -" and command not in _FILE_FLAG) or (way == "--stdin" and command == "train"):
        return  # there is no such flag
    if way == "-" and command in ("diagnose", "compare"):
        return  # it has no such argument
    named = [] if command == "train" else ["-m", str(GPT2)]
    words = [] if way == "a pipe" else way.split()
    done = subprocess.run([*COMMAND, command, *named, *arguments, *words], input=given, capture_output=True)
    assert (done.returncode, expected in done.stdout) == (0, True), done


@pytest.mark.slow
@posix_only
@pytest.mark.parametrize("way", ["--stdin", "-f -", "-f - --stdin"])
def test_diff_reads_a_text_where_it_is_told_to(way: str, tmp_path: Path) -> None:
    """Without a text it compares the vocabularies, and so waits for none."""
    other = write_model(tmp_path / "other.gguf")
    words = [*COMMAND, "diff", str(GPT2), str(other)]
    done = subprocess.run([*words, *way.split()], input=b"Hello", capture_output=True)
    assert done.stdout.count(b"1 of 1 text differs") == 1
    assert b"of 1 text" not in subprocess.run(words, input=b"Hello", capture_output=True).stdout


@pytest.mark.slow
@posix_only
@pytest.mark.parametrize("command", READ)
def test_without_a_pipe_a_text_is_asked_for(command: str) -> None:
    arguments = [] if command == "diagnose" else READ[command][0]
    done = subprocess.run([*COMMAND, command, *arguments], stdin=subprocess.DEVNULL, capture_output=True)
    assert done.returncode == 2
    assert not done.stdout or set(json.loads(done.stdout)) == {"schema", "error"}


@pytest.mark.slow
@posix_only
@pytest.mark.parametrize("command", READ)
def test_an_empty_pipe_is_no_text(command: str) -> None:
    """What was compared with nothing is not the same."""
    arguments = [] if command == "diagnose" else READ[command][0]
    done = subprocess.run([*COMMAND, command, *arguments], input=b"", capture_output=True)
    assert done.returncode == 2
    assert not done.stdout or set(json.loads(done.stdout)) == {"schema", "error"}


@posix_only
def test_a_command_says_that_it_waits_for_a_text() -> None:
    with subprocess.Popen([*COMMAND, "count"], stdin=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stderr is not None
        assert child.stderr.readline() == b"ggufbpe: reading standard input\n"
        child.stdin.close()
        assert child.wait(timeout=60) == 2


@pytest.mark.slow
@pytest.mark.parametrize("command", ["info", "doctor", "fix", "export"])
@pytest.mark.parametrize("way", ["first", "-m", "environment"])
def test_a_model_is_named_the_same_way_everywhere(
    command: str, way: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = {
        "fix": ["--set", "general.name=x", "-o", tmp_path / "x"],
        "export": ["--to", "tiktoken", "-o", tmp_path],
    }
    named = {"first": [UNSPLIT], "-m": ["-m", UNSPLIT], "environment": []}[way]
    if way == "environment":
        monkeypatch.setenv("GGUFBPE_MODEL", str(UNSPLIT))
    result = run(command, *named, *more.get(command, []))
    assert (result.code, "no model given" in result.err) == (0, False), result
    again = run(command, UNSPLIT, "-m", UNSPLIT, *more.get(command, []))
    assert (again.code, "give one model, not" in again.err) == (2, True)


@pytest.mark.parametrize("command", ["tokenize", "info", "diagnose"])
def test_a_file_of_no_repository(run: Run, command: str) -> None:
    """The vocabulary of the package is not what was meant."""
    more = {"tokenize": ["-p", "a"], "diagnose": ["-p", "a", "--ids", "[1]"]}
    result = run(command, "--hf-file", "m.gguf", *more.get(command, []))
    assert (result.code, "give the repository, too: -hf OWNER/REPO" in result.err) == (2, True)


def test_the_model_of_the_environment_is_that_of_texts(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GGUFBPE_MODEL", str(UNSPLIT))
    with pytest.warns(GGUFWarning):
        other = Tokenizer.from_gguf(UNSPLIT).encode("Hello world")
    result = run("tokenize", "--ids", "-p", "Hello world")
    assert (result.out, "no model given" in result.err) == (f"{other}\n".encode(), False)
    assert run("tokenize", "-m", GPT2, "--ids", "-p", "Hello world").out == b"[15496, 995]\n"


@pytest.mark.parametrize("command", ["tokenize", "count", "info", "doctor", "verify"])
@pytest.mark.parametrize("value", ["missing.gguf", "link.gguf", "gemma33", "hf:o"])
def test_a_missing_model_of_the_environment_is_an_error_that_names_the_variable(
    value: str, command: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link.gguf").symlink_to("nowhere")
    monkeypatch.setenv("GGUFBPE_MODEL", value)
    more = {"tokenize": ["-p", "Hi"], "count": ["-p", "Hi"], "verify": ["--against", GPT2, "-p", "Hi"]}
    result = run(command, *more.get(command, []))
    assert_error(result, f"the environment's GGUFBPE_MODEL names '{value}': ", "give another model with -m")


IN_ITS_PLACE = {  # command: what a model may stand before
    "count": [],
    "stats": [],
    "verify": ["--against", str(GPT2)],
    "tokenize": ["Hello"],
    "explain": ["Hello"],
    "chat": ["-p", "Hello"],
    "detokenize": ["15496"],
    "serve": ["--port", "0"],
    "diagnose": ["-p", "Hello", "--ids", "1"],
}


@pytest.mark.parametrize("more", [True, False])
@pytest.mark.parametrize("command", IN_ITS_PLACE)
def test_a_model_in_the_place_of_a_text(command: str, more: bool, run: Run) -> None:
    result = run(command, GPT2, *IN_ITS_PLACE[command] * more)
    assert_error(result, f"{GPT2} is a model", f"did you mean -m? ggufbpe {command} -m {GPT2}")


@pytest.mark.parametrize("command", ["serve", "split", "truncate -n 3", "diagnose"])
def test_a_model_without_its_flag_that_is_not_there(
    command: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GGUFBPE_MODEL", raising=False)
    meant = f"did you mean -m? ggufbpe {command.split()[0]} -m a.gguf ..."
    assert_error(
        run(*command.split(), "a.gguf"), f"a.gguf looks like a model, and no such file is there; {meant}"
    )
    assert_error(run(*command.split(), "-m", GPT2, "a.gguf"), "'a.gguf'")


@pytest.mark.parametrize("command", ["decode", "check"])
def test_a_model_before_the_shards(command: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GGUFBPE_MODEL", raising=False)
    assert_error(
        run(command, GPT2, "shards"), f"{GPT2} is a model; did you mean -m? ggufbpe {command} -m {GPT2}"
    )


def test_the_name_of_a_model_may_be_a_text(run: Run) -> None:
    """It is no slip where it is said to be the text, and where there is a model."""
    expected = b"[77, 3008, 13, 1130, 3046]\n"
    assert run("tokenize", "-p", "nope.gguf", "--ids").out == expected
    assert run("tokenize", "-m", GPT2, "nope.gguf", "--ids").out == expected


@pytest.mark.parametrize("command", ["info", "doctor", "fix", "export"])
def test_a_second_model_is_one_too_many(command: str, run: Run) -> None:
    assert_error(run(command, GPT2, UNSPLIT), f"one model only, not '{GPT2}' and '{UNSPLIT}'")


def test_the_last_of_two_models_counts_and_that_is_said(run: Run) -> None:
    """As in llama.cpp (common/arg.cpp, common_params_parse_ex)."""
    given = ["tokenize", "-m", "nowhere.gguf", "-m", GPT2, "-p", "Hello", "--ids"]
    warning = f"ggufbpe: warning: -m/--model is given more than once; the last one counts: '{GPT2}'\n"
    assert run(*given) == Result(0, b"[15496]\n", warning)


@pytest.mark.parametrize("command", ["diff", "compare"])
@pytest.mark.parametrize("named", [[GPT2, GPT2], ["-m", GPT2, "-m", GPT2], [GPT2, "-m", GPT2]])
def test_two_models_are_named_the_same_way_everywhere(
    command: str, named: list[str | Path], run: Run
) -> None:
    assert run(command, *named, "-p", "Hello").code == 0


def test_a_text_among_models(run: Run) -> None:
    assert_error(run("diff", GPT2, UNSPLIT, "Hello"), "two models, not 3; did you mean -p Hello?")
    assert_error(run("compare", GPT2, UNSPLIT, "Hello"), "give one text: -p TEXT")


def test_a_slip_in_a_models_name(run: Run, tmp_path: Path) -> None:
    there = write_model(tmp_path / "model.gguf")
    result = run("info", tmp_path / "modle.gguf")
    assert_error(result, f"modle.gguf: No such file or directory (did you mean {there}?)")


@pytest.mark.parametrize(
    ("key", "value", "word"),
    [
        ("general.type", "mmproj", "this is a multimodal projector (mmproj)"),
        ("general.architecture", "clip", "this is a multimodal projector (mmproj)"),
        ("general.type", "adapter", "this is an adapter (LoRA)"),
        ("general.type", "imatrix", "this is an importance matrix"),
    ],
)
def test_a_file_that_is_no_language_model(key: str, value: str, word: str, run: Run, tmp_path: Path) -> None:
    is_architecture = key == "general.architecture"
    writer = gguf.GGUFWriter(tmp_path / "x.gguf", value if is_architecture else "llama")
    if not is_architecture:
        writer.add_string(key, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    result = run("tokenize", "-m", tmp_path / "x.gguf", "-p", "a")
    assert_error(result, f"{word}; give the language model that it belongs to")


def test_help_of_a_command(run: Run) -> None:
    assert run("help", "count") == run("count", "--help")
    assert run("help") == run("--help") == run("help", "help")


# ---- flags of llama-tokenize that say nothing of a tokenizer ----------------------------------------------


def test_flags_that_llama_cpp_gives_all_tools_are_taken(run: Run) -> None:
    """`llama-tokenize --help` lists them, with a value or without."""
    from reference import NotPreparedError, llama_tokenize_command

    try:
        command = llama_tokenize_command()
    except NotPreparedError as error:
        missing(str(error))
    told = subprocess.run([command, "--help"], capture_output=True, text=True).stdout
    found = re.findall(r"^((?:-[\w-]+, +)*-[\w-]+)( [^\s(]\S*)?(?: {2}|$)", told, re.MULTILINE)
    assert len(found) > 80
    unknown = []
    for flags, value in found:
        for flag in flags.replace(",", " ").split():
            named = flag in ("-h", "--help", "--usage", "--version", "--completion-bash")
            elsewhere = flag in ("-hft", "--hf-token", "-dr", "--docker-repo")
            ours = flag in TOKENIZE_FLAGS
            if not (named or elsewhere or ours or IGNORED.get(flag, -1) == bool(value)):
                unknown.append((flag, value, IGNORED.get(flag)))
    assert unknown == []
    ids = ["--ids", "-p", "Hello world"]
    assert (
        run("tokenize", "-m", GPT2, "--log-disable", "-t", "4", "-ngl", "99", *ids).out == b"[15496, 995]\n"
    )
    assert "argument -t: expected one argument" in run("tokenize", *ids, "-t").err


INSTEAD = {
    "-dr": "a model of Docker's registry is named by its file: -m PATH",
    "-hft": "the token is that of HF_TOKEN in the environment",
}


@pytest.mark.parametrize("flag", INSTEAD)
def test_flags_about_a_model_that_have_something_instead(flag: str, run: Run) -> None:
    result = run("tokenize", flag, "someone/a-model", "-p", "text")
    assert (result.code, result.out, INSTEAD[flag] in result.err) == (2, b"", True)


def test_short_flags_are_not_run_together(run: Run) -> None:
    assert "there is no flag '-px'" in run("tokenize", "-px").err


@posix_only
def test_count_leaves_links_and_pipes_in_directories_alone(run: Run, tree: Path) -> None:
    (tree / "loop").symlink_to(tree)
    (tree / "link.txt").symlink_to(tree / "a.txt")
    os.mkfifo(tree / "pipe")  # to open it would be to wait for ever
    result = run("count", tree)
    assert result.text.splitlines()[-1].split() == ["5", "15", "2.80", "total"]
    assert "3 link or special" in result.err
    assert run("count", tree / "link.txt").code == 0


def test_count_of_what_is_not_there_prints_no_table(run: Run, tmp_path: Path) -> None:
    assert run("count", tmp_path / "absent").text == ""


def test_stats_of_what_is_not_there_prints_no_table(run: Run, tmp_path: Path) -> None:
    assert_error(run("stats", "-m", GPT2, tmp_path / "missing"), "missing: No such file or directory")


def test_count_of_nothing(run: Run, tmp_path: Path) -> None:
    assert_error(run("count"), "nothing to count")
    assert run("count", tmp_path).text.splitlines()[-1].split() == ["0", "0", "-", "total"]


@posix_only
def test_count_shows_its_progress_on_a_terminal_only(tmp_path: Path) -> None:
    (tmp_path / "large\x1b.txt").write_bytes(b"word " * 300_000)
    (tmp_path / "other.txt").write_bytes(b"word")
    shown = run_on_terminal("count", "-m", GPT2, tmp_path, columns=40).text
    bars = re.findall("\r(#*\\.*) +([0-9]+)% [0-9]/2 ([^\r]*)\x1b\\[K", shown)
    assert ("." * 5, "0", r"large\x1b.txt") in bars
    assert "\x1b.txt" not in shown
    assert max(len(line) for line in re.findall("\r([^\r\x1b\n]+)", shown)) < 40
    quiet = run_process("count", "-m", GPT2, tmp_path)
    assert (quiet.err, "\r" in quiet.text) == ("", False)


def test_bar_appears_late_and_fits(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 100.0
    monkeypatch.setattr(_output, "error_width", lambda: 30)
    monkeypatch.setattr(_progress.time, "monotonic", lambda: now)
    bar = _progress.Bar()
    now += 0.29
    assert (bar.is_due(), bar.is_due(at_once=True)) == (False, True)
    now += 0.02
    assert bar.is_due()
    bar.clear()
    bar.draw(0.4, "name" * 9)
    assert not bar.is_due()
    bar.draw(None, "name" * 9)
    bar.clear()
    drawn = capsys.readouterr().err
    assert drawn == "\r##...  40% " + ("name" * 9)[:18] + "\x1b[K\r" + ("name" * 9)[:29] + "\x1b[K\r\x1b[K"


def test_a_line_takes_the_place_of_a_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a warning does that comes in the middle of a count."""
    monkeypatch.setattr(_output, "error_width", lambda: 30)
    _progress.Bar().draw(None, "bar")
    _output.warning("careful")
    _output.note("ggufbpe: done")
    assert capsys.readouterr().err == "\rbar\x1b[K\r\x1b[Kggufbpe: warning: careful\nggufbpe: done\n"


def test_no_bar_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_output, "error_width", lambda: None)
    bar = _progress.Bar()
    assert not bar.is_due(at_once=True)
    bar.draw(0.5, "name")
    bar.clear()
    assert capsys.readouterr().err == ""


def test_what_takes_long_is_named_and_taken_away(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_output, "error_width", lambda: 30)
    monkeypatch.setattr(_progress, "PATIENCE", 0.01)
    drawn = ""
    with _progress.waiting("examining"):
        while "\x1b[K" not in drawn:
            drawn += capsys.readouterr().err
            time.sleep(0.01)
    drawn += capsys.readouterr().err
    assert re.fullmatch(r"(\rexamining \.\.\. [0-9]+ s\x1b\[K)+\r\x1b\[K", drawn)
    monkeypatch.setattr(_progress, "PATIENCE", 60)
    with _progress.waiting("nothing long"):
        pass
    assert capsys.readouterr().err == ""


@posix_only
def test_warnings_and_errors_are_wrapped_on_a_terminal_only(tmp_path: Path) -> None:
    """With the words as they are, so that a path can be copied."""
    path = with_pre(GPT2, "llama-bpe", tmp_path / "model.gguf")
    arguments = ("tokenize", "-m", path, "--ids", "-p", "Hi")
    one_line = run_process(*arguments).err
    assert one_line.startswith(f"ggufbpe: warning: {path}: tokenizer.ggml.pre is ")
    assert one_line.count("\n") == 1
    lines = run_on_terminal(*arguments, columns=60).text.splitlines()
    *warning, ids = lines
    assert ids == "[50256, 17250]"
    assert len(warning) > 2
    assert all(line.startswith("  ") and len(line) < 60 for line in warning[1:] if str(path) not in line)
    assert " ".join(line.strip() for line in warning) == one_line.strip()
    told = run_on_terminal("tokenize", "-m", tmp_path / "none" / "x.gguf", "-p", "Hi", columns=40).text
    assert told.split() == run_process("tokenize", "-m", tmp_path / "none" / "x.gguf", "-p", "Hi").err.split()


# ---- info -----------------------------------------------------------------------------------------------


def test_info_of_the_default_model(run: Run) -> None:
    result = run("info")
    assert (result.code, result.err) == (0, NOTE)
    for line in (
        r"  GGUF            version 3, little-endian, 16 keys, 0 tensors, \d+ bytes",
        r"  architecture    gpt2",
        r"  name            gpt-2",
        r"  context length  1024 tokens",
        r"  file type       F16 \(1\)",
        r"  chat template   none",
        r"  model           gpt2: byte pair encoding",
        r"  pre-tokenizer   gpt-2",
        r"  splits like     .*\bjais\b.*\btrillion\b.*",
        r"  pattern         's\|'t\|.*",
        r"  tokens          50257",
        r"  merges          50000",
        r"  types           50256 normal, 1 control",
        r"  on              byte_encode, clean_spaces",
        r"  bos             50256   '<\|endoftext\|>'",
        r"end of generation\n  50256   '<\|endoftext\|>'",
        rf"ggufbpe\n  engine          {ENGINE}",
    ):
        assert re.search(f"^{line}$", result.text, re.MULTILINE), line


def test_info_json(run: Run, tmp_path: Path) -> None:
    model = write_model(
        tmp_path / "model.gguf",
        pre="llama-bpe",
        general__name="A model",
        general__file_type=1024 + 15,
        llama__context_length=4096,
        tokenizer__ggml__eot_token_id=258,
        tokenizer__chat_template="{{ messages }}",
        tokenizer__chat_template__tools="{}",
    )
    facts = json.loads(run("info", "-m", model, "--json").out)
    assert facts["file"] == {
        "path": str(model),
        "size": model.stat().st_size,
        "version": 3,
        "byte_order": "little",
        "keys": 14,
        "tensors": 0,
    }
    assert facts["general"] == {
        "architecture": "llama",
        "name": "A model",
        "context_length": 4096,
        "file_type": "Q4_K_M (15), guessed",
    }
    assert facts["chat_templates"] == {"default": 14, "tools": 2}
    assert facts["engine"] == ENGINE
    tokenizer = facts["tokenizer"]
    assert (tokenizer["model"], tokenizer["supported"], tokenizer["pre"]) == ("gpt2", True, "llama-bpe")
    assert tokenizer["patterns"] == list(PRE_TOKENIZERS["llama-bpe"].patterns)
    assert "falcon3" in tokenizer["splits_alike"]
    assert facts["sizes"] == {"tokens": 259, "merges": 1, "types": {"normal": 257, "control": 2}}
    assert facts["flags"]["add_bos"] is True
    assert facts["flags"]["ignore_merges"] is True
    assert {"name": "eot", "id": 258, "text": "ab"} in facts["special_tokens"]
    assert facts["end_of_generation"] == [{"id": 257, "text": "</s>"}, {"id": 258, "text": "ab"}]


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("test", "hash"),
        ("none", "no vocabulary"),
        ("mystery", "unknown to llama.cpp"),
    ],
)
def test_info_works_on_tokenizers_that_are_not_ours(model: str, words: str, run: Run, tmp_path: Path) -> None:
    path = write_model(tmp_path / "model.gguf", model, None, tokenizer__ggml__cls_token_id=9999)
    result = run("info", "-m", path)
    assert (result.code, result.err) == (0, "")
    for line in (
        rf"  model           {model}: .*{words}.*",
        r"  ids             cannot be made: ggufbpe reads gpt2, .*",
        r"  tokens          259",
        r"  types           257 normal, 2 control",
        r"  bos             256     '<s>'",
        r"  cls             9999    no such token",
        r"  tokenizer\.ggml\.tokens +259 of string",
    ):
        assert re.search(f"^{line}$", result.text, re.MULTILINE), line
    facts = json.loads(run("info", "-m", path, "--json").out)
    assert facts["tokenizer"]["supported"] is False
    assert facts["metadata"]["tokenizer.ggml.tokens"] == "259 of string"


def test_info_of_a_file_without_a_tokenizer(run: Run, tmp_path: Path) -> None:
    make_mmproj(tmp_path / "mmproj.gguf", "gemma3", {})
    for path, sizes in (
        (MALFORMED / "missing-everything.gguf", "0 keys, 0 tensors"),
        (tmp_path / "mmproj.gguf", "13 keys, 1 tensor"),
    ):
        result = run("info", "-m", path)
        assert (result.code, result.err) == (0, "")
        assert "  model           no tokenizer in this file\n" in result.text
        assert f", {sizes}, " in result.text


def test_info_shows_what_it_can_of_a_broken_tokenizer_then_the_error(run: Run) -> None:
    path = MALFORMED / "token-twice.gguf"
    result = run("info", "-m", path)
    assert "  model           gpt2: byte pair encoding\n" in result.text
    assert_error(result._replace(out=b""), "tokenizer.ggml.tokens")
    facts = json.loads(run("info", "-m", path, "--json").out)
    assert facts["tokenizer"]["problem"] in result.err


def test_info_of_every_malformed_file_is_an_answer_or_one_line(run: Run) -> None:
    paths = sorted(MALFORMED.glob("*.gguf"))
    assert len(paths) > 200
    for path in paths:
        result = run("info", "-m", path)
        errors = [line for line in result.err.splitlines() if not line.startswith("ggufbpe: warning: ")]
        assert result.code == (2 if errors else 0), path
        assert len(errors) <= 1, path
        assert all(line.startswith("ggufbpe: error: ") and "defect" not in line for line in errors), path
        assert "\x1b" not in result.text + result.err, path


@pytest.mark.parametrize(
    "arguments",
    [
        ["compare", "MODEL", "MODEL", "-p", "hi"],
        ["diff", "MODEL", "MODEL"],
        ["stats", "-m", "MODEL", "-m", "MODEL", __file__],
        ["verify", "-m", "MODEL", "--against", "MODEL", __file__],
        ["diagnose", "-m", "MODEL", "-m", "MODEL", "-p", "hi", "--ids", "1"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_warning_is_shown_once_a_run(arguments: list[str], run: Run, tmp_path: Path) -> None:
    path = write_model(tmp_path / "model.gguf", pre=None)
    given = [argument.replace("MODEL", str(path)) for argument in arguments]
    shown = [line for line in run(*given).err.splitlines() if "tokenizer.ggml.pre is missing" in line]
    assert len(shown) == 1
    assert len([line for line in run(*given).err.splitlines() if line in shown]) == 1  # in each run


def test_info_shows_warnings_as_one_line_each(run: Run, tmp_path: Path) -> None:
    path = write_model(tmp_path / "model.gguf", pre=None)
    result = run("info", "-m", path)
    assert result.code == 0
    assert result.err.startswith(f"ggufbpe: warning: {path}: tokenizer.ggml.pre is missing")
    assert len(result.err.splitlines()) == 1


@posix_only
@pytest.mark.parametrize("columns", [40, 80, 120])
def test_info_and_list_pre_fit_the_terminal(columns: int) -> None:
    for arguments in (
        ["list-pre"],
        ["list-pre", "deepseek-llm"],
        ["info", "-m", MALFORMED / "model-test.gguf"],
    ):
        lines = run_on_terminal(*arguments, columns=columns).text.splitlines()
        too_long = [line for line in lines if len(line) > columns and "model-test.gguf" not in line]
        assert not too_long  # but a path is never broken


# ---- list-pre -------------------------------------------------------------------------------------------


def test_list_pre_has_a_line_for_each_pattern(run: Run) -> None:
    result = run("list-pre")
    expected = [
        (entry.name, entry.family, pattern) for entry in PRE_TOKENIZERS.values() for pattern in entry.patterns
    ]
    start = len(result.text.splitlines()[0]) - len(expected[0][2])
    found = [(*line[:start].split(), line[start:]) for line in result.text.splitlines()]
    assert found == expected
    assert {name for name, *_ in found} == set(PRE_TOKENIZERS)


def test_list_pre_json(run: Run) -> None:
    entries = json.loads(run("list-pre", "--json").out)
    assert [entry["name"] for entry in entries] == list(PRE_TOKENIZERS)
    one = json.loads(run("list-pre", "--json", "kimi-k2").out)
    assert one == [
        {
            "name": "kimi-k2",
            "family": "kimi-k2",
            "patterns": [r"\p{Han}+"],
            "flags": {**dict.fromkeys(list_pre.FLAGS, False), "byte_encode": True},
            "splits_alike": [],
        }
    ]


def test_list_pre_details(run: Run) -> None:
    text = run("list-pre", "deepseek-coder", "glm4").text
    first, second = text.split("\n\n")
    assert first.splitlines() == [
        "deepseek-coder",
        "  family: deepseek-coder",
        "  splits like: no other name",
        "  patterns: 5",
        *(f"    {pattern}" for pattern in PRE_TOKENIZERS["deepseek-coder"].patterns),
        "  flags:",
        "    byte_encode: words are written in GPT-2's alphabet of bytes",
    ]
    assert "  splits like: chatglm-bpe, dbrx, " in second


def test_every_flag_of_the_registry_is_explained() -> None:
    unexplained = {"name", "family", "lowercase"}
    assert list(list_pre.FLAGS) == [name for name in PreTokenizer._fields if name not in unexplained]


def test_list_pre_of_an_unknown_name(run: Run) -> None:
    assert_error(run("list-pre", "gpt-2", "qwen"), "'qwen'", "near: qwen2")
    assert_error(run("list-pre", "#"), "shows all names")


# ---- all commands ---------------------------------------------------------------------------------------


def test_version(run: Run) -> None:
    expected = (
        f"ggufbpe {ggufbpe.__version__} (engine: {ENGINE}; follows llama.cpp {LLAMA_CPP} for ids, {CHATS} for chats "
        "and the server)\n"
    ).encode()
    if ENGINE == "reference":
        expected += (
            b"The compiled engine, which is much faster, does not run: it is turned off: GGUFBPE_ENGINE=reference is "
            b"in the environment.\n"
        )
    assert run("--version") == run("--debug", "--version") == Result(0, expected, "")


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_has_examples(command: str, run: Run) -> None:
    result = run(*command.split(), "--help")
    assert (result.code, result.err) == (0, "")
    assert result.text.startswith(f"usage: ggufbpe {command}")
    head, _, rest = result.text.partition("examples:")
    assert rest.startswith("\n  ggufbpe ")
    words = [*head.splitlines(), *rest.partition("\n\n")[2].splitlines()]  # examples are as wide as they are
    assert max(map(len, words)) <= 80


def examples() -> list[list[str]]:
    """The examples of the help texts that need no other file and no shell."""
    texts = [help_texts(name)[1] for name in COMMANDS]
    lines = re.findall("^  ggufbpe (.*)$", "\n".join(texts), re.MULTILINE)
    return [shlex.split(line) for line in lines if "model.gguf" not in line and not set("|>*") & set(line)]


@pytest.mark.parametrize("words", examples())
def test_the_examples_work(
    words: list[str], run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "README.md").write_text("text")
    (tmp_path / "src").mkdir()
    assert run(*words).code == 0


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["tokneize"], "did you mean tokenize?"),
        (["version"], "did you mean --version?"),
        (["frobnicate"], "; there are tokenize, "),  # its spelling is like that of truncate
        (["model.gguf"], "a command comes first: ggufbpe info model.gguf"),
        (["-m", "model.gguf", "tokenize"], "no flag '-m' before the command; flags come after it"),
        (["--bogus"], "--bogus"),
        (["?"], "'?'"),
    ],
)
def test_wrong_commands(arguments: list[str], word: str, run: Run) -> None:
    assert_error(run(*arguments), word, "ggufbpe --help")


def test_no_command_shows_all_of_them_in_groups(run: Run) -> None:
    result = run()
    assert (result.code, result.out) == (2, b"")
    assert result.err.endswith("ggufbpe: error: which command?\n")
    for purpose, group in GROUPS.items():
        shown = result.err.partition(f"\n{purpose}:\n")[2].partition("\n\n")[0].splitlines()
        assert [line.split()[0] for line in shown] == list(group)


@posix_only
@pytest.mark.parametrize("pip", ["of this Python", "of another", "none"])
def test_what_installs_an_extra_works_where_it_is_typed(
    pip: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`pip` alone may be that of the system, as for who calls ./run, and a ggufbpe in .venv."""
    (tmp_path / "pip").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path) if pip != "none" else "")
    if pip == "of this Python":
        monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    expected = "pip" if pip == "of this Python" else f"{shlex.quote(sys.executable)} -m pip"
    assert install_command("chat") == f"{expected} install 'ggufbpe[chat]'"


@pytest.mark.parametrize(
    "arguments", [["--debug", "info", "-m", "missing"], ["info", "-m", "missing", "--debug"]]
)
def test_debug_shows_the_traceback(arguments: list[str], run: Run) -> None:
    result = run(*arguments)
    assert result.code == 2
    assert result.err.startswith("Traceback")
    assert "FileNotFoundError" in result.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (MemoryError(), "out of memory"),
        (KeyError("x"), "unexpected KeyError: 'x' (a bug in ggufbpe; --debug shows where)"),
        (ValueError("a\nb\x1b"), r"a\nb\x1b"),
        (OSError("odd"), "odd"),
    ],
)
def test_any_error_is_one_line(
    error: Exception, line: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(Tokenizer, "from_gguf", fail)
    assert run("tokenize", "-p", "a") == Result(2, b"", f"{NOTE}ggufbpe: error: {line}\n")


def test_the_default_model_is_named_on_stderr(run: Run) -> None:
    for arguments in (["tokenize", "a"], ["detokenize", "1"], ["count", "-p", "a"], ["info"]):
        assert run(*arguments).err == NOTE
        assert run(*arguments, "-m", GPT2).err == ""


def test_main_prints_to_a_replaced_stdout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", stdout := io.StringIO())
    assert main(["tokenize", "-m", str(GPT2), "-p", "Hello world", "--ids"]) == 0
    assert stdout.getvalue() == "[15496, 995]\n"


@posix_only
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_broken_pipe_ends_quietly(unbuffered: str, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_bytes(b"word " * 200_000)
    process = subprocess.Popen(
        [*COMMAND, "tokenize", "-m", GPT2, "-f", text],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == b"  4775 -> 'word'\n"
    process.stdout.close()
    assert (process.wait(timeout=60), process.stderr.read()) == (141, b"")
    process.stderr.close()


@posix_only
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_long_output_is_whole(unbuffered: str, tmp_path: Path) -> None:
    """A pipe takes it in parts, which an unbuffered standard output leaves to the caller."""
    text = tmp_path / "text"
    text.write_bytes(b"word" + b" word" * 100_000)
    result = run_process(
        "tokenize", "-m", GPT2, "-f", text, env={**os.environ, "PYTHONUNBUFFERED": unbuffered}
    )
    assert result.out == b"  4775 -> 'word'\n" + b"  1573 -> ' word'\n" * 100_000


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
@pytest.mark.parametrize("arguments", [["tokenize", "-p", "a"], ["--help"], ["info"], ["count", "-p", "a"]])
def test_a_full_disk_is_one_line(arguments: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run([*COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 2
    lines = done.stderr.decode().removeprefix(NOTE)
    assert lines == "ggufbpe: error: writing to standard output failed: No space left on device\n"


@posix_only
def test_closed_standard_streams_are_one_line() -> None:
    def run_closed(descriptor: int, *arguments: str) -> Result:
        script = f'exec {descriptor}>&-; exec "$@"'
        done = subprocess.run(
            ["sh", "-c", script, "sh", *COMMAND, *arguments], capture_output=True, timeout=60
        )
        return Result(done.returncode, done.stdout, done.stderr.decode())

    model = ["-m", str(GPT2)]
    assert_error(run_closed(0, "tokenize", *model, "--stdin"), "standard input is closed")
    assert_error(run_closed(1, "tokenize", *model, "-p", "a"), "standard output is closed")
    assert run_closed(2, "tokenize", "-p", "a", "--ids") == Result(0, b"[64]\n", "")


@posix_only
def test_ctrl_c_ends_quietly(tmp_path: Path) -> None:
    (tmp_path / "0000.txt").write_bytes(b"".join(b"%d " % n for n in range(400_000)))
    for index in range(1, 4000):  # 10 GB, which no machine has counted before the signal comes
        os.link(tmp_path / "0000.txt", tmp_path / f"{index:04}.txt")
    process = subprocess.Popen(
        [*COMMAND, "count", "-m", GPT2, tmp_path], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.readline()  # the first file is counted, the others are not
    time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, b"")
    assert b"total" not in out


@pytest.mark.parametrize("name", ["cli._arguments", "analysis.views.terminal", "cli.detokenize"])
def test_the_examples_in_docstrings_hold(name: str) -> None:
    failed, tried = doctest.testmod(import_module(f"ggufbpe.{name}"))
    assert (failed, tried > 0) == (0, True)


# ---- start-up -------------------------------------------------------------------------------------------

HEAVY = {
    "numpy",
    "gguf",
    "json",
    "difflib",
    "regex",
    "shutil",
    "textwrap",
    "inspect",
    "dataclasses",
    "traceback",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "others"),
    [
        pytest.param(
            ["tokenize", "-p", "Hello world", "--ids"],
            {
                "copy",
                "weakref",
                "ggufbpe.analysis.verify.align",
                "ggufbpe.cli.count",
                "ggufbpe.cli.info",
                "ggufbpe.models.token_attribute",
                "ggufbpe.tokenizer.special_tokens",
            },
            marks=of_the_compiled_engine,
        ),
        (["detokenize", "15496"], {"ggufbpe.cli.tokenize"}),
        (["count", "-p", "Hello world"], {"ggufbpe.cli.tokenize"}),
        (["list-pre"], {"ggufbpe.tokenizer", "ggufbpe._util.unicode_classes"}),
        (["--version"], {"ggufbpe.tokenizer", "ggufbpe.models", "ggufbpe.models.pretokenizers.registry"}),
    ],
)
def test_a_command_imports_only_what_it_needs(arguments: list[str], others: set[str]) -> None:
    script = (
        "import sys\nfrom ggufbpe.cli import main\n"
        f"code = main({arguments!r})\nprint(*sys.modules, file=sys.stderr)\nsys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stderr.decode().splitlines()[-1].split())
    assert not loaded & (HEAVY | others)


@of_the_compiled_engine
def test_a_command_compiles_no_annotation() -> None:
    """`typing` compiles those of a NamedTuple that are strings, which takes some of a short command's time."""
    script = (
        "import builtins, sys\ncompiled = []\nreal = compile\n"
        "def counted(source, *arguments, **options):\n"
        "    if isinstance(source, str):\n"
        "        compiled.append(source)\n"
        "    return real(source, *arguments, **options)\n"
        "builtins.compile = counted\nfrom typing import NamedTuple\n"
        "NamedTuple('Counted', [('one', 'int')])\nfrom ggufbpe.cli import main\n"
        "code = main(['tokenize', '-p', 'Hello world', '--ids'])\nprint(compiled, file=sys.stderr)\nsys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stderr.decode().splitlines()[-1] == "['int']"  # of the one above: the count works


@of_the_compiled_engine
@pytest.mark.slow
def test_a_command_compiles_no_pattern_that_it_does_not_use() -> None:
    script = (
        "import re, sys\ncompiled = []\nreal = re.compile\n"
        "def compile(pattern, flags=0):\n"
        "    compiled.append(sys._getframe(1).f_globals['__name__'])\n"
        "    return real(pattern, flags)\n"
        "re.compile = compile\nfrom ggufbpe.cli import main\n"
        "code = main(['tokenize', '-p', 'Hello world', '--ids'])\nprint(*compiled, file=sys.stderr)\nsys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    compiled = done.stderr.decode().splitlines()[-1].split()
    assert "gettext" in compiled  # argparse's: the count works
    assert not [name for name in compiled if name.startswith("ggufbpe")]
