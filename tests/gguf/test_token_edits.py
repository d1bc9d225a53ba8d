"""Tokens that are added, removed and renamed: all lists and ids that go with them move along, or nothing does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import missing
from fix_cases import metadata, write_model
from gguf import GGUFWriter
from reference import NotPreparedError, Oracle, vocabulary

from ggufbpe import GGUFWarning, Tokenizer, fix
from ggufbpe._util.errors import TensorError
from ggufbpe.cli import main
from ggufbpe.gguf.constants import TokenizerKey as K
from ggufbpe.gguf.reader import GGUFFile
from ggufbpe.gguf.token_edits import TokenChanges, token_edits

TEXTS = ["Hello <think>world</think>", "<|tool|> a<think>", "ab I'll do it", "<|im_start|>x<|im_end|>"]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A small vocabulary whose tensors have no row for each token."""
    return write_model(tmp_path / "model.gguf")


def after(model: Path, **changes: Any) -> dict[str, Any]:
    out = model.with_name("fixed.gguf")
    fix(model, out, force=True, **changes)
    return metadata(out)


def agrees_with_llama_cpp(path: Path) -> None:
    tokenizer = Tokenizer.from_gguf(path)
    try:
        with Oracle(path) as oracle:
            ids = oracle.tokenize([text.encode() for text in TEXTS], True, True)
    except NotPreparedError as error:
        missing(str(error))
    assert ids == [tokenizer.encode(text) for text in TEXTS]


# ---- adding ---------------------------------------------------------------------------------------------


def test_an_added_token_gets_the_next_id(model: Path) -> None:
    found = after(model, add_tokens={"<think>": "USER_DEFINED", "<|tool|>": "CONTROL"})
    assert found[K.LIST][-2:] == ["<think>", "<|tool|>"]
    assert list(found[K.TOKEN_TYPE][-2:]) == [4, 3]
    assert found[K.MERGES] == metadata(model)[K.MERGES]


def test_a_text_alone_is_added_as_user_defined(model: Path) -> None:
    assert list(after(model, add_tokens=["<think>"])[K.TOKEN_TYPE][-1:]) == [4]
    assert list(after(model, add_tokens="<think>")[K.TOKEN_TYPE][-1:]) == [4]


