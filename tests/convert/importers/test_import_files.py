"""tokenizer.json to a vocabulary: the same ids as the library's, and what cannot be carried is told."""

from __future__ import annotations

import json
import random
import sys
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from conftest import GPT2, ROOT, missing
from fixture_texts import texts as fixture_texts
from gguf import GGUFWriter
from random_texts import RandomTexts
from reference import Crash, NotPreparedError, Oracle, vocabulary
from synthetic import make_vocabulary
from tokenizer_json_cases import mutations

from ggufbpe import GGUFError, GGUFWarning, Tokenizer
from ggufbpe.cli import main
from ggufbpe.convert.exporters.tokenizer_json import to_tokenizer_json
from ggufbpe.convert.imported import NotImportableError, pack
from ggufbpe.convert.importers.import_hf import import_tokenizer
from ggufbpe.convert.importers.recognize import recognize
from ggufbpe.convert.portable_patterns import oniguruma
from ggufbpe.models.bpe.merge import BYTE_CHARS
from ggufbpe.models.loading import load_vocabulary
from ggufbpe.models.pretokenizers.hf_splitting import DIFFERENCES
from ggufbpe.models.pretokenizers.registry import one_of_each
from ggufbpe.models.vocabulary import BYTE, CONTROL, NORMAL, UNUSED, USER_DEFINED, Vocabulary

CONTRACTION, WORD = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)", r"[^\r\n\p{L}\p{N}]?\p{L}+"
TAIL = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
NO_PATTERNS = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
GPT2_SPLITTING = {**NO_PATTERNS, "use_regex": True}


@cache
def opened(path: Path) -> Vocabulary | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GGUFWarning)
        try:
            return load_vocabulary(path)
        except GGUFError:
            return None


FIXTURES = [
    path
    for path in sorted((ROOT / "fixtures" / "vocabs").glob("*.gguf"))
    if (found := opened(path)) is not None and found.tokenizer_model.algorithm == "merges"
]


def loaded(data: bytes, folder: Path) -> Tokenizer:
    path = folder / "imported.gguf"
    path.write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GGUFWarning)
        return Tokenizer.from_gguf(path)


def sample(vocabulary: Vocabulary, count: int) -> list[bytes]:
    source = RandomTexts("import", [vocabulary.tokens[token] for token in vocabulary.special_token_ids])
    texts = fixture_texts()
    return random.Random("import").sample(texts, min(count, len(texts))) + [
        source.text() for _ in range(count)
    ]


def document(**changes: Any) -> dict[str, Any]:
    """A small tokenizer.json: bytes, `ab`, and two added tokens."""
    model = {
        "type": "BPE",
        "vocab": {token: index for index, token in enumerate([*BYTE_CHARS, "ab"])},
        "merges": [["a", "b"]],
    }
    model.update(changes.pop("model", {}))
    added = [
        {"id": 257, "content": "<s>", "special": True},
        {"id": 258, "content": "<tool>", "special": False},
    ]
    added = [
        dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False) | token for token in added
    ]
    found = {
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": GPT2_SPLITTING,
        "post_processor": None,
    }
    return {**found, **changes, "model": model}


def names(limits: tuple[Any, ...]) -> set[str]:
    return {limit.name for limit in limits}


# ---- there and back -------------------------------------------------------------------------------------

LOST = {  # where ids are others after the way to tokenizer.json and back, and the limit that says so
    **dict.fromkeys(("merges-to-no-token", "merges-odd", "no-line-break-token"), "merges_without_tokens"),
    "gemma4-with-jina-pre": "lstrip",
}

REAL = ["aquila", "command-r", "deepseek-coder", "deepseek-llm", "falcon", "gemma-4", "gpt-2", "gpt-neox"]
REAL += ["llama-bpe", "mpt", "qwen2", "qwen35", "refact", "starcoder"]
FLAGS = ({"add_special": False, "parse_special": False}, {"add_special": True, "parse_special": True})
AS_BEFORE = (
    "model",
    "pre",
    "pre_tokenizer",
    "special_ids",
    "eog_ids",
    "special_token_ids",
    "architecture",
    "name",
)
AS_BEFORE += ("add_bos", "add_eos", "add_sep", "add_space_prefix", "makes_lower_case")


