"""Single steps of a tokenizer.json."""

from __future__ import annotations

from ggufbpe.convert.exporters.hf_parts import byte_pair_model, replace, sequence


def test_sequence() -> None:
    a, b = {"type": "A"}, {"type": "B"}
    assert sequence("decoders", []) is None
    assert sequence("decoders", [a]) == a
    assert sequence("decoders", [a, b]) == {"type": "Sequence", "decoders": [a, b]}


def test_replace() -> None:
    assert replace(" ", "▁") == {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    assert replace(" +", "", "Regex") == {"type": "Replace", "pattern": {"Regex": " +"}, "content": ""}


def test_byte_pair_model() -> None:
    assert byte_pair_model({"a": 0, "b": 1, "ab": 2}, [("a", "b")], byte_fallback=True, unknown="a") == {
        "type": "BPE",
        "dropout": None,
        "unk_token": "a",
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": True,
        "ignore_merges": False,
        "vocab": {"a": 0, "b": 1, "ab": 2},
        "merges": [("a", "b")],
    }
