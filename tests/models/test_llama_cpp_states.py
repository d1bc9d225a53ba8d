"""The known states of llama.cpp: what each lacks, and how a tokenizer of an older one is asked for."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest
from compare_llama_cpp import Package
from conftest import GPT2, PLAMO, ROOT
from llama_cpp_libraries import functions_in
from loading_rules import byte_alphabet
from reference import with_pre, write_metadata

from ggufbpe import LLAMA_CPP, Tokenizer, UnknownPreTokenizerError, UnsupportedTokenizerError
from ggufbpe._util.llama_cpp_states import (
    CHATS,
    DIFFERENCES,
    FOLLOWED,
    STATES,
    STRICT_UTF8,
    between,
    checked_state,
    lacks,
)
from ggufbpe.cli import main
from ggufbpe.gguf.constants import TokenizerKey

pytestmark = pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")

K = TokenizerKey
OVERLONG = b"a\xc1\x81b"  # an overlong "A", which builds before b11739 decode


def test_the_followed_state_lacks_nothing() -> None:
    assert LLAMA_CPP == FOLLOWED == STATES[-1]
    assert CHATS in STATES
    assert all(difference.since in STATES[1:] for difference in DIFFERENCES)
    assert not any(lacks(FOLLOWED, difference.kind) for difference in DIFFERENCES)
    assert list(between(STATES[0], STATES[-1])) == list(DIFFERENCES)


def test_documented() -> None:
    page = (ROOT / "docs" / "llama_cpp.md").read_text().replace("\\|", "|")
    for difference in DIFFERENCES:
        for name in difference.names:
            if difference.kind != "rule":
                assert name.replace("<|plamo:fim_", "").rstrip("|>") in page, name


@pytest.mark.parametrize("state", ["b11600", "b1", "", "newest"])
def test_a_state_whose_answers_are_not_known(state: str) -> None:
    with pytest.raises(ValueError, match=f"known states are {', '.join(STATES)}"):
        checked_state(state)
    with pytest.raises(ValueError, match="known states are"):
        Tokenizer.from_gguf(GPT2, llama_cpp=state)


@pytest.mark.parametrize("state", STATES)
def test_a_tokenizer_keeps_its_state(state: str) -> None:
    tok = Tokenizer.from_gguf(GPT2, llama_cpp=state)
    expected = [64, 4826] if STRICT_UTF8 in lacks(state, "rule") else [64, 6353, 65]
    same = [
        *(tok, copy.copy(tok), copy.deepcopy(tok), pickle.loads(pickle.dumps(tok))),
        *(tok.with_overrides({}), Tokenizer.from_gguf(GPT2).with_llama_cpp(state)),
    ]
    for each in same:
        assert (each.llama_cpp, each.encode(OVERLONG), each.fingerprint) == (state, expected, tok.fingerprint)
        assert Tokenizer(each.vocabulary, "reference").encode(OVERLONG) == expected
    assert len({Tokenizer.from_gguf(GPT2, llama_cpp=other).fingerprint for other in STATES}) == len(STATES)


def test_names_and_models_that_the_oldest_state_refuses(tmp_path: Path) -> None:
    horizon = with_pre(GPT2, "k2-horizon", tmp_path / "k2.gguf")
    with pytest.raises(UnknownPreTokenizerError) as caught:
        Tokenizer.from_gguf(horizon, llama_cpp="0c1e57098")
    assert caught.value.problem == "llama.cpp 0c1e57098 does not know the pre-tokenizer 'k2-horizon'"
    assert FOLLOWED in caught.value.remedy
    plamo3 = with_pre(PLAMO, None, tmp_path / "plamo3.gguf", model="plamo3")
    with pytest.raises(
        UnsupportedTokenizerError, match=r"llama\.cpp 0c1e57098 does not know the tokenizer 'plamo3'"
    ):
        Tokenizer.from_gguf(plamo3, llama_cpp="0c1e57098")
    for path in (horizon, plamo3):
        assert Tokenizer.from_gguf(path, llama_cpp="b11549").llama_cpp == "b11549"


def test_special_tokens_that_the_oldest_state_does_not_know(tmp_path: Path) -> None:
    tokens = [*byte_alphabet(), "<|ifm|im_end|>", "<|plamo:fim_prefix|>", "<|eot|>"]
    keys = {
        "general.architecture": "llama",
        K.MODEL: "gpt2",
        K.PRE: "gpt-2",
        K.LIST: tokens,
        K.MERGES: ["a b"],
    }
    path = write_metadata(tmp_path / "model.gguf", keys | {K.TOKEN_TYPE: [1] * len(tokens)})
    ends = {state: Tokenizer.from_gguf(path, llama_cpp=state) for state in STATES}
    named = {state: {tokens[token] for token in tok.eog_ids if token >= 256} for state, tok in ends.items()}
    assert named["0c1e57098"] == set()
    assert named["b11549"] == {"<|ifm|im_end|>"}
    assert named["b11739"] == named[FOLLOWED] == {"<|ifm|im_end|>", "<|eot|>"}
    assert [tok.fim_pre_id for tok in ends.values()] == [None, *[257] * (len(STATES) - 1)]


@pytest.mark.parametrize("state", STATES)
def test_plamo2_adds_tokens_since_b11549(state: str) -> None:
    overrides = {K.ADD_BOS: True, K.ADD_EOS: True}
    tok = Tokenizer.from_gguf(PLAMO, overrides=overrides, llama_cpp=state)
    plain = tok.encode("a", add_special=False)
    assert tok.encode("a") == (plain if state == "0c1e57098" else [tok.bos_id, *plain, tok.eos_id])


@pytest.mark.parametrize(("flag", "ids"), [([], "[64, 6353, 65]"), (["--llama-cpp", "b11549"], "[64, 4826]")])
def test_tokenize_and_explain_take_the_state(
    flag: list[str], ids: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    (tmp_path / "text").write_bytes(OVERLONG)
    text = ["-m", str(GPT2), "-f", str(tmp_path / "text"), *flag]
    assert main(["tokenize", *text, "--ids"]) == 0
    assert capfdbinary.readouterr().out.decode() == f"{ids}\n"
    assert main(["explain", *text]) == 0
    assert ("Ab" in capfdbinary.readouterr().out.decode()) == bool(flag)


# ---- following a newer one --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("distribution", "version", "build"),
    [
        ("llama-cpp-py-sync", "0.11739", 11739),
        ("llama-cpp-py-sync", "0.10330.2", 10330),
        ("xllamacpp", "2026.10.11549", 11549),
        ("xllamacpp", "2026.4.8672.1", 8672),
        ("llama-cpp-python", "0.3.36", 0),
    ],
)
def test_the_build_in_a_package_version(distribution: str, version: str, build: int) -> None:
    assert Package(distribution, version).build == build


@pytest.mark.parametrize(
    ("symbol", "names"),
    [
        ("_Z26unicode_cpts_normalize_nfcRKSt6vectorIjSaIjEE", ["unicode_cpts_normalize_nfc"]),
        ("_ZNK11llama_vocab4impl8tokenizeERKSsbb", ["llama_vocab::impl::tokenize"]),
        ("_ZZ20unicode_byte_to_utf8hE3map", []),
        ("llama_vocab_bos", []),
    ],
)
def test_functions_of_the_tokenizer_in_symbols(symbol: str, names: list[str]) -> None:
    assert list(functions_in(symbol)) == names
