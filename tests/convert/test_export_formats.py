"""Exported vocabularies: the libraries themselves give our ids, or the export says where they cannot."""

from __future__ import annotations

import errno
import json
import os
import random
import sys
import warnings
from array import array
from base64 import b64decode
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import tiktoken
import tokenizers
import unicodedata2
from conftest import GPT2, ROOT, missing
from exporting import (
    FIXTURES,
    asked_of_version_1,
    differing,
    in_library,
    in_tiktoken,
    names,
    sample,
    tokenizer,
)
from hf_splitting import SURROUNDINGS, code_points
from make_tiny_model import make_tiny_model
from random_texts import RandomTexts
from real_vocabularies import cached
from reference import TOKENIZERS_1, NotPreparedError, Oracle
from synthetic import BYTE_LEVEL_FAMILIES, ONE_OF_EACH_FAMILY, gpt2_vocabulary, make_vocabulary, tokenizer_as

from ggufbpe import GGUFWarning, Tokenizer
from ggufbpe._util.files import write_files
from ggufbpe.analysis.conversion import parity
from ggufbpe.cli import main
from ggufbpe.convert.code_points import ALL, bracket, difference, emit, intersection, ranges
from ggufbpe.convert.export_formats import FORMATS, export_to
from ggufbpe.convert.exporters.boundary_markers import AT_BORDERS, BORDER, border_steps
from ggufbpe.convert.exporters.hf_parts import NOT_IN_1
from ggufbpe.convert.exporters.merges_txt import to_merges_txt
from ggufbpe.convert.exporters.tiktoken_files import to_tiktoken
from ggufbpe.convert.exporters.tokenizer_json import to_tokenizer_json
from ggufbpe.convert.exporters.vocab_gguf import to_vocab_gguf
from ggufbpe.convert.portable_patterns import NotExpressibleError, one_regex, oniguruma
from ggufbpe.convert.upstream_patterns import PORTABLE, split
from ggufbpe.gguf.reader import GGUFFile
from ggufbpe.models.bpe.merge import BYTE_CHARS
from ggufbpe.models.loading import load_vocabulary
from ggufbpe.models.pretokenizers.pattern import Chars, parse
from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS
from ggufbpe.models.pretokenizers.splitter import splitter
from ggufbpe.models.vocabulary import CONTROL, LSTRIP, NORMAL, USER_DEFINED, Vocabulary

REAL = ["aquila", "command-r", "deepseek-coder", "deepseek-llm", "falcon", "gemma-4", "gpt-2", "gpt-neox"]
REAL += ["llama-bpe", "mpt", "qwen2", "qwen35", "refact", "starcoder"]


# ---- sets and patterns ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("text", [r"\p{L}", r"\s", r"[^\s\p{L}\p{N}]", r"\d", r"[\u3000-\u3002]", "[^a-z]"])
def test_ranges_are_the_set(text: str) -> None:
    node = parse(text)
    assert isinstance(node, Chars)
    points = ranges(node.set)
    inside = {point for low, high in points for point in (low, high)}
    outside = {point for low, high in points for point in (low - 1, high + 1)} - inside
    for point in range(0, 0x110000, 53):
        assert any(low <= point <= high for low, high in points) is node.set.contains(point) or (
            0xD800 <= point < 0xE000
        )
    assert all(node.set.contains(point) for point in inside)
    assert not any(
        node.set.contains(point)
        for point in outside
        if 0 <= point < 0x110000 and not 0xD800 <= point < 0xE000
    )


def test_ranges_are_added_and_taken_away() -> None:
    letters, vowels = ((0x61, 0x7A),), ((0x61, 0x61), (0x65, 0x65))
    assert intersection(letters, vowels) == vowels
    assert difference(letters, vowels) == ((0x62, 0x64), (0x66, 0x7A))
    assert difference(ALL, ALL) == ()
    assert difference(ALL, ()) == ALL


def test_bracket_is_written_the_shorter_way() -> None:
    assert bracket(((0x30, 0x39),)) == "[0-9]"
    assert bracket(difference(ALL, ((0x30, 0x39),))) == "[^0-9]"
    assert bracket(((0xD000, 0xD7FF), (0xE000, 0xE001))) == r"[\x{d000}-\x{e001}]"


@pytest.mark.parametrize(
    ("pattern", "universe", "written"),
    [
        (r"a+b*c?", ALL, "a+b*c?"),
        (r"\d{1,3}", ALL, "[0-9]{1,3}"),
        (r"(?:ab)+|c", ALL, "(?:(?:ab)+|c)"),
        (r"a|b", ((0x61, 0x61),), "(?:a)"),
        (r"a*b", ((0x62, 0x62),), "b"),
        (r"ab", ((0x62, 0x62),), None),
        (r"b(?!a)", ((0x62, 0x62),), "b"),
        (r"b(?=a)", ((0x62, 0x62),), None),
    ],
)
def test_pattern_is_written_for_a_universe(pattern: str, universe: Any, written: str | None) -> None:
    assert emit(parse(pattern), universe) == written


# ---- words ----------------------------------------------------------------------------------------------


