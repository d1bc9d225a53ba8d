"""Shards of chats with what the assistant wrote, and packed rows with where documents begin."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import Run, assert_error, run
from conftest import missing
from corpus_cases import TEXTS, expected, files_in, json_lines, small_chunks
from corpus_cases import tok as gpt2
from recorded_chats import VOCABULARY
from reference import NotPreparedError, vocabulary

from ggufbpe import Tokenizer, check_corpus, decode_corpus, encode_corpus
from ggufbpe.cli.encode import FORMATS
from ggufbpe.data.corpora.records import CorpusError
from ggufbpe.data.corpora.shard_reader import EncodedCorpus

__all__ = ["gpt2", "run", "small_chunks"]  # fixtures

CHATML = "known:chatml"
TOK = Tokenizer.from_gguf(VOCABULARY)
WITHOUT_UNKNOWN = Path(__file__).resolve().parents[3] / "fixtures" / "vocabs" / "wpm-unknown-missing.gguf"
LACKING = ["hello", "hello zq", "hello"]
CHATS = [
    [{"role": "user", "content": f"question {number}"}, {"role": "assistant", "content": "answer " * number}]
    for number in range(1, 12)
]


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    path = tmp_path / "chats.jsonl"
    path.write_text("".join(json.dumps({"messages": chat}) + "\n" for chat in CHATS))
    return path


def masked(chats: list[list[dict[str, str]]] = CHATS, parts: Any = True) -> list[tuple[list[int], list[int]]]:
    """The ids and masks of chats, each with EOS behind it, which the template does not write."""
    found = []
    for chat in chats:
        ids, mask = TOK.apply_chat_template(chat, chat_template=CHATML, return_assistant_mask=parts)
        found.append(([*ids, TOK.eos_id or 0], [*mask, 0]))
    return found


def labels(rows: list[tuple[list[int], list[int]]]) -> list[list[int]]:
    return [[token if one else -100 for token, one in zip(*row)] for row in rows]


def rows(corpus: EncodedCorpus, array: str = "input_ids") -> list[list[int]]:
    return [row.tolist() for row in corpus.rows(array=array)]


# ---- masks ----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("mask_form", ["mask", "labels"])
@pytest.mark.parametrize("form", FORMATS)
def test_every_format_has_masks(form: str, mask_form: Any, chats: Path, tmp_path: Path) -> None:
    """Of many shards."""
    found = encode_corpus(
        chats,
        TOK,
        tmp_path / "out",
        format=form,
        chat_column="messages",
        chat_template=CHATML,
        mask=True,
        mask_form=mask_form,
        shard_size=100,
    )
    assert len(found.shards) > 2
    assert found.manifest["assistant_tokens"] == sum(sum(mask) for _, mask in masked())
    assert rows(found) == [ids for ids, _ in masked()]
    array = "labels" if mask_form == "labels" else "assistant_masks"
    assert rows(found, array) == (labels(masked()) if array == "labels" else [mask for _, mask in masked()])
    assert check_corpus(tmp_path / "out", TOK)[1:] == ([], len(CHATS), "")
    with pytest.raises(ValueError, match=f"are input_ids, {array}, not 'position_ids'"):
        found.rows(array="position_ids")


def test_how_the_files_are_read(chats: Path, tmp_path: Path) -> None:
    """By the programs that they are for; tables have labels without being asked, since trainers read these."""
    ids = [token for row, _ in masked() for token in row]
    mask = [one for _, row in masked() for one in row]

    def encode(form: str, **options: Any) -> Path:
        encode_corpus(
            chats, TOK, tmp_path / form, format=form, chats=True, chat_template=CHATML, mask=True, **options
        )
        return tmp_path / form / "part-00000"

    stem = encode("npy")
    found = np.load(f"{stem}.mask.npy", mmap_mode="r")
    assert (found.tolist(), str(found.dtype), np.load(f"{stem}.npy").tolist()) == (mask, "uint8", ids)
    table = pq.read_table(f"{encode('parquet')}.parquet")
    assert table.column_names == ["input_ids", "labels"]
    assert table["labels"].to_pylist() == labels(masked())
    with pa.OSFile(f"{encode('arrow', mask_form='mask')}.arrow") as file:
        batch = pa.ipc.open_file(file).read_all()
    assert batch["assistant_masks"].to_pylist() == [row for _, row in masked()]
    stem = encode("megatron")
    assert np.fromfile(f"{stem}.mask.bin", "uint8").tolist() == mask
    index, other = Path(f"{stem}.mask.idx").read_bytes(), Path(f"{stem}.idx").read_bytes()
    assert (index[:17], index[17]) == (other[:17], 1)  # megatron.core: DType.uint8 is 1
    assert index[34 : 34 + 4 * len(CHATS)] == other[34 : 34 + 4 * len(CHATS)]  # the lengths
    stem = encode("nanotron")
    assert np.fromfile(f"{stem}.ds.loss", "?").tolist() == list(map(bool, mask))
    assert not list((tmp_path / "nanotron").glob("*.mask*"))


@pytest.mark.parametrize("parts", [["content"], ["end"], ["content", "end"], []])
def test_parts(parts: list[Any], chats: Path, tmp_path: Path) -> None:
    found = encode_corpus(
        chats, TOK, tmp_path / "out", format="npy", chats=True, chat_template=CHATML, mask=parts
    )
    assert rows(found, "assistant_masks") == [mask for _, mask in masked(parts=parts)]


def test_the_order_of_chats_changes_no_mask(tmp_path: Path) -> None:
    """Also where the first chat begins with the assistant, before which no generation prompt can stand."""
    short = [{"messages": chat} for chat in CHATS]
    odd = {"messages": [CHATS[0][1], *CHATS[0]]}
    found = []
    for number, records in enumerate(([odd, *short], [*short, odd])):
        path = tmp_path / f"{number}.jsonl"
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
        options: dict[str, Any] = {"chats": True, "chat_template": "known:deepseek-ai-DeepSeek-V3.1"}
        corpus = encode_corpus(path, TOK, tmp_path / str(number), format="npy", mask=True, **options)
        found.append(rows(corpus, "assistant_masks"))
    assert found[0] == [found[1][-1], *found[1][:-1]]


def test_an_eos_behind_a_turn_that_has_no_end_ends_it(chats: Path, tmp_path: Path) -> None:
    template = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
    for parts, last in ((True, 1), (["content"], 0)):
        found = encode_corpus(
            chats, TOK, tmp_path / str(last), format="npy", chats=True, chat_template=template, mask=parts
        )
        assert {row[-1] for row in rows(found)} == {TOK.eos_id}
        assert {row[-1] for row in rows(found, "assistant_masks")} == {last}


@pytest.mark.parametrize("pack", [None, 13])
@pytest.mark.parametrize(
    "form",
    [
        "npy",
        pytest.param("parquet", marks=pytest.mark.slow),
        pytest.param("megatron", marks=pytest.mark.slow),
    ],
)
def test_a_stopped_run_goes_on_with_the_same_bytes(
    form: str, pack: int | None, chats: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ids that begin the next shard keep their marks."""
    options: dict[str, Any] = {
        "format": form,
        "chats": True,
        "chat_template": CHATML,
        "mask": True,
        "pack": pack,
        "position_ids": pack is not None and form != "megatron",
        "shard_size": 60,
    }
    one = encode_corpus(chats, TOK, tmp_path / "one", **options)
    assert len(one.shards) > 3

    def stop(progress: Any) -> None:
        if progress.counts["documents"] >= 5:
            raise KeyboardInterrupt

    monkeypatch.setattr("ggufbpe.data.corpora.chunks.CHUNK", 300)
    with pytest.raises(KeyboardInterrupt):
        encode_corpus(chats, TOK, tmp_path / "two", progress=stop, **options)
    encode_corpus(chats, TOK, tmp_path / "two", resume=True, workers=2, **options)

    def without_date(folder: Path) -> dict[str, Any]:
        found: dict[str, Any] = files_in(folder)
        content = json.loads(found.pop("manifest.json"))
        del content["settings"]["now"]
        return {**found, "manifest": content}

    assert without_date(tmp_path / "two") == without_date(tmp_path / "one")
    options["mask_form"] = "labels" if form != "parquet" else "mask"
    with pytest.raises(CorpusError, match="the work was begun with mask_form"):
        encode_corpus(chats, TOK, tmp_path / "one", resume=True, **options)


