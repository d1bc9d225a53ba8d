"""The images and recordings of a chat, and how many tokens llama-server counts for the chat with them.

Source: oaicompat_content_load_media and process_mtmd_prompt in tools/server/server-common.cpp, mtmd_tokenizer in
tools/mtmd/mtmd.cpp.
"""

from __future__ import annotations

import itertools
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ..._util.errors import ChatError
from ..known_templates import GivenTemplate
from .audio_header import AudioLength
from .image_header import ImageSize
from .media_files import media_at
from .mmproj import AudioTokens, ImageTokens, Mmproj

if TYPE_CHECKING:
    from ..prompt_tokenizer import PromptTokenizer

SHOWN_MARKER = "<__media__>"  # in prompts that are shown


class ChatMedia:
    """Takes the images and recordings of one request, in order."""

    def __init__(self, projector: Mmproj, media_path: str | os.PathLike[str] | None = None) -> None:
        """`media_path` is the folder of files that messages may name; None allows none."""
        self.marker = f"<__media_{secrets.token_hex(16)}__>"  # one that no message can have
        self.found: list[ImageSize | AudioLength] = []
        self.kinds = frozenset(
            ({"image_url"} if projector.vision else set()) | ({"input_audio"} if projector.audio else set())
        )
        self._media_path = media_path

    def begin(self) -> None:
        """Forget what was taken before."""
        self.found.clear()

    def load(self, part: Mapping[str, Any]) -> None:
        """Take the image or recording of a part; `ChatError` where llama-server refuses it."""
        given = part.get(part["type"])
        keys = ("url",) if part["type"] == "image_url" else ("data", "url")
        values = [given.get(key) for key in keys] if isinstance(given, dict) else []
        url = next((value for value in values if isinstance(value, str)), "")
        self.found.append(media_at(url, self._media_path))


@dataclass(frozen=True)
class ChatCount:
    """The number of tokens of a chat, `count`, which includes those of its `images` and recordings (`audio`).

    `prompt` is the UTF-8 of the prompt, with "<__media__>" for each image and recording.
    """

    prompt: bytes
    count: int
    images: tuple[ImageTokens, ...]
    audio: tuple[AudioTokens, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The prompt, the number of tokens, and those of each image and recording."""
        return {
            "prompt": self.prompt.decode("utf-8", "replace"),
            "count": self.count,
            "images": [{**each._asdict(), "count": each.total} for each in self.images],
            "audio": [{**each._asdict(), "count": each.total} for each in self.audio],
        }


class _Texts:
    """The tokens of texts between and around images and recordings."""

    def __init__(self, tokenizer: PromptTokenizer) -> None:
        self._tokenizer = tokenizer
        self._known: dict[str, bool] = {}

    def count(self, text: str | bytes) -> int:
        """The number of tokens of a text of its own."""
        return self._tokenizer.count(text, add_special=False)

    def has_token(self, text: str) -> bool:
        """Whether a token has this piece. Source: lookup_token in tools/mtmd/mtmd.cpp."""
        if text not in self._known:
            piece, tokenizer = text.encode(), self._tokenizer
            usual = tokenizer.encode(piece, add_special=False)  # the token is among these, as a rule
            every = itertools.chain(usual, range(len(tokenizer.vocabulary.tokens)))
            self._known[text] = any(tokenizer.token_to_piece(token) == piece for token in every)
        return self._known[text]


def count_with_media(
    tokenizer: PromptTokenizer,
    body: Mapping[str, Any],
    mmproj: Mmproj | str | os.PathLike[str],
    media_path: str | os.PathLike[str] | None = None,
    chat_template: GivenTemplate = None,
    now: datetime | None = None,
) -> ChatCount:
    """Count the tokens of a chat as llama-server with this projector does.

    `body` is that of a request, and `media_path` the folder of files that messages may name. The texts between images
    and recordings are tokenized each on its own. `ChatError` for what llama-server refuses, and for video and
    addresses, which are not read here.
    """
    projector = mmproj if isinstance(mmproj, Mmproj) else Mmproj.from_file(mmproj)
    media = ChatMedia(projector, media_path)
    prompt = tokenizer.chats.prompt(body, chat_template, now, media=media)
    texts = prompt.split(media.marker.encode())
    if len(texts) != len(media.found) + 1:
        raise ChatError(f"the template makes {len(texts) - 1} of {len(media.found)} images and recordings")

    counter = _Texts(tokenizer)
    tokens = [
        projector.image_tokens(*each, counter)
        if isinstance(each, ImageSize)
        else projector.audio_tokens(each, counter)
        for each in media.found
    ]
    total = sum(map(counter.count, texts)) + sum(each.total for each in tokens)
    total += sum(map(len, tokenizer.vocabulary.added))
    return ChatCount(
        prompt.replace(media.marker.encode(), SHOWN_MARKER.encode()),
        total,
        tuple(each for each in tokens if isinstance(each, ImageTokens)),
        tuple(each for each in tokens if isinstance(each, AudioTokens)),
    )
