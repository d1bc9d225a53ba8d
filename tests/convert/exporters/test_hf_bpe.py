"""Byte pair encoding in a tokenizer.json: the parts for small vocabularies."""

from __future__ import annotations

from typing import Any

import pytest
from synthetic import byte_tokens, make_vocabulary

from ggufbpe.convert.exporters.boundary_markers import AT_BORDERS
from ggufbpe.convert.exporters.hf_bpe import byte_pair_parts
from ggufbpe.convert.portable_patterns import NotExpressibleError
from ggufbpe.models.vocabulary import Vocabulary

TOKENS = [*byte_tokens(), "ab", "Ġa"]


def byte_level(pre: str, **changes: Any) -> Vocabulary:
    """A vocabulary of bytes and two merges under a pre-tokenizer."""
    return make_vocabulary(TOKENS, merges=["a b", "Ġ a", "a missing"], pre=pre, **changes)


def test_model_and_merges() -> None:
    parts = byte_pair_parts(byte_level("llama-bpe"), False)
    model = {name: parts.model[name] for name in ("type", "merges", "ignore_merges", "byte_fallback")}
    assert model == {
        "type": "BPE",
        "merges": [("a", "b"), ("Ġ", "a")],
        "ignore_merges": True,
        "byte_fallback": False,
    }
    assert parts.model["vocab"]["ab"] == 256
    assert parts.decoder == {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": False,
        "use_regex": False,
    }
    assert "merges_without_tokens" in {limit.name for limit in parts.limits}


def kinds(part: dict[str, Any] | None) -> list[str]:
    """The types of the steps of a part."""
    if part is None:
        return []
    steps = part.get("pretokenizers", part.get("normalizers", [part]))
    return [step["type"] for step in steps]


WAYS = {  # a pre-tokenizer, whether code points are listed: the steps of the normalizer and of the pre-tokenizer
    ("gpt-2", False): ([], ["ByteLevel"]),
    ("llama-bpe", False): ([], ["Split", "ByteLevel"]),
    ("llama-bpe", True): ([], ["Split", "ByteLevel"]),
}


@pytest.mark.parametrize("way", WAYS)
def test_original_patterns(way: tuple[str, bool]) -> None:
    pre, code_points = way
    parts = byte_pair_parts(byte_level(pre), code_points)
    assert (kinds(parts.normalizer), kinds(parts.pre_tokenizer)) == WAYS[way]


def test_patterns_that_the_library_lacks() -> None:
    bordered = byte_pair_parts(byte_level("falcon"), False)
    assert AT_BORDERS in (bordered.pre_tokenizer or {})["pretokenizers"]
    assert "border_character" in {limit.name for limit in bordered.limits}
    listed = byte_pair_parts(byte_level("falcon"), True)
    assert set(kinds(listed.pre_tokenizer)) == {"Split", "ByteLevel"}
    assert kinds(listed.normalizer) == []
    assert "not_read_by_tokenizers_1" in {limit.name for limit in listed.limits}


def test_tokens_that_are_characters() -> None:
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    vocabulary = make_vocabulary([*bytes_, "a", "▁", "\n", "\n\n"], pre="gemma4", model="gemma4")
    parts = byte_pair_parts(vocabulary, False)
    assert parts.model["byte_fallback"] is True
    decoder = parts.decoder or {}
    assert [step["type"] for step in decoder["decoders"]] == ["Replace", "ByteFallback", "Fuse"]
    [limit] = [limit for limit in parts.limits if limit.name == "runs_of_line_breaks"]
    assert (limit.number, limit.what.rpartition(" ")[2]) == (1, "2")  # of two line breaks


def test_a_space_before_words_needs_a_normalizer() -> None:
    vocabulary = make_vocabulary(["a"], pre="gemma4", flags={"prepend_space": True})
    with pytest.raises(NotExpressibleError, match="puts a space in front of words"):
        byte_pair_parts(vocabulary, True)


def test_tokens_of_one_character_that_no_merge_makes() -> None:
    parts = byte_pair_parts(make_vocabulary([*TOKENS, "Ã©"], pre="llama-bpe"), False)
    [limit] = [limit for limit in parts.limits if limit.name == "tokens_of_one_character"]
    assert limit.number == 1
    assert "'é'" in limit.what
