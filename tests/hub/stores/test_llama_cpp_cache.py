"""llama.cpp's own cache of models."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from stores import llama_cpp_file

from ggufbpe.hub.name_grammar import HubName, LlamaCppName, OllamaName, Reference
from ggufbpe.hub.stores.llama_cpp_cache import LLAMA_CPP_STORE, llama_cpp_folder

FILE = "llama.cpp:o_r_q_r-Q4_0.gguf"
PART = "llama.cpp:o_r_r-Q8_0-00001-of-00002.gguf"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with a repository's files, one of them in two parts."""
    monkeypatch.setenv("LLAMA_CACHE", str(tmp_path / "cache"))
    for file in (
        "q/r-Q4_0.gguf",
        "r-Q8_0-00001-of-00002.gguf",
        "r-Q8_0-00002-of-00002.gguf",
        "mmproj-F16.gguf",
    ):
        llama_cpp_file(tmp_path / "cache", "o/r", file, b"GGUF")
    return tmp_path / "cache"


def test_models(folder: Path) -> None:
    assert sorted(model.name for model in LLAMA_CPP_STORE.models()) == sorted([FILE, PART])


FOUND: dict[Reference, str | None] = {
    LlamaCppName("o_r_q_r-q4_0.gguf"): FILE,
    LlamaCppName("o_r_q_r-Q4_0"): FILE,
    LlamaCppName("o/r:q8_0"): PART,
    LlamaCppName("other"): None,
    HubName("O", "R", "Q4_0"): FILE,
    HubName("o", "r", None, "q/r-Q4_0.gguf"): FILE,
    HubName("o", "r", None, "q/r-Q4_0.gguf", "main"): FILE,
    HubName("o", "r", None, "q/r-Q4_0.gguf", "old"): None,  # only "main" was ever downloaded
    HubName("o", "r", "Q2_K"): None,
    OllamaName("r"): None,
}


@pytest.mark.parametrize("name", FOUND, ids=str)
def test_find(folder: Path, name: Reference, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(folder / "none"))
    found = LLAMA_CPP_STORE.find(name)
    assert (found and found.name) == FOUND[name]


def test_a_link_out_of_the_folder_is_followed(folder: Path, tmp_path: Path) -> None:
    """As llama.cpp does, so users link models into it."""
    (tmp_path / "elsewhere.gguf").write_bytes(b"GGUF")
    (folder / "linked.gguf").symlink_to(tmp_path / "elsewhere.gguf")
    found = LLAMA_CPP_STORE.find(LlamaCppName("linked"))
    assert found is not None
    assert (found.path, found.problem) == (str(folder / "linked.gguf"), "")
    (tmp_path / "elsewhere.gguf").unlink()
    found = LLAMA_CPP_STORE.find(LlamaCppName("linked"))
    assert found is not None
    assert found.problem == "its file is missing"


def test_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLAMA_CACHE", "/a")
    assert llama_cpp_folder() == "/a"
    monkeypatch.delenv("LLAMA_CACHE")
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("XDG_CACHE_HOME", "/b")
    monkeypatch.setattr(sys, "platform", "linux")
    assert llama_cpp_folder() == "/b/llama.cpp"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert llama_cpp_folder() == "/home/me/.cache/llama.cpp"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert llama_cpp_folder() == "/home/me/Library/Caches/llama.cpp"
