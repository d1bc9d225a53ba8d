"""Which of two files looks broken: an ordinary word that is special speaks against the file, as plain markers do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import GPT2, ROOT, UNIGRAM, missing
from reference import NotPreparedError, vocabulary, write_metadata
from small_models import CHATML, with_template

from ggufbpe import Tokenizer, diagnose, diff, fix, verify
from ggufbpe.analysis.diagnose.chat_causes import NO_TEMPLATE
from ggufbpe.analysis.doctor.facts import Facts
from ggufbpe.analysis.doctor.marker_tokens import find_marker_tokens
from ggufbpe.analysis.doctor.proposal import Trial
from ggufbpe.analysis.doctor.round_trip_checks import SAMPLES
from ggufbpe.analysis.verify.weighing import weigh
from ggufbpe.gguf.reader import GGUFFile
from ggufbpe.models.loading import load_vocabulary

pytestmark = pytest.mark.tries_fixes

VOCABS = ROOT / "fixtures" / "vocabs"
THE = 262  # " the" in GPT-2's vocabulary


def changed(path: Path, **changes: Any) -> Path:
    """GPT-2's vocabulary with other values."""
    fix(GPT2, path, **changes)
    return path


@pytest.mark.parametrize("kind", ["CONTROL", "UNUSED"])
@pytest.mark.parametrize(
    "more",
    [
        pytest.param({}, id="alone"),
        pytest.param({"set": {"tokenizer.ggml.eos_token_id": 257}}, id="with another EOS"),
        pytest.param({"set": {"tokenizer.ggml.add_bos_token": True}}, id="with BOS"),
    ],
)
def test_an_ordinary_word_that_is_special_speaks_against_its_file(
    kind: str, more: dict[str, Any], tmp_path: Path
) -> None:
    bad = changed(tmp_path / "bad.gguf", token_types={THE: kind}, **more)
    for pair, suspect in (((bad, GPT2), 0), ((GPT2, bad), 1)):
        found = diff(*pair)
        assert found.suspect == suspect
        assert found.fix.startswith(f"ggufbpe fix {bad} ")
        assert f"--set-token-type {THE}=NORMAL" in found.fix
        assert "' the' is not plain text, although it is an ordinary word" in found.reasons


@pytest.mark.parametrize(
    "path", [UNIGRAM, VOCABS / "wpm.gguf", VOCABS / "rwkv.gguf"], ids=lambda path: path.stem
)
@pytest.mark.parametrize("turn", [1, -1])
def test_a_file_whose_words_are_all_special_is_the_broken_one(turn: int, path: Path, tmp_path: Path) -> None:
    """Its markers are no measure for those of the other file, which are plain text in some, as BERT's [unused0] is."""
    bad, mended = tmp_path / "bad.gguf", tmp_path / "mended.gguf"
    size = len(load_vocabulary(path).tokens)
    fix(path, bad, set={"tokenizer.ggml.token_type": [3] * size})
    found = diff(*(bad, path)[::turn])
    assert found.suspect == (turn < 0)
    assert any(reason.endswith("although they are ordinary words") for reason in found.reasons)
    assert found.proposal is not None
    assert found.proposal.command, found.proposal.objection
    fix(bad, mended, token_types=found.proposal.change.types)
    assert diff(mended, path, SAMPLES).same


@pytest.mark.parametrize("architecture", ["plamo2", "plamo3"])
@pytest.mark.parametrize("turn", [1, -1])
def test_the_architecture_speaks_for_neither_of_two_models_with_like_tokens(
    turn: int, architecture: str, tmp_path: Path
) -> None:
    """llama.cpp's converter of 0c1e57098 gives PLaMo 3 the tokenizer model plamo2."""
    pair = tmp_path / "one.gguf", tmp_path / "other.gguf"
    for path, name in zip(pair, ("plamo2", "plamo3")):
        keys = {"general.architecture": architecture, "tokenizer.ggml.model": name}
        fix(VOCABS / "plamo2.gguf", path, set=keys)
    found = diff(*pair[::turn])
    assert (found.suspect, found.reasons, found.fix) == (None, (), "")


@pytest.mark.parametrize("turn", [1, -1])
def test_a_user_defined_word_speaks_against_neither_file(turn: int, tmp_path: Path) -> None:
    """A model may have been trained with it."""
    one = changed(tmp_path / "one.gguf", token_types={THE: "USER_DEFINED"})
    found = diff(*(one, GPT2)[::turn])
    assert (found.suspect, found.fix) == (None, "")


