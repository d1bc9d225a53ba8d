"""The doctor finds each defect first, in what is otherwise a real vocabulary, and none in unharmed models."""

from __future__ import annotations

import ast
import contextlib
import json
import re
import shutil
import sys
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from conftest import GPT2, ROOT, UNIGRAM, missing
from mending import COMMAND, FIXTURES, done, fixes_that_fail
from real_vocabularies import cached
from reference import with_pre, write_metadata

from ggufbpe import ChatError, GGUFError, Tokenizer, diff
from ggufbpe.analysis.doctor import checks
from ggufbpe.analysis.doctor.examination import doctor
from ggufbpe.analysis.doctor.facts import Facts
from ggufbpe.analysis.doctor.finding import Finding
from ggufbpe.analysis.doctor.fix import write_fixed
from ggufbpe.analysis.doctor.sample_prompts import CHATS
from ggufbpe.analysis.doctor.token_checks import FILLER
from ggufbpe.chat.known_templates import known_template, known_templates
from ggufbpe.cli import main
from ggufbpe.gguf.constants import GGUFValueType, TokenizerKey, TokenType
from ggufbpe.gguf.edit_arguments import parse_set
from ggufbpe.gguf.reader import GGUFFile
from ggufbpe.models.bpe.merge import parts
from ggufbpe.models.charsmap import Charsmap
from ggufbpe.models.known_families import KNOWN_FAMILIES, KnownFamily, family_of_names, family_of_tokens
from ggufbpe.models.loading import load_vocabulary
from ggufbpe.models.pretokenizers.families import allows_feature, evidence, families, tied
from ggufbpe.models.pretokenizers.hf_splitting import DIFFERENCES
from ggufbpe.models.pretokenizers.pretokenizer_evidence import CUT_BY, FEATURES, telltales
from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS, one_of_each
from ggufbpe.models.pretokenizers.splitter import splitter
from ggufbpe.models.vocabulary import USER_DEFINED

pytestmark = pytest.mark.tries_fixes

K = TokenizerKey
T = GGUFValueType
NORMAL, CONTROL, UNUSED = (int(kind) for kind in (TokenType.NORMAL, TokenType.CONTROL, TokenType.UNUSED))
USER_DEFINED_TYPE = int(TokenType.USER_DEFINED)
Keys = dict[str, Any]

# Every BPE vocabulary of llama.cpp, and the family that its model's own tokenizer has. Two have no `pre`.
FAMILY_OF = {
    **dict.fromkeys(("gpt-2", "gpt-neox", "mpt", "aquila"), "gpt-2"),
    **dict.fromkeys(("starcoder", "refact", "command-r"), "starcoder"),
    **{name: name for name in ("llama-bpe", "qwen2", "qwen35", "falcon", "deepseek-coder", "deepseek-llm")},
    "gemma-4": "gemma4",
}
OTHERS = ("baichuan", "bert-bge", "llama-spm", "nomic-bert-moe", "phi-3")


def read(path: Path) -> Keys:
    with GGUFFile(path) as file:
        return {key: file[key] for key in file}


