"""Measuring chats: the prompts of each model, in all forms that `encode --chats` reads."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import Run, run
from conftest import GPT2
from recorded_chats import VOCABULARY

from ggufbpe import Tokenizer, encode_corpus, stats
from ggufbpe.chat.chats import NoTemplateError
from ggufbpe.data.corpora.records import CorpusError
from ggufbpe.data.statistics.chat_prompts import side_by_side

__all__ = ["run"]  # a fixture

pytestmark = pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")

CHATML = "known:chatml"
TOK, OTHER = Tokenizer.from_gguf(VOCABULARY), Tokenizer.from_gguf(GPT2)
RECORDS: list[dict[str, Any]] = [
    {
        "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}],
        "lang": "en",
    },
    {"conversations": [{"from": "human", "value": "Grüße"}, {"from": "gpt", "value": "Tag"}], "lang": "de"},
    {"instruction": "Add.", "input": "1, 2", "output": "3", "lang": "en"},
]
CHATS = [
    RECORDS[0]["messages"],
    [{"role": "user", "content": "Grüße"}, {"role": "assistant", "content": "Tag"}],
    [{"role": "user", "content": "Add.\n\n1, 2"}, {"role": "assistant", "content": "3"}],
]
PAIR = {"prompt": "Hi", "chosen": "Hello, and welcome", "rejected": "Go"}


def lines(records: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def prompts(tok: Tokenizer, chats: list[list[dict[str, Any]]]) -> list[bytes]:
    return [tok.chats.prompt({"messages": chat}, CHATML, whole=True) for chat in chats]


def test_numbers_are_those_of_the_prompts(tmp_path: Path) -> None:
    (tmp_path / "chats.jsonl").write_text(lines(RECORDS))
    found = stats({"a": TOK, "b": OTHER}, tmp_path / "chats.jsonl", chats=True, chat_template=CHATML)
    for row, tok in zip(found.total, (TOK, OTHER)):
        texts = prompts(tok, CHATS)
        expected = sum(tok.count(text) for text in texts)
        assert (row.texts, row.bytes, row.tokens) == (3, sum(map(len, texts)), expected)
    assert [(row.tokenizer, row.texts) for row in found.rows] == [("a", 3), ("b", 3)]
    assert sum(found.usage[0].counts) == found.total[0].tokens
    encoded = encode_corpus(
        tmp_path / "chats.jsonl", TOK, tmp_path / "out", chats=True, chat_template=CHATML, eos=False
    )
    assert encoded.tokens == found.total[0].tokens


def test_each_model_has_its_own_template() -> None:
    short, long = (
        TOK.with_overrides({"tokenizer.chat_template": text})
        for text in (
            "{{ messages[0].content }}",
            "{% for m in messages %}{{ m.role }}: {{ m.content }} {% endfor %}",
        )
    )
    found = stats({"short": short, "long": long}, [io.BytesIO(lines(RECORDS[:1]).encode())], chats=True)
    assert [row.bytes for row in found.total] == [len("Hi"), len("user: Hi assistant: Hello ")]


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.parquet", "folder"])
def test_what_is_read(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if name == "folder":
        path.mkdir()
        (path / "a.jsonl").write_text(lines(RECORDS[:1]))
        (path / "README.md").write_text("no chats")
    elif name == "a.parquet":
        pq.write_table(pa.Table.from_pylist(RECORDS[:1]), path)
    else:
        path.write_text(lines(RECORDS[:1]) if name == "a.jsonl" else json.dumps(RECORDS[:1]))
    found = stats(TOK, path, chats=True, chat_template=CHATML)
    assert found.total[0].tokens == TOK.count(prompts(TOK, CHATS[:1])[0])
    assert found.skipped == ({"neither JSON nor a table": 1} if name == "folder" else {})


def test_statistics_of_single_models_side_by_side() -> None:
    models = {"a": TOK, "b": OTHER}
    single = [stats({name: tok}, [lines(RECORDS)], chats=True, chat_template=CHATML, by_field="lang")
              for name, tok in models.items()]  # fmt: skip
    together = stats(models, [lines(RECORDS)], chats=True, chat_template=CHATML, by_field="lang")
    assert side_by_side(single) == together
    assert [(row.group, row.tokenizer) for row in together.rows] == [
        ("en", "a"), ("en", "b"), ("de", "a"), ("de", "b"),
    ]  # fmt: skip


@pytest.mark.parametrize("as_table", [False, True])
def test_groups_are_those_of_a_field(as_table: bool, tmp_path: Path) -> None:
    path = tmp_path / ("a.json" if as_table else "a.jsonl")
    path.write_text(json.dumps(RECORDS) if as_table else lines(RECORDS))
    found = stats(TOK, path, chats=True, chat_template=CHATML, by_field="lang")
    assert {row.group: row.texts for row in found.rows} == {"en": 2, "de": 1}


def test_answers_of_pairs() -> None:
    sizes = {}
    for preference in ("chosen", "rejected"):
        found = stats(TOK, [lines([PAIR])], chats=True, chat_template=CHATML, preference=preference)  # type: ignore[arg-type]
        sizes[preference] = found.total[0].bytes
    assert sizes["chosen"] - sizes["rejected"] == len(PAIR["chosen"]) - len(PAIR["rejected"])


def test_a_chat_that_one_model_refuses_is_counted_for_none() -> None:
    template = "{% if messages[0].content == 'Hi' %}{{ raise_exception('no Hi') }}{% endif %}x"
    plain, refusing = (TOK.with_overrides({"tokenizer.chat_template": text}) for text in ("x", template))
    told: list[str] = []
    found = stats(
        {"a": plain, "b": refusing},
        [lines([*RECORDS, {"text": "no chat"}])],
        chats=True,
        report=lambda name, error: told.append(f"{name}: {error}"),
    )
    assert [row.texts for row in found.total] == [2, 2]
    assert len(told) == 1
    assert "left out: line 1: b: line 1 of the chat template: " in told[0]  # whose template it is
    assert "no Hi" in told[0]
    assert "the first of 2 lines" in told[0]


WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"chat_template": CHATML}, ValueError, "chat_template and preference are for chats=True"),
    ({"chats": True, "preference": "both"}, ValueError, "preference is 'chosen' or 'rejected', not 'both'"),
    ({"chats": True, "chat_template": CHATML}, CorpusError, "a preference pair"),
]


@pytest.mark.parametrize(("options", "error", "words"), WRONG)
def test_what_cannot_be_measured(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        stats(TOK, [lines([PAIR])], **options)


def test_of_several_models_that_without_a_template_is_named() -> None:
    with pytest.raises(NoTemplateError, match=r"^b: the model has no chat template"):
        stats(
            {"a": TOK.with_overrides({"tokenizer.chat_template": "x"}), "b": OTHER},
            [lines(RECORDS)],
            chats=True,
        )


def test_a_model_without_a_template_asks_for_one(run: Run, tmp_path: Path) -> None:
    (tmp_path / "chats.jsonl").write_text(lines(RECORDS))
    found = run("stats", "-m", GPT2, "--chats", tmp_path / "chats.jsonl")
    assert found.code == 2
    assert "the model has no chat template" in found.err
    assert "--chat-template known:chatml chooses ChatML" in found.err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--preference", "chosen"], "--preference is for chats: give --chats"),
        (["--chat-template", CHATML], "--chat-template is for chats"),
        (["--chats", "--field", "text"], "leave out --field"),
        (["--chats", "--no-bos"], "special tokens are always added and parsed in chats"),
    ],
)
def test_flags_that_do_not_go_together(flags: list[str], words: str, run: Run, tmp_path: Path) -> None:
    found = run("stats", "-m", VOCABULARY, *flags, tmp_path)
    assert (found.code, words in found.err) == (2, True)


def test_the_command(run: Run, tmp_path: Path) -> None:
    (tmp_path / "chats.jsonl").write_text(lines(RECORDS))
    given = ("stats", "-m", VOCABULARY, "-m", GPT2, "--chats", "--chat-template", CHATML)
    found = json.loads(run(*given, tmp_path / "chats.jsonl", "--json").text)
    expected = [sum(tok.count(text) for text in prompts(tok, CHATS)) for tok in (TOK, OTHER)]
    assert [row["tokens"] for row in found["total"]] == expected


def test_a_chat_that_is_not_utf8_is_refused_in_tables_as_in_json_lines(tmp_path: Path) -> None:
    """As by `encode_corpus` and llama-server."""
    messages = b'[{"role": "user", "content": "Hi \xff"}]'
    (tmp_path / "a.jsonl").write_bytes(b'{"messages": ' + messages + b"}\n")
    pq.write_table(pa.table({"messages": [messages]}), tmp_path / "a.parquet")
    told: list[str] = []
    for name in ("a.jsonl", "a.parquet"):
        found = stats(
            TOK,
            tmp_path / name,
            chats=True,
            chat_template=CHATML,
            report=lambda _, error: told.append(str(error)),
        )
        assert not found.rows
    assert told == [
        f"left out: {what} 1: messages[0].content has a lone surrogate at position 3"
        for what in ("line", "row")
    ]
