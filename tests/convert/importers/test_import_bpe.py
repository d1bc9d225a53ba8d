"""Byte pair encoding from a tokenizer.json: merges, types, the pre-tokenizer, and what is lost."""

from __future__ import annotations

import json
from typing import Any

import pytest
import tokenizers

from ggufbpe import Tokenizer
from ggufbpe.convert.exporters.hf_config import HFConfig
from ggufbpe.convert.imported import NotImportableError, pack
from ggufbpe.convert.importers import import_bpe
from ggufbpe.convert.importers.hf_document import HFDocument
from ggufbpe.convert.importers.import_bpe import BytePairImport
from ggufbpe.convert.importers.import_hf import import_tokenizer
from ggufbpe.convert.importers.recognize import Recognized
from ggufbpe.gguf.constants import TokenType
from ggufbpe.gguf.source import Source
from ggufbpe.models.bpe.merge import BYTE_CHARS
from ggufbpe.models.loading import load
from ggufbpe.models.special_ids import STRIPS_MASK

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
VOCAB = {text: index for index, text in enumerate([*BYTE_CHARS, "ab", "Ġa"])}
ESCAPE = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
RAW = {text: index for index, text in enumerate([*BYTES, "a", "▁"])}


@pytest.fixture(autouse=True)
def recognized(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every splitting is taken for GPT-2's: to recognize one is the work of another module, and takes seconds."""
    answer = Recognized("gpt-2", "patterns", "as expected", exact=True)
    monkeypatch.setattr(import_bpe, "recognize", lambda *_: answer)


def imported(
    pre: str | None = None, *, config: dict[str, Any] | None = None, model: Any = None, **parts: Any
) -> BytePairImport:
    """An import of bytes with two merges, split as by GPT-2."""
    own = {"type": "BPE", "vocab": VOCAB, "merges": [["a", "b"], ["Ġ", "a"]], **(model or {})}
    document = {"pre_tokenizer": BYTE_LEVEL, **parts, "model": own}
    return BytePairImport(HFDocument(document, HFConfig(config or {})), pre)


FULL = {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.bos_token_id": 0, "tokenizer.ggml.eos_token_id": 0}


def limits(read: BytePairImport) -> list[str]:
    """The names of what cannot be carried."""
    return [limit.name for limit in read.limits("gpt2", "", FULL)]


def test_merges_and_pre_tokenizer() -> None:
    read = imported()
    assert read.merges == ["a b", "Ġ a"]
    assert (read.entry.name, read.model_name()) == ("gpt-2", "gpt2")
    assert "merges_with_spaces" not in limits(read)


def test_merges_that_a_gguf_cannot_hold() -> None:
    read = imported(model={"merges": [["a b", "c"], ["a", "b"], ["Ġ", "a"], ["a", "b"]]})
    assert read.merges == ["Ġ a", "a b"]  # of equal merges the last counts, as in the library
    assert "merges_with_spaces" in limits(read)


NAMES: list[tuple[str | None, dict[str, Any], str]] = [
    ("llama-bpe", {}, "llama-bpe"),
    (None, {"config": {"gguf": {"tokenizer.ggml.pre": "phi-2"}}}, "phi-2"),  # of the family of the patterns
    (None, {"config": {"gguf": {"tokenizer.ggml.pre": "qwen2"}}}, "gpt-2"),  # of another family
]


@pytest.mark.parametrize(("pre", "parts", "name"), NAMES)
def test_names_of_pre_tokenizers(pre: str | None, parts: dict[str, Any], name: str) -> None:
    assert imported(pre, **parts).entry.name == name


SPACED = {"type": "WhitespaceSplit"}
DOTTED_I = {"type": "Replace", "pattern": {"String": "İ"}, "content": "i"}
WORDS: dict[str, tuple[list[Any], list[Any], tuple[str, str, bool | None]]] = {
    # the pre-tokenizer, the normalizer: the model, the name of the pre-tokenizer, lower case
    "words between white space": ([SPACED], [], ("whitespace", "whitespace", False)),
    "in lower case": ([SPACED], [DOTTED_I, {"type": "Lowercase"}], ("whitespace", "whitespace", True)),
    "escaped spaces": ([], [ESCAPE], ("gpt2", "sarvam-moe", None)),
    "white space dropped, spaces escaped": ([SPACED], [ESCAPE], ("whitespace", "sarvam-moe", False)),
    "in bytes": ([SPACED, BYTE_LEVEL], [{"type": "Lowercase"}], ("whitespace", "gpt-2", True)),
}


@pytest.mark.parametrize("name", WORDS)
def test_white_space_that_is_dropped_names_the_model(name: str) -> None:
    steps, normalizers, expected = WORDS[name]
    read = imported(
        model={} if BYTE_LEVEL in steps else {"vocab": RAW, "merges": [], "byte_fallback": True},
        pre_tokenizer={"type": "Sequence", "pretokenizers": steps},
        normalizer={"type": "Sequence", "normalizers": normalizers},
    )
    assert (read.model_name(), read.entry.name, read.lowercase) == expected
    assert "normalizer" not in limits(read)
    dotted = [limit.what for limit in read.limits("llama", "", {"tokenizer.ggml.model": "whitespace"})]
    assert any("U+0130" in what for what in dotted) == (expected[2] is True and DOTTED_I not in normalizers)


PATTERN = {
    "type": "Split",
    "pattern": {"Regex": r".?\p{L}+| ?[^\s\p{L}]+"},
    "behavior": "Isolated",
    "invert": False,
}
PUTS_SPACES = {**BYTE_LEVEL, "add_prefix_space": True}
ORDERS: dict[
    str, tuple[list[Any], str | None]
] = {  # the steps, and the model of the same ids; None if refused
    "white space first": ([SPACED, BYTE_LEVEL], "whitespace"),
    "a space before each word": ([SPACED, PUTS_SPACES], None),
    "bytes first": ([BYTE_LEVEL, SPACED], "gpt2"),
    "bytes behind, too": ([SPACED, BYTE_LEVEL, PUTS_SPACES], None),
}


@pytest.mark.parametrize("name", ORDERS)
def test_white_space_is_dropped_only_before_bytes(name: str) -> None:
    steps, model = ORDERS[name]
    document = {
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps},
        "model": {"type": "BPE", "vocab": VOCAB, "merges": [["a", "b"], ["Ġ", "a"]]},
    }
    if model is None:
        with pytest.raises(NotImportableError, match=r"a space before each word"):
            import_tokenizer(document)
        return
    imported = import_tokenizer(document)
    assert imported.metadata["tokenizer.ggml.model"] == model
    library = tokenizers.Tokenizer.from_str(json.dumps(document))
    ours = Tokenizer(load(Source("imported", pack(imported.metadata)))[0])
    for text in ("ab ab", "a  ab\n", " ab\u3000a"):
        assert ours.encode(text) == library.encode(text).ids


@pytest.mark.parametrize(
    ("steps", "is_told"),
    [
        ([SPACED, PATTERN, BYTE_LEVEL], False),
        ([PATTERN, SPACED, BYTE_LEVEL], True),  # there " !a" is " !" and "a", and without the space a word
        ([{"type": "Digits", "individual_digits": True}, SPACED, BYTE_LEVEL], False),
    ],
)
def test_patterns_that_see_white_space_before_it_is_dropped_are_told(steps: list[Any], is_told: bool) -> None:
    read = imported("llama-bpe", pre_tokenizer={"type": "Sequence", "pretokenizers": steps})
    assert ("splitting" in limits(read)) is is_told


def test_a_space_is_put_before_each_word_that_steps_before_bytes_make() -> None:
    digits = {"type": "Digits", "individual_digits": True}
    for steps, where in (([PUTS_SPACES], "before a text "), ([digits, PUTS_SPACES], "before each word ")):
        read = imported("gpt-2", pre_tokenizer={"type": "Sequence", "pretokenizers": steps})
        [told] = [each.what for each in read.limits("gpt2", "", FULL) if each.name == "add_prefix_space"]
        assert where in told


@pytest.mark.parametrize(("model", "is_told"), [("gpt2", True), ("whitespace", True), ("gemma4", False)])
def test_models_with_default_ids_take_a_token_for_an_end_that_nothing_names(
    model: str, is_told: bool
) -> None:
    told = [limit.name for limit in imported().limits("llama", "", {"tokenizer.ggml.model": model})]
    assert ("default_ids" in told) is is_told


def test_another_model_lower_cases_nothing() -> None:
    assert "normalizer" in limits(imported(normalizer={"type": "Lowercase"}))


def test_a_mask_that_strips_white_space_tells_the_name() -> None:
    mask = {"id": 258, "content": "<mask>", "lstrip": True}
    assert imported(added_tokens=[mask]).entry.name in STRIPS_MASK
    assert imported(added_tokens=[{**mask, "lstrip": False}]).entry.name not in STRIPS_MASK


def test_tokens_that_are_characters() -> None:
    read = imported(
        model={"vocab": RAW, "merges": [], "byte_fallback": True}, normalizer=ESCAPE, pre_tokenizer=None
    )
    assert read.types[:256] == [int(TokenType.BYTE)] * 256
    assert read.entry.name == "sarvam-moe"  # no BOS is added
    assert "normalizer" not in limits(read)


def test_a_splitting_that_no_pre_tokenizer_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_bpe, "recognize", lambda *_: None)
    with pytest.raises(
        NotImportableError, match=r"no pre-tokenizer of llama\.cpp splits like the one in the file"
    ):
        imported()
    assert imported("qwen2").entry.name == "qwen2"  # a given name counts regardless


