"""`count_files` counts each file in blocks, as if its whole text were encoded at once."""

from __future__ import annotations

import gzip
import io
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from conftest import GPT2, ROOT

import ggufbpe
from ggufbpe import FileCounts, Progress, Tokenizer
from ggufbpe.data.statistics.file_counts import TextCounts

TEXT = "naïve 123\n" * 30
CHAT = {"messages": [{"role": "user", "content": "Hi"}]}
HI, TWICE = CHAT["messages"], CHAT["messages"] * 2
CHATML = "known:chatml"
DAY = datetime(2026, 7, 31)


@pytest.fixture(scope="module")
def tok() -> Tokenizer:
    return Tokenizer.from_gguf(GPT2)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("texts").mkdir()
    Path("texts/a.txt").write_text(TEXT, encoding="utf-8")
    Path("texts/b.txt.gz").write_bytes(gzip.compress(b"\xff compressed"))
    Path("texts/c.jsonl").write_text('{"text": "one"}\n{"text": "two words", "body": "other"}\n')
    Path("texts/.hidden").write_text("x")
    Path("chat.json").write_text(json.dumps(CHAT))
    Path("chats.jsonl").write_text(f"{json.dumps(CHAT['messages'])}\n{json.dumps(CHAT)}\n")
    return tmp_path


def numbers(tok: Tokenizer, name: str, *texts: bytes, **flags: Any) -> TextCounts:
    """What counting `texts` as the records of a file must give."""
    decoded = [text.decode("utf-8", "replace") for text in texts]
    undecodable = sum(text.decode("utf-8", "surrogateescape").count("\udcff") for text in texts)
    tokens = sum(tok.count(text, **flags) for text in texts)
    return TextCounts(name, tokens, sum(map(len, texts)), sum(map(len, decoded)), undecodable)


def test_each_file_has_the_counts_of_its_texts(tok: Tokenizer) -> None:
    found = ggufbpe.count_files(tok, "texts")
    assert found.files == [
        numbers(tok, "texts/a.txt", TEXT.encode()),
        numbers(tok, "texts/b.txt.gz", b"\xff compressed"),
        numbers(tok, "texts/c.jsonl", b"one", b"two words"),
    ]
    assert found.total == TextCounts("total", *map(sum, zip(*(each[1:] for each in found.files))))
    assert (found.tokens, found.errors, found.skipped) == (found.total.tokens, [], {"hidden": 1})
    assert repr(found) == f"<FileCounts: 3 files, {found.total.bytes} bytes, {found.tokens} tokens>"
    assert found.files[0].characters_per_token == len(TEXT) / found.files[0].tokens
    assert TextCounts("empty", 0, 0, 0, 0).characters_per_token is None


def test_paths_and_streams_are_taken_in_each_form(tok: Tokenizer) -> None:
    expected = numbers(tok, "texts/a.txt", TEXT.encode())
    for paths in ("texts/a.txt", Path("texts/a.txt"), ["texts/a.txt"], (Path("texts/a.txt"),)):
        assert ggufbpe.count_files(GPT2, paths).files == [expected]
    streams = [io.BytesIO(b"one"), open("texts/a.txt", "rb")]  # noqa: SIM115 - closed below
    with streams[1]:
        found = ggufbpe.count_files(tok, streams).files
    assert found == [numbers(tok, "(stream)", b"one"), expected]
    with pytest.raises(TypeError, match="count_files takes paths and binary streams, not int"):
        ggufbpe.count_files(tok, [1])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="paths must be an iterable of paths and binary streams, not None"):
        ggufbpe.count_files(tok, None)  # type: ignore[arg-type]


def test_options_are_those_of_the_command(tok: Tokenizer) -> None:
    adds_bos = tok.with_overrides({"tokenizer.ggml.add_bos_token": True})
    assert ggufbpe.count_files(adds_bos, "texts/a.txt").tokens == 1 + tok.count(TEXT)
    assert ggufbpe.count_files(adds_bos, "texts/a.txt", add_bos=False).tokens == tok.count(TEXT)
    assert ggufbpe.count_files(adds_bos, "texts/a.txt", add_special=False).tokens == tok.count(TEXT)
    adds_eos = ggufbpe.Tokenizer.from_gguf(ROOT / "fixtures/vocabs/add-eos-only.gguf")
    one = adds_eos.count(TEXT)
    assert ggufbpe.count_files(adds_eos, "texts/a.txt", add_special=True).tokens == one
    assert ggufbpe.count_files(adds_eos, "texts/a.txt").tokens == one - 1
    assert ggufbpe.count_files(adds_bos, "texts/c.jsonl").tokens == 2 + tok.count("one") + tok.count(
        "two words"
    )
    text = b"<|endoftext|>"
    assert ggufbpe.count_files(tok, io.BytesIO(text)).tokens == 1
    assert ggufbpe.count_files(tok, io.BytesIO(text), parse_special=False).tokens > 1
    errors: list[tuple[str, str]] = []
    by_field = ggufbpe.count_files(
        tok, "texts/c.jsonl", field="body", report=lambda name, error: errors.append((name, str(error)))
    )
    assert by_field.tokens == tok.count("other")
    assert [name for name, _ in errors] == ["texts/c.jsonl"]
    assert [error["name"] for error in by_field.errors] == ["texts/c.jsonl"]


