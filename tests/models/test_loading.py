"""Each loading rule of llama.cpp, on a vocabulary made for it (tests/makers/loading_rules.py).

The answers are in fixtures/recorded/loading_rules.json.gz, made by tests/makers/record_fixtures.py.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest
from conftest import ROOT
from loading_rules import RULES
from record_fixtures import FLAGS, as_bytes, column, read_older, read_recorded
from reference import SPECIAL_IDS

from ggufbpe import GGUFError, GGUFWarning, Tokenizer

pytestmark = pytest.mark.both_engines

NOT_RECORDED = (
    "no answers of an older build: python tests/makers/record_fixtures.py --only older records them"
)
RECORDED: dict[str, dict[str, Any]] = read_recorded("loading_rules")["rules"]
REFUSED = [name for name, record in RECORDED.items() if "refused" in record]
LOADED = [name for name in RECORDED if name not in REFUSED]
WARNED = {  # where llama.cpp warns on load, and what our warning must say
    "pre-missing": "tokenizer.ggml.pre",
    "pre-empty": "tokenizer.ggml.pre",
    "empty-tokens": "empty",
    "ids-out-of-range": "99999",
    "eot-by-text": "<\\|im_end\\|>",
    "gpt-oss": "<\\|end\\|>",
    "normal-s-beside-tool-response": "</s>",
    "normal-s-beside-rfl-parameter": "</s>",
    "gemma4-bos-switched-off": "BOS|bos",
    "jina-v2-without-mask": "<mask>",
    "spm-without-newline": "newline",
}

END_OF_TURN = [
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<EOT>",
]
END_OF_TURN += ["_<EOT>", "[EOT]", "<｜end▁of▁sentence｜>", "<end_of_utterance>"]


def opened(name: str) -> Tokenizer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GGUFWarning)
        return Tokenizer.from_gguf(ROOT / "fixtures" / "vocabs" / f"{name}.gguf")


def several_may_end_the_turn(tok: Tokenizer) -> bool:
    return sum(tok.token_to_id(text) is not None for text in END_OF_TURN) > 1


def test_every_rule_is_recorded() -> None:
    assert list(RECORDED) == list(RULES)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_as_by_llama_cpp(name: str) -> None:
    with pytest.raises(GGUFError):
        opened(name)


@pytest.mark.parametrize("name", LOADED)
def test_ids(name: str) -> None:
    tok, record = opened(name), RECORDED[name]
    for number, (add_special, parse_special) in enumerate(FLAGS):
        expected = column(record["ids"], "", number)
        for text, ids in zip(record["texts"], expected, strict=True):
            data = as_bytes(text)
            if ids is None and tok.model == "llama":  # which ends there with an exception
                with pytest.raises(ValueError, match="the text needs the byte 0x"):
                    tok.encode(data, add_special=add_special, parse_special=parse_special)
                continue
            ours = tok.encode(data, add_special=add_special, parse_special=parse_special)
            if ids is not None:
                assert ours == ids, (data, FLAGS[number])


@pytest.mark.slow
@pytest.mark.parametrize("name", LOADED)
def test_decoded(name: str) -> None:
    tok, record = opened(name), RECORDED[name]
    for number, (remove_special, unparse_special) in enumerate(FLAGS):
        expected = column(record["decoded"], "", number)
        for ids, text in zip(record["sequences"], expected, strict=True):
            ours = tok.decode_bytes(ids, remove_special=remove_special, unparse_special=unparse_special)
            assert ours == as_bytes(text), (ids, FLAGS[number])


@pytest.mark.parametrize("name", LOADED)
def test_pieces_of_all_tokens(name: str) -> None:
    tok = opened(name)
    for special, expected in zip((True, False), RECORDED[name]["pieces"], strict=True):
        ours = [tok.token_to_piece(token, special=special) for token in range(tok.vocab_size)]
        assert ours == list(map(as_bytes, expected))


@pytest.mark.parametrize("name", LOADED)
def test_special_ids_flags_and_attributes(name: str) -> None:
    tok, expected = opened(name), RECORDED[name]["described"]
    ours = {key: getattr(tok, f"{key}_id") for key in SPECIAL_IDS}
    assert ours | {"eot": None} == expected["special_ids"] | {"eot": None}
    if several_may_end_the_turn(tok):  # which of them llama.cpp takes is up to a C++ hash map
        assert tok.id_to_token(tok.eot_id) in END_OF_TURN
    else:
        assert ours["eot"] == expected["special_ids"]["eot"]
    assert (tok.add_bos, tok.add_eos) == (expected["add_bos"], expected["add_eos"])
    assert sorted(tok.eog_ids) == expected["eog_ids"]
    assert [int(tok.token_attributes(token)) for token in range(tok.vocab_size)] == expected["attributes"]
    assert [tok.id_to_token(token).encode() for token in range(tok.vocab_size)] == list(
        map(as_bytes, expected["texts"])
    )


def test_rules_that_an_older_build_does_not_have() -> None:
    recorded = read_older()
    if recorded is None:
        pytest.skip(NOT_RECORDED)
    assert set(recorded["rules"]) == {
        "eot-beside-eot-id",
        "eot-that-is-plain",
        "normal-s-beside-rfl-parameter",
        "eos-that-is-s-beside-rfl-parameter",
        "nfc-that-is-no-flag",
    }
    for name, rule in recorded["rules"].items():
        path, expected = ROOT / "fixtures" / "vocabs" / f"{name}.gguf", rule["described"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GGUFWarning)
            tok = Tokenizer.from_gguf(path, llama_cpp=recorded["llama.cpp"])
        assert sorted(tok.eog_ids) == expected["eog_ids"], name
        assert [int(tok.token_attributes(token)) for token in range(tok.vocab_size)] == expected["attributes"]


@pytest.mark.slow
@pytest.mark.parametrize("name", LOADED)
def test_all_other_rules_are_those_of_an_older_build_too(name: str) -> None:
    recorded = read_older()
    if recorded is None or name in recorded["rules"]:
        pytest.skip(NOT_RECORDED if recorded is None else "see above")
    old = opened(name).vocabulary_in(recorded["llama.cpp"])
    new = opened(name).vocabulary
    assert (list(old.attributes), old.eog_ids) == (list(new.attributes), new.eog_ids)
    assert old.special_ids == new.special_ids


@pytest.mark.parametrize(("name", "what"), WARNED.items())
def test_tells_what_llama_cpp_warns_of(name: str, what: str) -> None:
    """As a warning, or as a correction where llama.cpp mends it by itself."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tok = Tokenizer.from_gguf(ROOT / "fixtures" / "vocabs" / f"{name}.gguf")
    told = [
        *(str(warning.message) for warning in caught),
        *(each.what for each in tok.vocabulary.corrections),
    ]
    assert any(re.search(what, each) for each in told), told
