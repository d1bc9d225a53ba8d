"""Packed rows that keep chats whole: where padding stands, and that every way to write and check them agrees."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import Run, run
from corpus_cases import files_in
from recorded_chats import VOCABULARY
from this_machine import on_this_machine

from ggufbpe import Tokenizer, check_corpus, encode_corpus
from ggufbpe.data.corpora.byte_formats import Layout
from ggufbpe.data.corpora.chunk_encoder import Encoded
from ggufbpe.data.corpora.marked_ids import ENDS
from ggufbpe.data.corpora.shard_reader import EncodedCorpus
from ggufbpe.data.corpora.whole_rows import padding_before, padding_id, with_padding

__all__ = ["on_this_machine", "run"]  # fixtures

CHATML = "known:chatml"
TOK = Tokenizer.from_gguf(VOCABULARY)
ROW = 40  # tokens; of the chats below, some have more
OPTIONS: dict[str, Any] = {"chats": True, "chat_template": CHATML}


@pytest.fixture(scope="module")
def chats(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Chats of one word to more than two rows."""
    lengths = random.Random(3)
    path = tmp_path_factory.mktemp("chats") / "chats.jsonl"
    with path.open("w") as file:
        for number in range(300):
            messages = [
                {"role": "user", "content": f"question {number}"},
                {"role": "assistant", "content": "answer " * lengths.choice([0, 1, 2, 3, 5, 8, 30, 60])},
            ]
            file.write(json.dumps({"messages": messages}) + "\n")
    return path


def flat(corpus: EncodedCorpus, array: str = "input_ids") -> list[int]:
    return [token for row in corpus.rows(array=array) for token in row.tolist()]


# ---- where padding stands ---------------------------------------------------------------------------------

LENGTHS: list[tuple[list[int], int, list[int]]] = [
    ([], 3, []),
    ([6, 6], 0, [0, 0]),  # rows that are full
    ([3, 3, 1], 0, [0, 0, 0]),
    ([3, 4], 0, [0, 3]),
    ([4], 3, [3]),  # after what the shard before left
    ([9, 4], 0, [0, 3]),  # one longer than a row is cut, and is followed in its last row
    ([9, 2], 1, [5, 0]),
    ([0, 5, 0, 2], 0, [0, 0, 0, 1]),  # documents of no ids
]


@pytest.mark.parametrize(("lengths", "used", "padding"), LENGTHS)
def test_padding_before_documents(lengths: list[int], used: int, padding: list[int]) -> None:
    assert padding_before(np.array(lengths, np.int64), used, 6).tolist() == padding


def test_padding_ends_as_a_document_does() -> None:
    numbers = np.array([3, 4], np.int64)
    encoded = Encoded([np.arange(1, 8, dtype=np.uint32)], numbers, numbers, numbers, numbers, [])
    found = with_padding(encoded, 0, Layout("uint16", "", 6, None, True, 9))
    assert found.ids[0].tolist() == [1, 2, 3, 9, 9, 9 | ENDS, 4, 5, 6, 7]
    assert found.lengths.tolist() == [3, 7]


def test_a_model_without_padding_has_eos() -> None:
    assert padding_id(TOK) == (TOK.eos_id if TOK.pad_id is None else TOK.pad_id)
    bare = Tokenizer(
        TOK.vocabulary._replace(special_ids={**TOK.vocabulary.special_ids, "eos": None, "pad": None})
    )
    with pytest.raises(ValueError, match="neither a padding nor an EOS token"):
        padding_id(bare)


# ---- in shards --------------------------------------------------------------------------------------------