def test_a_mask_that_was_changed_is_found(chats: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    encode_corpus(chats, TOK, out, format="npy", chats=True, chat_template=CHATML, mask=True)
    content = (out / "part-00000.mask.npy").read_bytes()
    (out / "part-00000.mask.npy").write_bytes(content[:-1] + b"\1")  # the last EOS
    assert check_corpus(out).problems == ["part-00000.mask.npy: not the bytes that were written"]
    manifest = json.loads((out / "manifest.json").read_text())
    for file in manifest["shards"][0]["files"]:
        file["sha256"] = hashlib.sha256((out / file["name"]).read_bytes()).hexdigest()
    (out / "manifest.json").write_text(json.dumps(manifest))
    assert check_corpus(out, TOK).problems == [
        "part-00000: not the assistant_masks that the tokenizer gives for its first documents"
    ]


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("bos", [False, True])
@pytest.mark.parametrize("name", ["gpt-2", "llama-spm"])
def test_runs_of_a_mask_decode_each_id_once(
    name: str, bos: bool, special: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their texts are that of the row, also where the model puts a space before a text."""
    try:
        model = vocabulary(name)
    except NotPreparedError as error:
        missing(str(error))
    chat = [message for number in range(20) for message in CHATS[number % 3]]
    (tmp_path / "chats.jsonl").write_text(json.dumps({"messages": chat}))
    template = "{% for m in messages %} {{ m.content }}{% endfor %}"
    options: dict[str, Any] = {"chats": True, "chat_template": template, "bos": bos}
    encode_corpus(tmp_path / "chats.jsonl", model, tmp_path / "out", mask=True, **options)
    [plain] = decode_corpus(tmp_path / "out", model, special=special)
    decode_bytes, decoded = Tokenizer.decode_bytes, []

    def counting(self: Tokenizer, ids: Any, **flags: Any) -> bytes:
        decoded.extend(ids)
        return decode_bytes(self, ids, **flags)

    monkeypatch.setattr(Tokenizer, "decode_bytes", counting)
    [row] = decode_corpus(tmp_path / "out", model, special=special, mask=True)
    assert len(row.runs) >= 40
    assert len(decoded) <= len(row.ids)
    assert row.text == plain.text == b"".join(run.text for run in row.runs)
    assert sum(run.tokens for run in row.runs) == len(row.ids)


# ---- texts without a token ---------------------------------------------------------------------------------


def test_texts_without_a_token_are_left_out(tmp_path: Path) -> None:
    """Without an unknown token llama.cpp gives -1, which as an unsigned number would have all marks."""
    tok = Tokenizer.from_gguf(WITHOUT_UNKNOWN)
    hello = tok.encode("hello", add_special=False)
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in LACKING))
    for number, text in enumerate(LACKING):
        (tmp_path / f"b{number}.txt").write_text(text)
    (tmp_path / "b1.jsonl").write_text("")
    chats = [
        {"messages": [{"role": "user", "content": text}, {"role": "assistant", "content": "hello"}]}
        for text in LACKING
    ]
    (tmp_path / "c.jsonl").write_text("".join(json.dumps(chat) + "\n" for chat in chats))
    plain = "{% for m in messages %}{{ m.content }} {% endfor %}"
    chat = {"chats": True, "chat_template": plain}
    for given, options, document, where in [
        ("a.jsonl", {"pack": 1, "position_ids": True}, hello, "a.jsonl: line 2"),
        ("b*", {}, hello, "b1.txt"),
        ("c.jsonl", {**chat, "mask": True}, [2, *hello, *hello, 3], "c.jsonl: line 2"),
        ("c.jsonl", chat, [2, *hello, *hello, 3], "c.jsonl: line 2"),
    ]:
        told: list[tuple[str, str]] = []
        found = encode_corpus(
            sorted(tmp_path.glob(given)),
            tok,
            tmp_path / f"out{len(list(tmp_path.iterdir()))}",
            format="npy",
            eos=False,
            on_error="skip",
            report=lambda name, error, told=told: told.append((name, str(error))),  # type: ignore[misc]
            **options,  # type: ignore[arg-type]
        )
        assert [token for row in rows(found) for token in row] == document * 2
        [(name, reason)] = told
        assert (name.endswith(where), reason) == (
            True,
            "no token for 'zq', and the model has no unknown token",
        )
        if "mask" in options:
            assert rows(found, "assistant_masks") == [[0, *[0] * len(hello), *[1] * len(hello), 0]] * 2


@pytest.mark.usefixtures("small_chunks")
def test_a_long_text_without_a_token_is_refused(tmp_path: Path) -> None:
    """Its beginning is already written."""
    (tmp_path / "a.txt").write_text("hello " * 100 + "zq")
    with pytest.raises(CorpusError, match=r"a\.txt: no token for 'zq'"):
        encode_corpus(tmp_path / "a.txt", Tokenizer.from_gguf(WITHOUT_UNKNOWN), tmp_path / "out", eos=False)


# ---- forms of chats -------------------------------------------------------------------------------------

RECORDS: list[dict[str, Any]] = [
    {"messages": CHATS[0]},
    {"conversations": [{"from": "human", "value": "question 2"}, {"from": "gpt", "value": "answer answer "}]},
    {"instruction": "question 3", "output": "answer " * 3},
    {"prompt": "question 4", "completion": "answer " * 4},
    {"prompt": [*CHATS[0], CHATS[4][0]], "completion": [CHATS[4][1]]},
]


def write_lines(path: Path) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in RECORDS))


def write_table(path: Path) -> None:
    """A table cannot have texts and lists in a column."""
    names = {name for record in RECORDS[:4] for name in record}
    pq.write_table(pa.table({name: [r.get(name) for r in RECORDS[:4]] for name in names}), path)


@pytest.mark.parametrize(("name", "write"), [("a.jsonl", write_lines), ("a.parquet", write_table)])
def test_each_record_is_recognized(name: str, write: Callable[[Path], None], tmp_path: Path) -> None:
    write(tmp_path / name)
    found = encode_corpus(
        tmp_path / name, TOK, tmp_path / "out", format="npy", chats=True, chat_template=CHATML, mask=True
    )
    assert rows(found)[:4] == [ids for ids, _ in masked()[:4]]
    assert rows(found, "assistant_masks")[:4] == [mask for _, mask in masked()[:4]]
    if name == "a.jsonl":  # of its turns, only the completion is learnt
        [(ids, mask)] = masked([[*CHATS[0], *CHATS[4]]])
        size = len(TOK.apply_chat_template(CHATS[0], chat_template=CHATML, return_assistant_mask=True)[0])
        assert rows(found)[4] == ids
        assert rows(found, "assistant_masks")[4] == [0] * size + mask[size:]


def test_columns_of_a_csv_are_texts(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('instruction,input,output\nquestion 1,,"answer "\n')
    found = encode_corpus(tmp_path / "a.csv", TOK, tmp_path / "out", chats=True, chat_template=CHATML)
    assert rows(found) == [masked()[0][0]]


def test_records_that_fit_nothing_are_refused_with_their_line(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "a.jsonl"
    pair = {"prompt": "Hi", "chosen": "Hello", "rejected": "No"}
    path.write_text("\n".join(map(json.dumps, [RECORDS[0], {"text": "x"}, pair])))
    options = ["-m", VOCABULARY, path, "--chats", "--chat-template", CHATML]
    assert_error(run("encode", *options, "-o", tmp_path / "out"), "a.jsonl: line 2: no known form of a chat")
    done = run("encode", *options, "-o", tmp_path / "out", "--on-error", "skip", "--mask")
    assert (
        "line 3: left out: a preference pair; --preference chosen or --preference rejected says" in done.err
    )
    for number, (answer, text) in enumerate([("chosen", "Hello"), ("rejected", "No")]):
        out = tmp_path / str(number)
        done = run("encode", *options, "-o", out, "--on-error", "skip", "--mask", "--preference", answer)
        assert done.text.startswith("2 documents")
        row = EncodedCorpus.open(out)[1].tolist()
        [mask] = list(EncodedCorpus.open(out).rows(1, "assistant_masks"))
        assert (
            TOK.decode([t for t, one in zip(row, mask) if one], unparse_special=True) == f"{text}<|im_end|>"
        )


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"chats": True, "chat_column": "messages"}, "give either"),
    ({"preference": "chosen"}, "preference is for chats=True"),
    ({"chats": True, "preference": "best"}, "preference is 'chosen' or 'rejected'"),
    ({"mask": True}, "for chats"),
    ({"chats": True, "mask_form": "mask"}, "mask_form is for mask=True"),
    ({"chats": True, "mask": True, "mask_form": "x"}, "mask_form is 'mask' or 'labels', not 'x'"),
    ({"chats": True, "mask": ["x"]}, "content, end, reasoning, tool_calls, not 'x'"),
    ({"position_ids": True, "format": "npy"}, "packed rows"),
    ({"position_ids": True, "pack": 4}, r"packed rows \(pack=N\) of npy, parquet, arrow"),
]


@pytest.mark.parametrize(("options", "reason"), WRONG)
def test_options_that_contradict_each_other(
    options: dict[str, Any], reason: str, chats: Path, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=reason):
        encode_corpus(chats, TOK, tmp_path / "out", **{"chat_template": CHATML, **options})
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (["--mask"], "--mask is for chats"),
        (["--mask-parts", ""], "--mask is for chats"),
        (["--mask-form", "labels"], "--mask is for chats"),
        (["--chats", "--chat-column", "messages"], "give either"),
        (["--chat-column", "messages", "--preference", "chosen"], "--preference is for --chats"),
        (["--position-ids"], "--position-ids is for --pack LENGTH"),
        (["--chats", "--chat-template", CHATML, "--mask-parts", "content,ends"], "not 'ends'"),
    ],
)
def test_flags_that_contradict_each_other(
    flags: list[str], reason: str, chats: Path, tmp_path: Path, run: Run
) -> None:
    assert_error(run("encode", "-m", VOCABULARY, chats, "-o", tmp_path / "out", *flags), reason)


# ---- where packed documents begin -----------------------------------------------------------------------


def boundaries(documents: list[list[int]], window: int) -> list[list[int]]:
    """Where documents, or what a row has of them, begin in each row, and its length."""
    ends = set(np.cumsum([len(ids) for ids in documents]).tolist())
    found = []
    for begin in range(0, sum(map(len, documents)) // window * window, window):
        found.append([0, *(end - begin for end in sorted(ends) if begin < end < begin + window), window])
    return found


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("window", [1, 7, 50])
@pytest.mark.parametrize("form", ["npy", "parquet", "arrow"])
def test_positions_begin_anew_with_each_document(
    form: str, window: int, tmp_path: Path, gpt2: Tokenizer
) -> None:
    """Also of a long text that is read in pieces, of an empty one, and in every shard."""
    (tmp_path / "a.jsonl").write_bytes(json_lines())
    (tmp_path / "b.txt").write_text("low lower lowest " * 40)
    found = encode_corpus(
        [tmp_path / "a.jsonl", tmp_path / "b.txt", tmp_path / "a.jsonl"],
        gpt2,
        tmp_path / "out",
        format=form,
        pack=window,
        position_ids=True,
        shard_size=100,
    )
    documents = [*expected(gpt2), *expected(gpt2, ["low lower lowest " * 40]), *expected(gpt2, TEXTS)]
    wanted = boundaries(documents, window)
    assert len(found.shards) > 2
    positions = [[n for begin, end in pairwise(row) for n in range(end - begin)] for row in wanted]
    assert rows(found, "position_ids") == positions
    if form != "npy":
        assert rows(found, "cu_seqlens") == wanted
        return
    at, every = 0, []
    for shard in found.shards:  # one array for all rows of a shard
        starts = np.load(tmp_path / "out" / f"{shard.name}.cu_seqlens.npy").tolist()
        assert starts[-1] == shard.tokens
        every += [start + at for start in starts[:-1]]
        at += shard.tokens
    assert every == [n * window + start for n, row in enumerate(wanted) for start in row[:-1]]


def test_masks_and_positions_of_packed_rows(chats: Path, tmp_path: Path, run: Run) -> None:
    out = tmp_path / "out"
    done = run(
        *["encode", "-m", VOCABULARY, chats, "-o", out, "--format", "parquet", "--chats"],
        *["--chat-template", CHATML, "--mask", "--pack", 20, "--position-ids"],
    )
    packed = 20 * len(EncodedCorpus.open(out))
    mask = [one for _, row in masked() for one in row]
    assert len(mask) - packed < 20
    assert done.text.startswith(
        f"11 documents, {packed} tokens ({sum(mask[:packed])} of the assistant), 1 shard"
    )
    table = pq.read_table(out / "part-00000.parquet")
    assert table.column_names == ["input_ids", "labels", "position_ids", "cu_seqlens"]
    flat = [label for row in labels(masked()) for label in row]
    assert table["labels"].to_pylist() == [flat[at : at + 20] for at in range(0, len(flat) - 19, 20)]
    assert table["cu_seqlens"].to_pylist() == boundaries([ids for ids, _ in masked()], 20)
