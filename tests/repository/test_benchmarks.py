"""The benchmarks work and judge rightly: ids are checked, every machine has texts, goals are met or not."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT
from reference import with_pre

BENCHMARKS = ROOT / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import encoding  # noqa: E402
import goals  # noqa: E402
import growth  # noqa: E402
import ids  # noqa: E402
import incremental  # noqa: E402
import instructions  # noqa: E402
import machine  # noqa: E402
import opening  # noqa: E402
import peers  # noqa: E402
import scaling  # noqa: E402
import texts  # noqa: E402
import timing  # noqa: E402
from cases import Case, case, cases  # noqa: E402
from tokenizer_json import PATTERNS, tokenizer_json  # noqa: E402

TEXT = "It isn't 12345 days;  JavaScript's\n\n  été, 你好 かな 3,14 and\tso on… \n"


@pytest.fixture
def gpt2(tmp_path: Path) -> Case:
    """GPT-2's vocabulary."""
    return case("gpt-2", tmp_path)


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARKS / script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)


def test_modules_that_are_imported_by_name_alone_differ_in_it() -> None:
    """Tests put these folders on the path, and the first of two modules of one name hides the other."""
    folders = ("benchmarks", "scripts", "tests/helpers", "tests/makers")
    names = Counter(path.stem for folder in folders for path in (ROOT / folder).glob("*.py"))
    assert [name for name, count in names.items() if count > 1] == []


# ---- the whole ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_quick_run_with_whatever_is_installed(tmp_path: Path) -> None:
    text, out = tmp_path / "tiny.txt", tmp_path / "out.json"
    text.write_text(TEXT * 20, encoding="utf-8")
    ran = run("run.py", "--quick", "--vocab", "gpt-2", "--text", f"mine={text}", "--json", str(out))
    assert ran.returncode == 0, ran.stderr
    results = json.loads(out.read_text(encoding="utf-8"))
    installed = {name for name, package in peers.PACKAGES.items() if machine.versions()[package]}
    assert set(results) == {
        *("machine", "versions", "settings", "texts", "left_out"),
        *("ids", "encode", "fresh", "short", "open", "process", "threads", "rows"),
    }
    assert results["texts"] == [
        {
            "name": "mine",
            "source": str(text),
            "bytes": len(TEXT.encode()) * 20,
            "long_bytes": len(TEXT.encode()) * 20,
        }
    ]
    knowing = {
        name for name in ("HF tokenizers 1.0", *installed) if peers.knows(name, case("gpt-2", tmp_path))
    }
    installed = {name for name in knowing if f"{name}, gpt-2" not in results["left_out"]}
    for part in ("ids", "encode", "short"):
        assert {entry["engine"] for entry in results[part]} == {peers.OURS, *installed}, part
    assert [check for check in results["ids"] if not check["equal"]] == []
    assert {"ggufbpe", "llama.cpp", "tiktoken"} - installed <= {peers.OURS, *results["left_out"]}
    for figure in results["fresh"]:
        assert len(figure["processes"]) == 2 * results["settings"]["rounds"] + 1
        assert {one["ids"] for one in figure["processes"]} == {results["ids"][0]["expected_tokens"]}
        assert all(one["together"]["seconds"] > one["encode"]["seconds"] > 0 for one in figure["processes"])
    for figure in results["encode"]:
        assert len(figure["first_seconds"]) == len(figure["later_seconds"]) == timing.MORE_ROUNDS
        assert figure["first_mb_per_s"] > 0
        assert figure["later_mb_per_s"] > 0
    compared = {(row["what"], row["against"]) for row in results["rows"]}
    assert {(what, peer) for what in (goals.FIRST, goals.LATER) for peer in installed} <= compared
    assert (goals.SHORT_OVERHEAD, "the compiled engine's own time") in compared
    assert all(isinstance(row["value"], float) for row in results["rows"])
    assert "| gpt-2: encode, MB/s, first pass / later | mine |" in ran.stdout
    assert "Reached: " in ran.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--vocab", "no-such-model"], "no-such-model is neither a GGUF file nor one of llama-3, gpt-2"),
        (["--text", "no-such-file"], "no-such-file"),
    ],
)
def test_what_is_not_there_is_said(arguments: list[str], message: str) -> None:
    ran = run("run.py", "--quick", *arguments)
    assert ran.returncode == 1
    assert message in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_vocabulary_that_is_not_prepared_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GGUFBPE_REFERENCE", str(tmp_path))
    left_out: dict[str, str] = {}
    found = [each.name for each in cases(["llama-3", "gpt-2"], tmp_path, left_out)]
    assert found == ["gpt-2"]
    assert "reference.py prepare --vocabs" in left_out["llama-3"]


