"""The tokens of images and audio, held to those that libmtmd gives (fixtures/media.json)."""

import json
from pathlib import Path
from typing import Any

import pytest
from make_mmproj import AUDIO, VISION, make_mmproj
from record_media import chat_of

from ggufbpe import ChatError, Tokenizer
from ggufbpe.chat.media.audio_header import AudioLength
from ggufbpe.chat.media.audio_tokens import AUDIO_PROJECTORS
from ggufbpe.chat.media.mmproj import Mmproj
from ggufbpe.chat.media.projectors import PROJECTORS

ROOT = Path(__file__).resolve().parents[3]
RECORDED: dict[str, Any] = json.loads((ROOT / "fixtures" / "media.json").read_text())
CASES: dict[str, Any] = RECORDED["cases"]
AUDIO_CASES: dict[str, Any] = RECORDED["audio"]
TOKENIZER = Tokenizer.from_gguf(ROOT / "ggufbpe" / "models" / "gpt2.gguf")


class AllMarks:
    """Counts texts, and takes every mark for a token: libmtmd counts its null token for one that is missing."""

    def count(self, text: str) -> int:
        return TOKENIZER.count(text, add_special=False)

    def has_token(self, text: str) -> bool:
        return text != "<|begin_of_image|>"  # by which Kimi's projector becomes GLM's


def mmproj(folder: Path, name: str, keys: dict[str, Any], usual: dict[str, Any] = VISION) -> Mmproj:
    make_mmproj(folder / "mmproj.gguf", name.partition(",")[0], keys, usual=usual)
    return Mmproj.from_file(folder / "mmproj.gguf")


@pytest.mark.parametrize("name", CASES)
def test_tokens_are_those_of_libmtmd(name: str, tmp_path: Path) -> None:
    projector = mmproj(tmp_path, name, CASES[name]["keys"])
    for width, height, *wanted in CASES[name]["images"]:
        found = projector.image_tokens(width, height, AllMarks())
        assert [found.image, found.marks] == wanted, (width, height)


@pytest.mark.parametrize("name", AUDIO_CASES)
def test_tokens_of_audio_are_those_of_libmtmd(name: str, tmp_path: Path) -> None:
    projector = mmproj(tmp_path, name, AUDIO_CASES[name]["keys"], AUDIO)
    assert projector.audio is not None
    for samples, *wanted in AUDIO_CASES[name]["recordings"]:
        length = AudioLength(samples, projector.audio.projector.rate)
        try:
            tokens = projector.audio_tokens(length, AllMarks())
            found = [tokens.audio, tokens.marks]
        except ChatError:
            found = []
        assert found == wanted, samples


def test_a_recording_for_which_llama_cpp_ends_is_refused(tmp_path: Path) -> None:
    """It asserts two frames, whose mean and variance it takes."""
    make_mmproj(tmp_path / "mmproj.gguf", "lfm2a", {}, usual=AUDIO)
    with pytest.raises(ChatError, match="319 samples of audio are too few"):
        Mmproj.from_file(tmp_path / "mmproj.gguf").audio_tokens(AudioLength(319, 16000), AllMarks())


@pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")
@pytest.mark.parametrize("name", RECORDED["chats"])
def test_chats_are_counted_and_refused_as_by_llama_server(name: str, tmp_path: Path) -> None:
    is_audio = name not in CASES
    keys = (AUDIO_CASES if is_audio else CASES)[name]["keys"]
    projector = mmproj(tmp_path, name, keys, AUDIO if is_audio else VISION)
    for content, wanted in RECORDED["chats"][name]:
        try:
            found: int | str = TOKENIZER.count_chat(chat_of(content)["messages"], projector).count
        except ChatError as error:
            found = error.reason
        if isinstance(wanted, int):
            assert found == wanted
        else:  # ours may say more
            assert f"{found}: ".startswith(f"{wanted[1]}: ")


def test_every_projector_is_recorded() -> None:
    assert PROJECTORS.keys() <= {name.partition(",")[0] for name in CASES}
    assert AUDIO_PROJECTORS.keys() == {name.partition(",")[0] for name in AUDIO_CASES}


@pytest.mark.parametrize("path", [None, 5])
def test_what_is_no_path(path: Any) -> None:
    with pytest.raises(
        TypeError, match=f"^mmproj must be the path of a projector's file, not {type(path).__name__}$"
    ):
        Mmproj.from_file(path)
