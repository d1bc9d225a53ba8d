"""The patterns for the package `regex`: a third opinion on the words, beside the reference and the compiled engine.

The ids of the same texts are held to llama.cpp's own in test_recorded.py. What `regex` runs is llama.cpp's text, and
none of the code that the engines are made with.
"""

from __future__ import annotations

import json
import sys
from functools import cache

import pytest
import regex
import unicodedata2
from record_fixtures import as_bytes, read_recorded
from synthetic import ONE_OF_EACH_FAMILY, tokenizer_as

from ggufbpe._util.extras import NotInstalledError
from ggufbpe._util.unicode_classes import class_of
from ggufbpe.cli import main
from ggufbpe.models.pretokenizers.regex_patterns import patterns
from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS
from ggufbpe.models.pretokenizers.splitter import splitter

# Characters of the recorded texts that came after Unicode 15.1, for which `regex` has a class of its own.
NEWER = {
    "\u1acf": "a combining mark",
    "\u20c1": "a currency symbol",
    "\u31e4": "a stroke of CJK",
    "\U0002b73f": "CJK Extension C",
    "\U000323b0": "CJK Extension J",
}


@cache
def recorded_texts() -> list[str]:
    """All texts of fixtures/recorded; what is not UTF-8 is U+FFFD, as every engine splits it."""
    texts = [text for name in ("byte_level", "raw_utf8", "unsplit") for text in read_recorded(name)["texts"]]
    return list(dict.fromkeys(as_bytes(text).decode("utf-8", "replace") for text in texts))


@pytest.mark.slow
@pytest.mark.parametrize("name", ONE_OF_EACH_FAMILY)
def test_words_of_regex_are_those_of_both_engines(name: str) -> None:
    """On all recorded texts, but for the characters that are named above, each of which is taken out of them."""
    found = patterns(name)
    reference, tok = splitter(PRE_TOKENIZERS[name]).words, tokenizer_as(name)
    without = str.maketrans(dict.fromkeys(NEWER, "") if found.other_characters else {})
    for text in recorded_texts():
        text = text.translate(without)
        assert found.words(text) == reference(text)
        if not tok.vocabulary.pre_tokenizer.escape_whitespaces:  # the engine escapes before it splits
            assert found.words(text) == tok.pre_tokenize(text)


def test_only_characters_that_are_named_are_left_out() -> None:
    characters = {ord(char) for text in recorded_texts() for char in text}
    other = {point for name in ONE_OF_EACH_FAMILY for point in patterns(name).other_characters}
    assert {chr(point) for point in characters & other} <= set(NEWER)


@pytest.mark.parametrize("name", ["llama-bpe", "deepseek-v3", "default", "qwen35", "bloom"])
def test_other_characters_came_after_unicode_15_1(name: str) -> None:
    other = patterns(name).other_characters
    assert {unicodedata2.category(chr(point)) for point in other} <= {"Cn"}
    assert (name == "bloom") is (not other)  # whose patterns ask for no class but white space


def test_other_characters_are_split_otherwise_and_all_others_alike() -> None:
    """With a word that asks for the class of every character."""
    found = patterns("llama-bpe")
    other, words = set(found.other_characters), splitter(PRE_TOKENIZERS["llama-bpe"]).words
    for point in {*range(0, 0x110000, 89), *sorted(other)[::97]} - set(range(0xD800, 0xE000)):
        text = f"a{chr(point)}{chr(point)}1b"
        assert (found.words(text) == words(text)) is (point not in other), hex(point)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("gpt-4o", "JavaScript écoleÉté", ["Java", "Script", " écoleÉté"]),  # letters beyond ASCII have no case
        ("llama-bpe", "'ſa", ["'ſa"]),
        ("superbpe", "1234567 ١٢٣٤", ["1", "234", "567", " ", "١٢٣٤"]),  # \\d is ASCII
        ("deepseek-coder", " \u2003 \u3000", [" \u2003 \u3000"]),  # white space is in no range
        ("afmoe", "ab1234567c", ["ab", "1", "234", "567", "c"]),
        ("deepseek-llm", "a \t ", ["a", " \t "]),
        ("exaone-moe", "का की, no", ["का की", ",", " no"]),
        ("jais-2", " " * 700 + "a", [" " * 512, " " * 128, " " * 32, " " * 16, " " * 8, " " * 2, " ", " a"]),
        ("kimi-k2", "中文abc", ["中文", "abc"]),
        ("gemma4", "a\n\nb", ["a", "\n\n", "b"]),
        ("llama-bpe", "", []),
    ],
)  # fmt: skip
def test_words(name: str, text: str, words: list[str]) -> None:
    assert patterns(name).words(text) == words == splitter(PRE_TOKENIZERS[name]).words(text)


def test_patterns_are_compiled_and_one_after_the_other() -> None:
    found = patterns("deepseek-v3")
    assert len(found) == 3
    assert all(isinstance(pattern, regex.Pattern) for pattern in found)
    assert found[0].findall("1234") == ["123", "4"]
    assert class_of(ord("1")) == "N"


def test_unknown_name() -> None:
    with pytest.raises(ValueError, match=r"llama\.cpp knows no pre-tokenizer 'llama-4'"):
        patterns("llama-4")
    with pytest.raises(TypeError, match=r"^name must be a str, not NoneType$"):
        patterns(None)  # type: ignore[arg-type]


# ---- the command ----------------------------------------------------------------------------------------


def test_command_prints_patterns_that_can_be_run(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["list-pre", "--regex", "deepseek-v3", "bloom"]) == 0
    output = capfd.readouterr()
    lines = output.out.splitlines()
    assert lines == [pattern.pattern for name in ("deepseek-v3", "bloom") for pattern in patterns(name)]
    assert regex.compile(lines[0], regex.V1).findall("1234") == ["123", "4"]
    [told] = output.err.splitlines()
    first = patterns("deepseek-v3").other_characters[0]
    assert told.startswith(f"deepseek-v3: the package regex puts U+{first:04X},")


def test_command_prints_json(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["list-pre", "--regex", "--json", "gemma4"]) == 0
    assert json.loads(capfd.readouterr().out) == [
        {"name": "gemma4", "regex": [r"[^\n]+|[\n]+"], "other_characters": []}
    ]


def test_command_wants_a_name(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["list-pre", "--regex"]) == 2
    assert "--regex needs the NAMEs of pre-tokenizers" in capfd.readouterr().err


def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "regex", None)
    assert main(["list-pre", "--regex", "bloom"]) == 2
    assert capfd.readouterr().err == (
        "ggufbpe: error: running the patterns takes the package regex: pip install 'ggufbpe[regex]'\n"
    )
    with pytest.raises(NotInstalledError):
        patterns("bloom")
