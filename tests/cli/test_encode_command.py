"""`ggufbpe encode`: what it says of what it did. What shards have is in tests/data/corpora/."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import Run, assert_error, run
from reference import write_metadata
from small_models import CHATML, small_model, with_template

from ggufbpe.data.corpora import shard_writer

__all__ = ["run", "small_model"]  # fixtures

CHAT = {"messages": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "world"}]}


def jsonl(folder: Path, *records: dict[str, Any]) -> Path:
    path = folder / "in.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.mark.parametrize(
    ("adds_bos", "flags", "said"),
    [
        (True, [], "documents begin with BOS and end with EOS"),
        (False, ["--bos"], "documents begin with BOS and end with EOS"),
        (False, [], "documents begin without BOS, unless the chat template writes it, and end with EOS"),
        (
            False,
            ["--no-eos"],
            "documents begin without BOS and end without EOS, unless the chat template writes them",
        ),
    ],
)
def test_what_is_around_chats_is_said(
    adds_bos: bool, flags: list[str], said: str, run: Run, tmp_path: Path
) -> None:
    """Of a tokenizer that adds BOS to each prompt, every document begins with it."""
    model = write_metadata(tmp_path / "model.gguf", with_template(CHATML, add_bos_token=adds_bos))
    done = run("encode", "-m", model, jsonl(tmp_path, CHAT), "-o", tmp_path / "out", "--chats", *flags)
    assert done.code == 0
    summary, lengths = done.text.splitlines()
    assert summary.endswith(f"; {said}")
    tokens = 26 + (adds_bos or bool(flags[:1] == ["--bos"])) - (flags == ["--no-eos"])
    assert lengths == f"chats by tokens: 1 up to 32; the longest has {tokens}"


def test_standard_input_is_refused(run: Run, small_model: Path, tmp_path: Path) -> None:
    done = run("encode", "-m", small_model, "-", "-o", tmp_path / "out", stdin=b"hello")
    assert_error(done, "standard input cannot be encoded", "write the text to a file")


def test_an_empty_path_is_refused(run: Run, small_model: Path) -> None:
    done = run("encode", "-m", small_model, "", "-o", "out")
    assert_error(done, "a path is empty; give the name of a file or folder")


def test_mask_form_and_mask_parts_turn_the_mask_on(run: Run, tmp_path: Path) -> None:
    model = write_metadata(tmp_path / "model.gguf", with_template(CHATML))
    for number, flags in enumerate((["--mask-form", "labels"], ["--mask-parts", "content"])):
        out = tmp_path / str(number)
        done = run("encode", "-m", model, jsonl(tmp_path, CHAT), "-o", out, "--chats", *flags)
        assert " of the assistant)" in done.text, done


ALPACA = {"instruction": "hello", "output": "world"}


@pytest.mark.parametrize(
    "content", [json.dumps([ALPACA, CHAT]), json.dumps(CHAT), f"\n [{json.dumps(ALPACA)}]"]
)
def test_chats_in_an_array_of_json(content: str, run: Run, small_model: Path, tmp_path: Path) -> None:
    """As Alpaca is published."""
    (tmp_path / "alpaca.json").write_text(content)
    done = run("encode", "-m", small_model, tmp_path / "alpaca.json", "-o", tmp_path / "out", "--chats")
    found = json.loads(content)
    lines = jsonl(tmp_path, *(found if isinstance(found, list) else [found]))
    other = run("encode", "-m", small_model, lines, "-o", tmp_path / "lines", "--chats")
    assert done.text == other.text.replace("lines;", "out;")
    assert [(tmp_path / name / "part-00000.bin").read_bytes() for name in ("out", "lines")] == [
        (tmp_path / "out" / "part-00000.bin").read_bytes()
    ] * 2
    done = run("encode", "-m", small_model, tmp_path / "alpaca.json", "-o", tmp_path / "texts")
    assert ("alpaca.json is an array of records, and was encoded as one text" in done.err) == (
        "[" in content[:3]
    )


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("[1]", "row 1: no known form of a chat"),
        ("[", "not JSON"),
        ('[{"messages": []}]', "row 1: a chat without"),
    ],
)
def test_an_array_of_json_without_chats(
    content: str, problem: str, run: Run, small_model: Path, tmp_path: Path
) -> None:
    (tmp_path / "a.json").write_text(content)
    done = run("encode", "-m", small_model, tmp_path / "a.json", "-o", tmp_path / "out", "--chats")
    assert_error(done, problem)


@pytest.mark.parametrize("has_shards", [False, True])
def test_what_is_there_after_it_was_stopped(
    has_shards: bool, run: Run, small_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--resume` is named only where there is something to resume."""
    source = jsonl(tmp_path, *[{"text": "hello " * 3}] * 40)
    add = shard_writer.ShardsWriter.add
    calls = []

    def stop(self: Any, *arguments: Any) -> None:
        calls.append(1)
        if len(calls) > has_shards:
            raise KeyboardInterrupt
        add(self, *arguments)

    monkeypatch.setattr(shard_writer.ShardsWriter, "add", stop)
    monkeypatch.setattr("ggufbpe.data.corpora.chunks.CHUNK", 100)
    done = run("encode", "-m", small_model, source, "-o", tmp_path / "out", "--shard-size", "1")
    assert (done.code, (tmp_path / "out").exists()) == (130, has_shards)
    said = "the shards that are finished stay, and --resume goes on with them"
    if not has_shards:
        said = "no shard was finished, so nothing was written"
    assert done.err.splitlines()[-1] == f"ggufbpe: stopped; {said}"


def test_shards_stay_when_a_forced_run_is_stopped_or_fails(
    run: Run, small_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, out = jsonl(tmp_path, {"text": "hello"}), tmp_path / "out"
    command = ["encode", "-m", small_model, source, "-o", out, "--force"]
    assert run(*command).code == 0
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    assert_error(run(*command, "--text-column", "txt"), "line 1: ")

    def stop(self: Any, *arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(shard_writer.ShardsWriter, "add", stop)
    done = run(*command)
    said = "ggufbpe: stopped; no shard was finished, so the folder is as it was"
    assert (done.code, done.err.splitlines()[-1]) == (130, said)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_resume_on_nothing_is_said(run: Run, small_model: Path, tmp_path: Path) -> None:
    source = jsonl(tmp_path, {"text": "hello"})
    done = run("encode", "-m", small_model, source, "-o", tmp_path / "out", "--resume")
    assert done.code == 0
    assert "there was nothing to resume" in done.err
    done = run("encode", "-m", small_model, source, "-o", tmp_path / "out", "--resume")
    assert (done.code, done.err) == (0, "")


def test_the_text_column_is_named_as_its_caller_names_it(run: Run, small_model: Path, tmp_path: Path) -> None:
    source = jsonl(tmp_path, {"body": "hello"})
    done = run("encode", "-m", small_model, source, "-o", tmp_path / "out")
    assert_error(done, "--text-column NAME names another")
    done = run("verify", "-m", small_model, "--against", small_model, source)
    assert (done.code, "--field NAME names another" in done.err) == (2, True)
    done = run("verify", "-m", small_model, "--against", small_model, "--text-column", "body", source)
    assert done.code == 0, done