@pytest.mark.parametrize("turn", [1, -1])
def test_a_word_that_pads_is_meant(turn: int, tmp_path: Path) -> None:
    """Fine-tuned models often take "!" for padding, which makes it a control token."""
    one = changed(
        tmp_path / "one.gguf", token_types={0: "CONTROL"}, set={"tokenizer.ggml.padding_token_id": 0}
    )
    found = diff(*(one, GPT2)[::turn])
    assert (found.suspect, found.fix) == (None, "")


@pytest.mark.parametrize("turn", [1, -1])
def test_reserved_tokens_that_a_fine_tuned_model_named_are_not_named_back(turn: int, tmp_path: Path) -> None:
    """The flag is unusual in the original, which is why it is suspected."""
    reserved = "<|reserved_special_token_0|>"
    template = "{{ messages[0].content }}"
    keys = {"tokenizer.ggml.add_eos_token": True}
    original = write_metadata(tmp_path / "original.gguf", {**with_template(template, reserved), **keys})
    tuned = tmp_path / "tuned.gguf"
    fix(original, tuned, rename_tokens={reserved: "<|begin|>"}, set={"tokenizer.ggml.add_eos_token": False})
    found = diff(*(original, tuned)[::turn])
    assert found.suspect == (turn < 0)
    assert "--rename-token" not in found.fix


@pytest.mark.parametrize(
    ("name", "word"),
    [("qwen2", "Th"), ("qwen2", "user"), ("llama-bpe", "user"), ("llama-spm", "▁the"), ("phi-3", "▁inter")],
)
def test_words_of_real_vocabularies(name: str, word: str, tmp_path: Path) -> None:
    try:
        good = vocabulary(name)
    except NotPreparedError as error:
        missing(str(error))
    token = Tokenizer.from_gguf(good).vocabulary.token_to_id[word]
    fix(good, tmp_path / "bad.gguf", token_types={token: "CONTROL"})
    found = diff(good, tmp_path / "bad.gguf")
    assert found.suspect == 1
    assert found.fix.endswith(f"--set-token-type {token}=NORMAL -o fixed.gguf")


def test_exchanged_types_are_mended_together(tmp_path: Path) -> None:
    """By each kind of advice that has the right ids."""
    try:
        good = vocabulary("qwen2")
    except NotPreparedError as error:
        missing(str(error))
    bad = tmp_path / "bad.gguf"
    fix(good, bad, token_types={1001: "CONTROL", 151644: "NORMAL"})
    text = "<|im_start|>The Th there<|im_end|>\n"
    ids = Tokenizer.from_gguf(good).encode(text)
    found = diff(bad, good), verify(bad, good, text), diagnose(bad, text, ids)
    for change in (found[0].proposal, found[1].proposal, found[2].explanations[0].proposal):
        assert change is not None
        assert change.command, change.objection
        assert change.change.types == {1001: "NORMAL", 151644: "CONTROL"}


def test_an_ordinary_word_that_is_plain_in_the_ids_is_not_a_text_without_special_tokens(
    tmp_path: Path,
) -> None:
    """No chat works without them."""
    bad, text = changed(tmp_path / "bad.gguf", token_types={"the": "CONTROL"}), "then there"
    first = diagnose(bad, text, Tokenizer.from_gguf(GPT2).encode(text)).explanations[0]
    assert [cause.id for cause in first.causes] == ["special_token_types"]


def chatml(path: Path, template: str = CHATML, **keys: Any) -> Path:
    """A small model with a name and a chat template, or without one if it is empty."""
    return write_metadata(path, {**with_template(template), "general.name": "Small", **keys})


@pytest.mark.parametrize("turn", [1, -1])
def test_a_lost_template_is_taken_over(turn: int, tmp_path: Path) -> None:
    bad, good = chatml(tmp_path / "bad.gguf", ""), chatml(tmp_path / "good.gguf")
    found = diff(*(bad, good)[::turn])
    assert found.suspect == (turn < 0)
    assert found.reasons == ("it has no chat template",)
    assert found.fix == f"ggufbpe fix {bad} --chat-template {good} -o fixed.gguf"
    fix(bad, tmp_path / "fixed.gguf", chat_template=good)
    assert diff(tmp_path / "fixed.gguf", good).same


