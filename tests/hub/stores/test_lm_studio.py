"""LM Studio's folder of models."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from stores import lm_studio_file

from ggufbpe.hub.name_grammar import HubName, LMStudioName
from ggufbpe.hub.stores.lm_studio import LM_STUDIO


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two models, in a home of its own."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    models = tmp_path / ".lmstudio" / "models"
    for place in (
        "Pub/Mod-GGUF/Mod-Q6_K.gguf",
        "Pub/Mod-GGUF/mmproj-F16.gguf",
        "Pub/Mod-GGUF/odd.gguf",
        "Pub/a/b.gguf",
    ):
        lm_studio_file(models, place, b"GGUF")
    return models


def test_models(folder: Path) -> None:
    found = {model.name: model for model in LM_STUDIO.models()}
    assert list(found) == [
        "lmstudio:Pub/Mod-GGUF@Q6_K",
        "lmstudio:Pub/Mod-GGUF/odd.gguf",
        "lmstudio:Pub/a/b.gguf",
    ]
    names = found["lmstudio:Pub/Mod-GGUF@Q6_K"].bare_names
    assert {"Mod-Q6_K.gguf", "Mod-Q6_K", "Pub/Mod-GGUF@Q6_K", "Mod-GGUF:Q6_K", "Mod", "Mod@Q6_K"} <= set(
        names
    )
    assert set(found["lmstudio:Pub/Mod-GGUF/odd.gguf"].bare_names) == {"odd.gguf", "odd"}
    assert found["lmstudio:Pub/a/b.gguf"].path == str(folder / "Pub" / "a" / "b.gguf")


FOUND = {
    LMStudioName("pub", "mod-gguf"): "lmstudio:Pub/Mod-GGUF@Q6_K",
    LMStudioName("Pub", "Mod-GGUF", "q6_k"): "lmstudio:Pub/Mod-GGUF@Q6_K",
    LMStudioName("Pub", "Mod-GGUF", None, "ODD.gguf"): "lmstudio:Pub/Mod-GGUF/odd.gguf",
    LMStudioName("Pub", "Mod-GGUF", "Q4_0"): None,
    LMStudioName("Pub", "other"): None,
    HubName("Pub", "Mod-GGUF"): None,
}


@pytest.mark.parametrize("name", FOUND, ids=str)
def test_find(folder: Path, name: LMStudioName) -> None:
    found = LM_STUDIO.find(name)
    assert (found and found.name) == FOUND[name]


def test_folders_of_its_settings(folder: Path, tmp_path: Path) -> None:
    (tmp_path / ".lmstudio-home-pointer").write_text(f"{tmp_path}/elsewhere\n")
    settings = tmp_path / "elsewhere" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"downloadsFolder": f"{tmp_path}/downloads"}))
    usual = tmp_path / ".lmstudio" / "settings.json"
    usual.write_text(json.dumps({"downloadsFolder": f"{tmp_path}/usual"}))
    folders = LM_STUDIO.folders()
    assert folders[0] == f"{tmp_path}/downloads"
    assert {str(Path(each)) for each in folders} >= {f"{tmp_path}/elsewhere/models", str(folder)}
    settings.write_text("{")  # damaged settings name nothing
    assert f"{tmp_path}/downloads" not in LM_STUDIO.folders()


@pytest.mark.parametrize("pointer", ["\0" * 40, "/a\0", "", "relative", "\xff"], ids=repr)
def test_a_pointer_to_no_folder(folder: Path, tmp_path: Path, pointer: str) -> None:
    """As a power cut leaves it; a relative one would depend on where the user is."""
    usual = LM_STUDIO.folders()
    (tmp_path / ".lmstudio-home-pointer").write_bytes(pointer.encode("latin-1"))
    (tmp_path / ".lmstudio" / "settings.json").write_text(json.dumps({"downloadsFolder": pointer}))
    assert LM_STUDIO.folders() == usual


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_a_pointer_that_is_a_pipe(folder: Path, tmp_path: Path) -> None:
    usual = LM_STUDIO.folders()
    os.mkfifo(tmp_path / ".lmstudio-home-pointer")
    assert LM_STUDIO.folders() == usual
