"""A corpus to shards of ids: what is in them, that a run which was stopped goes on, and what is refused."""

from __future__ import annotations

import csv
import errno
import functools
import gzip
import json
import os
import pickle
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from commands import Run, assert_error, posix_only, run
from conftest import GPT2, missing
from corpus_cases import EOS, TEXTS, expected, files_in, json_lines, large, prose, small_chunks, tok
from reference import NotPreparedError, vocabulary

import ggufbpe
from ggufbpe import ChatError, Tokenizer, check_corpus, decode_corpus, encode_corpus
from ggufbpe._util.extras import NotInstalledError
from ggufbpe._util.progress import Progress
from ggufbpe.cli.encode import FORMATS
from ggufbpe.data.corpora import chunk_encoder, chunks, corpus_files, manifest, shard_writer, storage
from ggufbpe.data.corpora.byte_formats import metric
from ggufbpe.data.corpora.chunks import Chunk, ChunkReader
from ggufbpe.data.corpora.documents import Options
from ggufbpe.data.corpora.encode_stage import EncodeStage
from ggufbpe.data.corpora.records import CorpusError, lines, raised
from ggufbpe.data.corpora.shard_formats import FORMS
from ggufbpe.data.corpora.shard_reader import EncodedCorpus
from ggufbpe.data.corpora.storage import ChangedError, list_inputs

__all__ = ["large", "run", "small_chunks", "tok"]  # fixtures


def rows(corpus: EncodedCorpus) -> list[list[int]]:
    return [row.tolist() for row in corpus.rows()]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(json_lines())
    return path


# ---- what is read ---------------------------------------------------------------------------------------


def write_jsonl(path: Path) -> None:
    path.write_bytes(json_lines())


def write_zst(path: Path) -> None:
    path.write_bytes(zstandard.compress(json_lines()))


def write_gz(path: Path) -> None:
    path.write_bytes(gzip.compress(json_lines()))


def table(kind: pa.DataType = None) -> pa.Table:
    return pa.table({"id": range(len(TEXTS)), "text": pa.array(TEXTS, kind or pa.string())})


def write_parquet(path: Path) -> None:
    pq.write_table(table(), path, row_group_size=3)


def write_dictionary(path: Path) -> None:
    pq.write_table(table().set_column(1, "text", table()["text"].dictionary_encode()), path)


def write_arrow_file(path: Path) -> None:
    with pa.ipc.new_file(path, table(pa.large_string()).schema) as writer:
        writer.write_table(table(pa.large_string()), max_chunksize=2)


def write_arrow_stream(path: Path) -> None:
    with pa.ipc.new_stream(path, table().schema) as writer:
        writer.write_table(table())


def write_csv(path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("id", "text"), *enumerate(TEXTS)])


def write_folder(path: Path) -> None:
    path.mkdir()
    for number, text in enumerate(TEXTS):
        (path / f"{number}.txt").write_bytes(text.encode())


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("a.jsonl", write_jsonl),
        ("a.ndjson.zst", write_zst),
        ("a.jsonl.gz", write_gz),
        ("a.parquet", write_parquet),
        ("b.parquet", write_dictionary),
        ("a.arrow", write_arrow_file),
        ("b.arrow", write_arrow_stream),
        ("a.csv", write_csv),
        ("folder", write_folder),
    ],
)
def test_every_kind_of_file_gives_the_same_documents(
    name: str, write: Callable[[Path], None], tmp_path: Path, tok: Tokenizer
) -> None:
    write(tmp_path / name)
    assert rows(encode_corpus(tmp_path / name, tok, tmp_path / "out")) == expected(tok)


TABLES = [("a.parquet", write_parquet), ("a.arrow", write_arrow_file), ("a.csv", write_csv)]


@pytest.mark.parametrize(("name", "write"), TABLES)
@pytest.mark.parametrize("command", ["count", "stats"])
def test_tables_are_counted_and_measured(
    command: str, name: str, write: Callable[[Path], None], run: Run, tmp_path: Path
) -> None:
    """As the same texts in JSON lines; those of a directory where the column is named."""
    (tmp_path / "tables").mkdir()
    write(tmp_path / "tables" / name)
    write_jsonl(tmp_path / "a.jsonl")
    keys = ("tokens", "bytes", "characters")
    totals = []
    for path in (tmp_path / "tables", tmp_path / "tables" / name, tmp_path / "a.jsonl"):
        result = run(command, "-m", GPT2, path, "--text-column", "text", "--json")
        assert (result.code, result.err) == (0, "")
        total = json.loads(result.text)["total"]
        totals.append([(total if command == "count" else total[0])[key] for key in keys])
    assert totals[0] == totals[1] == totals[2]


@pytest.mark.parametrize(("name", "write"), TABLES)
def test_tables_are_trained_on_and_verified(name: str, write: Callable[[Path], None], tmp_path: Path) -> None:
    write(tmp_path / name)
    write_jsonl(tmp_path / "a.jsonl")
    trained = [
        ggufbpe.train([tmp_path / file], vocab_size=270, field="text").merges for file in (name, "a.jsonl")
    ]
    assert trained[0] == trained[1]
    assert ggufbpe.verify(GPT2, GPT2, [tmp_path / name], field="text").texts == len(TEXTS)


def test_a_table_is_grouped_by_another_column(run: Run, tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": ["a", "b b", None], "lang": ["de", "fr", "fr"]}), tmp_path / "a.parquet")
    result = run("stats", "-m", GPT2, tmp_path / "a.parquet", "--by-field", "lang", "--json")
    assert [row["group"] for row in json.loads(result.text)["rows"]] == ["de", "fr"]
    assert "left out: row 3: the column 'text' has no text" in result.err


def test_each_line_of_plain_text_may_be_a_document(tmp_path: Path, tok: Tokenizer) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\r\n\ntwo\nthree")
    found = encode_corpus(tmp_path / "a.txt", tok, tmp_path / "out", by_line=True)
    assert rows(found) == expected(tok, ["one", "", "two", "three"])


def test_files_come_as_they_are_named_and_sorted_in_directories(tmp_path: Path, tok: Tokenizer) -> None:
    write_folder(tmp_path / "b")
    (tmp_path / "b" / ".hidden").write_bytes(b"no")
    (tmp_path / "b" / "binary").write_bytes(b"\0no")
    write_jsonl(tmp_path / "a.jsonl")
    found = encode_corpus([tmp_path / "b", tmp_path / "a.jsonl"], tok, tmp_path / "b" / "out")
    assert rows(found) == 2 * expected(tok)


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ({}, [27, 91, 437, 1659, 5239, 91, 29, EOS]),
        ({"parse_special": True}, [EOS, EOS]),
        ({"eos": False}, [27, 91, 437, 1659, 5239, 91, 29]),
        ({"bos": True}, [EOS, 27, 91, 437, 1659, 5239, 91, 29, EOS]),
    ],
)
def test_what_stands_at_a_document(
    options: dict[str, Any], ids: list[int], tmp_path: Path, tok: Tokenizer
) -> None:
    (tmp_path / "a.txt").write_bytes(b"<|endoftext|>")
    assert rows(encode_corpus(tmp_path / "a.txt", tok, tmp_path / "out", **options)) == [ids]


@pytest.mark.parametrize(("name", "options"), [("EOS", {}), ("BOS", {"bos": True, "eos": False})])
def test_a_token_that_the_model_does_not_have_is_refused(
    name: str, options: dict[str, Any], corpus: Path, tmp_path: Path, tok: Tokenizer
) -> None:
    vocabulary = tok.vocabulary
    none = {**vocabulary.special_ids, "bos": None, "eos": None}
    with pytest.raises(ValueError, match=f"no {name} token"):
        encode_corpus(corpus, Tokenizer(vocabulary._replace(special_ids=none)), tmp_path / "out", **options)
    assert not (tmp_path / "out" / "unfinished.json").exists()


