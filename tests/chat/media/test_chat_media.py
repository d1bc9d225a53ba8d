"""The images of chats: what is taken for one, and the tokens of a chat with them."""

import base64
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from audio_files import LIST, MP3_FRAME, wav
from make_mmproj import AUDIO, make_mmproj
from test_image_header import JPEG, png

from ggufbpe import ChatError, GGUFError, Tokenizer
from ggufbpe.chat.media.chat_media import ChatCount
from ggufbpe.chat.media.media_files import media_at
from ggufbpe.chat.media.mmproj import Mmproj

ROOT = Path(__file__).resolve().parents[3]
TOKENIZER = Tokenizer.from_gguf(ROOT / "ggufbpe" / "models" / "gpt2.gguf")
pytestmark = pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")


@pytest.fixture
def gemma3(tmp_path: Path) -> Path:
    make_mmproj(tmp_path / "mmproj.gguf", "gemma3", {"clip.vision.image_size": 896})
    return tmp_path / "mmproj.gguf"


def image(url: object) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def data_url(data: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def count(mmproj: Path, *parts: dict[str, Any], media_path: Path | None = None) -> ChatCount:
    chat = [{"role": "user", "content": list(parts)}]
    return TOKENIZER.count_chat(chat, mmproj, media_path=media_path, chat_template="known:chatml")


def test_texts_between_images_are_tokenized_each_on_its_own(gemma3: Path) -> None:
    text = {"type": "text", "text": "a\nb"}
    found = count(gemma3, text, image(data_url(png(640, 480))), text, text)
    before, after = "<|im_start|>user\na\nb", "a\nb\na\nb<|im_end|>\n<|im_start|>assistant\n"
    assert found.prompt == f"{before}<__media__>{after}".encode()
    marks = TOKENIZER.count("<start_of_image>") + TOKENIZER.count("<end_of_image>")
    assert [image._asdict() for image in found.images] == [
        {"width": 640, "height": 480, "image": 256, "marks": marks}
    ]
    assert found.count == TOKENIZER.count(before) + 256 + marks + TOKENIZER.count(after)


def test_without_images_the_count_is_that_of_the_prompt(gemma3: Path) -> None:
    found = count(gemma3, {"type": "text", "text": "Hi"})
    assert (found.count, found.images) == (TOKENIZER.count(found.prompt), ())


@pytest.mark.parametrize("url", [data_url(JPEG), base64.b64encode(JPEG).decode(), data_url(JPEG, "video/x")])
def test_addresses_with_the_data(gemma3: Path, url: str) -> None:
    assert [image[:2] for image in count(gemma3, image(url)).images] == [(90, 70)]


def test_a_header_behind_a_megabyte_is_found(gemma3: Path) -> None:
    segment = b"\xff\xe1\xff\xff" + bytes(0xFFFD)
    late = JPEG[:2] + segment * 40 + JPEG[2:]
    assert count(gemma3, image(data_url(late))).images[0][:2] == (90, 70)
    (gemma3.parent / "late.jpg").write_bytes(late)
    assert count(gemma3, image("file://late.jpg"), media_path=gemma3.parent).images[0][:2] == (90, 70)


@pytest.fixture
def both(tmp_path: Path) -> Path:
    """The file of a projector of images and audio."""
    keys = {**AUDIO, "clip.vision.projector_type": "gemma4uv", "clip.audio.projector_type": "gemma4ua"}
    make_mmproj(tmp_path / "both.gguf", "", keys)
    return tmp_path / "both.gguf"


def sound(url: str) -> dict[str, Any]:
    return {"type": "input_audio", "input_audio": {"data": url, "format": "wav"}}


def test_images_and_audio_are_told_apart_by_their_files(both: Path) -> None:
    """Whatever the type of the part says."""
    (both.parent / "a.wav").write_bytes(wav(700))
    parts = [image(data_url(png(64, 64))), sound(data_url(wav(1281))), image(data_url(wav(16000)))]
    parts += [sound(data_url(png(96, 96))), sound("file://a.wav")]
    found = count(both, *parts, media_path=both.parent)
    assert [each.samples for each in found.audio] == [1281, 16000, 700]
    assert [each.audio for each in found.audio] == [3, 25, 2]
    assert [each[:2] for each in found.images] == [(64, 64), (96, 96)]
    texts = sum(TOKENIZER.count(text) for text in found.prompt.split(b"<__media__>"))
    assert found.count == texts + sum(each.total for each in (*found.images, *found.audio))


def test_what_is_at_an_address(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(wav(5, 8000))
    assert media_at(data_url(png(7, 9)), None) == (7, 9)
    assert media_at("file://a.wav", tmp_path) == (5, 8000)


def test_samples_behind_a_megabyte_are_found(both: Path) -> None:
    late = wav(3200, before=LIST * 80_000)
    (both.parent / "late.wav").write_bytes(late)
    found = count(both, sound(data_url(late)), sound("file://late.wav"), media_path=both.parent)
    assert [each.audio for each in found.audio] == [5, 5]


def test_a_mark_that_no_token_has_is_looked_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the whole vocabulary, not for each image."""
    make_mmproj(tmp_path / "kimi.gguf", "kimik25", {})
    asked: list[int] = []
    token_to_piece = Tokenizer.token_to_piece

    def noted(self: Tokenizer, token: int) -> bytes:
        asked.append(token)
        return token_to_piece(self, token)

    monkeypatch.setattr(Tokenizer, "token_to_piece", noted)
    for images in (1, 3):
        asked.clear()
        count(tmp_path / "kimi.gguf", *[image(data_url(png(640, 480)))] * images)
        assert TOKENIZER.vocab_size <= len(asked) < TOKENIZER.vocab_size * 1.5


REFUSED = {
    "nothing": ({"type": "image_url"}, "Invalid base64 value"),
    "an address of the web": (image("https://example.org/a.png"), "media are not downloaded"),
    "a file without a folder": (image("file://a.png"), "not allowed without media_path"),
    "text": (image("data:text/plain;base64,AAAA"), "Invalid uri format: data:text/plain;base64"),
    "data that is not base64": (image("data:image/png,AAAA"), "uri must be base64 encoded"),
    "two commas": (image("data:image/png;base64,AA,AA"), "Invalid uri-encoded base64 value"),
    "a format that is not read": (
        image(data_url(b"P6 2 2 255\n" + bytes(12))),
        "it is in none of the formats that are read here: PNG, JPEG, GIF, BMP, WebP; WAV, FLAC, MP3",
    ),
    "audio as an image": (image(data_url(wav(9))), "the projector is not for audio"),
    "MP3 without its length": (image(data_url(MP3_FRAME * 3)), "without a Xing or Info tag"),
    "a width of 2^31": (image(data_url(png(1 << 31, 1))), "pixels are too many"),
    "audio": ({"type": "input_audio", "input_audio": {"data": "AA"}}, "audio input is not supported"),
    "video": (
        {"type": "input_video", "input_video": {"data": ""}},
        "^video is not counted here, with a projector or without$",
    ),
    "a marker": ({"type": "media_marker", "text": "x"}, r"unsupported content\[\].type"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, gemma3: Path) -> None:
    part, reason = REFUSED[name]
    with pytest.raises(ChatError, match=reason):
        count(gemma3, part)


PATHS = [
    "../secret.png",
    "a/../b.png",
    "a:b",
    "",
    " a.png",
    "a.png ",
    "a.",
    "\0",
    "x" * 256,
    "fifo",
    "folder",
    "absent",
]


@pytest.mark.parametrize("path", PATHS)
def test_paths_that_are_refused(path: str, gemma3: Path) -> None:
    folder = gemma3.parent / "media"
    (folder / "folder").mkdir(parents=True)
    os.mkfifo(folder / "fifo")
    (gemma3.parent / "secret.png").write_bytes(png(1, 1))
    with pytest.raises(ChatError, match=r"file path is not allowed|cannot be opened"):
        count(gemma3, image(f"file://{path}"), media_path=folder)


def test_a_file_whose_name_the_locale_does_not_have(tmp_path: Path) -> None:
    """As llama-server, by the UTF-8 of its name."""
    (tmp_path / "\u00e9.png").write_bytes(png(7, 9))
    code = (
        "import sys; from ggufbpe.chat.media.media_files import media_at\n"
        "for name in ('\\u00e9.png', '\\u00e8.png'): print(media_at(f'file://{name}', sys.argv[1]))"
    )
    ascii_only = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path], env=ascii_only, capture_output=True, text=True, check=False
    )
    assert done.stdout == "ImageSize(width=7, height=9)\n"
    assert "ChatError: file does not exist or cannot be opened: \\xe8.png" in done.stderr


@pytest.mark.slow
def test_a_data_url_of_100_megabytes(gemma3: Path) -> None:
    assert count(gemma3, image(data_url(png(7, 9) + bytes(75_000_000)))).images[0][:2] == (7, 9)


def test_a_template_that_leaves_an_image_out_is_refused(gemma3: Path) -> None:
    chat = [{"role": "user", "content": [image(data_url(png(7, 9)))]}]
    with pytest.raises(ChatError, match="the template makes 0 of 1 images"):
        TOKENIZER.count_chat(chat, gemma3, chat_template="{% for message in messages %}x{% endfor %}")


@pytest.mark.parametrize(
    ("projector", "keys"),
    [
        ("mlp", {"clip.vision.image_size": 1, "clip.vision.image_grid_pinpoints": [65536, 65536]}),
        ("idefics3", {"clip.vision.image_size": 1, "clip.vision.preproc_image_size": (1 << 31) - 1}),
        ("idefics3", {"clip.vision.image_size": 1}),
        ("gemma4v", {"clip.vision.patch_size": 60000, "clip.vision.projector.scale_factor": 60000}),
    ],
)
def test_files_that_ask_for_too_much(projector: str, keys: dict[str, Any], tmp_path: Path) -> None:
    make_mmproj(tmp_path / "mmproj.gguf", projector, keys)
    with pytest.raises(ChatError, match=r"slices|too large"):
        count(tmp_path / "mmproj.gguf", image(data_url(png(4000, 4000))))


_ONLY_AUDIO = {"clip.has_vision_encoder": False, "clip.has_audio_encoder": True}


@pytest.mark.parametrize(
    ("projector", "keys", "reason"),
    [
        ("deepseek4v", {}, "images of the projector 'deepseek4v' are not counted"),
        ("nonsense", {}, "images of the projector 'nonsense' are not counted"),
        ("gemma3", {"clip.has_vision_encoder": False}, "no projector: neither"),
        ("gemma3", {"clip.has_audio_encoder": True}, "audio of the projector 'gemma3' is not counted"),
        ("qwen3tts_spkenc", _ONLY_AUDIO, "audio of the projector 'qwen3tts_spkenc' is not counted"),
        ("ultravox", _ONLY_AUDIO, "the key is missing"),
        ("ultravox", {**_ONLY_AUDIO, "clip.audio.projector.stack_factor": 0}, "out of range"),
        ("gemma3", {"clip.vision.image_size": 9000}, "out of range"),
        ("gemma3", {"clip.vision.patch_size": 0}, "out of range"),
        ("gemma3", {"clip.vision.projector.scale_factor": 0}, "out of range"),
        ("gemma3", {"clip.vision.image_size": "x"}, "another type"),
        ("phi4", {}, "the key is missing"),
        ("resampler", {"clip.minicpmv_version": 1}, "no version 1"),
        ("mlp", {"clip.vision.image_size": 0}, "out of range"),
        ("internvl", {"clip.vision.preproc_max_tiles": 1 << 31}, "out of range"),
        ("internvl", {"clip.vision.preproc_max_tiles": 1 << 30}, "tiles"),
        ("internvl", {"clip.vision.preproc_min_tiles": 0}, "from 0 to 12 tiles"),
        ("mlp", {"clip.vision.image_grid_pinpoints": [1, 2, 3]}, "not pairs"),
        (
            "mlp",
            {"clip.vision.image_size": 336, "clip.vision.image_grid_pinpoints": [672, 336, 100, 400]},
            "100 x 400 pixels, smaller than a slice of 336",
        ),
    ],
)
def test_files_that_are_refused(projector: str, keys: dict[str, Any], reason: str, tmp_path: Path) -> None:
    make_mmproj(tmp_path / "mmproj.gguf", projector, keys)
    with pytest.raises(GGUFError, match=reason):
        Mmproj.from_file(tmp_path / "mmproj.gguf")