def words_to_try(name: str) -> Iterator[str]:
    """Random texts, by the patterns of the name and others, and characters of every kind in surroundings."""
    source = RandomTexts(f"words of {name}")
    by_pattern = parity.texts_for(
        Tokenizer(gpt2_vocabulary()._replace(pre_tokenizer=PRE_TOKENIZERS[name])), name
    )
    for _ in range(400):
        yield source.text().decode("utf-8", "replace")
        yield by_pattern.text().decode("utf-8", "replace")
    yield source.long_text().decode("utf-8", "replace")
    for point in code_points(211)[:: 1 if name == "gpt-2" else 5]:
        for surrounding in SURROUNDINGS:
            yield surrounding.format(chr(point), chr(point))
    yield from ("1" * count for count in range(1, 20))
    yield from (f"a{'1' * count}²b" for count in range(1, 9))
    yield from (
        " " * count + after for count in (1, 2, 3, 511, 513, 1100) for after in ("", "a", "\n", "\na")
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in ONE_OF_EACH_FAMILY if name != "whitespace"])
def test_words_of_the_library_are_ours(name: str) -> None:
    patterns = [tokenizers.Regex(text) for text in oniguruma(PRE_TOKENIZERS[name])]
    splits = tokenizers.pre_tokenizers.Sequence(
        [tokenizers.pre_tokenizers.Split(pattern, "isolated") for pattern in patterns]
    )
    words = splitter(PRE_TOKENIZERS[name]).words
    for text in words_to_try(name):
        assert [text[a:b] for _, (a, b) in splits.pre_tokenize_str(text)] == words(text)


