"""What asks the reference: an oracle that could not be opened leaves no child behind it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import compare_llama_cpp
import pytest
import record_fixtures
import reference
from conftest import ROOT, missing
from reference import NEWER, OLDER, LoadError, NotPreparedError, Oracle

from ggufbpe.analysis.oracles import llama_cpp

REFUSED = ROOT / "fixtures" / "malformed" / "empty.gguf"


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """The child processes that are started."""
    started: list[Any] = []

    def start(*arguments: Any) -> Any:
        started.append(original(*arguments))
        return started[-1]

    original = llama_cpp._start_child
    monkeypatch.setattr(llama_cpp, "_start_child", start)
    return started


@pytest.mark.parametrize(("state", "part"), [(NEWER, "--newer"), (OLDER, "--older")])
def test_a_state_that_is_not_there_is_named_with_what_gets_it(
    state: str,
    part: str,
    children: list[Any],
    gpt2_path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GGUFBPE_REFERENCE", str(tmp_path))
    with pytest.raises(NotPreparedError, match=f"prepare {part}"):
        Oracle(gpt2_path, state)
    assert children == []


def test_a_state_without_a_library_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="known states are"):
        reference.library("b1")
    monkeypatch.setattr(reference, "NEWER", "b99999")
    with pytest.raises(ValueError, match=r"gets no library of llama\.cpp b11739"):
        reference.library("b11739")


def test_a_library_of_another_build_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[bool] = []

    def start(oracle: llama_cpp.LlamaCpp, *_: Any, **__: Any) -> None:
        oracle.version = "b99999 (0ce8cd114)"

    monkeypatch.setattr(reference, "library", lambda _: "libllama.so")
    monkeypatch.setattr(llama_cpp.LlamaCpp, "__init__", start)
    monkeypatch.setattr(llama_cpp.LlamaCpp, "close", lambda _: closed.append(True))
    with pytest.raises(llama_cpp.LibraryError, match=f"is llama.cpp b99999, not {NEWER}"):
        Oracle("m.gguf")
    assert closed == [True]


def test_nothing_is_recorded_before_all_answers_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here the second vocabulary has a name that llama.cpp does not know."""

    def record(path: Path, names: list[str]) -> dict[str, Any]:
        if path == record_fixtures.UNSPLIT:
            raise LoadError("refused")
        return {}

    written: list[str] = []
    monkeypatch.setattr(record_fixtures, "record_names", record)
    monkeypatch.setattr(record_fixtures, "write_recorded", lambda name, _: written.append(name))
    monkeypatch.setattr("sys.argv", ["record_fixtures.py", "--only", "names"])
    with pytest.raises(LoadError):
        record_fixtures.main()
    assert written == []


@pytest.mark.parametrize("state", [NEWER, OLDER])
def test_a_refused_file_leaves_no_child(state: str, children: list[Any]) -> None:
    try:
        with pytest.raises(LoadError, match="refused"):
            Oracle(REFUSED, state)
    except NotPreparedError as error:
        missing(str(error))
    assert [child.returncode is not None for child in children] == [True]


@pytest.mark.slow
@pytest.mark.parametrize("state", [NEWER, OLDER])
def test_texts_around_a_crash_have_their_answers(state: str, gpt2_path: Path, tmp_path: Path) -> None:
    """A batch is asked again in parts, down to the texts that llama.cpp dies of: here of a long run (std::regex)."""
    from reference import Crash, with_pre

    model = with_pre(gpt2_path, "gpt-4o", tmp_path / "gpt-4o.gguf")
    texts = [b"Hello", b" world"] * 50
    texts[37] = b"a" * 100_000
    try:
        with Oracle(model, state) as oracle:
            answers = oracle.tokenize(texts, True, True)
            crashes = oracle.crashes
    except NotPreparedError as error:
        missing(str(error))
    assert [index for index, answer in enumerate(answers) if isinstance(answer, Crash)] == [37]
    assert answers[:37] + answers[38:] == ([[15496], [995]] * 50)[:37] + ([[15496], [995]] * 50)[38:]
    assert crashes == 1


# ---- what changed between two states ------------------------------------------------------------------------