@cache
def trained() -> Keys:
    """GPT-2's vocabulary as it was after 3,000 merges, with three special tokens: real, and quick to examine."""
    keys = read(GPT2)
    merges = keys[K.MERGES][:3000]
    tokens = [*keys[K.LIST][: 256 + len(merges)], "<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    assert set(map("".join, map(parts, merges))) <= set(tokens)
    return {
        "general.architecture": "gpt2",
        K.MODEL: "gpt2",
        K.PRE: "gpt-2",
        K.LIST: tokens,
        K.TOKEN_TYPE: [NORMAL] * (len(tokens) - 3) + [CONTROL] * 3,
        K.MERGES: merges,
        K.BOS_ID: len(tokens) - 3,
        K.EOS_ID: len(tokens) - 1,
    }


def with_tokens(*texts: str, kind: int = NORMAL, **keys: Any) -> Keys:
    """Changes that add tokens of a type, and set other keys (`merges`, `eos_token_id` …)."""
    base = trained()
    tokens, types = [*base[K.LIST], *texts], [*base[K.TOKEN_TYPE], *[kind] * len(texts)]
    return {K.LIST: tokens, K.TOKEN_TYPE: types, **{f"tokenizer.ggml.{name}": v for name, v in keys.items()}}


def exchanged(*texts: str) -> Keys:
    """Changes by which each token has the id of the one before, and the first that of the last."""
    after = dict(zip(texts, (*texts[1:], texts[0])))
    return {K.LIST: [after.get(token, token) for token in trained()[K.LIST]]}


def without_token(text: str) -> Keys:
    """Changes that put another text, which nothing needs, in the place of a token."""
    return {
        K.LIST: ["<gone>" if token == text else token for token in trained()[K.LIST]],
        **with_type(UNUSED, text),
    }


def with_type(kind: int, *texts: str) -> Keys:
    types = [
        kind if token in texts else old for token, old in zip(trained()[K.LIST], trained()[K.TOKEN_TYPE])
    ]
    return {K.TOKEN_TYPE: types}


def size() -> int:
    return len(trained()[K.LIST])


def template(text: str, **keys: Any) -> Keys:
    return {K.CHAT_TEMPLATE: text, **{f"tokenizer.ggml.{name}": value for name, value in keys.items()}}


HARMLESS = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
QWEN = known_template("Qwen-Qwen3-0.6B")


def named(model: str, source: str) -> Keys:
    """Changes that name the model, and give it a template."""
    return {"general.name": model, **template(source)}


def refusing(condition: str) -> str:
    """The harmless template, which refuses some chats."""
    return f"{{% if {condition} %}}{{{{ raise_exception('not so') }}}}{{% endif %}}" + HARMLESS


def without_ends(source: str) -> Keys:
    """Changes that leave a vocabulary without a token that ends a generation by its text."""
    return {**template(source), K.LIST: [*trained()[K.LIST][:-3], "<a>", "<b>", "<c>"]}


# Defect: the finding that must come first, its severity, and the changes that make it; the value None removes a key.
DEFECTS: dict[str, tuple[str, str, Callable[[], Keys]]] = {
    "no pre": ("pre_missing", "warning", lambda: {K.PRE: None}),
    "pre default": ("pre_default", "warning", lambda: {K.PRE: "default"}),
    "pre empty": ("pre_missing", "warning", lambda: {K.PRE: ""}),
    "pre unknown": ("pre_unknown", "error", lambda: {K.PRE: "gpt-22"}),
    "flag of another type": ("wrong_type", "error", lambda: {K.ADD_BOS: 1}),
    "merges of another type": ("wrong_type", "error", lambda: {K.MERGES: [1, 2]}),
    "duplicate token": ("duplicate_tokens", "error", lambda: with_tokens("Ġthe")),
    "empty tokens": ("empty_tokens", "warning", lambda: with_tokens("", "", kind=UNUSED)),
    "too few types": ("types_length", "error", lambda: {K.TOKEN_TYPE: trained()[K.TOKEN_TYPE][:-1]}),
    "too many types": ("types_length", "warning", lambda: {K.TOKEN_TYPE: [*trained()[K.TOKEN_TYPE], NORMAL]}),
    "too few scores": ("scores_length", "error", lambda: {K.SCORES: [0.0] * 7}),
    "no types": ("types_missing", "warning", lambda: {K.TOKEN_TYPE: None}),
    "type of no meaning": ("type_unknown", "warning", lambda: with_tokens("<qqq>", kind=9)),
    "no merges": ("missing_key", "error", lambda: {K.MERGES: None}),
    "no tokens": ("missing_key", "error", lambda: {K.LIST: None}),
    "no model": ("missing_key", "error", lambda: {K.MODEL: None}),
    "not UTF-8": ("invalid_utf8", "error", lambda: {K.LIST: [*trained()[K.LIST][:-1], b"a\xff"]}),
    "EOS out of range": ("special_id_out_of_range", "error", lambda: {K.EOS_ID: size()}),
    "PAD out of range": ("special_id_out_of_range", "error", lambda: {K.PAD_ID: 2**32 - 1}),
    "EOS missing": ("special_id_missing", "warning", lambda: {K.EOS_ID: None}),
    "BOS wanted but missing": (
        "special_id_wanted",
        "error",
        lambda: {K.PRE: "chatglm-bpe", K.BOS_ID: None, K.ADD_BOS: True},
    ),
    "EOS a normal token": ("special_id_is_normal", "warning", lambda: {K.EOS_ID: 262}),
    "EOS outside the set": (
        "eos_not_end_of_generation",
        "warning",
        lambda: with_tokens("</s>", "<|tool_response>", kind=CONTROL, eos_token_id=size()),
    ),
    "control token of type normal": ("control_type", "warning", lambda: with_type(NORMAL, "<|im_start|>")),
    "a word of type control": ("word_type", "warning", lambda: with_type(CONTROL, "Ġthe")),
    "a word of type unused": ("word_type", "warning", lambda: with_type(UNUSED, "Ġthe")),
    "a word of type user-defined": ("word_type", "note", lambda: with_type(USER_DEFINED_TYPE, "Ġthe")),
    "an added word of type control": (
        "word_type",
        "warning",
        lambda: with_tokens("Section 5A", kind=CONTROL),
    ),
    "a chat model without template": (
        "template_missing",
        "warning",
        lambda: {"general.name": "Mine 7b chat"},
    ),
    "an embedding without EOS": ("eos_not_added", "note", lambda: {"gpt2.pooling_type": 3}),
    "marker of no token": ("chat_marker", "warning", lambda: template(HARMLESS + "<|start_header_id|>")),
    "marker whose token is misspelt": (
        "chat_marker",
        "warning",
        lambda: (
            template(HARMLESS)
            | {K.LIST: ["<|imend|>" if token == "<|im_end|>" else token for token in trained()[K.LIST]]}
        ),
    ),
    "marker of Llama 2": ("chat_marker", "note", lambda: template(HARMLESS + "[INST]")),
    "marker that usual chats have not": (
        "chat_marker",
        "note",
        lambda: template(HARMLESS + "{% if images %}<|image|>{% endif %}"),
    ),
    "marker put together": (
        "chat_marker",
        "warning",
        lambda: template("{% set m = '|>' %}{{ '<|begin' ~ m }}" + HARMLESS),
    ),
    "markers of no tokens": (
        "chat_marker",
        "warning",
        lambda: template(known_template("google-gemma-2-2b-it").source),
    ),
    "markers of type normal": (
        "control_type",
        "warning",
        lambda: {**with_tokens("<|turn>", "<turn|>"), **template("<|turn><turn|>" + HARMLESS)},
    ),
    "marker of type normal": (
        "control_type",
        "warning",
        lambda: {**with_tokens("<|turn>"), **template("<|turn>" + HARMLESS)},
    ),
    "marker of type unused": (
        "unused_marker",
        "warning",
        lambda: {**with_tokens("<call>", kind=UNUSED), **template("<call>" + HARMLESS)},
    ),
    "BOS of another model": ("chat_marker", "warning", lambda: template("{{ '<s>' }}" + HARMLESS)),
    "template not closed": ("template_error", "error", lambda: template("{% for message in messages %}")),
    "template with a byte order mark": ("template_bom", "warning", lambda: template("\ufeff" + HARMLESS)),
    "template escaped twice": (
        "template_escaped",
        "warning",
        lambda: template(HARMLESS.replace("\n", "\\n")),
    ),
    "settings as template": (
        "template_is_json",
        "error",
        lambda: template(json.dumps({"chat_template": HARMLESS})),
    ),
    "template that refuses all": ("template_error", "error", lambda: template(refusing("messages"))),
    "template of a known model not closed": (
        "template_error",
        "error",
        lambda: named("Qwen3 0.6B", QWEN.source[:-10]),
    ),
    "template without its markers not closed": (
        "template_error",
        "error",
        lambda: {**without_token("<|im_start|>"), **template("{% for message in messages %}")},
    ),
    "template for tools not closed": (
        "template_error",
        "warning",
        lambda: {**template(HARMLESS), f"{K.CHAT_TEMPLATE}.tool_use": "{% if"},
    ),
    "BOS twice elsewhere": (
        "bos_twice",
        "note",
        lambda: template("{{ bos_token }}" + HARMLESS, add_bos_token=True),
    ),
    "BOS twice elsewhere, spelt out": (
        "bos_twice",
        "note",
        lambda: template("<|endoftext|>" + HARMLESS, add_bos_token=True),
    ),
    "BOS twice": (
        "bos_twice",
        "warning",
        lambda: template("{{ ' ' + bos_token }}" + HARMLESS, add_bos_token=True),
    ),
    "BOS three times": (
        "bos_twice",
        "warning",
        lambda: template("{{ bos_token + bos_token }}" + HARMLESS, add_bos_token=True),
    ),
    "two kinds of BOS": (
        "bos_differs",
        "warning",
        lambda: {
            **with_tokens("<s>", kind=CONTROL),
            **template("{{ '<s>' }}" + HARMLESS, add_bos_token=True),
        },
    ),
    "turns that do not end": (
        "turn_end",
        "warning",
        lambda: {
            **with_tokens("<|turn_end|>", kind=CONTROL),
            **template(HARMLESS.replace("<|im_end|>", "<|turn_end|>")),
        },
    ),
    "turns that end with the next": (
        "turn_end",
        "note",
        lambda: {
            **with_tokens("<|user|>", "<|assistant|>", "<|system|>", "<|tool|>", kind=CONTROL),
            **template("{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}"),
        },
    ),
    "no end in template": (
        "eot_missing",
        "note",
        lambda: without_ends("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"),
    ),
    "no end in template, which the file has": (
        "end_not_written",
        "note",
        lambda: template("{% for m in messages %}{{ m.content }}\n{% endfor %}"),
    ),
    "refuses answers": ("chat_refused", "warning", lambda: template(refusing("messages|length > 2"))),
    "refuses the system": (
        "chat_refused",
        "note",
        lambda: template(
            refusing("'s' in messages[0].role and messages[0].content and not messages[0].role == 'user'")
        ),
    ),
    "refuses tools": ("chat_refused", "note", lambda: template(refusing("tools"))),
    "forgets all but the last message": (
        "message_lost",
        "warning",
        lambda: template("<|im_start|>{{ messages[-1].content }}<|im_end|>"),
    ),
    "does not begin the answer": (
        "answer_not_begun",
        "warning",
        lambda: template(HARMLESS.replace("add_generation_prompt", "false")),
    ),
    "forgets the system": (
        "message_lost",
        "note",
        lambda: template(
            "{% set first = messages[0].content ~ '' %}"
            + HARMLESS.replace("in messages", "in messages if message.role != 'system'")
        ),
    ),
    "a role that is no marker": (
        "chat_marker",
        "note",
        lambda: {
            **with_tokens("<|user|>", "<|assistant|>", kind=CONTROL),
            **template(
                "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|im_end|>{% endfor %}<|assistant|>"
            ),
        },
    ),
    "system's words are the user's": (
        "no_system_role",
        "note",
        lambda: template(HARMLESS.replace("in messages", "in messages if message.role != 'system'")),
    ),
    "no tools": ("tools_not_shown", "note", lambda: template(HARMLESS)),
    "template of the same name": (
        "template_differs",
        "warning",
        lambda: named("Qwen3-0.6B", QWEN.source.replace("<|im_end|>\\n", "<|im_end|>")),
    ),
    "template of the same name, other with tools": (
        "template_differs",
        "note",
        lambda: (
            named("qwen_qwen3 0.6b", QWEN.source.replace("# Tools", "# The tools"))
            | {"general.organization": "Qwen"}
        ),
    ),
    "template of a model like it": (
        "template_differs",
        "note",
        lambda: named("Qwen3 235B A22B", QWEN.source.replace("<|im_end|>\\n", "<|im_end|>")),
    ),
    "template of the model it was made from": (
        "template_differs",
        "note",
        lambda: named("Mine", HARMLESS) | {"general.base_model.0.name": "Qwen3 0.6B"},
    ),
    "merge of no tokens": (
        "merges_not_in_vocabulary",
        "warning",
        lambda: {K.MERGES: [*trained()[K.MERGES], "Ġq uuxx"]},
    ),
    "two tokens exchanged": ("exchanged_tokens", "warning", lambda: exchanged("Ġthe", "ation")),
    "merges twice": ("duplicate_merges", "note", lambda: {K.MERGES: [*trained()[K.MERGES], "Ġ t"]}),
    "many unreachable": (
        "unreachable_tokens",
        "warning",
        lambda: with_tokens(*(f"Ġq{number}zx" for number in range(100))),
    ),
    "many whole words": (
        "unreachable_tokens",
        "warning",
        lambda: {K.PRE: "tekken", K.MERGES: trained()[K.MERGES][:20]},
    ),
    "few unreachable": ("unreachable_tokens", "note", lambda: with_tokens("Ġqzxqzx")),
    "a byte without a token": ("bytes_missing", "warning", lambda: without_token("^")),
    "no control characters": ("bytes_missing", "note", lambda: without_token("ā")),
    "a letter that is never shown": ("word_type", "warning", lambda: with_type(UNUSED, "k")),
    "a word that is never shown": (
        *("round_trip", "warning"),
        lambda: with_tokens("Ġlazy", kind=UNUSED) | {K.PRE: "llama-bpe"},
    ),
    "padding": ("padding_tokens", "note", lambda: with_tokens("[PAD9]", "<dummy1>", kind=UNUSED)),
    "normal by type, control by name": ("made_control", "note", lambda: with_type(NORMAL, "<|im_end|>")),
    "splits otherwise": ("hf_splitting", "note", lambda: {K.PRE: "tekken"}),
}
# Findings that have no command; of those that otherwise have one, the defects.
WITHOUT_COMMAND = {
    *("bytes_missing", "duplicate_merges", "duplicate_tokens", "empty_tokens", "end_not_written"),
    *("eot_missing", "exchanged_tokens", "hf_splitting", "invalid_utf8", "merges_not_in_vocabulary"),
    *(
        "no merges",
        "no tokens",
        "no_system_role",
        "padding_tokens",
        "round_trip",
        "tools_not_shown",
        "types_length",
    ),
    *("unreachable_tokens", "merges of another type", "refuses the system", "refuses tools"),
    *("forgets the system", "template of a model like it", "template of the model it was made from"),
    *("BOS twice elsewhere", "BOS twice elsewhere, spelt out"),
}


SENTENCE = re.compile(r"(?:[A-Z]|llama\.cpp |tokenizer\.).{10,120}[^.:;]\.", re.DOTALL)


def found_in(path: Path) -> tuple[Finding, ...]:
    return doctor(path).findings


def quickly(path: Path) -> list[Finding]:
    """What the doctor finds, without the check of all merges, which takes long on real vocabularies."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "CHECKS", tuple(c for c in checks.CHECKS if c.__name__ != "unreachable"))
        return list(found_in(path))


def variant(tmp_path: Path, changes: Keys) -> Path:
    keys = {**trained(), **changes}
    return write_metadata(tmp_path / "model.gguf", {k: v for k, v in keys.items() if v is not None})


@pytest.mark.slow
@pytest.mark.parametrize("defect", DEFECTS)
def test_each_defect_is_the_first_finding(defect: str, tmp_path: Path) -> None:
    expected, severity, changes = DEFECTS[defect]
    findings = found_in(variant(tmp_path, changes()))
    first = findings[0]
    if defect in (
        "splits otherwise",
        "many whole words",
        "a word that is never shown",
    ):  # tekken cuts some of the tokens, which comes first
        assert first.id == "pre_doubtful"
        first = findings[1]
    assert (first.id, first.severity) == (expected, severity), findings
    assert bool(COMMAND.search(first.fix)) == WITHOUT_COMMAND.isdisjoint((expected, defect))
    assert all(finding.why and finding.fix and finding.where.key for finding in findings)
    assert [finding.what for finding in findings if not SENTENCE.fullmatch(finding.what)] == []


def test_every_finding_that_there_is_has_a_defect() -> None:
    """The table above is complete: each id in the source is expected by some test."""
    files = Path(checks.__file__).parent.glob("*.py")
    calls = [
        node for file in files for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)
    ]
    findings = [
        call.args[1] for call in calls if isinstance(call.func, ast.Name) and call.func.id == "Finding"
    ]
    ids = {node.value for node in findings if isinstance(node, ast.Constant)}
    tested = {expected for expected, _, _ in DEFECTS.values()} | {"not_bpe", "no_line_break", "clean_spaces"}
    tested |= {
        "template_not_run",
        "corrected",
        "eos_behind_prompts",
        "control_shown",
        "vocabulary_size",
        "byte_order",
    }
    tested |= {expected for _, expected, _, _ in OTHER_DEFECTS.values()}
    parts = checks.COMMON_CHECKS | checks.BYTE_PAIR_CHECKS | checks.CHECKS_OF_TOKENS
    assert parts <= {*checks.CHECKS}
    assert len(ids) > 24
    # pre_doubtful: on whole vocabularies, below
    assert not ids - tested, "DEFECTS and OTHER_DEFECTS lack them"


def test_a_tokenizer_that_is_not_supported_has_the_defects_that_all_can_have(tmp_path: Path) -> None:
    keys = {**with_tokens("Ġthe", "", "[PAD9]"), K.MODEL: "of tomorrow", K.EOS_ID: 10**6, K.ADD_BOS: 1}
    findings = found_in(variant(tmp_path, keys))
    assert ("not_bpe", "error") in [
        (each.id, each.severity) for each in findings
    ]  # llama.cpp refuses the file
    found = {each.id for each in findings}
    assert found >= {"wrong_type", "duplicate_tokens", "special_id_out_of_range", "padding_tokens"}
    assert found.isdisjoint(("bytes_missing", "unreachable_tokens"))
    known = found_in(variant(tmp_path, {K.MODEL: "test"}))
    assert ("not_bpe", "note") in [(each.id, each.severity) for each in known]


def test_without_any_merge_text_is_not_told_from_markers(tmp_path: Path) -> None:
    """As "<s>" of Qwen 2 is text, which merges make: types that cannot be known must not be set."""
    keys = {**with_tokens("<s>", "</s>"), K.MERGES: None}
    found = {each.id: each for each in found_in(variant(tmp_path, keys))}
    assert "control_type" not in found
    assert found["missing_key"].fix == "convert the model again"


@pytest.mark.parametrize("types", [None, [NORMAL] * 100_000], ids=["without types", "all normal"])
def test_where_merges_are_missing_only_bars_tell_markers(types: list[int] | None, tmp_path: Path) -> None:
    """As "<s>" of Qwen 2 is text, which merges make."""
    filler = [f"filler{number}" for number in range(500)]
    keys = with_tokens("<s>", *filler, "<|x|>")
    keys[K.TOKEN_TYPE] = types and types[: len(keys[K.LIST])]
    found = found_in(variant(tmp_path, keys))
    tokens = [str(keys[K.LIST].index(text)) for text in ("<s>", "<|x|>")]
    fixes = " ".join(each.fix for each in found if each.id in ("types_missing", "control_type"))
    assert [f"{token}=CONTROL" in fixes for token in tokens] == [False, True]


def test_the_harmless_variant_has_no_error_or_warning(tmp_path: Path) -> None:
    findings = found_in(variant(tmp_path, template(HARMLESS)))
    assert [finding.id for finding in findings] == ["tools_not_shown", "clean_spaces"]


@pytest.mark.parametrize(
    ("finding", "shown", "changes"),
    [
        ("duplicate_tokens", "is ' the', like", lambda: with_tokens("Ġthe")),
        (
            "special_id_is_normal",
            "' the', which is ordinary",
            lambda: {K.EOS_ID: trained()[K.LIST].index("Ġthe")},
        ),
        ("unreachable_tokens", "' 者\\xe8\\x00'", lambda: with_tokens("ĠèĢħèĀ")),
        ("merges_not_in_vocabulary", "' q' + 'ÿ', where ' q' is", lambda: {K.MERGES: ["Ġq Ã¿"]}),
        (
            "control_type",
            "'<｜end▁of｜>'",
            lambda: with_tokens("<｜end▁of｜>"),
        ),  # in no alphabet, so as it is
        ("control_type", "'<|\\ufe0f|>'", lambda: with_tokens("<|\ufe0f|>")),
    ],
)
def test_tokens_are_shown_decoded(
    finding: str, shown: str, changes: Callable[[], Keys], tmp_path: Path
) -> None:
    said = {found.id: found.what + found.evidence for found in doctor(variant(tmp_path, changes())).findings}
    assert shown in said[finding]


def test_findings_say_where(tmp_path: Path) -> None:
    path = variant(tmp_path, with_tokens("Ġthe"))
    where = found_in(path)[0].where
    assert where.key == K.LIST
    assert where.token == size()
    assert where.offset is not None
    assert path.read_bytes()[where.offset + 8 :].startswith("Ġthe".encode())


def test_several_defects_are_all_found(tmp_path: Path) -> None:
    """Opening stops at the first; the doctor does not."""
    changes = {**with_tokens("Ġthe", "Ġthe", "<|eot_id|>"), K.PRE: "nonsense", K.ADD_BOS: 1, K.EOS_ID: 10**6}
    found = {finding.id for finding in found_in(variant(tmp_path, changes)) if finding.severity == "error"}
    assert found == {"pre_unknown", "wrong_type", "duplicate_tokens", "special_id_out_of_range"}


def test_a_vocabulary_without_line_breaks(tmp_path: Path) -> None:
    ids = [finding.id for finding in found_in(variant(tmp_path, without_token("Ċ")))]
    assert {"bytes_missing", "no_line_break"} <= set(ids)


@pytest.mark.slow
def test_every_fix_for_a_fixture_is_taken_and_mends() -> None:
    count = 0
    for path in FIXTURES:
        number, failed = fixes_that_fail(path)
        assert failed == [], path.name
        count += number
    assert count > 100


def test_a_fix_that_does_not_mend_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What mending.py does around each test, which makes copies of all defects."""
    path = variant(tmp_path, {K.ADD_BOS: 1})
    assert fixes_that_fail(path) == (1, [])
    monkeypatch.setattr(Facts, "set", lambda self, key, value: self.command("--set", "general.name=x"))
    assert [failed.split(":")[0] for failed in fixes_that_fail(path)[1]] == ["doctor, wrong_type"]
    monkeypatch.setattr(Facts, "set", lambda self, key, value: self.command("--set", f"{key}=x"))
    assert fixes_that_fail(path) == (0, [])  # a change that `fix` refuses is not proposed in the first place


# A value of another type, and the one that its fix sets; None: the key is to be taken out, or nothing helps.
OTHER_TYPES: list[tuple[str, GGUFValueType, Any, object]] = [
    (K.ADD_BOS, T.FLOAT32, 1.0, True),
    (K.ADD_BOS, T.UINT8, 0, False),
    (K.ADD_BOS, T.STRING, "True", True),
    (K.ADD_BOS, T.FLOAT32, 0.5, None),
    (K.ADD_BOS, T.INT32, 2, None),
    (K.BOS_ID, T.FLOAT32, 7.0, 7),
    (K.BOS_ID, T.INT32, 7, 7),
    (K.BOS_ID, T.STRING, "7", 7),
    (K.BOS_ID, T.BOOL, True, None),
    (K.BOS_ID, T.FLOAT32, 7.5, None),
    (K.BOS_ID, T.FLOAT64, float("inf"), None),
    (K.BOS_ID, T.INT32, -1, None),
    (K.BOS_ID, T.UINT64, 2**63, None),
    (K.BOS_ID, T.INT32, 999_999, None),
    (K.BOS_ID, T.STRING, b"\xff", None),
    (K.ADD_BOS, T.STRING, b"\xff", None),
    (K.PRE, T.UINT32, 5, "gpt-2"),
    (K.CHAT_TEMPLATE, T.UINT32, 5, None),
    (K.SCORES, T.STRING, b"\xff", None),
    (K.TOKEN_TYPE, T.STRING, b"\xff", None),
    ("general.name", T.STRING, ["a"], None),
    ("general.architecture", T.UINT32, 5, None),
]


@pytest.mark.slow
@pytest.mark.parametrize(("key", "kind", "value", "fixed"), OTHER_TYPES)
def test_a_value_of_another_type(
    key: str, kind: GGUFValueType, value: Any, fixed: object, tmp_path: Path
) -> None:
    path = variant(tmp_path, {key: value if isinstance(value, list) else (value, kind)})
    first = found_in(path)[0]
    assert (first.id, first.where.key) == ("wrong_type", key)
    assert main(["doctor", str(path)]) == (first.severity == "error") == (key != K.CHAT_TEMPLATE)
    if fixed is not None:
        [command] = COMMAND.findall(first.fix)
        assert read(done(command, tmp_path) or path)[key] == fixed


NOT_UTF8 = {  # who cannot load a file with such bytes
    "pre": (K.PRE, b"\xff", "llama.cpp"),
    "a token": (K.LIST, [b"a\xff"], "ggufbpe"),
    "a merge": (K.MERGES, [b"a \xff"], "ggufbpe"),
    "the model's name": ("general.name", b"caf\xe9", "ggufbpe"),
}


@pytest.mark.parametrize(("key", "value", "who"), NOT_UTF8.values(), ids=NOT_UTF8)
def test_bytes_that_are_not_utf_8(key: str, value: Any, who: str, tmp_path: Path) -> None:
    found = found_in(variant(tmp_path, {key: value}))
    (finding,) = [finding for finding in found if finding.id == "invalid_utf8"]
    assert (finding.where.key, f"{who} cannot load" in finding.what) == (key, True)
    assert ("llama.cpp refuses" in finding.why) == (who == "llama.cpp")


@pytest.mark.parametrize(
    ("model", "key", "default"),
    [
        ("gpt2", K.BOS_ID, "uses the default, 11"),
        ("bert", K.BOS_ID, "uses the default, 101"),
        ("bert", K.EOS_ID, "then has none"),
        ("llama", K.UNK_ID, "uses the default, 0"),
        ("t5", K.EOS_ID, "uses the default, 1"),
        ("plamo2", K.PAD_ID, "uses the default, 3"),
        ("rwkv", K.EOS_ID, "then has none"),
    ],
)
def test_defaults_of_special_ids_are_those_of_the_tokenizer(
    model: str, key: str, default: str, tmp_path: Path
) -> None:
    path = variant(tmp_path, {K.MODEL: model, key: 999_999})
    [found] = [finding for finding in found_in(path) if finding.id == "special_id_out_of_range"]
    assert f"llama.cpp ignores it, and {default}." in found.why


# ---- chat templates -------------------------------------------------------------------------------------

# Tokens that end a turn where a file has to name them; others are known by their texts.
EOS_OF = {
    "Apertus-8B-Instruct": "<|assistant_end|>",
    "ByteDance-Seed-OSS": "<seed:eos>",
    "Cohere2MoE": "<|END_OF_TURN_TOKEN|>",
    "GLM-4.6": "<|user|>",
    "GLM-4.7-Flash": "<|user|>",
    "GigaChat3-10B-A1.8B": "<|message_sep|>",
    "GigaChat3.1-10B-A1.8B": "<|message_sep|>",
    "Kimi-K3": "<|end_of_msg|>",
    "MiniMax-M1": "<end_of_sentence>",
    "NVIDIA-Nemotron-Nano-v2": "<SPECIAL_12>",
    "Reka-Edge": "<sep>",
    "google-gemma-4-31B-it": "<turn|>",
    "google-gemma-4-31B-it-interleaved": "<turn|>",
    "inclusionai-ling-3.0-flash": "<|role_end|>",
    "muse-glimmer": "<|eot|>",
    "poolside-Laguna-S-2.1": "</assistant>",
    "poolside-Laguna-XS-2.1": "</assistant>",
    "poolside-Laguna-XS.2": "</assistant>",
    "tencent-Hy3": "<｜hy_eos:opensource｜>",
}
IN_BRACKETS = re.compile(r"[<\]\[][^<>\[\]\s]{1,60}[>\]\[]")


def with_markers_of(name: str) -> Keys:
    """Changes that make a model of a template: its name, its markers, and the end of its turns."""
    known, eos = known_template(name), EOS_OF.get(name, "</s>")
    texts, chats = [known.source], Tokenizer.from_gguf(GPT2).chats
    for chat in CHATS.values():
        with contextlib.suppress(ChatError):
            texts.append(chats.prompt(chat, known.source).decode())
    found = {
        marker for text in texts for marker in IN_BRACKETS.findall(text) if marker[:2] not in ("[{", '["')
    }
    markers = sorted(found - {"<think>", "</think>", *trained()[K.LIST]} | {eos, "<s>", "<unk>"})
    keys = with_tokens(*markers, kind=CONTROL)
    return {
        **keys,
        f"{K.CHAT_TEMPLATE}.{known.variant}".rstrip("."): known.source,
        "general.name": known.models[0] if known.models else name,
        K.BOS_ID: keys[K.LIST].index("<s>"),
        K.EOS_ID: keys[K.LIST].index(eos),
        K.ADD_BOS: True,
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", known_templates())
def test_templates_as_their_models_have_them_are_sound(name: str, tmp_path: Path) -> None:
    """No alarm of any template in llama.cpp's collection, with a vocabulary that has its markers."""
    found = [f for f in found_in(variant(tmp_path, with_markers_of(name))) if f.severity != "note"]
    assert found == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "expected", "is_same"),
    [
        ({"name": "Qwen3-0.6B"}, "Qwen-Qwen3-0.6B", True),
        ({"name": "Qwen3 0.6B"}, "Qwen-Qwen3-0.6B", True),
        ({"name": "qwen3_0.6b"}, "Qwen-Qwen3-0.6B", True),
        ({"name": "Qwen Qwen3 0.6B", "organization": "Qwen"}, "Qwen-Qwen3-0.6B", True),
        ({"name": "x", "basename": "Qwen3", "size_label": "0.6B"}, "Qwen-Qwen3-0.6B", True),
        ({"name": "Qwen3 30B A3B"}, "Qwen-Qwen3-0.6B", False),
        ({"name": "x", "base_model.0.name": "Qwen3 8B"}, "Qwen-Qwen3-0.6B", False),
        ({"name": "Qwen2.5 7B Instruct"}, "Qwen-Qwen2.5-7B-Instruct", True),
        ({"name": "Qwen3 4B Instruct 2507"}, None, False),
        ({"name": "Qwen3 0.6B Base"}, None, False),
        ({"name": "Qwen"}, None, False),
        ({"name": "0.6B"}, None, False),
        ({"name": "Meta Llama 3.1 8B Instruct"}, None, False),  # has none of its markers
        ({}, None, False),
    ],
)
def test_a_model_is_recognized_by_its_name(
    names: dict[str, str], expected: str | None, is_same: bool, tmp_path: Path
) -> None:
    changes = template(HARMLESS) | {f"general.{part}": name for part, name in names.items()}
    found = [f.detail for f in found_in(variant(tmp_path, changes)) if f.id == "template_differs"]
    assert [(f["known"], f["same_model"]) for f in found if f] == ([(expected, is_same)] if expected else [])


