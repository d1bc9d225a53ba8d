"""How the doctor reports tensors that llama.cpp refuses; tests/gguf/test_tensors.py has what it refuses."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from gguf import GGUFWriter
from mending import COMMAND, done
from small_models import CHATML, FactsOf, K, facts_of, found, small_keys, with_template
from tensors_by_hand import Tensor, model_with

from ggufbpe.analysis.doctor import tensor_checks
from ggufbpe.analysis.doctor.examination import doctor
from ggufbpe.analysis.doctor.special_id_checks import wrong_special_ids
from ggufbpe.analysis.doctor.tensor_checks import broken_tensors
from ggufbpe.gguf.change import flags_of_command
from ggufbpe.gguf.reader import GGUFFile
from ggufbpe.gguf.value_types import Field, GGUFValueType

__all__ = ["facts_of"]  # the fixture

PARTS = {"split.count": Field(GGUFValueType.UINT16, 2), "split.no": Field(GGUFValueType.UINT16, 0)}
PARTS["split.tensors.count"] = Field(GGUFValueType.INT32, 4)


@pytest.mark.parametrize(
    ("data", "name", "expected", "detail"),
    [
        (model_with(), "model.gguf", None, None),
        (model_with(cut=1), "model.gguf", "cut_off", {"tensor": "output_norm.weight", "missing_bytes": 1}),
        (model_with()[:-300], "model.gguf", "cut_off", None),  # within the infos
        (
            model_with([Tensor("a"), Tensor("b", offset=64)]),
            "model.gguf",
            "tensors",
            {"tensor": "b", "missing_bytes": 0},
        ),
        (
            model_with(changes=PARTS),
            "model-00001-of-00002.gguf",
            "parts",
            None,
        ),  # the second one is not there
    ],
    ids=["sound", "data cut off", "infos cut off", "overlapping", "a part missing"],
)
def test_broken_tensors(
    data: bytes, name: str, expected: str | None, detail: dict[str, object] | None, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with GGUFFile(path) as file:
        findings = list(broken_tensors(file))
    assert [(finding.severity, finding.id) for finding in findings] == (
        [("error", expected)] if expected else []
    )
    assert [finding.detail for finding in findings] == ([detail] if expected else [])


@pytest.mark.parametrize(
    ("architecture", "rows", "flags", "after"),
    [
        ("gpt2", 4, None, None),
        ("gpt2", 6, ["--add-token", "[PAD4]=UNUSED", "--add-token", "[PAD5]=UNUSED"], 6),
        ("gpt2", 3, ["--remove-token", "3"], 3),
        ("gpt2", 275, [word for at in range(4, 275) for word in ("--add-token", f"[PAD{at}]=UNUSED")], 275),
        ("gpt2", 2000, [], None),  # too many for a command
        ("gpt2", 2, [], None),  # a token that merges make has no row, and one is that of EOS
        ("eagle3", 6, None, None),  # llama.cpp takes as many as there are
    ],
)
def test_rows_of_an_embedding_that_are_not_as_many_as_the_tokens(
    architecture: str, rows: int, flags: list[str] | None, after: int | None, tmp_path: Path
) -> None:
    """llama.cpp: "tensor 'token_embd.weight' has wrong shape; expected 8, 4, got 8, 6"."""
    path = tmp_path / "model.gguf"
    writer = GGUFWriter(path, architecture)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(["a", "b", "ab", "<|pad|>"])
    writer.add_token_types([1, 1, 1, 3])
    writer.add_token_merges(["a b"])
    writer.add_eos_token_id(2)
    writer.add_tensor("token_embd.weight", np.zeros((rows, 8), dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    findings = [finding for finding in doctor(path).findings if finding.id == "vocabulary_size"]
    assert [finding.severity for finding in findings] == ([] if flags is None else ["error"])
    for finding in findings:
        [command] = COMMAND.findall(finding.fix) or [""]
        assert flags_of_command(command) == flags if flags else not command
        if after:
            fixed = done(command, tmp_path)
            assert fixed is not None
            assert "vocabulary_size" not in [each.id for each in doctor(fixed).findings]


@pytest.mark.parametrize(
    ("more", "template", "begins"),
    [
        (64, CHATML, "fill up the vocabulary, as llama.cpp's converter does: ggufbpe fix"),
        (
            271,
            CHATML,
            "if the original tokenizer has no more tokens, fill up the vocabulary, as llama.cpp's conv",
        ),
        # these markers are plain text in Llama 2, and no tokens
        (
            64,
            "{% for message in messages %}[INST] {{ message.content }} [/INST]<<SYS>>{% endfor %}",
            "fill up the vocabulary, as llama.cpp's converter does: ggufbpe fix",
        ),
        (64, CHATML + "<|eot|>", "convert the model again"),  # which may be the text of one of these rows
    ],
)
def test_rows_without_a_token_are_filled_up_unless_markers_are_lost(
    more: int, template: str, begins: str, facts_of: FactsOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Qwen 2.5 has 151,936 rows and 151,665 tokens."""
    model = facts_of(with_template(template))
    rows = (len(model.tokens) + more) // 8 * 8
    embedding = SimpleNamespace(name=b"token_embd.weight", shape=(8, rows))
    monkeypatch.setattr(tensor_checks, "tensor_infos", lambda _: [embedding])
    [finding] = tensor_checks.rows_of_tokens(model)
    assert finding.fix.startswith(begins)