VOCAB = """\
struct llm_tokenizer_bpe : llm_tokenizer {
    llm_tokenizer_bpe(const llama_vocab & vocab) {
        switch (vocab.get_pre_type()) {
            case LLAMA_VOCAB_PRE_TYPE_GPT2:
            case LLAMA_VOCAB_PRE_TYPE_MPT:
                regex_exprs = {
                    "'s|\\\\s+", // "a comment"
                };
                break;
            default:
                regex_exprs = { "." };
                break;
        }
    }
};

void llama_vocab::impl::load(llama_model_loader & ml) {
    if (tokenizer_model == "gpt2") {
        special_bos_id = 11;
    }
    if (tokenizer_pre == "default") {
        pre_type = LLAMA_VOCAB_PRE_TYPE_DEFAULT;
    } else if (
            tokenizer_pre == "gpt-2" ||
            tokenizer_pre == "phi-2") {
        pre_type = LLAMA_VOCAB_PRE_TYPE_GPT2;
        clean_spaces = false;
    }
    if (false
            || t.first == "<|im_end|>"
            || t.first == "</s>" // "text"
        ) {
        special_eog_ids.insert(t.second);
    }
    if (_contains_any(tokenizer_pre, {"jina"})) {
    }
}
"""
UNICODE = """\
static std::vector<size_t> unicode_regex_split_custom(const std::string & text) {
    if (regex_expr == "a") {
        bpe_offsets = split_a(text, "}");
    }
}
"""
ARCH = '{ LLM_KV_TOKENIZER_PRE, "tokenizer.ggml.pre" },\n'

CHANGES = {
    "a name": (
        '"phi-2"',
        '"phi-3"',
        ['+ pre-tokenizer "phi-3": pre_type', '- pre-tokenizer "phi-2": pre_type'],
    ),
    "a flag": (
        "clean_spaces = false",
        "clean_spaces = true",
        ['~ pre-tokenizer "gpt-2"', '~ pre-tokenizer "phi-2"'],
    ),
    "a pattern": (
        "\"'s|",
        "\"'t|",
        ["~ patterns of GPT2", "~ patterns of MPT", "~ code of llama-vocab.cpp: struct llm_t"],
    ),
    "a splitter": ("split_a", "split_b", ['~ pattern split by hand "a"']),
    "a model's special id": (
        "= 11",
        "= 12",
        ['~ tokenizer model "gpt2": special_bos_id = 11; -> special_bos_id = 12;'],
    ),
    "a text": ('"</s>"', '"<eos>"', ['+ special text "<eos>": special_eog_ids', '- special text "</s>"']),
    "a telling name": (
        '{"jina"}',
        '{"jina", "mmbert"}',
        ['+ names that set attributes, in tokenizer_pre: "jina", "mmbert"'],
    ),
    "a key": (
        "ggml.pre",
        "ggml.post",
        ['~ key LLM_KV_TOKENIZER_PRE: "tokenizer.ggml.pre" -> "tokenizer.ggml.post"'],
    ),
    "code": ("ml) {", "ml) { return;", ["~ code of llama-vocab.cpp: llama_vocab::impl::load"]),
    "a comment": ('"a comment"', "none", []),
}


@pytest.mark.parametrize(("old", "new", "expected"), CHANGES.values(), ids=CHANGES)
def test_what_changed_between_two_sources(old: str, new: str, expected: list[str], tmp_path: Path) -> None:
    states = []
    for name, change in (("old", str), ("new", lambda text: text.replace(old, new))):
        source = tmp_path / name / "llama.cpp" / "src"
        source.mkdir(parents=True)
        for file, text in (("vocab", VOCAB), ("arch", ARCH)):
            (source / f"llama-{file}.cpp").write_text(change(text))
        (source / "unicode.cpp").write_text(change(UNICODE))
        states.append(compare_llama_cpp.facts(compare_llama_cpp.sources(tmp_path / name)))
    lines = list(compare_llama_cpp.changes(*states))
    for part in expected:
        assert [line for line in lines if part in line], (part, lines)
    assert expected or not lines


def test_sources_that_are_written_otherwise_are_an_error() -> None:
    with pytest.raises(ValueError, match="nothing was found for 'key'"):
        list(compare_llama_cpp.changes({"key": {}}, {"key": {}}))
