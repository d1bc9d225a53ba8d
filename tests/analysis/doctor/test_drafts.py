"""Drafts for speculative decoding: what the rule says of two vocabularies, and what the real llama-server says."""

from __future__ import annotations

import json
import shlex
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from commands import Run, run
from conftest import GPT2, UNIGRAM, prepared
from make_tiny_model import make_tiny_model
from reference import llama_server_command
from stores import lm_studio_file

from ggufbpe import Tokenizer, check_draft, local_drafts
from ggufbpe.analysis.doctor.drafts import draft_differences
from ggufbpe.models.loading import load_vocabulary

__all__ = ["run"]  # the fixture

pytestmark = pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")  # of a pre-tokenizer that does not fit

Changes = dict[str, str | int | bool | None]
ADD_BOS, ADD_EOS, BOS, EOS = (
    f"tokenizer.ggml.{name}" for name in ("add_bos_token", "add_eos_token", "bos_token_id", "eos_token_id")
)

# (of the target, of the draft): the ids of what differs
PAIRS: Mapping[str, tuple[Changes, Changes, list[str]]] = {
    "the same": ({}, {}, []),
    "only the draft adds BOS": ({}, {ADD_BOS: True}, ["bos"]),
    "only the target adds EOS": ({ADD_EOS: True}, {}, ["eos"]),
    "another BOS that both add": ({ADD_BOS: True}, {ADD_BOS: True, BOS: 11}, ["bos"]),
    "another BOS that neither adds": ({}, {BOS: 11}, []),
    "no key for BOS, which both add": ({ADD_BOS: True, BOS: 50256}, {ADD_BOS: True, BOS: None}, ["bos"]),
    "BOS and EOS": ({ADD_BOS: True, ADD_EOS: True}, {EOS: 7}, ["bos", "eos"]),
    "a pre-tokenizer that adds BOS": ({}, {"tokenizer.ggml.pre": "llama-bpe"}, ["bos"]),
    "another pre-tokenizer": ({}, {"tokenizer.ggml.pre": "qwen2"}, []),
}


@pytest.mark.parametrize("name", PAIRS)
def test_llama_server_takes_what_the_rule_takes(name: str, tmp_path: Path) -> None:
    target, draft, expected = PAIRS[name]
    paths = [
        make_tiny_model(tmp_path / f"{number}.gguf", GPT2, changes)
        for number, changes in enumerate((target, draft))
    ]
    found = check_draft(*paths)
    assert [each.id for each in found.differences] == expected
    assert asks_llama_server(*paths) == found.may_draft