def there_and_back(vocabulary: Vocabulary, folder: Path) -> tuple[Tokenizer, set[str]]:
    """The tokenizer after the way to tokenizer.json and back, and the limits that were told on it."""
    export = to_tokenizer_json(vocabulary)
    imported = import_tokenizer(*(json.loads(data) for data in export.files.values()))
    return loaded(pack(imported.metadata), folder), names((*export.limits, *imported.limits))


def all_but_merges(vocabulary: Vocabulary) -> dict[str, Any]:
    found = {name: getattr(vocabulary, name) for name in AS_BEFORE}
    return {**found, "tokens": list(vocabulary.tokens), "attributes": list(vocabulary.attributes)}


@pytest.mark.slow
@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_there_and_back_gives_the_same_vocabulary(path: Path, tmp_path: Path) -> None:
    vocabulary = opened(path)
    assert vocabulary is not None
    before, (after, limits) = Tokenizer(vocabulary), there_and_back(vocabulary, tmp_path)
    if path.stem in LOST:
        assert LOST[path.stem] in limits
        return
    assert all_but_merges(after.vocabulary) == all_but_merges(vocabulary)
    for text in [b"<dna>ACGTACGTA</dna>", *sample(vocabulary, 150)]:
        for flags in FLAGS:
            assert after.encode(text, **flags) == before.encode(text, **flags), (text, flags)


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_real_vocabularies_there_and_back(name: str, tmp_path: Path) -> None:
    """The same vocabulary and the same ids, for us and for llama.cpp itself."""
    try:
        path = vocabulary(name)
    except NotPreparedError as error:
        missing(str(error))
    before = opened(path)
    assert before is not None
    after, _ = there_and_back(before, tmp_path)
    assert all_but_merges(after.vocabulary) == all_but_merges(before)
    texts = sample(before, 60)
    expected = [Tokenizer(before).encode_batch(texts, **flags) for flags in FLAGS]
    assert [after.encode_batch(texts, **flags) for flags in FLAGS] == expected
    try:
        with Oracle(tmp_path / "imported.gguf") as oracle:
            for flags, ours in zip(FLAGS, expected):
                answers = oracle.tokenize(texts, *flags.values())
                crashes = [isinstance(answer, Crash) for answer in answers]
                assert sum(crashes) <= 2  # on an overlong form of the space
                assert [ids for ids, lost in zip(ours, crashes) if not lost] == [
                    ids for ids, lost in zip(answers, crashes) if not lost
                ]
    except NotPreparedError as error:
        missing(str(error))


# ---- the pre-tokenizer ----------------------------------------------------------------------------------


def splits(patterns: list[str]) -> dict[str, Any]:
    parts = [
        {"type": "Split", "pattern": {"Regex": text}, "behavior": "Isolated", "invert": False}
        for text in patterns
    ]
    return {"type": "Sequence", "pretokenizers": [*parts, NO_PATTERNS]}


@pytest.mark.parametrize("family", one_of_each())
def test_patterns_of_a_family_are_recognized(family: str) -> None:
    found = recognize(splits(oniguruma(one_of_each()[family])), [])
    assert found is not None
    assert (found.family, found.how) == (family, "patterns")


