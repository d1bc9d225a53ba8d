"""The token counts of chats with images and audio, and what the server says of its projector."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import GPT2
from make_mmproj import AUDIO, make_mmproj
from record_media import AUDIO_CONTENTS, CONTENTS, chat_of

from ggufbpe import Tokenizer
from ggufbpe.server.budgets_api import fit_answer
from ggufbpe.server.failures import RequestError
from ggufbpe.server.llama_server import apply_template, count_chat, count_messages, list_models, props_answer
from ggufbpe.server.native_api import explain_answer
from ggufbpe.server.other_servers import tokenize_either
from ggufbpe.server.served_models import Models

pytestmark = pytest.mark.filterwarnings("ignore::ggufbpe.GGUFWarning")
WITH_IMAGES = chat_of(CONTENTS[4])


@pytest.fixture
def models(tmp_path: Path) -> Models:
    make_mmproj(tmp_path / "mmproj.gguf", "gemma3", {})
    return Models({"a": str(GPT2), "b": str(GPT2)}, mmproj=str(tmp_path / "mmproj.gguf"))


def test_images_are_counted_for_the_first_model(models: Models, tmp_path: Path) -> None:
    wanted = Tokenizer.from_gguf(GPT2).count_chat(WITH_IMAGES["messages"], tmp_path / "mmproj.gguf")
    assert count_chat(models, WITH_IMAGES)["input_tokens"] == wanted.count
    assert props_answer(models, {})["modalities"] == {"vision": True, "video": False, "audio": False}
    described = {each["id"]: each["architecture"] for each in list_models(models, {})["data"]}
    assert described["a"] == {"input_modalities": ["text", "image"], "output_modalities": ["text"]}
    assert described["b"] == {"input_modalities": ["text"], "output_modalities": ["text"]}


def test_audio_is_counted(tmp_path: Path) -> None:
    make_mmproj(tmp_path / "mmproj.gguf", "gemma4ua", {}, usual=AUDIO)
    models = Models({"a": str(GPT2)}, mmproj=str(tmp_path / "mmproj.gguf"))
    chat = chat_of(AUDIO_CONTENTS[2])
    wanted = Tokenizer.from_gguf(GPT2).count_chat(chat["messages"], tmp_path / "mmproj.gguf")
    assert count_chat(models, chat)["input_tokens"] == wanted.count
    assert props_answer(models, {})["modalities"] == {"vision": False, "video": False, "audio": True}
    assert list_models(models, {})["data"][0]["architecture"]["input_modalities"] == ["text", "audio"]


def test_anthropic_images_are_counted(models: Models) -> None:
    data = CONTENTS[2][0]["image_url"]["url"].partition(",")[2]
    source = {"type": "base64", "media_type": "image/png", "data": data}
    chat = {"messages": [{"role": "user", "content": [{"type": "image", "source": source}]}]}
    text = {"messages": [{"role": "user", "content": ""}]}
    assert count_messages(models, chat)["input_tokens"] > count_messages(models, text)["input_tokens"] + 36
    assert base64.b64decode(data).startswith(b"\x89PNG")


@pytest.mark.parametrize("body", [WITH_IMAGES | {"model": "b"}, chat_of(CONTENTS[-1])])
def test_refused(models: Models, body: dict[str, Any]) -> None:
    with pytest.raises(RequestError, match="input is not supported"):
        count_chat(models, body)


def test_files_need_a_folder(models: Models) -> None:
    with pytest.raises(RequestError, match="file:// URLs are not allowed"):
        count_chat(models, chat_of([{"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}]))


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (apply_template, WITH_IMAGES),
        (tokenize_either, WITH_IMAGES),
        (explain_answer, WITH_IMAGES),
        (fit_answer, WITH_IMAGES | {"limit": 1000}),
        (count_chat, WITH_IMAGES | {"model": "b"}),
    ],
)
def test_where_images_are_refused_the_use_of_the_projector_is_told(
    models: Models, answer: Callable[[Models, Any], Any], body: Any
) -> None:
    words = (
        r"image input is not supported .* \(this server has one, which counts for the model 'a' where only"
    )
    with pytest.raises(RequestError, match=words):
        answer(models, body)
    with pytest.raises(RequestError, match=r"you may need to provide the mmproj$"):
        answer(Models({"a": str(GPT2), "b": str(GPT2)}), body)