def test_types_may_be_set_of_what_is_added(model: Path) -> None:
    assert after(model, add_tokens=["<x>"], token_types={"<x>": "CONTROL"})[K.TOKEN_TYPE][-1] == 3


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("ab", "already has the token"),
        ("", "needs a text"),
        ("\udc80", "must be UTF-8"),
    ],
)
def test_what_cannot_be_added(model: Path, text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        fix(model, model.with_name("fixed.gguf"), add_tokens=[text])
    assert not model.with_name("fixed.gguf").exists()


def test_no_byte_is_added(model: Path) -> None:
    with pytest.raises(ValueError, match="cannot be of type BYTE"):
        fix(model, model.with_name("fixed.gguf"), add_tokens={"<0x41>": "BYTE"})


def test_no_text_is_added_twice(model: Path) -> None:
    with pytest.raises(ValueError, match="already has the token"):
        fix(model, model.with_name("fixed.gguf"), add_tokens=["<x>", "<x>"])


def test_many_tokens(model: Path) -> None:
    found = after(model, add_tokens=[f"<{number}>" for number in range(100_000)])
    assert len(found[K.LIST]) == 100_013


@pytest.mark.parametrize("name", ["gpt-2", "llama-bpe", "llama-spm", "bert-bge", "gemma-4", "t5"])
@pytest.mark.slow
def test_llama_cpp_reads_what_was_added(name: str, tmp_path: Path) -> None:
    try:
        source = vocabulary(name)
    except NotPreparedError as error:
        missing(str(error))
    out = tmp_path / "fixed.gguf"
    before = Tokenizer.from_gguf(source)
    fix(
        source, out, add_tokens={"<think>": "USER_DEFINED", "</think>": "USER_DEFINED", "<|tool|>": "CONTROL"}
    )
    tokenizer = Tokenizer.from_gguf(out)
    size = len(before)
    assert [tokenizer.token_to_id(text) for text in ("<think>", "</think>", "<|tool|>")] == [
        size,
        size + 1,
        size + 2,
    ]
    assert size in tokenizer.encode(TEXTS[0])
    assert size + 2 in tokenizer.encode(TEXTS[1], parse_special=True)
    agrees_with_llama_cpp(out)


def test_lists_that_are_longer_than_the_vocabulary_get_the_new_entry_in_its_place(tmp_path: Path) -> None:
    longer = Path(__file__).parents[2] / "fixtures" / "vocabs" / "types-and-scores-longer.gguf"
    out = tmp_path / "fixed.gguf"
    fix(longer, out, add_tokens={"<zz>": "CONTROL"}, force=True)
    found = metadata(out)
    sizes = {len(found[key]) for key in (K.LIST, K.TOKEN_TYPE, K.SCORES)}
    assert (len(sizes), found[K.LIST][-1], found[K.TOKEN_TYPE][-1], found[K.SCORES][-1]) == (
        1,
        "<zz>",
        3,
        -1000.0,
    )


def test_a_text_is_not_given_twice_to_the_command(model: Path) -> None:
    flags = ["--add-token", "<x>=CONTROL", "--add-token", "<x>", "-o", str(model.with_name("fixed.gguf"))]
    assert main(["fix", str(model), *flags]) == 2
    assert not model.with_name("fixed.gguf").exists()


# ---- removing -------------------------------------------------------------------------------------------


def test_ids_behind_a_removed_token_move(model: Path) -> None:
    before = metadata(model)
    found = after(model, remove_tokens="Ġa", set={K.EOS_ID: 1})
    assert found[K.LIST] == [text for text in before[K.LIST] if text != "Ġa"]
    assert found[K.MERGES] == ["a b"]
    assert len(found[K.TOKEN_TYPE]) == len(found[K.LIST])


def test_special_ids_and_suppressed_ones_move(model: Path) -> None:
    with GGUFFile(model) as file:
        assert file[K.LIST][11] == "ab"
    first = model.with_name("first.gguf")
    fix(model, first, set={K.EOS_ID: 12, K.SUPPRESS_TOKENS: [3, 11, 12]}, force=True)
    out = model.with_name("second.gguf")
    fix(first, out, remove_tokens=[11], force=True)
    found = metadata(out)
    assert (found[K.EOS_ID], found[K.BOS_ID], list(found[K.SUPPRESS_TOKENS])) == (11, 0, [3, 11])


def test_the_id_of_no_token_stays(model: Path) -> None:
    first = model.with_name("first.gguf")
    fix(model, first, set={K.PAD_ID: 2**32 - 1}, force=True)
    out = model.with_name("second.gguf")
    fix(first, out, remove_tokens=[11], force=True)
    assert metadata(out)[K.PAD_ID] == 2**32 - 1


def test_a_special_token_is_removed_only_with_its_key(model: Path) -> None:
    out = model.with_name("fixed.gguf")
    with pytest.raises(ValueError, match=r"bos_token_id is 0, a token that is removed"):
        fix(model, out, remove_tokens=[0])
    fix(model, out, remove_tokens=[0], remove=[K.BOS_ID, K.EOS_ID], force=True)
    assert metadata(out)[K.LIST][0] == "a"


def test_a_token_that_stands_for_a_byte_stays(model: Path) -> None:
    with pytest.raises(ValueError, match="stands for a byte"):
        fix(model, model.with_name("fixed.gguf"), remove_tokens="a")
    with pytest.raises(ValueError, match="stands for a byte"):
        fix(model, model.with_name("fixed.gguf"), rename_tokens={"a": "<a>"})


def test_the_size_that_the_architecture_says_changes(tmp_path: Path) -> None:
    path = tmp_path / "vocab.gguf"
    writer = GGUFWriter(path, "llama")
    writer.add_vocab_size(3)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(["<unk>", "▁a", "x"])
    writer.add_token_scores([0.0, -1.0, -2.0])
    writer.add_token_types([2, 1, 1])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    found = after(path, add_tokens=["<t>", "<u>"], remove_tokens=["x"])
    assert found["llama.vocab_size"] == 4
    assert found[K.LIST] == ["<unk>", "▁a", "<t>", "<u>"]
    assert list(found[K.SCORES]) == [0.0, -1.0, -1000.0, -1000.0]
    assert list(found[K.TOKEN_TYPE]) == [2, 1, 4, 4]


# ---- renaming -------------------------------------------------------------------------------------------


def test_a_renamed_token_keeps_its_id(gpt2_path: Path, tmp_path: Path) -> None:
    out, again = tmp_path / "added.gguf", tmp_path / "renamed.gguf"
    fix(gpt2_path, out, add_tokens={"<|reserved_0|>": "CONTROL"})
    fix(out, again, rename_tokens={"<|reserved_0|>": "<|tool|>"})
    tokenizer = Tokenizer.from_gguf(again)
    assert tokenizer.encode("<|tool|>") == [len(tokenizer) - 1]
    agrees_with_llama_cpp(again)


def test_a_token_of_merges_is_not_renamed(model: Path) -> None:
    with pytest.raises(ValueError, match="merges make or use"):
        fix(model, model.with_name("fixed.gguf"), rename_tokens={"ab": "cd"})


def test_a_template_that_writes_what_is_gone_is_warned_about(model: Path) -> None:
    with_template = model.with_name("chat.gguf")
    fix(model, with_template, set={K.CHAT_TEMPLATE: "{{ messages[0].content }}<|endoftext|>"})
    with pytest.warns(GGUFWarning, match="still has '<|endoftext|>', which is no token any more"):
        fix(with_template, model.with_name("fixed.gguf"), rename_tokens={0: "<eos>"})


@pytest.mark.skipif(os.name == "nt", reason="Windows has no /dev/stdout")
def test_a_copy_may_go_through_a_pipe(gpt2_path: Path) -> None:
    command = [sys.executable, "-m", "ggufbpe", "fix", str(gpt2_path), "--rename-token", "50256=<|end|>"]
    done = subprocess.run([*command, "-o", "/dev/stdout"], capture_output=True)
    assert (done.returncode, done.stdout[:4]) == (0, b"GGUF"), done.stderr


# ---- tensors --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("changes", [{"add_tokens": ["<x>"]}, {"remove_tokens": ["ab"]}])
def test_tensors_that_would_have_to_change_are_named(tmp_path: Path, changes: dict[str, Any]) -> None:
    path = tmp_path / "model.gguf"
    writer = GGUFWriter(path, "gpt2")
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(["a", "b", "ab"])
    writer.add_token_merges(["a b"])
    for name in ("token_embd.weight", "output.weight"):
        writer.add_tensor(name, np.zeros((3, 8), dtype=np.float32))
    writer.add_tensor("output_norm.weight", np.zeros(8, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(TensorError) as error:
        fix(path, tmp_path / "fixed.gguf", **changes)
    assert "each of the 3 tokens" in str(error.value)
    assert "'token_embd.weight' (8 x 3), tensor 'output.weight' (8 x 3)" in str(error.value)
    assert "norm" not in str(error.value)


def test_a_shard_says_that_others_may_have_them(model: Path) -> None:
    first = model.with_name("first.gguf")
    with pytest.warns(GGUFWarning, match="a copy of the first part needs the others beside it"):
        fix(model, first, set={"split.count": 3, "split.no": 0, "split.tensors.count": 5}, force=True)
    with GGUFFile(first) as file, pytest.raises(TensorError, match="those of the other 2 shards"):
        token_edits(file, TokenChanges(add=[("<x>", "CONTROL")]))


# ---- the command ----------------------------------------------------------------------------------------


def test_the_command_prints_what_became_of_each_token(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = model.with_name("fixed.gguf")
    flags = [
        "--add-token",
        "<t>=CONTROL",
        "--add-token",
        "a=b",
        "--remove-token",
        "Ġa",
        "--rename-token",
        "0=<eos>",
    ]
    assert main(["fix", str(model), *flags, "-o", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "tokenizer.ggml.tokens[0]: '<|endoftext|>' removed" in printed
    assert "tokenizer.ggml.tokens[12]: '<t>' added" in printed
    assert metadata(out)[K.LIST][-2:] == ["<t>", "a=b"]


def test_only_what_came_and_went_is_printed_where_others_moved(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--add-token", "<t>", "--remove-token", "11", "-o", str(model.with_name("fixed.gguf"))]
    assert main(["fix", str(model), *flags]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "tokens[" in line]
    assert lines == ["tokenizer.ggml.tokens[11]: 'ab' removed", "tokenizer.ggml.tokens[12]: '<t>' added"]


def test_a_text_with_an_equals_sign_is_renamed(model: Path) -> None:
    added, out = model.with_name("added.gguf"), model.with_name("fixed.gguf")
    fix(model, added, add_tokens=["a=b"])
    assert main(["fix", str(added), "--rename-token", "a=b=c=d", "-o", str(out)]) == 2
    assert main(["fix", str(added), "--rename-token", "13=c=d", "-o", str(out)]) == 0
    assert metadata(out)[K.LIST][-1] == "c=d"