@pytest.mark.parametrize(
    "changed",
    [QWEN.source, QWEN.source.replace("\n", "\r\n"), QWEN.source + "\n"],
    ids=["the same", "other line ends", "one more line end"],
)
def test_the_known_template_does_not_differ_from_itself(changed: str, tmp_path: Path) -> None:
    path = variant(tmp_path, named("Qwen3-0.6B", changed))
    assert "template_differs" not in [finding.id for finding in found_in(path)]


def test_how_a_template_differs_is_said(tmp_path: Path) -> None:
    [found] = [
        finding
        for finding in found_in(
            variant(tmp_path, named("Qwen3-0.6B", QWEN.source.replace("# Tools", "# Utensils")))
        )
        if finding.id == "template_differs"
    ]
    assert "llama.cpp's Qwen-Qwen3-0.6B (b11549): 1 line only there, first " in found.evidence
    assert found.evidence.endswith("; prompts differ for tools, tool call.")
    assert found.detail is not None
    assert [row[0] for row in found.detail["diff"]] == ["-", "+", "@", "-", "+"]


def test_markers_are_told_together(tmp_path: Path) -> None:
    """One finding for all that are no tokens."""
    path = variant(tmp_path, template(known_template("google-gemma-2-2b-it").source))
    [found] = [finding for finding in found_in(path) if finding.id == "chat_marker"]
    assert found.detail == {"markers": ["<start_of_turn>", "<end_of_turn>"]}
    assert (
        "2 markers are not tokens: '<start_of_turn>', '<end_of_turn>'. Encoded as text, each "
        in found.evidence
    )


