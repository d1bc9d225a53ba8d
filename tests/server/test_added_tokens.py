"""Whether endpoints add BOS and EOS unless the request says, held to the table of docs/server.md.

The model is one that adds a BOS: with GPT-2 nothing would differ.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from conftest import RAW_UTF8, ROOT

from ggufbpe import Tokenizer
from ggufbpe.server.endpoints import ENDPOINTS
from ggufbpe.server.served_models import Models
from ggufbpe.server.streamed_answers import answer_json

pytestmark = pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")
TOK = Tokenizer.from_gguf(RAW_UTF8)
TABLE = (ROOT / "docs" / "server.md").read_text("utf-8").partition("| endpoint | field | default |\n")[2]
ROWS = [
    [cell.strip() for cell in row.split("|")[1:-1]] for row in TABLE.partition("\n\n")[0].splitlines()[1:]
]
TEXT, CHAT = "one two", {"messages": [{"role": "user", "content": "one"}]}
WITH_BOS = TOK.encode(TEXT)
BODIES: dict[str, dict[str, Any]] = {
    "/tokenize": {"content": TEXT},
    "/tokenize prompt": {"prompt": TEXT},
    "/v1/fits": {"text": TEXT, "limit": 99},
    "/v1/truncate": {"text": TEXT, "limit": 99},
    "/v1/split": {"text": TEXT, "size": 2, "boundaries": "token"},
    "/v1/count": {"texts": TEXT},
    "/v1/common_prefix": {"content": TEXT, "tokens": WITH_BOS},
    "/v1/explain": {"text": TEXT},
    "/v1/diagnose": {"text": TEXT, "ids": WITH_BOS},
    "/v1/tokens": {"text": TEXT},
    "/v1/word": {"text": TEXT, "token": 0},
    "/v1/why": {"text": TEXT, "piece": TOK.bos_token},
    "/v1/parting": {"text": TEXT, "ids": WITH_BOS},
}


def answer(key: str, more: dict[str, Any]) -> dict[str, Any]:
    """The answer without the times that a comparison has."""
    answer = ENDPOINTS["POST", key.split()[0]].answer
    found = json.loads(answer_json(answer(Models({"raw": str(RAW_UTF8)}), {**BODIES.get(key, {}), **more})))
    return {name: value for name, value in found.items() if name not in ("seconds", "mb_per_second")}


def paths(cell: str) -> list[str]:
    return re.findall(r"`(/[\w/-]+)`", cell)


def test_the_table_names_each_endpoint_that_takes_the_field() -> None:
    named = [path for cell, field, _ in ROWS if field == "`add_special`" for path in paths(cell)]
    taking = [
        each.path for each in ENDPOINTS.values() if any("add_special" in body for body in each.examples)
    ]
    assert sorted(named) == sorted(taking)
    assert sorted(BODIES) == sorted([*named, "/tokenize prompt"])


DEFAULTS = [
    (f"{path}{' prompt' * ('`prompt`' in cell)}", field.strip("`"), default == "yes")
    for cell, field, default in ROWS
    if field
    for path in paths(cell)
]


@pytest.mark.parametrize(("key", "field", "default"), DEFAULTS)
def test_bos_is_added_by_default_where_the_table_says_so(key: str, field: str, default: bool) -> None:
    answers = {adds: answer(key, {field: adds}) for adds in (True, False)}
    assert answers[True] != answers[False]
    assert answer(key, {}) == answers[default]


def test_ollamas_endpoint_never_adds_a_bos() -> None:
    assert ["`/api/tokenize`", "", "never"] in ROWS
    found = answer("/api/tokenize", {"model": "raw", "content": TEXT, "add_special": True})
    assert found["tokens"] == WITH_BOS[1:]