@pytest.mark.slow
@pytest.mark.parametrize(
    "family", ["qwen2", "gpt-2", "llama-bpe", "falcon", "deepseek-llm", "afmoe", "kimi-k2"]
)
def test_unknown_patterns_that_split_alike_are_recognized(family: str) -> None:
    """The same words from other patterns: a stage that changes nothing is added."""
    found = recognize(splits([*oniguruma(one_of_each()[family]), "(?!)"]), [])
    assert found is not None
    assert (found.family, found.how) == (family, "texts")
    assert found.ranking[0].share == 1 > found.ranking[1].share or family == "qwen2"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "patterns"),
    [
        ("llama-bpe", [rf"{CONTRACTION}|{WORD}|\p{{N}}{{1,3}}|{TAIL}"]),
        ("qwen2", [rf"{CONTRACTION}|{WORD}|\p{{N}}|{TAIL}"]),
        ("gpt-2", [r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"]),
        ("deepseek-coder", ["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-퟿]+", r"\p{N}"]),
    ],
)  # fmt: skip
def test_patterns_of_models_are_recognized(family: str, patterns: list[str]) -> None:
    found = recognize(splits(patterns), [])
    assert found is not None
    assert found.family == family


@pytest.mark.parametrize(
    ("pre_tokenizer", "name"),
    [
        (GPT2_SPLITTING, "gpt-2"),
        (
            {
                "type": "Sequence",
                "pretokenizers": [{"type": "Digits", "individual_digits": True}, GPT2_SPLITTING],
            },
            "starcoder",
        ),
        (
            {
                "type": "Sequence",
                "pretokenizers": [
                    {"type": "Punctuation", "behavior": "Contiguous"},
                    GPT2_SPLITTING,
                    {"type": "Digits", "individual_digits": False},
                    *splits(["[0-9][0-9][0-9]"])["pretokenizers"][:1],
                ],
            },
            "falcon",
        ),
    ],
)  # fmt: skip
def test_pre_tokenizers_that_are_no_patterns_are_recognized(pre_tokenizer: dict[str, Any], name: str) -> None:
    assert import_tokenizer(document(pre_tokenizer=pre_tokenizer)).pre == name


def test_name_in_a_family_follows_the_flags() -> None:
    llama = splits(oniguruma(one_of_each()["llama-bpe"]))
    assert import_tokenizer(document(pre_tokenizer=llama, model={"ignore_merges": True})).pre == "llama-bpe"
    assert import_tokenizer(document(pre_tokenizer=llama)).pre in ("dbrx", "smaug-bpe")
    keep = {"clean_up_tokenization_spaces": False}
    starcoder = splits(oniguruma(one_of_each()["starcoder"]))
    assert import_tokenizer(document(pre_tokenizer=starcoder), keep).pre in ("command-r", "smollm")


@pytest.mark.slow
def test_unknown_splitting_is_refused_but_for_a_given_name() -> None:
    odd = document(pre_tokenizer=splits([r"[\s\S]"]))
    with pytest.raises(NotImportableError, match="pre=NAME takes one regardless"):
        import_tokenizer(odd)
    found = import_tokenizer(odd, pre="qwen2")
    assert (found.pre, found.recognized) == ("qwen2", None)
    with pytest.raises(NotImportableError, match=r"llama\.cpp knows no pre-tokenizer 'nothing'"):
        import_tokenizer(odd, pre="nothing")


def test_without_the_library_tokens_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    vocabulary = opened(GPT2)
    assert vocabulary is not None
    found = recognize(splits(["(?!)"]), {merge.replace(" ", "") for merge in vocabulary.merges})
    assert found is not None
    assert (found.family, found.how) == ("gpt-2", "tokens")


# ---- tokens, merges, ends -------------------------------------------------------------------------------


def test_tokens_and_types(tmp_path: Path) -> None:
    given = document()
    given["added_tokens"][1]["id"] = 260
    tok = loaded(pack(import_tokenizer(given).metadata), tmp_path)
    assert tok.vocab_size == 261
    assert [tok.id_to_token(index) for index in range(256, 261)] == [
        "ab",
        "<s>",
        "[PAD258]",
        "[PAD259]",
        "<tool>",
    ]
    assert list(map(tok.token_attributes, range(256, 261))) == [NORMAL, CONTROL, UNUSED, UNUSED, USER_DEFINED]


@pytest.mark.parametrize("merges", [["a b"], [["a", "b"]]])
def test_merges_of_both_forms(merges: list[Any]) -> None:
    assert import_tokenizer(document(model={"merges": merges})).metadata["tokenizer.ggml.merges"] == ["a b"]


def test_of_equal_merges_the_last_counts_as_in_the_library(tmp_path: Path) -> None:
    vocab = {token: index for index, token in enumerate([*BYTE_CHARS, "ab", "bc"])}
    given = document(model={"vocab": vocab, "merges": ["a b", "b c", "a b"]}, added_tokens=[])
    library = tokenizers.Tokenizer.from_str(json.dumps({"version": "1.0", **given}))
    tok = loaded(pack(import_tokenizer(given).metadata), tmp_path)
    assert tok.encode("abc") == library.encode("abc").ids == [vocab["a"], vocab["bc"]]


def test_vocabulary_without_merges_loads(tmp_path: Path) -> None:
    given = document(model={"vocab": {token: index for index, token in enumerate(BYTE_CHARS)}, "merges": []})
    given["added_tokens"] = []
    tok = loaded(pack(import_tokenizer(given).metadata), tmp_path)
    assert len(tok.encode("abc")) == 3


TEMPLATE = {
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [],
    "special_tokens": {"<s>": {"id": "<s>", "ids": [257], "tokens": ["<s>"]}},
}
BOTH = {**TEMPLATE, "single": [*TEMPLATE["single"], {"SpecialToken": {"id": "<s>", "type_id": 0}}]}  # type: ignore[misc]
TWO_BEFORE = {**TEMPLATE, "single": [TEMPLATE["single"][0], *TEMPLATE["single"]]}  # type: ignore[index, misc]
ROBERTA = {"type": "RobertaProcessing", "sep": ["<tool>", 258], "cls": ["<s>", 257], "trim_offsets": True}


@pytest.mark.parametrize(
    ("processor", "before", "after"),
    [
        (None, [], []),
        (NO_PATTERNS, [], []),
        (TEMPLATE, [257], []),
        (BOTH, [257], [257]),
        (ROBERTA, [257], [258]),
        ({"type": "Sequence", "processors": [NO_PATTERNS, TEMPLATE]}, [257], []),
    ],
)
def test_ends_are_those_of_the_post_processor(
    processor: Any, before: list[int], after: list[int], tmp_path: Path
) -> None:
    tok = loaded(pack(import_tokenizer(document(post_processor=processor)).metadata), tmp_path)
    assert tok.encode("ab") == [*before, 256, *after]


def test_configuration_names_special_tokens_and_chat_template() -> None:
    config = {
        "eos_token": {"content": "<s>"},
        "pad_token": "<tool>",
        "unk_token": None,
        "chat_template": "{{ x }}",
    }
    found = import_tokenizer(document(), config).metadata
    assert found["tokenizer.ggml.eos_token_id"] == 257
    assert found["tokenizer.ggml.padding_token_id"] == 258
    assert "tokenizer.ggml.unknown_token_id" not in found
    assert found["tokenizer.chat_template"] == "{{ x }}"


def test_raw_tokens_with_byte_fallback(tmp_path: Path) -> None:
    tokens = [*(f"<0x{byte:02X}>" for byte in range(256)), "▁", "a", "▁a", "<bos>"]
    flags = {"byte_encode": False, "escape_whitespaces": True}
    made = make_vocabulary(
        tokens,
        attributes={"<bos>": CONTROL, **dict.fromkeys(tokens[:256], BYTE)},
        merges=["▁ a"],
        pre="gemma4",
        model="gemma4",
        flags=flags,
        special_ids={"bos": 259},
        add_bos=True,
    )
    given = json.loads(to_tokenizer_json(made).files["tokenizer.json"])
    imported = import_tokenizer(given)
    assert imported.pre == "gemma4"
    tok = loaded(pack(imported.metadata), tmp_path)
    assert tok.encode("a aé") == [259, 257, 258, 0xC3, 0xA9]
    assert tok.token_attributes(5) == BYTE


# ---- what cannot be carried -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "limit"),
    [
        ({"normalizer": {"type": "NFC"}}, "normalizer"),
        ({"normalizer": {"type": "Sequence", "normalizers": [{"type": "Lowercase"}]}}, "normalizer"),
        ({"pre_tokenizer": {**GPT2_SPLITTING, "add_prefix_space": True}}, "add_prefix_space"),
        ({"model": {"dropout": 0.1}}, "dropout"),
        ({"model": {"merges": [["a", "b"], ["a b", "c"]]}}, "merges_with_spaces"),
        ({"model": {"ignore_merges": True, "merges": []}}, "ignore_merges"),
        ({"added_tokens": [{"id": 257, "content": "<m>", "special": True, "lstrip": True}]}, "lstrip"),
        ({"added_tokens": [{"id": 257, "content": "<m>", "special": True, "rstrip": True}]}, "rstrip"),
        ({"added_tokens": [{"id": 257, "content": "mm", "single_word": True}]}, "single_word"),
        ({"post_processor": TWO_BEFORE}, "more_than_one_end"),
    ],
)  # fmt: skip
def test_limits_are_told(changes: dict[str, Any], limit: str) -> None:
    assert names(import_tokenizer(document(**changes), {"eos_token": "<s>", "bos_token": "<s>"}).limits) >= {
        limit
    }
    assert limit not in names(import_tokenizer(document()).limits)