def test_of_two_templates_of_a_model_either_will_do(tmp_path: Path) -> None:
    """Gemma 4 has one more, for thoughts between calls."""
    changes = with_markers_of("google-gemma-4-31B-it-interleaved")
    assert changes["general.name"] == "gemma-4-31B-it"
    assert "template_differs" not in [finding.id for finding in found_in(variant(tmp_path, changes))]


def test_without_jinja2_the_text_of_the_template_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    path = variant(tmp_path, template(HARMLESS + "<|start_header_id|>"))
    monkeypatch.setitem(sys.modules, "jinja2", None)
    found = {finding.id: finding for finding in found_in(path)}
    assert found["template_not_run"].severity == "note"
    assert "pip install 'ggufbpe[chat]'" in found["template_not_run"].fix
    assert found["chat_marker"].severity == "warning"
    assert main(["doctor", str(path)]) == 0
    assert main(["doctor", str(path), "--strict"]) == 1


def test_without_jinja2_no_template_is_proposed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = variant(tmp_path, {"general.name": "Mine 7b chat"})
    monkeypatch.setitem(sys.modules, "jinja2", None)
    found = doctor(path)
    [missing] = [finding for finding in found.findings if finding.id == "template_missing"]
    assert missing.fix == (
        "no command is proposed, because the change cannot be made: a chat template takes the package jinja2: "
        "pip install 'ggufbpe[chat]'"
    )
    assert found.fix == ""