FORMS = [
    ("npy", {"position_ids": True, "mask": True}),
    ("parquet", {"position_ids": True, "mask": True}),
    pytest.param("megatron", {}, marks=pytest.mark.slow),
    pytest.param("arrow", {"mask": True, "mask_form": "mask"}, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("form", "more"), FORMS)
def test_no_chat_that_fits_a_row_is_cut(form: str, more: dict[str, Any], chats: Path, tmp_path: Path) -> None:
    masks = {name: value for name, value in more.items() if name != "position_ids"}
    each = encode_corpus(chats, TOK, tmp_path / "each", format=form, **OPTIONS, **masks)
    packed = encode_corpus(
        chats, TOK, tmp_path / "packed", format=form, pack=ROW, whole=True, shard_size=2000, **OPTIONS, **more
    )
    assert len(packed.shards) > 3
    ids, at, padding = flat(packed), 0, 0
    for document in (row.tolist() for row in each.rows()):
        room = ROW - at % ROW
        if at % ROW and len(document) > room:
            assert ids[at : at + room] == [padding_id(TOK)] * room
            at, padding = at + room, padding + room
        assert ids[at : at + len(document)] == document
        at += len(document)
    assert ids[at:] == [padding_id(TOK)] * (-at % ROW)
    manifest = packed.manifest
    assert manifest["padding_tokens"] == padding + len(ids) - at
    assert (manifest["left_over_tokens"], manifest["settings"]["padding"]) == (0, padding_id(TOK))
    assert [manifest[name] for name in ("documents", "longest", "lengths")] == [
        each.manifest[name] for name in ("documents", "longest", "lengths")
    ]
    assert manifest.get("assistant_tokens") == each.manifest.get("assistant_tokens")
    assert check_corpus(tmp_path / "packed", TOK, sample=1000).problems == []


def test_padding_is_a_sequence_of_its_own_and_not_trained_on(chats: Path, tmp_path: Path) -> None:
    found = encode_corpus(
        chats,
        TOK,
        tmp_path / "out",
        format="parquet",
        pack=ROW,
        whole=True,
        position_ids=True,
        mask=True,
        **OPTIONS,
    )
    arrays = (found.rows(array=name) for name in ("input_ids", "labels", "position_ids", "cu_seqlens"))
    ends_padded = 0
    for ids, labels, positions, bounds in zip(*arrays):
        begin = int(bounds[-2])
        if (ids[begin:] == padding_id(TOK)).all() and len(ids) - begin > 1:
            ends_padded += 1
            assert set(labels[begin:].tolist()) == {-100}
            assert positions[begin:].tolist() == list(range(len(ids) - begin))
    assert ends_padded > 10


@pytest.mark.parametrize("stop_at", [5, 150])
def test_a_stopped_run_goes_on_with_the_same_rows(
    stop_at: int, chats: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {**OPTIONS, "pack": ROW, "whole": True, "shard_size": 1000, "format": "npy", "mask": True}
    one = encode_corpus(chats, TOK, tmp_path / "one", **options)

    def stop(progress: Any) -> None:
        if progress.counts["documents"] >= stop_at:
            raise KeyboardInterrupt

    monkeypatch.setattr("ggufbpe.data.corpora.chunks.CHUNK", 300)
    with pytest.raises(KeyboardInterrupt):
        encode_corpus(chats, TOK, tmp_path / "two", progress=stop, **options)
    two = encode_corpus(chats, TOK, tmp_path / "two", resume=True, workers=2, **options)
    assert (flat(two), flat(two, "assistant_masks")) == (flat(one), flat(one, "assistant_masks"))
    with pytest.raises(ValueError, match="the work was begun with whole True, not False"):
        encode_corpus(chats, TOK, tmp_path / "two", resume=True, **{**options, "whole": False})


@pytest.mark.cluster
@pytest.mark.parametrize("shard_size", [300, 2000, 1 << 20])
@pytest.mark.usefixtures("on_this_machine")
def test_a_cluster_writes_the_same_rows(
    shard_size: int, chats: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ggufbpe.data.corpora.chunks.CHUNK", 500)
    options = {**OPTIONS, "pack": ROW, "whole": True, "shard_size": shard_size, "format": "npy", "mask": True}
    encode_corpus(chats, TOK, tmp_path / "one", **options)
    encode_corpus(chats, TOK, tmp_path / "many", ray="", **options)
    names = ("manifest.json",)
    one, many = ({name: data for name, data in files_in(tmp_path / of).items() if name not in names}
                 for of in ("one", "many"))  # fmt: skip
    assert many == one
    shards = [json.loads((tmp_path / of / "manifest.json").read_bytes())["shards"] for of in ("one", "many")]
    assert shards[0] == shards[1]


# ---- the command ------------------------------------------------------------------------------------------


def test_the_command_says_how_much_is_padding(chats: Path, run: Run, tmp_path: Path) -> None:
    given = ("encode", "-m", VOCABULARY, chats, "--chats", "--chat-template", CHATML)
    found = run(*given, "-o", tmp_path / "out", "--pack", ROW, "--whole")
    padding = json.loads((tmp_path / "out" / "manifest.json").read_bytes())["padding_tokens"]
    assert f" ({padding} of padding), 1 shard" in found.text
    assert "at the end" not in found.err
    for flags in (["--whole"], ["--pack", ROW, "--whole"]):
        wrong = run("encode", "-m", VOCABULARY, chats, "-o", tmp_path / "not", *flags)
        assert (
            "--whole is for packed chats: give --pack LENGTH, and --chat-column NAME or --chats" in wrong.err
        )
    with pytest.raises(ValueError, match="whole=True is for packed rows of chats"):
        encode_corpus(chats, TOK, tmp_path / "not", pack=ROW, whole=True)