@pytest.mark.parametrize(
    "template",
    [CHATML.replace("add_generation_prompt", "false"), "\ufeff" + CHATML, CHATML.replace("\n", "\\n")],
    ids=["answer not begun", "byte order mark", "escaped"],
)
def test_a_broken_template_is_replaced(template: str, tmp_path: Path) -> None:
    bad = chatml(tmp_path / "bad.gguf", template)
    good = chatml(tmp_path / "good.gguf")
    found = diff(bad, good)
    assert (found.suspect, found.fix) == (0, f"ggufbpe fix {bad} --chat-template {good} -o fixed.gguf")


def test_a_lost_template_comes_with_other_changes(tmp_path: Path) -> None:
    bad = chatml(tmp_path / "bad.gguf", "", **{"tokenizer.ggml.add_eos_token": True})
    good = chatml(tmp_path / "good.gguf")
    keys = "--set tokenizer.ggml.add_eos_token=false"
    assert diff(bad, good).fix == f"ggufbpe fix {bad} {keys} --chat-template {good} -o fixed.gguf"


@pytest.mark.parametrize(
    ("template", "keys"),
    [
        (CHATML + "{# changed #}", {}),
        ("", {"general.name": "Small base"}),
        ("", {"general.name": ""}),
        ("", {"general.name": "Small base", "tokenizer.ggml.eos_token_id": 265}),  # <|endoftext|>
    ],
    ids=["changed", "of a base model", "of a model without a name", "of a base model with another EOS"],
)
def test_nothing_tells_which_template_is_right(template: str, keys: dict[str, Any], tmp_path: Path) -> None:
    one, other = chatml(tmp_path / "one.gguf", template, **keys), chatml(tmp_path / "other.gguf")
    found = diff(one, other)
    assert (found.suspect, found.fix) == (None, "")
    assert f"the chat template of {other}" in found.changes[0].described


def test_chats_name_the_command_that_takes_a_template_over(tmp_path: Path) -> None:
    template = CHATML.replace("{%", "You are helpful.{%", 1)
    bad, good = chatml(tmp_path / "bad.gguf", ""), chatml(tmp_path / "good.gguf", template)
    chat = [{"role": "user", "content": "hi"}]
    result = verify(bad, good, chats=[chat])
    assert result.chats is not None
    [cause] = result.chats.differences[0].causes
    assert f"`ggufbpe fix {bad} --chat-template {good} -o fixed.gguf`" in cause.fix
    prompt = Tokenizer.from_gguf(good).apply_chat_template(chat)
    first = diagnose(bad, chat=chat, expected_prompt=str(prompt)).explanations[0].causes[0]
    assert first.detail["evidence"] == [NO_TEMPLATE]


@pytest.mark.filterwarnings("ignore:.*the chat template still has")
def test_a_renamed_marker_gets_its_name_back(tmp_path: Path) -> None:
    bad, good = tmp_path / "bad.gguf", chatml(tmp_path / "good.gguf")
    fix(good, bad, rename_tokens={"<|im_end|>": "<|imend|>"})
    found = diff(bad, good)
    assert found.suspect == 0
    assert found.fix == f"ggufbpe fix {bad} --rename-token '<|imend|>=<|im_end|>' -o fixed.gguf"
    fix(bad, tmp_path / "fixed.gguf", rename_tokens={"<|imend|>": "<|im_end|>"})
    assert diff(tmp_path / "fixed.gguf", good).same


def test_a_renamed_marker_that_no_template_has_is_described(tmp_path: Path) -> None:
    one, other = tmp_path / "one.gguf", chatml(tmp_path / "other.gguf", "{{ messages[0].content }}")
    fix(other, one, rename_tokens={"<|im_start|>": "<|begin|>"})
    found = diff(one, other)
    assert (found.suspect, found.fix) == (None, "")
    assert found.changes[0].described == ["token '<|begin|>' called '<|im_start|>'"]


def test_no_type_is_set_that_both_files_have(tmp_path: Path) -> None:
    """Two line breaks stand among the markers, as in Gemma 4's vocabulary, and are ordinary text in both files."""
    good = write_metadata(tmp_path / "good.gguf", with_template(CHATML, "ĊĊ", kind=1))
    bad = tmp_path / "bad.gguf"
    fix(good, bad, token_types={"<|im_start|>": "NORMAL"})
    found = verify(bad, good, "<|im_start|>a\n\nb")
    assert found.proposal is not None
    assert found.proposal.change.types == {266: "CONTROL"}
    assert "types" not in str(found.differences[0].causes[0].detail["what"])