@pytest.mark.parametrize(
    ("text", "special", "others", "limit"),  # None: not an added token
    [
        ("<|endoftext|>", None, [], "found_in_texts"),  # RoBERTa
        ("<|fim_prefix|>", False, [], "made_control"),  # Qwen
        ("<｜fim▁begin｜>", False, [], "made_control"),  # DeepSeek
        ("<|im_end|>", False, [], "made_control"),
        ("<|message|>", True, [], "always_shown"),  # gpt-oss
        ("<|end|>", True, ["<|call|>", "<|return|>"], "always_shown"),
        ("</s>", True, ["<|tool_response>"], "not_found"),  # Gemma 4
        ("<|end|>", True, ["<|call|>"], None),
        ("<|im_end|>", True, [], None),
        ("<tool>", False, [], None),
    ],
)
def test_types_that_follow_from_texts_are_told(
    text: str, special: bool | None, others: list[str], limit: str | None, tmp_path: Path
) -> None:
    vocab = {token: index for index, token in enumerate([*BYTE_CHARS, "ab", text, *others])}
    kinds = {**dict.fromkeys(others, True), **({} if special is None else {text: special})}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    added = [{"id": vocab[each], "content": each, "special": kind} | flags for each, kind in kinds.items()]
    file = document(model={"vocab": vocab}, added_tokens=added)
    imported = import_tokenizer(file)
    told = {"made_control", "always_shown", "not_found", "found_in_texts"}
    assert names(imported.limits) & told == ({limit} - {None})
    ours, library = loaded(pack(imported.metadata), tmp_path), tokenizers.Tokenizer.from_str(json.dumps(file))
    same = []
    for parse_special in (False, True):
        library.encode_special_tokens = not parse_special
        theirs = library.encode(text, add_special_tokens=False).ids
        same.append(ours.encode(text, add_special=False, parse_special=parse_special) == theirs)
    assert all(same) is (limit is None)