@pytest.fixture(scope="module")
def bordered_words(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[str, Any, Any]]]:
    """By name: texts, with their words in 0.x and in 1.0, as ids of our words; None is a word that is not ours."""
    folder = tmp_path_factory.mktemp("borders")
    found, questions = {}, []
    for name in ONE_OF_EACH_FAMILY:
        texts = [text for text in islice(words_to_try(name), 0, None, 31) if BORDER not in text]
        words = dict.fromkeys(word for text in texts for word in splitter(PRE_TOKENIZERS[name]).words(text))
        model = {
            "type": "WordLevel",
            "unk_token": "",
            "vocab": {"": 0, **{w: i for i, w in enumerate(words, 1)}},
        }
        document = {"version": "1.0", "added_tokens": [], "pre_tokenizer": AT_BORDERS, "model": model}
        steps = border_steps(PRE_TOKENIZERS[name]._replace(prepend_space=False))
        document["normalizer"] = {"type": "Sequence", "normalizers": steps}
        path = folder / f"{name}.json"
        path.write_text(json.dumps(document))
        questions.append({"path": str(path), "texts": texts, "flags": [(False, False)]})
        library = parity.hugging_face(path.read_bytes())
        found[name] = texts, [library.encode(text, False, False) for text in texts], ["", *words]
    answers = asked_of_version_1(folder, questions)

    return {
        name: [
            (text, [words[index] for index in older], [words[index] for index in ids])
            for text, older, [ids] in zip(texts, in_0, answer["ids"], strict=True)
        ]
        for (name, (texts, in_0, words)), answer in zip(found.items(), answers, strict=True)
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", ONE_OF_EACH_FAMILY)
def test_borders_are_the_ends_of_words_in_both_versions(
    name: str, bordered_words: dict[str, list[tuple[str, Any, Any]]]
) -> None:
    words = splitter(PRE_TOKENIZERS[name]).words
    assert [(text, words(text), words(text)) for text, _, _ in bordered_words[name]] == bordered_words[name]


AFTER_15_1 = {point for point in range(0x110000) if unicodedata2.category(chr(point)) == "Cn"}


@pytest.mark.slow
@pytest.mark.parametrize("name", PORTABLE)
def test_words_of_patterns_that_version_1_reads_are_ours(name: str) -> None:
    """But for characters that came after Unicode 15.1, and U+017F after an apostrophe."""
    entry = PRE_TOKENIZERS[name]
    document = {"version": "1.0", "added_tokens": [], "model": {"type": "BPE", "vocab": {}, "merges": []}}
    document["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": list(PORTABLE[entry.family])}
    splits = tokenizers.Tokenizer.from_str(json.dumps(document)).pre_tokenizer
    words = splitter(entry).words
    for text in words_to_try(name):
        if "'\u017f" not in text and AFTER_15_1.isdisjoint(map(ord, text)):
            assert [text[a:b] for _, (a, b) in splits.pre_tokenize_str(text)] == words(text)


IN_ONE = {
    *(
        "bailingmoe",
        "bloom",
        "deepseek-v3",
        "exaone-moe",
        "gpt-2",
        "gpt-4o",
        "granite-embed-multi-97m",
        "jais-2",
    ),
    *(
        "k2-horizon",
        "kimi-k2",
        "laguna",
        "llama-bpe",
        "minicpm5",
        "qwen2",
        "qwen35",
        "seed-coder",
        "starcoder",
        "tekken",
    ),
    *("ufakzeka", "youtu"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BYTE_LEVEL_FAMILIES)
def test_one_regular_expression_gives_our_words_or_is_refused(name: str) -> None:
    """Every part of a text is a token, so that tiktoken's tokens are the words."""
    entry = PRE_TOKENIZERS[name]
    if entry.family not in IN_ONE:
        with pytest.raises(NotExpressibleError, match="stages that no single regular expression can do"):
            one_regex(entry)
        return
    pattern = one_regex(entry)
    dice = random.Random(name)
    texts = [text for text in dict.fromkeys(words_to_try(name)) if 0 < len(text) < 15]
    for text in dice.sample(texts, 60):
        data = text.encode()
        parts = {data[a:b] for a in range(len(data)) for b in range(a + 1, len(data) + 1)}
        ranks = {part: rank for rank, part in enumerate(sorted(parts))}
        encoding = tiktoken.Encoding("words", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
        found = [
            encoding.decode_single_token_bytes(token).decode() for token in encoding.encode_ordinary(text)
        ]
        assert found == splitter(entry).words(text)


# ---- tokenizer.json -------------------------------------------------------------------------------------

STRIPPED, OVERLAPPING, NO_BYTES = (
    {"white_space_beyond_ascii"},
    {"overlapping_special_tokens"},
    {"bytes_without_tokens"},
)
HIDDEN = {*OVERLAPPING, "user_defined_tokens_in_control_tokens"}
DNA, LOWER_CASE = {"dna"}, {"lower_case"}
LIMITED = {
    **dict.fromkeys(["bytes-missing", "default-ids-out-of-range", "empty-tokens"], NO_BYTES),
    **dict.fromkeys(["gemma4-without-byte-tokens", "gpt-2-pre-of-gemma4-tokens"], NO_BYTES),
    "no-line-break-token": {*NO_BYTES, "merges_without_tokens"},
    "merges-odd": {"merges_without_tokens"},
    "merges-to-no-token": {"merges_without_tokens"},
    **dict.fromkeys(["equal-lengths", "equal-lengths-ascending", "white-space-tokens"], OVERLAPPING),
    "eog-minimax": OVERLAPPING,
    **dict.fromkeys(["overlaps", "equal-lengths-of-many"], HIDDEN),
    **dict.fromkeys(["gemma4-with-jina-pre", "jina-bert-v3", "jina-v2-code", "jina-v2-de"], STRIPPED),
    **dict.fromkeys(
        ["jina-v2-es", "modern-bert", "nomic-bert-moe", "phi-3", "phi3", "phi-3-and-jina"], STRIPPED
    ),
    **dict.fromkeys(["hybriddna", "hybriddna-of-normal-tags", "hybriddna-oov-last"], DNA),
    **dict.fromkeys(["hybriddna-without-oov", "hybriddna-with-escaped-spaces"], DNA),
    "hybriddna-of-control-k-mers": DNA | OVERLAPPING,
    "hybriddna-with-mmbert": DNA,
    "mmbert": STRIPPED,
    "mmbert-without-byte-tokens": NO_BYTES,
    "whitespace-with-mmbert": LOWER_CASE,
    **dict.fromkeys(["whitespace-lowercase", "whitespace-model-with-gpt-2"], LOWER_CASE),
    "whitespace-with-escaped-spaces": LOWER_CASE,
}


BYTE_PAIRS = [path for path in FIXTURES if tokenizer(path).vocabulary.tokenizer_model.algorithm == "merges"]
OF_VERSIONS = {"newer_unicode", "long_s", NOT_IN_1, "tokens_of_one_character", "border_character"}


@pytest.mark.slow
@pytest.mark.parametrize("path", BYTE_PAIRS, ids=lambda path: path.stem)
def test_ids_of_the_library_are_ours_or_a_limit_is_told(path: Path) -> None:
    tok = tokenizer(path)
    export = to_tokenizer_json(tok.vocabulary)
    assert names(export.limits) - OF_VERSIONS == LIMITED.get(path.stem, set())
    if names(export.limits) <= {*OF_VERSIONS, *LOWER_CASE}:
        library = parity.hugging_face(export.files["tokenizer.json"])
        assert differing(tok, library, sample(tok, 120)) == []


@pytest.mark.parametrize(
    ("stem", "text", "flags"),
    [
        ("bytes-missing", "a々b", (False, False)),
        ("merges-to-no-token", "1234567\n\n", (False, False)),
        ("overlaps", "<x>a", (False, False)),
        ("jina-v2-code", "\u3000<mask>", (False, True)),
        ("hybriddna", "<dna>ACGT</dna>", (False, False)),
    ],
)
def test_limits_are_real(stem: str, text: str, flags: tuple[bool, bool]) -> None:
    tok = tokenizer(ROOT / "fixtures" / "vocabs" / f"{stem}.gguf")
    ours = tok.encode(text, add_special=flags[0], parse_special=flags[1])
    assert in_library(tok.vocabulary).encode(text, *flags) != ours


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_real_vocabularies_in_the_library(name: str) -> None:
    tok = tokenizer(cached(name))
    export = to_tokenizer_json(tok.vocabulary)
    library = parity.hugging_face(export.files["tokenizer.json"])
    known = {"falcon": NO_BYTES | OVERLAPPING, "refact": NO_BYTES, "starcoder": NO_BYTES}
    assert names(export.limits) - OF_VERSIONS == known.get(name, set())
    assert differing(tok, library, sample(tok, 150)) == []


# What tokenizers 1.0.0rc3 does with a file; the ids in 0.x are in the tests above.
IN_VERSION_1 = {
    **dict.fromkeys(
        ("deepseek-coder", "gemma-4", "gpt-2", "llama-bpe", "mmbert-without-mask", "mpt", "qwen2"), "our ids"
    ),
    **dict.fromkeys(
        ("qwen35", "whitespace", "whitespace-model-with-gpt-2", "whitespace-with-mmbert"), "our ids"
    ),
    **dict.fromkeys(
        (f"GPT-2's as {name}" for name in ("deepseek-v3", "laguna", "falcon", "gpt-4o", "tiny_aya")),
        "our ids",
    ),
    "command-r": "our ids, but for tokens_of_one_character",
    "refact": "refused: This byte-level vocabulary has no token for bytes 0xF1.",
}


@pytest.mark.slow
def test_version_1_gives_our_ids_or_refuses_as_the_limits_say(tmp_path: Path) -> None:
    """One child for all vocabularies; the ids in 0.x are in the tests above."""
    flags = [(False, False), (True, True)]
    cases, limits, questions = {}, {}, []
    for name in IN_VERSION_1:
        if name.startswith("GPT-2's as "):
            cases[name] = tokenizer_as(name.split()[-1])
        else:
            fixture = ROOT / "fixtures" / "vocabs" / f"{name}.gguf"
            cases[name] = tokenizer(fixture if fixture.exists() else cached(name))
        export = to_tokenizer_json(cases[name].vocabulary)
        limits[name] = names(export.limits)
        file = tmp_path / f"{name}.json"
        file.write_bytes(export.files["tokenizer.json"])
        texts = [text for text in sample(cases[name], 120) if AFTER_15_1.isdisjoint(map(ord, text))]
        questions.append({"path": str(file), "texts": texts, "flags": flags})
    answers = asked_of_version_1(tmp_path, questions)
    found = {}
    for (name, tok), question, answer in zip(cases.items(), questions, answers, strict=True):
        if "refused" in answer:
            found[name] = f"refused: {answer['refused']}"
            assert NOT_IN_1 in limits[name]
            continue
        assert answer["library"] == f"tokenizers {TOKENIZERS_1.replace('rc', '-rc.')}"
        assert NOT_IN_1 not in limits[name]
        alone = {text for text in tok.vocabulary.tokens if len(text) == 1 and not text.isascii()}
        found[name] = "our ids"
        for text, ids in zip(question["texts"], answer["ids"], strict=True):
            if ids != [tok.encode(text, add_special=a, parse_special=p) for a, p in flags]:
                assert "tokens_of_one_character" in limits[name]
                assert not alone.isdisjoint(text)
                found[name] = "our ids, but for tokens_of_one_character"
    assert {
        name: IN_VERSION_1[name] for name, what in found.items() if what.startswith(IN_VERSION_1[name])
    } == (IN_VERSION_1), found


def test_tokens_keep_their_ids_and_special_ones_can_be_switched_off() -> None:
    vocabulary = make_vocabulary(
        [*BYTE_CHARS, "<c>", "<u>", "ab"],
        attributes={"<c>": CONTROL, "<u>": USER_DEFINED},
        merges=["a b"],
        special_ids={"bos": 256, "eos": 257},
        add_bos=True,
        add_eos=True,
    )
    document = json.loads(to_tokenizer_json(vocabulary).files["tokenizer.json"])
    library = tokenizers.Tokenizer.from_str(json.dumps(document))
    assert library.get_vocab() == vocabulary.token_to_id
    assert library.encode("<c>ab<u>").ids == [256, 256, 258, 257, 257]
    library.encode_special_tokens = True
    assert library.encode("<c>ab<u>", add_special_tokens=False).ids == [60, 99, 62, 258, 257]
    assert library.encode("a", "b").ids == [256, 97, 257, 256, 98, 257]
    assert library.decode([256, 258], skip_special_tokens=True) == "ab"


def test_of_equal_merges_the_first_counts() -> None:
    vocabulary = make_vocabulary([*BYTE_CHARS, "ab", "bc"], merges=["a b", "b c", "a b"])
    assert in_library(vocabulary).encode("abc", False, False) == [256, 99]


def test_configuration_names_special_tokens_and_chat_template() -> None:
    vocabulary = make_vocabulary(
        [*BYTE_CHARS, "<s>"], attributes={"<s>": CONTROL}, special_ids={"bos": 256, "eos": 11}, add_bos=True
    )
    config = json.loads(to_tokenizer_json(vocabulary, "{{ messages }}").files["tokenizer_config.json"])
    assert config["bos_token"] == "<s>"
    assert "eos_token" not in config  # 11 is a token like others
    assert (config["add_bos_token"], config["add_eos_token"]) == (True, False)
    assert config["chat_template"] == "{{ messages }}"


def test_line_breaks_that_only_llama_cpp_takes_whole_are_told() -> None:
    tokens = [*(f"<0x{byte:02X}>" for byte in range(256)), "\n", "\n\n", "\n\n\n", "a"]
    flags = {"newline_runs": True, "escape_whitespaces": True, "byte_encode": False}
    made = make_vocabulary(tokens, merges=["\n \n", "\n\n \n"], flags=flags, pre="gemma4")
    assert to_tokenizer_json(made).limits == ()
    unmade = make_vocabulary([*tokens, "ab"], merges=["\n \n"], flags=flags, pre="gemma4")
    assert names(to_tokenizer_json(unmade).limits) == {"runs_of_line_breaks"}
    whole = make_vocabulary(tokens[:-1], flags=flags, pre="gemma4")
    assert names(to_tokenizer_json(whole).limits) == {"runs_of_line_breaks"}


# ---- tiktoken -------------------------------------------------------------------------------------------

REFUSED = {"default", "deepseek-coder", "falcon"}


@pytest.mark.slow
@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_ids_of_tiktoken_are_ours_or_it_says_why_not(path: Path) -> None:
    tok = tokenizer(path)
    try:
        export = to_tiktoken(tok.vocabulary, "test")
    except NotExpressibleError:
        entry = tok.vocabulary.pre_tokenizer
        assert (
            entry.name in REFUSED
            or not entry.byte_encode
            or tok.model == "whitespace"
            or path.stem == "merges-odd"
        )
        return
    library = parity.library_for("tiktoken", export)
    different = differing(tok, library, sample(tok, 120))
    assert not different or export.limits, different[:1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "limits"),
    [
        ("command-r", set()),
        ("gpt-2", set()),
        ("qwen2", set()),
        ("qwen35", set()),
        ("llama-bpe", {"order_of_equal_tokens"}),
        ("refact", NO_BYTES),
        ("starcoder", NO_BYTES),
        ("mpt", {"special_tokens_that_begin_alike"}),
    ],
)
def test_real_vocabularies_in_tiktoken(name: str, limits: set[str]) -> None:
    tok = tokenizer(cached(name))
    export = to_tiktoken(tok.vocabulary, name)
    assert names(export.limits) == limits
    texts = sample(tok, 150)
    if name == "mpt":
        texts = [text for text in texts if "  " not in text]
    library = parity.library_for("tiktoken", export)
    different = differing(tok, library, texts)
    if limits == NO_BYTES:
        different = [(text, *way) for text, *way in different if max(map(ord, text)) < 0x40000]
    assert different == []


def test_ranks_file_is_what_tiktoken_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tiktoken.load import load_tiktoken_bpe

    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    export = to_tiktoken(gpt2_vocabulary(), "gpt2")
    path = tmp_path / "gpt2.tiktoken"
    path.write_bytes(export.files["ranks.tiktoken"])
    ranks = load_tiktoken_bpe(str(path))
    assert len(ranks) == 50256
    assert ranks[b" world"] == 995
    side = json.loads(export.files["ranks.tiktoken.json"])
    assert side["special_tokens"] == {"<|endoftext|>": 50256}
    assert (side["bos_id"], side["eos_id"], side["model_ids"]) == (None, None, None)


def shuffled() -> Vocabulary:
    """GPT-2's vocabulary with its ids in another order."""
    vocabulary = gpt2_vocabulary()
    order = list(range(len(vocabulary.tokens)))
    random.Random(1).shuffle(order)
    new = {old: index for index, old in enumerate(order)}
    tokens = [vocabulary.tokens[old] for old in order]
    return vocabulary._replace(
        tokens=tokens,
        token_to_id={token: index for index, token in enumerate(tokens)},
        attributes=[vocabulary.attributes[old] for old in order],
        special_token_ids=tuple(sorted(new[old] for old in vocabulary.special_token_ids)),
        special_ids=dict.fromkeys(vocabulary.special_ids),
    )


@pytest.mark.slow
def test_ids_in_another_order_than_merges_are_refused_or_renumbered() -> None:
    tok = Tokenizer(shuffled())
    with pytest.raises(NotExpressibleError, match="renumber=True"):
        to_tiktoken(tok.vocabulary, "shuffled")
    export = to_tiktoken(tok.vocabulary, "shuffled", renumber=True)
    assert export.limits == ()
    side = json.loads(export.files["ranks.tiktoken.json"])
    assert sorted(side["model_ids"]) == list(range(50257))
    assert differing(tok, parity.library_for("tiktoken", export), sample(tok, 150)) == []


def test_pair_without_a_merge_is_told() -> None:
    """With `ignore_merges`, a word can be a token that nothing merges; tiktoken merges it in other words, too."""
    vocabulary = make_vocabulary([*BYTE_CHARS, "ab"], pre="llama-bpe")
    tok, export = Tokenizer(vocabulary), to_tiktoken(vocabulary, "test")
    assert names(export.limits) == {"pairs_without_merges"}
    library = parity.library_for("tiktoken", export)
    assert library.encode("ab", False, False) == tok.encode("ab") == [256]
    assert library.encode("abc", False, False) != tok.encode("abc")


def test_token_that_nothing_makes_is_left_out() -> None:
    vocabulary = make_vocabulary([*BYTE_CHARS, "ab"], pre="gpt-2")
    assert to_tiktoken(vocabulary, "test").limits == ()
    assert (
        in_tiktoken(vocabulary).encode("ab", False, False) == [97, 98] == Tokenizer(vocabulary).encode("ab")
    )


def test_order_of_equal_tokens_is_told() -> None:
    """`aaa` of `aa a` and `a aa`: in `aa a aa`, llama.cpp takes the pair of the lower rank, tiktoken the first."""
    merges = ["a a", "a aa", "aa a"]
    vocabulary = make_vocabulary([*BYTE_CHARS, "aa", "aaa"], merges=merges)
    assert names(to_tiktoken(vocabulary, "test").limits) == {"order_of_equal_tokens"}


# ---- merges.txt and the GGUF of metadata alone ----------------------------------------------------------


def test_merges_txt_is_what_the_library_reads(tmp_path: Path) -> None:
    export = to_merges_txt(gpt2_vocabulary())
    for name, data in export.files.items():
        (tmp_path / name).write_bytes(data)
    model = tokenizers.models.BPE.from_file(str(tmp_path / "vocab.json"), str(tmp_path / "merges.txt"))
    library = tokenizers.Tokenizer(model)
    library.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    text = "Hello world, it's 2024!"
    assert library.encode(text).ids == Tokenizer(gpt2_vocabulary()).encode(text)
    lines = export.files["merges.txt"].decode().split("\n")
    model_and_ids = "model=gpt2 pre=gpt-2 bos_token_id=50256 eos_token_id=50256".split()
    assert lines[:2] == [
        " ".join(["#version: 0.2 -", *(f"tokenizer.ggml.{each}" for each in model_and_ids)]),
        "Ġ t",
    ]
    assert len(lines) == 1 + 50000 + 1
    [limit] = export.limits
    assert (limit.name, limit.number) == ("special_tokens", 1)
    assert not to_merges_txt(make_vocabulary([*BYTE_CHARS, "aa"], merges=["a a"])).limits


def test_merges_with_white_space_are_refused() -> None:
    vocabulary = make_vocabulary(["\n", "\n\n"], merges=["\n \n"])
    with pytest.raises(NotExpressibleError, match="1 merges have white space"):
        to_merges_txt(vocabulary)


@pytest.mark.slow
@pytest.mark.parametrize("path", [GPT2, *FIXTURES], ids=lambda path: path.stem)
def test_gguf_of_metadata_alone_has_the_same_vocabulary(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "vocab.gguf"
    target.write_bytes(to_vocab_gguf(path).files["vocab.gguf"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GGUFWarning)
        found, given = load_vocabulary(target), load_vocabulary(path)._replace(path=str(target))
    assert array("f", found.scores).tobytes() == array("f", given.scores).tobytes()  # some are no numbers
    assert found._replace(scores=()) == given._replace(scores=())


def test_gguf_of_metadata_alone_leaves_out_tensors_and_what_speaks_of_them(tmp_path: Path) -> None:
    source, target = tmp_path / "model.gguf", tmp_path / "vocab.gguf"
    make_tiny_model(source)
    target.write_bytes(to_vocab_gguf(source).files["vocab.gguf"])
    with GGUFFile(target) as file, GGUFFile(source) as model:
        assert model.tensor_count > 0
        assert file.tensor_count == 0
        assert not [key for key in file if not key.startswith(("general.", "tokenizer."))]
        assert [key for key in model if key.startswith("tokenizer.")] == [
            key for key in file if key.startswith("tokenizer.")
        ]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt-2", "llama-bpe", "gemma-4"])
def test_llama_cpp_loads_it_and_gives_the_same_ids(name: str, tmp_path: Path) -> None:
    path, target = cached(name), tmp_path / "vocab.gguf"
    target.write_bytes(to_vocab_gguf(path).files["vocab.gguf"])
    tok = tokenizer(path)
    texts = sample(tok, 50)
    try:
        with Oracle(target) as oracle:
            found = oracle.tokenize([text.encode() for text in texts], True, True)
    except NotPreparedError as error:
        missing(str(error))
    assert found == tok.encode_batch(texts)


# ---- measuring ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_agreement_finds_texts_and_characters() -> None:
    tok = Tokenizer(gpt2_vocabulary())
    vocabulary = tok.vocabulary._replace(pre_tokenizer=PRE_TOKENIZERS["llama-bpe"])
    few = range(0x250)
    assert parity.agreement(tok, in_library(tok.vocabulary), ["a text"], random_texts=20, characters=few).same
    found = parity.agreement(tok, in_library(vocabulary), ["a 12345"], random_texts=0, characters=few)
    assert not found.same
    assert found.texts == found.differing == 1
    [example, *_] = found.examples
    assert tok.encode(example.text) == example.ours != example.theirs
    assert len(example.text) <= 5


def test_agreement_names_the_character() -> None:
    tok = Tokenizer(gpt2_vocabulary())

    def encode(text: str, add_special: bool, parse_special: bool) -> list[int]:
        return tok.encode(text.replace("ж", "x"))

    found = parity.agreement(
        tok, parity.CheckedLibrary("another", encode), random_texts=0, characters=range(0x400, 0x500)
    )
    assert (found.characters, found.differing_characters) == (256, (ord("ж"),))


# ---- the command ----------------------------------------------------------------------------------------


def run(*arguments: object) -> int:
    return main(["export", *map(str, arguments)])


def test_command_writes_and_refuses_to_write_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "out" / "tokenizer.json"
    fixture = ROOT / "fixtures" / "vocabs" / "add-bos.gguf"
    assert run("-m", fixture, "--to", "tokenizer.json", "-o", target, "--no-check") == 0
    assert tokenizers.Tokenizer.from_file(str(target)).encode("a").ids[0] == tokenizer(fixture).bos_id
    assert sorted(os.listdir(target.parent)) == ["tokenizer.json", "tokenizer_config.json"]
    before = target.read_bytes()
    assert run("-m", fixture, "--to", "tokenizer.json", "-o", target) == 2
    assert "already exists; --force overwrites it" in capsys.readouterr().err
    assert target.read_bytes() == before
    assert run("-m", fixture, "--to", "tokenizer.json", "-o", target, "--force", "--no-check") == 0


def test_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "merges.txt").write_text("old")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_files({f"{tmp_path}/merges.txt": b"new", f"{tmp_path}/vocab.json": b"{}"})
    assert os.listdir(tmp_path) == ["merges.txt"]
    assert (tmp_path / "merges.txt").read_text() == "old"


@pytest.mark.slow
def test_command_writes_into_a_directory(tmp_path: Path) -> None:
    assert run("-m", GPT2, "--to", "tokenizer.json", "-o", f"{tmp_path}/", "--no-check") == 0
    assert run("-m", GPT2, "--to", "merges.txt", "-o", tmp_path) == 0
    assert run("-m", GPT2, "--to", "tiktoken", "-o", tmp_path, "--no-check") == 0
    assert run("-m", GPT2, "--to", "vocab-gguf", "-o", tmp_path) == 0
    names = ["gpt2-vocab.gguf", "gpt2.tiktoken", "gpt2.tiktoken.json", "merges.txt", "tokenizer.json"]
    assert sorted(os.listdir(tmp_path)) == [*names, "tokenizer_config.json", "vocab.json"]


@pytest.mark.parametrize(
    ("kind", "given", "written"),
    [
        ("tokenizer.json", "new", ["new/tokenizer.json", "new/tokenizer_config.json"]),
        ("tokenizer.json", "Llama-3.1", ["Llama-3.1/tokenizer.json", "Llama-3.1/tokenizer_config.json"]),
        ("tokenizer.json", None, ["tokenizer.json", "tokenizer_config.json"]),
        ("tokenizer.json", "other.json", ["other.json"]),
        ("merges.txt", "new", ["new/merges.txt", "new/vocab.json"]),
        ("merges.txt", "new.txt", ["new.txt", "vocab.json"]),
        ("tiktoken", "new", ["new/add-bos.tiktoken", "new/add-bos.tiktoken.json"]),
        ("tiktoken", "new.tiktoken", ["new.tiktoken", "new.tiktoken.json"]),
        ("vocab-gguf", "new", ["new"]),
        ("vocab-gguf", "new/", ["new/add-bos-vocab.gguf"]),
    ],
)
def test_a_folder_needs_no_slash(
    kind: str, given: str | None, written: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    fixture = ROOT / "fixtures" / "vocabs" / "add-bos.gguf"
    output = () if given is None else ("-o", given)
    assert run("-m", fixture, "--to", kind, "--no-check", *output) == 0
    assert (
        sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()) == written
    )


@pytest.mark.parametrize(
    ("kind", "given", "lost"),
    [
        (
            "tokenizer.json",
            "other.json",
            "lost, since tokenizer_config.json is not written: bos_token '<bos>', eos_token",
        ),
        (
            "tokenizer.json",
            "-",
            "lost, since tokenizer_config.json is not written: bos_token '<bos>', eos_token",
        ),
        (
            "tiktoken",
            "-",
            "lost, since ranks.tiktoken.json is not written: the pattern and the special tokens",
        ),
        ("merges.txt", "-", "lost, since vocab.json is not written: the ids of the tokens"),
        ("tokenizer.json", "new", ""),
        ("merges.txt", "new.txt", ""),
    ],
)
def test_command_tells_on_standard_error_what_is_lost(
    kind: str, given: str, lost: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    fixture = ROOT / "fixtures" / "vocabs" / "add-bos.gguf"
    assert run("-m", fixture, "--to", kind, "--no-check", "-o", given) == 0
    found = [line for line in capfd.readouterr().err.splitlines() if "lost" in line]
    assert [line.startswith(lost) for line in found] == [True] * bool(lost)


def test_export_and_import_keep_the_special_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a folder that was not there, and is named without a slash."""
    monkeypatch.chdir(tmp_path)
    for name in ("default-ids", "ids-by-key", "add-bos-and-eos", "gemma4", "types"):
        fixture = ROOT / "fixtures" / "vocabs" / f"{name}.gguf"
        assert run("-m", fixture, "--to", "tokenizer.json", "-o", name, "--no-check") == 0
        assert main(["import", name, "-o", f"{name}.gguf", "--no-check"]) == 0
        before, after = tokenizer(fixture).vocabulary, tokenizer(tmp_path / f"{name}.gguf").vocabulary
        assert after.special_ids == before.special_ids
        assert (after.add_bos, after.add_eos) == (before.add_bos, before.add_eos)
        assert list(after.attributes) == list(before.attributes)


@pytest.mark.slow
def test_command_tells_what_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fixture = ROOT / "fixtures" / "vocabs" / "jina-v2-code.gguf"
    (tmp_path / "sample.txt").write_text("plain\n\u3000<mask>\n", encoding="utf-8")
    code = run(
        "-m",
        fixture,
        "--to",
        "tokenizer.json",
        "-o",
        tmp_path / "t.json",
        "--sample",
        tmp_path / "sample.txt",
    )
    output = capsys.readouterr().out
    assert code == 0  # a limit says why
    assert "limit: beside '<mask>', white space is dropped" in output
    assert "'\\u3000<mask>': [227, 128, 128, 278] here, [278] there" in output


@pytest.mark.slow
def test_command_fails_where_ids_differ_and_nothing_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PORTABLE, "gpt-2", (split(r"[\s\S]"),))
    monkeypatch.setattr("ggufbpe.analysis.conversion.parity._characters", lambda: list(range(9, 128)))
    assert run("-m", GPT2, "--to", "tokenizer.json", "-o", tmp_path / "t.json") == 1
    assert "ids differ in" in capsys.readouterr().out


@pytest.mark.slow
def test_command_says_when_nothing_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("-m", GPT2, "--to", "tiktoken", "-o", tmp_path / "g.tiktoken") == 0
    assert "all ids the same" in capsys.readouterr().out
    side = json.loads((tmp_path / "g.tiktoken.json").read_text())
    ranks = dict(line.split() for line in (tmp_path / "g.tiktoken").read_bytes().splitlines())
    encoding = tiktoken.Encoding(
        side["name"],
        pat_str=side["pat_str"],
        mergeable_ranks={b64decode(token): int(rank) for token, rank in ranks.items()},
        special_tokens=side["special_tokens"],
    )
    assert encoding.encode("Hello world") == [15496, 995]


def test_command_writes_to_standard_output(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    fixture = ROOT / "fixtures" / "vocabs" / "add-bos.gguf"
    assert run("-m", fixture, "--to", "vocab-gguf", "-o", "-") == 0
    assert capfdbinary.readouterr().out == to_vocab_gguf(fixture).files["vocab.gguf"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("-m", GPT2), f"which format? --to {', '.join(FORMATS)}"),
        (("-m", GPT2, "--to", "onnx"), "there is no format 'onnx'"),
        (("-m", GPT2, "--to", "tokenizer.json", "--renumber"), "--renumber is for --to tiktoken"),
        (("-m", GPT2, "--to", "tiktoken", "--code-points"), "--code-points is for --to tokenizer.json"),
        (("-m", GPT2, "--to", "vocab-gguf", "-o", GPT2, "--force"), "is the input file"),
        (("-m", "none.gguf", "--to", "vocab-gguf"), "none.gguf: No such file or directory"),
    ],
)
def test_command_refuses(
    arguments: tuple[object, ...],
    problem: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(*arguments) == 2
    assert problem in capsys.readouterr().err
    assert os.listdir(tmp_path) == []


def test_command_says_when_the_library_is_not_installed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    assert run("-m", GPT2, "--to", "tokenizer.json", "-o", tmp_path / "t.json") == 0
    assert (
        "not checked: a comparison of ids takes the package tokenizers: pip install"
        in capsys.readouterr().out
    )


def test_attributes_are_told_apart() -> None:
    """Stripping tokens, of which the library strips more kinds of white space."""
    vocabulary = make_vocabulary([*BYTE_CHARS, "<m>"], attributes={"<m>": CONTROL | LSTRIP, "a": NORMAL})
    assert names(to_tokenizer_json(vocabulary, code_points=True).limits) == STRIPPED | {NOT_IN_1}
    assert in_library(vocabulary).encode("a <m>", False, True) == Tokenizer(vocabulary).encode("a <m>")


# ---- what can carry it instead --------------------------------------------------------------------------


def named_instead(vocabulary: Vocabulary) -> str:
    """What the refusal of a format without a place for the vocabulary's algorithm says after the reason."""
    algorithm = vocabulary.tokenizer_model.algorithm
    name = next(name for name, form in FORMATS.items() if algorithm not in form.writers)
    with pytest.raises(NotExpressibleError) as refusal:
        export_to(name, vocabulary)
    return str(refusal.value).rpartition(";")[2]


def require_true_advice(vocabulary: Vocabulary) -> None:
    """Each format that a refusal names accepts the vocabulary."""
    words = set(named_instead(vocabulary).replace(",", "").split())
    for name in words.intersection(FORMATS) - {"vocab-gguf"}:
        export_to(name, vocabulary, *["x"] * (name == "tiktoken"))


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_formats_that_are_named_instead_accept_the_vocabulary(path: Path) -> None:
    require_true_advice(tokenizer(path).vocabulary)


# One of each kind of refusal; each takes seconds.
@pytest.mark.slow
@pytest.mark.parametrize("name", ["falcon", "gemma-4", "gpt-2", "mpt", "refact"])
def test_formats_that_are_named_instead_accept_real_vocabularies(name: str) -> None:
    require_true_advice(tokenizer(cached(name)).vocabulary)


@pytest.mark.parametrize(
    ("name", "vocabulary", "named"),
    [
        (
            "merges.txt",
            make_vocabulary(["\n", "\n\n"], merges=["\n \n"]),
            "tokenizer.json, tiktoken and vocab-gguf",
        ),
        ("merges.txt", make_vocabulary(["", "\n", "\n\n"], merges=["\n \n"]), "tiktoken and vocab-gguf"),
        ("tokenizer.json", make_vocabulary([*BYTE_CHARS, ""]), "tiktoken, merges.txt and vocab-gguf"),
    ],
)
def test_a_format_that_refuses_the_vocabulary_too_is_not_named(
    name: str, vocabulary: Vocabulary, named: str
) -> None:
    with pytest.raises(NotExpressibleError) as refusal:
        export_to(name, vocabulary)
    assert str(refusal.value).endswith(f"; {named} can carry it")


def test_all_formats_of_bytes_are_named() -> None:
    assert (
        named_instead(gpt2_vocabulary())
        == " tokenizer.json, tiktoken, merges.txt and vocab-gguf can carry it"
    )