@pytest.mark.parametrize("turn", [1, -1])
def test_lost_scores_need_another_conversion(turn: int, tmp_path: Path) -> None:
    with GGUFFile(UNIGRAM) as file:
        scores = len(file["tokenizer.ggml.scores"])
    bad = tmp_path / "bad.gguf"
    fix(UNIGRAM, bad, set={"tokenizer.ggml.scores": [0.0] * scores})
    found = diff(*(bad, UNIGRAM)[::turn])
    assert found.suspect == (turn < 0)
    assert "All tokens have the same score, which only another conversion mends" in found.reasons


def test_a_word_that_is_plain_in_one_place_only(tmp_path: Path) -> None:
    """Its token is among the right ids, but less often than it is cut out of the text."""
    bad, text = changed(tmp_path / "bad.gguf", token_types={"the": "CONTROL"}), "the other, and then"
    ids = Tokenizer.from_gguf(GPT2).encode(text)
    assert 1169 in ids
    for found in (diagnose(bad, text, ids).explanations[0], verify(bad, GPT2, text)):
        assert found.proposal is not None
        assert found.proposal.change.types == {1169: "NORMAL"}


def test_which_tokens_are_words() -> None:
    markers = find_marker_tokens(Tokenizer.from_gguf(GPT2))
    assert [markers.is_word(token) for token in (THE, 0, 50256, 50257, -1)] == [
        True,
        True,
        False,
        False,
        False,
    ]


FLAGS = {
    "add_bos": "tokenizer.ggml.add_bos_token",
    "add_eos": "tokenizer.ggml.add_eos_token",
    "add_space_prefix": "tokenizer.ggml.add_space_prefix",
    "remove_extra_whitespaces": "tokenizer.ggml.remove_extra_whitespaces",
    "lowercase": "tokenizer.ggml.normalizer.lowercase",
    "strip_accents": "tokenizer.ggml.normalizer.strip_accents",
}


def accused(path: Path, *changes: dict[str, Any]) -> list[list[int | None]]:
    """Which file looks broken where a healthy one is diffed with copies that have other keys: 0 is the healthy one."""
    found: list[list[int | None]] = []
    with GGUFFile(path) as file:
        first, second = (Trial(None, facts=Facts(file, None)) for _ in range(2))  # in a diff
        for keys in changes:
            changed = Trial(None, facts=first.before.changed(keys))
            one, other = weigh(first, changed).suspect, weigh(changed, second).suspect
            found.append([one, other if other is None else 1 - other])
    return found


def flipped(path: Path) -> Iterator[dict[str, Any]]:
    """The keys of a file that is like another one but for a flag."""
    healthy = load_vocabulary(path)
    for field, key in FLAGS.items():
        yield {key: not getattr(healthy, field)}
        yield {key: None}


@pytest.mark.parametrize("path", sorted((ROOT / "fixtures").glob("*.gguf")), ids=lambda path: path.stem)
def test_another_flag_never_speaks_against_a_healthy_file(path: Path) -> None:
    changes = list(flipped(path))
    assert [keys for keys, found in zip(changes, accused(path, *changes)) if 0 in found] == []


QUICK = ("bert-bge", "gpt-2", "llama-spm")
SLOW = ("aquila", "baichuan", "command-r", "deepseek-coder", "deepseek-llm", "falcon", "gemma-4", "gpt-neox")
SLOWER = ("llama-bpe", "mpt", "nomic-bert-moe", "phi-3", "qwen2", "refact", "starcoder")


@pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in (*SLOW, *SLOWER))]
)
def test_another_flag_never_speaks_against_a_real_vocabulary(name: str) -> None:
    try:
        path = vocabulary(name)
    except NotPreparedError as error:
        missing(str(error))
    changes = list(flipped(path))
    assert [keys for keys, found in zip(changes, accused(path, *changes)) if 0 in found] == []