def test_rows_that_are_no_multiple_of_8_may_be_those_of_lost_tokens(
    facts_of: FactsOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a Mistral with 32,000 tokens and 32,002 rows, the last ones for <|im_start|> and <|im_end|>."""
    model = facts_of(small_keys())
    rows = len(model.tokens) // 8 * 8 + 9
    embedding = SimpleNamespace(name=b"token_embd.weight", shape=(8, rows))
    monkeypatch.setattr(tensor_checks, "tensor_infos", lambda _: [embedding])
    [finding] = tensor_checks.rows_of_tokens(model)
    assert finding.fix.startswith("if the original tokenizer has no more tokens, fill up the vocabulary")


def test_tokens_that_the_chat_template_writes_are_not_removed(
    facts_of: FactsOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = facts_of(with_template(CHATML + "<|last|>", "<|last|>"))
    shape = (8, len(model.tokens) - 1)
    embedding = SimpleNamespace(name=b"token_embd.weight", shape=shape)
    monkeypatch.setattr(tensor_checks, "tensor_infos", lambda _: [embedding])
    [finding] = tensor_checks.rows_of_tokens(model)
    assert finding.fix == "convert the model again, with the tokenizer that belongs to it"


@pytest.mark.parametrize(("key", "is_removed"), [(K.PAD_ID, True), (K.EOS_ID, False)])
def test_a_pad_token_without_a_row_is_removed(key: str, is_removed: bool, tmp_path: Path) -> None:
    """As after a fine-tune that added [PAD] to the tokenizer and did not resize the embedding."""
    path = tmp_path / "model.gguf"
    writer = GGUFWriter(path, "gpt2")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(["a", "b", "ab", "<|endoftext|>", "[PAD]"])
    writer.add_token_types([1, 1, 1, 3, 3])
    writer.add_token_merges(["a b"])
    for each in {K.BOS_ID, K.EOS_ID} - {key}:
        writer.add_uint32(each, 3)
    writer.add_uint32(key, 4)
    writer.add_tensor("token_embd.weight", np.zeros((4, 8), dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    [finding] = [finding for finding in doctor(path).findings if finding.id == "vocabulary_size"]
    [command] = COMMAND.findall(finding.fix) or [""]
    if not is_removed:
        assert finding.fix == "convert the model again, with the tokenizer that belongs to it"
        return
    fixed = done(command, tmp_path)
    assert fixed is not None
    with GGUFFile(fixed) as file:
        assert K.PAD_ID not in file
        assert file[K.LIST] == ["a", "b", "ab", "<|endoftext|>"]


@pytest.mark.parametrize(
    ("key", "is_lost"),
    [(K.EOS_ID, True), (K.BOS_ID, True), (K.EOT_ID, True), (K.PAD_ID, False)],  # no text has PAD
)
def test_a_special_id_with_a_row_is_that_of_a_lost_token(
    key: str, is_lost: bool, facts_of: FactsOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A filler or another token in its place would leave a model whose answers never end."""
    keys = small_keys()
    size = len(keys[K.LIST])
    model = facts_of({**keys, key: size + 1})
    embedding = SimpleNamespace(name=b"token_embd.weight", shape=(8, size + 2))
    monkeypatch.setattr(tensor_checks, "tensor_infos", lambda _: [embedding])
    [rows] = tensor_checks.rows_of_tokens(model)
    assert rows.fix.startswith(
        "convert the model again" if is_lost else "if the original tokenizer has no more"
    )
    [out_of_range] = wrong_special_ids(model)
    assert out_of_range.id == "special_id_out_of_range"
    told = "convert the model again: its tensors have a row for this token, which was lost"
    assert (out_of_range.fix == told) == is_lost


@pytest.mark.parametrize(
    ("architecture", "rows", "is_found"),
    [
        ("llama", 0, False),
        ("llama", 1, True),
        ("llama", -2, True),
        ("eagle3", -2, False),
        ("dflash", -2, False),
        ("qwen3tts", -2, False),  # llama.cpp: src/models/qwen3vl.cpp
        ("wavtokenizer-dec", -2, False),
    ],
)
def test_an_output_layer_has_a_row_for_each_token_as_well(
    architecture: str, rows: int, is_found: bool, facts_of: FactsOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """llama.cpp: "tensor 'output.weight' has wrong shape", as after merging a LoRA that resized the embedding alone."""
    model = facts_of({**small_keys(), "general.architecture": architecture})
    size = len(model.tokens)
    infos = [
        SimpleNamespace(name=b"token_embd.weight", shape=(8, size)),
        SimpleNamespace(name=b"output.weight", shape=(8, size + rows)),
    ]
    monkeypatch.setattr(tensor_checks, "tensor_infos", lambda _: infos)
    findings = list(tensor_checks.rows_of_tokens(model))
    assert found(findings) == [("vocabulary_size", "error")] * is_found
    for finding in findings:
        assert finding.why == "llama.cpp refuses the file: 'output.weight' has wrong shape."
        assert finding.fix == "convert the model again, with the tokenizer that belongs to it"
