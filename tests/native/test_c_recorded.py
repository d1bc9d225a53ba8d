"""Through the C library, all recorded answers of llama.cpp: ids, texts of ids, and pieces."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from c_library import CANNOT_ENCODE, LIBRARY, CLibraryError, CTokenizer
from conftest import GPT2, PLAMO, RAW_UTF8, ROOT, UNIGRAM, UNSPLIT, missing
from record_fixtures import FLAGS, REAL, as_bytes, column, read_recorded, variant
from reference import NotPreparedError, vocabulary

from ggufbpe.models.vocabulary import NORMAL

pytestmark = pytest.mark.skipif(not LIBRARY, reason="GGUFBPE_C_LIBRARY names no library")

VOCABULARIES = {
    "byte_level": GPT2,
    "unsplit": UNSPLIT,
    "raw_utf8": RAW_UTF8,
    "unigram": UNIGRAM,
    "plamo": PLAMO,
}
RULES: dict[str, dict[str, Any]] = read_recorded("loading_rules")["rules"]
SOME = 17  # pieces hardly depend on the name, and one call for each of 50,000 tokens takes most of the time
REFUSED = [name for name, record in RULES.items() if "refused" in record]


def _names() -> Iterator[tuple[str, str]]:
    for recorded in VOCABULARIES:
        for name in read_recorded(recorded)["ids"]["index"]:
            yield recorded, name
    for name in REAL:
        yield "real", name
    for name in RULES:
        if name not in REFUSED:
            yield "rules", name


CASES = list(_names())


@cache
def _answers(recorded: str) -> dict[str, Any]:
    return read_recorded(recorded)


def _path(recorded: str, name: str, folder: Path) -> Path:
    if recorded == "rules":
        return ROOT / "fixtures" / "vocabs" / f"{name}.gguf"
    if recorded == "real":
        try:
            return vocabulary(name)
        except NotPreparedError as error:
            missing(str(error))
    return variant(VOCABULARIES[recorded], name, folder / "v.gguf")


def check(tok: CTokenizer, record: dict[str, Any], name: str, every: int = 1) -> None:
    """Compare with what is recorded for a name; the pieces of every so many tokens and of all that are not normal."""
    for number, (first, second) in enumerate(FLAGS):
        expected = column(record["ids"], name, number)
        for text, ids in zip(record["texts"], expected, strict=True):
            data = as_bytes(text)
            try:
                ours = tok.encode(data, first, second)
            except CLibraryError as error:  # llama.cpp crashed there, too
                if error.status != CANNOT_ENCODE or ids is not None:
                    raise
                continue
            if ids is not None:
                assert ours == ids, (data, FLAGS[number])
                assert tok.count(data, first, second) == len(ids)
        if "decoded" in record:
            for ids, text in zip(record["sequences"], column(record["decoded"], name, number), strict=True):
                assert tok.decode(ids, first, second) == as_bytes(text), (ids, FLAGS[number])
    pieces = record.get("pieces", ())
    if isinstance(pieces, dict):  # of several names
        pieces = [column(pieces, name, number)[0] for number in range(2)]
    attributes = column(record["described"], name, 0)[0]["attributes"] if every > 1 else ()
    for special, expected in zip((True, False), pieces):
        for token, piece in enumerate(expected):
            if token % every == 0 or attributes[token] != NORMAL:
                assert tok.token_to_piece(token, special) == as_bytes(piece), token


@pytest.mark.slow
@pytest.mark.parametrize(("recorded", "name"), CASES, ids=[f"{name}-{recorded}" for recorded, name in CASES])
def test_recorded_answers(recorded: str, name: str, tmp_path: Path) -> None:
    with CTokenizer.open_file(_path(recorded, name, tmp_path)) as tok:
        if recorded == "rules":
            check(tok, RULES[name], "")
        else:
            is_first = name == next(iter(_answers(recorded)["ids"]["index"]))
            check(tok, _answers(recorded), name, 1 if is_first or recorded == "real" else SOME)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_as_by_llama_cpp(name: str) -> None:
    with pytest.raises(CLibraryError):
        CTokenizer.open_file(ROOT / "fixtures" / "vocabs" / f"{name}.gguf")
