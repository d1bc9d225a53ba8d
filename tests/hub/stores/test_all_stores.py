"""Names looked up in all stores together."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from stores import llama_cpp_file, lm_studio_file, ollama_layer, ollama_model

from ggufbpe import StoreError, locate
from ggufbpe.hub.name_grammar import parse_name
from ggufbpe.hub.stores import ollama_store
from ggufbpe.hub.stores.all_stores import (
    STORES,
    closed_folders,
    find_stored,
    how_to_download,
    how_to_use,
    models_named,
    similar_names,
    stored_models,
)
from ggufbpe.hub.stores.stored_model import StoredModel


@pytest.fixture
def stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a model in each of three stores, one of them a link to another's file."""
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    for name in ("OLLAMA_MODELS", "XDG_CACHE_HOME", "HF_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LLAMA_CACHE", str(tmp_path / "llama.cpp"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(ollama_store, "SERVICE_FOLDER", str(tmp_path / "service"))
    models = tmp_path / ".ollama" / "models"
    ollama_model(models, "registry.ollama.ai/library/small/latest", [ollama_layer(models, b"GGUF 1")])
    file = llama_cpp_file(tmp_path / "llama.cpp", "o/r", "Tiny.gguf", b"GGUF 2")
    lm_studio_file(tmp_path / ".lmstudio" / "models", "p/Tiny/o_r_Tiny.gguf", file)
    lm_studio_file(tmp_path / ".lmstudio" / "models", "p/small/small-Q8_0.gguf", b"GGUF 3")
    return tmp_path


def test_a_name_that_opens_a_file_is_meant_before_one_that_is_refused(stores: Path) -> None:
    snapshot = stores / "hub" / "models--o--r" / "snapshots" / "0" / "linked-Q8_0.gguf"
    (stores / "elsewhere.gguf").write_bytes(b"GGUF 4")
    refs = stores / "hub" / "models--o--r" / "refs"
    for folder in (snapshot.parent, refs):
        folder.mkdir(parents=True)
    (refs / "main").write_text("0")
    snapshot.symlink_to(stores / "elsewhere.gguf")
    assert [bool(model.problem) for model in models_named("linked-Q8_0")] == [True]
    (stores / "llama.cpp" / "linked-Q8_0.gguf").symlink_to(stores / "elsewhere.gguf")
    assert [model.name for model in models_named("linked-Q8_0")] == ["llama.cpp:linked-Q8_0.gguf"]


def test_every_store_is_listed(stores: Path) -> None:
    names = [model.name for model in stored_models()]
    assert names == [
        "ollama:small:latest",
        "llama.cpp:o_r_Tiny.gguf",
        "lmstudio:p/Tiny/o_r_Tiny.gguf",
        "lmstudio:p/small@Q8_0",
    ]
    assert {model.store for model in stored_models()} < set(STORES)
    assert closed_folders() == []


def test_a_name_means_the_first_of_two_files(stores: Path) -> None:
    """The second of a program's folders is listed by what opens it."""
    second = stores / "service"
    ollama_model(second, "registry.ollama.ai/library/tiny/latest", [ollama_layer(second, b"GGUF 5")])
    first = stores / ".ollama" / "models"
    ollama_model(first, "registry.ollama.ai/library/tiny/latest", [ollama_layer(first, b"GGUF 6")])
    meant, other = (
        model for model in stored_models() if model.store == "Ollama" and "small" not in model.name
    )
    assert (meant.name, Path(meant.path).read_bytes()) == ("ollama:tiny:latest", b"GGUF 6")
    assert (other.name, Path(other.path).read_bytes()) == (other.path, b"GGUF 5")
    assert models_named("tiny:latest") == [meant] == [find_stored(parse_name("ollama:tiny"))]


@pytest.mark.skipif(os.name == "nt", reason="no such names there")
@pytest.mark.parametrize("file", ["back\\slash.gguf", "a\nb.gguf", "\x1b[31mred.gguf"])
def test_a_file_that_no_name_can_mean_is_listed_by_its_path(stores: Path, file: str) -> None:
    path = stores / ".lmstudio" / "models" / "p" / "odd" / file
    lm_studio_file(stores / ".lmstudio" / "models", f"p/odd/{file}", b"GGUF 5")
    assert [model.name for model in stored_models() if model.path == str(path)] == [str(path)]
    assert locate("odd").path == str(path)


def test_a_name_cannot_garble_the_error(stores: Path) -> None:
    red = StoredModel("hf:o/r/\x1b[31mred\n.gguf", "", "Hugging Face", problem="its file is missing")
    with pytest.raises(StoreError) as caught:
        red.require_usable()
    assert str(caught.value).isprintable()


@pytest.fixture
def cases(stores: Path) -> Path:
    """Models of each program whose names differ in case alone."""
    if (stores / "HUB").exists() or (stores / "LLAMA.CPP").exists():
        pytest.skip("case does not matter to this file system")
    for owner in ("Me", "me"):
        repository = stores / "hub" / f"models--{owner}--one"
        for folder in ("snapshots/0", "refs"):
            (repository / folder).mkdir(parents=True)
        (repository / "snapshots/0/m-Q8_0.gguf").write_bytes(owner.encode())
        (repository / "refs/main").write_text("0")
        (stores / "llama.cpp" / f"{owner}.gguf").write_bytes(owner.encode())
        lm_studio_file(stores / ".lmstudio" / "models", f"{owner}/m/m-Q8_0.gguf", owner.encode())
        models = stores / ".ollama" / "models"
        ollama_model(models, f"h/n/{owner}/latest", [ollama_layer(models, owner.encode())])
    return stores


SAME_BUT_FOR_CASE = ("hf:{}/one", "llama.cpp:{}.gguf", "llama.cpp:{}", "lmstudio:{}/m", "ollama:h/n/{}")


@pytest.mark.parametrize("name", SAME_BUT_FOR_CASE)
@pytest.mark.parametrize("owner", ["Me", "me"])
def test_exactly_that_name_is_meant_first(cases: Path, name: str, owner: str) -> None:
    full = name.format(owner)
    found = find_stored(parse_name(full))
    assert found is not None
    assert Path(found.path).read_bytes() == owner.encode()
    assert models_named(full.partition(":")[2]) == [found]


@pytest.mark.parametrize("name", SAME_BUT_FOR_CASE)
def test_a_name_in_another_case_is_found(cases: Path, name: str) -> None:
    found = find_stored(parse_name(name.format("ME")))
    assert found is not None
    assert Path(found.path).read_bytes() == b"Me"


NAMED = {
    "small": ["ollama:small:latest", "lmstudio:p/small@Q8_0"],
    "SMALL:latest": ["ollama:small:latest"],
    "tiny": ["lmstudio:p/Tiny/o_r_Tiny.gguf"],
    "o_r_Tiny": ["llama.cpp:o_r_Tiny.gguf"],
    "none": [],
}


@pytest.mark.parametrize("name", NAMED)
def test_models_named(stores: Path, name: str) -> None:
    assert [model.name for model in models_named(name)] == NAMED[name]


def test_find_stored(stores: Path) -> None:
    for name in ("ollama:small", "lmstudio:p/small@q8_0", "hf:o/r/Tiny.gguf"):
        assert find_stored(parse_name(name)) is not None
    assert find_stored(parse_name("ollama:other")) is None


SIMILAR = {
    "smal": ["ollama:small:latest"],
    "r_T": ["llama.cpp:o_r_Tiny.gguf"],  # a part of a name
    "r_": [],  # too short to be one
    "tny.gguf": ["lmstudio:p/Tiny/o_r_Tiny.gguf"],
    "p/tiny/o_r": ["lmstudio:p/Tiny/o_r_Tiny.gguf"],  # of the name in full
    "zzz": [],
}


@pytest.mark.parametrize("name", SIMILAR)
def test_similar_names(stores: Path, name: str) -> None:
    assert similar_names(name)[:1] == SIMILAR[name]


DOWNLOADS = {
    "ollama:small": ("ollama pull small:latest", "ollama:small:latest"),
    "hf:o/r/m.gguf@old": ("hf download o/r m.gguf --revision old", "hf:o/r/m.gguf@old"),
    "hf:o/r:Q8_0": None,
    "https://h/a%20b/m.gguf": ("curl -LO https://h/a%20b/m.gguf", "m.gguf"),
    "https://h/m.gguf?signature=1": None,
    "s3://bucket/m.gguf": None,
}


@pytest.mark.parametrize("name", DOWNLOADS)
def test_how_to_download(name: str) -> None:
    assert how_to_download(parse_name(name)) == DOWNLOADS[name]  # type: ignore[arg-type]


def test_how_to_use(tmp_path: Path) -> None:
    copy = str(tmp_path / "a copy.gguf")
    assert f"`lms import '{copy}'`" in how_to_use("lmstudio:p/m", "LM Studio", copy)
    told = how_to_use("ollama:small:latest", "Ollama", copy)
    assert f'"{copy}"' in told
    assert "small" in told
    assert ":latest" not in told