def asks_llama_server(target: Path, draft: Path) -> bool:
    """Whether the real program says that the vocabularies are compatible."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    models = ["-m", str(target), "-md", str(draft), "--spec-type", "draft-simple"]
    command = [
        str(prepared(llama_server_command)),
        *models,
        "--port",
        port,
        "-c",
        "64",
        "-t",
        "1",
        "-v",
        "--no-warmup",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:
        assert running.stdout is not None
        try:
            return next(line.split("=")[1].strip() == "1" for line in running.stdout if "vocab_cmpt" in line)
        finally:
            running.kill()


def with_token(path: Path, old: bytes, new: bytes) -> Path:
    """The file with another text, of the same length, for one token."""
    data = path.read_bytes()
    packed = [len(each).to_bytes(8, "little") + each for each in (old, new)]
    assert data.count(packed[0]) == 1
    assert packed[1] not in data
    path.write_bytes(data.replace(*packed))
    return path


def test_another_text(tmp_path: Path) -> None:
    target, draft = (make_tiny_model(tmp_path / f"{name}.gguf") for name in "ab")
    with_token(draft, b"Hello", b"Hell\x01")
    found = check_draft(target, draft)
    [difference] = found.differences
    assert (difference.id, difference.ids) == ("tokens", (15496,))
    assert "15496 ('Hello' and 'Hell\\x01')" in difference.what
    assert (found.verdict, found.fix) == ("incompatible", "")
    assert not asks_llama_server(target, draft)


def test_the_first_five_tokens_are_not_compared(tmp_path: Path) -> None:
    vocabulary = load_vocabulary(GPT2)
    tokens = list(vocabulary.tokens)
    tokens[4] = "other"
    assert list(draft_differences(vocabulary, vocabulary._replace(tokens=tokens))) == []
    tokens[5] = "another"
    [found] = draft_differences(vocabulary, vocabulary._replace(tokens=tokens))
    assert found.ids == (5,)


def test_sizes_and_texts_after_a_nul() -> None:
    vocabulary = load_vocabulary(GPT2)
    for number, expected in ((128, []), (129, ["size"])):
        shorter = vocabulary._replace(tokens=list(vocabulary.tokens)[:-number])
        assert [each.id for each in draft_differences(vocabulary, shorter)] == expected
        assert [each.id for each in draft_differences(shorter, vocabulary)] == expected
    tokens = list(vocabulary.tokens)
    tokens[9] += "\0more"
    assert list(draft_differences(vocabulary, vocabulary._replace(tokens=tokens))) == []


def test_another_kind_of_tokenizer() -> None:
    found = check_draft(GPT2, UNIGRAM)
    assert found.differences[0].id == "type"
    assert found.proposal is None


@pytest.mark.parametrize("name", [name for name, (_, _, expected) in PAIRS.items() if expected])
def test_the_fix_runs_and_makes_the_draft_compatible(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    target, draft, _ = PAIRS[name]
    paths = [
        make_tiny_model(tmp_path / f"{number}.gguf", GPT2, changes)
        for number, changes in enumerate((target, draft))
    ]
    found = check_draft(*paths)
    assert found.proposal is not None
    if not found.fix:
        assert "doctor" in found.proposal.objection  # the target itself is not healthy
        return
    monkeypatch.chdir(tmp_path)
    assert run(*shlex.split(found.fix)[1:]).code == 0
    assert check_draft(paths[0], tmp_path / "fixed.gguf").verdict == "compatible"


def test_drafts_with_heads_of_their_own_are_not_asked(tmp_path: Path) -> None:
    target = make_tiny_model(tmp_path / "a.gguf", GPT2)
    draft = make_tiny_model(tmp_path / "b.gguf", GPT2, {ADD_BOS: True})
    assert check_draft(target, draft).verdict == "incompatible"
    data = draft.read_bytes()
    draft.write_bytes(data.replace(b"blk.0.attn_norm", b"blk.0.nextn.eh_"))  # a name of the same length
    assert check_draft(target, draft).verdict == "incompatible"
    draft.write_bytes(with_tensor_name(data, b"blk.0.nextn.eh_proj.weight"))
    found = check_draft(target, draft)
    assert (found.verdict, found.may_draft, found.differences) == ("not_asked", True, ())
    assert "MTP" in found.reason


def with_tensor_name(data: bytes, name: bytes) -> bytes:
    """A model whose first tensor has this name; padding after the tensor infos makes room for it."""
    old = b"token_embd.weight"
    packed = [len(each).to_bytes(8, "little") + each for each in (old, name)]
    start = data.rindex(packed[0])
    last = data.rindex(b"output_norm.weight") + len(b"output_norm.weight") + 4 + 8 + 4 + 8  # one dimension
    end = -(-last // 32) * 32
    head = data[:start] + packed[1] + data[start + len(packed[0]) : last]
    return head.ljust(-(-len(head) // 32) * 32, b"\0") + data[end:]


def test_an_eagle_head(tmp_path: Path) -> None:
    vocabulary = load_vocabulary(GPT2)._replace(architecture="eagle3", path="")
    found = check_draft(Tokenizer(vocabulary), Tokenizer(vocabulary._replace(add_bos=True)))
    assert found.verdict == "not_asked"
    assert "EAGLE-3" in found.reason


def test_drafts_on_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    for name in ("OLLAMA_MODELS", "HF_HOME", "HF_HUB_CACHE", "LLAMA_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    store = tmp_path / ".lmstudio" / "models"
    tiny = make_tiny_model(tmp_path / "tiny.gguf", GPT2)
    with_bos = make_tiny_model(tmp_path / "bos.gguf", GPT2, {ADD_BOS: True})
    target = lm_studio_file(store, "p/large/large-Q8_0.gguf", tiny.read_bytes() + b"\0" * 4096)
    lm_studio_file(store, "p/small/small-Q8_0.gguf", tiny.read_bytes())
    lm_studio_file(store, "p/other/other-Q8_0.gguf", with_bos.read_bytes() + b"\0" * 64)
    lm_studio_file(store, "p/bert/bert-Q8_0.gguf", Path(UNIGRAM).read_bytes())
    lm_studio_file(store, "p/broken/broken-Q8_0.gguf", b"GGUF")
    lm_studio_file(store, "p/larger/larger-Q8_0.gguf", tiny.read_bytes() + b"\0" * 8192)
    found = [(each.model.name, each.check.verdict, bool(each.check.fix)) for each in local_drafts(target)]
    assert found == [
        ("lmstudio:p/small@Q8_0", "compatible", False),
        ("lmstudio:p/other@Q8_0", "incompatible", True),
    ]
    result = run("models", "--drafts-for", target)
    assert result.code == 0
    assert [line.split()[2:4] for line in result.text.splitlines()[1:]] == [
        ["lmstudio:p/small@Q8_0", "compatible"],
        ["lmstudio:p/other@Q8_0", "after"],
    ]
    rows = json.loads(run("models", "--drafts-for", target, "--json").out)
    assert [row["draft"] for row in rows] == ["compatible", "incompatible"]
    assert run("models", "small", "--drafts-for", target).code == 2


def test_the_command(tmp_path: Path, run: Run) -> None:
    target = make_tiny_model(tmp_path / "a.gguf", GPT2)
    draft = make_tiny_model(tmp_path / "b.gguf", GPT2, {ADD_BOS: True})
    result = run("diff", "--draft", target, draft)
    assert result.code == 1
    assert result.text.splitlines()[:2] == [
        "incompatible: llama.cpp refuses this draft",
        "  The draft adds BOS to a text, and the target does not.",
    ]
    assert "--set tokenizer.ggml.add_bos_token=false" in result.text
    found = json.loads(run("diff", "--draft", target, draft, "--json").out)
    assert (found["verdict"], found["model"]) == ("incompatible", str(draft))
    assert [each["id"] for each in found["findings"]] == ["bos"]
    assert run("diff", "--draft", target, target).code == 0
    assert run("diff", "--draft", target, draft, "-p", "text").code == 2
    assert run("diff", "--draft", target).code == 2