def test_bytes_without_tokens_are_told() -> None:
    vocab = {token: index for index, token in enumerate(BYTE_CHARS[:200])}
    given = document(model={"vocab": vocab, "merges": []}, added_tokens=[])
    assert names(import_tokenizer(given).limits) >= {"bytes_without_tokens"}


def test_mask_that_strips_is_carried_by_a_name(tmp_path: Path) -> None:
    mask = {"id": 257, "content": "<mask>", "special": True, "lstrip": True, "normalized": False}
    imported = import_tokenizer(document(added_tokens=[mask]))
    assert "lstrip" not in names(imported.limits)
    assert loaded(pack(imported.metadata), tmp_path).encode("a  <mask>") == [97, 257]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"model": {"type": "WordLevel"}}, "the model is 'WordLevel', which llama.cpp does not have"),
        ({"model": {"type": "Unigram"}}, "this is not how the vocabulary of a Unigram model is written"),
        ({"model": {"vocab": None}}, "no model with a vocabulary"),
        ({"model": {"vocab": {}, "merges": []}, "added_tokens": []}, "the file has no tokens"),
        ({"model": {"vocab": {"a": -1}}}, "are not all numbers from 0 up"),
        ({"model": {"end_of_word_suffix": "</w>"}}, "end_of_word_suffix '</w>'"),
        ({"model": {"merges": ["a b c"]}}, "a merge is 'a b c', not two tokens"),
        ({"added_tokens": [{"id": 5, "content": "<s>"}]}, "two tokens have the id 5"),
        ({"added_tokens": [{"id": 257, "content": "ab"}]}, "two ids have the token 'ab'"),
        ({"added_tokens": [{"id": 257, "content": "a\0"}]}, "has a NUL"),
        ({"added_tokens": [{"id": 1 << 40, "content": "x"}]}, "ids up to"),
        ({"added_tokens": [{"content": "x"}]}, "each has content and id"),
        ({"post_processor": {**ROBERTA, "cls": ["<s>", 999]}}, "the post-processor adds '999'"),
        ({"model": {"vocab": {"\ud800": 0}, "merges": []}, "added_tokens": []}, "has a lone surrogate"),
        ({"pre_tokenizer": {"type": "Whitespace"}}, "neither bytes nor characters"),
        ({"pre_tokenizer": None, "normalizer": {"type": "ByteLevel"}}, "before the text is split"),
    ],
)
def test_refused(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(NotImportableError, match=problem.replace("(", r"\(")):
        import_tokenizer(document(**changes))


def test_known_differences_of_splitting_are_told() -> None:
    """ſ after an apostrophe is a contraction in the file's pattern, and none in llama.cpp."""
    original = import_tokenizer(document(pre_tokenizer=splits([rf"{CONTRACTION}|{WORD}|\p{{N}}|{TAIL}"])))
    assert original.pre == "qwen2"
    assert names(original.limits) >= {"splitting", "newer_unicode"}
    exact = import_tokenizer(document(pre_tokenizer=splits(oniguruma(one_of_each()["qwen2"]))))
    assert not names(exact.limits) & {"splitting", "newer_unicode"}


def test_known_differences_of_splitting_are_of_recognizable_families() -> None:
    assert set(DIFFERENCES) <= set(one_of_each())


def test_chat_templates_with_names() -> None:
    templates = [
        {"name": "tool_use", "template": "t"},
        {"name": "default", "template": "d"},
        {"name": "a-b", "template": "x"},
        {"name": "日本", "template": "j"},
    ]
    found = import_tokenizer(document(), {"chat_template": templates})
    assert {key: text for key, text in found.metadata.items() if "chat_template" in key} == {
        "tokenizer.chat_template": "d",
        "tokenizer.chat_template.tool_use": "t",
        "tokenizer.chat_template.a_b": "x",
        "tokenizer.chat_template.__": "j",
        "tokenizer.chat_templates": ["tool_use", "a_b", "__"],
    }
    assert "chat_template" not in names(found.limits)
    assert "chat_template" in names(import_tokenizer(document(), {"chat_template": 7}).limits)


def test_named_chat_templates_are_those_of_gguf_py(tmp_path: Path) -> None:
    templates = [{"name": name, "template": name} for name in ("tool-use", "default", "é.1", "x", "tool_use")]
    writer = GGUFWriter(None, "llama")
    writer.add_chat_template(templates)
    theirs = {key: field.value for key, field in writer.kv_data[0].items() if "chat_template" in key}
    found = import_tokenizer(document(), {"chat_template": templates})
    ours = {key: value for key, value in found.metadata.items() if "chat_template" in key}
    names_key = "tokenizer.chat_templates"  # in gguf-py a set
    assert set(ours.pop(names_key)) == set(theirs.pop(names_key))
    assert ours == theirs
    assert [limit.what for limit in found.limits if limit.name == "chat_template"] == [
        "the chat templates 'tool-use', 'tool_use' have the same key, tokenizer.chat_template.tool_use: the last "
        "is kept"
    ]


SETTINGS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "as in the file": ({"bos_token": "<s>", "add_bos_token": True, "add_eos_token": False}, []),
    "another flag": (
        {"add_bos_token": False},
        [
            "tokenizer_config.json has add_bos_token = false, but tokenizer.json adds BOS, and that is what is imported"
        ],
    ),
    "a flag that nothing follows": (
        {"add_eos_token": True},
        [
            "tokenizer_config.json has add_eos_token = true, but tokenizer.json does not add EOS, and that is what is "
            "imported"
        ],
    ),
    "another token": (
        {"bos_token": "ab"},
        ["the settings name 'ab' as BOS, and '<s>' is taken: tokenizer.json says so"],
    ),
    "no token": (
        {"eos_token": "<nope>"},
        ["the settings name '<nope>' as EOS, and no token is taken: there is no such token"],
    ),
    "other tokens": (
        {"additional_special_tokens": ["<s>", "<x>"], "extra_special_tokens": ["<y>", {"content": "<x>"}]},
        ["'<x>', '<y>' are special tokens of the settings, and not taken: the vocabulary lacks them"],
    ),
    "a token with a name of its own": (
        {"extra_special_tokens": {"image_token": "<image>"}},
        ["'<image>' is a special token of the settings, and not taken: the vocabulary lacks it"],
    ),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_that_the_file_contradicts_are_told(name: str) -> None:
    config, told = SETTINGS[name]
    adds_bos = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}],
        "special_tokens": {"<s>": {"ids": [257]}},
    }
    found = import_tokenizer(document(post_processor=adds_bos), config)
    assert [limit.what for limit in found.limits if limit.name == "settings"] == told