# ---- ids ------------------------------------------------------------------------------------------------


def engine_of(found: list[int]) -> peers.Engine:
    return peers.Engine(lambda _: found, lambda _: found)


@pytest.mark.parametrize(
    ("pieces", "missing"),
    [
        (["Hello", " world", "!"], 0),
        (["Hello", " wor", "ld", "!"], 1),
        (["He", "llo", " wor", "ld", "!"], 2),
        (["Hello", " world"], 1),
        ([], 3),
    ],
)
def test_missing_tokens_are_counted_where_they_stand(gpt2: Case, pieces: list[str], missing: int) -> None:
    def encoded(pieces: list[str]) -> list[int]:
        return [token for piece in pieces for token in gpt2.tokenizer.encode(piece)]

    expected = engine_of(encoded(["Hello", " world", "!"]))
    engines = {peers.OURS: expected, "other": engine_of(encoded(pieces))}
    ours, other = ids.check_ids(gpt2, texts.Text("text", "here", "Hello world!"), engines)
    assert (ours["equal"], ours["missing_tokens"]) == (True, 0)
    assert (other["equal"], other["missing_tokens"]) == (missing == 0, missing)
    assert bool(encoding.note(other)) == (missing > 0)


def test_llama_cpp_says_what_is_right(gpt2: Case) -> None:
    engines = {peers.OURS: engine_of([0]), peers.LLAMA_CPP: engine_of([1])}
    ours, theirs = ids.check_ids(gpt2, texts.Text("text", "here", '"'), engines)
    assert (ours["equal"], theirs["equal"]) == (False, True)