def test_a_splitting_that_is_only_nearly_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_bpe, "recognize", lambda *_: Recognized("gpt-2", "texts", "nearly"))
    assert "newer_unicode" in limits(imported())
    assert "newer_unicode" not in limits(imported("gpt-2"))


LIMITS: dict[str, dict[str, Any]] = {
    "normalizer": {"normalizer": {"type": "NFC"}},
    "dropout": {"model": {"dropout": 0.1}},
    "add_prefix_space": {"pre_tokenizer": {**BYTE_LEVEL, "add_prefix_space": True}},
    "bytes_without_tokens": {
        "model": {"vocab": {text: n for text, n in VOCAB.items() if text != "b"}, "merges": []}
    },
    "ignore_merges": {"model": {"ignore_merges": True, "merges": []}},
}


@pytest.mark.parametrize("name", LIMITS)
def test_limits(name: str) -> None:
    usual = limits(imported("gpt-2"))
    assert set(limits(imported("gpt-2", **LIMITS[name]))) - set(usual) == {name}


SPACES = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}
LINES = {"type": "Split", "pattern": {"String": "\n"}, "behavior": "Contiguous", "invert": False}
DIGITS = {"type": "Digits", "individual_digits": True}
ACROSS = {**RAW, "\n": len(RAW), "\na": len(RAW) + 1}
OF_CHARACTERS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "no splitting": ({}, []),
    "splitting at spaces, which are escaped before": ({"pre_tokenizer": SPACES}, []),
    "splitting at line breaks": (
        {"pre_tokenizer": LINES, "model": {"vocab": ACROSS, "merges": [["\n", "a"]]}},
        [],
    ),
    "a merge across a line break": ({"model": {"vocab": ACROSS, "merges": [["\n", "a"]]}}, ["splitting"]),
    "other splitting": ({"pre_tokenizer": DIGITS}, ["splitting"]),
    "a byte without a token": ({"model": {"vocab": {"a": 0, "▁": 1}}}, ["bytes_without_tokens"]),
}