def test_chat_templates_there_and_back(tmp_path: Path) -> None:
    templates = {"": "d", "tool_use": "t", "rag": "r"}
    export = to_tokenizer_json(make_vocabulary([*BYTE_CHARS]), templates)
    imported = import_tokenizer(*(json.loads(data) for data in export.files.values()))
    assert loaded(pack(imported.metadata), tmp_path).chat_templates == templates


def test_file_that_the_library_trained(tmp_path: Path) -> None:
    """Made by the library itself, from its own trainer."""
    library = tokenizers.Tokenizer(tokenizers.models.BPE())
    library.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    texts = [data.decode("utf-8", "replace") for data in fixture_texts()]
    library.train_from_iterator(texts, trainer)
    tok = loaded(pack(import_tokenizer(json.loads(library.to_str())).metadata), tmp_path)
    assert tok.pre == "gpt-2"
    ascii_texts = [text for text in texts if text.isascii() and "\x1c" not in text]
    assert len(ascii_texts) > 100
    assert [tok.encode(text, add_special=False) for text in ascii_texts] == [
        library.encode(text).ids for text in ascii_texts
    ]


@pytest.mark.slow
def test_no_broken_file_is_a_defect() -> None:
    """Whatever is wrong in a file: it is imported, or refused in words."""
    dice = random.Random(1)
    given = document(post_processor=TEMPLATE, normalizer={"type": "NFC"})
    refused = 0
    for _ in range(600):
        try:
            pack(import_tokenizer(mutations(given, dice), mutations({"eos_token": "<s>"}, dice)).metadata)
        except NotImportableError:
            refused += 1
    assert 50 < refused < 600