@pytest.mark.slow
@pytest.mark.parametrize("pre", ["gpt-2", "llama-bpe", "qwen2", "gpt-4o", "deepseek-v3", "gemma4"])
def test_tokenizer_json_gives_our_ids(pre: str, tmp_path: Path, gpt2_path: Path, raw_utf8_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    base = raw_utf8_path if pre == "gemma4" else gpt2_path
    tok = Case(pre, with_pre(base, pre, tmp_path / "model.gguf"), tmp_path).tokenizer
    theirs = tokenizers.Tokenizer.from_str(tokenizer_json(tok.vocabulary))
    expected = tok.encode(TEXT, add_special=False, parse_special=False)
    assert theirs.encode(TEXT, add_special_tokens=False).ids == expected


def test_tokenizer_json_says_what_it_cannot_do(tmp_path: Path, gpt2_path: Path) -> None:
    assert "afmoe" not in PATTERNS
    tok = Case("afmoe", with_pre(gpt2_path, "afmoe", tmp_path / "model.gguf"), tmp_path).tokenizer
    with pytest.raises(NotImplementedError, match="afmoe"):
        tokenizer_json(tok.vocabulary)


# ---- texts ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_every_machine_has_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("DICTIONARY", "MANUALS", "TRANSLATIONS"):
        monkeypatch.setattr(texts, place, tmp_path / "nothing")
    found = {text.name: text for text in texts.machine_texts(50_000)}
    assert {name: text.source for name, text in found.items()} == {
        "prose": "docstrings of Python",
        "code": "source of Python's library",
        "many languages": "generated words of many scripts",
    }
    for text in found.values():
        assert 49_990 < text.size <= 50_000, text.name
    assert (
        found["many languages"] == {text.name: text for text in texts.machine_texts(50_000)}["many languages"]
    )
    assert len({ord(character) >> 8 for character in found["many languages"].text}) > 15


def test_manual_pages_take_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import gzip

    pages = {"de/man1/a.1": "eins ", "de/man1/b.1": "zwei ", "ru/man8/c.8": "один ", "man1/d.1": "one "}
    for place, content in pages.items():
        path = tmp_path / f"{place}.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(content.encode()))
    monkeypatch.setattr(texts, "MANUALS", tmp_path)
    assert "".join(texts.manuals()) == "eins один zwei "


def test_documents_of_a_batch_are_the_text() -> None:
    text = "one line\n" * 1000 + "and no end"
    documents = scaling.split_into_documents(text)
    assert "".join(documents) == text
    assert len(documents) == 5
    assert all(document.endswith("\n") for document in documents[:-1])
    assert scaling.split_into_documents("") == []


def test_the_short_text_has_50_characters() -> None:
    assert len(encoding.SHORT_TEXT) == 50


@pytest.mark.slow
def test_one_part_of_the_whole(tmp_path: Path) -> None:
    text, out = tmp_path / "tiny.txt", tmp_path / "out.json"
    text.write_text(TEXT * 20, encoding="utf-8")
    small = ("--quick", "--vocab", "gpt-2", "--text", f"mine={text}")
    ran = run("run.py", *small, "--part", "threads", "--json", str(out))
    assert ran.returncode == 0, ran.stderr
    assert "50 characters" not in ran.stdout
    results = json.loads(out.read_text(encoding="utf-8"))
    assert results["settings"]["parts"] == ["threads"]
    assert {row["against"] for row in results["rows"]} == {scaling.ONE}
    assert [results[part] for part in ("encode", "short", "open", "process")] == [[]] * 4
    assert {check["engine"] for check in results["ids"]} <= {peers.OURS, peers.LLAMA_CPP}
    assert all(check["equal"] for check in results["ids"])


# ---- threads --------------------------------------------------------------------------------------------


class Threaded:
    """Looks like our tokenizer; `wrong` gives other ids on two threads."""

    def __init__(self, wrong: bool = False) -> None:
        self.wrong = wrong

    def encode(self, text: str) -> list[int]:
        return [*text.encode()]

    def encode_batch(self, texts: list[str], *, threads: int = 1, **flags: bool) -> list[list[int]]:
        return [self.encode(text) for text in texts]

    def encode_to_numpy(self, text: str, *, threads: int = 1, **flags: bool) -> np.ndarray[Any, Any]:
        return np.array(self.encode(text)[: -1 if self.wrong and threads > 1 else None])


def test_threads_are_measured_where_methods_take_them(gpt2: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaling, "our_tokenizer", lambda case, engine: Threaded())
    monkeypatch.setattr(scaling, "ROUNDS", 2)  # each starts three processes
    left_out: dict[str, str] = {}
    text = texts.Text("text", "here", TEXT)
    figures, rows = scaling.scaling(gpt2, [(text, text)], "auto", 2, left_out)
    assert left_out == {}
    assert [row["what"] for row in rows] == [
        *(goals.BATCH_FIRST, goals.BATCH_LATER, goals.LONG_FIRST, goals.LONG_LATER)
    ]
    both, three = [scaling.ONE, scaling.TWO], [scaling.ONE, scaling.TWO, scaling.APART]
    assert [figure["kind"] for figure in figures] == [*both, *both, *three, *three]
    assert [scaling.APART in row["note"] for row in rows] == [False, False, True, True]
    assert all(row["note"].startswith("middle half ") for row in rows)
    assert all(len(figure["seconds"]) == 2 * scaling.ROUNDS for figure in figures)


def test_other_ids_on_two_threads_are_an_error(gpt2: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaling, "our_tokenizer", lambda case, engine: Threaded(wrong=True))
    text = texts.Text("text", "here", TEXT)
    with pytest.raises(RuntimeError, match="encode_to_numpy gives other ids on two threads"):
        scaling.scaling(gpt2, [(text, text)], "auto", 1, {})


# ---- verdicts -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "against", "value", "floor_met", "aim_met"),
    [
        (goals.FIRST, "gigatoken", 0.99, False, False),
        (goals.FIRST, "gigatoken", 1.0, True, False),
        (goals.FIRST, "gigatoken", 2.0, True, True),
        (goals.LATER, "tiktoken", 7.9, False, None),
        (goals.OPEN, "llama.cpp", 0.31, False, False),
        (goals.OPEN, "llama.cpp", 0.3, True, False),
        (goals.PROCESS_MEMORY, "llama-tokenize", 0.6, True, True),
        (goals.SHORT, "gigatoken", 1.1, None, False),
        (goals.FIRST, "HF tokenizers", 100.0, None, None),
    ],
)
def test_goals(what: str, against: str, value: float, floor_met: bool | None, aim_met: bool | None) -> None:
    row = goals.row("v", "prose", what, against, 1.0, 1.0, "x", value)
    assert (row["floor_met"], row["aim_met"]) == (floor_met, aim_met)