# ---- models without a pre-tokenizer ---------------------------------------------------------------------

VOCABS = ROOT / "fixtures" / "vocabs"
SPM, WPM, RWKV = (VOCABS / f"{name}.gguf" for name in ("spm", "wpm", "rwkv"))
NAN = float("nan")


def scores_of(path: Path, *first: float, rest: float | None = None) -> Keys:
    """Changes to scores: the first ones, and all others where `rest` says so."""
    own = read(path)[K.SCORES]
    return {K.SCORES: [*first, *(own if rest is None else [rest] * len(own))[len(first) :]]}


def charsmap_of(at: int, *units: int) -> Keys:
    """Changes to the charsmap of the unigram vocabulary: units of its double array, from one on."""
    data = bytearray(byte & 0xFF for byte in read(UNIGRAM)[K.PRECOMPILED_CHARSMAP])
    data[4 + 4 * at : 4 + 4 * (at + len(units))] = b"".join(unit.to_bytes(4, "little") for unit in units)
    return {K.PRECOMPILED_CHARSMAP: (list(data), T.ARRAY, T.UINT8)}


def raw_pieces() -> Keys:
    """BERT's tokens as its own vocab.txt has them."""
    tokens = read(cached("bert-bge"))[K.LIST]
    named = [token for token in tokens if token.startswith("[")]
    return {
        K.LIST: [
            token if token in named else token[1:] if token.startswith("\u2581") else f"##{token}"
            for token in tokens
        ]
    }


def first_tokens(name: str, count: int) -> Keys:
    """The first tokens of a vocabulary, with their types."""
    own = read(cached(name))
    return {key: own[key][:count] for key in (K.LIST, K.TOKEN_TYPE)}


