"""tokenizer_config.json: what is written, and what is read back."""

from __future__ import annotations

from typing import Any

import pytest
from synthetic import make_vocabulary

from ggufbpe.convert.exporters.hf_config import HFConfig, looks_special, tokenizer_config, types_told
from ggufbpe.convert.imported import NotImportableError
from ggufbpe.gguf.constants import TokenType
from ggufbpe.models.vocabulary import BYTE, CONTROL, UNUSED, USER_DEFINED

VOCABULARY = make_vocabulary(
    ["<s>", "</s>", "<u>", "<0x41>", "old", "a"],
    attributes={"<s>": CONTROL, "</s>": CONTROL, "<u>": USER_DEFINED, "<0x41>": BYTE, "old": UNUSED},
    special_ids={"bos": 0, "eos": 1},
    add_bos=True,
    architecture="llama",
    name="Small",
)


def test_written() -> None:
    told = types_told(VOCABULARY, tells_bytes=True)
    assert told == [
        *(TokenType.CONTROL, TokenType.CONTROL, TokenType.USER_DEFINED),
        *(TokenType.BYTE, TokenType.NORMAL, TokenType.NORMAL),
    ]
    config = tokenizer_config(VOCABULARY, "{{ template }}", told, {5: -1.5, 3: float("-inf")})
    gguf = config.pop("gguf")
    assert config == {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<s>",
        "eos_token": "</s>",
        "add_bos_token": True,
        "add_eos_token": False,
        "clean_up_tokenization_spaces": True,
        "chat_template": "{{ template }}",
    }
    assert gguf["general.architecture"] == "llama"
    assert gguf["tokenizer.ggml.bos_token_id"] == 0
    assert gguf["token_types"] == {str(int(TokenType.UNUSED)): [4]}  # what tokenizer.json does not tell
    assert gguf["scores"] == {"-1.5": [5], "-inf": [3]}


def test_what_is_written_is_read_back() -> None:
    told = types_told(VOCABULARY, tells_bytes=False)
    config = HFConfig(tokenizer_config(VOCABULARY, "{{ template }}", told, {5: -1.5, 3: float("-inf")}))
    types = list(map(int, told))
    config.set_types(types)
    assert types == [3, 3, 4, 6, 5, 1]
    assert config.written_scores(6) == {5: -1.5, 3: float("-inf")}
    assert dict(config.written_ids((), 6))["tokenizer.ggml.eos_token_id"] == 1
    assert config.text("general.name") == "Small"
    assert config.flag("tokenizer.ggml.add_bos_token") is True
    assert config.flag("general.name") is None
    assert (config.token("bos"), config.chat_template) == ("<s>", "{{ template }}")


def test_a_type_that_llama_cpp_does_not_know_is_read_back() -> None:
    unknown = VOCABULARY._replace(attributes=[0] * len(VOCABULARY.attributes))
    told = types_told(unknown, tells_bytes=False)
    types = list(map(int, told))
    HFConfig(tokenizer_config(unknown, None, told)).set_types(types)
    assert types == [0] * len(types)


TOKENS: list[tuple[dict[str, Any], dict[str, Any], str, str]] = [
    ({"bos_token": "<a>"}, {"bos_token": "<b>"}, "bos", "<a>"),
    ({"bos_token": {"content": "<a>"}}, {}, "bos", "<a>"),
    ({}, {"eos_token": "<b>"}, "eos", "<b>"),
    ({"cls_token": "[CLS]"}, {}, "bos", "[CLS]"),
    ({"sep_token": "[SEP]", "eos_token": ""}, {}, "eos", "[SEP]"),
    ({"cls_token": "[CLS]", "gguf": {"x": 1}}, {}, "bos", ""),  # an export says what it has
]


@pytest.mark.parametrize(("config", "named", "name", "token"), TOKENS)
def test_token(config: dict[str, Any], named: dict[str, Any], name: str, token: str) -> None:
    assert HFConfig(config, named).token(name) == token


def test_added_and_named_tokens() -> None:
    config = HFConfig(
        {
            "added_tokens_decoder": {
                "7": {"content": "<|x|>"},
                "8": {"content": "▁plain"},
                "9": {"content": "s", "special": True},
            },
            "additional_special_tokens": ["<e>", {"content": "<f>"}],
            "unk_token": "<unk>",
        },
        added={"early": 3},
    )
    assert list(config.added_tokens()) == [
        (3, "early", TokenType.USER_DEFINED),
        (7, "<|x|>", TokenType.CONTROL),
        (8, " plain", TokenType.USER_DEFINED),
        (9, "s", TokenType.CONTROL),
    ]
    assert list(config.named_tokens()) == ["<unk>", "<e>", "<f>"]
    assert not config.is_empty
    assert HFConfig({}).is_empty
    assert config.with_defaults({"unk_token": "x", "pad_token": "<pad>"}).token("pad") == "<pad>"
    assert config.with_config({"unk_token": "x"}).token("unk") == "x"


TEMPLATES: list[tuple[Any, dict[str, str], int]] = [
    ("d", {"": "d"}, 0),
    (
        [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}],
        {"tool_use": "t", "": "d"},
        0,
    ),
    ([{"name": "tool_use", "template": "t"}], {"tool_use": "t"}, 0),
    ([{"name": "tool_use", "template": 1}, {"template": "d"}, "x", {"name": "", "template": "d"}], {}, 4),
    (None, {}, 0),
    (7, {}, 1),
]


@pytest.mark.parametrize(("given", "templates", "lost"), TEMPLATES)
def test_chat_templates_by_name(given: Any, templates: dict[str, str], lost: int) -> None:
    config = HFConfig({"chat_template": given})
    assert (config.chat_templates, config.lost_templates) == (templates, lost)
    assert config.chat_template == templates.get("")


REFUSED: dict[str, Any] = {
    "has '9' for tokenizer.ggml.bos_token_id": lambda: list(
        HFConfig({"gguf": {"tokenizer.ggml.bos_token_id": 9}}).written_ids((), 9)
    ),
    "has a type for 9": lambda: HFConfig({"gguf": {"token_types": {"3": [9]}}}).set_types([1]),
    "has the token type '99', which does not exist": lambda: HFConfig(
        {"gguf": {"token_types": {"99": [0]}}}
    ).set_types([1]),
    "has the token type '1099511627776', which does not exist": lambda: HFConfig(
        {"gguf": {"token_types": {"1099511627776": [0]}}}
    ).set_types([1]),
    "has a score for '9'": lambda: HFConfig({"gguf": {"scores": {"1": [9]}}}).written_scores(9),
    "has the score 'nan'": lambda: HFConfig({"gguf": {"scores": {"nan": [0]}}}).written_scores(9),
    "has the score '1e39'": lambda: HFConfig({"gguf": {"scores": {"1e39": [0]}}}).written_scores(9),
    "has the id 'x'": lambda: list(HFConfig({}, added={"a": "x"}).added_tokens()),
}


@pytest.mark.parametrize("message", REFUSED)
def test_refused(message: str) -> None:
    with pytest.raises(NotImportableError) as refusal:
        REFUSED[message]()
    assert message in str(refusal.value)


def test_looks_special() -> None:
    texts = ["<pad>", "<|x|>", "<｜x｜>", "<unused7>", "[@BOS@]", "<x>", "<|x", "unused"]
    assert list(map(looks_special, texts)) == [True] * 5 + [False] * 3