def test_chats_of_a_model_without_a_template_are_refused(tmp_path: Path, tok: Tokenizer, run: Run) -> None:
    """Nothing is written: ChatML's markers would be plain letters, so it has to be asked for."""
    path, out = tmp_path / "a.jsonl", tmp_path / "out"
    path.write_text(json.dumps({"messages": [{"role": "user", "content": "Hi"}]}) + "\n")
    with pytest.raises(ChatError, match=r'the model has no chat template.*chat_template="known:chatml"'):
        encode_corpus(path, tok, out, chat_column="messages")
    assert not out.exists()
    done = run("encode", path, "-o", out, "--chat-column", "messages")
    assert_error(done, "--chat-template known:chatml")
    assert not out.exists()
    found = encode_corpus(path, tok, out, chat_column="messages", chat_template="known:chatml")
    chat = tok.chats.prompt({"messages": [{"role": "user", "content": "Hi"}]}, "chatml", whole=True)
    assert rows(found) == [[*tok.encode(chat), EOS]]
    with pytest.raises(CorpusError, match="the work was begun with chat_template"):
        encode_corpus(path, tok, out, chat_column="messages", chat_template="{{ messages }}", resume=True)
    again = run(
        "encode", path, "-o", f"{out}2", "--chat-column", "messages", "--chat-template", "known:chatml"
    )
    assert again.code == 0
    assert_error(
        run("encode", path, "-o", tmp_path / "no", "--chat-template", "chatml"), "give --chat-column NAME"
    )


FAILING: dict[str, dict[str, Any]] = {  # what fails at the first try, and works at the second
    "a bad record": {},
    "a column that is not there": {"text_column": "body"},
    "a budget of bytes": {"shard_size": 1 << 20},
}


@pytest.mark.parametrize("name", FAILING)
@pytest.mark.parametrize("is_there", [False, True])
def test_a_run_that_fails_before_its_first_shard_leaves_nothing(
    name: str, is_there: bool, tmp_path: Path, tok: Tokenizer
) -> None:
    path, out = tmp_path / "a.jsonl", tmp_path / "deep" / "out"
    path.write_text('{"text": "Hello"}\nnonsense\n')
    if is_there:
        out.mkdir(parents=True)
        (out / "notes.txt").write_text("mine")
    with pytest.raises(CorpusError):
        encode_corpus(path, tok, out, **FAILING[name])
    assert out.exists() == is_there
    assert not is_there or os.listdir(out) == ["notes.txt"]
    assert rows(encode_corpus(path, tok, out, on_error="skip")) == expected(tok, ["Hello"])


def test_a_run_that_was_killed_before_its_first_shard_is_begun_anew(tmp_path: Path, tok: Tokenizer) -> None:
    path, out = tmp_path / "a.jsonl", tmp_path / "out"
    path.write_text('{"text": "Hello"}\n')
    encode_corpus(path, tok, out, format="npy")
    manifest = json.loads((out / "manifest.json").read_text())
    for name in os.listdir(out):
        if name != "inputs.jsonl":
            (out / name).unlink()
    place = {"place": chunks.FIRST._asdict(), "carry": []}
    (out / "unfinished.json").write_text(json.dumps({**manifest, "shards": [], "next": place}))
    assert rows(encode_corpus(path, tok, out)) == expected(tok, ["Hello"])


def test_finished_shards_of_a_run_that_fails_stay(tmp_path: Path, tok: Tokenizer) -> None:
    paths, out = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"], tmp_path / "out"
    paths[0].write_text('{"text": "Hello"}\n{"text": "world"}\n')
    paths[1].write_text("nonsense\n")
    with pytest.raises(CorpusError, match=r"b\.jsonl: line 1"):
        encode_corpus(paths, tok, out, shard_size=1)
    assert {"part-00000.bin", "unfinished.json"} <= set(os.listdir(out))
    with pytest.raises(FileExistsError, match="resume=True"):
        encode_corpus(paths, tok, out, shard_size=1)
    found = encode_corpus(paths, tok, out, shard_size=1, on_error="skip", resume=True)
    assert rows(found) == expected(tok, ["Hello", "world"])


def test_chats_are_put_into_the_template(tmp_path: Path, tok: Tokenizer) -> None:
    chats = [
        [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello", "extra": None}],
        [{"role": "assistant", "content": "A"}, {"role": "user", "content": "Bye"}],
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"messages": chat}) + "\n" for chat in chats))
    pq.write_table(pa.table({"messages": chats}), tmp_path / "a.parquet")
    model = tok.with_overrides(
        {"tokenizer.chat_template": "{% for m in messages %}<{{ m.content }}>{% endfor %}"}
    )
    for name in ("a.jsonl", "a.parquet"):
        found = encode_corpus(tmp_path / name, model, tmp_path / name[2:], chat_column="messages")
        texts = [row.text for row in decode_corpus(tmp_path / name[2:], model)]
        assert texts == [b"<Hi><Hello>", b"<A><Bye>"]
        assert [row[-1] for row in rows(found)] == [EOS, EOS]
        assert check_corpus(tmp_path / name[2:], model).sampled == 2


def test_bytes_that_are_not_utf8_and_lone_surrogates_are_as_elsewhere(tmp_path: Path, tok: Tokenizer) -> None:
    (tmp_path / "a.jsonl").write_bytes(
        b'{"text": "\\ud800 a"}\n{"text": "\xff b"}\n{"text": "c", "x": NaN}\n'
        b'{"text": "\xff\\ud800"}\n{"text": "\\udcff\\ud83d\\udcff"}\n{"text": "\xff\\udcff\\\\udcff"}\n'
    )
    found = rows(encode_corpus(tmp_path / "a.jsonl", tok, tmp_path / "out"))
    texts = [b"\xed\xa0\x80 a", b"\xff b", b"c"]
    texts += [b"\xff\xed\xa0\x80", b"\xed\xb3\xbf\xf0\x9f\x93\xbf", b"\xff\xed\xb3\xbf\\udcff"]
    assert found == [[*tok.encode(text, add_special=False), EOS] for text in texts]


