"""vocab.txt, a line for each word piece."""

from __future__ import annotations

import json

import pytest
from synthetic import make_vocabulary

from ggufbpe.convert.exporters.vocab_txt import to_vocab_txt
from ggufbpe.convert.portable_patterns import NotExpressibleError
from ggufbpe.models.vocabulary import CONTROL, LSTRIP, UNKNOWN, Vocabulary


def vocabulary(*more: str) -> Vocabulary:
    """A WordPiece vocabulary."""
    return make_vocabulary(
        ["[UNK]", "[MASK]", "▁play", "ing", *more],
        attributes={"[UNK]": UNKNOWN, "[MASK]": CONTROL | LSTRIP},
        model="bert",
        special_ids={"unk": 0, "mask": 1},
        lowercase=False,
        strip_accents=True,
    )


def test_files() -> None:
    export = to_vocab_txt(vocabulary(), "{{ template }}")
    assert export.files["vocab.txt"] == b"[UNK]\n[MASK]\nplay\n##ing\n"
    config = json.loads(export.files["tokenizer_config.json"])
    assert (config["tokenizer_class"], config["do_lower_case"], config["strip_accents"]) == (
        "BertTokenizer",
        False,
        True,
    )
    assert config["chat_template"] == "{{ template }}"
    assert config["added_tokens_decoder"]["1"] == {
        "content": "[MASK]",
        "lstrip": True,
        "normalized": False,
        "rstrip": False,
        "single_word": False,
        "special": True,
    }
    names = {limit.name for limit in export.limits}
    assert {"normalization", "white_space_beyond_ascii"} <= names


@pytest.mark.parametrize("token", ["▁a\nb", "▁ ", "▁a\r"])
def test_what_no_line_can_hold(token: str) -> None:
    with pytest.raises(NotExpressibleError, match="is not a line of text"):
        to_vocab_txt(vocabulary(token))