@pytest.mark.parametrize("case", OF_CHARACTERS)
def test_limits_of_characters(case: str) -> None:
    parts, names = OF_CHARACTERS[case]
    model = {"byte_fallback": True, "vocab": RAW, "merges": [], **parts.get("model", {})}
    read = imported(**{"pre_tokenizer": None, "normalizer": ESCAPE, **parts, "model": model})
    assert limits(read) == names


@pytest.mark.parametrize(
    ("config", "advice"),
    [({}, "; a tokenizer_config.json beside the file would name them"), ({"bos_token": None}, "")],
)
def test_default_ids(config: dict[str, Any], advice: str) -> None:
    told = list(imported("gpt-2", config=config).limits("gpt2", "", {"tokenizer.ggml.model": "gpt2"}))
    [limit] = [limit for limit in told if limit.name == "default_ids"]
    what, semicolon, told_how = limit.what.partition("; ")
    assert what.startswith("neither EOS nor BOS is named, so llama.cpp takes token 11, ")
    assert (limit.number, semicolon + told_how) == (2, advice)


REFUSED: dict[str, dict[str, Any]] = {
    "llama.cpp knows no pre-tokenizer 'x'": {"pre": "x"},
    "bytes are written as characters before the text is split": {
        "pre_tokenizer": None,
        "normalizer": {"type": "ByteLevel"},
    },
    "the tokens are neither bytes nor characters": {"pre_tokenizer": None},
    "ByteLevel then puts a space before each word": {
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [SPACED, {"type": "ByteLevel"}]}
    },
}


@pytest.mark.parametrize("message", REFUSED)
def test_refused(message: str) -> None:
    with pytest.raises(NotImportableError) as refusal:
        imported(**REFUSED[message])
    assert message in str(refusal.value)
