"""What training reads: kinds of files, where blocks end, and what is wrong in them."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
from collections import Counter
from pathlib import Path

import pytest
from commands import Run, posix_only, run
from conftest import ROOT
from hypothesis import given
from hypothesis import strategies as st
from synthetic import bounded, texts

from ggufbpe import GGUFWarning, train
from ggufbpe._util import extras
from ggufbpe.data.corpora.records import CorpusError
from ggufbpe.data.training import training_texts
from ggufbpe.data.training.training_texts import CorpusOptions, read_training_texts
from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS
from ggufbpe.models.pretokenizers.splitter import splitter

__all__ = ["run"]  # the fixture

STRICT = CorpusOptions()
# Words of these go across the ends of lines.
ACROSS_LINES = {"superbpe"}


def read(path: Path, reading: CorpusOptions = STRICT) -> list[str]:
    return list(read_training_texts([path], reading))


def test_kinds_of_files(tmp_path: Path) -> None:
    line = json.dumps({"text": "one\n", "body": "two é"}).encode() + b"\n"
    files = {
        "a.txt": "zéro".encode(),
        "b.gz": gzip.compress("zéro".encode()),
        "c.jsonl": line * 2,
        "d.ndjson.gz": gzip.compress(line),
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    assert read(tmp_path) == ["zéro", "zéro", "one\n", "one\n", "one\n"]
    assert read(tmp_path / "c.jsonl", CorpusOptions(field="body")) == ["two é"] * 2


@posix_only
@pytest.mark.parametrize("content", [b"one", b""])
def test_a_pipe_has_no_progress(content: bytes, tmp_path: Path) -> None:
    """As of `<(command)` in a shell, and /dev/stdin."""
    told: list[tuple[int, int]] = []
    (tmp_path / "a.txt").write_text("two")
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as file:
        file.write(content)
    try:
        options = CorpusOptions(progress=lambda *done: told.append(done))
        paths = [Path(f"/dev/fd/{reading}"), tmp_path / "a.txt"]
        assert "".join(read_training_texts(paths, options)) == f"{content.decode()}two"
    finally:
        os.close(reading)
    assert told == [(3, 3)]


def test_zstd(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    path = tmp_path / "a.txt.zst"
    path.write_bytes(zstandard.compress(b"one ") + zstandard.compress(b"two"))  # two frames
    assert read(path) == ["one two"]
    path.write_bytes(b"")
    assert "".join(read(path)) == ""
    whole = zstandard.compress(b"x" * 99_999)
    for broken in (b"no zstd", whole[:-4], whole[:6], whole + whole[:9]):
        path.write_bytes(broken)
        with pytest.raises(CorpusError, match=r"a\.txt\.zst: the compressed data is broken"):
            read(path)


def test_zstd_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise ModuleNotFoundError(name, name=name)

    monkeypatch.setattr(extras, "import_module", absent)
    (tmp_path / "a.zst").write_bytes(b"")
    with pytest.raises(CorpusError, match=r"a\.zst: reading zstd takes the package zstandard: pip install"):
        read(tmp_path / "a.zst")


def test_urls_are_read_as_files_of_this_machine_are(run: Run, tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    for name, data in {
        "a.jsonl": b'{"text": "low lower lowest"}\n' * 9,
        "b/c.txt.gz": gzip.compress(b"new newer newest " * 9),
        ".d/e.txt": b"x",
    }.items():
        memory.pipe_file(f"/learned/{name}", data)
        (tmp_path / "corpus" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "corpus" / name).write_bytes(data)
    learned = []
    for place in ("memory://learned", str(tmp_path / "corpus")):
        result = run("train", place, "--vocab-size", "270", "--trace")
        learned.append((result.code, result.text, result.err))
    assert learned[0] == learned[1]
    assert learned[0][1]
    memory.rm("/learned", recursive=True)
    result = run("train", "memory://learned", "--vocab-size", "270", "--trace")
    assert (result.code, "memory://learned" in result.err) == (2, True)


def test_strings_and_streams_come_before_files(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("b")
    (tmp_path / "a").write_text("a")
    given = [tmp_path / "b", "one", io.BytesIO(b"two"), tmp_path / "a"]
    assert list(read_training_texts(given, STRICT)) == ["one", "two", "a", "b"]


def test_what_directories_have_beside_text(tmp_path: Path) -> None:
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "a").write_text("hidden")
    (tmp_path / ".b").write_text("hidden")
    (tmp_path / "binary").write_bytes(b"\0")
    (tmp_path / "binary.gz").write_bytes(gzip.compress(b"\0"))
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "text").write_text("text")
    expected = {"hidden": 2, "binary": 2}
    if os.name == "posix":
        (tmp_path / "link").symlink_to(tmp_path / "below")
        expected["link or special"] = 1
    skipped: Counter[str] = Counter()
    assert read(tmp_path, CorpusOptions(skipped=skipped)) == ["text"]
    assert +skipped == expected


def test_progress_is_in_bytes_of_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    (tmp_path / "b.gz").write_bytes(gzip.compress(b"x" * 1000))
    seen: list[tuple[int, int]] = []
    read(tmp_path, CorpusOptions(progress=lambda done, total: seen.append((done, total))))
    total = sum(path.stat().st_size for path in tmp_path.iterdir())
    assert seen == [(3, total), (total, total)]


WRONG = [
    ("a", b"ab\xff", r"a: byte 2: 0xff is not UTF-8 there \(invalid start byte\)"),
    ("a", b"ab\xc3", r"a: byte 2: 0xc3 is not UTF-8"),
    ("a.gz", gzip.compress(b"abc\x80"), r"a\.gz: byte 3: 0x80 is not UTF-8"),
    ("a.gz", b"plain", r"a\.gz: the compressed data is broken"),
    ("a.gz", gzip.compress(b"x" * 9999)[:-12], r"a\.gz: the compressed data is broken"),
    ("a.jsonl", b'{"text": "a"}\n\xff\n', r"a\.jsonl: byte 14: 0xff is not UTF-8"),
    ("a.jsonl", b'{"text": "a"}\n\n{', r"a\.jsonl: line 3: not JSON"),
    ("a.jsonl", b"[1]", r"a\.jsonl: line 1: not an object"),
    ("a.jsonl", b'{"txt": 1}', r"a\.jsonl: line 1: there is no field 'text'; field=NAME names another"),
    (
        "a.jsonl",
        b'{"messages": []}',
        r"a\.jsonl: line 1: there is no field 'text': this is a chat, which is read with chats=True",
    ),
    ("a.jsonl", b'{"text": "\\ud800"}', r"a\.jsonl: line 1: a lone surrogate, U\+D800, at character 0"),
]


@pytest.mark.parametrize(("name", "data", "message"), WRONG, ids=[message for *_, message in WRONG])
def test_wrong_files_are_named_with_the_place(name: str, data: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(CorpusError, match=message):
        read(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("a", b"ab\xffc", "ab\ufffdc"),
        ("a.jsonl", b'{"text": "x\\ud800"}', "x\ufffd"),
        ("a.jsonl", b'{"text": "x\xff"}', "x\ufffd"),
    ],
)
def test_bytes_that_are_not_utf8_can_be_replaced(name: str, data: bytes, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    assert read(tmp_path / name, CorpusOptions(errors="replace")) == [text]


def test_strings_with_lone_surrogates() -> None:
    with pytest.raises(CorpusError, match=r"text 1: a lone surrogate, U\+DC00"):
        list(read_training_texts(["a", "b\udc00"], STRICT))


@pytest.mark.parametrize("given", ["text", b"text", Path("x")])
def test_a_single_text_or_path_is_no_corpus(given: object) -> None:
    with pytest.raises(
        TypeError, match=r"the corpus must be a list, \['a text'\] or \[pathlib.Path\('folder'\)\]"
    ):
        train(given, vocab_size=300)  # type: ignore[arg-type]


def test_a_text_that_is_a_path_is_a_text_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "corpus.txt").write_text("low lower")
    path = str(tmp_path / "corpus.txt")
    with pytest.warns(
        GGUFWarning,
        match=r"learned from as it is, though there is a file or folder of that name; pathlib\.Path",
    ):
        assert list(read_training_texts([path], STRICT)) == [path]


@pytest.mark.parametrize("given", [3, b"bytes", io.StringIO("text")])
def test_other_things_are_no_texts(given: object) -> None:
    with pytest.raises(TypeError, match=r"not bytes|not int|open it in binary mode"):
        train([given], vocab_size=300)


# ---- where blocks end -----------------------------------------------------------------------------------


def test_blocks_end_where_words_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it is there, and the words are those of the whole text, however short the blocks."""
    text = (ROOT / "README.md").read_text(encoding="utf-8") + "日本語\n" * 50
    (tmp_path / "a").write_text(text, encoding="utf-8", newline="")
    whole = splitter(PRE_TOKENIZERS["gpt-2"]).words(text)
    for size in (1, 7, 100, 1000):
        monkeypatch.setattr(training_texts, "_BLOCK", size)
        blocks = read(tmp_path / "a")
        assert "".join(blocks) == text
        assert len(blocks) > 1
        assert [word for block in blocks for word in splitter(PRE_TOKENIZERS["gpt-2"]).words(block)] == whole


def test_a_text_without_a_place_to_cut_is_cut_between_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training_texts, "_BLOCK", 10)
    monkeypatch.setattr(training_texts, "_LONGEST", 32)
    (tmp_path / "a").write_text("é🙂" * 100, encoding="utf-8")
    blocks = read(tmp_path / "a")
    assert "".join(blocks) == "é🙂" * 100
    assert max(len(block.encode()) for block in blocks) <= 40


@pytest.mark.slow
@pytest.mark.parametrize("family", sorted({entry.family for entry in PRE_TOKENIZERS.values()} - ACROSS_LINES))
@given(before=texts, mark=st.sampled_from("a.)9-'"), letter=st.sampled_from("aZ"), after=texts)
@bounded(60)
def test_no_word_goes_across_the_end_of_a_block(
    before: str, mark: str, letter: str, after: str, family: str
) -> None:
    """Whatever stands around it: a mark or letter, a line break, a letter."""
    split = splitter(next(entry for entry in PRE_TOKENIZERS.values() if entry.family == family))
    first, second = f"{before}{mark}\n", letter + after
    assert re.search(r"[!-~]\n\Z", first)
    assert split.words(first) + split.words(second) == split.words(first + second)