def test_chats_have_the_tokens_of_their_prompts(tok: Tokenizer) -> None:
    one = len(tok.apply_chat_template(CHAT["messages"], chat_template=CHATML))
    found = ggufbpe.count_files(tok, ["chat.json", "chats.jsonl"], chats=True, chat_template=CHATML)
    assert [each.tokens for each in found.files] == [one, 2 * one]
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    with_tools = tok.apply_chat_template(CHAT["messages"], chat_template="known:Qwen-Qwen3-0.6B", tools=tools)
    assert ggufbpe.count_files(
        tok, "chat.json", chats=True, chat_template="known:Qwen-Qwen3-0.6B", tools=tools
    ).tokens == len(with_tools)
    template, kwargs = "{{ strftime_now('%d') }}{{ mode }}", {"mode": "deep"}
    dated = tok.apply_chat_template(HI, chat_template=template, chat_template_kwargs=kwargs, now=DAY)
    assert ggufbpe.count_files(
        tok, "chat.json", chats=True, chat_template=template, chat_template_kwargs=kwargs, now=DAY
    ).tokens == len(dated)
    assert tok.decode(dated) == "31deep"
    with pytest.raises(ValueError, match="the model has no chat template"):
        ggufbpe.count_files(tok, "chat.json", chats=True)
    for given in ({"now": DAY}, {"chat_template": CHATML}, {"chat_template_kwargs": kwargs}, {"tools": []}):
        with pytest.raises(
            ValueError, match="tools, chat_template, chat_template_kwargs and now need chats=True"
        ):
            ggufbpe.count_files(tok, "chat.json", **given)


@pytest.mark.parametrize(
    ("name", "text", "chats"),
    [
        ("a.json", json.dumps(TWICE), [TWICE]),
        ("a.json", json.dumps(HI, indent=1), [HI]),
        ("a.json", json.dumps(CHAT), [HI]),
        ("a.json", json.dumps([CHAT, {"messages": TWICE}]), [HI, TWICE]),
        ("a.json", json.dumps([HI, TWICE]), [HI, TWICE]),
        ("a.jsonl", json.dumps(TWICE), [TWICE]),
        ("a.jsonl", f"{json.dumps(CHAT)}\n{json.dumps(TWICE)}\n", [HI, TWICE]),
    ],
)
def test_counts_statistics_and_shards_are_of_the_same_chats(
    name: str, text: str, chats: list[Any], tok: Tokenizer
) -> None:
    Path(name).write_text(text)
    tokens = sum(len(tok.apply_chat_template(messages, chat_template=CHATML)) for messages in chats)
    assert ggufbpe.count_files(tok, name, chats=True, chat_template=CHATML).tokens == tokens
    assert ggufbpe.stats(tok, Path(name), chats=True, chat_template=CHATML).total[0].texts == len(chats)
    assert ggufbpe.encode_corpus(name, tok, "out", chats=True, chat_template=CHATML).documents == len(chats)


@pytest.mark.parametrize("are_in_chats", [True, False])
def test_tools_that_the_template_does_not_show_are_warned_of_once(are_in_chats: bool, tok: Tokenizer) -> None:
    tools = [{"type": "function", "function": {"name": "f"}}]
    chat = {**CHAT, "tools": tools} if are_in_chats else CHAT
    Path("tools.jsonl").write_text(f"{json.dumps(chat)}\n" * 2)
    with pytest.warns(ggufbpe.GGUFWarning, match="the chat template does not show the tools") as caught:
        ggufbpe.count_files(
            tok, "tools.jsonl", chats=True, chat_template=CHATML, tools=None if are_in_chats else tools
        )
    assert [each.filename for each in caught] == [__file__]


def test_what_cannot_be_read_is_raised_or_reported(tok: Tokenizer) -> None:
    Path("bad.jsonl").write_text("{\n")
    with pytest.raises(FileNotFoundError):
        ggufbpe.count_files(tok, "nowhere")
    with pytest.raises(ValueError, match=r"bad\.jsonl"):
        ggufbpe.count_files(tok, "bad.jsonl")
    errors: list[str] = []
    found = ggufbpe.count_files(
        tok, ["nowhere", "texts/a.txt"], report=lambda name, error: errors.append(name)
    )
    assert errors == ["nowhere"]
    assert found.errors == [{"name": "nowhere", "error": "No such file or directory"}]
    assert [each.name for each in found.files] == ["texts/a.txt"]
    assert repr(found).endswith(", 1 error>")


def test_progress_comes_in_bytes_of_files(tok: Tokenizer) -> None:
    size = 300_000
    Path("large").write_bytes(b"word " * (size // 5))
    told: list[Progress] = []
    found: FileCounts = ggufbpe.count_files(tok, ["texts/a.txt", "large"], progress=told.append)
    first = found.files[0].bytes
    assert told[0] == Progress("count", 0, first + size, "bytes", "texts/a.txt", {"files": 1})
    assert [each.item for each in told[:2]] == ["texts/a.txt", "large"]
    done = [each.done for each in told]
    assert done == sorted(done)
    assert first < done[2] < done[-1] <= first + size
    assert told[-1].share == done[-1] / (first + size)