# ---- the command ----------------------------------------------------------------------------------------


def run(*arguments: object) -> int:
    return main(["import", *map(str, arguments)])


def written(folder: Path, **changes: Any) -> Path:
    path = folder / "tokenizer.json"
    path.write_text(json.dumps({"version": "1.0", **document(**changes)}), encoding="utf-8")
    return path


@pytest.mark.slow
def test_command_imports_a_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text('{"eos_token": "<s>", "bos_token": "<s>"}')
    assert run(tmp_path, "-o", tmp_path / "v.gguf") == 0
    output = capsys.readouterr().out
    assert "pre-tokenizer: gpt-2 (its patterns are known, word for word)" in output
    assert "limit: characters that came after Unicode 15.1" in output
    assert "tokenizers 0" in output
    tok = loaded((tmp_path / "v.gguf").read_bytes(), tmp_path)
    assert (tok.eos_id, tok.vocabulary.architecture) == (257, "llama")
    assert run(tmp_path, "-o", tmp_path / "v.gguf") == 2
    assert "already exists" in capsys.readouterr().err


def test_command_tells_what_differs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ggufbpe.analysis.conversion.parity._characters", lambda: list(range(9, 128)))
    path = written(tmp_path, normalizer={"type": "Lowercase"})
    (tmp_path / "sample.txt").write_text("AB\n")
    options = (
        "--pre",
        "qwen2",
        "--name",
        "A name",
        "--architecture",
        "qwen2",
        "--sample",
        tmp_path / "sample.txt",
    )
    assert run(path, "-o", tmp_path / "v.gguf", *options) == 0  # a limit says why
    output = capsys.readouterr().out
    assert "pre-tokenizer: qwen2 (as given)" in output
    assert "limit: the normalizer Lowercase changes texts" in output
    assert "ids differ in" in output
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GGUFWarning)
        tok = Tokenizer.from_gguf(tmp_path / "v.gguf")
    assert (tok.pre, tok.vocabulary.name, tok.vocabulary.architecture) == ("qwen2", "A name", "qwen2")


def test_command_writes_to_standard_output(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert run(written(tmp_path), "-o", "-", "--no-check") == 0
    assert capfdbinary.readouterr().out == pack(import_tokenizer(document()).metadata)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "is not JSON"),
        ("GGUF", "is a GGUF already"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "has no JSON object"),
        ("{}", "no model with a vocabulary"),
    ],
)
def test_command_refuses_what_is_no_tokenizer_json(
    content: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(content)
    assert run(path, "-o", tmp_path / "v.gguf") == 2
    said = capsys.readouterr().err
    assert problem in said
    assert said.count(str(path)) == 1
    assert not (tmp_path / "v.gguf").exists()


def test_command_says_when_the_library_is_not_installed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    assert run(written(tmp_path), "-o", tmp_path / "v.gguf") == 0
    assert (
        "not checked: a comparison of ids takes the package tokenizers: pip install"
        in capsys.readouterr().out
    )