def test_a_plain_folder_needs_no_other_package(
    tmp_path: Path, tok: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_folder(tmp_path / "folder")
    write_jsonl(tmp_path / "folder" / "a.jsonl")
    for package in ("pyarrow", "fsspec", "orjson", "zstandard"):
        monkeypatch.setitem(sys.modules, package, None)
    for form in ("megatron", "npy"):
        found = encode_corpus(tmp_path / "folder", tok, tmp_path / form, format=form)
        assert rows(found) == 2 * expected(tok)
    for extra, paths, options in (
        ("corpora", ["a.jsonl"], {"format": "parquet"}),
        ("corpora", ["a.parquet"], {}),
        ("corpora", ["s3://bucket/a.jsonl"], {}),
        ("zstd", ["a.jsonl.zst"], {}),
    ):
        monkeypatch.chdir(tmp_path / "folder")
        for path in paths:
            if "://" not in path:
                Path(path).touch()
        with pytest.raises(NotInstalledError, match=rf"ggufbpe\[{extra}\]"):
            encode_corpus(paths, tok, tmp_path / "none", **options)


def test_without_orjson_the_ids_are_the_same(
    corpus: Path, tmp_path: Path, tok: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "orjson", None)
    assert chunk_encoder.json_loads()(memoryview(b"[1]")) == [1]
    assert rows(encode_corpus(corpus, tok, tmp_path / "out")) == expected(tok)


@pytest.mark.parametrize(
    "line",
    [
        b'{"id": [1, {"text": "no"}], "text": "a \\ud83d\\ude00 \\n \\u8005 na\xc3\xafve", "x": NaN}',
        b'{"text": ""}',
        b'{"text": "\\ud800"}',
        b'{"text": null}',
        b'{"text": 1}',
        b'{"other": "x"}',
        b'{"text": "a", "text": "b"}',
        b"[]",
        b"{",
        b"",
    ],
)
def test_a_very_long_line_is_read_as_a_short_one(
    line: bytes, tmp_path: Path, tok: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.jsonl").write_bytes(line + b"\n")
    found = []
    for length, name in ((1 << 24, "short"), (0, "long")):
        monkeypatch.setattr(chunk_encoder, "LONG_LINE", length)
        corpus = encode_corpus(tmp_path / "a.jsonl", tok, tmp_path / name, on_error="skip")
        found.append((rows(corpus), corpus.bad_records))
    assert found[0] == found[1]


def test_lines_may_be_longer_than_what_is_read_at_once() -> None:
    class Drops:
        data = b"ab\n\ncdefg\nh"

        def read(self, size: int) -> bytes:
            part, self.data = self.data[:2], self.data[2:]
            return part

    assert list(lines(Drops())) == [b"ab\n", b"\n", b"cdefg\n", b"h"]


# ---- long texts -----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("by_line", [False, True])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_long_texts_in_pieces_have_the_ids_of_the_whole(
    by_line: bool, end: str, tmp_path: Path, tok: Tokenizer
) -> None:
    rng = random.Random(1)
    texts = [prose(rng, rng.choice([1, 5, 40, 200])) for _ in range(30)]
    (tmp_path / "a.txt").write_bytes(end.join(texts).encode())
    found = encode_corpus(tmp_path / "a.txt", tok, tmp_path / "out", by_line=by_line, workers=3)
    assert rows(found) == expected(tok, texts if by_line else [end.join(texts)])


def all_of(found: Iterable[Chunk]) -> list[Any]:
    """What chunks have, wherever they end."""
    parts = [part for chunk in found for part in chunk.data]
    return [
        b"".join(part for part in parts if isinstance(part, bytes)),
        *(p for p in parts if type(p) is tuple),
    ]


@pytest.mark.usefixtures("small_chunks")
def test_reading_can_begin_at_every_place(tmp_path: Path, tok: Tokenizer) -> None:
    rng = random.Random(2)
    for name, content in {
        "a.jsonl": b"".join(json.dumps({"text": prose(rng, 8)}).encode() + b"\n\n" for _ in range(9)),
        "b.jsonl.gz": gzip.compress(json_lines()),
        "c.csv": b"text\n" + b"\n".join(prose(rng, 6).encode() for _ in range(9)),
        "d.txt": prose(rng, 200).encode(),
        "e.txt": b"",
        "f.txt": b"small",
    }.items():
        (tmp_path / name).write_bytes(content)
    inputs = list_inputs([str(tmp_path)], Counter())
    reader = ChunkReader(tok, inputs, Options("text"))
    whole = list(reader.chunks())
    assert {chunk.kind for chunk in whole} == {"json", "rows", "piece", "files"}
    for number, chunk in enumerate(whole):
        if chunk.is_first:
            assert all_of(reader.chunks(chunk.place)) == all_of(whole[number:])


# ---- forms ----------------------------------------------------------------------------------------------


def read_megatron(stem: Path) -> list[list[int]]:
    """As IndexedDataset of Megatron-LM reads it: megatron/core/datasets/indexed_dataset.py, _IndexReader."""
    index = Path(f"{stem}.idx").read_bytes()
    assert index[:9] == b"MMIDIDX\x00\x00"
    version, code, sequences, documents = struct.unpack_from("<QBQQ", index, 9)
    assert version == 1
    dtype = {4: np.int32, 8: np.uint16}[code]
    offset = 34
    lengths = np.frombuffer(index, np.int32, sequences, offset)
    pointers = np.frombuffer(index, np.int64, sequences, offset + lengths.nbytes)
    ends = np.frombuffer(index, np.int64, documents, offset + lengths.nbytes + pointers.nbytes)
    assert len(index) == offset + lengths.nbytes + pointers.nbytes + ends.nbytes
    assert ends.tolist() == list(range(sequences + 1))
    data = Path(f"{stem}.bin").read_bytes()
    return [np.frombuffer(data, dtype, n, p).tolist() for n, p in zip(lengths, pointers)]


def read_nanotron(stem: Path) -> list[list[int]]:
    """As datatrove writes it and nanotron reads it: datatrove/pipeline/tokens/tokenizer.py, TokenizedFile."""
    name, count, _ = Path(f"{stem}.ds.metadata").read_text().split("\n")
    tokenizer, width = name.split("|")
    ids = np.fromfile(f"{stem}.ds", {"2": np.uint16, "4": np.uint32}[width])
    assert (tokenizer, int(count)) == ("gpt2.gguf", len(ids))
    ends = np.fromfile(f"{stem}.ds.index", np.uint64).tolist()
    return [ids[begin:end].tolist() for begin, end in zip([0, *ends], ends)]


def read_npy(stem: Path) -> list[list[int]]:
    ids, ends = np.load(f"{stem}.npy", mmap_mode="r"), np.load(f"{stem}.index.npy").tolist()
    return [ids[begin:end].tolist() for begin, end in zip([0, *ends], ends)]


def read_parquet(stem: Path) -> list[list[int]]:
    found: list[list[int]] = pq.read_table(f"{stem}.parquet")["input_ids"].to_pylist()
    return found


def read_arrow(stem: Path) -> list[list[int]]:
    with pa.OSFile(f"{stem}.arrow") as file:
        found: list[list[int]] = pa.ipc.open_file(file).read_all()["input_ids"].to_pylist()
        return found


READERS = {
    "megatron": read_megatron,
    "nanotron": read_nanotron,
    "npy": read_npy,
    "parquet": read_parquet,
    "arrow": read_arrow,
}


def test_every_form_has_a_reader() -> None:
    assert READERS.keys() == FORMS.keys()


@pytest.mark.parametrize("form", FORMS)
def test_a_form_is_read_by_what_it_is_for(form: str, corpus: Path, tmp_path: Path, tok: Tokenizer) -> None:
    found = encode_corpus(corpus, tok, tmp_path / "out", format=form, shard_size=100)
    stems = [tmp_path / "out" / shard.name for shard in found.shards]
    assert len(stems) > 1
    assert [row for stem in stems for row in READERS[form](stem)] == expected(tok)
    assert rows(found) == expected(tok)
    assert check_corpus(tmp_path / "out", tok)[1:] == ([], len(TEXTS), "")
    assert [found[-1].tolist(), found[1].tolist()] == [expected(tok)[-1], expected(tok)[1]]


@pytest.mark.parametrize("form", FORMS)
def test_ids_of_a_large_vocabulary_have_32_bits(form: str, tmp_path: Path) -> None:
    dtype = ggufbpe.data.corpora.shard_formats.id_dtype(FORMS[form], 70_000)
    assert dtype == ("int32" if form == "megatron" else "uint32")
    writer = FORMS[form].writer(
        FORMS[form],
        ggufbpe.data.corpora.storage.folder_at(str(tmp_path)),
        "part-00000",
        ggufbpe.data.corpora.byte_formats.Layout(dtype, "gpt2.gguf", None),
    )
    writer.write([np.array([1, 69_999, 2], dtype)], np.array([2, 1]))
    writer.finish()
    assert READERS[form](tmp_path / "part-00000") == [[1, 69_999], [2]]


@pytest.mark.slow
@pytest.mark.parametrize("pack", [None, 4])
@pytest.mark.parametrize("form", FORMS)
def test_a_row_is_found_by_its_number(
    form: str, pack: int | None, large: Path, tmp_path: Path, tok: Tokenizer
) -> None:
    found = encode_corpus(large, tok, tmp_path / "out", format=form, pack=pack, shard_size=5000)
    every = rows(found)
    numbers = random.Random(1).sample(range(-len(every), len(every)), 20)
    assert [found[number].tolist() for number in numbers] == [every[number] for number in numbers]
    with pytest.raises(IndexError):
        found[len(every)]


@pytest.mark.parametrize("form", ["megatron", "nanotron", "npy"])
def test_the_index_of_a_shard_is_read_once(form: str, corpus: Path, tmp_path: Path, tok: Tokenizer) -> None:
    found = encode_corpus(corpus, tok, tmp_path / "out", format=form)
    first = found[0].tolist()
    for suffix in FORMS[form].indexes:
        (tmp_path / "out" / f"part-00000{suffix}").unlink()
    assert (found[0].tolist(), found[1].tolist()) == (first, rows(found)[1])


@pytest.mark.parametrize("form", FORMS)
def test_packed_rows_have_one_length(form: str, corpus: Path, tmp_path: Path, tok: Tokenizer) -> None:
    found = encode_corpus(corpus, tok, tmp_path / "out", format=form, pack=7, shard_size=60)
    every = [token for document in expected(tok) for token in document]
    count = len(every) // 7
    assert rows(found) == [every[at : at + 7] for at in range(0, count * 7, 7)]
    assert len(found.shards) > 1
    assert found.manifest["left_over_tokens"] == len(every) - 7 * count
    assert (found.documents, found.tokens) == (len(TEXTS), 7 * count)
    assert check_corpus(tmp_path / "out", tok).is_right
    if form == "npy":
        assert np.load(tmp_path / "out" / "part-00000.npy").shape[1] == 7


def test_a_number_for_people_is_as_humanize_has_it() -> None:
    shown = [metric(n) for n in (0, 7, 50, 999, 1000, 12_345, 999_499, 999_999, 1_234_567, 5 * 10**9)]
    assert shown == [
        "0.00 ",
        "7.00 ",
        "50.0 ",
        "999 ",
        "1.00 k",
        "12.3 k",
        "999 k",
        "1.00 M",
        "1.23 M",
        "5.00 G",
    ]


# ---- the same bytes -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def undisturbed(large: Path, tmp_path_factory: pytest.TempPathFactory, tok: Tokenizer) -> Path:
    out = tmp_path_factory.mktemp("undisturbed") / "out"
    encode_corpus(large, tok, out, shard_size=20_000)
    return out


@pytest.mark.slow
@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("workers", [1, 5])
def test_neither_workers_nor_chunks_change_a_byte(
    workers: int, large: Path, undisturbed: Path, tmp_path: Path, tok: Tokenizer
) -> None:
    encode_corpus(large, tok, tmp_path / "out", shard_size=20_000, workers=workers)
    assert files_in(tmp_path / "out") == files_in(undisturbed)


class StopError(Exception):
    """What stops a run here."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "pack"), [("megatron", None), ("npy", 50), ("parquet", None), ("arrow", 33)]
)
def test_a_run_that_was_stopped_goes_on_with_the_same_bytes(
    form: str, pack: int | None, large: Path, tmp_path: Path, tok: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"format": form, "pack": pack, "shard_size": 30_000}
    encode_corpus(large, tok, tmp_path / "whole", **options)
    real, calls = shard_writer.ShardsWriter.add, iter(range(10**9))

    def add(self: shard_writer.ShardsWriter, *arguments: Any) -> None:
        if next(calls) % 5 == 4:
            raise StopError
        real(self, *arguments)

    monkeypatch.setattr(shard_writer.ShardsWriter, "add", add)
    monkeypatch.setattr(chunks, "CHUNK", 20_000)
    stops = 0
    while True:
        try:
            encode_corpus(large, tok, tmp_path / "out", resume=True, **options)
            break
        except StopError:
            stops += 1
        assert stops < 200
    assert stops > 3
    assert files_in(tmp_path / "out") == files_in(tmp_path / "whole")


def test_shards_are_written_down_once_or_twice_however_many_there_are(
    tmp_path: Path, tok: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.jsonl").write_bytes(json_lines(["Hello"] * 100))
    plain = Mock(wraps=manifest._plain)
    monkeypatch.setattr(manifest, "_plain", plain)
    found = encode_corpus(tmp_path / "a.jsonl", tok, tmp_path / "out", shard_size=1)
    assert len(found.shards) == 100
    assert plain.call_count < 500


def test_a_bad_record_behind_the_last_document_is_counted_after_a_stop(
    tmp_path: Path, tok: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"bad\n" + json_lines() + b"bad\n")
    options: dict[str, Any] = {"on_error": "skip"}

    def stop(*_: object) -> None:
        raise StopError

    with monkeypatch.context() as patch:
        patch.setattr(manifest, "finish", stop)
        with pytest.raises(StopError):
            encode_corpus(tmp_path / "a.jsonl", tok, tmp_path / "out", **options)
    found = encode_corpus(tmp_path / "a.jsonl", tok, tmp_path / "out", resume=True, **options)
    assert (found.bad_records, found.documents) == (2, len(TEXTS))


def test_progress_comes_to_all_of_the_corpus(large: Path, tmp_path: Path, tok: Tokenizer) -> None:
    told: list[Progress] = []
    found = encode_corpus(large, tok, tmp_path / "out", progress=told.append)
    size = found.manifest["inputs"]["bytes"]
    counts = {"documents": found.documents, "tokens": found.tokens}
    assert told[-1] == Progress("encode", size, size, "bytes", told[-1].item, counts)
    assert [(each.done, *each.counts.values()) for each in told] == sorted(
        (each.done, *each.counts.values()) for each in told
    )


PROGRAM = [sys.executable, "-m", "ggufbpe", "encode", "-m", str(GPT2), "--shard-size", "20000"]


def forked(work: Callable[[], object]) -> int:
    """The id of a process that does it; its exit code is 0 where it came to the end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the threads that pytest-xdist has
        child = os.fork()
    if child:
        return child
    code = 1
    try:
        work()
        code = 0
    finally:
        os._exit(code)


@pytest.mark.slow
@posix_only
def test_runs_killed_a_hundred_times_go_on_with_the_same_bytes(
    large: Path, undisturbed: Path, tmp_path: Path, tok: Tokenizer
) -> None:
    """At random moments; the shards that are there then are whole."""
    rng, out, expected, kills = random.Random(4), tmp_path / "out", files_in(undisturbed), 0
    work = functools.partial(encode_corpus, large, tok, out, shard_size=20_000, workers=2, resume=True)
    while kills < 100:
        child = forked(work)
        time.sleep(rng.random() * 0.1)
        os.kill(child, signal.SIGKILL)
        ended_with = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert ended_with in (0, -signal.SIGKILL)
        kills += ended_with != 0
        found = files_in(out) if out.exists() else {}
        shards_found = {name: data for name, data in found.items() if name.startswith("part-")}
        assert shards_found.items() <= expected.items()
        if "manifest.json" in found and "unfinished.json" not in found:
            assert found == expected
            shutil.rmtree(out)
    work()
    assert files_in(out) == expected


@pytest.mark.slow
@posix_only
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_process_goes_on_with_the_same_bytes(
    number: signal.Signals, large: Path, undisturbed: Path, tmp_path: Path
) -> None:
    rng, out, killed = random.Random(number), tmp_path / "out", 0
    command = [*PROGRAM, str(large), "-o", str(out), "--resume"]
    for _ in range(4):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while (
            not (out / "part-00001.bin").exists() and process.poll() is None and time.monotonic() < deadline
        ):
            time.sleep(0.002)
        time.sleep(rng.random() * 0.05)
        process.send_signal(number)
        killed += process.wait() in (-number, 128 + number)
    subprocess.run(command, check=True, capture_output=True)
    assert killed
    assert files_in(out) == files_in(undisturbed)


def test_a_very_large_chunk_is_encoded_where_signals_are_heeded(
    corpus: Path, tmp_path: Path, tok: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the main thread heeds Ctrl-C."""
    threads: list[threading.Thread] = []
    real = chunk_encoder.ChunkEncoder.encode

    def encode(self: chunk_encoder.ChunkEncoder, chunk: Chunk) -> chunk_encoder.Encoded:
        threads.append(threading.current_thread())
        return real(self, chunk)

    monkeypatch.setattr(chunk_encoder.ChunkEncoder, "encode", encode)
    encode_corpus(corpus, tok, tmp_path / "small")
    assert threads
    assert threading.current_thread() not in threads
    threads.clear()
    monkeypatch.setattr("ggufbpe.data.corpora.corpus_encoding._WAITING_BYTES", 1)
    encode_corpus(corpus, tok, tmp_path / "large")
    assert set(threads) == {threading.current_thread()}
    assert files_in(tmp_path / "large") == files_in(tmp_path / "small")


# ---- what is refused, and what is said ------------------------------------------------------------------


def stop_after_first_shard(corpus: Path, tok: Tokenizer, out: Path) -> None:
    def stop(progress: Progress) -> None:
        if progress.counts["documents"]:
            raise StopError

    with pytest.raises(StopError):
        encode_corpus(corpus, tok, out, shard_size=40, progress=stop)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda path: path.write_bytes(json_lines() + b"\n"),
            r"corpus\.jsonl was changed; force=True begins anew",
        ),
        (
            lambda path: os.utime(path, (1, 1)),
            r"the corpus is another one than when the work was begun: .*l was changed",
        ),
        (lambda path: path.with_name("more.jsonl").touch(), r"more\.jsonl is new"),
        (
            lambda path: path.rename(path.with_name("other.jsonl")),
            r"corpus\.jsonl is gone",
        ),
    ],
)
def test_a_changed_corpus_is_refused(
    change: Callable[[Path], object], message: str, tmp_path: Path, tok: Tokenizer
) -> None:
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "corpus.jsonl").write_bytes(json_lines())
    stop_after_first_shard(folder, tok, tmp_path / "out")
    change(folder / "corpus.jsonl")
    with pytest.raises(CorpusError, match=message):
        encode_corpus(folder, tok, tmp_path / "out", shard_size=40, resume=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shard_size": 50}, "with shard_size 40, not 50"),
        ({"eos": False}, "with eos True, not False"),
        ({"format": "npy"}, "with format megatron, not npy"),
    ],
)
def test_other_settings_are_refused(
    options: dict[str, Any], message: str, corpus: Path, tmp_path: Path, tok: Tokenizer
) -> None:
    stop_after_first_shard(corpus, tok, tmp_path / "out")
    with pytest.raises(CorpusError, match=message):
        encode_corpus(corpus, tok, tmp_path / "out", **{"shard_size": 40, "resume": True, **options})


def test_a_finished_run_with_unknown_settings_is_damaged(
    corpus: Path, tmp_path: Path, tok: Tokenizer
) -> None:
    encode_corpus(corpus, tok, tmp_path / "out")
    path = tmp_path / "out" / "manifest.json"
    path.write_text(path.read_text().replace('"settings": {', '"settings": {"odd": null,', 1))
    with pytest.raises(CorpusError, match=r"manifest\.json: not what ggufbpe writes"):
        encode_corpus(corpus, tok, tmp_path / "out", resume=True)


def test_another_tokenizer_is_refused(corpus: Path, tmp_path: Path, tok: Tokenizer) -> None:
    other = tok.with_overrides({"tokenizer.ggml.add_bos_token": True})
    stop_after_first_shard(corpus, tok, tmp_path / "out")
    with pytest.raises(CorpusError, match="with tokenizer fingerprint"):
        encode_corpus(corpus, other, tmp_path / "out", shard_size=40, resume=True)


def test_shards_that_are_there_are_refused_unless_forced(
    corpus: Path, tmp_path: Path, tok: Tokenizer
) -> None:
    encode_corpus(corpus, tok, tmp_path / "out", shard_size=40)
    with pytest.raises(FileExistsError, match="there are shards already"):
        encode_corpus(corpus, tok, tmp_path / "out")
    (tmp_path / "out" / "notes.txt").touch()
    found = encode_corpus(corpus, tok, tmp_path / "out", force=True)
    assert len(found.shards) == 1
    assert {"part-00000.bin", "notes.txt"} < set(files_in(tmp_path / "out"))
    assert "part-00001.bin" not in files_in(tmp_path / "out")


@pytest.mark.parametrize("is_finished", [True, False])
@pytest.mark.parametrize("error", [CorpusError, KeyboardInterrupt])
def test_shards_stay_until_a_forced_run_has_one(
    is_finished: bool,
    error: type[BaseException],
    corpus: Path,
    tmp_path: Path,
    tok: Tokenizer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out, source = tmp_path / "out", tmp_path / "a.jsonl"
    if is_finished:
        encode_corpus(corpus, tok, out, shard_size=40)
    else:
        stop_after_first_shard(corpus, tok, out)
    before = files_in(out)
    source.write_text('{"text": "Hello"}\n' + "nonsense\n" * (error is CorpusError))
    with monkeypatch.context() as patch:
        if error is KeyboardInterrupt:
            patch.setattr(shard_writer.ShardsWriter, "add", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(error):
            encode_corpus(source, tok, out, force=True)
    assert files_in(out) == before
    source.write_text('{"text": "Hello"}\n')
    whole = encode_corpus(source, tok, tmp_path / "whole")
    assert rows(encode_corpus(source, tok, out, force=True)) == rows(whole)
    assert files_in(out) == files_in(tmp_path / "whole")


def test_a_forced_run_that_fails_later_has_shards_of_its_own_alone(
    corpus: Path, tmp_path: Path, tok: Tokenizer
) -> None:
    paths, out = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"], tmp_path / "out"
    encode_corpus(corpus, tok, out, shard_size=40)
    assert len(list(out.glob("part-*.bin"))) > 1
    paths[0].write_text('{"text": "Hello"}\n')
    paths[1].write_text("nonsense\n")
    with pytest.raises(CorpusError, match=r"b\.jsonl: line 1"):
        encode_corpus(paths, tok, out, shard_size=1, force=True)
    names = ["inputs.jsonl", "part-00000.bin", "part-00000.idx", "unfinished.json"]
    assert sorted(files_in(out)) == names
    found = encode_corpus(paths, tok, out, shard_size=1, on_error="skip", resume=True)
    assert rows(found) == expected(tok, ["Hello"])


def test_a_forced_run_that_cannot_finish_its_first_shard_keeps_the_old_ones(
    corpus: Path, tmp_path: Path, tok: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    encode_corpus(corpus, tok, tmp_path / "out", shard_size=40)
    before = files_in(tmp_path / "out")
    monkeypatch.setattr("ggufbpe._util.files.sync", full)
    with pytest.raises(OSError, match="No space left"):
        encode_corpus(corpus, tok, tmp_path / "out", shard_size=60, force=True)
    assert files_in(tmp_path / "out") == before


def test_a_forced_run_whose_records_are_all_bad_keeps_the_old_shards(
    corpus: Path, tmp_path: Path, tok: Tokenizer
) -> None:
    encode_corpus(corpus, tok, tmp_path / "out")
    before = files_in(tmp_path / "out")
    with pytest.raises(CorpusError, match=r"all \d+ records are bad, so the shards in .*out stay"):
        encode_corpus(corpus, tok, tmp_path / "out", text_column="typo", on_error="skip", force=True)
    assert files_in(tmp_path / "out") == before


def test_an_empty_corpus_replaces_shards(corpus: Path, tmp_path: Path, tok: Tokenizer) -> None:
    encode_corpus(corpus, tok, tmp_path / "out")
    (tmp_path / "empty.jsonl").touch()
    assert not encode_corpus(tmp_path / "empty.jsonl", tok, tmp_path / "out", force=True).shards
    assert sorted(files_in(tmp_path / "out")) == ["inputs.jsonl", "manifest.json"]


@posix_only
def test_a_forced_run_that_is_killed_leaves_shards_of_one_corpus(
    corpus: Path, large: Path, undisturbed: Path, tmp_path: Path, tok: Tokenizer
) -> None:
    old, new = tmp_path / "old", files_in(undisturbed)
    encode_corpus(corpus, tok, old, shard_size=40)
    before, rng, kinds = files_in(old), random.Random(1), set()
    for number in range(25):
        out = tmp_path / "out"
        shutil.copytree(old, out)
        child = forked(functools.partial(encode_corpus, large, tok, out, shard_size=20_000, force=True))
        time.sleep(rng.random() * 0.03 * number)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        found = files_in(out)
        is_old = found.get("manifest.json") == before["manifest.json"]
        shards_found = {name: data for name, data in found.items() if name.startswith("part-")}
        assert shards_found.items() <= (before if is_old else new).items()
        kinds.add(is_old)
        shutil.rmtree(out)
    assert False in kinds


@posix_only
def test_a_pipe_is_refused(tmp_path: Path, tok: Tokenizer) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CorpusError, match=r"pipe is a pipe or a device.*; write the text to a file"):
        encode_corpus(tmp_path / "pipe", tok, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@posix_only
def test_two_runs_do_not_write_to_one_folder(corpus: Path, tmp_path: Path, tok: Tokenizer) -> None:
    def again(_: Progress) -> None:
        with pytest.raises(BlockingIOError, match="another run is writing there"):
            encode_corpus(corpus, tok, tmp_path / "out", resume=True)

    encode_corpus(corpus, tok, tmp_path / "out", progress=again)


def others(folder: Path) -> list[Path]:
    """Hidden files of others, whose names end like those of files that are not whole."""
    (folder / ".mybackup.partial").mkdir(parents=True)
    paths = [
        folder / ".mybackup.partial" / "x",
        folder / ".download.partial",
        folder / ".segments.partial.bak",
    ]
    for path in paths:
        path.write_text("precious")
    return paths


def test_hidden_files_of_others_stay_and_those_of_a_killed_run_go(
    corpus: Path, tmp_path: Path, tok: Tokenizer
) -> None:
    precious = others(tmp_path / "out")
    left = [".part-00003.bin.partial", ".part-00003.bin.0a1b.partial", f".{'0a' * 16}.partial"]
    for name in left:
        (tmp_path / "out" / name).touch()
    (tmp_path / "out" / ".segments.partial").mkdir()
    encode_corpus(corpus, tok, tmp_path / "out")
    assert [path.read_text() for path in precious] == ["precious"] * 3
    assert not {*left, ".segments.partial"} & set(os.listdir(tmp_path / "out"))


@pytest.mark.parametrize("name", ["part-00000.bin", "manifest.json"])
def test_a_run_that_is_refused_removes_nothing(
    name: str, corpus: Path, tmp_path: Path, tok: Tokenizer
) -> None:
    precious = [*others(tmp_path / "out"), tmp_path / "out" / ".part-00000.bin.partial"]
    precious[-1].write_text("precious")
    (tmp_path / "out" / name).write_text("mine")
    with pytest.raises(FileExistsError, match="has the name of a file that encoding writes"):
        encode_corpus(corpus, tok, tmp_path / "out")
    assert [path.read_text() for path in precious] == ["precious"] * 4


BAD = b'{"text": "good"}\nnot JSON\n{"text": 1}\n[]\n{"other": "x"}\n{"text": "better"}\n'


def test_a_bad_record_stops_or_is_counted_and_shown(tmp_path: Path, tok: Tokenizer) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(BAD)
    with pytest.raises(CorpusError, match=r"bad\.jsonl: line 2: not JSON.*on_error='skip' leaves"):
        encode_corpus(path, tok, tmp_path / "out")
    told: list[str] = []
    found = encode_corpus(
        path, tok, tmp_path / "out", resume=True, on_error="skip", report=lambda where, _: told.append(where)
    )
    assert rows(found) == expected(tok, ["good", "better"])
    assert told == [f"{path}: line {n}" for n in (2, 3, 4, 5)]
    assert found.bad_records == 4


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl.gz", gzip.compress(json_lines())[:-9], "compressed data is broken"),
        ("a.parquet", b"PAR1 no table", "the table is broken"),
        ("a.csv", b"name\nx\n", "there is no column 'text'.*; on_error='skip' leaves such files out"),
    ],
)
def test_a_broken_file_is_a_bad_record(
    name: str, content: bytes, message: str, tmp_path: Path, tok: Tokenizer
) -> None:
    (tmp_path / name).write_bytes(content)
    (tmp_path / "z.txt").write_bytes(b"good")
    paths = [tmp_path / name, tmp_path / "z.txt"]
    with pytest.raises(CorpusError, match=message):
        encode_corpus(paths, tok, tmp_path / "out")
    found = encode_corpus(paths, tok, tmp_path / "out", resume=True, on_error="skip")
    assert rows(found)[-1] == expected(tok, ["good"])[0]
    assert found.bad_records == 1


def test_a_file_that_changes_meanwhile_ends_the_run(corpus: Path, tmp_path: Path, tok: Tokenizer) -> None:
    other = tmp_path / "other.jsonl"
    other.write_bytes(json_lines())

    real = ChunkReader._of_input

    def grow(self: ChunkReader, *arguments: Any) -> Iterator[Any]:
        with other.open("ab") as file:
            file.write(b"\n")
        return real(self, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ChunkReader, "_of_input", grow)
        with pytest.raises(ChangedError, match=r"other\.jsonl: the file has changed"):
            encode_corpus([corpus, other], tok, tmp_path / "out", on_error="skip")


def test_what_is_refused_at_once_leaves_no_folder(tmp_path: Path, tok: Tokenizer) -> None:
    with pytest.raises(FileNotFoundError, match="nothing"):
        encode_corpus(tmp_path / "nothing", tok, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_vanished_input_ends_the_run(corpus: Path, tmp_path: Path, tok: Tokenizer) -> None:
    (tmp_path / "b.txt").write_bytes(b"x")
    inputs = [corpus, tmp_path / "b.txt"]
    stop_after_first_shard(corpus, tok, tmp_path / "first")
    real = ChunkReader._of_input

    def vanish(self: ChunkReader, *arguments: Any) -> Iterator[Any]:
        (tmp_path / "b.txt").unlink(missing_ok=True)
        return real(self, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ChunkReader, "_of_input", vanish)
        with pytest.raises(FileNotFoundError, match=r"b\.txt"):
            encode_corpus(inputs, tok, tmp_path / "out", on_error="skip")


@pytest.mark.slow
@posix_only
def test_a_full_disk_leaves_whole_shards_and_the_work_goes_on(
    large: Path, undisturbed: Path, tmp_path: Path
) -> None:
    """Files cannot grow beyond 12,000 bytes: a write fails in the middle of a shard, as it does on a full disk."""
    command = [*PROGRAM, str(large), "-o", str(tmp_path / "out"), "--resume"]

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (12_000, 12_000))

    failed = subprocess.run(command, preexec_fn=limit, capture_output=True, text=True)
    assert failed.returncode == 2
    assert "File too large" in failed.stderr
    assert not (tmp_path / "out").exists()  # no shard was finished
    subprocess.run(command, check=True, capture_output=True)
    assert files_in(tmp_path / "out") == files_in(undisturbed)


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (lambda out: (out / "part-00001.idx").unlink(), "part-00001.idx: missing"),
        (
            lambda out: (out / "part-00000.bin").write_bytes(b"x"),
            "part-00000.bin: not the bytes that were written",
        ),
    ],
)
def test_check_finds_what_is_wrong(
    spoil: Callable[[Path], object], problem: str, corpus: Path, tmp_path: Path, tok: Tokenizer
) -> None:
    encode_corpus(corpus, tok, tmp_path / "out", shard_size=100)
    spoil(tmp_path / "out")
    assert check_corpus(tmp_path / "out").problems == [problem]


def test_check_holds_a_sample_to_the_tokenizer(corpus: Path, tmp_path: Path, tok: Tokenizer) -> None:
    """Shards whose hashes are right, of other ids."""
    out = tmp_path / "out"
    found = encode_corpus(corpus, tok, out)
    ids = np.fromfile(out / "part-00000.bin", np.uint16)
    ids[3] += 1
    ids.tofile(out / "part-00000.bin")
    with (out / "part-00000.bin").open("rb") as file:
        digest = ggufbpe.data.corpora.hashed_files.file_hash(file)
    manifest = (out / "manifest.json").read_text().replace(found.shards[0].files[0].sha256, digest)
    (out / "manifest.json").write_text(manifest)
    assert check_corpus(out).is_right
    assert check_corpus(out, tok).problems == [
        "part-00000: not the ids that the tokenizer gives for its first documents"
    ]
    other = tok.with_overrides({"tokenizer.ggml.add_bos_token": True})
    assert "the tokenizer was another one" in check_corpus(out, other).problems[0]
    corpus.unlink()
    assert check_corpus(out, tok)[1:3] == ([], 0)


# ---- nothing, and a lot of it ---------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"", b"\n\n"])
def test_an_empty_corpus_has_no_shards(content: bytes, tmp_path: Path, tok: Tokenizer) -> None:
    (tmp_path / "a.jsonl").write_bytes(content)
    found = encode_corpus(tmp_path / "a.jsonl", tok, tmp_path / "out")
    assert (found.documents, found.tokens, found.shards) == (0, 0, [])
    assert check_corpus(tmp_path / "out", tok).is_right


@pytest.mark.parametrize("form", FORMS)
def test_empty_documents_without_eos_are_documents(form: str, tmp_path: Path, tok: Tokenizer) -> None:
    (tmp_path / "a.txt").write_bytes(b"\n" * 5)
    found = encode_corpus(tmp_path / "a.txt", tok, tmp_path / "out", by_line=True, eos=False, format=form)
    assert (found.documents, rows(found)) == (5, [[]] * 5)
    assert check_corpus(tmp_path / "out").is_right


# ---- remote ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("nothing://bucket/corpus", "Protocol not known: nothing"),
        ("s3://bucket/corpus", "Install s3fs to access S3"),
    ],
)
def test_a_url_without_its_package(
    url: str, error: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)  # as if it were not installed
    for folders in ((url, tmp_path / "out"), (tmp_path, url)):
        result = run("encode", "-m", GPT2, folders[0], "-o", folders[1])
        assert (result.code, result.err) == (2, f"ggufbpe: error: {url}: {error}\n")


def test_urls_are_read_and_written_by_fsspec(corpus: Path, tmp_path: Path, tok: Tokenizer) -> None:
    import fsspec

    memory = fsspec.filesystem("memory")
    memory.pipe_file("/corpus/a.jsonl", json_lines(TEXTS[:3]))
    memory.pipe_file("/corpus/b.jsonl", json_lines(TEXTS[3:]))
    found = encode_corpus("memory://corpus", tok, "memory://shards", shard_size=100)
    assert rows(found) == expected(tok)
    assert check_corpus("memory://shards", tok)[1:] == ([], len(TEXTS), "")
    with pytest.raises(FileExistsError):
        encode_corpus("memory://corpus", tok, "memory://shards")
    memory.rm("/corpus", recursive=True)
    memory.rm("/shards", recursive=True)


@pytest.mark.parametrize("command", ["count", "stats"])
def test_urls_are_counted_and_measured_as_they_are_encoded(command: str, run: Run, tok: Tokenizer) -> None:
    import fsspec

    memory = fsspec.filesystem("memory")
    names = {
        "a.jsonl": json_lines(TEXTS[:3]),
        "b/c.txt.gz": gzip.compress(TEXTS[4].encode()),
        ".d/e.txt": b"x",
    }
    for name, data in names.items():
        memory.pipe_file(f"/counted/{name}", data)
    result = run(command, "-m", GPT2, "memory://counted", "--json")
    found = json.loads(result.out)
    total = found["total"][0] if command == "stats" else found["total"]
    texts = [*TEXTS[:3], TEXTS[4]]
    assert (total["tokens"], found["skipped"]) == (
        sum(map(len, expected(tok, texts))) - len(texts),
        {"hidden": 1},
    )
    memory.rm("/counted", recursive=True)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files of fsspec's storage in memory of which something is asked."""
    import fsspec

    memory = type(fsspec.filesystem("memory"))
    found: list[str] = []
    info = memory.info

    def counted(self: Any, path: str, **options: Any) -> Any:
        found.append(path)
        return info(self, path, **options)

    monkeypatch.setattr(memory, "info", counted)
    return found


@pytest.mark.parametrize("is_version_listed", [True, False])
def test_files_that_are_listed_are_not_asked_for_one_by_one(
    is_version_listed: bool, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import fsspec

    memory = fsspec.filesystem("memory")
    for number in range(50):
        memory.pipe_file(f"/listed/{number}.txt", b"x" * number)
    one_by_one = [
        file for number in range(50) for file in list_inputs([f"memory://listed/{number}.txt"], Counter())
    ]
    del asked[:]
    if not is_version_listed:
        monkeypatch.setattr(corpus_files, "_VERSIONS", ())
    found = list_inputs(["memory://listed"], Counter())
    assert sorted(found) == sorted(one_by_one) or not is_version_listed
    assert len({path for path in asked if path.endswith(".txt")}) == (0 if is_version_listed else 50)
    memory.rm("/listed", recursive=True)


def test_a_listed_file_that_has_changed() -> None:
    import fsspec

    memory = fsspec.filesystem("memory")
    memory.pipe_file("/changing/a.txt", b"a")
    [given] = list_inputs(["memory://changing"], Counter())
    memory.pipe_file("/changing/a.txt", b"b")
    with pytest.raises(ChangedError, match="has changed since"), storage.open_input(given):
        pass
    memory.rm("/changing", recursive=True)


@pytest.mark.parametrize(
    ("listed", "version"),
    [
        ({"ETag": '"a1"', "LastModified": "x", "size": 3}, "a1"),  # s3fs, whose HEAD has other facts beside
        ({"etag": "a1", "mtime": "x"}, "a1"),  # gcsfs; adlfs, in a listing without the quotes
        ({"mtime": 5.0, "created": 7.0}, "5.0"),
        ({"size": 3, "etag": None}, ""),
    ],
)
def test_what_changes_with_a_file(listed: dict[str, Any], version: str) -> None:
    assert corpus_files.file_version(listed) == version


@pytest.mark.parametrize("command", ["count", "stats", "encode"])
def test_a_url_of_nothing_is_said(command: str, run: Run, tmp_path: Path) -> None:
    result = run(command, "-m", GPT2, "memory://nothing", *(["-o", tmp_path / "out"] * (command == "encode")))
    assert (result.code, result.out) == (2, b"")
    assert "memory://nothing" in result.err


def test_a_page_with_links_is_no_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pages:
        """As fsspec's file system for HTTP: what has links is a directory."""

        open = None  # nothing is opened

        def isdir(self, url: str) -> bool:
            return True

        def find(self, url: str, detail: bool) -> dict[str, Any]:
            return {f"{url}{name}": {"size": None} for name in ("b.txt", "a.txt")}

        def info(self, url: str) -> dict[str, Any]:
            return {"size": 5}

    monkeypatch.setattr(corpus_files, "file_system_at", lambda url, extra: (Pages(), url))
    found = corpus_files.files_of(["http://host/a.html", "http://host/corpus/"], Counter(), raised)
    names = [(file.path.removeprefix("http://host/"), file.size) for file in found]
    assert names == [("a.html", 5), ("corpus/a.txt", 0), ("corpus/b.txt", 0)]


# ---- the commands ---------------------------------------------------------------------------------------


def test_the_commands_encode_show_and_check(run: Run, corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = run("encode", "-m", GPT2, corpus, "-o", out, "--shard-size", "1K")
    assert (result.code, result.text) == (
        0,
        f"7 documents, 73 tokens, 1 shard in {out}; documents begin without BOS and end with EOS\n",
    )
    result = run("decode", "-m", GPT2, out, "--count", "3")
    assert result.text.splitlines()[0] == '     0      3 tokens  "Hello world"'
    assert run("decode", "-m", GPT2, out, "--document", "2").text == TEXTS[2]
    assert run("decode", "-m", GPT2, out, "--document", "0", "--ids").text == "15496 995 50256\n"
    assert json.loads(run("decode", "-m", GPT2, out, "--count", "1", "--json").text)["text"] == "Hello world"
    assert run("check", "-m", GPT2, out).text == "OK: 1 shard, 7 documents encoded again\n"
    assert "names no model" in run("check", out, "-hf", "no-slash").err
    assert_error(run("check", out, "-m", GPT2, "-mu", "https://example.org/x.gguf"), "one model, not 2")
    assert json.loads(
        run("encode", "-m", GPT2, corpus, "-o", out, "--shard-size", "1K", "--resume", "--json").text
    )
    (out / "part-00000.bin").write_bytes(b"")
    result = run("check", out)
    assert (result.code, result.text) == (1, "part-00000.bin: not the bytes that were written\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--shard-size", "x"], "--shard-size is a number of bytes"),
        (["--resume", "--force"], "--resume or --force, not both"),
        (["--pack", "0"], "pack must be 1 or more, not 0"),
    ],
)
def test_arguments_that_make_no_sense(
    run: Run, corpus: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    assert_error(run("encode", "-m", GPT2, corpus, "-o", tmp_path / "out", *arguments), message)


def test_what_is_left_out_is_said(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_bytes(BAD)
    out = tmp_path / "out"
    result = run("encode", "-m", GPT2, tmp_path / "bad.jsonl", "-o", out, "--on-error", "skip", "--pack", "3")
    assert result.code == 0
    assert "bad.jsonl: line 2: left out: not JSON" in result.err
    assert "4 bad records left out" in result.err
    assert "1 token at the end fills no row of 3 and is left out" in result.err


def test_files_that_are_left_out_of_directories_are_said(run: Run, tmp_path: Path) -> None:
    write_folder(tmp_path / "folder")
    (tmp_path / "folder" / ".hidden").touch()
    (tmp_path / "folder" / "binary").write_bytes(b"\0")
    result = run("encode", "-m", GPT2, tmp_path / "folder", "-o", tmp_path / "out")
    note = "ggufbpe: skipped in directories: 1 binary, 1 hidden (name a file to encode it)\n"
    assert (result.code, result.err) == (0, note)


def test_a_dataset_saved_by_datasets_has_only_its_tables(tmp_path: Path, tok: Tokenizer) -> None:
    """`save_to_disk` writes JSON files beside the table, which are no documents."""
    saved = tmp_path / "saved" / "train"
    saved.mkdir(parents=True)
    with (
        pa.OSFile(str(saved / "data-00000-of-00001.arrow"), "wb") as file,
        pa.ipc.new_stream(file, table().schema) as writer,
    ):
        writer.write_table(table())
    for name in ("train/dataset_info.json", "train/state.json", "dataset_dict.json"):
        (tmp_path / "saved" / name).write_text("{}")
    found = encode_corpus(tmp_path / "saved", tok, tmp_path / "out")
    assert (found.documents, found.skipped["metadata of a saved dataset"]) == (len(TEXTS), 2)
    (saved / "dataset_info.json").unlink()
    assert encode_corpus(saved, tok, tmp_path / "other").documents == len(TEXTS) + 1


@pytest.mark.parametrize("bos", [False, True])
@pytest.mark.parametrize("name", ["gpt-2", "llama-spm"])
def test_what_is_decoded_is_what_was_encoded(bos: bool, name: str, tmp_path: Path) -> None:
    """Not as llama_detokenize shows an answer, which takes spaces away before marks and apostrophes."""
    try:
        model = vocabulary(name)
    except NotPreparedError as error:
        missing(str(error))
    texts = ["It 's  fine , they 're here !", " a", "  b ' c", ""]
    (tmp_path / "a.jsonl").write_bytes(json_lines(texts))
    encode_corpus(tmp_path / "a.jsonl", model, tmp_path / "out", bos=bos)
    assert [row.text.decode() for row in decode_corpus(tmp_path / "out", model)] == texts


def test_shards_that_are_none_are_said(run: Run, tmp_path: Path) -> None:
    assert_error(run("check", tmp_path), "there is no manifest.json")
    assert_error(run("decode", "-m", GPT2, tmp_path / "nothing"), "there is no manifest.json")


def test_formats_of_the_command_are_those_there_are() -> None:
    assert tuple(FORMS) == FORMATS


# ---- steps of what others run ---------------------------------------------------------------------------


class Document(NamedTuple):
    """What datatrove's has of it."""

    text: str
    metadata: dict[str, Any]
    id: str = "0"


def test_a_stage_gives_the_ids_of_shards(tok: Tokenizer) -> None:
    stage = pickle.loads(pickle.dumps(EncodeStage(GPT2)))
    batch = {"text": TEXTS, "id": list(range(len(TEXTS)))}
    assert stage(batch) == {**batch, "input_ids": expected(tok)}
    assert stage({"text": np.array(TEXTS, object)})["input_ids"] == expected(tok)
    documents = list(stage.documents([Document(text, {}) for text in TEXTS]))
    assert [document.metadata["input_ids"] for document in documents] == expected(tok)


def test_a_stage_refuses_a_token_that_is_not_there(tok: Tokenizer) -> None:
    none = {**tok.vocabulary.special_ids, "eos": None}
    with pytest.raises(ValueError, match="no EOS token"):
        EncodeStage(Tokenizer(tok.vocabulary._replace(special_ids=none)))