@pytest.mark.parametrize(
    ("base", "healthy", "bad"),
    [
        ("t5", {"add_space_prefix": True}, {"add_space_prefix": False}),
        ("cased", {"lowercase": False}, {"lowercase": True}),
        ("uncased", {"lowercase": True}, {"lowercase": False}),
    ],
)
def test_flags_that_conversions_write_in_one_way(
    base: str, healthy: dict[str, bool], bad: dict[str, bool], tmp_path: Path
) -> None:
    good = UNIGRAM
    if base != "t5":
        good = tmp_path / "good.gguf"
        words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "▁house", "▁House" if base == "cased" else "▁home"]
        ids = {
            f"tokenizer.ggml.{name}_token_id": index
            for index, name in enumerate(("padding", "unknown", "bos", "seperator"))
        }
        types = [3] * 4 + [1] * 2
        keys = {
            "tokenizer.ggml.model": "bert",
            "tokenizer.ggml.tokens": words,
            "tokenizer.ggml.token_type": types,
        }
        write_metadata(good, {**keys, **ids, **{FLAGS[name]: value for name, value in healthy.items()}})
    assert accused(good, {FLAGS[name]: value for name, value in bad.items()}) == [[1, 1]]


@pytest.mark.parametrize("name", ["", "Small-Embedding"])
def test_eos_behind_texts_is_usual_in_models_of_embeddings(name: str, tmp_path: Path) -> None:
    path = chatml(
        tmp_path / "good.gguf", "", **{"general.name": name or "Small", "tokenizer.ggml.add_eos_token": True}
    )
    assert accused(path, {"tokenizer.ggml.add_eos_token": False}) == [[None, None] if name else [0, 0]]


def test_merges_that_are_listed_twice_are_not_fewer_in_the_other_file(tmp_path: Path) -> None:
    with GGUFFile(GPT2) as file:
        merges = list(file["tokenizer.ggml.merges"])
    bad = changed(tmp_path / "bad.gguf", set={"tokenizer.ggml.merges": merges + merges[:10]})
    for pair in ((bad, GPT2), (GPT2, bad)):
        found = diff(*pair)
        assert (found.suspect, found.fix) == (None, "")
        assert [(each.number, each.what) for each in found.sections["merges"]][1:] == [
            (10, "merges are listed more than once in bad")
        ]


@pytest.mark.filterwarnings("ignore:.*is out of range")
def test_a_key_out_of_range_is_removed_where_the_default_is_right(tmp_path: Path) -> None:
    """llama.cpp then takes the token by its text, as in the good file."""
    good, bad = tmp_path / "good.gguf", tmp_path / "bad.gguf"
    write_metadata(
        good, {**with_template("", "<fim_prefix>", "<fim_suffix>"), "tokenizer.ggml.fim_pre_token_id": 266}
    )
    ids = {"tokenizer.ggml.fim_pre_token_id": 7, "tokenizer.ggml.fim_suf_token_id": 99999}
    fix(good, bad, set=ids, force=True)
    found = diff(bad, good)
    assert found.suspect == 0
    assert found.proposal is not None
    assert found.proposal.change.keys == {
        "tokenizer.ggml.fim_pre_token_id": "266",
        "tokenizer.ggml.fim_suf_token_id": None,
    }


@pytest.mark.parametrize("turn", [1, -1])
def test_no_id_is_wanted_of_a_token_that_has_another_place(turn: int, tmp_path: Path) -> None:
    """The id of the other file is that of another token here."""
    good, bad = chatml(tmp_path / "good.gguf"), tmp_path / "bad.gguf"
    with GGUFFile(good) as file:
        tokens = list(file["tokenizer.ggml.tokens"])
    one, other = tokens.index("<|im_start|>"), tokens.index("<|im_end|>")
    tokens[one], tokens[other] = tokens[other], tokens[one]
    fix(good, bad, set={"tokenizer.ggml.tokens": tokens})
    found = diff(*(good, bad)[::turn])
    assert [each.id for each in found.sections["tokens"]] == ["other_id"]
    assert found.sections["special"]
    assert found.fix == ""
    assert not any("_token_id" in what for change in found.changes for what in change.described)


def test_a_wrong_id_is_told_once(tmp_path: Path) -> None:
    bad = changed(tmp_path / "bad.gguf", set={"tokenizer.ggml.eos_token_id": THE})
    found = diff(bad, GPT2)
    assert found.suspect == 0
    assert len([reason for reason in found.reasons if "EOS is" in reason]) == 1