# The same for other models; a file, or the name of a vocabulary, comes first.
OTHER_DEFECTS: dict[str, tuple[Path | str, str, str, Callable[[], Keys]]] = {
    "SPM without scores": (SPM, "scores_missing", "warning", lambda: {K.SCORES: None}),
    "SPM, scores of zero": (SPM, "scores_flat", "warning", lambda: scores_of(SPM, rest=0.0)),
    "SPM, a score that is no number": (SPM, "scores_not_numbers", "error", lambda: scores_of(SPM, NAN)),
    "SPM, too few scores": (SPM, "scores_length", "error", lambda: {K.SCORES: [0.0] * 7}),
    "Llama 2, scores the other way round": (
        "llama-spm",
        "scores_in_no_order",
        "warning",
        lambda: {K.SCORES: [float(index) for index in range(32000)]},
    ),
    "Command R as GPT-2, which cuts none of its tokens": (
        "command-r",
        "pre_doubtful",
        "warning",
        lambda: {K.PRE: "gpt-2"},
    ),
    "DeepSeek Coder without its last tokens": (
        "deepseek-coder",
        "lost_tokens",
        "warning",
        lambda: first_tokens("deepseek-coder", 32015),
    ),
    "DeepSeek Coder, all tokens normal": (
        "deepseek-coder",
        "added_text_is_normal",
        "warning",
        lambda: {K.TOKEN_TYPE: [NORMAL] * 32256},
    ),
    "SPM without bytes": (VOCABS / "spm-without-bytes.gguf", "bytes_missing", "warning", dict),
    "UGM without scores": (UNIGRAM, "scores_missing", "warning", lambda: {K.SCORES: None}),
    "UGM, a score that is no number": (
        UNIGRAM,
        "scores_not_numbers",
        "error",
        lambda: scores_of(UNIGRAM, NAN),
    ),
    "UGM without charsmap": (UNIGRAM, "charsmap_missing", "note", lambda: {K.PRECOMPILED_CHARSMAP: None}),
    "UGM, first offset out": (UNIGRAM, "charsmap_damaged", "error", lambda: charsmap_of(0, 0xFFFFFC00)),
    "WPM without unknown token": (VOCABS / "wpm-unknown-missing.gguf", "unknown_missing", "warning", dict),
    "WPM without SEP": (WPM, "special_id_missing", "warning", lambda: {K.SEP_ID: None}),
    "WPM with ##": ("bert-bge", "pieces_unconverted", "error", raw_pieces),
    "SPM with spaces": (
        "llama-spm",
        "spaces_unconverted",
        "error",
        lambda: {K.LIST: [token.replace("▁", " ") for token in read(cached("llama-spm"))[K.LIST]]},
    ),
    "RWKV without bytes": (VOCABS / "rwkv-without-bytes.gguf", "bytes_missing", "warning", dict),
    "Qwen 2 with BOS": ("qwen2", "bos_is_eos", "warning", lambda: {K.ADD_BOS: True}),
    "Llama 3 without BOS": ("llama-bpe", "bos_switched_off", "warning", lambda: {K.ADD_BOS: False}),
    "DeepSeek Coder without BOS": (
        "deepseek-coder",
        "bos_switched_off",
        "warning",
        lambda: {K.ADD_BOS: None},
    ),
    "Llama 3 that begins with an end": (
        "llama-bpe",
        "special_id_of_wrong_kind",
        "warning",
        lambda: {K.BOS_ID: 128009},
    ),
    "Phi-3 that ends with a beginning": (
        "phi-3",
        "special_id_of_wrong_kind",
        "warning",
        lambda: {K.EOS_ID: 32001},
    ),
    "Baichuan": ("baichuan", "known_family", "note", dict),
    "Llama 2 as GPT-2": ("llama-spm", "model_doubtful", "error", lambda: {K.MODEL: "gpt2"}),
    "Llama 2 as T5": ("llama-spm", "model_doubtful", "warning", lambda: {K.MODEL: "t5"}),
    "BERT as T5": ("bert-bge", "model_doubtful", "warning", lambda: {K.MODEL: "t5"}),
    "BERT as Llama": ("bert-bge", "model_doubtful", "warning", lambda: {K.MODEL: "llama"}),
    "BERT as RWKV": ("bert-bge", "model_doubtful", "warning", lambda: {K.MODEL: "rwkv"}),
    "Llama 3 as Llama 2": ("llama-bpe", "model_doubtful", "warning", lambda: {K.MODEL: "llama"}),
    "GPT-2 as BERT": ("gpt-2", "model_doubtful", "warning", lambda: {K.MODEL: "bert"}),
    "Gemma 4, bytes of type user-defined": (
        "gemma-4",
        "byte_type",
        "warning",
        lambda: {K.TOKEN_TYPE: [min(kind, 4) for kind in read(cached("gemma-4"))[K.TOKEN_TYPE]]},
    ),
    "Gemma 4, shown markers of type control": (
        "gemma-4",
        "marker_hidden",
        "warning",
        lambda: {K.TOKEN_TYPE: [3 if kind == 4 else kind for kind in read(cached("gemma-4"))[K.TOKEN_TYPE]]},
    ),
    "Gemma 4 as GPT-2": ("gemma-4", "model_doubtful", "warning", lambda: {K.MODEL: "gpt2"}),
    "Gemma 4 as Llama": ("gemma-4", "model_doubtful", "warning", lambda: {K.MODEL: "llama"}),
    "GPT-2 as T5": ("gpt-2", "model_doubtful", "warning", lambda: {K.MODEL: "t5"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("defect", OTHER_DEFECTS)
def test_defects_of_other_models_are_found(defect: str, tmp_path: Path) -> None:
    base, expected, severity, changes = OTHER_DEFECTS[defect]
    path = base if isinstance(base, Path) else cached(base)
    found = found_in(with_pre(path, None, tmp_path / "model.gguf", extra=changes()))
    assert (expected, severity) in [(finding.id, finding.severity) for finding in found]
    if expected == "model_doubtful":
        assert COMMAND.search(found[0].fix)
        assert [finding.id for finding in found if finding.severity != "note"] == [expected]


@pytest.mark.parametrize("path", [SPM, WPM, RWKV, UNIGRAM], ids=lambda path: path.stem)
def test_sound_files_of_other_models_have_no_warning(path: Path) -> None:
    """But that RWKV's names no EOS, which ends a generation."""
    found = {finding.id for finding in found_in(path) if finding.severity != "note"}
    assert found == ({"special_id_missing"} if path == RWKV else set())


# ---- BOS, EOS and known families ------------------------------------------------------------------------

LLAMA_3 = known_template("meta-llama-Llama-3.1-8B-Instruct").source


# A vocabulary, its changes, and the ids of what is warned of with the changes that `fix` is told to make.
BOS_AND_EOS: list[tuple[str, Keys, dict[str, str]]] = [
    ("qwen2", {}, {}),
    ("qwen2", {K.ADD_BOS: True}, {"bos_is_eos": f"{K.ADD_BOS}=false"}),
    ("qwen2", {K.EOS_ID: 151645}, {}),
    ("qwen2", {K.BOS_ID: 151644}, {}),  # which is not added
    ("llama-bpe", {K.ADD_BOS: False}, {"bos_switched_off": f"{K.ADD_BOS}=true"}),
    ("llama-bpe", template(LLAMA_3, add_bos_token=False), {"bos_switched_off": f"{K.ADD_BOS}=true"}),
    ("llama-bpe", {K.ADD_EOS: True}, {}),  # as a model of embeddings
    ("llama-bpe", template(LLAMA_3, add_eos_token=True), {"eos_behind_prompts": f"{K.ADD_EOS}=false"}),
    ("t5", template(LLAMA_3, add_eos_token=True), {"chat_marker": ""}),  # a family that adds EOS
    ("llama-bpe", {K.EOS_ID: 128009}, {}),
    ("llama-bpe", {K.EOS_ID: 5}, {"special_id_is_normal": f"{K.EOS_ID}=128001"}),
    ("llama-bpe", {K.BOS_ID: 5}, {"special_id_is_normal": f"{K.BOS_ID}=128000"}),
    ("llama-bpe", {K.BOS_ID: 128009}, {"special_id_of_wrong_kind": f"{K.BOS_ID}=128000"}),
    (
        "llama-bpe",
        {K.EOS_ID: 128000},
        {"special_id_of_wrong_kind": f"{K.EOS_ID}=128001", "bos_is_eos": f"{K.EOS_ID}=128001"},
    ),
    (
        "llama-bpe",
        {K.BOS_ID: 128009, K.EOS_ID: 128009},
        {"special_id_of_wrong_kind": f"{K.BOS_ID}=128000", "bos_is_eos": f"{K.BOS_ID}=128000"},
    ),
    ("phi-3", {K.BOS_ID: 32000}, {"bos_is_eos": f"{K.BOS_ID}=1"}),
    (
        "command-r",
        {K.EOS_ID: 5},
        {
            "special_id_of_wrong_kind": f"{K.EOS_ID}=255001",
            "bos_is_eos": f"{K.EOS_ID}=255001",
            "turn_end": "",
        },
    ),
    ("deepseek-coder", {K.ADD_BOS: False}, {"bos_switched_off": f"{K.ADD_BOS}=true"}),
    ("llama-spm", {K.ADD_BOS: False}, {"bos_switched_off": f"{K.ADD_BOS}=true"}),
    ("llama-spm", {K.ADD_BOS: None}, {}),
    ("phi-3", {K.EOS_ID: 32007}, {}),
    ("bert-bge", {K.ADD_BOS: False}, {}),  # which llama.cpp does not obey
    ("bert-bge", {K.SEP_ID: 101}, {"special_id_of_wrong_kind": f"{K.SEP_ID}=102"}),
    ("t5", {}, {}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "changes", "expected"), BOS_AND_EOS)
def test_bos_and_eos(name: str, changes: Keys, expected: dict[str, str], tmp_path: Path) -> None:
    path = with_pre(cached(name), None, tmp_path / "model.gguf", extra=changes)
    found = {finding.id: finding.fix for finding in quickly(path) if finding.severity != "note"}
    assert found.keys() == expected.keys()
    assert all(change in found[each] for each, change in expected.items())
    assert "--set-token-type" not in str(found)


@pytest.mark.slow
def test_a_chat_without_bos_that_the_template_writes_is_not_concerned(tmp_path: Path) -> None:
    changes = template(LLAMA_3, add_bos_token=False)
    found = quickly(with_pre(cached("llama-bpe"), None, tmp_path / "model.gguf", extra=changes))
    [why] = [finding.why for finding in found if finding.id == "bos_switched_off"]
    assert why.endswith("Chats have it, since the chat template writes it.")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "changes", "what", "evidence"),
    [
        ("llama-bpe", {}, "This is a Llama 3 vocabulary.", "are those of Llama 3 files."),
        (
            "llama-bpe",
            {K.PRE: "gpt-2", K.ADD_BOS: False, K.EOS_ID: 5},
            "This is a Llama 3 vocabulary, but the file differs from Llama 3 files in 3 points.",
            "tokenizer.ggml.pre is 'gpt-2' instead of llama-bpe; BOS is not added to texts; "
            "EOS is token 5, '&', instead of 128001, '<|end_of_text|>'.",
        ),
        ("llama-bpe", {K.PRE: "llama3"}, "This is a Llama 3 vocabulary.", "are those of Llama 3 files."),
        (
            "llama-bpe",
            {"general.base_model.0.name": "Meta Llama 3 8B", "general.name": "Mine"},
            "This is a Llama 3 vocabulary.",
            "The file calls itself 'Meta Llama 3 8B'. ",
        ),
        (
            "gpt-2",
            {"general.name": "Llama 3.2 1B"},
            "This is a GPT-2 vocabulary.",
            "The file calls itself 'Llama 3.2 1B'. ",
        ),
        (
            "llama-spm",
            {K.ADD_PREFIX: False},
            "This is a Llama 2 vocabulary, but the file differs from Llama 2 files in 1 point.",
            "no space is put before texts (tokenizer.ggml.add_space_prefix).",
        ),
        ("nomic-bert-moe", {}, "This is an XLM-RoBERTa vocabulary.", "are those of XLM-RoBERTa files."),
    ],
)
def test_the_family_is_said(name: str, changes: Keys, what: str, evidence: str, tmp_path: Path) -> None:
    found = quickly(with_pre(cached(name), None, tmp_path / "model.gguf", extra=changes))
    [said] = [finding for finding in found if finding.id == "known_family"]
    assert said.what == what
    assert evidence in said.evidence
    assert not COMMAND.search(said.fix)


def test_tokens_that_are_not_those_of_the_model_the_file_is_named_after(tmp_path: Path) -> None:
    [said] = [
        f for f in found_in(variant(tmp_path, {"general.name": "Llama-3.1-8B"})) if f.id == "known_family"
    ]
    assert said.what == "The file calls itself 'Llama-3.1-8B', but its tokens are not those of Llama 3."
    assert "The token with id 127999 is missing" in said.evidence


@pytest.mark.parametrize("family", KNOWN_FAMILIES, ids=lambda family: family.name)
def test_the_table_of_families_has_what_their_files_have(family: KnownFamily) -> None:
    own = load_vocabulary(cached(VOCABULARY_OF[family.name]))
    assert family_of_tokens(own.tokens) is family
    assert (own.model, len(own.tokens)) == (family.model, family.size)
    assert own.pre in family.pres or not family.pres
    added = own.tokenizer_model.added_names(own.add_bos, own.add_eos)
    flags = [any(name in names for names in added) for name in ("bos", "eos")]
    assert flags == [family.add_bos, family.add_eos]
    assert own.add_space_prefix or "add_space_prefix" not in own.tokenizer_model.flags
    for name, expected in (("bos", family.bos), ("eos", family.eos)):
        token = own.special_ids[name]
        assert (None if token is None else (token, own.tokens[token])) == expected
    last, text = family.last_used
    assert own.tokens[last] == text
    assert family.last_marker is None or all(map(FILLER.fullmatch, own.tokens[last + 1 :]))
    assert {own.attributes[index] for index in family.added_text} <= {USER_DEFINED}
    assert own.charsmap or not family.has_charsmap
    if family.hidden:
        types = read(Path(own.path))[K.TOKEN_TYPE]
        for kind, texts in ((CONTROL, family.hidden), (USER_DEFINED_TYPE, family.shown)):
            assert {text for text, own_kind in zip(own.tokens, types) if own_kind == kind} == {*texts}


VOCABULARY_OF = {
    "Llama 2": "llama-spm",
    "Llama 3": "llama-bpe",
    "BERT": "bert-bge",
    "XLM-RoBERTa": "nomic-bert-moe",
    "GPT-NeoX": "mpt",
    "StarCoder 2": "starcoder",
    "Qwen 2": "qwen2",
    **{name: name.lower().replace(" ", "-") for name in ("Command R", "DeepSeek Coder", "DeepSeek LLM")},
    **{
        name: name.lower().replace(" ", "-")
        for name in ("Phi-3", "Baichuan", "T5", "umT5", "GPT-2", "Falcon")
    },
    **{name: name.lower().replace(" ", "-") for name in ("Refact", "Gemma 4")},
}


@pytest.mark.parametrize(
    ("names", "family"),
    [
        (["Meta Llama 3.1 8B Instruct"], "Llama 3"),
        (["meta-llama/Llama-3.2-1B"], "Llama 3"),
        (["My model", "Qwen2.5 7B Instruct"], "Qwen 2"),
        (["Llama 2 7B Chat"], "Llama 2"),
        (["Phi 3 mini"], "Phi-3"),
        (["My Phi3-mini"], "Phi-3"),  # llama.cpp looks for it anywhere in a name
        (["Falcon3 7B"], None),
        (["Not a Llama 3"], None),
        ([], None),
    ],
)
def test_families_by_name(names: list[str], family: str | None) -> None:
    found = family_of_names(names)
    assert (found and found[0].name) == family


@pytest.mark.slow
def test_offsets_of_a_charsmap_are_looked_at() -> None:
    """Units all over the array overwritten by one that leads out: the texts named do, and else none."""
    data = bytes(byte & 0xFF for byte in read(UNIGRAM)[K.PRECOMPILED_CHARSMAP])
    sound = Charsmap(data)
    assert sound.damage() == (0, [])
    keys = list(map(str.encode, map(chr, (*range(0x80, 0x200), *range(0xFB00, 0xFB07)))))
    size = int.from_bytes(data[:4], "little") // 4
    hit = 0
    used = [at for at in range(size) if int.from_bytes(data[4 + 4 * at : 8 + 4 * at], "little")]
    for at in used[:: len(used) // 30]:
        unit = int.from_bytes(data[4 + 4 * at : 8 + 4 * at], "little")
        broken = Charsmap(
            data[: 4 + 4 * at] + (unit & 0x3FF | 0xFFFFFC00).to_bytes(4, "little") + data[8 + 4 * at :]
        )
        count, damaged = broken.damage()
        assert len(damaged) == min(count, 100)
        hit += count > 0
        for text in damaged:
            with pytest.raises(ValueError, match="damaged"):
                broken.longest(text, 0)
        if not damaged:
            for text in keys:
                broken.longest(text + b"\xff\x01", 0)
    assert hit > 5


# ---- real models ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", [*FAMILY_OF, *OTHERS])
def test_unharmed_models_have_no_errors(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of llama.cpp's vocabularies. What only warns, and takes long, is left to smaller ones."""
    if name not in ("gpt-2", "falcon", "deepseek-coder", *OTHERS):
        quick = [check for check in checks.CHECKS if check.__name__ not in ("pre_tokenizer", "unreachable")]
        assert len(quick) == len(checks.CHECKS) - 2
        monkeypatch.setattr(checks, "CHECKS", tuple(quick))
    findings = found_in(cached(name))
    assert [finding for finding in findings if finding.severity == "error"] == []
    assert {"pre_doubtful", "not_bpe", "word_type"}.isdisjoint(finding.id for finding in findings)


def test_the_vocabulary_that_comes_along_has_nothing_to_warn_of() -> None:
    assert {finding.severity for finding in found_in(GPT2)} == {"note"}


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILY_OF)
def test_the_tokens_point_to_the_family_of_their_model(name: str) -> None:
    """Measured: first or tied, with hardly a token cut and nobody else near, in every vocabulary."""
    with GGUFFile(cached(name)) as file:
        tokens, merges = file[K.LIST], file[K.MERGES]
    assert isinstance(tokens, list)
    assert isinstance(merges, list)
    found = families({left + right for left, right in map(parts, merges)} & set(tokens))
    best = tied(found)
    assert FAMILY_OF[name] in [family.family for family in best]
    assert len(best) <= 3
    own = next(family for family in found if family.family == FAMILY_OF[name])
    assert own.share > 0.9998
    if name == "qwen2":  # the same tokens as Qwen 3.5's; bailingmoe differs in line breaks only
        assert [family.family for family in best] == ["qwen2", "bailingmoe", "qwen35"]


@pytest.mark.slow
def test_what_the_doctor_suggests_for_a_missing_pre(tmp_path: Path) -> None:
    path = with_pre(cached("deepseek-coder"), None, tmp_path / "model.gguf", extra={K.PRE: None})
    first = found_in(path)[0]
    assert first.id == "pre_missing"
    assert first.detail is not None
    assert first.detail["suggested"] == "deepseek-coder"
    assert "--set tokenizer.ggml.pre=deepseek-coder" in first.fix


@pytest.mark.slow
@pytest.mark.parametrize(
    ("architecture", "name", "suggested"),
    [
        ("gpt2", "GPT-2 large", "gpt-2"),
        ("llama", "x", "gpt-2"),
        ("olmo", "x", "olmo"),
        ("llama", "OLMo-7B", "olmo"),
        ("llama", "Jina v2 Code", "jina-v2-code"),
        ("mpt", "OLMo-7B", "mpt"),
    ],
)
def test_of_names_that_split_alike_that_of_the_model_comes_first(
    architecture: str, name: str, suggested: str, tmp_path: Path
) -> None:
    names = {"general.architecture": architecture, "general.name": name}
    first = found_in(with_pre(GPT2, None, tmp_path / "model.gguf", extra={K.PRE: None, **names}))[0]
    assert first.what == "This is a GPT-2 vocabulary, but the file does not name its pre-tokenizer."
    assert f"The tokens point to {suggested} (splits the same as " in first.evidence
    assert f"--set tokenizer.ggml.pre={suggested} " in first.fix


@pytest.mark.slow
@pytest.mark.parametrize("pre", ["llama-bpe", "starcoder", "falcon", "gpt-4o", "deepseek-coder", "bloom"])
def test_a_pre_that_the_tokens_speak_against(pre: str, tmp_path: Path) -> None:
    first = found_in(with_pre(GPT2, pre, tmp_path / "model.gguf"))[0]
    assert (first.id, first.severity) == ("pre_doubtful", "warning")
    assert first.detail is not None
    assert first.detail["suggested"] == "gpt-2"


@pytest.mark.parametrize("name", FAMILY_OF)
def test_opening_a_sound_model_warns_of_no_pre_tokenizer_but_a_missing_one(name: str) -> None:
    """The quick look has no false alarm on any real vocabulary, under any name that the tokens point to."""
    found = load_vocabulary(cached(name))
    assert any("tokenizer.ggml.pre is" in said for said in found.warnings) == (found.pre == "default")
    for family in {FAMILY_OF[name], *(["bailingmoe", "qwen35"] if name == "qwen2" else [])} - {"gemma4"}:
        assert telltales(one_of_each()[family], found.token_to_id) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", [*FAMILY_OF, *OTHERS])
def test_a_healthy_model_opens_without_a_warning(name: str) -> None:
    """What llama.cpp corrects by itself is data: `corrections`, `doctor -v`, `info`."""
    path = cached(name)
    if not doctor(path).is_healthy:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Tokenizer.from_gguf(path).vocabulary.warnings == ()


@pytest.mark.parametrize("path", sorted(VOCABS.glob("*.gguf")), ids=lambda path: path.stem)
def test_what_opening_warns_of_is_something_to_mend(path: Path) -> None:
    with contextlib.suppress(GGUFError):
        if load_vocabulary(path).warnings:
            assert not doctor(path).is_healthy


CORRECTED: dict[str, list[tuple[str, int | None]]] = {  # what llama.cpp corrects in real vocabularies
    "qwen2": [("made_control", 128247)],
    "gemma-4": [("made_control", 50), ("not_end_of_generation", 212)],
    "command-r": [("end_of_generation", 255001)],
    "nomic-bert-moe": [("line_break", 0)],
    "gpt-2": [],
}
UNDONE = ("made_control", 212)  # Gemma 4's "</s>", which llama.cpp makes a normal token again


@pytest.mark.slow
@pytest.mark.parametrize("name", CORRECTED)
def test_what_llama_cpp_corrects_is_in_doctor_and_info(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    path = cached(name)
    vocabulary = load_vocabulary(path)
    corrections = [each for each in vocabulary.corrections if (each.id, each.token) != UNDONE]
    assert [(each.id, each.token) for each in corrections] == CORRECTED[name]
    assert main(["info", str(path), "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["corrections"] == [each._asdict() for each in corrections]
    main(["info", str(path)])
    shown, warned = capfd.readouterr()
    assert ("corrected by llama.cpp" in shown, warned) == (bool(corrections), "")
    main(["doctor", "-v", str(path)])
    told = capfd.readouterr().out
    for each in corrections:
        assert each.what in told or f"llama.cpp takes '{vocabulary.tokens[each.token]}' for a marker" in told


@pytest.mark.slow
@pytest.mark.parametrize("pre", [None, "", "default", "llama-bpe", "starcoder", "deepseek-coder"])
def test_a_wrong_pre_is_warned_of_alike(
    pre: str | None, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """GPT-2's vocabulary under a name that is missing, the fallback's, or another's: by all that open it."""
    path = with_pre(GPT2, pre, tmp_path / "model.gguf", extra={K.PRE: None} if pre is None else {})
    (tmp_path / "text").write_text("Hi")
    text = str(tmp_path / "text")
    for arguments in (
        ["tokenize", "-m", str(path), "-p", "Hi"],
        ["count", "-m", str(path), text],
        ["verify", "-m", str(path), "--against", str(path), text],
        ["diagnose", "-m", str(path), "-p", "Hi", "--ids", "[17250]"],
        ["explain", "-m", str(path), "-p", "Hi"],
        ["info", "-m", str(path)],
    ):
        main(arguments)
        assert "warning: " + f"{path}: tokenizer.ggml.pre is " in capfd.readouterr().err, arguments
    assert main(["doctor", str(path)]) == 0
    assert "\nwarning: pre_" in "\n" + capfd.readouterr().out
    assert main(["doctor", str(path), "--strict"]) == 1


def test_what_the_quick_look_doubts_so_does_the_doctor() -> None:
    """Of GPT-2's vocabulary under every family; and it doubts most of those that the doctor does."""
    with GGUFFile(GPT2) as file:
        tokens, merges = file[K.LIST], file[K.MERGES]
    judged = evidence(tokens, merges, "gpt-2", "")  # type: ignore[arg-type]
    quick = {f for f, entry in one_of_each().items() if telltales(entry, judged.known)}
    slow = {f for f in one_of_each() if judged._replace(pre=one_of_each()[f].name).is_against}
    assert quick <= slow
    assert len(quick) > 0.8 * len(slow) > 20


def test_the_table_of_what_families_cut() -> None:
    table = {
        family: "".join(".x"[not allows_feature(entry, feature)] for feature in FEATURES)
        for family, entry in one_of_each().items()
    }
    for family, cut in table.items():
        assert CUT_BY.get(family) == cut, f'CUT_BY lacks this line: "{family}": "{cut}",'
    assert set(CUT_BY) == set(table)


def test_features_tell_families_apart() -> None:
    """A feature that all families allow, or none, would be no evidence."""
    entries = {entry.family: entry for entry in PRE_TOKENIZERS.values() if entry.byte_encode}
    for feature, strings in FEATURES.items():
        allowed = {
            family
            for family, entry in entries.items()
            if all(len(splitter(entry).words(text)) == 1 for text in strings)
        }
        assert 0 < len(allowed) < len(entries), feature


@pytest.mark.parametrize("family", DIFFERENCES)
def test_differences_from_hugging_face_are_what_its_engine_gives(family: str) -> None:
    try:
        from hf_splitting import entries, hugging_face

        theirs = hugging_face(family)
    except ImportError:
        missing("no package `tokenizers`: `pip install tokenizers`")
    ours = splitter(entries()[family]).words
    for difference in DIFFERENCES[family]:
        assert tuple(theirs(difference.example)) == difference.hugging_face
        assert tuple(ours(difference.example)) == difference.llama_cpp


def test_families_without_a_known_difference_split_alike() -> None:
    """On a sample of characters that has every class in it; scripts/hf_splitting.py tries them all."""
    try:
        from hf_splitting import code_points, differing, entries

        alike = [family for family in entries() if family not in DIFFERENCES]
        points = code_points()[::400]
        assert len(alike) > 10
        for family in alike:
            assert differing(family, points) == {}
    except ImportError:
        missing("no package `tokenizers`: `pip install tokenizers`")


# ---- the command ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("defect", "code", "strict"),
    [
        ("no pre", 0, 1),
        ("pre default", 0, 1),
        ("duplicate token", 1, 1),
        ("pre unknown", 1, 1),
        ("padding", 0, 0),
    ],
)
def test_the_exit_code_tells_errors_and_with_strict_warnings(
    defect: str, code: int, strict: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = variant(tmp_path, DEFECTS[defect][2]())
    assert main(["doctor", str(path), "--json"]) == code
    found = json.loads(capfd.readouterr().out)
    assert (found["counts"]["error"] > 0) == (code == 1)
    assert (found["counts"]["error"] + found["counts"]["warning"] > 0) == (strict == 1)
    assert found["findings"][0]["id"] == DEFECTS[defect][0]
    assert set(found["findings"][0]) == set(Finding._fields)
    assert main(["doctor", "-m", str(path)]) == code
    text = capfd.readouterr().out
    assert text.startswith("OK: nothing to fix") == (strict == 0)
    assert ("note: " in text) is False
    assert main(["doctor", "-v", str(path)]) == code
    text = capfd.readouterr().out
    assert all(f"{finding['severity']}: {finding['id']}\n" in text for finding in found["findings"])
    assert main(["doctor", str(path), "--strict"]) == strict


def test_what_cannot_be_read_is_exit_code_2(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "no.gguf").write_bytes(b"GGUF")
    for arguments in (["doctor", str(tmp_path / "no.gguf")], ["doctor", str(tmp_path / "x")], ["doctor"]):
        assert main(arguments) == 2
        assert len(capfd.readouterr().err.splitlines()) == 1


def test_text_of_the_file_has_no_effect_on_the_terminal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Escape sequences are shown escaped, right-to-left text is isolated."""
    changes = with_tokens("\x1b[31mred", "\x1b[31mred", "שלום")
    changes[K.MERGES] = [*trained()[K.MERGES], "של ום"]
    changes[K.PRE] = "\x1b[2Jמרחב"
    assert main(["doctor", str(variant(tmp_path, changes))]) == 1
    text = capfd.readouterr().out
    assert "\x1b" not in text
    assert "\\x1b[31mred" in text
    assert "\u2068מרחב\u2069" in text


def test_what_another_thread_warns_of_is_not_silenced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    """`catch_warnings` changes the filters of the whole process, so nothing here uses it."""
    path = variant(tmp_path, {K.PRE: "default"})
    monkeypatch.setattr(warnings, "catch_warnings", None)
    assert "pre_default" in [finding.id for finding in found_in(path)]
    assert load_vocabulary(path).warnings
    assert diff(*[Tokenizer(load_vocabulary(path))] * 2, "Hi").same
    assert not recwarn.list
    with GGUFFile(path) as file:
        write_fixed(path, tmp_path / "fixed.gguf", [parse_set(file, "general.name=x")])
    assert ["fixed.gguf: tokenizer.ggml.pre is" in str(warning.message) for warning in recwarn.list] == [True]


# ---- one command ----------------------------------------------------------------------------------------


SEVERAL: dict[str, Callable[[], Keys]] = {
    "two types exchanged": lambda: {
        K.TOKEN_TYPE: [
            {"<|im_start|>": NORMAL, "Ġthe": CONTROL}.get(token, kind)
            for token, kind in zip(trained()[K.LIST], trained()[K.TOKEN_TYPE])
        ]
    },
    "pre and types": lambda: {K.PRE: None, **with_type(NORMAL, "<|im_start|>")},
    "an error and a warning": lambda: {K.PRE: "gpt-22", K.ADD_BOS: 1},
    "EOS, types and template": lambda: {
        K.EOS_ID: 262,
        **with_type(NORMAL, "<|im_start|>"),
        **template(HARMLESS, add_bos_token=False),
    },
}


@pytest.mark.parametrize("defects", SEVERAL)
def test_one_command_mends_all_findings(
    defects: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = variant(tmp_path, SEVERAL[defects]())
    before = doctor(path)
    assert before.proposal is not None
    assert before.proposal.explained == len(before.findings) - before.counts["note"] > 1
    main(["doctor", "-v", str(path)])
    text = capfd.readouterr().out
    assert COMMAND.findall(text) == [before.fix]
    assert text.endswith(
        f"\nfix: this one command mends all {before.proposal.explained} findings:\n  {before.fix}\n"
    )
    fixed = done(before.fix, tmp_path)
    assert fixed is not None
    assert doctor(fixed).is_healthy
    assert before.to_dict()["fix"] == before.fix


def test_what_no_command_mends_is_counted(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = variant(tmp_path, {**with_tokens("", kind=UNUSED), K.PRE: None})
    main(["doctor", str(path)])
    assert "\nfix: this one command mends 1 of 2 findings:\n" in capfd.readouterr().out


@pytest.mark.slow
def test_a_command_that_would_harm_is_not_proposed(tmp_path: Path) -> None:
    """BOS twice in chats: not to add it would be another defect, as Llama 3 begins all texts with it."""
    written_twice = template("{{ bos_token + bos_token }}" + LLAMA_3.replace("{{- bos_token }}", ""))
    path = with_pre(cached("llama-bpe"), None, tmp_path / "model.gguf", extra=written_twice)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "CHECKS", tuple(c for c in checks.CHECKS if c.__name__ != "unreachable"))
        found = doctor(path)
    assert "bos_twice" in [finding.id for finding in found.findings if finding.severity == "warning"]
    assert found.fix == ""


def test_the_command_of_a_finding_that_would_harm_is_left_out(tmp_path: Path) -> None:
    """A token that looks like a marker but is text that the model has learned: its bytes must not change."""
    path = variant(tmp_path, {K.PRE: None})
    innocent = trained()[K.LIST].index("Ġthe")
    finding = Finding(
        "warning", "x", "X.", "", f"ggufbpe fix {path} --set-token-type {innocent}=CONTROL -o fixed.gguf"
    )
    found = doctor(path, also=[finding])
    assert found.fix == f"ggufbpe fix {path} --set tokenizer.ggml.pre=gpt-2 -o fixed.gguf"
    [left] = [each for each in found.findings if each.id == "x"]
    assert left.fix == f"no command is proposed, because token {innocent}, 'Ġthe', would decode to other text"


def test_what_tokens_and_merges_alone_tell_is_found_once(tmp_path: Path) -> None:
    """For a file, its changed copies, and another file with the same tokens and merges."""
    asked: list[Facts] = []
    one = variant(tmp_path, {})
    other = Path(shutil.copy(one, tmp_path / "other.gguf"))
    with GGUFFile(one) as file, GGUFFile(other) as twin:
        facts, shared = Facts(file, None), Facts(twin, None)
        shared.share(facts)
        for each in (facts, shared, facts.changed({K.ADD_BOS: True}), facts.changed({K.MERGES: ["a b"]})):
            each.shared_result(asked.append)
    assert [facts in asked, len(asked)] == [True, 2]
