"""Models by their names: what a name says, which file it means in the stores of this machine, and what is refused."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from commands import output_of_terminal
from conftest import GPT2, UNIGRAM, missing
from remote_server import RemoteServer, Served, remote_server
from stores import (
    COMMITS,
    TEMPLATE,
    hub_cache,
    llama_cpp_file,
    lm_studio_file,
    ollama_layer,
    ollama_model,
)

import ggufbpe
from ggufbpe import ModelNameError, StoreError, Tokenizer, locate
from ggufbpe.analysis.doctor import local_models
from ggufbpe.analysis.doctor.examination import doctor
from ggufbpe.cli import _output, main
from ggufbpe.hub.model_location import fix_command
from ggufbpe.hub.name_grammar import (
    Address,
    BareName,
    FilePath,
    HubName,
    LlamaCppName,
    LMStudioName,
    OllamaName,
    Reference,
    hub_name,
    parse_name,
)
from ggufbpe.hub.quantization import chosen, is_model, model_parts, quantization
from ggufbpe.hub.stores import huggingface_cache, ollama_store
from ggufbpe.hub.stores.stored_model import LARGEST_JSON

pytestmark = pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")

GPT2_DATA, UNIGRAM_DATA = GPT2.read_bytes(), UNIGRAM.read_bytes()

# ---- what a name says -----------------------------------------------------------------------------------

REFERENCES: dict[str, Reference] = {
    "ollama:gemma3": OllamaName("gemma3"),
    "ollama:llama3.2:3b-instruct-q4_K_M": OllamaName("llama3.2", "3b-instruct-q4_K_M"),
    "ollama:someone/model:v1": OllamaName("model", "v1", "someone"),
    "ollama:hf.co/bartowski/x-GGUF:Q8_0": OllamaName("x-GGUF", "Q8_0", "bartowski", "hf.co"),
    "ollama:localhost:5000/library/model": OllamaName("model", host="localhost:5000"),
    "ollama:http://localhost:5000/a/b:c": OllamaName("b", "c", "a", "localhost:5000", "http"),
    "hf:o/r": HubName("o", "r"),
    "hf:o/r:Q4_K_M": HubName("o", "r", "Q4_K_M"),
    "hf:o/r/m.gguf": HubName("o", "r", file="m.gguf"),
    "hf:o/r/Q8_0/m-00001-of-00002.gguf@v1": HubName("o", "r", None, "Q8_0/m-00001-of-00002.gguf", "v1"),
    "hf:o/r:Q8_0@refs/pr/1": HubName("o", "r", "Q8_0", revision="refs/pr/1"),
    "https://huggingface.co/o/r": HubName("o", "r"),
    "https://huggingface.co/o/r/tree/main": HubName("o", "r", revision="main"),
    "https://huggingface.co/o/r?show_file_info=a%2Fm.gguf": HubName("o", "r", file="a/m.gguf"),
    "https://huggingface.co/o/r/tree/main?show_file_info=m.gguf": HubName(
        "o", "r", file="m.gguf", revision="main"
    ),
    "https://huggingface.co/o/r/blob/main/a/m.gguf": HubName("o", "r", file="a/m.gguf", revision="main"),
    "https://huggingface.co/o/r/blob/refs%2Fpr%2F1/m.gguf": HubName(
        "o", "r", file="m.gguf", revision="refs/pr/1"
    ),
    "https://huggingface.co/o/r/resolve/main/m.gguf": Address(
        "https://huggingface.co/o/r/resolve/main/m.gguf"
    ),
    "lmstudio:p/m": LMStudioName("p", "m"),
    "lmstudio:p/m@q4_k_m": LMStudioName("p", "m", "q4_k_m"),
    "lmstudio:p/m/f.gguf": LMStudioName("p", "m", file="f.gguf"),
    "llama.cpp:o_r_f.gguf": LlamaCppName("o_r_f.gguf"),
    "llama.cpp:o/r:Q8_0": LlamaCppName("o/r:Q8_0"),
    "http://host/m.gguf": Address("http://host/m.gguf"),
    "s3://bucket/m.gguf": Address("s3://bucket/m.gguf"),
    "gemma3": BareName("gemma3"),
    "o/r:Q8_0": BareName("o/r:Q8_0"),
    "model.gguf": BareName("model.gguf"),
    "a folder/model": FilePath("a folder/model"),
    "./gemma3": FilePath("./gemma3"),
    "~/model.gguf": FilePath("~/model.gguf"),
    "C:\\models\\m.gguf": FilePath("C:\\models\\m.gguf"),
    "c:m.gguf": FilePath("c:m.gguf"),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_what_a_name_says(name: str) -> None:
    assert parse_name(name) == REFERENCES[name]


@pytest.mark.parametrize("name", REFERENCES)
def test_a_name_in_full_says_the_same(name: str) -> None:
    assert parse_name(str(REFERENCES[name])) == REFERENCES[name]


@pytest.mark.parametrize(
    "name",
    [
        "",
        "a\0b",
        *("ollama:", "ollama:a:", "ollama:..", "ollama:../../etc/passwd", "ollama:a/../b", "ollama:/etc/a/b"),
        *("ollama:a/b/c/d", "ollama:a:b/../c", "ollama:ftp://h/a/b", "ollama:../a/b/c", "ollama:a@b"),
        *(
            "hf:",
            "hf:o",
            "hf:o/..",
            "hf:../r",
            "hf:o/r/../m.gguf",
            "hf:o/r//m.gguf",
            "hf:o/r/x.txt",
            "hf:o/r:",
        ),
        *(
            "hf:o/r/\\\\h\\m.gguf",
            "hf:o/r/C:/m.gguf",
            "hf:o/r@",
            "hf:o/r@../x",
            "hf:o/r@a/../b",
            "hf:o/r:a/b",
        ),
        *("hf:/o/r", "hf:o/r/a\nb.gguf", "hf:o--x/r", f"hf:o/{'r' * 300}"),
        *("lmstudio:p", "lmstudio:../m", "lmstudio:p/..", "lmstudio:p/m/../f.gguf", "lmstudio:p/m/f.txt"),
        *("llama.cpp:", "llama.cpp:../m.gguf", "llama.cpp:/etc/passwd"),
        *("https://", "https:///m.gguf\n", "http://[::1/m.gguf"),
        *("http://h:99999/m.gguf", "http://h:x/m.gguf", "ollama:h:99999/a/b", "ollama:h:x/a/b"),
    ],
)
def test_what_names_no_model(name: str) -> None:
    with pytest.raises(ModelNameError, match="names no model"):
        parse_name(name)


def test_the_flags_of_llama_cpp() -> None:
    assert hub_name("o/r:Q8_0") == HubName("o", "r", "Q8_0")
    assert hub_name("o/r:Q8_0", "a/m.gguf") == HubName("o", "r", file="a/m.gguf")
    with pytest.raises(ModelNameError):
        hub_name("o/r", "../m.gguf")


def test_what_may_be_secret_is_not_shown() -> None:
    shown = str(Address("https://user:password@host/m.gguf?signature=secret"))
    assert shown == "https://host/m.gguf?…"


# ---- which file of a repository -------------------------------------------------------------------------

CHOICES = {  # what common/download.cpp, find_best_model, gives: the files, the quantization, the answer
    "Q4_K_M": (["m-IQ1_S.gguf", "m-Q4_K_M.gguf", "m-Q8_0.gguf"], None, "m-Q4_K_M.gguf"),
    "else Q8_0": (["m-IQ1_S.gguf", "m-Q4_0.gguf", "m-Q8_0.gguf"], None, "m-Q8_0.gguf"),
    "else the first": (["README.md", "m-IQ1_S.gguf", "m-Q4_0.gguf"], None, "m-IQ1_S.gguf"),
    "no model": (["README.md", "mmproj-m-Q8_0.gguf", "m.imatrix.gguf", "mtp-m.gguf"], None, None),
    "the one that is asked for": (["m-Q4_K_M.gguf", "m-Q6_K.gguf"], "Q6_K", "m-Q6_K.gguf"),
    "in small letters": (["m-Q4_K_M.gguf", "m-Q6_K.gguf"], "q6_k", "m-Q6_K.gguf"),
    "not a part of it": (["m-Q4_K_M.gguf"], "Q4", None),
    "nor what is like it": (["m-Q4_K_M.gguf", "m-Q4xK_M.gguf"], "Q4.K_M", None),
    "a companion is none": (["mmproj-m-Q8_0.gguf", "m-Q8_0.gguf"], "Q8_0", "m-Q8_0.gguf"),
    "the first part": (
        ["Q8_0/m-Q8_0-00002-of-00002.gguf", "Q8_0/m-Q8_0-00001-of-00002.gguf"],
        None,
        "Q8_0/m-Q8_0-00001-of-00002.gguf",
    ),
    "by its folder": (["BF16/m-00001-of-00002.gguf", "Q2_K.d/m.gguf"], "q2_k", "Q2_K.d/m.gguf"),
}


@pytest.mark.parametrize("case", CHOICES)
def test_which_file_is_chosen(case: str) -> None:
    files, quant, expected = CHOICES[case]
    assert chosen(files, quant) == expected


def test_what_the_name_of_a_file_says() -> None:
    files = ["m-q4_K_M.gguf", "m.F16.gguf", "m-MXFP4-00001-of-00002.gguf", "m.gguf"]
    assert [quantization(file) for file in files] == ["Q4_K_M", "F16", "MXFP4", ""]
    assert is_model("a/m.gguf") > is_model("a/mmproj-F16.gguf")
    parts = ["m-00001-of-00002.gguf", "m-00002-of-00002.gguf"]
    assert (
        model_parts(parts[1], [*parts, "m-00001-of-00003.gguf", "n-00001-of-00002.gguf", "m.gguf"]) == parts
    )
    assert model_parts("m.gguf", parts) == ["m.gguf"]


# ---- the stores of this machine -------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder without any model, and nothing in the environment that says where models are."""
    for name in list(os.environ):
        if name.startswith(("HF_", "HUGGINGFACE_", "LLAMA_", "OLLAMA_", "XDG_", "GGUFBPE_MODEL")):
            monkeypatch.delenv(name)
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("GGUFBPE_CACHE_DIR", str(tmp_path / "cache-of-ours"))
    monkeypatch.setattr(ollama_store, "SERVICE_FOLDER", str(tmp_path / "service"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def caches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache of the hub with two repositories, as its library makes it."""
    folder = tmp_path_factory.mktemp("hub")
    files = {"Llama-Q8_0.gguf": UNIGRAM_DATA, "Llama-Q4_K_M.gguf": GPT2_DATA, "mmproj-Q4_K_M.gguf": b"GGUF"}
    hub_cache(folder, "bart/Llama-GGUF", files)
    hub_cache(folder, "bart/Llama-GGUF", {"Llama-Q8_0.gguf": GPT2_DATA}, revision="old")
    parts = {f"F16/Big-F16-0000{n}-of-00002.gguf": UNIGRAM_DATA for n in (1, 2)}
    hub_cache(folder, "owner/Big", {**parts, "config.json": b"{}"})
    hub_cache(folder, "owner/Pinned", {"Pinned-Q8_0.gguf": GPT2_DATA}, revision=COMMITS["old"])
    return folder


@pytest.fixture
def stores(home: Path, caches: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All stores, with a few models each."""
    monkeypatch.setenv("HF_HUB_CACHE", str(caches))
    models = home / ".ollama" / "models"
    layers = [ollama_layer(models, b"{{ .Prompt }}", TEMPLATE), ollama_layer(models, GPT2_DATA)]
    ollama_model(models, "registry.ollama.ai/library/gemma3/latest", layers)
    ollama_model(models, "registry.ollama.ai/library/gemma3/4b", layers[1:])
    ollama_model(models, "registry.ollama.ai/library/qwen3/8b", [ollama_layer(models, UNIGRAM_DATA)])
    ollama_model(models, "hf.co/bart/other-GGUF/Q8_0", layers[1:])
    service = home / "service"
    ollama_model(service, "registry.ollama.ai/someone/private/latest", [ollama_layer(service, GPT2_DATA)])
    llama_cpp_file(home / ".cache/llama.cpp", "ggml-org/old-GGUF", "q/old-Q4_0.gguf", UNIGRAM_DATA)
    lm_studio_file(home / ".lmstudio/models", "pub/Mod-GGUF/Mod-Q6_K.gguf", GPT2_DATA)
    lm_studio_file(home / ".lmstudio/models", "pub/Mod-GGUF/mmproj-Mod-F16.gguf", GPT2_DATA)
    lm_studio_file(home / ".lmstudio/models", "pub/gemma3/gemma3-Q4_K_M.gguf", UNIGRAM_DATA)
    return home


MEANT = {  # what is typed: the name in full, and the tokens of the model
    "ollama:gemma3": ("ollama:gemma3:latest", 50257),
    "ollama:Gemma3:4B": ("ollama:gemma3:4b", 50257),
    "ollama:qwen3:8b": ("ollama:qwen3:8b", 1200),
    "ollama:hf.co/bart/other-GGUF:Q8_0": ("ollama:hf.co/bart/other-GGUF:Q8_0", 50257),
    "ollama:someone/private": ("ollama:someone/private:latest", 50257),
    "hf:bart/Llama-GGUF": ("hf:bart/Llama-GGUF:Q4_K_M", 50257),
    "hf:bart/Llama-GGUF:q8_0": ("hf:bart/Llama-GGUF:Q8_0", 1200),
    "hf:bart/Llama-GGUF/Llama-Q8_0.gguf": ("hf:bart/Llama-GGUF:Q8_0", 1200),
    "hf:bart/Llama-GGUF@old": ("hf:bart/Llama-GGUF:Q8_0@old", 50257),
    f"hf:bart/Llama-GGUF@{COMMITS['old']}": ("hf:bart/Llama-GGUF:Q8_0@old", 50257),
    "hf:owner/Big": ("hf:owner/Big:F16", 1200),
    f"hf:owner/Pinned@{COMMITS['old']}": (f"hf:owner/Pinned:Q8_0@{COMMITS['old']}", 50257),
    "https://huggingface.co/owner/Big": ("hf:owner/Big:F16", 1200),
    "hf:ggml-org/old-GGUF": ("llama.cpp:ggml-org_old-GGUF_q_old-Q4_0.gguf", 1200),
    "hf:ggml-org/old-GGUF/q/old-Q4_0.gguf": ("llama.cpp:ggml-org_old-GGUF_q_old-Q4_0.gguf", 1200),
    "llama.cpp:ggml-org/old-GGUF:q4_0": ("llama.cpp:ggml-org_old-GGUF_q_old-Q4_0.gguf", 1200),
    "llama.cpp:ggml-org_old-GGUF_q_old-Q4_0": ("llama.cpp:ggml-org_old-GGUF_q_old-Q4_0.gguf", 1200),
    "llama.cpp:bart/Llama-GGUF:Q8_0": ("hf:bart/Llama-GGUF:Q8_0", 1200),
    "lmstudio:pub/mod-gguf": ("lmstudio:pub/Mod-GGUF@Q6_K", 50257),
    "lmstudio:pub/Mod-GGUF@q6_k": ("lmstudio:pub/Mod-GGUF@Q6_K", 50257),
    "lmstudio:pub/Mod-GGUF/Mod-Q6_K.gguf": ("lmstudio:pub/Mod-GGUF@Q6_K", 50257),
    # without a prefix
    "gemma3:4b": ("ollama:gemma3:4b", 50257),
    "qwen3": ("ollama:qwen3:8b", 1200),
    "bart/Llama-GGUF": ("hf:bart/Llama-GGUF:Q4_K_M", 50257),
    "llama:q8_0": ("hf:bart/Llama-GGUF:Q8_0", 1200),
    "Llama-Q8_0.gguf": ("hf:bart/Llama-GGUF:Q8_0", 1200),
    "Mod": ("lmstudio:pub/Mod-GGUF@Q6_K", 50257),
    "ggml-org/old-GGUF": ("llama.cpp:ggml-org_old-GGUF_q_old-Q4_0.gguf", 1200),
    "ggml-org/old-GGUF:q4_0": ("llama.cpp:ggml-org_old-GGUF_q_old-Q4_0.gguf", 1200),
}


@pytest.mark.parametrize("name", MEANT)
def test_which_model_a_name_means(name: str, stores: Path) -> None:
    found = locate(name)
    assert (found.name, Tokenizer.from_gguf(name).vocab_size) == MEANT[name]


def test_names_in_full_mean_the_same(stores: Path) -> None:
    for model in ggufbpe.local_models(verdicts=False):
        for name in model.names:
            assert os.path.realpath(locate(name).path) == os.path.realpath(model.path)


def test_a_path_that_exists_wins(stores: Path) -> None:
    for name in ("gemma3", "ollama:gemma3", "hf:bart"):
        Path(name).write_bytes(UNIGRAM_DATA)
        assert (locate(name).name, Tokenizer.from_gguf(name).vocab_size) == (name, 1200)


def test_a_name_that_fits_several(stores: Path) -> None:
    with pytest.raises(ModelNameError) as raised:
        locate("gemma3")
    assert raised.value.candidates == ("ollama:gemma3:latest", "lmstudio:pub/gemma3@Q4_K_M")
    assert str(raised.value).endswith("type one of ollama:gemma3:latest, lmstudio:pub/gemma3@Q4_K_M")


NOT_HERE = {
    "nothing": "No such file or directory, and Ollama, Hugging Face, llama.cpp and LM Studio have no model of this "
    "name here; ollama:nothing would read one from the network",
    "owner/nothing:Q8_0": "hf:owner/nothing:Q8_0 would read one from the network",
    "qwen": "(did you mean ollama:qwen3:8b?); ollama:qwen would read one from the network",
    "qwen3:9b": "did you mean ollama:qwen3:8b?",
    "lmstudio:pub/mod": "no such model on this machine (did you mean lmstudio:pub/Mod-GGUF@Q6_K?)",
    "nothing.gguf": "No such file or directory: 'nothing.gguf'",
    "./gemma3": "No such file or directory: './gemma3'",
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_HERE)
def test_what_is_not_here(name: str, stores: Path) -> None:
    with pytest.raises(FileNotFoundError) as raised:
        locate(name)
    assert NOT_HERE[name] in str(raised.value)


@pytest.mark.parametrize("name", ["foo@bar", "-", "a/b/c/d", "a" * 100, "ab:c:d", "o/r:a/b"])
def test_no_name_is_offered_that_names_no_model(name: str, stores: Path) -> None:
    with pytest.raises(FileNotFoundError, match="have no model of this name here: ") as raised:
        locate(name)
    assert "network" not in str(raised.value)


@pytest.mark.parametrize(
    "name", ["ollama:nothing", "hf:owner/nothing", "hf:bart/Llama-GGUF@new", "https://h/m.gguf"]
)
def test_what_is_not_here_is_looked_for_on_the_network(name: str, stores: Path) -> None:
    found = locate(name)
    assert (found.path, found.remote) == ("", parse_name(name))


def test_where_the_stores_are(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of each program says, in its order."""
    assert huggingface_cache.hub_folder() == str(home / ".cache/huggingface/hub")
    found = []
    for name, value in (
        ("XDG_CACHE_HOME", "a"),
        ("HF_HOME", "~/b"),
        ("HUGGINGFACE_HUB_CACHE", "$HOME/c"),
        ("HF_HUB_CACHE", "d"),
    ):
        monkeypatch.setenv(name, value)
        found.append(huggingface_cache.hub_folder())
    assert found == ["a/huggingface/hub", f"{home}/b/hub", f"{home}/c", "d"]
    ollama_model(home / "m", "registry.ollama.ai/library/x/latest", [ollama_layer(home / "m", GPT2_DATA)])
    monkeypatch.setenv("OLLAMA_MODELS", f' "{home / "m"}"')  # the quotes are as Windows' `set` puts them
    assert locate("ollama:x").store == "Ollama"
    llama_cpp_file(home / "n", "o/r", "r-Q8_0.gguf", GPT2_DATA)
    monkeypatch.setenv("LLAMA_CACHE", str(home / "n"))
    assert locate("llama.cpp:o_r_r-Q8_0.gguf").store == "llama.cpp"
    lm_studio_file(home / "elsewhere/models", "p/in-home/m.gguf", GPT2_DATA)
    (home / ".lmstudio-home-pointer").write_text(f"{home}/elsewhere\n")
    assert locate("lmstudio:p/in-home").store == "LM Studio"
    lm_studio_file(home / "downloads", "p/by-settings/m.gguf", GPT2_DATA)
    (home / "elsewhere/settings.json").write_text(json.dumps({"downloadsFolder": str(home / "downloads")}))
    assert locate("lmstudio:p/by-settings").name == "lmstudio:p/by-settings/m.gguf"


def test_the_cache_of_the_hub_in_the_place_of_llama_cpp(
    caches: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLAMA_CACHE", str(caches))
    assert locate("hf:bart/Llama-GGUF").name == "hf:bart/Llama-GGUF:Q4_K_M"
    assert locate("llama.cpp:bart/Llama-GGUF").name == "hf:bart/Llama-GGUF:Q4_K_M"


def test_a_link_to_a_model_of_another_program(stores: Path) -> None:
    """As tools make it that show Ollama's models to LM Studio."""
    blob = Path(locate("ollama:qwen3:8b").path)
    lm_studio_file(stores / ".lmstudio/models", "ollama/qwen3/qwen3.gguf", blob)
    assert Tokenizer.from_gguf("lmstudio:ollama/qwen3").vocab_size == 1200
    assert locate("qwen3").name == "lmstudio:ollama/qwen3/qwen3.gguf"  # whose name it is


# ---- what is not to be trusted --------------------------------------------------------------------------


def manifest(layers: object) -> Callable[[Path], None]:
    return lambda path: path.write_text(json.dumps({"layers": layers})) and None


def layer(
    digest: object = "sha256:" + "0" * 64, size: object = 4, kind: object = ollama_store.MODEL_TYPE
) -> dict[str, Any]:
    return {"mediaType": kind, "digest": digest, "size": size}


def large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 30)


HOSTILE: dict[str, tuple[Callable[[Path], object], str]] = {
    "empty": (lambda path: path.write_bytes(b""), "not valid JSON"),
    "of a gigabyte": (large, f"more than {LARGEST_JSON} bytes"),
    "deep": (lambda path: path.write_bytes(b"[" * 500_000), "not valid JSON"),
    "not UTF-8": (lambda path: path.write_bytes(b'{"layers": "\xff"}'), "not valid JSON"),
    "a list": (lambda path: path.write_bytes(b"[]"), "no list of layers"),
    "no layers": (manifest(None), "no list of layers"),
    "layers of another kind": (manifest([1]), "no list of layers"),
    "no model": (manifest([layer(kind=TEMPLATE)]), "the model has no GGUF"),
    "a path for a digest": (manifest([layer("../../../../etc/passwd")]), "not a sha256 but '../../../../etc/passwd'"),
    "an absolute path": (manifest([layer("/etc/passwd")]), "not a sha256 but '/etc/passwd'"),
    "a path behind the digest": (manifest([layer("sha256:" + "0" * 64 + "/../x")]), "not a sha256"),
    "a digest of another kind": (manifest([layer("md5:" + "0" * 32)]), "not a sha256"),
    "no digest": (manifest([layer(None)]), "not a sha256 but 'None'"),
    "no blob": (manifest([layer()]), "its file is missing"),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_a_manifest_that_lies(case: str, home: Path) -> None:
    write, problem = HOSTILE[case]
    models = home / ".ollama/models"
    path = ollama_model(models, "registry.ollama.ai/library/bad/latest", [])
    write(path)
    with pytest.raises(StoreError) as raised:
        locate("ollama:bad")
    assert problem in str(raised.value)
    (model,) = ggufbpe.local_models()
    assert (model.name, model.verdict, problem in str(model.problem)) == ("ollama:bad:latest", "broken", True)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_a_manifest_that_is_a_pipe(home: Path) -> None:
    path = ollama_model(home / ".ollama/models", "registry.ollama.ai/library/bad/latest", [])
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(StoreError, match="not a regular file"):
        locate("ollama:bad")


def test_a_blob_of_another_size(home: Path) -> None:
    models = home / ".ollama/models"
    wrong = {**ollama_layer(models, GPT2_DATA), "size": len(GPT2_DATA) + 1}
    ollama_model(models, "registry.ollama.ai/library/cut/latest", [wrong])
    with pytest.raises(
        StoreError, match=f"has {len(GPT2_DATA)} bytes, and {len(GPT2_DATA) + 1} by its manifest"
    ):
        locate("ollama:cut")


def test_a_blob_that_is_a_link_out_of_the_store(home: Path) -> None:
    models = home / ".ollama/models"
    made = ollama_layer(models, GPT2_DATA)
    blob = models / "blobs" / made["digest"].replace(":", "-")
    blob.unlink()
    blob.symlink_to(GPT2)
    ollama_model(models, "registry.ollama.ai/library/linked/latest", [made])
    with pytest.raises(StoreError, match="a link out of the store"):
        locate("ollama:linked")


def test_names_in_a_store_that_no_model_has(home: Path) -> None:
    models = home / ".ollama/models"
    for place in ("registry.ollama.ai/library/-x/latest", "..a/library/x/latest", "h/n.s/x/latest"):
        ollama_model(models, place, [ollama_layer(models, GPT2_DATA)])
    (models / "manifests/registry.ollama.ai/library/empty/latest").mkdir(parents=True)
    assert ggufbpe.local_models() == []


def test_a_snapshot_that_links_out_of_the_cache(
    caches: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = home / "hub"
    hub_cache(folder, "o/r", {"r-Q8_0.gguf": GPT2_DATA})
    link = next(folder.glob("models--o--r/snapshots/*/r-Q8_0.gguf"))
    link.unlink()
    link.symlink_to(GPT2)
    monkeypatch.setenv("HF_HUB_CACHE", str(folder))
    with pytest.raises(StoreError, match="a link out of the cache"):
        locate("hf:o/r")
    link.unlink()
    link.symlink_to("../../blobs/gone")
    with pytest.raises(StoreError, match="its file is missing"):
        locate("hf:o/r")


@pytest.mark.parametrize("commit", ["../../..", "/etc", "", "a/b", "x" * 100_000, "\xff"])
def test_a_revision_that_leads_elsewhere(commit: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = home / "hub"
    place = folder / "models--o--r"
    (place / "refs").mkdir(parents=True)
    (place / "refs" / "main").write_bytes(commit.encode("latin-1"))
    (folder / "m-Q8_0.gguf").write_bytes(GPT2_DATA)
    monkeypatch.setenv("HF_HUB_CACHE", str(folder))
    assert locate("hf:o/r").path == ""


# ---- in the commands and functions ----------------------------------------------------------------------


def run(*arguments: str, capsysbinary: pytest.CaptureFixture[bytes]) -> tuple[int, str, str]:
    code = main(arguments)
    out, err = capsysbinary.readouterr()
    return code, out.decode(), err.decode()


COMMANDS = {  # the arguments, and what is in the output
    "tokenize": ("tokenize -m qwen3 -p a --ids", "["),
    "tokenize, -hf": ("tokenize -hf bart/Llama-GGUF:Q4_K_M -p Hello --ids", "[15496]"),
    "tokenize, --hf-file": ("tokenize -hf bart/Llama-GGUF -hff Llama-Q4_K_M.gguf -p Hello --ids", "[15496]"),
    "tokenize, offline": ("tokenize -m ollama:gemma3 --offline --refresh -p Hello --ids", "[15496]"),
    "detokenize": ("detokenize -m ollama:gemma3 15496", "Hello"),
    "count": ("count -m ollama:gemma3 text", "text"),
    "stats": ("stats -m ollama:gemma3 -m hf:bart/Llama-GGUF:Q8_0 text", "Llama-GGUF:Q8_0"),
    "info": ("info ollama:gemma3", "by name         ollama:gemma3:latest"),
    "explain": ("explain -m ollama:gemma3 -p Hello", "15496"),
    "chat": ("chat -m ollama:gemma3 -p Hello", "Hello"),
    "doctor": ("doctor -hf bart/Llama-GGUF:Q8_0", "hf:bart/Llama-GGUF:Q8_0"),
    "compare": ("compare ollama:gemma3 Mod -p Hello", "ollama:gemma3:latest"),
    "compare, -hf": ("compare ollama:gemma3 -hf bart/Llama-GGUF -p Hello", "Llama-GGUF:Q4_K_M"),
    "diff": ("diff ollama:gemma3 hf:bart/Llama-GGUF", "the vocabularies and chat templates are the same"),
    "verify": ("verify -m ollama:gemma3 --against gguf:hf:bart/Llama-GGUF text", "the ids are the same"),
    "diagnose": ("diagnose -m ollama:gemma3 -p Hello --ids [15496]", "match: "),
    "export": ("export ollama:gemma3 --to tiktoken --no-check", "wrote gemma3-latest.tiktoken"),
    "export, metadata": ("export ollama:gemma3 --to vocab-gguf --no-check", "wrote gemma3-latest-vocab.gguf"),
    "train": (
        "train text --seed-vocab ollama:gemma3 --vocab-size 50257 -o t.gguf",
        "t.gguf",
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_take_names(command: str, stores: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    arguments, expected = COMMANDS[command]
    Path("text").write_text("Hello\n")
    code, out, err = run(*arguments.split(), capsysbinary=capsysbinary)
    assert (code, expected in out + err) == (0, True), (out, err)


def test_what_was_chosen_is_said(stores: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    told = [
        run("tokenize", "-m", name, "-p", "Hello", "--ids", capsysbinary=capsysbinary)[2]
        for name in ("hf:bart/Llama-GGUF", "bart/Llama-GGUF", "hf:bart/Llama-GGUF:Q4_K_M")
    ]
    assert told == [
        "ggufbpe: using hf:bart/Llama-GGUF:Q4_K_M, the file on this machine\n",
        "ggufbpe: using hf:bart/Llama-GGUF:Q4_K_M, a model of Hugging Face\n",
        "",
    ]


def test_ollamas_own_template_is_not_that_of_the_file(
    stores: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    _, _, told = run("chat", "-m", "ollama:gemma3", "-p", "Hello", capsysbinary=capsysbinary)
    assert "Ollama renders chats of this model by the Go template beside the file" in told
    _, _, told = run("chat", "-m", "ollama:gemma3:4b", "-p", "Hello", capsysbinary=capsysbinary)
    assert "Go template" not in told


def test_python_takes_names(stores: Path) -> None:
    assert ggufbpe.compare(["ollama:gemma3", "Mod"], "Hello").is_same
    found = ggufbpe.diff("ollama:qwen3:8b", locate("hf:owner/Big"))
    assert (found.same, found.models) == (True, ("ollama:qwen3:8b", "hf:owner/Big:F16"))
    assert ggufbpe.doctor("qwen3").path == "ollama:qwen3:8b"
    tokenizer = Tokenizer.from_gguf("ollama:gemma3")
    with tokenizer.gguf_file() as path:
        assert Path(path).read_bytes() == GPT2_DATA
    assert (tokenizer.name, tokenizer.with_overrides({}).name) == ("ollama:gemma3:latest",) * 2


# ---- a corrected copy -----------------------------------------------------------------------------------

SET = {"tokenizer.ggml.add_bos_token": True}
USES = {
    "ollama:gemma3": "ollama show --modelfile gemma3 > Modelfile`, write FROM {copy} in the place of its FROM line, "
    "then `ollama create gemma3-fixed -f Modelfile`",
    "hf:bart/Llama-GGUF": "`llama-server -m {copy}`",
    "Mod": "`lms import {copy}`",
    "llama.cpp:ggml-org_old-GGUF_q_old-Q4_0.gguf": "`llama-server -m {copy}`",
}  # fmt: skip


@pytest.mark.parametrize("name", USES)
def test_a_copy_is_written_and_its_use_is_said(
    name: str, stores: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    before = Path(locate(name).path).read_bytes()
    flags = ("--set", "tokenizer.ggml.add_bos_token=true", "-o", "fixed.gguf")
    code, out, _ = run("fix", name, *flags, capsysbinary=capsysbinary)
    assert (code, USES[name].format(copy=stores / "fixed.gguf") in out) == (0, True)
    assert Tokenizer.from_gguf("fixed.gguf").add_bos
    assert Path(locate(name).path).read_bytes() == before


@pytest.mark.parametrize("name", USES)
def test_no_file_of_a_store_is_changed(name: str, stores: Path) -> None:
    path = locate(name).path
    before = Path(path).read_bytes()
    with pytest.raises(StoreError, match="not changed in place; write a copy"):
        ggufbpe.fix(name, in_place=True, set=SET)
    if not name.startswith(("Mod", "llama.cpp")):  # which have no digests, so that a path may be changed
        with pytest.raises(StoreError, match="named by the digest"):
            ggufbpe.fix(path, in_place=True, set=SET)
        with pytest.raises(StoreError, match="named by the digest"):
            ggufbpe.fix(GPT2, path, set=SET, force=True)
    assert Path(path).read_bytes() == before


def test_no_copy_of_a_remote_model(stores: Path) -> None:
    with pytest.raises(StoreError, match="a copy needs its tensors; download it first, then"):
        ggufbpe.fix("hf:owner/nothing", "fixed.gguf", set=SET)
    with pytest.raises(
        StoreError, match=r"download it first \(hf download owner/nothing a.gguf\), then give hf:"
    ):
        ggufbpe.fix("hf:owner/nothing/a.gguf", "fixed.gguf", set=SET)


@pytest.mark.parametrize(
    ("path", "command"),
    [
        ("a model.gguf", "ggufbpe fix 'a model.gguf'"),
        ("", "ggufbpe fix model.gguf"),
        (
            "hf:far/Model-GGUF/Q8_0/m.gguf@v1",
            "download it first (hf download far/Model-GGUF Q8_0/m.gguf --revision v1), "
            "then ggufbpe fix hf:far/Model-GGUF/Q8_0/m.gguf@v1",
        ),
        ("ollama:gemma3:4b", "download it first (ollama pull gemma3:4b), then ggufbpe fix ollama:gemma3:4b"),
        (
            "https://a.b/c/m.gguf",
            "download it first (curl -LO https://a.b/c/m.gguf), then ggufbpe fix m.gguf",
        ),
        ("https://a.b/m.gguf?…", "download it first, then ggufbpe fix model.gguf"),
        ("s3://bucket/m.gguf", "download it first, then ggufbpe fix model.gguf"),
    ],
)
def test_a_fix_is_of_a_file_that_is_here(path: str, command: str) -> None:
    assert fix_command(path, ["--set", "a=b c"]) == f"{command} --set 'a=b c' -o fixed.gguf"


# ---- remote ---------------------------------------------------------------------------------------------


@pytest.fixture
def far(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RemoteServer]:
    """A hub and a registry with models of 40 GB."""
    import huggingface_hub.constants

    with remote_server() as server:
        large = {"size": 40 << 30}
        server.put_hub(
            "far/Model-GGUF",
            {
                "Model-Q8_0.gguf": Served(UNIGRAM_DATA, **large),
                "Model-Q4_K_M.gguf": Served(GPT2_DATA, **large),
                "mmproj-F16.gguf": Served(b"GGUF"),
            },
        )
        server.put_ollama(
            "library/far", "latest", Served(GPT2_DATA, **large), "sha256:" + "0123456789abcdef" * 4
        )
        server.put("/model.gguf", GPT2_DATA, **large)
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", server.home)
        template = server.home + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        yield server


FAR = {  # the name, where {} is the server's address; what it is in full; the tokens
    "the hub": ("hf:far/Model-GGUF", "hf:far/Model-GGUF/Model-Q4_K_M.gguf", 50257),
    "a quantization": ("hf:far/Model-GGUF:q8_0", "hf:far/Model-GGUF/Model-Q8_0.gguf", 1200),
    "a file": ("hf:far/Model-GGUF/Model-Q8_0.gguf", "hf:far/Model-GGUF/Model-Q8_0.gguf", 1200),
    "a registry": ("ollama:{}/library/far", "ollama:{}/library/far:latest", 50257),
    "an address": ("{}/model.gguf", "{}/model.gguf", 50257),
}


@pytest.mark.parametrize("case", FAR)
def test_a_remote_model(case: str, far: RemoteServer) -> None:
    name, full, tokens = (each.format(far.home) if isinstance(each, str) else each for each in FAR[case])
    tokenizer = Tokenizer.from_gguf(name)
    assert (tokenizer.name, tokenizer.vocab_size) == (full, tokens)
    far.requests.clear()
    assert Tokenizer.from_gguf(locate(name, offline=True)).vocab_size == tokens
    assert far.requests == []  # the metadata is here now
    with tokenizer.gguf_file() as path:  # for other programs
        assert Tokenizer.from_gguf(path).encode("Hello") == tokenizer.encode("Hello")


def test_what_is_here_is_not_asked_for(far: RemoteServer, stores: Path) -> None:
    for name in MEANT:
        locate(name, refresh=True).opened()
    assert far.requests == []


FAR_COMMANDS = {
    "tokenize": ("tokenize -hf far/Model-GGUF -p Hello --ids", "hf:far/Model-GGUF/Model-Q4_K_M.gguf, of the files"),
    "tokenize, -mu": ("tokenize -mu {}/model.gguf -p Hello --ids", "[15496]"),
    "info": ("info hf:far/Model-GGUF", "42949672960 bytes"),
    "doctor": ("doctor {}/model.gguf", "OK: nothing to fix"),
    "diff": ("diff hf:far/Model-GGUF ollama:{}/library/far", "the vocabularies and chat templates are the same"),
    "export": ("export hf:far/Model-GGUF --to vocab-gguf --no-check", "wrote Model-GGUF-vocab.gguf"),
    "train": ("train text --seed-vocab {}/model.gguf --vocab-size 50257 -o t.gguf", "50257 tokens"),
    "models --remote": ("models --remote hf:far/Model-GGUF", "42.9 GB  hf:far/Model-GGUF/Model-Q8_0.gguf"),
}  # fmt: skip


def test_offline_is_for_the_other_model_too(
    far: RemoteServer, stores: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    flags = ("--against", "gguf:hf:far/Model-GGUF", "-p", "Hello", "--offline")
    code, _, err = run("verify", "-m", "ollama:gemma3", *flags, capsysbinary=capsysbinary)
    assert (code, far.requests, "--offline was given" in err) == (2, [], True)


@pytest.mark.slow
@pytest.mark.parametrize("command", FAR_COMMANDS)
def test_commands_on_a_remote_model(
    command: str, far: RemoteServer, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    Path("text").write_text("Hello\n")
    arguments, expected = FAR_COMMANDS[command]
    code, out, err = run(*arguments.format(far.home).split(), capsysbinary=capsysbinary)
    assert (code, expected in out + err) == (0, True), (out, err)


def test_refresh_asks_once(far: RemoteServer, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    asked = []
    for flags in ([], [], ["--refresh"], ["--offline"]):
        far.requests.clear()
        assert run("info", "hf:far/Model-GGUF", *flags, capsysbinary=capsysbinary)[0] == 0
        asked.append([request.path for request in far.requests if "/api/models/" in request.path])
    assert list(map(len, asked)) == [1, 0, 1, 0]


def test_without_a_network_nothing_is_tried_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    import huggingface_hub.constants

    def fail(*_: object, **__: object) -> NoReturn:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    waits: list[float] = []
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "https://hub.invalid")
    monkeypatch.setattr(socket, "getaddrinfo", fail)
    monkeypatch.setattr(time, "sleep", waits.append)
    for proxy in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(proxy, raising=False)
        monkeypatch.delenv(proxy.upper(), raising=False)
    with pytest.raises(ggufbpe.RemoteError, match=r"the hub cannot be reached .*Name or service not known"):
        locate("hf:far/Model-GGUF").opened()
    assert waits == []


def test_offline(far: RemoteServer, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    code, _, err = run("info", "hf:far/Model-GGUF", "--offline", capsysbinary=capsysbinary)
    assert (code, far.requests, "--offline was given" in err) == (2, [], True)


# ---- the list of models ---------------------------------------------------------------------------------


def test_the_list_of_models(stores: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    (stores / ".lmstudio/models/pub/gemma3/gemma3-Q4_K_M.gguf").write_bytes(b"GGUF")
    found = {model.name: model for model in ggufbpe.local_models()}
    assert sorted(found) == [
        "hf:bart/Llama-GGUF:Q4_K_M",
        "hf:bart/Llama-GGUF:Q8_0",
        "hf:owner/Big:F16",  # that of the revision "old" is the same blob as Q4_K_M
        f"hf:owner/Pinned:Q8_0@{COMMITS['old']}",
        "llama.cpp:ggml-org_old-GGUF_q_old-Q4_0.gguf",
        "lmstudio:pub/Mod-GGUF@Q6_K",
        "lmstudio:pub/gemma3@Q4_K_M",
        "ollama:gemma3:4b",
        "ollama:qwen3:8b",
        "ollama:someone/private:latest",
    ]
    gemma = found["ollama:gemma3:4b"]
    assert gemma.names == ("ollama:gemma3:4b", "ollama:gemma3:latest", "ollama:hf.co/bart/other-GGUF:Q8_0")
    facts = ("size", "architecture", "tokenizer", "pre", "tokens", "context", "chat_template", "verdict")
    assert [getattr(gemma, fact) for fact in facts] == [
        *(len(GPT2_DATA), "gpt2", "gpt2", "gpt-2", 50257, 1024, None, "healthy"),
    ]
    assert found["hf:owner/Big:F16"].size == 2 * len(UNIGRAM_DATA)
    broken = found["lmstudio:pub/gemma3@Q4_K_M"]
    assert (broken.verdict, broken.problem) == (
        "broken",
        "the file ends after 4 bytes, inside the version number",
    )
    _, out, _ = run("models", "qwen3", "--json", capsysbinary=capsysbinary)
    assert json.loads(out) == [found["ollama:qwen3:8b"].to_dict()]


def test_a_verdict_is_kept(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For files that differ in nothing that doctor looks at, in this run and the next."""
    examined = []
    monkeypatch.setattr(local_models, "doctor", lambda path: examined.append(path) or doctor(path))
    for name, changes in (
        ("Q8_0", {"general.file_type": 7}),
        ("F16", {"general.file_type": 1}),
        ("BF16", {"tokenizer.ggml.add_eos_token": False}),
    ):
        ggufbpe.fix(UNIGRAM, f"m-{name}.gguf", set=changes)
        lm_studio_file(home / ".lmstudio/models", f"p/m/m-{name}.gguf", Path(f"m-{name}.gguf").read_bytes())
    for _ in range(2):
        assert [model.verdict for model in ggufbpe.local_models()] == ["healthy"] * 3
    assert [Path(path).name for path in examined] == ["m-BF16.gguf", "m-F16.gguf"]
    verdicts = home / "cache-of-ours/verdicts.json"
    lie = json.dumps(dict.fromkeys(json.loads(verdicts.read_text()), "splendid"))
    for damage in ("[" * 10_000, "[]", "1", lie):
        verdicts.write_text(damage)
        assert [model.verdict for model in ggufbpe.local_models("m-f16")] == ["healthy"]


def test_a_file_is_broken_only_if_none_of_its_names_opens_it(
    home: Path, caches: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hub's cache may not link out of itself; llama.cpp's folder may."""
    link = home / "llama/models--o--r/snapshots" / COMMITS["old"] / "r-Q8_0.gguf"
    link.parent.mkdir(parents=True)
    link.symlink_to(GPT2)
    monkeypatch.setenv("LLAMA_CACHE", str(home / "llama"))
    (refused,) = ggufbpe.local_models(verdicts=False)
    assert (refused.verdict, refused.problem) == ("broken", "its file is a link out of the cache")
    (home / "llama/r-Q8_0.gguf").symlink_to(GPT2)
    (model,) = ggufbpe.local_models()
    assert (model.names, model.verdict) == (("llama.cpp:r-Q8_0.gguf",), "healthy")
    assert model.path == str(home / "llama/r-Q8_0.gguf")


def test_the_list_by_name(stores: Path) -> None:
    def names(pattern: str) -> list[str]:
        return [model.name for model in ggufbpe.local_models(pattern, verdicts=False)]

    assert names("QWEN") == names("ollama:q*") == names("qwen3:?b") == ["ollama:qwen3:8b"]
    assert names("nothing") == names("ollama:q")[1:] == []


def test_the_pattern_of_a_list_is_a_text() -> None:
    with pytest.raises(TypeError, match=r"^pattern must be a str, not int$"):
        ggufbpe.local_models(5)  # type: ignore[arg-type]


def test_the_list_for_people(stores: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    (stores / ".lmstudio/models/pub/gemma3/gemma3-Q4_K_M.gguf").write_bytes(b"GGUF")
    _, out, _ = run("models", "gemma3", "--no-doctor", capsysbinary=capsysbinary)
    lines = [line.split() for line in out.splitlines()]
    assert lines[:3] == [
        [
            "size",
            "tokens",
            "context",
            "architecture",
            "tokenizer",
            "pre-tokenizer",
            "template",
            "doctor",
            "security",
            "name",
        ],
        ["1.8", "MB", "50257", "1024", "gpt2", "gpt2", "gpt-2", "no", "-", "-", "ollama:gemma3:4b"],
        ["=", "ollama:gemma3:latest"],
    ]
    assert lines[4][:2] == ["broken", "lmstudio:pub/gemma3@Q4_K_M:"]
    said = "ggufbpe: no model of that name of Ollama, Hugging Face, llama.cpp or LM Studio on this machine\n"
    assert run("models", "nothing", capsysbinary=capsysbinary) == (0, "", said)


def test_a_list_wider_than_the_terminal_has_a_paragraph_for_each_model(
    stores: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    (stores / ".lmstudio/models/pub/gemma3/gemma3-Q4_K_M.gguf").write_bytes(b"GGUF")
    monkeypatch.setattr(_output, "terminal_width", lambda: 60)
    _, out, _ = run("models", "gemma3", "--no-doctor", capsysbinary=capsysbinary)
    assert out.splitlines()[:5] == [
        "ollama:gemma3:4b",
        "  size 1.8 MB, tokens 50257, context 1024,",
        "  architecture gpt2, tokenizer gpt2, pre-tokenizer gpt-2,",
        "  template no",
        "  = ollama:gemma3:latest",
    ]


def test_folders_that_are_closed_are_said(
    stores: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """As that of Ollama's service is to users who are not in its group."""
    closed, listed = str(stores / "service"), os.listdir

    def listdir(folder: str) -> list[str]:
        if folder.startswith(closed):
            raise PermissionError(13, "Permission denied", folder)
        return listed(folder)

    monkeypatch.setattr(os, "listdir", listdir)
    with pytest.raises(FileNotFoundError, match=re.escape(f"; you may not read {closed}")):
        locate("private")
    code, out, err = run("models", "--no-doctor", "--json", capsysbinary=capsysbinary)
    assert (code, "private" in out) == (0, False)
    assert err == f"ggufbpe: you may not read {closed}, so models of Ollama may be missing\n"
    monkeypatch.setenv("LLAMA_CACHE", closed)  # a folder of two more programs, which is said once
    with pytest.raises(FileNotFoundError, match=re.escape(f"; you may not read {closed}; ")):
        locate("private")


# ---- completion -----------------------------------------------------------------------------------------

COMPLETED = {  # the line so far, and how it may go on; bash takes what follows a colon for another word
    "ggufbpe tok": ["tokenize"],
    "ggufbpe tokenize --off": ["--offline"],
    "ggufbpe tokenize -m lm": ["lmstudio:pub/Mod-GGUF@Q6_K", "lmstudio:pub/gemma3@Q4_K_M"],
    "ggufbpe tokenize -m ollama:q": ["qwen3:8b"],
    "ggufbpe info qw": ["qw.gguf", "qwen3", "qwen3:8b"],
    "ggufbpe explain -hf owner/B": ["owner/Big:F16"],
    "ggufbpe models llama.": ["llama.cpp:ggml-org_old-GGUF_q_old-Q4_0.gguf"],
    "ggufbpe list-pre gem": ["gemma4"],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no bash")
def test_completion_in_bash(stores: Path) -> None:
    (stores / "qw.gguf").touch()
    (stores / "qw.txt").touch()
    program = """
        eval "$(ggufbpe completion bash)"
        while IFS= read -r line; do
            COMP_LINE="$line" COMP_POINT=${#line} COMP_TYPE=9 COMPREPLY=()
            _python_argcomplete ggufbpe 2> /dev/null
            echo "$line=$(IFS=,; echo "${COMPREPLY[*]}")"
        done
    """
    done = subprocess.run(
        ["bash", "-c", program],
        input="".join(f"{line}\n" for line in COMPLETED),
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    found = dict(line.split("=", 1) for line in done.stdout.splitlines())
    offered = {line: sorted(each.strip() for each in text.split(",") if each) for line, text in found.items()}
    assert offered == {line: sorted(words) for line, words in COMPLETED.items()}


def environment_with(shell: str) -> dict[str, str]:
    """The environment for a shell, with our command; no test where there is no such shell."""
    if shutil.which(shell) is None:
        missing(f"the shell {shell} is not installed: apt-get install {shell}")
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "TERM": "dumb"}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no zsh")
def test_completion_in_zsh(stores: Path) -> None:
    """Typed on a terminal: the line, a tab, and at its beginning what prints it as it has become."""
    lines = {
        "ggufbpe tok": "ggufbpe tokenize",
        "ggufbpe tokenize -m ollama:q": "ggufbpe tokenize -m ollama:qwen3:8b",
        "ggufbpe explain -hf owner/B": "ggufbpe explain -hf owner/Big:F16",
        "ggufbpe tokenize --off": "ggufbpe tokenize --offline",
    }
    typed = [f"{line}\t\x01print -r -- got: \n" for line in lines]
    begun = 'PS1=; autoload -Uz compinit; compinit -u -D; eval "$(ggufbpe completion zsh)"\n'
    shown = on_terminal(["zsh", "-f", "-i"], [begun, *typed, "exit\n"], environment_with("zsh"))
    found = re.findall(r"^got: (.*?) *\r?$", shown.replace("\r", "\n"), re.MULTILINE)
    assert found == list(lines.values())


def on_terminal(command: list[str], typed: list[str], environment: dict[str, str]) -> str:
    """What a command shows on a terminal where all of this is typed at once."""
    controller, terminal = os.openpty()
    running = subprocess.Popen(
        command, stdin=terminal, stdout=terminal, stderr=terminal, env=environment, close_fds=True
    )
    for text in typed:
        os.write(controller, text.encode())
    return output_of_terminal(running, controller, terminal).decode()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("ggufbpe tokenize -m lm", ["lmstudio:pub/Mod-GGUF@Q6_K", "lmstudio:pub/gemma3@Q4_K_M"]),
        ("ggufbpe tokenize -m ollama:q", ["ollama:qwen3:8b"]),
        ("ggufbpe explain -hf owner/B", ["owner/Big:F16"]),
    ],
)
def test_completion_in_fish(line: str, words: list[str], stores: Path) -> None:
    program = f"ggufbpe completion fish | source; complete -C '{line}'"
    done = subprocess.run(
        ["fish", "-c", program], env=environment_with("fish"), capture_output=True, text=True
    )
    assert sorted(done.stdout.split()) == words, done.stderr


# ---- without a name -------------------------------------------------------------------------------------


def test_a_path_imports_nothing_of_it() -> None:
    program = (
        "import sys, ggufbpe.cli; ggufbpe.cli.main(['tokenize', '-m', sys.argv[1], '-p', 'a', '--ids']); "
        "print([name for name in sys.modules if name.startswith('ggufbpe.hub')])"
    )
    done = subprocess.run([sys.executable, "-c", program, GPT2], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1:] == ["['ggufbpe.hub', 'ggufbpe.hub.model_location']"]