def test_ratio_of_speeds_is_above_one_where_we_are_faster() -> None:
    def figure(engine: str, seconds: float) -> dict[str, Any]:
        times = {"first_seconds": [seconds], "later_seconds": [seconds]}
        speeds = {"first_mb_per_s": 1 / seconds, "later_mb_per_s": 1 / seconds}
        return {"vocabulary": "v", "text": "t", "engine": engine, **times, **speeds}

    equal = [{"engine": engine, "equal": True} for engine in (peers.OURS, "gigatoken")]
    rows = encoding.pass_rows([figure(peers.OURS, 0.5), figure("gigatoken", 1.0)], equal)
    assert [(row["what"], row["value"], row["floor_met"]) for row in rows] == [
        (goals.FIRST, 2.0, True),
        (goals.LATER, 2.0, True),
    ]


# ---- whole processes ------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="no os.wait4")
def test_peak_memory_is_that_of_the_command_alone() -> None:
    held = np.ones(50_000_000)  # 400 MB of this process, which a child must not be charged with
    program = "import sys; sys.stdout.write('ok'); block = b'x' * int(sys.argv[1])"
    commands = {size: [sys.executable, "-c", program, size] for size in ("1000", "100000000")}
    found = opening._launch(commands, 1)
    small, large = (found[size][0] for size in commands)
    assert (small["status"], small["output"]) == (0, "ok")
    assert small["peak_bytes"] < 100_000_000 < large["peak_bytes"] < held.nbytes


# ---- growth and instructions ----------------------------------------------------------------------------


@pytest.mark.slow
def test_growth_prints_a_row_for_each_text(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    ran = run("growth.py", "--families", "llama-bpe", "whitespace", "--longest", "2000", "--json", str(out))
    assert ran.returncode == 0, ran.stderr
    rows = json.loads(out.read_text(encoding="utf-8"))
    assert [(row["name"], row["text"]) for row in rows] == [
        (name, text) for name in ("llama-bpe", "whitespace") for text in growth.TEXTS
    ]
    assert all(row["sizes"] == [2000] and row["met"] for row in rows)
    assert f"{len(rows)} of {len(rows)} stay within 1.5 x." in ran.stdout


def test_incremental_prints_a_row_for_each_length(tmp_path: Path) -> None:
    out = tmp_path / "incremental.json"
    ran = run("incremental.py", "--longest", "10000", "--json", str(out))
    assert ran.returncode == 0, ran.stderr
    [row] = json.loads(out.read_text(encoding="utf-8"))
    assert (row["vocab"], row["characters"]) == ("gpt-2", 10_000)
    assert all(row[name] > 0 for name in ("append", "restore", "encode", "made"))


def test_incremental_compares_ids(gpt2: Case) -> None:
    class Wrong:
        def __getattr__(self, name: str) -> Any:
            return getattr(peers.our_tokenizer(gpt2), name)

        def encode(self, text: bytes) -> list[int]:
            return [0]

    with pytest.raises(ValueError, match="are not those of the whole text"):
        incremental.measured(Wrong(), 1000, appends=3)


def test_appends_by_vllm_are_compared(gpt2: Case) -> None:
    tokenizer = peers.our_tokenizer(gpt2)
    measured = incremental.measured(tokenizer, 1000, appends=3, vllm=tokenizer.encode_ordinary)
    assert measured["vllm"] > 0
    assert "vllm" not in incremental.measured(tokenizer, 1000, appends=3, vllm=lambda text: None)
    with pytest.raises(ValueError, match="vLLM's ids of 1300 characters are not ours"):
        incremental.measured(tokenizer, 1000, appends=3, vllm=lambda text: [0])


def test_growth_has_every_family() -> None:
    from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS

    families = [PRE_TOKENIZERS[name].family for name in growth.one_of_each_family()]
    assert sorted(families) == sorted({entry.family for entry in PRE_TOKENIZERS.values()})


@pytest.mark.parametrize(("values", "greatest"), [([4.0, 2.0, 3.0], 1.5), ([1.0], 1.0), ([5.0, 4.0], 0.8)])
def test_greatest_growth(values: list[float], greatest: float) -> None:
    assert growth.greatest_growth(values) == greatest


def test_instructions_are_differences_of_whole_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = tmp_path / "text"
    text.write_bytes(b"0123456789")
    counts = {"0": 1000, "1": 1500, "4": 1800}
    monkeypatch.setattr(instructions, "count", lambda tool, arguments, profile: counts[arguments[-1]])
    assert instructions.per_byte("perf", "auto", tmp_path, text, "") == (50.0, 10.0)


def test_the_process_whose_instructions_are_counted_runs(tmp_path: Path, gpt2_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text(TEXT, encoding="utf-8")
    ran = run("instructions.py", "--child", "auto", str(gpt2_path), str(text), "2")
    assert (ran.returncode, ran.stderr) == (0, "")
